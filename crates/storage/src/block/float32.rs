//! Doubles that equal a 32-bit float, in four bytes each.

use super::floats::FloatRange;
use super::{Fixed, cells};
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::Buffer;

/// See the module.
#[derive(Debug)]
pub(crate) struct Singles(Buffer);

impl Singles {
    /// Doubles as floats, if all come back bit for bit.
    pub(crate) fn of(values: &[f64]) -> Option<Singles> {
        // The payload of a NaN may not survive.
        let is_same = |value: &f64| !value.is_nan() && f64::from(*value as f32).to_bits() == value.to_bits();
        let floats = || values.iter().map(|&value| value as f32).collect::<Vec<f32>>();
        values.iter().all(is_same).then(|| Singles(Buffer::from_slice(&floats())))
    }

    /// Floats as they are in memory.
    pub(crate) fn of_buffer(floats: Buffer) -> Singles {
        Singles(floats)
    }

    /// Their bytes.
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.0
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity()
    }

    /// Their bytes.
    pub(crate) fn buffer_mut(&mut self) -> &mut Buffer {
        &mut self.0
    }

    /// Their slots.
    pub(crate) fn ahead(&self) -> Ahead {
        Ahead::slots(&self.0, size_of::<f32>())
    }

    /// The double in `slot`.
    pub(crate) fn get(&self, slot: usize) -> f64 {
        cells::load::<f32>(&self.0, slot).into()
    }

    /// Narrows `masks` to the doubles of a range.
    pub(crate) fn narrow(&self, range: FloatRange, masks: &mut [u64]) {
        range.narrow::<f32>(&self.0, masks);
    }

    /// Writes the doubles from `from` on to all of `out`.
    pub(crate) fn decode<T: Fixed>(&self, from: usize, out: &mut [T]) {
        cells::map_into::<f32, T>(&self.0, from, out, |value| T::of_datum(Datum::Float(value.into())));
    }
}
