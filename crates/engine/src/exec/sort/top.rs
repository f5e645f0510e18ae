//! The first rows of an order, in bounded memory.
//!
//! A worker keeps up to [`TopSink::room`] rows. When that is full it sorts them, keeps the first `limit`, and
//! publishes the first key of the last of these as a [`Threshold`] for all workers: rows whose first key is
//! beyond it are dropped before they are kept, and already by scans below. A worker keeps its rows in order
//! of arrival, and each row carries its morsel as a last key, so that equal rows come out as a full sort
//! would give them.

use super::run_spec::with_morsel;
use super::{Ordered, Outcome, SortShared, Stager, order};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::exec::sort::codes::OrderKey;
use crate::memory::Reservation;
use crate::sync::lock;
use crate::threshold::{Threshold, ThresholdTest};
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{CHUNK_ROWS, Chunk, PhysicalType, Result, Selection, Vector};
use std::sync::Arc;

/// The number of chunks that a worker keeps at least before it selects the first rows.
const ROOM_CHUNKS: usize = 8;

/// The sink for an order with a small limit.
pub struct TopSink {
    /// As for a full sort.
    pub shared: Arc<SortShared>,
    /// Rows that are needed.
    pub limit: usize,
    /// Where the first key of the last of them is published, if it can be.
    pub(super) threshold: Option<Arc<Threshold>>,
}

impl TopSink {
    /// The most rows that a worker keeps before it selects the first ones: if every row precedes the last
    /// one, it does so only every few chunks.
    fn room(&self) -> usize {
        (self.limit * 2).max(ROOM_CHUNKS * self.shared.context.settings.chunk_rows)
    }

    /// One worker's test of the threshold.
    fn test(&self) -> Option<ThresholdTest> {
        let key = self.shared.keys.first()?;
        Some(ThresholdTest::new(self.threshold.clone()?, self.shared.stored.clone(), key.column))
    }

    /// Columns kept with the rows: a full sort's, and the morsel.
    fn columns(&self) -> Vec<ColumnMeta> {
        with_morsel(&self.shared.stored)
    }

    fn keys(&self) -> Vec<OrderKey> {
        let morsel = OrderKey { column: self.shared.stored.len(), descending: false, nulls_first: false };
        self.shared.keys.iter().copied().chain([morsel]).collect()
    }
}

impl Sink for TopSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let columns = self.columns();
        Ok(Box::new(TopWorker {
            stager: Stager::new(&self.shared),
            limit: self.limit,
            room: self.room(),
            keys: self.keys(),
            all: (0..columns.len()).collect(),
            rows: Materialized::new(&columns),
            columns,
            reservation: Reservation::new(&self.shared.context.memory),
            threshold: self.threshold.clone(),
            test: self.test(),
            morsel: 0,
            morsels: Vector::new(PhysicalType::U64),
            vectors: Vec::new(),
            shared: self.shared.clone(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.shared.program.as_deref().into_iter().collect()
    }

    fn finish(&self, _tasks: &dyn Tasks) -> Result<()> {
        let mut rows = Materialized::new(&self.columns());
        let mut reservation = Reservation::new(&self.shared.context.memory);
        for run in std::mem::take(&mut *lock(&self.shared.runs)) {
            drop(run.reservation);
            rows.absorb(run.rows);
        }
        reservation.resize(rows.bytes())?;
        let mut order = order::order(&rows, &self.keys(), rows.ids().collect(), None)?;
        order.truncate(self.limit);
        self.shared.finish(Outcome::InMemory(Box::new(Ordered { rows, order }), reservation))
    }
}

struct TopWorker {
    shared: Arc<SortShared>,
    stager: Stager,
    limit: usize,
    room: usize,
    keys: Vec<OrderKey>,
    columns: Vec<ColumnMeta>,
    /// 0, 1, 2, …
    all: Vec<usize>,
    rows: Materialized,
    reservation: Reservation,
    threshold: Option<Arc<Threshold>>,
    /// Tests the threshold on the stored columns.
    test: Option<ThresholdTest>,
    morsel: u64,
    /// The morsel, constant.
    morsels: Vector,
    /// Memory of `prune`.
    vectors: Vec<Vector>,
}

impl TopWorker {
    /// Keeps the first rows and publishes the threshold.
    fn prune(&mut self) -> Result<()> {
        let mut first = order::order(&self.rows, &self.keys, self.rows.ids().collect(), None)?;
        first.truncate(self.limit);
        if let (Some(&last), Some(threshold)) = (first.last(), &self.threshold) {
            threshold.tighten(self.rows.value(last, self.keys[0].column));
        }
        first.sort_unstable();
        let mut kept = Materialized::new(&self.columns);
        self.vectors = self.columns.iter().map(|meta| Vector::new(meta.physical)).collect();
        let mut chunk = Chunk::new();
        for ids in first.chunks(CHUNK_ROWS) {
            chunk.reset(ids.len());
            let dense = chunk.push_group(Selection::ALL);
            for (column, vector) in self.vectors.iter_mut().enumerate() {
                self.rows.gather(column, ids, vector);
                chunk.push_column(vector.clone(), dense);
            }
            kept.append(&chunk, &self.all, None);
        }
        self.rows = kept;
        self.vectors.clear();
        Ok(())
    }
}

impl SinkWorker for TopWorker {
    fn start_morsel(&mut self, morsel: u64) {
        self.morsel = morsel;
    }

    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        if self.limit == 0 {
            return Ok(Flow::Stop);
        }
        let staged = self.stager.stage(chunk)?;
        let dense = staged.push_group(Selection::ALL);
        self.morsels.begin_flat::<u64>(1)[0] = self.morsel;
        self.morsels.make_constant();
        staged.push_column(self.morsels.clone(), dense);
        if let Some(test) = &mut self.test
            && let Some(machine) = test.machine()?
        {
            machine.filter(staged)?;
        }
        if !staged.is_empty() {
            self.rows.append(staged, &self.all, None);
        }
        staged.reset(0);
        if self.rows.rows() >= self.room {
            self.prune()?;
        }
        self.reservation.resize(self.rows.bytes())?;
        Ok(Flow::Continue)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let run = super::Run { rows: self.rows, morsels: Vec::new(), reservation: self.reservation };
        lock(&self.shared.runs).push(run);
        Ok(())
    }
}
