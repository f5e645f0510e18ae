//! Rows kept in memory, column by column: the build side of a join, the groups of an aggregation, the input
//! of a sort.
//!
//! Rows are in segments of at most 65,536. A *row id* is `segment << 16 | offset`, four bytes, and changes
//! only if a table reorders all rows; as long as rows only arrive by [`Materialized::append`], ids are the
//! numbers 0, 1, 2, … in the order of arrival. Each worker fills a `Materialized` of its own, and
//! [`Materialized::absorb`] puts them together without copying a value.
//!
//! A column holds the physical type that its [`ColumnMeta`] names; narrower integers are widened on arrival.
//! A segment keeps a validity only if it has a NULL. Short strings and stable ones are kept as their views;
//! the bytes of others are copied to a heap that belongs to the `Materialized`. Vectors that are read from it
//! share that heap, so rows must not be appended while such a vector is alive.
//!
//! [`Materialized::compress`] turns the columns of a finished segment that are not keys into
//! [tuples](super::tuple) and frees them. [`Materialized::gather`] and the like still read such rows;
//! functions that return slices or compare ([`Materialized::values`], [`Materialized::compare`] and others
//! that say so) are for keys, which stay columns.
//!
//! Rows that are [put in place](Placing) may have several columns in one [word](words); the same functions
//! read them.
//!
//! All loops run over one column of many rows: no dispatch per row. Nothing here counts against the memory
//! budget; the owner charges [`Materialized::bytes`].

mod column;
mod compress;
mod equal;
mod grow;
mod placing;
mod read;
mod reorder;
mod rows;
mod segments;
#[cfg(test)]
mod tests;
mod words;

pub use crate::exec::row_id::SEGMENT_ROWS;
pub use placing::Placing;
pub use rows::Materialized;

use entasis_vector::DataType;
use entasis_vector::expr::ColumnMeta;

/// A column for the values of `ty`, with an arbitrary id: for tests and for state columns of operators.
pub fn column_of(ty: DataType) -> ColumnMeta {
    ColumnMeta::new(entasis_vector::ColumnId(u32::MAX), ty)
}
