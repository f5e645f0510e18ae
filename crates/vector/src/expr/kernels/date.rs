//! Fields of dates and times, truncation, and arithmetic with intervals.

use super::{Operand, Rows, operand, row_by_row, strict, unary};
use crate::expr::calendar::{
    add_interval, add_interval_to_nanos, add_intervals, divide_interval, epoch_interval, epoch_timestamp,
    extract_date, extract_interval, extract_time, extract_timestamp, is_finite, is_finite_date,
    julian_timestamp, micros_of, midnight, negate_interval, scale_interval, timestamp_difference, truncate,
    truncate_date, truncate_interval,
};
use crate::expr::{ArithmeticOp, DatePart};
use crate::simd::widest;
use crate::time_tz;
use crate::types::{Interval, MICROS_PER_DAY, PhysicalType};
use crate::vector::Vector;
use crate::{DataType, Error, Result, Value};

/// `extract(part FROM a)`, where `a` is of type `from`, into the type of `out`.
///
/// # Errors
/// Internal, for types without fields.
pub fn extract(part: DatePart, a: &Vector, from: DataType, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let physical = out.physical();
    strict(&[a], rows, out, |rows, out| {
        let all_near = from == DataType::Date && all_near(a, rows);
        if !all_near {
            nullify_infinite(a, from, rows, out);
        }
        if physical == PhysicalType::F64 && matches!(part, DatePart::Epoch | DatePart::Julian) {
            let out = out.values_mut::<f64>();
            match (from, part) {
                (DataType::Date, _) => {
                    unary(operand(a), rows, out, |d: i32| extract_date(part, d.into()) as f64)
                }
                (DataType::Interval, _) => unary(operand(a), rows, out, epoch_interval),
                (_, DatePart::Julian) => unary(operand(a), rows, out, julian_timestamp),
                _ => unary(operand(a), rows, out, epoch_timestamp),
            }
            return Ok(());
        }
        macro_rules! into {
            ($t:ty) => {{
                let out = out.values_mut::<$t>();
                match (from, part) {
                    (DataType::Date, _) if all_near && is_fast(part) => {
                        fast(part, operand(a), rows.widened(), out, |field| field as $t);
                    }
                    (DataType::Date, _) => {
                        unary(operand(a), rows, out, |d: i32| extract_date(part, d.into()) as $t)
                    }
                    (DataType::Time, _) => unary(operand(a), rows, out, |t: i64| extract_time(part, t) as $t),
                    (DataType::Interval, _) => {
                        unary(operand(a), rows, out, |v| extract_interval(part, v) as $t)
                    }
                    _ => unary(operand(a), rows, out, |t: i64| extract_timestamp(part, t) as $t),
                }
            }};
        }
        match physical {
            PhysicalType::I32 => into!(i32),
            PhysicalType::I64 => into!(i64),
            PhysicalType::F64 => into!(f64),
            PhysicalType::I16 => into!(i16),
            PhysicalType::U8 => into!(u8),
            PhysicalType::I8 => into!(i8),
            other => return Err(Error::internal(format!("a date's field as {other:?}"))),
        }
        Ok(())
    })
}

/// Infinity has no fields: makes NULL of it.
fn nullify_infinite(a: &Vector, from: DataType, rows: Rows<'_>, out: &mut Vector) {
    if from == DataType::Date {
        let days = operand::<i32>(a);
        nullify(rows, out, |p| !is_finite_date(days.get(p)));
    } else if matches!(from, DataType::Timestamp | DataType::TimestampTz) {
        let micros = operand::<i64>(a);
        nullify(rows, out, |p| !is_finite(micros.get(p)));
    }
}

fn nullify(rows: Rows<'_>, out: &mut Vector, is_infinite: impl Fn(usize) -> bool) {
    let mut any = false;
    rows.each(|p| any |= is_infinite(p));
    if any {
        rows.each(|p| {
            if is_infinite(p) {
                out.set_null(p);
            }
        });
    }
}

/// Days that [`NearDate`] covers: the years -30,000 to 30,000 and more.
const NEAR: i32 = 11_000_000;

/// Whether all dates are those that [`NearDate`] covers.
fn all_near(dates: &Vector, rows: Rows<'_>) -> bool {
    let is_far = |days: i32| days.unsigned_abs() > NEAR as u32;
    match (operand::<i32>(dates), rows) {
        (Operand::Each(dates), Rows::Dense(n)) => {
            widest(|| !dates[..n].iter().fold(false, |far, &days| far | is_far(days)))
        }
        (dates, rows) => {
            let mut far = false;
            rows.each(|p| far |= is_far(dates.get(p)));
            !far
        }
    }
}

/// A day number within [`NEAR`], taken apart. Divisions by constants only, in 32 and 64 bits, without a
/// branch: Neri and Schneider, *Euclidean affine functions and their application to calendar algorithms*,
/// 2022.
#[derive(Clone, Copy)]
struct NearDate {
    /// The year that starts in March.
    year: i32,
    /// Days since the first of March.
    day_of_year: u32,
    /// 3 for March to 14 for February.
    month: u32,
    /// Days since the first of the month.
    day: u32,
}

impl NearDate {
    #[inline(always)]
    fn new(days: i32) -> NearDate {
        const ERAS: i32 = 82;
        let n = days.wrapping_add(719_468 + 146_097 * ERAS) as u32;
        let in_quarters = n.wrapping_mul(4).wrapping_add(3);
        let century = in_quarters / 146_097;
        let day_of_century = in_quarters % 146_097 / 4;
        let product = 2_939_745 * u64::from(4 * day_of_century + 3);
        let year_of_century = (product >> 32) as u32;
        let day_of_year = product as u32 / 2_939_745 / 4;
        let in_months = 2141 * day_of_year + 197_913;
        NearDate {
            year: (100 * century + year_of_century) as i32 - 400 * ERAS,
            day_of_year,
            month: in_months >> 16,
            day: (in_months & 0xffff) / 2141,
        }
    }

    /// Whether it is January or February, which belong to the next year.
    #[inline(always)]
    fn is_early(self) -> bool {
        self.day_of_year >= 306
    }

    /// The year that starts in January.
    #[inline(always)]
    fn civil_year(self) -> i32 {
        self.year + i32::from(self.is_early())
    }

    /// 1 for January to 12 for December.
    #[inline(always)]
    fn civil_month(self) -> i32 {
        self.month as i32 - 12 * i32::from(self.is_early())
    }

    /// Days since the first of January.
    #[inline(always)]
    fn civil_day_of_year(self) -> i32 {
        let is_leap = (self.year & 3 == 0) & ((self.year % 100 != 0) | (self.year & 15 == 0));
        let before_march = 59 + i32::from(is_leap);
        self.day_of_year as i32 + if self.is_early() { -306 } else { before_march }
    }
}

/// Days since the Monday of the week, of a day number within [`NEAR`].
#[inline(always)]
fn day_of_week(days: i32) -> i32 {
    // The constant is 3 and a multiple of 7.
    (days.wrapping_add(3 + 7 * (NEAR / 7 + 1)) as u32 % 7) as i32
}

/// Whether [`fast`] computes the field.
fn is_fast(part: DatePart) -> bool {
    use DatePart::{Day, DayOfWeek, DayOfYear, IsoDayOfWeek, Month, Quarter, Year};
    matches!(part, Year | Quarter | Month | Day | DayOfYear | DayOfWeek | IsoDayOfWeek)
}

/// Fields of dates that are near, which `as_type` converts.
fn fast<T>(
    part: DatePart,
    dates: Operand<'_, i32>,
    rows: Rows<'_>,
    out: &mut [T],
    as_type: impl Fn(i32) -> T + Copy,
) {
    match part {
        DatePart::Year => unary(dates, rows, out, move |d| as_type(NearDate::new(d).civil_year())),
        DatePart::Quarter => {
            unary(dates, rows, out, move |d| as_type((NearDate::new(d).civil_month() as u32 + 2) as i32 / 3))
        }
        DatePart::Month => unary(dates, rows, out, move |d| as_type(NearDate::new(d).civil_month())),
        DatePart::DayOfYear => {
            unary(dates, rows, out, move |d| as_type(NearDate::new(d).civil_day_of_year() + 1))
        }
        DatePart::DayOfWeek => unary(dates, rows, out, move |d| as_type((day_of_week(d) + 1) % 7)),
        DatePart::IsoDayOfWeek => unary(dates, rows, out, move |d| as_type(day_of_week(d) + 1)),
        _ => unary(dates, rows, out, move |d| as_type(NearDate::new(d).day as i32 + 1)),
    }
}

/// Dates that are near, truncated to a year, month or week; false for other fields.
fn fast_truncated(part: DatePart, dates: Operand<'_, i32>, rows: Rows<'_>, out: &mut [i32]) -> bool {
    match part {
        DatePart::Year => {
            unary(dates, rows, out, |d| d.wrapping_sub(NearDate::new(d).civil_day_of_year()));
        }
        DatePart::Month => unary(dates, rows, out, |d| d.wrapping_sub(NearDate::new(d).day as i32)),
        DatePart::Week => unary(dates, rows, out, |d| d.wrapping_sub(day_of_week(d))),
        _ => return false,
    }
    true
}

/// `date_trunc`, where `a` is of type `from` and the result of type `to`.
///
/// # Errors
/// Input, outside the range of timestamps.
pub fn truncated(
    part: DatePart,
    a: &Vector,
    from: DataType,
    to: DataType,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    if from == DataType::Date && to == DataType::Date {
        return strict(&[a], rows, out, |rows, out| {
            let (dates, out) = (operand(a), out.values_mut());
            if !(all_near(a, rows) && fast_truncated(part, dates, rows.widened(), out)) {
                unary(dates, rows, out, |d: i32| truncate_date(part, d.into()) as i32);
            }
            Ok(())
        });
    }
    row_by_row(&[(a, from)], to, rows, out, |values| {
        if let Value::Interval(span) = &values[0] {
            return Ok(Value::Interval(truncate_interval(part, *span)));
        }
        let at = integer(&values[0])?;
        let at = if from == DataType::Date { midnight(at as i32) } else { Some(at) };
        let start = at.and_then(|at| truncate(part, at)).ok_or_else(|| out_of_range(to))?;
        Ok(Value::Integer(if to == DataType::Date { start.div_euclid(MICROS_PER_DAY) } else { start }.into()))
    })
}

fn integer(value: &Value) -> Result<i64> {
    match value {
        Value::Integer(v) => i64::try_from(*v).map_err(|_| Error::input(format!("{v} does not fit BIGINT"))),
        other => Err(Error::internal(format!("{other:?} where an integer is expected"))),
    }
}

/// Whether a number of days is a date that is finite.
fn is_day(days: i128) -> bool {
    i32::try_from(days).is_ok_and(is_finite_date)
}

fn out_of_range(ty: DataType) -> Error {
    Error::input(format!("the result is out of range for {ty}"))
}

/// Sums, differences and products in which a date, time, timestamp or interval takes part.
///
/// # Errors
/// Input, if the result leaves its type; internal for combinations that do not exist.
pub fn arithmetic(
    op: ArithmeticOp,
    a: (&Vector, DataType),
    b: (&Vector, DataType),
    ty: DataType,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    row_by_row(&[a, b], ty, rows, out, |values| combine(op, (&values[0], a.1), (&values[1], b.1), ty))
}

/// A date, time or timestamp of this type, an interval later. Of a time, only the hours and what is below
/// them count, and midnight follows on the hour before it.
fn moved(at: i128, ty: DataType, span: Interval) -> Option<i128> {
    match ty {
        DataType::Time => Some((at + i128::from(span.micros)).rem_euclid(MICROS_PER_DAY.into())),
        // The clock goes on where it is.
        DataType::TimeTz => {
            let (local, offset) = time_tz::unpack(at as i64);
            let moved = moved(local.into(), DataType::Time, span)?;
            Some(time_tz::pack(moved as i64, offset).into())
        }
        DataType::Date => midnight(at as i32).and_then(|at| add_interval(at, span)).map(i128::from),
        DataType::TimestampNs => add_interval_to_nanos(at as i64, span).map(i128::from),
        _ => add_interval(at as i64, span).map(i128::from),
    }
}

/// So many times an interval.
fn multiply_interval(span: Interval, n: i64) -> Option<Interval> {
    Some(Interval {
        months: i32::try_from(n.checked_mul(span.months.into())?).ok()?,
        days: i32::try_from(n.checked_mul(span.days.into())?).ok()?,
        micros: n.checked_mul(span.micros)?,
    })
}

fn combine(op: ArithmeticOp, a: (&Value, DataType), b: (&Value, DataType), ty: DataType) -> Result<Value> {
    use ArithmeticOp::{Add, Divide, Multiply, Subtract};
    let signed = |b: Interval| if op == Subtract { negate_interval(b) } else { Some(b) };
    let result = match (op, a.0, b.0) {
        (Add | Subtract, Value::Interval(a), Value::Interval(b)) => {
            signed(*b).and_then(|b| add_intervals(*a, b)).map(Value::Interval)
        }
        (Add | Subtract, Value::Integer(at), Value::Interval(span)) => {
            signed(*span).and_then(|span| moved(*at, a.1, span)).map(Value::Integer)
        }
        (Multiply, Value::Interval(span), Value::Integer(n)) => {
            multiply_interval(*span, integer(&Value::Integer(*n))?).map(Value::Interval)
        }
        (Multiply, Value::Interval(span), Value::Float(factor)) => {
            scale_interval(*span, *factor).map(Value::Interval)
        }
        (Divide, Value::Interval(_), Value::Float(0.0) | Value::Integer(0)) => {
            return Err(Error::input("division by zero"));
        }
        (Divide, Value::Interval(span), Value::Float(divisor)) => {
            divide_interval(*span, *divisor).map(Value::Interval)
        }
        (Divide, Value::Interval(span), Value::Integer(n)) => {
            divide_interval(*span, *n as f64).map(Value::Interval)
        }
        (Subtract, Value::Integer(a), Value::Integer(b))
            if ty == DataType::Interval && !(is_finite(*a as i64) && is_finite(*b as i64)) =>
        {
            return Err(Error::input("infinite timestamps cannot be subtracted"));
        }
        (Subtract, Value::Integer(left), Value::Integer(right)) if ty == DataType::Interval => {
            let micros = |at: i128, ty: DataType| match ty {
                DataType::TimestampNs => micros_of(at as i64),
                _ => at as i64,
            };
            timestamp_difference(micros(*left, a.1), micros(*right, b.1)).map(Value::Interval)
        }
        // A date and a time of day.
        (Add, Value::Integer(day), Value::Integer(time)) if ty == DataType::Timestamp => {
            let span = Interval { months: 0, days: 0, micros: *time as i64 };
            midnight(*day as i32).and_then(|at| add_interval(at, span)).map(|at| Value::Integer(at.into()))
        }
        // Days, or days between dates.
        (Add | Subtract, Value::Integer(day), Value::Integer(_)) if ty == DataType::Date && !is_day(*day) => {
            Some(Value::Integer(*day))
        }
        (Subtract, Value::Integer(a), Value::Integer(b))
            if ty != DataType::Date && !(is_day(*a) && is_day(*b)) =>
        {
            return Err(Error::input("infinite dates cannot be subtracted"));
        }
        (Add | Subtract, Value::Integer(day), Value::Integer(days)) => {
            let moved = if op == Add { day.checked_add(*days) } else { day.checked_sub(*days) };
            moved.filter(|moved| ty != DataType::Date || is_day(*moved)).map(Value::Integer)
        }
        _ => return Err(Error::not_supported(format!("{} {op} {}", a.1, b.1))),
    };
    result.ok_or_else(|| out_of_range(ty))
}

/// `-interval`.
///
/// # Errors
/// Input, if a part has no counterpart.
pub fn negate(a: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    row_by_row(&[(a, DataType::Interval)], DataType::Interval, rows, out, |values| match &values[0] {
        Value::Interval(v) => {
            negate_interval(*v).map(Value::Interval).ok_or_else(|| out_of_range(DataType::Interval))
        }
        other => Err(Error::internal(format!("{other:?} where an interval is expected"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All fields, and the years around now day by day.
    #[test]
    fn fast_fields_are_the_fields() {
        use DatePart::{Day, DayOfWeek, DayOfYear, IsoDayOfWeek, Month, Quarter, Week, Year};
        let far_apart = (-NEAR..=NEAR).step_by(61);
        let days: Vec<i32> = far_apart.chain([NEAR, -NEAR]).chain(-40_000..60_000).collect();
        let (dates, rows) = (Operand::Each(&days[..]), Rows::Dense(days.len()));
        let mut out = vec![0; days.len()];
        for part in [Year, Quarter, Month, Day, DayOfYear, DayOfWeek, IsoDayOfWeek] {
            assert!(is_fast(part));
            fast(part, dates, rows, &mut out, |field| field);
            for (&day, &field) in days.iter().zip(&out) {
                assert_eq!(i64::from(field), extract_date(part, day.into()), "{part:?} of {day}");
            }
        }
        for part in [Year, Month, Week] {
            assert!(fast_truncated(part, dates, rows, &mut out));
            for (&day, &start) in days.iter().zip(&out) {
                assert_eq!(i64::from(start), truncate_date(part, day.into()), "{part:?} of {day}");
            }
        }
    }

    /// Positions that are no rows may hold anything.
    #[test]
    fn dates_that_are_not_near_do_not_overflow() {
        for day in [i32::MIN, i32::MIN + 1, -NEAR - 1, NEAR + 1, i32::MAX - 1, i32::MAX] {
            let _ =
                (NearDate::new(day).civil_day_of_year(), NearDate::new(day).civil_month(), day_of_week(day));
        }
    }
}
