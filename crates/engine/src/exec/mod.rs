//! Execution: an optimized plan is cut into pipelines, which a few workers run.

pub mod aggregate;
mod ahead;
mod align;
mod build;
mod compact;
pub mod context;
mod dense;
mod fetch;
mod filter;
mod join;
mod limit;
pub mod materialized;
mod named;
pub mod operator;
mod pipeline;
pub mod profile;
mod project;
mod pushed;
pub mod result;
mod scan;
pub mod scheduler;
mod set_operation;
pub mod sort;
mod spill;
mod spread;
pub mod tuple;
mod values;
mod window;

pub use context::{CancelFlag, MemoryBudget, Progress, QueryContext, Reservation, Settings};
pub use join::filter::FilterKind;
pub use join::partitioned::{JoinLate, JoinSpill};
pub use join::swap::Swapping;
pub use join::table::ordered::Searching;
pub use join::table::{TableKind, parse_wanted, show_wanted};
pub use join::twice::Readings;
pub use profile::{Profile, ProfileNode};
pub use result::{Collector, ResultSet};
pub use scheduler::WorkerPool;
pub use spill::Spilling;
pub use spill::file::TempSpace;
pub use tuple::TempCompression;

use crate::plan::Plan;
use entasis_vector::expr::Program;
use entasis_vector::{Chunk, Result};
use std::sync::Arc;
use std::time::Instant;

/// Runs an optimized plan and hands its rows, the plan's output columns in order, to `sink`. The columns have their
/// types' default physical types; with an order, the rows come from one worker.
///
/// # Errors
/// Input errors of expressions and relations, resource errors, interruption, and whatever the sink raises.
pub fn execute(plan: &Plan, context: &QueryContext, sink: &dyn ResultSink) -> Result<Profile> {
    let start = Instant::now();
    context.progress.set(0.0);
    let (pipelines, root) = build::Builder::build(plan, context, Arc::new(result::Output(sink)))?;
    pipeline::run_all(pipelines, context)?;
    context.progress.set(1.0);
    Ok(Profile {
        root: context.settings.profile.then(|| root.report()),
        nanoseconds: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
    })
}

/// The compiled expressions of an optimized plan: each operator that has any, in the order in which they run, and below it
/// its programs and conditions. Nothing is run.
///
/// # Errors
/// Those of compiling expressions and of opening relations.
pub fn programs(plan: &Plan, context: &QueryContext) -> Result<String> {
    let mut context = context.clone();
    // Recorders know what their operators are called.
    Arc::make_mut(&mut context.settings).profile = true;
    let sink = Collector::new(&context, Vec::new());
    let (pipelines, _) = build::Builder::build(plan, &context, Arc::new(result::Output(&sink)))?;
    let mut text = String::new();
    let mut write = |recorder: &profile::Recorder, conditions: Vec<String>, programs: Vec<&Program>| {
        let parts: Vec<String> = conditions.into_iter().chain(programs.iter().map(|p| p.to_string())).collect();
        if !parts.is_empty() {
            text += &format!("{}\n", recorder.title());
        }
        for line in parts.join("\n").lines() {
            text += &format!("    {line}\n");
        }
    };
    let mut seen = Vec::new();
    // What follows a join is there once for each part of it.
    let mut operators = Vec::new();
    for pipeline in pipelines.iter().filter(|pipeline| !pipeline.part.is_left_out()) {
        let source = &pipeline.part.source;
        write(&pipeline.part.recorder, source.conditions(), source.programs());
        for (operator, recorder) in &pipeline.part.operators {
            if !operators.iter().any(|seen| Arc::ptr_eq(seen, operator)) {
                write(recorder, Vec::new(), operator.programs());
                operators.push(operator.clone());
            }
        }
        // Several pipelines may end in one sink.
        if !seen.iter().any(|sink| Arc::ptr_eq(sink, &pipeline.sink)) {
            write(&pipeline.recorder, Vec::new(), pipeline.sink.programs());
            seen.push(pipeline.sink.clone());
        }
    }
    Ok(text)
}

/// Where the rows of a statement end.
pub trait ResultSink: Send + Sync {
    /// What one worker pushes to. `ordered` results come from a single worker, in order.
    fn worker(&self) -> Result<Box<dyn ResultWorker>>;
}

/// One worker's end of a result.
pub trait ResultWorker: Send {
    /// The next chunks stem from morsel `morsel`; sorting by it restores the order of the source.
    fn start_morsel(&mut self, morsel: u64) {
        let _ = morsel;
    }
    /// Takes the rows of `chunk`, which has the plan's output columns in order. What is kept must be copied.
    ///
    /// # Errors
    /// Whatever the receiver raises; it ends the statement.
    fn push(&mut self, chunk: &Chunk) -> Result<()>;
    /// No more rows come from this worker.
    fn finish(&mut self) -> Result<()>;
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
