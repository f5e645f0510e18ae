//! Queries of several rows by the values of one column: a list or a range of them, an order and a limit.

use super::{Keys, Several, scalar};
use sqlparser::ast::{BinaryOperator, Expr, LimitClause, OrderBy, OrderByKind, Query, Select};
use std::ops::Bound;

/// The greatest number of values in a list.
const MOST_VALUES: usize = 256;

/// The rows of a query whose other parts are plain.
pub(super) fn several(query: &Query, select: &Select) -> Option<Several> {
    let order = match &query.order_by {
        None => None,
        Some(order) => Some(of_order(order)?),
    };
    let limit = match &query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by })
            if limit_by.is_empty() =>
        {
            Some(scalar(limit)?)
        }
        Some(_) => return None,
    };
    let (column, keys) = match &select.selection {
        Some(condition) => of_condition(condition)?,
        None => (order?.0.to_owned(), Keys::Range(Bound::Unbounded, Bound::Unbounded)),
    };
    let is_by_column = order.is_none_or(|(by, _)| by.eq_ignore_ascii_case(&column));
    is_by_column.then(|| Several { column, keys, descends: order.map(|(_, descends)| descends), limit })
}

/// The column by which rows are ordered, and whether it descends. The column has no NULLs where this is used.
fn of_order(order: &OrderBy) -> Option<(&str, bool)> {
    let OrderBy { kind: OrderByKind::Expressions(exprs), interpolate: None } = order else { return None };
    match &exprs[..] {
        [by] if by.with_fill.is_none() => Some((column(&by.expr)?, by.options.asc == Some(false))),
        _ => None,
    }
}

fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(name) => Some(&name.value),
        _ => None,
    }
}

/// The column of a condition, and its values.
fn of_condition(expr: &Expr) -> Option<(String, Keys)> {
    match expr {
        Expr::Nested(inner) => of_condition(inner),
        Expr::InList { expr, list, negated: false } if list.len() <= MOST_VALUES => {
            let keys = list.iter().map(scalar).collect::<Option<Vec<_>>>()?;
            Some((column(expr)?.to_owned(), Keys::List(keys)))
        }
        Expr::Between { expr, negated: false, low, high } => {
            let keys = Keys::Range(Bound::Included(scalar(low)?), Bound::Included(scalar(high)?));
            Some((column(expr)?.to_owned(), keys))
        }
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let ((name, left), (other, right)) = (of_condition(left)?, of_condition(right)?);
            let keys = intersection(left, right)?;
            name.eq_ignore_ascii_case(&other).then_some((name, keys))
        }
        Expr::BinaryOp { left, op, right } => of_comparison(left, op, right),
        _ => None,
    }
}

/// Two ranges of which one has a lower bound only and the other an upper bound only.
fn intersection(one: Keys, other: Keys) -> Option<Keys> {
    match (one, other) {
        (Keys::Range(low, Bound::Unbounded), Keys::Range(Bound::Unbounded, high))
        | (Keys::Range(Bound::Unbounded, high), Keys::Range(low, Bound::Unbounded)) => {
            Some(Keys::Range(low, high))
        }
        _ => None,
    }
}

/// `a > x` or `x < a`
fn of_comparison(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<(String, Keys)> {
    let (name, value, is_mirrored) = match (column(left), column(right)) {
        (Some(name), None) => (name, scalar(right)?, false),
        (None, Some(name)) => (name, scalar(left)?, true),
        _ => return None,
    };
    let keys = match (op, is_mirrored) {
        (BinaryOperator::Eq, _) => Keys::List(vec![value]),
        (BinaryOperator::Gt, false) | (BinaryOperator::Lt, true) => {
            Keys::Range(Bound::Excluded(value), Bound::Unbounded)
        }
        (BinaryOperator::GtEq, false) | (BinaryOperator::LtEq, true) => {
            Keys::Range(Bound::Included(value), Bound::Unbounded)
        }
        (BinaryOperator::Lt, false) | (BinaryOperator::Gt, true) => {
            Keys::Range(Bound::Unbounded, Bound::Excluded(value))
        }
        (BinaryOperator::LtEq, false) | (BinaryOperator::GtEq, true) => {
            Keys::Range(Bound::Unbounded, Bound::Included(value))
        }
        _ => return None,
    };
    Some((name.to_owned(), keys))
}
