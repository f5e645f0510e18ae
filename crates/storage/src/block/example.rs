//! Examples of encodings: values that an encoding is for. Costs are measured with them, and tests begin.

use crate::definition::Compression;
use entasis_vector::{DataType, Value};

/// A column that has an encoding.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The name of the encoding.
    pub encoding: &'static str,
    /// What forces the encoding, or chooses it.
    pub compression: Compression,
    /// The type of the column.
    pub ty: DataType,
    /// The value of a row.
    pub value: fn(usize) -> Value,
    /// Nanoseconds of a value that a condition looks at, with its bytes in the cache, on one machine
    /// (`bench/record/costs-2026-11-22.txt`).
    pub nanoseconds: f64,
}

impl Example {
    /// Of 64-bit integers.
    pub(super) const fn of_integers(
        encoding: &'static str,
        compression: Compression,
        nanoseconds: f64,
        value: fn(usize) -> Value,
    ) -> Example {
        Example { encoding, compression, ty: DataType::Int64, value, nanoseconds }
    }

    /// Of doubles.
    pub(super) const fn of_doubles(
        encoding: &'static str,
        compression: Compression,
        nanoseconds: f64,
        value: fn(usize) -> Value,
    ) -> Example {
        Example { encoding, compression, ty: DataType::Float64, value, nanoseconds }
    }

    /// Of texts.
    pub(super) const fn of_texts(
        encoding: &'static str,
        compression: Compression,
        nanoseconds: f64,
        value: fn(usize) -> Value,
    ) -> Example {
        Example { encoding, compression, ty: DataType::Varchar, value, nanoseconds }
    }
}

/// A number below a million for each row, in no order.
pub(super) fn scattered(row: usize) -> i128 {
    (row as i128 * 2_654_435_761) % 1_000_003
}

/// A text as a value.
pub(super) fn text(text: String) -> Value {
    Value::Text(text.into())
}
