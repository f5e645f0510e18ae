//! What a keyed statement sets columns to.

use super::parts::Assigned;
use super::scalar::scalar;
use sqlparser::ast::{self, AssignmentTarget, BinaryOperator, Expr};

/// `a = …, b = …`
pub(super) fn assignments_of(
    assignments: &[ast::Assignment],
    value: impl Fn(&Expr) -> Option<Assigned>,
) -> Option<Vec<(String, Assigned)>> {
    let of = |assignment: &ast::Assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) => match &name.0[..] {
            [part] => Some((part.as_ident()?.value.clone(), value(&assignment.value)?)),
            _ => None,
        },
        AssignmentTarget::Tuple(_) => None,
    };
    assignments.iter().map(of).collect()
}

/// A scalar, or a column (as `column` recognizes it) plus or minus a scalar.
pub(super) fn assigned(expr: &Expr, column: &dyn Fn(&Expr) -> Option<String>) -> Option<Assigned> {
    if let Some(scalar) = scalar(expr) {
        return Some(Assigned::Scalar(scalar));
    }
    match expr {
        Expr::Nested(inner) => assigned(inner, column),
        Expr::BinaryOp { left, op: BinaryOperator::Plus, right } => {
            let (column, by) = match column(left) {
                Some(column) => (column, scalar(right)?),
                None => (column(right)?, scalar(left)?),
            };
            Some(Assigned::Sum { column, by, is_negative: false })
        }
        Expr::BinaryOp { left, op: BinaryOperator::Minus, right } => {
            Some(Assigned::Sum { column: column(left)?, by: scalar(right)?, is_negative: true })
        }
        _ => None,
    }
}
