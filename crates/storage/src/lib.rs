//! Tables: row groups of 1024-slot blocks, snapshots, and the catalog that names them.
//!
//! ```text
//! Catalog ── Table ── head ──▶ version (immutable) ─▶ row groups ─▶ slices ─▶ blocks
//!                                ▲                    ≤ 131072      1024      1024 slots of
//!             TableSnapshot ─────┘                    slots         slots     one column, encoded
//! ```
//! Everything below the head is immutable and shared by `Arc`. A writer fills an [`Appender`] of its own, encodes there,
//! and [`Table::commit`] hangs the finished row groups into a new version: readers go on with the version they have,
//! and nobody waits for anybody.
//!
//! Reading order: [`block`] (what 1024 values look like in memory) → [`builder`] (how they get there) → [`row_group`] →
//! [`table`] → [`catalog`].
//!
//! Knows no SQL and no operator. Rows can only be added; update, delete and durability are not here.

pub mod appender;
pub mod block;
pub mod builder;
pub mod catalog;
mod hash;
pub mod row_group;
pub mod sketch;
pub mod table;
pub mod zone;

#[cfg(test)]
mod tests;

pub use appender::{AppendedRows, Appender};
pub use catalog::{Catalog, IfExists, View};
pub use row_group::RowGroup;
pub use table::{Table, TableSnapshot};
pub use zone::{ColumnSummary, Zone};

/// Slots of a block and of a slice.
pub const BLOCK_ROWS: usize = 1024;
/// Slots of a full row group.
pub const ROW_GROUP_ROWS: usize = 131_072;
