//! Changes rows of a table and of its indexes.
//!
//! A row whose layout key changes moves, and others with it, which invalidates row ids. So all such rows are
//! first deleted, and then inserted again.

use super::actions::Actions;
use super::rows::{Fate, RowChange, RowsToChange};
use super::{foreign, keys};
use crate::constraints::keys::KeyChange;
use crate::constraints::row::judge_null;
use crate::constraints::values::{Values, indexed};
use crate::transaction::TransactionContext;
use entasis_storage::index::{index_columns, index_type};
use entasis_storage::{Datum, RowId, TableEntry, TableWriter};
use entasis_vector::{DataType, Result, Value};
use std::sync::Arc;

/// Changes `rows`, whose new values are those of `columns`. Returns their number. Adds to `actions` what
/// foreign keys must do now and check at the end of the statement.
///
/// # Errors
/// Constraint, if one is violated; the statement must be undone then.
pub(crate) fn apply(
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    columns: &[usize],
    rows: &RowsToChange<'_>,
    actions: &mut Actions,
) -> Result<u64> {
    let options = entry.table.options();
    let types: Vec<DataType> = entry.table.schema().iter().map(|field| field.ty).collect();
    for row in rows.rows.iter().filter(|row| row.fate != Fate::Removed) {
        for (at, &column) in columns.iter().enumerate() {
            judge_null(entry, column, rows.datum(row, at))?;
        }
    }
    let is_set = |column: &usize| columns.contains(column);
    let moves = options.layout.is_keyed() && options.layout_key.iter().any(is_set);
    let mut watched = watched(transaction, entry);
    // An update that sets none of a key's columns does not change the key.
    let is_touched: Vec<bool> = watched.iter().map(|key| key.columns.iter().any(is_set)).collect();

    let mut added: Vec<Values> = Vec::new();
    let mut interrupt = transaction.interrupt();
    let mut writer = transaction.write(entry, &entry.table);
    for row in &rows.rows {
        interrupt.look_now_and_then()?;
        if row.fate == Fate::Added {
            let mut values = vec![Value::Null; types.len()];
            set(&mut values, columns, rows, row, &types);
            interrupt.keep(&values)?;
            added.push(values);
            continue;
        }
        for (key, &is_touched) in watched.iter_mut().zip(&is_touched) {
            let list = match row.fate {
                Fate::Removed => &mut key.removed,
                _ if is_touched => &mut key.replaced,
                _ => continue,
            };
            let values = read(&writer, row.id, &key.columns);
            interrupt.keep(&values)?;
            list.push(values);
        }
        if row.fate == Fate::Updated && moves {
            let mut values = read(&writer, row.id, &(0..types.len()).collect::<Vec<_>>());
            set(&mut values, columns, rows, row, &types);
            interrupt.keep(&values)?;
            added.push(values);
        }
    }
    let mut changes = Vec::with_capacity(columns.len());
    for row in rows.rows.iter().filter(|row| row.fate == Fate::Updated && !moves) {
        interrupt.wrote(&writer)?;
        changes.clear();
        changes.extend(columns.iter().enumerate().map(|(at, &column)| (column, rows.datum(row, at))));
        writer.update(row.id, &changes);
        for (key, _) in watched.iter_mut().zip(&is_touched).filter(|(_, is_touched)| **is_touched) {
            let values = read(&writer, row.id, &key.columns);
            interrupt.keep(&values)?;
            key.added.push(values);
        }
    }
    let goes = |row: &&RowChange<'_>| row.fate == Fate::Removed || (row.fate == Fate::Updated && moves);
    for row in rows.rows.iter().filter(goes) {
        interrupt.wrote(&writer)?;
        writer.delete(row.id);
    }
    let moved = rows.rows.iter().filter(|row| row.fate == Fate::Updated && moves).count();
    for (number, values) in added.iter().enumerate() {
        interrupt.wrote(&writer)?;
        let datums: Vec<Datum<'_>> =
            values.iter().zip(&types).map(|(v, &ty)| Datum::of_value(v, ty)).collect();
        let own = writer.next_number();
        writer.insert(&datums);
        for (key, _) in
            watched.iter_mut().zip(&is_touched).filter(|(_, touched)| **touched || number >= moved)
        {
            let values = indexed(values, &key.columns, own);
            // Texts are shared with the row.
            interrupt.keep_bytes(size_of_val(&values[..]) + size_of::<Values>())?;
            key.added.push(values);
        }
    }
    drop(writer);
    interrupt.charged();
    transaction.go_on()?;
    settle(transaction, entry, watched, actions)?;
    Ok(rows.rows.len() as u64)
}

/// Updates the indexes to the state of the table, and checks keys. Adds to `actions` what foreign keys must
/// do and check.
fn settle(
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    watched: Vec<KeyChange>,
    actions: &mut Actions,
) -> Result<()> {
    let keys = entry.definition.keys.len();
    for (number, change) in watched[..keys].iter().enumerate() {
        keys::write_index(transaction, entry, number, change)?;
        transaction.go_on()?;
    }
    for (number, change) in watched[..keys].iter().enumerate() {
        keys::judge(transaction, entry, number, change)?;
    }
    actions.note(transaction, entry, &watched[keys..])
}

/// The changes to record of the rows: for each key of the definition one of the columns of its index, then
/// those that foreign keys need.
fn watched(transaction: &TransactionContext, entry: &TableEntry) -> Vec<KeyChange> {
    let keys = entry.definition.keys.iter().map(|key| index_columns(key, entry.table.options()));
    let columns = keys.chain(foreign::columns(transaction, entry));
    columns.map(|columns| KeyChange { columns, ..KeyChange::default() }).collect()
}

fn set(
    values: &mut [Value],
    columns: &[usize],
    rows: &RowsToChange<'_>,
    row: &RowChange<'_>,
    types: &[DataType],
) {
    for (at, &column) in columns.iter().enumerate() {
        values[column] = rows.datum(row, at).value(types[column]);
    }
}

fn read(writer: &TableWriter<'_>, row: RowId, columns: &[usize]) -> Values {
    let mut datums = Vec::with_capacity(columns.len());
    writer.read_indexed(row, columns, &mut datums);
    let types = columns.iter().map(|&column| index_type(column, writer.schema()));
    datums.iter().zip(types).map(|(datum, ty)| datum.value(ty)).collect()
}
