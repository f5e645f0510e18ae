//! The chained table: heads of chains, by hash.
//!
//! A head is one word: a row, and a Bloom filter of 32 bits, one for each key in the chain, so that most
//! probes without a match are ruled out without reading a row (Leis et al., *Morsel-Driven Parallelism*,
//! SIGMOD 2014, section 4.2; here in bits of their own instead of a pointer's spare ones). There are at least
//! as many heads as rows, so chains of distinct keys are short.
//!
//! It may cover only some rows: those for which a concise table has no place.

use super::{Cursor, JoinTable, NO_ROW, Pairs, ProbeKeys, empty_chains};
use crate::exec::key_filter::{BuildInput, KeyHashes};
use crate::exec::materialized::SEGMENT_ROWS;
use crate::exec::prefetch::visit;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use entasis_vector::Result;
use entasis_vector::hash::hash_u64;
use std::ops::Range;

/// Heads by hash.
pub(crate) struct Chained {
    /// Low half: the row; high half: the filter. Their number is a power of two, at least that of the rows.
    heads: Vec<AtomicU64>,
    /// The slot is the hash shifted right by this.
    shift: u32,
    /// The successor of each row, in the order of ids.
    next: Vec<AtomicU32>,
    rows: Numbers,
    /// Rows are found by a hash of their hash.
    rehashed: bool,
}

/// The rows of a table, numbered consecutively: ranges of ids, ascending.
struct Numbers {
    first: usize,
    /// For each range but the first, its first id and the number of rows before it.
    later: Vec<(usize, usize)>,
}

impl Numbers {
    fn of(ids: &[Range<usize>]) -> Numbers {
        let first = ids.first().map_or(0, |ids| ids.start);
        let later = ids.windows(2).scan(0, |before, pair| {
            *before += pair[0].len();
            Some((pair[1].start, *before))
        });
        Numbers { first, later: later.collect() }
    }

    /// The number of the row with this id.
    #[inline(always)]
    fn of_id(&self, id: usize) -> usize {
        match self.later.partition_point(|&(first, _)| first <= id) {
            0 => id - self.first,
            range => {
                let (first, before) = self.later[range - 1];
                id - first + before
            }
        }
    }
}

impl Chained {
    /// A table over all rows.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn build(input: &BuildInput<'_>) -> Result<Chained> {
        Chained::over(input, std::slice::from_ref(&(0..input.rows.id_space())), false)
    }

    /// A table over the rows with these ids, ascending. `rehashed`: by a second hash, under which keys do not
    /// collide only because the high bits of their first hashes agree.
    pub(super) fn over(input: &BuildInput<'_>, ids: &[Range<usize>], rehashed: bool) -> Result<Chained> {
        let count: usize = ids.iter().map(Range::len).sum();
        let slots = count.min(input.rows.rows()).next_power_of_two().max(2);
        let table = Chained {
            heads: (0..slots).map(|_| AtomicU64::new(u64::from(NO_ROW))).collect(),
            shift: 64 - slots.trailing_zeros(),
            next: empty_chains(count),
            rows: Numbers::of(ids),
            rehashed,
        };
        // The part of each range in each segment.
        let stretches: Vec<(usize, Range<usize>)> = ids
            .iter()
            .flat_map(|ids| {
                (ids.start / SEGMENT_ROWS..ids.end.div_ceil(SEGMENT_ROWS)).map(move |segment| {
                    let start = segment * SEGMENT_ROWS;
                    let end = (start + input.rows.segment_rows(segment)).min(ids.end);
                    (segment, ids.start.max(start) - start..end - start)
                })
            })
            .collect();
        let shared = stretches.len() > 1;
        input.tasks.run(stretches.len(), &|task| {
            let (segment, offsets) = &stretches[task];
            KeyHashes::new(input).for_each(input, *segment, offsets.clone(), |first, hashes, nulls| {
                let mut nulls = nulls.iter().peekable();
                visit(
                    &table.heads,
                    hashes,
                    |hash| table.slot(table.rehash(hash)),
                    0..,
                    |hash, i: usize| {
                        if nulls.next_if(|&&null| null as usize == i).is_some() {
                            return;
                        }
                        let id = segment * SEGMENT_ROWS + first + i;
                        let old = table.push(table.rehash(hash), id as u32, shared);
                        table.next[table.rows.of_id(id)].store(old, Ordering::Relaxed);
                    },
                );
            });
            Ok(())
        })?;
        Ok(table)
    }

    #[inline(always)]
    fn rehash(&self, hash: u64) -> u64 {
        if self.rehashed { hash_u64(hash) } else { hash }
    }

    #[inline(always)]
    fn slot(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Makes `id` the head of its chain and returns the old head.
    #[inline(always)]
    fn push(&self, hash: u64, id: u32, shared: bool) -> u32 {
        let slot = &self.heads[self.slot(hash)];
        let mut old = slot.load(Ordering::Relaxed);
        let new = |old: u64| (old >> 32 | filter_bit(hash)) << 32 | u64::from(id);
        if !shared {
            slot.store(new(old), Ordering::Relaxed);
        } else {
            while let Err(now) =
                slot.compare_exchange_weak(old, new(old), Ordering::Relaxed, Ordering::Relaxed)
            {
                old = now;
            }
        }
        old as u32
    }

    /// The head of a hash's chain.
    #[inline(always)]
    fn head(&self, hash: u64) -> u32 {
        let head = self.heads[self.slot(hash) & (self.heads.len() - 1)].load(Ordering::Relaxed);
        let maybe = head >> 32 & filter_bit(hash) != 0;
        if maybe { head as u32 } else { NO_ROW }
    }

    /// Replaces `pairs` with the first candidates of the given rows of the chunk.
    pub(super) fn first_of(&self, rows: &[u16], hashes: &[u64], pairs: &mut Pairs) {
        pairs.fill(Some(rows), hashes.len(), |row| self.head(self.rehash(hashes[row])));
    }
    /// Moves each pair to its row's next candidate; removes pairs without one.
    pub(super) fn advance(&self, pairs: &mut Pairs) {
        pairs.advance(&self.next, |id| self.rows.of_id(id as usize), |next| next.load(Ordering::Relaxed));
    }
    /// The most bytes of a table over this many rows.
    pub(crate) fn bytes_for(rows: usize) -> usize {
        if rows == 0 { 0 } else { rows.next_power_of_two().max(2) * 8 + rows * 4 }
    }
    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.heads.len() * 8 + self.next.len() * 4
    }
}

/// The filter bit of a hash, from bits that do not choose the slot.
#[inline(always)]
fn filter_bit(hash: u64) -> u64 {
    1 << (hash & 31)
}

impl JoinTable for Chained {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        let (rows, hashes) = keys.hashes();
        let heads = cursor.heads(hashes.len());
        visit(&self.heads, hashes, |hash| self.slot(hash), &mut *heads, |hash, head| *head = self.head(hash));
        pairs.take(rows, heads);
    }
    fn next(&self, _: &mut ProbeKeys, pairs: &mut Pairs, _: &mut Cursor) {
        self.advance(pairs);
    }
    fn is_exact(&self, _: &Cursor) -> bool {
        false
    }
    fn is_by_hash(&self) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        Chained::bytes(self)
    }
}
