//! What workers do in both readings: count keys, put rows.

use super::{Counting, Found, Second, Twice};
use crate::exec::Reservation;
use crate::exec::join::held_back::HeldBack;
use crate::exec::join::table::ProbeKeys;
use crate::exec::join::{Computed, ComputedWorker};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::sync::Ordering;
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{Chunk, Result, Selection};
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

/// Puts rows where they belong: as they come, or [held back](super::super::held_back) where the table is far larger than the caches.
pub(super) struct PlacingWorker {
    columns: ComputedWorker,
    held: Option<HeldRows>,
    putting: Putting,
    /// Of the columns as they come, those that stay; see [`Twice::stays`].
    stays: Vec<usize>,
    /// Where these stand in a chunk.
    positions: Vec<usize>,
}

/// Rows that are held back, with their keys first and then those of the other columns that stay.
struct HeldRows {
    rows: HeldBack,
    /// Of the columns as they come, those that are held.
    columns: Vec<usize>,
    positions: Vec<usize>,
    /// Where those that stay stand among them.
    stays: Vec<usize>,
    keys: Vec<usize>,
    chunk: Chunk,
}

/// What is done with a few rows whose turn it is.
struct Putting {
    keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    /// The rows of a chunk, in the types in which they are kept.
    few: Materialized,
    ids: Vec<u32>,
    /// Rows that were put.
    placed: usize,
    second: Arc<Second>,
}

impl PlacingWorker {
    /// A worker that has put no rows. `columns` are the input's.
    pub(super) fn new(twice: &Twice, second: &Arc<Second>, columns: &Computed) -> PlacingWorker {
        let nulls = &twice.making.null_equals_null;
        let context = &twice.making.context;
        let stays: Vec<usize> = (0..twice.stays.len()).filter(|&column| twice.stays[column]).collect();
        let metas: Vec<ColumnMeta> = stays.iter().map(|&column| twice.kept[column].clone()).collect();
        let putting = Putting {
            keys: ProbeKeys::new(nulls.len(), context.settings.hash_collisions),
            null_equals_null: nulls.clone(),
            few: Materialized::new(&metas),
            ids: Vec::new(),
            placed: 0,
            second: second.clone(),
        };
        let held = HeldRows::of(twice, second);
        PlacingWorker { columns: columns.worker(), held, putting, stays, positions: Vec::new() }
    }
}

impl HeldRows {
    /// None yet; `None` if rows are put as they come.
    fn of(twice: &Twice, second: &Second) -> Option<HeldRows> {
        let most = second.stride;
        if most == 0 {
            return None;
        }
        let keys = twice.making.null_equals_null.len();
        Some(HeldRows {
            rows: HeldBack::new(&twice.held_metas(), most, &twice.making.context),
            stays: (0..twice.held.len()).filter(|&at| twice.stays[twice.held[at].0]).collect(),
            columns: twice.held.iter().map(|(column, _)| *column).collect(),
            positions: Vec::new(),
            keys: (0..keys).collect(),
            chunk: Chunk::new(),
        })
    }

    /// Puts the rows, part after part.
    fn put(&mut self, putting: &mut Putting) -> Result<()> {
        let HeldRows { rows, stays, keys, chunk, .. } = self;
        rows.give(|vectors, count| {
            chunk.reset(count);
            let group = chunk.push_group(Selection::ALL);
            vectors.iter().for_each(|vector| {
                chunk.push_column(vector.clone(), group);
            });
            putting.put(chunk, keys, stays);
            chunk.reset(0);
            Ok(Flow::Continue)
        })?;
        Ok(())
    }
}

impl Putting {
    /// Puts the rows of a chunk: their keys and the columns that stay are at these positions.
    fn put(&mut self, chunk: &Chunk, keys: &[usize], stays: &[usize]) {
        let Found::Rows { placer, placing, .. } = &self.second.found else { return };
        self.keys.begin(chunk, keys, &self.null_equals_null);
        placer.ids(&mut self.keys, &mut self.ids);
        self.keys.release();
        self.few.append(chunk, stays, None);
        placing.put(&self.few, &self.ids);
        self.few.restart();
        self.placed += self.ids.iter().filter(|&&id| id != Materialized::NO_ROW).count();
    }
}

/// Where some columns stand: those with these numbers.
fn select(numbers: &[usize], positions: &[usize], to: &mut Vec<usize>) {
    to.clear();
    to.extend(numbers.iter().map(|&number| positions[number]));
}

impl SinkWorker for PlacingWorker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let putting = &mut self.putting;
        let Found::Rows { placer, .. } = &putting.second.found else { return Ok(Flow::Stop) };
        let (columns, positions) = self.columns.compute(chunk)?;
        let keys = &positions[..putting.null_equals_null.len()];
        match &mut self.held {
            None => {
                select(&self.stays, positions, &mut self.positions);
                putting.put(columns, keys, &self.positions);
            }
            Some(held) => {
                putting.keys.begin(columns, keys, &putting.null_equals_null);
                placer.parts(&mut putting.keys, held.rows.parts());
                putting.keys.release();
                select(&held.columns, positions, &mut held.positions);
                if held.rows.add(columns, &held.positions) {
                    held.put(putting)?;
                }
            }
        }
        self.columns.release();
        Ok(Flow::Continue)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if let Some(held) = &mut self.held {
            held.put(&mut self.putting)?;
        }
        if let Found::Rows { placed, .. } = &self.putting.second.found {
            placed.fetch_add(self.putting.placed, Ordering::Relaxed);
        }
        Ok(())
    }
}
