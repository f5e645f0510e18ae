//! Doubles that are decimals, as integers: see [`super::alp`]. Integers are codes over a base, packed if that
//! pays; doubles that do not come back from an integer bit for bit are patches.

use super::alp::Scale;
use super::floats::FloatRange;
use super::patches::Patches;
use super::{Fixed, Values, range_of};
use crate::BLOCK_ROWS;
use crate::value::Datum;
use entasis_vector::PhysicalType;

/// See the module.
#[derive(Debug)]
pub(crate) struct Scaled {
    scale: Scale,
    digits: Box<Values>,
    patches: Patches<f64>,
}

impl Scaled {
    /// The integers.
    pub(crate) fn digits_mut(&mut self) -> &mut Values {
        &mut self.digits
    }

    /// Encodes up to 1024 doubles under a scale; `None` if there are none. `encode` encodes integers that lie
    /// within two bounds and are not all equal.
    pub(crate) fn of(
        values: &[f64],
        scale: Scale,
        encode: impl FnOnce(&[i64], i64, i64) -> Values,
    ) -> Option<Scaled> {
        let (mut digits, mut patches) = (Vec::with_capacity(values.len()), Vec::new());
        scale.encode(values, &mut digits, &mut patches);
        let (min, max) = range_of(&digits)?;
        let digits = match min == max {
            true => Values::Constant(entasis_vector::Value::Integer(min.into())),
            false => encode(&digits, min, max),
        };
        Some(Scaled { scale, digits: Box::new(digits), patches: Patches::new(&patches) })
    }

    /// The scale, and the doubles stored beside the integers.
    pub(crate) fn parts(&self) -> (Scale, &Patches<f64>) {
        (self.scale, &self.patches)
    }

    /// Integers under a scale, and doubles beside them.
    pub(crate) fn of_parts(scale: Scale, digits: Values, patches: &[(u16, f64)]) -> Scaled {
        Scaled { scale, digits: Box::new(digits), patches: Patches::new(patches) }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Values>() + self.digits.bytes() + self.patches.bytes()
    }

    /// The integers.
    pub(crate) fn digits(&self) -> &Values {
        &self.digits
    }

    /// The double in `slot`.
    pub(crate) fn get(&self, slot: usize) -> f64 {
        self.patches.get(slot).unwrap_or_else(|| match self.digits.datum(slot, PhysicalType::I64) {
            Datum::Integer(digit) => self.scale.decode(digit as i64),
            _ => 0.0,
        })
    }

    /// Narrows `masks` to the doubles of a range: digits are compared.
    pub(crate) fn narrow(&self, range: FloatRange, masks: &mut [u64]) {
        let (first, last) = self.scale.digits_within(range.low, range.high).into_inner();
        self.patches.narrow(
            masks,
            |_, v| range.holds(v),
            |masks| self.digits.narrow(first.into(), last.into(), masks, PhysicalType::I64),
        );
    }

    /// Writes the doubles from `from` on to all of `out`.
    pub(crate) fn decode<T: Fixed>(&self, from: usize, out: &mut [T]) {
        let scale = self.scale;
        let mut digits = [0i64; BLOCK_ROWS];
        let digits = &mut digits[..out.len()];
        self.digits.decode_fixed(PhysicalType::I64, from, digits);
        entasis_vector::simd::widest(|| {
            out.iter_mut()
                .zip(&*digits)
                .for_each(|(o, &digit)| *o = T::of_datum(Datum::Float(scale.decode(digit))));
        });
        let patches = self.patches.within(from, from + out.len());
        patches.for_each(|(at, value)| out[at] = T::of_datum(Datum::Float(value)));
    }
}
