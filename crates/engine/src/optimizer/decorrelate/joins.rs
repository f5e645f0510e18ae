//! Joins of unnested subqueries: conditions that become keys.

use crate::plan::equalities::split_keys;
use crate::plan::tree::filter;
use crate::plan::{Join, JoinKey, JoinKind, Node};
use entasis_vector::expr::Expr;

/// A join whose residuals become keys where that is possible and allowed.
pub(super) fn join(
    left: Node,
    right: Node,
    kind: JoinKind,
    on: Option<JoinKey>,
    residual: Vec<Expr>,
) -> Node {
    rejoin(left, right, kind, on.into_iter().collect(), residual)
}

pub(super) fn rejoin(
    left: Node,
    right: Node,
    kind: JoinKind,
    mut on: Vec<JoinKey>,
    mut residual: Vec<Expr>,
) -> Node {
    // In a null-aware join only the key of IN may decide about NULL; conditions of the correlation stay
    // residuals.
    if !is_null_aware(kind) {
        split_keys(&left, &right, &mut on, &mut residual);
    }
    Node::Join(Join { left: Box::new(left), right: Box::new(right), kind, on, residual })
}

pub(super) fn is_null_aware(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. })
}

/// `input` where `predicate` is true.
pub(super) fn where_true(input: Node, predicate: Expr) -> Node {
    let mut predicates = Vec::new();
    predicate.split_conjunction(&mut predicates);
    filter(input, predicates)
}

/// `NOT x`
pub(super) fn not(input: Expr) -> Expr {
    match input {
        Expr::Not(inner) => *inner,
        other => Expr::Not(Box::new(other)),
    }
}
