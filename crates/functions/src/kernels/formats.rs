//! Definitions of functions that format and parse values; each format is implemented in a file of its own.

use super::number_patterns::{self, Number};
use super::to_char::{self, Moment};
use super::to_date;
use super::{printf, strftime};
use crate::definition::{Body, Definition, Kernel, Overload, Row, Signature, define, takes};
use entasis_vector::expr::calendar::day_of;
use entasis_vector::types::Interval;
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result, Value};

const TEXT: DataType = DataType::Varchar;
const DATE: DataType = DataType::Date;
const TIMESTAMP: DataType = DataType::Timestamp;
const TIMESTAMPTZ: DataType = DataType::TimestampTz;

pub const FUNCTIONS: &[Definition] = &[
    Definition {
        names: &["to_char"],
        arguments: "date, time, interval or number, pattern",
        gives: "VARCHAR",
        does: "written by a pattern of PostgreSQL's",
        examples: &[
            ("to_char(DATE '2024-02-03', 'FMDay, DD Mon YYYY')", "Saturday, 03 Feb 2024"),
            ("to_char(TIMESTAMP '2024-02-03 16:05:06', 'HH12:MI PM')", "04:05 PM"),
            ("to_char(1234.5, 'FM9,999.00')", "1,234.50"),
        ],
        body: Body::Typed(to_char_of),
    },
    define(
        &["to_date"],
        "text [, pattern]",
        "DATE",
        "a date, read by a pattern of PostgreSQL's",
        &[
            takes(
                &[TEXT, TEXT],
                DATE,
                Kernel::Whole(|row| to_date::read_date(row.text(0), row.text(1)).map(Some)),
            ),
            takes(&[DATE], DATE, Kernel::Whole(|row| Ok(Some(row.whole(0))))),
            takes(&[TIMESTAMP], DATE, Kernel::Whole(|row| Ok(Some(day_of(row.whole(0)).into())))),
        ],
        &[("to_date('03.02.2024', 'DD.MM.YYYY')", "2024-02-03")],
    ),
    define(
        &["to_timestamp"],
        "text, pattern; or seconds",
        "TIMESTAMPTZ",
        "an instant, read by a pattern of PostgreSQL's, or so many seconds after 1970",
        &[
            takes(
                &[TEXT, TEXT],
                TIMESTAMPTZ,
                Kernel::Whole(|row| to_date::read(row.text(0), row.text(1), row.zone).map(Some)),
            ),
            takes(&[TIMESTAMPTZ], TIMESTAMPTZ, Kernel::Whole(|row| Ok(Some(row.whole(0))))),
            takes(&[DataType::Int64], TIMESTAMPTZ, Kernel::Wide(|row| Ok(Some(row.wide(0) * 1_000_000)))),
            takes(&[DataType::Float64], TIMESTAMPTZ, Kernel::Wide(seconds)),
        ],
        &[
            ("to_timestamp('05 Dec 2000', 'DD Mon YYYY')", "2000-12-05 00:00:00+00"),
            ("to_timestamp(1284352323.5)", "2010-09-13 04:32:03.5+00"),
        ],
    ),
    Definition {
        names: &["to_number"],
        arguments: "text, pattern",
        gives: "DECIMAL",
        does: "a number, read by a pattern of PostgreSQL's",
        examples: &[("to_number('12,454.8-', '99G999D9S')", "-12454.8")],
        body: Body::TypedByConstants(to_number_of),
    },
    define(
        &["strftime"],
        "date, format; or the other way round",
        "VARCHAR",
        "written by a format with codes like %Y-%m-%d",
        &[
            takes(&[DATE, TEXT], TEXT, Kernel::Text(|row, out| strftime_of(row, out, 0))),
            takes(&[TIMESTAMP, TEXT], TEXT, Kernel::Text(|row, out| strftime_of(row, out, 0))),
            takes(&[TIMESTAMPTZ, TEXT], TEXT, Kernel::Text(|row, out| strftime_of(row, out, 0))),
            takes(&[TEXT, DATE], TEXT, Kernel::Text(|row, out| strftime_of(row, out, 1))),
            takes(&[TEXT, TIMESTAMP], TEXT, Kernel::Text(|row, out| strftime_of(row, out, 1))),
            takes(&[TEXT, TIMESTAMPTZ], TEXT, Kernel::Text(|row, out| strftime_of(row, out, 1))),
        ],
        &[("strftime(DATE '1992-01-01', '%a, %-d %B %Y')", "Wed, 1 January 1992")],
    ),
    define(
        &["strptime"],
        "text, format",
        "TIMESTAMP",
        "a timestamp, read by a format with codes like %Y-%m-%d",
        &[takes(
            &[TEXT, TEXT],
            TIMESTAMP,
            Kernel::Whole(|row| strftime::read(row.text(0), row.text(1)).map(Some)),
        )],
        &[("strptime('Wed, 1 January 1992', '%a, %-d %B %Y')", "1992-01-01 00:00:00")],
    ),
    define(
        &["try_strptime"],
        "text, format",
        "TIMESTAMP",
        "as strptime, and NULL if the text does not fit",
        &[takes(
            &[TEXT, TEXT],
            TIMESTAMP,
            Kernel::Whole(|row| Ok(strftime::read(row.text(0), row.text(1)).ok())),
        )],
        &[("try_strptime('nope', '%Y')", "NULL")],
    ),
    define(
        &["printf"],
        "format, value, …",
        "VARCHAR",
        "with the values in place of the conversions of C",
        &[Overload {
            args: &[TEXT],
            rest: Some(DataType::Null),
            result: TEXT,
            kernel: Kernel::Text(printf::printf),
        }],
        &[("printf('%s is %05.1f', 'x', 2.25)", "x is 002.2"), ("printf('%,d', 1234567)", "1,234,567")],
    ),
    define(
        &["format"],
        "format, value, …",
        "VARCHAR",
        "with the values in place of {}; or, as in PostgreSQL, of %s, %I (a name) and %L (a literal)",
        &[Overload {
            args: &[TEXT],
            rest: Some(DataType::Null),
            result: TEXT,
            kernel: Kernel::TextOfNulls(printf::format),
        }],
        &[
            ("format('{0:>4}|{1:.2f}', 'a', 3)", "   a|3.00"),
            ("format('%I = %L', 'a b', 'it''s')", "\"a b\" = 'it''s'"),
        ],
    ),
];

fn to_char_of(types: &[DataType]) -> Result<Signature> {
    let &[x, TEXT | DataType::Null] = types else {
        return Err(Error::input("to_char takes a value and a pattern"));
    };
    let (x, kernel) = match x {
        DATE => (DATE, Kernel::Text(|row, out| finite(row, out, |row| Ok(Moment::Date(row.whole(0)))))),
        TIMESTAMP => (
            TIMESTAMP,
            Kernel::Text(|row, out| finite(row, out, |row| Ok(Moment::Timestamp(row.whole(0), None)))),
        ),
        TIMESTAMPTZ => (
            TIMESTAMPTZ,
            Kernel::Text(|row, out| {
                finite(row, out, |row| {
                    let zone = (row.zone, row.zone.offset(row.whole(0)));
                    Ok(Moment::Timestamp(row.clock(0)?, Some(zone)))
                })
            }),
        ),
        DataType::Time => (
            DataType::Time,
            Kernel::Text(|row, out| {
                let time = Interval { months: 0, days: 0, micros: row.whole(0) };
                moment(row, out, Moment::Interval(time))
            }),
        ),
        DataType::Interval => {
            (DataType::Interval, Kernel::Text(|row, out| moment(row, out, Moment::Interval(row.interval(0)))))
        }
        ty if ty.is_integer() || ty.is_decimal() => (
            ty,
            Kernel::Text(|row, out| {
                let scale = if let DataType::Decimal { scale, .. } = row.ty(0) { scale } else { 0 };
                number_patterns::write(&Number::Decimal(row.wide(0), scale), row.text(1), out).map(|()| true)
            }),
        ),
        ty if ty.is_float() => (
            ty,
            Kernel::Text(|row, out| {
                number_patterns::write(&Number::Float(row.float(0)), row.text(1), out).map(|()| true)
            }),
        ),
        DataType::Null | TEXT => (
            TIMESTAMP,
            Kernel::Text(|row, out| finite(row, out, |row| Ok(Moment::Timestamp(row.whole(0), None)))),
        ),
        other => return Err(Error::input(format!("to_char does not take {other}"))),
    };
    Ok(Signature { args: vec![x, TEXT], result: TEXT, kernel })
}

/// Writes the first argument; NULL if it is infinite, as in PostgreSQL.
fn finite(row: &Row<'_>, out: &mut Writer<'_>, of: impl Fn(&Row<'_>) -> Result<Moment>) -> Result<bool> {
    if row.is_infinite(0) { Ok(false) } else { moment(row, out, of(row)?) }
}

fn moment(row: &Row<'_>, out: &mut Writer<'_>, moment: Moment) -> Result<bool> {
    to_char::write(&moment, row.text(1), out).map(|()| true)
}

/// Digits after the decimal point if the pattern is not known.
const UNKNOWN_SCALE: u8 = 10;

fn to_number_of(types: &[DataType], constants: &[Option<Value>]) -> Result<Signature> {
    if types.len() != 2 {
        return Err(Error::input("to_number takes a text and a pattern"));
    }
    let scale = match constants.get(1) {
        Some(Some(Value::Text(pattern))) => number_patterns::scale(pattern),
        _ => UNKNOWN_SCALE,
    };
    let kernel = Kernel::Wide(|row| {
        let DataType::Decimal { scale, .. } = row.result else {
            return Err(Error::internal("to_number gives decimals"));
        };
        number_patterns::read(row.text(0), row.text(1), scale).map(Some)
    });
    Ok(Signature { args: vec![TEXT, TEXT], result: DataType::Decimal { precision: 38, scale }, kernel })
}

/// `strftime`, with the date in argument `date` and the format in the other one.
fn strftime_of(row: &Row<'_>, out: &mut Writer<'_>, date: usize) -> Result<bool> {
    if row.is_infinite(date) {
        out.text(&row.shown(date));
        return Ok(true);
    }
    let zone = (row.ty(date) == TIMESTAMPTZ).then(|| (row.zone, row.zone.offset(row.whole(date))));
    strftime::write(row.clock(date)?, row.text(1 - date), zone, out)?;
    Ok(true)
}

fn seconds(row: &Row<'_>) -> Result<Option<i128>> {
    let micros = (row.float(0) * 1e6).round_ties_even();
    if micros.abs() < 9.2e18 {
        Ok(Some(micros as i128))
    } else {
        Err(Error::input(format!("to_timestamp({:?}) is out of range", row.float(0))))
    }
}
