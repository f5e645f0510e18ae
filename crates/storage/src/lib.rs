//! Tables whose columns are updated in place: a tree of versions over row groups of 1024-slot blocks,
//! snapshots, transactions, and the catalog that names them.
//!
//! ```text
//! Catalog ── Table ── head ─▶ Root ─▶ row groups ─▶ slices ─▶ blocks        nodes that nobody shares are written in place,
//!                              ▲      ≤ 131072      1024      1024 slots    others are copied first
//!            TableSnapshot ────┘      slots         slots     of one column
//! ```
//! A reader holds a snapshot and sees one version; a writer never disturbs it. Where rows stand is the
//! layout's choice: in the order of insertion, or in partitions of a layout key with ghost slots for what is
//! to come.
//!
//! Floors, from the ground up. Each knows only those below it ([decision
//! 22](../../../docs/decisions/0022-floors-of-storage.md)), which is also an order to read them in:
//!
//! | | |
//! |---|---|
//! | `sync` | what threads meet by, and the order of locks |
//! | [`value`] | one value, and what is known of many: bounds, distinct ones |
//! | [`definition`] | what is said of a table before there is a row: keys, layout, compression |
//! | `node` | stamps, and the links that versions are made of |
//! | [`block`] | what 1024 slots of a column look like in memory, and how they are compared as they are |
//! | `tree` | versions: root, row groups, slices; who may write a node, and when an old one is freed |
//! | [`scan`] | how a version is read: by key, by conditions, as vectors, as sums |
//! | [`builder`] | how vectors become blocks |
//! | `write` | the five operations on rows, many rows at once, and room for them |
//! | `record` | what was done to rows, as bytes of the log, and back |
//! | [`table`] | the newest version and its lock; snapshots, writers, forks, upkeep |
//! | [`transaction`] | several tables, changed at one moment or not at all |
//! | [`catalog`] | the names of tables, views and sequences |
//! | [`checkpoint`] | catalog and tables to the data file, as far as they have changed, and back |
//!
//! A database in one file (docs/decisions/0021-one-file.md) is [`checkpoint`], and beside the others
//! [`backend`] (disks), [`file`] (the data file: headers, extents, free space) and [`wal`] (the log, to which
//! tables append what is done to them if they are told to).
//!
//! Knows no SQL and no operator.

pub mod backend;
pub mod block;
pub mod builder;
pub mod catalog;
pub mod checkpoint;
pub mod definition;
pub mod file;
mod node;
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
    Catalog, CatalogVersion, Entry, IfExists, NameChange, TEMPORARY, TableEntry, View, dependencies,
    is_temporary,
};
pub use definition::{Compression, Definition, Layout, ObjectId, Sequence, TableOptions, sequence};
pub use scan::{CodeSet, Condition, SlotRange, ValueRange};
pub use table::{
    Among, AppendedRows, Appender, ColumnSource, Difference, Interrupt, Table, TableReader, TableSnapshot,
    TableWriter, Upkeep, Waiter, WriterName, index,
};
pub use transaction::{Prologue, Transaction};
pub use tree::{Flaw, RowGroup, RowId, inspect};
pub use value::{ColumnSummary, Datum, Zone};

/// Slots of a block and of a slice.
pub const BLOCK_ROWS: usize = 1024;
/// Slots of a full row group.
pub const ROW_GROUP_ROWS: usize = 131_072;
