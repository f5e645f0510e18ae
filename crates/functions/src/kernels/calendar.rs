//! Functions of dates, times and intervals, other than formatting. All count in microseconds, so they work
//! for every year that a type can hold.

use crate::definition::{Definition, Kernel, Row, define, elsewhere, takes};
use entasis_vector::expr::calendar::{days_in_month, is_finite};
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::value::{civil_from_days, days_from_civil};
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result};

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;
const DOUBLE: DataType = DataType::Float64;
const DATE: DataType = DataType::Date;
const TIME: DataType = DataType::Time;
const TIMESTAMP: DataType = DataType::Timestamp;
const TIMESTAMPTZ: DataType = DataType::TimestampTz;
const INTERVAL: DataType = DataType::Interval;

pub(super) const MICROS_PER_SECOND: i64 = 1_000_000;
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

/// The parts of dates and times.
pub const PARTS: &[Definition] = &[
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
];

/// Dates and times of their parts.
pub const MADE: &[Definition] = &[
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
];

/// The clock, time zones, and buckets of time.
pub const CLOCKS: &[Definition] = &[
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

pub(super) fn out_of_range() -> Error {
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
