//! Compaction: small chunks are copied together before an operator that costs the same for few rows as for
//! many (Qiao and Zhang, *Data Chunk Compaction in Vectorized Execution*, SIGMOD 2025).
//!
//! A selective filter or join leaves chunks of a few rows, each of which pays for a dozen passes of a probe
//! or an aggregation. A chunk of at most a *threshold* of rows is copied, column by column, into a buffer,
//! which is passed on when it is nearly full; larger chunks pass through untouched.
//!
//! ```text
//! mod ──▶ policy ──▶ costs            which threshold: fixed, by a cost model (section 3),
//!                    crate::learned   or learned (section 4)
//! ```
//! The setting `compaction` selects the policy ([`Compaction`]). *Logical* compaction (section 5) needs no
//! operator: a probe collects the matches of a chunk over all steps of its chains and passes them on
//! together, as selections of the probe side beside columns that are gathered once ([`super::join`]).
//!
//! Invariant: rows are neither lost nor changed. Rows may be held back beyond the end of their morsel, so
//! compaction is used only where order is lost anyway. There is none before sinks that collect rows
//! themselves: build sides and sorts.

pub mod costs;
mod policy;
mod standing;

use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use crate::exec::profile::Recorder;
use crate::exec::row_copier::RowCopier;
use crate::settings::Compaction;
use crate::sync::{AtomicU64, Ordering};
use entasis_vector::{Chunk, PhysicalType, Result};
pub(crate) use policy::learns;
use policy::{Policy, Thresholds};
pub(crate) use standing::Standing;
use std::sync::Arc;

/// Copies small chunks together.
pub(crate) struct Compact {
    /// The columns' physical types.
    types: Vec<PhysicalType>,
    /// Rows of a full chunk.
    chunk_rows: usize,
    policy: Policy,
    /// Records at the end what came in and went out.
    recorder: Arc<Recorder>,
    traffic: Traffic,
}

/// Chunks and rows in, and chunks out, of all workers.
#[derive(Default)]
struct Traffic {
    rows: AtomicU64,
    chunks_in: AtomicU64,
    chunks_out: AtomicU64,
}

impl Compact {
    /// The compaction of chunks with columns of these types; `None` if `compaction` is off.
    pub(crate) fn new(
        compaction: Compaction,
        types: Vec<PhysicalType>,
        chunk_rows: usize,
        standing: &Standing,
        recorder: &Arc<Recorder>,
    ) -> Option<Compact> {
        let policy = Policy::of(compaction, chunk_rows, standing)?;
        Some(Compact { types, chunk_rows, policy, recorder: recorder.clone(), traffic: Traffic::default() })
    }

    /// One worker's instance.
    fn instance(self: &Arc<Compact>) -> Worker {
        Worker {
            rows: RowCopier::sharing(&self.types),
            output: Chunk::new(),
            thresholds: self.policy.worker(),
            counts: [0; 3],
            compact: self.clone(),
        }
    }
}

/// A compaction as an operator.
pub(crate) struct Factory(pub Arc<Compact>);

impl OperatorFactory for Factory {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        Ok(Box::new(self.0.instance()))
    }

    fn end(&self) {
        let Compact { traffic, recorder, policy, chunk_rows, .. } = &*self.0;
        policy.end();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (rows, before, after) =
            (count(&traffic.rows), count(&traffic.chunks_in), count(&traffic.chunks_out));
        if before > 0 {
            let mean = |chunks: u64| rows / chunks.max(1);
            recorder.note(format!(
                "compaction: {before} chunks of {} rows in (chunk-reducing factor {:.1}), {after} of {} out; {policy}",
                mean(before),
                *chunk_rows as f64 * before as f64 / rows as f64,
                mean(after),
            ));
        }
    }
}

struct Worker {
    compact: Arc<Compact>,
    rows: RowCopier,
    output: Chunk,
    thresholds: Box<dyn Thresholds>,
    /// Rows, chunks in, and chunks out.
    counts: [u64; 3],
}

impl Worker {
    fn flush(&mut self, next: &mut dyn Push) -> Result<Flow> {
        if self.rows.rows() == 0 {
            return Ok(Flow::Continue);
        }
        self.counts[2] += 1;
        self.rows.lend(&mut self.output);
        let flow = next.push(&mut self.output);
        self.output.reset(0);
        flow
    }

    /// Copies the chunk, or passes it on.
    fn take(&mut self, chunk: &mut Chunk, threshold: usize, next: &mut dyn Push) -> Result<Flow> {
        let chunk_rows = self.compact.chunk_rows;
        let stays = chunk.len() > threshold || chunk.len() >= chunk_rows || chunk.stored().is_some();
        if stays || !self.rows.fits(chunk) {
            self.counts[2] += 1;
            return next.push(chunk);
        }
        if self.rows.rows() + chunk.len() > chunk_rows && self.flush(next)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        let taken = self.rows.append(chunk, 0);
        debug_assert_eq!(taken, chunk.len());
        // Nearly full: the next chunk might not fit. A threshold of more than half a chunk does not tell.
        let spare = if threshold <= chunk_rows / 2 { threshold } else { 0 };
        if self.rows.rows() + spare >= chunk_rows { self.flush(next) } else { Ok(Flow::Continue) }
    }
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        let rows = chunk.len();
        self.counts[0] += rows as u64;
        self.counts[1] += 1;
        let threshold = self.thresholds.before(rows);
        let flow = self.take(chunk, threshold, next)?;
        self.thresholds.after(rows, self.rows.rows() == 0);
        Ok(flow)
    }

    fn finish(&mut self, next: &mut dyn Push) -> Result<Flow> {
        let flow = self.flush(next)?;
        let Traffic { rows, chunks_in, chunks_out } = &self.compact.traffic;
        for (counter, count) in [rows, chunks_in, chunks_out].into_iter().zip(self.counts) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
        Ok(flow)
    }
}

#[cfg(test)]
mod tests;
