//! Doubles that equal a 32-bit float, in four bytes each.

use super::codec::{Chosen, Codec, FixedCodec, Planned};
use super::example::{Example, scattered};
use super::floats::FloatRange;
use super::reading::HeldSlots;
use super::serialized::{BlockWriter, Flaw, Reader};
use super::unencoded::Unencoded;
use super::{Fixed, cells};
use crate::definition::Compression;
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::{Buffer, PhysicalType, Value};

/// See the module.
#[derive(Debug)]
pub(crate) struct Singles(Buffer);

impl Singles {
    /// Doubles as floats, if all come back bit for bit.
    fn of(values: &[f64]) -> Option<Singles> {
        // The payload of a NaN may not survive.
        let is_same = |value: &f64| !value.is_nan() && f64::from(*value as f32).to_bits() == value.to_bits();
        let floats = || values.iter().map(|&value| value as f32).collect::<Vec<f32>>();
        values.iter().all(is_same).then(|| Singles(Buffer::from_slice(&floats())))
    }
}

impl Codec for Singles {
    const NAME: &'static str = "singles";
    const EXAMPLES: &'static [Example] =
        &[Example::of_doubles(Self::NAME, Compression::Singles, 0.07, |row| {
            Value::Float(f64::from((scattered(row) as f32).sqrt()))
        })];

    fn bytes(&self) -> usize {
        self.0.capacity()
    }

    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        Some(&mut self.0)
    }

    fn ahead(&self, _: usize) -> Ahead {
        Ahead::slots(&self.0, size_of::<f32>())
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.buffer::<f32>(&self.0);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Singles, Flaw> {
        let are_doubles = reader.column.physical == PhysicalType::F64;
        reader.check(are_doubles, "floats that are no doubles")?;
        Ok(Singles(reader.buffer(slots * size_of::<f32>())?))
    }
}

impl FixedCodec for Singles {
    fn datum(&self, slot: usize, _: PhysicalType) -> Datum<'_> {
        Datum::Float(cells::load::<f32>(&self.0, slot).into())
    }

    fn decode<T: Fixed>(&self, _: PhysicalType, from: usize, out: &mut [T]) {
        cells::map_into::<f32, T>(&self.0, from, out, |value| T::of_datum(Datum::Float(value.into())));
    }

    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], _: HeldSlots) {
        FloatRange::of_ordinals(low, high).narrow::<f32>(&self.0, masks);
    }
}

/// Taken whenever they are possible, unless decimals take a quarter less.
impl Chosen for Singles {
    const FORCED_BY: Compression = Compression::Singles;
    const IS_FINAL: bool = false;
    type Plan = Singles;

    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<Singles>> {
        let plan = Singles::of(of.doubles()?)?;
        Some(Planned { bytes: plan.bytes(), plan })
    }

    fn pays(_: usize, _: usize) -> bool {
        true
    }

    fn encode<T: Fixed>(_: &Unencoded<'_, T>, plan: Singles, _: bool) -> Singles {
        plan
    }
}
