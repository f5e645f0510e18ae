//! Decorrelation: dependent joins ([`Node::Dependent`]) become joins.
//!
//! The right side of a dependent join reads columns of the left row, which nothing below it makes. Innermost
//! first, each becomes a join whose sides are independent. There are two ways to remove the references:
//!
//! 1. **Pulling up** ([`pull`]). Works for nearly all queries, and computes nothing twice.
//! 2. **The general method** ([`domain`]), with the distinct values of the columns that are read.
//!
//! An aggregate without groups returns one row even for an empty input. After unnesting it returns none for
//! left rows without matches, so the join has to be an outer one, and counts, which must be zero, are
//! replaced by zero above it.
//!
//! A `LIMIT 1` is an aggregate by then ([`first`]). Any other `LIMIT` takes the general method, with the rows
//! numbered by a window for each value of the domain. `IN` with NULLs becomes several joins ([`null_aware`]).
//!
//! A right side that calls a volatile function (`random`, `nextval`) is computed once for each left row: the
//! left rows are numbered, and the numbers are what tells the domain's elements apart. The same is done for
//! lists and structs, which are long to compare: `unnest` of a list would take quadratic time.
//!
//! A recursion that reads the left row is computed for all values of the domain at once ([`recursion`]).
//!
//! Everything can be decorrelated. A right side that reads rows further out as well, and calls volatile
//! functions, is computed once for each value of the domain, not for each left row; and a recursion without
//! an end has none, even if a `LIMIT` wants few of its rows.
//!
//! ```text
//! first  null_aware  domain  recursion        ways of the methods of Decorrelation
//! pull  joins                                 conditions that move up; joins of the outcome
//! ```

mod domain;
mod first;
mod joins;
mod null_aware;
mod pull;
mod recursion;

use crate::plan::correlation::{free_columns, is_repeatable};
use crate::plan::equalities::split_keys;
use crate::plan::tree::{ColumnSet, columns_of, reads, substitute, take};
use crate::plan::{Columns, Dependent, JoinKey, JoinKind, Limit, Node, Plan, Project};
use crate::relation::Relation;
use domain::Domain;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result, Schema, statement};
use joins::{is_null_aware, join, not, where_true};
use null_aware::Unknown;
use pull::{Pulled, is_single_row, pull};
use std::sync::Arc;

/// What a query needs of a subquery's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Only whether there are any.
    Exists,
    /// The set of values.
    In,
    /// The only value.
    Scalar,
    /// All rows and columns.
    Lateral,
}

impl Purpose {
    fn of(kind: JoinKind, has_key: bool) -> Purpose {
        match kind {
            JoinKind::Single => Purpose::Scalar,
            JoinKind::Semi | JoinKind::Anti | JoinKind::NullAwareAnti | JoinKind::Mark { .. } if has_key => {
                Purpose::In
            }
            JoinKind::Semi | JoinKind::Anti | JoinKind::NullAwareAnti | JoinKind::Mark { .. } => {
                Purpose::Exists
            }
            JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full | JoinKind::AsOf { .. } => {
                Purpose::Lateral
            }
        }
    }
}

/// Puts joins in place of all dependent joins of a plan.
///
/// # Errors
/// Internal, if a column is read that nothing makes; interrupted.
pub(crate) fn decorrelate(plan: &mut Plan, share: Share) -> Result<()> {
    Decorrelation { columns: &mut plan.columns, share }.unnest(&mut plan.root)
}

/// Makes a relation of a plan, whose rows are computed once, of its name and columns.
pub(crate) type Share = fn(String, Schema, Plan) -> Arc<dyn Relation>;

/// The state of the rule.
struct Decorrelation<'a> {
    columns: &'a mut Columns,
    share: Share,
}

/// A join with a subquery.
struct Outcome {
    /// The left rows, joined.
    node: Node,
    /// The requested expressions over the subquery, as expressions over `node`.
    values: Vec<Expr>,
}

impl Decorrelation<'_> {
    /// Unnests all dependent joins of a tree, those within others first.
    fn unnest(&mut self, node: &mut Node) -> Result<()> {
        node.children_mut().into_iter().try_for_each(|child| self.unnest(child))?;
        if matches!(node, Node::Dependent(_)) {
            statement::check()?;
            *node = match take(node) {
                Node::Dependent(dependent) => self.independent(dependent)?,
                other => other,
            };
        }
        Ok(())
    }

    /// A dependent join, whose inputs have none, as a tree without one. The columns that come out are the
    /// same.
    fn independent(&mut self, dependent: Dependent) -> Result<Node> {
        let Dependent { left, right, kind, on, residual, outputs } = dependent;
        let purpose = Purpose::of(kind, on.is_some());
        // All columns of a lateral one come out anyway.
        let outputs = if purpose == Purpose::Scalar { outputs } else { Vec::new() };
        let values = outputs.iter().map(|id| self.columns.expr(*id)).collect();
        let key = on.map(|key| (key.left, key.right));
        let Outcome { node, values } =
            self.join_subquery(*left, *right, purpose, kind, key, residual, values)?;
        // What is computed above the join.
        let is_computed =
            |(id, value): &(ColumnId, Expr)| !matches!(value, Expr::Column { id: own, .. } if own == id);
        let exprs: Vec<(ColumnId, Expr)> = outputs.into_iter().zip(values).filter(is_computed).collect();
        Ok(match exprs.is_empty() {
            true => node,
            false => Node::Project(Project { input: Box::new(node), exprs }),
        })
    }

    /// Joins `outer` with the subquery `sub`. `key` is the equality of `IN` (outer, inner), `residual` are
    /// additional conditions, `values` are the requested expressions over the subquery's columns.
    fn join_subquery(
        &mut self,
        outer: Node,
        sub: Node,
        purpose: Purpose,
        kind: JoinKind,
        key: Option<(Expr, Expr)>,
        residual: Vec<Expr>,
        values: Vec<Expr>,
    ) -> Result<Outcome> {
        let mut free = free_columns(&sub);
        free.retain(&columns_of(&outer));
        if free.is_empty() {
            let sub = match purpose {
                // One row is as good as all of them, of which there may be no end.
                Purpose::Exists => Node::Limit(Limit { input: Box::new(sub), offset: 0, count: Some(1) }),
                _ => sub,
            };
            let on = key.map(|(left, right)| JoinKey { left, right, null_equals_null: false });
            return Ok(Outcome { node: join(outer, sub, kind, on, residual), values });
        }
        let values_read = values.iter().chain(&residual).chain(key.iter().map(|(_, inner)| inner));
        let sub = self.first_rows(sub, &free, purpose, values_read)?;
        // A subquery that always returns a row always exists.
        if purpose == Purpose::Exists && is_single_row(&sub) {
            return Ok(self.always(outer, kind));
        }
        if !is_repeatable(&sub) && free_columns(&outer).is_empty() {
            let (outer, row) = self.numbered(outer);
            let domain = self.domain(&outer, &free, Some(row));
            return self.join_dependent(outer, sub, &domain, kind, key, residual, values);
        }
        let pulled = pull(sub.clone(), &free, purpose, self.columns);
        match pulled.filter(|pulled| pulled.can_be_joined(purpose, kind, key.as_ref(), &residual)) {
            Some(pulled) => self.join_pulled(outer, pulled, purpose, kind, key, residual, values),
            None if self.has_nested(&free) && free_columns(&outer).is_empty() => {
                let (outer, row) = self.numbered(outer);
                let domain = self.domain(&outer, &free, Some(row));
                self.join_dependent(outer, sub, &domain, kind, key, residual, values)
            }
            None => {
                let outer = self.settled(outer);
                let domain = self.domain(&outer, &free, None);
                self.join_dependent(outer, sub, &domain, kind, key, residual, values)
            }
        }
    }

    /// True if a list or a struct is among these columns: its elements are as many rows, and each of them
    /// would be compared by the whole list.
    fn has_nested(&self, columns: &ColumnSet) -> bool {
        columns.iter().any(|id| self.columns.ty(id).is_nested())
    }

    /// The join of the general method.
    fn join_dependent(
        &mut self,
        outer: Node,
        sub: Node,
        domain: &Domain,
        kind: JoinKind,
        key: Option<(Expr, Expr)>,
        mut residual: Vec<Expr>,
        values: Vec<Expr>,
    ) -> Result<Outcome> {
        let (sub, domain_columns) = self.depend(sub, domain)?;
        let own = domain.free.iter().map(|id| self.columns.expr(*id)).chain(domain.forms.clone());
        for (own, column) in own.zip(domain.keys(&domain_columns)) {
            let column = self.columns.expr(*column);
            residual.push(Expr::compare(CompareOp::NotDistinctFrom, own, column));
        }
        let on = key.map(|(left, right)| JoinKey { left, right, null_equals_null: false });
        Ok(Outcome { node: self.join_correlated(outer, sub, kind, on, residual), values })
    }

    /// A join on conditions some of which may define groups of the right side.
    fn join_correlated(
        &mut self,
        outer: Node,
        sub: Node,
        kind: JoinKind,
        on: Option<JoinKey>,
        residual: Vec<Expr>,
    ) -> Node {
        let is_asked = is_null_aware(kind) || matches!(kind, JoinKind::Anti | JoinKind::Mark { .. });
        if residual.is_empty() || !is_asked || !is_repeatable(&sub) {
            return join(outer, sub, kind, on, residual);
        }
        let (mut group, mut rest) = (Vec::new(), residual.clone());
        split_keys(&outer, &sub, &mut group, &mut rest);
        match (on, rest.as_slice()) {
            (Some(key), []) if is_null_aware(kind) => self.null_aware_groups(outer, sub, kind, key, group),
            (None, [condition]) => match Unknown::read(condition, &outer, &sub) {
                Some(unknown) => self.perhaps_equal(outer, sub, kind, unknown, group),
                None => join(outer, sub, kind, None, residual),
            },
            (on, _) => join(outer, sub, kind, on, residual),
        }
    }

    fn join_pulled(
        &mut self,
        outer: Node,
        pulled: Pulled,
        purpose: Purpose,
        kind: JoinKind,
        key: Option<(Expr, Expr)>,
        residual: Vec<Expr>,
        values: Vec<Expr>,
    ) -> Result<Outcome> {
        if pulled.single_row {
            let values = values.into_iter().map(|value| substitute(value, &pulled.definitions)).collect();
            return Ok(Outcome { node: join_single_row(outer, pulled, kind, key, residual)?, values });
        }
        self.join_rows(outer, pulled, (purpose, kind), key, residual, values)
    }

    /// Joins a subquery that returned any number of rows.
    fn join_rows(
        &mut self,
        outer: Node,
        pulled: Pulled,
        (purpose, mut kind): (Purpose, JoinKind),
        key: Option<(Expr, Expr)>,
        residual: Vec<Expr>,
        values: Vec<Expr>,
    ) -> Result<Outcome> {
        let Pulled { node, mut predicates, definitions, .. } = pulled;
        let define = |expr: Expr| substitute(expr, &definitions);
        let is_computed = |value: &Expr| definitions.keys().any(|id| reads(value).contains(*id));
        let needs_row = purpose == Purpose::Scalar && values.iter().any(is_computed);
        let values: Vec<Expr> = values.into_iter().map(define).collect();
        let (node, values) = if needs_row { self.where_found(node, values) } else { (node, values) };
        predicates.extend(residual.into_iter().map(define));
        let mut on = None;
        if let Some((left, right)) = key {
            let right = define(right);
            // A value that depends on the outer row cannot be a key.
            if reads(&right).is_subset(&columns_of(&node)) {
                on = Some(JoinKey { left, right, null_equals_null: false });
            } else if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
                predicates.push(Expr::compare(CompareOp::Eq, left, right));
            } else if kind == JoinKind::NullAwareAnti {
                // NOT IN is true only if every row is certain to differ.
                let equal = Expr::compare(CompareOp::Eq, left, right);
                predicates.push(Expr::compare(CompareOp::DistinctFrom, equal, Expr::boolean(false)));
                kind = JoinKind::Anti;
            } else {
                return Err(Error::internal("a key of both sides"));
            }
        }
        if purpose == Purpose::Lateral && !definitions.is_empty() {
            let joined = join(outer, node, kind, None, predicates);
            let exprs = definitions.into_iter().collect();
            let node = Node::Project(Project { input: Box::new(joined), exprs });
            return Ok(Outcome { node, values });
        }
        Ok(Outcome { node: self.join_correlated(outer, node, kind, on, predicates), values })
    }

    /// Values that are computed above the join with `node`, which has a new column that tells whether there
    /// is a row: without one they are NULL, and are not computed.
    fn where_found(&mut self, node: Node, values: Vec<Expr>) -> (Node, Vec<Expr>) {
        let found = self.columns.add("found", DataType::Boolean, false);
        let exprs = vec![(found, Expr::boolean(true))];
        let is_found = Expr::Not(Box::new(Expr::IsNull(Box::new(self.columns.expr(found)))));
        let values = values.into_iter().map(|value| {
            let ty = value.ty();
            Expr::Case { branches: vec![(is_found.clone(), value)], otherwise: None, ty }
        });
        (Node::Project(Project { input: Box::new(node), exprs }), values.collect())
    }

    /// The outcome of an `EXISTS` that is always true.
    fn always(&mut self, outer: Node, kind: JoinKind) -> Outcome {
        let node = match kind {
            JoinKind::Mark { mark, .. } => {
                Node::Project(Project { input: Box::new(outer), exprs: vec![(mark, Expr::boolean(true))] })
            }
            JoinKind::Anti | JoinKind::NullAwareAnti => where_true(outer, Expr::boolean(false)),
            _ => outer,
        };
        Outcome { node, values: Vec::new() }
    }
}

/// Joins a subquery that returned one row for each outer row: its values come from a single join, and
/// everything else is computed above it.
fn join_single_row(
    outer: Node,
    pulled: Pulled,
    kind: JoinKind,
    key: Option<(Expr, Expr)>,
    residual: Vec<Expr>,
) -> Result<Node> {
    let Pulled { node, predicates, definitions, .. } = pulled;
    let define = |expr: Expr| substitute(expr, &definitions);
    let joined = join(outer, node, JoinKind::Single, None, predicates);
    let mut conditions: Vec<Expr> = residual.into_iter().map(define).collect();
    if let Some((left, right)) = key {
        conditions.push(Expr::compare(CompareOp::Eq, left, define(right)));
    }
    let condition = Expr::and(conditions);
    Ok(match kind {
        JoinKind::Single => joined,
        JoinKind::Semi => where_true(joined, condition),
        JoinKind::Anti | JoinKind::NullAwareAnti => where_true(joined, not(condition)),
        JoinKind::Mark { mark, .. } => {
            Node::Project(Project { input: Box::new(joined), exprs: vec![(mark, condition)] })
        }
        JoinKind::Inner | JoinKind::Left => {
            let mut exprs: Vec<(ColumnId, Expr)> = definitions.into_iter().collect();
            exprs.sort_by_key(|(id, _)| *id);
            let node = match exprs.is_empty() {
                true => joined,
                false => Node::Project(Project { input: Box::new(joined), exprs }),
            };
            where_true(node, condition)
        }
        JoinKind::Right | JoinKind::Full => return Err(Error::internal("a subquery in an outer join")),
        JoinKind::AsOf { .. } => return Err(Error::internal("a subquery in an as-of join")),
    })
}
