//! Subqueries in expressions: joins around the rows over which the expression is evaluated.
//!
//! | | as a conjunct of a filter | elsewhere |
//! |---|---|---|
//! | scalar | single join | single join |
//! | `EXISTS` | semi or anti join | mark join |
//! | `x IN (…)` | semi join; `NOT IN` a null-aware anti join | null-aware mark join |
//! | `x = ANY (…)`, `x <> ALL (…)` | null-aware mark join | null-aware mark join |
//! | any other `ANY`, `ALL` | single join with minimum and maximum | the same |
//!
//! `ANY` and `ALL` of a list are those of a subquery over its elements, and NULL if the list is.
//!
//! A subquery is bound where it stands. Its join waits in the scope ([`Pending`]) until the operator that
//! evaluates the expression is made: below the groups for arguments of aggregates, above them for the select
//! list. If it reads columns of the rows around, it is a dependent join, which the optimizer decorrelates.

use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::literal::plain;
use crate::operator::{comparable, comparison};
use crate::query::{one_row, take};
use crate::rowvalue::{self, Part, compare_all};
use crate::scope::Pending;
use crate::settle::settled;
use entasis_engine::plan::{
    Aggregate, AggregateCall, AggregateFunction, Dependent, Join, JoinKey, JoinKind, Limit, Node, Unnest,
    free_columns, split_keys,
};
use entasis_syntax::clauses;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result, Value};
use sqlparser::ast::{self, BinaryOperator, Query, UnaryOperator};

/// What a value is compared with by `IN`, `ANY` and `ALL`.
enum Others<'q> {
    /// The rows of a query of one column.
    Rows(&'q Query),
    /// The elements of a list.
    Elements(Bound, DataType),
}

/// A subquery with its columns.
struct Sub {
    node: Node,
    columns: Vec<ColumnId>,
}

impl<'a, 'q> Binder<'a, 'q> {
    fn sub(&mut self, query: &'q Query) -> Result<Sub> {
        let rows = self.query_rows(query)?;
        let (node, columns) = self.projected(rows);
        Ok(Sub { node, columns: columns.into_iter().map(|(_, column)| column).collect() })
    }

    /// A subquery of one column.
    fn single(&mut self, query: &'q Query) -> Result<(Node, ColumnId)> {
        let Sub { node, columns } = self.sub(query)?;
        match columns.as_slice() {
            [column] => Ok((node, *column)),
            columns => {
                let text = format!("a subquery gives {} columns where one is expected", columns.len());
                Err(located(Error::input(text), query))
            }
        }
    }

    /// What `ANY` and `ALL` compare with.
    fn others(&mut self, right: &'q ast::Expr) -> Result<Others<'q>> {
        if let ast::Expr::Subquery(query) = plain(right) {
            return Ok(Others::Rows(query));
        }
        let list = self.expr(right)?.of_any_length();
        match list.ty() {
            DataType::List(element) => Ok(Others::Elements(list, *element)),
            DataType::Null => Ok(Others::Elements(list, DataType::Null)),
            other => {
                let error = Error::input(format!("ANY and ALL take a query or a list, not {other}"));
                Err(located(error, right))
            }
        }
    }

    /// The elements of a list, in a column.
    fn elements(&mut self, list: Bound, element: DataType) -> (Node, ColumnId) {
        let column = self.columns.add("element", element, true);
        let lists = vec![(column, settled(list.cast(DataType::list(element))))];
        (Node::Unnest(Unnest { input: Box::new(one_row()), lists }), column)
    }

    fn pend(
        &mut self,
        node: Node,
        kind: JoinKind,
        key: Option<(Expr, Expr)>,
        outputs: Vec<ColumnId>,
    ) -> Result<()> {
        let Some(scope) = self.scopes.last_mut() else {
            return Err(Error::not_supported("subqueries here"));
        };
        scope.pending.push(Pending { node, kind, key, outputs, is_below_groups: false });
        Ok(())
    }

    /// `(SELECT …)` as a value: NULL without rows, an error with several.
    pub(crate) fn scalar_subquery(&mut self, query: &'q Query) -> Result<Bound> {
        let (node, column) = self.single(query)?;
        self.pend(node, JoinKind::Single, None, vec![column])?;
        Ok(Bound::known(self.columns.expr(column)))
    }

    /// `(SELECT a, b …)` as a row.
    pub(crate) fn row_subquery(&mut self, query: &'q Query) -> Result<Vec<Part>> {
        let Sub { node, columns } = self.sub(query)?;
        self.pend(node, JoinKind::Single, None, columns.clone())?;
        Ok(self.row_of_columns(&columns))
    }

    fn row_of_columns(&self, columns: &[ColumnId]) -> Vec<Part> {
        columns.iter().map(|column| Part::Value(Bound::known(self.columns.expr(*column)))).collect()
    }

    /// `[NOT] EXISTS (…)`
    pub(crate) fn exists(&mut self, query: &'q Query, negated: bool) -> Result<Bound> {
        let Sub { node, .. } = self.sub(query)?;
        self.mark(node, None, false, negated)
    }

    fn mark(
        &mut self,
        node: Node,
        key: Option<(Expr, Expr)>,
        null_aware: bool,
        negated: bool,
    ) -> Result<Bound> {
        let mark = self.columns.add("mark", DataType::Boolean, null_aware);
        self.pend(node, JoinKind::Mark { mark, null_aware }, key, Vec::new())?;
        let mark = self.columns.expr(mark);
        Ok(Bound::known(if negated { Expr::Not(Box::new(mark)) } else { mark }))
    }

    /// `input [NOT] IN (SELECT …)`
    pub(crate) fn in_subquery(
        &mut self,
        input: &'q ast::Expr,
        query: &'q Query,
        negated: bool,
    ) -> Result<Bound> {
        if let Some(own) = rowvalue::parts(input) {
            return self.row_quantified(&own, CompareOp::Eq, query, negated);
        }
        let (node, key) = self.compared(input, Others::Rows(query), CompareOp::Eq)?;
        self.mark(node, Some(key), true, negated)
    }

    /// A value, and the rows with which it is compared; both sides in one type.
    fn compared(
        &mut self,
        input: &'q ast::Expr,
        others: Others<'q>,
        op: CompareOp,
    ) -> Result<(Node, (Expr, Expr))> {
        let value = self.expr(input)?;
        let (node, column) = match others {
            Others::Rows(query) => self.single(query)?,
            Others::Elements(list, element) => self.elements(list, element),
        };
        let key = comparable(op, value, Bound::known(self.columns.expr(column)));
        Ok((node, key.map_err(|error| located(error, input))?))
    }

    /// `left op ANY (…)`, `left op ALL (…)`
    pub(crate) fn quantified(
        &mut self,
        left: &'q ast::Expr,
        op: &BinaryOperator,
        right: &'q ast::Expr,
        any: bool,
        whole: &'q ast::Expr,
    ) -> Result<Bound> {
        clauses::expression(whole)?;
        let op = comparison(op).ok_or_else(|| Error::not_supported(format!("{op} ANY and ALL")))?;
        let others = self.others(right)?;
        if let Some(own) = rowvalue::parts(left) {
            let Others::Rows(query) = others else {
                return Err(Error::not_supported("rows that are compared with the elements of a list"));
            };
            let op = if any { op } else { inverse(op) };
            return self.row_quantified(&own, op, query, !any);
        }
        let nullable = match &others {
            Others::Elements(list, _) if self.may_be_null(&list.expr) => Some(list.expr.clone()),
            _ => None,
        };
        let result = match (op, any) {
            (CompareOp::Eq, true) | (CompareOp::NotEq, false) => {
                let (node, key) = self.compared(left, others, CompareOp::Eq)?;
                self.mark(node, Some(key), true, !any)?
            }
            (op, any) => self.compared_with_all(left, op, others, any)?,
        };
        let Some(list) = nullable else { return Ok(result) };
        let unknown = (Expr::IsNull(Box::new(list)), Expr::literal(Value::Null, DataType::Boolean));
        Ok(Bound::known(Expr::Case {
            branches: vec![unknown],
            otherwise: Some(Box::new(result.expr)),
            ty: DataType::Boolean,
        }))
    }

    /// `x op ANY (…)` and `x op ALL (…)` by aggregates of all rows: their number, the number of those that
    /// are not NULL, the minimum and the maximum. `x < ANY` is true if `x` is less than the maximum, `x <
    /// ALL` is false unless `x` is less than the minimum; otherwise the result is NULL if there is a NULL on
    /// either side; otherwise the opposite. Without rows, ANY is false and ALL is true.
    fn compared_with_all(
        &mut self,
        left: &'q ast::Expr,
        op: CompareOp,
        others: Others<'q>,
        any: bool,
    ) -> Result<Bound> {
        let (node, (x, y)) = self.compared(left, others, op)?;
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
        let node = Node::Aggregate(Aggregate { input: Box::new(node), groups: Vec::new(), aggregates });
        let outputs = node.columns();
        self.pend(node, JoinKind::Single, None, outputs)?;
        let Ok([rows, values, least, greatest]) = <[Expr; 4]>::try_from(values) else {
            return Err(Error::internal("ANY and ALL without what they compare with"));
        };
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
        Ok(Bound::known(Expr::Case {
            branches: vec![
                (Expr::compare(CompareOp::Eq, rows, zero), Expr::boolean(!any)),
                (decided, Expr::boolean(any)),
                (unknown, Expr::literal(Value::Null, DataType::Boolean)),
            ],
            otherwise: Some(Box::new(Expr::boolean(!any))),
            ty: DataType::Boolean,
        }))
    }

    /// Whether there is a row of the query for which a test of its comparison with `input` is true.
    pub(crate) fn row_exists(
        &mut self,
        input: &[Part],
        op: CompareOp,
        query: &'q Query,
        test: impl Fn(Expr) -> Expr,
    ) -> Result<Expr> {
        let Sub { node, columns } = self.sub(query)?;
        let row = self.row_of_columns(&columns);
        let condition = settled(test(compare_all(op, input, &row)?));
        // The comparison filters the rows of the subquery, which reads those around.
        let node = crate::query::filter(node, condition);
        Ok(self.mark(node, None, false, false)?.expr)
    }

    /// Turns a conjunct of a filter over `node` into a semi or anti join around it; false if it is none.
    pub(crate) fn semi_join(&mut self, conjunct: &'q ast::Expr, node: &mut Node) -> Result<bool> {
        let (inner, negate) = match plain(conjunct) {
            ast::Expr::UnaryOp { op: UnaryOperator::Not, expr } => (plain(expr), true),
            other => (other, false),
        };
        match inner {
            ast::Expr::Exists { subquery, negated } => {
                let Sub { node: sub, .. } = self.sub(subquery)?;
                let kind = if *negated != negate { JoinKind::Anti } else { JoinKind::Semi };
                join_subquery(node, sub, kind, None, Vec::new());
                Ok(true)
            }
            ast::Expr::InSubquery { expr, subquery, negated } => {
                let is_negated = *negated != negate;
                if let Some(own) = rowvalue::parts(expr) {
                    // Only whether it is true matters.
                    let input = self.row(&own)?;
                    self.flush(node);
                    let Sub { node: sub, columns } = self.sub(subquery)?;
                    let row = self.row_of_columns(&columns);
                    let equal = compare_all(CompareOp::Eq, &input, &row)?;
                    let (kind, holds) = match is_negated {
                        false => (JoinKind::Semi, equal),
                        true => (
                            JoinKind::Anti,
                            Expr::compare(CompareOp::DistinctFrom, equal, Expr::boolean(false)),
                        ),
                    };
                    let mut residual = Vec::new();
                    settled(holds).split_conjunction(&mut residual);
                    join_by_conditions(node, sub, kind, residual);
                    return Ok(true);
                }
                let (sub, (left, right)) = self.compared(expr, Others::Rows(subquery), CompareOp::Eq)?;
                // Subqueries within the value come first.
                self.flush(node);
                let kind = match is_negated {
                    false => JoinKind::Semi,
                    true if self.may_be_null(&left) || self.may_be_null(&right) => JoinKind::NullAwareAnti,
                    true => JoinKind::Anti,
                };
                let key = (settled(left), settled(right));
                join_subquery(node, sub, kind, Some(key), Vec::new());
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Joins the subqueries that wait in the scope around `node`.
    pub(crate) fn flush(&mut self, node: &mut Node) {
        let pending = std::mem::take(&mut self.scope().pending);
        for pending in pending {
            join_pending(node, pending);
        }
    }
}

/// Joins a subquery that has waited.
pub(crate) fn join_pending(node: &mut Node, pending: Pending) {
    let Pending { node: sub, kind, key, outputs, is_below_groups: _ } = pending;
    let key = key.map(|(left, right)| (settled(left), settled(right)));
    join_subquery(node, sub, kind, key, outputs);
}

/// True if a subquery reads columns of the rows around.
pub(crate) fn is_dependent(outer: &Node, sub: &Node) -> bool {
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

/// A semi or anti join by conditions over both sides.
fn join_by_conditions(node: &mut Node, sub: Node, kind: JoinKind, mut residual: Vec<Expr>) {
    let left = take(node);
    *node = match is_dependent(&left, &sub) {
        true => Node::Dependent(Dependent {
            left,
            right: Box::new(sub),
            kind,
            on: None,
            residual,
            outputs: Vec::new(),
        }),
        false => {
            let mut on = Vec::new();
            split_keys(&left, &sub, &mut on, &mut residual);
            Node::Join(Join { left, right: Box::new(sub), kind, on, residual })
        }
    };
}

/// The comparison that is true where the other one is false.
pub(crate) fn inverse(op: CompareOp) -> CompareOp {
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
