//! Values: one of them, as it passes between modules, and what is known of many.
//!
//! ```text
//! hash ◀── datum      one value without its type, borrowed from where it stands; its hash
//!          sketch     about how many different ones there are, from their hashes
//!          zone       the least and the greatest of them, and how many are NULL
//! ```
//! Knows no block, and nothing that is written to.

mod datum;
mod hash;
mod sketch;
mod zone;

pub use datum::Datum;
#[cfg(test)]
pub(crate) use hash::HASHED;
pub(crate) use hash::{hash_bytes, hash_word};
pub(crate) use sketch::REGISTERS;
pub use sketch::Sketch;
pub use zone::{ColumnSummary, Zone};
