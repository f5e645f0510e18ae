//! Optimizes and runs the plans of a statement.

pub(crate) mod explain;
pub(crate) mod summarize;

use crate::session::Session;
use crate::values::rows::Rows;
use entasis_engine::common_subplans;
use entasis_engine::exec::{self, Collector, Profile, ResultSink};
use entasis_engine::plan::Plan;
use entasis_vector::Result;

/// Optimizes a plan and runs it into `sink`.
pub(crate) fn execute(session: &Session, plan: Plan, sink: &dyn ResultSink) -> Result<Profile> {
    let context = session.context();
    let plan = common_subplans::optimize(plan, &context.settings)?;
    exec::execute(&plan, &context, sink)
}

/// Runs a query and keeps its rows.
pub(crate) fn query(session: &Session, plan: Plan) -> Result<Rows> {
    let schema = plan.schema();
    let context = session.context();
    let collector = Collector::new(&context, schema.iter().map(|field| field.ty).collect());
    execute(session, plan, &collector)?;
    Ok(Rows::new(schema, collector.into_chunks(), context))
}
