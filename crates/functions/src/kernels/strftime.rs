//! `strftime` and `strptime`, with DuckDB's codes: those of C, with a `-` after the percent sign for numbers
//! without padding.

use super::calendar::{at, date_of, day_name, month_name};
use crate::definition::Writer;
use crate::time_zone::TimeZone;
use entasis_vector::expr::DatePart;
use entasis_vector::expr::calendar::extract_date;
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::value::{civil_from_days, write_offset};
use entasis_vector::{Error, Result};
use std::fmt::Write;

fn unknown(code: &str) -> Error {
    Error::input(format!("there is no format code {code}"))
        .with_hint("see the function strftime: %Y-%m-%d %H:%M:%S and others")
}

/// One code or character of a format.
enum Piece {
    Char(char),
    Code { code: char, bare: bool },
}

fn pieces(format: &str) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            pieces.push(Piece::Char(c));
            continue;
        }
        let mut code = rest.next().ok_or_else(|| unknown("%"))?;
        let bare = code == '-';
        if bare {
            code = rest.next().ok_or_else(|| unknown("%-"))?;
        }
        // Codes that abbreviate several others.
        let whole = match code {
            'c' => "%Y-%m-%d %H:%M:%S",
            'x' | 'F' => "%Y-%m-%d",
            'X' | 'T' => "%H:%M:%S",
            'R' => "%H:%M",
            'D' => "%m/%d/%y",
            '%' => {
                pieces.push(Piece::Char('%'));
                continue;
            }
            _ => {
                pieces.push(Piece::Code { code, bare });
                continue;
            }
        };
        pieces.extend(self::pieces(whole)?);
    }
    Ok(pieces)
}

/// Writes a timestamp, in microseconds since 1970, by a format; that of an instant with its zone, and the
/// seconds by which that is ahead of UTC.
///
/// # Errors
/// Input, for unknown codes.
pub(super) fn write(
    micros: i64,
    format: &str,
    zone: Option<(TimeZone, i64)>,
    out: &mut Writer<'_>,
) -> Result<()> {
    let offset = zone.map_or(0, |(_, offset)| offset);
    let (days, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    let (year, month, day) = civil_from_days(days);
    let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let day_of_year = extract_date(DatePart::DayOfYear, days);
    let (sunday, monday) =
        (extract_date(DatePart::DayOfWeek, days), extract_date(DatePart::IsoDayOfWeek, days) - 1);
    for piece in pieces(format)? {
        let (code, bare) = match piece {
            Piece::Char(c) => {
                out.char(c);
                continue;
            }
            Piece::Code { code, bare } => (code, bare),
        };
        let (value, width) = match code {
            'a' => {
                out.text(&day_name(days)[..3]);
                continue;
            }
            'A' => {
                out.text(day_name(days));
                continue;
            }
            'b' | 'h' => {
                out.text(&month_name(month)[..3]);
                continue;
            }
            'B' => {
                out.text(month_name(month));
                continue;
            }
            'p' => {
                out.text(if hour < 12 { "AM" } else { "PM" });
                continue;
            }
            'z' => {
                let _ = write_offset(out, offset);
                continue;
            }
            'Z' => {
                out.text(&zone.map_or(String::new(), |(zone, _)| zone.to_string()));
                continue;
            }
            'w' => (sunday, 1),
            'u' => (monday + 1, 1),
            'd' => (day.into(), 2),
            'e' => (day.into(), 1),
            'm' => (month.into(), 2),
            'y' => (year.rem_euclid(100), 2),
            'Y' => (year, 4),
            'G' => (extract_date(DatePart::IsoYear, days), 4),
            'H' => (hour, 2),
            'I' => (hour12, 2),
            'M' => (minute, 2),
            'S' => (second, 2),
            'f' => (micros, 6),
            'g' => (micros / 1000, 3),
            'n' => (micros * 1000, 9),
            'j' => (day_of_year, 3),
            'U' => ((day_of_year + 6 - sunday) / 7, 2),
            'W' => ((day_of_year + 6 - monday) / 7, 2),
            'V' => (extract_date(DatePart::Week, days), 2),
            's' => (days * 86_400 + seconds - offset, 1),
            other => return Err(unknown(&format!("%{}{other}", if bare { "-" } else { "" }))),
        };
        let width = if bare { 1 } else { width };
        let _ = match value < 0 {
            true => write!(out, "{value}"),
            false => write!(out, "{value:0width$}"),
        };
    }
    Ok(())
}

/// Parses a timestamp by a format, in UTC if the format has an offset.
///
/// # Errors
/// Input, if the text does not match, or for unknown codes.
pub(super) fn read(text: &str, format: &str) -> Result<i64> {
    let pieces = pieces(format)?;
    parse(text, &pieces).map_err(|reason| match reason {
        Reason::Code(code) => unknown(&code),
        Reason::Text(reason) => Error::input(format!("{text:?} does not fit {format:?}: {reason}")),
    })
}

enum Reason {
    Code(String),
    Text(String),
}

impl From<&str> for Reason {
    fn from(text: &str) -> Reason {
        Reason::Text(text.to_owned())
    }
}

fn parse(text: &str, pieces: &[Piece]) -> std::result::Result<i64, Reason> {
    let mut rest = text.trim_start();
    let (mut year, mut month, mut day) = (None, None, None);
    let (mut hour, mut minute, mut second, mut micros) = (0, 0, 0, 0);
    let (mut afternoon, mut twelve, mut offset) = (None, false, 0);
    let mut dated = Dated::default();
    let mut epoch = None;
    for (i, piece) in pieces.iter().enumerate() {
        let code = match piece {
            Piece::Char(c) if c.is_whitespace() => {
                let trimmed = rest.trim_start();
                if trimmed.len() == rest.len() && !rest.is_empty() {
                    return Err("a blank is missing".into());
                }
                rest = trimmed;
                continue;
            }
            Piece::Char(c) => {
                rest = rest.strip_prefix(*c).ok_or_else(|| Reason::Text(format!("{c:?} is missing")))?;
                continue;
            }
            Piece::Code { code, .. } => *code,
        };
        let mut number = |width: usize| {
            let digits = rest.bytes().take(width).take_while(u8::is_ascii_digit).count();
            let value = rest[..digits]
                .parse::<i64>()
                .map_err(|_| Reason::Text(format!("%{code} finds no number")))?;
            rest = &rest[digits..];
            Ok::<(i64, usize), Reason>((value, digits))
        };
        match code {
            'Y' | 'G' => {
                let negative = rest.starts_with('-');
                rest = rest.strip_prefix('-').unwrap_or(rest);
                let all = rest.bytes().take_while(u8::is_ascii_digit).count();
                // More than four digits only if no digit can follow.
                let open = !matches!(pieces.get(i + 1), Some(Piece::Code { .. }));
                let digits = if open { all.min(6) } else { all.min(4) };
                let value = rest[..digits].parse::<i64>().map_err(|_| Reason::from("the year is missing"))?;
                rest = &rest[digits..];
                let value = if negative { -value } else { value };
                if code == 'Y' { year = Some(value) } else { dated.iso_year = Some(value) }
            }
            'y' => {
                let (value, _) = number(2)?;
                year = Some(if value < 70 { 2000 + value } else { 1900 + value });
            }
            'm' => month = Some(number(2)?.0),
            'd' | 'e' => day = Some(number(2)?.0),
            'H' => hour = number(2)?.0,
            'I' => {
                hour = number(2)?.0;
                twelve = true;
            }
            'M' => minute = number(2)?.0,
            'S' => second = number(2)?.0,
            'j' => dated.by(Way::DayOfYear, number(3)?.0)?,
            'V' => dated.by(Way::IsoWeek, number(2)?.0)?,
            'U' => dated.by(Way::SundayWeek, number(2)?.0)?,
            'W' => dated.by(Way::MondayWeek, number(2)?.0)?,
            'w' => dated.day = Some(number(1)?.0),
            'u' => dated.iso_day = Some(number(1)?.0),
            's' => epoch = Some(number(12)?.0),
            'f' | 'n' | 'g' => {
                let (value, digits) = number(9)?;
                micros = if digits <= 6 {
                    value * 10i64.pow(6 - digits as u32)
                } else {
                    value / 10i64.pow(digits as u32 - 6)
                };
            }
            'p' => {
                let half = rest.get(..2).map(str::to_ascii_lowercase);
                afternoon = match half.as_deref() {
                    Some("am") => Some(false),
                    Some("pm") => Some(true),
                    _ => return Err("AM or PM is missing".into()),
                };
                rest = &rest[2..];
            }
            'a' | 'A' => {
                // It says nothing that the others do not say.
                let (_, after) =
                    named(rest, (3..10).map(day_name), code == 'a').ok_or("the name of a day is missing")?;
                rest = after;
            }
            'b' | 'h' | 'B' => {
                let (at, after) = named(rest, (1..13).map(month_name), code != 'B')
                    .ok_or("the name of a month is missing")?;
                month = Some(at as i64 + 1);
                rest = after;
            }
            'z' => {
                let sign = match rest.bytes().next() {
                    Some(b'+') => 1,
                    Some(b'-') => -1,
                    Some(b'Z' | b'z') => {
                        rest = &rest[1..];
                        continue;
                    }
                    _ => return Err("an offset is missing".into()),
                };
                rest = &rest[1..];
                let digits = |text: &str| {
                    text.get(..2)
                        .filter(|d| d.bytes().all(|b| b.is_ascii_digit()))
                        .and_then(|d| d.parse::<i64>().ok())
                };
                let hours = digits(rest).ok_or("an offset is missing")?;
                rest = rest[2..].strip_prefix(':').unwrap_or(&rest[2..]);
                let minutes = digits(rest);
                rest = if minutes.is_some() { &rest[2..] } else { rest };
                offset = sign * (hours * 3600 + minutes.unwrap_or(0) * 60);
            }
            'Z' => {
                let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
                if !matches!(rest[..letters].to_ascii_lowercase().as_str(), "utc" | "gmt" | "z" | "ut") {
                    return Err("%Z takes only UTC".into());
                }
                rest = &rest[letters..];
            }
            other => return Err(Reason::Code(format!("%{other}"))),
        }
    }
    if !rest.trim_end().is_empty() {
        return Err(Reason::Text(format!("{rest:?} is left")));
    }
    if let Some(epoch) = epoch {
        return Ok(epoch * 1_000_000);
    }
    if twelve || afternoon.is_some() {
        if !(1..=12).contains(&hour) && twelve {
            return Err("the hour is not one of 12".into());
        }
        hour = match afternoon {
            Some(true) if hour < 12 => hour + 12,
            Some(false) if hour == 12 => 0,
            _ => hour,
        };
    }
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return Err("there is no such time".into());
    }
    let reason = |error: Error| Reason::Text(error.message().to_owned());
    let days = match dated.days(year) {
        // A month or a day of it counts for more than any week.
        Some(days) if month.is_none() && day.is_none() => days?,
        _ => date_of(year.unwrap_or(1900), month.unwrap_or(1), day.unwrap_or(1)).map_err(reason)?,
    };
    let time = (hour * 3600 + minute * 60 + second - offset) * 1_000_000 + micros;
    at(days, time).map_err(reason)
}

/// How a date is given other than by month and day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    DayOfYear,
    IsoWeek,
    SundayWeek,
    MondayWeek,
}

/// A date by weeks or by the day of the year, with DuckDB's rules: years are 1900 and weeks the first one
/// unless given; `%u` is a day of ISO weeks, and `%w` one of the others.
#[derive(Default)]
struct Dated {
    way: Option<(Way, i64)>,
    iso_year: Option<i64>,
    iso_day: Option<i64>,
    day: Option<i64>,
}

impl Dated {
    fn by(&mut self, way: Way, number: i64) -> std::result::Result<(), Reason> {
        if self.way.is_some_and(|(own, _)| own != way) {
            return Err("the format has two of %j, %V, %U and %W".into());
        }
        let range = match way {
            Way::DayOfYear => 1..=366,
            Way::IsoWeek => 1..=53,
            Way::SundayWeek | Way::MondayWeek => 0..=53,
        };
        if !range.contains(&number) {
            return Err("there is no such week or day of the year".into());
        }
        self.way = Some((way, number));
        Ok(())
    }

    /// The day in a year; `None` if that is for month and day to say.
    fn days(&self, year: Option<i64>) -> Option<std::result::Result<i64, Reason>> {
        match (self.way, self.iso_year, year) {
            (None, None, _) | (None, Some(_), Some(_)) => None,
            (Some((Way::IsoWeek, _)), _, Some(_)) => Some(Err("%V goes with %G, not with %Y".into())),
            (None, Some(year), None) => Some(self.in_week(year, 1)),
            (Some((Way::IsoWeek, week)), year, None) => Some(self.in_week(year.unwrap_or(1900), week)),
            (Some(_), Some(_), None) => Some(Err("%G goes with %V".into())),
            (Some((way, number)), _, year) => Some(self.in_year(year.unwrap_or(1900), way, number)),
        }
    }

    fn in_week(&self, year: i64, week: i64) -> std::result::Result<i64, Reason> {
        let day = self.iso_day.unwrap_or(1);
        if !(1..=7).contains(&day) {
            return Err("a day of an ISO week is 1 to 7".into());
        }
        let fourth = date_of(year, 1, 4).map_err(|error| Reason::Text(error.message().to_owned()))?;
        Ok(fourth - (fourth + 3).rem_euclid(7) + (week - 1) * 7 + day - 1)
    }

    fn in_year(&self, year: i64, way: Way, number: i64) -> std::result::Result<i64, Reason> {
        let first = |year| date_of(year, 1, 1).map_err(|error| Reason::Text(error.message().to_owned()));
        let start = first(year)?;
        if way == Way::DayOfYear {
            let day = start + number - 1;
            return if day < first(year + 1)? {
                Ok(day)
            } else {
                Err("there is no such day of the year".into())
            };
        }
        // Days of the week from its first one on: Sunday, or Monday.
        let of_week = |day: i64| if way == Way::SundayWeek { day } else { (day + 6) % 7 };
        let day = self.day.map_or(0, of_week);
        if !(0..7).contains(&day) {
            return Err("a day of the week is 0 to 6".into());
        }
        // Week 1 begins with the first Sunday, or Monday.
        let before = of_week(extract_date(DatePart::DayOfWeek, start));
        Ok(start + (7 - before) % 7 + (number - 1) * 7 + day)
    }
}

/// The name with which the text begins, in full or abbreviated to three letters, and the rest.
fn named(text: &str, names: impl Iterator<Item = &'static str>, short: bool) -> Option<(usize, &str)> {
    let names: Vec<&str> = names.collect();
    let starts = |part: &str| text.get(..part.len()).is_some_and(|given| given.eq_ignore_ascii_case(part));
    let length = |name: &str| if short { 3 } else { name.len() };
    let at = names.iter().position(|name| starts(&name[..length(name)]))?;
    Some((at, &text[length(names[at])..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::value::days_from_civil;

    #[test]
    fn formats_are_read() {
        let read = |text: &str, format: &str| read(text, format).ok();
        assert_eq!(read("2024 100", "%Y %j"), Some(days_from_civil(2024, 4, 9) * MICROS_PER_DAY));
        assert_eq!(read("nope", "%Y"), None);
        assert_eq!(
            read("9:05 PM", "%I:%M %p"),
            Some(days_from_civil(1900, 1, 1) * MICROS_PER_DAY + 75_900_000_000)
        );
        assert_eq!(read("2024-01-01 00:00:00 +02:30", "%Y-%m-%d %H:%M:%S %z"), Some(1_704_058_200_000_000));
        assert_eq!(read("2024-01-01x", "%Y-%m-%d"), None);
        // As DuckDB reads them.
        let date = |(year, month, day)| days_from_civil(year, month, day) * MICROS_PER_DAY;
        for (text, format, expected) in [
            ("30", "%V", Some((1900, 7, 23))),
            ("2021 19", "%Y %U", Some((2021, 5, 9))),
            ("2021 19", "%Y %W", Some((2021, 5, 10))),
            ("2021 19 4", "%Y %U %w", Some((2021, 5, 13))),
            ("2021 19 4", "%Y %W %w", Some((2021, 5, 13))),
            ("2021 19 4", "%Y %W %u", Some((2021, 5, 10))),
            ("2021 19 4", "%G %V %u", Some((2021, 5, 13))),
            ("2021 19 4", "%G %V %w", Some((2021, 5, 10))),
            ("2021-05-12 19-4", "%Y-%m-%d %U-%w", Some((2021, 5, 12))),
            ("2021 00 0", "%Y %U %w", Some((2020, 12, 27))),
            ("2021", "%G", Some((2021, 1, 4))),
            ("2021 19", "%Y %V", None),
            ("2021 54 1", "%Y %U %w", None),
            ("2021 366", "%Y %j", None),
            ("19 19", "%U %W", None),
        ] {
            assert_eq!(read(text, format), expected.map(date), "{text} by {format}");
        }
    }
}
