//! Keyed statements on tables with indexes: the row in the table and its rows in the indexes change together.
//!
//! 1. The old and the new row give the rows that each index loses and gains.
//! 2. Keys are checked in their order, before anything is written, so nothing has to be undone.
//! 3. The table is written, then the indexes.
//!
//! By itself, a statement that changes one row writes to the heads of all of them in place
//! ([`HeadWriters`]). One that adds several rows may fail at a later one, so it is a small transaction.

use super::Run;
use super::write::{Changed, new_values};
use super::writers::{InWork, Writers};
use crate::constraints::keys::{KeyChange, change_index, duplicate};
use crate::constraints::row::judge_null;
use crate::constraints::values::{Values, indexed};
use crate::prepared::program::{Action, IndexedKey, NewValue, Program};
use crate::session::Session;
use crate::state::interrupt::Interrupt;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_storage::definition::KeyKind;
use entasis_storage::{Datum, HeadWriters, RowId, TableWriter, Waiter};
use entasis_vector::{Result, Value};

/// A row that a statement changes.
struct RowChange {
    /// Where the old row is; `None` if the row is new.
    place: Option<RowId>,
    /// The old row; `None` if it is new.
    old: Option<Values>,
    /// The new row; `None` if it is removed.
    new: Option<Values>,
    /// The columns that change, if it is neither.
    columns: Vec<usize>,
}

/// What is to be done with a row.
enum Step {
    /// It is changed.
    Change(RowChange),
    /// There is none, or it stays as it is.
    Nothing,
    /// A value is out of range, so that a plan must do it.
    NeedsPlan,
}

impl<'a> Run<'a> {
    /// Runs as a statement by itself.
    pub(super) fn with_indexes_by_itself(
        self,
        session: &Session,
        changes: u64,
        waiter: &Waiter<'_>,
    ) -> Result<Option<Rows>> {
        let (program, shared) = (self.program, &session.shared);
        if self.rows.len() > 1 {
            let mut transaction =
                TransactionContext::of_statement(session, &[], std::slice::from_ref(&program.entry), waiter)?;
            if shared.catalog.changes() != changes {
                return Ok(None);
            }
            let Some(changed) = self.with_indexes_in(&mut transaction)? else { return Ok(None) };
            transaction.commit(waiter)?;
            shared.committed();
            return program.result(changed).map(Some);
        }
        let entry = &program.entry;
        let indexes = program.indexed.iter().filter_map(|key| entry.indexes[key.number].as_ref());
        let mut heads = HeadWriters::of_tables(std::iter::once(&entry.table).chain(indexes), waiter)?;
        // A change of a table's definition needs the write lock, which is held now.
        if shared.catalog.changes() != changes {
            return Ok(None);
        }
        let mut interrupt = Interrupt::by(session.cancel.clone());
        let changed = self.timed(|| self.with_indexes(&mut heads, &mut interrupt))?;
        let Some(changed) = changed else { return Ok(None) };
        heads.commit()?;
        shared.wrote(program.bytes(self.arguments) * (1 + program.indexed.len()));
        shared.committed();
        program.result(changed).map(Some)
    }

    /// Runs in a transaction. If it fails, or cannot be done without a plan, nothing has been changed.
    pub(super) fn with_indexes_in(self, transaction: &mut TransactionContext) -> Result<Option<Changed>> {
        let mut interrupt = transaction.interrupt();
        let entry = &self.program.entry;
        if self.rows.len() <= 1 {
            return self.with_indexes(&mut InWork { transaction: &mut *transaction, entry }, &mut interrupt);
        }
        let mark = transaction.mark();
        let added = self.add_all(&mut InWork { transaction: &mut *transaction, entry }, &mut interrupt);
        if added.is_err() {
            transaction.roll_back(&mark);
        }
        transaction.forget(&mark);
        // With a plan, all keys are checked at once, and the error names another row.
        Ok(added.ok())
    }

    fn add_all<W: Writers>(self, writers: &mut W, interrupt: &mut Interrupt) -> Result<Changed> {
        let mut all = Changed::nothing();
        for row in self.rows {
            let change = RowChange::added(self.program, row);
            all.add(self.judge_and_apply(writers, &change, interrupt)?);
        }
        Ok(all)
    }

    /// Changes one row, and its rows in the indexes; `None` if it must be done with a plan.
    fn with_indexes<W: Writers>(self, writers: &mut W, interrupt: &mut Interrupt) -> Result<Option<Changed>> {
        match writers.with(&self.program.entry.table, |writer| self.step(writer))? {
            Step::NeedsPlan => Ok(None),
            Step::Nothing => Ok(Some(Changed::nothing())),
            Step::Change(change) => self.judge_and_apply(writers, &change, interrupt).map(Some),
        }
    }

    /// What is to be done with the row that the statement names or adds.
    fn step(self, writer: &TableWriter<'_>) -> Result<Step> {
        let program = self.program;
        match &program.action {
            Action::Read(_) | Action::ReadSeveral(..) => unreachable!("reads do not write"),
            Action::Insert(_, set) => {
                let row = &self.rows[0];
                let taken = program.is_key(row).then(|| writer.find(&program.key_of(row))).flatten();
                match (set.as_deref(), taken) {
                    (None, _) | (_, None) => Ok(Step::Change(RowChange::added(program, row))),
                    (Some([]), Some(_)) => Ok(Step::Nothing),
                    (Some(set), Some(taken)) => self.set(writer, taken, set, row),
                }
            }
            Action::Update(set, _) => match writer.find(self.key) {
                Some(found) => self.set(writer, found, set, &[]),
                None => Ok(Step::Nothing),
            },
            Action::Delete => Ok(match writer.find(self.key) {
                None => Step::Nothing,
                Some(found) => Step::Change(RowChange {
                    place: Some(found),
                    old: Some(whole_row(program, writer, found)),
                    new: None,
                    columns: Vec::new(),
                }),
            }),
        }
    }

    /// The row at `found` with new values.
    fn set(
        self,
        writer: &TableWriter<'_>,
        found: RowId,
        set: &'a [(usize, NewValue)],
        excluded: &[Datum<'a>],
    ) -> Result<Step> {
        let (program, schema) = (self.program, self.program.entry.table.schema());
        let old = whole_row(program, writer, found);
        let Some(changes) =
            new_values(set, |column| Some(writer.datum(found, column)), excluded, self.arguments)
        else {
            return Ok(Step::NeedsPlan);
        };
        let mut new = old.clone();
        for &(column, datum) in &changes {
            judge_null(&program.entry, column, datum)?;
            new[column] = datum.value(schema[column].ty);
        }
        let columns = changes.iter().map(|(column, _)| *column).collect();
        Ok(Step::Change(RowChange { place: Some(found), old: Some(old), new: Some(new), columns }))
    }

    /// Checks the keys of a new row, and then writes it and its rows in the indexes.
    fn judge_and_apply<W: Writers>(
        self,
        writers: &mut W,
        row: &RowChange,
        interrupt: &mut Interrupt,
    ) -> Result<Changed> {
        let (program, entry) = (self.program, &self.program.entry);
        let number = writers.with(&entry.table, |writer| match row.place {
            Some(place) => writer.number_of(place),
            None => writer.next_number(),
        });
        let changes: Vec<(&IndexedKey, KeyChange)> =
            program.indexed.iter().filter_map(|key| Some((key, row.of_key(key, number)?))).collect();
        for (number, index) in entry.indexes.iter().enumerate() {
            match index {
                None => writers.with(&entry.table, |writer| program.judge_layout_key(writer, row))?,
                Some(index) => {
                    if let Some((_, change)) = changes.iter().find(|(key, _)| key.number == number) {
                        writers.with(index, |writer| program.judge(writer, number, change))?;
                    }
                }
            }
        }
        writers.with(&entry.table, |writer| row.apply(program, writer));
        // One row never reaches a check for interrupts, so it is never left half written.
        for (key, change) in &changes {
            let index = entry.indexes[key.number].as_ref().expect("it is of keys that have one");
            writers.with(index, |writer| change_index(writer, entry, key.number, change, interrupt))?;
        }
        Ok(row.changed(program))
    }
}

impl Program {
    /// Refuses a row whose layout key another row has.
    fn judge_layout_key(&self, writer: &TableWriter<'_>, row: &RowChange) -> Result<()> {
        let options = self.entry.table.options();
        let key =
            |row: &Values| options.layout_key.iter().map(|&column| row[column].clone()).collect::<Values>();
        let (old, new) = (row.old.as_ref().map(key), row.new.as_ref().map(key));
        let Some(new) = new.filter(|new| options.is_distinct() && Some(new) != old.as_ref()) else {
            return Ok(());
        };
        if new.iter().any(Value::is_null) {
            return Ok(());
        }
        self.refuse_taken(writer, &self.datums(&options.layout_key, &new), None)
    }

    /// Refuses a row whose key in an index another row has.
    fn judge(&self, writer: &TableWriter<'_>, number: usize, change: &KeyChange) -> Result<()> {
        let key = &self.entry.definition.keys[number];
        let width = key.columns.len();
        let of_row = |rows: &[Values]| rows.first().map(|row| row[..width].to_vec());
        let Some(new) = of_row(&change.added) else { return Ok(()) };
        let is_own = of_row(&change.replaced).is_some_and(|old| old == new);
        if key.kind == KeyKind::Index || is_own || new.iter().any(Value::is_null) {
            return Ok(());
        }
        match writer.find(&self.datums(&key.columns, &new)) {
            Some(_) => Err(duplicate(&self.entry, number, &new)),
            None => Ok(()),
        }
    }

    /// Values of these columns as datums.
    fn datums<'v>(&self, columns: &[usize], values: &'v [Value]) -> Vec<Datum<'v>> {
        let types = columns.iter().map(|&column| self.entry.table.schema()[column].ty);
        values.iter().zip(types).map(|(value, ty)| Datum::of_value(value, ty)).collect()
    }
}

/// All values of a row.
fn whole_row(program: &Program, writer: &TableWriter<'_>, row: RowId) -> Values {
    let all: Vec<usize> = (0..program.entry.table.schema().len()).collect();
    let mut datums = Vec::with_capacity(all.len());
    writer.read(row, &all, &mut datums);
    program.values(&datums, &all)
}

impl RowChange {
    fn added(program: &Program, row: &[Datum<'_>]) -> RowChange {
        let all: Vec<usize> = (0..row.len()).collect();
        RowChange { place: None, old: None, new: Some(program.values(row, &all)), columns: Vec::new() }
    }

    /// Writes the row of the table.
    fn apply(&self, program: &Program, writer: &mut TableWriter<'_>) {
        match (self.place, &self.new) {
            (None, None) => {}
            (Some(place), None) => writer.delete(place),
            (None, Some(new)) => {
                let all: Vec<usize> = (0..new.len()).collect();
                writer.insert(&program.datums(&all, new));
            }
            (Some(place), Some(new)) => {
                let values: Values = self.columns.iter().map(|&column| new[column].clone()).collect();
                let datums = program.datums(&self.columns, &values);
                let changes: Vec<_> = self.columns.iter().copied().zip(datums).collect();
                writer.update(place, &changes);
            }
        }
    }

    /// What the statement returns of it.
    fn changed(&self, program: &Program) -> Changed {
        let row = self.new.as_ref().or(self.old.as_ref());
        let of = |columns: &Vec<usize>| -> Option<Values> {
            columns.iter().map(|&column| Some(row?[column].clone())).collect()
        };
        let returned = program.returning.iter().filter_map(|outputs| of(&outputs.columns)).collect();
        Changed { count: 1, returned }
    }

    /// The rows that an index loses and gains; `None` if it does not change. `number` is the row's number.
    fn of_key(&self, key: &IndexedKey, number: u64) -> Option<KeyChange> {
        let values = |row: &Values| indexed(row, &key.columns, number);
        let (old, new) = (self.old.as_ref().map(values), self.new.as_ref().map(values));
        if old == new {
            return None;
        }
        let is_update = new.is_some();
        let (replaced, removed) = if is_update { (old, None) } else { (None, old) };
        let rows = |row: Option<Values>| row.into_iter().collect::<Vec<_>>();
        Some(KeyChange {
            columns: key.columns.clone(),
            removed: rows(removed),
            replaced: rows(replaced),
            added: rows(new),
        })
    }
}
