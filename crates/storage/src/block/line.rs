//! Integers that lie close to a straight line, such as keys that ascend with gaps, or a few rows for each of
//! some numbers in turn: `base + slope · slot + code`. Codes are packed: they have the bits of the distance
//! from the line, where a frame of reference has those of the whole range.
//!
//! 1. [`Line::fit`] lays the line through the first value and the last. If a few values suggest that others
//!    are too far from it, it looks no further.
//! 2. The slope is a multiple of `2^-16`, and the line is rounded down, so that decoding is integers alone: a
//!    loop of a multiplication, a shift and two additions, which vectorizes.
//!
//! The values of a range are not a range of codes, so a predicate is tested on decoded values, which is the
//! default of encodings. Sums and extremes are computed from them, too. The slow twin of decoding is
//! [`Line::get`].

use super::Fixed;
use super::codec::{Chosen, Codec, FixedCodec, Planned};
use super::codes::bits_of;
use super::example::{Example, scattered};
use super::packed::{FEW, Lane, Packed, Room, with_lanes};
use super::reading::{Meaning, Selected};
use super::serialized::{BlockWriter, Flaw, Reader};
use super::unencoded::Unencoded;
use crate::BLOCK_ROWS;
use crate::definition::Compression;
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::simd::widest;
use entasis_vector::{Buffer, PhysicalType, Value};

/// Bits of a slope behind the point.
const FRACTION_BITS: u32 = 16;
/// Slopes of so many bits leave 31 bits nowhere in a block.
const NARROW_BITS: u32 = 31 - BLOCK_ROWS.trailing_zeros();
/// The most bits of a range of values, so that no slope of one leaves 63 bits.
const RANGE_BITS: usize = 46;
/// Values that suggest whether others are close to the line.
const SAMPLE: usize = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Line {
    base: i128,
    /// In units of `2^-16` for a slot.
    slope: i64,
    codes: Packed,
}

/// A line, and what the distances from it take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit {
    slope: i64,
    /// The least distance from the line, counted from the least value.
    least: i64,
    /// Bits of a distance over the least.
    bits: usize,
}

/// The line at a slot, over its base.
#[inline(always)]
fn at(slope: i64, slot: usize) -> i64 {
    slope.wrapping_mul(slot as i64) >> FRACTION_BITS
}

impl Fit {
    /// Bytes besides the block.
    fn bytes(self) -> usize {
        Packed::size(self.bits)
    }
}

impl Line {
    /// The line through the first and the last of integers of at most 64 bits, none further from `min`, the
    /// least of them, than `span`. `None` if the distances from it need no fewer bits than those from `min`.
    fn fit<T: Fixed>(values: &[T], min: T, span: u64) -> Option<Fit> {
        let bits = bits_of(span);
        let (&first, &last) = (values.first()?, values.last()?);
        if size_of::<T>() > size_of::<u64>() || bits > RANGE_BITS || values.len() < 2 {
            return None;
        }
        let distance = |value: T| value.code(min) as i64;
        let slope = ((distance(last) - distance(first)) << FRACTION_BITS) / (values.len() as i64 - 1);
        let range = |step: usize| {
            let slots = values.iter().enumerate().step_by(step);
            let from_line = slots.map(|(slot, &value)| distance(value) - at(slope, slot));
            from_line.fold((i64::MAX, i64::MIN), |(least, most), own| (least.min(own), most.max(own)))
        };
        let pays = |(least, most): (i64, i64)| {
            let own = bits_of(most.abs_diff(least)).max(1);
            (own < bits).then_some(Fit { slope, least, bits: own })
        };
        pays(range((values.len() / SAMPLE).max(1)))?;
        pays(range(1))
    }

    /// Encodes up to 1024 values over `min`, the least of them, along a line that was found for them.
    fn new<T: Fixed>(values: &[T], min: T, fit: Fit) -> Line {
        let Datum::Integer(min_value) = min.datum() else { unreachable!("only integers have codes") };
        let code = |(slot, value): (usize, &T)| {
            let from_line = value.code(min) as i64 - at(fit.slope, slot);
            (from_line - fit.least) as u64
        };
        let codes = Packed::new(fit.bits, values.iter().enumerate().map(code));
        Line { base: min_value + i128::from(fit.least), slope: fit.slope, codes }
    }

    /// The value in `slot`.
    fn get(&self, slot: usize) -> i128 {
        let code = i128::from(self.codes.get(slot));
        self.base.wrapping_add(at(self.slope, slot).into()).wrapping_add(code)
    }
}

impl Codec for Line {
    const NAME: &'static str = "line";
    const EXAMPLES: &'static [Example] = &[Example::of_integers(Self::NAME, Compression::Line, 0.2, |row| {
        Value::Integer(row as i128 * 7 + scattered(row) % 100)
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
        out.number(self.base.to_le_bytes());
        out.number(self.slope.to_le_bytes());
        out.packed(&self.codes);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Line, Flaw> {
        let is_short = reader.column.physical.width() <= 8;
        reader.check(is_short, "a line of what has more than 64 bits")?;
        Ok(Line { base: reader.integer()?, slope: reader.i64()?, codes: reader.packed(slots)? })
    }
}

impl FixedCodec for Line {
    fn datum(&self, slot: usize, _: PhysicalType) -> Datum<'_> {
        Datum::Integer(self.get(slot))
    }

    fn decode<T: Fixed>(&self, _: PhysicalType, from: usize, out: &mut [T]) {
        let (base, slope) = (self.base, self.slope);
        with_lanes!(self.codes.width(), L => {
            let mut room = Room::<L>::new();
            let codes = &self.codes.unpack_all(&mut room)[from..];
            // PERF: twice as many numbers of 32 bits fit in a vector.
            if size_of::<T>() <= 4 && slope.unsigned_abs() < 1 << NARROW_BITS {
                return widest(move || {
                    for (i, (o, code)) in out.iter_mut().zip(codes).enumerate() {
                        let line = (slope as i32).wrapping_mul((from + i) as i32) >> FRACTION_BITS;
                        *o = T::of_code(base, Lane::code(*code).wrapping_add(line as u64));
                    }
                });
            }
            widest(move || {
                for (i, (o, code)) in out.iter_mut().zip(codes).enumerate() {
                    let above = Lane::code(*code).wrapping_add(at(slope, from + i) as u64);
                    *o = T::of_code(base, above);
                }
            });
        });
    }

    fn is_read_singly<T: Fixed>(&self, _: PhysicalType, selected: Selected) -> bool {
        selected.slots < FEW
    }

    fn each_of<T: Fixed>(
        &self,
        _: PhysicalType,
        slots: impl ExactSizeIterator<Item = usize>,
        mut put: impl FnMut(T),
    ) {
        slots.for_each(|slot| {
            let above = self.codes.get(slot).wrapping_add(at(self.slope, slot) as u64);
            put(T::of_code(self.base, above));
        });
    }

    fn meaning(&self) -> Meaning<'_> {
        Meaning::Bounds
    }
}

impl Chosen for Line {
    const FORCED_BY: Compression = Compression::Line;
    type Plan = Fit;

    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<Fit>> {
        let fit = Line::fit(of.slots, of.min, of.short_span()?)?;
        Some(Planned { plan: fit, bytes: fit.bytes() })
    }

    fn pays(bytes: usize, smallest: usize) -> bool {
        bytes * 4 <= smallest * 3
    }

    fn encode<T: Fixed>(of: &Unencoded<'_, T>, fit: Fit, _: bool) -> Line {
        Line::new(of.slots, of.min, fit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;

    fn check<T: Fixed>(values: &[T], what: &str) -> Option<usize> {
        let min = values.iter().copied().reduce(|a, b| if b.before(a) { b } else { a })?;
        let span = values.iter().map(|value| value.code(min)).max()?;
        let fit = Line::fit(values, min, span)?;
        let line = Line::new(values, min, fit);
        assert_eq!(line.bytes(), fit.bytes(), "{what}");
        for from in [0, 1, values.len() / 2, values.len() - 1] {
            let mut out = vec![T::default(); values.len() - from];
            line.decode(T::PHYSICAL, from, &mut out);
            assert_eq!(out, values[from..], "{what} from {from}");
            line.each_of(T::PHYSICAL, from..values.len(), |value: T| {
                assert_eq!(value, out.remove(0), "{what}")
            });
        }
        assert!((0..values.len()).all(|slot| T::of_datum(Datum::Integer(line.get(slot))) == values[slot]));
        Some(fit.bits)
    }

    #[test]
    fn values_near_a_line_come_back() {
        let mut random = Random(3);
        for slope in [-70_000.0, -3.25, -0.01, 0.25, 1.0, 3.7, 1e6] {
            for noise in [1, 4, 100, 5000] {
                for rows in [1024, 1000, 64, 2] {
                    let mut value =
                        |slot: usize| (slope * slot as f64) as i64 + random.below(noise) as i64 - 50_000_000;
                    let values: Vec<i64> = (0..rows).map(&mut value).collect();
                    let what = format!("{slope}, {noise}, {rows} rows");
                    let bits = check(&values, &what);
                    if (noise as f64) * 8.0 < slope.abs() * rows as f64 && rows > 2 {
                        let expected = bits_of(noise) + 1;
                        assert!(bits.is_some_and(|bits| bits <= expected), "{what}: {bits:?}");
                    }
                    let narrow: Vec<i32> = values.iter().map(|value| (value % (1 << 30)) as i32).collect();
                    check(&narrow, &what);
                    // Beyond the signed numbers.
                    check(&values.iter().map(|value| (*value as u64) ^ 1 << 63).collect::<Vec<u64>>(), &what);
                }
            }
        }
    }

    #[test]
    fn values_far_from_a_line_have_none() {
        let mut random = Random(5);
        let values: Vec<i64> = (0..1024).map(|_| random.below(1 << 20) as i64).collect();
        assert_eq!(check(&values, "random"), None);
        // The sample does not show it, and the other values do.
        let mut values: Vec<i64> = (0..1024).collect();
        values[77] = 5000;
        assert_eq!(check(&values, "an outlier"), None);
        assert_eq!(check(&[i64::MIN, 0, i64::MAX], "too far apart"), None);
    }
}
