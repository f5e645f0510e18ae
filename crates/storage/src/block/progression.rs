//! Arithmetic progressions: numbers that ascend or descend by a constant step, such as generated keys. Two
//! numbers stand for a block, whose encoding is called *sequence*.

use super::Fixed;
use super::masks::bits_inside;
use crate::BLOCK_ROWS;
use crate::value::Datum;
use std::ops::Range;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progression {
    first: i128,
    step: i128,
}

impl Progression {
    /// The progression that at least two integers form; `None` if they form none, or if a block of 128-bit
    /// integers might leave 64 bits.
    pub(crate) fn of<T: Fixed>(values: &[T]) -> Option<Progression> {
        let number = |value: &T| match value.datum() {
            Datum::Integer(v) => v,
            _ => 0,
        };
        let [first, second, ..] = values else { return None };
        let step = number(second).checked_sub(number(first))?;
        let last = number(first).checked_add(step.checked_mul(BLOCK_ROWS as i128 - 1)?)?;
        if size_of::<T>() > 8 && (i64::try_from(number(first)).is_err() || i64::try_from(last).is_err()) {
            return None;
        }
        let follows = |pair: &[T]| number(&pair[1]).checked_sub(number(&pair[0])) == Some(step);
        values.windows(2).all(follows).then_some(Progression { first: number(first), step })
    }

    /// The first number, and the step.
    pub(crate) fn parts(self) -> (i128, i128) {
        (self.first, self.step)
    }

    /// The inverse of [`Progression::parts`].
    pub(crate) fn of_parts(first: i128, step: i128) -> Progression {
        Progression { first, step }
    }

    /// The number in `slot`. Beyond the block the number is arbitrary.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> i128 {
        self.first.wrapping_add(self.step.wrapping_mul(slot as i128))
    }

    /// Writes the values from `from` on to all of `out`.
    pub(crate) fn decode<T: Fixed>(&self, from: usize, out: &mut [T]) {
        let (first, step) = (self.get(from), self.step);
        // PERF: where 64 bits are enough, the loop vectorizes.
        match (i64::try_from(first), i64::try_from(step)) {
            (Ok(first), Ok(step)) => out.iter_mut().enumerate().for_each(|(i, o)| {
                *o = T::of_datum(Datum::Integer(first.wrapping_add(step.wrapping_mul(i as i64)).into()));
            }),
            _ => out
                .iter_mut()
                .enumerate()
                .for_each(|(i, o)| *o = T::of_datum(Datum::Integer(self.get(from + i)))),
        }
    }

    /// Narrows `masks` to numbers from `low` to `high`.
    pub(crate) fn narrow(&self, low: i128, high: i128, masks: &mut [u64]) {
        let slots = masks.len() * 64;
        let below = |bound: i128| self.count_while(slots, |number| number < bound);
        let not_above = |bound: i128| self.count_while(slots, |number| number <= bound);
        let inside = if self.step >= 0 {
            below(low)..not_above(high)
        } else {
            self.count_while(slots, |number| number > high)..self.count_while(slots, |number| number >= low)
        };
        let inside = inside.start..inside.end.max(inside.start);
        masks.iter_mut().enumerate().for_each(|(word, mask)| *mask &= bits_inside(word * 64, &inside));
    }

    /// How many slots from the first on satisfy a condition that no slot after the first failure satisfies.
    fn count_while(&self, slots: usize, holds: impl Fn(i128) -> bool) -> usize {
        let Range { mut start, mut end } = 0..slots;
        while start < end {
            let middle = (start + end) / 2;
            if holds(self.get(middle)) { start = middle + 1 } else { end = middle }
        }
        start
    }

    /// The sum of `count` numbers from `from` on.
    pub(crate) fn sum(&self, from: usize, count: usize) -> i128 {
        let steps = (from + (from + count).saturating_sub(1)) * count / 2;
        self.first * count as i128 + self.step * steps as i128
    }
}
