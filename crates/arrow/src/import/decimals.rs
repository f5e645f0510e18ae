//! Decimals of all widths, which are held in 64 or 128 bits.
//!
//! Arrow does not guarantee that values have at most the digits of their type; kernels rely on it, so it is
//! checked here.

use super::slice::Slice;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
};
use arrow_schema::DataType as ArrowType;
use entasis_vector::simd::widest;
use entasis_vector::types::pow10;
use entasis_vector::{DataType, Error, Native, PhysicalType, Result, Value, Vector};

impl Slice<'_> {
    /// Reads decimals of this scale; false if the array has others. Those that count in tens have no digits
    /// after the point.
    ///
    /// # Errors
    /// Input, if a value has more digits than the type.
    pub(super) fn read_decimals(self, precision: u8, scale: u8, out: &mut Vector) -> Result<bool> {
        let is_of_scale = |theirs: i8| theirs == scale as i8;
        let counts_in_tens = |theirs: i8| scale == 0 && theirs < 0;
        match self.array.data_type() {
            ArrowType::Decimal32(_, theirs) if is_of_scale(*theirs) => {
                self.copy_decimals::<Decimal32Type>(precision, scale, out)?;
            }
            ArrowType::Decimal64(_, theirs) if is_of_scale(*theirs) => {
                self.copy_decimals::<Decimal64Type>(precision, scale, out)?;
            }
            ArrowType::Decimal128(_, theirs) if is_of_scale(*theirs) => {
                self.copy_decimals::<Decimal128Type>(precision, scale, out)?;
            }
            ArrowType::Decimal32(_, theirs) if counts_in_tens(*theirs) => {
                self.rewrite_decimals::<Decimal32Type>(precision, *theirs, out, |v| Some(v.into()))?;
            }
            ArrowType::Decimal64(_, theirs) if counts_in_tens(*theirs) => {
                self.rewrite_decimals::<Decimal64Type>(precision, *theirs, out, |v| Some(v.into()))?;
            }
            ArrowType::Decimal128(_, theirs) if counts_in_tens(*theirs) => {
                self.rewrite_decimals::<Decimal128Type>(precision, *theirs, out, Some)?;
            }
            ArrowType::Decimal256(_, theirs) if is_of_scale(*theirs) || counts_in_tens(*theirs) => {
                self.rewrite_decimals::<Decimal256Type>(precision, *theirs, out, |v| v.to_i128())?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Decimals whose unscaled numbers are ours.
    fn copy_decimals<A: ArrowPrimitiveType>(self, precision: u8, scale: u8, out: &mut Vector) -> Result<()>
    where
        A::Native: Native + Ord + Into<i128>,
    {
        let source = self.values::<A>();
        let bound = pow10(precision);
        let fits = |v: A::Native| (1 - bound..bound).contains(&v.into());
        let zero = A::Native::default();
        let range = || source.iter().fold((zero, zero), |(min, max), &v| (v.min(min), v.max(max)));
        let (min, max) = widest(range);
        if !fits(min) || !fits(max) {
            let wrong = (0..self.rows).find(|&row| !self.is_null(row) && !fits(source[row]));
            if let Some(row) = wrong {
                let ty = DataType::Decimal { precision, scale };
                return Err(too_long(Value::Integer(source[row].into()).display(ty), ty));
            }
        }
        self.write_numbers(source.iter().map(|&v| v.into()), out);
        Ok(())
    }

    /// Decimals whose unscaled numbers are computed one by one: `wide` has none for those beyond 128 bits,
    /// and those of a negative scale are multiplied.
    fn rewrite_decimals<A: DecimalType>(
        self,
        precision: u8,
        theirs: i8,
        out: &mut Vector,
        wide: impl Fn(A::Native) -> Option<i128>,
    ) -> Result<()> {
        let bound = pow10(precision);
        let unit = 10_i128.checked_pow(theirs.min(0).unsigned_abs().into());
        let number = |v: A::Native| match wide(v)? {
            0 => Some(0),
            v => v.checked_mul(unit?).filter(|v| (1 - bound..bound).contains(v)),
        };
        let mut numbers = Vec::with_capacity(self.rows);
        for (row, &v) in self.values::<A>().iter().enumerate() {
            numbers.push(match number(v) {
                Some(number) => number,
                None if self.is_null(row) => 0,
                None => {
                    let ty = DataType::Decimal { precision, scale: theirs.max(0) as u8 };
                    return Err(too_long(A::format_decimal(v, u8::MAX, theirs), ty));
                }
            });
        }
        self.write_numbers(numbers.into_iter(), out);
        Ok(())
    }

    /// Writes unscaled numbers in the width of the type.
    fn write_numbers(self, numbers: impl Iterator<Item = i128>, out: &mut Vector) {
        let capacity = self.capacity();
        if out.physical() == PhysicalType::I64 {
            let values = out.begin_flat::<i64>(capacity);
            values.iter_mut().zip(numbers).for_each(|(value, number)| *value = number as i64);
        } else {
            let values = out.begin_flat::<i128>(capacity);
            values.iter_mut().zip(numbers).for_each(|(value, number)| *value = number);
        }
    }
}

fn too_long(value: impl std::fmt::Display, ty: DataType) -> Error {
    Error::input(format!("{value} has more digits than {ty}"))
}
