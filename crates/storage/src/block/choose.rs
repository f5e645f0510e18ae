//! Chooses the encoding of a block of values of fixed width.
//!
//! | form | encodings |
//! |---|---|
//! | writable | flat, or plain or packed codes with slack on both sides, which are written in place; as tables with a layout key have them |
//! | cold | the smallest that reads about as fast as the plain ones |
//!
//! Blocks that are encoded again because a value does not fit get plain codes with slack, from `write`.
//!
//! 1. The encodings are tried in the order of the list in [`super`] ([`Recipe::smallest`]). Each computes the
//!    size that its block would have from bounds, steps, runs and outliers ([`super::codec::Chosen`]).
//!    Doubles must be encoded for that, to find their digits and exceptions.
//! 2. The smallest is taken; an encoding that takes longer to read must be smaller than those before it by a
//!    (measured) margin. A table can force an encoding; where that is not possible, the choice is free.
//! 3. The recipe is carried out. The conformance tests check that it takes as many bytes as it promised.

use super::codes::{bits_of, packing_pays};
use super::packed::Packed;
use super::unencoded::Unencoded;
use super::{Block, Fixed, FixedValues, Recipe, Values};
use crate::BLOCK_ROWS;
use crate::definition::Compression;
use entasis_vector::{Buffer, PhysicalType, Value};

/// The purpose for which a block is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// To be written now and then.
    Writable {
        /// Strings may get dictionaries.
        dictionaries: bool,
    },
    /// To be read.
    Cold(Compression),
}

impl Form {
    /// True if codes have room on both sides of the values: they may be written in place.
    fn has_slack(self) -> bool {
        matches!(self, Form::Writable { .. } | Form::Cold(Compression::Auto))
    }

    /// False if strings never get dictionaries.
    pub(crate) fn has_dictionaries(self) -> bool {
        match self {
            Form::Writable { dictionaries } => dictionaries,
            Form::Cold(compression) => compression.has_dictionaries(),
        }
    }
}

/// Encodes values that lie within `min` and `max`, with memory for `capacity` slots.
pub(crate) fn encode<T: Fixed>(values: &[T], min: T, max: T, capacity: usize, form: Form) -> FixedValues {
    // Slots that are not live yet may hold anything that does not widen the codes.
    let mut all = Vec::new();
    if capacity > values.len() && matches!(form, Form::Cold(_)) {
        all.extend_from_slice(values);
        all.resize(capacity, min);
    }
    let slots = if all.is_empty() { values } else { &all };
    let unencoded = Unencoded::new(values, slots, capacity, (min, max));
    recipe(&unencoded, form).0.encode(&unencoded, form.has_slack())
}

impl Block {
    /// True if it has integers in slots of whole bytes that would be packed if they were encoded again: it
    /// was written, or made of rows that were laid out. Its zone must be exact.
    pub(crate) fn is_loose(&self, physical: PhysicalType) -> bool {
        let is_plain = matches!(&self.values, Values::Fixed(values) if values.are_plain(physical));
        let number = |value: &Value| match value {
            Value::Boolean(value) => Some(i128::from(*value)),
            value => value.ordinal(),
        };
        let range = (number(&self.zone.min), number(&self.zone.max));
        let (true, (Some(min), Some(max))) = (is_plain, range) else { return false };
        let span = u64::try_from(max.wrapping_sub(min) as u128).ok();
        let bits = span.map(|span| bits_of(span).max(1)).filter(|&bits| bits < 64);
        bits.is_some_and(|bits| packing_pays(Packed::size(bits), self.values.bytes()))
    }
}

/// The bytes besides the block that [`encode`] promises, with as many slots as values.
#[cfg(test)]
pub(crate) fn promised<T: Fixed>(values: &[T], min: T, max: T, form: Form) -> usize {
    recipe(&Unencoded::new(values, values, values.len(), (min, max)), form).1
}

/// How values are to be encoded, and the bytes that this takes besides the block.
fn recipe<T: Fixed>(of: &Unencoded<'_, T>, form: Form) -> (Recipe, usize) {
    let flat = || (Recipe::Flat, Buffer::bytes_for(size_of::<T>() * of.capacity));
    let plain = || (Recipe::Plain, of.plain_bytes(of.capacity));
    match form {
        Form::Writable { .. } => {
            let packed = Recipe::forced(of, Compression::Packed).filter(|_| of.capacity <= BLOCK_ROWS);
            packed.filter(|(_, bytes)| packing_pays(*bytes, plain().1)).unwrap_or_else(plain)
        }
        Form::Cold(Compression::None) => flat(),
        Form::Cold(_) if of.capacity > BLOCK_ROWS || of.values.is_empty() => plain(),
        Form::Cold(Compression::Flat) => flat(),
        Form::Cold(Compression::Plain) => plain(),
        Form::Cold(compression) => {
            Recipe::forced(of, compression).unwrap_or_else(|| Recipe::smallest(of, plain().1))
        }
    }
}
