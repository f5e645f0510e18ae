//! Redo records: changes of the rows of tables, as bytes and back (docs/design/file-format.md, "Redo
//! records"). The log consists of them.
//!
//! A record is a kind and a body with its length, so that a reader can find the next one. It identifies a row
//! by a *name* ([`RowName`]), since places of rows change: the hidden row number in a table without a layout
//! key; the key, if the layout key is unique; and else all values of the row, where any of several equal rows
//! will do. Beside the name it only says what the row becomes: a record cannot be undone.
//!
//! ```text
//! row         rows and names as bytes
//! columns     many rows as columns of blocks, which [`crate::block::serialized`] writes
//! write       a change to a record          read        a record to a change
//! ```
//! Invariants: the same change gives the same bytes. Bytes that are no record give an error; they cause no
//! panic, and take no more memory than a multiple of their length. When a row of a table with a unique key is
//! named, the table has no other row with that key. Not here: applying records ([`crate::table`]), ordering
//! them ([`crate::wal`]), and what records of names mean ([`crate::checkpoint`]).

mod columns;
mod read;
mod row;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use columns::{gather, names_of};
pub(crate) use read::{Change, Record, RecordReader, Records};
pub(crate) use row::{Names, RowName, Wording, push_values, read_values};
pub(crate) use write::{Recorder, push_record};

use entasis_vector::{Error, ErrorKind};

/// The kinds of records, by their bytes in the log, which never change.
pub(crate) mod kind {
    pub(super) const INSERT: u8 = 1;
    pub(super) const DELETE: u8 = 2;
    pub(super) const UPDATE: u8 = 3;
    pub(super) const INSERT_MANY: u8 = 4;
    pub(super) const UPDATE_MANY: u8 = 5;
    pub(super) const DELETE_MANY: u8 = 6;
    pub(crate) const LOAD: u8 = 7;
    pub(super) const CLEAR: u8 = 8;
    pub(crate) const PUT: u8 = 9;
    pub(crate) const DROP: u8 = 10;
    pub(crate) const SEQUENCE: u8 = 11;
    pub(crate) const INHERIT: u8 = 12;
}

/// What is wrong with bytes that should be a record.
pub(crate) type Flaw = &'static str;

/// The error for a flaw. The reader of the log adds the place.
pub(crate) fn damaged(flaw: &str) -> Error {
    Error::new(ErrorKind::Corruption, format!("a redo record is damaged: {flaw}"))
}
