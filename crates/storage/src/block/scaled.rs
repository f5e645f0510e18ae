//! Doubles that are decimals, as integers: see [`super::alp`]. Integers are codes over a base, packed if that
//! pays; doubles that do not come back from an integer bit for bit are patches.

use super::alp::Scale;
use super::choose::{Form, encode};
use super::codec::{Chosen, Codec, FixedCodec, Planned};
use super::example::{Example, scattered};
use super::floats::FloatRange;
use super::patches::Patches;
use super::reading::HeldSlots;
use super::serialized::{BlockWriter, Column, Flaw, Reader};
use super::unencoded::Unencoded;
use super::{Constant, Fixed, FixedValues, range_of};
use crate::BLOCK_ROWS;
use crate::definition::Compression;
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::{Buffer, PhysicalType, Value};

/// How digits are held.
const DIGITS: Column = Column { physical: PhysicalType::I64, is_text: false };
/// The codes in files of the encodings that digits may have: those of integers.
const CODES: [u8; 6] = [0, 1, 2, 6, 8, 12];

/// See the module.
#[derive(Debug)]
pub(crate) struct Scaled {
    scale: Scale,
    digits: Box<FixedValues>,
    patches: Patches<f64>,
}

impl Scaled {
    /// Encodes up to 1024 doubles under a scale; `None` if there are none.
    fn of(values: &[f64], scale: Scale) -> Option<Scaled> {
        let (mut digits, mut patches) = (Vec::with_capacity(values.len()), Vec::new());
        scale.encode(values, &mut digits, &mut patches);
        let (min, max) = range_of(&digits)?;
        let digits = match min == max {
            true => FixedValues::Constant(Constant(Value::Integer(min.into()))),
            false => encode(&digits, min, max, digits.len(), Form::Cold(Compression::Packed)),
        };
        Some(Scaled { scale, digits: Box::new(digits), patches: Patches::new(&patches) })
    }
}

impl Codec for Scaled {
    const NAME: &'static str = "scaled doubles";
    const EXAMPLES: &'static [Example] =
        &[Example::of_doubles(Self::NAME, Compression::Scaled, 0.25, |row| {
            Value::Float(scattered(row) as f64 / 100.0)
        })];

    fn bytes(&self) -> usize {
        size_of::<FixedValues>() + self.digits.bytes() + self.patches.bytes()
    }

    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        self.digits.buffer_mut()
    }

    fn ahead(&self, slots: usize) -> Ahead {
        self.digits.ahead(slots)
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        let (exponent, factor) = self.scale.parts();
        out.number([exponent, factor, self.digits.code()]);
        self.digits.write(&mut out.of_column(DIGITS));
        out.patches(&self.patches, f64::to_le_bytes);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Scaled, Flaw> {
        let are_doubles = reader.column.physical == PhysicalType::F64;
        reader.check(are_doubles, "scaled values that are no doubles")?;
        let scale = Scale::of_parts(reader.u8()?, reader.u8()?).ok_or("its scale")?;
        let code = reader.u8()?;
        reader.check(CODES.contains(&code), "its integers")?;
        let digits = reader.within(DIGITS, |reader| FixedValues::read(code, reader, slots))?;
        let patches = Patches::new(&reader.patches(slots, Reader::f64)?);
        Ok(Scaled { scale, digits: Box::new(digits), patches })
    }
}

impl FixedCodec for Scaled {
    fn datum(&self, slot: usize, _: PhysicalType) -> Datum<'_> {
        let double = || match self.digits.datum(slot, DIGITS.physical) {
            Datum::Integer(digit) => self.scale.decode(digit as i64),
            _ => 0.0,
        };
        Datum::Float(self.patches.get(slot).unwrap_or_else(double))
    }

    fn decode<T: Fixed>(&self, _: PhysicalType, from: usize, out: &mut [T]) {
        let scale = self.scale;
        let mut digits = [0i64; BLOCK_ROWS];
        let digits = &mut digits[..out.len()];
        self.digits.decode(DIGITS.physical, from, digits);
        entasis_vector::simd::widest(|| {
            out.iter_mut()
                .zip(&*digits)
                .for_each(|(o, &digit)| *o = T::of_datum(Datum::Float(scale.decode(digit))));
        });
        let patches = self.patches.within(from, from + out.len());
        patches.for_each(|(at, value)| out[at] = T::of_datum(Datum::Float(value)));
    }

    /// Digits are compared.
    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], of: HeldSlots) {
        let range = FloatRange::of_ordinals(low, high);
        let (first, last) = self.scale.digits_within(range.low, range.high).into_inner();
        let of = HeldSlots { physical: DIGITS.physical, ..of };
        self.patches.narrow(
            masks,
            |_, v| range.holds(v),
            |masks| self.digits.narrow(first.into(), last.into(), masks, of),
        );
    }
}

/// Doubles have to be encoded to find their digits and exceptions.
impl Chosen for Scaled {
    const FORCED_BY: Compression = Compression::Scaled;
    type Plan = Scaled;

    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<Scaled>> {
        let doubles = of.doubles()?;
        let plan = Scaled::of(doubles, Scale::choose(doubles)?)?;
        Some(Planned { bytes: plan.bytes(), plan })
    }

    fn pays(bytes: usize, smallest: usize) -> bool {
        bytes * 4 <= smallest * 3
    }

    fn encode<T: Fixed>(_: &Unencoded<'_, T>, plan: Scaled, _: bool) -> Scaled {
        plan
    }
}
