//! Finds floats in a range without decoding: compared as floats, or as digits in scaled blocks
//! ([`super::scaled`]).
//!
//! A range is given by the ordinals of its ends ([`entasis_vector::value::float_ordinal`]), as a range of
//! integers is by numbers. Here it becomes two floats and an answer for NaN, which is greater than any number
//! in SQL but not in the machine's comparisons.

use super::search;
use crate::block::cells::Slots;
use entasis_vector::Native;
use entasis_vector::value::{float_of_ordinal, float_ordinal};

/// Numbers from `low` to `high`, none if one of these is NaN; and whether NaN is in the range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FloatRange {
    pub(crate) low: f64,
    pub(crate) high: f64,
    has_nan: bool,
}

impl FloatRange {
    /// The floats whose ordinals are from `low` to `high`.
    pub(crate) fn of_ordinals(low: i128, high: i128) -> FloatRange {
        let (infinity, nan) = (float_ordinal(f64::INFINITY), float_ordinal(f64::NAN));
        // An end beyond all numbers is NaN, which leaves no numbers.
        let end = |ordinal: i128, least: i64, most: i64| {
            float_of_ordinal(ordinal.clamp(least.into(), most.into()) as i64)
        };
        FloatRange {
            low: end(low, -infinity, infinity + 1),
            high: end(high, -infinity - 1, infinity),
            has_nan: low <= nan.into() && i128::from(nan) <= high,
        }
    }

    /// True if a float is in the range.
    // PERF: without a branch, so that loops over it vectorize.
    #[inline(always)]
    pub(crate) fn holds(self, v: f64) -> bool {
        (self.low <= v) & (v <= self.high) | (self.has_nan & v.is_nan())
    }

    /// Narrows `masks` to the slots whose float is in the range.
    pub(crate) fn narrow<'a, T: Native + Into<f64>>(self, slots: impl Into<Slots<'a>>, masks: &mut [u64]) {
        search::narrow_where(slots, masks, move |v: T| self.holds(v.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::value::cmp_float;

    #[test]
    fn a_range_holds_what_lies_between_its_ends() {
        let floats = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::from_bits(1),
            -0.0,
            0.0,
            f64::from_bits(1),
            1.5,
            f64::INFINITY,
        ];
        let floats = floats.into_iter().chain([f64::NAN, -f64::NAN]);
        for (low, high) in floats.clone().flat_map(|low| floats.clone().map(move |high| (low, high))) {
            // With and without the ends.
            for (out_low, out_high) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                let (from, to) = (float_ordinal(low) + out_low, float_ordinal(high) - out_high);
                let range = FloatRange::of_ordinals(from.into(), to.into());
                for v in floats.clone() {
                    let above =
                        if out_low == 0 { cmp_float(v, low).is_ge() } else { cmp_float(v, low).is_gt() };
                    let below =
                        if out_high == 0 { cmp_float(v, high).is_le() } else { cmp_float(v, high).is_lt() };
                    assert_eq!(
                        range.holds(v),
                        above && below,
                        "{v} from {low} to {high}, {out_low}, {out_high}"
                    );
                }
            }
        }
        assert!(floats.clone().all(|v| FloatRange::of_ordinals(i128::MIN, i128::MAX).holds(v)));
    }
}
