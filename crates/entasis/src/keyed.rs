//! Keyed statements: a row named by a unique layout key is read or changed, or a row is added, by a short
//! program that runs inline on the calling thread, without binding, plan and pipelines (design.md, section
//! 4).
//!
//! The program ([`crate::program`]) is compiled for one state of the catalog, and again after each change of
//! it. Outside a transaction it works on the newest version of the table in place; within one, on the
//! transaction's version. If the row is in indexes of the table, the program writes to all of them at once,
//! in a transaction of its own ([`indexed`]).
//!
//! The table must be in the current database, which is the session's home.
//!
//! Checks, foreign keys and values that must be converted are not supported; on tables with indexes, neither
//! are sums, `ON CONFLICT` and `RETURNING`. In these cases the answer is `None`, nothing has been changed,
//! and the statement runs with a plan.

mod indexed;
#[cfg(test)]
mod tests;

use crate::constraints::keys::duplicate;
use crate::constraints::row::judge_null;
use crate::prepared::{Prepared, State};
use crate::program::{Action, NewValue, Program, Returning, Source, compile};
use crate::rows::Rows;
use crate::session::Session;
use crate::work::Work;
use entasis_storage::{Datum, RowId, TableWriter, Waiter};
use entasis_vector::{DataType, Result, Schema, Value};
use std::sync::Arc;

/// Runs a statement, in the open transaction or by itself, if it is keyed and its values need no conversion;
/// otherwise returns `None`.
///
/// # Errors
/// Constraint, if one is violated; resource, if the memory limit is reached; interrupted; conflict, if the
/// wait for a lock timed out. Nothing is changed then.
pub(crate) fn run(
    session: &Session,
    open: &mut Option<Work>,
    prepared: &Prepared,
    parameters: &[(Value, DataType)],
    waiter: &Waiter<'_>,
) -> Result<Option<Rows>> {
    let catalog = &session.shared.catalog;
    // A transaction whose home is another database has a version of its own of this database.
    if open.as_ref().is_some_and(|work| *work.database() != *session.database) {
        return Ok(None);
    }
    // A transaction that has changed names sees names of its own.
    if open.as_ref().is_some_and(|work| !catalog.at_rest(|newest| work.has_names(newest))) {
        return Ok(None);
    }
    // Temporary objects are in the connection's own database, and take precedence.
    if session.is_away() && session.own().newest_names().temporary().next().is_some() {
        return Ok(None);
    }
    let changes = catalog.changes();
    let newest = |keyed: &_| compile(keyed, &session.newest_names(), &session.search_path());
    let state = State { meanings: session.meanings(), changes };
    let Some(program) = prepared.program(state, newest) else { return Ok(None) };
    if session.is_away() && !matches!(program.action, Action::Read { .. }) && session.is_read_only() {
        return Ok(None);
    }
    if prepared.table().is_some_and(|table| session.is_registered(table)) {
        return Ok(None);
    }
    if !matches!(program.action, Action::Read { .. }) {
        session.shared.refuse_change(&program.entry.name)?;
    }
    let mut key = Vec::with_capacity(program.key.len());
    for source in &program.key {
        match source.datum(parameters) {
            // Nothing equals NULL.
            None | Some(Datum::Null) => return Ok(None),
            Some(datum) => key.push(datum),
        }
    }
    match open {
        Some(work) => program.run_in(work, &key, parameters),
        None => program.run_by_itself(session, changes, &key, parameters, waiter),
    }
}

impl Program {
    fn run_by_itself(
        &self,
        session: &Session,
        changes: u64,
        key: &[Datum<'_>],
        parameters: &[(Value, DataType)],
        waiter: &Waiter<'_>,
    ) -> Result<Option<Rows>> {
        let shared = &session.shared;
        if let Action::Read { columns, schema } = &self.action {
            return self.entry.table.read(|rows| {
                let mut datums = Vec::with_capacity(columns.len());
                if let Some(row) = rows.find(key) {
                    rows.read(row, columns, &mut datums);
                }
                row(schema, &datums).map(Some)
            });
        }
        // Removing rows needs no memory.
        if !matches!(self.action, Action::Delete) {
            shared.may_write()?;
        }
        if !self.indexed.is_empty() {
            return self.run_alone(session, changes, key, parameters, waiter);
        }
        if !shared.is_read_only() {
            shared.can_commit()?;
        }
        let mut writer = self.entry.table.write_as(waiter)?;
        // A change of a table's definition needs the turn to write, which is held now, so the definition is
        // fixed.
        if shared.catalog.changes() != changes {
            return Ok(None);
        }
        let written = self.write(&mut writer, key, parameters)?;
        writer.commit()?;
        shared.wrote(self.bytes(parameters));
        shared.committed();
        Ok(written)
    }

    fn run_in(
        &self,
        work: &mut Work,
        key: &[Datum<'_>],
        parameters: &[(Value, DataType)],
    ) -> Result<Option<Rows>> {
        if let Action::Read { columns, schema } = &self.action {
            let snapshot = work.snapshot(&self.entry.table);
            let mut datums = Vec::with_capacity(columns.len());
            if let Some(row) = snapshot.find(key) {
                snapshot.read(row, columns, &mut datums);
            }
            return row(schema, &datums).map(Some);
        }
        if !matches!(self.action, Action::Delete) {
            work.may_write()?;
        }
        let used = work.used().len();
        let written = self.write_with_indexes(work, key, parameters);
        match &written {
            Ok(Some(_)) => work.wrote(self.bytes(parameters)),
            // Nothing was written, so the transaction may still choose another database as its home.
            _ => work.forget_use(used),
        }
        written
    }

    fn write(
        &self,
        writer: &mut TableWriter<'_>,
        key: &[Datum<'_>],
        parameters: &[(Value, DataType)],
    ) -> Result<Option<Rows>> {
        let changed = match &self.action {
            Action::Read { .. } => unreachable!("reads do not write"),
            Action::Insert(sources, set) => {
                let Some(row) = self.row_to_add(sources, parameters)? else { return Ok(None) };
                let options = self.entry.table.options();
                let key: Vec<Datum<'_>> = options.layout_key.iter().map(|&column| row[column]).collect();
                let is_key = options.is_distinct() && !key.iter().any(|datum| datum.is_null());
                match (set, is_key.then(|| writer.find(&key)).flatten()) {
                    (_, None) => Some(writer.insert(&row)),
                    (Some(set), Some(_)) if set.is_empty() => None,
                    (Some(set), Some(taken)) => {
                        let Some(changes) = new_values(set, writer, Some(taken), &row, parameters) else {
                            return Ok(None);
                        };
                        for &(column, datum) in &changes {
                            judge_null(&self.entry, column, datum)?;
                        }
                        Some(writer.update(taken, &changes))
                    }
                    (None, Some(_)) => return self.refuse_taken(writer, &key, None).map(|()| None),
                }
            }
            Action::Delete => match writer.find(key) {
                Some(row) => {
                    let deleted = self.changed(writer, Some(row))?;
                    writer.delete(row);
                    return Ok(Some(deleted));
                }
                None => None,
            },
            Action::Update(set, moves) => {
                let found = writer.find(key);
                let Some(changes) = new_values(set, writer, found, &[], parameters) else { return Ok(None) };
                match found {
                    None => None,
                    Some(row) => {
                        for &(column, datum) in &changes {
                            judge_null(&self.entry, column, datum)?;
                        }
                        if *moves {
                            let layout_key = self.entry.table.options().layout_key.iter().zip(key);
                            let new = layout_key.map(|(column, old)| {
                                changes
                                    .iter()
                                    .find(|(changed, _)| changed == column)
                                    .map_or(*old, |(_, new)| *new)
                            });
                            self.refuse_taken(writer, &new.collect::<Vec<_>>(), Some(row))?;
                        }
                        Some(writer.update(row, &changes))
                    }
                }
            }
        };
        self.changed(writer, changed).map(Some)
    }

    /// The result of a change, which has written one row or none.
    fn changed(&self, writer: &TableWriter<'_>, changed: Option<RowId>) -> Result<Rows> {
        let count = u64::from(changed.is_some());
        let Some(Returning { columns, schema }) = &self.returning else {
            return Ok(Rows::changed_rows(count));
        };
        let mut datums = Vec::with_capacity(columns.len());
        if let Some(changed) = changed {
            writer.read(changed, columns, &mut datums);
        }
        Ok(row(schema, &datums)?.with_changed(count))
    }

    /// The row that an `INSERT` adds; `None`, if one of its values must be converted.
    fn row_to_add<'a>(
        &'a self,
        sources: &'a [Option<Source>],
        parameters: &'a [(Value, DataType)],
    ) -> Result<Option<Vec<Datum<'a>>>> {
        let datum = |source: &'a Option<Source>| match source {
            Some(source) => source.datum(parameters),
            None => Some(Datum::Null),
        };
        let Some(row) = sources.iter().map(datum).collect::<Option<Vec<_>>>() else { return Ok(None) };
        row.iter().enumerate().try_for_each(|(column, datum)| judge_null(&self.entry, column, *datum))?;
        Ok(Some(row))
    }

    /// Refuses a key that a row other than `own` has already.
    fn refuse_taken(&self, writer: &TableWriter<'_>, key: &[Datum<'_>], own: Option<RowId>) -> Result<()> {
        match writer.find(key) {
            Some(row) if Some(row) != own => {
                let number =
                    self.entry.indexes.iter().position(Option::is_none).expect("the layout key is a key");
                let types = self.entry.table.options().layout_key.iter();
                let types = types.map(|&column| self.entry.table.schema()[column].ty);
                let values: Vec<Value> = key.iter().zip(types).map(|(datum, ty)| datum.value(ty)).collect();
                Err(duplicate(&self.entry, number, &values))
            }
            _ => Ok(()),
        }
    }
}

/// Columns with their new values; `None` if a value needs conversion, or is out of range. `row` is the row
/// that is changed, if there is one.
fn new_values<'a>(
    set: &'a [(usize, NewValue)],
    writer: &TableWriter<'_>,
    row: Option<RowId>,
    excluded: &[Datum<'a>],
    parameters: &'a [(Value, DataType)],
) -> Option<Vec<(usize, Datum<'a>)>> {
    let old = |column: usize| match writer.datum(row?, column) {
        Datum::Integer(value) => Some(value),
        _ => None,
    };
    set.iter().map(|(column, value)| Some((*column, value.datum(parameters, old, excluded)?))).collect()
}

/// A result of at most one row.
fn row(schema: &Arc<Schema>, datums: &[Datum<'_>]) -> Result<Rows> {
    if datums.is_empty() {
        return Rows::of_schema(Schema::clone(schema), &[]);
    }
    let values = datums.iter().zip(&**schema).map(|(datum, field)| datum.value(field.ty)).collect();
    Ok(Rows::of_row(schema.clone(), values))
}
