//! Keys: how their indexes change, and the check that no two rows have equal keys.

use super::indexed_rows::{datums, find_rows};
use super::values::{Values, about, shown};
use crate::state::interrupt::Interrupt;
use entasis_storage::definition::KeyKind;
use entasis_storage::{Datum, RowId, TableEntry, TableWriter};
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, Result, Value};

/// The values that a key of the table gains and loses.
#[derive(Default)]
pub(crate) struct KeyChange {
    /// The columns of the table that are recorded.
    pub(crate) columns: Vec<usize>,
    /// Values of removed rows.
    pub(crate) removed: Vec<Values>,
    /// Old values of updated rows. The first entries of `added` are their new values.
    pub(crate) replaced: Vec<Values>,
    pub(crate) added: Vec<Values>,
}

impl KeyChange {
    /// Old and new values of updated rows.
    pub(crate) fn updated(&self) -> impl Iterator<Item = (&Values, &Values)> {
        self.replaced.iter().zip(&self.added)
    }

    /// Values of new rows.
    pub(crate) fn new_rows(&self) -> &[Values] {
        &self.added[self.replaced.len()..]
    }
}

fn types(entry: &TableEntry, columns: &[usize]) -> Vec<DataType> {
    columns.iter().map(|&column| entry.table.schema()[column].ty).collect()
}

/// From so many rows on, rows of an index are removed together.
const MANY: usize = 64;

/// Removes and adds the rows of the index of key `number`, through a writer of the index.
///
/// # Errors
/// Interrupted.
pub(crate) fn change_index(
    writer: &mut TableWriter<'_>,
    entry: &TableEntry,
    number: usize,
    change: &KeyChange,
    interrupt: &mut Interrupt,
) -> Result<()> {
    let key = &entry.definition.keys[number];
    let width = key.columns.len();
    let types: Vec<DataType> = writer.schema().iter().map(|field| field.ty).collect();
    // Rows with a NULL are not in a unique index.
    let is_in = |row: &&Values| key.kind == KeyKind::Index || !row[..width].iter().any(Value::is_null);
    let removed: Vec<&Values> = change.removed.iter().chain(&change.replaced).filter(is_in).collect();
    let mut found = find_rows(writer, &entry.table, key, removed, interrupt)?;
    if found.len() < MANY {
        for id in found {
            interrupt.wrote(writer)?;
            writer.delete(id);
        }
    } else {
        found.sort_unstable();
        interrupt.wrote(writer)?;
        writer.delete_many(&found);
    }
    for row in change.added.iter().filter(is_in) {
        interrupt.wrote(writer)?;
        writer.insert(&datums(row, &types));
    }
    Ok(())
}

/// Checks the new rows: no two rows may have the same key. `writer` writes to the table that is laid out by
/// the key.
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
    about(entry, &key.name, &key.columns, text).with_sqlstate(sqlstate::UNIQUE)
}

/// The rows of a writer's table that have a key.
fn rows_with(writer: &TableWriter<'_>, key: &[Datum<'_>], limit: usize) -> Vec<RowId> {
    let mut found = Vec::new();
    writer.find_each(key, |row| {
        found.push(row);
        found.len() < limit
    });
    found
}
