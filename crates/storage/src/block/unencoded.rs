//! Values of a block that are about to be encoded, and what is known of them.

use super::Fixed;
use super::codes::{bits_of, plain_bytes};
use crate::value::Datum;
use entasis_vector::Buffer;
use std::cell::OnceCell;

/// See the module.
pub(crate) struct Unencoded<'a, T> {
    /// The values of live slots.
    pub(super) values: &'a [T],
    /// The values of all slots, unless they are to be written.
    pub(super) slots: &'a [T],
    /// Slots that there is to be memory for.
    pub(super) capacity: usize,
    /// The least value, and the greatest.
    pub(super) min: T,
    pub(super) max: T,
    /// The distance between those, if they are integers.
    pub(super) span: Option<u128>,
    doubles: OnceCell<Option<Vec<f64>>>,
}

impl<'a, T: Fixed> Unencoded<'a, T> {
    /// Values that lie within `min` and `max`; see the fields.
    pub(super) fn new(values: &'a [T], slots: &'a [T], capacity: usize, (min, max): (T, T)) -> Self {
        let span = distance(min, max);
        Unencoded { values, slots, capacity, min, max, span, doubles: OnceCell::new() }
    }

    /// The distance between the least and the greatest, if they are integers that are not further apart than
    /// 64 bits go.
    pub(super) fn short_span(&self) -> Option<u64> {
        u64::try_from(self.span?).ok()
    }

    /// Bits of the codes, if they are integers whose codes have at most 64.
    pub(super) fn bits(&self) -> Option<usize> {
        self.short_span().map(|span| bits_of(span).max(1))
    }

    /// Bytes of plain codes of so many values, or of flat ones.
    pub(super) fn plain_bytes(&self, values: usize) -> usize {
        let code = self.span.and_then(plain_bytes).unwrap_or(size_of::<T>()).min(size_of::<T>());
        Buffer::bytes_for(code * values)
    }

    /// The values as doubles; `None` if they are none.
    pub(super) fn doubles(&self) -> Option<&[f64]> {
        let double = |value: &T| match value.datum() {
            Datum::Float(v) if size_of::<T>() == 8 => Some(v),
            _ => None,
        };
        self.doubles.get_or_init(|| self.slots.iter().map(double).collect()).as_deref()
    }
}

/// The distance between two integers; `None` for other values.
pub(super) fn distance<T: Fixed>(min: T, max: T) -> Option<u128> {
    match (min.datum(), max.datum()) {
        (Datum::Integer(min), Datum::Integer(max)) if T::IS_INTEGER => Some(max.wrapping_sub(min) as u128),
        _ => None,
    }
}
