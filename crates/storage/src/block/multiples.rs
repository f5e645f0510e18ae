//! Integers whose distances have a common factor: `least + factor · code`. Decimals without a fraction and
//! times without microseconds are examples; a DECIMAL(15,2) of whole numbers up to 50 takes 6 bits instead of
//! 13.
//!
//! [`common_factor`] finds the greatest one. The first distances propose a factor, and the others are only
//! tested for divisibility: by a multiplication with the inverse of its odd part, and a rotation for its even
//! part (Granlund and Montgomery, *Division by invariant integers using multiplication*, section 9). The slow
//! twin, in the tests, divides.
//!
//! Predicates become ranges of codes, so that testing them multiplies nothing.

use super::codec::{Chosen, Codec, FixedCodec, Planned};
use super::codes::{bits_of, packing_pays, with_codes};
use super::example::{Example, scattered};
use super::fold::{ValidSlots, extreme};
use super::packed::{FEW, Lane, Packed};
use super::reading::{HeldSlots, Meaning, Selected};
use super::serialized::{BlockWriter, Flaw, Reader};
use super::unencoded::Unencoded;
use super::{Codes, Fixed, cells};
use crate::definition::Compression;
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::simd::widest;
use entasis_vector::{Buffer, PhysicalType, Value};

/// Distances that are checked at once.
const STEP: usize = 128;

/// See the module.
#[derive(Debug)]
pub(crate) struct Multiples {
    least: i128,
    factor: u64,
    /// Packed.
    codes: Codes,
}

/// The factor of some values, and how far they are apart.
pub(crate) struct Factor {
    factor: u64,
    span: u64,
}

impl Multiples {
    /// The value of a code.
    #[inline(always)]
    fn value<T: Fixed>(&self, code: u64) -> T {
        T::of_code(self.least, code * self.factor)
    }
}

impl Codec for Multiples {
    const NAME: &'static str = "multiples";
    const EXAMPLES: &'static [Example] =
        &[Example::of_integers(Self::NAME, Compression::Multiples, 0.07, |row| {
            Value::Integer(scattered(row) % 3_000 * 100)
        })];

    fn bytes(&self) -> usize {
        self.codes.bytes()
    }

    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        Some(self.codes.buffer_mut())
    }

    fn ahead(&self, _: usize) -> Ahead {
        self.codes.ahead()
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.number(self.least.to_le_bytes());
        out.number(self.factor.to_le_bytes());
        out.codes(&self.codes);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Multiples, Flaw> {
        let (least, factor) = (reader.integer()?, reader.u64()?);
        let codes = reader.packed(slots)?;
        let furthest = codes.greatest().checked_mul(factor).and_then(|far| least.checked_add(far.into()));
        reader.check(factor > 1 && furthest.is_some(), "its multiples leave the numbers")?;
        Ok(Multiples { least, factor, codes: Codes::Packed(codes) })
    }
}

impl FixedCodec for Multiples {
    fn datum(&self, slot: usize, _: PhysicalType) -> Datum<'_> {
        Datum::Integer(self.least + i128::from(self.codes.get(slot) * self.factor))
    }

    fn decode<T: Fixed>(&self, _: PhysicalType, from: usize, out: &mut [T]) {
        let (least, factor) = (self.least, self.factor);
        with_codes!(&self.codes, C, slots => {
            let value = move |code| T::of_code(least, Lane::code(code) * factor);
            cells::map_into::<C, T>(slots, from, out, value);
        });
    }

    fn is_read_singly<T: Fixed>(&self, _: PhysicalType, selected: Selected) -> bool {
        !selected.in_place || selected.slots < FEW
    }

    #[inline(always)]
    fn each_of<T: Fixed>(
        &self,
        _: PhysicalType,
        slots: impl ExactSizeIterator<Item = usize>,
        mut put: impl FnMut(T),
    ) {
        self.codes.each_of(slots, |code| put(self.value(code)));
    }

    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], _: HeldSlots) {
        let Ok(below) = u64::try_from(low.saturating_sub(self.least).max(0)) else { return masks.fill(0) };
        let above = high.saturating_sub(self.least);
        if above < 0 {
            return masks.fill(0);
        }
        let above = u64::try_from(above).unwrap_or(u64::MAX);
        let (first, last) = (below.div_ceil(self.factor), (above / self.factor).min(self.codes.max()));
        if first > last {
            return masks.fill(0);
        }
        self.codes.narrow(first, last, masks);
    }

    fn meaning(&self) -> Meaning<'_> {
        Meaning::Linear { base: self.least, factor: self.factor, codes: &self.codes }
    }

    fn sum(&self, slots: &ValidSlots<'_>, _: PhysicalType) -> i128 {
        self.least * slots.count() as i128 + slots.sum_codes(0, &self.codes) * i128::from(self.factor)
    }

    fn extremes(&self, slots: &ValidSlots<'_>, _: PhysicalType, largest: bool, mut offer: impl FnMut(i128)) {
        with_codes!(&self.codes, C, packed => {
            slots.each_run(|from, count| {
                offer(self.value(Lane::code(extreme::<C>(packed, from, count, largest))));
            });
        });
    }
}

impl Chosen for Multiples {
    const FORCED_BY: Compression = Compression::Multiples;
    const IS_FINAL: bool = false;
    type Plan = Factor;

    /// Not with a factor of 1: a code may then take 64 bits.
    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<Factor>> {
        let span = of.short_span()?;
        let factor = common_factor(of.slots, of.min);
        let bytes = |factor| Packed::size(bits_of(span / factor).max(1));
        (factor > 1).then(|| Planned { plan: Factor { factor, span }, bytes: bytes(factor) })
    }

    fn pays(bytes: usize, smallest: usize) -> bool {
        packing_pays(bytes, smallest)
    }

    fn encode<T: Fixed>(of: &Unencoded<'_, T>, Factor { factor, span }: Factor, _: bool) -> Multiples {
        let Datum::Integer(least) = of.min.datum() else { unreachable!("only integers have codes") };
        let division = Division::by(factor);
        let codes = of.slots.iter().map(|value| division.quotient(value.code(of.min)));
        let packed = Packed::new(bits_of(span / factor).max(1), codes);
        Multiples { least, factor, codes: Codes::Packed(packed) }
    }
}

/// The greatest number that divides all of some distances; 0 if all are 0.
fn common_factor<T: Fixed>(values: &[T], min: T) -> u64 {
    let mut factor = 0;
    for step in values.chunks(STEP) {
        // PERF: most blocks have none, which their first values show.
        if factor != 0 && Division::by(factor).leaves_nothing(step, min) {
            continue;
        }
        for value in step {
            factor = greatest_divisor(factor, value.code(min));
            if factor == 1 {
                return 1;
            }
        }
    }
    factor
}

/// Euclid's algorithm.
fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Division of a number that may be a multiple.
#[derive(Clone, Copy)]
struct Division {
    /// The inverse of the odd part of the divisor.
    inverse: u64,
    /// Bits of the even part.
    shift: u32,
    /// Greater results are no quotients.
    greatest: u64,
}

impl Division {
    fn by(divisor: u64) -> Division {
        let shift = divisor.trailing_zeros();
        let odd = divisor >> shift;
        // Three bits are right to begin with, and each step doubles them.
        let inverse =
            (0..5).fold(odd, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))));
        Division { inverse, shift, greatest: u64::MAX / divisor }
    }

    /// The quotient, if there is no remainder; otherwise a number greater than any quotient.
    #[inline(always)]
    fn quotient(self, number: u64) -> u64 {
        number.wrapping_mul(self.inverse).rotate_right(self.shift)
    }

    /// True if the distances of all values are multiples.
    fn leaves_nothing<T: Fixed>(self, values: &[T], min: T) -> bool {
        widest(|| {
            values.iter().fold(true, |all, value| all & (self.quotient(value.code(min)) <= self.greatest))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;

    #[test]
    fn the_factor_is_the_greatest() {
        let mut random = Random(3);
        for factor in [1, 2, 3, 5, 8, 10, 60, 100, 1_000_000, 7919, (1 << 40) + 1, 1 << 50] {
            for (rows, one_off) in [(1, None), (2, None), (1024, None), (1024, Some(700)), (900, Some(3))] {
                let codes = (u64::MAX / 2 / factor).min(1 << 30);
                let mut values: Vec<i64> =
                    (0..rows).map(|_| (random.below(codes) * factor) as i64 - (1 << 60)).collect();
                if let Some(row) = one_off {
                    values[row] += (factor / 2) as i64;
                }
                let min = *values.iter().min().expect("there are some");
                let twin = values.iter().fold(0, |all, value| greatest_divisor(all, value.code(min)));
                let found = common_factor(&values, min);
                assert_eq!(found, twin, "{factor}, {rows} rows");
                assert!(values.iter().all(|value| found == 0 || value.code(min) % found == 0));
            }
        }
        assert_eq!(common_factor(&[7i64, 7, 7], 7), 0);
        assert_eq!(common_factor(&[i64::MIN, i64::MAX], i64::MIN), u64::MAX);
    }

    #[test]
    fn quotients_are_those_of_a_division() {
        let mut random = Random(4);
        for divisor in [2, 3, 6, 10, 100, 4096, 86_400_000_000, u64::MAX, u64::MAX - 1] {
            let division = Division::by(divisor);
            for _ in 0..1000 {
                let (number, multiple) = (random.next(), random.below(u64::MAX / divisor) * divisor);
                assert_eq!(division.quotient(multiple), multiple / divisor);
                assert_eq!(
                    division.quotient(number) <= division.greatest,
                    number % divisor == 0,
                    "{number} / {divisor}"
                );
            }
        }
    }
}
