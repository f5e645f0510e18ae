//! Normalized layout keys: one word, or a string of bytes, whose order is that of the rows.
//!
//! A key of one column that fits is a *word*: an integer with its sign bit flipped, or a float's bits,
//! transformed so that they compare like the numbers; NULL is the greatest word, if there is one to spare.
//! A key of several columns in the order of a space-filling curve is the position of the row on it (`curve`).
//! All other keys are *bytes*. Each column has a marker (0 for a value, 1 for NULL, which is so the
//! greatest), then big-endian bytes; strings end with two zeroes and have their own zeroes escaped, so that
//! none is a prefix of another.
//!
//! Files have fences in this form, so it must not change.
//!
//! Equal values have equal keys (0.0 and -0.0, all NaNs, intervals of equal length); on a curve, so may have
//! different ones. A key only says where a row may be; [`crate::write`] compares the columns.

mod curve;
mod fences;
mod search;

pub(crate) use curve::{Bounds, CurveKey, GRID_ROWS, GRID_SAMPLE, Grid};
pub(crate) use fences::Fences;
pub(crate) use search::{NEAR, count_not_above};

use crate::definition::Curve;
use crate::value::Datum;
use entasis_vector::value::canonical_bits;
use entasis_vector::{DataType, PhysicalType, Schema};
use std::sync::Arc;

/// A key in normal form. Keys of one table are of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A key of one column of at most eight bytes, or a position on a curve.
    Word(u64),
    /// Any other.
    Bytes(Arc<[u8]>),
}

impl Key {
    /// Bytes of memory besides the key itself.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Key::Word(_) => 0,
            // And two counters.
            Key::Bytes(bytes) => bytes.len() + 2 * size_of::<usize>(),
        }
    }
}

/// The columns that a table is laid out by.
#[derive(Debug, Clone)]
pub(crate) struct LayoutKey {
    pub(crate) columns: Vec<usize>,
    types: Vec<DataType>,
    is_word: bool,
    /// Where rows are on their curve, if they are in the order of one.
    pub(crate) curve: Option<CurveKey>,
}

impl LayoutKey {
    pub(crate) fn new(columns: &[usize], curve: Option<Curve>, schema: &Schema) -> LayoutKey {
        let types: Vec<DataType> = columns.iter().map(|&column| schema[column].ty).collect();
        let is_word = match (columns, types.as_slice()) {
            _ if curve.is_some() => true,
            (&[column], [ty]) => match ty.physical() {
                PhysicalType::I128 | PhysicalType::Str | PhysicalType::Interval => false,
                // There is no word above the greatest.
                PhysicalType::I64 | PhysicalType::U64 => !schema[column].nullable,
                _ => true,
            },
            _ => false,
        };
        LayoutKey { columns: columns.to_vec(), types, is_word, curve: curve.map(CurveKey::new) }
    }

    /// True if keys of the other, whose columns may stand elsewhere, are in the same form. On a curve they
    /// also need the same grid ([`LayoutKey::adopt`]).
    pub(crate) fn has_form_of(&self, other: &LayoutKey) -> bool {
        let curve = |key: &LayoutKey| key.curve.as_ref().map(CurveKey::curve);
        (&self.types, self.is_word, curve(self)) == (&other.types, other.is_word, curve(other))
    }

    /// The types of its columns.
    pub(crate) fn types(&self) -> &[DataType] {
        &self.types
    }

    /// Takes the grid of a key of the same form over, before there is a row.
    pub(crate) fn adopt(&self, other: &LayoutKey) {
        if let (Some(own), Some(other)) = (&self.curve, &other.curve) {
            own.adopt(other.grid());
        }
    }

    /// Makes the grid of a curve of a sample, for each column of the key its values. It says nothing if keys
    /// have been computed before.
    pub(crate) fn settle<'a>(&self, sample: impl FnOnce() -> Vec<Vec<Datum<'a>>>) {
        if let Some(curve) = &self.curve {
            curve.settle(&self.types, sample);
        }
    }

    /// A key that is not greater than any key of a row.
    pub(crate) fn least(&self) -> Key {
        if self.is_word { Key::Word(0) } else { Key::Bytes(Arc::from([])) }
    }

    /// An empty list of fences for keys of this kind.
    pub(crate) fn no_fences(&self) -> Fences {
        if self.is_word { Fences::Words(Vec::new()) } else { Fences::Bytes(Vec::new()) }
    }

    /// The key of a row; `get` gives its columns.
    #[inline]
    pub(crate) fn of_row<'a>(&self, get: impl Fn(usize) -> Datum<'a>) -> Key {
        if let Some(curve) = &self.curve {
            return Key::Word(curve.position(&self.types, |number| get(self.columns[number])));
        }
        if self.is_word {
            return Key::Word(word(get(self.columns[0]), self.types[0]));
        }
        let mut bytes = Vec::with_capacity(32);
        self.push_row(get, &mut bytes);
        Key::Bytes(bytes.into())
    }

    /// Adds the bytes of a row's key; `get` gives its columns.
    #[inline]
    pub(crate) fn push_row<'a>(&self, get: impl Fn(usize) -> Datum<'a>, bytes: &mut Vec<u8>) {
        for (&column, &ty) in self.columns.iter().zip(&self.types) {
            push(get(column), ty, bytes);
        }
    }

    /// The key with the columns `datums`. If these are fewer than the key's columns, the least key that
    /// begins with them, on a curve the least of all.
    pub(crate) fn of_datums(&self, datums: &[Datum<'_>]) -> Key {
        if let Some(curve) = &self.curve {
            let is_whole = datums.len() == self.columns.len();
            return Key::Word(if is_whole {
                curve.position(&self.types, |number| datums[number])
            } else {
                0
            });
        }
        if self.is_word {
            return datums.first().map_or(Key::Word(0), |&datum| Key::Word(word(datum, self.types[0])));
        }
        let mut bytes = Vec::with_capacity(32);
        datums.iter().zip(&self.types).for_each(|(&datum, &ty)| push(datum, ty, &mut bytes));
        Key::Bytes(bytes.into())
    }

    /// The key with the columns `datums`. If these are fewer than the key's columns, one above all keys that
    /// begin with them, on a curve above all.
    pub(crate) fn last_of(&self, datums: &[Datum<'_>]) -> Key {
        match self.of_datums(datums) {
            Key::Word(_) if self.curve.is_some() && datums.len() < self.columns.len() => Key::Word(u64::MAX),
            Key::Bytes(bytes) if datums.len() < self.columns.len() => {
                Key::Bytes(bytes.iter().copied().chain([u8::MAX]).collect())
            }
            key => key,
        }
    }
}

/// The word of a key of one column.
#[inline]
fn word(datum: Datum<'_>, ty: DataType) -> u64 {
    match (datum, ty.physical()) {
        (Datum::Null, _) => u64::MAX,
        (Datum::Integer(v), PhysicalType::U64) => v as u64,
        (Datum::Integer(v), _) => (v as i64 as u64) ^ (1 << 63),
        // Half of it suffices for a REAL, and below all bits set there are only NaNs.
        (Datum::Float(v), _) => float_word(v),
        (datum, ty) => unreachable!("{datum:?} is no word of {ty:?}"),
    }
}

/// A word that compares like the float; NaN is greatest.
fn float_word(v: f64) -> u64 {
    let bits = canonical_bits(v);
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

fn push(datum: Datum<'_>, ty: DataType, bytes: &mut Vec<u8>) {
    bytes.push(u8::from(datum.is_null()));
    let integer = |v: i128| ((v as u128) ^ (1 << 127)).to_be_bytes();
    match datum {
        Datum::Null => {}
        Datum::Integer(v) if ty.physical() == PhysicalType::I128 => bytes.extend(integer(v)),
        Datum::Integer(v) => bytes.extend(word(Datum::Integer(v), ty).to_be_bytes()),
        Datum::Float(v) => bytes.extend(float_word(v).to_be_bytes()),
        Datum::Interval(v) => bytes.extend(integer(v.estimate())),
        Datum::Bytes(text) => {
            for &byte in text {
                bytes.push(byte);
                if byte == 0 {
                    bytes.push(0xFF);
                }
            }
            bytes.extend([0, 0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::{Field, Interval};

    #[test]
    fn keys_order_as_their_values_do() {
        let interval = |days, micros| Datum::Interval(Interval { months: 0, days, micros });
        let cases: Vec<(DataType, Vec<Datum<'_>>)> = vec![
            (DataType::Int32, [i32::MIN, -1, 0, 7, i32::MAX].map(|v| Datum::Integer(v.into())).to_vec()),
            (DataType::Int64, [i64::MIN, -1, 0, 7, i64::MAX].map(|v| Datum::Integer(v.into())).to_vec()),
            (DataType::UInt64, [0, 7, u64::MAX].map(|v| Datum::Integer(v.into())).to_vec()),
            (DataType::Uuid, [i128::MIN, -9, 0, i128::MAX].map(Datum::Integer).to_vec()),
            (
                DataType::Float64,
                [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, f64::INFINITY, f64::NAN]
                    .map(Datum::Float)
                    .to_vec(),
            ),
            (
                DataType::Interval,
                vec![interval(-1, 0), interval(0, 5), interval(1, 0), interval(0, 86_400_000_001)],
            ),
            (
                DataType::Varchar,
                ["", "\0", "\0\0", "\0a", "a", "a\0", "a\0b", "aa", "b"]
                    .map(|t| Datum::Bytes(t.as_bytes()))
                    .to_vec(),
            ),
        ];
        for (ty, mut datums) in cases {
            datums.push(Datum::Null);
            let schema = vec![Field::new("a", ty), Field::new("b", DataType::Int8)];
            for key in [LayoutKey::new(&[0], None, &schema), LayoutKey::new(&[0, 1], None, &schema)] {
                for &a in &datums {
                    for &b in &datums {
                        let keyed =
                            |datum| key.of_row(|column| if column == 0 { datum } else { Datum::Integer(3) });
                        assert_eq!(keyed(a).cmp(&keyed(b)), a.total_cmp(b), "{ty}: {a:?} {b:?}");
                        assert!(key.least() <= keyed(a));
                        assert!(key.of_datums(&[a]) <= keyed(a) && key.last_of(&[a]) >= keyed(a));
                    }
                }
            }
        }
    }
}
