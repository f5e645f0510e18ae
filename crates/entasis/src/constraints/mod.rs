//! What rows must satisfy, judged on what is at hand: rows, a writer, snapshots. Whose rows they are, and
//! when they are judged, is not known here: that is said by `change` and `work`.
//!
//! ```text
//! catch_up                 indexes that are built while others write, by keys
//! keys  claims  row        unique keys; foreign keys; NOT NULL and CHECK
//! values                   values of rows, and how errors show them
//! ```

pub(crate) mod catch_up;
pub(crate) mod claims;
pub(crate) mod keys;
pub(crate) mod row;
pub(crate) mod values;
