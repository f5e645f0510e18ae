//! The filters of a scan: what its rows must satisfy, divided by how it is tested.
//!
//! Conditions are tested from the coarse to the fine: bounds of row groups and blocks, codes of blocks,
//! values. Those that hold for all rows within the layout key's range are *implied* there, and stand first.

use super::columns::Columns;
use super::ranges;
use super::stages::{Stage, stages};
use crate::exec::key_filter::PlacedFilter;
use crate::exec::key_filter::order::Order;
use crate::pruning::{KnownBounds, PruningPredicate};
use crate::settings::Settings;
use entasis_storage::{ValueRange, Zone};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result};
use std::ops::Range;
use std::sync::Arc;

/// See the module.
#[derive(Clone)]
pub(super) struct Filters {
    /// Ranges that rows must be in.
    pub(super) ranges: Conditions<ValueRange>,
    /// The other conditions.
    pub(super) stages: Conditions<Stage>,
    /// Join filters, on output columns.
    pub(super) joins: Vec<PlacedFilter>,
    /// Tests of bounds.
    tests: Vec<PruningPredicate>,
    /// For each column whose bounds are tested, its index in the table.
    pub(super) bounded: Vec<usize>,
    /// Conditions may be tested on codes.
    pub(super) on_codes: bool,
    pub(super) settings: Arc<Settings>,
}

/// Conditions that rows must satisfy.
#[derive(Clone)]
pub(super) struct Conditions<T> {
    pub(super) all: Vec<T>,
    /// How many conditions, from the first, hold for all rows within the layout key's range.
    implied: usize,
}

impl<T> Conditions<T> {
    fn new(implied: Vec<T>, others: Vec<T>) -> Conditions<T> {
        let count = implied.len();
        Conditions { all: implied.into_iter().chain(others).collect(), implied: count }
    }

    /// The indexes of the conditions that must be tested.
    pub(super) fn left(&self, is_implied: bool) -> Range<usize> {
        if is_implied { self.implied..self.all.len() } else { 0..self.all.len() }
    }

    /// The first condition that must always be tested.
    pub(super) fn first(&self) -> Option<&T> {
        self.all.get(self.implied)
    }
}

impl Filters {
    /// Divides conjuncts, of which those in `implied` hold for all rows within the layout key's range.
    /// `place` gives the index of a column in the table.
    ///
    /// # Errors
    /// Those of compiling the conjuncts.
    pub(super) fn new(
        (mut implied, mut others): (Vec<Expr>, Vec<Expr>),
        joins: Vec<PlacedFilter>,
        columns: &Columns,
        place: &impl Fn(ColumnId) -> Option<usize>,
        on_codes: bool,
        settings: &Arc<Settings>,
    ) -> Result<Filters> {
        let take =
            |conjuncts: &mut Vec<Expr>| if on_codes { ranges::take(conjuncts, place) } else { Vec::new() };
        let ranges = Conditions::new(take(&mut implied), take(&mut others));
        let mut ids: Vec<ColumnId> = Vec::new();
        others.iter().for_each(|conjunct| conjunct.collect_columns(&mut ids));
        let mut bounded: Vec<usize> = ids.into_iter().filter_map(place).collect();
        let keys = joins.iter().flat_map(|filter| &filter.columns);
        bounded.extend(keys.filter_map(|&column| columns.stored(column)));
        bounded.sort_unstable();
        bounded.dedup();
        // The conditions that made the reach rule out none of its blocks.
        let tests = others.iter().filter_map(|conjunct| PruningPredicate::of(conjunct, place)).collect();
        let stages = Conditions::new(stages(implied, &columns.metas)?, stages(others, &columns.metas)?);
        Ok(Filters { ranges, stages, joins, tests, bounded, on_codes, settings: settings.clone() })
    }

    /// The ranges that must be tested.
    fn ranges_left(&self, is_implied: bool) -> &[ValueRange] {
        &self.ranges.all[self.ranges.left(is_implied)]
    }

    /// True if a condition may be tested on codes.
    pub(super) fn may_use_codes(&self, is_implied: bool) -> bool {
        let stages = &self.stages.all[self.stages.left(is_implied)];
        !self.ranges.left(is_implied).is_empty()
            || (self.on_codes && stages.iter().any(|stage| stage.is_of_strings))
    }

    /// True if ranges are the only filters.
    pub(super) fn are_ranges(&self) -> bool {
        self.stages.all.is_empty() && self.joins.is_empty() && !self.ranges.all.is_empty()
    }

    /// The order of stages and join filters; those after a stage that may fail do not move.
    pub(super) fn order(&self) -> Order {
        let count = self.stages.all.len() + self.joins.len();
        let fallible = self.stages.all.iter().position(|stage| stage.program.is_fallible());
        Order::new(count, if self.settings.adaptive { fallible.unwrap_or(count) } else { 0 })
    }

    /// The order of ranges and stages, all of which may move as long as they are tested on codes.
    pub(super) fn order_on_codes(&self) -> Order {
        let count = self.ranges.all.len() + self.stages.all.len();
        Order::new(count, if self.settings.adaptive { count } else { 0 })
    }

    /// True if there is one stage and no join filter: nothing else may rule out rows at less cost, but
    /// ranges.
    pub(super) fn is_alone(&self) -> bool {
        self.stages.all.len() == 1 && self.joins.is_empty()
    }

    /// True if no filter tests single rows.
    pub(super) fn is_unfiltered(&self, is_implied: bool) -> bool {
        let left = (self.ranges.left(is_implied), self.stages.left(is_implied));
        left.0.is_empty() && left.1.is_empty() && self.joins.is_empty()
    }

    /// False if bounds, which `zone` yields by column of the table, rule out all rows; `may_be_within` has
    /// tested those of ranges.
    pub(super) fn may_have_rows<'z>(
        &self,
        columns: &Columns,
        zone: &impl Fn(usize) -> &'z Zone,
        may_be_within: &impl Fn(&ValueRange) -> bool,
    ) -> bool {
        let has_keys = |filter: &PlacedFilter| {
            let mut keys = filter.columns.iter().enumerate();
            keys.all(|(key, &column)| {
                columns.stored(column).is_none_or(|index| filter.may_be_in(zone(index), key))
            })
        };
        self.ranges_left(true).iter().all(may_be_within)
            && self.tests.iter().all(|test| test.may_pass(&|column| Some(KnownBounds::from(zone(column)))))
            && self.joins.iter().all(has_keys)
    }
}
