//! Decorrelation of subqueries.
//!
//! A lowered subquery that refers to the outer query reads columns that nothing below it produces. There are
//! two ways to remove these references:
//!
//! 1. **Pulling up.** Conditions that read outer columns move up through filters, projections, inner joins
//!    and aggregates (as additional group keys, if they are equalities) until they are conditions of the join
//!    with the outer query. Nothing is computed twice. This works for nearly all queries.
//! 2. **The general method** (Neumann and Kemper, *Unnesting Arbitrary Queries*, BTW 2015). The distinct
//!    values of the outer columns, the *domain*, are joined in where they are needed, carried to the top as
//!    additional columns, and compared there with the outer query's own. The domain is computed from a second
//!    copy of the outer query.
//!
//! An aggregate without groups returns one row even for an empty input. After unnesting it returns none for
//! outer rows without matches, so the join has to be an outer one, and counts, which must be zero, are
//! replaced by zero above it.
//!
//! A `LIMIT 1` is an aggregate by then ([`super::first`]). Any other `LIMIT` takes the general method, with
//! the rows numbered by a window for each value of the domain.
//!
//! A correlated subquery that calls a volatile function (`random`, `nextval`) is computed once for each outer
//! row: the outer rows are numbered, and the domain consists of the numbers.

use super::Lowering;
use super::keys::{as_key, split_keys};
use super::null_aware::Unknown;
use super::tree::{free_columns, is_repeatable, refresh, replace, substitute};
use super::window::row_number;
use entasis_engine::plan::{
    Aggregate, AggregateFunction, Columns, Distinct, Filter, Join, JoinKey, JoinKind, Limit, Node, Project,
    Scan, SetOperation, Sort, SortKey, Unnest, Values, Window, has_forms,
};
use entasis_functions::expressions::fold;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result, Value};
use std::collections::{HashMap, HashSet};

/// What a query needs of a subquery's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Only whether there are any.
    Exists,
    /// The set of values.
    In,
    /// The only value.
    Scalar,
    /// All rows and columns.
    Lateral,
}

/// A join with a subquery.
pub(super) struct Outcome {
    /// The outer rows, joined.
    pub(super) node: Node,
    /// The requested expressions over the subquery, as expressions over `node`.
    pub(super) values: Vec<Expr>,
}

/// A subquery whose correlated conditions have been pulled up.
struct Pulled {
    /// The rest of the subquery.
    node: Node,
    /// Conditions over the outer columns and those of `node`.
    predicates: Vec<Expr>,
    /// Columns that `node` no longer has, as expressions over its columns and the outer ones.
    definitions: HashMap<ColumnId, Expr>,
    /// Whether the subquery returned exactly one row, so that `node` lacks the row computed over an empty
    /// input.
    single_row: bool,
}

impl Pulled {
    /// Whether a join of this kind can use it directly; otherwise the general method is needed.
    fn can_be_joined(
        &self,
        purpose: Purpose,
        kind: JoinKind,
        key: Option<&(Expr, Expr)>,
        residual: &[Expr],
    ) -> bool {
        let is_inner = kind == JoinKind::Inner;
        if !self.single_row {
            // A mark is decided for each pair by the key alone; an outer join yields NULL for what is
            // computed above it.
            let is_computed = |expr: &Expr| self.definitions.keys().any(|id| expr_reads(expr, *id));
            let marked =
                matches!(kind, JoinKind::Mark { .. }) && key.is_some_and(|(_, inner)| is_computed(inner));
            return !marked && (purpose != Purpose::Lateral || is_inner || self.definitions.is_empty());
        }
        // A count must be replaced by zero, which is possible only for values of a scalar subquery.
        let mut definitions = self.definitions.iter();
        purpose != Purpose::Lateral
            || ((is_inner || residual.is_empty()) && !definitions.any(|(id, expr)| expr_reads(expr, *id)))
    }
}

impl Lowering<'_> {
    /// Joins `outer` with the subquery `sub`. `key` is the equality of `IN` (outer, inner), `residual` are
    /// additional conditions, `values` are the requested expressions over the subquery's columns.
    pub(super) fn join_subquery(
        &mut self,
        outer: Node,
        sub: Node,
        purpose: Purpose,
        kind: JoinKind,
        key: Option<(Expr, Expr)>,
        residual: Vec<Expr>,
        values: Vec<Expr>,
    ) -> Result<Outcome> {
        let outer_columns: HashSet<ColumnId> = outer.columns().into_iter().collect();
        let free: HashSet<ColumnId> =
            free_columns(&sub).into_iter().filter(|id| outer_columns.contains(id)).collect();
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
        let pulled = pull(sub.clone(), &free, purpose, &mut self.columns);
        match pulled.filter(|pulled| pulled.can_be_joined(purpose, kind, key.as_ref(), &residual)) {
            Some(pulled) => self.join_pulled(outer, pulled, purpose, kind, key, residual, values),
            None => {
                let outer = self.settled(outer);
                let domain = self.domain(&outer, &free, None);
                self.join_dependent(outer, sub, &domain, kind, key, residual, values)
            }
        }
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
        // The number of a row tells its other columns.
        let told = if domain.per_row { 1 } else { domain_columns.len() };
        for (own, column) in own.zip(&domain_columns).take(told) {
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
        mut kind: JoinKind,
        key: Option<(Expr, Expr)>,
        residual: Vec<Expr>,
        values: Vec<Expr>,
    ) -> Result<Outcome> {
        let Pulled { node, mut predicates, definitions, single_row } = pulled;
        let define = |expr: Expr| substitute(expr, &definitions);
        let is_computed = |value: &Expr| definitions.keys().any(|id| expr_reads(value, *id));
        let needs_row = !single_row && purpose == Purpose::Scalar && values.iter().any(is_computed);
        let values: Vec<Expr> = values.into_iter().map(define).collect();
        let (node, values) = if needs_row { self.where_found(node, values) } else { (node, values) };
        if !single_row {
            predicates.extend(residual.into_iter().map(define));
            let mut on = None;
            if let Some((left, right)) = key {
                let right = define(right);
                // A value that depends on the outer row cannot be a key.
                let inner: HashSet<ColumnId> = node.columns().into_iter().collect();
                if reads_within(&right, &inner) {
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
                return Ok(Outcome {
                    node: Node::Project(Project { input: Box::new(joined), exprs }),
                    values,
                });
            }
            return Ok(Outcome { node: self.join_correlated(outer, node, kind, on, predicates), values });
        }
        // One row for each outer row: its values come from a single join, and everything else is computed
        // above it.
        let joined = join(outer, node, JoinKind::Single, None, predicates);
        let mut conditions: Vec<Expr> = residual.into_iter().map(define).collect();
        if let Some((left, right)) = key {
            conditions.push(Expr::compare(CompareOp::Eq, left, define(right)));
        }
        let condition = Expr::and(conditions);
        let node = match kind {
            JoinKind::Single => joined,
            JoinKind::Semi => filter(joined, condition),
            JoinKind::Anti | JoinKind::NullAwareAnti => filter(joined, fold::not(condition)),
            JoinKind::Mark { mark, .. } => {
                Node::Project(Project { input: Box::new(joined), exprs: vec![(mark, condition)] })
            }
            JoinKind::Inner | JoinKind::Left => {
                let mut exprs: Vec<(ColumnId, Expr)> =
                    definitions.iter().map(|(id, e)| (*id, e.clone())).collect();
                exprs.sort_by_key(|(id, _)| *id);
                let node = if exprs.is_empty() {
                    joined
                } else {
                    Node::Project(Project { input: Box::new(joined), exprs })
                };
                filter(node, condition)
            }
            JoinKind::Right | JoinKind::Full => return Err(Error::internal("a subquery in an outer join")),
            JoinKind::AsOf { .. } => return Err(Error::internal("a subquery in an as-of join")),
        };
        Ok(Outcome { node, values })
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
            JoinKind::Anti | JoinKind::NullAwareAnti => filter(outer, Expr::boolean(false)),
            _ => outer,
        };
        Outcome { node, values: Vec::new() }
    }

    // ---- the general method -------------------------------------------------------------------------------

    /// `outer` so that a copy of it has the same rows: what might give others the second time is shared.
    fn settled(&mut self, outer: Node) -> Node {
        if !may_differ(&outer) || !free_columns(&outer).is_empty() {
            return outer;
        }
        self.shared_rows(outer)
    }

    fn shared_rows(&mut self, outer: Node) -> Node {
        let columns = outer.columns().into_iter().zip(0..).collect();
        Node::Scan(Scan::all(self.share("outer rows", outer), columns))
    }

    /// `outer` with a new column that numbers its rows, the same in each copy of it.
    fn numbered(&mut self, outer: Node) -> (Node, ColumnId) {
        let row = self.columns.add("row", DataType::Int64, false);
        let numbered = Node::Window(Window {
            input: Box::new(outer),
            partition: Vec::new(),
            order: Vec::new(),
            calls: vec![(row, row_number())],
            top: None,
        });
        (self.shared_rows(numbered), row)
    }

    /// The distinct values of `free` in `outer`, or those of each row if there is a column that numbers them.
    /// Equal values that a subquery may tell apart are kept apart, by their texts.
    fn domain(&mut self, outer: &Node, free: &HashSet<ColumnId>, row: Option<ColumnId>) -> Domain {
        let mut free: Vec<ColumnId> = free.iter().copied().collect();
        free.sort();
        free.splice(0..0, row);
        let mut map = HashMap::new();
        let mut copy = refresh(outer.clone(), &mut self.columns, &mut map);
        let mut keys: Vec<ColumnId> = free.iter().map(|id| map[id]).collect();
        if row.is_some() {
            let node = Node::Distinct(Distinct::new(copy, keys));
            return Domain { node, free, forms: Vec::new(), per_row: true };
        }
        let text = |input| Expr::Cast { input: Box::new(input), ty: DataType::Varchar, lenient: false };
        let (mut forms, mut exprs) = (Vec::new(), Vec::new());
        for id in free.iter().filter(|id| has_forms(self.columns.ty(**id))) {
            forms.push(text(self.columns.expr(*id)));
            exprs.push(text(self.columns.expr(map[id])));
        }
        if !exprs.is_empty() {
            let exprs: Vec<(ColumnId, Expr)> = exprs
                .into_iter()
                .map(|expr| (self.columns.add("form", DataType::Varchar, true), expr))
                .collect();
            keys.extend(exprs.iter().map(|(id, _)| *id));
            copy = Node::Project(Project { input: Box::new(copy), exprs });
        }
        Domain { node: Node::Distinct(Distinct::new(copy, keys)), free, forms, per_row: false }
    }

    /// A fresh copy of the domain, and the columns that represent the free ones.
    fn copy_domain(&mut self, domain: &Domain) -> (Node, Vec<ColumnId>) {
        let copy = refresh(domain.node.clone(), &mut self.columns, &mut HashMap::new());
        let columns = copy.columns();
        (copy, columns)
    }

    /// `node` evaluated for every row of the domain: the result also has the domain's columns, which are
    /// returned in the order of the free columns.
    fn depend(&mut self, node: Node, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        if !domain.is_needed_by(&node) {
            let (copy, columns) = self.copy_domain(domain);
            return Ok((join(copy, node, JoinKind::Inner, None, vec![]), columns));
        }
        match node {
            Node::Filter(Filter { input, predicates }) => {
                let (input, columns) = self.depend(*input, domain)?;
                let map = self.domain_map(domain, &columns);
                let predicates = predicates.into_iter().map(|p| substitute(p, &map)).collect();
                Ok((Node::Filter(Filter { input: Box::new(input), predicates }), columns))
            }
            Node::Project(Project { input, exprs }) => {
                let (input, columns) = self.depend(*input, domain)?;
                let map = self.domain_map(domain, &columns);
                let exprs = exprs.into_iter().map(|(id, e)| (id, substitute(e, &map))).collect();
                Ok((Node::Project(Project { input: Box::new(input), exprs }), columns))
            }
            Node::Unnest(Unnest { input, lists }) => {
                let (input, columns) = self.depend(*input, domain)?;
                let map = self.domain_map(domain, &columns);
                let lists = lists.into_iter().map(|(id, e)| (id, substitute(e, &map))).collect();
                Ok((Node::Unnest(Unnest { input: Box::new(input), lists }), columns))
            }
            // Order matters only for a limit above, which numbers the rows.
            Node::Sort(Sort { input, .. }) => self.depend(*input, domain),
            Node::Limit(limit) => self.depend_limit(limit, domain),
            Node::Distinct(Distinct { input, mut keys, .. }) => {
                let (input, columns) = self.depend(*input, domain)?;
                keys.extend(&columns);
                Ok((Node::Distinct(Distinct::new(input, keys)), columns))
            }
            Node::Aggregate(aggregate) => self.depend_aggregate(aggregate, domain),
            Node::Join(join) => self.depend_join(join, domain),
            Node::SetOperation(SetOperation { kind, all, inputs, mut columns }) => {
                let mut dependent = Vec::with_capacity(inputs.len());
                let mut own: Vec<ColumnId> = Vec::new();
                for (input, mut outputs) in inputs {
                    let (input, domain_columns) = self.depend(input, domain)?;
                    if own.is_empty() {
                        own = self.copies(&domain_columns);
                    }
                    outputs.extend(domain_columns);
                    dependent.push((input, outputs));
                }
                columns.extend(&own);
                Ok((Node::SetOperation(SetOperation { kind, all, inputs: dependent, columns }), own))
            }
            Node::Window(mut window) => {
                // The rows for each outer row are partitions of their own.
                let input = std::mem::replace(&mut *window.input, super::one_row());
                let (input, columns) = self.depend(input, domain)?;
                let map = self.domain_map(domain, &columns);
                window.exprs_mut().for_each(|expr| replace(expr, &map));
                window.partition.extend(columns.iter().map(|id| self.columns.expr(*id)));
                Ok((Node::Window(Window { input: Box::new(input), ..window }), columns))
            }
            Node::Scan(_) | Node::Values(_) => Err(Error::internal("a correlated scan")),
        }
    }

    /// The first rows for each value of the domain: those with the least numbers in the order.
    fn depend_limit(&mut self, limit: Limit, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        let Limit { input, offset, count } = limit;
        let mut input = *input;
        // Projections do not change which rows come first.
        let mut computed = Vec::new();
        while let Node::Project(Project { input: below, exprs }) = input {
            if exprs.iter().any(|(_, expr)| expr.is_volatile()) {
                return Err(Error::not_supported("LIMIT in a correlated subquery over volatile functions"));
            }
            computed.push(exprs);
            input = *below;
        }
        let (input, keys) = match input {
            Node::Sort(Sort { input, keys, .. }) => (*input, keys),
            other => (other, Vec::new()),
        };
        let (mut node, columns) = self.depend(input, domain)?;
        let map = self.domain_map(domain, &columns);
        let order = keys.into_iter().map(|key| SortKey { expr: substitute(key.expr, &map), ..key }).collect();
        let number = self.columns.add("number", DataType::Int64, false);
        let partition = columns.iter().map(|column| self.columns.expr(*column)).collect();
        node = Node::Window(Window {
            input: Box::new(node),
            partition,
            order,
            calls: vec![(number, row_number())],
            top: None,
        });
        let bound = |op, rows: usize| {
            let rows = Expr::literal(Value::Integer(rows as i128), DataType::Int64);
            Expr::compare(op, Expr::column(number, DataType::Int64), rows)
        };
        let mut predicates = Vec::new();
        predicates.extend(
            count.map(|count| bound(CompareOp::LtEq, offset.saturating_add(count).min(i64::MAX as usize))),
        );
        if offset > 0 {
            predicates.push(bound(CompareOp::Gt, offset.min(i64::MAX as usize)));
        }
        node = filter(node, Expr::and(predicates));
        for exprs in computed.into_iter().rev() {
            let exprs = exprs.into_iter().map(|(id, expr)| (id, substitute(expr, &map))).collect();
            node = Node::Project(Project { input: Box::new(node), exprs });
        }
        Ok((node, columns))
    }

    fn depend_aggregate(&mut self, aggregate: Aggregate, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        let Aggregate { input, mut groups, mut aggregates } = aggregate;
        let (input, columns) = self.depend(*input, domain)?;
        let map = self.domain_map(domain, &columns);
        for (_, expr) in &mut groups {
            replace(expr, &map);
        }
        for (_, call) in &mut aggregates {
            call.args.iter_mut().chain(&mut call.filter).for_each(|expr| replace(expr, &map));
            call.order_by.iter_mut().for_each(|key| replace(&mut key.expr, &map));
        }
        let single_row = groups.is_empty();
        let own = self.copies(&columns);
        groups.extend(own.iter().zip(&columns).map(|(own, column)| (*own, self.columns.expr(*column))));
        if !single_row {
            return Ok((Node::Aggregate(Aggregate { input: Box::new(input), groups, aggregates }), own));
        }
        // Every value of the domain has its row, even for an empty input.
        let mut counts = Vec::new();
        for (id, call) in &mut aggregates {
            if is_count(&call.function) {
                let info = self.columns.get(*id).clone();
                let inner = self.columns.add(info.name, info.ty, true);
                counts.push((*id, or_zero(self.columns.expr(inner))));
                *id = inner;
            }
        }
        let grouped = Node::Aggregate(Aggregate { input: Box::new(input), groups, aggregates });
        let (copy, domain_columns) = self.copy_domain(domain);
        let same = domain_columns
            .iter()
            .zip(&own)
            .map(|(a, b)| {
                Expr::compare(CompareOp::NotDistinctFrom, self.columns.expr(*a), self.columns.expr(*b))
            })
            .collect();
        let mut node = join(copy, grouped, JoinKind::Left, None, same);
        if !counts.is_empty() {
            node = Node::Project(Project { input: Box::new(node), exprs: counts });
        }
        Ok((node, domain_columns))
    }

    fn depend_join(&mut self, join_node: Join, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        let Join { left, right, kind, on, residual } = join_node;
        let needs = |node: &Node| domain.is_needed_by(node);
        let (left, right, kind, on) = match kind {
            JoinKind::Right => {
                let on = on.into_iter().map(|JoinKey { left, right, null_equals_null }| JoinKey {
                    left: right,
                    right: left,
                    null_equals_null,
                });
                (right, left, JoinKind::Left, on.collect())
            }
            JoinKind::Full => return Err(Error::not_supported("FULL JOIN in a correlated subquery")),
            _ => (left, right, kind, on),
        };
        if kind == JoinKind::Inner && !needs(&left) {
            // Only the right side or the condition depends on the domain, so the domain comes from the right.
            let (right, columns) = self.depend(*right, domain)?;
            let map = self.domain_map(domain, &columns);
            let (on, residual) = substitute_join(on, residual, &map);
            return Ok((rejoin(*left, right, kind, on, residual), columns));
        }
        let right_needs = needs(&right);
        let (left, columns) = self.depend(*left, domain)?;
        let map = self.domain_map(domain, &columns);
        let (on, mut residual) = substitute_join(on, residual, &map);
        let mut right = *right;
        if right_needs {
            let (dependent, right_columns) = self.depend(right, domain)?;
            right = dependent;
            for (a, b) in columns.iter().zip(&right_columns) {
                let (a, b) = (self.columns.expr(*a), self.columns.expr(*b));
                residual.push(Expr::compare(CompareOp::NotDistinctFrom, a, b));
            }
        }
        Ok((rejoin(left, right, kind, on, residual), columns))
    }

    /// Maps the free columns to the domain's.
    fn domain_map(&self, domain: &Domain, columns: &[ColumnId]) -> HashMap<ColumnId, Expr> {
        domain.free.iter().zip(columns).map(|(free, column)| (*free, self.columns.expr(*column))).collect()
    }

    /// New columns, one for each of `columns`.
    fn copies(&mut self, columns: &[ColumnId]) -> Vec<ColumnId> {
        columns
            .iter()
            .map(|id| {
                let info = self.columns.get(*id).clone();
                self.columns.add(info.name, info.ty, info.nullable)
            })
            .collect()
    }
}

/// The distinct values of the outer columns that a subquery reads.
struct Domain {
    /// Its columns correspond to those of `free` and then to `forms`, in that order, with ids of its own.
    node: Node,
    free: Vec<ColumnId>,
    /// Texts of free columns whose equal values may be told apart, as expressions over the outer query.
    forms: Vec<Expr>,
    /// Whether the first of `free` numbers the outer rows, each of which gets rows of its own.
    per_row: bool,
}

impl Domain {
    /// True if the rows of a node differ from one element of the domain to the next.
    fn is_needed_by(&self, node: &Node) -> bool {
        free_columns(node).iter().any(|id| self.free.contains(id)) || self.per_row && !is_repeatable(node)
    }
}

/// True if a copy of a node may have other rows.
fn may_differ(node: &Node) -> bool {
    fn takes_some(node: &Node) -> bool {
        matches!(node, Node::Limit(_) | Node::Sort(Sort { limit: Some(_), .. }))
            || node.children().into_iter().any(takes_some)
    }
    !is_repeatable(node) || takes_some(node)
}

// ---- pulling up -------------------------------------------------------------------------------------------

/// Pulls the conditions that read `free` columns out of `node`; `None` if this is not possible for one of
/// them.
fn pull(node: Node, free: &HashSet<ColumnId>, purpose: Purpose, columns: &mut Columns) -> Option<Pulled> {
    if !free_columns(&node).iter().any(|id| free.contains(id)) {
        return Some(Pulled { node, predicates: vec![], definitions: HashMap::new(), single_row: false });
    }
    let is_free = |expr: &Expr| {
        let mut read = Vec::new();
        expr.collect_columns(&mut read);
        read.iter().any(|id| free.contains(id))
    };
    let semi = matches!(purpose, Purpose::Exists | Purpose::In);
    match node {
        Node::Filter(Filter { input, predicates }) => {
            let mut pulled = pull(*input, free, purpose, columns)?;
            if pulled.single_row {
                return None;
            }
            let mut kept = Vec::new();
            for predicate in predicates {
                let predicate = substitute(predicate, &pulled.definitions);
                if is_free(&predicate) { pulled.predicates.push(predicate) } else { kept.push(predicate) }
            }
            if !kept.is_empty() {
                pulled.node = Node::Filter(Filter { input: Box::new(pulled.node), predicates: kept });
            }
            Some(pulled)
        }
        Node::Project(Project { input, exprs }) => {
            let mut pulled = pull(*input, free, purpose, columns)?;
            let mut kept = Vec::new();
            let mut defined = Vec::new();
            for (id, expr) in exprs {
                let expr = substitute(expr, &pulled.definitions);
                if pulled.single_row || is_free(&expr) {
                    defined.push((id, expr))
                } else {
                    kept.push((id, expr))
                }
            }
            pulled.definitions.extend(defined);
            if !kept.is_empty() {
                pulled.node = Node::Project(Project { input: Box::new(pulled.node), exprs: kept });
            }
            Some(pulled)
        }
        Node::Join(Join { left, right, kind, on, residual }) => {
            let inner = kind == JoinKind::Inner;
            let left_kind = matches!(
                kind,
                JoinKind::Left
                    | JoinKind::Semi
                    | JoinKind::Anti
                    | JoinKind::NullAwareAnti
                    | JoinKind::Mark { .. }
                    | JoinKind::Single
            );
            let right_free = free_columns(&right).iter().any(|id| free.contains(id));
            if !inner && (!left_kind || right_free) {
                return None;
            }
            let l = pull(*left, free, purpose, columns)?;
            let r = pull(*right, free, purpose, columns)?;
            if l.single_row || r.single_row {
                return None;
            }
            let mut definitions = l.definitions;
            definitions.extend(r.definitions);
            let mut predicates = l.predicates;
            predicates.extend(r.predicates);
            let (mut keys, mut conditions) = (Vec::new(), Vec::new());
            for JoinKey { left, right, null_equals_null } in on {
                let (left, right) = (substitute(left, &definitions), substitute(right, &definitions));
                if is_free(&left) || is_free(&right) {
                    let op = if null_equals_null { CompareOp::NotDistinctFrom } else { CompareOp::Eq };
                    predicates.push(Expr::compare(op, left, right));
                    if !inner {
                        return None;
                    }
                } else {
                    keys.push(JoinKey { left, right, null_equals_null });
                }
            }
            for condition in residual {
                let condition = substitute(condition, &definitions);
                match (is_free(&condition), inner) {
                    (true, false) => return None,
                    (true, true) => predicates.push(condition),
                    (false, _) => conditions.push(condition),
                }
            }
            let (left, right) = (Box::new(l.node), Box::new(r.node));
            let node = Node::Join(Join { left, right, kind, on: keys, residual: conditions });
            Some(Pulled { node, predicates, definitions, single_row: false })
        }
        Node::Aggregate(Aggregate { input, mut groups, aggregates }) => {
            let pulled = pull(*input, free, Purpose::Lateral, columns)?;
            if pulled.single_row {
                return None;
            }
            let mut read = Vec::new();
            for expr in
                groups.iter().map(|(_, e)| e).chain(aggregates.iter().flat_map(|(_, call)| call_exprs(call)))
            {
                expr.collect_columns(&mut read);
            }
            if read.iter().any(|id| free.contains(id) || pulled.definitions.contains_key(id)) {
                return None;
            }
            let single_row = groups.is_empty();
            let inner: HashSet<ColumnId> = pulled.node.columns().into_iter().collect();
            let mut predicates = Vec::new();
            for predicate in pulled.predicates {
                if reads_within(&predicate, free) {
                    predicates.push(predicate);
                    continue;
                }
                // An equality of both sides becomes a group key.
                let key = as_key(predicate, free, &inner).ok()?;
                let ty = key.right.ty();
                let group = columns.add("correlation", ty, true);
                let op = if key.null_equals_null { CompareOp::NotDistinctFrom } else { CompareOp::Eq };
                predicates.push(Expr::compare(op, key.left, Expr::column(group, ty)));
                groups.push((group, key.right));
            }
            let mut definitions = HashMap::new();
            if single_row {
                for (id, call) in &aggregates {
                    if is_count(&call.function) {
                        definitions.insert(*id, or_zero(columns.expr(*id)));
                    }
                }
                if groups.is_empty() {
                    // All conditions depend on the outer row alone: it is still one row, never none.
                    let node =
                        Node::Aggregate(Aggregate { input: Box::new(pulled.node), groups, aggregates });
                    return Some(Pulled { node, predicates, definitions, single_row });
                }
            }
            let node = Node::Aggregate(Aggregate { input: Box::new(pulled.node), groups, aggregates });
            Some(Pulled { node, predicates, definitions, single_row })
        }
        Node::Distinct(Distinct { input, mut keys, .. }) => {
            let mut pulled = pull(*input, free, purpose, columns)?;
            // A single row is distinct, and EXISTS and IN do not depend on duplicates.
            if pulled.single_row || semi {
                return Some(pulled);
            }
            if keys.iter().any(|key| pulled.definitions.contains_key(key)) {
                return None;
            }
            // For one outer row, an equality leaves only one value of the inner side.
            let inner: HashSet<ColumnId> = pulled.node.columns().into_iter().collect();
            for predicate in &pulled.predicates {
                let key = as_key(predicate.clone(), free, &inner).ok()?;
                let mut read = Vec::new();
                key.right.collect_columns(&mut read);
                if !matches!(key.right, Expr::Column { .. }) {
                    return None;
                }
                keys.extend(read);
            }
            keys.sort();
            keys.dedup();
            pulled.node = Node::Distinct(Distinct::new(pulled.node, keys));
            Some(pulled)
        }
        Node::Sort(Sort { input, limit: None, .. }) => pull(*input, free, purpose, columns),
        Node::Limit(limit) if limit.count == Some(0) => {
            let node = Node::Values(Values { columns: limit.input.columns(), rows: Vec::new() });
            Some(Pulled { node, predicates: vec![], definitions: HashMap::new(), single_row: false })
        }
        // The existence of rows does not depend on how many are taken.
        Node::Limit(Limit { input, offset: 0, count }) if purpose == Purpose::Exists && count != Some(0) => {
            pull(*input, free, purpose, columns)
        }
        Node::Sort(Sort { input, limit: Some(1..), .. }) if purpose == Purpose::Exists => {
            pull(*input, free, purpose, columns)
        }
        Node::Window(_)
        | Node::Unnest(_)
        | Node::Sort(_)
        | Node::Limit(_)
        | Node::SetOperation(_)
        | Node::Scan(_)
        | Node::Values(_) => None,
    }
}

/// True if the node returns exactly one row, whatever it reads.
pub(super) fn is_single_row(node: &Node) -> bool {
    match node {
        Node::Aggregate(aggregate) => aggregate.groups.is_empty(),
        Node::Project(Project { input, .. }) | Node::Sort(Sort { input, limit: None, .. }) => {
            is_single_row(input)
        }
        _ => false,
    }
}

/// True for aggregates that are zero for an empty input.
fn is_count(function: &AggregateFunction) -> bool {
    matches!(function.name(), "count" | "approx_distinct" | "regr_count")
}

fn or_zero(column: Expr) -> Expr {
    let ty = column.ty();
    let branches = vec![(Expr::IsNull(Box::new(column.clone())), Expr::literal(Value::Integer(0), ty))];
    Expr::Case { branches, otherwise: Some(Box::new(column)), ty }
}

// ---- nodes and expressions --------------------------------------------------------------------------------

fn call_exprs(call: &entasis_engine::plan::AggregateCall) -> impl Iterator<Item = &Expr> {
    call.args.iter().chain(&call.filter).chain(call.order_by.iter().map(|key| &key.expr))
}

pub(super) fn filter(input: Node, predicate: Expr) -> Node {
    let mut predicates = Vec::new();
    predicate.split_conjunction(&mut predicates);
    if predicates.is_empty() { input } else { Node::Filter(Filter { input: Box::new(input), predicates }) }
}

/// A join whose residuals become keys where that is possible and allowed.
fn join(left: Node, right: Node, kind: JoinKind, on: Option<JoinKey>, residual: Vec<Expr>) -> Node {
    rejoin(left, right, kind, on.into_iter().collect(), residual)
}

fn rejoin(left: Node, right: Node, kind: JoinKind, mut on: Vec<JoinKey>, mut residual: Vec<Expr>) -> Node {
    // In a null-aware join only the key of IN may decide about NULL; conditions of the correlation stay
    // residuals.
    if !is_null_aware(kind) {
        split_keys(&left, &right, &mut on, &mut residual);
    }
    Node::Join(Join { left: Box::new(left), right: Box::new(right), kind, on, residual })
}

fn is_null_aware(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. })
}

fn expr_reads(expr: &Expr, id: ColumnId) -> bool {
    let mut read = Vec::new();
    expr.collect_columns(&mut read);
    read.contains(&id)
}

fn reads_within(expr: &Expr, columns: &HashSet<ColumnId>) -> bool {
    let mut read = Vec::new();
    expr.collect_columns(&mut read);
    read.iter().all(|id| columns.contains(id))
}

fn substitute_join(
    on: Vec<JoinKey>,
    residual: Vec<Expr>,
    map: &HashMap<ColumnId, Expr>,
) -> (Vec<JoinKey>, Vec<Expr>) {
    let on = on.into_iter().map(|key| JoinKey {
        left: substitute(key.left, map),
        right: substitute(key.right, map),
        null_equals_null: key.null_equals_null,
    });
    (on.collect(), residual.into_iter().map(|e| substitute(e, map)).collect())
}
