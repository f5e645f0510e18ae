//! What a subplan provably is: one row, at most one row, unique in some columns.
//!
//! Only proofs count here, no statistics: distinct counts are estimates, and a wrong "unique" is a wrong
//! result. Proofs come from aggregates and distincts, whose keys are unique by construction, and from
//! relations that know a key.

use crate::plan::tree::{ColumnSet, columns_of};
use crate::plan::{Join, JoinKind, Node, Window, WindowFunction};
use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;

/// True if `node` gives exactly one row.
pub(crate) fn is_one_row(node: &Node) -> bool {
    match node {
        Node::Aggregate(aggregate) => aggregate.groups.is_empty(),
        Node::Values(values) => values.rows.len() == 1,
        Node::Project(project) => is_one_row(&project.input),
        Node::Sort(sort) => sort.limit != Some(0) && is_one_row(&sort.input),
        Node::Window(window) => window.top.is_none_or(|top| top.rows > 0) && is_one_row(&window.input),
        Node::Join(join) => {
            let unconditional = join.on.is_empty() && join.residual.is_empty();
            match join.kind {
                JoinKind::Inner => unconditional && is_one_row(&join.left) && is_one_row(&join.right),
                JoinKind::Left => is_one_row(&join.left) && is_at_most_one_row(&join.right),
                JoinKind::Single | JoinKind::Mark { .. } | JoinKind::AsOf { outer: true } => {
                    is_one_row(&join.left)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// True if `node` gives one row or none.
pub(crate) fn is_at_most_one_row(node: &Node) -> bool {
    match node {
        Node::Limit(limit) => limit.count.is_some_and(|count| count <= 1) || is_at_most_one_row(&limit.input),
        Node::Filter(filter) => is_at_most_one_row(&filter.input),
        Node::Project(project) => is_at_most_one_row(&project.input),
        Node::Sort(sort) => sort.limit.is_some_and(|limit| limit <= 1) || is_at_most_one_row(&sort.input),
        Node::Window(window) => is_at_most_one_row(&window.input),
        Node::Distinct(distinct) => {
            distinct.keys.is_empty() && !distinct.is_partial || is_at_most_one_row(&distinct.input)
        }
        Node::Values(values) => values.rows.len() <= 1,
        Node::Aggregate(aggregate) => aggregate.groups.is_empty() || is_at_most_one_row(&aggregate.input),
        Node::Join(join) => match join.kind {
            JoinKind::Inner | JoinKind::Left => {
                is_at_most_one_row(&join.left) && is_at_most_one_row(&join.right)
            }
            JoinKind::Right | JoinKind::Full => false,
            _ => is_at_most_one_row(&join.left),
        },
        Node::Scan(_) | Node::Unnest(_) | Node::SetOperation(_) => false,
        Node::Dependent(_) | Node::Recursion(_) => false,
    }
}

/// True if no two rows of `node` agree in all of `keys`, NULL counting as equal to NULL.
pub(crate) fn is_unique(node: &Node, keys: &ColumnSet) -> bool {
    if is_at_most_one_row(node) {
        return true;
    }
    match node {
        Node::Dependent(_) | Node::Recursion(_) => false,
        Node::Aggregate(aggregate) => aggregate.groups.iter().all(|(id, _)| keys.contains(*id)),
        Node::Distinct(distinct) if distinct.is_partial => is_unique(&distinct.input, keys),
        Node::Distinct(distinct) => distinct.keys.iter().all(|id| keys.contains(*id)),
        Node::SetOperation(set) => !set.all && set.columns.iter().all(|id| keys.contains(*id)),
        Node::Window(window) => is_unique(&window.input, keys) || is_unique_window(window, keys),
        Node::Filter(filter) => is_unique(&filter.input, keys),
        Node::Sort(sort) => is_unique(&sort.input, keys),
        Node::Limit(limit) => is_unique(&limit.input, keys),
        Node::Project(project) => {
            // A new column that only renames one is as good as it.
            let mut keys = keys.clone();
            for (id, expr) in &project.exprs {
                if let Expr::Column { id: source, .. } = expr
                    && keys.contains(*id)
                {
                    keys.insert(*source);
                }
            }
            is_unique(&project.input, &keys)
        }
        Node::Join(join) => is_unique_join(join, keys),
        Node::Scan(scan) => {
            let is_known =
                |column: &usize| scan.columns.iter().any(|(id, index)| index == column && keys.contains(*id));
            scan.columns.iter().any(|(id, index)| keys.contains(*id) && scan.relation.is_unique(*index))
                || scan.relation.keys().iter().any(|key| key.iter().all(is_known))
        }
        Node::Values(_) | Node::Unnest(_) => false,
    }
}

/// True if `keys` have a row number, and all that it is counted by.
fn is_unique_window(window: &Window, keys: &ColumnSet) -> bool {
    let is_key = |expr: &Expr| matches!(expr, Expr::Column { id, .. } if keys.contains(*id));
    let numbers = window.calls.iter().filter(|(_, call)| matches!(call.function, WindowFunction::RowNumber));
    window.partition.iter().all(is_key) && numbers.into_iter().any(|(id, _)| keys.contains(*id))
}

fn is_unique_join(join: &Join, keys: &ColumnSet) -> bool {
    match join.kind {
        JoinKind::Semi
        | JoinKind::Anti
        | JoinKind::NullAwareAnti
        | JoinKind::Mark { .. }
        | JoinKind::Single
        | JoinKind::AsOf { .. } => is_unique(&join.left, keys),
        JoinKind::Left => is_unique(&join.left, keys) && has_one_match(join),
        JoinKind::Inner => {
            let (mut left, mut right) = (keys.clone(), keys.clone());
            left.retain(&columns_of(&join.left));
            right.retain(&columns_of(&join.right));
            (is_unique(&join.left, &left) && (has_one_match(join) || is_unique(&join.right, &right)))
                || (is_unique(&join.right, &right) && is_unique(&join.left, &plain_columns(join, Side::Left)))
        }
        JoinKind::Right | JoinKind::Full => false,
    }
}

/// True if a left row has at most one match: the join's keys contain a unique key of the right side.
pub(crate) fn has_one_match(join: &Join) -> bool {
    is_unique(&join.right, &plain_columns(join, Side::Right))
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// The columns that stand alone in the join's keys on one side.
fn plain_columns(join: &Join, side: Side) -> ColumnSet {
    join.on
        .iter()
        .filter_map(|key| match (side, &key.left, &key.right) {
            (Side::Left, Expr::Column { id, .. }, _) | (Side::Right, _, Expr::Column { id, .. }) => Some(*id),
            _ => None,
        })
        .collect::<Vec<ColumnId>>()
        .into_iter()
        .collect()
}
