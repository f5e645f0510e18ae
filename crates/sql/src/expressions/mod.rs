//! Expressions of the engine while they are made: what constants give, and exact comparisons.

pub(crate) mod exact;
pub(crate) mod external;
pub(crate) mod fold;
