//! PostgreSQL's date patterns: `to_char` of dates, times and intervals, `to_date` and `to_timestamp` of text.
//!
//! A pattern is split into fields, each with its modifiers (`FM`, `TH`), separators and text ([`parts`]).
//! Formatting goes through them once. Parsing takes as many digits as a field has, or all if no digit follows
//! in the pattern; separators match each other, and blanks are skipped, unless the pattern begins with `FX`.
//! The fields read are combined at the end.

use super::calendar::{JULIAN_1970, at, date_of, day_name, month_name};
use crate::definition::Writer;
use crate::time_zone::TimeZone;
use Field as F;
use entasis_vector::expr::DatePart;
use entasis_vector::expr::calendar::extract_date;
use entasis_vector::types::{Interval, MICROS_PER_DAY};
use entasis_vector::value::{civil_from_days, days_from_civil, write_offset};
use entasis_vector::{Error, Result};

/// A field of a pattern. The letter case of its keyword is kept separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    HalfDayDots,
    HalfDay,
    EraDots,
    Era,
    Century,
    DayName,
    DayShort,
    DayOfYear,
    DayOfIsoYear,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    Fraction(usize),
    Exact,
    Hour24,
    Hour12,
    IsoWeek,
    IsoYear(usize),
    Julian,
    Minute,
    Month,
    MonthName,
    MonthShort,
    Millisecond,
    Offset,
    Quarter,
    Roman,
    SecondOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone,
    Microsecond,
    Week,
    WeekOfMonth,
    Year(usize),
    YearWithComma,
}

/// Keywords in lower case; a keyword precedes those that are prefixes of it.
const FIELDS: &[(&str, Field)] = &[
    ("a.d.", F::EraDots),
    ("a.m.", F::HalfDayDots),
    ("ad", F::Era),
    ("am", F::HalfDay),
    ("b.c.", F::EraDots),
    ("bc", F::Era),
    ("cc", F::Century),
    ("day", F::DayName),
    ("ddd", F::DayOfYear),
    ("dd", F::Day),
    ("dy", F::DayShort),
    ("d", F::DayOfWeek),
    ("ff1", F::Fraction(1)),
    ("ff2", F::Fraction(2)),
    ("ff3", F::Fraction(3)),
    ("ff4", F::Fraction(4)),
    ("ff5", F::Fraction(5)),
    ("ff6", F::Fraction(6)),
    ("fx", F::Exact),
    ("hh24", F::Hour24),
    ("hh12", F::Hour12),
    ("hh", F::Hour12),
    ("iddd", F::DayOfIsoYear),
    ("id", F::IsoDayOfWeek),
    ("iw", F::IsoWeek),
    ("iyyy", F::IsoYear(4)),
    ("iyy", F::IsoYear(3)),
    ("iy", F::IsoYear(2)),
    ("i", F::IsoYear(1)),
    ("j", F::Julian),
    ("mi", F::Minute),
    ("mm", F::Month),
    ("month", F::MonthName),
    ("mon", F::MonthShort),
    ("ms", F::Millisecond),
    ("of", F::Offset),
    ("p.m.", F::HalfDayDots),
    ("pm", F::HalfDay),
    ("q", F::Quarter),
    ("rm", F::Roman),
    ("sssss", F::SecondOfDay),
    ("ssss", F::SecondOfDay),
    ("ss", F::Second),
    ("tzh", F::ZoneHour),
    ("tzm", F::ZoneMinute),
    ("tz", F::Zone),
    ("us", F::Microsecond),
    ("ww", F::Week),
    ("w", F::WeekOfMonth),
    ("y,yyy", F::YearWithComma),
    ("yyyy", F::Year(4)),
    ("yyy", F::Year(3)),
    ("yy", F::Year(2)),
    ("y", F::Year(1)),
];

/// The letter case of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper,
    /// `Month`
    Capital,
    Lower,
}

/// A piece of a pattern.
#[derive(Debug, Clone, Copy)]
enum Part {
    Field {
        field: Field,
        case: Case,
        /// `FM`: no padding.
        bare: bool,
        /// `TH` or `th`: an ordinal.
        ordinal: Option<Case>,
    },
    /// A character that belongs to no keyword.
    Char {
        c: char,
        /// From a part in quotes.
        quoted: bool,
    },
}

/// Splits a pattern.
fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let mut bare = false;
        let mut after = rest;
        // Prefixes: FM has an effect, TM concerns locales and has none here.
        while let Some(prefix) = ["FM", "fm", "TM", "tm"].into_iter().find(|prefix| after.starts_with(prefix))
        {
            bare |= prefix.eq_ignore_ascii_case("fm");
            after = &after[2..];
        }
        if let Some((field, case, length)) = keyword(after) {
            after = &after[length..];
            let ordinal = match after.get(..2) {
                Some("TH") => Some(Case::Upper),
                Some("th") => Some(Case::Lower),
                _ => None,
            };
            if ordinal.is_some() {
                after = &after[2..];
            }
            if after.starts_with("SP") || after.starts_with("sp") {
                after = &after[2..];
            }
            parts.push(Part::Field { field, case, bare, ordinal });
            rest = after;
            continue;
        }
        if bare {
            rest = after;
            continue;
        }
        if c == '"' {
            rest = &rest[1..];
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                match c {
                    '"' => break,
                    '\\' if !rest.is_empty() => {
                        let c = rest.chars().next().unwrap_or('\\');
                        rest = &rest[c.len_utf8()..];
                        parts.push(Part::Char { c, quoted: true });
                    }
                    c => parts.push(Part::Char { c, quoted: true }),
                }
            }
            continue;
        }
        let c = if rest.starts_with("\\\"") {
            rest = &rest[1..];
            '"'
        } else {
            c
        };
        rest = &rest[c.len_utf8()..];
        parts.push(Part::Char { c, quoted: false });
    }
    parts
}

/// The keyword at the start, with its letter case and length.
fn keyword(text: &str) -> Option<(Field, Case, usize)> {
    FIELDS.iter().find_map(|&(name, field)| {
        let given = text.get(..name.len()).filter(|given| given.is_ascii())?;
        let capital = matches!(field, F::MonthName | F::MonthShort | F::DayName | F::DayShort);
        let case = if given == name {
            Case::Lower
        } else if given == name.to_ascii_uppercase() {
            Case::Upper
        } else if capital && given[1..] == name[1..] && given[..1] == name[..1].to_ascii_uppercase() {
            Case::Capital
        } else {
            return None;
        };
        Some((field, case, name.len()))
    })
}

// ---- formatting -------------------------------------------------------------------------------------------

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

    /// The number of days since 1970, for fields that only dates have.
    fn date(&self) -> Result<i64> {
        self.date.ok_or_else(|| {
            Error::input("the pattern has a field that intervals and times lack")
                .with_hint("intervals have years, months, days, hours, minutes and seconds")
        })
    }
}

fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Lower => text.to_lowercase(),
        Case::Capital => text.to_owned(),
    }
}

/// Years before 1 count backwards from 1 BC.
fn shown(year: i64, is_date: bool) -> i64 {
    if is_date && year <= 0 { 1 - year } else { year }
}

const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

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
                let text = field_text(&clock, field, case, bare)?;
                out.text(&text);
                if let (Some(case), true) = (ordinal, text.bytes().any(|b| b.is_ascii_digit())) {
                    out.text(ordinal_ending(&text, case));
                }
            }
        }
    }
    Ok(())
}

fn field_text(clock: &Clock, field: Field, case: Case, bare: bool) -> Result<String> {
    let padded = |value: i64, width: usize| match (bare, value < 0) {
        (true, _) => value.to_string(),
        (false, true) => format!("{value:0width$}", width = width + 1),
        (false, false) => format!("{value:0width$}"),
    };
    let name = |text: &str, width: usize| {
        let text = cased(text, case);
        if bare { text } else { format!("{text:<width$}") }
    };
    let is_date = clock.date.is_some();
    let years = |year: i64, digits: usize| {
        let year = shown(year, is_date);
        match digits {
            4 => padded(year, 4),
            _ => padded(year % 10i64.pow(digits as u32), digits),
        }
    };
    let half = if clock.hour.rem_euclid(24) >= 12 { "P" } else { "A" };
    Ok(match field {
        F::HalfDay => cased(&format!("{half}M"), case),
        F::HalfDayDots => cased(&format!("{half}.M."), case),
        F::Era | F::EraDots => {
            clock.date()?;
            let text = match (clock.year <= 0, field == F::Era) {
                (true, true) => "BC",
                (true, false) => "B.C.",
                (false, true) => "AD",
                (false, false) => "A.D.",
            };
            cased(text, case)
        }
        F::Century => {
            let century = match is_date {
                false => clock.year / 100,
                true if clock.year > 0 => (clock.year - 1) / 100 + 1,
                true => clock.year / 100 - 1,
            };
            padded(century, 2)
        }
        F::DayName => name(day_name(clock.date()?), 9),
        F::DayShort => cased(&day_name(clock.date()?)[..3], case),
        F::DayOfYear => match clock.date {
            Some(date) => padded(extract_date(DatePart::DayOfYear, date), 3),
            None => padded((clock.year * 12 + clock.month) * 30 + clock.day, 3),
        },
        F::DayOfIsoYear => padded(iso_day(clock.date()?), 3),
        // Days of an interval are not padded for their sign.
        F::Day if bare => clock.day.to_string(),
        F::Day => format!("{:02}", clock.day),
        F::DayOfWeek => (extract_date(DatePart::DayOfWeek, clock.date()?) + 1).to_string(),
        F::IsoDayOfWeek => extract_date(DatePart::IsoDayOfWeek, clock.date()?).to_string(),
        F::Fraction(digits) => {
            format!("{:0digits$}", clock.micros.abs() / 10i64.pow(6 - digits as u32))
        }
        F::Exact => String::new(),
        F::Hour24 => padded(clock.hour, 2),
        F::Hour12 => {
            let hour = clock.hour % 12;
            padded(if hour == 0 { 12 } else { hour }, 2)
        }
        F::IsoWeek => padded(extract_date(DatePart::Week, clock.date()?), 2),
        F::IsoYear(digits) => years(extract_date(DatePart::IsoYear, clock.date()?), digits),
        F::Julian => (clock.date()? + JULIAN_1970).to_string(),
        F::Minute => padded(clock.minute, 2),
        F::Month => padded(clock.month, 2),
        F::MonthName | F::MonthShort | F::Roman if clock.month == 0 => String::new(),
        F::MonthName => name(month_name(clock.month.unsigned_abs() as u32), 9),
        F::MonthShort => cased(&month_name(clock.month.unsigned_abs() as u32)[..3], case),
        F::Roman => name(ROMAN[(clock.month + 11).rem_euclid(12) as usize], 4),
        F::Millisecond => format!("{:03}", clock.micros / 1000),
        F::Microsecond => format!("{:06}", clock.micros),
        F::Quarter => match clock.month {
            0 => String::new(),
            month => ((month - 1) / 3 + 1).to_string(),
        },
        F::SecondOfDay => (clock.hour * 3600 + clock.minute * 60 + clock.second).to_string(),
        F::Second => padded(clock.second, 2),
        F::Zone => {
            clock.date()?;
            cased(&clock.zone.map_or(String::new(), |(zone, _)| zone.to_string()), case)
        }
        F::Offset => {
            clock.date()?;
            let mut text = String::new();
            let _ = write_offset(&mut text, clock.offset());
            text
        }
        F::ZoneHour => {
            clock.date()?;
            let hours = clock.offset() / 3600;
            format!("{}{:02}", if clock.offset() < 0 { '-' } else { '+' }, hours.abs())
        }
        F::ZoneMinute => {
            clock.date()?;
            format!("{:02}", clock.offset().abs() % 3600 / 60)
        }
        F::Week => padded((extract_date(DatePart::DayOfYear, clock.date()?) - 1) / 7 + 1, 2),
        F::WeekOfMonth => ((clock.day - 1) / 7 + 1).to_string(),
        F::Year(digits) => years(clock.year, digits),
        F::YearWithComma => {
            let year = shown(clock.year, is_date);
            format!("{},{:03}", year / 1000, year % 1000)
        }
    })
}

/// Day of the ISO year, from 1.
fn iso_day(days: i64) -> i64 {
    let year = extract_date(DatePart::IsoYear, days);
    days - iso_start(year) + 1
}

/// The Monday of the first week of an ISO year.
fn iso_start(year: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7)
}

// ---- parsing ----------------------------------------------------------------------------------------------

/// The fields read so far.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    before_christ: bool,
    century: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week: Option<i64>,
    week_of_month: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    iso_day_of_year: Option<i64>,
    julian: Option<i64>,
    hour: Option<i64>,
    half_day: bool,
    afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    second_of_day: Option<i64>,
    micros: i64,
    zone_hour: Option<i64>,
    zone_minute: i64,
}

/// Parses `text` by `pattern`: an instant, from a local time of `zone` if the pattern has no offset.
///
/// # Errors
/// Input, if the text does not match.
pub(super) fn read(text: &str, pattern: &str, zone: TimeZone) -> Result<i64> {
    let (days, time, offset) = read_fields(text, pattern)?;
    match offset {
        Some(offset) => at(days, time - offset),
        None => {
            let local = at(days, time)?;
            zone.instant(local).ok_or_else(|| mismatch(text, pattern, "it is out of range"))
        }
    }
}

/// Parses the day number of a date.
///
/// # Errors
/// Input, if the text does not match.
pub(super) fn read_date(text: &str, pattern: &str) -> Result<i64> {
    read_fields(text, pattern).map(|(days, ..)| days)
}

fn is_separator(c: char) -> bool {
    c.is_ascii() && !c.is_ascii_alphanumeric() && !c.is_ascii_control() && c != ' '
}

/// The day, the microseconds within it, and those of the offset from UTC if there is one.
fn read_fields(text: &str, pattern: &str) -> Result<(i64, i64, Option<i64>)> {
    let parts = parts(pattern);
    let mut fields = Fields::default();
    let mut rest = text;
    let mut exact = false;
    let mut skipped = 0i64;
    for (i, part) in parts.iter().enumerate() {
        if rest.is_empty() {
            break;
        }
        let is_field = matches!(part, Part::Field { .. });
        if !exact && (is_field || i == 0) {
            let trimmed = rest.trim_start();
            skipped += (rest.len() - trimmed.len()) as i64;
            rest = trimmed;
        }
        let first = rest.chars().next();
        match *part {
            Part::Char { c, quoted: false } if c == ' ' || is_separator(c) => match (exact, first) {
                (false, Some(f)) => {
                    skipped -= 1;
                    if f.is_whitespace() || is_separator(f) {
                        rest = &rest[f.len_utf8()..];
                        skipped += 1;
                    }
                }
                (true, Some(f)) if f.is_whitespace() || is_separator(f) => rest = &rest[f.len_utf8()..],
                _ => return Err(mismatch(text, pattern, "a separator is missing")),
            },
            Part::Char { .. } => match (exact, first) {
                (false, _) if skipped > 0 => skipped -= 1,
                (_, Some(f)) => rest = &rest[f.len_utf8()..],
                _ => {}
            },
            Part::Field { field: F::Exact, .. } => exact = true,
            Part::Field { field, bare, ordinal, .. } => {
                skipped = 0;
                let open = bare || is_open(&parts[i + 1..], ordinal.is_some());
                rest = read_field(field, rest, open, &mut fields)
                    .map_err(|reason| mismatch(text, pattern, &reason))?;
                if ordinal.is_some() {
                    rest = rest.get(2..).unwrap_or("");
                }
            }
        }
    }
    assemble(&fields).map_err(|error| error.with_context(format!("{text:?} by {pattern:?}")))
}

fn mismatch(text: &str, pattern: &str, reason: &str) -> Error {
    Error::input(format!("{text:?} does not fit {pattern:?}: {reason}"))
}

/// True if no digit can follow a field, so that it takes all digits.
fn is_open(next: &[Part], ordinal: bool) -> bool {
    match next.first() {
        None => true,
        _ if ordinal => true,
        Some(Part::Field { field, .. }) => matches!(
            field,
            F::HalfDay
                | F::HalfDayDots
                | F::Era
                | F::EraDots
                | F::DayName
                | F::DayShort
                | F::MonthName
                | F::MonthShort
                | F::Roman
                | F::Zone
                | F::ZoneHour
                | F::Offset
                | F::Exact
        ),
        Some(Part::Char { c, .. }) => !c.is_ascii_digit(),
    }
}

/// The number of digits of a field.
fn width(field: Field) -> usize {
    match field {
        F::Year(digits) | F::IsoYear(digits) | F::Fraction(digits) => digits,
        F::DayOfYear | F::DayOfIsoYear | F::Millisecond => 3,
        F::Julian => 7,
        F::Microsecond => 6,
        F::SecondOfDay => 5,
        F::DayOfWeek | F::IsoDayOfWeek | F::Quarter | F::WeekOfMonth => 1,
        _ => 2,
    }
}

/// Parses a number of at most `width` digits, or of all digits if `open`.
fn number(text: &str, width: usize, open: bool) -> Result<(i64, usize, &str), String> {
    let signed = text.starts_with(['-', '+']);
    let digits = text[usize::from(signed)..].bytes().take_while(u8::is_ascii_digit).count();
    let digits = if open { digits } else { digits.min(width - usize::from(signed)) };
    let end = digits + usize::from(signed);
    let value = text[..end].parse::<i64>().map_err(|_| {
        let shown: String = text.chars().take(width.max(1)).collect();
        format!("{shown:?} is not a number")
    })?;
    Ok((value, digits, &text[end..]))
}

/// The rest after a name, and which name it was: in full or its first three letters.
fn find_name(text: &str, names: impl Iterator<Item = &'static str>, short: bool) -> Option<(usize, &str)> {
    let starts = |part: &str| text.get(..part.len()).is_some_and(|given| given.eq_ignore_ascii_case(part));
    let names: Vec<&str> = names.collect();
    let whole = (!short).then(|| names.iter().position(|name| starts(name))).flatten();
    match whole {
        Some(at) => Some((at, &text[names[at].len()..])),
        None => names.iter().position(|name| starts(&name[..3])).map(|at| (at, &text[3..])),
    }
}

/// A year of fewer than four digits is completed to one near 2020.
fn near_2020(year: i64, digits: usize) -> i64 {
    match (digits, year) {
        (4.., _) => year,
        (_, 0..=69) => year + 2000,
        (_, 70..=99) => year + 1900,
        (_, 100..=519) => year + 2000,
        (_, 520..=999) => year + 1000,
        _ => year,
    }
}

fn read_field<'t>(field: Field, text: &'t str, open: bool, fields: &mut Fields) -> Result<&'t str, String> {
    let names_of_days = || (3..10).map(day_name);
    let names_of_months = || (1..13).map(month_name);
    let lower = |length: usize| text.get(..length).map(str::to_ascii_lowercase);
    match field {
        F::HalfDay | F::HalfDayDots => {
            let length = if field == F::HalfDay { 2 } else { 4 };
            fields.afternoon = match lower(length).as_deref() {
                Some("am" | "a.m.") => Some(false),
                Some("pm" | "p.m.") => Some(true),
                _ => return Err("AM or PM is missing".into()),
            };
            fields.half_day = true;
            return Ok(&text[length..]);
        }
        F::Era | F::EraDots => {
            let length = if field == F::Era { 2 } else { 4 };
            fields.before_christ = match lower(length).as_deref() {
                Some("bc" | "b.c.") => true,
                Some("ad" | "a.d.") => false,
                _ => return Err("BC or AD is missing".into()),
            };
            return Ok(&text[length..]);
        }
        F::DayName | F::DayShort => {
            let found = find_name(text, names_of_days(), field == F::DayShort);
            return found.map(|(_, rest)| rest).ok_or_else(|| "the name of a day is missing".into());
        }
        F::MonthName | F::MonthShort => {
            let found = find_name(text, names_of_months(), field == F::MonthShort);
            let (at, rest) = found.ok_or("the name of a month is missing")?;
            fields.month = Some(at as i64 + 1);
            return Ok(rest);
        }
        F::Roman => {
            let upper = text.to_ascii_uppercase();
            let longest =
                (1..13).filter(|m| upper.starts_with(ROMAN[m - 1])).max_by_key(|m| ROMAN[m - 1].len());
            let month = longest.ok_or("a month in Roman numerals is missing")?;
            fields.month = Some(month as i64);
            return Ok(&text[ROMAN[month - 1].len()..]);
        }
        F::Zone => {
            let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
            return match lower(letters).as_deref() {
                Some("utc" | "gmt" | "z" | "ut") => {
                    fields.zone_hour = Some(0);
                    Ok(&text[letters..])
                }
                _ => Err("TZ takes only UTC here; TZH and TZM take an offset".into()),
            };
        }
        F::ZoneHour | F::Offset => {
            let negative = text.starts_with('-');
            let (hours, _, mut rest) = number(text.trim_start_matches(['+', '-', ' ']), 2, false)?;
            let sign = if negative { -1 } else { 1 };
            fields.zone_hour = Some(hours * 3600 * sign);
            if let (F::Offset, Some(minutes)) = (field, rest.strip_prefix(':')) {
                let (minutes, _, after) = number(minutes, 2, false)?;
                fields.zone_minute = minutes;
                rest = after;
            }
            return Ok(rest);
        }
        F::YearWithComma => {
            let (thousands, rest) = text.split_once(',').ok_or("a comma is missing in the year")?;
            let thousands: i64 = thousands.trim().parse().map_err(|_| "the year is not a number")?;
            let (year, _, rest) = number(rest, 3, false)?;
            fields.year = Some(thousands.saturating_mul(1000).saturating_add(year));
            return Ok(rest);
        }
        _ => {}
    }
    let (value, digits, rest) = number(text, width(field), open)?;
    let fraction = |width: usize| {
        // Further digits are ignored.
        let digits = digits.min(width.max(1));
        let text: String = text.chars().take(digits).collect();
        text.parse::<i64>().unwrap_or(0) * 10i64.pow(6 - digits.min(6) as u32)
    };
    match field {
        F::Century => fields.century = Some(value),
        F::DayOfYear => fields.day_of_year = Some(value),
        F::DayOfIsoYear => fields.iso_day_of_year = Some(value),
        F::Day => fields.day = Some(value),
        F::IsoDayOfWeek => fields.iso_day = Some(value),
        F::DayOfWeek | F::Quarter => {}
        F::Hour24 => fields.hour = Some(value),
        F::Hour12 => {
            fields.hour = Some(value);
            fields.half_day = true;
        }
        F::IsoWeek => fields.iso_week = Some(value),
        F::IsoYear(4) => fields.iso_year = Some(value),
        F::IsoYear(_) => fields.iso_year = Some(near_2020(value, digits)),
        F::Julian => fields.julian = Some(value),
        F::Minute => fields.minute = Some(value),
        F::Month => fields.month = Some(value),
        F::Millisecond => fields.micros += fraction(3),
        F::Fraction(_) | F::Microsecond => fields.micros += fraction(6),
        F::SecondOfDay => fields.second_of_day = Some(value),
        F::Second => fields.second = Some(value),
        F::ZoneMinute => fields.zone_minute = value,
        F::Week => fields.week = Some(value),
        F::WeekOfMonth => fields.week_of_month = Some(value),
        F::Year(4) => fields.year = Some(value),
        F::Year(_) => fields.year = Some(near_2020(value, digits)),
        _ => {}
    }
    Ok(rest)
}

/// The day, the microseconds within it, and those of the offset.
fn assemble(fields: &Fields) -> Result<(i64, i64, Option<i64>)> {
    let within = |value: Option<i64>, low: i64, high: i64, what: &str| match value {
        Some(v) if v < low || v > high => Err(Error::input(format!("there is no {what} {v}"))),
        value => Ok(value),
    };
    let mut hour = within(fields.hour, 0, if fields.half_day { 12 } else { 24 }, "hour")?.unwrap_or(0);
    if fields.half_day {
        if fields.hour == Some(0) {
            return Err(Error::input("hour 0 is invalid for the 12-hour clock"));
        }
        hour = match fields.afternoon {
            Some(true) if hour < 12 => hour + 12,
            Some(false) if hour == 12 => 0,
            _ => hour,
        };
    }
    let minute = within(fields.minute, 0, 59, "minute")?.unwrap_or(0);
    let second = within(fields.second, 0, 60, "second")?.unwrap_or(0);
    let seconds = match within(fields.second_of_day, 0, 86_400, "second of the day")? {
        Some(seconds) => seconds,
        None => hour * 3600 + minute * 60 + second,
    };
    let time = seconds * 1_000_000 + fields.micros;
    let minutes = fields.zone_minute * 60;
    let offset = fields.zone_hour.map(|hour| (hour + if hour < 0 { -minutes } else { minutes }) * 1_000_000);
    if offset.is_some_and(|offset| offset.abs() > MICROS_PER_DAY) {
        return Err(Error::input("the offset from UTC is out of range"));
    }
    let year = match (fields.year, within(fields.century, -3000, 3000, "century")?) {
        (Some(year), _) if fields.before_christ => 1i64.saturating_sub(year),
        (Some(year), _) => year,
        (None, Some(century)) => (century - 1) * 100 + 1,
        // Without any year, it is 1 BC.
        (None, None) => 0,
    };
    let days = if let Some(julian) = within(fields.julian, 0, 5_000_000_000, "Julian day")? {
        julian - JULIAN_1970
    } else if let Some(iso_year) = within(fields.iso_year, -300_000, 300_000, "year")? {
        match within(fields.iso_day_of_year, 1, 371, "day of the year")? {
            Some(day) => iso_start(iso_year) + day - 1,
            None => {
                let week = within(fields.iso_week, 1, 53, "week")?.unwrap_or(1);
                let day = within(fields.iso_day, 1, 7, "day of the week")?.unwrap_or(1);
                iso_start(iso_year) + (week - 1) * 7 + day - 1
            }
        }
    } else if let Some(day) = fields.day_of_year {
        let start = date_of(year, 1, 1)?;
        let length = date_of(year + 1, 1, 1)? - start;
        within(Some(day), 1, length, "day of the year")?;
        start + day - 1
    } else if let (Some(week), None, None) = (fields.week, fields.month, fields.day) {
        within(Some(week), 1, 53, "week")?;
        date_of(year, 1, 1)? + (week - 1) * 7
    } else {
        let day = fields.day.or_else(|| fields.week_of_month.map(|week| (week - 1) * 7 + 1));
        date_of(year, fields.month.unwrap_or(1), day.unwrap_or(1))?
    };
    Ok((days, time, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_their_longest() {
        let fields: Vec<Field> = parts("YYYYMonthDDDHH24")
            .into_iter()
            .filter_map(|part| match part {
                Part::Field { field, .. } => Some(field),
                Part::Char { .. } => None,
            })
            .collect();
        assert_eq!(fields, [F::Year(4), F::MonthName, F::DayOfYear, F::Hour24]);
    }

    #[test]
    fn what_is_written_can_be_read() {
        for days in (-700_000..900_000).step_by(997) {
            let (year, month, day) = civil_from_days(days);
            let era = if year > 0 { "AD" } else { "BC" };
            let text = format!("{}-{month:02}-{day:02} {era}", shown(year, true));
            assert_eq!(read_date(&text, "YYYY-MM-DD AD").unwrap(), days, "{text}");
        }
        assert_eq!(
            read("2024-02-29 23:59:59.25", "YYYY-MM-DD HH24:MI:SS.US", TimeZone::UTC).unwrap(),
            1_709_251_199_250_000
        );
        assert!(read_date("2023-02-29", "YYYY-MM-DD").is_err());
    }
}
