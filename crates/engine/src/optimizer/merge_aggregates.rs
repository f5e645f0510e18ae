//! Rule: aggregates of one row over the same relations are computed in one pass.
//!
//! ```text
//! SELECT (SELECT count(*) FROM sales, hours WHERE hour = hours.id AND hours.name = 'eight'),
//!        (SELECT count(*) FROM sales, hours WHERE hour = hours.id AND hours.name = 'nine')
//!     → SELECT count(*) FILTER (WHERE name = 'eight'), count(*) FILTER (WHERE name = 'nine')
//!       FROM sales, hours WHERE hour = hours.id AND (name = 'eight' OR name = 'nine')
//! ```
//! Reports ask the same tables for several figures (TPC-DS Q9, Q28, Q88, Q90). Whether they are scalar
//! subqueries or stand in `FROM`, they are leaves of a tree of joins without conditions, each of one row.
//!
//! 1. Such a leaf is taken apart into relations, conjuncts, and calls ([`Summary`]), if it reads inner joins
//!    of scans: their conditions are conjuncts, wherever they are written.
//! 2. Leaves over the same relations in the same order are one if they have the same conditions, or if
//!    [`is_worth_it`]. What all have in common stays a condition; of what else each wants, the disjunction is
//!    a condition, and each part a `FILTER` of the calls it came from.
//! 3. Leaves over one table are one as well if their conditions exclude each other by ranges of a column and
//!    that is worth it ([`disjoint`](super::disjoint)); the range is `FILTER` enough.
//! 4. The first leaf becomes all of them, and the others disappear.
//!
//! Not touched: what may fail for a row that its own leaf would not have seen, and what is volatile.

use super::disjoint::Disjoint;
use super::properties::is_one_row;
use super::seen::SeenParts;
use super::split_distinct;
use crate::estimate::estimate_rows;
use crate::plan::freedom::may_move;
use crate::plan::tree::{columns_of, conjuncts, filter, key_predicate, reads_all, substitute, take};
use crate::plan::{Aggregate, AggregateCall, Columns, Join, JoinKind, Node, Plan, Project, Scan, Values};
use crate::relation::is_same_relation;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result};
use std::collections::HashMap;

/// Leaves are one only if their own conditions let at least one row of so many pass, together: for fewer, an
/// index or the order of the rows may lead to each of them.
const PASS_OF: f64 = 64.0;

/// Fuses aggregates in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    fuse_below(&mut plan.root, &plan.columns);
    Ok(())
}

/// Fuses the leaves of each tree of joins without conditions, the innermost trees first.
fn fuse_below(node: &mut Node, columns: &Columns) {
    let mut leaves = Vec::new();
    collect_leaves(node, &mut leaves);
    for leaf in &mut leaves {
        leaf.children_mut().into_iter().for_each(|child| fuse_below(child, columns));
    }
    if fuse(&mut leaves, columns) {
        drop_units(node);
    }
}

/// Adds the leaves of a tree of joins without conditions, which may be a leaf itself.
fn collect_leaves<'a>(node: &'a mut Node, into: &mut Vec<&'a mut Node>) {
    if !matches!(node, Node::Join(join) if is_product(join)) {
        return into.push(node);
    }
    node.children_mut().into_iter().for_each(|side| collect_leaves(side, into));
}

/// True if a join gives all pairs.
fn is_product(join: &Join) -> bool {
    let is_unconditional = join.on.is_empty() && join.residual.is_empty();
    let is_kind = match join.kind {
        JoinKind::Inner => true,
        JoinKind::Single => is_one_row(&join.right),
        _ => false,
    };
    is_unconditional && is_kind
}

/// One row of no columns, which a product may do without.
fn unit() -> Node {
    Node::Values(Values { columns: Vec::new(), rows: vec![Vec::new()] })
}

fn is_unit(node: &Node) -> bool {
    matches!(node, Node::Values(values) if values.columns.is_empty() && values.rows.len() == 1)
}

/// Replaces products with a unit by their other side.
fn drop_units(node: &mut Node) {
    let Node::Join(join) = node else { return };
    if !is_product(join) {
        return;
    }
    drop_units(&mut join.left);
    drop_units(&mut join.right);
    if is_unit(&join.right) {
        *node = take(&mut join.left);
    } else if is_unit(&join.left) {
        *node = take(&mut join.right);
    }
}

/// An aggregate of one row, taken apart.
#[derive(Debug, Clone)]
struct Summary {
    /// What is joined, in order.
    relations: Vec<Scan>,
    /// What must hold of a combination of their rows.
    conjuncts: Vec<Expr>,
    /// What is computed of each combination, innermost first.
    computed: Vec<Vec<(ColumnId, Expr)>>,
    /// What is computed of all of them.
    calls: Vec<(ColumnId, AggregateCall)>,
    /// What is computed of these, innermost first.
    results: Vec<Vec<(ColumnId, Expr)>>,
}

impl Summary {
    /// That of a leaf; `None` if it is none that can be fused.
    fn of(leaf: &Node) -> Option<Summary> {
        let (mut node, mut results) = (leaf, Vec::new());
        while let Node::Project(project) = node {
            results.push(project.exprs.clone());
            node = &project.input;
        }
        let Node::Aggregate(Aggregate { input, groups, aggregates }) = node else { return None };
        if !groups.is_empty() {
            return None;
        }
        let (mut node, mut computed) = (&**input, Vec::new());
        while let Node::Project(project) = node {
            computed.push(project.exprs.clone());
            node = &project.input;
        }
        results.reverse();
        computed.reverse();
        let (relations, calls) = (Vec::new(), aggregates.clone());
        let mut summary = Summary { relations, conjuncts: Vec::new(), computed, calls, results };
        summary.take_apart(node)?;
        let mut seen = SeenParts::default();
        for conjunct in conjuncts(std::mem::take(&mut summary.conjuncts)) {
            if !seen.has(&summary.conjuncts, &conjunct) {
                summary.conjuncts.push(conjunct);
            }
        }
        (!summary.is_sensitive()).then_some(summary)
    }

    /// Adds the relations and conditions of some inner joins.
    fn take_apart(&mut self, node: &Node) -> Option<()> {
        match node {
            // A row id is no column of the relation.
            Node::Scan(scan) if scan.columns.iter().all(|(_, at)| *at < scan.relation.schema().len()) => {
                self.conjuncts.extend(scan.filters.iter().cloned());
                self.relations.push(Scan::all(scan.relation.clone(), scan.columns.clone()));
            }
            Node::Filter(filter) => {
                self.take_apart(&filter.input)?;
                self.conjuncts.extend(filter.predicates.iter().cloned());
            }
            Node::Join(join) if join.kind == JoinKind::Inner => {
                self.take_apart(&join.left)?;
                self.take_apart(&join.right)?;
                self.conjuncts.extend(join.on.iter().cloned().map(key_predicate));
                self.conjuncts.extend(join.residual.iter().cloned());
            }
            _ => return None,
        }
        Some(())
    }

    /// Calls `f` for each expression that is computed of a combination of rows.
    fn each_value(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.computed.iter_mut().flatten().for_each(|(_, expr)| f(expr));
        for (_, call) in &mut self.calls {
            let order = call.order_by.iter_mut().map(|key| &mut key.expr);
            call.args.iter_mut().chain(&mut call.filter).chain(order).for_each(&mut *f);
        }
    }

    /// True if it matters which rows its expressions are computed of, and how often.
    fn is_sensitive(&mut self) -> bool {
        let is_sensitive = |expr: &Expr| !may_move(expr);
        let mut found = self.conjuncts.iter().any(is_sensitive);
        self.each_value(&mut |expr| found |= is_sensitive(expr));
        found
    }

    /// True if both read the same relations in the same order.
    fn is_over_relations_of(&self, other: &Summary) -> bool {
        self.relations.len() == other.relations.len()
            && self
                .relations
                .iter()
                .zip(&other.relations)
                .all(|(own, other)| is_same_relation(&own.relation, &other.relation))
    }

    /// Gives its columns the names that another one over the same relations has for them. The other one reads
    /// all columns of both afterwards.
    fn adopt_columns_of(&mut self, other: &mut Summary) {
        let mut names = HashMap::new();
        for (own, other) in self.relations.iter().zip(&mut other.relations) {
            for (id, index) in &own.columns {
                match other.columns.iter().find(|(_, other)| other == index) {
                    Some((name, _)) => {
                        names.insert(*id, Expr::column(*name, own.relation.schema()[*index].ty));
                    }
                    None => other.columns.push((*id, *index)),
                }
            }
        }
        let mut rename = |expr: &mut Expr| {
            let taken = std::mem::replace(expr, Expr::boolean(true));
            *expr = substitute(taken, &names);
        };
        self.conjuncts.iter_mut().for_each(&mut rename);
        self.each_value(&mut rename);
    }

    /// The conjuncts that not all of some summaries have.
    fn own(&self, common: &[Expr]) -> Vec<Expr> {
        self.conjuncts.iter().filter(|conjunct| !common.contains(conjunct)).cloned().collect()
    }

    /// Its leaf.
    fn into_node(self) -> Node {
        let above = |input: Node, exprs: Vec<(ColumnId, Expr)>| {
            Node::Project(Project { input: Box::new(input), exprs })
        };
        let mut relations = self.relations.into_iter().map(Node::Scan);
        let first = relations.next().expect("a leaf reads a relation");
        let product = relations.fold(first, |left, right| {
            let (left, right) = (Box::new(left), Box::new(right));
            Node::Join(Join { left, right, kind: JoinKind::Inner, on: Vec::new(), residual: Vec::new() })
        });
        let input = self.computed.into_iter().fold(filter(product, self.conjuncts), above);
        let (input, groups) = (Box::new(input), Vec::new());
        let aggregate = Node::Aggregate(Aggregate { input, groups, aggregates: self.calls });
        self.results.into_iter().fold(aggregate, above)
    }
}

/// A summary, and its place among the leaves.
type Placed = (usize, Summary);

/// Fuses what can be fused of the leaves of a product. False if nothing can.
fn fuse(leaves: &mut [&mut Node], columns: &Columns) -> bool {
    let mut summaries: Vec<Option<Summary>> = leaves.iter().map(|leaf| Summary::of(leaf)).collect();
    let mut is_fused = false;
    for first in 0..leaves.len() {
        let Some(head) = summaries[first].take() else { continue };
        let alike = |own: &mut Summary| own.is_over_relations_of(&head);
        let others: Vec<Placed> = (first + 1..leaves.len())
            .filter_map(|other| Some((other, summaries[other].take_if(alike)?)))
            .collect();
        let members: Vec<Placed> = std::iter::once((first, head)).chain(others).collect();
        let mut groups = by_conditions(members);
        let disjoint = disjoint(&groups, columns);
        if disjoint.is_some() || is_worth_it(&groups, columns) {
            groups = vec![groups.into_iter().flatten().collect()];
        }
        for group in groups.into_iter().filter(|group| group.len() > 1) {
            let (places, members): (Vec<usize>, Vec<Summary>) = group.into_iter().unzip();
            is_fused = true;
            *leaves[places[0]] = fused(in_one_naming(members), disjoint.as_ref()).into_node();
            places[1..].iter().for_each(|&place| *leaves[place] = unit());
        }
    }
    is_fused
}

/// Summaries over the same relations, those with the same conditions together. Each keeps its place.
fn by_conditions(members: Vec<Placed>) -> Vec<Vec<Placed>> {
    let named = in_one_naming(members.iter().map(|(_, member)| member.clone()).collect());
    let mut groups: Vec<(Vec<Expr>, Vec<Placed>)> = Vec::new();
    for (member, Summary { conjuncts, .. }) in members.into_iter().zip(named) {
        let is_same = |known: &Vec<Expr>| {
            known.len() == conjuncts.len() && conjuncts.iter().all(|conjunct| known.contains(conjunct))
        };
        match groups.iter_mut().find(|(known, _)| is_same(known)) {
            Some((_, group)) => group.push(member),
            None => groups.push((conjuncts, vec![member])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Summaries over the same relations, with the first one's names for all columns. The first one reads all of
/// them.
fn in_one_naming(mut members: Vec<Summary>) -> Vec<Summary> {
    if let Some((first, others)) = members.split_first_mut() {
        others.iter_mut().for_each(|other| other.adopt_columns_of(first));
    }
    members
}

/// The conjuncts that all of some summaries in one naming have.
fn common(members: &[Summary]) -> Vec<Expr> {
    let is_common = |conjunct: &&Expr| members.iter().all(|own| own.conjuncts.contains(conjunct));
    members[0].conjuncts.iter().filter(is_common).cloned().collect()
}

/// True if one pass takes less than one for each group of summaries with the same conditions: if what each
/// wants for itself is a condition on one relation, the same for all, so that the disjunction is one, too; if
/// many rows of it pass; and if a pass takes long: if it is a join, since a scan of one table for each takes
/// less than `FILTER`s do (TPC-DS Q9: half; [`disjoint`] has the exception), and if no call is `DISTINCT`,
/// which takes long with a `FILTER`.
fn is_worth_it(groups: &[Vec<Placed>], columns: &Columns) -> bool {
    let members = || groups.iter().flatten().map(|(_, member)| member);
    let is_join = members().all(|member| member.relations.len() > 1);
    if groups.len() < 2
        || !is_join
        || members().flat_map(|member| &member.calls).any(|(_, call)| call.distinct)
    {
        return false;
    }
    let members = in_one_naming(members().cloned().collect());
    let common = common(&members);
    let own: Vec<Vec<Expr>> = members.iter().map(|member| member.own(&common)).collect();
    let read = reads_all(own.iter().flatten());
    let mut relations = members[0].relations.iter().map(|scan| Node::Scan(scan.clone()));
    let Some(relation) = relations.find(|scan| read.is_subset(&columns_of(scan))) else { return false };
    let rows = |own: Vec<Expr>| estimate_rows(&filter(relation.clone(), own), columns);
    own.iter().all(|own| !own.is_empty())
        && own.into_iter().map(rows).sum::<f64>() * PASS_OF >= estimate_rows(&relation, columns)
}

/// What makes the conditions of groups of summaries over one table exclude each other, if one pass takes less
/// than one for each group. Where other rules make two aggregations of a summary's, of which the first one
/// removes duplicates, it stays by itself: with a `FILTER` they do not.
fn disjoint(groups: &[Vec<Placed>], columns: &Columns) -> Option<Disjoint> {
    let members = || groups.iter().flatten().map(|(_, member)| member);
    if groups.len() < 2
        || members().any(|member| member.relations.len() > 1 || split_distinct::is_split(&[], &member.calls))
    {
        return None;
    }
    let members = in_one_naming(members().cloned().collect());
    let common = common(&members);
    // The first of each group: the others have the same conditions.
    let firsts = groups.iter().scan(0, |next, group| Some(std::mem::replace(next, *next + group.len())));
    let own: Vec<Vec<Expr>> = firsts.map(|first| members[first].own(&common)).collect();
    let disjoint = Disjoint::of(&own)?;
    disjoint.is_worth_it(&members[0].relations[0], &common, &own, columns).then_some(disjoint)
}

/// Several summaries as one; `disjoint` tells the rows of one from those of others, if anything does. The
/// first one's relations have all columns.
fn fused(members: Vec<Summary>, disjoint: Option<&Disjoint>) -> Summary {
    let mut conditions = common(&members);
    let mut own: Vec<Vec<Expr>> = members.iter().map(|member| member.own(&conditions)).collect();
    if own.iter().all(|own| !own.is_empty()) {
        conditions.push(Expr::Or(own.iter().cloned().map(Expr::and).collect()));
    }
    if let Some(disjoint) = disjoint {
        conditions.extend(disjoint.hull());
        own.iter_mut().for_each(|own| *own = disjoint.range_of(own));
    }
    let mut members = members.into_iter().zip(own);
    let restricted = |(mut member, own): (Summary, Vec<Expr>)| {
        if !own.is_empty() {
            for (_, call) in &mut member.calls {
                call.filter = Some(Expr::and(own.iter().cloned().chain(call.filter.take())));
            }
        }
        member
    };
    let mut all = members.next().map(restricted).expect("there are several");
    for member in members.map(restricted) {
        all.computed.extend(member.computed);
        all.calls.extend(member.calls);
        all.results.extend(member.results);
    }
    Summary { conjuncts: conditions, ..all }
}
