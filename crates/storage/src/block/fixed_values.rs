//! Values of fixed width, whatever their encoding is: each method calls that of the encoding.

use super::codec::FixedCodec;
use super::fold::ValidSlots;
use super::reading::{HeldSlots, Meaning, Selected};
use super::{Fixed, FixedValues, map_fixed_codec, with_fixed_codec};
use crate::value::Datum;
use entasis_vector::PhysicalType;

impl FixedValues {
    /// See [`FixedCodec::datum`].
    #[inline]
    pub(crate) fn datum(&self, slot: usize, held: PhysicalType) -> Datum<'_> {
        with_fixed_codec!(self, own => own.datum(slot, held))
    }

    /// See [`FixedCodec::decode`].
    pub(crate) fn decode<T: Fixed>(&self, held: PhysicalType, from: usize, out: &mut [T]) {
        with_fixed_codec!(self, own => own.decode(held, from, out));
    }

    /// Calls `put` with the value of each of `slots`, if reading them one by one is faster than decoding the
    /// stretch; otherwise returns false.
    #[inline(always)]
    pub(crate) fn read_singly<T: Fixed>(
        &self,
        held: PhysicalType,
        selected: Selected,
        slots: impl ExactSizeIterator<Item = usize>,
        put: impl FnMut(T),
    ) -> bool {
        with_fixed_codec!(self, own => {
            let is_faster = own.is_read_singly::<T>(held, selected);
            if is_faster {
                own.each_of(held, slots, put);
            }
            is_faster
        })
    }

    /// See [`FixedCodec::narrow`].
    pub(super) fn narrow(&self, low: i128, high: i128, masks: &mut [u64], of: HeldSlots) {
        with_fixed_codec!(self, own => own.narrow(low, high, masks, of));
    }

    /// See [`FixedCodec::narrow_where`].
    pub(crate) fn narrow_where<T: Fixed>(&self, of: HeldSlots, holds: impl Fn(T) -> bool, masks: &mut [u64]) {
        with_fixed_codec!(self, own => own.narrow_where(of, holds, masks));
    }

    /// See [`FixedCodec::repeats`].
    pub(crate) fn repeat(&self) -> bool {
        with_fixed_codec!(self, own => own.repeats())
    }

    /// See [`FixedCodec::meaning`].
    pub(crate) fn meaning(&self) -> Meaning<'_> {
        with_fixed_codec!(self, own => own.meaning())
    }

    /// See [`FixedCodec::sum`].
    pub(crate) fn sum(&self, slots: &ValidSlots<'_>, held: PhysicalType) -> i128 {
        with_fixed_codec!(self, own => own.sum(slots, held))
    }

    /// The largest of `best` and the values of some slots, or the smallest.
    pub(crate) fn extreme(
        &self,
        slots: &ValidSlots<'_>,
        held: PhysicalType,
        largest: bool,
        best: i128,
    ) -> i128 {
        let mut found = best;
        let offer = |value: i128| found = if largest { found.max(value) } else { found.min(value) };
        with_fixed_codec!(self, own => own.extremes(slots, held, largest, offer));
        found
    }

    /// See [`FixedCodec::is_plain`].
    pub(super) fn are_plain(&self, held: PhysicalType) -> bool {
        with_fixed_codec!(self, own => own.is_plain(held))
    }

    /// See [`FixedCodec::fits`].
    #[inline]
    pub(super) fn fit(&self, datum: Datum<'_>) -> bool {
        with_fixed_codec!(self, own => own.fits(datum))
    }

    /// See [`FixedCodec::store`].
    #[inline]
    pub(super) fn store(&self, slot: usize, datum: Datum<'_>, held: PhysicalType) {
        with_fixed_codec!(self, own => own.store(slot, datum, held));
    }

    /// See [`FixedCodec::copy`].
    pub(super) fn copy(&self, slots: usize, held: PhysicalType) -> Option<FixedValues> {
        Some(map_fixed_codec!(self, own => own.copy(slots, held)?))
    }

    /// See [`FixedCodec::unpacked_copy`].
    pub(super) fn unpacked_copy(&self, slots: usize, held: PhysicalType) -> Option<FixedValues> {
        Some(map_fixed_codec!(self, own => own.unpacked_copy(slots, held)?))
    }

    /// See [`FixedCodec::grown`].
    pub(super) fn grown(&self, old: usize, slots: usize, held: PhysicalType) -> Option<FixedValues> {
        Some(map_fixed_codec!(self, own => own.grown(old, slots, held)?))
    }
}
