//! The types that can be guessed for a column, and the texts that each of them accepts.
//!
//! A guess never changes a value: a type accepts only texts in the form in which it writes values, or nearly
//! so. Codes such as `007` and `+49` are text; integers beyond BIGINT are DECIMAL(38, 0) and longer ones
//! text; a DOUBLE accepts an integer only if it represents it exactly. The guess is made from the first rows,
//! and applies to the whole file: a later text that the type does not accept is an error.

use super::parse::{boolean, date, float, integer, time, timestamp, timestamp_tz};
use super::time_format::TimeFormats;
use entasis_vector::DataType;
use entasis_vector::types::pow10;

/// The type of integers beyond BIGINT.
pub(super) const LONG_INTEGER: DataType = DataType::Decimal { precision: 38, scale: 0 };

/// Candidates in order of preference; text that none of them accepts is VARCHAR.
const CANDIDATES: [DataType; 8] = [
    DataType::Boolean,
    DataType::Int64,
    LONG_INTEGER,
    DataType::Float64,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::TimestampTz,
];

/// What the texts of a column can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guess {
    /// The candidates that have accepted every text, as bits.
    viable: u8,
    /// Whether there was any text.
    seen: bool,
}

impl Guess {
    /// The guess of a column of which nothing is known.
    pub(super) const NOTHING: Guess = Guess { viable: u8::MAX, seen: false };

    /// Takes another text of the column into account.
    pub(super) fn narrow(&mut self, text: &[u8], formats: &TimeFormats) {
        self.seen = true;
        self.viable = self.takes(text, formats);
    }

    /// The candidates still viable that accept the text.
    fn takes(self, text: &[u8], formats: &TimeFormats) -> u8 {
        let text = text.trim_ascii();
        let candidates = CANDIDATES.iter().enumerate();
        let taking =
            candidates.filter(|(bit, ty)| self.viable & (1 << bit) != 0 && takes(**ty, text, formats));
        taking.fold(0, |bits, (bit, _)| bits | 1 << bit)
    }

    /// True if no candidate would be left with this text.
    pub(super) fn is_refuted_by(self, text: &[u8], formats: &TimeFormats) -> bool {
        self.seen && self.viable != 0 && self.takes(text, formats) == 0
    }

    /// The guess of one column of which both were parts.
    pub(super) fn and(self, other: Guess) -> Guess {
        Guess { viable: self.viable & other.viable, seen: self.seen || other.seen }
    }

    /// The guessed type.
    pub(super) fn ty(self) -> DataType {
        match CANDIDATES.iter().enumerate().find(|(bit, _)| self.viable & (1 << bit) != 0) {
            Some((_, ty)) if self.seen => *ty,
            _ => DataType::Varchar,
        }
    }
}

/// True if a text cannot be the name of a column: it is a value of a candidate, or consists of digits and
/// signs.
pub(super) fn is_value(text: &[u8], formats: &TimeFormats) -> bool {
    let text = text.trim_ascii();
    let of_digits = text.iter().any(u8::is_ascii_digit)
        && text.iter().all(|b| b.is_ascii_digit() || b.is_ascii_punctuation() || *b == b' ');
    of_digits || CANDIDATES.iter().any(|ty| takes(*ty, text, formats))
}

fn takes(ty: DataType, text: &[u8], formats: &TimeFormats) -> bool {
    match ty {
        DataType::Boolean => boolean(text).is_some(),
        DataType::Int64 => plain_integer(text).is_some(),
        LONG_INTEGER => plain_long_integer(text).is_some(),
        DataType::Float64 => plain_float(text).is_some(),
        DataType::Date => formatted_date(text, formats).is_some(),
        DataType::Time => time(text).is_some(),
        DataType::Timestamp => guessed_timestamp(text, formats).is_some(),
        _ => guessed_timestamp_tz(text, formats).is_some(),
    }
}

/// True for digits that are not written as a number: after a leading zero or a plus sign.
#[inline]
fn is_code(text: &[u8]) -> bool {
    matches!(text, [b'+', ..] | [b'-', b'+', ..] | [b'0', b'0'..=b'9', ..] | [b'-', b'0', b'0'..=b'9', ..])
}

/// Parses a BIGINT.
#[inline]
pub(super) fn plain_integer(text: &[u8]) -> Option<i64> {
    let number =
        integer(text).or_else(|| plain_long_integer(text).and_then(|number| i64::try_from(number).ok()))?;
    (!is_code(text)).then_some(number)
}

/// Parses an integer of up to 38 digits.
pub(super) fn plain_long_integer(text: &[u8]) -> Option<i128> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if is_code(text) || digits.is_empty() || digits.len() > 38 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: i128 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.abs() < pow10(38)).then_some(number)
}

/// Parses a DOUBLE. Fractions are rounded to it; integers must be exact.
#[inline]
pub(super) fn plain_float(text: &[u8]) -> Option<f64> {
    let number = float::<f64>(text)?;
    // Fifteen digits are always exact.
    let is_integer = || !text.iter().any(|b| matches!(b, b'.' | b'e' | b'E'));
    let exact = text.len() <= 15
        || !is_integer()
        || plain_long_integer(text).is_some_and(|whole| number as i128 == whole);
    (exact && !is_code(text)).then_some(number)
}

/// Parses a date, in the format that the options give.
pub(super) fn formatted_date(text: &[u8], formats: &TimeFormats) -> Option<i32> {
    match &formats.date {
        Some(format) => format.date(text),
        None => date(text).map(|days| days as i32),
    }
}

/// Parses a timestamp without an offset; a date is its midnight.
pub(super) fn guessed_timestamp(text: &[u8], formats: &TimeFormats) -> Option<i64> {
    let timestamp = match &formats.timestamp {
        Some(format) if format.has_offset => None,
        Some(format) => format.timestamp(text),
        None => timestamp(text),
    };
    timestamp
        .or_else(|| Some(i64::from(formatted_date(text, formats)?) * entasis_vector::types::MICROS_PER_DAY))
}

/// Parses a timestamp with an offset.
pub(super) fn guessed_timestamp_tz(text: &[u8], formats: &TimeFormats) -> Option<i64> {
    match &formats.timestamp {
        Some(format) if !format.has_offset => None,
        Some(format) => format.timestamp(text),
        None => timestamp_tz(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(texts: &[&str]) -> DataType {
        let mut guess = Guess::NOTHING;
        texts.iter().for_each(|text| guess.narrow(text.as_bytes(), &TimeFormats::default()));
        guess.ty()
    }

    #[test]
    fn a_type_takes_only_what_it_does_not_change() {
        use DataType::*;
        for (texts, ty) in [
            (&["0", "-1", "9223372036854775807"][..], Int64),
            (&["-9223372036854775808"], Int64),
            (&["1", "9223372036854775808"], LONG_INTEGER),
            (&["-99999999999999999999999999999999999999"], LONG_INTEGER),
            (&["100000000000000000000000000000000000000"], Varchar),
            (&["1", "2.5"], Float64),
            (&["0.5", "-.5", "5.", "1e3", "1E+05"], Float64),
            (&["2.5", "9007199254740992"], Float64),
            (&["2.5", "9007199254740993"], Varchar),
            (&["0.5", "100000000000000000000"], Float64),
            (&["1e400"], Varchar),
            (&["01"], Varchar),
            (&["-01"], Varchar),
            (&["00.5"], Varchar),
            (&["+1"], Varchar),
            (&["+1.5"], Varchar),
            (&["1", "true"], Varchar),
            (&["TRUE", "false"], Boolean),
            (&["t"], Varchar),
            (&["2024-01-01"], Date),
            (&["2024-01-01", "2024-01-01 10:00:00"], Timestamp),
            (&["2024-01-01T10:00:00Z"], TimestampTz),
            (&["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"], Varchar),
            (&["23:59:59.5"], Time),
            (&[], Varchar),
        ] {
            assert_eq!(guess(texts), ty, "{texts:?}");
        }
    }

    #[test]
    fn names_of_columns_are_no_values() {
        let is_value = |text: &str| is_value(text.as_bytes(), &TimeFormats::default());
        for value in ["1", "007", "+49 30", "1.5", "2024-01-01", "true", "10:00:00", "12%", "01/02/2024"] {
            assert!(is_value(value), "{value}");
        }
        for name in ["id", "x1", "1st", "2020 sales", "%", ""] {
            assert!(!is_value(name), "{name}");
        }
    }
}
