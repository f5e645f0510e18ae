//! Definitions: what is declared of tables and sequences.
//!
//! ```text
//! compression ◀── declared ◀── layout      what SQL declares of a table; the order of its slots that follows
//!         object ◀── sequence              ids of objects, which last; sequences of numbers
//! ```
//! This is plain data, but for the counter of a sequence. It knows no values, blocks or tables.

mod compression;
mod declared;
mod layout;
mod object;
pub mod sequence;

pub use compression::Compression;
pub use declared::{
    Check, ColumnDefault, Definition, ForeignKey, Key, KeyKind, LayoutChoice, LayoutName, OnCommit,
    ReferentialAction,
};
pub use layout::{CounterOptions, Layout, NEVER, TableOptions};
pub use object::ObjectId;
pub use sequence::{Counting, Sequence};
