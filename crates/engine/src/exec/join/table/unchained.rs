//! The unchained table: rows of one hash range are adjacent (Birler, Schmidt, Fent and Neumann, *Simple,
//! Efficient, and Robust Hash Tables for Join Processing*, DaMoN 2024).
//!
//! A directory has a word per slot, and at least as many slots as rows. A word holds where the slot's rows
//! start, and a Bloom filter of 32 bits, two for each row. The rows have been moved to the order of their
//! slots, so a slot's rows end where the next slot's start. A probe reads one word, which rules out most rows
//! without a match; candidates are adjacent, so that, unlike in a chain, none waits for the one before it.
//!
//! Build: rows by partition of their slots, each with its filter bits, so that nothing is hashed again;
//! counts, starts, the order of the rows. Then the rows move.
//!
//! Unlike in the paper, rows are columns, a start is a row id of 32 bits, and the filter's bits come from the
//! hash itself instead of a table of patterns, where 16 bits have room for four each.

use super::partitions::{Partitions, cut, shift_for};
use super::{Arranged, Cursor, JoinTable, NO_ROW, Pairs, ProbeKeys, scale, scale_narrow};
use crate::exec::gather::gather;
use crate::exec::key_filter::{BuildInput, KeyHashes, NOWHERE};
use crate::exec::operator::in_parallel;
use crate::exec::prefetch::BLOCK;
use entasis_vector::simd::{Kernel, widest_of};
use entasis_vector::{CHUNK_ROWS, Result};

/// Bits of a hash that choose the filter's bits: two numbers below 32.
const TAG_BITS: u32 = 10;

/// Where the rows of each slot start.
pub(super) struct Unchained {
    /// High half: the first row; low half: the filter. The last word has no rows: it marks the end of the
    /// last slot's.
    words: Vec<u64>,
}

/// The filter bits of a hash.
#[inline(always)]
fn tag_of(hash: u64) -> u32 {
    1 << (hash & 31) | 1 << (hash >> 5 & 31)
}

impl Unchained {
    /// The table, and the order that the rows must be moved to.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(super) fn build(input: &BuildInput<'_>) -> Result<(Unchained, Arranged)> {
        let (rows, tasks) = (input.rows, input.tasks);
        let slots = (rows.rows() as u64).max(1);
        // A place is a slot and the bits of the hash that choose its filter bits.
        let within = (1u64 << TAG_BITS) - 1;
        let of = |segment: usize, give: &mut dyn FnMut(usize, &[u64])| {
            let mut keys = KeyHashes::new(input);
            let mut places = [0u64; CHUNK_ROWS];
            keys.for_each(input, segment, 0..rows.segment_rows(segment), |first, hashes, nulls| {
                let places = &mut places[..hashes.len()];
                let place = |hash: u64| scale(hash, slots) << TAG_BITS | hash & within;
                places.iter_mut().zip(hashes).for_each(|(to, &hash)| *to = place(hash));
                nulls.iter().for_each(|&i| places[i as usize] = NOWHERE);
                give(first, places);
            });
        };
        let places = slots << TAG_BITS;
        let shift = shift_for(places, rows.rows());
        let mut partitions = Partitions::spread(rows, places, shift, &of, &|_| {}, tasks)?;

        let mut words = vec![0u64; slots as usize + 1];
        let (end, starts) = words.split_last_mut().expect("there is one more");
        let with_place = partitions.start(partitions.count());
        *end = (with_place as u64) << 32;
        let mut order = vec![0; rows.rows()];
        let entries = partitions.take();
        let parts = starts.chunks_mut(1 << (shift - TAG_BITS)).zip(cut(&mut order, partitions.lengths()));
        in_parallel(tasks, parts.zip(entries).collect(), &|partition, ((words, order), entries)| {
            // Freed at the end of the task.
            let entries = std::mem::take(entries);
            let first_row = partitions.start(partition);
            let slot_and_tag = |place: usize| (place >> TAG_BITS, tag_of(place as u64));
            // The high halves first hold counts, which become starts, which become ends as the order is
            // written.
            for (place, _) in entries.rows() {
                let (slot, tag) = slot_and_tag(place);
                words[slot] = (words[slot] | u64::from(tag)) + (1 << 32);
            }
            let mut next = first_row as u64;
            for word in words.iter_mut() {
                let count = *word >> 32;
                *word = next << 32 | *word & u64::from(u32::MAX);
                next += count;
            }
            for (place, id) in entries.rows() {
                let word = &mut words[place >> TAG_BITS];
                order[(*word >> 32) as usize - first_row] = id;
                *word += 1 << 32;
            }
            // Each slot is at its end now, which is where the next one starts.
            let mut start = first_row as u64;
            for word in words.iter_mut() {
                let end = *word >> 32;
                *word = start << 32 | *word & u64::from(u32::MAX);
                start = end;
            }
            Ok(())
        })?;
        order[with_place..].iter_mut().zip(partitions.nowhere()).for_each(|(to, id)| *to = id);
        Ok((Unchained { words }, Arranged { order, ranked: with_place, overflow: 0 }))
    }

    /// The share of the slots that have rows.
    pub(super) fn taken(&self) -> f64 {
        let taken = self.words.iter().filter(|&&word| word as u32 != 0).count();
        taken as f64 / (self.words.len() - 1) as f64
    }
}

/// The slots of hashes. There are no more slots than rows, whose numbers have 32 bits.
struct SlotsOf<'a> {
    slots: u64,
    hashes: &'a [u64],
    out: &'a mut [u64],
}

impl Kernel for SlotsOf<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.out.iter_mut().zip(self.hashes).for_each(|(to, &hash)| *to = scale_narrow(hash, self.slots));
    }
}

/// The first row of each hash's slot if the filter has the hash, otherwise [`NO_ROW`]; and where the slot's
/// rows end.
// PERF: a branch-free loop, for vector code.
struct LookUp<'a> {
    /// The word of each hash's slot, and the one after it.
    words: &'a [u64],
    after: &'a [u64],
    hashes: &'a [u64],
    heads: &'a mut [u32],
    ends: &'a mut [u32],
}

impl Kernel for LookUp<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let words = self.words.iter().zip(self.after);
        let out = self.heads.iter_mut().zip(self.ends);
        for (((head, end), (&word, &after)), &hash) in out.zip(words).zip(self.hashes) {
            let tag = tag_of(hash);
            *end = (after >> 32) as u32;
            *head = if word as u32 & tag == tag { (word >> 32) as u32 } else { NO_ROW };
        }
    }
}

impl JoinTable for Unchained {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        let (rows, hashes) = keys.hashes();
        let [heads, ends] = cursor.heads_and_ends(hashes.len());
        let slots = self.words.len() as u64 - 1;
        let (mut at, mut words, mut after) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
        let out = heads.chunks_mut(BLOCK).zip(ends.chunks_mut(BLOCK));
        for (hashes, (heads, ends)) in hashes.chunks(BLOCK).zip(out) {
            let at = &mut at[..hashes.len()];
            widest_of(SlotsOf { slots, hashes, out: at });
            gather(&self.words, at, |slot| slot as usize, &mut words);
            gather(&self.words, at, |slot| slot as usize + 1, &mut after);
            widest_of(LookUp { words: &words, after: &after, hashes, heads, ends });
        }
        pairs.take(rows, heads);
    }
    fn next(&self, _: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        pairs.step(&cursor.ends);
    }
    fn is_exact(&self, _: &Cursor) -> bool {
        false
    }
    fn is_by_hash(&self) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}
