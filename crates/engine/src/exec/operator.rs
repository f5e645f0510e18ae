//! The roles in a pipeline: *source → operators → sink*, and what each owns.
//!
//! Every role comes in two parts. The shared part (`Source`, `OperatorFactory`, `Sink`) is made once and used
//! by all workers; the worker's part (`SourceWorker`, `Operator`, `SinkWorker`) belongs to one thread and
//! needs no locks. An operator that must see all rows before it gives one (a hash table, a sort) is a
//! [`Blocking`]: the sink of one pipeline and the source of the next.
//!
//! Chunks are *pushed*: each operator changes a chunk in place or builds its own, and pushes the result to
//! the [`Push`] that it was given, once for each chunk that it makes. The contents of a chunk are valid until
//! that push returns and no longer; an operator that keeps something copies it.

use crate::context::QueryContext;
use crate::relation::Source;
use crate::sync::{Mutex, lock};
use entasis_vector::expr::Program;
use entasis_vector::{Chunk, Result};
use std::sync::Arc;

/// Whether more rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// More rows are wanted.
    Continue,
    /// No operator downstream wants more rows: the worker may stop its source.
    Stop,
}

/// Where an operator pushes its output: the next operator, or the sink.
pub trait Push {
    /// Takes a chunk; it may be changed.
    ///
    /// # Errors
    /// Whatever happens downstream.
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow>;

    /// True once no more rows of the pipeline's source are wanted, or a worker has failed. For operators next
    /// to the source that make many rows of one; rows that other operators hold back are still wanted.
    fn is_over(&self) -> bool {
        false
    }
}

/// Makes one worker's instance of a streaming operator.
pub trait OperatorFactory: Send + Sync {
    /// A new instance.
    ///
    /// # Errors
    /// Resource, if there is no memory for it.
    fn worker(&self) -> Result<Box<dyn Operator>>;

    /// The compiled expressions that each worker runs, for `EXPLAIN (VERBOSE)`.
    fn programs(&self) -> Vec<&Program> {
        Vec::new()
    }

    /// Called when all workers of a pipeline with this operator have ended, to note for `EXPLAIN ANALYZE`
    /// what became of their rows. Not called if a worker has failed, or if the pipeline is skipped.
    fn end(&self) {}
}

/// A streaming operator in one worker's pipeline.
pub trait Operator: Send {
    /// Takes a chunk, which is not empty, and pushes its output to `next`.
    ///
    /// # Errors
    /// Input errors of expressions, resource errors, and whatever `next` raises.
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow>;

    /// The worker's input has ended: pushes what is still held back.
    ///
    /// # Errors
    /// As for `push`.
    fn finish(&mut self, next: &mut dyn Push) -> Result<Flow> {
        let _ = next;
        Ok(Flow::Continue)
    }
}

/// The end of a pipeline.
pub trait Sink: Send + Sync {
    /// A new worker's part.
    ///
    /// # Errors
    /// Resource, if there is no memory for it.
    fn worker(&self) -> Result<Box<dyn SinkWorker>>;

    /// The compiled expressions that each worker runs, for `EXPLAIN (VERBOSE)`.
    fn programs(&self) -> Vec<&Program> {
        Vec::new()
    }

    /// Completes the shared part, when all workers of all pipelines that end here have finished. `tasks` runs
    /// work on all workers.
    ///
    /// # Errors
    /// Those of the work that is left.
    fn finish(&self, tasks: &dyn Tasks) -> Result<()>;
}

/// A sink's part in one worker's pipeline.
pub trait SinkWorker: Send {
    /// The next chunks are of the source's morsel `morsel`. For sinks that keep the order of the source.
    fn start_morsel(&mut self, morsel: u64) {
        let _ = morsel;
    }

    /// Takes a chunk, which is not empty. What is kept must be copied.
    ///
    /// # Errors
    /// Input errors of expressions, resource errors.
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow>;

    /// Hands the worker's part over to the shared part, when the worker's input has ended.
    ///
    /// # Errors
    /// Resource errors.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Runs independent tasks on all workers; what a sink's `finish` is given.
pub trait Tasks: Sync {
    /// Calls `task` with 0, 1, … `count` - 1, on any thread and in any order, and returns when all are done.
    ///
    /// # Errors
    /// The first error of a task; the rest may not run.
    fn run(&self, count: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()>;

    /// Fails once the statement is to stop. To be called within tasks that may take long.
    ///
    /// # Errors
    /// Interrupted.
    fn check(&self) -> Result<()>;
}

/// Runs tasks on the calling worker only, because the others are busy.
pub(crate) struct Alone<'a>(pub &'a QueryContext);

impl Tasks for Alone<'_> {
    fn run(&self, count: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        (0..count).try_for_each(|i| {
            self.0.check()?;
            task(i)
        })
    }

    fn check(&self) -> Result<()> {
        self.0.check()
    }
}

/// Calls `work` with each part and its index, on all workers. Parts are not shared between calls.
///
/// # Errors
/// The first error of `work`; the rest may not run.
pub fn in_parallel<T: Send>(
    tasks: &dyn Tasks,
    parts: Vec<T>,
    work: &(dyn Fn(usize, &mut T) -> Result<()> + Sync),
) -> Result<()> {
    // Each lock is taken once, so there is no contention.
    let parts: Vec<Mutex<T>> = parts.into_iter().map(Mutex::new).collect();
    tasks.run(parts.len(), &|i| work(i, &mut lock(&parts[i])))
}

/// An operator that takes all its input before it gives output: sink of one pipeline (or several), source of
/// the next.
pub struct Blocking {
    /// Where rows go in.
    pub sink: Arc<dyn Sink>,
    /// Where rows come out, once the sink has finished.
    pub source: Arc<dyn Source>,
}
