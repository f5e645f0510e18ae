//! Construction of the engine's expressions: constant folding, and exact comparisons.

pub mod exact;
pub mod external;
pub mod fold;
