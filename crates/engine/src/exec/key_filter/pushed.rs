//! Pushes join filters down a plan: how far each may go, and where one that can go no further is tested.
//!
//! A join that drops probe rows without a match makes a filter over its probe side's key columns
//! ([`super::filter`]). The filter is pushed through all nodes that would only drop such rows later. If it
//! reaches the scan of a table, it is tested there. Otherwise (the key is computed, or comes from a file, an
//! aggregate or both sides of another join) an operator tests it where it stops, if an expensive operator is
//! between that place and its own join: another join, an aggregation, a sort. Right before its own join it
//! would gain nothing.

use super::before_join::{FiltersBeforeJoin, PlacedFilter};
use super::filter::{Expected, FilterSlot};
use crate::context::QueryContext;
use crate::exec::operator::OperatorFactory;
use crate::exec::profile::Recorder;
use crate::plan::{self, Columns, JoinKind, Node, SetKind};
use crate::settings::FilterKind;
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::{ColumnId, Error, Result};
use std::sync::Arc;

/// A filter that a join will fill, on its way down.
#[derive(Clone)]
pub(crate) struct Pushed {
    /// The columns that have the keys, in the order of the join's keys.
    pub columns: Vec<ColumnId>,
    /// Where the filter will be.
    pub slot: Arc<FilterSlot>,
    /// An expensive operator is between here and the filter's join.
    pub is_early: bool,
}

impl Pushed {
    /// The filter of a join over these keys of its probe side, if it may have one.
    pub(crate) fn of(
        keys: &[Expr],
        null_equals_null: &[bool],
        context: &QueryContext,
        expected: impl FnOnce() -> Expected,
    ) -> Option<Pushed> {
        let column = |key: &Expr| match key {
            Expr::Column { id, .. } => Some(*id),
            _ => None,
        };
        let columns = keys.iter().map(column).collect::<Option<Vec<ColumnId>>>()?;
        let is_possible = !columns.is_empty() && !null_equals_null.contains(&true);
        (is_possible && context.settings.join_filter != FilterKind::Off).then(|| Pushed {
            columns,
            slot: Arc::new(FilterSlot::new(expected())),
            is_early: false,
        })
    }

    /// The same filter one node further down, where `rename` maps its columns, if it may go there. `dear`:
    /// the node does much work per row.
    fn below(&self, dear: bool, rename: impl Fn(ColumnId) -> Option<ColumnId>) -> Option<Pushed> {
        let columns = self.columns.iter().map(|&id| rename(id)).collect::<Option<Vec<ColumnId>>>()?;
        Some(Pushed { columns, slot: self.slot.clone(), is_early: self.is_early || dear })
    }

    /// The same filter in the only input of `node`, if it may go there.
    fn in_input(&self, node: &Node) -> Option<Pushed> {
        let is_column = |expr: &Expr| match expr {
            Expr::Column { id, .. } => Some(*id),
            _ => None,
        };
        match node {
            Node::Filter(_) => Some(self.clone()),
            // A new column may rename an old one.
            Node::Project(project) => {
                self.below(false, |id| match project.exprs.iter().find(|(new, _)| *new == id) {
                    None => Some(id),
                    Some((_, expr)) => is_column(expr),
                })
            }
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

    /// The same filter in the input of `set` that has these columns. Matching rows pass in all inputs, and
    /// the join drops the set operation's output for others.
    pub(crate) fn in_branch(&self, set: &plan::SetOperation, columns: &[ColumnId]) -> Option<Pushed> {
        let is_dear = set.kind != SetKind::Union || !set.all;
        self.below(is_dear, |id| set.columns.iter().position(|own| *own == id).map(|place| columns[place]))
    }
}

/// Divides the filters that arrive at `node` from above into those that go into its only input, with their
/// names there, and those that stay. Joins and set operations push them into their inputs themselves; the
/// scan of a table takes all.
pub(crate) fn divide(node: &Node, filters: &[Pushed]) -> (Vec<Pushed>, Vec<Pushed>) {
    let (mut below, mut staying) = (Vec::new(), Vec::new());
    for filter in filters {
        let goes_on = match node {
            Node::Scan(scan) => scan.relation.table().is_some().then(|| filter.clone()),
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

/// Places filters where they are tested, over `columns`; `recorder` receives their statistics.
///
/// # Errors
/// Internal, if a column is missing.
pub(crate) fn place<'f>(
    filters: impl IntoIterator<Item = &'f Pushed>,
    columns: &[ColumnMeta],
    names: &Columns,
    recorder: &Recorder,
) -> Result<Vec<PlacedFilter>> {
    let place = |filter: &Pushed| {
        let position = |id: &ColumnId| columns.iter().position(|meta| meta.id == *id);
        let columns = filter.columns.iter().map(position).collect::<Option<Vec<usize>>>();
        let columns =
            columns.ok_or_else(|| Error::internal("a join filter is over columns that are not there"))?;
        let called: Vec<&str> = filter.columns.iter().map(|id| names.get(*id).name.as_str()).collect();
        filter.slot.want();
        Ok(PlacedFilter { columns, slot: filter.slot.clone(), rate: recorder.pass_rate(called.join(", ")) })
    };
    filters.into_iter().map(place).collect()
}

/// The operator that tests the filters that stay above `columns`, if it pays off for any.
///
/// # Errors
/// Internal, if a column is missing.
pub(crate) fn early(
    filters: &[Pushed],
    columns: &[ColumnMeta],
    names: &Columns,
    recorder: &Recorder,
    context: &QueryContext,
) -> Result<Option<Arc<dyn OperatorFactory>>> {
    // A forced filter is tested even if it does not pay off.
    let is_forced = context.settings.join_filter == FilterKind::Bloom;
    let filters =
        place(filters.iter().filter(|filter| filter.is_early || is_forced), columns, names, recorder)?;
    let settings = context.settings.clone();
    Ok((!filters.is_empty())
        .then(|| Arc::new(FiltersBeforeJoin { filters, settings }) as Arc<dyn OperatorFactory>))
}
