//! Time zones: by name in the IANA database, or as fixed offsets.
//!
//! A TIMESTAMPTZ is an instant. The local time at an instant, a TIMESTAMP, depends on a zone, and so do the
//! text of the instant, its fields and where its days begin. The engine's kernels know only UTC. If another
//! zone is needed (`AT TIME ZONE`, the setting `TimeZone`), the functions in [`crate::zone`] do
//! the conversions.
//!
//! **Gaps and overlaps.** A local time that is skipped is read with the offset before the gap, and one that
//! occurs twice with the offset after the overlap: its second occurrence, in standard time. PostgreSQL and
//! DuckDB do the same.
//!
//! **Years.** The changes up to 2099 are listed. Later years follow the rules of one of its last 28
//! years, the one with the same length that begins on the same day of the week. Years before its first have
//! local mean time.

mod conversions;
mod database;

use database::{LAST_YEAR, names};
use entasis_vector::expr::calendar::is_finite;
use entasis_vector::expr::moment_text::{Moment, TextZone, parse_moment, parse_offset};
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::value::{civil_from_days, days_from_civil, write_offset, write_timestamp};
use entasis_vector::{Error, Result};
use std::fmt;

pub use database::Zone;

pub const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Before this year all zones had local mean time.
const FIRST_YEAR: i64 = 1800;

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeZone {
    /// Coordinated universal time.
    Utc,
    /// A zone of the IANA database.
    Named(Zone),
    /// A fixed offset, in seconds east of Greenwich.
    Fixed(i32),
}

impl TimeZone {
    /// Coordinated universal time.
    pub const UTC: TimeZone = TimeZone::Utc;

    /// The zone of that name, in any case; or an offset, which counts to the west, as in PostgreSQL and
    /// POSIX: at `+02`, local time is two hours behind Greenwich.
    ///
    /// # Errors
    /// Input, if there is no such zone.
    pub fn parse(name: &str) -> Result<TimeZone> {
        let name = name.trim();
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(TimeZone::Utc);
        }
        if let Some(zone) = Zone::find(name) {
            return Ok(TimeZone::Named(zone));
        }
        let offset = name.strip_prefix('<').and_then(|rest| Some(rest.split_once('>')?.1)).unwrap_or(name);
        if let Some(seconds) = parse_offset(offset.as_bytes()) {
            return Ok(TimeZone::Fixed(-seconds as i32));
        }
        let error = Error::input(format!("there is no time zone '{name}'"));
        Err(match entasis_vector::suggest::nearest(name, names().iter().copied()) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error.with_hint("use a name of the IANA database, such as 'Europe/Berlin'"),
        })
    }

    /// A value of the setting `TimeZone`: the name of a zone, or hours to the east.
    ///
    /// # Errors
    /// Input, if there is no such zone.
    pub fn setting(text: &str) -> Result<TimeZone> {
        match text.trim().parse::<f64>() {
            Ok(hours) if hours.is_finite() => TimeZone::fixed((hours * 3600.0).round() as i64),
            _ => TimeZone::parse(text),
        }
    }

    /// A fixed offset, in seconds east of Greenwich.
    ///
    /// # Errors
    /// Input, if the offset exceeds 18 hours.
    pub fn fixed(seconds: i64) -> Result<TimeZone> {
        match i32::try_from(seconds) {
            Ok(seconds) if seconds.abs() < 19 * 3600 => Ok(TimeZone::Fixed(seconds)),
            _ => Err(Error::input(format!("the offset of {seconds} seconds from UTC is out of range"))),
        }
    }

    /// True if it is UTC, by whatever name.
    pub fn is_utc(self) -> bool {
        match self {
            TimeZone::Utc | TimeZone::Fixed(0) => true,
            TimeZone::Fixed(_) => false,
            TimeZone::Named(zone) => {
                let name = zone.name();
                let name = name.strip_prefix("Etc/").unwrap_or(name);
                ["UTC", "UCT", "Zulu", "Universal", "GMT", "Greenwich"].contains(&name)
            }
        }
    }

    /// Seconds by which local time is ahead of UTC at an instant.
    pub fn offset(self, instant: i64) -> i64 {
        match self {
            TimeZone::Fixed(seconds) => seconds.into(),
            TimeZone::Utc => 0,
            TimeZone::Named(zone) => {
                zone.offset(like_known_year(instant.div_euclid(MICROS_PER_SECOND))).into()
            }
        }
    }

    /// The local time at an instant. `None` outside the range of timestamps.
    pub fn local(self, instant: i64) -> Option<i64> {
        if !is_finite(instant) {
            return Some(instant);
        }
        instant.checked_add(self.offset(instant) * MICROS_PER_SECOND).filter(|local| is_finite(*local))
    }

    /// The instant at a local time. `None` outside the range of timestamps.
    pub fn instant(self, local: i64) -> Option<i64> {
        if !is_finite(local) {
            return Some(local);
        }
        // The offsets that may apply: no two changes are that close to each other.
        let before = self.offset(local.saturating_sub(MICROS_PER_DAY));
        let after = self.offset(local.saturating_add(MICROS_PER_DAY));
        let at =
            |offset: i64| local.checked_sub(offset * MICROS_PER_SECOND).filter(|instant| is_finite(*instant));
        let (earlier, later) = (at(before)?, at(after)?);
        let is_after = before != after && self.offset(later) == after;
        Some(if is_after { later } else { earlier })
    }

    /// Parses an instant. Without a zone of its own, the text is a local time of this zone.
    ///
    /// # Errors
    /// Input, if it is not a timestamp, or its zone is unknown.
    pub fn read(self, text: &str) -> Result<i64> {
        let wrong = || {
            let shown: String = text.chars().take(60).collect();
            Error::input(format!("cannot cast '{shown}' to TIMESTAMP WITH TIME ZONE"))
        };
        let Moment { micros, zone } = parse_moment(text.trim().as_bytes()).ok_or_else(wrong)?;
        let zone = match zone {
            TextZone::None => self,
            TextZone::Offset(seconds) => TimeZone::fixed(seconds)?,
            TextZone::Named(name) => TimeZone::parse(name)?,
        };
        zone.instant(micros).ok_or_else(wrong)
    }

    /// Writes an instant as local time with the offset: `2024-07-02 00:30:00+02`.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn write(self, f: &mut impl fmt::Write, instant: i64) -> fmt::Result {
        if !is_finite(instant) {
            return write_timestamp(f, instant);
        }
        // At the ends of the range, the local time could be out of range.
        let offset = if self.local(instant).is_some() { self.offset(instant) } else { 0 };
        write_timestamp(f, instant + offset * MICROS_PER_SECOND)?;
        write_offset(f, offset)
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeZone::Utc => f.write_str("UTC"),
            TimeZone::Named(zone) => f.write_str(zone.name()),
            // Its abbreviation, in the form in which it is parsed: counted to the west.
            TimeZone::Fixed(seconds) => {
                f.write_str("<")?;
                write_offset(f, (*seconds).into())?;
                f.write_str(">")?;
                write_offset(f, -i64::from(*seconds))
            }
        }
    }
}

/// An instant, in seconds since 1970, that has the same offset and is in a year covered by the database.
fn like_known_year(seconds: i64) -> i64 {
    let (days, time) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
    let (year, _, _) = civil_from_days(days);
    if year < FIRST_YEAR {
        return days_from_civil(FIRST_YEAR, 1, 1) * SECONDS_PER_DAY;
    }
    if year <= LAST_YEAR {
        return seconds;
    }
    let start = |year| days_from_civil(year, 1, 1);
    let shape = |year| (start(year).rem_euclid(7), start(year + 1) - start(year));
    let like = (LAST_YEAR - 27..=LAST_YEAR).find(|known| shape(*known) == shape(year)).unwrap_or(LAST_YEAR);
    (days - start(year) + start(like)) * SECONDS_PER_DAY + time
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        TimeZone::UTC.read(text).unwrap()
    }

    fn shown(zone: &str, instant: &str) -> String {
        let mut text = String::new();
        TimeZone::parse(zone).unwrap().write(&mut text, at(instant)).unwrap();
        text
    }

    #[test]
    fn clocks_follow_their_zone() {
        for (zone, instant, expected) in [
            ("Europe/Berlin", "2024-07-01 22:30:00", "2024-07-02 00:30:00+02"),
            ("europe/berlin", "2024-01-01 00:00:00", "2024-01-01 01:00:00+01"),
            ("Europe/Berlin", "1800-01-01 00:00:00", "1800-01-01 00:53:28+00:53:28"),
            ("Europe/Berlin", "2098-07-01 00:00:00", "2098-07-01 02:00:00+02"),
            ("Europe/Berlin", "2099-12-31 23:30:00", "2100-01-01 00:30:00+01"),
            ("Europe/Berlin", "2100-07-01 00:00:00", "2100-07-01 02:00:00+02"),
            ("Europe/Berlin", "290000-07-01 00:00:00", "290000-07-01 02:00:00+02"),
            ("Australia/Sydney", "2024-01-01 00:00:00", "2024-01-01 11:00:00+11"),
            ("Australia/Sydney", "2024-07-01 00:00:00", "2024-07-01 10:00:00+10"),
            ("Asia/Kolkata", "2024-07-01 00:00:00", "2024-07-01 05:30:00+05:30"),
            ("America/St_Johns", "2024-01-01 00:00:00", "2023-12-31 20:30:00-03:30"),
            ("+02", "2024-01-01 00:00:00", "2023-12-31 22:00:00-02"),
            ("-05:30", "2024-01-01 00:00:00", "2024-01-01 05:30:00+05:30"),
            ("UTC", "infinity", "infinity"),
            ("utc", "2024-01-01 00:00:00", "2024-01-01 00:00:00+00"),
            ("etc/utc", "2024-01-01 00:00:00", "2024-01-01 00:00:00+00"),
        ] {
            assert_eq!(shown(zone, instant), expected, "{instant} in {zone}");
        }
    }

    #[test]
    fn gaps_are_read_before_them_and_overlaps_after() {
        for (zone, local, expected) in [
            ("America/Los_Angeles", "2024-03-10 01:59:59", "2024-03-10 09:59:59"),
            ("America/Los_Angeles", "2024-03-10 02:30:00", "2024-03-10 10:30:00"),
            ("America/Los_Angeles", "2024-03-10 03:00:00", "2024-03-10 10:00:00"),
            ("America/Los_Angeles", "2024-11-03 00:59:59", "2024-11-03 07:59:59"),
            ("America/Los_Angeles", "2024-11-03 01:30:00", "2024-11-03 09:30:00"),
            ("America/Los_Angeles", "2024-11-03 02:00:00", "2024-11-03 10:00:00"),
            ("Australia/Sydney", "2024-10-06 02:30:00", "2024-10-05 16:30:00"),
            ("Australia/Sydney", "2024-04-07 02:30:00", "2024-04-06 16:30:00"),
            ("Pacific/Apia", "2011-12-30 12:00:00", "2011-12-30 22:00:00"),
        ] {
            let instant = TimeZone::parse(zone).unwrap().instant(at(local)).unwrap();
            assert_eq!(instant, at(expected), "{local} in {zone}");
        }
    }

    #[test]
    fn instants_come_back_outside_overlaps() {
        for zone in Zone::all().map(TimeZone::Named) {
            for day in (-80_000..60_000).step_by(997) {
                let instant = day * MICROS_PER_DAY + 43_200_000_000;
                let local = zone.local(instant).unwrap();
                assert_eq!(zone.local(zone.instant(local).unwrap()), Some(local), "{zone} on day {day}");
            }
        }
    }

    #[test]
    fn some_names_are_utc() {
        for name in ["UTC", "utc", "Etc/UTC", "GMT", "Zulu", "Etc/Greenwich", "+00"] {
            assert!(TimeZone::parse(name).unwrap().is_utc(), "{name}");
        }
        for name in ["Europe/London", "Africa/Abidjan", "+01"] {
            assert!(!TimeZone::parse(name).unwrap().is_utc(), "{name}");
        }
    }

    #[test]
    fn unknown_zones_are_errors() {
        let error = TimeZone::parse("Europe/Berln").unwrap_err();
        assert_eq!(error.hint(), Some("did you mean Europe/Berlin?"));
        assert!(TimeZone::parse("Nowhere/Bogus").is_err());
        assert!(TimeZone::parse("UTC+2").is_err(), "PostgreSQL and DuckDB differ in what it means");
        assert!(TimeZone::parse("").is_err());
        let east = TimeZone::setting("+02").unwrap();
        assert_eq!((east, east.to_string().as_str()), (TimeZone::Fixed(7200), "<+02>-02"));
        assert_eq!(TimeZone::setting("<+02>-02").unwrap(), east);
    }
}
