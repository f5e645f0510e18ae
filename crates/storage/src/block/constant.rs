//! One value for all slots, a number or a string. It takes no memory but its own.
//!
//! Blocks whose slots are all NULL are no constants: they have no type ([`super::Values::Null`]).

use super::codec::{Codec, FixedCodec, TextCodec};
use super::example::Example;
use super::fold::ValidSlots;
use super::reading::{HeldSlots, Selected};
use super::serialized::{BlockWriter, Flaw, Reader};
use super::{Fixed, pinned_view};
use crate::definition::Compression;
use crate::value::Datum;
use entasis_vector::{DataType, PhysicalType, StringHeap, StringView, Value};

/// The value, as it is held: a UUID is its number.
#[derive(Debug, Clone)]
pub(crate) struct Constant(pub(crate) Value);

impl Constant {
    /// The integer; 0 if it is none.
    fn integer(&self) -> i128 {
        match &self.0 {
            Value::Integer(v) => *v,
            Value::Boolean(v) => i128::from(*v),
            _ => 0,
        }
    }

    fn text(&self) -> &[u8] {
        text(&self.0)
    }
}

/// The bytes of a string.
fn text(value: &Value) -> &[u8] {
    match value {
        Value::Text(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
        _ => &[],
    }
}

/// The view of a constant string, whose bytes the block keeps.
pub(crate) fn constant_view(value: &Value) -> StringView {
    pinned_view(text(value))
}

impl Codec for Constant {
    const NAME: &'static str = "constant";
    const EXAMPLES: &'static [Example] =
        &[Example::of_integers(Self::NAME, Compression::Auto, 0.02, |_| Value::Integer(7))];

    fn is_writable(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        0
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.value(&self.0);
    }

    fn read(reader: &mut Reader<'_>, _: usize) -> Result<Constant, Flaw> {
        let value = reader.value()?;
        reader.check_type(&value, "its constant is of another type")?;
        Ok(Constant(value))
    }
}

impl FixedCodec for Constant {
    #[inline]
    fn datum(&self, _: usize, _: PhysicalType) -> Datum<'_> {
        Datum::of_value(&self.0, DataType::Null)
    }

    fn decode<T: Fixed>(&self, _: PhysicalType, _: usize, out: &mut [T]) {
        out.fill(T::of_value(&self.0));
    }

    fn is_read_singly<T: Fixed>(&self, _: PhysicalType, _: Selected) -> bool {
        true
    }

    fn each_of<T: Fixed>(
        &self,
        _: PhysicalType,
        slots: impl ExactSizeIterator<Item = usize>,
        mut put: impl FnMut(T),
    ) {
        let value = T::of_value(&self.0);
        slots.for_each(|_| put(value));
    }

    fn repeats(&self) -> bool {
        true
    }

    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], _: HeldSlots) {
        let number = match &self.0 {
            Value::Boolean(_) => Some(self.integer()),
            value => value.ordinal(),
        };
        if number.is_none_or(|number| number < low || high < number) {
            masks.fill(0);
        }
    }

    fn narrow_where<T: Fixed>(&self, _: HeldSlots, holds: impl Fn(T) -> bool, masks: &mut [u64]) {
        if !holds(T::of_value(&self.0)) {
            masks.fill(0);
        }
    }

    fn sum(&self, slots: &ValidSlots<'_>, _: PhysicalType) -> i128 {
        self.integer() * slots.count() as i128
    }

    fn extremes(&self, slots: &ValidSlots<'_>, _: PhysicalType, _: bool, mut offer: impl FnMut(i128)) {
        if slots.count() > 0 {
            offer(self.integer());
        }
    }

    #[inline]
    fn fits(&self, datum: Datum<'_>) -> bool {
        // Equal floats and intervals may differ in their bits.
        matches!(datum, Datum::Integer(_)) && datum.cmp_bound(&self.0).is_eq()
    }

    #[inline]
    fn store(&self, _: usize, _: Datum<'_>, _: PhysicalType) {}

    fn copy(&self, _: usize, _: PhysicalType) -> Option<Constant> {
        Some(self.clone())
    }
}

impl TextCodec for Constant {
    #[inline]
    fn get(&self, _: usize) -> &[u8] {
        self.text()
    }

    fn view(&self, _: usize, _: &mut StringHeap) -> StringView {
        pinned_view(self.text())
    }

    fn views(&self, _: usize, _: &[u64], out: &mut [StringView], _: &mut StringHeap) {
        out.fill(pinned_view(self.text()));
    }

    fn narrow(&self, bytes: &[u8], masks: &mut [u64]) {
        if self.text() != bytes {
            masks.fill(0);
        }
    }

    fn copy(&self, _: usize, _: &[u64]) -> Constant {
        self.clone()
    }

    #[inline]
    fn fits(&self, bytes: &[u8]) -> bool {
        self.text() == bytes
    }

    #[inline]
    fn store(&self, _: usize, _: &[u8]) {}
}
