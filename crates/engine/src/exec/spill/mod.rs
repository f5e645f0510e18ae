//! Temporary files, for rows that do not fit into memory.
//!
//! A [`file::TempFile`] takes pieces of bytes and returns their places; [`rows::RowFormat`] writes rows to
//! such pieces, as self-contained [tuples](super::tuple), and reads them again. The operator decides what
//! makes a piece and when it is read: joins and aggregations keep a list of pieces for each partition
//! ([`store`]), sorts one for each sorted run, rows that several parts of a statement read for each morsel
//! ([`kept`]), and results that are read while they are produced a queue ([`super::stream`]).
//!
//! When they do so says [`policy`], for all of them.
//!
//! Invariants: a file loses its name when it is created (where the system allows that), so nothing is left
//! behind whatever happens to the statement or the process. All files of a database together have at most
//! `max_temp_directory_size` bytes. Bytes that are being written or read, a piece or two per worker, are not
//! reserved.

pub(crate) mod file;
pub(crate) mod kept;
pub(crate) mod policy;
pub(crate) mod rows;
pub(crate) mod store;
#[cfg(test)]
mod tests;
