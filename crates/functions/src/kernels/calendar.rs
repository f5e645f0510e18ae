//! Functions of dates, times and intervals, other than formatting. All count in microseconds, so they work
//! for every year that a type can hold.

use crate::definition::{Definition, Kernel, Row, Writer, define, elsewhere, takes};
use entasis_vector::expr::DatePart;
use entasis_vector::expr::calendar::{add_months, days_in_month, extract_date, is_finite, is_finite_date};
use entasis_vector::types::{Interval, MICROS_PER_DAY};
use entasis_vector::value::{civil_from_days, days_from_civil};
use entasis_vector::{DataType, Error, Result};

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;
const DOUBLE: DataType = DataType::Float64;
const DATE: DataType = DataType::Date;
const TIME: DataType = DataType::Time;
const TIMESTAMP: DataType = DataType::Timestamp;
const TIMESTAMPTZ: DataType = DataType::TimestampTz;
const INTERVAL: DataType = DataType::Interval;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) fn month_name(month: u32) -> &'static str {
    MONTHS[(month as usize + 11) % 12]
}

pub(super) fn day_name(days: i64) -> &'static str {
    DAYS[(days + 4).rem_euclid(7) as usize]
}

/// A function of a date or of the day of a timestamp; that of an instant is one of its local day. NULL for an
/// infinite one.
macro_rules! of_day {
    ($result:expr, $kernel:ident, $f:expr) => {
        &[takes(&[DATE], $result, Kernel::$kernel($f)), takes(&[TIMESTAMP], $result, Kernel::$kernel($f))]
    };
}

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
    elsewhere(
        &["date_part", "datepart"],
        "part, date",
        "BIGINT, or DOUBLE for epoch",
        "a field of a date, time, timestamp or interval; also extract(part FROM date)",
        &[("date_part('isoyear', DATE '2024-12-30')", "2025"), ("extract(hour FROM TIME '10:20:30')", "10")],
    ),
    elsewhere(
        &["date_trunc", "datetrunc"],
        "part, date",
        "type of the date",
        "start of the part that a date lies in",
        &[("date_trunc('month', DATE '2024-02-29')", "2024-02-01")],
    ),
    elsewhere(&["century"], "date", "BIGINT", "century", &[("century(DATE '2001-01-01')", "21")]),
    elsewhere(&["decade"], "date", "BIGINT", "year / 10", &[("decade(DATE '1992-01-01')", "199")]),
    elsewhere(&["millennium"], "date", "BIGINT", "millennium", &[("millennium(DATE '2001-01-01')", "3")]),
    elsewhere(&["era"], "date", "BIGINT", "1, or 0 before Christ", &[("era(DATE '2001-01-01')", "1")]),
    elsewhere(&["year"], "date", "BIGINT", "year", &[("year(DATE '2024-02-29')", "2024")]),
    elsewhere(
        &["isoyear"],
        "date",
        "BIGINT",
        "year of the ISO week",
        &[("isoyear(DATE '2024-12-30')", "2025")],
    ),
    elsewhere(&["quarter"], "date", "BIGINT", "quarter", &[("quarter(DATE '2024-05-01')", "2")]),
    elsewhere(&["month"], "date", "BIGINT", "month", &[("month(DATE '2024-02-29')", "2")]),
    elsewhere(&["week", "weekofyear"], "date", "BIGINT", "ISO week", &[("week(DATE '2024-12-30')", "1")]),
    elsewhere(
        &["yearweek"],
        "date",
        "BIGINT",
        "ISO year and week as one number",
        &[("yearweek(DATE '2024-12-30')", "202501")],
    ),
    elsewhere(
        &["day", "dayofmonth"],
        "date",
        "BIGINT",
        "day of the month",
        &[("day(DATE '2024-02-29')", "29")],
    ),
    elsewhere(
        &["dayofweek", "weekday"],
        "date",
        "BIGINT",
        "day of the week, 0 is Sunday",
        &[("dayofweek(DATE '2024-02-25')", "0")],
    ),
    elsewhere(
        &["isodow"],
        "date",
        "BIGINT",
        "day of the week, 7 is Sunday",
        &[("isodow(DATE '2024-02-25')", "7")],
    ),
    elsewhere(&["dayofyear"], "date", "BIGINT", "day of the year", &[("dayofyear(DATE '2024-02-01')", "32")]),
    elsewhere(&["hour"], "time", "BIGINT", "hour", &[("hour(TIME '10:20:30')", "10")]),
    elsewhere(&["minute"], "time", "BIGINT", "minute", &[("minute(TIME '10:20:30')", "20")]),
    elsewhere(&["second"], "time", "BIGINT", "second", &[("second(TIME '10:20:30')", "30")]),
    elsewhere(
        &["millisecond"],
        "time",
        "BIGINT",
        "seconds with the fraction, in thousandths",
        &[("millisecond(TIME '10:20:30.5')", "30500")],
    ),
    elsewhere(
        &["microsecond"],
        "time",
        "BIGINT",
        "seconds with the fraction, in millionths",
        &[("microsecond(TIME '10:20:30.5')", "30500000")],
    ),
    elsewhere(
        &["epoch"],
        "date",
        "DOUBLE",
        "seconds since 1970",
        &[("epoch(TIMESTAMP '1970-01-02 00:00:00.5')", "86400.5")],
    ),
    define(
        &["nanosecond"],
        "time",
        "BIGINT",
        "seconds with the fraction, in billionths",
        &[
            takes(&[TIME], BIGINT, Kernel::Whole(|row| Ok(Some(row.whole(0).rem_euclid(60_000_000) * 1000)))),
            takes(
                &[TIMESTAMP],
                BIGINT,
                Kernel::Whole(|row| {
                    Ok((!row.is_infinite(0)).then(|| row.whole(0).rem_euclid(60_000_000) * 1000))
                }),
            ),
            takes(
                &[INTERVAL],
                BIGINT,
                Kernel::Whole(|row| Ok(Some(row.interval(0).micros % 60_000_000 * 1000))),
            ),
        ],
        &[("nanosecond(TIME '10:20:30.5')", "30500000000")],
    ),
    define(
        &["epoch_ms"],
        "date, or n",
        "BIGINT, or TIMESTAMP",
        "milliseconds since 1970; the timestamp after so many",
        EPOCH_MS,
        &[
            ("epoch_ms(TIMESTAMP '1970-01-01 00:00:01')", "1000"),
            ("epoch_ms(701222400000)", "1992-03-22 00:00:00"),
        ],
    ),
    define(
        &["epoch_us"],
        "date",
        "BIGINT",
        "microseconds since 1970",
        EPOCH_US,
        &[("epoch_us(TIMESTAMP '1970-01-01 00:00:01')", "1000000")],
    ),
    define(
        &["epoch_ns"],
        "date",
        "BIGINT",
        "nanoseconds since 1970",
        EPOCH_NS,
        &[("epoch_ns(TIMESTAMP '1970-01-01 00:00:01')", "1000000000")],
    ),
    define(
        &["julian"],
        "date",
        "DOUBLE",
        "Julian day, with the fraction",
        &[
            takes(&[DATE], DOUBLE, Kernel::Float(|row| Ok(row.day(0).map(|day| (day + JULIAN_1970) as f64)))),
            takes(
                &[TIMESTAMP],
                DOUBLE,
                Kernel::Float(|row| Ok((!row.is_infinite(0)).then(|| julian(row.whole(0))))),
            ),
        ],
        &[("julian(TIMESTAMP '2024-02-29 12:00:00')", "2460370.5")],
    ),
    define(
        &["dayname"],
        "date",
        "VARCHAR",
        "name of the day of the week",
        of_day!(TEXT, Text, |row, out| named(row.day(0).map(day_name), out)),
        &[("dayname(DATE '2024-02-03')", "Saturday")],
    ),
    define(
        &["monthname"],
        "date",
        "VARCHAR",
        "name of the month",
        of_day!(TEXT, Text, |row, out| {
            named(row.day(0).map(|day| month_name(civil_from_days(day).1)), out)
        }),
        &[("monthname(DATE '2024-02-03')", "February")],
    ),
    define(
        &["last_day"],
        "date",
        "DATE",
        "last day of the month",
        of_day!(DATE, Whole, |row| Ok(row.day(0).map(last_day))),
        &[("last_day(DATE '2024-02-01')", "2024-02-29")],
    ),
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
    define(
        &["make_date"],
        "year, month, day; or days",
        "DATE",
        "the date of its parts, or so many days after 1970-01-01",
        &[
            takes(
                &[BIGINT, BIGINT, BIGINT],
                DATE,
                Kernel::Whole(|row| date_of(row.whole(0), row.whole(1), row.whole(2)).map(Some)),
            ),
            takes(&[BIGINT], DATE, Kernel::Whole(|row| Ok(Some(row.whole(0))))),
        ],
        &[("make_date(2024, 2, 29)", "2024-02-29")],
    ),
    define(
        &["make_time"],
        "hour, minute, seconds",
        "TIME",
        "the time of its parts",
        &[takes(&[BIGINT, BIGINT, DOUBLE], TIME, Kernel::Whole(|row| time_of(row, 0).map(Some)))],
        &[("make_time(13, 34, 27.5)", "13:34:27.5")],
    ),
    define(
        &["make_timestamp"],
        "year, month, day, hour, minute, seconds; or microseconds",
        "TIMESTAMP",
        "the timestamp of its parts, or so many microseconds after 1970",
        &[
            takes(&[BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE], TIMESTAMP, Kernel::Whole(timestamp_of)),
            takes(&[BIGINT], TIMESTAMP, Kernel::Whole(|row| Ok(Some(row.whole(0))))),
        ],
        &[("make_timestamp(2024, 2, 29, 13, 34, 27.5)", "2024-02-29 13:34:27.5")],
    ),
    define(
        &["make_timestamp_ms"],
        "milliseconds",
        "TIMESTAMP",
        "the timestamp so many milliseconds after 1970",
        &[takes(&[BIGINT], TIMESTAMP, Kernel::Wide(|row| Ok(Some(row.wide(0) * 1000))))],
        &[("make_timestamp_ms(701222400000)", "1992-03-22 00:00:00")],
    ),
    define(
        &["make_timestamptz"],
        "year, month, day, hour, minute, seconds; or microseconds",
        "TIMESTAMPTZ",
        "the instant of its parts in the session's zone, or so many microseconds after 1970",
        &[
            takes(
                &[BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE],
                TIMESTAMPTZ,
                Kernel::Whole(timestamp_of),
            ),
            takes(&[BIGINT], TIMESTAMPTZ, Kernel::Whole(|row| Ok(Some(row.whole(0))))),
        ],
        &[("make_timestamptz(2024, 2, 29, 13, 34, 0)", "2024-02-29 13:34:00+00")],
    ),
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
    define(
        &["timezone_hour"],
        "timestamptz",
        "BIGINT",
        "hours of the offset of the session's time zone from UTC",
        &[takes(
            &[TIMESTAMPTZ],
            BIGINT,
            Kernel::Whole(|row| Ok(offset_of(row, 0).map(|offset| offset / 3600))),
        )],
        &[("timezone_hour(TIMESTAMPTZ '2024-01-01 00:00:00+00')", "0")],
    ),
    define(
        &["timezone_minute"],
        "timestamptz",
        "BIGINT",
        "minutes of the offset of the session's time zone from UTC, without its hours",
        &[takes(
            &[TIMESTAMPTZ],
            BIGINT,
            Kernel::Whole(|row| Ok(offset_of(row, 0).map(|offset| offset % 3600 / 60))),
        )],
        &[("timezone_minute(TIMESTAMPTZ '2024-01-01 00:00:00+00')", "0")],
    ),
    elsewhere(
        &["now", "get_current_timestamp", "current_timestamp", "transaction_timestamp"],
        "",
        "TIMESTAMPTZ",
        "start of the transaction",
        &[("now() > TIMESTAMP '2020-01-01'", "true")],
    ),
    elsewhere(
        &["statement_timestamp"],
        "",
        "TIMESTAMPTZ",
        "start of the statement",
        &[("statement_timestamp() >= now()", "true")],
    ),
    elsewhere(
        &["clock_timestamp"],
        "",
        "TIMESTAMPTZ",
        "the present time, taken for each row",
        &[("clock_timestamp() >= now()", "true")],
    ),
    elsewhere(
        &["timezone"],
        "zone, timestamp",
        "TIMESTAMP of a TIMESTAMPTZ, and the other way round",
        "what AT TIME ZONE does",
        &[("timezone('Europe/Berlin', TIMESTAMPTZ '2024-07-01 22:30:00+00')", "2024-07-02 00:30:00")],
    ),
    elsewhere(
        &["time_bucket"],
        "width, timestamp [, origin or offset]",
        "type of the timestamp",
        "start of the bucket of equal width, of months, too",
        &[("time_bucket(INTERVAL '15 minutes', TIMESTAMP '2024-01-01 10:37:00')", "2024-01-01 10:30:00")],
    ),
    elsewhere(&["current_date", "today"], "", "DATE", "today", &[("today() > DATE '2020-01-01'", "true")]),
    elsewhere(
        &["current_time", "localtime", "current_localtime", "get_current_time"],
        "",
        "TIME",
        "time of day",
        &[("current_time() IS NOT NULL", "true")],
    ),
    elsewhere(
        &["current_localtimestamp", "localtimestamp"],
        "",
        "TIMESTAMP",
        "start of the transaction, without a time zone",
        &[("current_localtimestamp() IS NOT NULL", "true")],
    ),
    elsewhere(
        &["date_bin"],
        "width, timestamp [, origin]",
        "type of the timestamp",
        "start of the bucket of equal width",
        &[("date_bin(INTERVAL '15 minutes', TIMESTAMP '2024-01-01 10:37:00')", "2024-01-01 10:30:00")],
    ),
];

/// The number of units since 1970, or of an interval or time, by type.
macro_rules! epoch {
    ($name:ident, $factor:expr, $divisor:expr $(, $more:expr)?) => {
        const $name: &[crate::definition::Overload] = &[
            $($more,)?
            takes(&[DATE], BIGINT, Kernel::Wide(|row| {
                let micros = row.day(0).map(|day| i128::from(day) * i128::from(MICROS_PER_DAY));
                Ok(micros.map(|micros| micros * $factor / $divisor))
            })),
            takes(&[TIME], BIGINT, Kernel::Wide(|row| {
                Ok(Some((row.wide(0) * $factor).div_euclid($divisor)))
            })),
            takes(&[TIMESTAMP], BIGINT, Kernel::Wide(|row| {
                Ok((!row.is_infinite(0)).then(|| (row.wide(0) * $factor).div_euclid($divisor)))
            })),
            takes(&[TIMESTAMPTZ], BIGINT, Kernel::Wide(|row| {
                Ok((!row.is_infinite(0)).then(|| (row.wide(0) * $factor).div_euclid($divisor)))
            })),
            takes(&[INTERVAL], BIGINT, Kernel::Wide(|row| {
                Ok(Some(row.interval(0).estimate() * $factor / $divisor))
            })),
        ];
    };
}

epoch!(EPOCH_MS, 1, 1000, takes(&[BIGINT], TIMESTAMP, Kernel::Wide(|row| Ok(Some(row.wide(0) * 1000)))));
epoch!(EPOCH_US, 1, 1);
epoch!(EPOCH_NS, 1000, 1);

/// The Julian day of 1970-01-01.
pub(super) const JULIAN_1970: i64 = 2_440_588;

fn julian(micros: i64) -> f64 {
    let (days, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    (days + JULIAN_1970) as f64 + time as f64 / MICROS_PER_DAY as f64
}

fn named(name: Option<&str>, out: &mut Writer<'_>) -> Result<bool> {
    if let Some(name) = name {
        out.text(name);
    }
    Ok(name.is_some())
}

fn last_day(days: i64) -> i64 {
    let (year, month, _) = civil_from_days(days);
    days_from_civil(year, month, days_in_month(year, month))
}

/// The day number of a date.
///
/// # Errors
/// Input, if there is no such date.
pub(super) fn date_of(year: i64, month: i64, day: i64) -> Result<i64> {
    let month_of = u32::try_from(month).ok().filter(|month| (1..=12).contains(month));
    let fits = month_of.filter(|_| (-5_900_000..=5_900_000).contains(&year));
    match fits.and_then(|month| Some((month, u32::try_from(day).ok()?))) {
        Some((month, day)) if day >= 1 && day <= days_in_month(year, month) => {
            Ok(days_from_civil(year, month, day))
        }
        _ => Err(Error::input(format!("there is no date {year}-{month}-{day}"))),
    }
}

/// Microseconds since midnight of hour, minute and seconds, which are the arguments from `i` on.
fn time_of(row: &Row<'_>, i: usize) -> Result<i64> {
    let (hour, minute, seconds) = (row.whole(i), row.whole(i + 1), row.float(i + 2));
    let micros = (seconds * 1e6).round();
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..=60e6).contains(&micros) {
        return Err(Error::input(format!("there is no time {hour}:{minute}:{seconds}")));
    }
    let micros = (hour * 60 + minute) * 60 * MICROS_PER_SECOND + micros as i64;
    if micros > MICROS_PER_DAY {
        return Err(Error::input(format!("there is no time {hour}:{minute}:{seconds}")));
    }
    Ok(micros)
}

fn out_of_range() -> Error {
    Error::input("the timestamp is out of range")
}

/// The timestamp of a day number and microseconds.
///
/// # Errors
/// Input, if it is out of range.
pub(super) fn at(days: i64, micros: i64) -> Result<i64> {
    days.checked_mul(MICROS_PER_DAY).and_then(|start| start.checked_add(micros)).ok_or_else(out_of_range)
}

fn timestamp_of(row: &Row<'_>) -> Result<Option<i64>> {
    at(date_of(row.whole(0), row.whole(1), row.whole(2))?, time_of(row, 3)?).map(Some)
}

/// Seconds by which the session's zone is ahead of UTC at a TIMESTAMPTZ; `None` at an infinite one.
pub(super) fn offset_of(row: &Row<'_>, i: usize) -> Option<i64> {
    Some(row.whole(i)).filter(|at| is_finite(*at)).map(|at| row.zone.offset(at))
}

// ---- differences ------------------------------------------------------------------------------------------

/// A date part by name.
///
/// # Errors
/// Input, if there is no such part.
fn part_of(name: &str) -> Result<DatePart> {
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
fn unit(part: DatePart) -> Option<i64> {
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
fn months(part: DatePart) -> Option<i64> {
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
    if let Some(unit) = self::months(part).and_then(|unit| i32::try_from(unit).ok()) {
        return Ok(Some(Interval { months: months / unit * unit, days: 0, micros: 0 }));
    }
    Ok(Some(match (part, unit(part)) {
        (DatePart::Week, _) => Interval { months, days: days / 7 * 7, micros: 0 },
        (_, Some(MICROS_PER_DAY)) => Interval { months, days, micros: 0 },
        (_, Some(unit)) => Interval { months, days, micros: micros / unit * unit },
        _ => return Err(Error::input(format!("an interval has no {}", row.text(0)))),
    }))
}

// ---- intervals --------------------------------------------------------------------------------------------

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
