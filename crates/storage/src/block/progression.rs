//! Arithmetic progressions: numbers that ascend or descend by a constant step, such as generated keys. Two
//! numbers stand for a block, whose encoding is called *sequence*.

use super::Fixed;
use super::codec::{Chosen, Codec, FixedCodec, Planned};
use super::example::Example;
use super::fold::ValidSlots;
use super::masks::bits_inside;
use super::reading::HeldSlots;
use super::serialized::{BlockWriter, Flaw, Reader};
use super::unencoded::Unencoded;
use crate::BLOCK_ROWS;
use crate::definition::Compression;
use crate::value::Datum;
use entasis_vector::{PhysicalType, Value};
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
    fn of<T: Fixed>(values: &[T]) -> Option<Progression> {
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

    /// The number in `slot`. Beyond the block the number is arbitrary.
    #[inline]
    fn get(&self, slot: usize) -> i128 {
        self.first.wrapping_add(self.step.wrapping_mul(slot as i128))
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
    fn sum_of(&self, from: usize, count: usize) -> i128 {
        let steps = (from + (from + count).saturating_sub(1)) * count / 2;
        self.first * count as i128 + self.step * steps as i128
    }
}

impl Codec for Progression {
    const NAME: &'static str = "sequence";
    const EXAMPLES: &'static [Example] =
        &[Example::of_integers(Self::NAME, Compression::Sequence, 0.02, |row| {
            Value::Integer(row as i128 * 3)
        })];

    fn bytes(&self) -> usize {
        0
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.number(self.first.to_le_bytes());
        out.number(self.step.to_le_bytes());
    }

    fn read(reader: &mut Reader<'_>, _: usize) -> Result<Progression, Flaw> {
        let (first, step) = (reader.integer()?, reader.integer()?);
        // Two rows may be as far apart as numbers can be: what counts is where slots are.
        let last = step.checked_mul(BLOCK_ROWS as i128).and_then(|all| first.checked_add(all));
        reader.check(last.is_some() && reader.fits(step), "its sequence leaves the numbers")?;
        Ok(Progression { first, step })
    }
}

impl FixedCodec for Progression {
    #[inline]
    fn datum(&self, slot: usize, _: PhysicalType) -> Datum<'_> {
        Datum::Integer(self.get(slot))
    }

    fn decode<T: Fixed>(&self, _: PhysicalType, from: usize, out: &mut [T]) {
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

    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], _: HeldSlots) {
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

    fn sum(&self, slots: &ValidSlots<'_>, _: PhysicalType) -> i128 {
        let mut sum = 0;
        slots.each_run(|from, count| sum += self.sum_of(from, count));
        sum
    }

    fn extremes(&self, slots: &ValidSlots<'_>, _: PhysicalType, _: bool, mut offer: impl FnMut(i128)) {
        slots.each_run(|from, count| {
            offer(self.get(from));
            offer(self.get(from + count - 1));
        });
    }
}

/// Tried first: nothing is smaller, or read faster.
impl Chosen for Progression {
    const FORCED_BY: Compression = Compression::Sequence;
    type Plan = Progression;

    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<Progression>> {
        let plan = of.span.and_then(|_| Progression::of(of.values))?;
        Some(Planned { plan, bytes: 0 })
    }

    fn pays(_: usize, _: usize) -> bool {
        true
    }

    fn encode<T: Fixed>(_: &Unencoded<'_, T>, plan: Progression, _: bool) -> Progression {
        plan
    }
}
