//! Rule: an aggregate makes only the groups that a join will look at.
//!
//! ```text
//! part (brand, container) ⋈ lineitem ⋈ (SELECT l_partkey, avg(l_quantity) FROM lineitem GROUP BY l_partkey)    Q17
//!     → the aggregate's input becomes  lineitem ⋉ part (brand, container)
//! ```
//!
//! A decorrelated subquery aggregates for every key there is, although the outer query asks for few. Where a
//! filtered scan of the outer query bounds the keys, through equalities that hold in every row of the result,
//! a semi join with a second scan of it goes below the aggregate. It drops whole groups, and only those that
//! no row of the result has. That is sideways information passing by a magic set, restricted to sets that
//! cost one more scan. TPC-H Q2, Q17, Q20.
//!
//! The semi join is placed by join ordering. Reduction pays if few of the groups are asked for and
//! the rows that go into the aggregate are more than the scan that is repeated.

use crate::estimate::estimate;
use crate::plan::tree::{substitute, take};
use crate::plan::{Columns, Join, JoinKey, JoinKind, Node, Plan, Scan};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result};
use std::collections::HashMap;

/// Share of the groups above which a reduction is not worth its scan.
const SHARE_MAX: f64 = 0.25;

/// Reduces the aggregates of the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    let mut reductions = Vec::new();
    find_regions(&plan.root, &plan.columns, &mut reductions);
    reduce(&mut plan.root, &mut reductions, &mut plan.columns);
    Ok(())
}

/// Groups of `key` are asked for only if it is in `column` of `scan`.
struct Reduction {
    key: ColumnId,
    scan: Scan,
    column: ColumnId,
}

/// What a tree of joins says about columns: which are equal in every row of its result.
#[derive(Default)]
struct Region<'a> {
    leaves: Vec<&'a Node>,
    equal: Vec<(ColumnId, ColumnId)>,
    /// Keys of aggregates on the far side of left, semi and anti joins, each with the near side's key: rows
    /// with other keys are never looked at, but the near side need not find one.
    asked: Vec<(ColumnId, ColumnId)>,
}

fn find_regions(node: &Node, columns: &Columns, into: &mut Vec<Reduction>) {
    if let Node::Join(_) = node {
        let mut region = Region::default();
        region.collect(node);
        region.find(columns, into);
        for leaf in region.leaves {
            if std::ptr::eq(leaf, node) {
                // A join that is no region.
                leaf.children().into_iter().for_each(|child| find_regions(child, columns, into));
            } else {
                find_regions(leaf, columns, into);
            }
        }
    } else {
        node.children().into_iter().for_each(|child| find_regions(child, columns, into));
    }
}

impl<'a> Region<'a> {
    fn collect(&mut self, node: &'a Node) {
        match node {
            Node::Join(join) if join.kind == JoinKind::Inner => {
                self.collect(&join.left);
                self.collect(&join.right);
                self.equal.extend(plain_keys(join));
            }
            Node::Join(join) => match join.kind {
                JoinKind::Semi => {
                    self.collect(&join.left);
                    self.leaves.push(&join.right);
                    self.equal.extend(plain_keys(join));
                }
                JoinKind::Left | JoinKind::Anti => {
                    self.collect(&join.left);
                    self.leaves.push(&join.right);
                    self.asked.extend(plain_keys(join));
                }
                _ => self.leaves.push(node),
            },
            Node::Filter(filter) => self.collect(&filter.input),
            Node::Project(project) => self.collect(&project.input),
            leaf => self.leaves.push(leaf),
        }
    }

    /// The columns that equal `id`, itself among them.
    fn class(&self, id: ColumnId) -> Vec<ColumnId> {
        let mut class = vec![id];
        let mut next = 0;
        while let Some(&one) = class.get(next) {
            next += 1;
            for &(a, b) in &self.equal {
                for (from, to) in [(a, b), (b, a)] {
                    if from == one && !class.contains(&to) {
                        class.push(to);
                    }
                }
            }
        }
        class
    }

    fn find(&self, columns: &Columns, into: &mut Vec<Reduction>) {
        for leaf in &self.leaves {
            let Some(Node::Aggregate(aggregate)) = inside(leaf) else { continue };
            let mut best: Option<(f64, Reduction)> = None;
            for (key, expr) in &aggregate.groups {
                let Expr::Column { id: source, .. } = expr else { continue };
                let mut class = self.class(*key);
                for (near, _) in self.asked.iter().filter(|(_, far)| far == key) {
                    class.extend(self.class(*near));
                }
                let input = estimate(&aggregate.input, columns);
                let read = rows_read(&aggregate.input, columns);
                for scan in self.leaves.iter().filter_map(|leaf| match leaf {
                    Node::Scan(scan) if !scan.filters.is_empty() => Some(scan),
                    _ => None,
                }) {
                    let Some((column, _)) = scan.columns.iter().find(|(id, _)| class.contains(id)) else {
                        continue;
                    };
                    let found = estimate(&Node::Scan(scan.clone()), columns).column(*column);
                    let share = found.distinct / input.column(*source).domain.max(1.0);
                    let rows = scan.relation.statistics().rows.map_or(f64::MAX, |rows| rows as f64);
                    let pays = share < SHARE_MAX && read * (1.0 - share) > rows;
                    if pays && best.as_ref().is_none_or(|(least, _)| share < *least) {
                        best = Some((share, Reduction { key: *key, scan: scan.clone(), column: *column }));
                    }
                }
            }
            into.extend(best.map(|(_, reduction)| reduction));
        }
    }
}

/// Rows that all scans below `node` give.
fn rows_read(node: &Node, columns: &Columns) -> f64 {
    match node {
        Node::Scan(_) => estimate(node, columns).rows,
        other => other.children().into_iter().map(|child| rows_read(child, columns)).sum(),
    }
}

/// The pairs of columns that a join's keys equate.
fn plain_keys(join: &Join) -> impl Iterator<Item = (ColumnId, ColumnId)> + '_ {
    join.on.iter().filter_map(|key| match (&key.left, &key.right) {
        (Expr::Column { id: left, .. }, Expr::Column { id: right, .. }) if !key.null_equals_null => {
            Some((*left, *right))
        }
        _ => None,
    })
}

/// What is below filters and projections, which pass group keys through.
fn inside(node: &Node) -> Option<&Node> {
    match node {
        Node::Filter(filter) => inside(&filter.input),
        Node::Project(project) => inside(&project.input),
        other => Some(other),
    }
}

/// Puts the semi joins in.
fn reduce(node: &mut Node, reductions: &mut Vec<Reduction>, columns: &mut Columns) {
    node.children_mut().into_iter().for_each(|child| reduce(child, reductions, columns));
    let Node::Aggregate(aggregate) = node else { return };
    let wanted = |reduction: &Reduction| aggregate.groups.iter().any(|(id, _)| *id == reduction.key);
    let Some(position) = reductions.iter().position(wanted) else { return };
    let Reduction { key, scan, column } = reductions.swap_remove(position);
    let (_, left) = aggregate.groups.iter().find(|(id, _)| *id == key).expect("it was just found").clone();
    let (scan, column) = copy(scan, column, columns);
    *aggregate.input = Node::Join(Join {
        left: Box::new(take(&mut aggregate.input)),
        right: Box::new(Node::Scan(scan)),
        kind: JoinKind::Semi,
        on: vec![JoinKey { left, right: columns.expr(column), null_equals_null: false }],
        residual: Vec::new(),
    });
}

/// The scan once more, with columns of its own, and what `column` is called there.
fn copy(scan: Scan, column: ColumnId, columns: &mut Columns) -> (Scan, ColumnId) {
    let mut renamed: HashMap<ColumnId, ColumnId> = HashMap::new();
    let mut own = Vec::with_capacity(scan.columns.len());
    for (id, index) in scan.columns {
        let info = columns.get(id).clone();
        let new = columns.add(info.name, info.ty, info.nullable);
        renamed.insert(id, new);
        own.push((new, index));
    }
    let with: HashMap<ColumnId, Expr> = renamed.iter().map(|(old, new)| (*old, columns.expr(*new))).collect();
    let filters = scan.filters.into_iter().map(|filter| substitute(filter, &with)).collect();
    (
        Scan {
            relation: scan.relation,
            columns: own,
            filters,
            sampled: scan.sampled,
            references: Vec::new(),
            related: Vec::new(),
        },
        renamed[&column],
    )
}
