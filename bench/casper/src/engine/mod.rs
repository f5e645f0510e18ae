//! The same operations on tables of our storage, without SQL: as `entasis::keyed` does them, one statement at
//! a time on the newest version; ranges on a snapshot.
//!
//! ```text
//! mod    one table, in any layout
//! delta  two tables: a main part and a small one for what is new
//! read   counts and sums of ranges, on blocks as they are encoded
//! upkeep the thread that does what a database does in the background
//! ```
//! Unlike the bare column, an insertion looks first whether its key is there, as a primary key asks for.

mod delta;
mod read;
mod upkeep;

pub use delta::{LAYOUT as LAYOUT_OF_TWO, Two};
pub use read::fold as folded;
pub use upkeep::{Keeper, Kept, REST};

use crate::operations::{READ, fill, key_of};
use crate::store::Store;
use entasis_layout::random::Random;
use entasis_storage::{Datum, Layout, RowId, Table, TableOptions};
use entasis_vector::{Chunk, DataType, Field, Schema, Selection, Vector};
use std::sync::Arc;

/// A key as a datum.
fn datum(key: i64) -> [Datum<'static>; 1] {
    [Datum::Integer(key.into())]
}

/// The columns that queries read, in the table: the key is the first.
fn read_columns() -> [usize; READ.len()] {
    READ.map(|column| column + 1)
}

/// The sum of data that were read.
fn total(values: &[Datum<'_>]) -> i64 {
    values.iter().map(|value| if let Datum::Integer(value) = value { *value as i64 } else { 0 }).sum()
}

fn schema(payloads: usize) -> Schema {
    let key = Field { nullable: false, ..Field::new("a0", DataType::Int64) };
    let payload = (1..=payloads).map(|number| Field::new(format!("a{number}"), DataType::Int32));
    std::iter::once(key).chain(payload).collect()
}

/// The options of a table with this layout.
pub fn options(layout: Layout) -> TableOptions {
    match layout {
        Layout::Insertion => TableOptions::default(),
        // As `TableOptions::of` has it.
        Layout::Delta => TableOptions { layout, unique: true, ghost: 0.1, ..TableOptions::keyed(vec![0]) },
        _ => TableOptions { layout, unique: true, ..TableOptions::keyed(vec![0]) },
    }
}

/// A new table without rows.
fn empty(payloads: usize, options: TableOptions) -> Arc<Table> {
    Table::with_options("hap", schema(payloads), options)
}

/// A table with loaded rows; in random order if it has no key.
pub fn loaded(rows: u64, payloads: usize, options: TableOptions) -> Arc<Table> {
    holding((0..rows).map(key_of).collect(), payloads, options)
}

/// A table with loaded rows in the order of their keys; `read` fills the payload of each key.
pub fn filled(
    rows: u64,
    payloads: usize,
    options: TableOptions,
    read: impl FnMut(i64, &mut [i32]),
) -> Arc<Table> {
    let table = empty(payloads, options);
    append(&table, payloads, &(0..rows).map(key_of).collect::<Vec<i64>>(), read);
    table
}

/// A table that was loaded with the rows of some keys; in random order if it has no key.
pub fn holding(mut keys: Vec<i64>, payloads: usize, options: TableOptions) -> Arc<Table> {
    if options.layout == Layout::Insertion {
        let mut random = Random::new(7);
        (1..keys.len()).rev().for_each(|at| keys.swap(at, random.below(at + 1)));
    }
    let table = empty(payloads, options);
    append(&table, payloads, &keys, fill);
    table
}

/// Appends rows in bulk; `read` fills the payload of each key.
fn append(table: &Arc<Table>, payloads: usize, keys: &[i64], mut read: impl FnMut(i64, &mut [i32])) {
    let mut appender = table.appender();
    let (mut chunk, mut row) = (Chunk::new(), vec![0; payloads]);
    let mut columns = vec![Vec::new(); payloads];
    for keys in keys.chunks(2048) {
        columns.iter_mut().for_each(Vec::clear);
        for &key in keys {
            read(key, &mut row);
            columns.iter_mut().zip(&row).for_each(|(column, value)| column.push(*value));
        }
        chunk.reset(keys.len());
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(Vector::from_slice(keys), group);
        columns.iter().for_each(|column| chunk.push_column(Vector::from_slice(column), group));
        appender.append(&chunk, 0).expect("rows are fine");
    }
    table.commit(vec![appender.finish()]).expect("rows are fine");
}

/// A table of our storage. Clones are the same table, for other threads.
#[derive(Clone)]
pub struct Stored {
    table: Arc<Table>,
    is_keyed: bool,
}

impl Stored {
    /// The operations on a table that [`loaded`] made.
    pub fn new(table: Arc<Table>) -> Stored {
        let is_keyed = table.options().layout.is_keyed();
        Stored { table, is_keyed }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The row with a key in a table without a layout key, as a scan finds it.
    fn scanned(&self, key: i64) -> Option<RowId> {
        read::rows(&self.table.snapshot(), key, key).next()
    }

    /// Changes the row with a key, if there is one.
    fn change(
        &self,
        key: i64,
        change: impl FnOnce(&mut entasis_storage::TableWriter<'_>, RowId) -> bool,
    ) -> bool {
        loop {
            let scanned = if self.is_keyed { None } else { self.scanned(key) };
            let mut writer = self.table.write();
            if self.is_keyed {
                let Some(row) = writer.find(&datum(key)) else { return false };
                return change(&mut writer, row);
            }
            let Some(row) = scanned else { return false };
            // Upkeep may have moved it since.
            if matches!(writer.datum(row, 0), Datum::Integer(found) if found == i128::from(key)) {
                return change(&mut writer, row);
            }
        }
    }
}

/// The data of a row.
fn data(key: i64, row: &[i32]) -> Vec<Datum<'static>> {
    let payload = row.iter().map(|value| Datum::Integer(i128::from(*value)));
    std::iter::once(Datum::Integer(key.into())).chain(payload).collect()
}

impl Store for Stored {
    fn point(&mut self, key: i64) -> Option<i64> {
        if !self.is_keyed {
            let snapshot = self.table.snapshot();
            let (count, sum) = read::fold(&snapshot, key, key, &read_columns());
            return (count > 0).then_some(sum);
        }
        self.table.read(|reader| {
            let row = reader.find(&datum(key))?;
            let mut values = Vec::with_capacity(READ.len());
            reader.read(row, &read_columns(), &mut values);
            Some(total(&values))
        })
    }

    fn count(&mut self, low: i64, high: i64) -> u64 {
        read::fold(&self.table.snapshot(), low, high, &[]).0
    }

    fn sum(&mut self, low: i64, high: i64) -> i64 {
        read::fold(&self.table.snapshot(), low, high, &read_columns()).1
    }

    fn insert(&mut self, key: i64, row: &[i32]) {
        let row = data(key, row);
        let mut writer = self.table.write();
        if !self.is_keyed || writer.find(&row[..1]).is_none() {
            writer.insert(&row);
        }
    }

    fn delete(&mut self, key: i64) -> bool {
        self.change(key, |writer, row| {
            writer.delete(row);
            true
        })
    }

    fn update(&mut self, from: i64, to: i64) -> bool {
        let is_keyed = self.is_keyed;
        self.change(from, |writer, row| {
            let is_new = !is_keyed || writer.find(&datum(to)).is_none();
            if is_new {
                writer.update(row, &[(0, Datum::Integer(to.into()))]);
            }
            is_new
        })
    }

    fn bytes(&self) -> usize {
        self.table.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::twin::compare;
    use std::time::Duration;

    const LAYOUTS: [Layout; 6] =
        [Layout::Insertion, Layout::Sorted, Layout::Delta, Layout::Equi, Layout::EquiGhost, Layout::Casper];

    fn small(layout: Layout) -> TableOptions {
        TableOptions { block_slots: 64, group_slots: 512, partitions: 8, ..options(layout) }
    }

    #[test]
    fn all_layouts_equal_their_twin() {
        for (seed, layout) in LAYOUTS.into_iter().enumerate() {
            let mut store = Stored::new(loaded(1000, 16, small(layout)));
            let _keeper = Keeper::of(vec![store.table().clone()], Duration::from_millis(1));
            compare(&format!("{layout:?}"), &mut store, 1000, 16, seed as u64);
        }
    }

    #[test]
    fn two_tables_equal_their_twin() {
        for full in [1, 20, 300] {
            let mut store = Two::new(loaded(1000, 16, small(LAYOUT_OF_TWO)), 16, full);
            compare("two tables", &mut store, 1000, 16, 9);
            assert!(store.counts().merges > 0);
        }
    }
}
