//! Dates and timestamps in formats other than ISO 8601: the options `dateformat` and `timestampformat`, in
//! the notation of C's `strftime`, for reading and writing.
//!
//! A format with an offset (`%z`) yields instants, any other one local times.

use crate::option_values::text_option;
use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{DateTime, NaiveDate, NaiveTime};
use entasis_functions::Argument;
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::{Error, Result};
use std::fmt::Write;

/// The formats of a file; those that are not given are ISO 8601.
#[derive(Debug, Clone, Default)]
pub struct TimeFormats {
    pub(super) date: Option<TimeFormat>,
    pub(super) timestamp: Option<TimeFormat>,
}

/// A format, parsed.
#[derive(Debug, Clone)]
pub(super) struct TimeFormat {
    items: Vec<Item<'static>>,
    /// Whether it has an offset from UTC.
    pub(super) has_offset: bool,
}

impl TimeFormat {
    /// The value of the option, of the form `'%d/%m/%Y'`. `auto` and the empty text stand for ISO 8601.
    pub(super) fn of_option(name: &str, value: &Argument) -> Result<Option<TimeFormat>> {
        let text = text_option(name, value)?;
        if text.is_empty() || text.eq_ignore_ascii_case("auto") {
            return Ok(None);
        }
        let items = StrftimeItems::new(text).parse_to_owned().map_err(|_| {
            Error::input(format!("option {name}: '{text}' is not a format"))
                .with_hint("the letters are those of strftime, as in '%d/%m/%Y %H:%M:%S'")
        })?;
        Ok(Some(TimeFormat {
            items,
            has_offset: text.contains("%z") || text.contains("%:z") || text.contains("%+"),
        }))
    }

    fn parsed(&self, text: &[u8]) -> Option<Parsed> {
        let mut parsed = Parsed::new();
        parse(&mut parsed, std::str::from_utf8(text).ok()?, self.items.iter()).ok()?;
        Some(parsed)
    }

    /// Parses a date, as days since 1970.
    pub(super) fn date(&self, text: &[u8]) -> Option<i32> {
        let date = self.parsed(text)?.to_naive_date().ok()?;
        i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days()).ok()
    }

    /// Parses a timestamp, as microseconds since 1970. Without a time it is midnight.
    pub(super) fn timestamp(&self, text: &[u8]) -> Option<i64> {
        let parsed = self.parsed(text)?;
        if self.has_offset {
            return Some(parsed.to_datetime().ok()?.timestamp_micros());
        }
        let time = match parsed.hour_div_12().is_some() || parsed.hour_mod_12().is_some() {
            true => parsed.to_naive_time().ok()?,
            false => NaiveTime::MIN,
        };
        Some(parsed.to_naive_date().ok()?.and_time(time).and_utc().timestamp_micros())
    }

    /// Writes days since 1970. False if the date is out of the calendar's range.
    pub(super) fn write_date(&self, days: i64, out: &mut String) -> bool {
        days.checked_mul(MICROS_PER_DAY).is_some_and(|micros| self.write_timestamp(micros, out))
    }

    /// Writes microseconds since 1970. False if the date is out of the calendar's range.
    pub(super) fn write_timestamp(&self, micros: i64, out: &mut String) -> bool {
        let Some(time) = DateTime::from_timestamp_micros(micros) else { return false };
        write!(out, "{}", time.format_with_items(self.items.iter())).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::option_values::plain;
    use entasis_vector::Value;

    fn format(text: &str) -> TimeFormat {
        TimeFormat::of_option("dateformat", &plain(&Value::Text(text.into()))).unwrap().unwrap()
    }

    #[test]
    fn formats_read_what_they_write() {
        for (pattern, text, micros) in [
            ("%d/%m/%Y", "03/02/1970", 33 * MICROS_PER_DAY),
            ("%d.%m.%y %H:%M", "02.01.70 01:30", MICROS_PER_DAY + 5_400_000_000),
            ("%Y%m%d", "19691231", -MICROS_PER_DAY),
            ("%b %d %Y %I:%M:%S.%6f %p", "Jan 01 1970 12:00:00.500000 PM", MICROS_PER_DAY / 2 + 500_000),
        ] {
            let format = format(pattern);
            assert_eq!(format.timestamp(text.as_bytes()), Some(micros), "{pattern}");
            assert_eq!(
                format.date(text.as_bytes()),
                Some(micros.div_euclid(MICROS_PER_DAY) as i32),
                "{pattern}"
            );
            let mut written = String::new();
            assert!(format.write_timestamp(micros, &mut written));
            assert_eq!(written, text);
        }
        assert_eq!(format("%d/%m/%Y").date(b"31/02/2024"), None);
        assert_eq!(format("%d/%m/%Y").date(b"01/02/2024x"), None);
        assert_eq!(format("%Y-%m-%d %H:%M %z").timestamp(b"1970-01-01 02:00 +0200"), Some(0));
        assert!(!format("%Y").write_date(i64::MAX, &mut String::new()));
        let error = TimeFormat::of_option("dateformat", &plain(&Value::Text("%Q".into()))).unwrap_err();
        assert!(error.message().contains("'%Q'"), "{error}");
    }
}
