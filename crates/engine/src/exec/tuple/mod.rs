//! The compressed tuple: rows that an operator keeps, each in as few bytes as its values need (Westmann,
//! Kossmann, Helmer and Moerkotte, *The Implementation and Performance of Compressed Databases*, section
//! 3.3).
//!
//! ```text
//! | 1 fixed, compressed | 2 length codes | 3 fixed, uncompressed | 4 of varying length | 5 strings |
//! |<---------------------- the same in every tuple -------------->|
//! ```
//! 1. Integers whose known range needs two bytes or fewer: their distance from the minimum, NULL one more
//!    value.
//! 2. A few bits for each field of varying length that say how long it is here, or that it is NULL. A field's
//!    code stands within one byte ([`codes`]).
//! 3. What cannot gain: single floats, intervals, UUIDs.
//! 4. Integers without their leading zeros, doubles that are floats, lengths of strings.
//! 5. Of each string what its view holds beside the length: up to 12 bytes, or prefix and pointer. The bytes
//!    of long strings stay where the view's owner has them.
//!
//! A [`TupleLayout`] is made from what is known of the columns. [`encode`](Tuples::encode) writes the rows of
//! one segment, a [`Batch`] reads fields of listed rows; both go field by field over many rows, without a
//! dispatch per value. Where a field starts is looked up in decoding tables: one for each byte of codes, or
//! one for two bytes together.
//!
//! [`choice`] decides whether an operator's rows become tuples.
//!
//! Invariants: a tuple is at most [`layout::LONGEST_TUPLE`] bytes; behind the last tuple there is room for
//! any load that starts in it; a code of 0 is NULL where a field may be NULL.
//!
//! Tuples go to files and come back as they are ([`bytes`]); the bytes of long strings are brought along by
//! who writes them ([`spill::rows`](super::spill)), who gives tuples distances instead of pointers.
//!
//! Not here: codes of dictionaries, compressed strings, and writing to a tuple.

mod bytes;
pub mod codes;
mod decode;
mod encode;
mod layout;
#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
mod twin;

pub(super) use decode::{BATCH_ROWS, Batch};
pub(super) use encode::Source;
pub use layout::TupleLayout;
pub(crate) use layout::range_of;

// Views of strings are taken apart as one number of 16 bytes, and shorter numbers are cut out of longer ones.
const _: () = assert!(cfg!(target_endian = "little"));

/// Bytes behind the last tuple, so that 16 bytes may be loaded and stored wherever a field starts.
const SLACK: usize = 16;

/// The rows of one segment as tuples.
pub(super) struct Tuples {
    bytes: Vec<u8>,
    starts: Starts,
}

/// Where tuples start.
enum Starts {
    /// All have this many bytes.
    Every(u32),
    /// The start of the first tuple of `1 << shift`, and each tuple's distance from it.
    Near { shift: u32, bases: Vec<u32>, distances: Vec<u16> },
}

impl Tuples {
    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        let starts = match &self.starts {
            Starts::Every(_) => 0,
            Starts::Near { bases, distances, .. } => bases.capacity() * 4 + distances.capacity() * 2,
        };
        self.bytes.capacity() + starts
    }
}
