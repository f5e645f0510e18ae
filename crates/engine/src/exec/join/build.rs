//! The build side of a join: a sink that keeps rows and, when all are there, makes the table.

use super::filter::{FilterSlot, KeyFilter};
use super::table::{Asked, BuildInput, Chosen, Facts, Wish, choose, key_bounds};
use super::{Built, BuiltSlot, Computed, ComputedWorker};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::exec::profile::Recorder;
use crate::exec::tuple::Choice;
use crate::exec::{QueryContext, Reservation};
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{Chunk, Error, Result};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// What a build side is made of.
pub(crate) struct BuildSink {
    /// Keys, then payload.
    pub columns: Computed,
    /// The columns as they are kept; wide where the probe side's keys are.
    pub kept: Vec<ColumnMeta>,
    /// For each key, whether NULL equals NULL.
    pub null_equals_null: Vec<bool>,
    /// Rows with NULL keys will be asked for.
    pub null_aware: bool,
    /// Marks of matched rows will be asked for.
    pub marks: bool,
    /// What the table will be asked.
    pub asked: Asked,
    /// Which of the columns are read, apart from comparing keys.
    pub read: Vec<bool>,
    /// Told which keys there are, for the probe side.
    pub filter: Option<Arc<FilterSlot>>,
    /// Where the result goes.
    pub built: BuiltSlot,
    /// What the workers have kept.
    pub parts: Arc<Mutex<Vec<(Materialized, Reservation)>>>,
    /// Whether the rows become tuples.
    pub choice: Arc<Choice>,
    /// For the reasons of choices.
    pub recorder: Arc<Recorder>,
    /// Settings and memory.
    pub context: QueryContext,
}

impl Sink for BuildSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(Worker {
            columns: self.columns.worker(),
            rows: Materialized::new(&self.kept),
            memory: Reservation::new(&self.context.memory),
            parts: self.parts.clone(),
            choice: self.choice.clone(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.columns.program().into_iter().collect()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        let parts = std::mem::take(&mut *self.parts.lock().unwrap_or_else(PoisonError::into_inner));
        let mut rows = Materialized::new(&self.kept);
        // The workers' reservations stand until the whole is reserved again.
        let mut reservations = Vec::new();
        for (part, memory) in parts {
            rows.absorb(part);
            reservations.push(memory);
        }
        drop(reservations);
        let mut memory = Reservation::new(&self.context.memory);
        memory.resize(rows.bytes())?;

        let nulls = &self.null_equals_null;
        let bounds = key_bounds(&rows, nulls, tasks)?;
        let mut bits = None;
        if let Some(slot) = &self.filter {
            let hash_collisions = self.context.settings.hash_collisions;
            let input = BuildInput { rows: &rows, null_equals_null: nulls, hash_collisions, tasks };
            let kind = self.context.settings.join_filter;
            if let Some((filter, reason)) = slot.fill(&input, bounds.as_deref(), kind, &self.context.memory)? {
                bits = KeyFilter::bits(filter);
                self.recorder.note(reason);
            }
        }
        let tuples = self.choice.report(&rows);
        let any = !rows.is_empty();
        let wish = Wish { kind: self.context.settings.join_table, asked: self.asked, read: &self.read };
        let facts = Facts { keys: nulls.len(), bounds, bits };
        let mut null_keys = if self.null_aware { null_keys_of(&rows, nulls) } else { Vec::new() };
        let Chosen { rows, table, reason } =
            choose(&wish, &facts, rows, nulls, self.context.settings.hash_collisions, &mut memory, tasks)?;
        self.recorder.note(reason);
        tuples.into_iter().for_each(|report| self.recorder.note(report));
        if !null_keys.is_empty() && !rows.is_empty() {
            // The rows may have moved.
            null_keys = null_keys_of(&rows, nulls);
        }
        let words = if self.marks { rows.id_space().div_ceil(64) } else { 0 };
        let matched: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        memory.resize(rows.bytes() + table.bytes() + null_keys.len() * 4 + words * 8)?;
        let built = Built { rows, any, table, null_keys, matched, _memory: memory };
        self.built.set(built).map_err(|_| Error::internal("a join was built twice"))
    }
}

/// Rows with a NULL in a key that NULL does not equal.
fn null_keys_of(rows: &Materialized, null_equals_null: &[bool]) -> Vec<u32> {
    let keys: Vec<usize> = (0..null_equals_null.len()).filter(|&k| !null_equals_null[k] && rows.has_nulls(k)).collect();
    if keys.is_empty() {
        return Vec::new();
    }
    rows.ids().filter(|&id| keys.iter().any(|&key| rows.value(id, key).is_null())).collect()
}

struct Worker {
    columns: ComputedWorker,
    rows: Materialized,
    memory: Reservation,
    parts: Arc<Mutex<Vec<(Materialized, Reservation)>>>,
    choice: Arc<Choice>,
}

impl SinkWorker for Worker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let (columns, positions) = self.columns.compute(chunk)?;
        self.rows.append(columns, positions, None);
        self.columns.release();
        self.choice.grown(&mut self.rows, chunk.len());
        let bytes = self.rows.bytes();
        if bytes != self.memory.bytes() {
            self.memory.resize(bytes)?;
        }
        Ok(Flow::Continue)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.choice.complete(&mut self.rows);
        self.memory.resize(self.rows.bytes())?;
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push((self.rows, self.memory));
        Ok(())
    }
}
