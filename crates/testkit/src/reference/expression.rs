//! The value of each expression, for one row.
//!
//! A walk over the tree that follows the documentation of [`Expr`] literally. Operands are evaluated only
//! where SQL evaluates them, so an error that SQL does not raise is not raised here.

use super::cast::{self, month_length};
use entasis_vector::expr::{ArithmeticOp, CompareOp, DatePart, Expr, Function};
use entasis_vector::types::{MICROS_PER_DAY, pow10};
use entasis_vector::value::{civil_from_days, days_from_civil};
use entasis_vector::{ColumnId, DataType, Error, Interval, Result, Value, Vector};
use std::cmp::Ordering;
use std::sync::Arc;

/// A row: its values and their columns.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// The columns, in order.
    pub columns: &'a [ColumnId],
    /// The values, in the same order.
    pub values: &'a [Value],
}

/// The order of two values of type `ty` that are not NULL.
pub fn order(a: &Value, b: &Value, ty: DataType) -> Ordering {
    match (a, b) {
        // A UUID is an unsigned number stored as a signed one.
        (Value::Integer(a), Value::Integer(b)) if ty == DataType::Uuid => (*a as u128).cmp(&(*b as u128)),
        _ => a.total_cmp(b),
    }
}

/// True if the predicate is true; false if it is false or NULL.
///
/// # Errors
/// Those of [`evaluate`].
pub fn holds(predicate: &Expr, row: Row<'_>) -> Result<bool> {
    Ok(truth(&evaluate(predicate, row)?)? == Some(true))
}

fn truth(value: &Value) -> Result<Option<bool>> {
    match value {
        Value::Null => Ok(None),
        Value::Boolean(b) => Ok(Some(*b)),
        other => Err(unexpected("BOOLEAN", other)),
    }
}

fn boolean(value: Option<bool>) -> Value {
    value.map_or(Value::Null, Value::Boolean)
}

fn unexpected(wanted: &str, value: &Value) -> Error {
    Error::internal(format!("{value:?} where {wanted} is expected"))
}

/// The value of `expr` in `row`.
///
/// # Errors
/// Overflow, division by zero, failed casts; those of library functions.
pub fn evaluate(expr: &Expr, row: Row<'_>) -> Result<Value> {
    Ok(match expr {
        Expr::Column { id, .. } => row.values[position(row.columns, *id)?].clone(),
        Expr::Literal { value, .. } => value.clone(),
        Expr::Parameter { index, .. } => {
            return Err(Error::internal(format!("parameter {} has no value", index + 1)));
        }
        Expr::Compare { op, left, right } => {
            let ty = left.ty();
            compare(*op, &evaluate(left, row)?, &evaluate(right, row)?, ty)
        }
        Expr::Arithmetic { op, left, right, ty } => {
            let (l, r) = (evaluate(left, row)?, evaluate(right, row)?);
            if l.is_null() || r.is_null() {
                Value::Null
            } else {
                arithmetic(*op, &l, left.ty(), &r, right.ty(), *ty)?
            }
        }
        Expr::Negate(input) => match evaluate(input, row)? {
            Value::Null => Value::Null,
            Value::Integer(v) => in_range(-v, input.ty())?,
            Value::Float(v) => Value::Float(-v),
            Value::Interval(v) => Value::Interval(negate(v)),
            other => return Err(unexpected("a number", &other)),
        },
        Expr::Not(input) => boolean(truth(&evaluate(input, row)?)?.map(|b| !b)),
        Expr::And(parts) => {
            let mut result = Some(true);
            for part in parts {
                match truth(&evaluate(part, row)?)? {
                    Some(false) => return Ok(Value::Boolean(false)),
                    Some(true) => {}
                    None => result = None,
                }
            }
            boolean(result)
        }
        Expr::Or(parts) => {
            let mut result = Some(false);
            for part in parts {
                match truth(&evaluate(part, row)?)? {
                    Some(true) => return Ok(Value::Boolean(true)),
                    Some(false) => {}
                    None => result = None,
                }
            }
            boolean(result)
        }
        Expr::IsNull(input) => Value::Boolean(evaluate(input, row)?.is_null()),
        Expr::Case { branches, otherwise, .. } => {
            for (condition, result) in branches {
                if holds(condition, row)? {
                    return evaluate(result, row);
                }
            }
            match otherwise {
                Some(result) => evaluate(result, row)?,
                None => Value::Null,
            }
        }
        Expr::Cast { input, ty, lenient } => {
            let value = evaluate(input, row)?;
            match cast::cast(&value, input.ty(), *ty) {
                Err(error) if *lenient && error.kind() == entasis_vector::ErrorKind::Input => Value::Null,
                result => result?,
            }
        }
        Expr::Like { input, pattern, escape, case_insensitive } => {
            match (evaluate(input, row)?, evaluate(pattern, row)?) {
                (Value::Null, _) | (_, Value::Null) => Value::Null,
                (Value::Text(text), Value::Text(pattern)) => {
                    let (text, pattern): (Vec<char>, Vec<char>) =
                        (text.chars().collect(), pattern.chars().collect());
                    let same = |a: char, b: char| match case_insensitive {
                        true => a.to_lowercase().eq(b.to_lowercase()),
                        false => a == b,
                    };
                    Value::Boolean(like(&text, &pattern, escape.unwrap_or('\\'), &same))
                }
                (text, _) => return Err(unexpected("VARCHAR", &text)),
            }
        }
        Expr::InList { input, list } => {
            let value = evaluate(input, row)?;
            if value.is_null() {
                Value::Null
            } else if list.iter().any(|item| !item.is_null() && *item == value) {
                Value::Boolean(true)
            } else if list.iter().any(Value::is_null) {
                Value::Null
            } else {
                Value::Boolean(false)
            }
        }
        Expr::Function { function, args, ty } => {
            let values = args.iter().map(|arg| evaluate(arg, row)).collect::<Result<Vec<_>>>()?;
            if values.iter().any(Value::is_null) {
                Value::Null
            } else {
                let types: Vec<DataType> = args.iter().map(Expr::ty).collect();
                native(*function, &values, &types, *ty)?
            }
        }
        Expr::External { function, args, ty } => {
            if function.is_volatile() {
                return Err(Error::not_supported(format!("volatile {} in the reference", function.name())));
            }
            let mut values = Vec::new();
            for arg in args {
                values.push((evaluate(arg, row)?, arg.ty()));
            }
            call(&**function, &values, *ty)?
        }
    })
}

fn compare(op: CompareOp, left: &Value, right: &Value, ty: DataType) -> Value {
    match op {
        CompareOp::DistinctFrom => return Value::Boolean(left != right),
        CompareOp::NotDistinctFrom => return Value::Boolean(left == right),
        _ if left.is_null() || right.is_null() => return Value::Null,
        _ => {}
    }
    let found = order(left, right, ty);
    Value::Boolean(match op {
        CompareOp::Eq | CompareOp::NotDistinctFrom => found.is_eq(),
        CompareOp::NotEq | CompareOp::DistinctFrom => found.is_ne(),
        CompareOp::Lt => found.is_lt(),
        CompareOp::LtEq => found.is_le(),
        CompareOp::Gt => found.is_gt(),
        CompareOp::GtEq => found.is_ge(),
    })
}

// ---- arithmetic -------------------------------------------------------------------------------------------

/// `v`, if it is in the range of `ty`.
fn in_range(v: i128, ty: DataType) -> Result<Value> {
    match ty.integer_range() {
        Some((low, high)) if (low..=high).contains(&v) => Ok(Value::Integer(v)),
        _ => Err(Error::input(format!("overflow: {v} does not fit {ty}"))),
    }
}

fn overflow(ty: DataType) -> Error {
    Error::input(format!("overflow: the result does not fit {ty}"))
}

fn arithmetic(
    op: ArithmeticOp,
    left: &Value,
    left_ty: DataType,
    right: &Value,
    right_ty: DataType,
    ty: DataType,
) -> Result<Value> {
    match (left, right) {
        (Value::Float(a), Value::Float(b)) => float(op, *a, *b, ty),
        (Value::Integer(a), Value::Integer(b)) => match (left_ty, right_ty) {
            (DataType::Decimal { scale: s, .. }, DataType::Decimal { scale: t, .. }) => {
                decimal(op, *a, s, *b, t, ty)
            }
            (DataType::Date, DataType::Date) => Ok(Value::Integer(a - b)),
            (DataType::Timestamp | DataType::TimestampTz, DataType::Timestamp | DataType::TimestampTz) => {
                let (day, span) = (i128::from(MICROS_PER_DAY), a - b);
                let days = i32::try_from(span / day).map_err(|_| overflow(ty))?;
                Ok(Value::Interval(Interval { months: 0, days, micros: (span % day) as i64 }))
            }
            (DataType::Date, _) => match op {
                ArithmeticOp::Add => in_range(a + b, ty),
                _ => in_range(a - b, ty),
            },
            _ => integer(op, *a, *b, ty),
        },
        (Value::Interval(a), Value::Interval(b)) => {
            let b = if op == ArithmeticOp::Subtract { negate(*b) } else { *b };
            let sum = || {
                Some(Interval {
                    months: a.months.checked_add(b.months)?,
                    days: a.days.checked_add(b.days)?,
                    micros: a.micros.checked_add(b.micros)?,
                })
            };
            sum().map(Value::Interval).ok_or_else(|| overflow(ty))
        }
        (Value::Interval(a), Value::Integer(n)) => {
            let product = || {
                Some(Interval {
                    months: i32::try_from(i128::from(a.months).checked_mul(*n)?).ok()?,
                    days: i32::try_from(i128::from(a.days).checked_mul(*n)?).ok()?,
                    micros: i64::try_from(i128::from(a.micros).checked_mul(*n)?).ok()?,
                })
            };
            product().map(Value::Interval).ok_or_else(|| overflow(ty))
        }
        (Value::Integer(at), Value::Interval(span)) => {
            let span = if op == ArithmeticOp::Subtract { negate(*span) } else { *span };
            shift(*at, left_ty, span, ty)
        }
        _ => Err(Error::not_supported(format!("{left_ty} {op:?} {right_ty} in the reference"))),
    }
}

fn negate(v: Interval) -> Interval {
    Interval { months: -v.months, days: -v.days, micros: -v.micros }
}

fn integer(op: ArithmeticOp, a: i128, b: i128, ty: DataType) -> Result<Value> {
    let width = 8 * ty.physical().width() as u32;
    let signed = matches!(ty.integer_range(), Some((low, _)) if low < 0);
    // The low `width` bits, reinterpreted as a number of this type.
    let wrapped = |v: i128| {
        let low = v & ((1i128 << width) - 1);
        if signed && low >> (width - 1) == 1 { low - (1i128 << width) } else { low }
    };
    let shift = b.rem_euclid(i128::from(width)) as u32;
    match op {
        ArithmeticOp::Divide | ArithmeticOp::Modulo if b == 0 => Err(Error::input("division by zero")),
        ArithmeticOp::Add => in_range(a + b, ty),
        ArithmeticOp::Subtract => in_range(a - b, ty),
        ArithmeticOp::Multiply => in_range(a.checked_mul(b).ok_or_else(|| overflow(ty))?, ty),
        ArithmeticOp::Divide => in_range(a / b, ty),
        ArithmeticOp::Modulo => in_range(a % b, ty),
        ArithmeticOp::BitAnd => Ok(Value::Integer(a & b)),
        ArithmeticOp::BitOr => Ok(Value::Integer(a | b)),
        ArithmeticOp::BitXor => Ok(Value::Integer(wrapped(a ^ b))),
        ArithmeticOp::ShiftLeft => Ok(Value::Integer(wrapped(a << shift))),
        ArithmeticOp::ShiftRight => Ok(Value::Integer(a >> shift)),
    }
}

fn float(op: ArithmeticOp, a: f64, b: f64, ty: DataType) -> Result<Value> {
    let exact = match op {
        ArithmeticOp::Divide | ArithmeticOp::Modulo if b == 0.0 => {
            return Err(Error::input("division by zero"));
        }
        ArithmeticOp::Add => a + b,
        ArithmeticOp::Subtract => a - b,
        ArithmeticOp::Multiply => a * b,
        ArithmeticOp::Divide => a / b,
        ArithmeticOp::Modulo => a % b,
        _ => return Err(Error::not_supported("bit operations on floats")),
    };
    // One operation on two REALs, computed in DOUBLE and rounded once, gives the REAL result.
    Ok(Value::Float(if ty == DataType::Float32 { f64::from(exact as f32) } else { exact }))
}

fn decimal(op: ArithmeticOp, a: i128, a_scale: u8, b: i128, b_scale: u8, ty: DataType) -> Result<Value> {
    if op == ArithmeticOp::Multiply {
        return in_range(a.checked_mul(b).ok_or_else(|| overflow(ty))?, ty);
    }
    let scale = a_scale.max(b_scale);
    let a = a.checked_mul(pow10(scale - a_scale)).ok_or_else(|| overflow(ty))?;
    let b = b.checked_mul(pow10(scale - b_scale)).ok_or_else(|| overflow(ty))?;
    let result = match op {
        ArithmeticOp::Add => a.checked_add(b),
        ArithmeticOp::Subtract => a.checked_sub(b),
        ArithmeticOp::Modulo if b == 0 => return Err(Error::input("division by zero")),
        ArithmeticOp::Modulo => a.checked_rem(b),
        _ => return Err(Error::not_supported(format!("{op:?} of decimals in the reference"))),
    };
    in_range(result.ok_or_else(|| overflow(ty))?, ty)
}

/// A date, time or timestamp plus an interval: first months, clipped to the length of the month, then days,
/// then the rest.
fn shift(at: i128, at_ty: DataType, span: Interval, ty: DataType) -> Result<Value> {
    let day = i128::from(MICROS_PER_DAY);
    if at_ty == DataType::Time {
        return Ok(Value::Integer((at + i128::from(span.micros)).rem_euclid(day)));
    }
    let (date, time) =
        if at_ty == DataType::Date { (at, 0) } else { (at.div_euclid(day), at.rem_euclid(day)) };
    let date = i64::try_from(date).map_err(|_| overflow(ty))?;
    let date = i128::from(add_months(date, span.months)) + i128::from(span.days);
    in_range(date * day + time + i128::from(span.micros), ty)
}

fn add_months(date: i64, months: i32) -> i64 {
    let (year, month, day) = civil_from_days(date);
    let count = year * 12 + i64::from(month) - 1 + i64::from(months);
    let (year, month) = (count.div_euclid(12), count.rem_euclid(12) as u32 + 1);
    days_from_civil(year, month, day.min(month_length(year, month)))
}

// ---- text -------------------------------------------------------------------------------------------------

/// `%` matches any text, `_` any character; the character after the escape matches itself.
fn like(text: &[char], pattern: &[char], escape: char, same: &impl Fn(char, char) -> bool) -> bool {
    match pattern {
        [] => text.is_empty(),
        [c, literal, rest @ ..] if *c == escape => {
            text.first().is_some_and(|c| same(*c, *literal)) && like(&text[1..], rest, escape, same)
        }
        ['%', rest @ ..] => (0..=text.len()).any(|skip| like(&text[skip..], rest, escape, same)),
        ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest, escape, same),
        [c, rest @ ..] => {
            text.first().is_some_and(|own| same(*own, *c)) && like(&text[1..], rest, escape, same)
        }
    }
}

/// Characters `start` to `start + count - 1`, counted from 1; positions outside the text are empty.
fn substring(text: &str, start: i128, count: Option<i128>) -> Result<Value> {
    if count.is_some_and(|count| count < 0) {
        return Err(Error::input("negative substring length"));
    }
    let end = count.map_or(i128::MAX, |count| start.saturating_add(count));
    let inside = text.chars().zip(1i128..).filter(|(_, at)| (start..end).contains(at));
    Ok(Value::Text(inside.map(|(c, _)| c).collect::<String>().into()))
}

// ---- functions --------------------------------------------------------------------------------------------

fn native(function: Function, args: &[Value], types: &[DataType], ty: DataType) -> Result<Value> {
    let text = |i: usize| match &args[i] {
        Value::Text(text) => Ok::<Arc<str>, Error>(text.clone()),
        other => Err(unexpected("VARCHAR", other)),
    };
    let number = |i: usize| match &args[i] {
        Value::Float(v) => Ok(*v),
        other => Err(unexpected("DOUBLE", other)),
    };
    let whole = |i: usize| match &args[i] {
        Value::Integer(v) => Ok(*v),
        other => Err(unexpected("BIGINT", other)),
    };
    Ok(match function {
        Function::Extract(part) => extract(part, &args[0], types[0], ty)?,
        Function::Truncate(part) => truncate(part, whole(0)?, types[0], ty)?,
        Function::Substring => {
            substring(&text(0)?, whole(1)?, if args.len() > 2 { Some(whole(2)?) } else { None })?
        }
        Function::CharLength => Value::Integer(text(0)?.chars().count() as i128),
        Function::OctetLength => match &args[0] {
            Value::Bytes(bytes) => Value::Integer(bytes.len() as i128),
            _ => Value::Integer(text(0)?.len() as i128),
        },
        Function::Upper => Value::Text(text(0)?.to_uppercase().into()),
        Function::Lower => Value::Text(text(0)?.to_lowercase().into()),
        Function::Concat => {
            let mut all = String::new();
            for i in 0..args.len() {
                all.push_str(&text(i)?);
            }
            Value::Text(all.into())
        }
        Function::StartsWith => Value::Boolean(text(0)?.starts_with(&*text(1)?)),
        Function::EndsWith => Value::Boolean(text(0)?.ends_with(&*text(1)?)),
        Function::Contains => Value::Boolean(text(0)?.contains(&*text(1)?)),
        Function::Abs => match &args[0] {
            Value::Integer(v) => in_range(v.abs(), ty)?,
            _ => Value::Float(number(0)?.abs()),
        },
        Function::Saturate => {
            let scale =
                |ty: DataType| if let DataType::Decimal { scale, .. } = ty { u32::from(scale) } else { 0 };
            let scaled = 10i128.pow(scale(ty) - scale(types[0])).saturating_mul(whole(0)?);
            Value::Integer(scaled.clamp(-10i128.pow(38), 10i128.pow(38)))
        }
        Function::Floor => Value::Float(number(0)?.floor()),
        Function::Ceil => Value::Float(number(0)?.ceil()),
        Function::Sqrt if number(0)? < 0.0 => return Err(Error::input("square root of a negative number")),
        Function::Sqrt => Value::Float(number(0)?.sqrt()),
    })
}

/// Day number and microseconds of the day of a date, time or timestamp.
fn split(at: i128, ty: DataType) -> (i64, i64) {
    let day = i128::from(MICROS_PER_DAY);
    match ty {
        DataType::Date => (at as i64, 0),
        DataType::Time => (0, at as i64),
        _ => (at.div_euclid(day) as i64, at.rem_euclid(day) as i64),
    }
}

/// 1 = Monday … 7 = Sunday. 1970-01-01 was a Thursday.
fn iso_weekday(date: i64) -> i64 {
    (date + 3).rem_euclid(7) + 1
}

/// Week 1 is the week with the year's first Thursday.
fn iso_week(date: i64) -> i64 {
    let thursday = date + 4 - iso_weekday(date);
    let (year, ..) = civil_from_days(thursday);
    (thursday - days_from_civil(year, 1, 1)) / 7 + 1
}

fn extract(part: DatePart, value: &Value, from: DataType, ty: DataType) -> Result<Value> {
    let at = match value {
        Value::Integer(at) => *at,
        Value::Interval(span) => return extract_interval(part, *span),
        other => return Err(unexpected("a date", other)),
    };
    let (date, time) = split(at, from);
    let (year, month, day) = civil_from_days(date);
    let field = match part {
        DatePart::Epoch => {
            let micros = i128::from(date) * i128::from(MICROS_PER_DAY) + i128::from(time);
            return Ok(Value::Float(micros as f64 / 1e6));
        }
        DatePart::Century if year > 0 => (year + 99) / 100,
        DatePart::Century => return Err(Error::not_supported("centuries BC in the reference")),
        DatePart::Millennium | DatePart::IsoYear | DatePart::YearWeek | DatePart::Era => {
            return Err(Error::not_supported(format!("{part:?} in the reference")));
        }
        DatePart::Decade => year.div_euclid(10),
        DatePart::Year => year,
        DatePart::Quarter => i64::from(month + 2) / 3,
        DatePart::Month => i64::from(month),
        DatePart::Week => iso_week(date),
        DatePart::Day => i64::from(day),
        DatePart::DayOfWeek => iso_weekday(date) % 7,
        DatePart::IsoDayOfWeek => iso_weekday(date),
        DatePart::DayOfYear => date - days_from_civil(year, 1, 1) + 1,
        _ => time_field(part, time),
    };
    Ok(if ty.is_float() { Value::Float(field as f64) } else { Value::Integer(field.into()) })
}

fn time_field(part: DatePart, micros: i64) -> i64 {
    match part {
        DatePart::Hour => micros / 3_600_000_000,
        DatePart::Minute => micros / 60_000_000 % 60,
        DatePart::Second => micros / 1_000_000 % 60,
        DatePart::Millisecond => micros % 60_000_000 / 1000,
        _ => micros % 60_000_000,
    }
}

fn extract_interval(part: DatePart, span: Interval) -> Result<Value> {
    let field = match part {
        DatePart::Year => i64::from(span.months / 12),
        DatePart::Month => i64::from(span.months % 12),
        DatePart::Day => i64::from(span.days),
        DatePart::Hour => span.micros / 3_600_000_000,
        DatePart::Minute | DatePart::Second | DatePart::Millisecond | DatePart::Microsecond => {
            time_field(part, span.micros)
        }
        _ => return Err(Error::not_supported(format!("{part:?} of an interval in the reference"))),
    };
    Ok(Value::Integer(field.into()))
}

fn truncate(part: DatePart, at: i128, from: DataType, ty: DataType) -> Result<Value> {
    let (date, time) = split(at, from);
    let (year, month, _) = civil_from_days(date);
    let (date, time) = match part {
        DatePart::Century if year > 0 => (days_from_civil((year - 1) / 100 * 100 + 1, 1, 1), 0),
        DatePart::Decade => (days_from_civil(year.div_euclid(10) * 10, 1, 1), 0),
        DatePart::Year => (days_from_civil(year, 1, 1), 0),
        DatePart::Quarter => (days_from_civil(year, (month - 1) / 3 * 3 + 1, 1), 0),
        DatePart::Month => (days_from_civil(year, month, 1), 0),
        DatePart::Week => (date + 1 - iso_weekday(date), 0),
        DatePart::Day => (date, 0),
        DatePart::Hour => (date, time - time % 3_600_000_000),
        DatePart::Minute => (date, time - time % 60_000_000),
        DatePart::Second => (date, time - time % 1_000_000),
        DatePart::Millisecond => (date, time - time % 1000),
        DatePart::Microsecond => (date, time),
        _ => return Err(Error::not_supported(format!("truncation to {part:?} in the reference"))),
    };
    Ok(Value::Integer(match ty {
        DataType::Date => date.into(),
        DataType::Time => time.into(),
        _ => i128::from(date) * i128::from(MICROS_PER_DAY) + i128::from(time),
    }))
}

/// The place of a column among those of a row.
pub(super) fn position(columns: &[ColumnId], id: ColumnId) -> Result<usize> {
    columns
        .iter()
        .position(|c| *c == id)
        .ok_or_else(|| Error::internal(format!("no column {id} in the input")))
}

// ---- one-row vectors, for functions of other libraries ----------------------------------------------------

/// A vector with `value` at its only position.
pub(super) fn one_row(value: &Value, ty: DataType) -> Result<Vector> {
    let value = match value {
        Value::Integer(bits) if ty == DataType::Uuid => {
            Value::Integer(entasis_vector::vector::uuid_to_ordered(*bits))
        }
        other => other.clone(),
    };
    Vector::from_values(ty.physical(), &[value])
}

/// The result of a library function for one row.
fn call(
    function: &dyn entasis_vector::expr::ExternalFunction,
    args: &[(Value, DataType)],
    ty: DataType,
) -> Result<Value> {
    let vectors = args.iter().map(|(value, ty)| one_row(value, *ty)).collect::<Result<Vec<_>>>()?;
    let mut out = Vector::new(ty.physical());
    function.evaluate(&vectors, 1, &mut out)?;
    Ok(out.value(0, ty))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Row<'static> = Row { columns: &[], values: &[] };

    fn value(expr: Expr) -> Value {
        evaluate(&expr, NOTHING).expect("no error")
    }

    fn int(v: i128) -> Expr {
        Expr::literal(Value::Integer(v), DataType::Int32)
    }

    fn null() -> Expr {
        Expr::literal(Value::Null, DataType::Boolean)
    }

    #[test]
    fn logic_has_three_values() {
        let (t, f) = (Expr::boolean(true), Expr::boolean(false));
        assert_eq!(value(Expr::And(vec![null(), f.clone()])), Value::Boolean(false));
        assert_eq!(value(Expr::And(vec![null(), t.clone()])), Value::Null);
        assert_eq!(value(Expr::Or(vec![null(), t])), Value::Boolean(true));
        assert_eq!(value(Expr::Or(vec![null(), f])), Value::Null);
        assert_eq!(value(Expr::Not(Box::new(null()))), Value::Null);
    }

    #[test]
    fn integers_overflow_and_divide_toward_zero() {
        let arithmetic = |op, a, b| {
            let (left, right) = (Box::new(int(a)), Box::new(int(b)));
            evaluate(&Expr::Arithmetic { op, left, right, ty: DataType::Int32 }, NOTHING)
        };
        assert_eq!(arithmetic(ArithmeticOp::Divide, -7, 2).expect("fits"), Value::Integer(-3));
        assert_eq!(arithmetic(ArithmeticOp::Modulo, -7, 2).expect("fits"), Value::Integer(-1));
        assert_eq!(
            arithmetic(ArithmeticOp::ShiftLeft, 1, 31).expect("wraps"),
            Value::Integer(i32::MIN.into())
        );
        assert!(arithmetic(ArithmeticOp::Divide, 1, 0).is_err());
        assert!(arithmetic(ArithmeticOp::Add, i32::MAX.into(), 1).is_err());
        assert!(arithmetic(ArithmeticOp::Divide, i32::MIN.into(), -1).is_err());
    }

    #[test]
    fn patterns_match_characters() {
        let matches = |text: &str, pattern: &str| {
            let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
            like(&text, &pattern, '\\', &|a, b| a == b)
        };
        assert!(
            matches("größe", "gr__e")
                && matches("", "%")
                && matches("a%b", r"a\%b")
                && matches("abcbc", "%bc")
        );
        assert!(!matches("größe", "gr___e") && !matches("ab", "b%") && !matches("axb", r"a\%b"));
    }

    #[test]
    fn months_are_clipped_and_weeks_are_iso() {
        let leap_day = days_from_civil(2024, 2, 29);
        assert_eq!(add_months(leap_day, 12), days_from_civil(2025, 2, 28));
        assert_eq!(add_months(days_from_civil(2024, 1, 31), 1), leap_day);
        assert_eq!(iso_week(days_from_civil(2021, 1, 3)), 53);
        assert_eq!(iso_week(days_from_civil(2024, 12, 30)), 1);
        assert_eq!(iso_weekday(days_from_civil(2024, 2, 29)), 4);
    }

    #[test]
    fn substrings_may_start_before_the_text() {
        assert_eq!(substring("hello", 0, Some(3)).expect("valid"), Value::Text("he".into()));
        assert_eq!(substring("hello", -1, None).expect("valid"), Value::Text("hello".into()));
        assert_eq!(substring("hello", 4, Some(9)).expect("valid"), Value::Text("lo".into()));
        assert!(substring("hello", 1, Some(-1)).is_err());
    }
}
