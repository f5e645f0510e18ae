//! The version tree: *table → row groups → slices → blocks*, copied on write by epoch stamps.
//!
//! ```text
//! Branch ── root ─▶ Root ─▶ RowGroup ─▶ Slice ─▶ Block        each node bears the stamp under which it was made
//!   stamp           ▲
//! TableSnapshot ────┘ a root and the stamp at which it was taken
//! ```
//! ```text
//! key        layout keys as words that compare, and fences between partitions of them
//! row_id     the places of rows            shape      what never changes about a table
//! counters   how often each range of keys is touched; shares: by partition
//! numbers    hidden row numbers of tables without a layout key
//! upkept     what upkeep did to a row group, and why it leaves one alone
//! slices ◀── encoded                       digest     what scans read of blocks that nobody has written since
//! latch      who changes values of a slice in place
//! epochs ◀── edit ◀──▶ root ──▶ row_group ──▶ slice   what a writer does to nodes, and the nodes
//!            edit ◀── branch ◀── lineage   check      versions that are written, also of tables that are
//!                                                     made of one another; what holds of each
//! ```
//! **Stamps** are times of a table's clock, never used twice. A branch has a stamp of its own. Its writer
//! changes a node *in place* if the node has that stamp, because then nobody else can see the node. If nobody
//! else can see it any more, because all snapshots that were taken since are gone, the node is *adopted*: it
//! gets the stamp, and is written in place. Otherwise it is copied, the copy gets the stamp, and the old node
//! is *retired*. So no node has a greater stamp than its parent.
//!
//! **A snapshot** is a root and a stamp. The branch goes on under a new stamp, so that every node that the
//! snapshot shows is shared from now on. [`epochs::Epochs`] knows the snapshot's stamp until it is dropped.
//! Readers count no references.
//!
//! **A retired node** existed from its birth (its stamp) to its death (the branch's stamp when it was
//! replaced). It is freed once no snapshot is held that was taken within [birth, death). A long reader keeps
//! what it sees, and nothing else.
//!
//! **Ghosts**: a slot that is dead in every version that can be reached may be written even in a shared
//! block; only the slice, whose live bits change, is copied. Each slice knows which dead slots some version
//! may still show ([`slice::Slice::visible`]). Only the head writes ghost slots in this way; forks copy.
//!
//! **Lineages.** A table that is made of another one with other columns shows the same blocks, and the tables
//! of such a lineage have one clock ([`lineage`]). Stamps are times of that.
//!
//! This follows HyPer's and LMDB's copy-on-write without their counters; figures in `docs/design/storage.md`.
//! What makes it sound is in [`crate::node::Link`].

pub(crate) mod branch;
pub(crate) mod check;
pub(crate) mod counters;
mod digest;
mod edit;
mod encoded;
pub(crate) mod epochs;
pub(crate) mod key;
mod latch;
pub(crate) mod lineage;
mod numbers;
mod root;
mod row_group;
mod row_id;
mod shape;
mod shares;
mod slice;
mod slices;
mod upkept;

pub(crate) use branch::Branch;
pub use check::Flaw;
pub use counters::Decision;
pub(crate) use counters::{Counted, LiveCounters};
pub(crate) use edit::{Edit, Node};
pub(crate) use encoded::{EncodedSlice, Piece};
pub(crate) use epochs::Epochs;
pub(crate) use latch::{Latch, Latched};
pub(crate) use lineage::Lineage;
pub(crate) use numbers::Numbers;
pub(crate) use root::Root;
pub use row_group::{ColumnSource, RowGroup, inspect};
pub(crate) use row_group::{Partition, Wear};
pub use row_id::RowId;
pub(crate) use row_id::{Run, runs_of};
pub(crate) use shape::Shape;
pub(crate) use slice::{Slice, zones_of};
pub(crate) use slices::Slices;
pub use upkept::{Standing, UpkeepReason, Upkept};
