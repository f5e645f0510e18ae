//! Joins that several parts of a plan have in common are computed once.
//!
//! TPC-DS Q61 asks for the sum of all sales of a month and of those with a promotion: the same five relations
//! under the same conditions, and in one part of the plan a sixth. TPC-H Q11 groups what it also sums up.
//!
//! 1. A *region* is a tree of inner joins and filters. It is taken apart into scans, other inputs, and
//!    conjuncts ([`Region`]).
//! 2. A region of scans alone is part of another one if a renaming of its columns takes its scans to some of
//!    the other's, and its conjuncts to some of the other's ([`embed`]).
//! 3. If [`is_worth_it`], it becomes a [`Shared`] relation, which both read: one as it is, the other under
//!    the rest of its conditions, joined with the rest of its inputs.
//!
//! It runs before the optimizer, on joins as they were written, so that nothing has to be undone; the rules
//! `filter_common_subplans` and `column_pruning` leave out the columns that nobody reads. Volatile conditions
//! are never shared. Not done: what two regions have in common if neither is part of the other; to compute a
//! join for each reader after all, if far more rows come than were expected and memory is short.

use super::Shared;
use crate::estimate::estimate_rows;
use crate::plan::freedom::may_repeat;
use crate::plan::tree::{conjuncts, filter, key_predicate, substitute, take};
use crate::plan::{ColumnInfo, Columns, Join, JoinKind, Node, Output, Plan, Scan};
use crate::relation::{Relation, is_same_relation};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, Field, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// Joins whose largest relation has fewer rows are computed again.
const MANY_ROWS: f64 = 10_000.0;
/// A row of the largest relation takes at least so much less than a row that is kept.
const KEPT_OF: f64 = 4.0;
/// The most rows that are kept: there is no room for more than fit into memory.
const MOST_KEPT: f64 = 1e6;
/// Who wants less than one row of so many computes what it wants: its own conditions may lead to it.
const WANTED_OF: f64 = 4.0;

/// The plan with joins that are part of others computed once.
pub(super) fn share_joins(mut plan: Plan) -> Plan {
    let mut regions = Vec::new();
    collect(&plan.root, &mut 0, false, &mut regions);
    if regions.len() < 2 {
        return plan;
    }
    // The largest first: what it has is not read by others any more.
    regions.sort_by_key(|region| (std::cmp::Reverse(region.scans.len()), region.at));
    let mut changes = HashMap::new();
    for (at, core) in regions.iter().enumerate() {
        if !core.others.is_empty() || changes.contains_key(&core.at) {
            continue;
        }
        let is_open = |(other, region): &(usize, &Region)| *other != at && !changes.contains_key(&region.at);
        let readers: Vec<(&Region, Vec<usize>)> = regions
            .iter()
            .enumerate()
            .filter(is_open)
            .filter_map(|(_, region)| Some((region, embed(core, region)?)))
            .filter(|(region, _)| is_worth_it(core, region, &plan.columns))
            .collect();
        if !readers.is_empty() {
            share(core, &readers, &plan.columns, &mut changes);
        }
    }
    if !changes.is_empty() {
        rewrite(&mut plan.root, &mut 0, &mut changes);
    }
    plan
}

/// A tree of inner joins and filters, taken apart.
struct Region<'a> {
    /// The number of its root in the plan, parents before their children.
    at: usize,
    root: &'a Node,
    /// The leaves that are scans of whole relations, in order.
    scans: Vec<&'a Scan>,
    /// The numbers that these have among all leaves.
    places: Vec<usize>,
    /// The other leaves.
    others: Vec<&'a Node>,
    conjuncts: Vec<Expr>,
}

impl<'a> Region<'a> {
    fn new(at: usize, root: &'a Node) -> Region<'a> {
        let (scans, places, others) = (Vec::new(), Vec::new(), Vec::new());
        let mut region = Region { at, root, scans, places, others, conjuncts: Vec::new() };
        region.take_apart(root);
        region.conjuncts = conjuncts(std::mem::take(&mut region.conjuncts));
        region
    }

    fn take_apart(&mut self, node: &'a Node) {
        match node {
            Node::Filter(filter) => {
                self.conjuncts.extend(filter.predicates.iter().cloned());
                self.take_apart(&filter.input);
            }
            Node::Join(join) if is_inner(join) => {
                self.conjuncts.extend(join.on.iter().cloned().map(key_predicate));
                self.conjuncts.extend(join.residual.iter().cloned());
                self.take_apart(&join.left);
                self.take_apart(&join.right);
            }
            // A row id is no column of the relation.
            Node::Scan(scan) if scan.columns.iter().all(|(_, at)| *at < scan.relation.schema().len()) => {
                self.conjuncts.extend(scan.filters.iter().cloned());
                self.places.push(self.scans.len() + self.others.len());
                self.scans.push(scan);
            }
            other => self.others.push(other),
        }
    }
}

fn is_inner(join: &Join) -> bool {
    join.kind == JoinKind::Inner
}

/// True for what a region has above its leaves.
fn is_inside(node: &Node) -> bool {
    match node {
        Node::Filter(_) => true,
        Node::Join(join) => is_inner(join),
        _ => false,
    }
}

/// Adds the regions of a tree that join scans. `next` is the number of the node, which `continues` the region
/// of its parent.
fn collect<'a>(node: &'a Node, next: &mut usize, continues: bool, regions: &mut Vec<Region<'a>>) {
    let at = *next;
    *next += 1;
    let is_inside = is_inside(node);
    if is_inside && !continues {
        let region = Region::new(at, node);
        if region.scans.len() > 1 && region.conjuncts.iter().all(may_repeat) {
            regions.push(region);
        }
    }
    node.children().into_iter().for_each(|child| collect(child, next, is_inside, regions));
}

/// The scans of `region` that take the place of those of `core`, if it is part of it.
fn embed(core: &Region, region: &Region) -> Option<Vec<usize>> {
    if core.scans.len() > region.scans.len() || core.conjuncts.len() > region.conjuncts.len() {
        return None;
    }
    let mut places = Vec::new();
    embed_from(core, region, &mut places).then_some(places)
}

/// Adds places for the scans of `core` that have none yet. False, and none is added, if there are none.
fn embed_from(core: &Region, region: &Region, places: &mut Vec<usize>) -> bool {
    let Some(own) = core.scans.get(places.len()) else {
        return common(core, region, places).is_some();
    };
    for (at, scan) in region.scans.iter().enumerate() {
        if !places.contains(&at) && is_same_relation(&own.relation, &scan.relation) {
            places.push(at);
            if embed_from(core, region, places) {
                return true;
            }
            places.pop();
        }
    }
    false
}

/// The conjuncts of `region` that those of `core` are, with its scans in these places; `None` if it lacks
/// one.
fn common(core: &Region, region: &Region, places: &[usize]) -> Option<Vec<usize>> {
    let mut names = HashMap::new();
    for (own, &place) in core.scans.iter().zip(places) {
        for (id, index) in &own.columns {
            let (other, _) = region.scans[place].columns.iter().find(|(_, other)| other == index)?;
            names.insert(*id, Expr::column(*other, own.relation.schema()[*index].ty));
        }
    }
    let find = |conjunct: &Expr| {
        let renamed = substitute(conjunct.clone(), &names);
        region.conjuncts.iter().position(|other| is_same_condition(&renamed, other))
    };
    core.conjuncts.iter().map(find).collect()
}

/// True if both say the same: `a = b` is `b = a`.
fn is_same_condition(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (
            Expr::Compare { op: CompareOp::Eq, left, right },
            Expr::Compare { op: CompareOp::Eq, left: other_left, right: other_right },
        ) => (left == other_left && right == other_right) || (left == other_right && right == other_left),
        _ => a == b,
    }
}

/// True if the rows of `core` are few beside those that are read for them, and `region` wants many of them.
fn is_worth_it(core: &Region, region: &Region, columns: &Columns) -> bool {
    let rows = |scan: &&Scan| estimate_rows(&Node::Scan((*scan).clone()), columns);
    let largest = core.scans.iter().map(rows).fold(0.0, f64::max);
    if largest < MANY_ROWS {
        return false;
    }
    let kept = estimate_rows(core.root, columns);
    let wanted = estimate_rows(region.root, columns);
    kept <= MOST_KEPT && kept * KEPT_OF <= largest && wanted * WANTED_OF >= kept
}

/// What becomes of a region.
struct Change {
    /// The leaf that takes the place of others.
    scan: Scan,
    /// The leaves whose place it takes.
    replaced: Vec<usize>,
    /// The conditions that are left.
    conjuncts: Vec<Expr>,
}

/// Makes `core` a relation, which it and its readers read.
fn share(
    core: &Region,
    readers: &[(&Region, Vec<usize>)],
    columns: &Columns,
    changes: &mut HashMap<usize, Change>,
) {
    // All columns that any of them reads, with the scan they are of, and their ids in the core.
    let mut kept: Vec<(usize, usize, ColumnId)> = Vec::new();
    let mut root = core.root.clone();
    let same: Vec<usize> = (0..core.scans.len()).collect();
    for (region, places) in std::iter::once((core, &same)).chain(readers.iter().map(|(r, p)| (*r, p))) {
        for (scan, &place) in places.iter().enumerate() {
            for &(id, index) in &region.scans[place].columns {
                if !kept.iter().any(|(of, at, _)| (*of, *at) == (scan, index)) {
                    kept.push((scan, index, id));
                }
            }
        }
    }
    read_all(&mut root, &mut 0, &kept);
    let info = |(_, _, id): &(usize, usize, ColumnId)| -> &ColumnInfo { columns.get(*id) };
    let field =
        |info: &ColumnInfo| Field { nullable: info.nullable, ..Field::new(info.name.as_str(), info.ty) };
    let schema: Schema = kept.iter().map(|column| field(info(column))).collect();
    let output = kept.iter().map(|column| Output { name: info(column).name.clone(), column: column.2 });
    let plan = Plan { output: output.collect(), columns: columns.clone(), root };
    let relation: Arc<dyn Relation> = Arc::new(Shared::new("join".to_owned(), schema, plan));

    let mut change = |region: &Region, places: &[usize]| {
        let mut read = Vec::new();
        for (scan, &place) in places.iter().enumerate() {
            for &(id, index) in &region.scans[place].columns {
                let output = kept.iter().position(|(of, at, _)| (*of, *at) == (scan, index));
                read.push((id, output.expect("all columns are kept")));
            }
        }
        let done = common(core, region, places).expect("it is part of the region");
        let rest = region.conjuncts.iter().enumerate().filter(|(at, _)| !done.contains(at));
        let change = Change {
            scan: Scan::all(relation.clone(), read),
            replaced: places.iter().map(|&place| region.places[place]).collect(),
            conjuncts: rest.map(|(_, conjunct)| conjunct.clone()).collect(),
        };
        changes.insert(region.at, change);
    };
    change(core, &same);
    readers.iter().for_each(|(region, places)| change(region, places));
}

/// Lets the scans of a core read what is kept of them. `next` is the number of the scan.
fn read_all(node: &mut Node, next: &mut usize, kept: &[(usize, usize, ColumnId)]) {
    if let Node::Scan(scan) = node {
        let own = kept.iter().filter(|(of, ..)| of == next);
        scan.columns = own.map(|(_, index, id)| (*id, *index)).collect();
        *next += 1;
    }
    node.children_mut().into_iter().for_each(|child| read_all(child, next, kept));
}

/// Carries out the changes. `next` is the number of the node.
fn rewrite(node: &mut Node, next: &mut usize, changes: &mut HashMap<usize, Change>) {
    let change = changes.remove(next);
    *next += 1;
    node.children_mut().into_iter().for_each(|child| rewrite(child, next, changes));
    let Some(Change { scan, replaced, conjuncts }) = change else { return };
    let mut leaves = Vec::new();
    take_leaves(take(node), &mut leaves);
    let left = leaves.into_iter().enumerate().filter(|(at, _)| !replaced.contains(at));
    let product = left.fold(Node::Scan(scan), |left, (_, right)| {
        let (left, right) = (Box::new(left), Box::new(right));
        Node::Join(Join { left, right, kind: JoinKind::Inner, on: Vec::new(), residual: Vec::new() })
    });
    *node = filter(product, conjuncts);
}

/// Adds the leaves of a region, in the order in which [`Region`] has them.
fn take_leaves(node: Node, leaves: &mut Vec<Node>) {
    match node {
        Node::Filter(filter) => take_leaves(*filter.input, leaves),
        Node::Join(join) if is_inner(&join) => {
            take_leaves(*join.left, leaves);
            take_leaves(*join.right, leaves);
        }
        leaf => leaves.push(leaf),
    }
}
