//! Calendar arithmetic on single values: fields of dates and times, truncation, intervals.
//!
//! Dates are days since 1970-01-01, times microseconds since midnight, timestamps microseconds since
//! 1970-01-01 00:00:00 (TIMESTAMPTZ likewise, in UTC). All are in the proleptic Gregorian calendar, with a
//! year 0. Functions that can leave the range of their type return `None`. Infinity is the extreme of each
//! range ([`is_finite`]); functions that move or truncate a moment leave it as it is.

use super::DatePart;
use crate::types::{INFINITE_DATE, INFINITE_TIMESTAMP, Interval, MICROS_PER_DAY};
use crate::value::{civil_from_days, days_from_civil};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;

/// The Julian day of 1970-01-01.
const JULIAN_EPOCH: i64 = 2_440_588;

/// Whether a timestamp is neither `infinity` nor `-infinity`.
pub fn is_finite(micros: i64) -> bool {
    micros.unsigned_abs() < INFINITE_TIMESTAMP as u64
}

/// Whether a date is neither `infinity` nor `-infinity`.
pub fn is_finite_date(days: i32) -> bool {
    days.unsigned_abs() < INFINITE_DATE as u32
}

/// Midnight of a date; `None` beyond the range of timestamps.
pub fn midnight(days: i32) -> Option<i64> {
    match days {
        days if is_finite_date(days) => i64::from(days).checked_mul(MICROS_PER_DAY),
        days if days > 0 => Some(INFINITE_TIMESTAMP),
        _ => Some(-INFINITE_TIMESTAMP),
    }
}

/// The microseconds of a TIMESTAMP_NS: what is less than one is truncated, infinity stays.
pub fn micros_of(nanos: i64) -> i64 {
    if is_finite(nanos) { nanos.div_euclid(1000) } else { nanos }
}

/// A timestamp in nanoseconds; `None` beyond the range of TIMESTAMP_NS.
pub fn nanos_of(micros: i64) -> Option<i64> {
    if is_finite(micros) { micros.checked_mul(1000).filter(|nanos| is_finite(*nanos)) } else { Some(micros) }
}

/// The day of a timestamp.
pub fn day_of(micros: i64) -> i32 {
    match micros {
        micros if is_finite(micros) => micros.div_euclid(MICROS_PER_DAY) as i32,
        micros if micros > 0 => INFINITE_DATE,
        _ => -INFINITE_DATE,
    }
}

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
        DatePart::Julian => days + JULIAN_EPOCH,
        DatePart::Hour
        | DatePart::Minute
        | DatePart::Second
        | DatePart::Millisecond
        | DatePart::Microsecond => 0,
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
    let thursday = thursday_of(days);
    let (year, _, _) = civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// The Thursday of a date's week.
fn thursday_of(days: i64) -> i64 {
    days - (days + 3).rem_euclid(7) + 3
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
        DatePart::Hour
        | DatePart::Minute
        | DatePart::Second
        | DatePart::Millisecond
        | DatePart::Microsecond => extract_time(part, micros.rem_euclid(MICROS_PER_DAY)),
        _ => extract_date(part, micros.div_euclid(MICROS_PER_DAY)),
    }
}

/// A field of an interval. The parts do not carry over into each other: an hour field may exceed 23.
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
        DatePart::IsoYear | DatePart::YearWeek | DatePart::Era | DatePart::Julian => 0,
        DatePart::DayOfWeek | DatePart::IsoDayOfWeek | DatePart::DayOfYear => 0,
    }
}

/// Days since 4714-11-24 BC, with the time as a fraction.
pub fn julian_timestamp(micros: i64) -> f64 {
    let (days, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    (days + JULIAN_EPOCH) as f64 + time as f64 / MICROS_PER_DAY as f64
}

/// Seconds since 1970, with the fraction.
pub fn epoch_timestamp(micros: i64) -> f64 {
    micros as f64 / MICROS_PER_SECOND as f64
}

/// Seconds of an interval; a year counts as 365.25 days, a month as 30, as in PostgreSQL.
pub fn epoch_interval(interval: Interval) -> f64 {
    let days =
        f64::from(interval.months / 12) * 365.25 + f64::from(interval.months % 12 * 30 + interval.days);
    days * 86_400.0 + interval.micros as f64 / MICROS_PER_SECOND as f64
}

/// The start of the field that a timestamp lies in. `None` outside the range.
pub fn truncate(part: DatePart, micros: i64) -> Option<i64> {
    if !is_finite(micros) {
        return Some(micros);
    }
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

/// An interval without units finer than the field.
pub fn truncate_interval(part: DatePart, interval: Interval) -> Interval {
    let Interval { months, days, micros } = interval;
    let whole = |unit: i32| Interval { months: months / unit * unit, days: 0, micros: 0 };
    let time = |unit: i64| Interval { months, days, micros: micros / unit * unit };
    match part {
        DatePart::Millennium => whole(12_000),
        DatePart::Century => whole(1200),
        DatePart::Decade => whole(120),
        DatePart::Year => whole(12),
        DatePart::Quarter => whole(3),
        DatePart::Month => whole(1),
        DatePart::Hour => time(MICROS_PER_HOUR),
        DatePart::Minute => time(MICROS_PER_MINUTE),
        DatePart::Second => time(MICROS_PER_SECOND),
        DatePart::Millisecond => time(1000),
        DatePart::Microsecond => interval,
        _ => Interval { micros: 0, ..interval },
    }
}

/// The first day of the field that a date lies in.
pub fn truncate_date(part: DatePart, days: i64) -> i64 {
    if days.unsigned_abs() >= INFINITE_DATE as u64 {
        return days;
    }
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
    if !is_finite(micros) {
        return Some(micros);
    }
    let (mut days, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    if interval.months != 0 {
        days = add_months(days, interval.months);
    }
    days = days.checked_add(i64::from(interval.days))?;
    days.checked_mul(MICROS_PER_DAY)?
        .checked_add(time)?
        .checked_add(interval.micros)
        .filter(|sum| is_finite(*sum))
}

/// As [`add_interval`], of a TIMESTAMP_NS.
pub fn add_interval_to_nanos(nanos: i64, interval: Interval) -> Option<i64> {
    if !is_finite(nanos) {
        return Some(nanos);
    }
    let micros = add_interval(micros_of(nanos), interval)?;
    nanos_of(micros)?.checked_add(nanos.rem_euclid(1000)).filter(|sum| is_finite(*sum))
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

/// The product with a number. Fractions flow down: of a month into 30 days, of a day into 24 hours, as in
/// PostgreSQL.
pub fn scale_interval(interval: Interval, factor: f64) -> Option<Interval> {
    scaled(interval, |part| part * factor)
}

/// The quotient by a number other than 0. Fractions flow down as in [`scale_interval`].
pub fn divide_interval(interval: Interval, divisor: f64) -> Option<Interval> {
    scaled(interval, |part| part / divisor)
}

fn scaled(interval: Interval, scale: impl Fn(f64) -> f64) -> Option<Interval> {
    /// The rounding error is below a microsecond.
    fn rounded(v: f64) -> f64 {
        (v * 1e6).round_ties_even() / 1e6
    }
    const SECONDS_PER_DAY: f64 = 86_400.0;
    let (months, days) = (scale(interval.months.into()), scale(interval.days.into()));
    let rest_days = rounded(months.fract() * 30.0);
    let rest_seconds = rounded((days.fract() + rest_days.fract()) * SECONDS_PER_DAY);
    let whole_days = days.trunc() + rest_days.trunc() + (rest_seconds / SECONDS_PER_DAY).trunc();
    let micros = (scale(interval.micros as f64) + rest_seconds % SECONDS_PER_DAY * 1e6).round_ties_even();
    let fits = months.abs() < 2_147_483_648.0 && whole_days.abs() < 2_147_483_648.0 && micros.abs() < 9e18;
    fits.then_some(Interval { months: months as i32, days: whole_days as i32, micros: micros as i64 })
}

/// `a - b` as whole days and the rest, both of one sign.
pub fn timestamp_difference(a: i64, b: i64) -> Option<Interval> {
    if !is_finite(a) || !is_finite(b) {
        return None;
    }
    let micros = a.checked_sub(b)?;
    let days = i32::try_from(micros / MICROS_PER_DAY).ok()?;
    Some(Interval { months: 0, days, micros: micros % MICROS_PER_DAY })
}

/// `a - b` in years, months, days and a time of one sign. Days borrowed from a month are those of the earlier
/// one's month.
pub fn age(a: i64, b: i64) -> Option<Interval> {
    if !is_finite(a) || !is_finite(b) {
        return None;
    }
    let (earlier, later, sign) = if a < b { (a, b, -1) } else { (b, a, 1) };
    let civil = |micros: i64| {
        let (year, month, day) = civil_from_days(micros.div_euclid(MICROS_PER_DAY));
        (year * 12 + i64::from(month), day, micros.rem_euclid(MICROS_PER_DAY))
    };
    let ((first_month, first_day, first_time), (last_month, last_day, last_time)) =
        (civil(earlier), civil(later));
    let mut months = last_month - first_month;
    let mut days = i64::from(last_day) - i64::from(first_day);
    let mut micros = last_time - first_time;
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        days += i64::from(days_in_month(
            (first_month - 1).div_euclid(12),
            (first_month - 1).rem_euclid(12) as u32 + 1,
        ));
        months -= 1;
    }
    Some(Interval {
        months: i32::try_from(sign * months).ok()?,
        days: i32::try_from(sign * days).ok()?,
        micros: sign * micros,
    })
}

/// The start of the bin that `micros` lies in, of bins of `stride` one of which starts at `origin`. Months do
/// not mix with days and times in a stride. `None` outside the range.
pub fn bin(stride: Interval, micros: i64, origin: i64) -> Option<i64> {
    if !is_finite(micros) {
        return Some(micros);
    }
    if stride.months != 0 {
        let month = |micros: i64| {
            let (year, month, _) = civil_from_days(micros.div_euclid(MICROS_PER_DAY));
            year * 12 + i64::from(month)
        };
        let width = i64::from(stride.months);
        let mut bins = (month(micros) - month(origin)).div_euclid(width);
        loop {
            let start = add_interval(
                origin,
                Interval { months: i32::try_from(bins * width).ok()?, days: 0, micros: 0 },
            )?;
            if start <= micros {
                return Some(start);
            }
            bins -= 1;
        }
    }
    let width = i128::from(stride.days) * i128::from(MICROS_PER_DAY) + i128::from(stride.micros);
    let offset = (i128::from(micros) - i128::from(origin)).rem_euclid(width);
    i64::try_from(i128::from(micros) - offset).ok().filter(|start| is_finite(*start))
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
        for part in parts.into_iter().chain([DatePart::Week, DatePart::Day, DatePart::Hour, DatePart::Second])
        {
            for micros in [-1i64, 0, 1_709_210_096_123_456, -77_000_000_000_000_001] {
                let start = truncate(part, micros).unwrap();
                assert!(start <= micros);
                assert_eq!(truncate(part, start), Some(start), "{part:?}");
            }
        }
    }

    #[test]
    fn intervals_are_scaled_as_postgresql_does() {
        let month = Interval { months: 1, ..Interval::default() };
        let parts = |v: Interval| (v.months, v.days, v.micros);
        assert_eq!(parts(divide_interval(month, 2.0).unwrap()), (0, 15, 0));
        assert_eq!(parts(divide_interval(month, 7.0).unwrap()), (0, 4, 24_685_689_600));
        let mixed = Interval { months: 12, days: 1, micros: 0 };
        assert_eq!(parts(divide_interval(mixed, 3.0).unwrap()), (4, 0, 28_800_000_000));
        assert_eq!(parts(scale_interval(month, 1.5).unwrap()), (1, 15, 0));
    }

    #[test]
    fn bins_start_at_their_origin() {
        let at = |y, m, d| days_from_civil(y, m, d) * MICROS_PER_DAY;
        let months = |n| Interval { months: n, ..Interval::default() };
        assert_eq!(bin(months(2), at(2024, 2, 29), at(2000, 1, 1)), Some(at(2024, 1, 1)));
        assert_eq!(bin(months(1), at(2024, 2, 29), at(2000, 1, 31)), Some(at(2024, 2, 29)));
        assert_eq!(bin(months(1), at(2024, 2, 28), at(2000, 1, 31)), Some(at(2024, 1, 31)));
        assert_eq!(bin(months(1), at(1600, 2, 28), at(2000, 1, 1)), Some(at(1600, 2, 1)));
        let weeks = Interval { days: 14, ..Interval::default() };
        assert_eq!(bin(weeks, at(2020, 2, 11), at(2000, 1, 3)), Some(at(2020, 2, 3)));
    }

    #[test]
    fn intervals_leave_their_range_as_none() {
        let micros = |micros| Interval { months: 0, days: 0, micros };
        assert_eq!(add_interval(i64::MAX - 5, micros(4)), Some(i64::MAX - 1));
        assert_eq!(add_interval(i64::MAX - 5, micros(5)), None, "the end of the range is infinity");
        assert_eq!(add_interval(INFINITE_TIMESTAMP, micros(-5)), Some(INFINITE_TIMESTAMP));
        assert_eq!(scale_interval(Interval { months: 1, days: 0, micros: 0 }, 0.5).unwrap().days, 15);
        assert_eq!(timestamp_difference(MICROS_PER_DAY * 2 + 5, 0).unwrap().days, 2);
    }
}
