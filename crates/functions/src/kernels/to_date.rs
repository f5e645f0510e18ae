//! `to_date` and `to_timestamp`: text that is read by one of PostgreSQL's date patterns
//! ([`super::date_patterns`]).
//!
//! A field takes as many digits as it has, or all if no digit follows in the pattern; separators match each
//! other, and blanks are skipped, unless the pattern begins with `FX`. The fields read are combined at the
//! end.

use super::calendar::{JULIAN_1970, at, date_of, day_name, month_name};
use super::date_patterns::{Field, Part, ROMAN, iso_start, parts};
use crate::time_zone::TimeZone;
use Field as F;
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::{Error, Result};

/// The fields read so far.
#[derive(Default)]
struct Fields {
    date: DateFields,
    iso: IsoFields,
    time: TimeFields,
    zone: ZoneFields,
}

/// The fields of a date.
#[derive(Default)]
struct DateFields {
    year: Option<i64>,
    before_christ: bool,
    century: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week: Option<i64>,
    week_of_month: Option<i64>,
    julian: Option<i64>,
}

/// The fields of a date in a year of whole weeks.
#[derive(Default)]
struct IsoFields {
    year: Option<i64>,
    week: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
}

/// The fields of a time of day.
#[derive(Default)]
struct TimeFields {
    hour: Option<i64>,
    /// The hour is one of 12.
    half_day: bool,
    afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    second_of_day: Option<i64>,
    micros: i64,
}

/// The fields of an offset from UTC.
#[derive(Default)]
struct ZoneFields {
    /// In seconds.
    hour: Option<i64>,
    minute: i64,
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
                rest = fields.read(field, rest, open).map_err(|reason| mismatch(text, pattern, &reason))?;
                if ordinal.is_some() {
                    rest = rest.get(2..).unwrap_or("");
                }
            }
        }
    }
    fields.combined().map_err(|error| error.with_context(format!("{text:?} by {pattern:?}")))
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

/// Which of two names the text begins with, in any letter case, and what is behind it; false is the first
/// name. Each is given without dots and with them.
fn either<'t>(text: &'t str, names: [[&str; 2]; 2], is_short: bool) -> Option<(bool, &'t str)> {
    let length = if is_short { 2 } else { 4 };
    let given = text.get(..length)?.to_ascii_lowercase();
    let place = names.iter().position(|name| name.contains(&given.as_str()))?;
    Some((place == 1, &text[length..]))
}

/// The digits that a fraction of a second has at most; `None` for other fields.
fn fraction_width(field: Field) -> Option<usize> {
    match field {
        F::Millisecond => Some(3),
        F::Fraction(_) | F::Microsecond => Some(6),
        _ => None,
    }
}

/// The microseconds of a fraction of a second with so many digits; further ones are ignored.
fn fraction(text: &str, digits: usize) -> i64 {
    let text: String = text.chars().take(digits).collect();
    text.parse::<i64>().unwrap_or(0) * 10i64.pow(6 - digits.min(6) as u32)
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

impl Fields {
    /// Reads a field at the start of the text. Returns what is behind it.
    fn read<'t>(&mut self, field: Field, text: &'t str, open: bool) -> Result<&'t str, String> {
        match field {
            F::HalfDay | F::HalfDayDots => {
                let (afternoon, rest) = either(text, [["am", "a.m."], ["pm", "p.m."]], field == F::HalfDay)
                    .ok_or("AM or PM is missing")?;
                self.time.afternoon = Some(afternoon);
                self.time.half_day = true;
                Ok(rest)
            }
            F::Era | F::EraDots => {
                let (before_christ, rest) = either(text, [["ad", "a.d."], ["bc", "b.c."]], field == F::Era)
                    .ok_or("BC or AD is missing")?;
                self.date.before_christ = before_christ;
                Ok(rest)
            }
            F::DayName | F::DayShort => {
                let found = find_name(text, (3..10).map(day_name), field == F::DayShort);
                found.map(|(_, rest)| rest).ok_or_else(|| "the name of a day is missing".into())
            }
            F::MonthName | F::MonthShort => {
                let found = find_name(text, (1..13).map(month_name), field == F::MonthShort);
                let (at, rest) = found.ok_or("the name of a month is missing")?;
                self.date.month = Some(at as i64 + 1);
                Ok(rest)
            }
            F::Roman => {
                let upper = text.to_ascii_uppercase();
                let longest =
                    (1..13).filter(|m| upper.starts_with(ROMAN[m - 1])).max_by_key(|m| ROMAN[m - 1].len());
                let month = longest.ok_or("a month in Roman numerals is missing")?;
                self.date.month = Some(month as i64);
                Ok(&text[ROMAN[month - 1].len()..])
            }
            F::Zone | F::ZoneHour | F::Offset => self.zone.read(field, text),
            F::YearWithComma => {
                let (thousands, rest) = text.split_once(',').ok_or("a comma is missing in the year")?;
                let thousands: i64 = thousands.trim().parse().map_err(|_| "the year is not a number")?;
                let (year, _, rest) = number(rest, 3, false)?;
                self.date.year = Some(thousands.saturating_mul(1000).saturating_add(year));
                Ok(rest)
            }
            field => {
                let (value, digits, rest) = number(text, width(field), open)?;
                match fraction_width(field) {
                    Some(width) => self.time.micros += fraction(text, digits.min(width)),
                    None => self.set(field, value, digits),
                }
                Ok(rest)
            }
        }
    }

    /// Notes the value of a field that is a number of so many digits.
    fn set(&mut self, field: Field, value: i64, digits: usize) {
        let Fields { date, iso, time, zone } = self;
        match field {
            F::Century => date.century = Some(value),
            F::DayOfYear => date.day_of_year = Some(value),
            F::DayOfIsoYear => iso.day_of_year = Some(value),
            F::Day => date.day = Some(value),
            F::IsoDayOfWeek => iso.day = Some(value),
            F::DayOfWeek | F::Quarter => {}
            F::Hour24 => time.hour = Some(value),
            F::Hour12 => {
                time.hour = Some(value);
                time.half_day = true;
            }
            F::IsoWeek => iso.week = Some(value),
            F::IsoYear(4) => iso.year = Some(value),
            F::IsoYear(_) => iso.year = Some(near_2020(value, digits)),
            F::Julian => date.julian = Some(value),
            F::Minute => time.minute = Some(value),
            F::Month => date.month = Some(value),
            F::SecondOfDay => time.second_of_day = Some(value),
            F::Second => time.second = Some(value),
            F::ZoneMinute => zone.minute = value,
            F::Week => date.week = Some(value),
            F::WeekOfMonth => date.week_of_month = Some(value),
            F::Year(4) => date.year = Some(value),
            F::Year(_) => date.year = Some(near_2020(value, digits)),
            _ => {}
        }
    }

    /// The day, the microseconds within it, and those of the offset.
    fn combined(&self) -> Result<(i64, i64, Option<i64>)> {
        let time = self.time.micros()?;
        let offset = self.zone.offset()?;
        Ok((self.date.days(&self.iso)?, time, offset))
    }
}

impl ZoneFields {
    /// Reads a field of the zone that is no number.
    fn read<'t>(&mut self, field: Field, text: &'t str) -> Result<&'t str, String> {
        if field == F::Zone {
            let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
            return match text[..letters].to_ascii_lowercase().as_str() {
                "utc" | "gmt" | "z" | "ut" => {
                    self.hour = Some(0);
                    Ok(&text[letters..])
                }
                _ => Err("TZ takes only UTC here; TZH and TZM take an offset".into()),
            };
        }
        let negative = text.starts_with('-');
        let (hours, _, mut rest) = number(text.trim_start_matches(['+', '-', ' ']), 2, false)?;
        self.hour = Some(hours * 3600 * if negative { -1 } else { 1 });
        if let (F::Offset, Some(minutes)) = (field, rest.strip_prefix(':')) {
            let (minutes, _, after) = number(minutes, 2, false)?;
            self.minute = minutes;
            rest = after;
        }
        Ok(rest)
    }

    /// The microseconds by which the zone is ahead of UTC.
    fn offset(&self) -> Result<Option<i64>> {
        let minutes = self.minute * 60;
        let offset = self.hour.map(|hour| (hour + if hour < 0 { -minutes } else { minutes }) * 1_000_000);
        if offset.is_some_and(|offset| offset.abs() > MICROS_PER_DAY) {
            return Err(Error::input("the offset from UTC is out of range"));
        }
        Ok(offset)
    }
}

impl TimeFields {
    /// The microseconds since midnight.
    fn micros(&self) -> Result<i64> {
        let mut hour = within(self.hour, 0, if self.half_day { 12 } else { 24 }, "hour")?.unwrap_or(0);
        if self.half_day {
            if self.hour == Some(0) {
                return Err(Error::input("hour 0 is invalid for the 12-hour clock"));
            }
            hour = match self.afternoon {
                Some(true) if hour < 12 => hour + 12,
                Some(false) if hour == 12 => 0,
                _ => hour,
            };
        }
        let minute = within(self.minute, 0, 59, "minute")?.unwrap_or(0);
        let second = within(self.second, 0, 60, "second")?.unwrap_or(0);
        let seconds = match within(self.second_of_day, 0, 86_400, "second of the day")? {
            Some(seconds) => seconds,
            None => hour * 3600 + minute * 60 + second,
        };
        Ok(seconds * 1_000_000 + self.micros)
    }
}

impl DateFields {
    fn year(&self) -> Result<i64> {
        Ok(match (self.year, within(self.century, -3000, 3000, "century")?) {
            (Some(year), _) if self.before_christ => 1i64.saturating_sub(year),
            (Some(year), _) => year,
            (None, Some(century)) => (century - 1) * 100 + 1,
            // Without any year, it is 1 BC.
            (None, None) => 0,
        })
    }

    /// The day number.
    fn days(&self, iso: &IsoFields) -> Result<i64> {
        let year = self.year()?;
        if let Some(julian) = within(self.julian, 0, 5_000_000_000, "Julian day")? {
            return Ok(julian - JULIAN_1970);
        }
        if let Some(days) = iso.days()? {
            return Ok(days);
        }
        if let Some(day) = self.day_of_year {
            let start = date_of(year, 1, 1)?;
            let length = date_of(year + 1, 1, 1)? - start;
            within(Some(day), 1, length, "day of the year")?;
            return Ok(start + day - 1);
        }
        if let (Some(week), None, None) = (self.week, self.month, self.day) {
            within(Some(week), 1, 53, "week")?;
            return Ok(date_of(year, 1, 1)? + (week - 1) * 7);
        }
        let day = self.day.or_else(|| self.week_of_month.map(|week| (week - 1) * 7 + 1));
        date_of(year, self.month.unwrap_or(1), day.unwrap_or(1))
    }
}

impl IsoFields {
    /// The day number, if there is a year.
    fn days(&self) -> Result<Option<i64>> {
        let Some(year) = within(self.year, -300_000, 300_000, "year")? else { return Ok(None) };
        let start = iso_start(year);
        Ok(Some(match within(self.day_of_year, 1, 371, "day of the year")? {
            Some(day) => start + day - 1,
            None => {
                let week = within(self.week, 1, 53, "week")?.unwrap_or(1);
                let day = within(self.day, 1, 7, "day of the week")?.unwrap_or(1);
                start + (week - 1) * 7 + day - 1
            }
        }))
    }
}

/// A value that is in its range if it is there.
fn within(value: Option<i64>, low: i64, high: i64, what: &str) -> Result<Option<i64>> {
    match value {
        Some(v) if v < low || v > high => Err(Error::input(format!("there is no {what} {v}"))),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::value::civil_from_days;

    #[test]
    fn what_is_written_can_be_read() {
        for days in (-700_000..900_000).step_by(997) {
            let (year, month, day) = civil_from_days(days);
            let era = if year > 0 { "AD" } else { "BC" };
            let text = format!("{}-{month:02}-{day:02} {era}", if year > 0 { year } else { 1 - year });
            assert_eq!(read_date(&text, "YYYY-MM-DD AD").unwrap(), days, "{text}");
        }
        assert_eq!(
            read("2024-02-29 23:59:59.25", "YYYY-MM-DD HH24:MI:SS.US", TimeZone::UTC).unwrap(),
            1_709_251_199_250_000
        );
        assert!(read_date("2023-02-29", "YYYY-MM-DD").is_err());
    }
}
