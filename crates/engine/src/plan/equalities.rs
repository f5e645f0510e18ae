//! Equalities between the sides of a join, which are its keys.

use super::tree::{ColumnSet, columns_of, reads};
use super::{JoinKey, Node};
use entasis_vector::expr::{CompareOp, Expr};

/// Turns those residuals into keys that compare one side with the other for equality.
pub fn split_keys(left: &Node, right: &Node, on: &mut Vec<JoinKey>, residual: &mut Vec<Expr>) {
    if residual.is_empty() {
        return;
    }
    let (left, right) = (columns_of(left), columns_of(right));
    for predicate in std::mem::take(residual) {
        match as_key(predicate, &left, &right) {
            Ok(key) => on.push(key),
            Err(predicate) => residual.push(predicate),
        }
    }
}

/// An equality between an expression over `left` and one over `right` as a key; anything else is returned as
/// `Err`.
pub(crate) fn as_key(predicate: Expr, left: &ColumnSet, right: &ColumnSet) -> Result<JoinKey, Expr> {
    let Expr::Compare { op: op @ (CompareOp::Eq | CompareOp::NotDistinctFrom), left: a, right: b } =
        predicate
    else {
        return Err(predicate);
    };
    let null_equals_null = op == CompareOp::NotDistinctFrom;
    if reads_only(&a, left) && reads_only(&b, right) {
        return Ok(JoinKey { left: *a, right: *b, null_equals_null });
    }
    if reads_only(&b, left) && reads_only(&a, right) {
        return Ok(JoinKey { left: *b, right: *a, null_equals_null });
    }
    Err(Expr::Compare { op, left: a, right: b })
}

/// True if the expression reads columns, and all of them are among `columns`.
pub fn reads_only(expr: &Expr, columns: &ColumnSet) -> bool {
    let read = reads(expr);
    !read.is_empty() && read.is_subset(columns) && !expr.is_volatile()
}
