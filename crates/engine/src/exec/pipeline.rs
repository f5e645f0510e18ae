//! Pipelines: what runs between two places where rows must wait, and the loop that runs it.
//!
//! A [`Pipeline`] is a source, streaming operators and a sink. Every worker makes its own instance of each,
//! pulls chunks from the source and pushes them through; operators call each other by plain nesting
//! ([`Chain`]), so a chunk's way is one virtual call per operator and no allocation. The worker that finds
//! the source empty finishes its operators from the source's end to the sink's, then its sink. When the last
//! of the pipelines that end in a sink is through, the sink's shared part is finished.
//!
//! Where it is decided while the statement runs which of two ways it takes, the pipelines of the other one
//! are left out ([`Switch`]).
//!
//! Invariants: one pipeline runs at a time, so whatever a pipeline needs is complete before it starts. A
//! chunk is cleared as soon as its push returns, so that its vectors' owners may write them again.
//! Cancellation is looked at once a chunk.

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

/// Where rows come from and which operators they pass: a pipeline without its end.
#[derive(Clone)]
pub(crate) struct Part {
    /// Where chunks are pulled from.
    pub source: Arc<dyn Source>,
    /// Whose work the source is.
    pub recorder: Arc<Recorder>,
    /// In the order of the rows' way.
    pub operators: Vec<(Arc<dyn OperatorFactory>, Arc<Recorder>)>,
    /// Rows that the source gives, an estimate.
    pub rows: f64,
    /// One worker only, unless the source has no order: the order of the rows counts.
    pub ordered: bool,
    /// Chunks may have few rows.
    pub sparse: bool,
    /// It runs only if each of these switches is turned, or is not, when its time comes.
    pub only_if: Vec<(Arc<Switch>, bool)>,
}

/// Which of two ways a statement takes, where it is decided while it runs.
#[derive(Default)]
pub(crate) struct Switch(AtomicBool);

impl Switch {
    /// The second way is taken. To be called before a part runs that belongs to either.
    pub(crate) fn turn(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// True if the second way is taken.
    pub(crate) fn is_turned(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Part {
    /// A source of about `rows` rows, as yet without operators; its work is `recorder`'s.
    pub(crate) fn new(source: Arc<dyn Source>, recorder: &Arc<Recorder>, rows: f64) -> Part {
        let (recorder, operators, only_if) = (recorder.clone(), Vec::new(), Vec::new());
        Part { source, recorder, operators, rows, ordered: false, sparse: false, only_if }
    }

    /// True if it belongs to a way that is not taken, as things stand.
    pub(crate) fn is_left_out(&self) -> bool {
        self.only_if.iter().any(|(switch, turned)| switch.is_turned() != *turned)
    }
}

/// A part and the sink that it ends in.
pub(crate) struct Pipeline<'a> {
    /// The way to the sink.
    pub part: Part,
    /// The end.
    pub sink: Arc<dyn Sink + 'a>,
    /// Whose work the sink is.
    pub recorder: Arc<Recorder>,
    /// True if no later pipeline ends in this sink.
    pub completes_sink: bool,
    /// Number of the pipeline among those of the sink: the upper bits of its morsels.
    pub part_number: u64,
}

/// Runs pipelines in order. Each is dropped, and with it the memory that only it needed, before the next
/// starts.
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
    /// Runs to the end; `base` and `share` place it in the statement's progress.
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
                // What no more is wanted of may fail: for lack of memory, say, that others have.
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
    /// Time from coming in to coming back, levels further on included.
    nanoseconds: u64,
}

fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// What is left of a chunk's way: operators, then the sink.
struct Chain<'a> {
    operators: &'a mut [Box<dyn Operator>],
    sink: &'a mut dyn SinkWorker,
    /// Of the first operator and what follows; empty or absent without profiling.
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
