//! Limit: passes on a range of the rows, in the order in which they come, and then stops.
//!
//! The physical planner gives the pipeline to one worker, so that rows come in the order of the source:
//! without an `ORDER BY`, `LIMIT` outputs the first rows as they are stored. If the source has no order (such
//! as groups that are merged when they are read), several workers share one counter, and so do the parts of a
//! `UNION ALL`.

use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use crate::sync::{AtomicUsize, Ordering};
use entasis_vector::{Buffer, Chunk, Result};
use std::sync::Arc;

/// Passes on a range of the rows.
pub(crate) struct Limit {
    offset: usize,
    /// The end of the range.
    end: usize,
    seen: Arc<AtomicUsize>,
}

impl Limit {
    /// Rows `offset` to `offset + count`.
    pub(crate) fn new(offset: usize, count: Option<usize>) -> Limit {
        let end = count.map_or(usize::MAX, |count| offset.saturating_add(count));
        Limit { offset, end, seen: Arc::default() }
    }
}

impl OperatorFactory for Limit {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        let Limit { offset, end, ref seen } = *self;
        Ok(Box::new(Worker { offset, end, seen: seen.clone(), picks: Vec::new(), spares: Vec::new() }))
    }
}

struct Worker {
    offset: usize,
    end: usize,
    seen: Arc<AtomicUsize>,
    picks: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        if self.seen.load(Ordering::Relaxed) >= self.end {
            return Ok(Flow::Stop);
        }
        let start = self.seen.fetch_add(chunk.len(), Ordering::Relaxed);
        let first = self.offset.saturating_sub(start).min(chunk.len());
        let last = self.end.saturating_sub(start).min(chunk.len());
        if first < last {
            if last - first < chunk.len() {
                self.picks.clear();
                self.picks.extend(first as u16..last as u16);
                chunk.select(&self.picks, &mut self.spares);
            }
            if next.push(chunk)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(if start + last >= self.end { Flow::Stop } else { Flow::Continue })
    }
}
