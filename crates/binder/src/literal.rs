//! Literals: what is written becomes a value, and what is given of its type.

use crate::binder::Binder;
use crate::bound::Bound;
use entasis_functions::expressions::fold;
use entasis_functions::types::Given;
use entasis_vector::expr::interval_text::{IntervalUnit, parse_qualified};
use entasis_vector::expr::{ArithmeticOp, Expr};
use entasis_vector::{DataType, Error, Result, Value};
use sqlparser::ast::{self, DateTimeField, UnaryOperator};
use std::borrow::Cow;

/// The most digits of a decimal.
const MOST_DIGITS: usize = 38;

impl<'a, 'q> Binder<'a, 'q> {
    /// A literal or a parameter.
    pub(crate) fn literal(&mut self, value: &ast::Value) -> Result<Bound> {
        use ast::Value as Sql;
        match value {
            Sql::Number(text, _) => number(text),
            Sql::Boolean(value) => Ok(Bound::known(Expr::boolean(*value))),
            Sql::Null => Ok(Bound::null()),
            Sql::Placeholder(id) => self.parameter(id),
            Sql::HexStringLiteral(digits) => bytes(digits),
            value => match text_of(value) {
                Some(text) => Ok(Bound::text(text)),
                None => Err(Error::not_supported(format!("the literal {value}"))),
            },
        }
    }

    /// A parameter, which is `$` and a number from 1.
    fn parameter(&mut self, id: &str) -> Result<Bound> {
        let expr = self.params.expr(id)?;
        Ok(match (&expr, expr.ty()) {
            (Expr::Literal { value: Value::Null, .. }, DataType::Null) => Bound::null(),
            // As a literal, it becomes what is asked for.
            (_, DataType::Varchar) => Bound { expr, given: Given::Text },
            _ => Bound::known(expr),
        })
    }

    /// `INTERVAL 'text' [unit [TO unit]]`; `INTERVAL (value) unit`: so many units, whole ones if they are
    /// minutes or longer.
    pub(crate) fn interval(&mut self, interval: &'q ast::Interval) -> Result<Bound> {
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
            (ast::Expr::Value(value), _) if text_of(&value.value).is_some() => {
                let text = text_of(&value.value).unwrap_or_default();
                let parsed = parse_qualified(text, qualifier);
                let parsed = parsed.ok_or_else(|| Error::input(format!("cannot cast '{text}' to INTERVAL")))?;
                Ok(Bound::known(Expr::literal(Value::Interval(parsed), DataType::Interval)))
            }
            (value, Some((longest, shortest))) if longest == shortest => {
                let is_whole = longest > IntervalUnit::Second;
                let mut count = self.expr(value)?;
                let is_integer = count.given.is_integer();
                if is_whole && !is_integer {
                    count = self.call("trunc", vec![count.into(DataType::Float64)])?;
                }
                let by = if is_integer { DataType::Int64 } else { DataType::Float64 };
                let unit = Expr::literal(Value::Interval(longest.interval()), DataType::Interval);
                let count = count.implicit(by, "INTERVAL")?;
                Ok(Bound::known(fold::arithmetic(ArithmeticOp::Multiply, unit, count, DataType::Interval)))
            }
            (_, Some(_)) => {
                Err(Error::input(format!("{interval}: a unit range (… TO …) is only allowed with a literal")))
            }
            (value, None) if is_number(value) => Err(Error::input(format!("{interval} has no unit"))
                .with_hint("units are microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, decade, century and millennium")),
            (value, None) => Ok(self.expr(value)?.into(DataType::Interval)),
        }
    }
}

/// A number: an integer, a decimal with the digits that are written, with an exponent or too many digits a
/// DOUBLE.
pub(crate) fn number(text: &str) -> Result<Bound> {
    let digits: Cow<'_, str> = if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    let text = &*digits;
    let wrong = || Error::input(format!("{text} is not a number"));
    let double = || {
        Ok(Bound::known(Expr::literal(Value::Float(text.parse().map_err(|_| wrong())?), DataType::Float64)))
    };
    if text.contains(['e', 'E']) {
        return double();
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !text.contains('.')
        && let Ok(value) = whole.parse()
    {
        return Ok(Bound::integer(value));
    }
    let digits: String = whole.chars().chain(fraction.chars()).collect();
    let digits = digits.trim_start_matches('0');
    let precision = digits.len().max(fraction.len()).max(1);
    if precision > MOST_DIGITS {
        return double();
    }
    let value: i128 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| wrong())? };
    Ok(decimal(value, precision as u8, fraction.len() as u8))
}

fn decimal(value: i128, precision: u8, scale: u8) -> Bound {
    let given = Given::Decimal { precision, scale };
    Bound { expr: Expr::literal(Value::Integer(value), given.settled()), given }
}

/// A text as the number that is written in it, if it is one without an exponent.
pub(crate) fn number_in(text: &str) -> Option<Bound> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let is_number = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().any(|byte| byte.is_ascii_digit());
    let bound = is_number.then(|| number(digits).ok()).flatten()?;
    if sign { negated(&bound) } else { Some(bound) }
}

/// The negative of a number that is written.
pub(crate) fn negated(bound: &Bound) -> Option<Bound> {
    match (&bound.expr, bound.given) {
        (Expr::Literal { value: Value::Integer(value), .. }, Given::Integer(_)) => {
            i64::try_from(-value).ok().map(Bound::integer)
        }
        // One more than the greatest BIGINT.
        (Expr::Literal { value: Value::Integer(value), .. }, Given::Decimal { precision, scale }) => {
            match i64::try_from(-value) {
                Ok(value) if scale == 0 => Some(Bound::integer(value)),
                _ => Some(decimal(-value, precision, scale)),
            }
        }
        (Expr::Literal { value: Value::Float(value), ty }, Given::Known(_)) => {
            Some(Bound::known(Expr::literal(Value::Float(-value), *ty)))
        }
        _ => None,
    }
}

/// `x'0aff'`
fn bytes(digits: &str) -> Result<Bound> {
    let wrong = || Error::input(format!("x'{digits}' is not a BLOB: bytes have two hexadecimal digits"));
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
    let bytes = (0..digits.len()).step_by(2).map(byte).collect::<Result<Vec<u8>>>()?;
    Ok(Bound::known(Expr::literal(Value::Bytes(bytes.into()), DataType::Blob)))
}

/// An expression without brackets.
pub(crate) fn plain(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// The text of a literal that is one.
pub(crate) fn text_of(value: &ast::Value) -> Option<&str> {
    use ast::Value as Sql;
    match value {
        Sql::SingleQuotedString(text)
        | Sql::EscapedStringLiteral(text)
        | Sql::NationalStringLiteral(text) => Some(text),
        Sql::DollarQuotedString(text) => Some(&text.value),
        _ => None,
    }
}

fn is_number(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Value(value) => matches!(value.value, ast::Value::Number(..)),
        ast::Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_number(plain(expr)),
        _ => false,
    }
}
