//! Stamps: the times of a table.

/// A time of a table: what nodes and snapshots are stamped with.
pub(crate) type Stamp = u64;
