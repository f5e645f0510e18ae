//! `ASOF JOIN`: a join whose condition has an inequality that the rewriter has marked
//! ([`NEAREST`](crate::hidden::NEAREST)). It is the only residual of the engine's as-of join; equalities of
//! both sides are its keys.
//!
//! Other conditions say which rows take part: one of the right side is a filter there, before the nearest row
//! is looked for, and one of the left side becomes a key that is equal to a constant, so that a row for which
//! it is not true has no partner. A condition of both sides that is no equality is refused: it might be meant
//! for the nearest row, or for the rows among which that is looked for.

use super::subquery::filter;
use super::{Lowering, Scope, one_row, subquery};
use crate::functions::native::{Kind, Native};
use datafusion_expr::Expr as DfExpr;
use datafusion_expr::utils::split_conjunction;
use entasis_engine::plan::{ColumnSet, Join, JoinKey, JoinKind, Node, Project, reads_only, split_keys};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Error, Result};

/// The inequality of an as-of join with this condition, and its other conditions; `None` if it is not an
/// as-of join.
pub(super) fn taken_apart(condition: &DfExpr) -> Option<(&DfExpr, Vec<&DfExpr>)> {
    let mut inequality = None;
    let mut others = Vec::new();
    for part in split_conjunction(condition) {
        match part {
            DfExpr::ScalarFunction(call)
                if call
                    .func
                    .inner()
                    .downcast_ref::<Native>()
                    .is_some_and(|native| native.kind == Kind::Nearest) =>
            {
                inequality = call.args.first();
            }
            other => others.push(other),
        }
    }
    Some((inequality?, others))
}

impl Lowering<'_> {
    /// An as-of join by this inequality and these equalities, and its columns.
    pub(super) fn asof_join(
        &mut self,
        (inequality, conditions): (&DfExpr, Vec<&DfExpr>),
        mut on: Vec<JoinKey>,
        [(left, left_scope), (mut right, right_scope)]: [(Node, &Scope); 2],
        scope: &Scope,
        outer: bool,
    ) -> Result<(Node, Vec<ColumnId>)> {
        if conditions.iter().chain([&inequality]).any(|condition| subquery::contains(condition)) {
            return Err(Error::not_supported("subqueries in the ON of an ASOF JOIN"));
        }
        let mut nothing = one_row();
        let mut equalities = Vec::new();
        for condition in conditions {
            self.expr(condition, scope, &mut nothing)?.split_conjunction(&mut equalities);
        }
        split_keys(&left, &right, &mut on, &mut equalities);
        let residual = self.expr(inequality, scope, &mut nothing)?;
        let [left_ids, right_ids] =
            [&left, &right].map(|side| side.columns().into_iter().collect::<ColumnSet>());
        let (of_right, others): (Vec<Expr>, Vec<Expr>) =
            equalities.into_iter().partition(|condition| reads_only(condition, &right_ids));
        if !others.iter().all(|condition| reads_only(condition, &left_ids)) {
            return Err(Error::input(
                "a condition of both sides of an ASOF JOIN is an equality, or the one inequality",
            )
            .with_hint("put other conditions into WHERE"));
        }
        right = filter(right, Expr::and(of_right));
        if !others.is_empty() {
            let holds = self.columns.add("holds", DataType::Boolean, false);
            let exprs = vec![(holds, Expr::boolean(true))];
            right = Node::Project(Project { input: Box::new(right), exprs });
            let (left, right) = (Expr::and(others), self.columns.expr(holds));
            on.push(JoinKey { left, right, null_equals_null: false });
        }
        let is_between = match &residual {
            Expr::Compare { left: a, right: b, .. } => {
                (reads_only(a, &left_ids) && reads_only(b, &right_ids))
                    || (reads_only(b, &left_ids) && reads_only(a, &right_ids))
            }
            _ => false,
        };
        if !is_between {
            return Err(Error::input(
                "the inequality of an ASOF JOIN does not compare its left side with its right one",
            )
            .with_hint("write it between an expression of each side, such as t.ts >= q.ts"));
        }
        let columns = left_scope.columns.iter().chain(&right_scope.columns).copied().collect();
        let (left, right) = (Box::new(left), Box::new(right));
        let node =
            Node::Join(Join { left, right, kind: JoinKind::AsOf { outer }, on, residual: vec![residual] });
        Ok((node, columns))
    }
}
