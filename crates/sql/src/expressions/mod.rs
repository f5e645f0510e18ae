//! Construction of the engine's expressions: constant folding, and exact comparisons.

pub(crate) mod exact;
pub(crate) mod external;
pub(crate) mod fold;
