//! Masks: a bit for each slot of a block.

use crate::BLOCK_ROWS;
use entasis_vector::bitmap;
use std::ops::Range;

/// Words of the mask of a block, and of the bitmaps of a slice.
pub(crate) const WORDS: usize = BLOCK_ROWS / 64;

/// The first `bits` bits of a word, or all.
pub(super) fn first_bits(bits: usize) -> u64 {
    if bits < 64 { (1 << bits) - 1 } else { u64::MAX }
}

/// The bits of a word, whose bit 0 stands for slot `first`, that lie in `slots`.
pub(crate) fn bits_inside(first: usize, slots: &Range<usize>) -> u64 {
    if slots.start >= first + 64 || slots.end <= first {
        return 0;
    }
    let low = if slots.start > first { u64::MAX << (slots.start - first) } else { u64::MAX };
    let high = if slots.end < first + 64 { u64::MAX >> (first + 64 - slots.end) } else { u64::MAX };
    low & high
}

/// The bitmap of the first slots.
pub(crate) fn first_slots(rows: usize) -> [u64; WORDS] {
    let mut live = [0; WORDS];
    live[..rows / 64].fill(u64::MAX);
    (rows / 64 * 64..rows).for_each(|slot| bitmap::set(&mut live, slot, true));
    debug_assert!(rows <= BLOCK_ROWS);
    live
}

/// Keeps the bits of slots for which `keep` is true.
pub(super) fn keep(masks: &mut [u64], keep: impl Fn(usize) -> bool) {
    for (word, mask) in masks.iter_mut().enumerate() {
        let mut left = *mask;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            if !keep(word * 64 + bit) {
                *mask &= !(1 << bit);
            }
        }
    }
}
