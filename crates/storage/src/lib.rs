//! Tables whose columns are updated in place: a tree of versions over row groups of 1024-slot blocks,
//! snapshots, transactions, and the catalog that names them.
//!
//! ```text
//! Catalog ── Table ── head ─▶ Root ─▶ row groups ─▶ slices ─▶ blocks        nodes that nobody shares are written in place,
//!                              ▲      ≤ 131072      1024      1024 slots    others are copied first
//!            TableSnapshot ────┘      slots         slots     of one column
//! ```
//! A reader holds a snapshot and sees one version, which no writer disturbs. The layout decides where rows
//! are stored: in the order of insertion, or in partitions of a layout key, with ghost slots for future rows.
//!
//! The modules, from the bottom up. Each depends only on those above it in the table ([decision
//! 22](../../../docs/decisions/0022-floors-of-storage.md)), which is also an order to read them in:
//!
//! | | |
//! |---|---|
//! | `sync` | locks and atomics, and the order of locks |
//! | `parallel` | work that is shared out to threads |
//! | [`value`] | one value, and what is known of many: bounds, distinct ones |
//! | [`definition`] | what is declared of a table: keys, layout, compression |
//! | `node` | stamps, and the links between nodes of a version |
//! | [`block`] | the encodings of 1024 slots of a column, and how encoded values are compared |
//! | `tree` | versions: root, row groups, slices; who may write a node, and when an old one is freed |
//! | [`scan`] | how a version is read: by key, by conditions, as vectors, as sums |
//! | [`builder`] | how vectors become blocks |
//! | `write` | the five operations on rows, bulk changes, and room for new rows |
//! | `record` | redo records: changes of rows as bytes of the log, and back |
//! | [`table`] | the newest version and its lock; snapshots, writers, forks, upkeep |
//! | [`transaction`] | several tables, changed at one moment or not at all |
//! | [`catalog`] | the names of tables, views and sequences |
//! | [`checkpoint`] | writes what has changed of catalog and tables to the data file, and reads it back |
//!
//! A database in one file (docs/decisions/0021-one-file.md) also needs [`backend`] (disks), [`mod@file`] (the
//! data file: headers, extents, free space) and [`wal`] (the log, to which logged tables append their
//! changes).
//!
//! The crate knows neither SQL nor operators.

pub mod backend;
pub mod block;
pub mod builder;
pub mod catalog;
pub mod checkpoint;
pub mod definition;
pub mod file;
mod node;
mod parallel;
mod record;
pub mod scan;
mod sync;
pub mod table;
pub mod transaction;
mod tree;
pub mod value;
pub mod wal;
mod write;

#[cfg(test)]
mod tests;

pub use catalog::{
    Catalog, CatalogVersion, Entry, IfExists, NameChange, NamedType, TableEntry, View, dependencies,
    is_temporary,
};
pub use definition::{
    CURVE_COLUMNS, Compression, CounterOptions, Curve, Definition, Layout, NEVER, ObjectId, Sequence,
    TableOptions, sequence,
};
pub use scan::{CodeSearch, CodeSet, Condition, KeyRange, SlotRange, TextSearch, ValueRange, ValueSet};
pub use table::{
    Among, AppendedRows, Appender, BinInfo, Difference, Frequencies, HeadWriters, Interrupt, KEY_SAMPLES_MAX,
    KeySample, LatchedRow, PartitionInfo, RowSample, SampledSlots, SingleRows, Table, TableReader,
    TableSnapshot, TableWriter, Upkeep, Waiter, WriterName, index, latencies,
};
pub use transaction::{Prologue, Transaction};
pub use tree::{ColumnSource, Decision, Flaw, RowGroup, RowId, Standing, UpkeepReason, Upkept, inspect};
pub use value::{ColumnSummary, Datum, Zone};

/// Slots of a block and of a slice.
pub const BLOCK_ROWS: usize = 1024;
/// Slots of a full row group.
pub const ROW_GROUP_ROWS: usize = 131_072;
