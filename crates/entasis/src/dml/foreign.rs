//! Foreign keys of a changed table, and those that refer to it.
//!
//! New references and removed keys are checked at the end of the statement, after the actions of foreign keys
//! ([`super::actions`]), and validated again by the commit ([`Predicates`](crate::constraints::validation)).

use crate::constraints::validation::{Predicate, Side, validate_unreferred, without_nulls};
use crate::constraints::values::{Values, about};
use crate::transaction::TransactionContext;
use entasis_storage::definition::ForeignKey;
use entasis_storage::{AppendedRows, TableEntry};
use entasis_vector::error::sqlstate::FOREIGN_KEY;
use entasis_vector::{DataType, Error, Result};
use std::sync::Arc;

/// The columns of a table that its foreign keys concern: for each of its own, the referring columns; then for
/// each foreign key that refers to it, the columns referred to.
pub(crate) fn columns(
    transaction: &TransactionContext,
    entry: &TableEntry,
) -> impl Iterator<Item = Vec<usize>> {
    let own = entry.definition.foreign_keys.iter().map(|key| key.columns.clone());
    let referring = referring(transaction, entry).into_iter().map(|(_, key)| key.references);
    own.chain(referring).collect::<Vec<_>>().into_iter()
}

/// The foreign keys that refer to a table, each with the table that declares it.
pub(crate) fn referring(
    transaction: &TransactionContext,
    entry: &TableEntry,
) -> Vec<(Arc<TableEntry>, ForeignKey)> {
    let mut found = Vec::new();
    let name = entry.name.to_ascii_lowercase();
    for other in transaction.names.tables() {
        let keys = other.definition.foreign_keys.iter().filter(|key| key.table == name);
        found.extend(keys.map(|key| (other.clone(), key.clone())));
    }
    found
}

/// True if foreign keys refer to a table.
pub(crate) fn is_referred_to(transaction: &TransactionContext, entry: &TableEntry) -> bool {
    !referring(transaction, entry).is_empty()
}

/// Validates a predicate now, and again when the transaction commits if the other table has changed by then.
pub(crate) fn validate(transaction: &mut TransactionContext, predicate: Predicate) -> Result<()> {
    predicate.validate(&mut |table| transaction.snapshot(table))?;
    rely(transaction, predicate);
    Ok(())
}

/// Has a predicate that is known to hold now validated when the transaction commits, if the other table has
/// changed by then.
pub(crate) fn rely(transaction: &mut TransactionContext, predicate: Predicate) {
    transaction.rely_on(&predicate.other().clone(), |predicates| predicates.push(predicate));
}

/// Checks that no row refers to removed keys, even if new rows have these keys again.
///
/// # Errors
/// Constraint.
pub(crate) fn restrict(
    transaction: &mut TransactionContext,
    parent: &TableEntry,
    child: &TableEntry,
    key: &ForeignKey,
    keys: &[Values],
) -> Result<()> {
    validate_unreferred(&mut |table| transaction.snapshot(table), parent, child, key, keys)
}

/// Checks rows that were added in bulk.
pub(crate) fn judge_added(
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    added: &[AppendedRows],
) -> Result<()> {
    for key in &entry.definition.foreign_keys {
        let types: Vec<DataType> =
            key.columns.iter().map(|&column| entry.table.schema()[column].ty).collect();
        let mut came: Vec<Values> = Vec::new();
        for rows in added {
            rows.each_row(&key.columns, |datums| {
                came.push(datums.iter().zip(&types).map(|(datum, ty)| datum.value(*ty)).collect());
            });
        }
        if let Some(came) = came_to_refer(transaction, entry, key, came)? {
            validate(transaction, came)?;
        }
    }
    Ok(())
}

/// The predicate that new references of rows of `child` find their rows; `None` if there are no new
/// references.
pub(crate) fn came_to_refer(
    transaction: &TransactionContext,
    child: &Arc<TableEntry>,
    key: &ForeignKey,
    came: Vec<Values>,
) -> Result<Option<Predicate>> {
    let keys = without_nulls(came);
    if keys.is_empty() {
        return Ok(None);
    }
    let parent = transaction.names.table(&key.table).cloned();
    let parent = parent.ok_or_else(|| Error::internal(format!("table {} is gone", key.table)))?;
    Ok(Some(Predicate::Held { parent, child: child.clone(), key: key.clone(), keys, side: Side::Came }))
}

/// Adds the tables that refer to the given ones, transitively.
pub(crate) fn add_referring(transaction: &TransactionContext, entries: &mut Vec<Arc<TableEntry>>) {
    let mut next = 0;
    while let Some(entry) = entries.get(next).cloned() {
        for (child, _) in referring(transaction, &entry) {
            if !entries.iter().any(|entry| Arc::ptr_eq(entry, &child)) {
                entries.push(child);
            }
        }
        next += 1;
    }
}

/// Refuses to remove all rows of a table if rows of another one that is not among `all` refer to it.
pub(crate) fn refuse_truncate(
    transaction: &mut TransactionContext,
    entry: &TableEntry,
    all: &[Arc<TableEntry>],
) -> Result<()> {
    for (child, key) in referring(transaction, entry) {
        if !all.iter().any(|entry| Arc::ptr_eq(entry, &child))
            && transaction.snapshot(&child.table).rows() > 0
        {
            let text =
                format!("foreign key {}: table {} refers to table {}", key.name, child.name, entry.name);
            let error = about(&child, &key.name, &key.columns, text).with_sqlstate(FOREIGN_KEY);
            let hint = format!(
                "truncate both: TRUNCATE {}, {}; or all that refer to it: CASCADE",
                entry.name, child.name
            );
            return Err(error.with_hint(hint));
        }
    }
    Ok(())
}

/// Validates that no row refers to a table whose rows were all removed.
pub(crate) fn validate_truncated(
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
) -> Result<()> {
    for (child, key) in referring(transaction, entry) {
        validate(transaction, Predicate::Whole { parent: entry.clone(), child, key })?;
    }
    Ok(())
}
