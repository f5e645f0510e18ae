//! Bounds of a join: inequalities by which matching build rows are searched in sorted order.
//!
//! A condition `left < right` (`<`, `<=`, `>`, `>=`, each operand over one side) bounds an expression of the
//! build side by one of the probe side. In the order of that expression, the rows that match are a stretch;
//! two bounds of one expression (`BETWEEN`) make a short one. Two bounds of two expressions are the problem
//! of Khayyat et al., *Lightning Fast and Space Efficient Inequality Joins*, VLDB 2015. How rows are looked
//! up is described in [`crate::exec::join::table`]'s `ordered`.
//!
//! 1. Of a join's conditions up to two are taken: two bounds of one expression if there are such, else the
//!    first two. All others stay conditions of pairs.
//! 2. If the join has no key, bounds replace a nested loop, unless one side has so few rows that a search
//!    does not pay. If it has keys, bounds are used as well if a key has so many rows that a search among
//!    them costs less than looking at all.
//!
//! An as-of join has one bound, and takes the nearest of the rows within.
//!
//! The executor asks when it plans a join, and `EXPLAIN` when it prints one; both get the same answer, which
//! depends on estimates only. Not here: null-aware joins, which must know of pairs whose comparison is NULL.

use crate::estimate::{estimate, estimate_join};
use crate::plan::tree::reads_all;
use crate::plan::{Columns, Join, JoinKind};
use entasis_vector::expr::{CompareOp, Expr};

/// What a search in an order costs beside a step for each halving, in steps of a nested loop.
const SEARCH: f64 = 8.0;
/// How many times the steps of a search the pairs of equal keys must be, so that bounds come beside keys.
const DEARER: f64 = 2.0;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bounds {
    /// One or two.
    pub conditions: Vec<Inequality>,
    /// The join's other conditions.
    pub rest: Vec<Expr>,
    /// Only the nearest row is wanted: an as-of join, which is never joined in another way.
    pub nearest: bool,
}

/// `left op right`, each over its side of the join.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inequality {
    pub left: Expr,
    pub op: CompareOp,
    pub right: Expr,
}

impl Inequality {
    /// `condition`, if it is an inequality between the sides of `join`.
    fn of(condition: &Expr, join: &Join) -> Option<Inequality> {
        let Expr::Compare { op, left, right } = condition else { return None };
        if !matches!(op, CompareOp::Lt | CompareOp::LtEq | CompareOp::Gt | CompareOp::GtEq) {
            return None;
        }
        let [in_left, in_right] = [&join.left, &join.right].map(|side| side.columns().into_iter().collect());
        let reads_only = |expr: &Expr, side| {
            let read = reads_all([expr]);
            // Where nothing else decides, a constant is an operand like others.
            (!read.is_empty() || is_nearest(join)) && read.is_subset(side) && !expr.is_volatile()
        };
        if reads_only(left, &in_left) && reads_only(right, &in_right) {
            return Some(Inequality { left: (**left).clone(), op: *op, right: (**right).clone() });
        }
        (reads_only(right, &in_left) && reads_only(left, &in_right)).then(|| Inequality {
            left: (**right).clone(),
            op: op.mirrored(),
            right: (**left).clone(),
        })
    }

    /// As a condition of pairs.
    pub(crate) fn to_expr(&self) -> Expr {
        Expr::compare(self.op, self.left.clone(), self.right.clone())
    }

    /// True if it holds for small values of the left expression.
    fn is_upper(&self) -> bool {
        matches!(self.op, CompareOp::Lt | CompareOp::LtEq)
    }
}

impl Bounds {
    /// The bounds by which `join` is to find its rows; `None` if it is not to.
    pub(crate) fn of(join: &Join, columns: &Columns) -> Option<Bounds> {
        let bounds = Bounds::possible(join)?;
        (bounds.nearest || bounds.pays(join, columns)).then_some(bounds)
    }

    /// Those by which it could.
    pub(crate) fn possible(join: &Join) -> Option<Bounds> {
        if matches!(join.kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. }) {
            return None;
        }
        let mut conditions = Vec::new();
        join.residual.iter().for_each(|condition| condition.clone().split_conjunction(&mut conditions));
        let found: Vec<(usize, Inequality)> =
            conditions.iter().enumerate().filter_map(|(i, e)| Some((i, Inequality::of(e, join)?))).collect();
        let (first, second) = chosen(&found)?;
        let taken = [Some(first), second];
        let rest = conditions.into_iter().enumerate().filter(|(i, _)| !taken.contains(&Some(*i)));
        let rest = rest.map(|(_, condition)| condition).collect();
        let conditions =
            found.into_iter().filter(|(i, _)| taken.contains(&Some(*i))).map(|(_, own)| own).collect();
        Some(Bounds { conditions, rest, nearest: is_nearest(join) })
    }

    /// True if they are worth it by estimate.
    fn pays(&self, join: &Join, columns: &Columns) -> bool {
        let (left, right) = (estimate(&join.left, columns), estimate(&join.right, columns));
        let fewer = left.rows.min(right.rows);
        let search = (left.rows + right.rows) * (SEARCH + (fewer + 1.0).log2());
        match join.on.is_empty() {
            true => left.rows * right.rows > search,
            false => estimate_join(JoinKind::Inner, &join.on, &[], left, right).rows > DEARER * search,
        }
    }
}

fn is_nearest(join: &Join) -> bool {
    matches!(join.kind, JoinKind::AsOf { .. })
}

/// Which of these are taken.
fn chosen(found: &[(usize, Inequality)]) -> Option<(usize, Option<usize>)> {
    for (place, (i, one)) in found.iter().enumerate() {
        let is_band = |other: &Inequality| {
            (one.left == other.left || one.right == other.right) && one.is_upper() != other.is_upper()
        };
        if let Some((j, _)) = found[place + 1..].iter().find(|(_, other)| is_band(other)) {
            return Some((*i, Some(*j)));
        }
    }
    let mut all = found.iter().map(|(i, _)| *i);
    Some((all.next()?, all.next()))
}

/// One side's part in the search: what its rows are ordered by, and what bounds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Searched {
    /// Over the side that is kept: what its rows are in the order of, and perhaps another expression.
    pub kept: Vec<Expr>,
    /// Over the other side: the bounds.
    pub bounds: Vec<Expr>,
    /// Which is which.
    pub lookup: Lookup,
}

/// How rows of the kept side are found, given the values of their expressions in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lookup {
    /// The bound below the first expression, and whether what is equal to it is found.
    pub low: Option<(usize, bool)>,
    /// The same above it.
    pub high: Option<(usize, bool)>,
    /// `expression operator bound` for the second expression.
    pub second: Option<(CompareOp, usize)>,
    /// Of the rows found only the one next to the bound is wanted: the last one below it, the first one
    /// above.
    pub nearest: bool,
}

impl Lookup {
    /// Expressions of the kept side.
    pub(crate) fn kept(&self) -> usize {
        1 + usize::from(self.second.is_some())
    }
}

impl Bounds {
    /// The search in the left or in the right side.
    pub(crate) fn searched(&self, keeps_left: bool) -> Searched {
        let lookup = Lookup { nearest: self.nearest, ..Lookup::default() };
        let mut searched = Searched { kept: Vec::new(), bounds: Vec::new(), lookup };
        for (i, Inequality { left, op, right }) in self.conditions.iter().enumerate() {
            let (kept, op, bound) =
                if keeps_left { (left, *op, right) } else { (right, op.mirrored(), left) };
            searched.bounds.push(bound.clone());
            let lookup = &mut searched.lookup;
            let inclusive = matches!(op, CompareOp::LtEq | CompareOp::GtEq);
            let is_low = matches!(op, CompareOp::Gt | CompareOp::GtEq);
            let own = if is_low { &mut lookup.low } else { &mut lookup.high };
            if searched.kept.first().is_none_or(|first| first == kept) && own.is_none() {
                *own = Some((i, inclusive));
                searched.kept.truncate(0);
                searched.kept.push(kept.clone());
            } else {
                lookup.second = Some((op, i));
                searched.kept.push(kept.clone());
            }
        }
        searched
    }
}
