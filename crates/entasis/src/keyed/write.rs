//! Changes of a table that has no index of the changed rows, in place: of a row beside other threads
//! ([`Run::write_in_place`]), or of any rows by a writer that has the table for itself.
//!
//! The key of a row is looked up before the row is written, so nothing has to be undone; several rows of an
//! `INSERT` are added or undone together.

use super::Run;
use crate::constraints::row::judge_null;
use crate::prepared::program::{Action, NewValue, ProgramArguments};
use entasis_storage::{Datum, SingleRows, TableWriter};
use entasis_vector::{Error, Result, Value};

/// What a change did: the number of rows that it changed, and what it returns of them.
pub(super) struct Changed {
    pub(super) count: u64,
    pub(super) returned: Vec<Vec<Value>>,
}

impl<'a> Run<'a> {
    /// Changes the table, which has no index of the rows; `None` if it must be done with a plan.
    pub(super) fn write(self, writer: &mut TableWriter<'_>) -> Result<Option<Changed>> {
        let program = self.program;
        match &program.action {
            Action::Read(_) | Action::ReadSeveral(..) => unreachable!("reads do not write"),
            Action::Insert(_, set) => match self.rows {
                [row] => self.insert(writer, row, set.as_deref()),
                rows => self.insert_all(writer, rows),
            },
            Action::Delete => {
                let Some(row) = writer.find(self.key) else { return Ok(Some(Changed::nothing())) };
                let deleted = self.changed(|columns, out| writer.read(row, columns, out));
                writer.delete(row);
                Ok(Some(deleted))
            }
            Action::Update(set, moves) => {
                let found = writer.find(self.key);
                let Some(changes) =
                    new_values(set, |column| Some(writer.datum(found?, column)), &[], self.arguments)
                else {
                    return Ok(None);
                };
                let Some(row) = found else { return Ok(Some(Changed::nothing())) };
                for &(column, datum) in &changes {
                    judge_null(&program.entry, column, datum)?;
                }
                if *moves {
                    let layout_key = program.entry.table.options().layout_key.iter().zip(self.key);
                    let new = layout_key.map(|(column, old)| {
                        changes.iter().find(|(changed, _)| changed == column).map_or(*old, |(_, new)| *new)
                    });
                    program.refuse_taken(writer, &new.collect::<Vec<_>>(), Some(row))?;
                }
                let row = writer.update(row, &changes);
                Ok(Some(self.changed(|columns, out| writer.read(row, columns, out))))
            }
        }
    }

    /// Changes a row beside other threads, if the statement changes one, and the names of the program
    /// are still current; `None` if it must be written alone.
    pub(super) fn write_in_place(self, is_current: impl Fn() -> bool) -> Result<Option<Changed>> {
        let Action::Update(set, false) = &self.program.action else { return Ok(None) };
        self.program.entry.table.change_in_place(self.key, |row| {
            let old = |column| Some(row.datum(column));
            let changes = if is_current() { new_values(set, old, &[], self.arguments) } else { None };
            let Some(changes) = changes else { return Ok(None) };
            for &(column, datum) in &changes {
                judge_null(&self.program.entry, column, datum)?;
            }
            let is_changed = row.change(&changes)?;
            Ok(is_changed.then(|| self.changed(|columns, out| row.read(columns, out))))
        })
    }

    /// Changes the row that an `UPDATE` names, which does not change its layout key, as a transaction sees
    /// it; `None` if it must be done with a plan.
    pub(super) fn keep(
        self,
        kept: &mut SingleRows<'_>,
        set: &'a [(usize, NewValue)],
    ) -> Result<Option<Changed>> {
        let found = kept.find(self.key);
        let Some(changes) = new_values(set, |column| Some(kept.datum(found?, column)), &[], self.arguments)
        else {
            return Ok(None);
        };
        let Some(row) = found else { return Ok(Some(Changed::nothing())) };
        for &(column, datum) in &changes {
            judge_null(&self.program.entry, column, datum)?;
        }
        kept.update(row, &changes);
        Ok(Some(self.changed(|columns, out| kept.read(row, columns, out))))
    }

    fn insert(
        self,
        writer: &mut TableWriter<'_>,
        row: &[Datum<'a>],
        set: Option<&'a [(usize, NewValue)]>,
    ) -> Result<Option<Changed>> {
        let program = self.program;
        let key = program.key_of(row);
        match (set, program.is_key(row).then(|| writer.find(&key)).flatten()) {
            (_, None) => {
                writer.insert(row);
                Ok(Some(self.added(row)))
            }
            (Some([]), Some(_)) => Ok(Some(Changed::nothing())),
            (Some(set), Some(taken)) => {
                let Some(changes) =
                    new_values(set, |column| Some(writer.datum(taken, column)), row, self.arguments)
                else {
                    return Ok(None);
                };
                for &(column, datum) in &changes {
                    judge_null(&program.entry, column, datum)?;
                }
                let row = writer.update(taken, &changes);
                Ok(Some(self.changed(|columns, out| writer.read(row, columns, out))))
            }
            (None, Some(_)) => program.refuse_taken(writer, &key, None).map(|()| None),
        }
    }

    /// Adds several rows, or none: `None` if one of their keys is taken, perhaps by another of them.
    fn insert_all(self, writer: &mut TableWriter<'_>, rows: &[Vec<Datum<'a>>]) -> Result<Option<Changed>> {
        let mut all = Changed::nothing();
        let mut insert = |writer: &mut TableWriter<'_>| -> Result<()> {
            for row in rows {
                let one = self.insert(writer, row, None)?;
                all.add(one.ok_or_else(|| Error::internal("a row without ON CONFLICT was not added"))?);
            }
            Ok(())
        };
        let is_added = match self.program.entry.table.options().is_distinct() {
            true => writer.atomically(insert).is_ok(),
            false => insert(writer).is_ok(),
        };
        // With a plan, all keys are checked at once, and the error names another row.
        Ok(is_added.then_some(all))
    }

    /// That this row was added.
    fn added(self, row: &[Datum<'_>]) -> Changed {
        let program = self.program;
        let returned = program.returning.iter().map(|outputs| {
            let datums: Vec<Datum<'_>> = outputs.columns.iter().map(|&column| row[column]).collect();
            program.values(&datums, &outputs.columns)
        });
        Changed { count: 1, returned: returned.collect() }
    }

    /// That this row is changed, or is about to be removed.
    fn changed<'r>(self, read: impl Fn(&[usize], &mut Vec<Datum<'r>>)) -> Changed {
        let program = self.program;
        let returned = program.returning.iter().map(|outputs| {
            let mut datums = Vec::with_capacity(outputs.columns.len());
            read(&outputs.columns, &mut datums);
            program.values(&datums, &outputs.columns)
        });
        Changed { count: 1, returned: returned.collect() }
    }
}

impl Changed {
    pub(super) fn nothing() -> Changed {
        Changed { count: 0, returned: Vec::new() }
    }

    pub(super) fn add(&mut self, other: Changed) {
        self.count += other.count;
        self.returned.extend(other.returned);
    }
}

/// Columns with their new values; `None` if a value is out of range. `old` gives values of the row that is
/// changed, if there is one.
pub(super) fn new_values<'a, 'r>(
    set: &'a [(usize, NewValue)],
    old: impl Fn(usize) -> Option<Datum<'r>>,
    excluded: &[Datum<'a>],
    arguments: &'a ProgramArguments<'_>,
) -> Option<Vec<(usize, Datum<'a>)>> {
    let old = |column: usize| match old(column)? {
        Datum::Integer(value) => Some(value),
        _ => None,
    };
    set.iter().map(|(column, value)| Some((*column, value.datum(arguments, old, excluded)?))).collect()
}
