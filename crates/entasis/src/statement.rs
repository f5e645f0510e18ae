//! What each kind of statement does, once it is bound.
//!
//! A statement works on a [`Work`], its own or that of its transaction, which becomes visible in one step at
//! its end; a file gets its name only when it is complete. So an error in the middle leaves everything as it
//! was.

use crate::catalog::Names;
use crate::execute::{execute, optimized, query};
use crate::interrupt::Interrupt;
use crate::layouts::Looked;
use crate::rows::Rows;
use crate::session::Session;
use crate::work::Work;
use crate::{change, databases, define, files, layouts, settings, summarize};
use entasis_engine::exec::{self, Collector};
use entasis_engine::optimizer;
use entasis_engine::relation::{Definition, Relation};
use entasis_sql::{Change, Insert, Statement};
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::Arc;

/// Runs a bound statement on `work`. The connection runs those that begin and end transactions.
pub(crate) fn run(session: &Session, work: &mut Work, statement: Statement) -> Result<Rows> {
    match statement {
        Statement::Query(plan) => query(session, plan),
        Statement::Explain { analyze, verbose, statement } => explain(session, *statement, analyze, verbose),
        Statement::ExplainLayout { relation, definition, workload } => {
            explain_layout(session, work, &*relation, definition, workload.as_deref())
        }
        Statement::Insert(insert) => change::insert::insert(session, work, insert),
        Statement::Change(change) => change::change(session, work, change),
        Statement::Truncate { names, cascade } => change::truncate(work, &names, cascade),
        Statement::CopyTo { plan, path, options } => {
            let sink = files::copy_to(&path, &plan.schema(), &options, &session.context())?;
            execute(session, plan, &*sink)?;
            Ok(Rows::changed_rows(sink.commit()?))
        }
        Statement::Calibrate => {
            let costs = session.own().shared.calibrate().map_err(|error| error.with_context("CALIBRATE"))?;
            let row = |(name, nanoseconds): (String, f64)| vec![text(&name), Value::Float(nanoseconds)];
            let rows: Vec<Vec<Value>> = costs.figures().into_iter().map(row).collect();
            Rows::from_values(&[("what", DataType::Varchar), ("nanoseconds", DataType::Float64)], &rows)
        }
        Statement::Checkpoint { database } => {
            let there = match database {
                Some(name) => session.at(&databases::called(session, &name)?),
                None => session.here(),
            };
            there.shared.checkpoint()?;
            Ok(Rows::empty())
        }
        Statement::ShowTables { of } => databases::show_tables(session, work, of.as_deref()),
        Statement::ShowAllTables => databases::show_all_tables(session, work),
        Statement::Use { name } => databases::make_current(session, work, &name),
        Statement::ShowSettings => settings::show(session, None),
        Statement::ShowSetting { name } => settings::show(session, Some(&name)),
        Statement::Summarize { plan } => summarize::summarize(session, plan),
        Statement::Set { name, value } => {
            let written = match &value {
                Value::Text(text) => text.to_string(),
                Value::Float(_) => value.display(DataType::Float64).to_string(),
                other => other.display(DataType::Int64).to_string(),
            };
            settings::set(session, &name, &written)?;
            Ok(Rows::empty())
        }
        Statement::Reset { name } => {
            settings::reset(session, &name)?;
            Ok(Rows::empty())
        }
        other => define::run(session, work, other),
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

// ---- EXPLAIN ----------------------------------------------------------------------------------------------

/// `EXPLAIN LAYOUT`: one row per line.
fn explain_layout(
    session: &Session,
    work: &mut Work,
    relation: &dyn Relation,
    definition: Option<Arc<Definition>>,
    workload: Option<&str>,
) -> Result<Rows> {
    let snapshot = relation.table().ok_or_else(|| Error::internal("a table without rows"))?;
    let settings = session.settings();
    let names = Names::new(session, work);
    let looked = Looked {
        name: relation.name(),
        snapshot,
        definition: definition.unwrap_or_default(),
        costs: session.own().shared.costs(),
        catalog: &names,
        settings: &settings,
        interrupt: Interrupt::by(session.cancel.clone()),
    };
    in_lines("layout", &layouts::page(&looked, workload)?)
}

/// A row for each line.
fn in_lines(column: &str, page: &str) -> Result<Rows> {
    let rows: Vec<Vec<Value>> = page.lines().map(|line| vec![text(line)]).collect();
    Rows::from_values(&[(column, DataType::Varchar)], &rows)
}

/// `EXPLAIN`: one row per line. `VERBOSE` shows the plan after each rule of the optimizer that changed it,
/// and at the end the programs into which its expressions are compiled.
fn explain(session: &Session, statement: Statement, analyze: bool, verbose: bool) -> Result<Rows> {
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
    let mut context = session.context();
    let mut lines = String::new();
    if verbose {
        lines += &format!("as written\n{plan}\n");
        let (_, trace) = optimizer::optimize_traced(plan.clone(), &context.settings)?;
        for (rule, plan) in trace {
            lines += &format!("after {rule}\n{plan}\n");
        }
    }
    let plan = optimized(plan, &context.settings)?;
    if analyze {
        Arc::make_mut(&mut context.settings).profile = true;
        let collector = Collector::new(&context, plan.schema().iter().map(|field| field.ty).collect());
        lines += &format!("{}\n{}", exec::execute(&plan, &context, &collector)?, plan.computed());
    } else {
        lines += &plan.to_string();
    }
    if verbose {
        lines += &format!("\nprograms\n{}", exec::programs(&plan, &context)?);
    }
    in_lines("plan", &lines)
}
