//! Values of fixed width as they are, one after the other: what codes would not make narrower.

use super::codec::{Codec, FixedCodec};
use super::example::{Example, scattered};
use super::floats::FloatRange;
use super::fold::{Integer, ValidSlots, extreme};
use super::reading::{HeldSlots, Meaning, Selected};
use super::serialized::{BlockWriter, Flaw, Reader};
use super::{Fixed, cells, search, with_fixed, with_integer};
use crate::definition::Compression;
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::{Buffer, Native, PhysicalType, Value};

/// Bytes of flat values that are decoded together in the time of a single value.
// PERF: of 8 bytes, one in 16 costs as much as all; of 4 bytes, one in 32.
const BYTES_FOR_ONE: usize = 128;

/// The values.
#[derive(Debug)]
pub(crate) struct Flat(pub(crate) Buffer);

/// Runs an expression with `$t` bound to the native type of a column of numbers.
macro_rules! with_native {
    ($held:expr, $t:ident => $body:expr) => {
        with_fixed!($held, $t => $body, unreachable!("strings have no fixed width"))
    };
}

impl Flat {
    /// Values, with memory for `capacity` slots.
    pub(crate) fn new<T: Native>(values: &[T], capacity: usize) -> Flat {
        let mut buffer = Buffer::zeroed(capacity * size_of::<T>());
        buffer.as_mut_slice::<T>()[..values.len()].copy_from_slice(values);
        Flat(buffer)
    }
}

impl Codec for Flat {
    const NAME: &'static str = "flat";
    const EXAMPLES: &'static [Example] =
        &[Example::of_integers(Self::NAME, Compression::Flat, 0.03, |row| Value::Integer(scattered(row)))];

    fn is_writable(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        self.0.capacity()
    }

    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        Some(&mut self.0)
    }

    fn ahead(&self, slots: usize) -> Ahead {
        // Rounded up to cache lines, so that the width of a few slots is a guess.
        Ahead::slots(&self.0, (self.0.capacity() / slots.max(1)).min(16))
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        with_native!(out.column.physical, T => out.buffer::<T>(&self.0));
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Flat, Flaw> {
        let width = reader.column.physical.width();
        Ok(Flat(reader.buffer(slots * width)?))
    }
}

impl FixedCodec for Flat {
    #[inline]
    fn datum(&self, slot: usize, held: PhysicalType) -> Datum<'_> {
        with_native!(held, T => cells::load::<T>(&self.0, slot).datum())
    }

    fn decode<T: Fixed>(&self, held: PhysicalType, from: usize, out: &mut [T]) {
        if held.width() == size_of::<T>() {
            return cells::map_into::<T, T>(&self.0, from, out, |value| value);
        }
        with_native!(held, S => {
            cells::map_into::<S, T>(&self.0, from, out, |value| T::of_datum(value.datum()));
        });
    }

    fn is_read_singly<T: Fixed>(&self, held: PhysicalType, selected: Selected) -> bool {
        let are_rare = || selected.slots * (BYTES_FOR_ONE / size_of::<T>()) < selected.of;
        held.width() == size_of::<T>() && (!selected.in_place || are_rare())
    }

    #[inline(always)]
    fn each_of<T: Fixed>(
        &self,
        _: PhysicalType,
        slots: impl ExactSizeIterator<Item = usize>,
        mut put: impl FnMut(T),
    ) {
        slots.for_each(|slot| put(cells::load(&self.0, slot)));
    }

    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], of: HeldSlots) {
        match of.physical {
            PhysicalType::I128 => _ = search::narrow(&self.0, masks, low, high.wrapping_sub(low)),
            PhysicalType::F64 => FloatRange::of_ordinals(low, high).narrow::<f64>(&self.0, masks),
            PhysicalType::F32 => FloatRange::of_ordinals(low, high).narrow::<f32>(&self.0, masks),
            physical => with_integer!(physical, T => {
                let low = low.max(T::MIN.into());
                let high = high.min(T::MAX.into());
                if low > high {
                    return masks.fill(0);
                }
                search::narrow(&self.0, masks, low as T, (high - low) as T);
            }),
        }
    }

    fn meaning(&self) -> Meaning<'_> {
        Meaning::Numbers(&self.0)
    }

    fn sum(&self, slots: &ValidSlots<'_>, held: PhysicalType) -> i128 {
        let mut sum = 0;
        with_integer!(held, T => {
            slots.each_run(|from, count| sum += T::sum((&self.0).into(), from, count));
        });
        sum
    }

    fn extremes(
        &self,
        slots: &ValidSlots<'_>,
        held: PhysicalType,
        largest: bool,
        mut offer: impl FnMut(i128),
    ) {
        with_integer!(held, T => {
            slots.each_run(|from, count| offer(extreme::<T>((&self.0).into(), from, count, largest).into()));
        });
    }

    fn is_plain(&self, held: PhysicalType) -> bool {
        held.is_integer() || held == PhysicalType::I128
    }

    #[inline]
    fn fits(&self, _: Datum<'_>) -> bool {
        true
    }

    #[inline]
    fn store(&self, slot: usize, datum: Datum<'_>, held: PhysicalType) {
        with_native!(held, T => cells::store::<T>(&self.0, slot, T::of_datum(datum)));
    }

    fn copy(&self, slots: usize, held: PhysicalType) -> Option<Flat> {
        self.grown(slots, slots, held)
    }

    fn grown(&self, old: usize, slots: usize, held: PhysicalType) -> Option<Flat> {
        Some(Flat(with_native!(held, T => cells::copy::<T>(&self.0, old, slots))))
    }
}
