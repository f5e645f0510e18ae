//! Values in a form with the same order, so that three kinds of search suffice for all types.
//!
//! | form | values |
//! |---|---|
//! | 64 bits | integers, dates, timestamps, decimals of up to 18 digits, booleans, [ordinals of floats](float_ordinal) |
//! | 128 bits | wide decimals, unsigned integers of 64 bits, intervals (by their estimate) |
//! | text | strings and bytes, which stay where they are |
//!
//! The form is that of the kept side. A bound outside its range becomes its least or greatest number, which
//! no value of such a type has.

use entasis_vector::value::float_ordinal;
use entasis_vector::{Interval, Native, PhysicalType, StringView, Vector};

/// A list of values. See the module.
pub(crate) enum Ordinals {
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
    Text(Vec<StringView>),
}

impl Default for Ordinals {
    fn default() -> Ordinals {
        Ordinals::Narrow(Vec::new())
    }
}

impl Ordinals {
    /// No values yet, in the form of this physical type, with room for `count`.
    pub(super) fn new(physical: PhysicalType, count: usize) -> Ordinals {
        match physical {
            PhysicalType::Str => Ordinals::Text(Vec::with_capacity(count)),
            PhysicalType::I128 | PhysicalType::U64 | PhysicalType::Interval => {
                Ordinals::Wide(Vec::with_capacity(count))
            }
            _ => Ordinals::Narrow(Vec::with_capacity(count)),
        }
    }

    /// Bytes of a value of this physical type.
    pub(super) fn width(physical: PhysicalType) -> usize {
        match Ordinals::new(physical, 0) {
            Ordinals::Narrow(_) => size_of::<i64>(),
            Ordinals::Wide(_) => size_of::<i128>(),
            Ordinals::Text(_) => size_of::<StringView>(),
        }
    }

    /// Replaces the contents with the first `rows` values of `vector`, in the form of `like`.
    pub(super) fn take(&mut self, vector: &Vector, rows: usize, like: &Ordinals) {
        match (&mut *self, like) {
            (Ordinals::Narrow(all), Ordinals::Narrow(_)) => all.clear(),
            (Ordinals::Wide(all), Ordinals::Wide(_)) => all.clear(),
            (Ordinals::Text(all), Ordinals::Text(_)) => all.clear(),
            (_, Ordinals::Narrow(_)) => *self = Ordinals::Narrow(Vec::new()),
            (_, Ordinals::Wide(_)) => *self = Ordinals::Wide(Vec::new()),
            (_, Ordinals::Text(_)) => *self = Ordinals::Text(Vec::new()),
        }
        self.extend(vector, rows);
    }

    /// Adds the first `rows` values of a flat vector; NULLs become arbitrary values.
    pub(super) fn extend(&mut self, vector: &Vector, rows: usize) {
        match self {
            Ordinals::Text(all) => all.extend_from_slice(&vector.values::<StringView>()[..rows]),
            Ordinals::Narrow(all) => {
                extend(vector, rows, |value| all.push(value.clamp(i64::MIN.into(), i64::MAX.into()) as i64));
            }
            Ordinals::Wide(all) => extend(vector, rows, |value| all.push(value)),
        }
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Ordinals::Narrow(all) => all.capacity() * size_of::<i64>(),
            Ordinals::Wide(all) => all.capacity() * size_of::<i128>(),
            Ordinals::Text(all) => all.capacity() * size_of::<StringView>(),
        }
    }
}

/// Calls `add` with the number of each value.
fn extend(vector: &Vector, rows: usize, mut add: impl FnMut(i128)) {
    macro_rules! integers {
        ($t:ty) => {
            each(vector, rows, |v: $t| add(v.into()))
        };
    }
    match vector.physical() {
        PhysicalType::Bool | PhysicalType::U8 => integers!(u8),
        PhysicalType::I8 => integers!(i8),
        PhysicalType::I16 => integers!(i16),
        PhysicalType::I32 => integers!(i32),
        PhysicalType::I64 => integers!(i64),
        PhysicalType::I128 => integers!(i128),
        PhysicalType::U16 => integers!(u16),
        PhysicalType::U32 => integers!(u32),
        PhysicalType::U64 => integers!(u64),
        PhysicalType::F32 => each(vector, rows, |v: f32| add(float_ordinal(v.into()).into())),
        PhysicalType::F64 => each(vector, rows, |v: f64| add(float_ordinal(v).into())),
        PhysicalType::Interval => each(vector, rows, |v: Interval| add(v.estimate())),
        PhysicalType::Str => unreachable!("both sides of a comparison have one type"),
    }
}

fn each<T: Native>(vector: &Vector, rows: usize, mut see: impl FnMut(T)) {
    vector.values::<T>()[..rows].iter().for_each(|&value| see(value));
}
