//! What each kind of statement does, once it is bound.
//!
//! A statement works on a [`Work`], its own or that of its transaction, which becomes visible in one step at
//! its end; a file gets its name only when it is complete. So an error in the middle leaves everything as it
//! was.

use crate::execute::{execute, query};
use crate::explain;
use crate::rows::Rows;
use crate::session::Session;
use crate::shared::refuse_database;
use crate::work::Work;
use crate::{change, databases, define, settings, summarize};
use entasis_sql::Statement;
use entasis_vector::{DataType, Result, Value};
use std::path::Path;

/// Runs a bound statement on `work`. The connection runs those that begin and end transactions.
pub(crate) fn run(session: &Session, work: &mut Work, statement: Statement) -> Result<Rows> {
    match statement {
        Statement::Query(plan) => query(session, plan),
        Statement::Explain { analyze, verbose, json, statement } => {
            explain::explain(session, *statement, explain::ExplainOptions { analyze, verbose, json })
        }
        Statement::ExplainLayout { relation, definition, workload } => {
            explain::explain_layout(session, work, &*relation, definition, workload.as_deref())
        }
        Statement::Insert(insert) => change::insert::insert(session, work, insert),
        Statement::Change(change) => change::change(session, work, change),
        Statement::Truncate { names, cascade } => change::truncate(work, &names, cascade),
        Statement::CopyTo { plan, path, options } => {
            // First, because it need not have the name of a file that can be written.
            refuse_database(Path::new(&path))?;
            let sink =
                entasis_files::copy_to(&path, &plan.schema(), &options, &session.context(), refuse_database)?;
            execute(session, plan, &*sink)?;
            Ok(Rows::changed_rows(sink.commit()?))
        }
        Statement::Calibrate => {
            let costs = session.own().shared.calibrate().map_err(|error| error.with_context("CALIBRATE"))?;
            let row = |(name, nanoseconds): (String, f64)| vec![text(&name), Value::Float(nanoseconds)];
            let rows: Vec<Vec<Value>> = costs.figures().into_iter().map(row).collect();
            Rows::from_values(&COSTS, &rows)
        }
        Statement::Checkpoint { database } => {
            let there = match database {
                Some(name) => session.at(&databases::called(session, &name)?),
                None => session.here(),
            };
            there.shared.checkpoint()?;
            Ok(Rows::empty())
        }
        Statement::ShowTables { of, views } => databases::show_tables(session, work, of.as_deref(), views),
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
            if let Some(note) = settings::of_others(&name) {
                return Ok(Rows::empty().with_note(Some(note)));
            }
            settings::set(session, &name, &written)?;
            Ok(Rows::empty())
        }
        Statement::Reset { name } => {
            if let Some(note) = settings::of_others(&name) {
                return Ok(Rows::empty().with_note(Some(note)));
            }
            settings::reset(session, &name)?;
            Ok(Rows::empty())
        }
        other => define::run(session, work, other),
    }
}

/// The columns of what CALIBRATE returns.
pub(crate) const COSTS: [(&str, DataType); 2] =
    [("what", DataType::Varchar), ("nanoseconds", DataType::Float64)];

fn text(text: &str) -> Value {
    Value::Text(text.into())
}
