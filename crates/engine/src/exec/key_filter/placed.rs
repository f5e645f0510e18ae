//! Filters at the places where they are tested: what is tested, and one worker's test of it.
//!
//! Joins and sorts push filters down a plan ([`super::pushed`]), which numbers what they test
//! ([`PlannedTest`]). A filter ends in a scan, or in the operator
//! before a join ([`super::before_join`]). Both ask it in the same way, whether it is the keys of a build
//! side ([`super::filter`]) or the threshold of a sort ([`super::threshold`]).

use super::filter::{Expected, FilterSlot, FilterWorker, KeyFilter};
use super::threshold::ThresholdWorker;
use crate::exec::profile::{PassRate, Recorder};
use crate::plan::Columns;
use crate::settings::Settings;
use crate::threshold::Threshold;
use entasis_storage::{ValueSet, Zone};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Result, Vector};
use std::sync::Arc;

/// What a filter is going to test, as a plan knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PlannedTest {
    /// Whether the build side of a join has the key; what is expected of its probe side.
    Keys(Expected),
    /// Whether the key may be among the first ones of an order.
    Threshold { descending: bool, nulls_first: bool },
    /// Whether the key is at least, or at most, a value of a build side.
    Limit { is_least: bool },
}

impl PlannedTest {
    /// What `EXPLAIN ANALYZE` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PlannedTest::Keys(_) => "join filter",
            PlannedTest::Threshold { .. } => "threshold of the first rows",
            PlannedTest::Limit { .. } => "limit of a join",
        }
    }

    /// The test, of which nothing is known so far.
    pub(crate) fn instantiate(self) -> PlacedTest {
        match self {
            PlannedTest::Keys(expected) => PlacedTest::Keys(Arc::new(FilterSlot::new(expected))),
            PlannedTest::Threshold { descending, nulls_first } => {
                PlacedTest::Threshold(Threshold::new(descending, nulls_first))
            }
            PlannedTest::Limit { is_least } => PlacedTest::Limit(Threshold::new(is_least, false)),
        }
    }
}

/// A filter at the place where it is going to be tested, as a plan knows it.
#[derive(Debug)]
pub(crate) struct PlannedFilter {
    /// The number of what is tested among the tests of the plan.
    pub number: usize,
    /// What is tested.
    pub test: PlannedTest,
    /// The columns that have the keys.
    pub columns: Vec<usize>,
    /// The same columns.
    pub metas: Vec<ColumnMeta>,
}

impl PlannedFilter {
    /// The filter, given the `tests` of the plan; `recorder` receives its statistics.
    pub(crate) fn instantiate(
        self,
        tests: &[PlacedTest],
        names: &Columns,
        recorder: &Recorder,
    ) -> PlacedFilter {
        let PlannedFilter { number, test, columns, metas } = self;
        let called: Vec<&str> = metas.iter().map(|meta| names.get(meta.id).name.as_str()).collect();
        let rate = recorder.pass_rate(test.name(), called.join(", "));
        let test = tests[number].clone();
        if let Some(slot) = test.keys() {
            slot.want();
        }
        PlacedFilter { columns, metas, test, rate }
    }
}

/// A filter at the place where it is tested.
#[derive(Clone)]
pub(crate) struct PlacedFilter {
    /// The columns that have the keys.
    pub columns: Vec<usize>,
    /// The same columns.
    pub metas: Vec<ColumnMeta>,
    /// What is tested.
    pub test: PlacedTest,
    /// Counts how many rows pass.
    pub rate: Arc<PassRate>,
}

/// What a filter tests; it may be known only while the rows come.
#[derive(Clone)]
pub(crate) enum PlacedTest {
    /// Whether the build side of a join has the key.
    Keys(Arc<FilterSlot>),
    /// Whether the key may be among the first ones of an order.
    Threshold(Arc<Threshold>),
    /// Whether the key satisfies an inequality with a row of a build side ([`crate::exec::join::limits`]).
    Limit(Arc<Threshold>),
}

impl PlacedTest {
    /// Where the filter of a join is.
    pub(crate) fn keys(&self) -> Option<&Arc<FilterSlot>> {
        match self {
            PlacedTest::Keys(slot) => Some(slot),
            PlacedTest::Threshold(_) | PlacedTest::Limit(_) => None,
        }
    }

    /// The threshold of a sort, if it is one.
    pub(crate) fn threshold(&self) -> Option<&Arc<Threshold>> {
        match self {
            PlacedTest::Keys(_) | PlacedTest::Limit(_) => None,
            PlacedTest::Threshold(threshold) => Some(threshold),
        }
    }

    /// What the keys of rows must not be beyond, if it is that.
    pub(crate) fn bound(&self) -> Option<&Arc<Threshold>> {
        match self {
            PlacedTest::Keys(_) => None,
            PlacedTest::Threshold(bound) | PlacedTest::Limit(bound) => Some(bound),
        }
    }
}

impl PlacedFilter {
    /// One worker's test of the filter.
    pub(crate) fn worker(&self, settings: &Settings) -> PlacedWorker {
        match &self.test {
            PlacedTest::Keys(slot) => {
                let worker = FilterWorker::new(slot, &self.rate, self.columns.len(), settings);
                PlacedWorker::Keys(Box::new(worker))
            }
            PlacedTest::Threshold(threshold) | PlacedTest::Limit(threshold) => {
                let worker = ThresholdWorker::new(threshold, &self.metas[0], &self.rate);
                PlacedWorker::Threshold(Box::new(worker))
            }
        }
    }

    /// False if no row passes of which key column `key` is within these bounds.
    pub(crate) fn may_be_in(&self, zone: &Zone, key: usize) -> bool {
        match &self.test {
            PlacedTest::Keys(slot) => slot.get().is_none_or(|keys: &KeyFilter| keys.may_be_in(zone, key)),
            PlacedTest::Threshold(bound) | PlacedTest::Limit(bound) => bound.may_be_in(zone),
        }
    }
}

/// One worker's test of a filter, and its statistics.
pub(crate) enum PlacedWorker {
    Keys(Box<FilterWorker>),
    Threshold(Box<ThresholdWorker>),
}

impl PlacedWorker {
    /// True if the filter must be tested for the next `rows` rows.
    pub(crate) fn is_on(&mut self, rows: usize) -> bool {
        match self {
            PlacedWorker::Keys(worker) => worker.is_on(rows),
            PlacedWorker::Threshold(worker) => worker.is_on(),
        }
    }

    /// Keeps in `rows`, which ascend, those that may pass. `key` yields a key column and the positions of
    /// rows in it, unless these are the rows themselves.
    ///
    /// # Errors
    /// Those of compiling a comparison.
    pub(crate) fn retain<'a>(
        &mut self,
        key: impl Fn(usize) -> (&'a Vector, Option<&'a [u16]>),
        rows: &mut Vec<u16>,
    ) -> Result<()> {
        match self {
            PlacedWorker::Keys(worker) => {
                worker.retain(key, rows);
                Ok(())
            }
            PlacedWorker::Threshold(worker) => {
                let (vector, positions) = key(0);
                worker.retain(vector, positions, rows)
            }
        }
    }

    /// The keys, if they are those of a column of integers and bits say which there are.
    pub(crate) fn values(&self) -> Option<ValueSet> {
        match self {
            PlacedWorker::Keys(worker) => worker.values(),
            PlacedWorker::Threshold(_) => None,
        }
    }

    /// Counts rows that were tested by [`PlacedWorker::values`], and those of them that passed.
    pub(crate) fn count(&mut self, seen: usize, passed: usize) {
        if let PlacedWorker::Keys(worker) = self {
            worker.count(seen, passed);
        }
    }
}
