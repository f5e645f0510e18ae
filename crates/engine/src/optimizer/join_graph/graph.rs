//! The graph itself: relations, and what holds them together.

use crate::estimate::join_cost::Width;
use crate::estimate::overlap::overlap;
use crate::estimate::{ColumnEstimate, Estimate};
use crate::plan::tree::ColumnSet;
use crate::plan::{JoinKey, JoinKind, Node};
use entasis_vector::ColumnId;
use entasis_vector::expr::{CompareOp, Expr};
use std::collections::HashMap;

/// A set of relations, one bit each.
pub(in crate::optimizer) type Set = u64;

/// Most relations of a graph.
pub(in crate::optimizer) const RELATIONS_MAX: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::optimizer) struct Graph {
    pub(in crate::optimizer) relations: Vec<Leaf>,
    pub(super) classes: Vec<Class>,
    pub(super) predicates: Vec<Predicate>,
    /// By how much joins of some relations have more rows than statistics expect.
    pub(super) known: Vec<(Set, f64)>,
    /// Which relation a column comes from.
    pub(super) source: HashMap<ColumnId, usize>,
    /// Columns to compute above the region, free of one another.
    pub(super) computed: Vec<(ColumnId, Expr)>,
    /// Predicates to apply above the region: those that may fail, and constant ones.
    pub(super) above: Vec<Expr>,
}

/// A leaf of the region.
#[derive(Debug)]
pub(in crate::optimizer) struct Leaf {
    pub(super) node: Option<Node>,
    pub(super) estimate: Estimate,
    pub(super) attached: Option<Attached>,
    pub(super) wanted: Vec<ReadColumn>,
}

/// How a relation hangs on others.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) kind: JoinKind,
    pub(super) on: Vec<JoinKey>,
    pub(super) residual: Vec<Expr>,
    /// The relations that must be together before.
    pub(super) needs: Set,
    /// Rows after attaching for one before.
    pub(super) factor: f64,
}

/// Expressions that are equal in every row of the result.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) members: Vec<Member>,
}

impl Class {
    /// True if it has members in two relations of `set`.
    pub(super) fn joins(&self, set: Set) -> bool {
        self.members.iter().fold(0, |found: Set, m| found | (set & 1 << m.relation)).count_ones() > 1
    }

    /// The range that its members in `set` share.
    pub(super) fn shared(&self, set: Set) -> Option<(f64, f64)> {
        overlap(self.members.iter().filter(|m| set >> m.relation & 1 == 1).map(|m| m.estimate))
    }
}

/// An expression of a class, of one relation.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) relation: usize,
    pub(super) expr: Expr,
    pub(super) estimate: ColumnEstimate,
}

impl Member {
    /// The column that it is, if it is nothing else.
    pub(super) fn column(&self) -> Option<ColumnId> {
        match self.expr {
            Expr::Column { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// A predicate over two relations or more.
#[derive(Debug)]
pub(super) struct Predicate {
    pub(super) expr: Expr,
    pub(super) reads: Set,
    pub(super) share: f64,
    pub(super) is_equality: bool,
    /// What the two sides of an inequality read.
    pub(super) bound: Option<(Set, Set)>,
}

/// How two sets of relations may be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::optimizer) enum Link {
    /// By equal keys.
    Equal,
    /// By an inequality, in an order.
    Bound,
    /// By some other condition.
    Condition,
    /// By none: a cross product.
    Cross,
}

/// A column of a relation that joins or somebody above the region read.
#[derive(Debug)]
pub(super) struct ReadColumn {
    pub(super) width: Width,
    /// The relations that must be together before no join reads it any more; all, if somebody above does.
    pub(super) readers: Set,
}

impl Graph {
    /// The relations whose columns are in a set.
    pub(super) fn sources(&self, set: &ColumnSet) -> Set {
        set.iter().fold(0, |found, id| found | 1 << self.source[&id])
    }

    /// A relation's subplan.
    pub(super) fn node(&self, relation: usize) -> &Node {
        self.relations[relation].node.as_ref().expect("relations are there until the plan is built")
    }
}

/// The relations in a set, ascending.
pub(in crate::optimizer) fn members(set: Set) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let next = (rest != 0).then(|| rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
        next
    })
}

/// True of `<`, `<=`, `>` and `>=`.
pub(super) fn is_inequality(condition: &Expr) -> bool {
    use CompareOp::{Gt, GtEq, Lt, LtEq};
    matches!(condition, Expr::Compare { op: Lt | LtEq | Gt | GtEq, .. })
}
