//! Converts fields to values: a column of texts to a vector.
//!
//! The common types have fast paths of their own. Text that these do not accept, and every other type, is
//! read like `CAST(text AS type)`, with two differences: a fraction is not an integer, and a finite number
//! does not become infinite. A guessed type accepts only what the guess accepts ([`super::guess`]).

use super::CsvOptions;
use super::guess::{
    LONG_INTEGER, formatted_date, guessed_timestamp, guessed_timestamp_tz, plain_float, plain_integer,
    plain_long_integer,
};
use super::parse::{boolean, date, decimal, float, integer, time, timestamp, timestamp_tz};
use super::record::Span;
use crate::strings::LONG;
use entasis_functions::TimeZone;
use entasis_vector::expr::calendar::nanos_of;
use entasis_vector::expr::parse::parse_value;
use entasis_vector::meter::Meter;
use entasis_vector::statement;
use entasis_vector::vector::{StringsMut, uuid_to_ordered};
use entasis_vector::{CHUNK_ROWS, DataType, Native, PhysicalType, Result, Value, Vector};

/// The texts of one column of a chunk.
pub(super) struct Texts<'a> {
    /// One field per row.
    pub(super) spans: &'a [Span],
    pub(super) bytes: &'a [u8],
    pub(super) copies: &'a [u8],
    /// The type as which they are read.
    pub(super) ty: DataType,
    /// Whether the type was guessed.
    pub(super) guessed: bool,
    pub(super) options: &'a CsvOptions,
}

impl<'a> Texts<'a> {
    fn get(&self, row: usize) -> &'a [u8] {
        self.spans[row].text(self.bytes, self.copies)
    }

    /// Whether the field of a row, with this text, is NULL.
    fn is_null(&self, row: usize, text: &[u8]) -> bool {
        self.options.is_null(self.spans[row], text, self.ty)
    }
}

/// Reads the texts into `out`, which has the physical type of their type. Rows that cannot be read are added
/// to `bad` and hold NULL.
///
/// # Errors
/// Interrupted; resource, if there is not enough memory for a long text.
pub(super) fn read_column(texts: &Texts<'_>, out: &mut Vector, bad: &mut Vec<usize>) -> Result<()> {
    let formats = &texts.options.formats;
    match (texts.ty.physical(), texts.ty) {
        (_, DataType::Varchar) => strings(texts, out, bad)?,
        (_, DataType::Boolean) if texts.guessed => values::<u8>(texts, out, bad, boolean),
        (_, DataType::Int64) if texts.guessed => values::<i64>(texts, out, bad, plain_integer),
        (_, LONG_INTEGER) if texts.guessed => values::<i128>(texts, out, bad, plain_long_integer),
        (_, DataType::Float64) if texts.guessed => values::<f64>(texts, out, bad, plain_float),
        (_, DataType::Date) if texts.guessed || formats.date.is_some() => {
            values::<i32>(texts, out, bad, |text| formatted_date(text, formats));
        }
        (_, DataType::Timestamp) if texts.guessed => {
            values::<i64>(texts, out, bad, |text| guessed_timestamp(text, formats));
        }
        (_, DataType::TimestampTz) if texts.guessed => {
            values::<i64>(texts, out, bad, |text| guessed_timestamp_tz(text, formats));
        }
        (_, DataType::Time) if texts.guessed => values::<i64>(texts, out, bad, time),
        (_, DataType::Timestamp | DataType::TimestampTz) if formats.timestamp.is_some() => {
            let zone = (texts.ty == DataType::TimestampTz).then_some(texts.options.zone);
            values::<i64>(texts, out, bad, |text| {
                let format = formats.timestamp.as_ref()?;
                let read = format.timestamp(text)?;
                match zone.filter(|_| !format.has_offset) {
                    Some(zone) => zone.instant(read),
                    None => Some(read),
                }
            });
        }
        (_, DataType::TimestampNs) if formats.timestamp.is_some() => {
            values::<i64>(texts, out, bad, |text| nanos_of(formats.timestamp.as_ref()?.timestamp(text)?));
        }
        (_, DataType::Enum(_)) => generally(texts, out, bad)?,
        (PhysicalType::I8, _) => integers::<i8>(texts, out, bad),
        (PhysicalType::I16, _) => integers::<i16>(texts, out, bad),
        (PhysicalType::U8, _) => integers::<u8>(texts, out, bad),
        (PhysicalType::U16, _) => integers::<u16>(texts, out, bad),
        (PhysicalType::U32, _) => integers::<u32>(texts, out, bad),
        (PhysicalType::U64, _) => integers::<u64>(texts, out, bad),
        (_, DataType::Int32) => integers::<i32>(texts, out, bad),
        (_, DataType::Int64) => integers::<i64>(texts, out, bad),
        (_, DataType::Date) => values::<i32>(texts, out, bad, |text| date(text).map(|days| days as i32)),
        (_, DataType::Timestamp) => values::<i64>(texts, out, bad, timestamp),
        (_, DataType::TimestampTz) => values::<i64>(texts, out, bad, timestamp_tz),
        (PhysicalType::I64, DataType::Decimal { precision, scale }) => {
            values::<i64>(texts, out, bad, |text| decimal(text, precision, scale));
        }
        (PhysicalType::F64, _) => values::<f64>(texts, out, bad, float),
        (PhysicalType::F32, _) => values::<f32>(texts, out, bad, float),
        (_, DataType::Boolean) => values::<u8>(texts, out, bad, |text| match text {
            b"t" => Some(1),
            b"f" => Some(0),
            text => boolean(text),
        }),
        _ => generally(texts, out, bad)?,
    }
    Ok(())
}

/// Reads each value by the general path.
fn generally(texts: &Texts<'_>, out: &mut Vector, bad: &mut Vec<usize>) -> Result<()> {
    let rows = texts.spans.len();
    out.begin(rows.max(CHUNK_ROWS));
    for row in 0..rows {
        let length = texts.get(row).len();
        // The text and the value as they are converted, and the value in the vector.
        let _memory = if length > LONG { statement::reserve(3 * length)? } else { None };
        general(texts, row, out, bad);
    }
    Ok(())
}

/// Reads with `fast`, and what that does not accept with the general path.
fn values<T: Native>(
    texts: &Texts<'_>,
    out: &mut Vector,
    bad: &mut Vec<usize>,
    fast: impl Fn(&[u8]) -> Option<T>,
) {
    let rows = texts.spans.len();
    let target = out.begin_flat::<T>(rows.max(CHUNK_ROWS));
    let mut odd: Vec<usize> = Vec::new();
    // An empty field is not accepted anyway, so NULLs must be checked first only if they have other texts.
    let null_first = texts.options.nulls.iter().any(|null| !null.is_empty());
    for (row, target) in target[..rows].iter_mut().enumerate() {
        let text = texts.get(row);
        let value = if null_first && texts.is_null(row, text) {
            None
        } else {
            fast(text).or_else(|| fast(text.trim_ascii()))
        };
        match value {
            Some(value) => *target = value,
            None => odd.push(row),
        }
    }
    // If there is only the fast path, text that it does not accept is an error.
    let formats = &texts.options.formats;
    let only = texts.guessed
        || match texts.ty {
            DataType::Date => formats.date.is_some(),
            DataType::Timestamp | DataType::TimestampNs | DataType::TimestampTz => {
                formats.timestamp.is_some()
            }
            _ => false,
        };
    for row in odd {
        if !only {
            general(texts, row, out, bad);
            continue;
        }
        if !texts.is_null(row, texts.get(row)) {
            bad.push(row);
        }
        out.set_null(row);
    }
}

fn integers<T: Native + TryFrom<i64>>(texts: &Texts<'_>, out: &mut Vector, bad: &mut Vec<usize>) {
    values::<T>(texts, out, bad, |text| T::try_from(integer(text)?).ok());
}

fn strings(texts: &Texts<'_>, out: &mut Vector, bad: &mut Vec<usize>) -> Result<()> {
    let rows = texts.spans.len();
    let mut meter = Meter::default();
    let StringsMut { views, heap } = out.begin_strings(rows.max(CHUNK_ROWS));
    let mut nulls: Vec<usize> = Vec::new();
    for (row, view) in views[..rows].iter_mut().enumerate() {
        let text = texts.get(row);
        if text.len() > LONG {
            meter.ask(text.len(), heap)?;
        }
        if texts.is_null(row, text) {
            nulls.push(row);
        } else if text.is_ascii() || std::str::from_utf8(text).is_ok() {
            *view = heap.push(text);
        } else {
            nulls.push(row);
            bad.push(row);
        }
    }
    nulls.into_iter().for_each(|row| out.set_null(row));
    Ok(())
}

/// Reads one field like a cast of its text.
fn general(texts: &Texts<'_>, row: usize, out: &mut Vector, bad: &mut Vec<usize>) {
    let text = texts.get(row);
    let value =
        if texts.is_null(row, text) { Some(Value::Null) } else { cast(text, texts.ty, texts.options.zone) };
    let value = match value {
        Some(Value::Integer(number)) if texts.ty == DataType::Uuid => {
            Some(Value::Integer(uuid_to_ordered(number)))
        }
        value => value,
    };
    if value.is_none_or(|value| out.write_value(row, &value).is_err()) {
        out.set_null(row);
        bad.push(row);
    }
}

fn cast(text: &[u8], ty: DataType, zone: TimeZone) -> Option<Value> {
    let text_of = std::str::from_utf8(text).ok()?;
    let value = match ty.contains(DataType::TimestampTz) {
        true => zone.convert(&Value::Text(text_of.into()), DataType::Varchar, ty, false).ok()?,
        false => parse_value(text_of, ty).ok()?,
    };
    let changed = match value {
        Value::Integer(_) => ty.is_integer() && has_fraction(text.trim_ascii()),
        Value::Float(number) => number.is_infinite() && text.iter().any(u8::is_ascii_digit),
        _ => false,
    };
    (!changed).then_some(value)
}

/// True if a number written with a point or an exponent is not an integer.
fn has_fraction(text: &[u8]) -> bool {
    let exponent_at = text.iter().position(|b| matches!(b, b'e' | b'E')).unwrap_or(text.len());
    let (digits, exponent) = (&text[..exponent_at], text.get(exponent_at + 1..).unwrap_or_default());
    let exponent: i64 = std::str::from_utf8(exponent).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let digits = digits.strip_prefix(b"-").or_else(|| digits.strip_prefix(b"+")).unwrap_or(digits);
    let point = digits.iter().position(|b| *b == b'.').unwrap_or(digits.len()) as i64;
    let places = (0..point.saturating_add(exponent)).rev().map(Some).chain(std::iter::repeat(None));
    digits.iter().filter(|b| **b != b'.').zip(places).any(|(digit, place)| place.is_none() && *digit != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_told_from_integers() {
        for text in ["1.5", "-0.1", "15e-1", "1.25e1", ".5", "1e-1"] {
            assert!(has_fraction(text.as_bytes()), "{text}");
        }
        for text in ["1", "1.0", "+1.", "1.5e1", "10e-1", "0e-5", "0.00", "1e3", "0e9223372036854775807"] {
            assert!(!has_fraction(text.as_bytes()), "{text}");
        }
    }
}
