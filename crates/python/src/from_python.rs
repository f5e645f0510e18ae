//! Values of Python as parameters.
//!
//! | Python | SQL |
//! |---|---|
//! | `None`, `pandas.NA`, `pandas.NaT`, numpy's NaT | NULL |
//! | `bool`, `float`, `str`, `bytes` | BOOLEAN, DOUBLE, VARCHAR, BLOB |
//! | `int` | BIGINT; beyond 64 bits DECIMAL |
//! | `decimal.Decimal`, `uuid.UUID` | DECIMAL, UUID |
//! | `date`, `timedelta` | DATE, INTERVAL |
//! | `time`, `datetime` | TIME, TIMESTAMP; with a zone TIMETZ, TIMESTAMPTZ |
//! | scalars of numpy, pandas and pyarrow | what the value of Python is; those of nanoseconds TIMESTAMP_NS |
//! | paths, members of an `Enum` | VARCHAR, their values |
//! | lists, dicts, arrays, columns | lists, structs, maps: see [`crate::nested`] |
//!
//! Everything else is refused by name: no `str()` of an object is ever taken for it.

use crate::errors::{DataError, ProgrammingError, raised};
use crate::nested::Parameter;
use entasis_vector::time_tz;
use entasis_vector::types::{MICROS_PER_DAY, pow10};
use entasis_vector::value::days_from_civil;
use entasis_vector::{DataType, Interval, Value};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyFrozenSet, PyInt, PyList,
    PyMemoryView, PySet, PyString, PyTime, PyTuple, PyType,
};

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static MAP: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static ENUM: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The most digits of a DECIMAL.
const DIGITS: usize = 38;

/// A value with its type.
type Typed = (Value, DataType);

/// One parameter: a value, or a list, which may be meant as several.
///
/// # Errors
/// Programming, if SQL has no type for it; data, if it has no value of that type.
pub fn parameter(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    Ok(match converted(value)? {
        list @ Parameter::List(_) => list,
        single => {
            let (value, ty) = single.value().map_err(|error| raised(&error))?;
            Parameter::Value(value, ty)
        }
    })
}

fn converted(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    if let Some((value, ty)) = plain(value)? {
        return Ok(Parameter::Value(value, ty));
    }
    let is_list = value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>();
    if is_list {
        return value
            .try_iter()?
            .map(|value| converted(&value?))
            .collect::<PyResult<_>>()
            .map(Parameter::List);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return of_dict(dict);
    }
    if let Some((value, ty)) = single(value)? {
        return Ok(Parameter::Value(value, ty));
    }
    match unwrapped(value)? {
        Some(inner) => converted(&inner),
        None => {
            let class = value.get_type().name()?;
            Err(ProgrammingError::new_err(format!(
                "a '{class}' cannot be a parameter: SQL has no type for it"
            )))
        }
    }
}

/// A struct, if all keys are texts and the program does not say that it is a map.
fn of_dict(dict: &Bound<'_, PyDict>) -> PyResult<Parameter> {
    let is_map = dict.is_instance(MAP.import(dict.py(), "entasis._values", "Map")?)?;
    if dict.is_empty() && !is_map {
        return Err(ProgrammingError::new_err(
            "an empty dict cannot be a parameter: a STRUCT has a field; entasis.Map({}) is an empty MAP",
        ));
    }
    if !is_map && dict.keys().iter().all(|key| key.is_instance_of::<PyString>()) {
        let field = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((name.extract::<String>()?, converted(&value)?))
        };
        return dict.iter().map(field).collect::<PyResult<_>>().map(Parameter::Struct);
    }
    let entry =
        |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((converted(&key)?, converted(&value)?));
    dict.iter().map(entry).collect::<PyResult<_>>().map(Parameter::Map)
}

/// What is inside objects of other libraries: the list of an array or a column, the value of a scalar, of a
/// path or of a member of an enumeration.
fn unwrapped<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if value.is_instance(ENUM.import(value.py(), "enum", "Enum")?)? {
        return value.getattr("value").map(Some);
    }
    if value.hasattr("__fspath__")? {
        return value.call_method0("__fspath__").map(Some);
    }
    // numpy's arrays and scalars, and the columns of pandas and polars.
    if value.hasattr("dtype")? {
        // As integers, the moments of an array would lose what they are.
        let kind = value.getattr("dtype")?.getattr_opt("kind")?.map(|kind| kind.to_string());
        if value.get_type().name()? == "ndarray" && kind.is_some_and(|kind| "mM".contains(&kind)) {
            return PyList::new(value.py(), value.try_iter()?.collect::<PyResult<Vec<_>>>()?)
                .map(|list| Some(list.into_any()));
        }
        for method in ["tolist", "to_list"] {
            if value.hasattr(method)? {
                let inner = value.call_method0(method)?;
                return Ok(Some(inner).filter(|inner| !inner.hasattr("dtype").unwrap_or(true)));
            }
        }
    }
    for method in ["to_pylist", "as_py"] {
        if value.hasattr(method)? {
            return value.call_method0(method).map(Some);
        }
    }
    Ok(None)
}

/// A value of one of Python's built-in types, as most are.
fn plain(value: &Bound<'_, PyAny>) -> PyResult<Option<Typed>> {
    if value.is_none() {
        return Ok(Some((Value::Null, DataType::Null)));
    }
    if let Ok(v) = value.cast::<PyBool>() {
        return Ok(Some((Value::Boolean(v.is_true()), DataType::Boolean)));
    }
    if value.is_instance_of::<PyInt>() {
        return integer(value).map(Some);
    }
    if let Ok(v) = value.cast::<PyFloat>() {
        return Ok(Some((Value::Float(v.value()), DataType::Float64)));
    }
    if let Ok(v) = value.cast::<PyString>() {
        return Ok(Some((Value::Text(v.to_cow()?.as_ref().into()), DataType::Varchar)));
    }
    if let Ok(v) = value.cast::<PyBytes>() {
        return Ok(Some((Value::Bytes(v.as_bytes().into()), DataType::Blob)));
    }
    Ok(None)
}

/// A value of the standard library's types, and what other libraries have for moments.
fn single(value: &Bound<'_, PyAny>) -> PyResult<Option<Typed>> {
    let py = value.py();
    let class = value.get_type().name()?.to_string();
    // What pandas has for NULL; NaT is a datetime, too.
    if ["NaTType", "NAType"].contains(&&*class) {
        return Ok(Some((Value::Null, DataType::Null)));
    }
    if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        let bytes = py.get_type::<PyBytes>().call1((value,))?;
        return Ok(Some((Value::Bytes(bytes.cast::<PyBytes>()?.as_bytes().into()), DataType::Blob)));
    }
    // A datetime is a date too.
    if value.is_instance_of::<PyDateTime>() {
        return timestamp(value).map(Some);
    }
    if value.is_instance_of::<PyDate>() {
        return Ok(Some((Value::Integer(days(value)?.into()), DataType::Date)));
    }
    if value.is_instance_of::<PyTime>() {
        return time(value).map(Some);
    }
    if value.is_instance_of::<PyDelta>() {
        return span(value).map(Some);
    }
    if value.is_instance(DECIMAL.import(py, "decimal", "Decimal")?)? {
        return decimal(value).map(Some);
    }
    if value.is_instance(UUID.import(py, "uuid", "UUID")?)? {
        let bits: u128 = value.getattr("int")?.extract()?;
        return Ok(Some((Value::Integer(bits as i128), DataType::Uuid)));
    }
    if ["datetime64", "timedelta64"].contains(&&*class) {
        return of_numpy(value, &class).map(Some);
    }
    Ok(None)
}

/// A moment or a span of numpy. Those of nanoseconds would become plain integers by themselves.
fn of_numpy(value: &Bound<'_, PyAny>, class: &str) -> PyResult<Typed> {
    let unit = value.getattr("dtype")?.getattr("name")?.to_string();
    let finer = ["[ns]", "[ps]", "[fs]", "[as]"].iter().any(|finer| unit.ends_with(finer));
    if finer && class == "datetime64" && value.eq(value)? {
        let nanos: i64 =
            value.call_method1("astype", ("datetime64[ns]",))?.call_method0("item")?.extract()?;
        return Ok((Value::Integer(nanos.into()), DataType::TimestampNs));
    }
    let inner = match unit.ends_with("[D]") {
        true => value.call_method0("item")?,
        false => value.call_method1("astype", (format!("{class}[us]"),))?.call_method0("item")?,
    };
    if inner.is_none() {
        return Ok((Value::Null, DataType::Null));
    }
    match single(&inner)? {
        Some(typed) => Ok(typed),
        None => Err(DataError::new_err(format!("the {class} {value} is outside of what Python represents"))),
    }
}

fn span(value: &Bound<'_, PyAny>) -> PyResult<Typed> {
    let (days, seconds) = (part(value, "days")?, part(value, "seconds")?);
    let micros = seconds * 1_000_000 + part(value, "microseconds")?;
    let days =
        i32::try_from(days).map_err(|_| DataError::new_err("the timedelta is too long for an INTERVAL"))?;
    Ok((Value::Interval(Interval { months: 0, days, micros }), DataType::Interval))
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<Typed> {
    if let Ok(v) = value.extract::<i64>() {
        return Ok((Value::Integer(v.into()), DataType::Int64));
    }
    match value.extract::<i128>() {
        Ok(v) if v.unsigned_abs() < pow10(DIGITS as u8).unsigned_abs() => {
            Ok((Value::Integer(v), DataType::Decimal { precision: DIGITS as u8, scale: 0 }))
        }
        _ => Err(DataError::new_err(format!("the integer has more than {DIGITS} digits"))),
    }
}

fn part(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    value.getattr(name)?.extract()
}

fn days(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let (month, day) = (part(value, "month")? as u32, part(value, "day")? as u32);
    Ok(days_from_civil(part(value, "year")?, month, day))
}

fn time_of_day(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let seconds = (part(value, "hour")? * 60 + part(value, "minute")?) * 60 + part(value, "second")?;
    Ok(seconds * 1_000_000 + part(value, "microsecond")?)
}

fn time(value: &Bound<'_, PyAny>) -> PyResult<Typed> {
    let local = time_of_day(value)?;
    if value.getattr("tzinfo")?.is_none() {
        return Ok((Value::Integer(local.into()), DataType::Time));
    }
    let Some(offset) = utc_offset(value)? else {
        return Err(DataError::new_err(
            "a time whose zone has several offsets: use a datetime or drop tzinfo",
        ));
    };
    let seconds = offset.div_euclid(1_000_000);
    if offset % 1_000_000 != 0 || seconds.abs() > time_tz::MOST_OFFSET {
        return Err(DataError::new_err("the offset of a TIMETZ has whole seconds and less than 16 hours"));
    }
    Ok((Value::Integer(time_tz::pack(local, seconds).into()), DataType::TimeTz))
}

/// Microseconds by which the clock of a time or datetime is ahead of UTC; `None` if it does not say.
fn utc_offset(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let offset = value.call_method0("utcoffset")?;
    if offset.is_none() {
        return Ok(None);
    }
    Ok(Some(
        part(&offset, "days")? * MICROS_PER_DAY
            + part(&offset, "seconds")? * 1_000_000
            + part(&offset, "microseconds")?,
    ))
}

fn timestamp(value: &Bound<'_, PyAny>) -> PyResult<Typed> {
    let local = days(value)? * MICROS_PER_DAY + time_of_day(value)?;
    if let Some(offset) = utc_offset(value)? {
        return Ok((Value::Integer((local - offset).into()), DataType::TimestampTz));
    }
    // The moments of pandas have nanoseconds.
    match value.getattr_opt("nanosecond")?.map_or(Ok(0), |nanos| nanos.extract::<i64>())? {
        0 => Ok((Value::Integer(local.into()), DataType::Timestamp)),
        nanos => Ok((Value::Integer(i128::from(local) * 1000 + i128::from(nanos)), DataType::TimestampNs)),
    }
}

fn decimal(value: &Bound<'_, PyAny>) -> PyResult<Typed> {
    let parts = value.call_method0("as_tuple")?;
    let Ok(exponent) = parts.getattr("exponent")?.extract::<i64>() else {
        return Err(DataError::new_err(format!("the decimal {value} is no number")));
    };
    let negative: u8 = parts.getattr("sign")?.extract()?;
    let digits: Vec<u8> = parts.getattr("digits")?.extract()?;
    let too_long = || DataError::new_err(format!("the decimal {value} has more than {DIGITS} digits"));
    let significant = digits.iter().skip_while(|&&d| d == 0).count();
    let zeros = exponent.max(0) as usize;
    let scale = (-exponent).max(0) as usize;
    if significant + zeros > DIGITS || scale > DIGITS {
        return Err(too_long());
    }
    let magnitude = digits.iter().fold(0i128, |n, &d| n * 10 + i128::from(d)) * pow10(zeros as u8);
    let precision = (significant + zeros).max(scale).max(1) as u8;
    let unscaled = if negative == 1 { -magnitude } else { magnitude };
    Ok((Value::Integer(unscaled), DataType::Decimal { precision, scale: scale as u8 }))
}
