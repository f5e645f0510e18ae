//! Differences of dates, times, timestamps and instants.

use super::calendar::{MICROS_PER_SECOND, out_of_range};
use crate::definition::{Definition, Kernel, Row, define, elsewhere, takes};
use entasis_vector::expr::DatePart;
use entasis_vector::expr::calendar::{add_months, days_in_month, extract_date, is_finite, is_finite_date};
use entasis_vector::types::{Interval, MICROS_PER_DAY};
use entasis_vector::value::civil_from_days;
use entasis_vector::{DataType, Error, Result};

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;
const DATE: DataType = DataType::Date;
const TIME: DataType = DataType::Time;
const TIMESTAMP: DataType = DataType::Timestamp;
const TIMESTAMPTZ: DataType = DataType::TimestampTz;
const INTERVAL: DataType = DataType::Interval;

pub const FUNCTIONS: &[Definition] = &[
    define(
        &["date_diff", "datediff"],
        "part, from, to",
        "BIGINT",
        "number of starts of the part between two dates; whole weeks",
        &[
            takes(&[TEXT, DATE, DATE], BIGINT, Kernel::Whole(|row| difference(row, boundaries))),
            takes(&[TEXT, TIMESTAMP, TIMESTAMP], BIGINT, Kernel::Whole(|row| difference(row, boundaries))),
            takes(
                &[TEXT, TIMESTAMPTZ, TIMESTAMPTZ],
                BIGINT,
                Kernel::Whole(|row| difference(row, boundaries)),
            ),
            takes(&[TEXT, TIME, TIME], BIGINT, Kernel::Whole(|row| difference(row, boundaries))),
        ],
        &[
            ("date_diff('day', DATE '2024-02-01', DATE '2024-03-01')", "29"),
            ("date_diff('year', DATE '2023-12-31', DATE '2024-01-01')", "1"),
        ],
    ),
    define(
        &["date_sub", "datesub"],
        "part, from, to",
        "BIGINT",
        "number of whole parts between two dates",
        &[
            takes(&[TEXT, DATE, DATE], BIGINT, Kernel::Whole(|row| difference(row, whole_parts))),
            takes(&[TEXT, TIMESTAMP, TIMESTAMP], BIGINT, Kernel::Whole(|row| difference(row, whole_parts))),
            takes(
                &[TEXT, TIMESTAMPTZ, TIMESTAMPTZ],
                BIGINT,
                Kernel::Whole(|row| difference(row, whole_parts)),
            ),
            takes(&[TEXT, TIME, TIME], BIGINT, Kernel::Whole(|row| difference(row, whole_parts))),
        ],
        &[("date_sub('year', DATE '2023-12-31', DATE '2024-01-01')", "0")],
    ),
    elsewhere(
        &["date_add"],
        "date, interval",
        "TIMESTAMP, or type of the first",
        "date + interval",
        &[("date_add(DATE '2024-01-31', INTERVAL '1 month')", "2024-02-29 00:00:00")],
    ),
    define(
        &["age"],
        "to, from",
        "INTERVAL",
        "years, months, days and time between two timestamps",
        &[takes(
            &[TIMESTAMP, TIMESTAMP],
            INTERVAL,
            Kernel::Interval(|row| age(row.whole(0), row.whole(1)).map(Some)),
        )],
        &[("age(TIMESTAMP '2001-04-10', TIMESTAMP '1957-06-13')", "43 years 9 months 27 days")],
    ),
];

/// A date part by name.
///
/// # Errors
/// Input, if there is no such part.
pub(super) fn part_of(name: &str) -> Result<DatePart> {
    crate::date_part::date_part(name).ok_or_else(|| Error::input(format!("there is no date part '{name}'")))
}

/// The difference between two dates, times, timestamps or instants; NULL if one of them is infinite. It is
/// computed in 128 bits, since dates go further than timestamps, and the span between two timestamps does not
/// fit 64 bits.
///
/// Between instants, hours and shorter parts are counted as time passes, others on the calendar of the
/// session's zone.
fn difference(row: &Row<'_>, count: fn(DatePart, i128, i128) -> Result<i64>) -> Result<Option<i64>> {
    let part = part_of(row.text(0))?;
    let (ty, from, to) = (row.ty(1), row.whole(1), row.whole(2));
    let there = |at: i64| match ty {
        DATE => i32::try_from(at).is_ok_and(is_finite_date),
        TIME => true,
        _ => is_finite(at),
    };
    if !there(from) || !there(to) {
        return Ok(None);
    }
    let is_short = unit(part).is_some_and(|unit| unit < MICROS_PER_DAY);
    let micros = |i: usize, at: i64| -> Result<i128> {
        Ok(match ty {
            DATE => i128::from(at) * i128::from(MICROS_PER_DAY),
            // As in a zone in which hours begin where they begin in the session's at the first instant.
            TIMESTAMPTZ if is_short => i128::from(at) + i128::from(row.zone.offset(from) * MICROS_PER_SECOND),
            _ => row.clock(i)?.into(),
        })
    };
    count(part, micros(1, from)?, micros(2, to)?).map(Some)
}

/// The unit of parts of fixed length, in a timestamp's microseconds.
pub(super) fn unit(part: DatePart) -> Option<i64> {
    Some(match part {
        DatePart::Day | DatePart::DayOfYear | DatePart::DayOfWeek | DatePart::IsoDayOfWeek => MICROS_PER_DAY,
        DatePart::Hour => 3600 * MICROS_PER_SECOND,
        DatePart::Minute => 60 * MICROS_PER_SECOND,
        DatePart::Second | DatePart::Epoch => MICROS_PER_SECOND,
        DatePart::Millisecond => 1000,
        DatePart::Microsecond => 1,
        _ => return None,
    })
}

/// The number of months of parts that are multiples of a month.
pub(super) fn months(part: DatePart) -> Option<i64> {
    Some(match part {
        DatePart::Month => 1,
        DatePart::Quarter => 3,
        DatePart::Year => 12,
        DatePart::Decade => 120,
        DatePart::Century => 1200,
        DatePart::Millennium => 12_000,
        _ => return None,
    })
}

fn in_bigint(n: i128) -> Result<i64> {
    i64::try_from(n).map_err(|_| Error::input("the difference does not fit BIGINT"))
}

fn day(micros: i128) -> i64 {
    // Of dates and timestamps, so it fits.
    micros.div_euclid(MICROS_PER_DAY.into()) as i64
}

/// The number of boundaries of a part between two timestamps; for weeks, as in DuckDB, the difference.
fn boundaries(part: DatePart, from: i128, to: i128) -> Result<i64> {
    if let Some(unit) = unit(part).map(i128::from) {
        return in_bigint(to.div_euclid(unit) - from.div_euclid(unit));
    }
    Ok(match part {
        DatePart::Week | DatePart::YearWeek => (day(to) - day(from)) / 7,
        DatePart::IsoYear | DatePart::Era => extract_date(part, day(to)) - extract_date(part, day(from)),
        _ => {
            let count = |micros: i128| {
                let (year, month, _) = civil_from_days(day(micros));
                (year * 12 + i64::from(month) - 1).div_euclid(months(part).unwrap_or(1))
            };
            count(to) - count(from)
        }
    })
}

/// Whole parts between two timestamps.
fn whole_parts(part: DatePart, from: i128, to: i128) -> Result<i64> {
    if let Some(unit) = unit(part).map(i128::from) {
        return in_bigint((to - from) / unit);
    }
    if matches!(part, DatePart::Week | DatePart::YearWeek) {
        return in_bigint((to - from) / i128::from(7 * MICROS_PER_DAY));
    }
    if from > to {
        return whole_months(to, from).map(|n| -n / months(part).unwrap_or(12));
    }
    whole_months(from, to).map(|n| n / months(part).unwrap_or(12))
}

/// Whole months from an earlier timestamp to a later one.
fn whole_months(from: i128, to: i128) -> Result<i64> {
    let parts = |micros: i128| (day(micros), micros.rem_euclid(MICROS_PER_DAY.into()));
    let ((from_day, from_time), (to_day, to_time)) = (parts(from), parts(to));
    let ((y, m, _), (v, n, _)) = (civil_from_days(from_day), civil_from_days(to_day));
    let mut months = (v - y) * 12 + i64::from(n) - i64::from(m);
    let added = add_months(from_day, i32::try_from(months).map_err(|_| out_of_range())?);
    // The last day of a shorter month counts as the day of the month that it lacks.
    if (added, from_time) > (to_day, to_time) {
        months -= 1;
    }
    Ok(months)
}

/// The difference in calendar parts, as PostgreSQL counts it: missing days are borrowed from the earlier
/// month.
fn age(to: i64, from: i64) -> Result<Interval> {
    if to < from {
        let span = age(from, to)?;
        return Ok(Interval { months: -span.months, days: -span.days, micros: -span.micros });
    }
    let parts = |micros: i64| {
        let (year, month, day) = civil_from_days(micros.div_euclid(MICROS_PER_DAY));
        (year * 12 + i64::from(month) - 1, i64::from(day), micros.rem_euclid(MICROS_PER_DAY))
    };
    let ((to_month, to_day, to_time), (from_month, from_day, from_time)) = (parts(to), parts(from));
    let (mut months, mut days, mut micros) = (to_month - from_month, to_day - from_day, to_time - from_time);
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        let (year, month) = (from_month.div_euclid(12), from_month.rem_euclid(12) as u32 + 1);
        days += i64::from(days_in_month(year, month));
        months -= 1;
    }
    Ok(Interval { months: i32::try_from(months).map_err(|_| out_of_range())?, days: days as i32, micros })
}
