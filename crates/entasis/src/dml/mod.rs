//! Changing rows: `UPDATE`, `DELETE`, `MERGE`, `INSERT … ON CONFLICT`, and `INSERT` of few rows.
//!
//! 1. The statement's plan returns the rows that change and their new values ([`rows`]).
//! 2. Constraints on single rows are checked: NOT NULL, CHECK ([`crate::constraints`]).
//! 3. The rows of the table are changed, then those of its indexes ([`apply`], or [`bulk`] where nothing else
//!    depends on them).
//! 4. Constraints on several rows are checked on the outcome: keys and foreign keys ([`keys`], [`foreign`]).
//!    So `UPDATE t SET k = k + 1` is no violation, and neither is a key that is removed and added again.
//!
//! After any failure [`crate::transaction`] undoes the statement.

mod actions;
mod apply;
mod bulk;
pub(crate) mod foreign;
pub(crate) mod insert;
mod keys;
mod rows;

use self::actions::Actions;
use crate::constraints::row::{judge_checks, judge_proposed};
use crate::query::query;
use crate::session::Session;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_sql::Change;
use entasis_storage::TableEntry;
use entasis_vector::{Error, Result};
use std::sync::Arc;

/// Runs a [`Change`], and the actions of foreign keys.
pub(crate) fn change(
    session: &Session,
    transaction: &mut TransactionContext,
    change: Change,
) -> Result<Rows> {
    let mut actions = Actions::default();
    let rows = change_rows(session, transaction, change, &mut actions)?;
    actions.finish(session, transaction)?;
    Ok(rows)
}

/// Changes the rows of one table. Adds to `actions` what foreign keys must do then.
fn change_rows(
    session: &Session,
    transaction: &mut TransactionContext,
    change: Change,
    actions: &mut Actions,
) -> Result<Rows> {
    let entry = target(transaction, &change.table)?;
    let found = query(session, change.plan.clone())?;
    let proposed = rows::first_value(&change) + change.columns.len();
    judge_proposed(&entry, &change.proposed, proposed, found.chunks())?;
    let checks = proposed + change.proposed.len();
    judge_checks(&entry, &change.checks, checks, proposed, found.chunks())?;
    if let Some(changed) = bulk::apply(transaction, &entry, &change, &found)? {
        return Ok(Rows::changed_rows(changed));
    }
    let rows = rows::rows_to_change(&change, &entry, &found, &mut transaction.interrupt())?;
    let changed = apply::apply(transaction, &entry, &change.columns, &rows, actions)?;
    let result = Rows::changed_rows(changed);
    match change.returning {
        None => Ok(result),
        Some(schema) => {
            let first = checks + change.checks.len();
            found.part(first, schema, &rows.places(), changed, session.context())
        }
    }
}

/// The table that a statement writes to.
pub(crate) fn target(transaction: &TransactionContext, name: &str) -> Result<Arc<TableEntry>> {
    let entry = transaction.names.table(name).cloned();
    entry.ok_or_else(|| Error::input(format!("\"{name}\" is not a table to write to")))
}

/// Removes all rows of some tables; with `cascade`, also those of tables that refer to them.
pub(crate) fn truncate(
    transaction: &mut TransactionContext,
    names: &[String],
    cascade: bool,
) -> Result<Rows> {
    let mut changed = 0;
    let mut entries: Vec<_> =
        names.iter().filter_map(|name| transaction.names.table(name).cloned()).collect();
    if cascade {
        foreign::add_referring(transaction, &mut entries);
    }
    for entry in &entries {
        foreign::refuse_truncate(transaction, entry, &entries)?;
        changed += transaction.clear(entry);
    }
    entries.iter().try_for_each(|entry| foreign::validate_truncated(transaction, entry))?;
    Ok(Rows::changed_rows(changed))
}
