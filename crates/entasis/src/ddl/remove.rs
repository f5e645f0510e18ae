//! Drops objects: an object that needs a dropped one prevents that, or is dropped with it.
//!
//! | the object is needed by | without CASCADE | with CASCADE |
//! |---|---|---|
//! | a view | an error | the view is dropped, and what needs it |
//! | a foreign key that refers to the table | an error | the foreign key is dropped; its table stays |
//! | a default or check that calls the sequence | an error | the default or check is dropped |
//! | the identity column of the sequence | an error | an error: the column must be dropped |
//!
//! Objects that are dropped by the same statement do not prevent each other from being dropped.

use super::entry::redefined;
use super::references;
use crate::session::Session;
use crate::transaction::TransactionContext;
use entasis_engine::relation::{ColumnDefault, Definition};
use entasis_sql::called_sequences;
use entasis_storage::{Entry, IfExists, Sequence, TableEntry, dependencies};
use entasis_vector::name::shown;
use entasis_vector::{Error, Result};

/// Drops an object, unless it is gone already. Objects in `together`, in lower case, do not prevent that.
pub(super) fn object(
    session: &Session,
    transaction: &mut TransactionContext,
    entry: &Entry,
    together: &[String],
    cascade: bool,
) -> Result<()> {
    if transaction.names.find(entry.name(), entry.kind())?.is_none() {
        return Ok(());
    }
    if let (Entry::Table(table), false) = (entry, cascade) {
        references::refuse_referred(transaction, table, together)?;
    }
    let users: Vec<Entry> =
        dependencies::users(&transaction.names, entry.name()).into_iter().cloned().collect();
    for user in users.iter().filter(|user| !together.contains(&user.name().to_ascii_lowercase())) {
        match (user, entry) {
            (Entry::View(_), _) if cascade => object(session, transaction, user, together, true)?,
            (Entry::View(view), _) => {
                let (kind, name, view) = (entry.kind(), shown(entry.name()), shown(&view.name));
                let hint =
                    format!("drop view {view} first, or use DROP {} {name} CASCADE", kind.to_uppercase());
                return Err(Error::input(format!("view {view} uses {kind} {name}")).with_hint(hint));
            }
            (Entry::Table(table), Entry::Sequence(sequence)) => {
                drop_calls(transaction, table, sequence, cascade)?
            }
            // For foreign keys, see above and below.
            _ => {}
        }
    }
    match entry {
        Entry::Table(table) => {
            references::drop_referring(transaction, table)?;
            transaction.relies_on(table);
            transaction.names.remove(&table.name, "table")?;
            references::renew_parents(transaction, &table.definition, &Definition::default(), &table.name)?;
            identities(session, transaction, table.definition.identities(), cascade)
        }
        _ => transaction.names.remove(entry.name(), entry.kind()).map(drop),
    }
}

/// Drops the sequences of dropped identity columns.
pub(super) fn identities<'a>(
    session: &Session,
    transaction: &mut TransactionContext,
    sequences: impl Iterator<Item = &'a str>,
    cascade: bool,
) -> Result<()> {
    for name in sequences {
        if let Some(sequence) = transaction.names.sequence(name).cloned() {
            object(session, transaction, &Entry::Sequence(sequence), &[], cascade)?;
        }
    }
    Ok(())
}

/// Drops the defaults and checks of a table that call a sequence, or refuses to drop the sequence.
fn drop_calls(
    transaction: &mut TransactionContext,
    table: &TableEntry,
    sequence: &Sequence,
    cascade: bool,
) -> Result<()> {
    let calls = |sql: &str| {
        called_sequences(sql).is_ok_and(|called| called.contains(&sequence.name.to_ascii_lowercase()))
    };
    let is_identity = |default: &ColumnDefault| match default {
        ColumnDefault::Identity { sequence: own, .. } => own.eq_ignore_ascii_case(&sequence.name),
        _ => false,
    };
    let mut definition = (*table.definition).clone();
    let column_name = |column: usize| &table.table.schema()[column].name;
    if let Some(column) = definition.defaults.iter().position(is_identity) {
        let (column, table) = (column_name(column), &table.name);
        let text = format!("sequence {} belongs to identity column {column} of table {table}", sequence.name);
        return Err(Error::input(text).with_hint(format!("use ALTER TABLE {table} DROP COLUMN {column}")));
    }
    let is_caller = |default: &ColumnDefault| matches!(default, ColumnDefault::Expression(sql) if calls(sql));
    if !cascade {
        let user = match definition.defaults.iter().position(is_caller) {
            Some(column) => format!("the default of column {} of table {}", column_name(column), table.name),
            None => format!("a check of table {}", table.name),
        };
        let hint = format!("DROP SEQUENCE {} CASCADE drops it, too", sequence.name);
        return Err(Error::input(format!("{user} uses sequence {}", sequence.name)).with_hint(hint));
    }
    for default in definition.defaults.iter_mut().filter(|default| is_caller(default)) {
        *default = ColumnDefault::Null;
    }
    definition.checks.retain(|check| !calls(&check.sql));
    definition.sequences.retain(|name| !name.eq_ignore_ascii_case(&sequence.name));
    transaction.names.add(Entry::Table(redefined(table, definition)), IfExists::Replace).map(drop)
}
