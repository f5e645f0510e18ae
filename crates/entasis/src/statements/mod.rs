//! What each kind of statement does, once it is bound.
//!
//! A statement works on a [`TransactionContext`], its own or that of its transaction, which becomes visible
//! in one step at its end; a file gets its name only when it is complete. So an error in the middle leaves
//! everything as it was.

pub(crate) mod databases;
pub(crate) mod whole_database;

use crate::ddl;
use crate::dml;
use crate::query::explain;
use crate::query::summarize;
use crate::query::{execute, query};
use crate::session::Session;
use crate::session::settings;
use crate::state::refuse_database;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_sql::Statement;
use entasis_vector::{DataType, Result, Value};
use std::path::Path;

/// Runs a bound statement on `transaction`. The connection runs those that begin and end transactions, and
/// those that are about a statement's route.
pub(crate) fn run(
    session: &Session,
    transaction: &mut TransactionContext,
    statement: Statement,
) -> Result<Rows> {
    match statement {
        Statement::Query(plan) => query(session, plan),
        Statement::ExplainLayout { relation, definition, workload } => {
            explain::explain_layout(session, transaction, &*relation, definition, workload.as_deref())
        }
        Statement::Command(command) => whole_database::run(session, transaction, command),
        Statement::Insert(insert) => dml::insert::insert(session, transaction, insert),
        Statement::Change(change) => dml::change(session, transaction, change),
        Statement::Truncate { names, cascade } => dml::truncate(transaction, &names, cascade),
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
        Statement::ShowTables { of, views } => {
            databases::show_tables(session, transaction, of.as_deref(), views)
        }
        Statement::ShowAllTables => databases::show_all_tables(session, transaction),
        Statement::Use { name } => databases::make_current(session, transaction, &name),
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
        other => ddl::run(session, transaction, other),
    }
}

/// The columns of what CALIBRATE returns.
pub(crate) const COSTS: [(&str, DataType); 2] =
    [("what", DataType::Varchar), ("nanoseconds", DataType::Float64)];

fn text(text: &str) -> Value {
    Value::Text(text.into())
}
