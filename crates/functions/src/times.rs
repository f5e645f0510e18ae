//! Functions on dates, times, timestamps and intervals that are computed value by value, and those that read
//! the clock.
//!
//! Each has overloads, of which the one nearest to the arguments is used. None works in nanoseconds, so all
//! cover the whole range of timestamps. Functions of a TIMESTAMPTZ that depend on a zone take a TIMESTAMP
//! instead: the cast to it applies the session's zone.

use crate::by_value::{call, integer, volatile};
use crate::catalog::call::named_call;
use crate::session::{ClockReading, clock};
use crate::time_zone::TimeZone;
use crate::zoned;
use entasis_vector::DataType::{
    self, Boolean, Date, Float64, Int64, Interval as Span, Time, Timestamp, TimestampTz, Varchar,
};
use entasis_vector::expr::Expr;
use entasis_vector::expr::calendar::{
    add_interval, age, bin, days_in_month, is_finite, is_finite_date, midnight,
};
use entasis_vector::types::{INFINITE_TIMESTAMP, MICROS_PER_DAY};
use entasis_vector::value::days_from_civil;
use entasis_vector::{Error, Interval, Result, Value};

/// The computation of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Meaning {
    /// What the clock said when the statement or its transaction began.
    Began(ClockReading),
    /// The current time, again for each row.
    Clock,
    /// `x AT TIME ZONE zone` is `timezone(zone, x)`.
    AtTimeZone,
    DateBin,
    TimeBucket,
    ToTimestamp,
    Age,
    MakeTimestamp,
    MakeTimestampTz,
    IsFinite,
}

/// Argument types and the type of the result.
pub type TimeOverload = (&'static [DataType], DataType);

/// A function under its names.
#[derive(Debug)]
struct Entry {
    names: &'static [&'static str],
    meaning: Meaning,
    overloads: &'static [TimeOverload],
}

const PARTS: &[DataType] = &[Int64, Int64, Int64, Int64, Int64, Float64];
const PARTS_AND_ZONE: &[DataType] = &[Int64, Int64, Int64, Int64, Int64, Float64, Varchar];

const FUNCTIONS: &[Entry] = &[
    Entry {
        names: &["now", "current_timestamp", "transaction_timestamp", "get_current_timestamp"],
        meaning: Meaning::Began(ClockReading::Transaction),
        overloads: &[(&[], TimestampTz)],
    },
    Entry {
        names: &["statement_timestamp"],
        meaning: Meaning::Began(ClockReading::Statement),
        overloads: &[(&[], TimestampTz)],
    },
    Entry { names: &["clock_timestamp"], meaning: Meaning::Clock, overloads: &[(&[], TimestampTz)] },
    Entry {
        names: &["localtimestamp", "current_localtimestamp"],
        meaning: Meaning::Began(ClockReading::LocalTimestamp),
        overloads: &[(&[], Timestamp)],
    },
    Entry {
        names: &["localtime", "current_time", "current_localtime", "get_current_time"],
        meaning: Meaning::Began(ClockReading::LocalTime),
        overloads: &[(&[], Time)],
    },
    Entry {
        names: &["current_date", "today"],
        meaning: Meaning::Began(ClockReading::Today),
        overloads: &[(&[], Date)],
    },
    Entry {
        names: &["timezone"],
        meaning: Meaning::AtTimeZone,
        overloads: &[
            (&[Varchar, TimestampTz], Timestamp),
            (&[Varchar, Timestamp], TimestampTz),
            (&[Span, TimestampTz], Timestamp),
            (&[Span, Timestamp], TimestampTz),
        ],
    },
    Entry {
        names: &["date_bin"],
        meaning: Meaning::DateBin,
        overloads: &[
            (&[Span, Timestamp], Timestamp),
            (&[Span, TimestampTz], TimestampTz),
            (&[Span, Timestamp, Timestamp], Timestamp),
            (&[Span, TimestampTz, TimestampTz], TimestampTz),
        ],
    },
    Entry {
        names: &["time_bucket"],
        meaning: Meaning::TimeBucket,
        overloads: &[
            (&[Span, Date], Date),
            (&[Span, Timestamp], Timestamp),
            (&[Span, TimestampTz], TimestampTz),
            (&[Span, Date, Span], Date),
            (&[Span, Timestamp, Span], Timestamp),
            (&[Span, TimestampTz, Span], TimestampTz),
            (&[Span, Date, Date], Date),
            (&[Span, Timestamp, Timestamp], Timestamp),
            (&[Span, TimestampTz, TimestampTz], TimestampTz),
        ],
    },
    Entry {
        names: &["to_timestamp"],
        meaning: Meaning::ToTimestamp,
        overloads: &[
            (&[Int64], TimestampTz),
            (&[Float64], TimestampTz),
            (&[Date], TimestampTz),
            (&[TimestampTz], TimestampTz),
            (&[Varchar], TimestampTz),
            (&[Varchar, Varchar], TimestampTz),
        ],
    },
    Entry {
        names: &["age"],
        meaning: Meaning::Age,
        overloads: &[(&[Timestamp], Span), (&[Timestamp, Timestamp], Span)],
    },
    Entry {
        names: &["make_timestamp"],
        meaning: Meaning::MakeTimestamp,
        overloads: &[(&[Int64], Timestamp), (PARTS, Timestamp)],
    },
    Entry {
        names: &["make_timestamptz"],
        meaning: Meaning::MakeTimestampTz,
        overloads: &[(&[Int64], TimestampTz), (PARTS, TimestampTz), (PARTS_AND_ZONE, TimestampTz)],
    },
    Entry {
        names: &["isfinite"],
        meaning: Meaning::IsFinite,
        overloads: &[
            (&[Date], Boolean),
            (&[Timestamp], Boolean),
            (&[TimestampTz], Boolean),
            (&[Span], Boolean),
            (&[Float64], Boolean),
        ],
    },
];

/// A function of time under one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeFunction {
    name: &'static str,
    meaning: Meaning,
    overloads: &'static [TimeOverload],
}

/// All of them under each of their names.
pub fn time_functions() -> impl Iterator<Item = TimeFunction> {
    FUNCTIONS.iter().flat_map(|entry| {
        let of =
            |name: &&'static str| TimeFunction { name, meaning: entry.meaning, overloads: entry.overloads };
        entry.names.iter().map(of)
    })
}

/// The distance of an argument from the type that a function takes; `None` if it is not accepted.
fn distance(from: DataType, to: DataType) -> Option<u32> {
    Some(match (from, to) {
        (from, to) if from == to => 0,
        (DataType::Null, _) => 1,
        (from, Int64) if from.is_integer() => 1,
        (from, Float64) if from.is_numeric() => 2,
        (Date, Timestamp | TimestampTz) => 2,
        (Timestamp, TimestampTz) => 4,
        (TimestampTz, Timestamp) => 5,
        (Time, Span) => 5,
        // A literal whose type is open is taken for a timestamp with time zone, as in PostgreSQL.
        (Varchar, TimestampTz) => 6,
        (Varchar, Timestamp | Date | Span) => 7,
        _ => return None,
    })
}

impl TimeFunction {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The argument types and the result type of the overload nearest to these types.
    ///
    /// # Errors
    /// Input, if it does not accept such arguments.
    pub fn overload(&self, given: &[DataType]) -> Result<&'static TimeOverload> {
        let far = |(wanted, _): &TimeOverload| {
            if wanted.len() != given.len() {
                return None;
            }
            given.iter().zip(*wanted).map(|(from, to)| distance(*from, *to)).sum::<Option<u32>>()
        };
        let nearest = self.overloads.iter().filter_map(|overload| Some((far(overload)?, overload)));
        nearest.min_by_key(|(far, _)| *far).map(|(_, overload)| overload).ok_or_else(|| {
            let given: Vec<String> = given.iter().map(DataType::to_string).collect();
            let of = |(args, _): &TimeOverload| {
                let args: Vec<String> = args.iter().map(DataType::to_string).collect();
                format!("({})", args.join(", "))
            };
            let taken: Vec<String> = self.overloads.iter().map(of).collect();
            let error = Error::input(format!("{} does not take ({})", self.name, given.join(", ")));
            error.with_hint(format!("it takes {}", taken.join(" or ")))
        })
    }

    /// A call, whose arguments have been coerced, in a session with this time zone. `reading` makes the
    /// expression for what it reads from the clock.
    ///
    /// # Errors
    /// Input, for an unknown time zone; those of `reading`.
    pub fn call(
        &self,
        mut args: Vec<Expr>,
        ty: DataType,
        zone: TimeZone,
        reading: impl Fn(ClockReading) -> Result<Expr>,
    ) -> Result<Expr> {
        let function = |args, compute: fn(&[Value]) -> Result<Value>| Ok(call(self.name, args, ty, compute));
        match self.meaning {
            Meaning::Began(what) => reading(what),
            Meaning::Clock => Ok(volatile(self.name, ty, || Ok(Value::Integer(clock().into())))),
            Meaning::AtTimeZone => {
                let input = args.remove(1);
                zoned::at_time_zone(args.remove(0), input)
            }
            Meaning::DateBin => function(args, date_bin),
            Meaning::TimeBucket if args[1].ty() == Date => {
                let days = args.remove(1);
                args.insert(1, zoned::midnight(days));
                if let Some(origin) = args.get_mut(2).filter(|origin| origin.ty() == Date) {
                    *origin = zoned::midnight(std::mem::replace(origin, Expr::boolean(false)));
                }
                let start = call(self.name, args, Timestamp, time_bucket);
                Ok(Expr::Cast { input: Box::new(start), ty, lenient: false })
            }
            Meaning::TimeBucket => function(args, time_bucket),
            // With a pattern, it is the catalog's function.
            Meaning::ToTimestamp if args.len() == 2 => named_call("to_timestamp", args, zone),
            Meaning::ToTimestamp => match args[0].ty() {
                Int64 | Float64 => function(args, to_timestamp),
                TimestampTz => Ok(args.remove(0)),
                _ => Ok(Expr::Cast { input: Box::new(args.remove(0)), ty, lenient: false }),
            },
            Meaning::Age => {
                if args.len() == 1 {
                    args.insert(0, reading(ClockReading::Midnight)?);
                }
                function(args, age_of)
            }
            Meaning::MakeTimestamp => function(args, make_timestamp),
            Meaning::MakeTimestampTz if args.len() == 1 => function(args, make_timestamp),
            Meaning::MakeTimestampTz => {
                let given = if args.len() > PARTS.len() { args.pop() } else { None };
                let clock = call("make_timestamp", args, Timestamp, make_timestamp);
                match given {
                    Some(given) => zoned::at_time_zone(given, clock),
                    None => Ok(zoned::instant(zone, clock)),
                }
            }
            Meaning::IsFinite => {
                let from = args[0].ty();
                Ok(call(self.name, args, ty, move |args| {
                    Ok(Value::Boolean(match &args[0] {
                        Value::Float(v) => v.is_finite(),
                        Value::Integer(v) if from == Date => is_finite_date(*v as i32),
                        Value::Integer(v) => is_finite(*v as i64),
                        _ => true,
                    }))
                }))
            }
        }
    }
}

fn out_of_range(ty: DataType) -> Error {
    Error::input(format!("the result is out of range for {ty}"))
}

fn timestamp(micros: Option<i64>) -> Result<Value> {
    micros.map(|micros| Value::Integer(micros.into())).ok_or_else(|| out_of_range(Timestamp))
}

fn span(value: &Value) -> Result<Interval> {
    match value {
        Value::Interval(span) => Ok(*span),
        other => Err(Error::internal(format!("{other:?} where an interval is expected"))),
    }
}

/// The width of bins.
fn width(value: &Value) -> Result<Interval> {
    let width = span(value)?;
    if width.months != 0 && (width.days != 0 || width.micros != 0) {
        return Err(Error::input("the width of bins has months, or days and times, but not both"));
    }
    if width.estimate() <= 0 {
        return Err(Error::input("the width of bins is greater than zero"));
    }
    Ok(width)
}

/// `date_bin(width, source[, origin])`
fn date_bin(args: &[Value]) -> Result<Value> {
    let origin = args.get(2).map_or(Ok(0), integer)?;
    if !is_finite(origin) {
        return Err(Error::input("the origin of bins is finite"));
    }
    timestamp(bin(width(&args[0])?, integer(&args[1])?, origin))
}

/// `time_bucket(width, source[, origin or offset])`. Buckets of months begin at 2000-01-01, others at Monday,
/// 2000-01-03.
fn time_bucket(args: &[Value]) -> Result<Value> {
    let (width, source) = (width(&args[0])?, integer(&args[1])?);
    let usual = days_from_civil(2000, 1, if width.months != 0 { 1 } else { 3 }) * MICROS_PER_DAY;
    match args.get(2) {
        None => timestamp(bin(width, source, usual)),
        Some(Value::Interval(offset)) => {
            let back =
                entasis_vector::expr::calendar::negate_interval(*offset).ok_or_else(|| out_of_range(Span))?;
            let start = add_interval(source, back).and_then(|moved| bin(width, moved, usual));
            timestamp(start.and_then(|start| add_interval(start, *offset)))
        }
        Some(origin) => timestamp(bin(width, source, integer(origin)?)),
    }
}

/// Seconds since 1970.
fn to_timestamp(args: &[Value]) -> Result<Value> {
    let finite = |micros: Option<i64>| timestamp(micros.filter(|micros| is_finite(*micros)));
    match &args[0] {
        Value::Float(v) if v.is_infinite() => {
            timestamp(Some(if *v > 0.0 { INFINITE_TIMESTAMP } else { -INFINITE_TIMESTAMP }))
        }
        Value::Float(v) if v.is_nan() => Err(out_of_range(TimestampTz)),
        // Whole seconds are converted exactly, however many they are.
        Value::Float(v) => {
            let whole = (v.trunc() as i64).checked_mul(1_000_000);
            finite(whole.and_then(|whole| whole.checked_add((v.fract() * 1e6).round() as i64)))
        }
        other => finite(integer(other)?.checked_mul(1_000_000)),
    }
}

fn age_of(args: &[Value]) -> Result<Value> {
    let (a, b) = (integer(&args[0])?, integer(&args[1])?);
    match age(a, b) {
        Some(span) => Ok(Value::Interval(span)),
        None => Err(Error::input("infinite timestamps have no age")),
    }
}

/// `make_timestamp(year, month, day, hour, minute, second)`, or from microseconds since 1970.
fn make_timestamp(args: &[Value]) -> Result<Value> {
    let [year, month, day, hour, minute, Value::Float(second)] = args else {
        return timestamp(Some(integer(&args[0])?).filter(|micros| is_finite(*micros)));
    };
    let (year, month, day) = (integer(year)?, integer(month)?, integer(day)?);
    let (hour, minute) = (integer(hour)?, integer(minute)?);
    // A year before 1 is BC: there is no year 0.
    let civil = if year < 0 { year + 1 } else { year };
    let is_date = year != 0
        && (-300_000..300_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=i64::from(days_in_month(civil, month as u32))).contains(&day);
    let is_time = (0..=23).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(second);
    if !(is_date && is_time) {
        let text = format!("there is no time {year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
        return Err(Error::input(text));
    }
    let days = i32::try_from(days_from_civil(civil, month as u32, day as u32)).ok();
    let time = (hour * 3600 + minute * 60) * 1_000_000 + (second * 1e6).round() as i64;
    timestamp(days.and_then(midnight).and_then(|at| at.checked_add(time)).filter(|at| is_finite(*at)))
}
