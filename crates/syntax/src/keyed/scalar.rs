//! Values that are written in a keyed statement.

use super::parts::{Insertable, Scalar};
use crate::build::stored_expr;
use entasis_vector::{DataType, Value};
use sqlparser::ast::{self, Expr};

/// The digits of a fraction that is read here; others are rare.
const DIGITS: usize = 18;

/// A parameter or a constant; `None` for any other expression.
pub(super) fn scalar(expr: &Expr) -> Option<Scalar> {
    match expr {
        Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(name) => {
                Some(Scalar::Parameter(name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?))
            }
            ast::Value::Number(text, _) => number(text, 1),
            ast::Value::SingleQuotedString(text) => {
                Some(Scalar::Constant(Value::Text(text.as_str().into()), DataType::Varchar))
            }
            ast::Value::Boolean(value) => Some(Scalar::Constant(Value::Boolean(*value), DataType::Boolean)),
            ast::Value::Null => Some(Scalar::Constant(Value::Null, DataType::Null)),
            _ => None,
        },
        Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => match &value.value {
                ast::Value::Number(text, _) => number(text, -1),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The value of an expression that is only a constant, such as most defaults of columns, and its type.
pub fn constant(sql: &str) -> Option<(Value, DataType)> {
    match scalar(&stored_expr(sql).ok()?)? {
        Scalar::Constant(value, ty) => Some((value, ty)),
        Scalar::Parameter(_) => None,
    }
}

/// An integer, or a fraction without an exponent.
fn number(text: &str, sign: i128) -> Option<Scalar> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(Scalar::Constant(Value::Integer(sign * i128::from(value)), DataType::Int64));
    }
    let (whole, fraction) = text.split_once('.')?;
    let digits = format!("{whole}{fraction}");
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain || digits.is_empty() || digits.len() > DIGITS || fraction.is_empty() {
        return None;
    }
    let ty = DataType::Decimal { precision: digits.len() as u8, scale: fraction.len() as u8 };
    Some(Scalar::Constant(Value::Integer(sign * digits.parse::<i128>().ok()?), ty))
}

/// A value of a row that is inserted: a scalar or `DEFAULT`.
pub(super) fn insertable(expr: &Expr) -> Option<Insertable> {
    match expr {
        Expr::Identifier(name)
            if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default") =>
        {
            Some(Insertable::Default)
        }
        _ => scalar(expr).map(Insertable::Scalar),
    }
}
