//! Folding integers of slots that are not NULL: the kernels of sums and extremes, which encodings call on
//! their codes or values. Which blocks are folded is the matter of [`crate::scan`].

use super::cells::{self, Slots};
use super::codes::with_codes;
use super::{Block, Codes};
use entasis_vector::Native;

/// An integer as a block holds it.
pub(crate) trait Integer: Native + Ord + Into<i128> {
    /// The sum of `count` slots, at most 1024, from `from` on.
    fn sum(slots: Slots<'_>, from: usize, count: usize) -> i128;
}

macro_rules! integer {
    ($($t:ty, $sum:ty);*) => { $(
        impl Integer for $t {
            fn sum(slots: Slots<'_>, from: usize, count: usize) -> i128 {
                cells::fold(slots, from, count, 0, |sum: $sum, v: $t| sum + <$sum>::from(v)).into()
            }
        }
    )* };
}
integer!(i8, i32; i16, i32; i32, i64; u8, u32; u16, u32; u32, u64);

macro_rules! long {
    ($($t:ty);*) => { $(
        impl Integer for $t {
            // PERF: in halves, neither of which overflows: no machine has vectors of 128-bit integers.
            fn sum(slots: Slots<'_>, from: usize, count: usize) -> i128 {
                let halves = |(high, low): ($t, u64), v: $t| {
                    (high + (v >> 32), low + (v as u64 & u64::from(u32::MAX)))
                };
                let (high, low) = cells::fold(slots, from, count, (0, 0), halves);
                (i128::from(high) << 32) + i128::from(low)
            }
        }
    )* };
}
long!(i64; u64);

/// The greatest or the least of `count` slots, at least one, from `from` on.
pub(super) fn extreme<T: Integer>(slots: Slots<'_>, from: usize, count: usize, largest: bool) -> T {
    let first = cells::load::<T>(slots, from);
    match largest {
        true => cells::fold(slots, from, count, first, |a: T, v: T| a.max(v)),
        false => cells::fold(slots, from, count, first, |a: T, v: T| a.min(v)),
    }
}

/// The slots of a stretch of a block that are not NULL. All slots of the stretch are live.
pub(crate) struct ValidSlots<'a> {
    pub(crate) block: &'a Block,
    /// The first slot of the stretch, and how many it has.
    pub(crate) from: usize,
    pub(crate) rows: usize,
}

impl ValidSlots<'_> {
    /// How many they are.
    pub(crate) fn count(&self) -> usize {
        let mut count = 0;
        self.each_run(|_, slots| count += slots);
        count
    }

    /// The sum of `base + code` over the slots.
    pub(super) fn sum_codes(&self, base: i128, codes: &Codes) -> i128 {
        let mut sum = 0;
        with_codes!(codes, C, packed => {
            self.each_run(|from, slots| sum += base * slots as i128 + C::sum(packed, from, slots));
        });
        sum
    }

    /// Calls `each` with the first slot and the length of every run of slots that are not NULL.
    pub(super) fn each_run(&self, mut each: impl FnMut(usize, usize)) {
        if !self.block.may_be_null() {
            return each(self.from, self.rows);
        }
        let (mut at, end) = (self.from, self.from + self.rows);
        while at < end {
            let skipped = self.same(at, end, false);
            let valid = self.same(at + skipped, end, true);
            if valid > 0 {
                each(at + skipped, valid);
            }
            at += skipped + valid;
        }
    }

    /// How many slots from `at` on, before `end`, are NULL, or not NULL if `valid`.
    fn same(&self, at: usize, end: usize, valid: bool) -> usize {
        let mut next = at;
        while next < end {
            let word = self.block.valid_word(next / 64) >> (next % 64);
            let same = (if valid { !word } else { word }).trailing_zeros() as usize;
            let in_word = 64 - next % 64;
            next += same.min(in_word);
            if same < in_word {
                break;
            }
        }
        next.min(end) - at
    }
}
