//! Batches of commits against their slow twin, which does commit by commit on one thread: what random logs
//! are recovered as, whole and with torn ends.
//!
//! Rows with names of all kinds come, change, go and come again, some in the order of their keys, one by one
//! and many at once, in tables and their indexes. Names change in between, numbers of a sequence are taken,
//! and checkpoints are made. There must be the same rows with the same numbers, and as many distinct values
//! as ever were there.

use super::logged::{Logged, recovered};
use crate::catalog::{CatalogVersion, Entry, IfExists, TableEntry};
use crate::checkpoint::batches::Batching;
use crate::checkpoint::objects::tables_of;
use crate::definition::{Counting, Definition, Key, KeyKind, Sequence};
use crate::table::Table;
use crate::table::tests::lineages::widened;
use crate::table::tests::model::{Row, datums, random_row};
use crate::table::tests::rows::column_chunk;
use crate::tests::random::Random;
use crate::{Curve, Datum, Layout, RowId, TableOptions, TableWriter, Transaction, index};
use entasis_vector::{DataType, Field, Schema, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The column of most keys, of which the test takes care.
const KEY: usize = 0;
/// The column of the indexes.
const INDEXED: usize = 1;
/// The tables that there are at most.
const TABLES: u64 = 9;

fn schema() -> Schema {
    let key = |name: &str, ty| Field { nullable: false, ..Field::new(name, ty) };
    vec![
        key("k", DataType::Int64),
        Field::new("v", DataType::Int32),
        key("t", DataType::Varchar),
        Field::new("f", DataType::Float64),
        key("w", DataType::Int32),
        Field::new("u", DataType::Uuid),
    ]
}

/// Rows are named by numbers; by keys that are words or bytes, sorted or not, on a curve, or counted; and by
/// all their values, as their keys are not distinct or may be NULL.
fn options(number: u64) -> TableOptions {
    let sizes = TableOptions {
        block_slots: 16,
        group_slots: 128,
        partitions: 8,
        ghost: 0.1,
        ..TableOptions::default()
    };
    let keyed = |layout, columns: &[usize]| TableOptions {
        layout,
        layout_key: columns.to_vec(),
        unique: true,
        distinct: true,
        ..sizes.clone()
    };
    match number % TABLES {
        0 | 1 => sizes.clone(),
        2 => keyed(Layout::EquiGhost, &[KEY]),
        3 => keyed(Layout::EquiGhost, &[2, KEY]),
        4 => keyed(Layout::Sorted, &[KEY]),
        5 => TableOptions { curve: Some(Curve::Hilbert), ..keyed(Layout::EquiGhost, &[KEY, 4]) },
        6 => keyed(Layout::Casper, &[KEY]),
        7 => TableOptions { unique: false, distinct: false, ..keyed(Layout::EquiGhost, &[KEY]) },
        _ => TableOptions { unique: false, ..keyed(Layout::Delta, &[INDEXED]) },
    }
}

/// A table, with an index if its number is even and no column of the index is its key.
fn new_table(number: u64) -> TableEntry {
    let (schema, options) = (schema(), options(number));
    let table = Table::with_options(format!("t{number}"), schema.clone(), options.clone());
    let key = Key { name: format!("i{number}"), columns: vec![INDEXED], kind: KeyKind::Index };
    let Some(index) = index::index_table(&key, &schema, &options).filter(|_| number.is_multiple_of(2)) else {
        return TableEntry::plain(table);
    };
    let options =
        TableOptions { block_slots: 16, group_slots: 128, partitions: 8, ..index.options().clone() };
    let index = Table::with_options(index.name(), index.schema().clone(), options);
    let definition = Arc::new(Definition { keys: vec![key], ..Definition::default() });
    TableEntry { name: table.name().to_owned(), table, definition, indexes: vec![Some(index)] }
}

/// Which keys a writer of the test gives.
struct Keys<'r> {
    random: &'r mut Random,
    /// The greatest so far.
    last: i128,
}

impl Keys<'_> {
    /// A row with a key behind all others, or with one of a few.
    fn row(&mut self, schema: &Schema) -> Row {
        let mut row = random_row(schema, self.random);
        self.last += 1;
        let key = if self.random.below(2) == 0 { self.last } else { self.random.below(150).into() };
        row[KEY] = Value::Integer(key);
        row
    }
}

/// True if a table cannot take a row, because its key is distinct and taken.
fn is_taken(writer: &TableWriter<'_>, options: &TableOptions, row: &[Datum<'_>]) -> bool {
    let key: Vec<Datum<'_>> = options.layout_key.iter().map(|&column| row[column]).collect();
    options.is_distinct() && !key.iter().any(|datum| datum.is_null()) && writer.find(&key).is_some()
}

/// One change.
fn step(table: &Arc<Table>, writer: &mut TableWriter<'_>, keys: &mut Keys<'_>) {
    let (schema, options) = (table.schema(), table.options());
    let new = keys.row(schema);
    let new = datums(&new, schema);
    let one = writer.rows_where(|| keys.random.below(20) == 0).first().copied();
    let is_key = |column: usize| options.layout_key.contains(&column);
    match (keys.random.below(32), one) {
        (0..10, _) if !is_taken(writer, options, &new) => _ = writer.insert(&new),
        (10..20, Some(row)) => {
            let chosen = new.iter().copied().enumerate().filter(|(column, _)| !is_key(*column));
            let chosen: Vec<_> = chosen.filter(|_| keys.random.below(2) == 0).collect();
            writer.update(row, &chosen);
        }
        (20, Some(row)) if !is_taken(writer, options, &new) => {
            writer.update(row, &new.iter().copied().enumerate().collect::<Vec<_>>());
        }
        (21..24, Some(row)) => writer.delete(row),
        (24..27, Some(row)) => {
            // A row goes, and another one with its key comes.
            let mut again: Row = new.iter().zip(schema).map(|(datum, field)| datum.value(field.ty)).collect();
            let of_row = |column: usize| writer.datum(row, column).value(schema[column].ty);
            options.layout_key.iter().for_each(|&column| again[column] = of_row(column));
            writer.delete(row);
            writer.insert(&datums(&again, schema));
        }
        (27, _) => {
            let count = keys.random.below(90);
            let mut rows: Vec<Row> = (0..count).map(|_| keys.row(schema)).collect();
            rows.retain(|row| !is_taken(writer, options, &datums(row, schema)));
            // Keys may come twice, and other columns be the key.
            rows.sort_by(|one, other| one[KEY].total_cmp(&other[KEY]));
            rows.dedup_by(|one, other| one[KEY].total_cmp(&other[KEY]).is_eq());
            if options.is_distinct() && !is_key(KEY) {
                rows.truncate(1);
            }
            let mut appender = table.appender();
            appender.append(&column_chunk(&rows, schema, false), 0).expect("rows of the table");
            writer.append(vec![appender.finish()]).expect("memory suffices");
        }
        (28, _) => {
            let rows = writer.rows_where(|| keys.random.below(4) == 0);
            let new: Vec<Row> = rows.iter().map(|_| keys.row(schema)).collect();
            let columns = (0..schema.len()).filter(|&column| !is_key(column) && keys.random.below(2) == 0);
            let columns: Vec<(usize, usize)> = columns.map(|column| (column, column)).collect();
            writer.update_chunk(&rows, &columns, &column_chunk(&new, schema, false));
        }
        (29, _) => {
            let rows = writer.rows_where(|| keys.random.below(6) == 0);
            writer.delete_many(&rows);
        }
        (30, _) if keys.random.below(6) == 0 => _ = writer.clear(),
        _ => {}
    }
}

/// The rows that an index with some columns has of a table, by what they look like.
fn indexed(writer: &TableWriter<'_>, columns: &[usize]) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    writer.find_slowly(|id, schema| {
        let mut row = Vec::new();
        writer.read_indexed(id, columns, &mut row);
        let ty = |column: usize| index::index_type(column, schema);
        let row: Row = row.iter().zip(columns).map(|(datum, &column)| datum.value(ty(column))).collect();
        rows.insert(format!("{row:?}"), row);
        false
    });
    rows
}

/// Changes a table, and its index with it.
fn change(rows: &mut Transaction, entry: &TableEntry, keys: &mut Keys<'_>) {
    let table = &entry.table;
    let steps = 1 + keys.random.below(12);
    let Some((key, Some(index))) = entry.definition.keys.first().zip(entry.indexes.first()) else {
        let mut writer = rows.write(table);
        return (0..steps).for_each(|_| step(table, &mut writer, keys));
    };
    let columns = index::index_columns(key, table.options());
    let (before, after) = {
        let mut writer = rows.write(table);
        let before = indexed(&writer, &columns);
        (0..steps).for_each(|_| step(table, &mut writer, keys));
        (before, indexed(&writer, &columns))
    };
    let mut writer = rows.write(index);
    for (_, row) in before.iter().filter(|(shown, _)| !after.contains_key(*shown)) {
        let row = datums(row, index.schema());
        let is_it = |writer: &TableWriter<'_>, id| {
            row.iter().enumerate().all(|(column, datum)| writer.datum(id, column).is_same(*datum))
        };
        let id = writer.find_slowly(|id, _| is_it(&writer, id)).expect("the index has it");
        writer.delete(id);
    }
    for (_, row) in after.iter().filter(|(shown, _)| !before.contains_key(*shown)) {
        writer.insert(&datums(row, index.schema()));
    }
}

/// The rows of all tables and indexes: without a layout key in their order and with their numbers, else
/// sorted.
fn rows_of(names: &CatalogVersion) -> BTreeMap<String, Vec<String>> {
    let rows = |table: &Arc<Table>| {
        let snapshot = table.snapshot();
        snapshot.check();
        let is_keyed = table.options().layout.is_keyed();
        let row = |id: RowId| {
            let datums: Vec<_> = (0..table.schema().len()).map(|column| snapshot.datum(id, column)).collect();
            format!("{} {datums:?}", if is_keyed { 0 } else { snapshot.number_of(id) })
        };
        let mut rows: Vec<String> = snapshot.row_ids().map(row).collect();
        match is_keyed {
            true => rows.sort_unstable(),
            false => rows.push(format!("next {}", snapshot.pinned().0.next_number)),
        }
        (table.name().to_owned(), rows)
    };
    names.tables().flat_map(|entry| tables_of(entry)).map(rows).collect()
}

/// Distinct values of all columns, and what the sequence gives out next.
fn counted(names: &CatalogVersion) -> Vec<String> {
    let tables = names.tables().flat_map(|entry| tables_of(entry));
    let estimates = tables.map(|table| {
        let head = table.head();
        let columns: Vec<u64> = head.sketches.iter().map(|sketch| sketch.estimate()).collect();
        format!("{} {columns:?}", table.name())
    });
    let next = names.sequence("s").map(|sequence| format!("s {:?}", sequence.next()));
    estimates.chain(next).collect()
}

/// Panics unless the log of a database, whole and with a torn end, is recovered as the same in every way.
fn compare(logged: &Logged, random: &mut Random, what: &str) {
    let files = [logged.file_bytes(), logged.log_bytes()];
    let mut torn = files.clone();
    let end = random.below(torn[1].len() as u64) as usize;
    torn[1][end..].fill(0);
    let twin = recovered(files.clone(), Batching::alone()).expect("they belong together");
    assert_eq!(rows_of(&twin.catalog.version()), rows_of(&logged.catalog.version()), "{what}");
    for files in [files, torn] {
        let twin = recovered(files.clone(), Batching::alone());
        for threads in [1, 3] {
            let bytes = [100, 3000, 1 << 24][random.below(3) as usize];
            let what = format!("{what}, {threads} threads, {bytes} bytes");
            match (&twin, recovered(files.clone(), Batching { threads, bytes })) {
                (Ok(twin), Ok(found)) => {
                    let [one, other] = [&twin.catalog, &found.catalog].map(|catalog| catalog.version());
                    assert_eq!(rows_of(&one), rows_of(&other), "{what}");
                    assert_eq!(counted(&one), counted(&other), "{what}");
                    let ends = [&twin.tail, &found.tail].map(|tail| tail.position());
                    assert_eq!((twin.commits, ends[0]), (found.commits, ends[1]), "{what}");
                }
                // A segment in the middle of the log is gone.
                (Err(one), Err(other)) => assert_eq!(one.message(), other.message(), "{what}"),
                (one, other) => panic!("{what}: {:?} and {:?}", one.as_ref().err(), other.err()),
            }
        }
    }
}

#[test]
fn commits_that_are_done_together_do_what_each_does_by_itself() {
    for seed in 1..=8 {
        let mut logged = Logged::new();
        // Some of the rows that come many at once are in the data file.
        logged.loads.set_least(1 << 13);
        let counting = Counting { start: 1, increment: 1, min: 1, max: i64::MAX, cycle: false };
        let sequence = Arc::new(Sequence::new("s", counting));
        let (mut random, mut chosen) = (Random(seed * 0x9E37_79B9), Random(seed));
        let keys = &mut Keys { random: &mut random, last: 1000 };
        let first = |names: &mut CatalogVersion| {
            _ = names.add(Entry::Sequence(sequence.clone()), IfExists::Fail).expect("the name is new");
            (0..TABLES).for_each(|number| names.put(Entry::Table(Arc::new(new_table(number)))));
        };
        logged.rename(first, false).expect("memory does not fail");
        let mut next = TABLES;
        for turn in 0..100 {
            let names = logged.catalog.version();
            let entries: Vec<Arc<TableEntry>> = names.tables().cloned().collect();
            let entry = &entries[chosen.below(entries.len() as u64) as usize];
            match chosen.below(40) {
                0 => {
                    // A table goes, and another one of its kind comes.
                    next += 1;
                    let new = Entry::Table(Arc::new(new_table(next)));
                    let change = |names: &mut CatalogVersion| {
                        assert!(names.take(&entry.name));
                        names.put(new);
                    };
                    logged.rename(change, false).expect("memory does not fail");
                }
                1 if entry.indexes.is_empty() => {
                    let new =
                        TableEntry { name: entry.name.clone(), ..TableEntry::plain(widened(&entry.table)) };
                    logged.rename(|names| names.put(Entry::Table(Arc::new(new))), false).expect("as above");
                }
                2 | 3 => (0..20).for_each(|_| _ = sequence.take().expect("there are more")),
                4 if turn % 3 == 0 => logged.checkpoint(),
                5..12 if entry.indexes.is_empty() => {
                    let mut writer = entry.table.write();
                    step(&entry.table, &mut writer, keys);
                    writer.commit().expect("memory does not fail");
                }
                _ => {
                    let written: Vec<_> = entries
                        .iter()
                        .filter(|own| Arc::ptr_eq(own, entry) || chosen.below(4) == 0)
                        .collect();
                    let tables = written.iter().flat_map(|entry| tables_of(entry)).cloned();
                    let mut rows = Transaction::alone(&tables.collect::<Vec<_>>());
                    written.iter().for_each(|entry| change(&mut rows, entry, keys));
                    rows.commit(|_| Ok(())).expect("memory does not fail");
                }
            }
            if turn % 20 == 19 {
                compare(&logged, &mut chosen, &format!("seed {seed}, turn {turn}"));
            }
        }
    }
}
