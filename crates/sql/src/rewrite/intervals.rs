//! `INTERVAL` literals and `AT TIME ZONE` in a form that the binder interprets correctly.
//!
//! * `INTERVAL 'text' [unit [TO unit]]` is parsed here, by the engine's rules, and becomes a cast of the text
//!   that the engine prints for it.
//! * `INTERVAL (expr) unit` is the expression times one unit; for minutes and longer units, only its whole
//!   part.
//! * `x AT TIME ZONE zone` is `timezone(zone, x)`.

use entasis_syntax::build::{as_type, call};
use entasis_vector::expr::interval_text::{IntervalUnit, parse_qualified};
use entasis_vector::{DataType, Error, Result, Value as Constant};
use sqlparser::ast::{BinaryOperator, DateTimeField, Expr, Interval, UnaryOperator, Value};

/// Rewrites an expression, if it is one of these.
///
/// # Errors
/// Input, for a text that is not an interval and for unknown units.
pub(super) fn expression(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Interval(interval) => *expr = literal(interval)?,
        Expr::AtTimeZone { timestamp, time_zone } => {
            let nothing = || Expr::Value(Value::Null.into());
            let input = std::mem::replace(&mut **timestamp, nothing());
            let zone = std::mem::replace(&mut **time_zone, nothing());
            *expr = call("timezone", vec![zone, input]);
        }
        _ => {}
    }
    Ok(())
}

fn literal(interval: &Interval) -> Result<Expr> {
    let unit = |field: &DateTimeField| {
        IntervalUnit::parse(&field.to_string())
            .ok_or_else(|| Error::input(format!("an INTERVAL has no {field}")))
    };
    let longest = interval.leading_field.as_ref().map(unit).transpose()?;
    let shortest = interval.last_field.as_ref().map(unit).transpose()?.or(longest);
    let qualifier = longest.zip(shortest);
    if qualifier.is_some_and(|(longest, shortest)| longest < shortest) {
        return Err(Error::input(format!("{interval}: the longer unit comes first")));
    }
    match (plain(&interval.value), qualifier) {
        (Expr::Value(value), _) if text_of(&value.value).is_some() => {
            let text = text_of(&value.value).unwrap_or_default();
            let parsed = parse_qualified(text, qualifier);
            let parsed = parsed.ok_or_else(|| Error::input(format!("cannot cast '{text}' to INTERVAL")))?;
            Ok(constant(parsed))
        }
        (_, Some((longest, shortest))) if longest == shortest => Ok(Expr::Nested(Box::new(Expr::BinaryOp {
            left: Box::new(counted(&interval.value, longest)),
            op: BinaryOperator::Multiply,
            right: Box::new(constant(longest.interval())),
        }))),
        (_, Some(_)) => {
            Err(Error::input(format!("{interval}: a unit range (… TO …) is only allowed with a literal")))
        }
        (value, None) if is_number(value) => Err(Error::input(format!("{interval} has no unit"))
            .with_hint("units are microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, decade, century and millennium")),
        (_, None) => Ok(as_type((*interval.value).clone(), "INTERVAL")),
    }
}

/// The number of units of an expression: a whole number, except for seconds and shorter units.
fn counted(value: &Expr, unit: IntervalUnit) -> Expr {
    if unit <= IntervalUnit::Second || is_number(plain(value)) && !value.to_string().contains(['.', 'e', 'E'])
    {
        return value.clone();
    }
    call("trunc", vec![as_type(value.clone(), "DOUBLE")])
}

/// An interval as a cast of its text.
fn constant(interval: entasis_vector::Interval) -> Expr {
    let text = Constant::Interval(interval).display(DataType::Interval).to_string();
    as_type(Expr::Value(Value::SingleQuotedString(text).into()), "INTERVAL")
}

/// An expression without brackets.
fn plain(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) => Some(text),
        Value::DollarQuotedString(text) => Some(&text.value),
        _ => None,
    }
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_number(plain(expr)),
        _ => false,
    }
}
