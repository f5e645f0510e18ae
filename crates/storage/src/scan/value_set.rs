//! Value sets: integers that a column must have, as bits between a lower and an upper bound.
//!
//! A set decides about rows as they are encoded: in a block of runs, a value is looked up once for each run,
//! and no row is decoded.
//! The slow twin looks up the value of one slot after the other.

use super::read::{BlockPart, block_parts};
use crate::block::masks::WORDS;
use crate::block::{Block, FixedValues, HeldSlots, with_integer};
use crate::tree::RowGroup;
use entasis_vector::{PhysicalType, bitmap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// See the module.
#[derive(Clone)]
pub struct ValueSet {
    /// The integer of the first bit.
    low: i64,
    /// The distance of the last integer from the first.
    span: u64,
    bits: Arc<dyn AsRef<[u64]> + Send + Sync>,
}

impl ValueSet {
    /// The integers from `low` to `high` whose bits are set; the bit of `low` is the first. Integers without
    /// a bit are not in the set.
    pub fn new((low, high): (i64, i64), bits: Arc<dyn AsRef<[u64]> + Send + Sync>) -> ValueSet {
        ValueSet { low, span: high.abs_diff(low), bits }
    }

    /// What is looked up.
    fn members(&self) -> Members<'_> {
        Members { low: self.low, span: self.span, words: (*self.bits).as_ref() }
    }
}

/// The bits of a set, and which integers they stand for.
#[derive(Clone, Copy)]
struct Members<'a> {
    low: i64,
    span: u64,
    words: &'a [u64],
}

impl Members<'_> {
    #[inline(always)]
    fn has(&self, value: i64) -> bool {
        let at = value.wrapping_sub(self.low) as u64;
        let word = self.words.get((at / 64) as usize);
        at <= self.span && word.is_some_and(|word| word >> (at % 64) & 1 != 0)
    }
}

impl fmt::Debug for ValueSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "integers from {} on, {} at most", self.low, self.span)
    }
}

impl Block {
    /// True if values are looked up once for many slots.
    fn is_in_runs(&self) -> bool {
        self.values.fixed().is_none_or(FixedValues::repeat)
    }

    /// Narrows `masks`, which has a bit for each slot and none for dead ones, to the slots with a value of
    /// `set`, of a column of integers of up to 64 bits.
    pub(crate) fn narrow_to(&self, set: &ValueSet, masks: &mut [u64], physical: PhysicalType) {
        if self.is_all_null() {
            return masks.fill(0);
        }
        if self.may_be_null() {
            masks.iter_mut().enumerate().for_each(|(word, mask)| *mask &= self.valid_word(word));
        }
        let members = set.members();
        let of = HeldSlots { physical, slots: self.slots() };
        if let Some(values) = self.values.fixed() {
            with_integer!(physical, T => {
                values.narrow_where(of, |value: T| members.has(value as i64), masks);
            });
        }
    }
}

impl RowGroup {
    /// True if values of a column, which has integers of up to 64 bits, are looked up once for many slots of
    /// `runs`.
    pub fn is_in_runs(&self, column: usize, runs: &[Range<usize>]) -> bool {
        block_parts(self, column, runs).all(|part| part.block.is_in_runs())
    }

    /// Keeps those of `rows`, which are positions in `runs` ([`RowGroup::select_runs`]) and ascend, whose
    /// value is in `set`; no NULL is.
    pub fn retain_in_set(
        &self,
        column: usize,
        set: &ValueSet,
        physical: PhysicalType,
        runs: &[Range<usize>],
        rows: &mut Vec<u16>,
    ) {
        self.retain_by(column, runs, rows, |part, _| {
            let mut masks = [u64::MAX; WORDS];
            part.block.narrow_to(set, &mut masks[..part.block.slots().div_ceil(64)], physical);
            masks
        });
    }

    /// Keeps those of `rows`, as above, whose slot has a bit in the masks that `masks` gives for the rows in
    /// a part of a block.
    pub(super) fn retain_by(
        &self,
        column: usize,
        runs: &[Range<usize>],
        rows: &mut Vec<u16>,
        masks: impl Fn(&BlockPart<'_>, &[u16]) -> [u64; WORDS],
    ) {
        let (mut end, mut kept) = (0, 0);
        for part in block_parts(self, column, runs) {
            let own = part.positions(end, rows);
            end = own.end;
            if own.is_empty() {
                continue;
            }
            let masks = masks(&part, &rows[own.clone()]);
            // Branch-free: every row is written, and one that passes stays.
            for at in own {
                let row = rows[at];
                rows[kept] = row;
                kept += usize::from(bitmap::get(&masks, part.slot_of(row)));
            }
        }
        rows.truncate(kept);
    }
}
