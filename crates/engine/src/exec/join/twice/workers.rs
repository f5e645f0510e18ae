//! What workers do in both readings: count keys, put rows.

use super::{Counting, Found, Second, Twice};
use crate::exec::Reservation;
use crate::exec::join::table::ProbeKeys;
use crate::exec::join::{Computed, ComputedWorker};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::sync::Ordering;
use entasis_vector::expr::Program;
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

/// Puts rows where they belong.
pub(super) struct PlacingWorker {
    columns: ComputedWorker,
    keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    /// See [`Twice::stays`].
    stays: Vec<bool>,
    positions: Vec<usize>,
    /// The rows of a chunk, in the types in which they are kept.
    few: Materialized,
    ids: Vec<u32>,
    /// Rows that were put.
    placed: usize,
    second: Arc<Second>,
}

impl PlacingWorker {
    /// A worker that has put no rows. `few` has the columns that stay.
    pub(super) fn new(
        columns: &Computed,
        keys: ProbeKeys,
        null_equals_null: &[bool],
        stays: &[bool],
        few: Materialized,
        second: Arc<Second>,
    ) -> PlacingWorker {
        PlacingWorker {
            columns: columns.worker(),
            keys,
            null_equals_null: null_equals_null.to_vec(),
            stays: stays.to_vec(),
            positions: Vec::new(),
            few,
            ids: Vec::new(),
            placed: 0,
            second,
        }
    }
}

impl SinkWorker for PlacingWorker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let Found::Rows { placer, placing, .. } = &self.second.found else { return Ok(Flow::Stop) };
        let (columns, positions) = self.columns.compute(chunk)?;
        self.keys.begin(columns, &positions[..self.null_equals_null.len()], &self.null_equals_null);
        placer.ids(&mut self.keys, &mut self.ids);
        self.keys.release();
        self.positions.clear();
        self.positions
            .extend(positions.iter().zip(&self.stays).filter(|(_, stays)| **stays).map(|(position, _)| *position));
        self.few.append(columns, &self.positions, None);
        placing.put(&self.few, &self.ids);
        self.few.restart();
        self.columns.release();
        self.placed += self.ids.iter().filter(|&&id| id != Materialized::NO_ROW).count();
        Ok(Flow::Continue)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        if let Found::Rows { placed, .. } = &self.second.found {
            placed.fetch_add(self.placed, Ordering::Relaxed);
        }
        Ok(())
    }
}
