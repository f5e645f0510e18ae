//! The compressed tuple: rows that an operator keeps, each in as few bytes as its values need (Westmann,
//! Kossmann, Helmer and Moerkotte, *The Implementation and Performance of Compressed Databases*, section
//! 3.3).
//!
//! ```text
//! | 1 fixed, compressed | 2 length codes | 3 fixed, uncompressed | 4 of varying length | 5 strings |
//! |<---------------------- the same in every tuple -------------->|
//! ```
//! 1. Integers whose known range needs at most two bytes: their distance from the minimum; NULL is one more
//!    value.
//! 2. A few bits for each field of varying length that give its length in this tuple, or NULL. A field's code
//!    is within one byte ([`codes`]).
//! 3. Values that cannot be shortened: single floats, intervals, UUIDs.
//! 4. Integers without their leading zeros, doubles that are floats, lengths of strings.
//! 5. For each string, the rest of its view: up to 12 bytes, or prefix and pointer. The bytes of long strings
//!    stay where the view's owner has them.
//!
//! A [`TupleLayout`] is made from what is known of the columns. [`encode`](Tuples::encode) writes the rows of
//! one segment, a [`Batch`] reads fields of listed rows; both go field by field over many rows, without a
//! dispatch per value. Decoding tables give the start of a field: one for each byte of codes, or one for two
//! bytes together.
//!
//! `choice` decides whether an operator's rows become tuples.
//!
//! Invariants: a tuple has at most [`layout::LONGEST_TUPLE`] bytes; after the last tuple there is room for
//! any load that starts in it; a code of 0 is NULL if a field may be NULL.
//!
//! Tuples are written to files and read back unchanged ([`bytes`]); the writer
//! ([`spill::rows`](super::spill)) adds the bytes of long strings and replaces pointers with distances.
//!
//! Not here: codes of dictionaries, compressed strings, and updates of a tuple.

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

// A view of a string is decomposed as a 16-byte number, and shorter numbers are cut out of longer ones.
const _: () = assert!(cfg!(target_endian = "little"));

/// Bytes after the last tuple, so that 16 bytes can be loaded and stored wherever a field starts.
const SLACK: usize = 16;

/// The rows of one segment as tuples.
pub(super) struct Tuples {
    bytes: Vec<u8>,
    starts: Starts,
}

/// Where tuples start.
enum Starts {
    /// All tuples have this many bytes.
    Every(u32),
    /// The start of the first of each `1 << shift` tuples, and each tuple's distance from it.
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
