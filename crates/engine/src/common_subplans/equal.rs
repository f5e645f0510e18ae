//! Equal subplans: an aggregation that stands in a plan twice is computed once.
//!
//! TPC-DS Q65 compares the revenue of each item with the mean of the same revenues: the aggregation is
//! written twice. Binding gives its columns other ids each time, so two subplans are *equal* if a renaming of
//! columns makes them so ([`Renaming`]).
//!
//! 1. Aggregations and `DISTINCT`s are compared with each other, the outermost first.
//! 2. Equal ones become scans of one [`Shared`] relation.
//!
//! It runs before the optimizer, whose rules would push other filters into each of them; the rule
//! `filter_common_subplans` then tells the relation what its readers want. It runs again behind the
//! optimizer, which may have made aggregations equal by putting parts of them below other joins (TPC-DS Q70).
//! Volatile subplans are never equal. Not done: aggregations of which one has fewer rows than the other; what
//! they share may be a join ([`super::joins`]).

use super::{Shared, Stage, is_volatile};
use crate::plan::tree::{substitute, take};
use crate::plan::{Aggregate, AggregateCall, Columns, JoinKind, Node, Output, Plan, Scan, SortKey};
use crate::relation::{Relation, is_same_relation};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Field, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// The plan with equal aggregations computed once.
pub(super) fn share_equal(mut plan: Plan, stage: Stage) -> Plan {
    let mut nodes = Vec::new();
    number(&plan.root, &mut nodes);
    let candidates: Vec<usize> = (0..nodes.len()).filter(|&at| is_worth_it(nodes[at].0)).collect();
    if candidates.len() < 2 {
        return plan;
    }
    let mut replaced: HashMap<usize, Replacement> = HashMap::new();
    let mut inside = vec![false; nodes.len()];
    for (index, &first) in candidates.iter().enumerate() {
        let mut found = Vec::new();
        for &other in candidates[index + 1..].iter().filter(|&&other| !inside[first] && !inside[other]) {
            let mut renaming = Renaming::default();
            if nodes[other].1 == nodes[first].1 && renaming.makes_equal(nodes[first].0, nodes[other].0) {
                found.push((other, renaming));
            }
        }
        if found.is_empty() || is_volatile(&mut nodes[first].0.clone()) {
            continue;
        }
        let (relation, columns) = shared(nodes[first].0, &plan.columns, stage);
        for (other, renaming) in found {
            let columns = columns.iter().map(|(id, index)| (renaming.of(*id), *index)).collect();
            replaced.insert(other, Replacement { relation: relation.clone(), columns });
            inside[other..other + nodes[other].1].fill(true);
        }
        replaced.insert(first, Replacement { relation, columns });
        inside[first..first + nodes[first].1].fill(true);
    }
    if !replaced.is_empty() {
        let sizes: Vec<usize> = nodes.iter().map(|(_, size)| *size).collect();
        replace(&mut plan.root, &mut 0, &sizes, &mut replaced);
    }
    plan
}

/// A scan that takes the place of a subplan.
struct Replacement {
    relation: Arc<dyn Relation>,
    columns: Vec<(ColumnId, usize)>,
}

/// Adds the nodes of a tree, parents before their children, with the number of nodes of each subtree.
fn number<'a>(node: &'a Node, nodes: &mut Vec<(&'a Node, usize)>) {
    let at = nodes.len();
    nodes.push((node, 0));
    node.children().into_iter().for_each(|child| number(child, nodes));
    nodes[at].1 = nodes.len() - at;
}

/// True for what combines many rows of a table or file into fewer.
fn is_worth_it(node: &Node) -> bool {
    fn scans(node: &Node) -> bool {
        matches!(node, Node::Scan(_)) || node.children().into_iter().any(scans)
    }
    let combines = match node {
        Node::Aggregate(_) => true,
        Node::Distinct(distinct) => !distinct.is_partial,
        _ => false,
    };
    combines && scans(node)
}

/// The rows of a subplan as a relation, and its columns.
fn shared(node: &Node, columns: &Columns, stage: Stage) -> (Arc<dyn Relation>, Vec<(ColumnId, usize)>) {
    let ids = node.columns();
    let output = ids.iter().map(|id| Output { name: columns.get(*id).name.clone(), column: *id }).collect();
    let field = |id: &ColumnId| Field {
        nullable: columns.get(*id).nullable,
        ..Field::new(columns.get(*id).name.as_str(), columns.ty(*id))
    };
    let schema: Schema = ids.iter().map(field).collect();
    let plan = Plan { root: node.clone(), columns: columns.clone(), output };
    let relation = Arc::new(Shared::at("subquery".to_owned(), schema, plan, stage));
    (relation, ids.into_iter().enumerate().map(|(index, id)| (id, index)).collect())
}

/// Puts scans in the place of subplans. `next` is the number of the node.
fn replace(node: &mut Node, next: &mut usize, sizes: &[usize], replaced: &mut HashMap<usize, Replacement>) {
    if let Some(Replacement { relation, columns }) = replaced.remove(next) {
        *next += sizes[*next];
        drop(take(node));
        *node = Node::Scan(Scan::all(relation, columns));
        return;
    }
    *next += 1;
    node.children_mut().into_iter().for_each(|child| replace(child, next, sizes, replaced));
}

/// The columns of one subplan, by those of another.
#[derive(Debug, Default)]
struct Renaming(HashMap<ColumnId, Expr>);

impl Renaming {
    /// The column of the second subplan that stands for one of the first.
    fn of(&self, id: ColumnId) -> ColumnId {
        match self.0.get(&id) {
            Some(Expr::Column { id, .. }) => *id,
            _ => id,
        }
    }

    fn add(&mut self, a: ColumnId, b: ColumnId, ty: entasis_vector::DataType) {
        self.0.insert(a, Expr::column(b, ty));
    }

    fn is_equal(&self, a: &Expr, b: &Expr) -> bool {
        substitute(a.clone(), &self.0) == *b
    }

    fn are_equal<'a>(
        &self,
        a: impl IntoIterator<Item = &'a Expr>,
        b: impl IntoIterator<Item = &'a Expr>,
    ) -> bool {
        let (mut a, mut b) = (a.into_iter(), b.into_iter());
        loop {
            match (a.next(), b.next()) {
                (None, None) => return true,
                (Some(a), Some(b)) if self.is_equal(a, b) => {}
                _ => return false,
            }
        }
    }

    fn have_equal_order(&self, a: &[SortKey], b: &[SortKey]) -> bool {
        let is_equal = |(a, b): (&SortKey, &SortKey)| {
            (a.descending, a.nulls_first) == (b.descending, b.nulls_first) && self.is_equal(&a.expr, &b.expr)
        };
        a.len() == b.len() && a.iter().zip(b).all(is_equal)
    }

    fn are_equal_calls(&self, a: &AggregateCall, b: &AggregateCall) -> bool {
        a.distinct == b.distinct
            && a.ty == b.ty
            && format!("{:?}", a.function) == format!("{:?}", b.function)
            && self.are_equal(&a.args, &b.args)
            && self.are_equal(&a.filter, &b.filter)
            && self.have_equal_order(&a.order_by, &b.order_by)
    }

    /// True if the second subplan is the first one with other columns, which are added to the renaming.
    fn makes_equal(&mut self, a: &Node, b: &Node) -> bool {
        let (below_a, below_b) = (a.children(), b.children());
        if std::mem::discriminant(a) != std::mem::discriminant(b) || below_a.len() != below_b.len() {
            return false;
        }
        if !below_a.into_iter().zip(below_b).all(|(a, b)| self.makes_equal(a, b)) {
            return false;
        }
        match (a, b) {
            (Node::Scan(a), Node::Scan(b)) => {
                let are_columns = a.columns.len() == b.columns.len()
                    && a.columns.iter().zip(&b.columns).all(|((_, a), (_, b))| a == b);
                if !are_columns || !is_same_relation(&a.relation, &b.relation) {
                    return false;
                }
                for ((own, index), (other, _)) in a.columns.iter().zip(&b.columns) {
                    match a.relation.schema().get(*index) {
                        Some(field) => self.add(*own, *other, field.ty),
                        // A row id and the like.
                        None => return false,
                    }
                }
                self.are_equal(&a.filters, &b.filters)
            }
            (Node::Filter(a), Node::Filter(b)) => self.are_equal(&a.predicates, &b.predicates),
            (Node::Project(a), Node::Project(b)) => self.adds_equal(&a.exprs, &b.exprs),
            (Node::Join(a), Node::Join(b)) => {
                let is_kind = a.kind == b.kind && !matches!(a.kind, JoinKind::Mark { .. });
                is_kind
                    && a.on.len() == b.on.len()
                    && a.on.iter().zip(&b.on).all(|(a, b)| {
                        a.null_equals_null == b.null_equals_null
                            && self.is_equal(&a.left, &b.left)
                            && self.is_equal(&a.right, &b.right)
                    })
                    && self.are_equal(&a.residual, &b.residual)
            }
            (Node::Aggregate(a), Node::Aggregate(b)) => self.are_equal_aggregates(a, b),
            (Node::Distinct(a), Node::Distinct(b)) => {
                a.is_partial == b.is_partial
                    && a.keys.len() == b.keys.len()
                    && a.keys.iter().zip(&b.keys).all(|(a, b)| self.of(*a) == *b)
            }
            (Node::Sort(a), Node::Sort(b)) => a.limit == b.limit && self.have_equal_order(&a.keys, &b.keys),
            (Node::Limit(a), Node::Limit(b)) => (a.offset, a.count) == (b.offset, b.count),
            // Lists of rows, windows and set operations are not compared.
            _ => false,
        }
    }

    /// Adds new columns, if they are computed in the same way.
    fn adds_equal(&mut self, a: &[(ColumnId, Expr)], b: &[(ColumnId, Expr)]) -> bool {
        if !self.are_equal(a.iter().map(|(_, expr)| expr), b.iter().map(|(_, expr)| expr)) {
            return false;
        }
        a.iter().zip(b).for_each(|((own, expr), (other, _))| self.add(*own, *other, expr.ty()));
        true
    }

    fn are_equal_aggregates(&mut self, a: &Aggregate, b: &Aggregate) -> bool {
        let calls = || a.aggregates.iter().zip(&b.aggregates);
        if a.aggregates.len() != b.aggregates.len()
            || !calls().all(|((_, a), (_, b))| self.are_equal_calls(a, b))
            || !self.adds_equal(&a.groups, &b.groups)
        {
            return false;
        }
        calls().for_each(|((own, call), (other, _))| self.add(*own, *other, call.ty));
        true
    }
}
