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
pub mod code_set;
pub mod datum;
pub mod definition;
pub mod dependencies;
mod difference;
mod digest;
mod duplicates;
mod fold;
mod hash;
pub mod index;
pub mod inspect;
mod key;
pub mod layout;
mod lock_order;
mod log;
pub mod lookup;
mod positions;
mod read;
mod reader;
mod rewrite;
pub mod row_group;
pub mod sequence;
pub mod sketch;
pub mod snapshot;
mod sync;
pub mod table;
pub mod transaction;
mod tree;
mod turn;
mod upkeep;
mod write;
pub mod writer;
pub mod zone;

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
pub use catalog::{Catalog, CatalogVersion, Entry, IfExists, NameChange, TEMPORARY, TableEntry, View, is_temporary};
pub use code_set::{CodeSet, Condition};
pub use datum::Datum;
pub use definition::Definition;
pub use difference::Difference;
pub use duplicates::Among;
pub use layout::{Compression, Layout, TableOptions};
pub use lookup::SlotRange;
pub use reader::TableReader;
pub use rewrite::ColumnSource;
pub use row_group::{RowGroup, ValueRange};
pub use sequence::Sequence;
pub use snapshot::TableSnapshot;
pub use table::Table;
pub use transaction::{Interrupt, Transaction};
pub use turn::{Waiter, WriterName};
pub use upkeep::Upkeep;
pub use write::RowId;
pub use writer::TableWriter;
pub use zone::{ColumnSummary, Zone};

/// Slots of a block and of a slice.
pub const BLOCK_ROWS: usize = 1024;
/// Slots of a full row group.
pub const ROW_GROUP_ROWS: usize = 131_072;
