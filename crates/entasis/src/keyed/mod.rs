//! Keyed statements: rows named by the unique layout key are read or changed, or rows are added, by a short
//! program that runs inline on the calling thread, without binding, plan and pipelines
//! (docs/design/changes.md).
//!
//! 1. The program ([`crate::prepared::program`]) is compiled for one state of the catalog, and again after
//!    each change of it. Arguments are converted to the types of their columns.
//! 2. Outside a transaction it works on the newest version of the table in place: beside other threads, if
//!    values of a row change that fit where the old ones are ([`Table::change_in_place`]), and otherwise
//!    alone. Within a transaction it works on the transaction's version; new values of rows are kept beside
//!    that, if no more is changed ([`entasis_storage::SingleRows`]).
//! 3. If a changed row is in indexes of the table, these are written together with the table ([`indexed`]).
//!
//! The table must be in the current database, which is the session's target database.
//!
//! Checks, foreign keys and more than [`MOST`] rows are not supported. In these cases, and for some errors,
//! the answer is `None`, nothing has been changed, and the statement runs with a plan.
//!
//! [`Table::change_in_place`]: entasis_storage::Table::change_in_place

mod indexed;
mod several;
#[cfg(test)]
mod tests;
mod write;
mod writers;

use crate::constraints::keys::duplicate;
use crate::constraints::row::judge_null;
use crate::prepared::program::{Action, Fill, Outputs, Program, ProgramArguments, compile};
use crate::prepared::{Prepared, State};
use crate::session::Session;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_layout::outlook::OperationKind;
use entasis_storage::{Datum, RowId, TableReader, TableWriter, Waiter, latencies};
use entasis_vector::{DataType, Result, Schema, Value};
use std::sync::Arc;
use write::Changed;

/// The greatest number of rows that a query of several rows reads: other threads cannot write meanwhile.
const MOST: usize = 256;

/// Runs a statement, in the open transaction or by itself, if it is keyed and its program can do it;
/// otherwise returns `None`.
///
/// # Errors
/// Constraint, if one is violated; resource, if the memory limit is reached; interrupted; conflict, if the
/// wait for a lock timed out; those of sequences. Nothing is changed then.
pub(crate) fn run(
    session: &Session,
    open: &mut Option<TransactionContext>,
    prepared: &Prepared,
    parameters: &[(Value, DataType)],
    waiter: &Waiter<'_>,
) -> Result<Option<Rows>> {
    let catalog = &session.shared.catalog;
    // A transaction whose target database is another database has a version of its own of this database.
    if open.as_ref().is_some_and(|transaction| *transaction.database() != *session.database) {
        return Ok(None);
    }
    // Temporary objects are in the connection's own database, and take precedence.
    if session.is_away() && session.own().newest_names().temporary().next().is_some() {
        return Ok(None);
    }
    let changes = catalog.changes();
    let has_own_names =
        |transaction: &TransactionContext| !catalog.at_rest(|newest| transaction.has_names(newest));
    let program = match open {
        // It has changed names, or others have since it began.
        Some(transaction) if has_own_names(transaction) => transaction.program(session, prepared),
        _ => {
            let newest = |keyed: &_| compile(keyed, &session.newest_names(), &session.search_path());
            prepared.program(State { meanings: session.meanings(), changes }, newest)
        }
    };
    let Some(program) = program else { return Ok(None) };
    let is_read = program.action.is_read();
    if session.is_away() && !is_read && session.is_read_only() {
        return Ok(None);
    }
    // It hides tables from queries only.
    if is_read && prepared.table().is_some_and(|table| session.registered_as(table).is_some()) {
        return Ok(None);
    }
    if !is_read {
        session.shared.refuse_change(&program.entry.name)?;
    }
    let Some(arguments) = program.assignments.arguments(parameters) else { return Ok(None) };
    let mut key = Vec::with_capacity(program.key.len());
    for source in &program.key {
        match source.datum(&arguments) {
            // Nothing equals NULL.
            None | Some(Datum::Null) => return Ok(None),
            Some(datum) => key.push(datum),
        }
    }
    let mut rows = Vec::new();
    if let Action::Insert(fills, _) = &program.action {
        for row in fills {
            let Some(row) = program.row_to_add(session, row, &arguments)? else { return Ok(None) };
            rows.push(row);
        }
    }
    let run = Run { program: &program, arguments: &arguments, key: &key, rows: &rows };
    match open {
        Some(transaction) => run.in_transaction(transaction),
        None => run.by_itself(session, changes, waiter),
    }
}

/// One run of a program.
#[derive(Clone, Copy)]
struct Run<'a> {
    program: &'a Program,
    arguments: &'a ProgramArguments<'a>,
    /// The layout key of the row that the statement names.
    key: &'a [Datum<'a>],
    /// The rows that an `INSERT` adds.
    rows: &'a [Vec<Datum<'a>>],
}

impl Program {
    /// A row that an `INSERT` adds; `None`, if one of its values is out of range.
    fn row_to_add<'a>(
        &self,
        session: &Session,
        fills: &'a [Fill],
        arguments: &'a ProgramArguments<'_>,
    ) -> Result<Option<Vec<Datum<'a>>>> {
        let mut row = Vec::with_capacity(fills.len());
        for (fill, field) in fills.iter().zip(self.entry.table.schema()) {
            let datum = match fill {
                Fill::Given(source) => source.datum(arguments),
                Fill::Next(sequence) => {
                    let next = i128::from(session.numbers.take(sequence)?);
                    let range = field.ty.integer_range();
                    let fits = range.is_some_and(|(least, most)| (least..=most).contains(&next));
                    fits.then_some(Datum::Integer(next))
                }
            };
            let Some(datum) = datum else { return Ok(None) };
            row.push(datum);
        }
        // Which violation is named, and whether ON CONFLICT comes first, is for the plan to say.
        let is_complete =
            row.iter().enumerate().all(|(column, datum)| judge_null(&self.entry, column, *datum).is_ok());
        Ok(is_complete.then_some(row))
    }

    /// True if the layout key of a row to be added may be taken.
    fn is_key(&self, row: &[Datum<'_>]) -> bool {
        let options = self.entry.table.options();
        options.is_distinct() && !options.layout_key.iter().any(|&column| row[column].is_null())
    }

    /// The layout key of a row.
    fn key_of<'a>(&self, row: &[Datum<'a>]) -> Vec<Datum<'a>> {
        self.entry.table.options().layout_key.iter().map(|&column| row[column]).collect()
    }

    /// Some values of a row.
    fn values(&self, datums: &[Datum<'_>], columns: &[usize]) -> Vec<Value> {
        let schema = self.entry.table.schema();
        columns.iter().zip(datums).map(|(&column, datum)| datum.value(schema[column].ty)).collect()
    }

    /// The result of a change.
    fn result(&self, changed: Changed) -> Result<Rows> {
        match &self.returning {
            None => Ok(Rows::changed_rows(changed.count)),
            Some(Outputs { schema, .. }) => Ok(result(schema, changed.returned)?.with_changed(changed.count)),
        }
    }

    /// Refuses a key that a row other than `own` has already.
    fn refuse_taken(&self, writer: &TableWriter<'_>, key: &[Datum<'_>], own: Option<RowId>) -> Result<()> {
        match writer.find(key) {
            Some(row) if Some(row) != own => {
                let number =
                    self.entry.indexes.iter().position(Option::is_none).expect("the layout key is a key");
                Err(duplicate(&self.entry, number, &self.values(key, &self.entry.table.options().layout_key)))
            }
            _ => Ok(()),
        }
    }
}

impl Run<'_> {
    fn by_itself(self, session: &Session, changes: u64, waiter: &Waiter<'_>) -> Result<Option<Rows>> {
        let (program, shared) = (self.program, &session.shared);
        if program.action.is_read() {
            return self.result_of(self.timed(|| program.entry.table.read(|reader| self.read(reader))));
        }
        // Removing rows needs no memory.
        if !matches!(program.action, Action::Delete) {
            shared.may_write()?;
        }
        if !shared.is_read_only() {
            shared.can_commit()?;
        }
        if !program.indexed.is_empty() {
            return self.with_indexes_by_itself(session, changes, waiter);
        }
        if let Some(changed) = self.write_in_place(|| shared.catalog.changes() == changes)? {
            shared.committed();
            return program.result(changed).map(Some);
        }
        let mut writer = program.entry.table.write_as(waiter)?;
        // A change of a table's definition needs the write lock, which is held now, so the definition is
        // fixed.
        if shared.catalog.changes() != changes {
            return Ok(None);
        }
        let Some(changed) = self.timed(|| self.write(&mut writer))? else { return Ok(None) };
        writer.commit()?;
        shared.wrote(program.bytes(self.arguments));
        shared.committed();
        program.result(changed).map(Some)
    }

    fn in_transaction(self, transaction: &mut TransactionContext) -> Result<Option<Rows>> {
        let program = self.program;
        if program.action.is_read() {
            let rows = self.timed(|| transaction.read(&program.entry.table, |reader| self.read(reader)));
            return self.result_of(rows);
        }
        if !matches!(program.action, Action::Delete) {
            transaction.may_write()?;
        }
        let used = transaction.used().len();
        let changed = self.timed(|| match &program.action {
            _ if !program.indexed.is_empty() => self.with_indexes_in(transaction),
            Action::Update(set, false) => match transaction.keep(&program.entry) {
                Some(mut kept) => self.keep(&mut kept, set),
                None => self.write(&mut transaction.write(&program.entry, &program.entry.table)),
            },
            _ => self.write(&mut transaction.write(&program.entry, &program.entry.table)),
        });
        match changed {
            Ok(Some(changed)) => {
                transaction.wrote(program.bytes(self.arguments));
                program.result(changed).map(Some)
            }
            // Nothing was written, so the transaction may still choose another database as its target
            // database.
            other => {
                transaction.forget_use(used);
                other.map(|_| None)
            }
        }
    }

    /// Times what is done with the table, if it is an operation on one row.
    fn timed<R>(self, run: impl FnOnce() -> R) -> R {
        let operation = match &self.program.action {
            Action::Read(_) => OperationKind::PointQuery,
            Action::Insert(..) if self.rows.len() == 1 => OperationKind::Insert,
            Action::Delete => OperationKind::Delete,
            Action::Update(_, true) => OperationKind::Update,
            _ => return run(),
        };
        let began = latencies::begin();
        let result = run();
        self.program.entry.table.latencies().end(operation, began);
        result
    }

    /// The rows that a query returns; `None` if they must be read with a plan.
    fn read(self, reader: &TableReader<'_>) -> Option<Vec<Vec<Value>>> {
        match &self.program.action {
            Action::ReadSeveral(Outputs { columns, .. }, several) => {
                self.read_several(reader, columns, several)
            }
            Action::Read(Outputs { columns, .. }) => {
                let row = reader.find(self.key).map(|row| {
                    let mut datums = Vec::with_capacity(columns.len());
                    reader.read(row, columns, &mut datums);
                    self.program.values(&datums, columns)
                });
                Some(row.into_iter().collect())
            }
            _ => unreachable!("changes do not only read"),
        }
    }

    /// The result of a query, once its rows have been read, and nobody waits.
    fn result_of(self, rows: Option<Vec<Vec<Value>>>) -> Result<Option<Rows>> {
        match (&self.program.action, rows) {
            (Action::Read(outputs) | Action::ReadSeveral(outputs, _), Some(rows)) => {
                result(&outputs.schema, rows).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// A result of some rows.
fn result(schema: &Arc<Schema>, mut rows: Vec<Vec<Value>>) -> Result<Rows> {
    match rows.len() {
        1 => Ok(Rows::of_row(schema.clone(), rows.remove(0))),
        _ => Rows::of_schema(Schema::clone(schema), &rows),
    }
}
