//! Pipelines, and the loop that runs them.
//!
//! A [`Pipeline`] is a source, streaming operators and a sink. Every worker makes its own instance of each,
//! pulls chunks from the source and pushes them through. Operators call each other directly ([`Chain`]), so a
//! chunk takes one virtual call for each operator, and no allocation. A worker that finds the source empty
//! finishes its operators, from the first to the last, and then its sink. When the last of the pipelines that
//! end in a sink has run, the sink's shared part is finished.
//!
//! If a statement decides at run time which of two planned ways it takes ([`Switch`]), the pipelines of the
//! other one are skipped.
//!
//! Invariants: one pipeline runs at a time, so whatever a pipeline needs is complete before it starts. A
//! chunk is cleared as soon as its push returns, so that the owners of its vectors may write them again.
//! Cancellation is checked once a chunk.

use crate::context::QueryContext;
use crate::context::workers::FirstError;
use crate::exec::operator::{Flow, Operator, OperatorFactory, Push, Sink, SinkWorker};
use crate::exec::profile::Recorder;
use crate::exec::scheduler::PoolTasks;
use crate::relation::Source;
use crate::sync::{AtomicBool, CHUNKS_FOR_HELP, Ordering, within};
use entasis_vector::statement::Statement;
use entasis_vector::{Chunk, Result};
use std::sync::Arc;
use std::time::Instant;

/// A pipeline without its sink: a source and operators.
pub(crate) struct Part {
    /// Where chunks are pulled from.
    pub source: Arc<dyn Source>,
    /// The plan node to which the source belongs.
    pub recorder: Arc<Recorder>,
    /// The operators in the order in which rows pass them, with their plan nodes.
    pub operators: Vec<(Arc<dyn OperatorFactory>, Arc<Recorder>)>,
    /// The estimated number of rows that the source gives.
    pub rows: f64,
    /// The order of rows matters: one worker only, unless the source has no order.
    pub ordered: bool,
    /// The part only runs if each of these switches is turned, or is not turned, when it would start.
    pub only_if: Vec<(Arc<Switch>, bool)>,
}

/// Which of two planned ways a statement takes, decided at run time.
#[derive(Default)]
pub(crate) struct Switch(AtomicBool);

impl Switch {
    /// Takes the second way. To be called before a part of either way runs.
    pub(crate) fn turn(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// True if the second way is taken.
    pub(crate) fn is_turned(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Part {
    /// True if it belongs to a way that is not taken at present.
    pub(crate) fn is_left_out(&self) -> bool {
        self.only_if.iter().any(|(switch, turned)| switch.is_turned() != *turned)
    }
}

/// A part and its sink.
pub(crate) struct Pipeline<'a> {
    /// The source and the operators.
    pub part: Part,
    /// The sink.
    pub sink: Arc<dyn Sink + 'a>,
    /// Whose work the sink is.
    pub recorder: Arc<Recorder>,
    /// No later pipeline ends in this sink.
    pub completes_sink: bool,
    /// The index of the pipeline among those of its sink: the upper bits of its morsels.
    pub part_number: u64,
}

/// Runs pipelines in order. Each is dropped before the next starts, and so frees the memory that only it
/// needed.
///
/// # Errors
/// The first error of any worker.
pub(crate) fn run_all(pipelines: Vec<Pipeline<'_>>, context: &QueryContext) -> Result<()> {
    let total: f64 = pipelines.iter().map(|p| p.part.rows.max(1.0)).sum();
    let mut done = 0.0;
    for pipeline in pipelines {
        let weight = pipeline.part.rows.max(1.0);
        pipeline.run(context, done / total, weight / total)?;
        done += weight;
        context.progress.set(done / total);
    }
    Ok(())
}

impl Pipeline<'_> {
    /// Runs the pipeline; `base` and `share` are its part of the statement's progress.
    fn run(&self, context: &QueryContext, base: f64, share: f64) -> Result<()> {
        context.check()?;
        let chunks = self.part.rows / context.settings.chunk_rows as f64;
        let alone = self.part.ordered || chunks < CHUNKS_FOR_HELP;
        let threads = context.settings.threads.max(1);
        let workers = match self.part.source.pieces() {
            _ if self.part.is_left_out() => 0,
            Some(pieces) if self.part.ordered && self.part.source.has_order() => pieces.min(1),
            Some(pieces) => pieces.min(threads),
            None if alone => 1,
            None => threads,
        };
        if workers > 0 {
            let outcome = FirstError::default();
            let statement: Arc<dyn Statement> = Arc::new(context.clone());
            context.pool.run(workers, &|worker| {
                let progress = (worker == 0).then_some((base, share));
                outcome.guard(|| within(statement.clone(), || self.run_worker(context, &outcome, progress)));
            });
            outcome.into_result()?;
        }
        if !self.part.is_left_out() {
            self.part.source.end();
            self.part.operators.iter().for_each(|(operator, _)| operator.end());
        }
        if self.completes_sink {
            let start = context.settings.profile.then(Instant::now);
            self.sink.finish(&PoolTasks(context))?;
            if let Some(start) = start {
                self.recorder.add_time(nanoseconds(start));
            }
        }
        Ok(())
    }

    fn run_worker(
        &self,
        context: &QueryContext,
        outcome: &FirstError,
        progress: Option<(f64, f64)>,
    ) -> Result<()> {
        let part = &self.part;
        let mut source = part.source.worker()?;
        let mut operators = part.operators.iter().map(|(o, _)| o.worker()).collect::<Result<Vec<_>>>()?;
        let mut sink = self.sink.worker()?;
        let levels = if context.settings.profile { operators.len() + 2 } else { 0 };
        let mut counts = vec![Count::default(); levels];
        let mut chunk = Chunk::new();
        let mut morsel = None;
        while !outcome.is_stopped() {
            context.check()?;
            let start = (levels > 0).then(Instant::now);
            let more = match source.next(&mut chunk) {
                // Work that is no longer wanted may fail, for example for lack of memory.
                Err(_) if outcome.is_stopped() => break,
                more => more?,
            };
            if let Some(start) = start {
                counts[0].nanoseconds += nanoseconds(start);
            }
            if !more {
                break;
            }
            if chunk.is_empty() {
                chunk.reset(0);
                continue;
            }
            if morsel != Some(source.morsel()) {
                morsel = Some(source.morsel());
                sink.start_morsel(self.part_number << 48 | source.morsel());
                if let (Some((base, share)), Some(done)) = (progress, part.source.progress()) {
                    context.progress.set(base + share * done);
                }
            }
            let counts = counts.get_mut(1..);
            let mut chain = Chain { operators: &mut operators, sink: &mut *sink, counts, outcome };
            let flow = chain.push(&mut chunk)?;
            chunk.reset(0);
            if flow == Flow::Stop {
                outcome.stop();
                break;
            }
        }
        for i in 0..operators.len() {
            let (operator, rest) = operators[i..].split_first_mut().expect("i is in range");
            let start = (levels > 0).then(Instant::now);
            let mut chain =
                Chain { operators: rest, sink: &mut *sink, counts: counts.get_mut(i + 2..), outcome };
            operator.finish(&mut chain)?;
            if let Some(start) = start {
                counts[i + 1].nanoseconds += nanoseconds(start);
            }
        }
        let start = (levels > 0).then(Instant::now);
        sink.finish()?;
        if let Some(start) = start {
            counts[levels - 1].nanoseconds += nanoseconds(start);
            self.record(&counts);
        }
        Ok(())
    }

    /// Adds one worker's counts to the nodes whose work it was. Level 0 is the source, the last one the sink.
    fn record(&self, counts: &[Count]) {
        let part = &self.part;
        let inner = part.operators.iter().map(|(_, recorder)| recorder);
        let recorders: Vec<_> = [&part.recorder].into_iter().chain(inner).chain([&self.recorder]).collect();
        for (level, recorder) in recorders.iter().enumerate() {
            // The source's time is its own; the others' includes what lies below.
            let below = counts.get(level + 1).map_or(0, |next| if level == 0 { 0 } else { next.nanoseconds });
            recorder.add_time(counts[level].nanoseconds.saturating_sub(below));
            if let Some(next) = counts.get(level + 1)
                && !Arc::ptr_eq(recorder, recorders[level + 1])
            {
                recorder.add_output(next.rows, next.chunks);
            }
        }
    }
}

/// What one worker counted at one level.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// Rows and chunks that came in.
    rows: u64,
    chunks: u64,
    /// Time spent at this level and those after it.
    nanoseconds: u64,
}

fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The rest of a chunk's way: operators, then the sink.
struct Chain<'a> {
    operators: &'a mut [Box<dyn Operator>],
    sink: &'a mut dyn SinkWorker,
    /// The counts of the first operator and those after it; absent or empty without profiling.
    counts: Option<&'a mut [Count]>,
    outcome: &'a FirstError,
}

impl Push for Chain<'_> {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        if chunk.is_empty() {
            return Ok(Flow::Continue);
        }
        let Some((count, rest)) = self.counts.as_deref_mut().and_then(<[Count]>::split_first_mut) else {
            return self.step(chunk, None);
        };
        count.rows += chunk.len() as u64;
        count.chunks += 1;
        let start = Instant::now();
        let flow = match self.operators.split_first_mut() {
            None => self.sink.push(chunk),
            Some((first, operators)) => {
                let counts = Some(rest);
                first.push(
                    chunk,
                    &mut Chain { operators, sink: &mut *self.sink, counts, outcome: self.outcome },
                )
            }
        };
        count.nanoseconds += nanoseconds(start);
        flow
    }

    fn is_over(&self) -> bool {
        self.outcome.is_stopped()
    }
}

impl Chain<'_> {
    fn step(&mut self, chunk: &mut Chunk, counts: Option<&mut [Count]>) -> Result<Flow> {
        match self.operators.split_first_mut() {
            None => self.sink.push(chunk),
            Some((first, operators)) => first
                .push(chunk, &mut Chain { operators, sink: &mut *self.sink, counts, outcome: self.outcome }),
        }
    }
}
