//! Text to values: casts from VARCHAR, and the fields of CSV files.
//!
//! The functions on bytes are the fast path, for frequent types; they return `None` for texts that they do
//! not handle. [`parse_value`] handles every type and makes the error message. Surrounding white space is
//! allowed for all types but VARCHAR and BLOB.

mod nested;

use crate::error::sqlstate;
use crate::types::{DataType, pow10};
use crate::value::Value;
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

pub use super::interval_text::{parse_interval, parse_qualified};
use super::json_text::check_json;
pub use super::moment_text::{
    parse_date, parse_moment, parse_nanos, parse_time, parse_time_tz, parse_timestamp,
};

/// The value that `text` stands for in type `ty`.
///
/// # Errors
/// Input: "cannot cast 'abc' to INTEGER", or that the number is out of the type's range.
pub fn parse_value(text: &str, ty: DataType) -> Result<Value> {
    parse(text, ty, false)
}

/// As [`parse_value`]; if `lenient`, NULL for what is no value of `ty`, and within lists and structs for what
/// is none of their elements' and fields' types. A text that is no list or struct remains an error.
///
/// # Errors
/// Those of [`parse_value`].
pub(crate) fn parse_leniently(text: &str, ty: DataType, lenient: bool) -> Result<Value> {
    match parse(text, ty, lenient) {
        Err(error) if lenient && !ty.is_nested() && error.kind() == ErrorKind::Input => Ok(Value::Null),
        result => result,
    }
}

fn parse(text: &str, ty: DataType, lenient: bool) -> Result<Value> {
    let bytes = text.trim_ascii().as_bytes();
    let value = match ty {
        DataType::Varchar => return Ok(Value::Text(Arc::from(text))),
        DataType::Json => return check_json(text).map(|()| Value::Text(Arc::from(text))),
        DataType::Blob => parse_blob(text).map(|bytes| Value::Bytes(Arc::from(bytes))),
        DataType::Enum(labels) => labels.position(text).map(|position| Value::Integer(position.into())),
        DataType::Null => None,
        DataType::Boolean => parse_boolean(bytes).map(Value::Boolean),
        DataType::Float32 => parse_float(bytes).map(|v| Value::Float(f64::from(v as f32))),
        DataType::Float64 => parse_float(bytes).map(Value::Float),
        DataType::Decimal { precision, scale } => match parse_decimal(bytes, precision, scale) {
            None if parse_float(bytes).is_some_and(f64::is_finite) => return Err(out_of_range(text, ty)),
            number => number.map(Value::Integer),
        },
        DataType::Date => parse_date(bytes)
            .or_else(|| parse_moment(bytes).map(|moment| moment.date()))
            .map(|days| Value::Integer(days.into())),
        DataType::Time => parse_time(bytes).map(|micros| Value::Integer(micros.into())),
        DataType::TimeTz => parse_time_tz(bytes).map(|packed| Value::Integer(packed.into())),
        // A clock's time, whatever the zone.
        DataType::Timestamp => parse_moment(bytes).map(|moment| Value::Integer(moment.micros.into())),
        DataType::TimestampNs => match parse_nanos(bytes) {
            None if parse_moment(bytes).is_some() => return Err(out_of_range(text, ty)),
            nanos => nanos.map(|nanos| Value::Integer(nanos.into())),
        },
        DataType::TimestampTz => parse_timestamp(bytes).map(|(micros, _)| Value::Integer(micros.into())),
        DataType::Interval => parse_interval(text).map(Value::Interval),
        DataType::Uuid => parse_uuid(bytes).map(|uuid| Value::Integer(uuid as i128)),
        _ if ty.is_nested() => nested::parse_nested(text, ty, lenient)?,
        _ => match parse_integer(bytes) {
            Some(number) => {
                let (min, max) = ty.integer_range().expect("the rest are integers");
                if number < min || number > max {
                    return Err(out_of_range(text, ty));
                }
                Some(Value::Integer(number))
            }
            None => None,
        },
    };
    value.ok_or_else(|| {
        Error::input(format!("cannot cast '{}' to {}", shorten(text), shorten(&ty.to_string())))
            .with_sqlstate(sqlstate::INVALID_TEXT)
    })
}

fn out_of_range(text: &str, ty: DataType) -> Error {
    Error::input(format!("value {} is out of range for {ty}", shorten(text.trim())))
        .with_sqlstate(sqlstate::OUT_OF_RANGE)
}

/// Long texts are cut in messages.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => text.to_string(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A decimal integer with an optional sign. Exponents and fractions that leave an integer (`1e3`, `5.0`) are
/// allowed, others are rounded half away from zero, as for decimals.
fn parse_integer(bytes: &[u8]) -> Option<i128> {
    parse_i64(bytes).map(i128::from).or_else(|| parse_decimal(bytes, 38, 0))
}

/// Digits with an optional sign, within BIGINT.
#[inline]
pub fn parse_i64(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = split_sign(bytes);
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut number = 0u64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Nineteen digits fit in 64 bits without sign.
        number = number * 10 + u64::from(digit);
    }
    match negative {
        false => i64::try_from(number).ok(),
        true => 0i64.checked_sub_unsigned(number),
    }
}

fn split_sign(bytes: &[u8]) -> (bool, &[u8]) {
    match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, bytes),
    }
}

/// No meaningful number has a larger exponent.
const LARGEST_EXPONENT: i64 = 16_383;

/// The unscaled number of `12.345e-1` at `scale`, rounded half away from zero; `None` if it is no number or
/// needs more than `precision` digits.
#[inline]
pub fn parse_decimal(bytes: &[u8], precision: u8, scale: u8) -> Option<i128> {
    let (negative, mut rest) = split_sign(bytes);
    let mut exponent = 0i64;
    if let Some(at) = rest.iter().position(|b| matches!(b, b'e' | b'E')) {
        exponent = parse_i64(&rest[at + 1..]).filter(|exponent| exponent.abs() <= LARGEST_EXPONENT)?;
        rest = &rest[..at];
    }
    let point = rest.iter().position(|b| *b == b'.').unwrap_or(rest.len());
    let (whole, fraction) = (&rest[..point], rest.get(point + 1..).unwrap_or_default());
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Digit i of the whole number stands for 10^(place - i).
    let mut place = whole.len() as i64 - 1 + exponent + i64::from(scale);
    let mut number = 0i128;
    let mut round_up = false;
    for &digit in whole.iter().chain(fraction) {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        if place >= 0 {
            number = number.checked_mul(10)?.checked_add(i128::from(digit))?;
        } else if place == -1 {
            round_up = digit >= 5;
        }
        place -= 1;
    }
    // The zeros between the last digit and the unit.
    if place >= 0 && number != 0 {
        number = number.checked_mul(pow10(u8::try_from(place + 1).ok().filter(|p| *p <= 38)?))?;
    }
    number += i128::from(round_up);
    if number >= pow10(precision.min(38)) {
        return None;
    }
    Some(if negative { -number } else { number })
}

/// A float: decimal or exponent form, `inf`, `infinity`, `nan` in any case.
#[inline]
pub fn parse_float(bytes: &[u8]) -> Option<f64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn parse_boolean(bytes: &[u8]) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| bytes.eq_ignore_ascii_case(word.as_bytes()));
    if is(&["true", "t", "yes", "y", "on", "1"]) {
        Some(true)
    } else if is(&["false", "f", "no", "n", "off", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// 32 hexadecimal digits, in braces or not; hyphens are skipped.
pub fn parse_uuid(bytes: &[u8]) -> Option<u128> {
    let bytes = match bytes.strip_prefix(b"{") {
        Some(rest) => rest.strip_suffix(b"}")?,
        None => bytes,
    };
    let mut uuid = 0u128;
    let mut digits = 0;
    for &byte in bytes {
        match (byte as char).to_digit(16) {
            Some(digit) => {
                uuid = (uuid << 4) | u128::from(digit);
                digits += 1;
            }
            None if byte == b'-' => {}
            None => return None,
        }
    }
    (digits == 32).then_some(uuid)
}

/// Bytes: `\xAB` stands for one byte, everything else for itself.
pub fn parse_blob(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'\\' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let hex = tail.strip_prefix(b"x").and_then(|tail| tail.get(..2))?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
        rest = &tail[3..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str, ty: DataType) -> String {
        match parse_value(text, ty) {
            Ok(value) => value.display(ty).to_string(),
            Err(error) => error.message().to_string(),
        }
    }

    #[test]
    fn numbers() {
        let decimal = DataType::Decimal { precision: 5, scale: 2 };
        assert_eq!(round_trip(" -12.345 ", decimal), "-12.35");
        assert_eq!(round_trip("1e2", decimal), "100.00");
        assert_eq!(round_trip("12345e-3", decimal), "12.35");
        assert_eq!(round_trip(".5", decimal), "0.50");
        assert_eq!(round_trip("1000", decimal), "value 1000 is out of range for DECIMAL(5,2)");
        assert_eq!(round_trip(".", decimal), "cannot cast '.' to DECIMAL(5,2)");
        assert_eq!(round_trip("300", DataType::UInt8), "value 300 is out of range for UTINYINT");
        assert_eq!(round_trip("-9223372036854775808", DataType::Int64), "-9223372036854775808");
        assert_eq!(
            round_trip("9223372036854775808", DataType::Int64),
            "value 9223372036854775808 is out of range for BIGINT"
        );
        assert_eq!(round_trip("18446744073709551615", DataType::UInt64), "18446744073709551615");
        assert_eq!(round_trip("1.5", DataType::Int32), "2");
        assert_eq!(round_trip("", DataType::Int32), "cannot cast '' to INTEGER");
        assert_eq!(round_trip("12a", DataType::Int32), "cannot cast '12a' to INTEGER");
        assert_eq!(round_trip("1e-400", DataType::Float64), "0.0");
    }

    #[test]
    fn dates_and_times() {
        assert_eq!(round_trip("2024-2-29", DataType::Date), "2024-02-29");
        assert_eq!(round_trip("2023-02-29", DataType::Date), "cannot cast '2023-02-29' to DATE");
        assert_eq!(round_trip("0044-03-15 (BC)", DataType::Date), "0044-03-15 (BC)");
        assert_eq!(round_trip("-infinity", DataType::Date), "-infinity");
        assert_eq!(round_trip("2024-02-03T23:00:00-05", DataType::Date), "2024-02-03");
        assert_eq!(round_trip("2013-01-01 06:00:00+00", DataType::TimestampTz), "2013-01-01 06:00:00+00");
        assert_eq!(
            round_trip("2013-01-01T06:00:00.5-02:30", DataType::TimestampTz),
            "2013-01-01 08:30:00.5+00"
        );
        assert_eq!(round_trip("2013-01-01 06:00:00+02", DataType::Timestamp), "2013-01-01 06:00:00");
        assert_eq!(round_trip("2013-01-01", DataType::Timestamp), "2013-01-01 00:00:00");
        assert_eq!(
            round_trip("2013-01-01 25:00", DataType::Timestamp),
            "cannot cast '2013-01-01 25:00' to TIMESTAMP"
        );
        assert_eq!(round_trip("7:05", DataType::Time), "07:05:00");
        assert_eq!(round_trip(" 7:05 +1 ", DataType::TimeTz), "07:05:00+01");
    }

    #[test]
    fn intervals() {
        let interval = |text| round_trip(text, DataType::Interval);
        assert_eq!(interval("P1Y2M3DT4H5M6.5S"), "1 year 2 months 3 days 04:05:06.5");
        assert_eq!(interval("3 cows"), "cannot cast '3 cows' to INTERVAL");
    }

    #[test]
    fn bytes_and_uuids() {
        assert_eq!(round_trip("a\\xFFb", DataType::Blob), "a\\xFFb");
        assert_eq!(round_trip("a\\q", DataType::Blob), "cannot cast 'a\\q' to BLOB");
        let uuid = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(round_trip(uuid, DataType::Uuid), uuid);
        assert_eq!(round_trip("{550E8400E29B41D4A716446655440000}", DataType::Uuid), uuid);
        for wrong in ["{550E8400E29B41D4A716446655440000", "550E8400E29B41D4A716446655440000}", "550E{8400}"]
        {
            assert_eq!(parse_uuid(wrong.as_bytes()), None);
        }
    }
}
