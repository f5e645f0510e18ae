//! Join tables: from a key to the build rows that may have it.
//!
//! A table sees row ids and either places or hashes of keys, never columns. Its interface is that of a chain:
//! the first candidate of each probe row, then each pair's next one. [`choice::choose`] picks the kind when
//! the facts are known, and gives the reason.
//!
//! | table | keys | candidate |
//! |---|---|---|
//! | [`bitmap::BitsOnly`] | integers; only their being there counts | row 0, always a match |
//! | [`indexed::Indexed`] over offsets | integers, dense | `heads[place]`, always a match |
//! | [`indexed::Indexed`] over ranks | integers | `heads[rank of the place]`, always a match |
//! | [`cat::Cat`] | integers | the row at the rank of the place, always a match |
//! | [`cht::Cht`] | any, hardly repeated | the rows at the ranks of two buckets, keys are compared |
//! | [`unchained::Unchained`] | any | the rows of one range of hashes, keys are compared |
//! | [`chained::Chained`] | any | `heads[high bits of the hash]`, keys are compared |
//! | [`ordered`] | any or none, and bounds | the rows of a stretch, always a match |
//! | [`everything::Everything`] | none | every row |
//!
//! The concise tables (bits, CAT, CHT) are those of Barber et al., *Memory-Efficient Hash Joins*, VLDB 2014.
//! CAT, CHT and the unchained table move the rows: a row's id is its rank. They are built by partitions
//! ([`partitions`]), each by one worker. Tables with heads leave the rows in place, and all workers build
//! them at once without locks: a row becomes the head of its chain by one atomic exchange, with the old head
//! as its successor.

mod bitmap;
mod cat;
mod chained;
mod choice;
mod cht;
mod cost;
mod directory;
mod everything;
mod indexed;
pub(crate) mod ordered;
mod pairs;
mod partitions;
mod precounted;
mod probe_keys;
mod repetition;
#[cfg(test)]
mod tests;
mod unchained;

pub(crate) use chained::Chained;
pub(crate) use choice::{BuildStats, ChosenTable, LookupKind, TableRequest};
pub(crate) use choice::{bytes_at_most, choose, countable_places, fits, repetition_by_hash};
pub(crate) use pairs::Pairs;
pub(crate) use precounted::{
    Batch, BitCount, CountedBits, FinalCat, FinalCht, Numbering, PrecountedRows, RangeCount,
};
pub(crate) use probe_keys::ProbeKeys;
pub(crate) use repetition::Repetition;

use crate::exec::materialized::Materialized;
use crate::sync::AtomicU32;
use std::ops::Range;

/// No row: the end of a chain.
const NO_ROW: u32 = Materialized::NO_ROW;

/// The progress of one chunk's probe, and what it has postponed.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// How many build rows have been candidates, in a probe that goes through all of them.
    at: usize,
    /// For each probe row, its first candidate, or the rank of its key.
    heads: Vec<u32>,
    /// For each probe row, the end of its candidates, if these are adjacent.
    ends: Vec<u32>,
    /// Candidates of the next step.
    second: Pairs,
    /// Probe rows that are looked up by hash when there are no other candidates left.
    late: Vec<u16>,
    /// That lookup has begun.
    is_late: bool,
    /// The search in ordered rows.
    search: ordered::OrderedSearch,
}

impl Cursor {
    fn begin(&mut self) {
        self.second.clear();
        self.late.clear();
        self.is_late = false;
    }

    /// Room for `count` heads, and as many ends.
    fn heads_and_ends(&mut self, count: usize) -> [&mut [u32]; 2] {
        [&mut self.heads, &mut self.ends].map(|rows| room(rows, count))
    }

    /// Room for `count` heads.
    fn heads(&mut self, count: usize) -> &mut [u32] {
        room(&mut self.heads, count)
    }
}

fn room(rows: &mut Vec<u32>, count: usize) -> &mut [u32] {
    rows.resize(rows.len().max(count), NO_ROW);
    &mut rows[..count]
}

/// Finds the build rows that may match a probe row.
pub(crate) trait JoinTable: Send + Sync {
    /// Replaces `pairs` with the first candidate of each probe row that has one. `cursor` belongs to this
    /// probe, for [`JoinTable::next`]. There are candidates as long as `pairs` is not empty.
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor);
    /// Replaces pairs with their rows' next candidates. The caller may have removed pairs of a row: then it
    /// may get further candidates or none.
    fn next(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor);
    /// True if the keys of the last candidates need no comparison.
    fn is_exact(&self, cursor: &Cursor) -> bool;
    /// True if rows whose hashes share their leading bits are looked up near each other.
    fn is_by_hash(&self) -> bool {
        false
    }
    /// Bytes of memory in use.
    fn bytes(&self) -> usize;
}

/// The order of rows that a table requires: first those that it finds by rank, then those that it finds by
/// hash, then those that it does not find.
struct Arranged {
    /// All row ids.
    order: Vec<u32>,
    /// How many are found by rank.
    ranked: usize,
    /// How many are found by hash.
    overflow: usize,
}

impl Arranged {
    /// The new ids of the rows that are found by hash.
    fn overflow_ids(&self) -> Range<usize> {
        self.ranked..self.ranked + self.overflow
    }
}

/// The most numbers that [`scale_narrow`] supports.
const NARROW: u64 = 1 << 32;

/// Maps a hash to a number below `count`, preserving the order of hashes.
#[inline(always)]
fn scale(hash: u64, count: u64) -> u64 {
    ((u128::from(hash) * u128::from(count)) >> 64) as u64
}

/// Like [`scale`], for at most [`NARROW`] numbers: vector code has no upper half of a 128-bit product.
#[inline(always)]
fn scale_narrow(hash: u64, count: u64) -> u64 {
    let (high, low) = (hash >> 32, hash & (NARROW - 1));
    (high * count + ((low * count) >> 32)) >> 32
}

/// `count` chains without rows.
fn empty_chains(count: usize) -> Vec<AtomicU32> {
    (0..count).map(|_| AtomicU32::new(NO_ROW)).collect()
}
