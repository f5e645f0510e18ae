//! Tables of build sides that are read twice ([`two_pass`](super::super::two_pass)).
//!
//! If no row is needed, keys become [bits](bits): each worker has its own, since an atomic instruction would
//! take three times as long; they are combined at the end.
//!
//! Otherwise (Barber et al., section 2.2.1: a first pass that counts, a second one that moves rows, no table
//! with empty buckets; section 2.3: no latches), rows go to parts first, and find their places there:
//!
//! ```text
//! first reading    rows are counted by ranges of places or buckets; ranges make parts of about as many rows   (ranges)
//! second reading   each row goes to the next free place of its part, its number beside it                       (parts)
//! finalizing       each part, while it is in the caches: bits, ranks, rows in the order of ranks              (cat, cht)
//! ```
//!
//! A row that went to its final place at once would miss the caches three times: at its key's counter, at its
//! rank, and at its place. Parts are written sequentially, and a part that is finalized is in the caches.
// PERF: 100 million rows of a key and 8 bytes, probed in order, two threads: 2.3 s if rows are placed at
// once, 1.4 s by parts (docs/decisions/0016-parts-that-settle.md).

mod bits;
mod cat;
mod cht;
mod parts;
mod ranges;

pub(crate) use bits::{BitCount, CountedBits};
pub(crate) use cat::FinalCat;
pub(crate) use cht::FinalCht;
pub(crate) use parts::{Batch, PrecountedRows};
pub(crate) use ranges::{Numbering, RangeCount};

use super::{JoinTable, ProbeKeys};
