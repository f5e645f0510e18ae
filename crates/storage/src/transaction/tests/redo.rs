//! Redo records against their twin: what random writers did to logged tables is done once more from the log,
//! on the version before, and compared row by row; and a disk that stops at any moment.

use crate::backend::{Backend, FaultyDisk, MemoryBackend};
use crate::file::{DatabaseId, State};
use crate::record::Records;
use crate::table::tests::model::datums;
use crate::table::tests::rows::column_chunk;
use crate::tests::random::Random;
use crate::wal::{Log, LogReader, SegmentBytes};
use crate::{Datum, Layout, RowId, Table, TableOptions, TableSnapshot, TableWriter, Transaction};
use entasis_vector::{DataType, Error, ErrorKind, Field, Interval, Schema, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const ID: DatabaseId = DatabaseId(*b"0123456789abcdef");
const LAYOUTS: [Layout; 6] =
    [Layout::Insertion, Layout::Equi, Layout::EquiGhost, Layout::Sorted, Layout::Delta, Layout::Casper];

type Row = Vec<Value>;

fn segment() -> SegmentBytes {
    SegmentBytes::new(1 << 16).expect("many sectors")
}

/// What rows of a table with a layout key are called by.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Key {
    /// The key.
    Unique,
    /// All their values, as keys may be NULL.
    UniqueOrNull,
    /// All their values.
    Any,
}

fn schema(key: Key) -> Schema {
    vec![
        Field { nullable: key == Key::UniqueOrNull, ..Field::new("k", DataType::Int64) },
        Field::new("v", DataType::Int32),
        Field::new("t", DataType::Varchar),
        Field::new("f", DataType::Float64),
        Field::new("i", DataType::Interval),
        Field::new("u", DataType::Uuid),
    ]
}

/// A row for a table with these columns.
fn random_row(schema: &Schema, random: &mut Random) -> Row {
    let raw = random.below(40) as i128;
    let or_null = |value: Value, random: &mut Random| if random.below(7) == 0 { Value::Null } else { value };
    let key = Value::Integer(random.below(200).into());
    vec![
        if schema[0].nullable { or_null(key, random) } else { key },
        or_null(Value::Integer(raw - 9), random),
        or_null(Value::Text("é".repeat(raw as usize).into()), random),
        or_null(Value::Float([f64::NAN, -0.0, raw as f64 / 3.0][random.below(3) as usize]), random),
        or_null(Value::Interval(Interval { months: raw as i32 % 3, days: 30, micros: 5 }), random),
        or_null(Value::Integer(raw << 100), random),
    ]
}

fn table(layout: Layout, key: Key) -> Arc<Table> {
    let layout_key = if layout.is_keyed() { vec![0] } else { Vec::new() };
    let options = TableOptions {
        layout,
        layout_key,
        unique: key != Key::Any,
        block_slots: 8,
        group_slots: 64,
        partitions: 4,
        ..TableOptions::default()
    };
    Table::with_options("t", schema(key), options)
}

/// The rows of a version: without a layout key in their order and with their numbers, else sorted.
fn rows_of(table: &Arc<Table>) -> Vec<String> {
    let snapshot: TableSnapshot = table.snapshot();
    snapshot.check();
    let keyed = table.options().layout.is_keyed();
    let row = |row: RowId| {
        let value = |column: usize| snapshot.datum(row, column).value(snapshot.schema()[column].ty);
        let values: Row = (0..snapshot.schema().len()).map(value).collect();
        format!("{} {values:?}", if keyed { 0 } else { snapshot.number_of(row) })
    };
    let mut rows: Vec<String> = snapshot.row_ids().map(row).collect();
    if keyed {
        rows.sort();
    }
    rows
}

/// One random change. Keys that must be distinct are.
fn step(table: &Arc<Table>, writer: &mut TableWriter<'_>, random: &mut Random) {
    let schema = table.schema();
    let is_taken = |writer: &TableWriter<'_>, row: &Row| {
        let key = &datums(&row[..1], schema);
        table.options().is_distinct() && !key[0].is_null() && writer.find(key).is_some()
    };
    let new = random_row(schema, random);
    match random.below(12) {
        0..=2 if !is_taken(writer, &new) => {
            writer.insert(&datums(&new, schema));
        }
        3 => {
            let mut rows: Vec<Row> = (0..random.below(60)).map(|_| random_row(schema, random)).collect();
            rows.retain(|row| !is_taken(writer, row));
            if table.options().is_distinct() {
                rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
                rows.dedup_by(|a, b| !a[0].is_null() && a[0].total_cmp(&b[0]).is_eq());
            }
            let mut appender = table.appender();
            appender.append(&column_chunk(&rows, schema, false), 0).unwrap();
            writer.append(vec![appender.finish()]).unwrap();
        }
        4..=5 => writer
            .rows_where(|| random.below(30) == 0)
            .first()
            .into_iter()
            .for_each(|&row| writer.delete(row)),
        6..=8 => {
            if let Some(&row) = writer.rows_where(|| random.below(30) == 0).first() {
                let changes = datums(&new, schema).into_iter().enumerate();
                let chosen = |&(column, _): &(usize, Datum<'_>)| {
                    random.below(3) == 0 && (column > 0 || !is_taken(writer, &new))
                };
                let changes: Vec<(usize, Datum<'_>)> = changes.filter(chosen).collect();
                writer.update(row, &changes);
            }
        }
        9 => {
            let rows = writer.rows_where(|| random.below(3) == 0);
            let new: Vec<Row> = rows.iter().map(|_| random_row(schema, random)).collect();
            let columns: Vec<(usize, usize)> =
                (1..schema.len()).filter(|_| random.below(2) == 0).map(|column| (column, column)).collect();
            writer.update_chunk(&rows, &columns, &column_chunk(&new, schema, random.below(2) == 0));
        }
        10 => {
            let one_in = 2 + random.below(9);
            let rows = writer.rows_where(|| random.below(one_in) == 0);
            writer.delete_many(&rows);
        }
        11 if random.below(6) == 0 => {
            writer.clear();
        }
        _ => {}
    }
}

/// Changes a table, in one of many ways.
fn change(table: &Arc<Table>, open: &mut Vec<Transaction>, random: &mut Random) {
    match random.below(9) {
        0..=1 => {
            let mut writer = table.write();
            (0..1 + random.below(3)).for_each(|_| step(table, &mut writer, random));
            writer.commit().unwrap();
        }
        2 => {
            let mut writer = table.write();
            let fails = random.below(2) == 0;
            let done = writer.atomically(|writer| {
                (0..1 + random.below(4)).for_each(|_| step(table, writer, random));
                if fails { Err(Error::input("undo")) } else { Ok(()) }
            });
            assert_eq!(done.is_err(), fails);
            writer.commit().unwrap();
        }
        3 => {
            let mut alone = Transaction::alone(std::slice::from_ref(table));
            let fails = random.below(3) == 0;
            let done = alone.atomically(|alone| {
                (0..1 + random.below(4)).for_each(|_| step(table, &mut alone.write(table), random));
                if fails { Err(Error::input("undo")) } else { Ok(()) }
            });
            assert_eq!(done.is_err(), fails);
            step(table, &mut alone.write(table), random);
            if random.below(4) > 0 {
                alone.commit(|_| Ok(())).unwrap();
            }
        }
        4 => {
            let rows: Vec<Row> = (0..random.below(200)).map(|_| random_row(table.schema(), random)).collect();
            if !table.options().is_distinct() {
                let mut appender = table.appender();
                appender.append(&column_chunk(&rows, table.schema(), false), 0).unwrap();
                table.commit(vec![appender.finish()]).unwrap();
            }
        }
        5 => drop(table.upkeep(Duration::from_secs(60))),
        6 => open.push(Transaction::begin(std::slice::from_ref(table))),
        7 if !open.is_empty() => {
            let at = random.below(open.len() as u64) as usize;
            match open.swap_remove(at).commit(|_| Ok(())) {
                Ok(()) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
            }
        }
        _ => {
            for transaction in open {
                transaction.savepoint();
                step(table, &mut transaction.write(table), random);
                step(table, &mut transaction.write(table), random);
                if random.below(3) == 0 {
                    transaction.roll_back_to(1);
                }
                transaction.release(1);
            }
        }
    }
}

/// The records of all commits from a position on, and where the log ends.
fn commits(backend: &(impl Backend + Clone + 'static), position: u64) -> (Vec<Vec<u8>>, crate::wal::Tail) {
    let backend = Arc::new(backend.clone());
    let mut reader = LogReader::open(backend, ID, segment(), position, State::Open).unwrap();
    let mut all = Vec::new();
    while let Some(commit) = reader.next_commit().unwrap() {
        all.push(commit.records);
    }
    (all, reader.end().unwrap())
}

fn new_log(backend: &(impl Backend + Clone + 'static)) -> entasis_vector::Result<Arc<Log>> {
    Log::create(Arc::new(backend.clone()), ID, segment()).map(Arc::new)
}

/// The twin of the table with an id.
fn twin_of(tables: &[Arc<Table>; 2], twins: &[Arc<Table>; 2], id: u64) -> Option<Arc<Table>> {
    let number = tables.iter().position(|table| table.object().number() == id)?;
    Some(twins[number].clone())
}

#[test]
fn records_do_what_was_done() {
    for (number, layout) in LAYOUTS.into_iter().enumerate() {
        for key in [Key::Unique, Key::UniqueOrNull, Key::Any] {
            let mut kinds = BTreeSet::new();
            for seed in 1..4u64 {
                let random = &mut Random((seed << 32) + number as u64 * 977 + key as u64 * 13 + 1);
                let backend = MemoryBackend::new("log");
                let (table, twin) = (table(layout, key), table(layout, key));
                table.log_to(new_log(&backend).unwrap(), None);
                let (mut open, mut position) = (Vec::new(), 0);
                for _ in 0..120 {
                    change(&table, &mut open, random);
                    let (all, tail) = commits(&backend, position);
                    position = tail.position();
                    for records in all {
                        assert!(!records.is_empty(), "nothing is logged if nothing was done");
                        kinds.extend(Records::new(&records).map(|record| record.unwrap().kind()));
                        Table::redo(&records, &|id| (id == table.object().number()).then(|| twin.clone()))
                            .unwrap();
                    }
                    assert_eq!(rows_of(&twin), rows_of(&table), "{layout:?}, {key:?}, seed {seed}");
                }
            }
            assert_eq!(kinds, BTreeSet::from([1, 2, 3, 4, 5, 6, 8]), "all kinds of records");
        }
    }
}

/// What a disk keeps that stops at any operation.
#[test]
fn what_was_acknowledged_is_there_after_a_crash() {
    let (mut survived, mut more) = (0, 0);
    for seed in 1..120 {
        let random = &mut Random(seed * 0x9E37_79B9);
        let layout = LAYOUTS[random.below(6) as usize];
        let (disk, tables) =
            (FaultyDisk::new(seed), [table(layout, Key::Unique), table(Layout::Insertion, Key::Any)]);
        let backend = disk.file("log");
        let log = new_log(&backend).unwrap();
        tables.iter().for_each(|table| table.log_to(log.clone(), None));
        disk.stop_at(disk.operations() + 1 + random.below(60));
        // The states after each commit. What the last of them says may not have been acknowledged.
        let mut states = vec![tables.each_ref().map(rows_of)];
        loop {
            let at = random.below(2) as usize;
            let done = if random.below(2) == 0 {
                let Ok(mut writer) = tables[at].write_as(&Default::default()) else { break };
                step(&tables[at], &mut writer, random);
                writer.commit()
            } else {
                let mut both = Transaction::begin(&tables);
                tables.iter().for_each(|table| step(table, &mut both.write(table), random));
                both.commit(|_| Ok(()))
            };
            states.push(tables.each_ref().map(rows_of));
            if done.is_err() {
                break;
            }
        }
        assert!(tables[0].write_as(&Default::default()).is_err(), "all is refused after that");
        let mut both = Transaction::begin(&tables);
        let schema = tables[1].schema();
        both.write(&tables[1]).insert(&datums(&random_row(schema, random), schema));
        assert_eq!(both.commit(|_| Ok(())).unwrap_err().kind(), ErrorKind::Io);
        if random.below(2) == 0 {
            disk.restart()
        } else {
            disk.crash()
        }
        let twins = [table(layout, Key::Unique), table(Layout::Insertion, Key::Any)];
        for records in commits(&backend, 0).0 {
            Table::redo(&records, &|id| twin_of(&tables, &twins, id)).unwrap();
        }
        let found = twins.each_ref().map(rows_of);
        let last = states.len() - 1;
        let is_last = found == states[last];
        assert!(is_last || found == states[last - 1], "seed {seed}: what was acknowledged is there");
        survived += usize::from(!is_last);
        more += usize::from(is_last);
    }
    assert!(survived > 10 && more > 10, "{survived} without the last commit, {more} with it");
}

/// Writers of several threads: the log has the order in which their commits became visible.
#[test]
fn the_log_has_the_order_of_the_heads() {
    let backend = MemoryBackend::new("log");
    let log = new_log(&backend).unwrap();
    let tables = [table(Layout::EquiGhost, Key::Any), table(Layout::Insertion, Key::Any)];
    tables.iter().for_each(|table| table.log_to(log.clone(), None));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let tables = &tables;
            scope.spawn(move || {
                let random = &mut Random(thread * 7919 + 1);
                for _ in 0..150 {
                    let at = random.below(2) as usize;
                    if random.below(2) == 0 {
                        let mut writer = tables[at].write();
                        step(&tables[at], &mut writer, random);
                        writer.commit().unwrap();
                    } else {
                        let mut both = Transaction::begin(tables);
                        tables.iter().for_each(|table| step(table, &mut both.write(table), random));
                        // Another one may have been first.
                        drop(both.commit(|_| Ok(())));
                    }
                }
            });
        }
    });
    let twins = [table(Layout::EquiGhost, Key::Any), table(Layout::Insertion, Key::Any)];
    for records in commits(&backend, 0).0 {
        Table::redo(&records, &|id| twin_of(&tables, &twins, id)).unwrap();
    }
    assert_eq!(twins.each_ref().map(rows_of), tables.each_ref().map(rows_of));
}
