//! Functions that make intervals, and change their parts.

use super::date_differences::{self, part_of, unit};
use crate::definition::{Definition, Kernel, Row, define, takes};
use entasis_vector::expr::DatePart;
use entasis_vector::types::{Interval, MICROS_PER_DAY};
use entasis_vector::{DataType, Error, Result};

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;
const DOUBLE: DataType = DataType::Float64;
const INTERVAL: DataType = DataType::Interval;

/// An interval of a whole number of units.
macro_rules! span {
    ($name:literal, $example:expr, $months:literal, $days:literal, $micros:literal) => {
        define(
            &[$name],
            "n",
            "INTERVAL",
            "a span of n units",
            &[takes(
                &[BIGINT],
                INTERVAL,
                Kernel::Interval(|row| scaled(row.whole(0), $months, $days, $micros).map(Some)),
            )],
            &[$example],
        )
    };
}

pub const FUNCTIONS: &[Definition] = &[
    define(
        &["make_interval"],
        "years [, months [, weeks [, days [, hours [, minutes [, seconds]]]]]]",
        "INTERVAL",
        "the interval of its parts",
        &[
            takes(&[BIGINT], INTERVAL, Kernel::Interval(make_interval)),
            takes(&[BIGINT, BIGINT], INTERVAL, Kernel::Interval(make_interval)),
            takes(&[BIGINT, BIGINT, BIGINT], INTERVAL, Kernel::Interval(make_interval)),
            takes(&[BIGINT, BIGINT, BIGINT, BIGINT], INTERVAL, Kernel::Interval(make_interval)),
            takes(&[BIGINT, BIGINT, BIGINT, BIGINT, BIGINT], INTERVAL, Kernel::Interval(make_interval)),
            takes(
                &[BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, BIGINT],
                INTERVAL,
                Kernel::Interval(make_interval),
            ),
            takes(
                &[BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE],
                INTERVAL,
                Kernel::Interval(make_interval),
            ),
        ],
        &[("make_interval(1, 2, 0, 3)", "1 year 2 months 3 days")],
    ),
    span!("to_millennia", ("to_millennia(1)", "1000 years"), 12_000, 0, 0),
    span!("to_centuries", ("to_centuries(1)", "100 years"), 1200, 0, 0),
    span!("to_decades", ("to_decades(1)", "10 years"), 120, 0, 0),
    span!("to_years", ("to_years(5)", "5 years"), 12, 0, 0),
    span!("to_quarters", ("to_quarters(5)", "1 year 3 months"), 3, 0, 0),
    span!("to_months", ("to_months(5)", "5 months"), 1, 0, 0),
    span!("to_weeks", ("to_weeks(1)", "7 days"), 0, 7, 0),
    span!("to_days", ("to_days(5)", "5 days"), 0, 1, 0),
    span!("to_hours", ("to_hours(5)", "05:00:00"), 0, 0, 3_600_000_000),
    span!("to_minutes", ("to_minutes(5)", "00:05:00"), 0, 0, 60_000_000),
    define(
        &["to_seconds"],
        "n",
        "INTERVAL",
        "a span of n seconds",
        &[takes(&[DOUBLE], INTERVAL, Kernel::Interval(|row| micros(row.float(0), 1e6).map(Some)))],
        &[("to_seconds(5.5)", "00:00:05.5")],
    ),
    define(
        &["to_milliseconds"],
        "n",
        "INTERVAL",
        "a span of n milliseconds",
        &[takes(&[DOUBLE], INTERVAL, Kernel::Interval(|row| micros(row.float(0), 1e3).map(Some)))],
        &[("to_milliseconds(5.5)", "00:00:00.0055")],
    ),
    span!("to_microseconds", ("to_microseconds(5)", "00:00:00.000005"), 0, 0, 1),
    define(
        &["justify_days"],
        "interval",
        "INTERVAL",
        "30 days as a month",
        &[takes(
            &[INTERVAL],
            INTERVAL,
            Kernel::Interval(|row| justify(row.interval(0), true, false).map(Some)),
        )],
        &[("justify_days(INTERVAL '35 days')", "1 month 5 days")],
    ),
    define(
        &["justify_hours"],
        "interval",
        "INTERVAL",
        "24 hours as a day",
        &[takes(
            &[INTERVAL],
            INTERVAL,
            Kernel::Interval(|row| justify(row.interval(0), false, true).map(Some)),
        )],
        &[("justify_hours(INTERVAL '27 hours')", "1 day 03:00:00")],
    ),
    define(
        &["justify_interval", "normalized_interval"],
        "interval",
        "INTERVAL",
        "24 hours as a day, 30 days as a month",
        &[takes(
            &[INTERVAL],
            INTERVAL,
            Kernel::Interval(|row| justify(row.interval(0), true, true).map(Some)),
        )],
        &[("justify_interval(INTERVAL '1 month -1 hour')", "29 days 23:00:00")],
    ),
];

/// `date_trunc` of an interval; the engine has that of dates.
pub(super) const TRUNCATE_INTERVAL: Definition = define(
    &["date_trunc"],
    "part, interval",
    "INTERVAL",
    "an interval without what is less than the part",
    &[takes(&[TEXT, INTERVAL], INTERVAL, Kernel::Interval(truncate_interval))],
    &[],
);

fn truncate_interval(row: &Row<'_>) -> Result<Option<Interval>> {
    let Interval { months, days, micros } = row.interval(1);
    let part = part_of(row.text(0))?;
    if let Some(unit) = date_differences::months(part).and_then(|unit| i32::try_from(unit).ok()) {
        return Ok(Some(Interval { months: months / unit * unit, days: 0, micros: 0 }));
    }
    Ok(Some(match (part, unit(part)) {
        (DatePart::Week, _) => Interval { months, days: days / 7 * 7, micros: 0 },
        (_, Some(MICROS_PER_DAY)) => Interval { months, days, micros: 0 },
        (_, Some(unit)) => Interval { months, days, micros: micros / unit * unit },
        _ => return Err(Error::input(format!("an interval has no {}", row.text(0)))),
    }))
}

fn too_long() -> Error {
    Error::input("the interval is out of range")
}

fn scaled(n: i64, months: i64, days: i64, micros: i64) -> Result<Interval> {
    let product = |unit: i64| n.checked_mul(unit);
    let small = |unit: i64| product(unit).and_then(|v| i32::try_from(v).ok());
    match (small(months), small(days), product(micros)) {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { months, days, micros }),
        _ => Err(too_long()),
    }
}

fn micros(n: f64, unit: f64) -> Result<Interval> {
    let micros = (n * unit).round();
    if micros.abs() < 9.2e18 {
        Ok(Interval { months: 0, days: 0, micros: micros as i64 })
    } else {
        Err(too_long())
    }
}

fn make_interval(row: &Row<'_>) -> Result<Option<Interval>> {
    let part = |i: usize| i128::from(if i < row.count() && i < 6 { row.whole(i) } else { 0 });
    let seconds = if row.count() > 6 { micros(row.float(6), 1e6)?.micros } else { 0 };
    let months = part(0) * 12 + part(1);
    let days = part(2) * 7 + part(3);
    let micros = (part(4) * 3600 + part(5) * 60) * 1_000_000 + i128::from(seconds);
    match (i32::try_from(months), i32::try_from(days), i64::try_from(micros)) {
        (Ok(months), Ok(days), Ok(micros)) => Ok(Some(Interval { months, days, micros })),
        _ => Err(too_long()),
    }
}

/// Converts hours to days, and days to months, and makes all signs equal, as PostgreSQL does.
fn justify(interval: Interval, to_months: bool, to_days: bool) -> Result<Interval> {
    let Interval { months, days, micros } = interval;
    let (mut months, mut days, mut micros) = (i64::from(months), i64::from(days), micros);
    if to_days {
        days += micros / MICROS_PER_DAY;
        micros %= MICROS_PER_DAY;
    }
    if to_months {
        months += days / 30;
        days %= 30;
    }
    if to_months {
        if months > 0 && (days < 0 || (days == 0 && micros < 0 && to_days)) {
            days += 30;
            months -= 1;
        } else if months < 0 && (days > 0 || (days == 0 && micros > 0 && to_days)) {
            days -= 30;
            months += 1;
        }
    }
    if to_days {
        if days > 0 && micros < 0 {
            micros += MICROS_PER_DAY;
            days -= 1;
        } else if days < 0 && micros > 0 {
            micros -= MICROS_PER_DAY;
            days += 1;
        }
    }
    match (i32::try_from(months), i32::try_from(days)) {
        (Ok(months), Ok(days)) => Ok(Interval { months, days, micros }),
        _ => Err(too_long()),
    }
}
