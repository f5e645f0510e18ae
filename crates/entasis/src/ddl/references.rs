//! Foreign keys, from the point of view of the referenced table.
//!
//! A foreign key is stored with the referring table, by the name of the other table and the indexes of its
//! columns. So a change of the other table must update the foreign key: names and indexes follow the table
//! and the columns that they mean. A key to which foreign keys refer cannot be dropped, unless these are
//! dropped with it.
//!
//! Adding or dropping a foreign key changes both tables: open transactions on the referenced table do not
//! know the foreign key, and check their rows without it. That table gets a new entry, so that they conflict.

use super::entry::redefined;
use crate::dml::foreign::referring;
use crate::transaction::TransactionContext;
use entasis_engine::relation::{Definition, ForeignKey};
use entasis_sql::Columns;
use entasis_storage::{Entry, IfExists, TableEntry};
use entasis_vector::error::sqlstate::FOREIGN_KEY;
use entasis_vector::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The error of a change that a foreign key of another table prevents.
fn referred(entry: &TableEntry, child: &str, key: &ForeignKey, what: &str, hint: String) -> Error {
    let names: Vec<&str> = key.references.iter().map(|&column| &*entry.table.schema()[column].name).collect();
    let text = format!(
        "foreign key {} of table {child} refers to ({}) of table {}",
        key.name,
        names.join(", "),
        entry.name
    );
    Error::new(ErrorKind::Constraint, format!("{text}, {what}"))
        .with_hint(hint)
        .with_sqlstate(FOREIGN_KEY)
        .with_table(child)
        .with_constraint(&*key.name)
}

/// Refuses to drop or replace a table to which others refer, except for tables that are dropped with it.
pub(super) fn refuse_referred(
    transaction: &TransactionContext,
    entry: &TableEntry,
    together: &[String],
) -> Result<()> {
    let stays =
        |child: &TableEntry| child.name != entry.name && !together.contains(&child.name.to_ascii_lowercase());
    match referring(transaction, entry).into_iter().find(|(child, _)| stays(child)) {
        None => Ok(()),
        Some((child, key)) => {
            let text = format!(
                "table {} is referred to by foreign key {} of table {}",
                entry.name, key.name, child.name
            );
            let hint = format!(
                "drop table {} or the constraint first, or use DROP TABLE {} CASCADE, which drops the constraint",
                child.name, entry.name
            );
            Err(Error::new(ErrorKind::Constraint, text)
                .with_hint(hint)
                .with_sqlstate(FOREIGN_KEY)
                .with_table(&*child.name)
                .with_constraint(&*key.name))
        }
    }
}

/// Drops the foreign keys of other tables that refer to a table.
pub(super) fn drop_referring(transaction: &mut TransactionContext, entry: &TableEntry) -> Result<()> {
    for (child, key) in referring(transaction, entry) {
        if child.name != entry.name {
            edit(transaction, &child.name, |foreign_keys| foreign_keys.retain(|own| own.name != key.name))?;
        }
    }
    Ok(())
}

/// Updates foreign keys that refer to a table, including its own, to its new name.
pub(super) fn follow_name(transaction: &mut TransactionContext, from: &str, to: &str) -> Result<()> {
    let from = from.to_ascii_lowercase();
    let refers = |child: &&Arc<TableEntry>| child.definition.foreign_keys.iter().any(|key| key.table == from);
    let children: Vec<String> =
        transaction.names.tables().filter(refers).map(|child| child.name.clone()).collect();
    for child in children {
        edit(transaction, &child, |foreign_keys| {
            foreign_keys
                .iter_mut()
                .filter(|key| key.table == from)
                .for_each(|key| key.table = to.to_ascii_lowercase());
        })?;
    }
    Ok(())
}

/// Updates foreign keys of other tables to the new indexes of the columns that they refer to. Drops those
/// whose key is dropped, including the table's own, if the statement says so.
///
/// # Errors
/// Constraint, if a foreign key refers to a column or key that is dropped or gets other values.
pub(super) fn follow_columns(
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    to: &mut Columns,
) -> Result<()> {
    for (child, key) in referring(transaction, entry) {
        if child.name == entry.name {
            continue;
        }
        if key.references.iter().any(|column| to.revalued.contains(column)) {
            let hint = format!("drop it first: ALTER TABLE {} DROP CONSTRAINT {}", child.name, key.name);
            return Err(referred(entry, &child.name, &key, "whose type therefore cannot be changed", hint));
        }
        let places: Option<Vec<usize>> = key.references.iter().map(|&column| to.places[column]).collect();
        match places.filter(|places| to.definition.has_unique_key(places)) {
            Some(places) if places == key.references => {}
            Some(places) => edit(transaction, &child.name, |foreign_keys| {
                let own = foreign_keys.iter_mut().filter(|own| own.name == key.name);
                own.for_each(|own| own.references.clone_from(&places));
            })?,
            None if to.cascade => edit(transaction, &child.name, |foreign_keys| {
                foreign_keys.retain(|own| own.name != key.name);
            })?,
            None => return Err(kept(entry, &child.name, &key)),
        }
    }
    let own_name = entry.name.to_ascii_lowercase();
    let Definition { keys, foreign_keys, .. } = &mut to.definition;
    let unique = Definition { keys: keys.clone(), ..Definition::default() };
    let is_broken = |key: &ForeignKey| key.table == own_name && !unique.has_unique_key(&key.references);
    if to.cascade {
        foreign_keys.retain(|key| !is_broken(key));
    }
    match foreign_keys.iter().find(|key| is_broken(key)) {
        None => Ok(()),
        // Its columns by their old names.
        Some(key) => Err(match entry.definition.foreign_keys.iter().find(|old| old.name == key.name) {
            Some(old) => kept(entry, &entry.name, old),
            None => {
                Error::input(format!("foreign key {} of table {} refers to no key", key.name, entry.name))
            }
        }),
    }
}

/// The error of dropping a key that a foreign key needs.
fn kept(entry: &TableEntry, child: &str, key: &ForeignKey) -> Error {
    let hint = format!(
        "CASCADE drops the foreign key with it; or drop it first: ALTER TABLE {child} DROP CONSTRAINT {}",
        key.name
    );
    referred(entry, child, key, "so that this key must stay", hint)
}

/// Changes the foreign keys of a table.
fn edit(
    transaction: &mut TransactionContext,
    table: &str,
    change: impl FnOnce(&mut Vec<ForeignKey>),
) -> Result<()> {
    let Some(entry) = transaction.names.table(table).cloned() else { return Ok(()) };
    let mut definition = (*entry.definition).clone();
    change(&mut definition.foreign_keys);
    transaction.names.add(Entry::Table(redefined(&entry, definition)), IfExists::Replace).map(drop)
}

/// Gives new entries to the tables that a table newly refers to or no longer refers to, and returns those
/// that it newly refers to.
pub(super) fn renew_parents(
    transaction: &mut TransactionContext,
    old: &Definition,
    new: &Definition,
    own_name: &str,
) -> Result<Vec<Arc<TableEntry>>> {
    let lacks = |definition: &Definition, key: &ForeignKey| {
        let what = |key: &ForeignKey| (key.on_delete, key.on_update);
        let is_it = |other: &ForeignKey| {
            (&other.table, &other.columns, what(other)) == (&key.table, &key.columns, what(key))
        };
        !definition.foreign_keys.iter().any(is_it)
    };
    let came = new.foreign_keys.iter().filter(|key| lacks(old, key));
    let went = old.foreign_keys.iter().filter(|key| lacks(new, key));
    let mut parents: Vec<(&String, bool)> =
        came.map(|key| (&key.table, true)).chain(went.map(|key| (&key.table, false))).collect();
    parents.sort_by(|a, b| a.0.cmp(b.0).then(b.1.cmp(&a.1)));
    parents.dedup_by(|a, b| a.0 == b.0);
    let mut begun = Vec::new();
    for (parent, is_new) in parents {
        if parent.eq_ignore_ascii_case(own_name) {
            continue;
        }
        let Some(entry) = transaction.names.table(parent).cloned() else { continue };
        let renewed = redefined(&entry, (*entry.definition).clone());
        transaction.names.add(Entry::Table(renewed.clone()), IfExists::Replace)?;
        begun.extend(is_new.then_some(renewed));
    }
    Ok(begun)
}
