//! The first rows of an order, in bounded memory.
//!
//! A worker keeps up to [`room_for`] rows. When that is full it sorts them, keeps the first `limit`, and
//! takes the first key of the last of these as a *threshold*: rows whose first key is beyond it cannot be
//! among the first, so a filter drops them before they are kept. Ties on the first key pass. A worker keeps
//! its rows in order of arrival, and each row carries its morsel as a last key, so that equal rows come out
//! as a full sort would give them.

use super::run_spec::with_morsel;
use super::{Ordered, Outcome, SortShared, Stager, lock, order};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::exec::sort::codes::OrderKey;
use crate::memory::Reservation;
use entasis_vector::expr::{ColumnMeta, CompareOp, Expr, Machine, Program};
use entasis_vector::{CHUNK_ROWS, Chunk, PhysicalType, Result, Selection, Value, Vector};
use std::sync::Arc;

/// The most rows that a worker keeps before it selects the first ones: if every row precedes the last one, it
/// does so only every few chunks.
pub fn room_for(limit: usize) -> usize {
    (limit * 2).max(8 * CHUNK_ROWS)
}

/// The sink for an order with a small limit.
pub struct TopSink {
    /// As for a full sort.
    pub shared: Arc<SortShared>,
    /// Rows that are needed.
    pub limit: usize,
}

impl TopSink {
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
            keys: self.keys(),
            all: (0..columns.len()).collect(),
            rows: Materialized::new(&columns),
            columns,
            reservation: Reservation::new(&self.shared.context.memory),
            threshold: None,
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
    keys: Vec<OrderKey>,
    columns: Vec<ColumnMeta>,
    /// 0, 1, 2, …
    all: Vec<usize>,
    rows: Materialized,
    reservation: Reservation,
    /// Keeps the rows that may be among the first; over the stored columns.
    threshold: Option<Machine>,
    morsel: u64,
    /// The morsel, constant.
    morsels: Vector,
    /// Memory of `prune`.
    vectors: Vec<Vector>,
}

impl TopWorker {
    /// Keeps the first rows and finds the threshold.
    fn prune(&mut self) -> Result<()> {
        let mut first = order::order(&self.rows, &self.keys, self.rows.ids().collect(), None)?;
        first.truncate(self.limit);
        if let (Some(&last), Some(key)) = (first.last(), self.keys.first().filter(|_| self.keys.len() > 1)) {
            self.threshold = self.filter_beyond(key, self.rows.value(last, key.column))?;
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

    /// The filter that keeps rows whose first key is not beyond `threshold`; `None` if all rows pass.
    fn filter_beyond(&self, key: &OrderKey, threshold: Value) -> Result<Option<Machine>> {
        let meta = &self.columns[key.column];
        let column = Expr::column(meta.id, meta.ty);
        let is_null = Expr::IsNull(Box::new(column.clone()));
        let condition = match (threshold, key.nulls_first) {
            (Value::Null, true) => is_null,
            (Value::Null, false) => return Ok(None),
            (value, nulls_first) => {
                let op = if key.descending { CompareOp::GtEq } else { CompareOp::LtEq };
                let within = Expr::compare(op, column, Expr::literal(value, meta.ty));
                if nulls_first && meta.nullable { Expr::Or(vec![is_null, within]) } else { within }
            }
        };
        let stored = &self.columns[..self.shared.stored.len()];
        Ok(Some(Machine::new(Program::compile(&[condition], stored)?)))
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
        if let Some(threshold) = &mut self.threshold {
            threshold.filter(staged)?;
        }
        if !staged.is_empty() {
            self.rows.append(staged, &self.all, None);
        }
        staged.reset(0);
        if self.rows.rows() >= room_for(self.limit) {
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
