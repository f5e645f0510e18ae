//! `UPDATE` and `DELETE`: the rows that a plan names are changed in a fork of the table, which then becomes the table.
//!
//! The table is opened for writing before the statement is bound, so the rows that the plan reads are the fork's. What
//! goes wrong before the end leaves the table as it was. Readers see all of the changes or none.
//!
//! A row whose layout key changes moves, and others with it: then row ids are good no longer, so such an update removes
//! all its rows first and adds them again after that.

use crate::connection::Connection;
use crate::rows::Rows;
use crate::statement;
use entasis_engine::plan::Plan;
use entasis_storage::{Datum, RowId, Statement, Table};
use entasis_vector::{Chunk, Error, ErrorKind, Result, Value};
use std::sync::Arc;

/// Removes the rows that `plan` names from the table that is `open`.
pub(crate) fn delete(connection: &Connection, plan: Plan, mut open: Statement<'_>) -> Result<Rows> {
    let rows = statement::query(connection, plan)?;
    let ids: Vec<RowId> = distinct_rows(&rows).into_iter().map(|(id, ..)| id).collect();
    let mut writer = open.write();
    ids.iter().for_each(|&id| writer.delete(id));
    drop(writer);
    open.commit();
    connection.shared.charge_tables()?;
    Ok(Rows::changed_rows(ids.len() as u64))
}

/// Sets `columns` of the rows that `plan` names, in the table that is `open`, to the values that it gives.
pub(crate) fn update(connection: &Connection, columns: &[usize], plan: Plan, mut open: Statement<'_>) -> Result<Rows> {
    let rows = statement::query(connection, plan)?;
    let table = open.table().clone();
    let found = distinct_rows(&rows);
    for (_, chunk, row) in &found {
        check_nulls(&table, columns, chunk, *row)?;
    }
    let options = table.options();
    let moves = options.layout.is_keyed() && columns.iter().any(|column| options.layout_key.contains(column));
    let mut writer = open.write();
    if moves {
        let types: Vec<_> = table.schema().iter().map(|field| field.ty).collect();
        let new_rows: Vec<Vec<Value>> = found
            .iter()
            .map(|&(id, chunk, row)| {
                let mut values: Vec<Value> =
                    types.iter().enumerate().map(|(column, &ty)| writer.datum(id, column).value(ty)).collect();
                for (at, &column) in columns.iter().enumerate() {
                    values[column] = chunk.value(row, at + 1, types[column]);
                }
                values
            })
            .collect();
        found.iter().for_each(|&(id, ..)| writer.delete(id));
        for values in &new_rows {
            let datums: Vec<Datum<'_>> = values.iter().zip(&types).map(|(v, &ty)| Datum::of_value(v, ty)).collect();
            writer.insert(&datums);
        }
    } else {
        let mut changes = Vec::with_capacity(columns.len());
        for &(id, chunk, row) in &found {
            changes.clear();
            changes.extend(columns.iter().enumerate().map(|(at, &column)| (column, datum(chunk, at + 1, row))));
            writer.update(id, &changes);
        }
    }
    drop(writer);
    open.commit();
    connection.shared.charge_tables()?;
    Ok(Rows::changed_rows(found.len() as u64))
}

/// Removes all rows of some tables.
pub(crate) fn truncate(connection: &Connection, names: &[String]) -> Result<Rows> {
    let mut changed = 0;
    for table in names.iter().filter_map(|name| connection.shared.catalog.table(name)) {
        let mut open = table.statement();
        changed += open.write().clear();
        open.commit();
    }
    connection.shared.charge_tables()?;
    Ok(Rows::changed_rows(changed))
}

/// The rows that `rows` names, in the order of their places, each once: id, and where its new values are.
fn distinct_rows(rows: &Rows) -> Vec<(RowId, &Chunk, usize)> {
    let mut found: Vec<(RowId, &Chunk, usize)> = Vec::with_capacity(rows.rows() as usize);
    for chunk in rows.chunks() {
        let ids = chunk.vector(0).values::<u64>();
        found.extend(ids[..chunk.len()].iter().enumerate().map(|(row, &id)| (RowId::from_u64(id), chunk, row)));
    }
    // Stable: the first of several rows for one id counts.
    found.sort_by_key(|(id, ..)| *id);
    found.dedup_by_key(|(id, ..)| *id);
    found
}

fn datum(chunk: &Chunk, column: usize, row: usize) -> Datum<'_> {
    let position = chunk.positions(column).map_or(row, |positions| positions[row] as usize);
    Datum::of_vector(chunk.vector(column), position)
}

fn check_nulls(table: &Arc<Table>, columns: &[usize], chunk: &Chunk, row: usize) -> Result<()> {
    for (at, &column) in columns.iter().enumerate() {
        let field = &table.schema()[column];
        if !field.nullable && datum(chunk, at + 1, row).is_null() {
            let text = format!("NULL in column {}.{}, which is declared NOT NULL", table.name(), field.name);
            return Err(Error::new(ErrorKind::Constraint, text));
        }
    }
    Ok(())
}
