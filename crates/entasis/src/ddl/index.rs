//! Indexes and unique keys of existing tables: built while others write, and dropped.

use super::alter::{put, put_in_place, rebuilt};
use super::entry::{keep_order, options_of, with_keys};
use super::references;
use crate::dml::{insert, target};
use crate::session::Session;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_engine::relation::{Definition, Key, KeyKind};
use entasis_sql::Columns;
use entasis_storage::{TableEntry, is_temporary};
use entasis_vector::{Error, Result};
use std::sync::Arc;

/// Replaces a table by one with other keys. Others go on writing to it while indexes are built, which catch
/// up at the commit, unless the table must be laid out anew: because its layout followed from a key that is
/// dropped, or its layout key is unique now.
fn put_keys(
    session: &Session,
    transaction: &mut TransactionContext,
    old: &Arc<TableEntry>,
    definition: Definition,
) -> Result<()> {
    let columns = old.table.schema().clone();
    if options_of(&definition, &columns)? != *old.table.options() {
        let new = rebuilt(session, transaction, old, columns, definition, None)?;
        return put(transaction, old, new);
    }
    let (new, indexes) = with_keys(old, definition);
    insert::fill_indexes(session, &new, transaction.snapshot(&old.table), &indexes)?;
    transaction.built(old, &new, indexes);
    put_in_place(transaction, old, new)
}

/// Makes an index.
pub(super) fn create_index(
    session: &Session,
    transaction: &mut TransactionContext,
    table: &str,
    key: Key,
    if_not_exists: bool,
) -> Result<Rows> {
    let entry = target(transaction, table)?;
    if let Some(owner) = transaction.names.table_with_index(&key.name, is_temporary(&entry.name)) {
        if if_not_exists {
            return Ok(Rows::empty());
        }
        return Err(Error::input(format!(
            "an index named \"{}\" already exists, on table {}",
            key.name, owner.name
        )));
    }
    let mut definition = (*entry.definition).clone();
    definition.keys.push(key);
    keep_order(&entry, &mut definition);
    put_keys(session, transaction, &entry, definition)?;
    Ok(Rows::empty())
}

/// Drops the index or unique key of a table that has this number.
pub(super) fn drop_key(
    session: &Session,
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    number: usize,
    cascade: bool,
) -> Result<()> {
    let mut definition = (*entry.definition).clone();
    let key = definition.keys.remove(number);
    if key.kind == KeyKind::Primary {
        let name = &key.name;
        let text = format!("\"{name}\" is the primary key of table {}", entry.name);
        return Err(
            Error::input(text).with_hint(format!("use ALTER TABLE {} DROP CONSTRAINT {name}", entry.name))
        );
    }
    let columns = entry.table.schema().clone();
    let mut to = Columns {
        places: (0..columns.len()).map(Some).collect(),
        revalued: Vec::new(),
        columns,
        definition,
        cascade,
        rows: None,
        violations: Vec::new(),
    };
    references::follow_columns(transaction, entry, &mut to)?;
    put_keys(session, transaction, entry, to.definition)
}

/// Drops an index, by its name.
pub(super) fn drop_index(
    session: &Session,
    transaction: &mut TransactionContext,
    name: &str,
    if_exists: bool,
    cascade: bool,
) -> Result<()> {
    let Some((entry, number)) =
        transaction.names.index(name, None).map(|(entry, number)| (entry.clone(), number))
    else {
        if if_exists {
            return Ok(());
        }
        return Err(Error::input(format!("there is no index \"{name}\"")));
    };
    drop_key(session, transaction, &entry, number, cascade)
}
