//! Frames of reference: integers as codes over a base, `base + code`. Codes are plain, of 1, 2 or 4 bytes, or
//! packed in as many bits as the greatest needs ([`super::codes`]).
//!
//! Hot blocks have plain codes with room on both sides of the values. Cold blocks have packed ones where
//! those are much smaller.

use super::codec::{Chosen, Codec, FixedCodec, Planned};
use super::codes::{packing_pays, with_codes};
use super::example::{Example, scattered};
use super::fold::{ValidSlots, extreme};
use super::packed::{FEW, Packed};
use super::reading::{HeldSlots, Meaning, Selected};
use super::serialized::{BlockWriter, Flaw, Reader};
use super::unencoded::Unencoded;
use super::{Codes, Fixed};
use crate::definition::Compression;
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::{Buffer, PhysicalType, Value};
use std::iter::repeat;

/// The name of blocks with packed codes.
const PACKED: &str = "packed";
/// Plain codes are read one by one if at most one in so many is wanted.
// PERF: a whole block is decoded by vectors, at 7 to 11 values a nanosecond in cache; one in 64 costs as
// much.
const FEW_CODES: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct FrameOfReference {
    /// The value of code 0.
    pub(crate) base: i128,
    pub(crate) codes: Codes,
}

impl Codec for FrameOfReference {
    const NAME: &'static str = "frame of reference";
    const EXAMPLES: &'static [Example] = &[
        Example::of_integers(Self::NAME, Compression::Plain, 0.05, |row| {
            Value::Integer(scattered(row) % 50_000)
        }),
        Example::of_integers(PACKED, Compression::Packed, 0.07, |row| Value::Integer(scattered(row) % 3_000)),
    ];

    fn is_writable(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        if self.codes.are_plain() { Self::NAME } else { PACKED }
    }

    fn bytes(&self) -> usize {
        self.codes.bytes()
    }

    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        Some(self.codes.buffer_mut())
    }

    fn ahead(&self, _: usize) -> Ahead {
        self.codes.ahead()
    }

    #[inline]
    fn has_slots_of_their_own(&self) -> bool {
        self.codes.are_plain()
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.number(self.base.to_le_bytes());
        out.codes(&self.codes);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<FrameOfReference, Flaw> {
        Ok(FrameOfReference { base: reader.integer()?, codes: reader.codes(slots)? })
    }
}

impl FixedCodec for FrameOfReference {
    #[inline]
    fn datum(&self, slot: usize, _: PhysicalType) -> Datum<'_> {
        Datum::Integer(self.base.wrapping_add(self.codes.get(slot).into()))
    }

    fn decode<T: Fixed>(&self, _: PhysicalType, from: usize, out: &mut [T]) {
        T::decode(self.base, &self.codes, from, out);
    }

    fn is_read_singly<T: Fixed>(&self, _: PhysicalType, selected: Selected) -> bool {
        let are_rare = selected.slots * FEW_CODES < selected.of;
        !selected.in_place || selected.slots < FEW || (self.codes.are_plain() && are_rare)
    }

    #[inline(always)]
    fn each_of<T: Fixed>(
        &self,
        _: PhysicalType,
        slots: impl ExactSizeIterator<Item = usize>,
        mut put: impl FnMut(T),
    ) {
        self.codes.each_of(slots, |code| put(T::of_code(self.base, code)));
    }

    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], _: HeldSlots) {
        let low = low.saturating_sub(self.base).max(0);
        let high = high.saturating_sub(self.base).min(self.codes.max().into());
        if low > high {
            return masks.fill(0);
        }
        self.codes.narrow(low as u64, high as u64, masks);
    }

    fn meaning(&self) -> Meaning<'_> {
        Meaning::Linear { base: self.base, factor: 1, codes: &self.codes }
    }

    fn sum(&self, slots: &ValidSlots<'_>, _: PhysicalType) -> i128 {
        slots.sum_codes(self.base, &self.codes)
    }

    fn extremes(&self, slots: &ValidSlots<'_>, _: PhysicalType, largest: bool, mut offer: impl FnMut(i128)) {
        with_codes!(&self.codes, C, packed => {
            slots.each_run(|from, count| {
                offer(self.base + i128::from(extreme::<C>(packed, from, count, largest)));
            });
        });
    }

    fn is_plain(&self, _: PhysicalType) -> bool {
        self.codes.are_plain()
    }

    #[inline]
    fn fits(&self, datum: Datum<'_>) -> bool {
        let Datum::Integer(v) = datum else { return false };
        v.checked_sub(self.base).is_some_and(|code| (0..=self.codes.max().into()).contains(&code))
    }

    #[inline]
    fn store(&self, slot: usize, datum: Datum<'_>, _: PhysicalType) {
        let Datum::Integer(v) = datum else { unreachable!("{datum:?} has no code") };
        self.codes.store(slot, (v - self.base) as u64);
    }

    fn copy(&self, slots: usize, _: PhysicalType) -> Option<FrameOfReference> {
        Some(FrameOfReference { base: self.base, codes: self.codes.copy(slots) })
    }

    fn unpacked_copy(&self, slots: usize, _: PhysicalType) -> Option<FrameOfReference> {
        Some(FrameOfReference { base: self.base, codes: self.codes.unpacked_copy(slots)? })
    }
}

/// Packed; plain codes are what others are compared with.
impl Chosen for FrameOfReference {
    const FORCED_BY: Compression = Compression::Packed;
    const IS_FINAL: bool = false;
    /// Bits of a code.
    type Plan = usize;

    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<usize>> {
        let bits = of.bits().filter(|&bits| bits < 64)?;
        Some(Planned { plan: bits, bytes: Packed::size(bits) })
    }

    fn pays(bytes: usize, smallest: usize) -> bool {
        packing_pays(bytes, smallest)
    }

    fn encode<T: Fixed>(of: &Unencoded<'_, T>, bits: usize, slack: bool) -> FrameOfReference {
        let Datum::Integer(base) = of.min.datum() else { unreachable!("only integers have codes") };
        let room = u128::from(u64::MAX >> (64 - bits)).saturating_sub(of.span.unwrap_or(0));
        let below = if slack { (room / 2) as u64 } else { 0 };
        let codes = of.slots.iter().map(|value| value.code(of.min) + below).chain(repeat(below));
        let base = base.saturating_sub(below.into());
        FrameOfReference { base, codes: Codes::Packed(Packed::new(bits, codes)) }
    }
}
