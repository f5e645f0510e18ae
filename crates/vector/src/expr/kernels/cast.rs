//! Casts: every pair of types that PostgreSQL and DuckDB convert, and the errors of values without a
//! counterpart.
//!
//! Numbers to numbers that drop no digits, and dates and timestamps to timestamps, run in loops. The rest
//! goes value by value through [`convert`], which is the definition of all casts: text is read by
//! [`parse_value`] and written as values print; decimals round half away from zero, floats to integers half
//! to even; dates are midnights; timestamps with and without time zone exchange in UTC, and nanoseconds are
//! truncated to microseconds; a TIME is one in UTC where it gets an offset.

use super::arithmetic::{Integer, Wide, with_integer};
use super::{Operand, Rows, operand, row_by_row, strict, unary, unary_checked};
use crate::buffer::Native;
use crate::error::sqlstate;
use crate::expr::calendar::{day_of, is_finite, micros_of, midnight, nanos_of};
use crate::expr::parse::{parse_date, parse_i64, parse_leniently, parse_value};
use crate::statement::Growth;
use crate::time_tz;
use crate::types::{MICROS_PER_DAY, PhysicalType, pow10};
use crate::value::nested;
use crate::vector::Vector;
use crate::writer::StringMaker;
use crate::{CHUNK_ROWS, DataType, Error, ErrorKind, Interval, Result, StringView, Value};
use std::fmt::Write as _;

/// `CAST(a AS to)`, or `TRY_CAST` if `lenient`, into the physical type of `out`.
///
/// # Errors
/// Input: a value has no counterpart and the cast is not lenient.
pub fn cast(
    a: &Vector,
    from: DataType,
    to: DataType,
    lenient: bool,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    use DataType::{Date, Timestamp, TimestampNs, TimestampTz};
    let own_scale = scale(from);
    let whole = from.is_integer() || from.is_decimal();
    match to {
        DataType::Float64 if whole => strict(&[a], rows, out, |rows, out| {
            to_float::<f64>(a, own_scale, rows, out);
            Ok(())
        }),
        DataType::Float32 if whole => strict(&[a], rows, out, |rows, out| {
            to_float::<f32>(a, own_scale, rows, out);
            Ok(())
        }),
        DataType::Float64 if from == DataType::Float32 => strict(&[a], rows, out, |rows, out| {
            unary(operand(a), rows.widened(), out.values_mut(), |v: f32| f64::from(v));
            Ok(())
        }),
        _ if to.is_integer() && from.is_integer() => integer_to_integer(a, from, to, lenient, rows, out),
        DataType::Decimal { scale, .. } if whole && scale >= own_scale => {
            scale_up(a, from, to, lenient, rows, out)
        }
        TimestampNs if matches!(from, Timestamp | TimestampTz) => {
            in_loop(a, from, to, lenient, rows, out, nanos_of)
        }
        Timestamp | TimestampTz if from == TimestampNs => {
            in_loop(a, from, to, lenient, rows, out, |nanos| Some(micros_of(nanos)))
        }
        Timestamp | TimestampTz if from == Date => in_loop(a, from, to, lenient, rows, out, midnight),
        DataType::Varchar => to_text(a, from, rows, out),
        Date | DataType::Int64 if from == DataType::Varchar => from_text(a, to, lenient, rows, out),
        _ if lenient => {
            row_by_row(&[(a, from)], to, rows, out, |values| convert_leniently(&values[0], from, to))
        }
        _ => row_by_row(&[(a, from)], to, rows, out, |values| convert(&values[0], from, to)),
    }
}

/// The first `rows` values of a flat or constant vector, cast as by `CAST`, for values that come from
/// elsewhere: kernels take a chunk, this takes any number of them. `out` is of the physical type of `to`.
///
/// # Errors
/// Input: a value has no counterpart.
pub fn cast_rows(a: &Vector, from: DataType, to: DataType, rows: usize, out: &mut Vector) -> Result<()> {
    if rows <= CHUNK_ROWS {
        return cast(a, from, to, false, Rows::Dense(rows), out);
    }
    out.begin(rows);
    if a.validity().is_some() {
        out.validity_mut(rows);
    }
    for row in 0..rows {
        out.write_value_of(row, &convert(&a.value(row, from), from, to)?, to)?;
    }
    Ok(())
}

/// An integer or decimal in 38 digits of the scale of `to`, or ±10^38, which is beyond them.
///
/// # Errors
/// Internal: `out` does not hold decimals of 38 digits.
pub fn saturate(a: &Vector, from: DataType, to: DataType, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let scale = |ty: DataType| if let DataType::Decimal { scale, .. } = ty { scale } else { 0 };
    let factor = pow10(scale(to).saturating_sub(scale(from)));
    let beyond = pow10(38);
    strict(&[a], rows, out, |rows, out| {
        with_integer!(
            a.physical(),
            T => unary(operand::<T>(a), rows.widened(), out.values_mut::<i128>(), move |v: T| {
                let v = Into::<Wide>::into(v).0;
                v.saturating_mul(factor).clamp(-beyond, beyond)
            }),
            return Err(Error::internal("integers and decimals are held as integers"))
        );
        Ok(())
    })
}

/// Rust's `as` from any integer to a float.
trait FromWhole: Native {
    fn from_wide(v: i128, unit: f64) -> Self;
    fn from_word(v: i64, unit: f64) -> Self;
    fn from_double(v: f64) -> Self;
}
impl FromWhole for f64 {
    #[inline(always)]
    fn from_wide(v: i128, unit: f64) -> f64 {
        v as f64 / unit
    }
    #[inline(always)]
    fn from_word(v: i64, unit: f64) -> f64 {
        v as f64 / unit
    }
    fn from_double(v: f64) -> f64 {
        v
    }
}
impl FromWhole for f32 {
    #[inline(always)]
    fn from_wide(v: i128, unit: f64) -> f32 {
        if unit == 1.0 { v as f32 } else { (v as f64 / unit) as f32 }
    }
    #[inline(always)]
    fn from_word(v: i64, unit: f64) -> f32 {
        if unit == 1.0 { v as f32 } else { (v as f64 / unit) as f32 }
    }
    fn from_double(v: f64) -> f32 {
        v as f32
    }
}

fn to_float<F: FromWhole>(a: &Vector, scale: u8, rows: Rows<'_>, out: &mut Vector) {
    let unit = pow10(scale) as f64;
    let (rows, out) = (rows.widened(), out.values_mut::<F>());
    let rounded_twice = match a.physical() {
        PhysicalType::I64 => unary_checked(operand(a), rows, out, move |v: i64| {
            (F::from_word(v, unit), scale > 0 && is_rounded_twice(v.into(), scale))
        }),
        PhysicalType::I32 => unary_checked(operand(a), rows, out, move |v: i32| {
            (F::from_word(v.into(), unit), scale > EXACT_POWER)
        }),
        physical => with_integer!(
            physical,
            T => unary_checked(operand::<T>(a), rows, out, move |v: T| {
                let wide = Into::<Wide>::into(v).0;
                (F::from_wide(wide, unit), scale > 0 && is_rounded_twice(wide, scale))
            }),
            unreachable!("integers and decimals are held as integers")
        ),
    };
    if rounded_twice {
        with_integer!(
            a.physical(),
            T => unary(operand::<T>(a), rows, out, move |v: T| {
                F::from_double(decimal_to_double(Into::<Wide>::into(v).0, scale))
            }),
            unreachable!("integers and decimals are held as integers")
        );
    }
}

/// Powers of ten up to this one are exact as a DOUBLE.
const EXACT_POWER: u8 = 22;

/// True if the quotient of `v` and 10^`scale`, both as doubles, may be another than the nearest one.
#[inline(always)]
fn is_rounded_twice(v: i128, scale: u8) -> bool {
    v.unsigned_abs() > 1 << f64::MANTISSA_DIGITS || scale > EXACT_POWER
}

/// The double that is nearest to a decimal.
fn decimal_to_double(v: i128, scale: u8) -> f64 {
    if scale == 0 || !is_rounded_twice(v, scale) {
        return v as f64 / pow10(scale) as f64;
    }
    format!("{v}e-{scale}").parse().expect("a number")
}

fn integer_to_integer(
    a: &Vector,
    from: DataType,
    to: DataType,
    lenient: bool,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    let (low, high) = to.integer_range().expect("an integer type has a range");
    let target = out.physical();
    strict(&[a], rows, out, |rows, out| {
        let failed = with_integer!(
            a.physical(),
            S => with_integer!(
                target,
                D => unary_checked(operand::<S>(a), rows, out.values_mut::<D>(), move |v: S| {
                    let wide = Into::<Wide>::into(v).0;
                    (D::from_wide(wide), wide < low || wide > high)
                }),
                return Err(Error::internal("an integer is held as one"))
            ),
            return Err(Error::internal("an integer is held as one"))
        );
        if failed { settle(a, from, to, lenient, rows, out) } else { Ok(()) }
    })
}

/// Between integers and decimals where no digit behind the point is dropped.
fn scale_up(
    a: &Vector,
    from: DataType,
    to: DataType,
    lenient: bool,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    let (low, high) = to.integer_range().expect("a decimal has a range");
    let unit = pow10(scale(to) - scale(from));
    let scaled = move |v: Wide| v.0.checked_mul(unit).filter(|v| (low..=high).contains(v));
    let is_narrow = out.physical() == PhysicalType::I64;
    with_integer!(
        a.physical(),
        T => match is_narrow {
            true => in_loop(a, from, to, lenient, rows, out, move |v: T| scaled(v.into()).map(|v| v as i64)),
            false => in_loop(a, from, to, lenient, rows, out, move |v: T| scaled(v.into())),
        },
        Err(Error::internal("integers and decimals are held as integers"))
    )
}

/// Casts in a loop by `f`, which has nothing for values that have no counterpart.
fn in_loop<A: Native, B: Native>(
    a: &Vector,
    from: DataType,
    to: DataType,
    lenient: bool,
    rows: Rows<'_>,
    out: &mut Vector,
    f: impl Fn(A) -> Option<B> + Copy,
) -> Result<()> {
    strict(&[a], rows, out, |rows, out| {
        let failed = unary_checked(operand::<A>(a), rows, out.values_mut::<B>(), move |v: A| {
            let value = f(v);
            (value.unwrap_or_default(), value.is_none())
        });
        if failed { settle(a, from, to, lenient, rows, out) } else { Ok(()) }
    })
}

/// What becomes of rows of which a loop found some that it cannot cast: an error, or NULL if `lenient`.
#[cold]
fn settle(
    a: &Vector,
    from: DataType,
    to: DataType,
    lenient: bool,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    rows.try_each(|p| {
        if !out.is_valid(p) {
            return Ok(());
        }
        match convert(&a.value(p, from), from, to) {
            Ok(_) => Ok(()),
            Err(_) if lenient => {
                out.set_null(p);
                Ok(())
            }
            Err(error) => Err(error),
        }
    })
}

/// Between physical integers where the range has been proved to fit.
///
/// # Errors
/// Internal, if one is no integer.
pub fn resize(a: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let target = out.physical();
    strict(&[a], rows, out, |rows, out| {
        let rows = rows.widened();
        with_integer!(
            a.physical(),
            S => with_integer!(
                target,
                D => unary(operand::<S>(a), rows, out.values_mut::<D>(), |v: S| {
                    D::from_wide(Into::<Wide>::into(v).0)
                }),
                return Err(Error::internal("a resize of what is no integer"))
            ),
            return Err(Error::internal("a resize of what is no integer"))
        );
        Ok(())
    })
}

fn to_text(a: &Vector, from: DataType, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    strict(&[a], rows, out, |rows, out| {
        let strings = out.strings_mut();
        let mut maker = StringMaker::default();
        let bytes = (a.physical() == PhysicalType::Str).then(|| operand::<StringView>(a));
        rows.try_each(|p| {
            if !a.is_valid(p) {
                return Ok(());
            }
            let text = maker.make(strings.heap, |out| {
                // What fails is told by the writer.
                let _ = match &bytes {
                    Some(bytes) if from.is_text() => out.write_str(bytes.get(p).as_str()),
                    Some(bytes) => nested::write(out, bytes.get(p).as_bytes(), from),
                    None => write!(out, "{}", a.value(p, from).display(from)),
                };
                Ok(true)
            })?;
            strings.views[p] = text.unwrap_or_default();
            Ok(())
        })
    })
}

/// Casts of text: the most frequent forms, plain dates and integers, without an allocation, others by
/// [`convert`].
fn from_text(a: &Vector, to: DataType, lenient: bool, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    strict(&[a], rows, out, |rows, out| {
        let texts: Operand<'_, StringView> = operand(a);
        rows.try_each(|p| {
            let view = texts.get(p);
            let bytes = view.as_bytes();
            match to {
                DataType::Date => {
                    if let Some(days) = parse_date(bytes) {
                        out.values_mut::<i32>()[p] = days;
                        return Ok(());
                    }
                }
                _ => {
                    if let Some(number) = parse_i64(bytes) {
                        out.values_mut::<i64>()[p] = number;
                        return Ok(());
                    }
                }
            }
            match parse_value(view.as_str(), to) {
                Ok(value) => out.write_value(p, &value),
                Err(_) if lenient => {
                    out.set_null(p);
                    Ok(())
                }
                Err(error) => Err(error),
            }
        })
    })
}

/// One value, cast.
///
/// # Errors
/// Input, if it has no counterpart; not supported, if the types have none.
pub fn convert(value: &Value, from: DataType, to: DataType) -> Result<Value> {
    use DataType::{Blob, Boolean, Date, Json, Time, TimeTz, Timestamp, TimestampNs, TimestampTz, Varchar};
    let day = i128::from(MICROS_PER_DAY);
    if value.is_null() || (from == to && !to.is_decimal()) {
        return Ok(value.clone());
    }
    Ok(match (value, from, to) {
        (_, _, Varchar) => Value::Text(value.display(from).to_string().into()),
        (Value::Text(text), Varchar, _) => return parse_value(text, to),
        (Value::Text(text), Json, _) if to.is_numeric() || to == Boolean => match text.trim_ascii() {
            "null" => Value::Null,
            text => return parse_value(text, to),
        },
        (Value::Float(v), _, Json) if v.is_finite() => Value::Text(value.display(from).to_string().into()),
        (Value::Integer(_) | Value::Boolean(_), _, Json) if from.is_numeric() || from == Boolean => {
            Value::Text(value.display(from).to_string().into())
        }
        (Value::Boolean(v), _, _) if to.is_float() => Value::Float(u8::from(*v).into()),
        (Value::Boolean(v), _, _) if to.is_numeric() => {
            in_range(rescale((*v).into(), 0, scale(to)), value, from, to)?
        }
        (Value::Integer(v), _, Boolean) if from.is_numeric() => Value::Boolean(*v != 0),
        (Value::Float(v), _, Boolean) => Value::Boolean(*v != 0.0),
        (Value::Integer(v), Date, Timestamp | TimestampTz) => {
            in_range(midnight(*v as i32).map(i128::from), value, from, to)?
        }
        (Value::Integer(v), Timestamp | TimestampTz, Date) => Value::Integer(day_of(*v as i64).into()),
        (Value::Integer(v), Timestamp | TimestampTz, Time) if is_finite(*v as i64) => {
            Value::Integer(v.rem_euclid(day))
        }
        (Value::Integer(v), Timestamp | TimestampTz, Timestamp | TimestampTz) => Value::Integer(*v),
        (Value::Integer(v), Timestamp | TimestampTz, TimestampNs) => {
            let nanos = i64::try_from(*v).ok().and_then(nanos_of);
            in_range(nanos.map(i128::from), value, from, to)?
        }
        (_, Date, TimestampNs) => return convert(&convert(value, Date, Timestamp)?, Timestamp, to),
        (Value::Integer(v), TimestampNs, Timestamp | TimestampTz) => {
            Value::Integer(micros_of(*v as i64).into())
        }
        (_, TimestampNs, Date | Time) => return convert(&convert(value, from, Timestamp)?, Timestamp, to),
        (Value::Integer(v), Time, TimeTz) => Value::Integer(time_tz::pack(*v as i64, 0).into()),
        (Value::Integer(v), TimeTz, Time) => Value::Integer(time_tz::unpack(*v as i64).0.into()),
        (_, TimestampTz, TimeTz) => return convert(&convert(value, from, Time)?, Time, to),
        (Value::Integer(v), Time, DataType::Interval) => {
            Value::Interval(Interval { months: 0, days: 0, micros: *v as i64 })
        }
        (Value::Interval(v), DataType::Interval, Time) => {
            Value::Integer(i128::from(v.micros).rem_euclid(day))
        }
        (Value::Integer(v), ..) if from.is_numeric() && (to.is_integer() || to.is_decimal()) => {
            in_range(rescale(*v, scale(from), scale(to)), value, from, to)?
        }
        (Value::Integer(v), ..) if from.is_numeric() && to.is_float() => {
            single(decimal_to_double(*v, scale(from)), to)?
        }
        (Value::Float(v), ..) if to.is_float() => single(*v, to)?,
        (Value::Float(v), ..) if to.is_integer() => in_range(whole(v.round_ties_even()), value, from, to)?,
        (Value::Float(v), ..) if to.is_decimal() => {
            in_range(whole((v * pow10(scale(to)) as f64).round()), value, from, to)?
        }
        (Value::Integer(v), DataType::Enum(own), DataType::Enum(_)) => {
            return parse_value(own.get(*v).unwrap_or_default(), to);
        }
        (Value::Bytes(_), Blob, Blob) => value.clone(),
        (Value::Bytes(_), ..) if from.is_nested() && to.is_nested() => {
            return convert_parts(value, from, to, &convert);
        }
        _ => return Err(Error::input(format!("cannot cast {from} to {to}"))),
    })
}

/// A list or an array as one of another type, a map as a map, or a struct as one of other fields, which are
/// found by name: their values by `part`. Fields that are not found are NULL.
///
/// # Errors
/// Those of `part`; input, if no field is found, two keys become one, an array would have another length, or
/// the types are not of one kind; internal, if the value is not of the type `from`.
pub fn convert_parts(
    value: &Value,
    from: DataType,
    to: DataType,
    part: &impl Fn(&Value, DataType, DataType) -> Result<Value>,
) -> Result<Value> {
    let mut out = Vec::new();
    match (value, from, to) {
        (
            Value::Bytes(bytes),
            DataType::List(own) | DataType::Array(own, _),
            DataType::List(wanted) | DataType::Array(wanted, _),
        )
        | (Value::Bytes(bytes), DataType::Map(own), DataType::Map(wanted)) => {
            let mut growth = Growth::default();
            for element in nested::values(bytes, *own) {
                nested::encode_part(&part(&element?, *own, *wanted)?, *wanted, &mut out)?;
                growth.reach(out.len())?;
            }
            nested::end_list(&mut out);
            nested::check(&out, to)?;
        }
        (Value::Bytes(bytes), DataType::Struct(own), DataType::Struct(wanted)) => {
            let values = nested::fields(bytes, own)?;
            let mut found = own.is_empty() || wanted.is_empty();
            for field in wanted {
                let mut own = own.iter().zip(&values);
                let value = match own.find(|(own, _)| own.name.eq_ignore_ascii_case(field.name)) {
                    Some((own, value)) => {
                        found = true;
                        part(value, own.ty, field.ty)?
                    }
                    None => Value::Null,
                };
                nested::encode_part(&value, field.ty, &mut out)?;
            }
            if !found {
                return Err(Error::input(format!(
                    "cannot cast {from} to {to}: they have no field in common"
                ))
                .with_hint("fields are matched by name"));
            }
        }
        _ => return Err(Error::input(format!("cannot cast {from} to {to}"))),
    }
    Ok(Value::Bytes(out.into()))
}

/// As [`convert`], with NULL for what has no counterpart: the whole value, or only the element or field of a
/// nested one.
///
/// # Errors
/// Internal, if the value is not of the type `from`.
pub fn convert_leniently(value: &Value, from: DataType, to: DataType) -> Result<Value> {
    let converted = match (value, from, to) {
        (Value::Text(text), DataType::Varchar, _) => parse_leniently(text, to, true),
        (Value::Bytes(_), ..) if from.is_nested() && to.is_nested() => {
            convert_parts(value, from, to, &convert_leniently)
        }
        _ => convert(value, from, to),
    };
    match converted {
        Err(error) if error.kind() == ErrorKind::Input => Ok(Value::Null),
        result => result,
    }
}

fn in_range(v: Option<i128>, value: &Value, from: DataType, to: DataType) -> Result<Value> {
    let (low, high) = to.integer_range().expect("the target is held as integers");
    match v {
        Some(v) if (low..=high).contains(&v) => Ok(Value::Integer(v)),
        _ => Err(Error::input(format!("value {} is out of range for {to}", value.display(from)))
            .with_sqlstate(sqlstate::OUT_OF_RANGE)),
    }
}

fn scale(ty: DataType) -> u8 {
    if let DataType::Decimal { scale, .. } = ty { scale } else { 0 }
}

/// From one number of digits after the point to another; dropped digits are rounded, half away from zero.
/// `None` on overflow.
fn rescale(v: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return v.checked_mul(pow10(to - from));
    }
    let unit = pow10(from - to);
    let (quotient, rest) = (v / unit, v % unit);
    Some(if rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2) {
        quotient + v.signum()
    } else {
        quotient
    })
}

fn whole(v: f64) -> Option<i128> {
    (v.is_finite() && v.abs() < 1.7e38).then_some(v as i128)
}

fn single(v: f64, to: DataType) -> Result<Value> {
    if to == DataType::Float32 && v.is_finite() && (v as f32).is_infinite() {
        return Err(Error::input(format!("value {v:?} is out of range for REAL")));
    }
    Ok(Value::Float(if to == DataType::Float32 { f64::from(v as f32) } else { v }))
}
