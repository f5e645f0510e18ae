//! Keyed statements on tables with indexes: the row in the table and its rows in the indexes change together.
//!
//! 1. The old and the new row give the rows that each index loses and gains.
//! 2. Keys are checked in their order, before anything is written, so nothing has to be undone.
//! 3. The table is written, then the indexes.

use crate::constraints::keys::{KeyChange, change_index, duplicate};
use crate::constraints::row::judge_null;
use crate::constraints::values::Values;
use crate::program::{Action, IndexedKey, Program};
use crate::rows::Rows;
use crate::session::Session;
use crate::work::Work;
use entasis_storage::definition::KeyKind;
use entasis_storage::{Datum, Waiter};
use entasis_vector::{DataType, Result, Value};

/// A row that a statement changes.
struct RowChange {
    /// The old row; `None` if it is new.
    old: Option<Values>,
    /// The new row; `None` if it is removed.
    new: Option<Values>,
}

impl Program {
    /// Runs as a transaction of its own, which holds the table's turn to write.
    pub(super) fn run_alone(
        &self,
        session: &Session,
        changes: u64,
        key: &[Datum<'_>],
        parameters: &[(Value, DataType)],
        waiter: &Waiter<'_>,
    ) -> Result<Option<Rows>> {
        let mut work = Work::statement(session, &[], std::slice::from_ref(&self.entry), waiter)?;
        if session.shared.catalog.changes() != changes {
            return Ok(None);
        }
        let written = self.write_with_indexes(&mut work, key, parameters)?;
        if written.is_some() {
            work.commit(waiter)?;
            session.shared.committed();
        }
        Ok(written)
    }

    /// Writes the row, and its rows in the indexes.
    pub(super) fn write_with_indexes(
        &self,
        work: &mut Work,
        key: &[Datum<'_>],
        parameters: &[(Value, DataType)],
    ) -> Result<Option<Rows>> {
        let entry = &self.entry;
        if self.indexed.is_empty() {
            return self.write(&mut work.write(entry, &entry.table), key, parameters);
        }
        let Some(row) = self.row_change(work, key, parameters)? else { return Ok(None) };
        let changes: Vec<(&IndexedKey, KeyChange)> =
            self.indexed.iter().filter_map(|key| Some((key, row.of_key(key)?))).collect();
        for (number, index) in entry.indexes.iter().enumerate() {
            match changes.iter().find(|(indexed, _)| indexed.number == number) {
                Some((indexed, change)) => self.judge(work, indexed, change)?,
                None if index.is_none() => self.judge_layout_key(work, &row)?,
                None => {}
            }
        }
        let written = self.write(&mut work.write(entry, &entry.table), key, parameters)?;
        // One row never reaches a check for interrupts, so it is never left half written.
        let mut interrupt = work.interrupt();
        for (indexed, change) in &changes {
            let index = entry.indexes[indexed.number].as_ref().expect("it is of keys that have one");
            let mut writer = work.write(entry, index);
            change_index(&mut writer, &entry.definition.keys[indexed.number], change, &mut interrupt)?;
        }
        Ok(written)
    }

    /// The change of the row; `None` if one of its new values needs conversion.
    fn row_change(
        &self,
        work: &mut Work,
        key: &[Datum<'_>],
        parameters: &[(Value, DataType)],
    ) -> Result<Option<RowChange>> {
        let schema = self.entry.table.schema();
        let values = |row: &[Datum<'_>]| -> Values {
            row.iter().zip(&**schema).map(|(datum, field)| datum.value(field.ty)).collect()
        };
        if let Action::Insert(sources, _) = &self.action {
            let row = self.row_to_add(sources, parameters)?;
            return Ok(row.map(|row| RowChange { old: None, new: Some(values(&row)) }));
        }
        let writer = work.write(&self.entry, &self.entry.table);
        let Some(row) = writer.find(key) else { return Ok(Some(RowChange { old: None, new: None })) };
        let mut datums = Vec::with_capacity(schema.len());
        writer.read(row, &(0..schema.len()).collect::<Vec<_>>(), &mut datums);
        let old = values(&datums);
        let Action::Update(sources, _) = &self.action else {
            return Ok(Some(RowChange { old: Some(old), new: None }));
        };
        let mut new = old.clone();
        for (column, value) in sources {
            let Some(datum) = value.datum(parameters, |_| None, &[]) else { return Ok(None) };
            judge_null(&self.entry, *column, datum)?;
            new[*column] = datum.value(schema[*column].ty);
        }
        Ok(Some(RowChange { old: Some(old), new: Some(new) }))
    }

    /// Refuses a row whose layout key another row has.
    fn judge_layout_key(&self, work: &mut Work, row: &RowChange) -> Result<()> {
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
        let types = options.layout_key.iter().map(|&column| self.entry.table.schema()[column].ty);
        let datums: Vec<Datum<'_>> =
            new.iter().zip(types).map(|(value, ty)| Datum::of_value(value, ty)).collect();
        self.refuse_taken(&work.write(&self.entry, &self.entry.table), &datums, None)
    }

    /// Refuses a row whose key in an index another row has.
    fn judge(&self, work: &mut Work, indexed: &IndexedKey, change: &KeyChange) -> Result<()> {
        let key = &self.entry.definition.keys[indexed.number];
        let width = key.columns.len();
        let of_row = |rows: &[Values]| rows.first().map(|row| row[..width].to_vec());
        let Some(new) = of_row(&change.added) else { return Ok(()) };
        let is_own = of_row(&change.replaced).is_some_and(|old| old == new);
        if key.kind == KeyKind::Index || is_own || new.iter().any(Value::is_null) {
            return Ok(());
        }
        let index = self.entry.indexes[indexed.number].as_ref().expect("it is of keys that have one");
        let types = key.columns.iter().map(|&column| self.entry.table.schema()[column].ty);
        let datums: Vec<Datum<'_>> =
            new.iter().zip(types).map(|(value, ty)| Datum::of_value(value, ty)).collect();
        match work.write(&self.entry, index).find(&datums) {
            Some(_) => Err(duplicate(&self.entry, indexed.number, &new)),
            None => Ok(()),
        }
    }
}

impl RowChange {
    /// The rows that an index loses and gains; `None` if it does not change.
    fn of_key(&self, key: &IndexedKey) -> Option<KeyChange> {
        let values = |row: &Values| key.columns.iter().map(|&column| row[column].clone()).collect::<Values>();
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
