//! Text to dates, times of day and timestamps.
//!
//! [`parse_date`], [`parse_time`], [`parse_time_tz`] and [`parse_timestamp`] are the fast path, for the most
//! frequent plain forms. [`parse_moment`] reads all forms: years before 1 (`0044-03-15 (BC)`, `0044-03-15
//! 10:00:00 BC`), `infinity` and `-infinity`, `epoch`, the end of a day as `24:00:00`, and a zone, whose name
//! is left to a caller that knows zones.

use super::calendar::{day_of, days_in_month, is_finite};
use crate::time_tz;
use crate::types::{INFINITE_DATE, INFINITE_TIMESTAMP, MICROS_PER_DAY};
use crate::value::days_from_civil;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Takes an unsigned number of `min` to `max` digits off the front.
#[inline]
fn take_number(bytes: &mut &[u8], min: usize, max: usize) -> Option<i64> {
    let digits = bytes.iter().take(max).take_while(|b| b.is_ascii_digit()).count();
    if digits < min {
        return None;
    }
    let number = bytes[..digits].iter().fold(0i64, |number, digit| number * 10 + i64::from(digit - b'0'));
    *bytes = &bytes[digits..];
    Some(number)
}

#[inline]
fn take(bytes: &mut &[u8], wanted: u8) -> Option<()> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    (*first == wanted).then_some(())
}

/// `2024-02-29`: year, month and day with one separator, `-` or `/`. A year may have up to seven digits and a
/// sign, or be followed by ` (BC)`.
#[inline]
pub fn parse_date(mut bytes: &[u8]) -> Option<i32> {
    let days = take_date(&mut bytes)?;
    bytes.is_empty().then_some(days)
}

#[inline]
fn take_date(bytes: &mut &[u8]) -> Option<i32> {
    let (year, month, day) = take_civil(bytes)?;
    let year = match bytes.strip_prefix(b" (BC)") {
        Some(rest) => {
            *bytes = rest;
            1 - year
        }
        None => year,
    };
    date_of(year, month, day)
}

/// Year, month and day as they are written.
#[inline]
fn take_civil(bytes: &mut &[u8]) -> Option<(i64, u32, u32)> {
    let negative = bytes.first() == Some(&b'-');
    if matches!(bytes.first(), Some(b'-' | b'+')) {
        *bytes = &bytes[1..];
    }
    let year = take_number(bytes, 1, 7)?;
    let separator = *bytes.first().filter(|b| matches!(b, b'-' | b'/'))?;
    take(bytes, separator)?;
    let month = take_number(bytes, 1, 2)? as u32;
    take(bytes, separator)?;
    let day = take_number(bytes, 1, 2)? as u32;
    Some((if negative { -year } else { year }, month, day))
}

#[inline]
fn date_of(year: i64, month: u32, day: u32) -> Option<i32> {
    if !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    // The ends of the range stand for infinity.
    i32::try_from(days_from_civil(year, month, day))
        .ok()
        .filter(|days| days.unsigned_abs() < INFINITE_DATE as u32)
}

/// `23:[59[:[59[.999999]]]]`, up to `24:00:00`; digits of fraction after the sixth are truncated.
#[inline]
pub fn parse_time(mut bytes: &[u8]) -> Option<i64> {
    let micros = take_time(&mut bytes)?;
    bytes.is_empty().then_some(micros)
}

fn take_time(bytes: &mut &[u8]) -> Option<i64> {
    let hour = take_number(bytes, 1, 2)?;
    take(bytes, b':')?;
    // A colon without digits behind it ends the time, as in DuckDB and PostgreSQL: `11:`, `11:11:`.
    let is_open = |bytes: &[u8]| !bytes.first().is_some_and(u8::is_ascii_digit);
    let (mut minute, mut second) = (0, 0);
    if !is_open(bytes) {
        minute = take_number(bytes, 2, 2)?;
        if bytes.first() == Some(&b':') {
            take(bytes, b':')?;
            second = if is_open(bytes) { 0 } else { take_number(bytes, 2, 2)? };
        }
    }
    let fraction = take_fraction(bytes);
    let micros = (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + fraction;
    (minute < 60 && second < 60 && micros <= MICROS_PER_DAY).then_some(micros)
}

/// `23:59:59+02`, a time as [`parse_time`] reads it and its offset, of less than 16 hours, as a TIMETZ: `Z`,
/// `UTC` or `±hh[[:]mm[:ss]]`, after white space or none. Without an offset it is UTC.
pub fn parse_time_tz(mut bytes: &[u8]) -> Option<i64> {
    let local = take_time(&mut bytes)?;
    let offset = match bytes.trim_ascii_start() {
        [] => 0,
        zone => match parse_zone(zone)? {
            TextZone::Offset(seconds) => seconds,
            _ => return None,
        },
    };
    (offset.abs() <= time_tz::MOST_OFFSET).then(|| time_tz::pack(local, offset))
}

/// Microseconds of `.25`; 0 without a point.
fn take_fraction(bytes: &mut &[u8]) -> i64 {
    let Some(rest) = bytes.strip_prefix(b".") else { return 0 };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut micros = 0;
    let padded = rest[..digits].iter().map(|digit| i64::from(digit - b'0')).chain(std::iter::repeat(0));
    padded.take(6).for_each(|digit| micros = micros * 10 + digit);
    *bytes = &rest[digits..];
    micros
}

/// A moment, in all forms. Returns microseconds, in UTC if there is an offset, and whether there is one.
/// `None` where the zone has a name.
#[inline]
pub fn parse_timestamp(bytes: &[u8]) -> Option<(i64, bool)> {
    let moment = parse_moment(bytes)?;
    match moment.zone {
        TextZone::None => Some((moment.micros, false)),
        TextZone::Offset(seconds) => {
            let micros = moment.micros.checked_sub(seconds * MICROS_PER_SECOND)?;
            is_finite(micros).then_some((micros, true))
        }
        TextZone::Named(_) => None,
    }
}

/// A moment as a text states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment<'a> {
    /// Date and time as they are written, in microseconds since 1970-01-01 00:00:00; or infinity.
    pub micros: i64,
    /// The zone of that date and time.
    pub zone: TextZone<'a>,
}

/// The zone of a [`Moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextZone<'a> {
    /// The text has none.
    None,
    /// Seconds east of Greenwich.
    Offset(i64),
    /// Its name.
    Named(&'a str),
}

impl Moment<'_> {
    /// The day that is written, whatever the zone.
    pub fn date(&self) -> i32 {
        day_of(self.micros)
    }
}

/// `2024-02-29[( |T)23:59[:59[.9]][ ][zone]][ BC]`, where the zone is `Z`, `±hh[[:]mm[:ss]]` or a name;
/// `infinity`, `-infinity`, `epoch`.
#[inline]
pub fn parse_moment(text: &[u8]) -> Option<Moment<'_>> {
    let plain = |micros| Some(Moment { micros, zone: TextZone::None });
    let mut bytes = text;
    let Some((mut year, month, day)) = take_civil(&mut bytes) else {
        return match text {
            _ if text.eq_ignore_ascii_case(b"infinity") || text.eq_ignore_ascii_case(b"+infinity") => {
                plain(INFINITE_TIMESTAMP)
            }
            _ if text.eq_ignore_ascii_case(b"-infinity") => plain(-INFINITE_TIMESTAMP),
            // The same moment in every zone.
            _ if text.eq_ignore_ascii_case(b"epoch") => Some(Moment { micros: 0, zone: TextZone::Offset(0) }),
            _ => None,
        };
    };
    if let Some(rest) = bytes.strip_prefix(b" (BC)") {
        bytes = rest;
        year = 1 - year;
    } else if let [rest @ .., b'b' | b'B', b'c' | b'C'] = bytes
        && rest.last().is_some_and(|b| !b.is_ascii_alphabetic())
    {
        bytes = rest.trim_ascii_end();
        year = 1 - year;
    }
    let midnight = i64::from(date_of(year, month, day)?).checked_mul(MICROS_PER_DAY)?;
    if bytes.is_empty() {
        return plain(midnight);
    }
    if !matches!(bytes[0], b' ' | b'T' | b't') {
        return None;
    }
    bytes = bytes[1..].trim_ascii_start();
    let micros = midnight.checked_add(take_time(&mut bytes)?)?;
    if !is_finite(micros) {
        return None;
    }
    let zone = bytes.trim_ascii_start();
    let zone = match zone {
        [] => TextZone::None,
        _ => match parse_zone(zone)? {
            // A name stands apart from the time: `10:00 EST`, and not `10:00AB`.
            TextZone::Named(_) if zone.len() == bytes.len() => return None,
            zone => zone,
        },
    };
    Some(Moment { micros, zone })
}

/// A date and time as [`parse_moment`] reads them, whatever the zone, in nanoseconds since 1970; digits of
/// fraction after the ninth are truncated. `None` also for what is before 1678 or after 2261.
pub fn parse_nanos(text: &[u8]) -> Option<i64> {
    let micros = parse_moment(text)?.micros;
    if !is_finite(micros) {
        return Some(micros);
    }
    // A point is found only before a fraction.
    let fraction = text.iter().position(|byte| *byte == b'.').map_or(&text[..0], |point| &text[point + 1..]);
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).skip(6);
    let padded = digits.map(|digit| i64::from(digit - b'0')).chain(std::iter::repeat(0));
    let rest = padded.take(3).fold(0, |rest, digit| rest * 10 + digit);
    micros.checked_mul(1000)?.checked_add(rest).filter(|nanos| is_finite(*nanos))
}

fn parse_zone(bytes: &[u8]) -> Option<TextZone<'_>> {
    match bytes[0] {
        b'+' | b'-' => parse_offset(bytes).map(TextZone::Offset),
        _ if bytes.eq_ignore_ascii_case(b"z") || bytes.eq_ignore_ascii_case(b"utc") => {
            Some(TextZone::Offset(0))
        }
        b'a'..=b'z' | b'A'..=b'Z' => std::str::from_utf8(bytes).ok().map(TextZone::Named),
        _ => None,
    }
}

/// `±hh[[:]mm[[:]ss]]` in seconds.
pub fn parse_offset(bytes: &[u8]) -> Option<i64> {
    let (sign, mut rest) = match bytes.split_first()? {
        (b'+', rest) => (1, rest),
        (b'-', rest) => (-1, rest),
        _ => return None,
    };
    let hours = take_number(&mut rest, 1, 2)?;
    let mut part = || {
        if rest.is_empty() {
            return Some(0);
        }
        rest = rest.strip_prefix(b":").unwrap_or(rest);
        take_number(&mut rest, 2, 2).filter(|number| *number < 60)
    };
    let (minutes, seconds) = (part()?, part()?);
    (rest.is_empty() && hours < 19).then_some(sign * (hours * 3600 + minutes * 60 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, Value};

    fn read(text: &str) -> String {
        match parse_moment(text.as_bytes()) {
            Some(Moment { micros, zone }) => {
                let moment = Value::Integer(micros.into());
                let text = moment.display(DataType::Timestamp).to_string();
                match zone {
                    TextZone::None => text,
                    TextZone::Offset(seconds) => format!("{text} at {seconds}"),
                    TextZone::Named(name) => format!("{text} in {name}"),
                }
            }
            None => "none".into(),
        }
    }

    #[test]
    fn all_forms() {
        for (text, expected) in [
            ("2024-02-29", "2024-02-29 00:00:00"),
            ("2024-02-29T23:59", "2024-02-29 23:59:00"),
            ("2024-02-29 24:00:00", "2024-03-01 00:00:00"),
            ("2024-02-29 10:00:00.1234567 Z", "2024-02-29 10:00:00.123456 at 0"),
            ("2024-02-29 10:00:00-0230", "2024-02-29 10:00:00 at -9000"),
            ("1890-01-01 00:00:00+00:53:28", "1890-01-01 00:00:00 at 3208"),
            ("2024-02-29 10:", "2024-02-29 10:00:00"),
            ("2024-02-29 10:11:", "2024-02-29 10:11:00"),
            ("2024-02-29 10:11:12.", "2024-02-29 10:11:12"),
            ("2024-02-29 10:11:12AB", "none"),
            ("2024-02-29 10:11:12.13AB", "none"),
            ("2024-02-29 10:11:12.AAA", "none"),
            ("2024-02-29 10:11:12UTC", "2024-02-29 10:11:12 at 0"),
            ("2024-02-29 10:00 Europe/Berlin", "2024-02-29 10:00:00 in Europe/Berlin"),
            ("0044-03-15 (BC)", "0044-03-15 (BC) 00:00:00"),
            ("0044-03-15 BC", "0044-03-15 (BC) 00:00:00"),
            ("0044-03-15 10:00:00 BC", "0044-03-15 (BC) 10:00:00"),
            ("0044-03-15 10:00:00+01 bc", "0044-03-15 (BC) 10:00:00 at 3600"),
            ("294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.775806"),
            ("294247-01-10 04:00:54.775807", "none"),
            ("Infinity", "infinity"),
            ("-infinity", "-infinity"),
            ("epoch", "1970-01-01 00:00:00 at 0"),
            ("2023-02-29", "none"),
            ("0001-02-29 BC", "0001-02-29 (BC) 00:00:00"),
            ("2024-02-29 10:00:00 ?", "none"),
            ("2024-02-29x", "none"),
            ("", "none"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn nanoseconds() {
        for (text, expected) in [
            ("1970-01-01 00:00:00.123456789", Some(123_456_789)),
            ("1970-01-01 00:00:00.1234567899", Some(123_456_789)),
            ("1970-01-01 00:00:00.1234567", Some(123_456_700)),
            ("1970-01-01 00:00:01.5 +02", Some(1_500_000_000)),
            ("1969-12-31 23:59:59.999999999", Some(-1)),
            ("1970-01-02", Some(MICROS_PER_DAY * 1000)),
            ("2262-04-11 23:47:16.854775806", Some(i64::MAX - 1)),
            ("2262-04-11 23:47:16.854775807", None),
            ("1600-01-01", None),
            ("infinity", Some(INFINITE_TIMESTAMP)),
            ("1970-01-01 x", None),
        ] {
            assert_eq!(parse_nanos(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn times_with_an_offset() {
        for (text, expected) in [
            ("12:34:56+02", "12:34:56+02"),
            ("12:34:56.5 -03:30", "12:34:56.5-03:30"),
            ("12:34+0130", "12:34:00+01:30"),
            ("12:34:56", "12:34:56+00"),
            ("12:34:56Z", "12:34:56+00"),
            ("12:34:56 utc", "12:34:56+00"),
            ("24:00:00-15:59:59", "24:00:00-15:59:59"),
        ] {
            let packed = parse_time_tz(text.as_bytes()).unwrap();
            assert_eq!(Value::Integer(packed.into()).display(DataType::TimeTz).to_string(), expected);
        }
        for text in ["12:34:56+16", "12:34:56+", "12:34:56 Europe/Berlin", "24:00:01+00", "+02", "x", ""] {
            assert_eq!(parse_time_tz(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn times_end_with_the_day() {
        assert_eq!(parse_time(b"24:00:00"), Some(MICROS_PER_DAY));
        assert_eq!(parse_time(b"24:00:01"), None);
        assert_eq!(parse_time(b"23:60"), None);
        assert_eq!(parse_time(b"11:"), Some(11 * 3600 * MICROS_PER_SECOND));
        assert_eq!(parse_time(b"11:11:"), parse_time(b"11:11"));
        assert_eq!((parse_time(b"11"), parse_time(b"11::")), (None, None));
    }
}
