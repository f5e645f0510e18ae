//! What workers do in both readings: count keys, put rows.

use super::{Counting, Found, Second, Twice};
use crate::exec::join::table::{Batch, ProbeKeys};
use crate::exec::join::{Computed, ComputedWorker};
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::memory::Reservation;
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{Chunk, Result};
use std::sync::Arc;

/// The end of the first reading.
pub(crate) struct KeysSink {
    /// The keys.
    pub keys: Computed,
    /// Where they are counted.
    pub twice: Arc<Twice>,
}

impl Sink for KeysSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let nulls = &self.twice.making.null_equals_null;
        Ok(Box::new(KeysWorker {
            columns: self.keys.worker(),
            keys: ProbeKeys::new(nulls.len(), self.twice.making.context.settings.hash_collisions),
            null_equals_null: nulls.clone(),
            counting: self.twice.counting(),
            twice: self.twice.clone(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.keys.program().into_iter().collect()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        self.twice.finish_counting(tasks)
    }
}

/// Counts keys.
struct KeysWorker {
    columns: ComputedWorker,
    keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    /// Absent: it is of no use.
    counting: Option<(Counting, Reservation)>,
    twice: Arc<Twice>,
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
        self.twice.end_counting(self.counting);
        Ok(())
    }
}

/// Puts rows into their parts.
pub(super) struct PlacingWorker {
    columns: ComputedWorker,
    keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    /// Of the columns as they come, those that stay; see [`Twice::stays`].
    stays: Vec<usize>,
    /// Where these stand in a chunk.
    positions: Vec<usize>,
    batch: Batch,
    second: Arc<Second>,
}

impl PlacingWorker {
    /// A worker that has put no rows. `columns` are the input's.
    pub(super) fn new(twice: &Twice, second: &Arc<Second>, columns: &Computed) -> PlacingWorker {
        let nulls = &twice.making.null_equals_null;
        let stays: Vec<usize> = (0..twice.stays.len()).filter(|&column| twice.stays[column]).collect();
        let metas: Vec<ColumnMeta> = stays.iter().map(|&column| twice.kept[column].clone()).collect();
        PlacingWorker {
            columns: columns.worker(),
            keys: ProbeKeys::new(nulls.len(), twice.making.context.settings.hash_collisions),
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
        let Found::Rows(unsettled) = &self.second.found else { return Ok(Flow::Stop) };
        let (columns, positions) = self.columns.compute(chunk)?;
        self.keys.begin(columns, &positions[..self.null_equals_null.len()], &self.null_equals_null);
        self.positions.clear();
        self.positions.extend(self.stays.iter().map(|&column| positions[column]));
        self.batch.add(unsettled, &mut self.keys, columns, &self.positions)?;
        self.keys.release();
        self.columns.release();
        Ok(Flow::Continue)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        match &self.second.found {
            Found::Rows(unsettled) => self.batch.put(unsettled),
            Found::Bits(_) => Ok(()),
        }
    }
}
