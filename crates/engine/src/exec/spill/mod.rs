//! Temporary files: where rows go that there is no memory for.
//!
//! A [`file::TempFile`] takes pieces of bytes and says where they are; [`rows::RowFormat`] makes such pieces
//! of rows, as [tuples](super::tuple) that stand alone, and reads them again. What a piece is, and which are
//! read when, is the matter of the operator: joins and aggregations keep a list of them for each partition
//! ([`store`]), sorts one for each sorted run.
//!
//! Invariants: a file has no name from the moment it was made (where the system allows that), so nothing
//! stays behind whatever becomes of the statement or the process. All files of a database together have at
//! most `max_temp_directory_size` bytes. Bytes that are being written or read are not reserved: a piece or
//! two a worker.

pub(crate) mod file;
pub(crate) mod rows;
pub(crate) mod store;
#[cfg(test)]
mod tests;
