//! Values of fixed width: their order, their hash, and integers as codes over a base.
//!
//! Decoding is a loop over two slices, `base + code`, that the compiler turns into widening loads and adds.

use super::codes::with_codes;
use super::{Codes, cells};
use crate::value::{Datum, hash_word};
use entasis_vector::simd::widest;
use entasis_vector::value::canonical_bits;
use entasis_vector::vector::uuid_from_ordered;
use entasis_vector::{DataType, Interval, Native, Value};

/// A native type of fixed width as a column holds it.
pub(crate) trait Fixed: Native {
    /// True if `self` stands before `other` in SQL's order.
    fn before(self, other: Self) -> bool;
    /// True if the two are identical; equal floats and intervals may differ in sign or in their parts.
    fn is_same(self, other: Self) -> bool {
        self == other
    }
    /// Equal for equal values of one column.
    fn hash(self) -> u64;
    /// The value under its type.
    fn value(self, ty: DataType) -> Value;
    /// The inverse of [`Fixed::value`]; zero for NULL.
    fn of_value(value: &Value) -> Self;
    /// The value as a datum, and back; zero for NULL.
    fn datum(self) -> Datum<'static>;
    /// The inverse of [`Fixed::datum`].
    fn of_datum(datum: Datum<'_>) -> Self;
    /// True for floats, which have bits.
    const IS_FLOAT: bool = false;
    /// The bits of a float, the lowest 32 if it has no more.
    fn bits(self) -> u64 {
        unreachable!("{self:?}: only floats are held as bits")
    }
    /// The inverse of [`Fixed::bits`].
    fn of_bits(bits: u64) -> Self {
        unreachable!("{bits:x}: only floats are held as bits")
    }
    /// True for integers, which have codes.
    const IS_INTEGER: bool = false;
    /// The distance from `base`, which is not greater than the value, and at most 64 bits away. Only for
    /// integers.
    fn code(self, base: Self) -> u64 {
        unreachable!("{self:?} over {base:?}: only integers are held as codes")
    }
    /// The value of a code. Only integers have codes.
    fn of_code(base: i128, code: u64) -> Self {
        unreachable!("{base} + {code}: only integers are held as codes")
    }
    /// Writes the values of the codes from `from` on to all of `out`.
    fn decode(base: i128, codes: &Codes, from: usize, out: &mut [Self]) {
        out.iter_mut().enumerate().for_each(|(i, o)| *o = Self::of_code(base, codes.get(from + i)));
    }
}

/// The least and the greatest of some values; `None` if there are none.
pub(crate) fn range_of<T: Fixed>(values: &[T]) -> Option<(T, T)> {
    let &first = values.first()?;
    Some(widest(|| {
        values.iter().fold((first, first), |(min, max), &v| {
            (if v.before(min) { v } else { min }, if max.before(v) { v } else { max })
        })
    }))
}

macro_rules! integer {
    ($($t:ty, $unsigned:ty);*) => { $(
        impl Fixed for $t {
            #[inline(always)]
            fn before(self, other: $t) -> bool {
                self < other
            }
            #[inline(always)]
            fn hash(self) -> u64 {
                hash_word(self as u64)
            }
            fn value(self, ty: DataType) -> Value {
                match ty {
                    DataType::Boolean => Value::Boolean(self != 0),
                    _ => Value::Integer(self.into()),
                }
            }
            fn of_value(value: &Value) -> $t {
                match value {
                    Value::Integer(v) => *v as $t,
                    Value::Boolean(v) => <$t>::from(*v),
                    _ => 0,
                }
            }
            #[inline(always)]
            fn datum(self) -> Datum<'static> {
                Datum::Integer(self.into())
            }
            #[inline(always)]
            fn of_datum(datum: Datum<'_>) -> $t {
                match datum {
                    Datum::Integer(v) => v as $t,
                    _ => 0,
                }
            }
            const IS_INTEGER: bool = true;
            #[inline(always)]
            fn code(self, base: $t) -> u64 {
                u64::from(self.wrapping_sub(base) as $unsigned)
            }
            #[inline(always)]
            fn of_code(base: i128, code: u64) -> $t {
                (base as $t).wrapping_add(code as $t)
            }
            fn decode(base: i128, codes: &Codes, from: usize, out: &mut [$t]) {
                let base = base as $t;
                with_codes!(codes, C, slots => {
                    cells::map_into::<C, $t>(slots, from, out, move |code| base.wrapping_add(code as $t));
                });
            }
        }
    )* };
}
integer!(i8, u8; i16, u16; i32, u32; i64, u64; u8, u8; u16, u16; u32, u32; u64, u64);

impl Fixed for i128 {
    #[inline(always)]
    fn before(self, other: i128) -> bool {
        self < other
    }
    fn hash(self) -> u64 {
        // A wide decimal that fits in a word has the hash of that word.
        let high = (self >> 64) as u64;
        hash_word(self as u64 ^ if high == (self as i64 >> 63) as u64 { 0 } else { hash_word(high) })
    }
    fn value(self, ty: DataType) -> Value {
        Value::Integer(if ty == DataType::Uuid { uuid_from_ordered(self) } else { self })
    }
    fn of_value(value: &Value) -> i128 {
        match value {
            Value::Integer(v) => *v,
            _ => 0,
        }
    }
    fn datum(self) -> Datum<'static> {
        Datum::Integer(self)
    }
    fn of_datum(datum: Datum<'_>) -> i128 {
        match datum {
            Datum::Integer(v) => v,
            _ => 0,
        }
    }
    const IS_INTEGER: bool = true;
    fn code(self, base: i128) -> u64 {
        self.wrapping_sub(base) as u64
    }
    fn of_code(base: i128, code: u64) -> i128 {
        base.wrapping_add(code.into())
    }
}

macro_rules! float {
    ($($t:ty, $bits:ty);*) => { $(
        impl Fixed for $t {
            #[inline(always)]
            fn before(self, other: $t) -> bool {
                // NaN is greater than any number.
                self < other || (other.is_nan() && !self.is_nan())
            }
            #[inline(always)]
            fn is_same(self, other: $t) -> bool {
                self.to_bits() == other.to_bits()
            }
            fn hash(self) -> u64 {
                hash_word(canonical_bits(self.into()))
            }
            fn value(self, _: DataType) -> Value {
                Value::Float(self.into())
            }
            fn of_value(value: &Value) -> $t {
                match value {
                    Value::Float(v) => *v as $t,
                    _ => 0.0,
                }
            }
            #[inline(always)]
            fn datum(self) -> Datum<'static> {
                Datum::Float(self.into())
            }
            #[inline(always)]
            fn of_datum(datum: Datum<'_>) -> $t {
                match datum {
                    Datum::Float(v) => v as $t,
                    _ => 0.0,
                }
            }
            const IS_FLOAT: bool = true;
            #[inline(always)]
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            #[inline(always)]
            fn of_bits(bits: u64) -> $t {
                <$t>::from_bits(bits as $bits)
            }
        }
    )* };
}
float!(f32, u32; f64, u64);

impl Fixed for Interval {
    fn before(self, other: Interval) -> bool {
        self < other
    }
    fn is_same(self, other: Interval) -> bool {
        (self.months, self.days, self.micros) == (other.months, other.days, other.micros)
    }
    fn hash(self) -> u64 {
        self.estimate().hash()
    }
    fn value(self, _: DataType) -> Value {
        Value::Interval(self)
    }
    fn of_value(value: &Value) -> Interval {
        match value {
            Value::Interval(v) => *v,
            _ => Interval::default(),
        }
    }
    fn datum(self) -> Datum<'static> {
        Datum::Interval(self)
    }
    fn of_datum(datum: Datum<'_>) -> Interval {
        match datum {
            Datum::Interval(v) => v,
            _ => Interval::default(),
        }
    }
}

/// Runs an expression with `$t` bound to the native type of a physical type that is not a string.
macro_rules! with_fixed {
    ($physical:expr, $t:ident => $body:expr, $strings:expr) => {
        match $physical {
            entasis_vector::PhysicalType::Bool | entasis_vector::PhysicalType::U8 => {
                type $t = u8;
                $body
            }
            entasis_vector::PhysicalType::I8 => {
                type $t = i8;
                $body
            }
            entasis_vector::PhysicalType::I16 => {
                type $t = i16;
                $body
            }
            entasis_vector::PhysicalType::I32 => {
                type $t = i32;
                $body
            }
            entasis_vector::PhysicalType::I64 => {
                type $t = i64;
                $body
            }
            entasis_vector::PhysicalType::I128 => {
                type $t = i128;
                $body
            }
            entasis_vector::PhysicalType::U16 => {
                type $t = u16;
                $body
            }
            entasis_vector::PhysicalType::U32 => {
                type $t = u32;
                $body
            }
            entasis_vector::PhysicalType::U64 => {
                type $t = u64;
                $body
            }
            entasis_vector::PhysicalType::F32 => {
                type $t = f32;
                $body
            }
            entasis_vector::PhysicalType::F64 => {
                type $t = f64;
                $body
            }
            entasis_vector::PhysicalType::Interval => {
                type $t = entasis_vector::Interval;
                $body
            }
            entasis_vector::PhysicalType::Str => $strings,
        }
    };
}
pub(crate) use with_fixed;

/// Runs an expression with `$t` bound to the native type of integers of up to 64 bits.
macro_rules! with_integer {
    ($physical:expr, $t:ident => $body:expr) => {{
        macro_rules! of {
            ($native:ty) => {{
                type $t = $native;
                $body
            }};
        }
        match $physical {
            entasis_vector::PhysicalType::Bool | entasis_vector::PhysicalType::U8 => of!(u8),
            entasis_vector::PhysicalType::I8 => of!(i8),
            entasis_vector::PhysicalType::I16 => of!(i16),
            entasis_vector::PhysicalType::I32 => of!(i32),
            entasis_vector::PhysicalType::I64 => of!(i64),
            entasis_vector::PhysicalType::U16 => of!(u16),
            entasis_vector::PhysicalType::U32 => of!(u32),
            entasis_vector::PhysicalType::U64 => of!(u64),
            other => unreachable!("{other:?} is no integer of up to 64 bits"),
        }
    }};
}
pub(crate) use with_integer;
