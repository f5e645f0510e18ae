//! Narrowing masks: the slots that hold a value, or one of a range, found without decoding.
//!
//! A mask has a bit for each slot. Bounds are tested first, which may decide for all slots at once; then the
//! constant becomes a code, and codes are compared in their own width ([`search`], [`super::packed`]). The
//! slow twin looks at one value after the other.

use super::fixed::with_integer;
use super::floats::FloatRange;
use super::{Block, Values, search};
use crate::value::Datum;
use entasis_vector::PhysicalType;

impl Block {
    /// Narrows `masks`, which has a bit for each slot and none for dead ones, to the slots that hold `datum`.
    pub(crate) fn narrow(&self, datum: Datum<'_>, masks: &mut [u64], physical: PhysicalType) {
        if datum.is_null() {
            return masks.iter_mut().enumerate().for_each(|(word, mask)| *mask &= !self.valid_word(word));
        }
        if self.is_all_null() || !self.zone.holds(datum) {
            return masks.fill(0);
        }
        if self.validity.is_some() {
            masks.iter_mut().enumerate().for_each(|(word, mask)| *mask &= self.valid_word(word));
        }
        match (&self.values, datum) {
            (Values::Constant(value), datum) if datum.cmp_bound(value).is_eq() => {}
            (Values::Constant(_), _) => masks.fill(0),
            (_, Datum::Integer(v)) => self.values.narrow(v, v, masks, physical),
            (Values::Dictionary { codes, .. }, Datum::Bytes(bytes)) => match self.code_of(bytes) {
                None => masks.fill(0),
                Some(code) => keep(masks, |slot| codes.get(slot) == code),
            },
            _ => keep(masks, |slot| self.datum(slot, physical).total_cmp(datum).is_eq()),
        }
    }

    /// Narrows `masks` to the slots with a value from `low` to `high`, of a column of integers of up to 64
    /// bits or of floats, for which `low` and `high` are ordinals ([`entasis_vector::Value::ordinal`]).
    pub(crate) fn narrow_within(&self, low: i128, high: i128, masks: &mut [u64], physical: PhysicalType) {
        let (Some(min), Some(max)) = (self.zone.min.ordinal(), self.zone.max.ordinal()) else {
            // All are NULL.
            return masks.fill(0);
        };
        if max < low || high < min {
            return masks.fill(0);
        }
        if self.validity.is_some() {
            masks.iter_mut().enumerate().for_each(|(word, mask)| *mask &= self.valid_word(word));
        }
        if min < low || high < max {
            self.values.narrow(low, high, masks, physical);
        }
    }
}

impl Values {
    /// Narrows `masks`, without slots that are NULL, to numbers from `low` to `high`, as in
    /// [`Block::narrow_within`].
    pub(super) fn narrow(&self, low: i128, high: i128, masks: &mut [u64], physical: PhysicalType) {
        match self {
            Values::FrameOfReference { base, codes } => {
                let low = low.saturating_sub(*base).max(0);
                let high = high.saturating_sub(*base).min(codes.max().into());
                if low > high {
                    return masks.fill(0);
                }
                codes.narrow(low as u64, high as u64, masks);
            }
            Values::Flat(buffer) if physical == PhysicalType::I128 => {
                search::narrow(buffer, masks, low, high.wrapping_sub(low));
            }
            Values::Flat(buffer) if physical == PhysicalType::F64 => {
                FloatRange::of_ordinals(low, high).narrow::<f64>(buffer, masks);
            }
            Values::Flat(buffer) if physical == PhysicalType::F32 => {
                FloatRange::of_ordinals(low, high).narrow::<f32>(buffer, masks);
            }
            Values::Flat(buffer) => with_integer!(physical, T => {
                let low = low.max(T::MIN.into());
                let high = high.min(T::MAX.into());
                if low > high {
                    return masks.fill(0);
                }
                search::narrow(buffer, masks, low as T, (high - low) as T);
            }),
            Values::Sequence(sequence) => sequence.narrow(low, high, masks),
            Values::Runs(runs) => runs.narrow(low, high, masks, physical),
            Values::Multiples(multiples) => multiples.narrow(low, high, masks),
            Values::Patched(patched) => patched.narrow(low, high, masks, physical),
            Values::Scaled(scaled) => scaled.narrow(FloatRange::of_ordinals(low, high), masks),
            Values::Singles(singles) => singles.narrow(FloatRange::of_ordinals(low, high), masks),
            Values::Line(line) => line.narrow(low, high, masks, physical),
            Values::Split(split) => split.narrow(FloatRange::of_ordinals(low, high), masks, physical),
            Values::Constant(value) if value.ordinal().is_some_and(|v| low <= v && v <= high) => {}
            Values::Constant(_) => masks.fill(0),
            Values::Dictionary { .. } | Values::Strings(_) | Values::Views(_) | Values::Fsst(_) => {
                unreachable!("strings are no numbers")
            }
        }
    }
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
