//! Redo records: what was done to the rows of tables, as bytes, and back (docs/design/file-format.md, "Redo
//! records"). The log consists of them.
//!
//! A record is a kind and a counted body, so that who reads it knows where the next one begins. It says which
//! row by a *name* ([`RowName`]), because places are nobody's to rely on: in a table without a layout key its
//! hidden number, in one whose layout key is distinct the key, and else all its values, of which any equal
//! row will do. What it says of a row beside the name is what the row becomes: there is no way back.
//!
//! ```text
//! row         rows and names as bytes
//! columns     many rows as columns of blocks, which [`crate::block::serialized`] writes
//! write       a change to a record          read        a record to a change
//! ```
//! Invariants: the same change has the same bytes; bytes that are no record are an error, and neither a panic
//! nor more memory than some multiple of their length. A table whose key is distinct has no two rows with the
//! same key at the moment at which one of them is named. What is not done here: applying records
//! ([`crate::table`]), ordering them ([`crate::wal`]), what those of names are about
//! ([`crate::checkpoint`]).

mod columns;
mod read;
mod row;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use columns::{gather, names_of};
pub(crate) use read::{Change, Record, Records};
pub(crate) use row::{Names, RowName, Wording};
pub(crate) use write::{Recorder, push_record};

use entasis_vector::{Error, ErrorKind};

/// The kinds of records, as bytes that stay.
pub(crate) mod kind {
    pub(super) const INSERT: u8 = 1;
    pub(super) const DELETE: u8 = 2;
    pub(super) const UPDATE: u8 = 3;
    pub(super) const INSERT_MANY: u8 = 4;
    pub(super) const UPDATE_MANY: u8 = 5;
    pub(super) const DELETE_MANY: u8 = 6;
    pub(super) const CLEAR: u8 = 8;
    pub(crate) const PUT: u8 = 9;
    pub(crate) const DROP: u8 = 10;
    pub(crate) const SEQUENCE: u8 = 11;
}

/// What is wrong with bytes that should be a record.
pub(crate) type Flaw = &'static str;

/// The error of what is wrong. Whoever has the log says where.
pub(crate) fn damaged(flaw: &str) -> Error {
    Error::new(ErrorKind::Corruption, format!("a redo record is damaged: {flaw}"))
}
