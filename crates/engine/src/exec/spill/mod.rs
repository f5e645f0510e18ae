//! Temporary files, for rows that do not fit into memory.
//!
//! A [`file::TempFile`] takes pieces of bytes and returns where they are; [`rows::RowFormat`] makes such
//! pieces of rows, as self-contained [tuples](super::tuple), and reads them again. The operator decides what
//! makes a piece and when it is read: joins and aggregations keep a list of pieces for each partition
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
