//! Scanning: how a version is read, by rows and by values.
//!
//! ```text
//! rows     lookup        by their layout key
//!            ◀── ordered  in its order
//!          range ◀── code_set ◀── select ──▶ positions      by conditions on their values, as these are encoded
//!                    value_set ◀─┤
//!                  text_search ◀─┘
//! values   read ◀── decode        as vectors
//!               ◀── fold          counted, summed, compared, and not copied
//!          row                    one row's
//!          rows                   of all rows, one after the other
//! ```
//! All of this is methods of [`RowGroup`](crate::tree::RowGroup), or functions of a root. Nothing is stored
//! here, and nothing is written.

mod code_set;
mod decode;
mod fold;
pub(crate) mod lookup;
pub(crate) mod ordered;
mod positions;
mod range;
pub(crate) mod read;
pub(crate) mod row;
pub(crate) mod rows;
mod select;
mod text_search;
mod value_set;

pub use code_set::{CodeSet, Condition};
pub use lookup::SlotRange;
pub use ordered::KeyRange;
pub use range::ValueRange;
pub use text_search::{CodeSearch, TextSearch};
pub use value_set::ValueSet;

#[cfg(test)]
pub(crate) mod tests {
    mod code_set;
    pub(crate) mod reading;
    mod text_search;
    mod texts;
    mod value_set;
}
