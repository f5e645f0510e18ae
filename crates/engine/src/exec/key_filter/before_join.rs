//! Tests the filters of several joins before the first of them is probed.
//!
//! A scan of a table tests the filters of all joins that its rows go to. Rows from elsewhere (a file, an
//! aggregate, a computed column, both sides of another join) pass this operator instead: a row that any of
//! the later joins would drop is never looked up in the first one's table. So the order of the joins matters
//! less (Barber et al., *Memory-Efficient Hash Joins*, VLDB 2014, section 3.1).
//!
//! The filters run in the order of their measured ranks ([`Order`]), and one that most rows pass is suspended
//! ([`super::filter`]).

use super::order::Order;
use super::placed::{PlacedFilter, PlacedWorker};
use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use crate::settings::Settings;
use entasis_vector::{Buffer, Chunk, Result};
use std::sync::Arc;
use std::time::Instant;

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
