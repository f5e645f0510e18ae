//! Rows of a referenced table that only prove that they are there.
//!
//! Where a foreign key of a table is joined with the key that it refers to, each row has one partner, unless
//! the foreign key is NULL. If nothing of the partner is read but that key, the join is a filter:
//!
//! ```text
//! SELECT c.id, sum(o.price) FROM orders o JOIN customer c ON o.customer = c.id GROUP BY c.id
//!     → sum(o.price) by o.customer, of orders whose customer is not NULL
//! ```
//! Views that join everything are read for a few of their columns only. Not done where the partner is
//! filtered by other columns, or the types of the two keys differ or have several forms of one value. Anti
//! joins stay: `PRAGMA integrity_check` and a new constraint look for rows without a partner by them.

use super::filter_pushdown::push;
use crate::plan::freedom::{has_forms, may_repeat};
use crate::plan::tree::{ColumnSet, columns_of, reads_all, substitute, take};
use crate::plan::{Join, JoinKind, Node, Project, Scan};
use crate::relation::ParentKey;
use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;
use std::collections::HashMap;

/// A key of the referenced table, and the column that refers to it.
type Pair = (ColumnId, Expr);

/// What `join` is without the referenced table, if of that nothing is wanted but the key.
pub(super) fn without_parent(join: &mut Join, wanted: &ColumnSet) -> Option<Node> {
    let of_right: Vec<Pair> = pairs(join, |key| (&key.right, &key.left))?;
    if matches!(join.kind, JoinKind::Inner | JoinKind::Semi)
        && is_needless(&join.left, &join.right, &of_right, wanted)
    {
        return Some(of_child(take(&mut join.left), take(&mut join.right), of_right, wanted));
    }
    let of_left: Vec<Pair> = pairs(join, |key| (&key.left, &key.right))?;
    (join.kind == JoinKind::Inner && is_needless(&join.right, &join.left, &of_left, wanted))
        .then(|| of_child(take(&mut join.right), take(&mut join.left), of_left, wanted))
}

/// The keys of a join of nothing but columns, the parent's first.
fn pairs(join: &Join, sides: impl Fn(&crate::plan::JoinKey) -> (&Expr, &Expr)) -> Option<Vec<Pair>> {
    let pair = |key: &crate::plan::JoinKey| match sides(key) {
        (Expr::Column { id, ty }, child @ Expr::Column { ty: own, .. }) if ty == own && !has_forms(*ty) => {
            (!key.null_equals_null).then(|| (*id, child.clone()))
        }
        _ => None,
    };
    if join.residual.is_empty() { join.on.iter().map(pair).collect() } else { None }
}

/// True if `parent` is a referenced table, `pairs` are its key and a foreign key of a table in `child`, and
/// nothing else of it is wanted, or filters it.
fn is_needless(child: &Node, parent: &Node, pairs: &[Pair], wanted: &ColumnSet) -> bool {
    let Node::Scan(parent) = parent else { return false };
    let is_part = parent.relation.only_rows().is_some() || parent.relation.only_slots().is_some();
    let Some(table) = parent.relation.table().filter(|_| !is_part && !pairs.is_empty()) else { return false };
    let keys: ColumnSet = pairs.iter().map(|(key, _)| *key).collect();
    let reads_keys =
        |of: &ColumnSet| parent.columns.iter().all(|(id, _)| keys.contains(*id) || !of.contains(*id));
    if !reads_keys(wanted)
        || !reads_keys(&reads_all(&parent.filters))
        || !parent.filters.iter().all(may_repeat)
    {
        return false;
    }
    let ids: Vec<ColumnId> = pairs.iter().map(|(_, child)| id_of(child)).collect();
    let refers = |child: &Scan, key: &ParentKey| {
        let is_pair = |(own, theirs): (&usize, &usize)| {
            pairs.iter().zip(&ids).any(|((parent_id, _), child_id)| {
                child.columns.contains(&(*child_id, *own)) && parent.columns.contains(&(*parent_id, *theirs))
            })
        };
        key.table == table.table().id()
            && key.columns.len() == pairs.len()
            && key.columns.iter().zip(&key.key).all(is_pair)
    };
    origin(child, &ids).is_some_and(|child| child.relation.parents().iter().any(|key| refers(child, key)))
}

fn id_of(column: &Expr) -> ColumnId {
    match column {
        Expr::Column { id, .. } => *id,
        _ => unreachable!("pairs are columns"),
    }
}

/// The scan of which `ids` are columns. Above it a row has its values in one row, or NULL in all of them:
/// only nodes that make columns with new ids combine rows.
fn origin<'a>(node: &'a Node, ids: &[ColumnId]) -> Option<&'a Scan> {
    if let Node::Scan(scan) = node {
        return ids.iter().all(|id| scan.columns.iter().any(|(own, _)| own == id)).then_some(scan);
    }
    node.children().into_iter().find_map(|child| origin(child, ids))
}

/// The rows of `child` that have a partner, with the columns of `parent` that are wanted.
fn of_child(child: Node, parent: Node, pairs: Vec<Pair>, wanted: &ColumnSet) -> Node {
    let exists = |(_, column): &Pair| Expr::Not(Box::new(Expr::IsNull(Box::new(column.clone()))));
    let mut predicates: Vec<Expr> = pairs.iter().map(exists).collect();
    let visible = columns_of(&parent);
    let with: HashMap<ColumnId, Expr> = pairs.iter().cloned().collect();
    if let Node::Scan(parent) = parent {
        predicates.extend(parent.filters.into_iter().map(|filter| substitute(filter, &with)));
    }
    let input = push(child, predicates, &ColumnSet::default());
    let exprs: Vec<Pair> =
        pairs.into_iter().filter(|(id, _)| wanted.contains(*id) && visible.contains(*id)).collect();
    if exprs.is_empty() { input } else { Node::Project(Project { input: Box::new(input), exprs }) }
}
