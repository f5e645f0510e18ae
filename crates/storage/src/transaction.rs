//! Transactions over several tables: snapshot isolation, the first committer wins.
//!
//! 1. **Begin** pins all tables at one moment: no commit falls in between, because a commit publishes under all its heads'
//!    locks, and so does this.
//! 2. The first write to a table opens a fork of the pinned version. The transaction reads its forks: its own writes.
//! 3. **Commit** locks the writers of the tables it wrote. A fork whose table is as it was is ready. Otherwise its log is
//!    replayed on a fork of the newest version: a row that was changed or removed must still be there as it was, a key that
//!    was added must still be free in a table whose key is unique. If not, another transaction was first, and this one
//!    fails whole. Then all forks become their heads at one moment.
//!
//! Rows are told by their layout key and their values, without a layout key by their place and their values: a row that has
//! come to hold the same values again is the same row. What two transactions did to different rows of one table goes together,
//! so write skew is possible, as snapshot isolation has it.

use crate::datum::Datum;
use crate::log::{Change, Log};
use crate::snapshot::TableSnapshot;
use crate::table::Table;
use crate::write::{RowId, Shape};
use crate::writer::{ForkSavepoint, TableFork, TableWriter};
use entasis_vector::{Error, ErrorKind, Result, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// See the module. Dropped, it leaves nothing behind.
#[derive(Default)]
pub struct Transaction {
    tables: Vec<Touched>,
    savepoints: Vec<Vec<(usize, ForkSavepoint)>>,
}

/// A table as the transaction began with it, and what it did to it.
struct Touched {
    pinned: TableSnapshot,
    fork: Option<TableFork>,
}

impl Transaction {
    /// A transaction that sees the newest versions of `tables`. Others may be used as well, and are seen as they are when
    /// first used: those that were created since.
    pub fn begin(tables: &[Arc<Table>]) -> Transaction {
        let mut tables: Vec<&Arc<Table>> = tables.iter().collect();
        tables.sort_by_key(|table| Arc::as_ptr(table));
        tables.dedup_by_key(|table| Arc::as_ptr(table));
        let mut heads: Vec<_> = tables.iter().map(|table| table.head()).collect();
        let pinned = tables.iter().zip(&mut heads).map(|(table, head)| table.pin(head)).collect::<Vec<_>>();
        drop(heads);
        let touched = pinned.into_iter().map(|pinned| Touched { pinned, fork: None }).collect();
        Transaction { tables: touched, savepoints: Vec::new() }
    }

    fn index_of(&mut self, table: &Arc<Table>) -> usize {
        let known = self.tables.iter().position(|touched| Arc::ptr_eq(touched.pinned.table(), table));
        known.unwrap_or_else(|| {
            self.tables.push(Touched { pinned: table.snapshot(), fork: None });
            self.tables.len() - 1
        })
    }

    /// What the transaction sees of a table.
    pub fn snapshot(&mut self, table: &Arc<Table>) -> TableSnapshot {
        let index = self.index_of(table);
        match &mut self.tables[index] {
            Touched { fork: Some(fork), .. } => fork.snapshot(),
            Touched { pinned, .. } => pinned.clone(),
        }
    }

    /// Writes to a table. What a statement writes can be undone ([`TableWriter::atomically`]).
    pub fn write(&mut self, table: &Arc<Table>) -> TableWriter<'_> {
        let index = self.index_of(table);
        let Touched { pinned, fork } = &mut self.tables[index];
        fork.get_or_insert_with(|| TableFork::at(pinned, Some(Log::new()))).write()
    }

    /// Sets a savepoint, and says how many there are then: its number.
    pub fn savepoint(&mut self) -> usize {
        let forks = self.tables.iter_mut().enumerate();
        let saved = forks.filter_map(|(index, touched)| Some((index, touched.fork.as_mut()?.savepoint()))).collect();
        self.savepoints.push(saved);
        self.savepoints.len()
    }

    /// Goes back to savepoint `number`, which stays; those set after it are gone.
    ///
    /// # Panics
    /// If there are not so many savepoints.
    pub fn roll_back_to(&mut self, number: usize) {
        self.release(number + 1);
        let saved = self.savepoints.pop().expect("there is such a savepoint");
        let mut is_old = vec![false; self.tables.len()];
        for (index, savepoint) in saved {
            is_old[index] = true;
            self.tables[index].fork.as_mut().expect("it was open").roll_back(savepoint);
        }
        // A fork that was opened since has nothing to keep.
        self.tables.iter_mut().zip(is_old).filter(|(_, is_old)| !is_old).for_each(|(touched, _)| touched.fork = None);
        self.savepoint();
    }

    /// Forgets savepoint `number` and those set after it. What was written stays.
    pub fn release(&mut self, number: usize) {
        while self.savepoints.len() >= number.max(1) {
            for (index, savepoint) in self.savepoints.pop().expect("just counted") {
                self.tables[index].fork.as_mut().expect("it was open").release(savepoint);
            }
        }
    }

    /// Publishes everything, or nothing.
    ///
    /// # Errors
    /// Conflict, if another transaction was first.
    pub fn commit(mut self) -> Result<()> {
        self.release(1);
        let mut forks: Vec<TableFork> = self.tables.drain(..).filter_map(|touched| touched.fork).collect();
        forks.retain(TableFork::is_changed);
        forks.sort_by_key(|fork| Arc::as_ptr(fork.table()));
        let tables: Vec<Arc<Table>> = forks.iter().map(|fork| fork.table().clone()).collect();
        let _writers: Vec<_> = tables.iter().map(|table| table.writers()).collect();
        for fork in &mut forks {
            let is_current = fork.can_fast_forward(&fork.table().head());
            if !is_current {
                *fork = replay(fork)?;
            }
        }
        let mut heads: Vec<_> = tables.iter().map(|table| table.head()).collect();
        forks.into_iter().zip(&mut heads).for_each(|(fork, head)| fork.fast_forward(head));
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.release(1);
    }
}

/// Does what a fork did once more, on the newest version.
fn replay(old: &TableFork) -> Result<TableFork> {
    let table = old.table().clone();
    let mut new = TableFork::at(&table.snapshot(), None);
    let mut places = HashMap::new();
    let mut writer = new.write();
    for operation in old.log().expect("a transaction's fork has a log") {
        match &operation.change {
            Change::Insert { new } => {
                refuse_taken(&writer, &table.shape, new)?;
                let row = datums(new, &table.shape);
                places.insert(operation.row, writer.insert(&row));
            }
            Change::Delete { old } => {
                let row = locate(&writer, &table.shape, operation.row, old, &places)?;
                writer.delete(row);
            }
            Change::Update { old, new, to } => {
                let row = locate(&writer, &table.shape, operation.row, old, &places)?;
                let mut after = old.clone();
                new.iter().for_each(|(column, value)| after[*column] = value.clone());
                if key_of(&after, &table.shape) != key_of(old, &table.shape) {
                    refuse_taken(&writer, &table.shape, &after)?;
                }
                let ty = |column: usize| table.schema()[column].ty;
                let changes: Vec<_> = new.iter().map(|(c, value)| (*c, Datum::of_value(value, ty(*c)))).collect();
                places.insert(*to, writer.update(row, &changes));
            }
        }
    }
    drop(writer);
    Ok(new)
}

fn datums<'a>(row: &'a [Value], shape: &Shape) -> Vec<Datum<'a>> {
    row.iter().zip(&shape.schema).map(|(value, field)| Datum::of_value(value, field.ty)).collect()
}

fn key_of(row: &[Value], shape: &Shape) -> Vec<Value> {
    shape.options.layout_key.iter().map(|&column| row[column].clone()).collect()
}

fn key_datums<'a>(row: &'a [Value], shape: &Shape) -> Vec<Datum<'a>> {
    let key = shape.options.layout_key.iter();
    key.map(|&column| Datum::of_value(&row[column], shape.schema[column].ty)).collect()
}

/// Where a row with the values `old` is, which was at `place` when the transaction saw it.
fn locate(
    writer: &TableWriter<'_>,
    shape: &Shape,
    place: RowId,
    old: &[Value],
    places: &HashMap<RowId, RowId>,
) -> Result<RowId> {
    let is_it = |row: RowId| {
        datums(old, shape).iter().enumerate().all(|(column, datum)| writer.datum(row, column).is_same(*datum))
    };
    let mut found = None;
    if shape.key.is_some() {
        writer.find_each(&key_datums(old, shape), |row| {
            found = is_it(row).then_some(row);
            found.is_none()
        });
    } else {
        let place = places.get(&place).copied().unwrap_or(place);
        found = (writer.is_row(place) && is_it(place)).then_some(place);
    }
    found.ok_or_else(|| conflict(shape, old, "changed or removed"))
}

fn refuse_taken(writer: &TableWriter<'_>, shape: &Shape, row: &[Value]) -> Result<()> {
    if shape.options.unique && writer.find(&key_datums(row, shape)).is_some() {
        return Err(conflict(shape, row, "added"));
    }
    Ok(())
}

fn conflict(shape: &Shape, row: &[Value], what: &str) -> Error {
    // Without a layout key, the first column has to do.
    let columns: &[usize] = if shape.options.layout_key.is_empty() { &[0] } else { &shape.options.layout_key };
    let shown = |&column: &usize| {
        let field = &shape.schema[column];
        format!("{} = {}", field.name, row[column].display(field.ty))
    };
    let key: Vec<String> = columns.iter().map(shown).collect();
    let message = format!("another transaction has {what} the row of table {} with {}", shape.name, key.join(", "));
    Error::new(ErrorKind::Conflict, message).with_hint("roll back and try the transaction again")
}
