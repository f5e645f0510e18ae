//! Constant folding at binding time: results of operations on literals, and literals in the type of the
//! column with which they are compared.
//!
//! Nothing is folded for which the engine might behave differently: a conversion that rounds, overflows or
//! fails stays in the plan, so that its error is raised only for rows that reach it.

use entasis_vector::expr::calendar::{add_interval, midnight, nanos_of, negate_interval};
use entasis_vector::expr::moment_text::parse_timestamp;
use entasis_vector::expr::{ArithmeticOp, CompareOp, Expr, evaluate_constant, parse_value};
use entasis_vector::time_tz;
use entasis_vector::types::{MICROS_PER_DAY, pow10};
use entasis_vector::{DataType, Interval, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// `value` of type `from` converted to type `to`, if that loses nothing and cannot fail.
pub fn cast(value: &Value, from: DataType, to: DataType) -> Option<Value> {
    if from == to {
        return Some(value.clone());
    }
    match value {
        Value::Null => Some(Value::Null),
        Value::Text(_) if to.is_nested() && to.contains(DataType::TimestampTz) => None,
        Value::Text(text) if from == DataType::Varchar => parse(text, to),
        // Blobs are written with escapes, floats in several ways.
        Value::Float(_) if to == DataType::Varchar => None,
        Value::Bytes(_) if to == DataType::Varchar && !from.is_nested() => None,
        _ if from.contains(DataType::TimestampTz) => None,
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

/// `value` of type `from` as a column of type `to` stores it; `None` if that is an error, or depends on more
/// than the value, such as the session's time zone.
pub fn convert(value: &Value, from: DataType, to: DataType) -> Option<Value> {
    cast(value, from, to).or_else(|| {
        let depends = [from, to].iter().any(|ty| ty.contains(DataType::TimestampTz));
        let input = Box::new(Expr::literal(value.clone(), from));
        let conversion = Expr::Cast { input, ty: to, lenient: false };
        if depends { None } else { evaluate_constant(&conversion).ok() }
    })
}

/// Number of decimals of a numeric type; `None` for other types.
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

/// An unscaled integer converted to another scale, if no digit is lost.
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
            // Both are exact, so that the quotient is rounded only once.
            (value.unsigned_abs() < 1 << 53 && scale <= 22)
                .then(|| Value::Float(value as f64 / pow10(scale) as f64))
        }
        (DataType::Time, DataType::TimeTz) => {
            in_range(time_tz::pack(i64::try_from(value).ok()?, 0).into(), to)
        }
        // Conversions of a TIMESTAMPTZ depend on the session's time zone, which is applied later.
        (DataType::Timestamp, DataType::TimestampNs) => {
            in_range(nanos_of(i64::try_from(value).ok()?)?.into(), to)
        }
        (DataType::Date, DataType::Timestamp) => in_range(value.checked_mul(MICROS_PER_DAY.into())?, to),
        (DataType::Timestamp, DataType::Date) if value % i128::from(MICROS_PER_DAY) == 0 => {
            in_range(value / i128::from(MICROS_PER_DAY), to)
        }
        _ => None,
    }
}

/// Parses a text, if its value is unambiguous.
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
        // Without an offset, the value depends on the session's time zone.
        DataType::TimestampTz => match parse_timestamp(trimmed.as_bytes())? {
            (micros, true) => Some(Value::Integer(micros.into())),
            (_, false) => None,
        },
        DataType::Date
        | DataType::Time
        | DataType::TimeTz
        | DataType::Timestamp
        | DataType::TimestampNs
        | DataType::Interval => parse_value(text, to).ok(),
        DataType::Uuid => {
            let digits: String = trimmed.chars().filter(|c| *c != '-').collect();
            let bits = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
            Some(Value::Integer(bits as i128))
        }
        DataType::Enum(_) | DataType::Json => parse_value(text, to).ok(),
        _ if to.is_nested() => parse_value(text, to).ok(),
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
pub fn cast_expr(expr: Expr, ty: DataType, lenient: bool) -> Expr {
    if expr.ty() == ty {
        return expr;
    }
    if let Expr::Literal { value, ty: from } = &expr
        && let Some(value) = cast(value, *from, ty)
    {
        return Expr::literal(value, ty);
    }
    // A conversion between two types with the same representation may be merged with another one, a widening
    // may not.
    Expr::Cast { input: Box::new(expr), ty, lenient }
}

/// `left op right`, with the literal on the right and converted to the type of the other operand if it is
/// exactly representable there. An integer parameter is assumed to be.
pub fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
    let (op, left, right) = match (&left, &right) {
        (Expr::Literal { value: a, .. }, Expr::Literal { value: b, .. }) => {
            return match compare_values(op, a, b, left.ty()) {
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

/// True if a cast is injective and preserves order, so that values can be compared before it.
pub fn is_embedding(from: DataType, to: DataType) -> bool {
    match (from, to) {
        (DataType::Decimal { precision: p, scale: s }, DataType::Decimal { precision, scale }) => {
            scale >= s && precision - scale >= p - s
        }
        (DataType::Date, DataType::Timestamp) => true,
        (DataType::Float32, DataType::Float64) => true,
        _ if from.is_integer() => match (from.integer_range(), to) {
            (Some((low, high)), DataType::Decimal { precision, scale }) => {
                let bound = pow10(precision - scale);
                low > -bound && high < bound
            }
            (Some((low, high)), DataType::Float64) => low >= -(1 << 53) && high <= 1 << 53,
            (Some((low, high)), _) if to.is_integer() => {
                to.integer_range().is_some_and(|(l, h)| l <= low && high <= h)
            }
            _ => false,
        },
        _ => false,
    }
}

fn compare_values(op: CompareOp, a: &Value, b: &Value, ty: DataType) -> Option<Value> {
    let order = a.cmp_in(b, ty);
    match op {
        CompareOp::DistinctFrom => return Some(Value::Boolean(order != Ordering::Equal)),
        CompareOp::NotDistinctFrom => return Some(Value::Boolean(order == Ordering::Equal)),
        _ if a.is_null() || b.is_null() => return Some(Value::Null),
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
pub fn arithmetic(op: ArithmeticOp, left: Expr, right: Expr, ty: DataType) -> Expr {
    if let (Expr::Literal { value: a, ty: left_ty }, Expr::Literal { value: b, ty: right_ty }) =
        (&left, &right)
    {
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

fn compute(
    op: ArithmeticOp,
    left: (&Value, DataType),
    right: (&Value, DataType),
    ty: DataType,
) -> Option<Value> {
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
            let span = match op {
                ArithmeticOp::Add => *span,
                ArithmeticOp::Subtract => negate_interval(*span)?,
                _ => return None,
            };
            shift(*date, left.1, span, ty)
        }
        _ => None,
    }
}

/// A date or timestamp plus an interval. For a TIMESTAMPTZ this depends on the session's time zone, which is
/// applied later.
fn shift(value: i128, from: DataType, span: Interval, ty: DataType) -> Option<Value> {
    let at = match from {
        DataType::Date => midnight(i32::try_from(value).ok()?)?,
        DataType::Timestamp => i64::try_from(value).ok()?,
        _ => return None,
    };
    in_range(add_interval(at, span)?.into(), ty)
}

/// `-x`
pub fn negate(input: Expr) -> Expr {
    if let Expr::Literal { value, ty } = &input {
        let value = match value {
            Value::Null => Some(Value::Null),
            Value::Integer(v) => in_range(-v, *ty),
            Value::Float(v) => Some(Value::Float(-v)),
            Value::Interval(v) => negate_interval(*v).map(Value::Interval),
            _ => None,
        };
        if let Some(value) = value {
            return Expr::literal(value, *ty);
        }
    }
    Expr::Negate(Box::new(input))
}

/// `NOT x`
pub fn not(input: Expr) -> Expr {
    match input {
        Expr::Literal { value: Value::Boolean(v), .. } => Expr::boolean(!v),
        Expr::Literal { value: Value::Null, .. } => Expr::literal(Value::Null, DataType::Boolean),
        Expr::Not(inner) => *inner,
        other => Expr::Not(Box::new(other)),
    }
}

/// The disjunction of any number of conditions; nested ones are flattened, FALSE is dropped.
pub fn or(conditions: impl IntoIterator<Item = Expr>) -> Expr {
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
        assert_eq!(
            text("1996-02-29 23:59:59.5", DataType::Timestamp).as_deref(),
            Some("1996-02-29 23:59:59.5")
        );
        assert_eq!(text("300", DataType::UInt8), None);
        assert_eq!(text("a\\xFF", DataType::Blob).as_deref(), Some("a\\xFF"));
        let uuid = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
        assert_eq!(text(uuid, DataType::Uuid).as_deref(), Some(uuid));
    }

    #[test]
    fn months_clip_the_day() {
        let moment = |text: &str| parse(text, DataType::Timestamp).unwrap();
        let add = |text: &str, months| {
            let Some(Value::Integer(days)) = parse(text, DataType::Date) else { panic!() };
            shift(days, DataType::Date, Interval { months, days: 0, micros: 0 }, DataType::Timestamp).unwrap()
        };
        assert_eq!(add("2024-01-31", 1), moment("2024-02-29"));
        assert_eq!(add("1998-12-01", -3), moment("1998-09-01"));
        assert_eq!(add("1994-01-01", 12), moment("1995-01-01"));
    }

    #[test]
    fn a_literal_takes_the_type_of_the_column() {
        let narrow = DataType::Decimal { precision: 15, scale: 2 };
        let wide = DataType::Decimal { precision: 22, scale: 2 };
        let column = Expr::column(entasis_vector::ColumnId(0), narrow);
        let literal = |v| Expr::literal(Value::Integer(v), wide);
        let made = compare(CompareOp::Gt, literal(2400), cast_expr(column.clone(), wide, false));
        let expected =
            Expr::compare(CompareOp::Lt, column.clone(), Expr::literal(Value::Integer(2400), narrow));
        assert_eq!(made, expected);
        let huge = literal(pow10(20));
        let kept = compare(CompareOp::Lt, cast_expr(column, wide, false), huge);
        assert!(matches!(kept, Expr::Compare { left, .. } if matches!(*left, Expr::Cast { .. })));
    }
}
