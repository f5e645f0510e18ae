//! Temporary files: where rows go that there is no memory for.
//!
//! A [`file::TempFile`] takes pieces of bytes and says where they are; [`rows::RowFormat`] makes such pieces of rows, as
//! [tuples](super::tuple) that stand alone, and reads them again. What a piece is, and which are read when, is the
//! matter of the operator: joins and aggregations keep a list of them for each partition ([`store`]), sorts one for each sorted run.
//!
//! Invariants: a file has no name from the moment it was made (where the system allows that), so nothing stays behind
//! whatever becomes of the statement or the process. All files of a database together have at most
//! `max_temp_directory_size` bytes. Bytes that are being written or read are not reserved: a piece or two a worker.

pub(crate) mod file;
pub(crate) mod rows;
pub(crate) mod store;
#[cfg(test)]
mod tests;

use std::fmt;

/// When sorts and aggregations write rows to temporary files. The settings `sort_spill` and `aggregate_spill`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spilling {
    /// When memory is short.
    #[default]
    Auto,
    /// After few rows. For tests.
    All,
    /// After hardly any rows, and what comes back is taken to be too large. For tests.
    Deep,
}

impl Spilling {
    /// All, with their names in SQL.
    pub const NAMES: [(Spilling, &str); 3] =
        [(Spilling::Auto, "auto"), (Spilling::All, "all"), (Spilling::Deep, "deep")];
}

impl fmt::Display for Spilling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Spilling::NAMES.iter().find(|(value, _)| value == self).expect("all have a name");
        f.write_str(name)
    }
}
