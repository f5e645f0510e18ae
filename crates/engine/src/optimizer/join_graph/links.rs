//! How sets of relations may be joined, and the subplans that they become.

use super::graph::{Attached, Graph, Link, Member, Predicate, Set, is_inequality, members};
use crate::optimizer::properties::is_at_most_one_row;
use crate::plan::tree::{as_join_key, columns_of, filter, substitute};
use crate::plan::{Join, JoinKey, JoinKind, Node, Project};
use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;
use std::collections::HashMap;

impl Graph {
    /// How the relations in `set` join what is on their left.
    pub(in crate::optimizer) fn kind(&self, set: Set) -> JoinKind {
        let first = &self.relations[set.trailing_zeros() as usize];
        first
            .attached
            .as_ref()
            .filter(|_| self.is_attached(set))
            .map_or(JoinKind::Inner, |attached| attached.kind)
    }

    /// True for one attached relation alone, which cannot stand for itself.
    pub(in crate::optimizer) fn is_attached(&self, set: Set) -> bool {
        set.count_ones() == 1 && self.relations[set.trailing_zeros() as usize].attached.is_some()
    }

    /// The relations that must be together before an attached one joins them; none for others.
    pub(in crate::optimizer) fn needs(&self, relation: usize) -> Set {
        self.relations[relation].attached.as_ref().map_or(0, |attached| attached.needs)
    }

    /// How `left` and `right` may be joined; `None` if they may not: an attached relation joins alone, on the
    /// right, when what it needs is on the left.
    pub(in crate::optimizer) fn link(&self, left: Set, right: Set) -> Option<Link> {
        if self.is_attached(left) {
            return None;
        }
        if self.is_attached(right) {
            let attached = self.relations[right.trailing_zeros() as usize].attached.as_ref()?;
            return (attached.needs & !left == 0).then_some(
                match (attached.on.is_empty(), attached.residual.is_empty()) {
                    (false, _) => Link::Equal,
                    (true, false) if attached.residual.iter().any(is_inequality) => Link::Bound,
                    (true, false) => Link::Condition,
                    (true, true) => Link::Cross,
                },
            );
        }
        let within = |set: Set| move |member: &Member| set >> member.relation & 1 == 1;
        if self
            .classes
            .iter()
            .any(|c| c.members.iter().any(within(left)) && c.members.iter().any(within(right)))
        {
            return Some(Link::Equal);
        }
        let mut best = Link::Cross;
        for predicate in self.between(left, right) {
            if predicate.is_equality {
                return Some(Link::Equal);
            }
            let is_between = |(a, b): (Set, Set)| {
                (a & !left == 0 && b & !right == 0) || (a & !right == 0 && b & !left == 0)
            };
            match predicate.bound.is_some_and(is_between) {
                true => best = Link::Bound,
                false if best == Link::Cross => best = Link::Condition,
                false => {}
            }
        }
        Some(best)
    }

    /// The predicates that can be applied when `left` meets `right`, and not before.
    fn between(&self, left: Set, right: Set) -> impl Iterator<Item = &Predicate> {
        let alone = self.is_attached(right);
        self.predicates.iter().filter(move |p| {
            p.reads & !(left | right) == 0 && p.reads & !left != 0 && (alone || p.reads & !right != 0)
        })
    }

    /// The relations next to each one: those that share a class or a predicate, or that it needs.
    pub(in crate::optimizer) fn neighbours(&self) -> Vec<Set> {
        let mut next = vec![0; self.relations.len()];
        let mut tie = |set: Set| members(set).for_each(|i| next[i] |= set & !(1 << i));
        for class in &self.classes {
            tie(class.members.iter().fold(0, |set, member| set | 1 << member.relation));
        }
        self.predicates.iter().for_each(|predicate| tie(predicate.reads));
        for (index, relation) in self.relations.iter().enumerate() {
            if let Some(attached) = &relation.attached {
                tie(attached.needs | 1 << index);
            }
        }
        next
    }

    /// True if the set is one relation of at most one row.
    pub(in crate::optimizer) fn is_single_row(&self, set: Set) -> bool {
        set.count_ones() == 1 && is_at_most_one_row(self.node(set.trailing_zeros() as usize))
    }

    /// Takes a relation's subplan out, to build with it.
    pub(in crate::optimizer) fn take(&mut self, relation: usize) -> Node {
        self.relations[relation].node.take().expect("each relation is used once")
    }

    /// The join of two subplans that hold the relations `sets`.
    pub(in crate::optimizer) fn join(&mut self, left: Node, right: Node, sets: (Set, Set)) -> Node {
        let mut later: Vec<Expr> = self.between(sets.0, sets.1).map(|p| p.expr.clone()).collect();
        if self.is_attached(sets.1) {
            let attached =
                self.relations[sets.1.trailing_zeros() as usize].attached.take().expect("it is attached");
            let Attached { kind, on, residual, .. } = attached;
            let (left, right) = (Box::new(left), Box::new(right));
            return filter(Node::Join(Join { left, right, kind, on, residual }), later);
        }
        let mut on = Vec::new();
        for class in &self.classes {
            // The member with the fewest values is the likeliest key.
            let side = |set: Set| {
                let inside = class.members.iter().filter(move |m| set >> m.relation & 1 == 1);
                inside.reduce(|a, b| if b.estimate.domain < a.estimate.domain { b } else { a })
            };
            if let (Some(l), Some(r)) = (side(sets.0), side(sets.1)) {
                on.push(JoinKey { left: l.expr.clone(), right: r.expr.clone(), null_equals_null: false });
            }
        }
        let (own_left, own_right) = (columns_of(&left), columns_of(&right));
        let mut residual = Vec::new();
        for predicate in later.drain(..) {
            match as_join_key(predicate, &own_left, &own_right) {
                Ok(key) => on.push(key),
                Err(predicate) => residual.push(predicate),
            }
        }
        Node::Join(Join { left: Box::new(left), right: Box::new(right), kind: JoinKind::Inner, on, residual })
    }

    /// What stands above the region: `input` with the computed columns and the predicates that had to wait.
    pub(in crate::optimizer) fn finish(self, input: Node) -> Node {
        let known: HashMap<ColumnId, Expr> = self.computed.iter().cloned().collect();
        let above = self.above.into_iter().map(|e| substitute(e, &known)).collect();
        let filtered = filter(input, above);
        if self.computed.is_empty() {
            return filtered;
        }
        Node::Project(Project { input: Box::new(filtered), exprs: self.computed })
    }
}
