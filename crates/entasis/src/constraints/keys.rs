//! Keys: how their indexes change, and the check that no two rows have equal keys.

use super::values::{Values, shown};
use crate::interrupt::Interrupt;
use entasis_storage::definition::{Key, KeyKind};
use entasis_storage::{Datum, RowId, TableEntry, TableWriter};
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, ErrorKind, Result, Value};
use std::cmp::Ordering;
use std::collections::HashMap;

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

fn datums<'a>(values: &'a [Value], types: &[DataType]) -> Vec<Datum<'a>> {
    values.iter().zip(types).map(|(value, &ty)| Datum::of_value(value, ty)).collect()
}

fn types(entry: &TableEntry, columns: &[usize]) -> Vec<DataType> {
    columns.iter().map(|&column| entry.table.schema()[column].ty).collect()
}

/// Removes and adds the rows of an index, through a writer of the index.
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
    // Rows with a NULL are not in a unique index.
    let is_in = |row: &&Vec<Value>| key.kind == KeyKind::Index || !row[..width].iter().any(Value::is_null);
    let removed: Vec<&Vec<Value>> = change.removed.iter().chain(&change.replaced).filter(is_in).collect();
    for id in find_rows(writer, removed, &types, width, interrupt)? {
        writer.delete(id);
    }
    for row in change.added.iter().filter(is_in) {
        interrupt.look_now_and_then()?;
        writer.insert(&datums(row, &types));
    }
    Ok(())
}

/// The ids of rows of an index whose first `width` columns are its layout key. Rows with the same key are
/// looked up together, because very many other rows may have that key too.
fn find_rows(
    writer: &TableWriter<'_>,
    mut rows: Vec<&Vec<Value>>,
    types: &[DataType],
    width: usize,
    interrupt: &mut Interrupt,
) -> Result<Vec<RowId>> {
    let order = |a: &&Vec<Value>, b: &&Vec<Value>| {
        let columns = a.iter().zip(*b).take(width).map(|(a, b)| a.total_cmp(b));
        { columns }.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    let hash =
        |datums: &[Datum<'_>]| datums.iter().fold(0u64, |hash, datum| hash.rotate_left(7) ^ datum.hash());
    rows.sort_by(order);
    let mut found = Vec::with_capacity(rows.len());
    for same in rows.chunk_by(|a, b| order(a, b).is_eq()) {
        let mut wanted: HashMap<u64, Vec<Vec<Datum<'_>>>> = HashMap::new();
        for row in same {
            interrupt.look_now_and_then()?;
            let others = datums(&row[width..], &types[width..]);
            wanted.entry(hash(&others)).or_default().push(others);
        }
        let mut left = same.len();
        writer.find_each(&datums(&same[0][..width], types), |id| {
            let others: Vec<Datum<'_>> =
                (width..types.len()).map(|column| writer.datum(id, column)).collect();
            let is_it = |wanted: &Vec<Datum<'_>>| wanted.iter().zip(&others).all(|(a, b)| a.is_same(*b));
            if let Some(rows) = wanted.get_mut(&hash(&others))
                && let Some(at) = rows.iter().position(is_it)
            {
                rows.swap_remove(at);
                found.push(id);
                left -= 1;
            }
            left > 0
        });
        assert!(left == 0, "every row is in the index");
    }
    Ok(found)
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
    Error::new(ErrorKind::Constraint, text).with_sqlstate(sqlstate::UNIQUE)
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
