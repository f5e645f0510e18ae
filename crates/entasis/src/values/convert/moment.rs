//! Dates and times without another crate: what SQL's types hold, with their parts.
//!
//! They convert and print; for arithmetic there are SQL and the crate `chrono`.

use super::from_value::{FromValue, mismatch};
use super::to_value::ToValue;
use entasis_vector::expr::convert;
use entasis_vector::types::{INFINITE_DATE, INFINITE_TIMESTAMP, MICROS_PER_DAY};
use entasis_vector::value::{civil_from_days, days_from_civil};
use entasis_vector::{DataType, Error, Result, Value};
use std::fmt;
use std::str::FromStr;

/// A DATE: a day of the calendar, or infinity.
///
/// ```
/// use entasis::{Config, Database, Date};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let day = Date::new(2024, 2, 28)?;
/// let next: Date = connection.query_row_as("SELECT (? + INTERVAL 1 DAY)::DATE", (day,))?;
/// assert_eq!((next.year(), next.month(), next.day()), (2024, 2, 29));
/// assert_eq!(next.to_string(), "2024-02-29");
/// assert_eq!(next, "2024-02-29".parse()?);
/// # Ok::<(), entasis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date {
    days: i32,
}

/// A TIME: a time of day, up to 24:00:00.
///
/// ```
/// use entasis::{Config, Database, Time};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let noon: Time = connection.query_row_as("SELECT ? + INTERVAL 90 MINUTES", (Time::new(10, 30, 0, 0)?,))?;
/// assert_eq!(noon, Time::new(12, 0, 0, 0)?);
/// assert_eq!("23:59:59.5".parse::<Time>()?.microsecond(), 500_000);
/// # Ok::<(), entasis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time {
    micros: i64,
}

/// A TIMESTAMP, without a time zone: a day and a time of day, or infinity. An instant is a
/// [`SystemTime`](std::time::SystemTime).
///
/// ```
/// use entasis::{Config, Database, Date, Time, Timestamp};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let moment = Timestamp::new(Date::new(2024, 2, 29)?, Time::new(12, 30, 0, 0)?);
/// let hour: Timestamp = connection.query_row_as("SELECT date_trunc('hour', ?)", (moment,))?;
/// assert_eq!(hour.to_string(), "2024-02-29 12:00:00");
/// assert_eq!(hour.time().minute(), 0);
/// # Ok::<(), entasis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp {
    micros: i64,
}

impl Date {
    /// The date after all others.
    pub const INFINITY: Date = Date { days: INFINITE_DATE };
    /// The date before all others.
    pub const NEG_INFINITY: Date = Date { days: -INFINITE_DATE };

    /// The day of a year, a month from 1 to 12 and a day from 1 in the proleptic Gregorian calendar, where
    /// the year before 1 is 0.
    ///
    /// # Errors
    /// Input, if there is no such day, or it is out of the range of DATE.
    pub fn new(year: i32, month: u32, day: u32) -> Result<Date> {
        let days = days_from_civil(year.into(), month, day.min(31));
        let is_one = (1..=12).contains(&month) && civil_from_days(days) == (year.into(), month, day);
        let days =
            i32::try_from(days).ok().filter(|days| is_one && days.unsigned_abs() < INFINITE_DATE as u32);
        days.map(|days| Date { days })
            .ok_or_else(|| Error::input(format!("there is no day {year}-{month}-{day}")))
    }

    /// The day so many days after 1970-01-01, or infinity.
    pub const fn from_days(days: i32) -> Date {
        Date { days }
    }

    /// Days since 1970-01-01.
    pub const fn days(self) -> i32 {
        self.days
    }

    /// True for `infinity` and `-infinity`, whose year, month and day mean nothing.
    pub const fn is_infinite(self) -> bool {
        self.days.unsigned_abs() >= INFINITE_DATE as u32
    }

    /// The year; the one before 1 is 0.
    pub fn year(self) -> i32 {
        civil_from_days(self.days.into()).0 as i32
    }

    /// The month, from 1 to 12.
    pub fn month(self) -> u32 {
        civil_from_days(self.days.into()).1
    }

    /// The day of the month, from 1.
    pub fn day(self) -> u32 {
        civil_from_days(self.days.into()).2
    }
}

impl Time {
    /// A time of day with microseconds.
    ///
    /// # Errors
    /// Input, if it is later than 24:00:00, or a part is too large.
    pub fn new(hour: u32, minute: u32, second: u32, microsecond: u32) -> Result<Time> {
        let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
        let micros = seconds * 1_000_000 + i64::from(microsecond);
        let is_one = minute < 60 && second < 60 && microsecond < 1_000_000 && micros <= MICROS_PER_DAY;
        match is_one {
            true => Ok(Time { micros }),
            false => Err(Error::input(format!(
                "there is no time of day {hour:02}:{minute:02}:{second:02}.{microsecond:06}"
            ))),
        }
    }

    /// Microseconds since midnight.
    pub const fn micros(self) -> i64 {
        self.micros
    }

    /// The hour, up to 24.
    pub const fn hour(self) -> u32 {
        (self.micros / 3_600_000_000) as u32
    }

    /// The minute of the hour.
    pub const fn minute(self) -> u32 {
        (self.micros / 60_000_000 % 60) as u32
    }

    /// The second of the minute.
    pub const fn second(self) -> u32 {
        (self.micros / 1_000_000 % 60) as u32
    }

    /// The microsecond of the second.
    pub const fn microsecond(self) -> u32 {
        (self.micros % 1_000_000) as u32
    }
}

impl Timestamp {
    /// The timestamp after all others.
    pub const INFINITY: Timestamp = Timestamp { micros: INFINITE_TIMESTAMP };
    /// The timestamp before all others.
    pub const NEG_INFINITY: Timestamp = Timestamp { micros: -INFINITE_TIMESTAMP };

    /// A time on a day. On a day out of the range of TIMESTAMP it is infinite, as the day may be.
    pub fn new(date: Date, time: Time) -> Timestamp {
        let micros = i64::from(date.days).checked_mul(MICROS_PER_DAY);
        let micros = micros.and_then(|micros| micros.checked_add(time.micros));
        let infinite = if date.days < 0 { Timestamp::NEG_INFINITY } else { Timestamp::INFINITY };
        micros.filter(|_| !date.is_infinite()).map_or(infinite, |micros| Timestamp { micros })
    }

    /// The timestamp so many microseconds after 1970-01-01 00:00:00, or infinity.
    pub const fn from_micros(micros: i64) -> Timestamp {
        Timestamp { micros }
    }

    /// Microseconds since 1970-01-01 00:00:00.
    pub const fn micros(self) -> i64 {
        self.micros
    }

    /// True for `infinity` and `-infinity`, whose time means nothing.
    pub const fn is_infinite(self) -> bool {
        self.micros.unsigned_abs() >= INFINITE_TIMESTAMP as u64
    }

    /// The day.
    pub const fn date(self) -> Date {
        match self.is_infinite() {
            true if self.micros < 0 => Date::NEG_INFINITY,
            true => Date::INFINITY,
            false => Date { days: self.micros.div_euclid(MICROS_PER_DAY) as i32 },
        }
    }

    /// The time of day.
    pub const fn time(self) -> Time {
        Time { micros: self.micros.rem_euclid(MICROS_PER_DAY) }
    }
}

/// Types that are one number: how they are read, written, parsed and printed.
macro_rules! moments {
    ($($own:ident, $ty:path, $number:ident: $of:ty;)*) => {$(
        impl ToValue for $own {
            fn to_value(&self) -> Result<(Value, DataType)> {
                Ok((Value::Integer(self.$number.into()), $ty))
            }

            fn data_type() -> DataType {
                $ty
            }
        }

        impl FromStr for $own {
            type Err = Error;

            /// Reads a text as SQL does.
            fn from_str(text: &str) -> Result<$own> {
                <$own>::from_value(convert(&Value::Text(text.into()), DataType::Varchar, $ty)?, $ty)
            }
        }

        impl fmt::Display for $own {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", Value::Integer(self.$number.into()).display($ty))
            }
        }

        impl fmt::Debug for $own {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    )*};
}

moments! {
    Date, DataType::Date, days: i32;
    Time, DataType::Time, micros: i64;
    Timestamp, DataType::Timestamp, micros: i64;
}

impl FromValue for Date {
    fn from_value(value: Value, ty: DataType) -> Result<Date> {
        match (value, ty) {
            (Value::Integer(v), DataType::Date) => Ok(Date { days: v as i32 }),
            _ => Err(mismatch::<Date>(ty)),
        }
    }
}

impl FromValue for Time {
    fn from_value(value: Value, ty: DataType) -> Result<Time> {
        match (value, ty) {
            (Value::Integer(v), DataType::Time) => Ok(Time { micros: v as i64 }),
            _ => Err(mismatch::<Time>(ty)),
        }
    }
}

impl FromValue for Timestamp {
    fn from_value(value: Value, ty: DataType) -> Result<Timestamp> {
        match (&value, ty) {
            (Value::Integer(v), DataType::Timestamp) => Ok(Timestamp { micros: *v as i64 }),
            (Value::Integer(v), DataType::TimestampNs) => {
                let is_infinite = v.unsigned_abs() >= INFINITE_TIMESTAMP as u128;
                if !is_infinite && v % 1000 != 0 {
                    let text = format!("the {ty} {} is finer than a microsecond", value.display(ty));
                    return Err(Error::input(text).with_hint("CAST it to TIMESTAMP in the query"));
                }
                Ok(Timestamp { micros: if is_infinite { *v as i64 } else { (*v / 1000) as i64 } })
            }
            _ => Err(mismatch::<Timestamp>(ty)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_do_not_exist() {
        for (year, month, day) in [(2023, 2, 29), (2024, 0, 1), (2024, 13, 1), (2024, 4, 31), (2024, 1, 0)] {
            assert!(Date::new(year, month, day).is_err(), "{year}-{month}-{day}");
        }
        assert!(Date::new(i32::MAX, 1, 1).is_err());
        assert!(Date::new(2024, 1, u32::MAX).is_err());
        assert!(Date::new(2024, u32::MAX, 1).is_err());
        let day = Date::new(-43, 3, 15).unwrap();
        assert_eq!(day.to_string(), "0044-03-15 (BC)");
        assert_eq!((day.year(), day.month(), day.day()), (-43, 3, 15));
        assert!(Time::new(24, 0, 0, 1).is_err() && Time::new(1, 60, 0, 0).is_err());
        assert_eq!(Time::new(24, 0, 0, 0).unwrap().hour(), 24);
    }

    #[test]
    fn infinity_stays_infinity() {
        let midnight = Time::new(0, 0, 0, 0).unwrap();
        assert_eq!(Timestamp::new(Date::INFINITY, midnight), Timestamp::INFINITY);
        assert_eq!(Timestamp::NEG_INFINITY.date(), Date::NEG_INFINITY);
        assert_eq!("-infinity".parse::<Date>().unwrap(), Date::NEG_INFINITY);
        let ns = |v: i64| Timestamp::from_value(Value::Integer(v.into()), DataType::TimestampNs);
        assert_eq!(ns(INFINITE_TIMESTAMP).unwrap(), Timestamp::INFINITY);
        assert_eq!(ns(-1000).unwrap().to_string(), "1969-12-31 23:59:59.999999");
        assert!(ns(1).unwrap_err().message().contains("finer than a microsecond"));
    }
}
