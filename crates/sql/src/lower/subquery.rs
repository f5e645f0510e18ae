//! Subqueries in expressions: joins around the node that is the input of the expression.
//!
//! | | at the top of a filter | elsewhere |
//! |---|---|---|
//! | scalar | single join | single join |
//! | `EXISTS` | semi or anti join | mark join |
//! | `x IN (…)` | semi join; `NOT IN` a null-aware anti join | null-aware mark join |
//! | `x = ANY (…)`, `x <> ALL (…)` | as `IN` and `NOT IN` | null-aware mark join |
//! | any other `ANY`, `ALL` | single join | single join with the minimum and maximum (`compare_all`) |

use super::elements;
use super::expr::same_type;
use super::{Lowered, Lowering, Scope, take};
use crate::error::from_datafusion;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result as DfResult};
use datafusion_expr::expr::{InSubquery, SetComparison, SetQuantifier};
use datafusion_expr::{Expr as DfExpr, ExprSchemable, Operator, Subquery};
use entasis_engine::plan::{
    Aggregate, AggregateCall, AggregateFunction, Dependent, Filter, Join, JoinKey, JoinKind, Limit, Node,
    free_columns, split_keys,
};
use entasis_functions::expressions::fold;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result, Value};

/// True if the expression is a subquery, including its comparison.
pub(super) fn is_subquery(expr: &DfExpr) -> bool {
    matches!(
        expr,
        DfExpr::ScalarSubquery(_) | DfExpr::Exists(_) | DfExpr::InSubquery(_) | DfExpr::SetComparison(_)
    )
}

/// True if there is a subquery in the expression.
pub(super) fn contains(expr: &DfExpr) -> bool {
    expr.exists(|e| Ok(is_subquery(e))).unwrap_or(true)
}

/// The columns that a subquery, including its comparison, reads from outside, at any depth.
pub(super) fn outer_columns(expr: &DfExpr) -> DfResult<Vec<Column>> {
    let (compared, subquery) = match expr {
        DfExpr::ScalarSubquery(subquery) => (None, subquery),
        DfExpr::Exists(exists) => (None, &exists.subquery),
        DfExpr::InSubquery(InSubquery { expr, subquery, .. })
        | DfExpr::SetComparison(SetComparison { expr, subquery, .. }) => (Some(expr), subquery),
        _ => return Ok(Vec::new()),
    };
    let mut columns: Vec<Column> =
        compared.into_iter().flat_map(|expr| expr.column_refs()).cloned().collect();
    subquery.subquery.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let DfExpr::OuterReferenceColumn(_, column) = part {
                    columns.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(columns)
}

impl Lowering<'_> {
    /// Lowers a subquery that may refer to `scope`; returns its only column, too, unless it is for `EXISTS`.
    fn subquery(
        &mut self,
        subquery: &Subquery,
        scope: &Scope,
        single: bool,
    ) -> Result<(Node, Option<ColumnId>)> {
        self.outer.push(scope.clone());
        let lowered = self.plan(&subquery.subquery);
        self.outer.pop();
        let Lowered { node, scope } = lowered?;
        match scope.columns.as_slice() {
            [column] => Ok((node, Some(*column))),
            columns if single => {
                Err(Error::input(format!("a subquery gives {} columns where one is expected", columns.len())))
            }
            _ => Ok((node, None)),
        }
    }

    /// A scalar subquery: a single join around `node`; the value is the result.
    pub(super) fn scalar_subquery(
        &mut self,
        subquery: &Subquery,
        node: &mut Node,
        scope: &Scope,
    ) -> Result<Expr> {
        let (sub, column) = self.subquery(subquery, scope, true)?;
        let column = column.ok_or_else(|| Error::internal("a scalar subquery without a column"))?;
        let value = self.columns.expr(column);
        join_subquery(node, sub, JoinKind::Single, None, vec![column]);
        Ok(value)
    }

    /// Turns a conjunct of a filter into a semi or anti join around `node`; false if that is not possible.
    pub(super) fn semi_join(&mut self, conjunct: &DfExpr, scope: &Scope, node: &mut Node) -> Result<bool> {
        let (inner, negate) = match conjunct {
            DfExpr::Not(inner) => (inner.as_ref(), true),
            other => (other, false),
        };
        match inner {
            DfExpr::Exists(exists) => {
                let (sub, _) = self.subquery(&exists.subquery, scope, false)?;
                let kind = if exists.negated != negate { JoinKind::Anti } else { JoinKind::Semi };
                join_subquery(node, sub, kind, None, Vec::new());
                Ok(true)
            }
            DfExpr::InSubquery(in_subquery) => {
                let kind = match in_subquery.negated != negate {
                    false => JoinKind::Semi,
                    true if may_be_null(in_subquery, scope)? => JoinKind::NullAwareAnti,
                    true => JoinKind::Anti,
                };
                let input = self.expr(&in_subquery.expr, scope, node)?;
                let (sub, column) = self.subquery(&in_subquery.subquery, scope, true)?;
                let column = column.ok_or_else(|| Error::internal("IN without a column"))?;
                let (left, right) = same_type(input, self.columns.expr(column));
                join_subquery(node, sub, kind, Some((left, right)), Vec::new());
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// `EXISTS`, `IN`, `ANY` and `ALL` anywhere in an expression: a mark join around `node`; the result is
    /// the mark.
    pub(super) fn mark_subquery(&mut self, expr: &DfExpr, scope: &Scope, node: &mut Node) -> Result<Expr> {
        let (subquery, compared, negated) = match expr {
            DfExpr::Exists(exists) => (&exists.subquery, None, exists.negated),
            DfExpr::InSubquery(InSubquery { expr, subquery, negated }) => (subquery, Some(expr), *negated),
            DfExpr::SetComparison(set) => match (comparison(set.op)?, set.quantifier) {
                (CompareOp::Eq, SetQuantifier::Any) => (&set.subquery, Some(&set.expr), false),
                (CompareOp::NotEq, SetQuantifier::All) => (&set.subquery, Some(&set.expr), true),
                (op, quantifier) => return self.compare_all(set, op, quantifier, scope, node),
            },
            other => return Err(Error::internal(format!("{other} is no subquery"))),
        };
        let null_aware = compared.is_some();
        let input = compared.map(|expr| self.expr(expr, scope, node)).transpose()?;
        let (sub, column) = self.subquery(subquery, scope, null_aware)?;
        let key = input.zip(column).map(|(input, column)| same_type(input, self.columns.expr(column)));
        let mark = self.columns.add("mark", DataType::Boolean, null_aware);
        let kind = JoinKind::Mark { mark, null_aware };
        join_subquery(node, sub, kind, key, Vec::new());
        let mark = self.columns.expr(mark);
        Ok(if negated { fold::not(mark) } else { mark })
    }

    /// `x op ANY (…)` and `x op ALL (…)` by aggregates of all rows: their number, the number of those that
    /// are not NULL, the minimum and the maximum. `x < ANY` is true if `x` is less than the maximum, `x <
    /// ALL` is false unless `x` is less than the minimum; otherwise the result is NULL if there is a NULL on
    /// either side; otherwise the opposite. Without rows, ANY is false and ALL is true.
    fn compare_all(
        &mut self,
        set: &SetComparison,
        op: CompareOp,
        quantifier: SetQuantifier,
        scope: &Scope,
        node: &mut Node,
    ) -> Result<Expr> {
        let input = self.expr(&set.expr, scope, node)?;
        let (sub, column) = self.subquery(&set.subquery, scope, true)?;
        let column = column.ok_or_else(|| Error::internal("ANY and ALL without a column"))?;
        let (x, y) = same_type(input, self.columns.expr(column));
        let ty = y.ty();
        let mut aggregates = Vec::with_capacity(4);
        let mut values = Vec::with_capacity(4);
        for (name, function, args, ty) in [
            ("rows", AggregateFunction::CountStar, vec![], DataType::Int64),
            ("values", AggregateFunction::Count, vec![y.clone()], DataType::Int64),
            ("least", AggregateFunction::Min, vec![y.clone()], ty),
            ("greatest", AggregateFunction::Max, vec![y], ty),
        ] {
            let column = self.columns.add(name, ty, true);
            let call =
                AggregateCall { function, args, distinct: false, filter: None, order_by: Vec::new(), ty };
            aggregates.push((column, call));
            values.push(self.columns.expr(column));
        }
        let sub = Node::Aggregate(Aggregate { input: Box::new(sub), groups: Vec::new(), aggregates });
        let outputs = sub.columns();
        join_subquery(node, sub, JoinKind::Single, None, outputs);
        let Ok([rows, values, least, greatest]) = <[Expr; 4]>::try_from(values) else {
            return Err(Error::internal("ANY and ALL without what they compare with"));
        };
        let any = quantifier == SetQuantifier::Any;
        // The deciding comparison: an example for ANY, a counterexample for ALL.
        let decisive = if any { op } else { inverse(op) };
        let decided = match decisive {
            CompareOp::Lt | CompareOp::LtEq => Expr::compare(decisive, x.clone(), greatest),
            CompareOp::Gt | CompareOp::GtEq => Expr::compare(decisive, x.clone(), least),
            _ => Expr::Or(vec![
                Expr::compare(CompareOp::NotEq, x.clone(), least),
                Expr::compare(CompareOp::NotEq, x.clone(), greatest),
            ]),
        };
        let zero = Expr::literal(Value::Integer(0), DataType::Int64);
        let unknown =
            Expr::Or(vec![Expr::IsNull(Box::new(x)), Expr::compare(CompareOp::Lt, values, rows.clone())]);
        Ok(Expr::Case {
            branches: vec![
                (Expr::compare(CompareOp::Eq, rows, zero), Expr::boolean(!any)),
                (decided, Expr::boolean(any)),
                (unknown, Expr::literal(Value::Null, DataType::Boolean)),
            ],
            otherwise: Some(Box::new(Expr::boolean(!any))),
            ty: DataType::Boolean,
        })
    }

    /// A join with the rows of a subquery in `FROM` that may refer to `outer`.
    pub(super) fn lateral(
        &mut self,
        outer: Node,
        sub: Node,
        kind: JoinKind,
        residual: Vec<Expr>,
    ) -> Result<Node> {
        if !is_dependent(&outer, &sub) {
            let mut residual = residual;
            let mut on: Vec<JoinKey> = Vec::new();
            split_keys(&outer, &sub, &mut on, &mut residual);
            return Ok(Node::Join(Join { left: Box::new(outer), right: Box::new(sub), kind, on, residual }));
        }
        let mut sub = sub;
        // What goes over the single row of a query without FROM goes over each outer row.
        if kind == JoinKind::Inner
            && let Some(row) = elements::single_row(&mut sub)
        {
            *row = outer;
            return Ok(filter(sub, Expr::and(residual)));
        }
        let outputs = sub.columns();
        let (left, right) = (Box::new(outer), Box::new(sub));
        Ok(Node::Dependent(Dependent { left, right, kind, on: None, residual, outputs }))
    }
}

/// True if a subquery reads columns of the outer rows.
fn is_dependent(outer: &Node, sub: &Node) -> bool {
    let free = free_columns(sub);
    !free.is_empty() && outer.columns().into_iter().any(|id| free.contains(id))
}

/// Joins `node` with the subquery `sub`; `key` is the equality of `IN` (outer, inner), `outputs` are the
/// columns of `sub` that are read.
fn join_subquery(
    node: &mut Node,
    sub: Node,
    kind: JoinKind,
    key: Option<(Expr, Expr)>,
    outputs: Vec<ColumnId>,
) {
    let left = take(node);
    let on = key.map(|(left, right)| JoinKey { left, right, null_equals_null: false });
    *node = match is_dependent(&left, &sub) {
        true => {
            Node::Dependent(Dependent { left, right: Box::new(sub), kind, on, residual: Vec::new(), outputs })
        }
        false => {
            // One row is as good as all of them, of which there may be no end.
            let sub = match (kind, &on) {
                (JoinKind::Semi | JoinKind::Anti | JoinKind::Mark { .. }, None) => {
                    Node::Limit(Limit { input: Box::new(sub), offset: 0, count: Some(1) })
                }
                _ => sub,
            };
            let on = on.into_iter().collect();
            Node::Join(Join { left, right: Box::new(sub), kind, on, residual: Vec::new() })
        }
    };
}

/// `input` where `predicate` is true.
pub(super) fn filter(input: Node, predicate: Expr) -> Node {
    let mut predicates = Vec::new();
    predicate.split_conjunction(&mut predicates);
    if predicates.is_empty() { input } else { Node::Filter(Filter { input: Box::new(input), predicates }) }
}

/// Whether `x IN (…)` may be NULL because of a NULL on either side.
fn may_be_null(in_subquery: &InSubquery, scope: &Scope) -> Result<bool> {
    let left = in_subquery.expr.nullable(scope.schema.as_ref()).map_err(from_datafusion)?;
    Ok(left || in_subquery.subquery.subquery.schema().fields().iter().any(|field| field.is_nullable()))
}

fn comparison(op: Operator) -> Result<CompareOp> {
    Ok(match op {
        Operator::Eq => CompareOp::Eq,
        Operator::NotEq => CompareOp::NotEq,
        Operator::Lt => CompareOp::Lt,
        Operator::LtEq => CompareOp::LtEq,
        Operator::Gt => CompareOp::Gt,
        Operator::GtEq => CompareOp::GtEq,
        other => return Err(Error::not_supported(format!("{other} ANY and ALL"))),
    })
}

fn inverse(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::NotEq,
        CompareOp::NotEq => CompareOp::Eq,
        CompareOp::Lt => CompareOp::GtEq,
        CompareOp::LtEq => CompareOp::Gt,
        CompareOp::Gt => CompareOp::LtEq,
        CompareOp::GtEq => CompareOp::Lt,
        CompareOp::DistinctFrom => CompareOp::NotDistinctFrom,
        CompareOp::NotDistinctFrom => CompareOp::DistinctFrom,
    }
}
