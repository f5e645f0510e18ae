//! Selecting: which rows of a row group satisfy conditions, block after block, as they are encoded.

use super::code_set::Condition;
use super::positions::push_bits;
use crate::BLOCK_ROWS;
use crate::block::masks::{WORDS, bits_inside};
use crate::tree::{RowGroup, Slices};
use std::ops::Range;

impl RowGroup {
    /// Appends the positions of the rows among the slots of `runs` that satisfy all of `conditions`, which
    /// are tested in their order. Positions count the slots one run behind the other, which are at most
    /// 65,536.
    pub fn select_runs(&self, conditions: &[Condition], runs: &[Range<usize>], rows: &mut Vec<u16>) {
        let width = self.block_slots;
        let is_full = self.rows == self.slots();
        let mut at = 0;
        for run in runs {
            for number in run.start / width..run.end.div_ceil(width) {
                let start = number * width;
                let inside = run.start.max(start) - start..run.end.min(start + width) - start;
                let mut masks = if is_full { [u64::MAX; WORDS] } else { *self.slices[number].live() };
                if inside != (0..BLOCK_ROWS) {
                    masks
                        .iter_mut()
                        .enumerate()
                        .for_each(|(word, mask)| *mask &= bits_inside(word * 64, &inside));
                }
                if conditions.iter().all(|condition| self.narrow(number, condition, &mut masks) != 0) {
                    let words = inside.end.div_ceil(64);
                    push_bits((at as u16).wrapping_sub(inside.start as u16), &masks[..words], rows);
                }
                at += inside.len();
            }
        }
    }

    /// Narrows `masks`, a bit a slot, to the slots of a slice that satisfy a condition. All bits that are
    /// left, or-ed.
    #[inline]
    fn narrow(&self, slice: usize, condition: &Condition, masks: &mut [u64; WORDS]) -> u64 {
        let column = condition.column();
        if let Condition::Range(range) = condition
            && let Some(digest) = self.digest_of(column, slice)
            && let Some(left) = digest.narrow(range.low, range.high, masks, self.digest_of(column, slice + 1))
        {
            return left;
        }
        if let Some(ahead) = self.slices.get(slice + 6) {
            ahead.prefetch_with(std::iter::once(column));
        }
        self.prefetch_behind(slice, column);
        let block = self.slices[slice].block(column);
        let masks = &mut masks[..block.slots().div_ceil(64)];
        match condition {
            Condition::Range(range) => block.narrow_within(range.low, range.high, masks, range.physical),
            Condition::Codes(_, set) => block.narrow_codes(set, masks),
            Condition::Texts(_, search) => block.narrow_texts(search, masks),
            Condition::Values(_, physical, set) => block.narrow_to(set, masks, *physical),
        }
        masks.iter().fold(0, |any, mask| any | mask)
    }
}
