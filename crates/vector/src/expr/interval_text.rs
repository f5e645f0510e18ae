//! Text to intervals: all forms that PostgreSQL reads, with the units that DuckDB adds.
//!
//! | form | example |
//! |---|---|
//! | numbers with units, with or without spaces | `1 year 2 mons -3 days`, `2h 30m`, `1.5 weeks` |
//! | a time of any length | `02:30`, `-100:00:00.5`, `1 day 02:00:00` |
//! | years and months | `1-2` |
//! | a bare number: days before a time, otherwise seconds | `1 2:03:04`, `3.5` |
//! | any of these, negated | `1 year 2 mons ago` |
//! | ISO 8601, with designators or in the alternative form | `P1Y2M3DT4H5M6.5S`, `P0001-02-03T04:05:06` |
//!
//! A qualifier (`INTERVAL '1-2' YEAR TO MONTH`) says what a bare number counts, and truncates finer units.
//!
//! **Fractions flow down** as in PostgreSQL: of years and longer to whole months (rounded), of months into 30
//! days, of days into 24 hours.

use super::calendar::{add_intervals, negate_interval};
use crate::types::{Interval, MICROS_PER_DAY};

/// What an interval is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum IntervalUnit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
}

/// `YEAR TO MONTH`: the longest and the shortest unit, which are often the same.
pub type Qualifier = (IntervalUnit, IntervalUnit);

/// The length of a unit.
enum Length {
    Months(i32),
    Days(i32),
    Micros(i64),
}

impl IntervalUnit {
    /// A unit by any of its names, in any case.
    pub fn parse(name: &str) -> Option<IntervalUnit> {
        let lower = name.to_ascii_lowercase();
        Some(match lower.strip_suffix('s').filter(|stem| stem.len() > 1).unwrap_or(&lower) {
            "millennium" | "millenium" | "millennia" | "mil" => IntervalUnit::Millennium,
            "century" | "centurie" | "cent" | "c" => IntervalUnit::Century,
            "decade" | "dec" => IntervalUnit::Decade,
            "year" | "yr" | "y" => IntervalUnit::Year,
            "quarter" | "qtr" => IntervalUnit::Quarter,
            "month" | "mon" => IntervalUnit::Month,
            "week" | "w" => IntervalUnit::Week,
            "day" | "d" => IntervalUnit::Day,
            "hour" | "hr" | "h" => IntervalUnit::Hour,
            "minute" | "min" | "m" => IntervalUnit::Minute,
            "second" | "sec" | "s" => IntervalUnit::Second,
            "millisecond" | "msecond" | "msec" | "ms" => IntervalUnit::Millisecond,
            "microsecond" | "usecond" | "usec" | "us" => IntervalUnit::Microsecond,
            _ => return None,
        })
    }

    fn length(self) -> Length {
        match self {
            IntervalUnit::Millennium => Length::Months(12_000),
            IntervalUnit::Century => Length::Months(1200),
            IntervalUnit::Decade => Length::Months(120),
            IntervalUnit::Year => Length::Months(12),
            IntervalUnit::Quarter => Length::Months(3),
            IntervalUnit::Month => Length::Months(1),
            IntervalUnit::Week => Length::Days(7),
            IntervalUnit::Day => Length::Days(1),
            IntervalUnit::Hour => Length::Micros(3_600_000_000),
            IntervalUnit::Minute => Length::Micros(60_000_000),
            IntervalUnit::Second => Length::Micros(1_000_000),
            IntervalUnit::Millisecond => Length::Micros(1000),
            IntervalUnit::Microsecond => Length::Micros(1),
        }
    }

    /// One of them.
    pub fn interval(self) -> Interval {
        match self.length() {
            Length::Months(months) => Interval { months, ..Interval::default() },
            Length::Days(days) => Interval { days, ..Interval::default() },
            Length::Micros(micros) => Interval { micros, ..Interval::default() },
        }
    }
}

/// The interval that a text stands for; `None` if it stands for none.
pub fn parse_interval(text: &str) -> Option<Interval> {
    parse_qualified(text, None)
}

/// The interval that a text stands for under a qualifier.
pub fn parse_qualified(text: &str, qualifier: Option<Qualifier>) -> Option<Interval> {
    let text = text.trim();
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) if rest.starts_with(['P', 'p']) => (true, rest),
        _ => (false, text),
    };
    let interval = match unsigned.strip_prefix(['P', 'p']) {
        Some(iso) if negative => negate_interval(parse_iso(iso)?)?,
        Some(iso) => parse_iso(iso)?,
        None => parse_items(text, qualifier)?,
    };
    Some(match qualifier {
        Some((_, shortest)) => cut(interval, shortest),
        None => interval,
    })
}

/// An interval without units finer than `unit`.
fn cut(interval: Interval, unit: IntervalUnit) -> Interval {
    let Interval { months, days, micros } = interval;
    match unit {
        IntervalUnit::Year => Interval { months: months / 12 * 12, days: 0, micros: 0 },
        IntervalUnit::Month => Interval { months, days: 0, micros: 0 },
        IntervalUnit::Day => Interval { micros: 0, ..interval },
        IntervalUnit::Hour => Interval { months, days, micros: micros / 3_600_000_000 * 3_600_000_000 },
        IntervalUnit::Minute => Interval { months, days, micros: micros / 60_000_000 * 60_000_000 },
        _ => interval,
    }
}

/// A number, as the text has it.
#[derive(Clone, Copy)]
struct Number {
    negative: bool,
    whole: i64,
    fraction: f64,
}

impl Number {
    /// That many units.
    fn of(self, unit: IntervalUnit) -> Option<Interval> {
        let sign = if self.negative { -1 } else { 1 };
        let whole = self.whole.checked_mul(sign)?;
        let fraction = if self.negative { -self.fraction } else { self.fraction };
        let small = || i32::try_from(whole).ok();
        match unit.length() {
            Length::Months(1) => {
                let rest = days_of(fraction * 30.0)?;
                Some(Interval { months: small()?, ..rest })
            }
            // A quarter is too short for its fraction to be whole months.
            Length::Months(3) => {
                let months = fraction * 3.0;
                let rest = days_of(months.fract() * 30.0)?;
                Some(Interval {
                    months: small()?.checked_mul(3)?.checked_add(months.trunc() as i32)?,
                    ..rest
                })
            }
            Length::Months(n) => {
                let months = small()?
                    .checked_mul(n)?
                    .checked_add((fraction * f64::from(n)).round_ties_even() as i32)?;
                Some(Interval { months, ..Interval::default() })
            }
            Length::Days(n) => {
                let rest = days_of(fraction * f64::from(n))?;
                Some(Interval { days: small()?.checked_mul(n)?.checked_add(rest.days)?, ..rest })
            }
            Length::Micros(n) => {
                let micros = whole.checked_mul(n)?.checked_add((fraction * n as f64).round() as i64)?;
                Some(Interval { micros, ..Interval::default() })
            }
        }
    }
}

/// Days and the time that a fraction of them is.
fn days_of(days: f64) -> Option<Interval> {
    let micros = (days.fract() * MICROS_PER_DAY as f64).round() as i64;
    Some(Interval { months: 0, days: days.trunc() as i32, micros })
}

/// A part of the text.
enum Item {
    /// A part whose meaning is known.
    Interval(Interval),
    /// `hh:mm:ss`
    Time(Interval),
    /// A number without a unit.
    Bare(Number),
}

fn parse_items(text: &str, qualifier: Option<Qualifier>) -> Option<Interval> {
    let mut rest = text.as_bytes();
    if let Some(after) = rest.strip_prefix(b"@") {
        rest = after;
    }
    let mut items = Vec::new();
    let mut ago = false;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        if ago {
            return None;
        }
        if !items.is_empty() && rest.eq_ignore_ascii_case(b"ago") {
            ago = true;
            rest = &[];
            continue;
        }
        items.push(take_item(&mut rest, qualifier)?);
    }
    let mut sum: Option<Interval> = None;
    // Only one number has no unit of its own.
    if items.iter().filter(|item| matches!(item, Item::Bare(_))).count() > 1 && qualifier.is_none() {
        return None;
    }
    // What a bare number counts: from the right, since what follows it tells.
    let mut unit = qualifier.map_or(IntervalUnit::Second, |(_, shortest)| shortest);
    for item in items.into_iter().rev() {
        let part = match item {
            Item::Interval(part) => part,
            Item::Time(part) => {
                unit = IntervalUnit::Day;
                part
            }
            Item::Bare(number) => {
                let part = number.of(unit)?;
                unit = if unit == IntervalUnit::Hour { IntervalUnit::Day } else { IntervalUnit::Second };
                part
            }
        };
        sum = Some(match sum {
            None => part,
            Some(sum) => add_intervals(sum, part)?,
        });
    }
    let sum = sum?;
    if ago { negate_interval(sum) } else { Some(sum) }
}

fn take_item(rest: &mut &[u8], qualifier: Option<Qualifier>) -> Option<Item> {
    let negative = match rest.first()? {
        b'-' | b'+' => {
            let sign = rest[0];
            *rest = rest[1..].trim_ascii_start();
            sign == b'-'
        }
        _ => false,
    };
    let signed = |interval| if negative { negate_interval(interval) } else { Some(interval) };
    let digits = take_digits(rest);
    let whole = whole_number(digits)?;
    match rest.first() {
        Some(b':') if !digits.is_empty() => {
            let time = take_time(whole, rest, qualifier)?;
            return Some(Item::Time(signed(Interval { micros: time, ..Interval::default() })?));
        }
        Some(b'-') if !digits.is_empty() && rest.get(1).is_some_and(u8::is_ascii_digit) => {
            *rest = &rest[1..];
            let months = whole_number(take_digits(rest))?;
            let months = i32::try_from(whole.checked_mul(12)?.checked_add(months)?).ok()?;
            return Some(Item::Interval(signed(Interval { months, ..Interval::default() })?));
        }
        _ => {}
    }
    let mut fraction = 0.0;
    if let Some(after) = rest.strip_prefix(b".") {
        *rest = after;
        let decimals = take_digits(rest);
        if digits.is_empty() && decimals.is_empty() {
            return None;
        }
        fraction = fraction_of(decimals)?;
    } else if digits.is_empty() {
        return None;
    }
    let number = Number { negative, whole, fraction };
    let after = rest.trim_ascii_start();
    let letters = after.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    if letters == 0 || after.eq_ignore_ascii_case(b"ago") {
        return Some(Item::Bare(number));
    }
    let unit = IntervalUnit::parse(std::str::from_utf8(&after[..letters]).ok()?)?;
    *rest = &after[letters..];
    Some(Item::Interval(number.of(unit)?))
}

fn take_digits<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(count);
    *rest = after;
    digits
}

/// Digits as a number; none are 0.
fn whole_number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |number, digit| number.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
}

/// Digits after a point; none are 0.
fn fraction_of(digits: &[u8]) -> Option<f64> {
    format!("0.{}", std::str::from_utf8(digits).ok()?).parse().ok()
}

/// What follows the hours of `hh:mm[:ss[.f]]`; under `MINUTE TO SECOND` `mm:ss[.f]`.
fn take_time(first: i64, rest: &mut &[u8], qualifier: Option<Qualifier>) -> Option<i64> {
    let part = |rest: &mut &[u8]| {
        *rest = rest.strip_prefix(b":")?;
        let digits = take_digits(rest);
        whole_number(digits).filter(|number| matches!(digits.len(), 1 | 2) && *number < 60)
    };
    let second = part(rest)?;
    let in_minutes = qualifier == Some((IntervalUnit::Minute, IntervalUnit::Second));
    let (hours, minutes, seconds) = match rest.first() {
        Some(b':') if !rest.get(1).is_some_and(u8::is_ascii_digit) => {
            *rest = &rest[1..];
            (first, second, 0)
        }
        Some(b':') => (first, second, part(rest)?),
        Some(b'.') => (0, first, second),
        _ if in_minutes => (0, first, second),
        _ => (first, second, 0),
    };
    let mut micros = 0;
    if let Some(after) = rest.strip_prefix(b".") {
        *rest = after;
        micros = (fraction_of(take_digits(rest))? * 1e6).round() as i64;
    }
    hours
        .checked_mul(3600)?
        .checked_add(minutes.checked_mul(60)?)?
        .checked_add(seconds)?
        .checked_mul(1_000_000)?
        .checked_add(micros)
}

/// What follows the `P`.
fn parse_iso(text: &str) -> Option<Interval> {
    let (date, time) = match text.split_once(['T', 't']) {
        Some((_, "")) => return None,
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut sum = Interval::default();
    let is_alternative = date.as_bytes().get(1..).is_some_and(|rest| rest.contains(&b'-'))
        && !date.contains(|c: char| c.is_ascii_alphabetic());
    if is_alternative {
        let mut parts = date
            .split('-')
            .map(|part| whole_number(part.as_bytes()).filter(|_| part.bytes().all(|b| b.is_ascii_digit())));
        let (years, months, days) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
        let months = years.checked_mul(12)?.checked_add(months)?;
        sum = Interval { months: i32::try_from(months).ok()?, days: i32::try_from(days).ok()?, micros: 0 };
        if parts.next().is_some() {
            return None;
        }
    } else {
        sum = add_intervals(sum, designated(date, "YMWD")?)?;
    }
    match time {
        Some(time) if time.contains(':') => add_intervals(sum, parse_items(time, None)?),
        Some(time) => add_intervals(sum, designated(time, "HMS")?),
        None if text.is_empty() => None,
        None => Some(sum),
    }
}

/// Numbers each followed by one of these letters.
fn designated(text: &str, letters: &str) -> Option<Interval> {
    let mut sum = Interval::default();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let negative = rest[0] == b'-';
        rest = rest.strip_prefix(b"-").or_else(|| rest.strip_prefix(b"+")).unwrap_or(rest);
        let digits = take_digits(&mut rest);
        let whole = whole_number(digits)?;
        let mut decimals: &[u8] = &[];
        if let Some(after) = rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) {
            rest = after;
            decimals = take_digits(&mut rest);
        }
        if digits.is_empty() && decimals.is_empty() {
            return None;
        }
        let letter = char::from(rest.first()?.to_ascii_uppercase());
        rest = &rest[1..];
        let unit = match (letter, letters) {
            (letter, letters) if !letters.contains(letter) => return None,
            ('Y', _) => IntervalUnit::Year,
            ('M', "YMWD") => IntervalUnit::Month,
            ('W', _) => IntervalUnit::Week,
            ('D', _) => IntervalUnit::Day,
            ('H', _) => IntervalUnit::Hour,
            ('M', _) => IntervalUnit::Minute,
            _ => IntervalUnit::Second,
        };
        let number = Number { negative, whole, fraction: fraction_of(decimals)? };
        sum = add_intervals(sum, number.of(unit)?)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, Value};

    fn read(text: &str) -> String {
        show(parse_interval(text))
    }

    fn show(interval: Option<Interval>) -> String {
        interval.map_or("none".into(), |v| Value::Interval(v).display(DataType::Interval).to_string())
    }

    #[test]
    fn all_forms() {
        for (text, expected) in [
            ("1 year 2 months -3 days", "1 year 2 months -3 days"),
            ("1-2", "1 year 2 months"),
            ("-1-2", "-1 year -2 months"),
            ("1-2 3 4:05:06", "1 year 2 months 3 days 04:05:06"),
            ("1 -2:03:04", "1 day -02:03:04"),
            ("2:03", "02:03:00"),
            ("100:00:00.5", "100:00:00.5"),
            ("3.5", "00:00:03.5"),
            ("2h 30m", "02:30:00"),
            ("1y2mon3d", "1 year 2 months 3 days"),
            ("@ 1 minute", "00:01:00"),
            ("1 year 2 mons ago", "-1 year -2 months"),
            ("90 ago", "-00:01:30"),
            ("1 century 2 decades 1 millennium", "1120 years"),
            ("10 quarters", "2 years 6 months"),
            ("1.5 quarters", "4 months 15 days"),
            ("-0.5 quarter", "-1 month -15 days"),
            ("1us 2ms", "00:00:00.002001"),
            ("P1Y2M3W4DT5H6M7.5S", "1 year 2 months 25 days 05:06:07.5"),
            ("P0001-02-03T04:05:06", "1 year 2 months 3 days 04:05:06"),
            ("-PT36H", "-36:00:00"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn fractions_flow_down() {
        for (text, expected) in [
            ("0.05 year", "1 month"),
            ("1.55 years", "1 year 7 months"),
            ("0.5 month", "15 days"),
            ("0.5 week", "3 days 12:00:00"),
            ("-1.5 days", "-1 days -12:00:00"),
            ("1.5 years 2.5 months", "1 year 8 months 15 days"),
            ("P1.5Y", "1 year 6 months"),
            (".5 sec", "00:00:00.5"),
        ] {
            assert_eq!(read(text).replace("-1 day ", "-1 days "), expected, "{text}");
        }
    }

    #[test]
    fn qualifiers_say_what_counts() {
        use IntervalUnit::{Day, Hour, Minute, Month, Second, Year};
        let read = |text, qualifier| show(parse_qualified(text, Some(qualifier)));
        assert_eq!(read("1", (Year, Year)), "1 year");
        assert_eq!(read("1.5", (Year, Year)), "1 year");
        assert_eq!(read("1-2", (Year, Month)), "1 year 2 months");
        assert_eq!(read("1 2", (Day, Hour)), "1 day 02:00:00");
        assert_eq!(read("1 2:03", (Day, Minute)), "1 day 02:03:00");
        assert_eq!(read("2:03", (Minute, Second)), "00:02:03");
        assert_eq!(read("1 day 2:03:04", (Hour, Hour)), "1 day 02:00:00");
    }

    #[test]
    fn others_are_none() {
        for text in [
            "",
            "3 cows",
            "ago",
            "1 year ago ago",
            "1:60",
            "P",
            "PT",
            "P1",
            "1 --2",
            "-",
            "9999999999 years",
            "1 day x",
        ] {
            assert_eq!(read(text), "none", "{text}");
        }
    }
}
