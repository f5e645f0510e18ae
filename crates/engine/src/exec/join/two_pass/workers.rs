//! The workers of both readings: one counts keys, the other puts rows in place.

use super::{Counting, Found, Second, TwoPass};
use crate::exec::join::table::{Batch, ProbeKeys};
use crate::exec::join::{Computed, ComputedWorker};
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::memory::Reservation;
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{Chunk, Result};
use std::sync::Arc;

/// The sink of the first reading.
pub(crate) struct KeysSink {
    /// The keys.
    pub keys: Computed,
    /// Where the counters go.
    pub two_pass: Arc<TwoPass>,
}

impl Sink for KeysSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let nulls = &self.two_pass.spec.null_equals_null;
        Ok(Box::new(KeysWorker {
            columns: self.keys.worker(),
            keys: ProbeKeys::new(nulls.len(), self.two_pass.spec.settings.hash_collisions),
            null_equals_null: nulls.clone(),
            counting: self.two_pass.counting(),
            two_pass: self.two_pass.clone(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.keys.program().into_iter().collect()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        self.two_pass.finish_counting(tasks)
    }
}

/// Counts keys.
struct KeysWorker {
    columns: ComputedWorker,
    keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    /// Absent if counting is of no use.
    counting: Option<(Counting, Reservation)>,
    two_pass: Arc<TwoPass>,
}

impl SinkWorker for KeysWorker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let Some((counting, _)) = &mut self.counting else { return Ok(Flow::Stop) };
        let (columns, positions) = self.columns.compute(chunk)?;
        self.keys.begin(columns, positions, &self.null_equals_null);
        let goes_on = counting.add(&mut self.keys);
        self.keys.release();
        self.columns.release();
        if goes_on {
            return Ok(Flow::Continue);
        }
        self.counting = None;
        Ok(Flow::Stop)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.two_pass.end_counting(self.counting);
        Ok(())
    }
}

/// Puts rows into their parts.
pub(super) struct PlacingWorker {
    columns: ComputedWorker,
    keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    /// Of the columns as they come, those that are kept; see [`TwoPass::stays`].
    stays: Vec<usize>,
    /// Their positions in a chunk.
    positions: Vec<usize>,
    batch: Batch,
    second: Arc<Second>,
}

impl PlacingWorker {
    /// A worker that has not placed any rows. `columns` are the input's.
    pub(super) fn new(two_pass: &TwoPass, second: &Arc<Second>, columns: &Computed) -> PlacingWorker {
        let nulls = &two_pass.spec.null_equals_null;
        let stays: Vec<usize> = (0..two_pass.stays.len()).filter(|&column| two_pass.stays[column]).collect();
        let metas: Vec<ColumnMeta> = stays.iter().map(|&column| two_pass.kept[column].clone()).collect();
        PlacingWorker {
            columns: columns.worker(),
            keys: ProbeKeys::new(nulls.len(), two_pass.spec.settings.hash_collisions),
            null_equals_null: nulls.clone(),
            stays,
            positions: Vec::new(),
            batch: Batch::new(&metas),
            second: second.clone(),
        }
    }
}

impl SinkWorker for PlacingWorker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let Found::Rows(precounted) = &self.second.found else { return Ok(Flow::Stop) };
        let (columns, positions) = self.columns.compute(chunk)?;
        self.keys.begin(columns, &positions[..self.null_equals_null.len()], &self.null_equals_null);
        self.positions.clear();
        self.positions.extend(self.stays.iter().map(|&column| positions[column]));
        self.batch.add(precounted, &mut self.keys, columns, &self.positions)?;
        self.keys.release();
        self.columns.release();
        Ok(Flow::Continue)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        match &self.second.found {
            Found::Rows(precounted) => self.batch.put(precounted),
            Found::Bits(_) => Ok(()),
        }
    }
}
