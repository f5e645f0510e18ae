//! Unfinished trees of nodes: which columns they produce and read, and replacing columns.

use entasis_engine::plan::{Columns, Join, JoinKind, Node};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Value};
use std::collections::{HashMap, HashSet};

/// Replaces columns once: replacements are not searched again.
pub(super) fn substitute(expr: Expr, map: &HashMap<ColumnId, Expr>) -> Expr {
    if map.is_empty() {
        return expr;
    }
    expr.transform(&mut |e| match e {
        Expr::Column { id, ty } => map.get(&id).cloned().unwrap_or(Expr::Column { id, ty }),
        other => other,
    })
}

/// The same in place.
pub(super) fn replace(expr: &mut Expr, map: &HashMap<ColumnId, Expr>) {
    let taken = std::mem::replace(expr, Expr::literal(Value::Null, DataType::Null));
    *expr = substitute(taken, map);
}

/// The expressions of a node, not including its inputs'.
pub(super) fn exprs_mut(node: &mut Node) -> Vec<&mut Expr> {
    match node {
        Node::Scan(scan) => scan.filters.iter_mut().collect(),
        Node::Filter(filter) => filter.predicates.iter_mut().collect(),
        Node::Project(project) => project.exprs.iter_mut().map(|(_, e)| e).collect(),
        Node::Unnest(unnest) => unnest.lists.iter_mut().map(|(_, e)| e).collect(),
        Node::Join(join) => {
            let keys = join.on.iter_mut().flat_map(|key| [&mut key.left, &mut key.right]);
            keys.chain(&mut join.residual).collect()
        }
        Node::Aggregate(aggregate) => {
            let groups = aggregate.groups.iter_mut().map(|(_, e)| e);
            let calls = aggregate.aggregates.iter_mut().flat_map(|(_, call)| {
                call.args
                    .iter_mut()
                    .chain(&mut call.filter)
                    .chain(call.order_by.iter_mut().map(|key| &mut key.expr))
            });
            groups.chain(calls).collect()
        }
        Node::Window(window) => window.exprs_mut().collect(),
        Node::Sort(sort) => sort.keys.iter_mut().map(|key| &mut key.expr).collect(),
        Node::Values(_) | Node::Distinct(_) | Node::Limit(_) | Node::SetOperation(_) => Vec::new(),
    }
}

/// The columns that a node itself produces.
fn made_mut(node: &mut Node) -> Vec<&mut ColumnId> {
    match node {
        Node::Scan(scan) => scan.columns.iter_mut().map(|(id, _)| id).collect(),
        Node::Values(values) => values.columns.iter_mut().collect(),
        Node::Project(project) => project.exprs.iter_mut().map(|(id, _)| id).collect(),
        Node::Join(Join { kind: JoinKind::Mark { mark, .. }, .. }) => vec![mark],
        Node::Aggregate(aggregate) => {
            let groups = aggregate.groups.iter_mut().map(|(id, _)| id);
            groups.chain(aggregate.aggregates.iter_mut().map(|(id, _)| id)).collect()
        }
        Node::Unnest(unnest) => unnest.lists.iter_mut().map(|(id, _)| id).collect(),
        Node::Window(window) => window.calls.iter_mut().map(|(id, _)| id).collect(),
        Node::SetOperation(set) => set.columns.iter_mut().collect(),
        Node::Join(_) | Node::Filter(_) | Node::Distinct(_) | Node::Sort(_) | Node::Limit(_) => Vec::new(),
    }
}

/// The columns that the tree reads and does not produce.
pub(super) fn free_columns(node: &Node) -> HashSet<ColumnId> {
    fn walk(node: &mut Node, read: &mut Vec<ColumnId>, made: &mut HashSet<ColumnId>) {
        exprs_mut(node).into_iter().for_each(|expr| expr.collect_columns(read));
        made.extend(made_mut(node).into_iter().map(|id| *id));
        node.children_mut().into_iter().for_each(|child| walk(child, read, made));
    }
    let (mut read, mut made) = (Vec::new(), HashSet::new());
    walk(&mut node.clone(), &mut read, &mut made);
    read.into_iter().filter(|id| !made.contains(id)).collect()
}

/// The tree with new columns in place of those that it produces; `map` receives the correspondence.
pub(super) fn refresh(mut node: Node, columns: &mut Columns, map: &mut HashMap<ColumnId, ColumnId>) -> Node {
    fn walk(node: &mut Node, columns: &mut Columns, map: &mut HashMap<ColumnId, ColumnId>) {
        node.children_mut().into_iter().for_each(|child| walk(child, columns, map));
        for id in made_mut(node) {
            let info = columns.get(*id).clone();
            let fresh = columns.add(info.name, info.ty, info.nullable);
            map.insert(*id, fresh);
            *id = fresh;
        }
        let renamed = |id: &ColumnId| map.get(id).copied();
        for expr in exprs_mut(node) {
            let taken = std::mem::replace(expr, Expr::literal(Value::Null, DataType::Null));
            *expr = taken.transform(&mut |e| match e {
                Expr::Column { id, ty } => Expr::Column { id: renamed(&id).unwrap_or(id), ty },
                other => other,
            });
        }
        match node {
            Node::Distinct(distinct) => {
                distinct.keys.iter_mut().for_each(|id| *id = renamed(id).unwrap_or(*id));
            }
            Node::SetOperation(set) => {
                for id in set.inputs.iter_mut().flat_map(|(_, outputs)| outputs) {
                    *id = renamed(id).unwrap_or(*id);
                }
            }
            _ => {}
        }
    }
    walk(&mut node, columns, map);
    node
}

/// True if a node returns the same rows each time.
pub(super) fn is_repeatable(node: &Node) -> bool {
    let mut node = node.clone();
    fn walk(node: &mut Node) -> bool {
        exprs_mut(node).into_iter().all(|expr| !expr.is_volatile())
            && node.children_mut().into_iter().all(walk)
    }
    walk(&mut node)
}
