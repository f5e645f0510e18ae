//! Small tools that all rules share: sets of columns, walks over trees, replacing columns by what they stand
//! for.

use super::{Aggregate, Filter, JoinKey, Node, Values};
use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;
use std::collections::HashMap;

/// A set of columns, one bit each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnSet(Vec<u64>);

impl ColumnSet {
    /// Adds a column.
    pub fn insert(&mut self, id: ColumnId) {
        let word = id.0 as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (id.0 % 64);
    }
    /// True if a column is in it.
    pub fn contains(&self, id: ColumnId) -> bool {
        self.0.get(id.0 as usize / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }
    /// Adds the columns of another set.
    pub fn add(&mut self, other: &ColumnSet) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
    /// Keeps the columns that are in another set, too.
    pub fn retain(&mut self, other: &ColumnSet) {
        for (i, word) in self.0.iter_mut().enumerate() {
            *word &= other.0.get(i).copied().unwrap_or(0);
        }
    }
    /// True without columns.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
    /// True if all its columns are in another set.
    pub fn is_subset(&self, of: &ColumnSet) -> bool {
        self.0.iter().enumerate().all(|(i, word)| word & !of.0.get(i).copied().unwrap_or(0) == 0)
    }
    /// True if a column is in both.
    pub fn intersects(&self, other: &ColumnSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
    /// The columns, ascending.
    pub fn iter(&self) -> impl Iterator<Item = ColumnId> + '_ {
        let bits = |word: u64| (0..64).filter(move |bit| word >> bit & 1 == 1);
        self.0
            .iter()
            .enumerate()
            .flat_map(move |(i, word)| bits(*word).map(move |bit| ColumnId((i * 64) as u32 + bit)))
    }
}

impl FromIterator<ColumnId> for ColumnSet {
    fn from_iter<I: IntoIterator<Item = ColumnId>>(ids: I) -> ColumnSet {
        let mut set = ColumnSet::default();
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}

/// The columns that come out of `node`.
pub(crate) fn columns_of(node: &Node) -> ColumnSet {
    let mut columns = ColumnSet::default();
    node.each_column(&mut |id| columns.insert(id));
    columns
}

/// The columns that `expr` reads.
pub(crate) fn reads(expr: &Expr) -> ColumnSet {
    let mut ids = Vec::new();
    expr.collect_columns(&mut ids);
    ids.into_iter().collect()
}

/// The columns that `exprs` read.
pub(crate) fn reads_all<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> ColumnSet {
    let mut ids = Vec::new();
    exprs.into_iter().for_each(|expr| expr.collect_columns(&mut ids));
    ids.into_iter().collect()
}

/// A node of no rows with the columns `columns`.
pub(crate) fn empty(columns: Vec<ColumnId>) -> Node {
    Node::Values(Values { columns, rows: Vec::new() })
}

/// Takes a node out of the tree, to be put back changed.
pub(crate) fn take(node: &mut Node) -> Node {
    std::mem::replace(node, empty(Vec::new()))
}

/// Replaces every node, inputs first.
pub(crate) fn rewrite_up(node: &mut Node, f: &mut dyn FnMut(Node) -> Node) {
    node.children_mut().into_iter().for_each(|child| rewrite_up(child, f));
    *node = f(take(node));
}

/// `predicates` above `input`; nothing if there are none. A filter below takes them in.
pub fn filter(input: Node, mut predicates: Vec<Expr>) -> Node {
    if predicates.is_empty() {
        return input;
    }
    match input {
        Node::Filter(mut below) => {
            below.predicates.append(&mut predicates);
            Node::Filter(below)
        }
        input => Node::Filter(Filter { input: Box::new(input), predicates }),
    }
}

/// The conjuncts of `predicates`.
pub(crate) fn conjuncts(predicates: Vec<Expr>) -> Vec<Expr> {
    let mut flat = Vec::with_capacity(predicates.len());
    predicates.into_iter().for_each(|predicate| predicate.split_conjunction(&mut flat));
    flat
}

/// What an expression is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Only rows for which it is true count; NULL is as good as false.
    Predicate,
    /// Its value counts.
    Value,
}

/// Calls `f` for every expression of `node` itself.
pub(crate) fn for_each_expr(node: &mut Node, f: &mut dyn FnMut(&mut Expr, Role)) {
    match node {
        Node::Scan(scan) => scan.filters.iter_mut().for_each(|e| f(e, Role::Predicate)),
        Node::Filter(filter) => filter.predicates.iter_mut().for_each(|e| f(e, Role::Predicate)),
        Node::Project(project) => project.exprs.iter_mut().for_each(|(_, e)| f(e, Role::Value)),
        Node::Unnest(unnest) => unnest.lists.iter_mut().for_each(|(_, e)| f(e, Role::Value)),
        Node::Join(join) => {
            for JoinKey { left, right, .. } in &mut join.on {
                f(left, Role::Value);
                f(right, Role::Value);
            }
            // A null-aware match tells NULL from false.
            let null_aware = matches!(
                join.kind,
                super::JoinKind::NullAwareAnti | super::JoinKind::Mark { null_aware: true, .. }
            );
            let role = if null_aware { Role::Value } else { Role::Predicate };
            join.residual.iter_mut().for_each(|e| f(e, role));
        }
        Node::Aggregate(Aggregate { groups, aggregates, .. }) => {
            groups.iter_mut().for_each(|(_, e)| f(e, Role::Value));
            for (_, call) in aggregates {
                call.args.iter_mut().for_each(|e| f(e, Role::Value));
                call.order_by.iter_mut().for_each(|key| f(&mut key.expr, Role::Value));
                call.filter.iter_mut().for_each(|e| f(e, Role::Predicate));
            }
        }
        Node::Window(window) => {
            window.partition.iter_mut().for_each(|e| f(e, Role::Value));
            window.order.iter_mut().for_each(|key| f(&mut key.expr, Role::Value));
            for (_, call) in &mut window.calls {
                let (values, filter) = call.exprs_mut();
                values.for_each(|e| f(e, Role::Value));
                filter.into_iter().for_each(|e| f(e, Role::Predicate));
            }
        }
        Node::Sort(sort) => sort.keys.iter_mut().for_each(|key| f(&mut key.expr, Role::Value)),
        Node::Dependent(dependent) => {
            if let Some(JoinKey { left, right, .. }) = &mut dependent.on {
                f(left, Role::Value);
                f(right, Role::Value);
            }
            dependent.residual.iter_mut().for_each(|e| f(e, Role::Value));
        }
        Node::Values(_) | Node::Distinct(_) | Node::Limit(_) | Node::SetOperation(_) | Node::Recursion(_) => {
        }
    }
}

/// Calls `f` for every expression of `node` itself, to be read.
pub(crate) fn visit_exprs(node: &Node, f: &mut dyn FnMut(&Expr)) {
    match node {
        Node::Scan(scan) => scan.filters.iter().for_each(f),
        Node::Filter(filter) => filter.predicates.iter().for_each(f),
        Node::Project(project) => project.exprs.iter().for_each(|(_, e)| f(e)),
        Node::Unnest(unnest) => unnest.lists.iter().for_each(|(_, e)| f(e)),
        Node::Join(join) => {
            join.on.iter().flat_map(|key| [&key.left, &key.right]).chain(&join.residual).for_each(f);
        }
        Node::Dependent(join) => {
            join.on.iter().flat_map(|key| [&key.left, &key.right]).chain(&join.residual).for_each(f);
        }
        Node::Aggregate(Aggregate { groups, aggregates, .. }) => {
            groups.iter().for_each(|(_, e)| f(e));
            for (_, call) in aggregates {
                let keys = call.order_by.iter().map(|key| &key.expr);
                call.args.iter().chain(keys).chain(&call.filter).for_each(&mut *f);
            }
        }
        Node::Window(window) => window.exprs().for_each(f),
        Node::Sort(sort) => sort.keys.iter().for_each(|key| f(&key.expr)),
        Node::Values(_) | Node::Distinct(_) | Node::Limit(_) | Node::SetOperation(_) | Node::Recursion(_) => {
        }
    }
}

/// Calls `f` for every expression of `node` and of all nodes below it.
pub(crate) fn each_expr(node: &mut Node, f: &mut dyn FnMut(&Expr)) {
    for_each_expr(node, &mut |expr, _| f(expr));
    node.children_mut().into_iter().for_each(|child| each_expr(child, f));
}

/// Calls `f` for every expression of a tree, not for parts of one, to be changed.
pub fn each_expr_mut(node: &mut Node, f: &mut dyn FnMut(&mut Expr)) {
    for_each_expr(node, &mut |expr, _| f(expr));
    node.children_mut().into_iter().for_each(|child| each_expr_mut(child, f));
}

/// Puts expressions in place of columns.
pub fn substitute(expr: Expr, with: &HashMap<ColumnId, Expr>) -> Expr {
    if with.is_empty() {
        return expr;
    }
    expr.transform(&mut |e| match &e {
        Expr::Column { id, .. } => with.get(id).cloned().unwrap_or(e),
        _ => e,
    })
}

/// Takes `left = right` apart into a join key between the sides with the columns `left` and `right`,
/// whichever way around it is written. Gives the expression back if it is none.
pub(crate) fn as_join_key(expr: Expr, left: &ColumnSet, right: &ColumnSet) -> Result<JoinKey, Expr> {
    use entasis_vector::expr::CompareOp;
    match expr {
        Expr::Compare { op: op @ (CompareOp::Eq | CompareOp::NotDistinctFrom), left: a, right: b }
            if a.ty() == b.ty() =>
        {
            let null_equals_null = op == CompareOp::NotDistinctFrom;
            let (reads_a, reads_b) = (reads(&a), reads(&b));
            let on_side = |set: &ColumnSet, side: &ColumnSet| !set.is_empty() && set.is_subset(side);
            if on_side(&reads_a, left) && on_side(&reads_b, right) {
                Ok(JoinKey { left: *a, right: *b, null_equals_null })
            } else if on_side(&reads_a, right) && on_side(&reads_b, left) {
                Ok(JoinKey { left: *b, right: *a, null_equals_null })
            } else {
                Err(Expr::Compare { op, left: a, right: b })
            }
        }
        other => Err(other),
    }
}

/// The comparison that a join key stands for.
pub(crate) fn key_predicate(key: JoinKey) -> Expr {
    use entasis_vector::expr::CompareOp;
    let op = if key.null_equals_null { CompareOp::NotDistinctFrom } else { CompareOp::Eq };
    Expr::compare(op, key.left, key.right)
}
