//! Swapped sides: if far more build rows arrive than the plan expected, the other side may become the build
//! side.
//!
//! The build side is chosen by estimates. Those of filters, joins and groups may be wrong by orders of
//! magnitude, and a table of many rows probed by few costs more than one of few rows probed by many: it is
//! larger than the caches, so each build row costs a cache miss. So, if far more rows may arrive than
//! expected:
//!
//! 1. Each worker keeps its rows of the build side, as usual.
//! 2. When all have arrived, before a table is built, the rest of the join is costed again, with a table of
//!    these rows and with a table of the other side ([`Costs::left_to_do`](crate::cost::Costs::left_to_do)).
//! 3. If the other way is far cheaper, the [`Switch`] is turned: the probe side runs into a build sink of its
//!    own, and the kept rows become the source of the probe ([`KeptRows`]). Nothing is read twice, and no row
//!    is lost.
//!
//! [`crate::exec::physical`] plans both ways. Hybrid hash joins reverse roles for a partition (Graefe, *Query
//! Evaluation Techniques for Large Databases*, 1993, section 5.2); here roles are reversed for the whole
//! join, before a table is built.
//!
//! Invariants: the switch is turned once, before either probe side starts. The output has the same rows and
//! columns either way.
//!
//! Not here: rows that were written to files; build sides that are read twice, whose number of rows is well
//! known; joins whose probe side comes in an order that matters; a probe side that turns out larger than
//! expected.

#[cfg(test)]
mod tests;

use super::side::Weighed;
use crate::exec::join::tuning::{DEARER, FAR_MORE, SWAP_ROWS};
use crate::exec::key_filter::Expected;
use crate::exec::materialized::Materialized;
use crate::exec::pipeline::Switch;
use crate::memory::Reservation;
use crate::plan::Node;
use crate::relation::{Source, SourceWorker};
use crate::settings::Swapping;
use crate::sync::{AtomicUsize, OnceLock, Ordering};
use entasis_vector::{Chunk, Error, Result, Selection, Vector};
use std::sync::Arc;

/// A join whose sides may be swapped.
pub(crate) struct Swap {
    setting: Swapping,
    weighed: Weighed,
    switch: Arc<Switch>,
    /// The rows that were kept, once the sides have been swapped.
    kept: OnceLock<(Materialized, Reservation)>,
}

/// One of the two ways in which a join with swappable sides is planned.
#[derive(Clone)]
pub(crate) enum Way {
    /// The way of the plan.
    AsPlanned(Arc<Swap>),
    /// The way with the sides swapped.
    Swapped(Arc<Swap>),
}

impl Way {
    /// What is expected of the probe side.
    pub(crate) fn expected(way: Option<&Way>, expected: Expected) -> Expected {
        match way {
            Some(Way::Swapped(swap)) => {
                let rows = swap.kept.get().map_or(expected.rows, |(rows, _)| rows.rows() as f64);
                Expected { rows, ..expected }
            }
            _ => expected,
        }
    }
}

impl Swap {
    /// False if the sides of a join whose build side is `node` are never swapped.
    pub(crate) fn is_wanted(node: &Node, weighed: &Weighed, setting: Swapping) -> bool {
        match setting {
            Swapping::Auto => most_rows(node) > SWAP_ROWS.max(FAR_MORE * weighed.kept_rows()),
            Swapping::Off => false,
            Swapping::Always => true,
        }
    }

    /// The swap of a join that is planned both ways.
    pub(crate) fn new(setting: Swapping, weighed: Weighed) -> Arc<Swap> {
        Arc::new(Swap { setting, weighed, switch: Arc::default(), kept: OnceLock::new() })
    }

    /// The switch, which is turned if the sides are swapped.
    pub(crate) fn switch(&self) -> &Arc<Switch> {
        &self.switch
    }

    /// The reason to swap the sides, with this many rows on the build side; `None` to keep them.
    pub(crate) fn reason(&self, rows: usize) -> Option<String> {
        if self.setting == Swapping::Always {
            return Some("sides swapped: join_swap = always".into());
        }
        let expected = self.weighed.kept_rows();
        let (stay, swap) =
            self.weighed.left_to_do(rows as f64).filter(|_| rows as f64 > FAR_MORE * expected)?;
        let [stays, swaps] = [stay, swap].map(|cost| cost / 1e6);
        (stay > DEARER * swap).then(|| {
            format!(
                "sides swapped: {rows} build rows arrived, {expected:.0} were expected; estimated {swaps:.3} ms swapped, {stays:.3} ms otherwise"
            )
        })
    }

    /// Swaps the sides: `rows`, all rows of the build side, with the reservation `memory`, become the probe
    /// side.
    ///
    /// # Errors
    /// Internal, if they have been swapped before.
    pub(crate) fn turn(&self, rows: Materialized, memory: Reservation) -> Result<()> {
        self.kept.set((rows, memory)).map_err(|_| Error::internal("a join was swapped twice"))?;
        self.switch.turn();
        Ok(())
    }

    /// The source of the rows that were kept, with all their columns.
    pub(crate) fn rows(self: &Arc<Swap>, chunk_rows: usize) -> Arc<dyn Source> {
        Arc::new(KeptRows { swap: self.clone(), chunk_rows, next: Arc::default() })
    }
}

/// An upper bound of the rows of `node` that hardly ever fails: the stored rows below it. Joins that multiply
/// rows are rare.
fn most_rows(node: &Node) -> f64 {
    match node {
        Node::Scan(scan) => scan.relation.rows().map_or(f64::INFINITY, |rows| rows as f64),
        Node::Values(values) => values.rows.len() as f64,
        _ => node.children().into_iter().map(most_rows).sum(),
    }
}

/// See [`Swap::rows`]. Its morsels are segments of the kept rows.
#[derive(Clone)]
struct KeptRows {
    swap: Arc<Swap>,
    chunk_rows: usize,
    /// The next segment.
    next: Arc<AtomicUsize>,
}

impl KeptRows {
    fn kept(&self) -> Result<&Materialized> {
        let kept = self.swap.kept.get().map(|(rows, _)| rows);
        kept.ok_or_else(|| Error::internal("rows of a join are probed that were not kept"))
    }
}

impl Source for KeptRows {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let vectors = self.kept()?.columns().iter().map(|meta| Vector::new(meta.physical)).collect();
        Ok(Box::new(KeptRowsWorker { source: self.clone(), vectors, segment: None, offset: 0 }))
    }

    fn progress(&self) -> Option<f64> {
        let segments = self.kept().ok()?.segments().max(1);
        Some((self.next.load(Ordering::Relaxed) as f64 / segments as f64).min(1.0))
    }

    fn pieces(&self) -> Option<usize> {
        self.kept().ok().map(Materialized::segments)
    }
}

struct KeptRowsWorker {
    source: KeptRows,
    vectors: Vec<Vector>,
    segment: Option<usize>,
    /// The next row of the segment.
    offset: usize,
}

impl SourceWorker for KeptRowsWorker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let rows = self.source.kept()?;
        let segment = loop {
            match self.segment {
                Some(segment) if self.offset < rows.segment_rows(segment) => break segment,
                _ => {}
            }
            let segment = self.source.next.fetch_add(1, Ordering::Relaxed);
            if segment >= rows.segments() {
                return Ok(false);
            }
            (self.segment, self.offset) = (Some(segment), 0);
        };
        let count = self.source.chunk_rows.min(rows.segment_rows(segment) - self.offset);
        chunk.reset(count);
        let group = chunk.push_group(Selection::ALL);
        for (column, vector) in self.vectors.iter_mut().enumerate() {
            rows.read(column, segment, self.offset, count, vector);
            chunk.push_column(vector.clone(), group);
        }
        self.offset += count;
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.segment.unwrap_or(0) as u64
    }
}
