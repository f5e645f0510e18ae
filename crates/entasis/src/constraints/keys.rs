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
    let mut found = find_rows(writer, removed, &types, width, interrupt)?;
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

/// From so many rows on, rows of an index are removed together.
const MANY: usize = 64;
/// If more than one in so many rows of an index are looked for, all of them are read once.
// PERF: a search reads a whole partition; the number is an estimate, and is to be measured.
const PASS_SHARE: u64 = 32;

/// The ids of rows of an index whose first `width` columns are its layout key.
fn find_rows(
    writer: &TableWriter<'_>,
    rows: Vec<&Values>,
    types: &[DataType],
    width: usize,
    interrupt: &mut Interrupt,
) -> Result<Vec<RowId>> {
    if rows.len() > 1 && rows.len() as u64 > writer.rows() / PASS_SHARE {
        find_in_one_pass(writer, &rows, types, interrupt)
    } else {
        find_by_key(writer, rows, types, width, interrupt)
    }
}

/// Reads all rows of the index, and takes those that are looked for.
fn find_in_one_pass(
    writer: &TableWriter<'_>,
    rows: &[&Values],
    types: &[DataType],
    interrupt: &mut Interrupt,
) -> Result<Vec<RowId>> {
    let mut wanted: HashMap<u64, Vec<Vec<Datum<'_>>>> = HashMap::with_capacity(rows.len());
    for row in rows {
        interrupt.look_now_and_then()?;
        let row = datums(row, types);
        wanted.entry(hash(&row)).or_default().push(row);
    }
    let mut found = Vec::with_capacity(rows.len());
    let columns: Vec<usize> = (0..types.len()).collect();
    writer.each_row(&columns, |id, row| {
        interrupt.look_now_and_then()?;
        if let Some(rows) = wanted.get_mut(&hash(row))
            && let Some(at) = rows.iter().position(|wanted| is_same_row(wanted, row))
        {
            rows.swap_remove(at);
            found.push(id);
        }
        Ok(())
    })?;
    assert!(found.len() == rows.len(), "every row is in the index");
    Ok(found)
}

fn hash(datums: &[Datum<'_>]) -> u64 {
    datums.iter().fold(0u64, |hash, datum| hash.rotate_left(7) ^ datum.hash())
}

fn is_same_row(one: &[Datum<'_>], other: &[Datum<'_>]) -> bool {
    one.iter().zip(other).all(|(a, b)| a.is_same(*b))
}

/// Searches for each row. Rows with the same key are looked up together, because very many other rows may
/// have that key too.
fn find_by_key(
    writer: &TableWriter<'_>,
    mut rows: Vec<&Values>,
    types: &[DataType],
    width: usize,
    interrupt: &mut Interrupt,
) -> Result<Vec<RowId>> {
    let order = |a: &&Values, b: &&Values| {
        let columns = a.iter().zip(*b).take(width).map(|(a, b)| a.total_cmp(b));
        { columns }.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
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
            if let Some(rows) = wanted.get_mut(&hash(&others))
                && let Some(at) = rows.iter().position(|wanted| is_same_row(wanted, &others))
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

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_engine::exec::CancelFlag;
    use entasis_storage::Table;
    use entasis_storage::definition::TableOptions;
    use entasis_vector::{Field, Schema};

    /// An index of a text and a number by which rows of its table are told apart, both with few values, so
    /// that equal rows, equal keys with other numbers, and NULLs occur.
    fn index(rows: u64) -> (std::sync::Arc<Table>, Vec<Values>) {
        let schema: Schema = vec![Field::new("s", DataType::Varchar), Field::new("number", DataType::Int64)];
        let table = Table::with_options("index", schema, TableOptions::keyed(vec![0]));
        let row = |i: u64| {
            let text = (i % 7 != 3).then(|| Value::Text(format!("text {}", i * 7919 % 101).into()));
            vec![text.unwrap_or(Value::Null), Value::Integer((i * 31 % 57).into())]
        };
        let rows: Vec<Values> = (0..rows).map(row).collect();
        let mut writer = table.write();
        rows.iter().for_each(|row| {
            writer.insert(&datums(row, &[DataType::Varchar, DataType::Int64]));
        });
        drop(writer);
        (table, rows)
    }

    #[test]
    fn one_pass_finds_what_searches_find() {
        for (rows, step) in [(1, 1), (10, 3), (3000, 1), (3000, 7), (5000, 450)] {
            let (table, all) = index(rows);
            let wanted: Vec<&Values> = all.iter().step_by(step).collect();
            let types = [DataType::Varchar, DataType::Int64];
            let writer = table.write();
            let mut interrupt = Interrupt::by(CancelFlag::default());
            let values = |ids: Vec<RowId>| {
                let mut ids = ids;
                ids.sort_unstable();
                assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "each row is found once");
                let value = |id: &RowId, column: usize| writer.datum(*id, column).value(types[column]);
                let mut values: Vec<Values> = ids.iter().map(|id| vec![value(id, 0), value(id, 1)]).collect();
                values.sort_by_key(|values| format!("{values:?}"));
                values
            };
            let pass = values(find_in_one_pass(&writer, &wanted, &types, &mut interrupt).unwrap());
            let searched = values(find_by_key(&writer, wanted.clone(), &types, 1, &mut interrupt).unwrap());
            let mut expected: Vec<Values> = wanted.into_iter().cloned().collect();
            expected.sort_by_key(|values| format!("{values:?}"));
            assert_eq!(pass, expected);
            assert_eq!(searched, expected);
        }
    }
}
