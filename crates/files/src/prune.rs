//! Decides whether a condition can hold for any row if only bounds are known. Scans of files skip rows by it.
//!
//! The answer is conservative: false means that no row satisfies the condition, true means nothing.

use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Value};

/// What is known about a column over some rows.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    /// A lower bound of the values, if known.
    pub(super) min: Option<Value>,
    /// An upper bound of the values, if known. NaN may exceed it.
    pub(super) max: Option<Value>,
    /// True if both are values that occur, unless they are unknown.
    pub(super) occur: bool,
    /// The number of NULLs, if known.
    pub(super) nulls: Option<u64>,
    /// The number of rows.
    pub(super) rows: u64,
}

impl Bounds {
    /// The bounds of rows that all have the same value.
    pub(super) fn constant(value: &Value, rows: u64) -> Bounds {
        let bound = (!value.is_null()).then(|| value.clone());
        let nulls = Some(if value.is_null() { rows } else { 0 });
        Bounds { min: bound.clone(), max: bound, occur: true, nulls, rows }
    }
}

/// False if no row can satisfy `condition`.
pub(super) fn may_hold(condition: &Expr, bounds: &dyn Fn(ColumnId) -> Option<Bounds>) -> bool {
    match condition {
        Expr::And(parts) => parts.iter().all(|part| may_hold(part, bounds)),
        Expr::Or(parts) => parts.iter().any(|part| may_hold(part, bounds)),
        Expr::Literal { value, .. } => *value == Value::Boolean(true),
        Expr::Compare { op, left, right } => match (&**left, &**right) {
            (Expr::Column { id, ty }, Expr::Literal { value, .. }) => compare(*op, *id, *ty, value, bounds),
            (Expr::Literal { value, .. }, Expr::Column { id, ty }) => {
                compare(flip(*op), *id, *ty, value, bounds)
            }
            _ => true,
        },
        Expr::InList { input, list } => match &**input {
            Expr::Column { id, ty } => {
                list.iter().any(|value| compare(CompareOp::Eq, *id, *ty, value, bounds))
            }
            _ => true,
        },
        Expr::IsNull(input) => match &**input {
            Expr::Column { id, .. } => bounds(*id).is_none_or(|b| b.nulls.is_none_or(|nulls| nulls > 0)),
            _ => true,
        },
        Expr::Not(input) => match &**input {
            Expr::IsNull(input) => match &**input {
                Expr::Column { id, .. } => {
                    bounds(*id).is_none_or(|b| b.nulls.is_none_or(|nulls| nulls < b.rows))
                }
                _ => true,
            },
            _ => true,
        },
        _ => true,
    }
}

fn compare(
    op: CompareOp,
    id: ColumnId,
    ty: DataType,
    value: &Value,
    bounds: &dyn Fn(ColumnId) -> Option<Bounds>,
) -> bool {
    if matches!(op, CompareOp::DistinctFrom | CompareOp::NotDistinctFrom) {
        return true;
    }
    if value.is_null() {
        return false;
    }
    let Some(known) = bounds(id) else { return true };
    if known.nulls == Some(known.rows) {
        return false;
    }
    // The integers that represent UUIDs are not ordered as UUIDs are.
    if matches!(ty, DataType::Uuid | DataType::Interval) {
        return true;
    }
    let min_is = |test: fn(std::cmp::Ordering) -> bool| {
        known.min.as_ref().is_none_or(|min| test(min.total_cmp(value)))
    };
    let max_is = |test: fn(std::cmp::Ordering) -> bool| {
        // NaN is greater than all numbers and not included in the bounds in files.
        ty.is_float() || known.max.as_ref().is_none_or(|max| test(max.total_cmp(value)))
    };
    match op {
        CompareOp::Eq => min_is(|o| o.is_le()) && max_is(|o| o.is_ge()),
        CompareOp::Lt => min_is(|o| o.is_lt()),
        CompareOp::LtEq => min_is(|o| o.is_le()),
        CompareOp::Gt => max_is(|o| o.is_gt()),
        CompareOp::GtEq => max_is(|o| o.is_ge()),
        CompareOp::NotEq => min_is(|o| o.is_ne()) || max_is(|o| o.is_ne()),
        CompareOp::DistinctFrom | CompareOp::NotDistinctFrom => true,
    }
}

fn flip(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::LtEq => CompareOp::GtEq,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::GtEq => CompareOp::LtEq,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_is_only_said_when_no_value_within_the_bounds_satisfies() {
        let column = || Expr::column(ColumnId(0), DataType::Int64);
        let literal = |v: i128| Expr::literal(Value::Integer(v), DataType::Int64);
        let ops =
            [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
        for (min, max) in [(2, 2), (2, 5)] {
            let known = |_| {
                let bound = |v: i128| Some(Value::Integer(v));
                Some(Bounds { min: bound(min), max: bound(max), occur: false, nulls: Some(1), rows: 9 })
            };
            for op in ops {
                for v in 0..8 {
                    let holds = |x: i128| match op {
                        CompareOp::Eq => x == v,
                        CompareOp::NotEq => x != v,
                        CompareOp::Lt => x < v,
                        CompareOp::LtEq => x <= v,
                        CompareOp::Gt => x > v,
                        _ => x >= v,
                    };
                    let expected = (min..=max).any(holds);
                    assert_eq!(may_hold(&Expr::compare(op, column(), literal(v)), &known), expected);
                    assert_eq!(may_hold(&Expr::compare(flip(op), literal(v), column()), &known), expected);
                }
            }
            let null = Expr::IsNull(Box::new(column()));
            assert!(may_hold(&null, &known) && may_hold(&Expr::Not(Box::new(null)), &known));
            let list =
                Expr::InList { input: Box::new(column()), list: vec![Value::Integer(0), Value::Integer(7)] };
            assert!(!may_hold(&list, &known));
        }
    }

    #[test]
    fn a_nan_may_hide_above_the_bounds() {
        let known = |_| {
            Some(Bounds {
                min: Some(Value::Float(0.0)),
                max: Some(Value::Float(1.0)),
                occur: false,
                nulls: None,
                rows: 9,
            })
        };
        let column = Expr::column(ColumnId(0), DataType::Float64);
        let five = Expr::literal(Value::Float(5.0), DataType::Float64);
        assert!(may_hold(&Expr::compare(CompareOp::Gt, column.clone(), five), &known));
        let below = Expr::literal(Value::Float(-5.0), DataType::Float64);
        assert!(!may_hold(&Expr::compare(CompareOp::Lt, column, below), &known));
    }
}
