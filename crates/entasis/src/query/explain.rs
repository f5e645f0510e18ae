//! `EXPLAIN`: what a statement would do, or did.
//!
//! | | text | `VERBOSE` |
//! |---|---|---|
//! | `EXPLAIN` | the optimized plan | the plan after each rule that changed it, and the programs of its expressions |
//! | `EXPLAIN ANALYZE` | a line for each operator: rows, rows expected, time, memory | all decisions, with their reasons, and the programs |
//!
//! `FORMAT json` gives one value: the operators as a tree, and with `ANALYZE` everything that was measured.
//! Relations that are computed once for several readers are lines of text beside it. A statement that takes
//! another way than a plan says so in its last line; with `VERBOSE` every statement does.
//! `EXPLAIN LAYOUT table` is a page about a table instead ([`crate::layouts`]).

use crate::binding::Names;
use crate::layouts::{self, Binding, Looked};
use crate::session::Session;
use crate::state::interrupt::Interrupt;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_engine::PlanNode;
use entasis_engine::common_subplans;
use entasis_engine::exec::{self, Collector, Profile, ProfileNode};
use entasis_engine::plan::Plan;
use entasis_engine::relation::{Definition, Relation};
use entasis_sql::{Change, Insert, Statement};
use entasis_vector::{DataType, Error, Result, Value};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// What `EXPLAIN` is to show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExplainOptions {
    /// Run the statement and show what each operator did.
    pub analyze: bool,
    /// Show everything.
    pub verbose: bool,
    /// As JSON.
    pub json: bool,
}

/// The route that a statement takes, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteTaken {
    /// Its name.
    pub(crate) route: &'static str,
    /// The reason, or what is done on it.
    pub(crate) why: &'static str,
}

/// The column of `EXPLAIN`.
pub(crate) const PLAN: (&str, DataType) = ("plan", DataType::Varchar);
/// The column of `EXPLAIN LAYOUT`.
pub(crate) const LAYOUT: (&str, DataType) = ("layout", DataType::Varchar);

/// `EXPLAIN`: one row a line, or one row of JSON.
///
/// # Errors
/// Input, if the statement has no plan; not supported, if it is to be run and is no query; those of running
/// it.
pub(crate) fn explain(
    session: &Session,
    statement: Statement,
    options: ExplainOptions,
    chosen: RouteTaken,
) -> Result<Rows> {
    let ExplainOptions { analyze, verbose, json } = options;
    let written = plan_of(statement, analyze)?;
    let mut context = session.context();
    let plan = common_subplans::optimize(written.clone(), &context.settings)?;
    let mut profile = None;
    if analyze {
        Arc::make_mut(&mut context.settings).profile = true;
        let collector = Collector::new(&context, plan.schema().iter().map(|field| field.ty).collect());
        profile = Some(exec::execute(&plan, &context, &collector)?);
    }
    if json {
        let mut content = match &profile {
            Some(profile) => profile_json(profile),
            None => json!({ "plan": node_json(&plan.nodes()) }),
        };
        content["route"] = json!({ "name": chosen.route, "reason": chosen.why });
        content["computed_once"] = json!(plan.computed(true).lines().collect::<Vec<_>>());
        let text = serde_json::to_string_pretty(&content);
        return one_column(PLAN, [text.map_err(|error| Error::internal(error.to_string()))?.as_str()]);
    }
    let mut lines = match &profile {
        None if verbose => format!("{}{plan}", rules(written, &context)?),
        None => plan.to_string(),
        Some(profile) if verbose => format!("{profile}\n{}", plan.computed(true)),
        Some(profile) => {
            let hint = "; EXPLAIN (ANALYZE, VERBOSE) says what was decided, and why";
            format!("{}{hint}\n{}", profile.table(), plan.computed(false))
        }
    };
    if verbose {
        lines += &format!("\nprograms\n{}", exec::programs(&plan, &context)?);
    }
    // Nearly all statements are planned.
    let RouteTaken { route, why } = chosen;
    match route {
        "planned" if verbose => lines += &format!("\nroute: planned, because {why}"),
        "planned" => {}
        _ => lines += &format!("\nroute: {route}, without this plan: {why}"),
    }
    one_column(PLAN, lines.lines())
}

/// `EXPLAIN LAYOUT`: one row a line.
///
/// # Errors
/// Those of reading the workload.
pub(crate) fn explain_layout(
    session: &Session,
    transaction: &mut TransactionContext,
    relation: &dyn Relation,
    definition: Option<Arc<Definition>>,
    workload: Option<&str>,
) -> Result<Rows> {
    let snapshot = relation.table().ok_or_else(|| Error::internal("a table without rows"))?;
    let settings = session.settings();
    let names = Names::new(session, transaction);
    let looked = Looked {
        name: relation.name(),
        snapshot,
        definition: definition.unwrap_or_default(),
        costs: session.own().shared.costs(),
        record: names.record(relation.name()),
        interrupt: Interrupt::by(session.cancel.clone()),
    };
    let binding = Binding { catalog: &names, settings: &settings };
    one_column(LAYOUT, layouts::page(&looked, &binding, workload)?.lines())
}

/// The plan of a statement as it is written.
fn plan_of(statement: Statement, analyze: bool) -> Result<Plan> {
    match statement {
        Statement::Query(plan) => Ok(plan),
        _ if analyze => Err(Error::not_supported("EXPLAIN ANALYZE of statements other than queries")),
        Statement::CreateTableAs { plan, .. }
        | Statement::Insert(Insert { plan, .. })
        | Statement::Change(Change { plan, .. })
        | Statement::CopyTo { plan, .. } => Ok(plan),
        _ => Err(Error::input("only statements with a query have a plan to explain")),
    }
}

/// The plan after each rule of the optimizer that changed it.
fn rules(plan: Plan, context: &exec::QueryContext) -> Result<String> {
    let mut lines = format!("as written\n{plan}\n");
    let (_, trace) = common_subplans::optimize_traced(plan, &context.settings)?;
    for (rule, plan) in trace {
        lines += &format!("after {rule}\n{plan}\n");
    }
    Ok(lines)
}

/// A row for each line.
fn one_column<'a>(column: (&str, DataType), lines: impl IntoIterator<Item = &'a str>) -> Result<Rows> {
    let rows: Vec<Vec<Value>> = lines.into_iter().map(|line| vec![Value::Text(line.into())]).collect();
    Rows::from_values(&[column], &rows)
}

fn node_json(node: &PlanNode) -> Json {
    json!({
        "operator": node.title,
        "expected_rows": node.expected.round(),
        "children": node.children.iter().map(node_json).collect::<Vec<_>>(),
    })
}

fn profile_json(profile: &Profile) -> Json {
    fn of(node: &ProfileNode) -> Json {
        json!({
            "operator": node.title,
            "rows": node.rows,
            "expected_rows": node.expected.round(),
            "q_error": node.q_error(),
            "chunks": node.chunks,
            "nanoseconds": node.nanoseconds,
            "bytes": node.bytes,
            "details": node.details,
            "children": node.children.iter().map(of).collect::<Vec<_>>(),
        })
    }
    json!({ "plan": profile.root.as_ref().map(of), "nanoseconds": profile.nanoseconds })
}
