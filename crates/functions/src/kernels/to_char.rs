//! `to_char` of dates, times and intervals by one of PostgreSQL's date patterns ([`super::date_patterns`]),
//! whose fields are written one after the other.

use super::calendar::{JULIAN_1970, day_name, month_name};
use super::date_patterns::{Case, Field, Part, ROMAN, iso_start, parts};
use crate::time_zone::TimeZone;
use Field as F;
use entasis_vector::expr::DatePart;
use entasis_vector::expr::calendar::extract_date;
use entasis_vector::types::{Interval, MICROS_PER_DAY};
use entasis_vector::value::{civil_from_days, write_offset};
use entasis_vector::writer::Writer;
use entasis_vector::{Error, Result};

/// The value to format.
pub(super) enum Moment {
    /// Days since 1970.
    Date(i64),
    /// Microseconds since 1970; for an instant on the clock of a zone, with the seconds by which that is
    /// ahead of UTC.
    Timestamp(i64, Option<(TimeZone, i64)>),
    /// An interval, or microseconds since midnight as one.
    Interval(Interval),
}

/// The fields of a [`Moment`].
struct Clock {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// The day number, if it is a date.
    date: Option<i64>,
    zone: Option<(TimeZone, i64)>,
}

impl Clock {
    fn new(moment: &Moment) -> Clock {
        let time = |micros: i64| {
            let seconds = micros / 1_000_000;
            (seconds / 3600, seconds / 60 % 60, seconds % 60, micros % 1_000_000)
        };
        match *moment {
            Moment::Date(days) => {
                let (year, month, day) = civil_from_days(days);
                let (month, day, date) = (month.into(), day.into(), Some(days));
                Clock { year, month, day, hour: 0, minute: 0, second: 0, micros: 0, date, zone: None }
            }
            Moment::Timestamp(micros, zone) => {
                let days = micros.div_euclid(MICROS_PER_DAY);
                let (year, month, day) = civil_from_days(days);
                let (hour, minute, second, micros) = time(micros.rem_euclid(MICROS_PER_DAY));
                Clock {
                    year,
                    month: month.into(),
                    day: day.into(),
                    hour,
                    minute,
                    second,
                    micros,
                    date: Some(days),
                    zone,
                }
            }
            Moment::Interval(Interval { months, days, micros }) => {
                let (hour, minute, second, micros) = time(micros);
                let (year, month) = (i64::from(months / 12), i64::from(months % 12));
                Clock { year, month, day: days.into(), hour, minute, second, micros, date: None, zone: None }
            }
        }
    }

    /// Seconds by which the zone is ahead of UTC.
    fn offset(&self) -> i64 {
        self.zone.map_or(0, |(_, offset)| offset)
    }

    /// `A` before noon, and `P` after it.
    fn half_day(&self) -> char {
        if self.hour.rem_euclid(24) >= 12 { 'P' } else { 'A' }
    }

    fn is_before_christ(&self) -> Result<bool> {
        self.date()?;
        Ok(self.year <= 0)
    }

    fn century(&self) -> i64 {
        match self.date.is_some() {
            false => self.year / 100,
            true if self.year > 0 => (self.year - 1) / 100 + 1,
            true => self.year / 100 - 1,
        }
    }

    /// A year as it is written: those of a date before 1 count backwards from 1 BC.
    fn shown(&self, year: i64) -> i64 {
        if self.date.is_some() && year <= 0 { 1 - year } else { year }
    }

    /// The number of days since 1970, for fields that only dates have.
    fn date(&self) -> Result<i64> {
        self.date.ok_or_else(|| {
            Error::input("the pattern has a field that intervals and times lack")
                .with_hint("intervals have years, months, days, hours, minutes and seconds")
        })
    }
}

/// A text in the letter case of its keyword.
fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Lower => text.to_lowercase(),
        Case::Capital => text.to_owned(),
    }
}

/// `st`, `nd`, `rd` or `th`, by the last digits.
fn ordinal_ending(digits: &str, case: Case) -> &'static str {
    let mut last = digits.bytes().rev().filter(u8::is_ascii_digit);
    let (unit, ten) = (last.next(), last.next());
    let upper = case == Case::Upper;
    match (ten, unit) {
        (Some(b'1'), _) => {
            if upper {
                "TH"
            } else {
                "th"
            }
        }
        (_, Some(b'1')) => {
            if upper {
                "ST"
            } else {
                "st"
            }
        }
        (_, Some(b'2')) => {
            if upper {
                "ND"
            } else {
                "nd"
            }
        }
        (_, Some(b'3')) => {
            if upper {
                "RD"
            } else {
                "rd"
            }
        }
        _ => {
            if upper {
                "TH"
            } else {
                "th"
            }
        }
    }
}

/// Writes `moment` by `pattern`.
///
/// # Errors
/// Input, if an interval does not have a field.
pub(super) fn write(moment: &Moment, pattern: &str, out: &mut Writer<'_>) -> Result<()> {
    let clock = Clock::new(moment);
    for part in parts(pattern) {
        match part {
            Part::Char { c, .. } => out.char(c),
            Part::Field { field, case, bare, ordinal } => {
                let text = field_text(&clock, field, Style { case, bare })?;
                out.text(&text);
                if let (Some(case), true) = (ordinal, text.bytes().any(|b| b.is_ascii_digit())) {
                    out.text(ordinal_ending(&text, case));
                }
            }
        }
    }
    Ok(())
}

/// How a field is written.
#[derive(Clone, Copy)]
struct Style {
    case: Case,
    /// Without padding.
    bare: bool,
}

impl Style {
    /// A number, with zeros in front.
    fn padded(self, value: i64, width: usize) -> String {
        match (self.bare, value < 0) {
            (true, _) => value.to_string(),
            (false, true) => format!("{value:0width$}", width = width + 1),
            (false, false) => format!("{value:0width$}"),
        }
    }

    /// A name, with blanks behind.
    fn name(self, text: &str, width: usize) -> String {
        let text = cased(text, self.case);
        if self.bare { text } else { format!("{text:<width$}") }
    }

    /// The last digits of a year.
    fn year(self, year: i64, digits: usize) -> String {
        match digits {
            4 => self.padded(year, 4),
            _ => self.padded(year % 10i64.pow(digits as u32), digits),
        }
    }
}

fn field_text(clock: &Clock, field: Field, style: Style) -> Result<String> {
    let Style { case, bare } = style;
    Ok(match field {
        F::HalfDay => cased(&format!("{}M", clock.half_day()), case),
        F::HalfDayDots => cased(&format!("{}.M.", clock.half_day()), case),
        F::Era => cased(if clock.is_before_christ()? { "BC" } else { "AD" }, case),
        F::EraDots => cased(if clock.is_before_christ()? { "B.C." } else { "A.D." }, case),
        F::Century => style.padded(clock.century(), 2),
        F::DayName => style.name(day_name(clock.date()?), 9),
        F::DayShort => cased(&day_name(clock.date()?)[..3], case),
        F::DayOfYear => match clock.date {
            Some(date) => style.padded(extract_date(DatePart::DayOfYear, date), 3),
            None => style.padded((clock.year * 12 + clock.month) * 30 + clock.day, 3),
        },
        F::DayOfIsoYear => style.padded(iso_day(clock.date()?), 3),
        // Days of an interval are not padded for their sign.
        F::Day if bare => clock.day.to_string(),
        F::Day => format!("{:02}", clock.day),
        F::DayOfWeek => (extract_date(DatePart::DayOfWeek, clock.date()?) + 1).to_string(),
        F::IsoDayOfWeek => extract_date(DatePart::IsoDayOfWeek, clock.date()?).to_string(),
        F::Fraction(digits) => {
            format!("{:0digits$}", clock.micros.abs() / 10i64.pow(6 - digits as u32))
        }
        F::Exact => String::new(),
        F::Hour24 => style.padded(clock.hour, 2),
        F::Hour12 => {
            let hour = clock.hour % 12;
            style.padded(if hour == 0 { 12 } else { hour }, 2)
        }
        F::IsoWeek => style.padded(extract_date(DatePart::Week, clock.date()?), 2),
        F::IsoYear(digits) => style.year(clock.shown(extract_date(DatePart::IsoYear, clock.date()?)), digits),
        F::Julian => (clock.date()? + JULIAN_1970).to_string(),
        F::Minute => style.padded(clock.minute, 2),
        F::Month => style.padded(clock.month, 2),
        F::MonthName | F::MonthShort | F::Roman | F::Quarter if clock.month == 0 => String::new(),
        F::MonthName => style.name(month_name(clock.month.unsigned_abs() as u32), 9),
        F::MonthShort => cased(&month_name(clock.month.unsigned_abs() as u32)[..3], case),
        F::Roman => style.name(ROMAN[(clock.month + 11).rem_euclid(12) as usize], 4),
        F::Millisecond => format!("{:03}", clock.micros / 1000),
        F::Microsecond => format!("{:06}", clock.micros),
        F::Quarter => ((clock.month - 1) / 3 + 1).to_string(),
        F::SecondOfDay => (clock.hour * 3600 + clock.minute * 60 + clock.second).to_string(),
        F::Second => style.padded(clock.second, 2),
        F::Zone | F::Offset | F::ZoneHour | F::ZoneMinute => zone_text(clock, field, case)?,
        F::Week => style.padded((extract_date(DatePart::DayOfYear, clock.date()?) - 1) / 7 + 1, 2),
        F::WeekOfMonth => ((clock.day - 1) / 7 + 1).to_string(),
        F::Year(digits) => style.year(clock.shown(clock.year), digits),
        F::YearWithComma => {
            let year = clock.shown(clock.year);
            format!("{},{:03}", year / 1000, year % 1000)
        }
    })
}

/// A field of the zone, which intervals and times lack.
fn zone_text(clock: &Clock, field: Field, case: Case) -> Result<String> {
    clock.date()?;
    let offset = clock.offset();
    Ok(match field {
        F::ZoneHour => format!("{}{:02}", if offset < 0 { '-' } else { '+' }, (offset / 3600).abs()),
        F::ZoneMinute => format!("{:02}", offset.abs() % 3600 / 60),
        F::Offset => {
            let mut text = String::new();
            let _ = write_offset(&mut text, offset);
            text
        }
        _ => cased(&clock.zone.map_or(String::new(), |(zone, _)| zone.to_string()), case),
    })
}

/// Day of the ISO year, from 1.
fn iso_day(days: i64) -> i64 {
    let year = extract_date(DatePart::IsoYear, days);
    days - iso_start(year) + 1
}
