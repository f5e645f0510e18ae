//! Calendar arithmetic on single values: fields of dates and times, truncation, intervals.
//!
//! Dates are days since 1970-01-01, times microseconds since midnight, timestamps microseconds since 1970-01-01 00:00:00
//! (TIMESTAMPTZ likewise, in UTC). All in the proleptic Gregorian calendar, with a year 0. Functions that can leave the
//! range of their type return `None`.

use super::DatePart;
use crate::types::{Interval, MICROS_PER_DAY};
use crate::value::{civil_from_days, days_from_civil};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;

/// A field of a date.
pub fn extract_date(part: DatePart, days: i64) -> i64 {
    match part {
        DatePart::DayOfWeek => (days + 4).rem_euclid(7),
        DatePart::IsoDayOfWeek => (days + 3).rem_euclid(7) + 1,
        DatePart::Week => iso_week(days).1,
        DatePart::IsoYear => iso_week(days).0,
        DatePart::YearWeek => {
            let (year, week) = iso_week(days);
            year * 100 + if year < 0 { -week } else { week }
        }
        DatePart::Epoch => days * 86_400,
        DatePart::Hour | DatePart::Minute | DatePart::Second | DatePart::Millisecond | DatePart::Microsecond => 0,
        _ => {
            let (year, month, day) = civil_from_days(days);
            match part {
                DatePart::Year => year,
                DatePart::Millennium => (year + if year > 0 { 999 } else { -1000 }) / 1000,
                DatePart::Century => (year + if year > 0 { 99 } else { -100 }) / 100,
                DatePart::Era => i64::from(year > 0),
                DatePart::Decade => year.div_euclid(10),
                DatePart::Quarter => i64::from(month - 1) / 3 + 1,
                DatePart::Month => i64::from(month),
                DatePart::DayOfYear => days - days_from_civil(year, 1, 1) + 1,
                _ => i64::from(day),
            }
        }
    }
}

/// The ISO year and its week, 1 to 53: the week that holds the date's Thursday.
fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    let (year, _, _) = civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// A field of a time of day; those of dates are 0.
pub fn extract_time(part: DatePart, micros: i64) -> i64 {
    match part {
        DatePart::Hour => micros / MICROS_PER_HOUR,
        DatePart::Minute => micros / MICROS_PER_MINUTE % 60,
        DatePart::Second => micros / MICROS_PER_SECOND % 60,
        DatePart::Millisecond => micros % MICROS_PER_MINUTE / 1000,
        DatePart::Microsecond => micros % MICROS_PER_MINUTE,
        DatePart::Epoch => micros / MICROS_PER_SECOND,
        _ => 0,
    }
}

/// A field of a timestamp.
pub fn extract_timestamp(part: DatePart, micros: i64) -> i64 {
    match part {
        DatePart::Epoch => micros.div_euclid(MICROS_PER_SECOND),
        DatePart::Hour | DatePart::Minute | DatePart::Second | DatePart::Millisecond | DatePart::Microsecond => {
            extract_time(part, micros.rem_euclid(MICROS_PER_DAY))
        }
        _ => extract_date(part, micros.div_euclid(MICROS_PER_DAY)),
    }
}

/// A field of an interval. The parts do not flow into each other: an hour field may exceed 23.
pub fn extract_interval(part: DatePart, interval: Interval) -> i64 {
    let Interval { months, days, micros } = interval;
    match part {
        DatePart::Millennium => i64::from(months / 12_000),
        DatePart::Century => i64::from(months / 1200),
        DatePart::Decade => i64::from(months / 120),
        DatePart::Year => i64::from(months / 12),
        DatePart::Quarter => i64::from(months % 12 / 3 + 1),
        DatePart::Month => i64::from(months % 12),
        DatePart::Week => i64::from(days / 7),
        DatePart::Day => i64::from(days),
        DatePart::Hour => micros / MICROS_PER_HOUR,
        DatePart::Minute => micros / MICROS_PER_MINUTE % 60,
        DatePart::Second => micros / MICROS_PER_SECOND % 60,
        DatePart::Millisecond => micros % MICROS_PER_MINUTE / 1000,
        DatePart::Microsecond => micros % MICROS_PER_MINUTE,
        DatePart::Epoch => epoch_interval(interval) as i64,
        DatePart::IsoYear | DatePart::YearWeek | DatePart::Era => 0,
        DatePart::DayOfWeek | DatePart::IsoDayOfWeek | DatePart::DayOfYear => 0,
    }
}

/// Seconds since 1970, with the fraction.
pub fn epoch_timestamp(micros: i64) -> f64 {
    micros as f64 / MICROS_PER_SECOND as f64
}

/// Seconds of an interval; a year counts as 365.25 days, a month as 30, as in PostgreSQL.
pub fn epoch_interval(interval: Interval) -> f64 {
    let days = f64::from(interval.months / 12) * 365.25 + f64::from(interval.months % 12 * 30 + interval.days);
    days * 86_400.0 + interval.micros as f64 / MICROS_PER_SECOND as f64
}

/// The start of the field that a timestamp lies in. `None` outside the range.
pub fn truncate(part: DatePart, micros: i64) -> Option<i64> {
    let unit = match part {
        DatePart::Microsecond => return Some(micros),
        DatePart::Millisecond => 1000,
        DatePart::Second => MICROS_PER_SECOND,
        DatePart::Minute => MICROS_PER_MINUTE,
        DatePart::Hour => MICROS_PER_HOUR,
        _ => return truncate_date(part, micros.div_euclid(MICROS_PER_DAY)).checked_mul(MICROS_PER_DAY),
    };
    micros.div_euclid(unit).checked_mul(unit)
}

/// The first day of the field that a date lies in.
pub fn truncate_date(part: DatePart, days: i64) -> i64 {
    let (year, month, _) = civil_from_days(days);
    match part {
        DatePart::Millennium => days_from_civil((year - 1).div_euclid(1000) * 1000 + 1, 1, 1),
        DatePart::Century => days_from_civil((year - 1).div_euclid(100) * 100 + 1, 1, 1),
        DatePart::Decade => days_from_civil(year.div_euclid(10) * 10, 1, 1),
        DatePart::Year => days_from_civil(year, 1, 1),
        DatePart::Quarter => days_from_civil(year, (month - 1) / 3 * 3 + 1, 1),
        DatePart::Month => days_from_civil(year, month, 1),
        DatePart::Week | DatePart::YearWeek => days - (days + 3).rem_euclid(7),
        DatePart::IsoYear => {
            let fourth = days_from_civil(iso_week(days).0, 1, 4);
            fourth - (fourth + 3).rem_euclid(7)
        }
        _ => days,
    }
}

/// `days` with `months` calendar months added; the day is clipped to the length of the month.
pub fn add_months(days: i64, months: i32) -> i64 {
    let (year, month, day) = civil_from_days(days);
    let month_index = year * 12 + i64::from(month - 1) + i64::from(months);
    let (year, month) = (month_index.div_euclid(12), month_index.rem_euclid(12) as u32 + 1);
    days_from_civil(year, month, day.min(days_in_month(year, month)))
}

/// Days of a month (1-12).
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// A timestamp and an interval: months first, then days, then microseconds.
pub fn add_interval(micros: i64, interval: Interval) -> Option<i64> {
    let (mut days, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    if interval.months != 0 {
        days = add_months(days, interval.months);
    }
    days = days.checked_add(i64::from(interval.days))?;
    days.checked_mul(MICROS_PER_DAY)?.checked_add(time)?.checked_add(interval.micros)
}

/// `-interval`.
pub fn negate_interval(interval: Interval) -> Option<Interval> {
    Some(Interval {
        months: interval.months.checked_neg()?,
        days: interval.days.checked_neg()?,
        micros: interval.micros.checked_neg()?,
    })
}

/// The sum, part by part.
pub fn add_intervals(a: Interval, b: Interval) -> Option<Interval> {
    Some(Interval {
        months: a.months.checked_add(b.months)?,
        days: a.days.checked_add(b.days)?,
        micros: a.micros.checked_add(b.micros)?,
    })
}

/// The product with a number. Fractions flow down: of a month into 30 days, of a day into 24 hours, as in PostgreSQL.
pub fn scale_interval(interval: Interval, factor: f64) -> Option<Interval> {
    let months = f64::from(interval.months) * factor;
    let days = f64::from(interval.days) * factor + months.fract() * 30.0;
    let micros = interval.micros as f64 * factor + days.fract() * MICROS_PER_DAY as f64;
    let fits = months.abs() < 2e9 && days.abs() < 2e9 && micros.abs() < 9e18;
    fits.then_some(Interval { months: months as i32, days: days as i32, micros: micros.round() as i64 })
}

/// `a - b` as whole days and the rest, both of one sign.
pub fn timestamp_difference(a: i64, b: i64) -> Option<Interval> {
    let micros = a.checked_sub(b)?;
    let days = i32::try_from(micros / MICROS_PER_DAY).ok()?;
    Some(Interval { months: 0, days, micros: micros % MICROS_PER_DAY })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_known_dates() {
        let leap_day = days_from_civil(2024, 2, 29);
        let fields = |part| extract_date(part, leap_day);
        assert_eq!(fields(DatePart::Year), 2024);
        assert_eq!(fields(DatePart::Quarter), 1);
        assert_eq!(fields(DatePart::DayOfYear), 60);
        assert_eq!(fields(DatePart::DayOfWeek), 4, "a Thursday");
        assert_eq!(fields(DatePart::IsoDayOfWeek), 4);
        assert_eq!(fields(DatePart::Week), 9);
        assert_eq!(fields(DatePart::Century), 21);
        assert_eq!(extract_date(DatePart::Century, days_from_civil(2000, 12, 31)), 20);
        assert_eq!(extract_date(DatePart::Week, days_from_civil(2021, 1, 3)), 53, "still the old ISO year");
        assert_eq!(extract_date(DatePart::IsoDayOfWeek, days_from_civil(2021, 1, 3)), 7);
        assert_eq!(extract_timestamp(DatePart::Hour, -1), 23);
        assert_eq!(extract_timestamp(DatePart::Day, -1), 31);
    }

    #[test]
    fn months_are_clipped_and_truncation_is_idempotent() {
        let end_of_january = days_from_civil(2023, 1, 31);
        assert_eq!(civil_from_days(add_months(end_of_january, 1)), (2023, 2, 28));
        assert_eq!(civil_from_days(add_months(end_of_january, 13)), (2024, 2, 29));
        assert_eq!(civil_from_days(add_months(end_of_january, -2)), (2022, 11, 30));
        let parts = [DatePart::Century, DatePart::Decade, DatePart::Year, DatePart::Quarter, DatePart::Month];
        for part in parts.into_iter().chain([DatePart::Week, DatePart::Day, DatePart::Hour, DatePart::Second]) {
            for micros in [-1i64, 0, 1_709_210_096_123_456, -77_000_000_000_000_001] {
                let start = truncate(part, micros).unwrap();
                assert!(start <= micros);
                assert_eq!(truncate(part, start), Some(start), "{part:?}");
            }
        }
    }

    #[test]
    fn intervals_leave_their_range_as_none() {
        assert_eq!(add_interval(i64::MAX, Interval { months: 0, days: 0, micros: 1 }), None);
        assert_eq!(scale_interval(Interval { months: 1, days: 0, micros: 0 }, 0.5).unwrap().days, 15);
        assert_eq!(timestamp_difference(MICROS_PER_DAY * 2 + 5, 0).unwrap().days, 2);
    }
}
