//! What trees of nodes read and make: free columns, fresh copies.

use super::tree::{ColumnSet, for_each_expr, substitute, visit_exprs};
use super::{Columns, Dependent, Join, JoinKind, Node, Recursion};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Value};
use std::collections::HashMap;

/// Puts expressions in place of columns, once: replacements are not searched again.
pub fn replace(expr: &mut Expr, map: &HashMap<ColumnId, Expr>) {
    let taken = std::mem::replace(expr, Expr::literal(Value::Null, DataType::Null));
    *expr = substitute(taken, map);
}

/// The columns that a node itself makes.
fn made_mut(node: &mut Node) -> Vec<&mut ColumnId> {
    match node {
        Node::Scan(scan) => scan.columns.iter_mut().map(|(id, _)| id).collect(),
        Node::Values(values) => values.columns.iter_mut().collect(),
        Node::Project(project) => project.exprs.iter_mut().map(|(id, _)| id).collect(),
        Node::Join(Join { kind: JoinKind::Mark { mark, .. }, .. })
        | Node::Dependent(Dependent { kind: JoinKind::Mark { mark, .. }, .. }) => vec![mark],
        Node::Aggregate(aggregate) => {
            let groups = aggregate.groups.iter_mut().map(|(id, _)| id);
            groups.chain(aggregate.aggregates.iter_mut().map(|(id, _)| id)).collect()
        }
        Node::Unnest(unnest) => unnest.lists.iter_mut().map(|(id, _)| id).collect(),
        Node::Window(window) => window.calls.iter_mut().map(|(id, _)| id).collect(),
        Node::SetOperation(set) => set.columns.iter_mut().collect(),
        Node::Recursion(recursion) => recursion.columns.iter_mut().collect(),
        Node::Join(_)
        | Node::Dependent(_)
        | Node::Filter(_)
        | Node::Distinct(_)
        | Node::Sort(_)
        | Node::Limit(_) => Vec::new(),
    }
}

/// The same, to be read.
fn made(node: &Node) -> Vec<ColumnId> {
    match node {
        Node::Scan(scan) => scan.columns.iter().map(|(id, _)| *id).collect(),
        Node::Values(values) => values.columns.clone(),
        Node::Project(project) => project.exprs.iter().map(|(id, _)| *id).collect(),
        Node::Join(Join { kind: JoinKind::Mark { mark, .. }, .. })
        | Node::Dependent(Dependent { kind: JoinKind::Mark { mark, .. }, .. }) => vec![*mark],
        Node::Aggregate(aggregate) => {
            let groups = aggregate.groups.iter().map(|(id, _)| *id);
            groups.chain(aggregate.aggregates.iter().map(|(id, _)| *id)).collect()
        }
        Node::Unnest(unnest) => unnest.lists.iter().map(|(id, _)| *id).collect(),
        Node::Window(window) => window.calls.iter().map(|(id, _)| *id).collect(),
        Node::SetOperation(set) => set.columns.clone(),
        Node::Recursion(recursion) => recursion.columns.clone(),
        Node::Join(_)
        | Node::Dependent(_)
        | Node::Filter(_)
        | Node::Distinct(_)
        | Node::Sort(_)
        | Node::Limit(_) => Vec::new(),
    }
}

/// The columns that a tree reads and does not make.
pub fn free_columns(node: &Node) -> ColumnSet {
    fn walk(node: &Node, read: &mut Vec<ColumnId>, own: &mut ColumnSet) {
        visit_exprs(node, &mut |expr| expr.collect_columns(read));
        made(node).into_iter().for_each(|id| own.insert(id));
        if let Node::Recursion(Recursion { around, .. }) = node {
            own.insert(*around);
        }
        node.children().into_iter().for_each(|child| walk(child, read, own));
    }
    let (mut read, mut own) = (Vec::new(), ColumnSet::default());
    walk(node, &mut read, &mut own);
    read.into_iter().filter(|id| !own.contains(*id)).collect()
}

/// The tree with new columns in place of those that it produces; `map` receives the correspondence.
pub fn refresh(mut node: Node, columns: &mut Columns, map: &mut HashMap<ColumnId, ColumnId>) -> Node {
    fn walk(node: &mut Node, columns: &mut Columns, map: &mut HashMap<ColumnId, ColumnId>) {
        node.children_mut().into_iter().for_each(|child| walk(child, columns, map));
        for id in made_mut(node) {
            let info = columns.get(*id).clone();
            let fresh = columns.add(info.name, info.ty, info.nullable);
            map.insert(*id, fresh);
            *id = fresh;
        }
        let renamed = |id: &ColumnId| map.get(id).copied();
        for_each_expr(node, &mut |expr, _| {
            let taken = std::mem::replace(expr, Expr::literal(Value::Null, DataType::Null));
            *expr = taken.transform(&mut |e| match e {
                Expr::Column { id, ty } => Expr::Column { id: renamed(&id).unwrap_or(id), ty },
                other => other,
            });
        });
        match node {
            Node::Distinct(distinct) => {
                distinct.keys.iter_mut().for_each(|id| *id = renamed(id).unwrap_or(*id));
            }
            Node::SetOperation(set) => {
                for id in set.inputs.iter_mut().flat_map(|(_, outputs)| outputs) {
                    *id = renamed(id).unwrap_or(*id);
                }
            }
            Node::Dependent(dependent) => {
                dependent.outputs.iter_mut().for_each(|id| *id = renamed(id).unwrap_or(*id));
            }
            Node::Recursion(Recursion { start, step, .. }) => {
                for id in start.columns.iter_mut().chain(&mut step.columns) {
                    *id = renamed(id).unwrap_or(*id);
                }
            }
            _ => {}
        }
    }
    walk(&mut node, columns, map);
    node
}

/// True if a tree returns the same rows each time.
pub fn is_repeatable(node: &Node) -> bool {
    let mut is_volatile = false;
    visit_exprs(node, &mut |expr| is_volatile |= expr.is_volatile());
    !is_volatile && node.children().into_iter().all(is_repeatable)
}
