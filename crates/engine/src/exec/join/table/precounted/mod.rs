//! Tables of build sides that are read twice ([`two_pass`](super::super::two_pass)).
//!
//! Where no row is asked for, keys become [bits](bits): each worker has its own, since an atomic instruction
//! would take three times as long; then all are put together.
//!
//! Where rows are (Barber et al., section 2.3: a first pass that counts, a second one that moves rows, no
//! table with empty buckets, no latches), they go to parts first, and find their places there:
//!
//! ```text
//! first reading    rows are counted by ranges of places or buckets; ranges make parts of about as many rows   (ranges)
//! second reading   each row goes to the next free place of its part, its number beside it                       (parts)
//! settling         part after part, while it is in the caches: bits, ranks, rows in the order of ranks          (cat, cht)
//! ```
//!
//! A row that went to its final place at once would miss the caches three times: where its key is counted,
//! where its rank is, and where it is put. Parts are written like streams, and what is finalized is near.
// PERF: 100 million rows of a key and 8 bytes, probed in order, two threads: 2.3 s at once, 1.4 by parts
// (docs/decisions/0016-parts-that-settle.md).

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
