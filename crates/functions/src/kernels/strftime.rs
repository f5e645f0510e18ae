//! `strftime` and `strptime`, with DuckDB's codes: those of C, with a `-` after the percent sign for numbers
//! without padding.

use super::calendar::{at, date_of, day_name, month_name};
use crate::time_zone::TimeZone;
use entasis_vector::expr::DatePart;
use entasis_vector::expr::calendar::extract_date;
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::value::{civil_from_days, write_offset};
use entasis_vector::writer::Writer;
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
    let moment = Moment::new(micros, zone);
    for piece in pieces(format)? {
        let (code, bare) = match piece {
            Piece::Char(c) => {
                out.char(c);
                continue;
            }
            Piece::Code { code, bare } => (code, bare),
        };
        if moment.write_text(code, out) {
            continue;
        }
        let Some((value, width)) = moment.number(code) else {
            return Err(unknown(&format!("%{}{code}", if bare { "-" } else { "" })));
        };
        let width = if bare { 1 } else { width };
        let _ = match value < 0 {
            true => write!(out, "{value}"),
            false => write!(out, "{value:0width$}"),
        };
    }
    Ok(())
}

/// A timestamp to be written.
struct Moment {
    days: i64,
    year: i64,
    month: u32,
    day: u32,
    /// Seconds since midnight, and microseconds since the last of them.
    seconds: i64,
    micros: i64,
    zone: Option<(TimeZone, i64)>,
}

impl Moment {
    fn new(micros: i64, zone: Option<(TimeZone, i64)>) -> Moment {
        let (days, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
        let (year, month, day) = civil_from_days(days);
        Moment { days, year, month, day, seconds: time / 1_000_000, micros: time % 1_000_000, zone }
    }

    /// Seconds by which the zone is ahead of UTC.
    fn offset(&self) -> i64 {
        self.zone.map_or(0, |(_, offset)| offset)
    }

    /// Writes what a code stands for if that is a text; false if it is a number, or unknown.
    fn write_text(&self, code: char, out: &mut Writer<'_>) -> bool {
        match code {
            'a' => out.text(&day_name(self.days)[..3]),
            'A' => out.text(day_name(self.days)),
            'b' | 'h' => out.text(&month_name(self.month)[..3]),
            'B' => out.text(month_name(self.month)),
            'p' => out.text(if self.seconds < 12 * 3600 { "AM" } else { "PM" }),
            'z' => {
                let _ = write_offset(out, self.offset());
            }
            'Z' => out.text(&self.zone.map_or(String::new(), |(zone, _)| zone.to_string())),
            _ => return false,
        }
        true
    }

    /// The number that a code stands for, and how many digits it has at least; `None` if the code is unknown.
    fn number(&self, code: char) -> Option<(i64, usize)> {
        let days = self.days;
        let (hour, minute) = (self.seconds / 3600, self.seconds / 60 % 60);
        let day_of_year = || extract_date(DatePart::DayOfYear, days);
        let sunday = || extract_date(DatePart::DayOfWeek, days);
        let monday = || extract_date(DatePart::IsoDayOfWeek, days) - 1;
        Some(match code {
            'w' => (sunday(), 1),
            'u' => (monday() + 1, 1),
            'd' => (self.day.into(), 2),
            'e' => (self.day.into(), 1),
            'm' => (self.month.into(), 2),
            'y' => (self.year.rem_euclid(100), 2),
            'Y' => (self.year, 4),
            'G' => (extract_date(DatePart::IsoYear, days), 4),
            'H' => (hour, 2),
            'I' => (if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
            'M' => (minute, 2),
            'S' => (self.seconds % 60, 2),
            'f' => (self.micros, 6),
            'g' => (self.micros / 1000, 3),
            'n' => (self.micros * 1000, 9),
            'j' => (day_of_year(), 3),
            'U' => ((day_of_year() + 6 - sunday()) / 7, 2),
            'W' => ((day_of_year() + 6 - monday()) / 7, 2),
            'V' => (extract_date(DatePart::Week, days), 2),
            's' => (days * 86_400 + self.seconds - self.offset(), 1),
            _ => return None,
        })
    }
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
    let mut parser = Parser { rest: text.trim_start(), ..Parser::default() };
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Char(c) => parser.character(*c)?,
            Piece::Code { code, .. } => {
                let is_adjacent = matches!(pieces.get(i + 1), Some(Piece::Code { .. }));
                parser.field(*code, is_adjacent)?;
            }
        }
    }
    parser.finish()
}

/// A text that is parsed, and the fields that were found.
#[derive(Default)]
struct Parser<'t> {
    rest: &'t str,
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    dated: Dated,
    time: Time,
    /// Seconds by which the text's zone is ahead of UTC.
    offset: i64,
    /// Seconds since 1970, which replace all else.
    epoch: Option<i64>,
}

impl Parser<'_> {
    /// A character of the format; a blank stands for any number of them.
    fn character(&mut self, c: char) -> std::result::Result<(), Reason> {
        if c.is_whitespace() {
            let trimmed = self.rest.trim_start();
            if trimmed.len() == self.rest.len() && !self.rest.is_empty() {
                return Err("a blank is missing".into());
            }
            self.rest = trimmed;
            return Ok(());
        }
        self.rest = self.rest.strip_prefix(c).ok_or_else(|| Reason::Text(format!("{c:?} is missing")))?;
        Ok(())
    }

    /// The field of a code; `is_adjacent` says that another code follows at once.
    fn field(&mut self, code: char, is_adjacent: bool) -> std::result::Result<(), Reason> {
        match code {
            'Y' => self.year = Some(self.full_year(is_adjacent)?),
            'G' => self.dated.iso_year = Some(self.full_year(is_adjacent)?),
            'y' => {
                let value = self.number(code, 2)?;
                self.year = Some(if value < 70 { 2000 + value } else { 1900 + value });
            }
            'm' => self.month = Some(self.number(code, 2)?),
            'd' | 'e' => self.day = Some(self.number(code, 2)?),
            'H' => self.time.hour = self.number(code, 2)?,
            'I' => {
                self.time.hour = self.number(code, 2)?;
                self.time.twelve = true;
            }
            'M' => self.time.minute = self.number(code, 2)?,
            'S' => self.time.second = self.number(code, 2)?,
            'f' | 'n' | 'g' => self.time.micros = self.fraction(code)?,
            'p' => self.time.afternoon = Some(self.afternoon()?),
            'j' => self.dated_by(Way::DayOfYear, code, 3)?,
            'V' => self.dated_by(Way::IsoWeek, code, 2)?,
            'U' => self.dated_by(Way::SundayWeek, code, 2)?,
            'W' => self.dated_by(Way::MondayWeek, code, 2)?,
            'w' => self.dated.day = Some(self.number(code, 1)?),
            'u' => self.dated.iso_day = Some(self.number(code, 1)?),
            's' => self.epoch = Some(self.number(code, 12)?),
            'a' | 'A' => {
                // It says nothing that the others do not say.
                let (_, after) = named(self.rest, (3..10).map(day_name), code == 'a')
                    .ok_or("the name of a day is missing")?;
                self.rest = after;
            }
            'b' | 'h' | 'B' => {
                let (at, after) = named(self.rest, (1..13).map(month_name), code != 'B')
                    .ok_or("the name of a month is missing")?;
                self.month = Some(at as i64 + 1);
                self.rest = after;
            }
            'z' => {
                if let Some(offset) = self.offset()? {
                    self.offset = offset;
                }
            }
            'Z' => {
                let letters = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
                let name = self.rest[..letters].to_ascii_lowercase();
                if !matches!(name.as_str(), "utc" | "gmt" | "z" | "ut") {
                    return Err("%Z takes only UTC".into());
                }
                self.rest = &self.rest[letters..];
            }
            other => return Err(Reason::Code(format!("%{other}"))),
        }
        Ok(())
    }

    /// The digits at the start of the rest, at most so many.
    fn digits(&mut self, code: char, width: usize) -> std::result::Result<(i64, usize), Reason> {
        let digits = self.rest.bytes().take(width).take_while(u8::is_ascii_digit).count();
        let value = self.rest[..digits]
            .parse::<i64>()
            .map_err(|_| Reason::Text(format!("%{code} finds no number")))?;
        self.rest = &self.rest[digits..];
        Ok((value, digits))
    }

    /// A number of at most so many digits.
    fn number(&mut self, code: char, width: usize) -> std::result::Result<i64, Reason> {
        self.digits(code, width).map(|(value, _)| value)
    }

    /// A week, or the day of the year.
    fn dated_by(&mut self, way: Way, code: char, width: usize) -> std::result::Result<(), Reason> {
        let number = self.number(code, width)?;
        self.dated.by(way, number)
    }

    /// A year of four digits, or of more, and with a sign, if no other code follows at once.
    fn full_year(&mut self, is_adjacent: bool) -> std::result::Result<i64, Reason> {
        let negative = self.rest.starts_with('-');
        let rest = self.rest.strip_prefix('-').unwrap_or(self.rest);
        let all = rest.bytes().take_while(u8::is_ascii_digit).count();
        // More than four digits only if no digit can follow.
        let digits = if is_adjacent { all.min(4) } else { all.min(6) };
        let value = rest[..digits].parse::<i64>().map_err(|_| Reason::from("the year is missing"))?;
        self.rest = &rest[digits..];
        Ok(if negative { -value } else { value })
    }

    /// The microseconds of a fraction of a second.
    fn fraction(&mut self, code: char) -> std::result::Result<i64, Reason> {
        let (value, digits) = self.digits(code, 9)?;
        Ok(match digits <= 6 {
            true => value * 10i64.pow(6 - digits as u32),
            false => value / 10i64.pow(digits as u32 - 6),
        })
    }

    /// True for PM, false for AM.
    fn afternoon(&mut self) -> std::result::Result<bool, Reason> {
        let half = self.rest.get(..2).map(str::to_ascii_lowercase);
        let afternoon = match half.as_deref() {
            Some("am") => false,
            Some("pm") => true,
            _ => return Err("AM or PM is missing".into()),
        };
        self.rest = &self.rest[2..];
        Ok(afternoon)
    }

    /// An offset from UTC, in seconds; `None` for `Z`, which says that there is none.
    fn offset(&mut self) -> std::result::Result<Option<i64>, Reason> {
        let sign = match self.rest.bytes().next() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(b'Z' | b'z') => {
                self.rest = &self.rest[1..];
                return Ok(None);
            }
            _ => return Err("an offset is missing".into()),
        };
        let rest = &self.rest[1..];
        let digits = |text: &str| {
            text.get(..2)
                .filter(|d| d.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|d| d.parse::<i64>().ok())
        };
        let hours = digits(rest).ok_or("an offset is missing")?;
        let rest = rest[2..].strip_prefix(':').unwrap_or(&rest[2..]);
        let minutes = digits(rest);
        self.rest = if minutes.is_some() { &rest[2..] } else { rest };
        Ok(Some(sign * (hours * 3600 + minutes.unwrap_or(0) * 60)))
    }

    /// The timestamp, once all codes of the format are read.
    fn finish(self) -> std::result::Result<i64, Reason> {
        if !self.rest.trim_end().is_empty() {
            return Err(Reason::Text(format!("{:?} is left", self.rest)));
        }
        if let Some(epoch) = self.epoch {
            return Ok(epoch * 1_000_000);
        }
        let seconds = self.time.seconds()?;
        let reason = |error: Error| Reason::Text(error.message().to_owned());
        let Parser { year, month, day, .. } = self;
        let days = match self.dated.days(year) {
            // A month or a day of it counts for more than any week.
            Some(days) if month.is_none() && day.is_none() => days?,
            _ => date_of(year.unwrap_or(1900), month.unwrap_or(1), day.unwrap_or(1)).map_err(reason)?,
        };
        at(days, (seconds - self.offset) * 1_000_000 + self.time.micros).map_err(reason)
    }
}

/// The time of day, as its fields say.
#[derive(Default)]
struct Time {
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// The hour is one of 12.
    twelve: bool,
    /// AM or PM.
    afternoon: Option<bool>,
}

impl Time {
    /// Seconds since midnight.
    fn seconds(&self) -> std::result::Result<i64, Reason> {
        let Time { mut hour, minute, second, .. } = *self;
        if self.twelve && !(1..=12).contains(&hour) {
            return Err("the hour is not one of 12".into());
        }
        hour = match self.afternoon {
            Some(true) if hour < 12 => hour + 12,
            Some(false) if hour == 12 => 0,
            _ => hour,
        };
        if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
            return Err("there is no such time".into());
        }
        Ok(hour * 3600 + minute * 60 + second)
    }
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
