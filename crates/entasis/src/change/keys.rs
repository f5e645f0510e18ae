//! Keys: their indexes are written, and judged at the end of the statement.

use super::apply::KeyChange;
use super::rows::shown;
use crate::work::{Interrupt, Work, rows_with};
use entasis_storage::definition::{Key, KeyKind};
use entasis_storage::{Datum, RowId, TableEntry, TableWriter};
use entasis_vector::{DataType, Error, ErrorKind, Result, Value};
use std::sync::Arc;

fn datums<'a>(values: &'a [Value], types: &[DataType]) -> Vec<Datum<'a>> {
    values.iter().zip(types).map(|(value, &ty)| Datum::of_value(value, ty)).collect()
}

fn types(entry: &TableEntry, columns: &[usize]) -> Vec<DataType> {
    columns.iter().map(|&column| entry.table.schema()[column].ty).collect()
}

/// Removes and adds the rows of an index, if the key has one.
///
/// # Errors
/// Interrupted.
pub(crate) fn write_index(work: &mut Work, entry: &Arc<TableEntry>, number: usize, change: &KeyChange) -> Result<()> {
    let Some(index) = &entry.indexes[number] else { return Ok(()) };
    if change.removed.is_empty() && change.added.is_empty() {
        return Ok(());
    }
    let mut interrupt = work.interrupt();
    let mut writer = work.write(entry, index);
    change_index(&mut writer, &entry.definition.keys[number], change, &mut interrupt)
}

/// The same with what writes to the index at hand.
///
/// # Errors
/// Interrupted.
pub(crate) fn change_index(
    writer: &mut TableWriter<'_>,
    key: &Key,
    change: &KeyChange,
    interrupt: &mut Interrupt,
) -> Result<()> {
    let width = key.columns.len();
    let types: Vec<DataType> = writer.schema().iter().map(|field| field.ty).collect();
    // Those with a NULL are not in a unique index.
    let is_in = |row: &&Vec<Value>| key.kind == KeyKind::Index || !row[..width].iter().any(Value::is_null);
    for row in change.removed.iter().filter(is_in) {
        interrupt.look_now_and_then()?;
        let id = find_row(writer, &datums(row, &types), width).expect("every row is in the index");
        writer.delete(id);
    }
    for row in change.added.iter().filter(is_in) {
        interrupt.look_now_and_then()?;
        writer.insert(&datums(row, &types));
    }
    Ok(())
}

/// A row with these values, the first `width` of which are its layout key.
fn find_row(writer: &TableWriter<'_>, row: &[Datum<'_>], width: usize) -> Option<RowId> {
    let mut found = None;
    writer.find_each(&row[..width], |id| {
        let is_it = (width..row.len()).all(|column| writer.datum(id, column).is_same(row[column]));
        found = is_it.then_some(id);
        !is_it
    });
    found
}

/// Judges a key by the rows that came: no two rows may have one of their keys.
pub(crate) fn judge(work: &mut Work, entry: &Arc<TableEntry>, number: usize, change: &KeyChange) -> Result<()> {
    if entry.definition.keys[number].kind == KeyKind::Index || change.added.is_empty() {
        return Ok(());
    }
    let table = entry.indexes[number].as_ref().unwrap_or(&entry.table).clone();
    let mut interrupt = work.interrupt();
    judge_added(&work.write(entry, &table), entry, number, change, &mut interrupt)
}

/// The same with what writes to the table that is laid out by the key.
///
/// # Errors
/// Constraint; interrupted.
pub(crate) fn judge_added(
    writer: &TableWriter<'_>,
    entry: &TableEntry,
    number: usize,
    change: &KeyChange,
    interrupt: &mut Interrupt,
) -> Result<()> {
    let key = &entry.definition.keys[number];
    if key.kind == KeyKind::Index {
        return Ok(());
    }
    let width = key.columns.len();
    let types = types(entry, &key.columns);
    for row in change.added.iter().filter(|row| !row[..width].iter().any(Value::is_null)) {
        interrupt.look_now_and_then()?;
        if rows_with(writer, &datums(&row[..width], &types), 2).len() > 1 {
            return Err(duplicate(entry, number, &row[..width]));
        }
    }
    Ok(())
}

/// The error for a second row with a key.
pub(crate) fn duplicate(entry: &TableEntry, number: usize, values: &[Value]) -> Error {
    let key = &entry.definition.keys[number];
    let shown = shown(entry, &key.columns, values);
    let text = format!("duplicate key: {shown} is in table {} already (constraint {})", entry.name, key.name);
    Error::new(ErrorKind::Constraint, text)
}
