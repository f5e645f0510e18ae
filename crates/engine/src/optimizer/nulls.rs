//! What NULL does to an expression: which columns, being NULL, make it NULL, and which keep a predicate from
//! being true.
//!
//! `a < b + 1` is NULL as soon as `a` or `b` is. `a = 1 OR b = 2` is not true only if both are NULL, so
//! neither alone is *rejected*; `(a = 1 AND b = 2) OR a = 3` rejects `a`. Library functions are taken to
//! answer anything on NULL.

use crate::plan::tree::ColumnSet;
use entasis_vector::expr::{CompareOp, Expr};

/// Columns of which each one, being NULL, makes `expr` NULL.
pub(crate) fn makes_null(expr: &Expr) -> ColumnSet {
    match expr {
        Expr::Column { id, .. } => [*id].into_iter().collect(),
        Expr::Compare { op: CompareOp::DistinctFrom | CompareOp::NotDistinctFrom, .. } => {
            ColumnSet::default()
        }
        Expr::Compare { .. }
        | Expr::Arithmetic { .. }
        | Expr::Negate(_)
        | Expr::Not(_)
        | Expr::Cast { .. }
        | Expr::Like { .. }
        | Expr::InList { .. }
        | Expr::Function { .. } => union(expr.children().into_iter().map(makes_null)),
        Expr::And(parts) | Expr::Or(parts) => intersection(parts.iter().map(makes_null)),
        Expr::Literal { .. }
        | Expr::Parameter { .. }
        | Expr::IsNull(_)
        | Expr::Case { .. }
        | Expr::External { .. } => ColumnSet::default(),
    }
}

/// Columns of which each one, being NULL, keeps the predicate `expr` from being true.
pub(crate) fn rejects_null(expr: &Expr) -> ColumnSet {
    match expr {
        Expr::And(parts) => union(parts.iter().map(rejects_null)),
        Expr::Or(parts) => intersection(parts.iter().map(rejects_null)),
        Expr::Not(inner) => match &**inner {
            Expr::IsNull(operand) => makes_null(operand),
            Expr::Or(parts) => union(parts.iter().map(makes_null)),
            inner => makes_null(inner),
        },
        other => makes_null(other),
    }
}

fn union(sets: impl Iterator<Item = ColumnSet>) -> ColumnSet {
    sets.reduce(|mut a, b| {
        a.add(&b);
        a
    })
    .unwrap_or_default()
}

fn intersection(sets: impl Iterator<Item = ColumnSet>) -> ColumnSet {
    sets.reduce(|mut a, b| {
        a.retain(&b);
        a
    })
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::{ColumnId, DataType, Value};

    fn column(id: u32) -> Expr {
        Expr::column(ColumnId(id), DataType::Int64)
    }
    fn equals(id: u32, value: i128) -> Expr {
        Expr::compare(CompareOp::Eq, column(id), Expr::literal(Value::Integer(value), DataType::Int64))
    }
    fn rejected(expr: &Expr) -> Vec<u32> {
        rejects_null(expr).iter().map(|id| id.0).collect()
    }

    #[test]
    fn comparisons_and_their_combinations() {
        assert_eq!(rejected(&Expr::compare(CompareOp::Lt, column(1), column(2))), [1, 2]);
        assert_eq!(rejected(&Expr::compare(CompareOp::DistinctFrom, column(1), column(2))), [] as [u32; 0]);
        assert_eq!(rejected(&Expr::Or(vec![equals(1, 1), equals(2, 2)])), [] as [u32; 0]);
        let both = Expr::And(vec![equals(1, 1), equals(2, 2)]);
        assert_eq!(rejected(&both), [1, 2]);
        assert_eq!(rejected(&Expr::Or(vec![both.clone(), equals(1, 3)])), [1]);
        assert_eq!(rejected(&Expr::Not(Box::new(both))), [] as [u32; 0]);
        assert_eq!(rejected(&Expr::Not(Box::new(Expr::IsNull(Box::new(column(7)))))), [7]);
        assert_eq!(rejected(&Expr::IsNull(Box::new(column(7)))), [] as [u32; 0]);
    }
}
