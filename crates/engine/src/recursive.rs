//! Recursive common table expressions: rows that are computed of the rows of the round before, until there
//! are no new ones.
//!
//! ```text
//! WITH RECURSIVE reach AS (start UNION step over reach) …
//!
//! rows := start;  last := rows
//! while last is not empty:  last := step over last, without what is in rows already;  rows += last
//! ```
//! 1. The *step* reads the rows of the last round from a [`WorkTable`], which may stand in it several times.
//!    What it reads of shared rows and other recursions that read the work table is
//!    [forgotten](Relation::forget) before each round.
//! 2. Under `UNION` a [hash table](crate::exec) of all rows so far is kept from round to round, so that a
//!    round costs what it reads, not what has been found before. Under `UNION ALL` all rows are new. Under
//!    `USING KEY` the rows so far are a [`dictionary`]: one that comes replaces the one of its key, the rows
//!    of the last round are those that it brought into the dictionary, and the step may read all that is in
//!    it from a second work table.
//! 3. The rows are computed once for all who read them: whoever asks for a part that is not there yet runs
//!    the next [`rounds`]. A reader that may stop early (`LIMIT`) asks part by part, so that a recursion
//!    without an end gives it what it wants; for all others every round is run before they start, since then
//!    several workers can read.
//!
//! Rounds look for interrupts, and all rows count as memory. Not done here: rows that do not fit into memory
//! are not spilled.

mod definition;
mod dictionary;
mod rounds;

use self::definition::Definition;
use self::rounds::Rounds;
use crate::common_subplans::{PartWorker, add_scanned};
use crate::context::QueryContext;
use crate::estimate::estimate_rows;
use crate::plan::{Keeps, Plan};
use crate::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use crate::sync::{AtomicBool, AtomicUsize, Ordering, lock};
use crate::work_table::WorkTable;
use entasis_vector::{Chunk, Result, Schema};
use std::sync::{Arc, Mutex};

/// How many times as many rows as the start has are expected.
const GROWTH: u64 = 10;

/// The rows of a recursive common table expression as a relation.
#[derive(Debug)]
pub struct Recursive {
    definition: Arc<Definition>,
    /// Rows, an estimate.
    estimate: u64,
    /// The rows so far.
    rounds: Arc<Mutex<Rounds>>,
}

impl Recursive {
    /// What `start` gives, and `step` of the rows in `work`, again and again. Both have the outputs that
    /// `work` has as columns.
    pub fn new(start: Plan, step: Plan, work: Arc<WorkTable>, keeps: Keeps) -> Recursive {
        let estimate = (estimate_rows(&start.root, &start.columns) as u64).saturating_mul(GROWTH);
        let definition = Arc::new(Definition { start, step, work, keeps });
        Recursive { definition, estimate, rounds: Arc::default() }
    }
}

impl Relation for Recursive {
    fn name(&self) -> &str {
        self.definition.work.name()
    }

    fn schema(&self) -> &Schema {
        self.definition.work.schema()
    }

    fn statistics(&self) -> Statistics {
        Statistics { rows: Some(self.estimate), columns: Vec::new() }
    }

    fn inputs(&self) -> Vec<Arc<dyn Relation>> {
        let mut all = Vec::new();
        let Definition { start, step, .. } = &*self.definition;
        [start, step].into_iter().for_each(|plan| add_scanned(&plan.root, &mut all));
        all
    }

    fn forget(&self) {
        *lock(&self.rounds) = Rounds::default();
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(Scan {
            definition: self.definition.clone(),
            rounds: self.rounds.clone(),
            wanted: request.columns.iter().map(|(_, index)| *index).collect(),
            // Progress is that of the whole statement.
            context: QueryContext { progress: Arc::default(), ..context.clone() },
            stops_early: AtomicBool::new(false),
            next: Arc::default(),
        }))
    }
}

/// A scan of the rows of a recursion.
struct Scan {
    definition: Arc<Definition>,
    rounds: Arc<Mutex<Rounds>>,
    wanted: Arc<[usize]>,
    context: QueryContext,
    /// Rows are wanted part by part.
    stops_early: AtomicBool,
    /// The part that the next worker takes.
    next: Arc<AtomicUsize>,
}

impl Source for Scan {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let (definition, rounds) = (self.definition.clone(), self.rounds.clone());
        let (context, next) = (self.context.clone(), self.next.clone());
        let take = move |chunk: &mut Chunk| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let part = lock(&rounds).part(number, &definition, &context)?;
            Ok(part.map(|part| {
                *chunk = part;
                number as u64
            }))
        };
        let chunk_rows = self.context.settings.chunk_rows;
        Ok(Box::new(PartWorker::new(take, self.wanted.clone(), chunk_rows)))
    }

    fn pieces(&self) -> Option<usize> {
        // An error is raised by the worker that reads.
        match self.stops_early.load(Ordering::Relaxed) {
            true => Some(1),
            false => Some(lock(&self.rounds).complete(&self.definition, &self.context).max(1)),
        }
    }

    fn stops_early(&self) {
        self.stops_early.store(true, Ordering::Relaxed);
    }
}
