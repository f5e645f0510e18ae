//! The way of probe rows: those whose partition is in a file go to a file themselves, the others on to the probe.

use super::split::{Room, Split};
use super::{MOST_PROBE, PROBE_PART, Spill};
use crate::exec::join::table::ProbeKeys;
use crate::exec::join::{Computed, ComputedWorker};
use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use entasis_vector::expr::Program;
use entasis_vector::{Buffer, Chunk, Result};
use std::sync::Arc;

/// The operator before the probe.
pub(crate) struct Route {
    /// What is in files.
    pub spill: Arc<Spill>,
    /// The keys over the probe side's columns.
    pub keys: Computed,
}

impl OperatorFactory for Route {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        if !self.spill.is_active() {
            return Ok(Box::new(Through));
        }
        let split = Split::new(
            &self.spill.probe().store,
            &self.spill.marks,
            0,
            self.spill.probe_room(),
            &self.spill.context.memory,
        );
        Ok(Box::new(Worker {
            spill: self.spill.clone(),
            keys: self.keys.worker(),
            probe_keys: self.spill.making.keys(),
            columns: self.spill.probe().places.clone(),
            split,
            stays: Vec::new(),
            spares: Vec::new(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        // Those of the keys, which the probe shows.
        Vec::new()
    }
}

impl Spill {
    /// The memory that a worker's probe rows may have before they are written.
    pub(super) fn probe_room(&self) -> Room {
        let each = self.context.memory.free() / (PROBE_PART * self.context.settings.threads.max(1));
        Room { most: each.min(MOST_PROBE), left: 0, least: 0 }
    }
}

/// All partitions are in memory.
struct Through;

impl Operator for Through {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        next.push(chunk)
    }
}

struct Worker {
    spill: Arc<Spill>,
    keys: ComputedWorker,
    probe_keys: ProbeKeys,
    columns: Vec<usize>,
    split: Split,
    /// Rows of a chunk that are not written.
    stays: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        let making = &self.spill.making;
        let (keys, positions) = self.keys.compute(chunk)?;
        self.probe_keys.begin(keys, positions, &making.null_equals_null);
        self.stays.clear();
        let all = !making.shape.drops_unmatched_probe_rows();
        let taken = self.split.take(&mut self.probe_keys, chunk, &self.columns, all, Some(&mut self.stays));
        self.probe_keys.release();
        self.keys.release();
        taken?;
        if self.stays.is_empty() {
            return Ok(Flow::Continue);
        }
        if self.stays.len() < chunk.len() {
            chunk.select(&self.stays, &mut self.spares);
        }
        next.push(chunk)
    }

    fn finish(&mut self, _: &mut dyn Push) -> Result<Flow> {
        self.split.write_marked()?;
        Ok(Flow::Continue)
    }
}
