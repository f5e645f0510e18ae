//! Runs a plan: it is cut into pipelines, which are planned as data, made, and run in order by the workers of
//! the statement.

use crate::context::QueryContext;
use crate::exec::operator::Sink;
use crate::exec::physical::{self, Planner};
use crate::exec::pipeline::{self, Pipeline};
use crate::exec::profile::{Profile, Recorder};
use crate::exec::result::{Collector, Output};
use crate::exec::sink::ResultSink;
use crate::plan::Plan;
use entasis_vector::Result;
use entasis_vector::expr::Program;
use std::sync::Arc;
use std::time::Instant;

/// Runs an optimized plan and hands its rows, the plan's output columns in order, to `sink`. The columns have
/// their types' default physical types; with an order, the rows come from one worker.
///
/// # Errors
/// Input errors of expressions and relations, resource errors, interruption, and whatever the sink raises.
pub fn execute(plan: &Plan, context: &QueryContext, sink: &dyn ResultSink) -> Result<Profile> {
    let start = Instant::now();
    context.progress.set(0.0);
    let (pipelines, root) = pipelines(plan, context, Arc::new(Output(sink)))?;
    pipeline::run_all(pipelines, context)?;
    context.progress.set(1.0);
    Ok(Profile {
        root: context.settings.profile.then(|| root.report()),
        nanoseconds: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
    })
}

/// The pipelines of an optimized plan, the last of which end in `sink`, and the recorder of its root.
fn pipelines<'s>(
    plan: &Plan,
    context: &QueryContext,
    sink: Arc<dyn Sink + 's>,
) -> Result<(Vec<Pipeline<'s>>, Arc<Recorder>)> {
    physical::instantiate(Planner::plan(plan, context)?, context, sink)
}

/// The compiled expressions of an optimized plan: each operator that has any, in the order in which they run,
/// with its programs and conditions below it. Nothing is run.
///
/// # Errors
/// Those of compiling expressions and of opening relations.
pub fn programs(plan: &Plan, context: &QueryContext) -> Result<String> {
    let mut context = context.clone();
    // Recorders have the names of their operators.
    Arc::make_mut(&mut context.settings).profile = true;
    let sink = Collector::new(&context, Vec::new());
    let (pipelines, _) = pipelines(plan, &context, Arc::new(Output(&sink)))?;
    let mut text = String::new();
    let mut write = |recorder: &Recorder, conditions: Vec<String>, programs: Vec<&Program>| {
        let parts: Vec<String> =
            conditions.into_iter().chain(programs.iter().map(|p| p.to_string())).collect();
        if !parts.is_empty() {
            text += &format!("{}\n", recorder.title());
        }
        for line in parts.join("\n").lines() {
            text += &format!("    {line}\n");
        }
    };
    let mut seen = Vec::new();
    // Operators after a join occur once in each part of the stream.
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
