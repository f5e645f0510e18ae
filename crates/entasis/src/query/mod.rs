//! Optimizes and runs the plans of a statement.

pub(crate) mod explain;
pub(crate) mod summarize;

use crate::session::Session;
use crate::values::rows::Rows;
use entasis_engine::common_subplans;
use entasis_engine::exec::{self, Collector, Profile, ResultSink};
use entasis_engine::plan::{Aggregate, Distinct, Filter, Limit, Node, Plan, Project, Sort};
use entasis_sql::FreedAside;
use entasis_vector::Result;

/// Optimizes a plan and runs it into `sink`.
pub(crate) fn execute(session: &Session, plan: Plan, sink: &dyn ResultSink) -> Result<Profile> {
    let context = session.context();
    let mut plan = common_subplans::optimize(plan, &context.settings)?;
    let outcome = exec::execute(&plan, &context, sink);
    free_values(&mut plan.root);
    outcome
}

/// Frees the rows of long VALUES at the bottom of a plan aside. Its snapshots go with the statement.
fn free_values(mut node: &mut Node) {
    loop {
        node = match node {
            Node::Values(values) => {
                let cells = values.rows.len().saturating_mul(values.columns.len() + 1);
                drop(FreedAside::new(std::mem::take(&mut values.rows), cells));
                return;
            }
            Node::Filter(Filter { input, .. })
            | Node::Project(Project { input, .. })
            | Node::Aggregate(Aggregate { input, .. })
            | Node::Distinct(Distinct { input, .. })
            | Node::Sort(Sort { input, .. })
            | Node::Limit(Limit { input, .. }) => input,
            _ => return,
        };
    }
}

/// Runs a query and keeps its rows.
pub(crate) fn query(session: &Session, plan: Plan) -> Result<Rows> {
    let schema = plan.schema();
    let context = session.context();
    let collector = Collector::new(&context, schema.iter().map(|field| field.ty).collect());
    execute(session, plan, &collector)?;
    Ok(Rows::new(schema, collector.into_chunks(), context))
}
