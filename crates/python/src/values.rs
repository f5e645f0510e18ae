//! Cells of a result as values of Python; for the other direction see [`crate::from_python`].
//!
//! | SQL | Python |
//! |---|---|
//! | BOOLEAN, integers, REAL and DOUBLE, VARCHAR, BLOB | `bool`, `int`, `float`, `str`, `bytes` |
//! | DECIMAL, UUID | `decimal.Decimal`, `uuid.UUID`; DECIMAL(38,0) is an `int` |
//! | DATE, TIME, TIMESTAMP | `datetime.date`, `time`, `datetime` |
//! | TIME WITH TIME ZONE | `datetime.time` with its offset |
//! | TIMESTAMP WITH TIME ZONE | `datetime.datetime` in UTC |
//! | INTERVAL | `datetime.timedelta`, a month as 30 days |
//! | LIST and `T[n]`, STRUCT, MAP | `list`, `dict`, `dict` (pairs, if a key has no hash) |
//!
//! Dates that Python cannot represent (before the year 1, after 9999) are returned as text.

use crate::errors::raised;
use entasis_vector::expr::calendar::micros_of;
use entasis_vector::time_tz;
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::value::{civil_from_days, nested};
use entasis_vector::{Chunk, DataType, Encoding, Field, PhysicalType, Schema, StringView, Value, Vector};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList, PyString, PyTime, PyTuple,
    PyType, PyTzInfo,
};

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The most days of a `timedelta`.
const MOST_DAYS: i32 = 999_999_999;

/// A row of a chunk whose columns are those of `schema`.
///
/// # Errors
/// Those of Python.
pub fn row<'py>(
    py: Python<'py>,
    chunk: &Chunk,
    row: usize,
    schema: &Schema,
) -> PyResult<Bound<'py, PyTuple>> {
    let cell = |(at, field): (usize, &Field)| {
        let position = chunk.positions(at).map_or(row, |positions| positions[row].into());
        cell(py, chunk.vector(at), position, field.ty)
    };
    let cells = schema.iter().enumerate().map(cell).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, cells)
}

/// One cell. PERF: those of the commonest types without a [`Value`] in between.
fn cell<'py>(py: Python<'py>, vector: &Vector, position: usize, ty: DataType) -> PyResult<Bound<'py, PyAny>> {
    if vector.encoding() != Encoding::Flat {
        return to_python(py, &vector.value(position, ty), ty);
    }
    if !vector.is_valid(position) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match (ty, vector.physical()) {
        (DataType::Int64, PhysicalType::I64) => PyInt::new(py, vector.values::<i64>()[position]).into_any(),
        (DataType::Int32, PhysicalType::I32) => PyInt::new(py, vector.values::<i32>()[position]).into_any(),
        (DataType::Float64, PhysicalType::F64) => {
            PyFloat::new(py, vector.values::<f64>()[position]).into_any()
        }
        (DataType::Varchar, PhysicalType::Str) => {
            PyString::new(py, vector.values::<StringView>()[position].as_str()).into_any()
        }
        _ => to_python(py, &vector.value(position, ty), ty)?,
    })
}

/// A single value of type `ty`.
///
/// # Errors
/// Those of Python.
pub fn to_python<'py>(py: Python<'py>, value: &Value, ty: DataType) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Boolean(v) => PyBool::new(py, *v).to_owned().into_any(),
        Value::Float(v) => PyFloat::new(py, *v).into_any(),
        Value::Text(v) => PyString::new(py, v).into_any(),
        Value::Bytes(v) => from_bytes(py, v, ty)?,
        Value::Interval(v) => {
            let rest = v.micros.rem_euclid(MICROS_PER_DAY);
            let days = i64::from(v.days) + i64::from(v.months) * 30 + v.micros.div_euclid(MICROS_PER_DAY);
            // Like dates, spans that Python does not have become text.
            match i32::try_from(days).ok().filter(|days| days.abs() <= MOST_DAYS) {
                Some(days) => {
                    PyDelta::new(py, days, (rest / 1_000_000) as i32, (rest % 1_000_000) as i32, true)?
                        .into_any()
                }
                None => text(py, value, ty),
            }
        }
        Value::Integer(v) => from_integer(py, value, *v, ty)?,
    })
}

/// A value that is bytes as an object of Python: a list, a dict or bytes.
fn from_bytes<'py>(py: Python<'py>, bytes: &[u8], ty: DataType) -> PyResult<Bound<'py, PyAny>> {
    Ok(match ty {
        DataType::List(element) | DataType::Array(element, _) => {
            let elements = nested::elements(bytes, *element).map_err(|error| raised(&error))?;
            let list = elements.iter().map(|value| to_python(py, value, *element));
            PyList::new(py, list.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        DataType::Map(entry) => entries(py, bytes, *entry)?,
        DataType::Struct(fields) => {
            let values = nested::fields(bytes, fields).map_err(|error| raised(&error))?;
            let dict = PyDict::new(py);
            for (field, value) in fields.iter().zip(&values) {
                dict.set_item(field.name, to_python(py, value, field.ty)?)?;
            }
            dict.into_any()
        }
        _ => PyBytes::new(py, bytes).into_any(),
    })
}

/// A value that is an integer inside, `v`, as an object of Python: a number, a date or a time.
fn from_integer<'py>(py: Python<'py>, value: &Value, v: i128, ty: DataType) -> PyResult<Bound<'py, PyAny>> {
    Ok(match ty {
        // HUGEINT, and the type of a sum of BIGINTs.
        DataType::Decimal { precision: 38, scale: 0 } => v.into_pyobject(py)?.into_any(),
        DataType::Decimal { .. } => {
            DECIMAL.import(py, "decimal", "Decimal")?.call1((value.display(ty).to_string(),))?
        }
        DataType::Enum(_) => text(py, value, ty),
        DataType::Uuid => {
            let named = PyDict::new(py);
            named.set_item("int", v as u128)?;
            UUID.import(py, "uuid", "UUID")?.call((), Some(&named))?
        }
        DataType::Date => match civil(v as i64) {
            Some((year, month, day)) => PyDate::new(py, year, month, day)?.into_any(),
            None => text(py, value, ty),
        },
        // Python's days end a microsecond earlier.
        DataType::Time if v == i128::from(MICROS_PER_DAY) => text(py, value, ty),
        DataType::Time => {
            let (hour, minute, second, micros) = clock(v as i64);
            PyTime::new(py, hour, minute, second, micros, None)?.into_any()
        }
        DataType::TimeTz => {
            let (local, offset) = time_tz::unpack(v as i64);
            if local == MICROS_PER_DAY {
                return Ok(text(py, value, ty));
            }
            let zone = PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, offset as i32, 0, true)?)?;
            let (hour, minute, second, micros) = clock(local);
            PyTime::new(py, hour, minute, second, micros, Some(&zone))?.into_any()
        }
        DataType::Timestamp => instant(py, value, ty, v as i64, None)?,
        // Python's moments have microseconds.
        DataType::TimestampNs => instant(py, value, ty, micros_of(v as i64), None)?,
        DataType::TimestampTz => {
            let utc = PyTzInfo::utc(py)?;
            instant(py, value, ty, v as i64, Some(&utc))?
        }
        _ => match i64::try_from(v) {
            Ok(v) => v.into_pyobject(py)?.into_any(),
            Err(_) => v.into_pyobject(py)?.into_any(),
        },
    })
}

/// A map: a `dict`, or a list of pairs if a key has no hash, as a list has none.
fn entries<'py>(py: Python<'py>, map: &[u8], entry: DataType) -> PyResult<Bound<'py, PyAny>> {
    let entries = nested::elements(map, entry).map_err(|error| raised(&error))?;
    let mut pairs = Vec::with_capacity(entries.len());
    for own in &entries {
        if let (Value::Bytes(bytes), DataType::Struct(fields)) = (own, entry) {
            let values = nested::fields(bytes, fields).map_err(|error| raised(&error))?;
            let values = values.iter().zip(fields).map(|(value, field)| to_python(py, value, field.ty));
            pairs.push(PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?);
        }
    }
    let have_hashes = |pair: &Bound<'_, PyTuple>| pair.get_item(0).is_ok_and(|key| key.hash().is_ok());
    if !pairs.iter().all(have_hashes) {
        return Ok(PyList::new(py, pairs)?.into_any());
    }
    let dict = PyDict::new(py);
    for pair in pairs {
        dict.set_item(pair.get_item(0)?, pair.get_item(1)?)?;
    }
    Ok(dict.into_any())
}

fn text<'py>(py: Python<'py>, value: &Value, ty: DataType) -> Bound<'py, PyAny> {
    PyString::new(py, &value.display(ty).to_string()).into_any()
}

/// Year, month and day, if Python can represent the year.
fn civil(days: i64) -> Option<(i32, u8, u8)> {
    let (year, month, day) = civil_from_days(days);
    (1..=9999).contains(&year).then_some((year as i32, month as u8, day as u8))
}

/// Hour, minute, second and microsecond of a time of day.
fn clock(micros: i64) -> (u8, u8, u8, u32) {
    let seconds = micros / 1_000_000;
    ((seconds / 3600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8, (micros % 1_000_000) as u32)
}

fn instant<'py>(
    py: Python<'py>,
    value: &Value,
    ty: DataType,
    micros: i64,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((year, month, day)) = civil(micros.div_euclid(MICROS_PER_DAY)) else {
        return Ok(text(py, value, ty));
    };
    let (hour, minute, second, fraction) = clock(micros.rem_euclid(MICROS_PER_DAY));
    Ok(PyDateTime::new(py, year, month, day, hour, minute, second, fraction, zone)?.into_any())
}
