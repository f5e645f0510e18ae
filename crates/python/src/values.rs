//! Conversion of single values: parameters in, cells out.
//!
//! | SQL | Python |
//! |---|---|
//! | BOOLEAN, integers, REAL and DOUBLE, VARCHAR, BLOB | `bool`, `int`, `float`, `str`, `bytes` |
//! | DECIMAL, UUID | `decimal.Decimal`, `uuid.UUID`; DECIMAL(38,0) is an `int` |
//! | DATE, TIME, TIMESTAMP | `datetime.date`, `time`, `datetime` |
//! | TIME WITH TIME ZONE | `datetime.time` with its offset |
//! | TIMESTAMP WITH TIME ZONE | `datetime.datetime` in UTC; as a parameter, one with any time zone |
//! | INTERVAL | `datetime.timedelta`, a month as 30 days |
//! | LIST and `T[n]`, STRUCT, MAP | `list`, `dict`, `dict` (pairs, if a key has no hash); out only |
//!
//! Dates that Python cannot represent (before the year 1, after 9999) are returned as text.

use crate::errors::{DataError, InterfaceError, raised};
use entasis::{Argument, Arguments};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::calendar::micros_of;
use entasis_vector::time_tz;
use entasis_vector::types::{MICROS_PER_DAY, pow10};
use entasis_vector::value::{civil_from_days, days_from_civil, nested};
use entasis_vector::{DataType, Error, Interval, Value};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyFrozenSet, PyInt, PyList,
    PyMapping, PyMemoryView, PySet, PyString, PyTime, PyTuple, PyType, PyTzInfo,
};

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The most digits of a DECIMAL.
const DIGITS: usize = 38;
/// The most days of a `timedelta`.
const MOST_DAYS: i32 = 999_999_999;

/// A value with its type, as a parameter of a statement.
type Parameter = (Value, DataType);

/// The arguments of one execution, in the order of the parameters.
///
/// # Errors
/// If they are not a sequence, or contain a value for which SQL has no type.
pub fn in_order(given: &Bound<'_, PyAny>) -> PyResult<Arguments> {
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(no_sequence());
    }
    let mut items = given.try_iter().map_err(|_| no_sequence())?;
    let mut values = Vec::new();
    while let Some(item) = items.next() {
        match argument(&item?)? {
            Argument::Value(value, ty) => values.push((value, ty)),
            list => {
                let before = values.into_iter().map(|(value, ty)| Argument::Value(value, ty));
                let mut all: Vec<Argument> = before.chain([list]).collect();
                for item in items {
                    all.push(argument(&item?)?);
                }
                return Ok(Arguments::Lists(all));
            }
        }
    }
    Ok(Arguments::Values(values))
}

fn no_sequence() -> PyErr {
    InterfaceError::new_err(
        "parameters are a list or tuple, one value for each ? or $1, $2, …, or a dict, one for each $name or :name",
    )
}

/// The arguments of one execution by the names of the parameters, which are in lower case. The case of the
/// given names does not matter.
///
/// # Errors
/// If one is missing, is not the name of a parameter, or contains a value for which SQL has no type.
pub fn named(given: &Bound<'_, PyMapping>, names: &[String]) -> PyResult<Arguments> {
    let mut arguments: Vec<Option<Argument>> = vec![None; names.len()];
    for item in given.items()?.try_iter()? {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        let Ok(name) = name.extract::<String>() else {
            return Err(InterfaceError::new_err(format!("the name of a parameter is a str, not {name}")));
        };
        let index = names.iter().position(|own| *own == name.to_ascii_lowercase()).ok_or_else(|| {
            let has = match names {
                [] => "it has none with names".to_owned(),
                names => format!("it has {}", names.join(", ")),
            };
            parameters_error(format!("the statement has no parameter {name}: {has}"))
        })?;
        if arguments[index].replace(argument(&value)?).is_some() {
            return Err(parameters_error(format!("the parameter {name} is given twice")));
        }
    }
    let missing = arguments.iter().position(Option::is_none);
    if let Some(index) = missing {
        return Err(parameters_error(format!("the parameter {} has no value", names[index])));
    }
    Ok(Arguments::from(arguments.into_iter().flatten().collect::<Vec<_>>()))
}

fn parameters_error(text: String) -> PyErr {
    raised(&Error::input(text).with_sqlstate(sqlstate::PARAMETERS))
}

/// One argument: a value, or several in a list.
fn argument(value: &Bound<'_, PyAny>) -> PyResult<Argument> {
    if let Some((value, ty)) = plain(value)? {
        return Ok(Argument::Value(value, ty));
    }
    let is_list = value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>();
    if is_list {
        let values = value.try_iter()?.map(|value| from_python(&value?));
        return values.collect::<PyResult<_>>().map(Argument::List);
    }
    // Arrays of numpy and columns of data frames; also numpy's scalars, for which `tolist` returns no list.
    if value.hasattr("dtype")? {
        for method in ["tolist", "to_list"] {
            if value.hasattr(method)? {
                let given = value.call_method0(method)?;
                if given.is_instance_of::<PyList>() {
                    return argument(&given);
                }
            }
        }
    }
    from_python(value).map(|(value, ty)| Argument::Value(value, ty))
}

/// A value of one of Python's built-in types, as most are.
fn plain(value: &Bound<'_, PyAny>) -> PyResult<Option<Parameter>> {
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

/// One value, with the type that it has by itself.
///
/// # Errors
/// If SQL has no type for it.
pub fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    if let Some(parameter) = plain(value)? {
        return Ok(parameter);
    }
    // What pandas has for NULL; NaT is a datetime, too.
    if ["NaTType", "NAType"].contains(&&*value.get_type().name()?.to_string()) {
        return Ok((Value::Null, DataType::Null));
    }
    let py = value.py();
    if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        let bytes = py.get_type::<PyBytes>().call1((value,))?;
        return Ok((Value::Bytes(bytes.cast::<PyBytes>()?.as_bytes().into()), DataType::Blob));
    }
    // A datetime is a date too.
    if value.is_instance_of::<PyDateTime>() {
        return timestamp(value);
    }
    if value.is_instance_of::<PyDate>() {
        return Ok((Value::Integer(days(value)?.into()), DataType::Date));
    }
    if value.is_instance_of::<PyTime>() {
        return time(value);
    }
    if value.is_instance_of::<PyDelta>() {
        let (days, seconds) = (part(value, "days")?, part(value, "seconds")?);
        let micros = seconds * 1_000_000 + part(value, "microseconds")?;
        let days = i32::try_from(days)
            .map_err(|_| DataError::new_err("the timedelta is too long for an INTERVAL"))?;
        return Ok((Value::Interval(Interval { months: 0, days, micros }), DataType::Interval));
    }
    if value.is_instance(DECIMAL.import(py, "decimal", "Decimal")?)? {
        return decimal(value);
    }
    if value.is_instance(UUID.import(py, "uuid", "UUID")?)? {
        let bits: u128 = value.getattr("int")?.extract()?;
        return Ok((Value::Integer(bits as i128), DataType::Uuid));
    }
    // A scalar of numpy.
    if value.hasattr("dtype")? && value.hasattr("item")? {
        let plain = value.call_method0("item")?;
        if !plain.hasattr("dtype")? {
            return from_python(&plain);
        }
    }
    let class = value.get_type().name()?.to_string();
    Err(InterfaceError::new_err(format!("a '{class}' cannot be a parameter: SQL has no type for it")))
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
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

fn time(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
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

fn timestamp(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    let local = days(value)? * MICROS_PER_DAY + time_of_day(value)?;
    let Some(offset) = utc_offset(value)? else {
        return Ok((Value::Integer(local.into()), DataType::Timestamp));
    };
    Ok((Value::Integer((local - offset).into()), DataType::TimestampTz))
}

fn decimal(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
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

/// Converts one cell.
///
/// # Errors
/// Those of Python.
pub fn to_python<'py>(py: Python<'py>, value: &Value, ty: DataType) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Boolean(v) => PyBool::new(py, *v).to_owned().into_any(),
        Value::Float(v) => PyFloat::new(py, *v).into_any(),
        Value::Text(v) => PyString::new(py, v).into_any(),
        Value::Bytes(v) => match ty {
            DataType::List(element) | DataType::Array(element, _) => {
                let elements = nested::elements(v, *element).map_err(|error| raised(&error))?;
                let list = elements.iter().map(|value| to_python(py, value, *element));
                PyList::new(py, list.collect::<PyResult<Vec<_>>>()?)?.into_any()
            }
            DataType::Map(entry) => entries(py, v, *entry)?,
            DataType::Struct(fields) => {
                let values = nested::fields(v, fields).map_err(|error| raised(&error))?;
                let dict = PyDict::new(py);
                for (field, value) in fields.iter().zip(&values) {
                    dict.set_item(field.name, to_python(py, value, field.ty)?)?;
                }
                dict.into_any()
            }
            _ => PyBytes::new(py, v).into_any(),
        },
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
        Value::Integer(v) => match ty {
            // HUGEINT, and the type of a sum of BIGINTs.
            DataType::Decimal { precision: 38, scale: 0 } => v.into_pyobject(py)?.into_any(),
            DataType::Decimal { .. } => {
                DECIMAL.import(py, "decimal", "Decimal")?.call1((value.display(ty).to_string(),))?
            }
            DataType::Enum(_) => text(py, value, ty),
            DataType::Uuid => {
                let named = PyDict::new(py);
                named.set_item("int", *v as u128)?;
                UUID.import(py, "uuid", "UUID")?.call((), Some(&named))?
            }
            DataType::Date => match civil(*v as i64) {
                Some((year, month, day)) => PyDate::new(py, year, month, day)?.into_any(),
                None => text(py, value, ty),
            },
            // Python's days end a microsecond earlier.
            DataType::Time if *v == i128::from(MICROS_PER_DAY) => text(py, value, ty),
            DataType::Time => {
                let (hour, minute, second, micros) = clock(*v as i64);
                PyTime::new(py, hour, minute, second, micros, None)?.into_any()
            }
            DataType::TimeTz => {
                let (local, offset) = time_tz::unpack(*v as i64);
                if local == MICROS_PER_DAY {
                    return Ok(text(py, value, ty));
                }
                let zone = PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, offset as i32, 0, true)?)?;
                let (hour, minute, second, micros) = clock(local);
                PyTime::new(py, hour, minute, second, micros, Some(&zone))?.into_any()
            }
            DataType::Timestamp => instant(py, value, ty, *v as i64, None)?,
            // Python's moments have microseconds.
            DataType::TimestampNs => instant(py, value, ty, micros_of(*v as i64), None)?,
            DataType::TimestampTz => {
                let utc = PyTzInfo::utc(py)?;
                instant(py, value, ty, *v as i64, Some(&utc))?
            }
            _ => match i64::try_from(*v) {
                Ok(v) => v.into_pyobject(py)?.into_any(),
                Err(_) => v.into_pyobject(py)?.into_any(),
            },
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
