//! The optimizer.

mod selectivity;
mod statistics;

pub use statistics::estimate_rows;
