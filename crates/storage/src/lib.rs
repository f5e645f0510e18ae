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

pub mod appender;
pub mod block;
pub mod builder;
pub mod catalog;
pub mod definition;
mod difference;
mod duplicates;
pub mod index;
mod log;
mod node;
mod reader;
mod rewrite;
pub mod scan;
pub mod snapshot;
mod sync;
pub mod table;
pub mod transaction;
pub mod tree;
mod turn;
mod upkeep;
pub mod value;
mod write;
pub mod writer;

#[cfg(test)]
mod code_set_tests;
#[cfg(test)]
mod conformance_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod random;
#[cfg(test)]
mod reading_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod transaction_tests;

pub use appender::{AppendedRows, Appender};
pub use catalog::{Catalog, CatalogVersion, Entry, IfExists, NameChange, TableEntry, View, dependencies};
pub use definition::{Compression, Counting, Definition, Layout, Sequence, TableOptions};
pub use difference::Difference;
pub use duplicates::Among;
pub use reader::TableReader;
pub use rewrite::ColumnSource;
pub use scan::{CodeSet, Condition, SlotRange, ValueRange};
pub use snapshot::TableSnapshot;
pub use table::Table;
pub use transaction::{Interrupt, Transaction};
pub use tree::{RowGroup, RowId, inspect};
pub use turn::{Waiter, WriterName};
pub use upkeep::Upkeep;
pub use value::{ColumnSummary, Datum, Zone};
pub use writer::TableWriter;

/// Slots of a block and of a slice.
pub const BLOCK_ROWS: usize = 1024;
/// Slots of a full row group.
pub const ROW_GROUP_ROWS: usize = 131_072;
