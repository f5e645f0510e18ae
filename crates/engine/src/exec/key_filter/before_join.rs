//! Filters at the places where they are tested, and the operator that tests those of several joins before the
//! first of these is probed.
//!
//! A scan of a table tests the filters of all joins that its rows go to. Rows from elsewhere (a file, an
//! aggregate, a computed column, both sides of another join) pass this operator instead: a row that any of
//! the later joins would drop is never looked up in the first one's table. So the order of the joins matters
//! less (Barber et al., *Memory-Efficient Hash Joins*, VLDB 2014, section 3.1).
//!
//! The filters run in the order of their measured ranks ([`Order`]), and one that most rows pass is suspended
//! ([`FilterWorker`]).

use super::KeyFilter;
use super::filter::{FilterSlot, FilterWorker};
use super::order::Order;
use super::threshold::ThresholdWorker;
use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use crate::exec::profile::PassRate;
use crate::settings::Settings;
use crate::threshold::Threshold;
use entasis_storage::Zone;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Buffer, Chunk, Result, Vector};
use std::sync::Arc;
use std::time::Instant;

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
}

impl PlacedTest {
    /// Where the filter of a join is.
    pub(crate) fn keys(&self) -> Option<&Arc<FilterSlot>> {
        match self {
            PlacedTest::Keys(slot) => Some(slot),
            PlacedTest::Threshold(_) => None,
        }
    }

    /// The threshold, if it is one.
    pub(crate) fn threshold(&self) -> Option<&Arc<Threshold>> {
        match self {
            PlacedTest::Keys(_) => None,
            PlacedTest::Threshold(threshold) => Some(threshold),
        }
    }

    /// What `EXPLAIN ANALYZE` calls it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            PlacedTest::Keys(_) => "join filter",
            PlacedTest::Threshold(_) => "threshold of the first rows",
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
            PlacedTest::Threshold(threshold) => {
                let worker = ThresholdWorker::new(threshold, &self.metas[0], &self.rate);
                PlacedWorker::Threshold(Box::new(worker))
            }
        }
    }

    /// False if no row passes of which key column `key` is within these bounds.
    pub(crate) fn may_be_in(&self, zone: &Zone, key: usize) -> bool {
        match &self.test {
            PlacedTest::Keys(slot) => slot.get().is_none_or(|keys: &KeyFilter| keys.may_be_in(zone, key)),
            PlacedTest::Threshold(threshold) => threshold.may_be_in(zone),
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
}

/// See the module.
pub(crate) struct FiltersBeforeJoin {
    /// The filters.
    pub filters: Vec<PlacedFilter>,
    /// Tell which filters are forced.
    pub settings: Arc<Settings>,
}

impl OperatorFactory for FiltersBeforeJoin {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        let count = self.filters.len();
        Ok(Box::new(Worker {
            columns: self.filters.iter().map(|filter| filter.columns.clone()).collect(),
            tests: self.filters.iter().map(|filter| filter.worker(&self.settings)).collect(),
            order: Order::new(count, if self.settings.adaptive { count } else { 0 }),
            rows: Vec::new(),
            spares: Vec::new(),
        }))
    }
}

struct Worker {
    /// For each filter, its columns.
    columns: Vec<Vec<usize>>,
    tests: Vec<PlacedWorker>,
    order: Order,
    rows: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        self.rows.clear();
        self.rows.extend(0..chunk.len() as u16);
        let sampled = self.order.begin();
        for at in 0..self.tests.len() {
            let filter = self.order.conjuncts()[at];
            let (test, columns, before) = (&mut self.tests[filter], &self.columns[filter], self.rows.len());
            if before == 0 || !test.is_on(before) {
                continue;
            }
            let start = (sampled == Some(filter)).then(Instant::now);
            test.retain(|key| (chunk.vector(columns[key]), chunk.positions(columns[key])), &mut self.rows)?;
            if let Some(start) = start {
                self.order.measured(before, self.rows.len(), start.elapsed().as_nanos());
            }
        }
        if self.rows.is_empty() {
            return Ok(Flow::Continue);
        }
        if self.rows.len() < chunk.len() {
            chunk.select(&self.rows, &mut self.spares);
        }
        next.push(chunk)
    }
}
