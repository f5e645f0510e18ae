//! Constraints on rows, checked on rows, a writer or snapshots. `change` and `transaction` decide which rows
//! are checked and when.
//!
//! ```text
//! catch_up                 indexes that are built while others write
//! keys  validation  row    unique keys; foreign keys; NOT NULL and CHECK
//! indexed_rows             the rows of an index that are to be removed
//! values                   values of rows, and how errors show them
//! ```

pub(crate) mod catch_up;
mod indexed_rows;
pub(crate) mod keys;
pub(crate) mod row;
pub(crate) mod validation;
pub(crate) mod values;
