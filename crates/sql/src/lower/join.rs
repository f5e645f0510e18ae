//! Joins.
//!
//! Equalities between the sides become keys, all other conditions residuals. The right side of a lateral join
//! is a subquery over the left. Subqueries in the condition of an inner join filter its
//! pairs; in the condition of an outer join each is computed below the join, on the side to which it refers.
//!
//! For as-of joins, see [`super::asof`].
//!
//! Not supported: a subquery in the condition of an outer join that refers to both sides.

use super::{Lowered, Lowering, Scope, asof, one_row, subquery, take};
use crate::error::{external, from_datafusion};
use crate::hidden::hidden;
use arrow_schema::Field;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, JoinType, NullEquality};
use datafusion_expr::{self as df, Expr as DfExpr, LogicalPlan, ident};
use entasis_arrow::to_arrow_type;
use entasis_engine::plan::{Join, JoinKey, JoinKind, Node, Project, split_keys};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

impl Lowering<'_> {
    pub(super) fn join(&mut self, join: &df::Join) -> Result<Lowered> {
        let left = self.plan(&join.left)?;
        // A lateral subquery sees the left side.
        if let Some(subquery) = lateral(&join.right) {
            return self.lateral_join(join, left, subquery);
        }
        let right = self.plan(&join.right)?;
        let kind = match join.join_type {
            JoinType::Inner => JoinKind::Inner,
            JoinType::Left => JoinKind::Left,
            JoinType::Right => JoinKind::Right,
            JoinType::Full => JoinKind::Full,
            JoinType::LeftSemi | JoinType::RightSemi => JoinKind::Semi,
            JoinType::LeftAnti | JoinType::RightAnti => JoinKind::Anti,
            JoinType::LeftMark | JoinType::RightMark => {
                return Err(Error::internal("the binder made a mark join"));
            }
        };
        let asof = join.filter.as_ref().and_then(asof::taken_apart);
        let both = join.left.schema().join(join.right.schema()).map_err(from_datafusion)?;
        let mut columns = left.scope.columns.clone();
        columns.extend(&right.scope.columns);
        let scope = Scope { schema: Arc::new(both), columns };
        let null_equals_null = join.null_equality == NullEquality::NullEqualsNull;

        let (mut left_node, mut right_node) = (left.node, right.node);
        let mut on = Vec::new();
        for (l, r) in &join.on {
            let l = self.expr(l, &left.scope, &mut left_node)?;
            let r = self.expr(r, &right.scope, &mut right_node)?;
            on.push(JoinKey { left: l, right: r, null_equals_null });
        }
        if let Some((inequality, conditions)) = asof {
            let sides = [(left_node, &left.scope), (right_node, &right.scope)];
            let (node, columns) =
                self.asof_join((inequality, conditions), on, sides, &scope, kind == JoinKind::Left)?;
            return Ok(Lowered { node, scope: Scope { schema: join.schema.clone(), columns } });
        }
        // Conditions with subqueries filter the pairs of an inner join; in other joins they are part of the
        // match.
        let (inner, has_subquery) =
            (kind == JoinKind::Inner, join.filter.as_ref().is_some_and(subquery::contains));
        let mut residual = Vec::new();
        if let Some(filter) = join.filter.as_ref().filter(|_| !(inner && has_subquery)) {
            let sides = [(&mut left_node, &left.scope), (&mut right_node, &right.scope)];
            let (filter, scope) = self.subqueries_below(filter, scope.clone(), sides)?;
            let mut nothing = one_row();
            self.expr(&filter, &scope, &mut nothing)?.split_conjunction(&mut residual);
        }
        let swap = matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti);
        if swap {
            std::mem::swap(&mut left_node, &mut right_node);
            for key in &mut on {
                std::mem::swap(&mut key.left, &mut key.right);
            }
        }
        split_keys(&left_node, &right_node, &mut on, &mut residual);
        let (left_box, right_box) = (Box::new(left_node), Box::new(right_node));
        let mut node = Node::Join(Join { left: left_box, right: right_box, kind, on, residual });
        if let Some(filter) = join.filter.as_ref().filter(|_| inner && has_subquery) {
            self.filter_node(filter, &scope, &mut node)?;
        }
        let columns = match join.join_type {
            JoinType::LeftSemi | JoinType::LeftAnti => left.scope.columns,
            JoinType::RightSemi | JoinType::RightAnti => right.scope.columns,
            _ => scope.columns,
        };
        Ok(Lowered { node, scope: Scope { schema: join.schema.clone(), columns } })
    }

    /// Moves the subqueries of a join's condition below the join: the value of each becomes a column of the
    /// side to which it refers, whose rows do not change otherwise. Returns the condition over those columns,
    /// and its scope.
    fn subqueries_below(
        &mut self,
        condition: &DfExpr,
        mut scope: Scope,
        [(left_node, left), (right_node, right)]: [(&mut Node, &Scope); 2],
    ) -> Result<(DfExpr, Scope)> {
        let mut made = 0;
        let condition = condition.clone().transform_down(|expr| {
            if !subquery::is_subquery(&expr) {
                return Ok(Transformed::no(expr));
            }
            let read = subquery::outer_columns(&expr)?;
            let reads = |scope: &Scope| read.iter().any(|column| scope.schema.has_column(column));
            let (node, side) = match (reads(left), reads(right)) {
                (true, true) => {
                    let what = "a subquery over both sides in the ON of an outer join";
                    return Err(external(Error::not_supported(what)));
                }
                (_, false) => (&mut *left_node, left),
                (false, true) => (&mut *right_node, right),
            };
            let value = self.expr(&expr, side, node).map_err(external)?;
            let column = self.columns.add("subquery", value.ty(), true);
            let field = Field::new(hidden(made), to_arrow_type(value.ty()), true);
            made += 1;
            *node = Node::Project(Project { input: take(node), exprs: vec![(column, value)] });
            let fields = DFSchema::from_unqualified_fields(vec![field.clone()].into(), HashMap::new())?;
            scope.schema = Arc::new(scope.schema.join(&fields)?);
            scope.columns.push(column);
            Ok(Transformed::new(ident(field.name().as_str()), true, TreeNodeRecursion::Jump))
        });
        Ok((condition.map_err(from_datafusion)?.data, scope))
    }

    fn lateral_join(&mut self, join: &df::Join, left: Lowered, right: &LogicalPlan) -> Result<Lowered> {
        if join.filter.as_ref().and_then(asof::taken_apart).is_some() {
            return Err(Error::not_supported("ASOF JOIN LATERAL"));
        }
        let kind = match join.join_type {
            JoinType::Inner => JoinKind::Inner,
            JoinType::Left => JoinKind::Left,
            _ => return Err(Error::not_supported("RIGHT and FULL JOIN LATERAL")),
        };
        self.outer.push(left.scope.clone());
        let right = self.plan(right);
        self.outer.pop();
        let right = right?;
        let both = join.left.schema().join(join.right.schema()).map_err(from_datafusion)?;
        let mut columns = left.scope.columns;
        columns.extend(&right.scope.columns);
        let scope = Scope { schema: Arc::new(both), columns };
        let mut residual = Vec::new();
        let mut nothing = one_row();
        for (l, r) in &join.on {
            let l = self.expr(l, &scope, &mut nothing)?;
            let r = self.expr(r, &scope, &mut nothing)?;
            residual.push(Expr::compare(CompareOp::Eq, l, r));
        }
        if let Some(filter) = &join.filter {
            if subquery::contains(filter) {
                return Err(Error::not_supported("subqueries in the ON of a lateral join"));
            }
            self.expr(filter, &scope, &mut nothing)?.split_conjunction(&mut residual);
        }
        let node = self.lateral(left.node, right.node, kind, residual)?;
        Ok(Lowered { node, scope: Scope { schema: join.schema.clone(), columns: scope.columns } })
    }
}

/// The subquery of a join's right side, if it refers to the left side.
fn lateral(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::Subquery(_) => Some(plan),
        LogicalPlan::SubqueryAlias(alias) => lateral(&alias.input).map(|_| plan),
        _ => None,
    }
}
