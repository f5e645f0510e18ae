//! Definitions: what is declared of tables and sequences.
//!
//! ```text
//! compression, curve ◀── declared ◀── layout   what SQL declares of a table; the order of slots that follows
//!              object ◀── sequence             ids of objects, which last; sequences of numbers
//! ```
//! This is plain data, but for the counter of a sequence. It knows no values, blocks or tables.

mod compression;
mod curve;
mod declared;
mod layout;
mod object;
pub mod sequence;

pub use compression::Compression;
pub use curve::{CURVE_COLUMNS, Curve};
pub use declared::{
    Check, ColumnDefault, Definition, ForeignKey, Key, KeyKind, LayoutChoice, LayoutName, OnCommit,
    ReferentialAction,
};
pub use layout::{CounterOptions, Layout, NEVER, TableOptions};
pub use object::ObjectId;
pub use sequence::{Counting, Sequence};
