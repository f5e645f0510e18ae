//! Definitions: what is said of a table and of a sequence before there is a row.
//!
//! ```text
//! compression ◀── declared ◀── layout      what SQL declares of a table; what becomes of it: the order of its slots
//!         object ◀── sequence              what tells objects apart for ever; numbers that no two takers share
//! ```
//! Plain data, but for the counter of a sequence. Knows no value, no block and no table.

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
pub use layout::{Layout, TableOptions};
pub use object::ObjectId;
pub use sequence::{Counting, Sequence};
