//! Tables over one integer key that is itself the way to its rows: no hash, no comparison, and the order of the keys is
//! kept, so that probes in key order walk through memory.
//!
//! [`Offsets`] is a plain array over the span of the keys. [`Ranks`] has a bit for each value of the span and counts
//! the bits before: the n-th key in order has the n-th head, so that sparse keys cost two bits a value instead of a
//! head (the concise array table of Barber et al., *Memory-Efficient Hash Joins*, VLDB 2014, section 3.4, with chains
//! for keys that occur twice).

use super::{BuildInput, Cursor, JoinTable, NO_ROW, Pairs, ProbeKeys, empty_chains, for_each_key};
use entasis_vector::{Result, bitmap};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The slot of a key.
pub(super) trait Slots: Send + Sync {
    /// The slot, or any number beyond the slots if the key has none.
    fn slot(&self, key: i64) -> usize;
    /// Bytes of memory in use.
    fn bytes(&self) -> usize;
}

/// A slot for each value from the smallest key on.
pub(super) struct Offsets {
    min: i64,
}

impl Slots for Offsets {
    #[inline(always)]
    fn slot(&self, key: i64) -> usize {
        key.wrapping_sub(self.min) as u64 as usize
    }
    fn bytes(&self) -> usize {
        0
    }
}

/// A slot for each value that occurs, in order.
pub(super) struct Ranks {
    min: i64,
    /// For 32 values each. Low half: which occur. High half: how many occur before.
    words: Vec<u64>,
}

impl Slots for Ranks {
    #[inline(always)]
    fn slot(&self, key: i64) -> usize {
        let at = key.wrapping_sub(self.min) as u64;
        let word = self.words.get((at / 32) as usize).copied().unwrap_or(0);
        let (bits, bit) = (word as u32, 1u32 << (at % 32));
        let rank = (word >> 32) as usize + (bits & (bit - 1)).count_ones() as usize;
        if bits & bit != 0 { rank } else { usize::MAX }
    }
    fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

/// Heads of chains by slot.
pub(super) struct Indexed<S> {
    slots: S,
    heads: Vec<AtomicU32>,
    /// By row id; empty if no key occurs twice.
    next: Vec<AtomicU32>,
}

impl Indexed<Offsets> {
    /// A table over keys from `min` to `min + span`.
    pub(super) fn direct(input: &BuildInput<'_>, min: i64, span: u64) -> Result<Indexed<Offsets>> {
        Indexed::fill(input, Offsets { min }, span as usize + 1, true)
    }
}

impl Indexed<Ranks> {
    /// A table over keys from `min` to `min + span`.
    pub(super) fn ranked(input: &BuildInput<'_>, min: i64, span: u64) -> Result<Indexed<Ranks>> {
        let rows = input.rows;
        let occurs: Vec<AtomicU32> = (0..=span / 32).map(|_| AtomicU32::new(0)).collect();
        input.tasks.run(rows.segments(), &|segment| {
            let validity = rows.validity(0, segment);
            for_each_key(rows, segment, |offset, key| {
                if validity.is_none_or(|words| bitmap::get(words, offset)) {
                    let at = key.wrapping_sub(min) as u64;
                    occurs[(at / 32) as usize].fetch_or(1 << (at % 32), Ordering::Relaxed);
                }
            });
            Ok(())
        })?;
        let mut before = 0u64;
        let words = occurs.into_iter().map(|bits| {
            let bits = bits.into_inner();
            let word = before << 32 | u64::from(bits);
            before += u64::from(bits.count_ones());
            word
        });
        let ranks = Ranks { min, words: words.collect() };
        // As many keys as rows: none occurs twice.
        Indexed::fill(input, ranks, before as usize, before as usize == rows.rows())
    }
}

impl<S: Slots> Indexed<S> {
    /// Inserts all rows; tries without successors first if the keys are `perhaps_unique`.
    fn fill(input: &BuildInput<'_>, slots: S, count: usize, perhaps_unique: bool) -> Result<Indexed<S>> {
        let mut table = Indexed { slots, heads: empty_chains(count), next: Vec::new() };
        if perhaps_unique && table.insert_all(input)? {
            return Ok(table);
        }
        table.heads.iter_mut().for_each(|head| *head.get_mut() = NO_ROW);
        table.next = empty_chains(input.rows.id_space());
        table.insert_all(input)?;
        Ok(table)
    }

    /// True if no key occurs twice.
    pub(super) fn is_unique(&self) -> bool {
        self.next.is_empty()
    }

    /// Inserts all rows; false, and the table is unusable, if a key occurs twice and there is no room for successors.
    fn insert_all(&self, input: &BuildInput<'_>) -> Result<bool> {
        let rows = input.rows;
        let shared = rows.segments() > 1;
        let repeated = AtomicBool::new(false);
        input.tasks.run(rows.segments(), &|segment| {
            if repeated.load(Ordering::Relaxed) && self.next.is_empty() {
                return Ok(());
            }
            let validity = rows.validity(0, segment);
            let mut collided = false;
            for_each_key(rows, segment, |offset, key| {
                if validity.is_some_and(|words| !bitmap::get(words, offset)) {
                    return;
                }
                let id = (segment << 16 | offset) as u32;
                let old = exchange(&self.heads[self.slots.slot(key)], id, shared);
                match self.next.get(id as usize) {
                    Some(next) => next.store(old, Ordering::Relaxed),
                    None => collided |= old != NO_ROW,
                }
            });
            repeated.fetch_or(collided, Ordering::Relaxed);
            Ok(())
        })?;
        Ok(!repeated.into_inner())
    }
}

/// Makes `row` the value of `slot` and returns the old one. `shared`: other workers may write the slot.
#[inline(always)]
fn exchange(slot: &AtomicU32, row: u32, shared: bool) -> u32 {
    if shared {
        return slot.swap(row, Ordering::Relaxed);
    }
    let old = slot.load(Ordering::Relaxed);
    slot.store(row, Ordering::Relaxed);
    old
}

impl<S: Slots> JoinTable for Indexed<S> {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, _: &mut Cursor) {
        let (rows, integers) = keys.integers();
        pairs.fill(rows, integers.len(), |row| {
            self.heads.get(self.slots.slot(integers[row])).map_or(NO_ROW, |head| head.load(Ordering::Relaxed))
        });
    }
    fn next(&self, pairs: &mut Pairs, _: &mut Cursor) {
        if self.is_unique() {
            pairs.clear();
        } else {
            pairs.advance(&self.next);
        }
    }
    fn is_exact(&self) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        self.slots.bytes() + (self.heads.len() + self.next.len()) * 4
    }
}
