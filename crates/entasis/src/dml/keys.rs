//! Keys of a changed table: their indexes are written, and checked at the end of the statement.

use crate::constraints::keys::{KeyChange, change_index, judge_added};
use crate::transaction::TransactionContext;
use entasis_storage::TableEntry;
use entasis_storage::definition::KeyKind;
use entasis_vector::Result;
use std::sync::Arc;

/// Removes and adds the rows of an index, if the key has one.
///
/// # Errors
/// Interrupted.
pub(crate) fn write_index(
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    number: usize,
    change: &KeyChange,
) -> Result<()> {
    let Some(index) = &entry.indexes[number] else { return Ok(()) };
    if change.removed.is_empty() && change.replaced.is_empty() && change.added.is_empty() {
        return Ok(());
    }
    let mut interrupt = transaction.interrupt();
    let mut writer = transaction.write(entry, index);
    change_index(&mut writer, entry, number, change, &mut interrupt)
}

/// Checks the new rows: no two rows may have the same key.
pub(crate) fn judge(
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    number: usize,
    change: &KeyChange,
) -> Result<()> {
    if entry.definition.keys[number].kind == KeyKind::Index || change.added.is_empty() {
        return Ok(());
    }
    let table = entry.indexes[number].as_ref().unwrap_or(&entry.table).clone();
    let mut interrupt = transaction.interrupt();
    judge_added(&transaction.write(entry, &table), entry, number, change, &mut interrupt)
}
