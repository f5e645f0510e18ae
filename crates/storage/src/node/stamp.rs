//! Stamps: the times of a table's clock.

/// A time of a table's clock, with which nodes and snapshots are stamped.
pub(crate) type Stamp = u64;
