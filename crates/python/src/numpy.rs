//! The columns of a result in the memory format of numpy's arrays, which `_numpy.py` makes arrays of.
//!
//! | SQL | numpy |
//! |---|---|
//! | BOOLEAN, integers, REAL, DOUBLE | the type of the same width |
//! | DECIMAL | `float64` |
//! | DATE, TIMESTAMP, TIMESTAMP_NS, TIMESTAMPTZ | `datetime64` of days, micro- or nanoseconds, in UTC |
//! | INTERVAL | `timedelta64` of microseconds, a month as 30 days |
//! | all others | objects of Python |

use crate::errors::DataError;
use crate::values;
use entasis::Rows;
use entasis_vector::types::{MICROS_PER_DAY, pow10};
use entasis_vector::{DataType, Interval, Value};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

/// A column: name, numpy's name of the type, the values as bytes or in a list, and a byte for each row that
/// is 1 for NULL, if there is one.
pub type ArrayColumn<'py> = (String, &'static str, Bound<'py, PyAny>, Option<Bound<'py, PyByteArray>>);

/// The columns of a result.
///
/// # Errors
/// Data, if an interval is too long; those of Python.
pub fn columns<'py>(py: Python<'py>, rows: &Rows) -> PyResult<Vec<ArrayColumn<'py>>> {
    let column = |(at, field): (usize, &entasis::Field)| {
        let dtype = dtype(field.ty);
        let (mut bytes, mut objects, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
        for chunk in rows.chunks() {
            for row in 0..chunk.len() {
                let value = chunk.value(row, at, field.ty);
                nulls.push(u8::from(value.is_null()));
                match dtype {
                    "O" => objects.push(values::to_python(py, &value, field.ty)?),
                    _ => write(&value, field.ty, dtype, &mut bytes)?,
                }
            }
        }
        let data = match dtype {
            "O" => PyList::new(py, objects)?.into_any(),
            _ => PyByteArray::new(py, &bytes).into_any(),
        };
        let nulls = nulls.contains(&1).then(|| PyByteArray::new(py, &nulls));
        Ok((field.name.to_string(), dtype, data, nulls))
    };
    rows.schema().iter().enumerate().map(column).collect()
}

/// Numpy's name of the type, in the machine's byte order.
fn dtype(ty: DataType) -> &'static str {
    match ty {
        DataType::Boolean => "?",
        DataType::Int8 => "i1",
        DataType::Int16 => "i2",
        DataType::Int32 => "i4",
        DataType::Int64 => "i8",
        DataType::UInt8 => "u1",
        DataType::UInt16 => "u2",
        DataType::UInt32 => "u4",
        DataType::UInt64 => "u8",
        DataType::Float32 => "f4",
        DataType::Float64 | DataType::Decimal { .. } => "f8",
        DataType::Date => "datetime64[D]",
        DataType::Timestamp | DataType::TimestampTz => "datetime64[us]",
        DataType::TimestampNs => "datetime64[ns]",
        DataType::Interval => "timedelta64[us]",
        _ => "O",
    }
}

/// Appends the bytes of a value; zeros for NULL.
fn write(value: &Value, ty: DataType, dtype: &str, out: &mut Vec<u8>) -> PyResult<()> {
    let number = match value {
        Value::Integer(v) => *v,
        Value::Boolean(v) => i128::from(*v),
        Value::Interval(v) => i128::from(micros(*v)?),
        Value::Float(v) => {
            match dtype {
                "f4" => out.extend((*v as f32).to_ne_bytes()),
                _ => out.extend(v.to_ne_bytes()),
            }
            return Ok(());
        }
        _ => 0,
    };
    match dtype {
        "?" | "i1" | "u1" => out.push(number as u8),
        "i2" | "u2" => out.extend((number as u16).to_ne_bytes()),
        "i4" | "u4" => out.extend((number as u32).to_ne_bytes()),
        "f4" => out.extend((number as f32).to_ne_bytes()),
        "f8" => {
            let scale = if let DataType::Decimal { scale, .. } = ty { scale } else { 0 };
            out.extend((number as f64 / pow10(scale) as f64).to_ne_bytes());
        }
        _ => out.extend((number as u64).to_ne_bytes()),
    }
    Ok(())
}

fn micros(interval: Interval) -> PyResult<i64> {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    i64::try_from(days * i128::from(MICROS_PER_DAY) + i128::from(interval.micros))
        .map_err(|_| DataError::new_err("an INTERVAL is too long for a timedelta64: 292,000 years"))
}
