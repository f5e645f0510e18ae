//! What each kind of statement does, once it is bound.
//!
//! A statement works on a [`Work`], of its own or of its transaction, and becomes visible in one step at the
//! end of that; a file has its name only when it is complete. So an error in the middle leaves everything as
//! it was.

use crate::connection::Connection;
use crate::rows::Rows;
use crate::work::Work;
use crate::{change, define, files, settings, summarize};
use entasis_engine::cost::{self, Costs};
use entasis_engine::exec::{self, Collector, Profile, Reservation, ResultSink};
use entasis_engine::optimizer;
use entasis_engine::plan::Plan;
use entasis_sql::{Change, Insert, Statement};
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::Arc;

/// Runs a bound statement on `work`. Those that begin and end transactions are the connection's.
pub(crate) fn run(connection: &Connection, work: &mut Work, statement: Statement) -> Result<Rows> {
    match statement {
        Statement::Query(plan) => query(connection, plan),
        Statement::Explain { analyze, verbose, statement } => {
            explain(connection, *statement, analyze, verbose)
        }
        Statement::Insert(insert) => change::insert::insert(connection, work, insert),
        Statement::Change(change) => change::change(connection, work, change),
        Statement::Truncate { names, cascade } => change::truncate(work, &names, cascade),
        Statement::CopyTo { plan, path, options } => {
            let sink = files::copy_to(&path, &plan.schema(), &options, &connection.context())?;
            execute(connection, plan, &*sink)?;
            Ok(Rows::changed_rows(sink.commit()?))
        }
        Statement::Calibrate => {
            let mut memory = Reservation::new(&connection.shared.memory);
            memory.resize(cost::MEMORY).map_err(|error| error.with_context("CALIBRATE"))?;
            let costs = Arc::new(Costs::measure());
            let row = |(name, nanoseconds): (String, f64)| vec![text(&name), Value::Float(nanoseconds)];
            let rows: Vec<Vec<Value>> = costs.figures().into_iter().map(row).collect();
            connection.shared.set_costs(costs);
            Rows::from_values(&[("what", DataType::Varchar), ("nanoseconds", DataType::Float64)], &rows)
        }
        Statement::ShowTables => {
            let rows: Vec<Vec<Value>> = connection.names(work).iter().map(|name| vec![text(name)]).collect();
            Rows::from_values(&[("name", DataType::Varchar)], &rows)
        }
        Statement::ShowSettings => settings::show(connection, None),
        Statement::ShowSetting { name } => settings::show(connection, Some(&name)),
        Statement::Summarize { plan } => summarize::summarize(connection, plan),
        Statement::Set { name, value } => {
            let written = match &value {
                Value::Text(text) => text.to_string(),
                Value::Float(_) => value.display(DataType::Float64).to_string(),
                other => other.display(DataType::Int64).to_string(),
            };
            settings::set(connection, &name, &written)?;
            Ok(Rows::empty())
        }
        Statement::Reset { name } => {
            settings::reset(connection, &name)?;
            Ok(Rows::empty())
        }
        other => define::run(connection, work, other),
    }
}

/// Optimizes a plan and runs it into `sink`.
pub(crate) fn execute(connection: &Connection, plan: Plan, sink: &dyn ResultSink) -> Result<Profile> {
    let context = connection.context();
    let plan = optimizer::optimize(plan, &context.settings)?;
    exec::execute(&plan, &context, sink)
}

/// Runs a query and keeps its rows.
pub(crate) fn query(connection: &Connection, plan: Plan) -> Result<Rows> {
    let schema = plan.schema();
    let context = connection.context();
    let collector = Collector::new(&context, schema.iter().map(|field| field.ty).collect());
    execute(connection, plan, &collector)?;
    Ok(Rows::new(schema, collector.into_chunks(), context))
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

// ---- EXPLAIN ----------------------------------------------------------------------------------------------

/// `EXPLAIN`: one row a line. `VERBOSE` shows the plan after each rule of the optimizer that changed it, and
/// at the end the programs into which its expressions are compiled.
fn explain(connection: &Connection, statement: Statement, analyze: bool, verbose: bool) -> Result<Rows> {
    let plan = match statement {
        Statement::Query(plan)
        | Statement::CreateTableAs { plan, .. }
        | Statement::Insert(Insert { plan, .. })
        | Statement::Change(Change { plan, .. })
        | Statement::CopyTo { plan, .. }
            if !analyze =>
        {
            plan
        }
        Statement::Query(plan) => plan,
        _ if analyze => return Err(Error::not_supported("EXPLAIN ANALYZE of statements other than queries")),
        _ => return Err(Error::input("only statements with a query have a plan to explain")),
    };
    let mut context = connection.context();
    let mut lines = String::new();
    if verbose {
        lines += &format!("as written\n{plan}\n");
        let (_, trace) = optimizer::optimize_traced(plan.clone(), &context.settings)?;
        for (rule, plan) in trace {
            lines += &format!("after {rule}\n{plan}\n");
        }
    }
    let plan = optimizer::optimize(plan, &context.settings)?;
    if analyze {
        Arc::make_mut(&mut context.settings).profile = true;
        let collector = Collector::new(&context, plan.schema().iter().map(|field| field.ty).collect());
        lines += &exec::execute(&plan, &context, &collector)?.to_string();
    } else {
        lines += &plan.to_string();
    }
    if verbose {
        lines += &format!("\nprograms\n{}", exec::programs(&plan, &context)?);
    }
    let rows: Vec<Vec<Value>> = lines.lines().map(|line| vec![text(line)]).collect();
    Rows::from_values(&[("plan", DataType::Varchar)], &rows)
}
