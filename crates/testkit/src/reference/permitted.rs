//! The values that an expression may have if evaluation in the written order raises an error.
//!
//! [`evaluate`] goes from left to right. The engine promises less, so that it can order conditions by their
//! cost and skip what does not matter. Three rules allow it to return a result although a part raises an
//! error:
//!
//! 1. **Any part decides**: a part of AND that is false, or of OR that is true, may be evaluated before the
//!    others.
//! 2. **NULL is strict**: an operand that is NULL for every row makes the operation NULL, and the other
//!    operands need not be evaluated.
//! 3. **A filter requires true**: a condition that is false or NULL rejects its row, and the others need not
//!    be evaluated.
//!
//! In all other cases an error in an operand whose value is needed for the row is an error of the expression.

use super::expression::{Row, evaluate};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{Result, Value};

/// The value that the engine may return for `expr` in `row`.
///
/// # Errors
/// If no rule permits skipping the error.
pub fn permitted(expr: &Expr, row: Row<'_>) -> Result<Value> {
    match expr {
        Expr::And(parts) | Expr::Or(parts) => {
            let values: Vec<Result<Value>> = parts.iter().map(|part| permitted(part, row)).collect();
            let decisive = Value::Boolean(matches!(expr, Expr::Or(_)));
            if values.iter().any(|value| value.as_ref().is_ok_and(|value| *value == decisive)) {
                return Ok(decisive);
            }
            with_operands(expr, values.into_iter().collect::<Result<_>>()?, row)
        }
        Expr::Case { branches, otherwise, .. } => {
            for (condition, result) in branches {
                if permitted(condition, row)? == Value::Boolean(true) {
                    return permitted(result, row);
                }
            }
            otherwise.as_ref().map_or(Ok(Value::Null), |otherwise| permitted(otherwise, row))
        }
        _ if is_null(expr) => Ok(Value::Null),
        _ => {
            let operands =
                expr.children().into_iter().map(|operand| permitted(operand, row)).collect::<Result<_>>()?;
            with_operands(expr, operands, row)
        }
    }
}

/// Whether `row` may pass a filter of all `predicates`.
///
/// # Errors
/// If no rule permits skipping the error.
pub fn may_pass(predicates: &[Expr], row: Row<'_>) -> Result<bool> {
    let mut conditions = Vec::new();
    predicates.iter().for_each(|predicate| predicate.clone().split_conjunction(&mut conditions));
    let values: Vec<Result<Value>> = conditions.iter().map(|condition| permitted(condition, row)).collect();
    if values.iter().flatten().any(|value| *value != Value::Boolean(true)) {
        return Ok(false);
    }
    values.into_iter().collect::<Result<Vec<_>>>().map(|_| true)
}

/// The operation, applied to evaluated operands.
fn with_operands(expr: &Expr, values: Vec<Value>, row: Row<'_>) -> Result<Value> {
    let mut expr = expr.clone();
    for (operand, value) in expr.children_mut().into_iter().zip(values) {
        *operand = Expr::literal(value, operand.ty());
    }
    evaluate(&expr, row)
}

/// True if the expression is NULL for every row, by the second rule.
fn is_null(expr: &Expr) -> bool {
    if constant(expr).is_some_and(|value| value.is_null()) {
        return true;
    }
    let strict = match expr {
        Expr::Compare { op, .. } => !matches!(op, CompareOp::DistinctFrom | CompareOp::NotDistinctFrom),
        Expr::Arithmetic { .. }
        | Expr::Negate(_)
        | Expr::Not(_)
        | Expr::Cast { .. }
        | Expr::Like { .. }
        | Expr::InList { .. }
        | Expr::Function { .. } => true,
        // True if all results that can be reached are NULL.
        Expr::Case { branches, otherwise, .. } => {
            for (condition, result) in branches {
                match constant(condition) {
                    Some(Value::Boolean(true)) => return is_null(result),
                    Some(_) => {}
                    None if is_null(condition) || is_null(result) => {}
                    None => return false,
                }
            }
            return otherwise.as_ref().is_none_or(|otherwise| is_null(otherwise));
        }
        _ => false,
    };
    strict && expr.children().into_iter().any(is_null)
}

/// The value of an expression that reads no column and raises no error.
fn constant(expr: &Expr) -> Option<Value> {
    let mut columns = Vec::new();
    expr.collect_columns(&mut columns);
    if columns.is_empty() { evaluate(expr, Row { columns: &[], values: &[] }).ok() } else { None }
}
