//! Tables whose columns are updated in place: a tree of versions over row groups of 1024-slot blocks, snapshots,
//! transactions, and the catalog that names them.
//!
//! ```text
//! Catalog ── Table ── head ─▶ Root ─▶ row groups ─▶ slices ─▶ blocks        nodes that nobody shares are written in place,
//!                              ▲      ≤ 131072      1024      1024 slots    others are copied first
//!            TableSnapshot ────┘      slots         slots     of one column
//! ```
//! A reader holds a snapshot and sees one version; a writer never disturbs it. Where rows stand is the layout's choice:
//! in the order of insertion, or in partitions of a layout key with ghost slots for what is to come.
//!
//! Reading order: [`layout`] → [`block`] (what 1024 slots look like in memory) → `tree` (who may write them, and how
//! versions share them) → [`row_group`] (how they are read) → `write` (the five operations) → [`writer`] → [`table`] →
//! [`transaction`] → [`catalog`]. Bulk: [`builder`] and [`appender`].
//!
//! Knows no SQL, no operator and no file.

pub mod block;
pub mod builder;
pub mod catalog;
pub mod definition;
mod node;
pub mod scan;
mod sync;
pub mod table;
pub mod transaction;
pub mod tree;
pub mod value;
mod write;

#[cfg(test)]
mod tests;

pub use catalog::{Catalog, CatalogVersion, Entry, IfExists, NameChange, TableEntry, View, dependencies};
pub use definition::{Compression, Counting, Definition, Layout, Sequence, TableOptions};
pub use scan::{CodeSet, Condition, SlotRange, ValueRange};
pub use table::{
    Among, AppendedRows, Appender, ColumnSource, Difference, Interrupt, Table, TableReader, TableSnapshot, TableWriter,
    Upkeep, Waiter, WriterName, index,
};
pub use transaction::Transaction;
pub use tree::{RowGroup, RowId, inspect};
pub use value::{ColumnSummary, Datum, Zone};

/// Slots of a block and of a slice.
pub const BLOCK_ROWS: usize = 1024;
/// Slots of a full row group.
pub const ROW_GROUP_ROWS: usize = 131_072;
