//! The end of an aggregation: the partials of all workers become parts, such that no group is in two parts.
//!
//! Few groups, groups that are found without hashing, and states that can only be merged whole are merged
//! into the largest partial, one after another; the latter in the order of their first rows, into the first.
//! A single partial is a part as it is, unless rows wait ([`super::spill`]). Other groups are sealed and
//! partitioned by hash; each partition is merged when its rows are read, by the worker that reads them
//! ([`super::late`]).

use super::late::Late;
use super::layout::AggregateLayout;
use super::part::{FinishedGroups, Morsel};
use super::partial::Partial;
use super::spill::Spill;
use crate::context::QueryContext;
use crate::exec::group_table::GroupTable;
use crate::exec::operator::Tasks;
use crate::sync::{AtomicUsize, Ordering};
use entasis_vector::Result;
use std::sync::Arc;

/// The most groups, over all partials, that are merged on one thread.
const FEW_GROUPS: usize = 16 << 10;
/// Rows of a result morsel.
const MORSEL_ROWS: usize = 16 << 10;

/// All groups, for any number of workers to read.
pub enum Merged {
    /// Groups that are merged already.
    Whole {
        /// The groups.
        part: Arc<FinishedGroups>,
        /// The first group that no worker has taken.
        next: AtomicUsize,
    },
    /// Groups that are merged partition by partition.
    Late(Box<Late>),
}

impl Merged {
    /// Merges `partials` and the waiting rows of `spill`, if there are any: now, or when they are read.
    ///
    /// # Errors
    /// Those of the states; resource.
    pub fn new(
        layout: &AggregateLayout,
        context: &QueryContext,
        mut partials: Vec<Partial>,
        spill: Option<&Arc<Spill>>,
        tasks: &dyn Tasks,
    ) -> Result<Merged> {
        let collide = context.settings.hash_collisions;
        let groups: usize = partials.iter().map(|partial| partial.table.groups()).sum();
        let is_done = partials.len() == 1;
        let is_direct = partials.iter().all(|partial| partial.table.is_direct());
        let is_cheap = groups <= FEW_GROUPS || is_direct || layout.merges_whole() || layout.keys.is_empty();
        // Merging one into another needs at most as much memory again; where keys are indexes, none.
        let bytes: usize = partials.iter().map(|partial| partial.reservation.bytes()).sum();
        let fits = is_done || is_direct || spill.is_none() || bytes <= context.memory.free();
        let has_rows = spill.is_some_and(|spill| !spill.store.is_empty());
        if has_rows || !fits || !(is_done || is_cheap) {
            return Ok(Merged::Late(Box::new(Late::new(layout, partials, spill, context, tasks)?)));
        }
        // States that are merged whole may depend on the order of their rows: the parts of a union keep
        // theirs.
        partials.sort_by_key(|partial| partial.first_morsel);
        let first = match layout.merges_whole() {
            true => (!partials.is_empty()).then_some(0),
            false => (0..partials.len()).max_by_key(|&at| partials[at].table.groups()),
        };
        let mut whole = match first {
            Some(at) => partials.remove(at),
            None => Partial::new(layout, GroupTable::new(&layout.keys, 0, collide), context)?,
        };
        for partial in partials {
            context.check()?;
            whole.absorb(partial)?;
        }
        whole.complete(layout, tasks)?;
        Ok(Merged::Whole { part: Arc::new(FinishedGroups::new(whole)?), next: AtomicUsize::new(0) })
    }

    /// Groups that no worker has taken; `None` if there are none.
    ///
    /// # Errors
    /// Those of the states and of files; resource; interrupted.
    pub fn next(&self, layout: &AggregateLayout) -> Result<Option<Morsel>> {
        match self {
            Merged::Whole { part, next } => {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let start = (number * MORSEL_ROWS).min(part.groups);
                let groups = start..part.groups.min(start + MORSEL_ROWS);
                let is_over = groups.is_empty();
                Ok((!is_over).then(|| Morsel { number: number as u64, part: part.clone(), groups }))
            }
            Merged::Late(late) => late.next(layout),
        }
    }

    /// The share of groups that has been taken, 0 to 1.
    pub fn progress(&self) -> f64 {
        match self {
            Merged::Whole { part, next } => {
                let taken = next.load(Ordering::Relaxed) * MORSEL_ROWS;
                taken.min(part.groups) as f64 / part.groups.max(1) as f64
            }
            Merged::Late(late) => late.progress(),
        }
    }

    /// How many workers could read at the same time; `None`: as many as are worthwhile for the rows.
    pub fn pieces(&self) -> Option<usize> {
        match self {
            Merged::Whole { .. } => None,
            Merged::Late(late) => Some(late.waiting()),
        }
    }

    /// True if groups come out roughly in the order of their first rows: the order of partitions is
    /// arbitrary.
    pub fn has_order(&self) -> bool {
        matches!(self, Merged::Whole { .. })
    }

    /// How groups were merged, for `EXPLAIN ANALYZE`.
    pub fn report(&self) -> String {
        match self {
            Merged::Whole { .. } => "merged into one".into(),
            Merged::Late(late) => late.report(),
        }
    }
}
