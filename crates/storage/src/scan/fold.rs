//! Folding: the count, the sum and the extremes of a column's rows, block after block, as they are encoded.
//!
//! Nothing is copied. A constant block takes one multiplication, and so does a run; codes are folded as
//! codes, and their base is added once; a block whose bounds cannot improve an extreme is not read at all.
//! Where there may be NULLs, runs of slots without NULLs are found first. The slow twin decodes and looks at
//! one value after the other.

use crate::block::cells::{self, Slots};
use crate::block::codes::with_codes;
use crate::block::packed::Lane;
use crate::block::{Block, Codes, Fixed, Values, with_integer};
use crate::scan::read::{BlockPart, block_parts};
use crate::tree::{RowGroup, Slices};
use crate::value::Datum;
use entasis_vector::{Native, PhysicalType, Value};
use std::ops::Range;

/// An integer as a block holds it.
trait Integer: Native + Ord + Into<i128> {
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
fn extreme<T: Integer>(slots: Slots<'_>, from: usize, count: usize, largest: bool) -> T {
    let first = cells::load::<T>(slots, from);
    match largest {
        true => cells::fold(slots, from, count, first, |a: T, v: T| a.max(v)),
        false => cells::fold(slots, from, count, first, |a: T, v: T| a.min(v)),
    }
}

/// Folds columns of integers of up to 64 bits. All slots of `runs` are rows.
impl RowGroup {
    /// The number of rows where `column` is not NULL.
    pub fn count_runs(&self, column: usize, runs: &[Range<usize>]) -> usize {
        block_parts(self, column, runs).map(|part| part.count()).sum()
    }

    /// The sum of `column`, whose values are held as `physical`; 0 if there are none.
    pub fn sum_runs(&self, column: usize, physical: PhysicalType, runs: &[Range<usize>]) -> i128 {
        self.block_parts_ahead(column, runs, true).map(|part| part.sum(physical)).sum()
    }

    /// The largest of `best` and the values of `column`, or the smallest.
    pub fn extreme_runs(
        &self,
        column: usize,
        physical: PhysicalType,
        runs: &[Range<usize>],
        largest: bool,
        best: i128,
    ) -> i128 {
        self.block_parts_ahead(column, runs, false).fold(best, |best, part| {
            match part.block.may_better(best, largest) {
                true => part.extreme(physical, largest, best),
                false => best,
            }
        })
    }

    /// The parts of `runs`, while coming blocks are prefetched: with their values, if these are surely read.
    fn block_parts_ahead<'a>(
        &'a self,
        column: usize,
        runs: &'a [Range<usize>],
        values: bool,
    ) -> impl Iterator<Item = BlockPart<'a>> {
        let mut last = usize::MAX;
        let ahead = move |slice: usize| self.slices.get(slice).into_iter();
        block_parts(self, column, runs).inspect(move |part| {
            if std::mem::replace(&mut last, part.slice) != last {
                ahead(last + 6).for_each(|slice| slice.prefetch_with(std::iter::once(column)));
                match values {
                    true => self.prefetch_behind(last, column),
                    false => ahead(last + 3).for_each(|slice| slice.prefetch_stream(column, false)),
                }
            }
        })
    }
}

impl Block {
    /// False if it has no value that is larger than `best`, or smaller if the smallest is wanted.
    fn may_better(&self, best: i128, largest: bool) -> bool {
        let bound = if largest { &self.zone.max } else { &self.zone.min };
        match bound {
            Value::Integer(bound) if largest => *bound > best,
            Value::Integer(bound) => *bound < best,
            Value::Null => false,
            _ => true,
        }
    }
}

impl BlockPart<'_> {
    fn count(&self) -> usize {
        let mut count = 0;
        self.each_run(|_, slots| count += slots);
        count
    }

    fn sum(&self, physical: PhysicalType) -> i128 {
        let mut sum = 0;
        match &self.block.values {
            Values::Constant(value) => sum = integer(value) * self.count() as i128,
            Values::FrameOfReference { base, codes } => sum = self.sum_codes(*base, codes),
            Values::Multiples(multiples) => {
                let count = self.count();
                sum = multiples.sum(self.sum_codes(0, multiples.codes()), count);
            }
            Values::Patched(patched) => {
                let (base, codes) = patched.codes();
                sum = self.sum_codes(base, codes);
                self.each_run(|from, slots| sum += patched.excess(from, slots));
            }
            Values::Flat(buffer) => with_integer!(physical, T => {
                self.each_run(|from, slots| sum += T::sum(buffer.into(), from, slots));
            }),
            Values::Sequence(sequence) => self.each_run(|from, slots| sum += sequence.sum(from, slots)),
            Values::Runs(runs) => self.each_run(|from, slots| {
                let weights = runs.weights(from, slots, physical);
                sum += weights.map(|(value, rows)| number(value) * rows as i128).sum::<i128>();
            }),
            _ => with_integer!(physical, T => {
                let values = self.decoded::<T>();
                self.each_run(|from, slots| sum += T::sum(values[..].into(), from - self.from, slots));
            }),
        }
        sum
    }

    fn sum_codes(&self, base: i128, codes: &Codes) -> i128 {
        let mut sum = 0;
        with_codes!(codes, C, packed => {
            self.each_run(|from, slots| sum += base * slots as i128 + C::sum(packed, from, slots));
        });
        sum
    }

    fn extreme(&self, physical: PhysicalType, largest: bool, best: i128) -> i128 {
        let mut extreme_value = best;
        let mut offer = |value: i128| {
            extreme_value = if largest { extreme_value.max(value) } else { extreme_value.min(value) };
        };
        match &self.block.values {
            Values::Constant(value) if self.count() > 0 => offer(integer(value)),
            Values::Constant(_) => {}
            Values::FrameOfReference { base, codes } => with_codes!(codes, C, packed => {
                self.each_run(|from, slots| {
                    offer(base + i128::from(extreme::<C>(packed, from, slots, largest)));
                });
            }),
            Values::Multiples(multiples) => with_codes!(multiples.codes(), C, packed => {
                self.each_run(|from, slots| {
                    offer(multiples.value(Lane::code(extreme::<C>(packed, from, slots, largest))));
                });
            }),
            Values::Flat(buffer) => with_integer!(physical, T => {
                self.each_run(|from, slots| offer(extreme::<T>(buffer.into(), from, slots, largest).into()));
            }),
            Values::Sequence(sequence) => self.each_run(|from, slots| {
                offer(sequence.get(from));
                offer(sequence.get(from + slots - 1));
            }),
            Values::Runs(runs) => self.each_run(|from, slots| {
                runs.weights(from, slots, physical).for_each(|(value, _)| offer(number(value)));
            }),
            _ => with_integer!(physical, T => {
                let values = self.decoded::<T>();
                self.each_run(|from, slots| {
                    offer(extreme::<T>(values[..].into(), from - self.from, slots, largest).into());
                });
            }),
        }
        extreme_value
    }

    /// The values, for encodings without a fold of their own.
    fn decoded<T: Fixed>(&self) -> Vec<T> {
        let mut values = vec![T::default(); self.rows];
        self.block.decode_fixed(T::PHYSICAL, self.from, &mut values);
        values
    }

    /// Calls `each` with the first slot and the length of every run of slots that are not NULL.
    fn each_run(&self, mut each: impl FnMut(usize, usize)) {
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

/// The number in a slot.
fn number(value: Datum<'_>) -> i128 {
    match value {
        Datum::Integer(v) => v,
        _ => 0,
    }
}

/// The number of a constant block; 0 for NULL.
fn integer(value: &Value) -> i128 {
    match value {
        Value::Integer(v) => *v,
        Value::Boolean(v) => i128::from(*v),
        _ => 0,
    }
}
