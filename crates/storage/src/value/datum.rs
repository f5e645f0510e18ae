//! A datum: one value as a column holds it, borrowed. What single-row operations hand around.
//!
//! Unlike a [`Value`] it is cheap to copy and owns nothing; unlike a slot it does not care for encodings and
//! widths. Booleans are 0 and 1; a UUID is its number with the top bit flipped, as in a vector, so that order
//! is byte order.

use super::hash::{hash_bytes, hash_word};
use entasis_vector::value::{canonical_bits, cmp_float};
use entasis_vector::vector::uuid_from_ordered;
use entasis_vector::{DataType, Encoding, Interval, PhysicalType, StringView, Value, Vector};
use std::cmp::Ordering;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub enum Datum<'a> {
    /// NULL of any type.
    Null,
    /// Whatever is an integer inside.
    Integer(i128),
    /// REAL and DOUBLE.
    Float(f64),
    /// INTERVAL.
    Interval(Interval),
    /// VARCHAR, BLOB and nested values.
    Bytes(&'a [u8]),
}

impl<'a> Datum<'a> {
    /// True for NULL.
    pub fn is_null(self) -> bool {
        matches!(self, Datum::Null)
    }

    /// The value at `position` of a vector.
    #[inline]
    pub fn of_vector(vector: &'a Vector, position: usize) -> Datum<'a> {
        if !vector.is_valid(position) {
            return Datum::Null;
        }
        let (vector, position) = match vector.encoding() {
            Encoding::Flat => (vector, position),
            Encoding::Constant => (vector, 0),
            Encoding::Dictionary => {
                let dictionary = vector.dictionary().expect("a dictionary vector has one");
                (dictionary.values(), vector.codes()[position] as usize)
            }
        };
        match vector.physical() {
            PhysicalType::Bool | PhysicalType::U8 => Datum::Integer(vector.values::<u8>()[position].into()),
            PhysicalType::I8 => Datum::Integer(vector.values::<i8>()[position].into()),
            PhysicalType::I16 => Datum::Integer(vector.values::<i16>()[position].into()),
            PhysicalType::I32 => Datum::Integer(vector.values::<i32>()[position].into()),
            PhysicalType::I64 => Datum::Integer(vector.values::<i64>()[position].into()),
            PhysicalType::I128 => Datum::Integer(vector.values::<i128>()[position]),
            PhysicalType::U16 => Datum::Integer(vector.values::<u16>()[position].into()),
            PhysicalType::U32 => Datum::Integer(vector.values::<u32>()[position].into()),
            PhysicalType::U64 => Datum::Integer(vector.values::<u64>()[position].into()),
            PhysicalType::F32 => Datum::Float(vector.values::<f32>()[position].into()),
            PhysicalType::F64 => Datum::Float(vector.values::<f64>()[position]),
            PhysicalType::Interval => Datum::Interval(vector.values::<Interval>()[position]),
            PhysicalType::Str => Datum::Bytes(vector.values::<StringView>()[position].as_bytes()),
        }
    }

    /// A value of type `ty`.
    pub fn of_value(value: &'a Value, ty: DataType) -> Datum<'a> {
        match value {
            Value::Null => Datum::Null,
            Value::Boolean(v) => Datum::Integer((*v).into()),
            Value::Integer(v) if ty == DataType::Uuid => Datum::Integer(v ^ i128::MIN),
            Value::Integer(v) => Datum::Integer(*v),
            Value::Float(v) => Datum::Float(*v),
            Value::Text(v) => Datum::Bytes(v.as_bytes()),
            Value::Bytes(v) => Datum::Bytes(v),
            Value::Interval(v) => Datum::Interval(*v),
        }
    }

    /// The value under its type.
    pub fn value(self, ty: DataType) -> Value {
        match self {
            Datum::Null => Value::Null,
            Datum::Integer(v) => match ty {
                DataType::Boolean => Value::Boolean(v != 0),
                DataType::Uuid => Value::Integer(uuid_from_ordered(v)),
                _ => Value::Integer(v),
            },
            Datum::Float(v) => Value::Float(v),
            Datum::Interval(v) => Value::Interval(v),
            Datum::Bytes(v) if ty == DataType::Blob || ty.is_nested() => Value::Bytes(Arc::from(v)),
            // VARCHAR and JSON hold UTF-8 by invariant, so nothing is ever replaced here.
            Datum::Bytes(v) => Value::Text(Arc::from(&*String::from_utf8_lossy(v))),
        }
    }

    /// The order of two values of one type, as SQL sorts them; NULL is greatest, NaN is greater than any
    /// number.
    pub fn total_cmp(self, other: Datum<'_>) -> Ordering {
        match (self, other) {
            (Datum::Integer(a), Datum::Integer(b)) => a.cmp(&b),
            (Datum::Float(a), Datum::Float(b)) => cmp_float(a, b),
            (Datum::Interval(a), Datum::Interval(b)) => a.cmp(&b),
            (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
            (a, b) => a.is_null().cmp(&b.is_null()),
        }
    }

    /// True if the two cannot be told apart, not even by their signs or parts as equal floats and intervals
    /// may be.
    pub fn is_same(self, other: Datum<'_>) -> bool {
        match (self, other) {
            (Datum::Float(a), Datum::Float(b)) => a.to_bits() == b.to_bits(),
            (Datum::Interval(a), Datum::Interval(b)) => {
                (a.months, a.days, a.micros) == (b.months, b.days, b.micros)
            }
            (a, b) => a.total_cmp(b).is_eq(),
        }
    }

    /// The order of a value that is not NULL and a bound of a zone, which is not NULL either.
    #[inline]
    pub(crate) fn cmp_bound(self, bound: &Value) -> Ordering {
        match (self, bound) {
            (Datum::Integer(a), Value::Integer(b)) => a.cmp(b),
            (Datum::Integer(a), Value::Boolean(b)) => a.cmp(&(*b).into()),
            (Datum::Float(a), Value::Float(b)) => cmp_float(a, *b),
            (Datum::Interval(a), Value::Interval(b)) => a.cmp(b),
            (Datum::Bytes(a), Value::Text(b)) => a.cmp(b.as_bytes()),
            (Datum::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (datum, bound) => unreachable!("{datum:?} and {bound:?} are not of one type"),
        }
    }

    /// Equal for equal values, and equal to the hash that builders give to the sketches. Not for NULL.
    pub fn hash(self) -> u64 {
        let integer = |v: i128| {
            let high = (v >> 64) as u64;
            hash_word(v as u64 ^ if high == (v as i64 >> 63) as u64 { 0 } else { hash_word(high) })
        };
        match self {
            Datum::Null => 0,
            // An unsigned word has no high half, whatever its top bit is.
            Datum::Integer(v) if u64::try_from(v).is_ok() => hash_word(v as u64),
            Datum::Integer(v) => integer(v),
            Datum::Float(v) => hash_word(canonical_bits(v)),
            Datum::Interval(v) => integer(v.estimate()),
            Datum::Bytes(v) => hash_bytes(v),
        }
    }
}
