//! Rule: nothing is made that nobody reads.
//!
//! From the root down each node learns which of its columns are read above. Scans read only those (and what
//! their filters need), projections and aggregates drop the others, a mark join whose mark is not read is its
//! left input, and so is a left join on a unique key whose right columns are not read. A referenced table of
//! which nothing but the key is read leaves its joins ([`eliminate_fk_join`](super::eliminate_fk_join)).

use super::eliminate_fk_join::without_parent;
use super::properties::has_one_match;
use crate::plan::tree::{ColumnSet, columns_of, reads_all, take};
use crate::plan::{Aggregate, Join, JoinKind, Node, Plan, SetKind, SetOperation, Values};
use entasis_vector::Result;

/// Prunes the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    let output: ColumnSet = plan.output.iter().map(|output| output.column).collect();
    prune(&mut plan.root, output);
    Ok(())
}

/// Removes from `node` what is not in `wanted`. Filters and the like still pass on what they read themselves.
fn prune(node: &mut Node, mut wanted: ColumnSet) {
    match node {
        Node::Scan(scan) => {
            wanted.add(&reads_all(&scan.filters));
            scan.columns.retain(|(id, _)| wanted.contains(*id));
        }
        Node::Values(values) => prune_values(values, &wanted),
        Node::Filter(filter) => {
            wanted.add(&reads_all(&filter.predicates));
            prune(&mut filter.input, wanted);
        }
        Node::Project(project) => {
            project.exprs.retain(|(id, _)| wanted.contains(*id));
            wanted.add(&reads_all(project.exprs.iter().map(|(_, e)| e)));
            prune(&mut project.input, wanted);
            if project.exprs.is_empty() {
                *node = take(&mut project.input);
            }
        }
        Node::Unnest(unnest) => {
            // How many rows there are depends on each list.
            wanted.add(&reads_all(unnest.lists.iter().map(|(_, e)| e)));
            prune(&mut unnest.input, wanted);
        }
        Node::Join(join) => {
            if let Some(input) = prune_join(join, wanted) {
                *node = input;
            }
        }
        Node::Aggregate(aggregate) => {
            aggregate.aggregates.retain(|(id, _)| wanted.contains(*id));
            if aggregate.aggregates.is_empty() && aggregate.groups.is_empty() {
                // One row, whatever comes in.
                *node = Node::Values(Values { columns: Vec::new(), rows: vec![Vec::new()] });
                return;
            }
            let read = aggregate_reads(aggregate);
            prune(&mut aggregate.input, read);
        }
        Node::Distinct(distinct) => {
            let keys = distinct.keys.iter().copied().collect();
            prune(&mut distinct.input, keys);
        }
        Node::Window(window) => {
            window.calls.retain(|(id, _)| wanted.contains(*id));
            if window.calls.is_empty() && window.top.is_none() {
                let mut input = take(&mut window.input);
                prune(&mut input, wanted);
                *node = input;
                return;
            }
            wanted.add(&reads_all(window.exprs()));
            prune(&mut window.input, wanted);
        }
        Node::Sort(sort) => {
            wanted.add(&reads_all(sort.keys.iter().map(|key| &key.expr)));
            prune(&mut sort.input, wanted);
        }
        // They read what they like; they are gone before this runs.
        Node::Dependent(_) | Node::Recursion(_) => {}
        Node::Limit(limit) => prune(&mut limit.input, wanted),
        Node::SetOperation(set) => prune_set(set, &wanted),
    }
}

/// Prunes a join. Returns the input that is left of it, if the other one is not needed.
fn prune_join(join: &mut Join, mut wanted: ColumnSet) -> Option<Node> {
    if is_needless(join, &wanted) {
        let mut left = take(&mut join.left);
        prune(&mut left, wanted);
        return Some(left);
    }
    if let Some(mut child) = without_parent(join, &wanted) {
        prune(&mut child, wanted);
        return Some(child);
    }
    wanted.add(&reads_all(join.on.iter().flat_map(|key| [&key.left, &key.right]).chain(&join.residual)));
    if matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
        drop_distinct(&mut join.right);
    }
    prune(&mut join.left, wanted.clone());
    prune(&mut join.right, wanted);
    None
}

/// Prunes a set operation. Only where duplicates stay do rows keep their number without some of their
/// columns.
fn prune_set(set: &mut SetOperation, wanted: &ColumnSet) {
    if set.kind == SetKind::Union && set.all {
        let keep: Vec<bool> = set.columns.iter().map(|id| wanted.contains(*id)).collect();
        retain(&mut set.columns, &keep);
        set.inputs.iter_mut().for_each(|(_, ids)| retain(ids, &keep));
    }
    for (input, ids) in &mut set.inputs {
        prune(input, ids.iter().copied().collect());
    }
}

/// The columns that an aggregation reads.
pub(super) fn aggregate_reads(aggregate: &Aggregate) -> ColumnSet {
    let mut read = reads_all(aggregate.groups.iter().map(|(_, e)| e));
    for (_, call) in &aggregate.aggregates {
        read.add(&reads_all(&call.args));
        read.add(&reads_all(&call.filter));
        read.add(&reads_all(call.order_by.iter().map(|key| &key.expr)));
    }
    read
}

/// A match once or twice is a match: `IN (SELECT DISTINCT …)` needs no distinct.
fn drop_distinct(node: &mut Node) {
    // One that is partial makes what the join keeps smaller.
    while let Node::Distinct(distinct) = node
        && !distinct.is_partial
    {
        *node = take(&mut distinct.input);
    }
}

/// True if the join neither drops nor repeats left rows, and nothing of its right side is wanted.
fn is_needless(join: &Join, wanted: &ColumnSet) -> bool {
    match join.kind {
        JoinKind::Mark { mark, .. } => !wanted.contains(mark),
        JoinKind::AsOf { outer: true } => !wanted.intersects(&columns_of(&join.right)),
        JoinKind::Left => !wanted.intersects(&columns_of(&join.right)) && has_one_match(join),
        _ => false,
    }
}

fn prune_values(values: &mut Values, wanted: &ColumnSet) {
    if values.columns.iter().all(|id| wanted.contains(*id)) {
        return;
    }
    let keep: Vec<bool> = values.columns.iter().map(|id| wanted.contains(*id)).collect();
    values.rows.iter_mut().for_each(|row| retain(row, &keep));
    retain(&mut values.columns, &keep);
}

/// Keeps the elements for which `keep` is true.
fn retain<T>(all: &mut Vec<T>, keep: &[bool]) {
    let mut kept = keep.iter();
    all.retain(|_| *kept.next().expect("as many"));
}
