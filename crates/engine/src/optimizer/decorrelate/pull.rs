//! Pulling up: conditions that read outer columns move up through filters, projections, inner joins and
//! aggregates (as additional group keys, if they are equalities) until they are conditions of the join with
//! the outer query. Nothing is computed twice.

use super::Purpose;
use crate::plan::correlation::free_columns;
use crate::plan::equalities::as_key;
use crate::plan::tree::{ColumnSet, columns_of, reads, substitute};
use crate::plan::{
    Aggregate, AggregateCall, AggregateFunction, Columns, Distinct, Filter, Join, JoinKey, JoinKind, Limit,
    Node, Project, Sort, Values,
};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, Value};
use std::collections::HashMap;

/// A subquery whose correlated conditions have been pulled up.
pub(super) struct Pulled {
    /// The rest of the subquery.
    pub node: Node,
    /// Conditions over the outer columns and those of `node`.
    pub predicates: Vec<Expr>,
    /// Columns that `node` no longer has, as expressions over its columns and the outer ones.
    pub definitions: HashMap<ColumnId, Expr>,
    /// Whether the subquery returned exactly one row, so that `node` lacks the row computed over an empty
    /// input.
    pub single_row: bool,
}

impl Pulled {
    /// A subquery, or the rest of one, out of which nothing was to be pulled.
    fn all(node: Node) -> Pulled {
        Pulled { node, predicates: Vec::new(), definitions: HashMap::new(), single_row: false }
    }

    /// Whether a join of this kind can use it directly; otherwise the general method is needed.
    pub fn can_be_joined(
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
            let is_computed = |expr: &Expr| self.definitions.keys().any(|id| reads(expr).contains(*id));
            let marked =
                matches!(kind, JoinKind::Mark { .. }) && key.is_some_and(|(_, inner)| is_computed(inner));
            return !marked && (purpose != Purpose::Lateral || is_inner || self.definitions.is_empty());
        }
        // What is computed above the join is computed from its row, which a condition of an outer join may
        // refuse.
        purpose != Purpose::Lateral || is_inner || residual.is_empty()
    }
}

/// Pulls the conditions that read `free` columns out of `node`; `None` if this is not possible for one of
/// them.
pub(super) fn pull(node: Node, free: &ColumnSet, purpose: Purpose, columns: &mut Columns) -> Option<Pulled> {
    if !free_columns(&node).intersects(free) {
        return Some(Pulled::all(node));
    }
    match node {
        Node::Filter(filter) => pull_filter(filter, free, purpose, columns),
        Node::Project(project) => pull_project(project, free, purpose, columns),
        Node::Join(join) => pull_join(join, free, purpose, columns),
        Node::Aggregate(aggregate) => pull_aggregate(aggregate, free, columns),
        Node::Distinct(distinct) => pull_distinct(distinct, free, purpose, columns),
        Node::Sort(Sort { input, limit: None, .. }) => pull(*input, free, purpose, columns),
        Node::Limit(limit) if limit.count == Some(0) => {
            Some(Pulled::all(Node::Values(Values { columns: limit.input.columns(), rows: Vec::new() })))
        }
        // The existence of rows does not depend on how many are taken.
        Node::Limit(Limit { input, offset: 0, count }) if purpose == Purpose::Exists && count != Some(0) => {
            pull(*input, free, purpose, columns)
        }
        Node::Sort(Sort { input, limit: Some(1..), .. }) if purpose == Purpose::Exists => {
            pull(*input, free, purpose, columns)
        }
        Node::Window(_)
        | Node::Dependent(_)
        | Node::Unnest(_)
        | Node::Sort(_)
        | Node::Limit(_)
        | Node::SetOperation(_)
        | Node::Recursion(_)
        | Node::Scan(_)
        | Node::Values(_) => None,
    }
}

/// Conditions of a filter that read outer columns leave it.
fn pull_filter(filter: Filter, free: &ColumnSet, purpose: Purpose, columns: &mut Columns) -> Option<Pulled> {
    let mut pulled = pull(*filter.input, free, purpose, columns)?;
    if pulled.single_row {
        return None;
    }
    let mut kept = Vec::new();
    for predicate in filter.predicates {
        let predicate = substitute(predicate, &pulled.definitions);
        if is_free(&predicate, free) { pulled.predicates.push(predicate) } else { kept.push(predicate) }
    }
    if !kept.is_empty() {
        pulled.node = Node::Filter(Filter { input: Box::new(pulled.node), predicates: kept });
    }
    Some(pulled)
}

/// Columns that are computed from outer ones become definitions.
fn pull_project(
    project: Project,
    free: &ColumnSet,
    purpose: Purpose,
    columns: &mut Columns,
) -> Option<Pulled> {
    let mut pulled = pull(*project.input, free, purpose, columns)?;
    let mut kept = Vec::new();
    let mut defined = Vec::new();
    for (id, expr) in project.exprs {
        let expr = substitute(expr, &pulled.definitions);
        if pulled.single_row || is_free(&expr, free) {
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

/// Conditions of an inner join leave it. Other joins keep theirs, but conditions pulled out of their left
/// side go on.
fn pull_join(join: Join, free: &ColumnSet, purpose: Purpose, columns: &mut Columns) -> Option<Pulled> {
    let Join { left, right, kind, on, residual } = join;
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
    let right_free = free_columns(&right).intersects(free);
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
        match (is_free(&left, free) || is_free(&right, free), inner) {
            (true, false) => return None,
            (true, true) => predicates.push(comparison(left, right, null_equals_null)),
            (false, _) => keys.push(JoinKey { left, right, null_equals_null }),
        }
    }
    for condition in residual {
        let condition = substitute(condition, &definitions);
        match (is_free(&condition, free), inner) {
            (true, false) => return None,
            (true, true) => predicates.push(condition),
            (false, _) => conditions.push(condition),
        }
    }
    let (left, right) = (Box::new(l.node), Box::new(r.node));
    let node = Node::Join(Join { left, right, kind, on: keys, residual: conditions });
    Some(Pulled { node, predicates, definitions, single_row: false })
}

/// Equalities of both sides become group keys, so that there is a group for each value of the outer side.
fn pull_aggregate(aggregate: Aggregate, free: &ColumnSet, columns: &mut Columns) -> Option<Pulled> {
    let Aggregate { input, mut groups, mut aggregates } = aggregate;
    let pulled = pull(*input, free, Purpose::Lateral, columns)?;
    if pulled.single_row {
        return None;
    }
    let mut read = Vec::new();
    let of_calls = aggregates.iter().flat_map(|(_, call)| call_exprs(call));
    groups.iter().map(|(_, key)| key).chain(of_calls).for_each(|expr| expr.collect_columns(&mut read));
    if read.iter().any(|id| free.contains(*id) || pulled.definitions.contains_key(id)) {
        return None;
    }
    let single_row = groups.is_empty();
    let inner = columns_of(&pulled.node);
    let mut predicates = Vec::new();
    for predicate in pulled.predicates {
        if reads(&predicate).is_subset(free) {
            predicates.push(predicate);
            continue;
        }
        // An equality of both sides becomes a group key.
        let key = as_key(predicate, free, &inner).ok()?;
        let ty = key.right.ty();
        let group = columns.add("correlation", ty, true);
        predicates.push(comparison(key.left, Expr::column(group, ty), key.null_equals_null));
        groups.push((group, key.right));
    }
    // Without rows, a count is zero, which is said above the join. If all conditions depend on the outer row
    // alone, it is still one row, never none.
    let definitions = match single_row {
        true => zero_counts(&mut aggregates, columns),
        false => HashMap::new(),
    };
    let node = Node::Aggregate(Aggregate { input: Box::new(pulled.node), groups, aggregates });
    Some(Pulled { node, predicates, definitions, single_row })
}

/// Defines counts as zero where there is none. The aggregates compute columns of their own.
fn zero_counts(
    aggregates: &mut [(ColumnId, AggregateCall)],
    columns: &mut Columns,
) -> HashMap<ColumnId, Expr> {
    let mut definitions = HashMap::new();
    for (id, call) in aggregates.iter_mut().filter(|(_, call)| is_count(&call.function)) {
        let counted = columns.add(columns.get(*id).name.clone(), call.ty, true);
        definitions.insert(*id, or_zero(columns.expr(counted)));
        *id = counted;
    }
    definitions
}

/// Columns that equalities read become keys of a distinct.
fn pull_distinct(
    distinct: Distinct,
    free: &ColumnSet,
    purpose: Purpose,
    columns: &mut Columns,
) -> Option<Pulled> {
    let Distinct { input, mut keys, .. } = distinct;
    let mut pulled = pull(*input, free, purpose, columns)?;
    // A single row is distinct, and EXISTS and IN do not depend on duplicates.
    if pulled.single_row || matches!(purpose, Purpose::Exists | Purpose::In) {
        return Some(pulled);
    }
    if keys.iter().any(|key| pulled.definitions.contains_key(key)) {
        return None;
    }
    // For one outer row, an equality leaves only one value of the inner side.
    let inner = columns_of(&pulled.node);
    for predicate in &pulled.predicates {
        let Expr::Column { id, .. } = as_key(predicate.clone(), free, &inner).ok()?.right else {
            return None;
        };
        keys.push(id);
    }
    keys.sort();
    keys.dedup();
    pulled.node = Node::Distinct(Distinct::new(pulled.node, keys));
    Some(pulled)
}

/// True if the expression reads outer columns.
fn is_free(expr: &Expr, free: &ColumnSet) -> bool {
    reads(expr).intersects(free)
}

/// The condition of a key.
fn comparison(left: Expr, right: Expr, null_equals_null: bool) -> Expr {
    let op = if null_equals_null { CompareOp::NotDistinctFrom } else { CompareOp::Eq };
    Expr::compare(op, left, right)
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
pub(super) fn is_count(function: &AggregateFunction) -> bool {
    matches!(function.name(), "count" | "approx_distinct" | "regr_count")
}

pub(super) fn or_zero(column: Expr) -> Expr {
    let ty = column.ty();
    let branches = vec![(Expr::IsNull(Box::new(column.clone())), Expr::literal(Value::Integer(0), ty))];
    Expr::Case { branches, otherwise: Some(Box::new(column)), ty }
}

fn call_exprs(call: &AggregateCall) -> impl Iterator<Item = &Expr> {
    call.args.iter().chain(&call.filter).chain(call.order_by.iter().map(|key| &key.expr))
}
