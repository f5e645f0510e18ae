//! Pushes join filters and thresholds down a plan: how far each may go, and where one that can go no further
//! is tested.
//!
//! A join that drops probe rows without a match makes a filter over its probe side's key columns
//! ([`super::filter`]). The filter is pushed through all nodes that would only drop such rows later. If it
//! reaches the scan of a table, it is tested there. Otherwise (the key is computed, or comes from a file, an
//! aggregate or both sides of another join) an operator tests it where it stops, if an expensive operator is
//! between that place and its own join: another join, an aggregation, a sort. Right before its own join it
//! would gain nothing.
//!
//! The threshold of a sort with a limit ([`crate::threshold`]) goes the same way, as it would only drop rows
//! that the sort drops later. The scan of a file gets it as a hint. It does not go where rows are complete
//! before the sort has seen the first: into build sides, and below operators that need all rows. The limit
//! that a build side sets by an inequality ([`crate::exec::join::limits`]) is known before, and goes there,
//! too.

use super::placed::{PlannedFilter, PlannedTest};
use crate::plan::{self, JoinKind, Node, SetKind};
use crate::settings::{FilterKind, Settings};
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result};

/// A filter that a join or a sort will fill, on its way down.
#[derive(Debug, Clone)]
pub(crate) struct Pushed {
    /// The columns that have the keys, in the order of the join's keys.
    pub columns: Vec<ColumnId>,
    /// What is tested.
    pub test: PlannedTest,
    /// Its number among the tests of the plan.
    pub number: usize,
    /// An expensive operator is between here and the filter's join.
    pub is_early: bool,
}

impl Pushed {
    /// A filter on `columns` where it begins: test `number` of the plan.
    pub(crate) fn new(columns: Vec<ColumnId>, number: usize, test: PlannedTest) -> Pushed {
        Pushed { columns, test, number, is_early: false }
    }

    /// The columns of the filter of a join over these keys of its probe side, if it may have one.
    pub(crate) fn columns_of(
        keys: &[Expr],
        null_equals_null: &[bool],
        settings: &Settings,
    ) -> Option<Vec<ColumnId>> {
        let column = |key: &Expr| numbers_of(key).map(|(id, _)| id);
        let columns = keys.iter().map(column).collect::<Option<Vec<ColumnId>>>()?;
        let is_possible = !columns.is_empty() && !null_equals_null.contains(&true);
        (is_possible && settings.join_filter != FilterKind::Off).then_some(columns)
    }

    /// True if it may be filled before its rows are read. The threshold of a sort is filled while they come,
    /// so it is useless below an operator that needs all of them first.
    pub(crate) fn comes_first(&self) -> bool {
        !matches!(self.test, PlannedTest::Threshold { .. })
    }

    /// Its column and its number, if it is a threshold or a limit.
    pub(crate) fn bound(&self) -> Option<(ColumnId, usize)> {
        (!matches!(self.test, PlannedTest::Keys(_))).then(|| (self.columns[0], self.number))
    }

    /// The same filter one node further down, where `rename` maps its columns, if it may go there. `dear`:
    /// the node does much work per row.
    fn below(&self, dear: bool, rename: impl Fn(ColumnId) -> Option<ColumnId>) -> Option<Pushed> {
        let columns = self.columns.iter().map(|&id| rename(id)).collect::<Option<Vec<ColumnId>>>()?;
        Some(Pushed { columns, is_early: self.is_early || dear, ..*self })
    }

    /// The same filter in the only input of `node`, if it may go there.
    fn in_input(&self, node: &Node) -> Option<Pushed> {
        let is_column = |expr: &Expr| match expr {
            Expr::Column { id, .. } => Some(*id),
            _ => None,
        };
        match node {
            Node::Filter(_) => Some(self.clone()),
            Node::Distinct(distinct) if distinct.is_partial => Some(self.clone()),
            // A new column may rename an old one.
            Node::Project(project) => {
                self.below(false, |id| match project.exprs.iter().find(|(new, _)| *new == id) {
                    None => Some(id),
                    Some((_, expr)) => is_column(expr),
                })
            }
            _ if !self.comes_first() => None,
            Node::Aggregate(aggregate) => self.below(true, |id| {
                let group = aggregate.groups.iter().find(|(group, _)| *group == id);
                group.and_then(|(_, expr)| is_column(expr))
            }),
            Node::Distinct(distinct) => self.below(true, |id| distinct.keys.contains(&id).then_some(id)),
            Node::Window(window) => self.below(true, |id| window.partition_columns().find(|key| *key == id)),
            Node::Sort(sort) if sort.limit.is_none() => self.below(true, Some),
            _ => None,
        }
    }

    /// The same filter in one input of `join`, if it may go there: if it would only drop output rows earlier.
    pub(crate) fn in_side(&self, join: &plan::Join, left: bool) -> Option<Pushed> {
        let is_open = match join.kind {
            JoinKind::Inner => true,
            JoinKind::Full => false,
            JoinKind::Right => !left,
            _ => left,
        };
        let side = if left { join.left.columns() } else { join.right.columns() };
        self.below(true, |id| (is_open && side.contains(&id)).then_some(id))
    }

    /// The same filter in one input of `join`, over columns that equal its own in the other one, if it may go
    /// there: rows that it drops have partners only among those that it drops on the other side. So the keys
    /// of one dimension reach whatever is joined by the same key (predicate transfer; Yang et al., *Predicate
    /// Transfer: Efficient Pre-Filtering on Multi-Join Queries*, CIDR 2024).
    pub(crate) fn across(&self, join: &plan::Join, left: bool) -> Option<Pushed> {
        // Without its partner, a row of an outer or anti join would pass with NULLs, or at all, where the
        // filter is not tested; what is computed above might fail for it.
        let may_cross = join.kind == JoinKind::Inner || join.kind == JoinKind::Semi && !left;
        if !may_cross || !matches!(self.test, PlannedTest::Keys(expected) if expected.keeps_few()) {
            return None;
        }
        let side = if left { join.left.columns() } else { join.right.columns() };
        let equal = |id: ColumnId| {
            if join.kind == JoinKind::Inner && side.contains(&id) {
                return Some(id);
            }
            join.on.iter().filter(|key| !key.null_equals_null).find_map(|key| {
                let (own, other) = if left { (&key.left, &key.right) } else { (&key.right, &key.left) };
                match (own, other) {
                    (Expr::Column { id: own, ty }, Expr::Column { id: other, ty: same })
                        if *other == id && ty == same =>
                    {
                        Some(*own)
                    }
                    _ => None,
                }
            })
        };
        self.below(true, equal)
    }

    /// The same filter in the input of `set` that has these columns. Matching rows pass in all inputs, and
    /// the join drops the set operation's output for others.
    pub(crate) fn in_branch(&self, set: &plan::SetOperation, columns: &[ColumnId]) -> Option<Pushed> {
        let is_dear = set.kind != SetKind::Union || !set.all;
        if is_dear && !self.comes_first() {
            return None;
        }
        self.below(is_dear, |id| set.columns.iter().position(|own| *own == id).map(|place| columns[place]))
    }
}

/// The column that has the values of an expression, and its type: the expression itself, or integers that are
/// cast to a wider type, which are the same numbers to a filter.
pub(crate) fn numbers_of(expr: &Expr) -> Option<(ColumnId, DataType)> {
    match expr {
        Expr::Column { id, ty } => Some((*id, *ty)),
        Expr::Cast { input, ty, .. } if input.ty().is_integer() && ty.is_integer() => {
            let ((low, high), (least, greatest)) = (input.ty().integer_range()?, ty.integer_range()?);
            numbers_of(input).filter(|_| least <= low && high <= greatest)
        }
        _ => None,
    }
}

/// Divides the filters that arrive at `node` from above into those that go into its only input, with their
/// names there, and those that stay. Joins and set operations push them into their inputs themselves; the
/// scan of a table takes all. That of a file takes thresholds, as hints; they stay as well.
pub(crate) fn divide(node: &Node, filters: &[Pushed]) -> (Vec<Pushed>, Vec<Pushed>) {
    let (mut below, mut staying) = (Vec::new(), Vec::new());
    for filter in filters {
        let goes_on = match node {
            Node::Scan(scan) if scan.relation.table().is_none() => {
                below.extend(filter.bound().map(|_| filter.clone()));
                None
            }
            Node::Scan(_) => Some(filter.clone()),
            Node::Join(join) => {
                let may_go = [true, false].iter().any(|&left| filter.in_side(join, left).is_some());
                may_go.then(|| filter.clone())
            }
            Node::SetOperation(_) => Some(filter.clone()),
            _ => filter.in_input(node),
        };
        match goes_on {
            Some(filter) => below.push(filter),
            None => staying.push(filter.clone()),
        }
    }
    (below, staying)
}

/// Places filters where they are tested, over the columns `metas`.
///
/// # Errors
/// Internal, if a column is missing.
pub(crate) fn place<'f>(
    filters: impl IntoIterator<Item = &'f Pushed>,
    metas: &[ColumnMeta],
) -> Result<Vec<PlannedFilter>> {
    let place = |filter: &Pushed| {
        let position = |id: &ColumnId| metas.iter().position(|meta| meta.id == *id);
        let columns = filter.columns.iter().map(position).collect::<Option<Vec<usize>>>();
        let columns =
            columns.ok_or_else(|| Error::internal("a join filter is over columns that are not there"))?;
        let metas = columns.iter().map(|&column| metas[column].clone()).collect();
        Ok(PlannedFilter { number: filter.number, test: filter.test, columns, metas })
    };
    filters.into_iter().map(place).collect()
}

/// Those of the filters that stay above `columns` for which an operator that tests them pays off.
///
/// # Errors
/// Internal, if a column is missing.
pub(crate) fn early(
    filters: &[Pushed],
    columns: &[ColumnMeta],
    settings: &Settings,
) -> Result<Vec<PlannedFilter>> {
    // A forced filter is tested even if it does not pay off.
    let is_forced = settings.join_filter == FilterKind::Bloom;
    place(filters.iter().filter(|filter| filter.is_early || is_forced), columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::key_filter::Expected;
    use entasis_vector::DataType;

    fn column(id: u32) -> Expr {
        Expr::column(ColumnId(id), DataType::Int64)
    }

    /// Columns 0 and 1 joined with columns 2 and 3, 0 = 2 being the key.
    fn join(kind: JoinKind, null_equals_null: bool) -> plan::Join {
        let side = |ids: [u32; 2]| {
            let columns = ids.map(ColumnId).to_vec();
            Box::new(Node::Values(plan::Values { columns, rows: Vec::new() }))
        };
        let on = vec![plan::JoinKey { left: column(0), right: column(2), null_equals_null }];
        plan::Join { left: side([0, 1]), right: side([2, 3]), kind, on, residual: Vec::new() }
    }

    fn filter(columns: &[u32], matching: f64) -> Pushed {
        let test = PlannedTest::Keys(Expected { matching, ..Expected::default() });
        Pushed::new(columns.iter().map(|&id| ColumnId(id)).collect(), 0, test)
    }

    #[test]
    fn filters_go_to_the_other_side_by_equal_keys() {
        let across = |filter: Pushed, join: plan::Join, left: bool| {
            filter.across(&join, left).map(|own| own.columns.iter().map(|id| id.0).collect::<Vec<u32>>())
        };
        let inner = || join(JoinKind::Inner, false);
        assert_eq!(across(filter(&[0], 0.1), inner(), false), Some(vec![2]));
        assert_eq!(across(filter(&[2], 0.1), inner(), true), Some(vec![0]));
        assert_eq!(across(filter(&[0, 3], 0.1), inner(), false), Some(vec![2, 3]), "a part is there already");
        assert_eq!(across(filter(&[1], 0.1), inner(), false), None, "no key");
        assert_eq!(across(filter(&[0], 0.6), inner(), false), None, "most rows pass");
        assert_eq!(across(filter(&[0], 0.1), join(JoinKind::Inner, true), false), None, "NULL is a key");
        assert_eq!(across(filter(&[0], 0.1), join(JoinKind::Semi, false), false), Some(vec![2]));
        for kind in [JoinKind::Left, JoinKind::Right, JoinKind::Full, JoinKind::Anti, JoinKind::NullAwareAnti]
        {
            for (id, left) in [(0, false), (2, true)] {
                assert_eq!(across(filter(&[id], 0.1), join(kind, false), left), None, "{kind:?}");
            }
        }
    }
}
