//! Constants at binding time: what two literals give, and literals in the type of the column they are compared with.
//!
//! Nothing is folded that the engine might do differently: a conversion that rounds, overflows or fails stays in the
//! plan, and so does its error, which is raised only for rows that reach it.

use entasis_vector::expr::{ArithmeticOp, CompareOp, Expr};
use entasis_vector::types::{MICROS_PER_DAY, pow10};
use entasis_vector::value::{civil_from_days, days_from_civil};
use entasis_vector::{DataType, Interval, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// `value` of type `from` in type `to`, if that loses nothing and cannot fail.
pub(super) fn cast(value: &Value, from: DataType, to: DataType) -> Option<Value> {
    if from == to {
        return Some(value.clone());
    }
    match value {
        Value::Null => Some(Value::Null),
        Value::Text(text) if from == DataType::Varchar => parse(text, to),
        // Blobs print through an escape, floats in several ways.
        Value::Bytes(_) | Value::Float(_) if to == DataType::Varchar => None,
        _ if to == DataType::Varchar => Some(Value::Text(Arc::from(value.display(from).to_string()))),
        Value::Integer(v) => cast_integer(*v, from, to),
        Value::Float(v) => match to {
            DataType::Float64 => Some(Value::Float(*v)),
            DataType::Float32 if f64::from(*v as f32) == *v => Some(Value::Float(*v)),
            _ => None,
        },
        _ => None,
    }
}

/// Decimal digits after the point of a number type; `None` for other types.
fn scale(ty: DataType) -> Option<u8> {
    match ty {
        DataType::Decimal { scale, .. } => Some(scale),
        _ if ty.is_integer() => Some(0),
        _ => None,
    }
}

fn in_range(value: i128, ty: DataType) -> Option<Value> {
    let (low, high) = ty.integer_range()?;
    (low..=high).contains(&value).then_some(Value::Integer(value))
}

/// An unscaled integer at another scale, if no digit is lost.
fn rescale(value: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return value.checked_mul(pow10(to - from));
    }
    let unit = pow10(from - to);
    (value % unit == 0).then_some(value / unit)
}

fn cast_integer(value: i128, from: DataType, to: DataType) -> Option<Value> {
    if let (Some(from), Some(scale)) = (scale(from), scale(to)) {
        return in_range(rescale(value, from, scale)?, to);
    }
    match (from, to) {
        (_, DataType::Float64) => {
            let scale = scale(from)?;
            // Both exact, so that the quotient is rounded once.
            (value.unsigned_abs() < 1 << 53 && scale <= 22).then(|| Value::Float(value as f64 / pow10(scale) as f64))
        }
        (DataType::Date, DataType::Timestamp | DataType::TimestampTz) => {
            in_range(value.checked_mul(MICROS_PER_DAY.into())?, to)
        }
        (DataType::Timestamp, DataType::TimestampTz) | (DataType::TimestampTz, DataType::Timestamp) => {
            Some(Value::Integer(value))
        }
        (DataType::Timestamp, DataType::Date) if value % i128::from(MICROS_PER_DAY) == 0 => {
            in_range(value / i128::from(MICROS_PER_DAY), to)
        }
        _ => None,
    }
}

/// A text as a value, if it is one beyond doubt.
fn parse(text: &str, to: DataType) -> Option<Value> {
    let trimmed = text.trim();
    match to {
        _ if to.is_integer() => in_range(trimmed.parse().ok()?, to),
        DataType::Decimal { scale, .. } => in_range(parse_decimal(trimmed, scale)?, to),
        DataType::Float64 if trimmed.bytes().all(|b| b.is_ascii_digit() || b".-+eE".contains(&b)) => {
            Some(Value::Float(trimmed.parse().ok()?))
        }
        DataType::Boolean => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(Value::Boolean(true)),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        DataType::Date => parse_date(trimmed).map(|days| Value::Integer(days.into())),
        DataType::Timestamp => {
            let (date, time) = match trimmed.split_once([' ', 'T']) {
                Some((date, time)) => (parse_date(date)?, parse_time(time)?),
                None => (parse_date(trimmed)?, 0),
            };
            Some(Value::Integer(i128::from(date) * i128::from(MICROS_PER_DAY) + i128::from(time)))
        }
        DataType::Time => parse_time(trimmed).map(|micros| Value::Integer(micros.into())),
        DataType::Uuid => {
            let digits: String = trimmed.chars().filter(|c| *c != '-').collect();
            let bits = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
            Some(Value::Integer(bits as i128))
        }
        DataType::Blob => parse_blob(text).map(|bytes| Value::Bytes(bytes.into())),
        _ => None,
    }
}

/// `-12.345` as an unscaled integer, if it has at most `scale` decimals.
fn parse_decimal(text: &str, scale: u8) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if !all_digits || whole.len() + fraction.len() == 0 || fraction.len() > usize::from(scale) {
        return None;
    }
    let value: i128 = format!("{whole}{fraction}").parse().ok()?;
    let value = value.checked_mul(pow10(scale - fraction.len() as u8))?;
    Some(if negative { -value } else { value })
}

/// `2024-02-29`
fn parse_date(text: &str) -> Option<i32> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 || ![month, day].iter().all(|part| matches!(part.len(), 1 | 2)) {
        return None;
    }
    let number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<u32>().ok()).flatten();
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    if !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let days = days_from_civil(year.into(), month, day);
    (civil_from_days(days) == (year.into(), month, day)).then_some(days as i32)
}

/// `23:59[:59[.123456]]` in microseconds.
fn parse_time(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let parts: Vec<&str> = clock.split(':').collect();
    if !(2..=3).contains(&parts.len()) || parts.iter().any(|p| p.len() != 2 || !p.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let number = |i: usize| parts.get(i).map_or(Some(0), |part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (number(0)?, number(1)?, number(2)?);
    if hours > 23 || minutes > 59 || seconds > 59 || fraction.len() > 6 {
        return None;
    }
    let micros: i64 = match fraction {
        "" => 0,
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => format!("{digits:0<6}").parse().ok()?,
        _ => return None,
    };
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)
}

/// `ab\xFF` as bytes.
fn parse_blob(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = match first {
            b'\\' => {
                let digits = tail.strip_prefix(b"x")?.get(..2)?;
                bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                &tail[3..]
            }
            0..=127 => {
                bytes.push(first);
                tail
            }
            _ => return None,
        };
    }
    Some(bytes)
}

/// `expr` as `ty`: itself, a literal of that type, or a cast.
pub(super) fn cast_expr(expr: Expr, ty: DataType, lenient: bool) -> Expr {
    if expr.ty() == ty {
        return expr;
    }
    if let Expr::Literal { value, ty: from } = &expr
        && let Some(value) = cast(value, *from, ty)
    {
        return Expr::literal(value, ty);
    }
    // A conversion between two names of the same bytes may be done twice as well as once, a widening may not.
    Expr::Cast { input: Box::new(expr), ty, lenient }
}

/// `left op right`, with the literal on the right and in the type of what it is compared with, where it has that value. An
/// integer parameter is expected to have it.
pub(super) fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
    let (op, left, right) = match (&left, &right) {
        (Expr::Literal { value: a, .. }, Expr::Literal { value: b, .. }) => {
            return match compare_values(op, a, b) {
                Some(value) => Expr::literal(value, DataType::Boolean),
                None => Expr::compare(op, left, right),
            };
        }
        (Expr::Literal { .. } | Expr::Parameter { .. }, _) => (op.mirrored(), right, left),
        _ => (op, left, right),
    };
    if let (Expr::Cast { input, ty, lenient: false }, &Expr::Parameter { index, .. }) = (&left, &right)
        && input.ty().is_integer()
        && ty.is_integer()
        && is_embedding(input.ty(), *ty)
    {
        let own = input.ty();
        let Expr::Cast { input, .. } = left else { return Expr::compare(op, left, right) };
        return Expr::compare(op, *input, Expr::Parameter { index, ty: own });
    }
    if let (Expr::Cast { input, ty, lenient: false }, Expr::Literal { value, ty: literal }) = (&left, &right)
        && is_embedding(input.ty(), *ty)
        && let Some(value) = cast(value, *literal, input.ty())
    {
        let own = input.ty();
        let Expr::Cast { input, .. } = left else { return Expr::compare(op, left, right) };
        return Expr::compare(op, *input, Expr::literal(value, own));
    }
    Expr::compare(op, left, right)
}

/// True if a cast maps values one to one and in order, so that a comparison may be made before it.
pub(super) fn is_embedding(from: DataType, to: DataType) -> bool {
    match (from, to) {
        (DataType::Decimal { precision: p, scale: s }, DataType::Decimal { precision, scale }) => {
            scale >= s && precision - scale >= p - s
        }
        (DataType::Date, DataType::Timestamp | DataType::TimestampTz) => true,
        (DataType::Float32, DataType::Float64) => true,
        _ if from.is_integer() => match (from.integer_range(), to) {
            (Some((low, high)), DataType::Decimal { precision, scale }) => {
                let bound = pow10(precision - scale);
                low > -bound && high < bound
            }
            (Some((low, high)), DataType::Float64) => low >= -(1 << 53) && high <= 1 << 53,
            (Some((low, high)), _) if to.is_integer() => to.integer_range().is_some_and(|(l, h)| l <= low && high <= h),
            _ => false,
        },
        _ => false,
    }
}

fn compare_values(op: CompareOp, a: &Value, b: &Value) -> Option<Value> {
    let order = a.total_cmp(b);
    match op {
        CompareOp::DistinctFrom => return Some(Value::Boolean(order != Ordering::Equal)),
        CompareOp::NotDistinctFrom => return Some(Value::Boolean(order == Ordering::Equal)),
        _ if a.is_null() || b.is_null() => return Some(Value::Null),
        // The bits of a UUID are unsigned; leave those to the engine.
        _ if matches!((a, b), (Value::Integer(x), _) if *x < i128::from(i64::MIN)) => return None,
        _ => {}
    }
    Some(Value::Boolean(match op {
        CompareOp::Eq => order == Ordering::Equal,
        CompareOp::NotEq => order != Ordering::Equal,
        CompareOp::Lt => order == Ordering::Less,
        CompareOp::LtEq => order != Ordering::Greater,
        CompareOp::Gt => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}

/// `left op right` of type `ty`, computed if both are literals and nothing overflows.
pub(super) fn arithmetic(op: ArithmeticOp, left: Expr, right: Expr, ty: DataType) -> Expr {
    if let (Expr::Literal { value: a, ty: left_ty }, Expr::Literal { value: b, ty: right_ty }) = (&left, &right) {
        let value = match (a, b) {
            (Value::Null, _) | (_, Value::Null) => Some(Value::Null),
            _ => compute(op, (a, *left_ty), (b, *right_ty), ty),
        };
        if let Some(value) = value {
            return Expr::literal(value, ty);
        }
    }
    Expr::Arithmetic { op, left: Box::new(left), right: Box::new(right), ty }
}

fn compute(op: ArithmeticOp, left: (&Value, DataType), right: (&Value, DataType), ty: DataType) -> Option<Value> {
    match (left.0, right.0) {
        (Value::Integer(a), Value::Integer(b)) => {
            let (ls, rs, to) = (scale(left.1)?, scale(right.1)?, scale(ty)?);
            let value = match op {
                ArithmeticOp::Add => rescale(*a, ls, to)?.checked_add(rescale(*b, rs, to)?)?,
                ArithmeticOp::Subtract => rescale(*a, ls, to)?.checked_sub(rescale(*b, rs, to)?)?,
                ArithmeticOp::Multiply if ls + rs == to => a.checked_mul(*b)?,
                ArithmeticOp::Divide if ty.is_integer() => a.checked_div(*b)?,
                _ => return None,
            };
            in_range(value, ty)
        }
        (Value::Float(a), Value::Float(b)) if ty == DataType::Float64 => Some(Value::Float(match op {
            ArithmeticOp::Add => a + b,
            ArithmeticOp::Subtract => a - b,
            ArithmeticOp::Multiply => a * b,
            ArithmeticOp::Divide if *b != 0.0 => a / b,
            _ => return None,
        })),
        (Value::Integer(date), Value::Interval(span)) => {
            let sign = match op {
                ArithmeticOp::Add => 1,
                ArithmeticOp::Subtract => -1,
                _ => return None,
            };
            shift(*date, left.1, *span, sign, ty)
        }
        _ => None,
    }
}

/// A date or timestamp plus an interval.
fn shift(value: i128, from: DataType, span: Interval, sign: i128, ty: DataType) -> Option<Value> {
    let day = i128::from(MICROS_PER_DAY);
    let (days, micros) = match from {
        DataType::Date => (value, 0),
        DataType::Timestamp | DataType::TimestampTz => (value.div_euclid(day), value.rem_euclid(day)),
        _ => return None,
    };
    let (year, month, day_of_month) = civil_from_days(i64::try_from(days).ok()?);
    let months = i128::from(year) * 12 + i128::from(month) - 1 + sign * i128::from(span.months);
    let (year, month) = (i64::try_from(months.div_euclid(12)).ok()?, months.rem_euclid(12) as u32 + 1);
    let next = if month == 12 { days_from_civil(year + 1, 1, 1) } else { days_from_civil(year, month + 1, 1) };
    let first = days_from_civil(year, month, 1);
    let days = first + i64::from(day_of_month.min((next - first) as u32)) - 1;
    let days = i128::from(days) + sign * i128::from(span.days);
    match ty {
        DataType::Date => in_range(days, ty),
        DataType::Timestamp | DataType::TimestampTz => {
            in_range(days * day + micros + sign * i128::from(span.micros), ty)
        }
        _ => None,
    }
}

/// `-x`
pub(super) fn negate(input: Expr) -> Expr {
    if let Expr::Literal { value, ty } = &input {
        let value = match value {
            Value::Null => Some(Value::Null),
            Value::Integer(v) => in_range(-v, *ty),
            Value::Float(v) => Some(Value::Float(-v)),
            Value::Interval(v) => {
                Some(Value::Interval(Interval { months: -v.months, days: -v.days, micros: -v.micros }))
            }
            _ => None,
        };
        if let Some(value) = value {
            return Expr::literal(value, *ty);
        }
    }
    Expr::Negate(Box::new(input))
}

/// `NOT x`
pub(super) fn not(input: Expr) -> Expr {
    match input {
        Expr::Literal { value: Value::Boolean(v), .. } => Expr::boolean(!v),
        Expr::Literal { value: Value::Null, .. } => Expr::literal(Value::Null, DataType::Boolean),
        Expr::Not(inner) => *inner,
        other => Expr::Not(Box::new(other)),
    }
}

/// The disjunction of any number of conditions; nested ones are flattened, FALSE vanishes.
pub(super) fn or(conditions: impl IntoIterator<Item = Expr>) -> Expr {
    let mut flat = Vec::new();
    for condition in conditions {
        match condition {
            Expr::Or(parts) => flat.extend(parts),
            Expr::Literal { value: Value::Boolean(false), .. } => {}
            other => flat.push(other),
        }
    }
    match flat.len() {
        0 => Expr::boolean(false),
        1 => flat.remove(0),
        _ => Expr::Or(flat),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str, ty: DataType) -> Option<String> {
        cast(&Value::Text(value.into()), DataType::Varchar, ty).map(|v| v.display(ty).to_string())
    }

    #[test]
    fn texts_become_values_only_beyond_doubt() {
        let decimal = DataType::Decimal { precision: 5, scale: 2 };
        assert_eq!(text("-1.5", decimal).as_deref(), Some("-1.50"));
        assert_eq!(text("1.555", decimal), None, "would be rounded");
        assert_eq!(text("1000", decimal), None, "would overflow");
        assert_eq!(text("1995-02-29", DataType::Date), None);
        assert_eq!(text("1996-02-29", DataType::Date).as_deref(), Some("1996-02-29"));
        assert_eq!(text("1996-02-29 23:59:59.5", DataType::Timestamp).as_deref(), Some("1996-02-29 23:59:59.5"));
        assert_eq!(text("300", DataType::UInt8), None);
        assert_eq!(text("a\\xFF", DataType::Blob).as_deref(), Some("a\\xFF"));
        let uuid = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
        assert_eq!(text(uuid, DataType::Uuid).as_deref(), Some(uuid));
    }

    #[test]
    fn months_clip_the_day() {
        let date = |text: &str| parse(text, DataType::Date).unwrap();
        let add = |text: &str, months, sign| {
            let Value::Integer(days) = date(text) else { panic!() };
            shift(days, DataType::Date, Interval { months, days: 0, micros: 0 }, sign, DataType::Date).unwrap()
        };
        assert_eq!(add("2024-01-31", 1, 1), date("2024-02-29"));
        assert_eq!(add("1998-12-01", 3, -1), date("1998-09-01"));
        assert_eq!(add("1994-01-01", 12, 1), date("1995-01-01"));
    }

    #[test]
    fn a_literal_takes_the_type_of_the_column() {
        let narrow = DataType::Decimal { precision: 15, scale: 2 };
        let wide = DataType::Decimal { precision: 22, scale: 2 };
        let column = Expr::column(entasis_vector::ColumnId(0), narrow);
        let literal = |v| Expr::literal(Value::Integer(v), wide);
        let made = compare(CompareOp::Gt, literal(2400), cast_expr(column.clone(), wide, false));
        let expected = Expr::compare(CompareOp::Lt, column.clone(), Expr::literal(Value::Integer(2400), narrow));
        assert_eq!(made, expected);
        let huge = literal(pow10(20));
        let kept = compare(CompareOp::Lt, cast_expr(column, wide, false), huge);
        assert!(matches!(kept, Expr::Compare { left, .. } if matches!(*left, Expr::Cast { .. })));
    }
}
