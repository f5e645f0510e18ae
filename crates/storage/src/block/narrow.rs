//! Narrowing masks: the slots that hold a value, or one of a range, found without decoding.
//!
//! A mask has a bit for each slot. Bounds are tested first, which may decide for all slots at once; then the
//! constant becomes a code, and codes are compared in their own width ([`super::search`], [`super::packed`]):
//! each encoding does that ([`super::codec`]). The slow twin looks at one value after the other.

use super::masks::keep;
use super::{Block, HeldSlots, Values};
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
        if let Some(value) = self.values.value() {
            if datum.cmp_bound(value).is_ne() {
                masks.fill(0);
            }
            return;
        }
        match (&self.values, datum) {
            (Values::Fixed(values), Datum::Integer(v)) => values.narrow(v, v, masks, self.held(physical)),
            (Values::Text(values), Datum::Bytes(bytes)) => values.narrow(bytes, masks),
            _ => keep(masks, |slot| self.datum(slot, physical).total_cmp(datum).is_eq()),
        }
    }

    /// How its slots are held, and how many they are.
    fn held(&self, physical: PhysicalType) -> HeldSlots {
        HeldSlots { physical, slots: self.slots() }
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
        if (min < low || high < max)
            && let Some(values) = self.values.fixed()
        {
            values.narrow(low, high, masks, self.held(physical));
        }
    }
}
