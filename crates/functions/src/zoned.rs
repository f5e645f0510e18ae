//! Operations that depend on a time zone, as calls of functions.

use crate::by_value::{call, integer};
use crate::time_zone::{MICROS_PER_SECOND, TimeZone};
use entasis_vector::expr::calendar::{add_interval, is_finite, negate_interval, truncate};
use entasis_vector::expr::{DatePart, Expr};
use entasis_vector::time_tz;
use entasis_vector::types::INFINITE_TIMESTAMP;
use entasis_vector::{DataType, Error, Interval, Result, Value};

/// In UTC, the two are the same number. They remain calls until [`same_number`], because a cast would be
/// taken for a conversion in the session's zone.
const CLOCK_IN_UTC: &str = "clock in UTC";
const INSTANT_IN_UTC: &str = "instant in UTC";

/// Turns a call that only changes the type of its argument into a cast, which costs nothing; returns others
/// unchanged.
pub fn same_number(expr: Expr) -> Expr {
    match expr {
        Expr::External { function, mut args, ty }
            if [CLOCK_IN_UTC, INSTANT_IN_UTC].contains(&function.name()) =>
        {
            match args.pop() {
                Some(input) => Expr::Cast { input: Box::new(input), ty, lenient: false },
                None => Expr::External { function, args, ty },
            }
        }
        other => other,
    }
}

fn moment(micros: Option<i64>, ty: DataType) -> Result<Value> {
    let micros = micros.ok_or_else(|| Error::input(format!("the result is out of range for {ty}")))?;
    Ok(Value::Integer(micros.into()))
}

/// The zone of an operand of `AT TIME ZONE`: a name, or an INTERVAL to the east.
///
/// # Errors
/// Input, if there is no zone of that name; internal, if it is neither.
pub fn zone_of(value: &Value) -> Result<TimeZone> {
    match value {
        Value::Text(name) => TimeZone::parse(name),
        Value::Interval(Interval { months: 0, days: 0, micros }) => {
            TimeZone::fixed(micros / MICROS_PER_SECOND)
        }
        Value::Interval(_) => Err(Error::input("the INTERVAL of a time zone has no months and no days")),
        other => Err(Error::internal(format!("{other:?} where a time zone is expected"))),
    }
}

/// The local time in `zone` at a TIMESTAMPTZ: a TIMESTAMP.
pub fn local(zone: TimeZone, instant: Expr) -> Expr {
    let ty = DataType::Timestamp;
    if zone.is_utc() {
        return call(CLOCK_IN_UTC, vec![instant], ty, |args| Ok(args[0].clone()));
    }
    call(format!("clock in {zone}"), vec![instant], ty, move |args| {
        moment(zone.local(integer(&args[0])?), ty)
    })
}

/// The instant at a local TIMESTAMP in `zone`: a TIMESTAMPTZ.
pub fn instant(zone: TimeZone, local: Expr) -> Expr {
    let ty = DataType::TimestampTz;
    if zone.is_utc() {
        return call(INSTANT_IN_UTC, vec![local], ty, |args| Ok(args[0].clone()));
    }
    call(format!("instant in {zone}"), vec![local], ty, move |args| {
        moment(zone.instant(integer(&args[0])?), ty)
    })
}

/// `input AT TIME ZONE zone`, from TIMESTAMPTZ to TIMESTAMP or from TIMESTAMP to TIMESTAMPTZ.
///
/// # Errors
/// Input, if the zone is a constant and there is no zone of that name.
pub fn at_time_zone(zone: Expr, input: Expr) -> Result<Expr> {
    let from_instant = input.ty() == DataType::TimestampTz;
    if let Expr::Literal { value, .. } = &zone
        && !value.is_null()
    {
        let zone = zone_of(value)?;
        return Ok(if from_instant { local(zone, input) } else { instant(zone, input) });
    }
    let ty = if from_instant { DataType::Timestamp } else { DataType::TimestampTz };
    Ok(call("timezone", vec![zone, input], ty, move |args| {
        let (zone, micros) = (zone_of(&args[0])?, integer(&args[1])?);
        moment(if from_instant { zone.local(micros) } else { zone.instant(micros) }, ty)
    }))
}

/// Parses a TIMESTAMPTZ; NULL if the text is invalid and `lenient`.
pub fn read(zone: TimeZone, text: Expr, lenient: bool) -> Expr {
    let ty = DataType::TimestampTz;
    let name = if lenient { "try to read in" } else { "read in" };
    call(format!("{name} {zone}"), vec![text], ty, move |args| match &args[0] {
        Value::Text(text) => match zone.read(text) {
            Ok(micros) => Ok(Value::Integer(micros.into())),
            Err(_) if lenient => Ok(Value::Null),
            Err(error) => Err(error),
        },
        other => Err(Error::internal(format!("{other:?} where a text is expected"))),
    })
}

/// A TIMESTAMPTZ as text.
pub fn write(zone: TimeZone, instant: Expr) -> Expr {
    call(format!("text in {zone}"), vec![instant], DataType::Varchar, move |args| {
        let mut text = String::new();
        zone.write(&mut text, integer(&args[0])?).expect("a String takes all");
        Ok(Value::Text(text.into()))
    })
}

/// A conversion from or to a nested type that has instants.
pub fn converted(zone: TimeZone, input: Expr, ty: DataType, lenient: bool) -> Expr {
    let from = input.ty();
    let name = if lenient { "try to convert" } else { "convert" };
    call(format!("{name} to {ty} in {zone}"), vec![input], ty, move |args| {
        zone.convert(&args[0], from, ty, lenient)
    })
}

/// `date_trunc` of a TIMESTAMPTZ. Days and longer units begin at midnight in `zone`, hours and shorter ones
/// at full hours.
pub fn truncated(zone: TimeZone, part: DatePart, instant: Expr) -> Expr {
    use DatePart::{Hour, Microsecond, Millisecond, Minute, Second};
    let ty = DataType::TimestampTz;
    let is_time = matches!(part, Hour | Minute | Second | Millisecond | Microsecond);
    call(format!("{part:?} in {zone}"), vec![instant], ty, move |args| {
        let instant = integer(&args[0])?;
        let start = zone.local(instant).and_then(|local| truncate(part, local));
        let result = match is_time && is_finite(instant) {
            // In an overlap, the hour that contains the instant.
            true => start.and_then(|start| start.checked_sub(zone.offset(instant) * MICROS_PER_SECOND)),
            false => start.and_then(|start| zone.instant(start)),
        };
        moment(result, ty)
    })
}

/// A TIMESTAMPTZ plus an INTERVAL, or minus it.
pub fn shifted(zone: TimeZone, instant: Expr, span: Expr, back: bool) -> Expr {
    let ty = DataType::TimestampTz;
    let name = if back { "minus" } else { "plus" };
    call(format!("{name} in {zone}"), vec![instant, span], ty, move |args| {
        let (instant, span) = (integer(&args[0])?, interval(&args[1])?);
        moment(moved(zone, instant, span, back), ty)
    })
}

/// The limit of a frame by value: a TIMESTAMPTZ plus the INTERVAL that is its offset, or minus it; infinity
/// beyond the range. Fails with the error that `refused` makes if the offset is negative.
pub fn limit(zone: TimeZone, instant: Expr, span: Expr, back: bool, refused: fn() -> Error) -> Expr {
    let name = if back { "limit before in" } else { "limit after in" };
    call(format!("{name} {zone}"), vec![instant, span], DataType::TimestampTz, move |args| {
        let (instant, span) = (integer(&args[0])?, interval(&args[1])?);
        if span.estimate() < 0 {
            return Err(refused());
        }
        let beyond = if back { -INFINITE_TIMESTAMP } else { INFINITE_TIMESTAMP };
        Ok(Value::Integer(moved(zone, instant, span, back).unwrap_or(beyond).into()))
    })
}

fn interval(value: &Value) -> Result<Interval> {
    match value {
        Value::Interval(span) => Ok(*span),
        other => Err(Error::internal(format!("{other:?} where an INTERVAL is expected"))),
    }
}

/// An instant plus an interval, or minus it: first months and days by the calendar in `zone`, where days may
/// have 23 or 25 hours; then the time. `None` outside the range of timestamps.
fn moved(zone: TimeZone, instant: i64, span: Interval, back: bool) -> Option<i64> {
    let span = if back { negate_interval(span)? } else { span };
    let by_calendar = Interval { micros: 0, ..span };
    let moved = match (span.months, span.days) {
        (0, 0) => instant,
        _ => zone.instant(add_interval(zone.local(instant)?, by_calendar)?)?,
    };
    add_interval(moved, Interval { months: 0, days: 0, micros: span.micros })
}

/// Seconds by which local time in `zone` is ahead of UTC at a TIMESTAMPTZ, in units of `unit` seconds, modulo
/// the longer unit `within`: `extract(timezone_minute FROM …)`.
pub fn offset(zone: TimeZone, instant: Expr, unit: i64, within: i64) -> Expr {
    call(format!("offset in {unit} of {zone}"), vec![instant], DataType::Int64, move |args| {
        let instant = integer(&args[0])?;
        if !is_finite(instant) {
            return Ok(Value::Null);
        }
        Ok(Value::Integer((zone.offset(instant) % within / unit).into()))
    })
}

/// The same of a TIMETZ, which has an offset of its own.
pub fn own_offset(time: Expr, unit: i64, within: i64) -> Expr {
    call(format!("own offset in {unit}"), vec![time], DataType::Int64, move |args| {
        let (_, offset) = time_tz::unpack(integer(&args[0])?);
        Ok(Value::Integer((offset % within / unit).into()))
    })
}

/// The TIMESTAMP of a DATE at midnight.
pub fn midnight(date: Expr) -> Expr {
    Expr::Cast { input: Box::new(date), ty: DataType::Timestamp, lenient: false }
}
