//! Constraints on single rows: NOT NULL, and CHECK, whose conditions are computed by the statement's plan.

use super::values::{datum, shown};
use entasis_storage::{Datum, TableEntry};
use entasis_vector::error::sqlstate;
use entasis_vector::{Chunk, Error, ErrorKind, Result, Value};

/// Refuses a NULL in a column that is declared `NOT NULL`.
pub(crate) fn judge_null(entry: &TableEntry, column: usize, value: Datum<'_>) -> Result<()> {
    let field = &entry.table.schema()[column];
    if field.nullable || !value.is_null() {
        return Ok(());
    }
    let text = format!("NULL in column {}.{}, which is declared NOT NULL", entry.name, field.name);
    Err(Error::new(ErrorKind::Constraint, text).with_sqlstate(sqlstate::NOT_NULL))
}

/// The same for the values of a column in a chunk, where it is column `source`.
pub(crate) fn judge_nulls(entry: &TableEntry, column: usize, chunk: &Chunk, source: usize) -> Result<()> {
    if !entry.table.schema()[column].nullable && chunk.vector(source).validity().is_some() {
        (0..chunk.len()).try_for_each(|row| judge_null(entry, column, datum(chunk, source, row)))?;
    }
    Ok(())
}

/// Refuses rows for which one of `checks` is FALSE; the first of them is column `first` of the chunks.
pub(crate) fn judge_checks(
    entry: &TableEntry,
    checks: &[String],
    first: usize,
    chunks: &[Chunk],
) -> Result<()> {
    for (number, name) in checks.iter().enumerate() {
        for chunk in chunks {
            let is_false = |row: &usize| matches!(datum(chunk, first + number, *row), Datum::Integer(0));
            if let Some(row) = (0..chunk.len()).find(is_false) {
                return Err(violated(entry, name, chunk, row, first));
            }
        }
    }
    Ok(())
}

/// The error of a CHECK; the chunk has `values` columns before the checks. If these include all columns of
/// the table, they are the last of them.
fn violated(entry: &TableEntry, name: &str, chunk: &Chunk, row: usize, values: usize) -> Error {
    let schema = entry.table.schema();
    let condition =
        entry.definition.checks.iter().find(|check| check.name == name).map_or("", |check| &check.sql);
    let mut text = format!("CHECK constraint {name} of table {} ({condition}) is violated", entry.name);
    if let Some(first) = values.checked_sub(schema.len()) {
        let mentioned =
            |column: &usize| condition.to_lowercase().contains(&schema[*column].name.to_lowercase());
        let columns: Vec<usize> = (0..schema.len()).filter(mentioned).collect();
        let value = |&column: &usize| -> Value { chunk.value(row, first + column, schema[column].ty) };
        let values: Vec<Value> = columns.iter().map(value).collect();
        if !columns.is_empty() {
            text += &format!(" by a row with {}", shown(entry, &columns, &values));
        }
    }
    Error::new(ErrorKind::Constraint, text).with_sqlstate(sqlstate::CHECK)
}
