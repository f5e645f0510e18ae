//! Routes probe rows: rows of partitions that are joined later are kept in the store, the others go on to the
//! probe.
//!
//! Rows that a Bloom filter rules out are not kept. If the join outputs rows without a match, they go on to
//! the probe, which finds none; otherwise they are dropped.

use super::shared::Partitioning;
use super::split::{Room, Split, Taken};
use crate::exec::join::table::ProbeKeys;
use crate::exec::join::tuning::{MOST_PROBE, PROBE_PART};
use crate::exec::join::{Computed, ComputedWorker};
use crate::exec::key_filter::FilterWorker;
use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use entasis_vector::expr::Program;
use entasis_vector::{Buffer, Chunk, Result};
use std::sync::Arc;

/// The operator before the probe.
pub(crate) struct Route {
    /// The partitions of the join.
    pub partitioning: Arc<Partitioning>,
    /// The keys over the probe side's columns.
    pub keys: Computed,
}

impl OperatorFactory for Route {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        if !self.partitioning.is_active() {
            return Ok(Box::new(Through));
        }
        let split = Split::new(
            &self.partitioning.probe().store,
            &self.partitioning.marks,
            0,
            self.partitioning.route_room(),
            &self.partitioning.context.memory,
        );
        Ok(Box::new(Worker {
            partitioning: self.partitioning.clone(),
            keys: self.keys.worker(),
            probe_keys: self.partitioning.spec.keys(),
            columns: self.partitioning.probe().kept.places.clone(),
            filter: self.partitioning.bloom_worker(),
            split,
            passed: Vec::new(),
            stays: Vec::new(),
            spares: Vec::new(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        // The programs of the keys, which the probe reports.
        Vec::new()
    }
}

impl Partitioning {
    /// The memory that a worker's probe rows may have before they are written, as the rows arrive.
    fn route_room(&self) -> Room {
        match self.is_radix() {
            true => {
                let (left, least) = (self.policy.memory().left() / 2, self.policy.memory().least());
                Room { most: usize::MAX, left, least, segments: self.context.settings.most_segments }
            }
            false => self.probe_room(),
        }
    }

    /// The memory that a worker's probe rows may have on their way to a file.
    pub(super) fn probe_room(&self) -> Room {
        let each = self.context.memory.free() / (PROBE_PART * self.context.settings.threads.max(1));
        Room { most: each.min(MOST_PROBE), left: 0, least: 0, segments: usize::MAX }
    }
}

/// Passes all rows on.
pub(crate) struct Through;

impl Operator for Through {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        next.push(chunk)
    }
}

struct Worker {
    partitioning: Arc<Partitioning>,
    keys: ComputedWorker,
    probe_keys: ProbeKeys,
    columns: Vec<usize>,
    filter: Option<FilterWorker>,
    split: Split,
    /// Rows of a chunk that may match.
    passed: Vec<u16>,
    /// Rows of a chunk that are not kept.
    stays: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        let spec = &self.partitioning.spec;
        let (keys, positions) = self.keys.compute(chunk)?;
        self.probe_keys.begin(keys, positions, &spec.null_equals_null);
        self.stays.clear();
        let all = !spec.shape.drops_unmatched_probe_rows();
        let mut among = None;
        if let Some(filter) = &mut self.filter
            && filter.is_on(chunk.len())
        {
            self.passed.clear();
            self.passed.extend(0..chunk.len() as u16);
            filter.retain(|key| self.probe_keys.column(key), &mut self.passed);
            among = Some(&self.passed[..]);
        }
        let rows = Taken { all, stays: Some(&mut self.stays), among };
        let taken = self.split.take(&mut self.probe_keys, chunk, &self.columns, rows);
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
        self.split.put_down()?;
        Ok(Flow::Continue)
    }
}
