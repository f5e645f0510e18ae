//! Changes in place beside their slow twin, the writer, and beside other threads.

use crate::table::attempts::SKIPPED;
use crate::table::{Table, TableReader, TableSnapshot};
use crate::tests::random::Random;
use crate::transaction::Transaction;
use crate::value::Datum;
use crate::{Layout, TableOptions};
use entasis_vector::{DataType, Error, ErrorKind, Field, Schema};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const ROWS: i64 = 400;

fn key(key: i64) -> Datum<'static> {
    Datum::Integer(key.into())
}

/// A table of a key and a column of each of some types, with `ROWS` rows.
fn table(types: &[DataType], layout: Layout, row: impl Fn(i64) -> Vec<Datum<'static>>) -> Arc<Table> {
    let of_key = Field { nullable: false, ..Field::new("k", DataType::Int64) };
    let columns = types.iter().enumerate().map(|(number, &ty)| Field::new(format!("c{number}"), ty));
    let schema: Schema = std::iter::once(of_key).chain(columns).collect();
    let options = TableOptions {
        unique: true,
        layout,
        block_slots: 64,
        group_slots: 256,
        partitions: 8,
        ..TableOptions::keyed(vec![0])
    };
    let table = Table::with_options("t", schema, options);
    for number in 0..ROWS {
        let row: Vec<_> = std::iter::once(key(number)).chain(row(number)).collect();
        table.write().insert(&row);
    }
    table
}

/// Changes a row in place, and returns whether that could be done.
fn in_place(table: &Table, number: i64, changes: &[(usize, Datum<'_>)]) -> bool {
    let change = || table.change_in_place(&[key(number)], |row| Ok(row.change(changes)?.then_some(())));
    // Some attempts are left out.
    (0..=SKIPPED).any(|_| change().expect("it is not logged").is_some())
}

fn by_writer(table: &Table, number: i64, changes: &[(usize, Datum<'_>)]) {
    let mut writer = table.write();
    let row = writer.find(&[key(number)]).expect("the row is there");
    writer.update(row, changes);
}

/// The rows as text, by key.
fn rows(snapshot: &TableSnapshot) -> Vec<String> {
    let columns = snapshot.schema().len();
    let text = |id| (1..columns).map(|column| format!("{:?} ", snapshot.datum(id, column))).collect();
    let key = |id| match snapshot.datum(id, 0) {
        Datum::Integer(key) => key,
        other => unreachable!("{other:?}"),
    };
    let mut rows: Vec<(i128, String)> = snapshot.row_ids().map(|id| (key(id), text(id))).collect();
    rows.sort();
    rows.into_iter().map(|(_, row)| row).collect()
}

const TEXTS: [&str; 4] = ["", "north", "south", "a text that is longer than a view holds in itself"];
const TYPES: [DataType; 6] = [
    DataType::Int64,
    DataType::Float64,
    DataType::Varchar,
    DataType::Decimal { precision: 30, scale: 2 },
    DataType::Boolean,
    DataType::Int16,
];

/// A value for a column, NULL or beyond all others now and then.
fn value(ty: DataType, random: &mut Random) -> Datum<'static> {
    let number = if random.below(50) == 0 { random.below(10_000) } else { random.below(100) };
    match ty {
        _ if random.below(40) == 0 => Datum::Null,
        DataType::Float64 => Datum::Float(number as f64 / 4.0),
        DataType::Varchar => Datum::Bytes(TEXTS[number as usize % TEXTS.len()].as_bytes()),
        DataType::Boolean => Datum::Integer(i128::from(number % 2)),
        _ => Datum::Integer(number.into()),
    }
}

#[test]
fn a_change_in_place_is_what_a_writer_would_do() {
    for layout in [Layout::Casper, Layout::Sorted] {
        let first = |number: i64| {
            let mut random = Random(number as u64 + 1);
            TYPES.iter().map(|&ty| value(ty, &mut random)).collect()
        };
        let (table, twin) = (table(&TYPES, layout, first), table(&TYPES, layout, first));
        let (mut random, mut done, mut held) = (Random(3), [0_u32; 2], Vec::new());
        for round in 0..6_000 {
            let number = random.below(ROWS as u64) as i64;
            let changes: Vec<_> = (0..=random.below(2))
                .map(|_| {
                    let column = random.below(TYPES.len() as u64) as usize;
                    (column + 1, value(TYPES[column], &mut random))
                })
                .collect();
            let is_done = in_place(&table, number, &changes);
            if !is_done {
                by_writer(&table, number, &changes);
            }
            by_writer(&twin, number, &changes);
            done[usize::from(is_done)] += 1;
            if round % 400 == 0 {
                held.push((table.snapshot(), rows(&twin.snapshot())));
                assert!(!in_place(&table, number, &[(1, key(1))]), "a snapshot shows the row");
            }
            if round % 1600 == 0 {
                held.clear();
            }
        }
        held.push((table.snapshot(), rows(&twin.snapshot())));
        for (snapshot, expected) in &held {
            assert_eq!(rows(snapshot), *expected);
            snapshot.check();
        }
        assert!(done[0] > 500 && done[1] > 500, "{layout:?}: both ways, {done:?}");
        let nulls = |table: &Arc<Table>| table.snapshot().column_statistics(1).nulls;
        assert_eq!(nulls(&table), nulls(&twin));
    }
}

#[test]
fn what_is_not_a_value_of_the_row_alone_is_left_to_writers() {
    let table = table(&[DataType::Int64], Layout::Casper, |number| vec![key(number % 10)]);
    by_writer(&table, 7, &[(1, key(3))]);
    assert!(in_place(&table, 7, &[(1, key(4))]));
    assert!(!in_place(&table, 7, &[(0, key(8))]), "a key");
    assert!(!in_place(&table, 7, &[(1, Datum::Null)]), "NULLs are counted");
    assert!(!in_place(&table, 7, &[(1, key(10))]), "zones are known to readers");
    assert!(!in_place(&table, -7, &[(1, key(1))]), "there is no such row");
    let statement = crate::table::OwnedWriteGuard::take(&table, &crate::Waiter::default()).unwrap();
    assert!(!in_place(&table, 7, &[(1, key(5))]), "a statement writes");
    drop(statement);
    assert!(in_place(&table, 7, &[(1, key(5))]));
    drop(table.snapshot());
    assert!(!in_place(&table, 7, &[(1, key(6))]), "not since the snapshot");
    by_writer(&table, 7, &[(1, key(5))]);
    let refused = || table.change_in_place(&[key(7)], |_| Err::<Option<()>, _>(Error::interrupted()));
    assert!((0..=SKIPPED).any(|_| refused().is_err()));
    assert!(in_place(&table, 7, &[(1, key(6))]), "the latch was given back");
    assert_eq!(rows(&table.snapshot())[7], "Integer(6) ");
}

/// The columns of a row that are always equal: so many that a reader meets a change half-way now and then.
const EQUAL: usize = 24;
/// The rows that threads change.
const CHANGED: u64 = 3;

/// One more than a value, modulo 10, for all columns.
fn next(value: Datum<'_>) -> Vec<(usize, Datum<'static>)> {
    let Datum::Integer(value) = value else { panic!("{value:?} is no number") };
    (1..=EQUAL).map(|column| (column, Datum::Integer((value + 1) % 10))).collect()
}

/// Adds one to all columns of a row. True if that was done in place.
fn add_one(table: &Table, number: i64) -> bool {
    let changed = table.change_in_place(&[key(number)], |row| {
        let changes = next(row.datum(1));
        Ok(row.change(&changes)?.then_some(()))
    });
    if changed.expect("it is not logged").is_some() {
        return true;
    }
    let mut writer = table.write();
    let row = writer.find(&[key(number)]).expect("the row is there");
    let changes = next(writer.datum(row, 1));
    writer.update(row, &changes);
    false
}

/// The same in a transaction beside others. False if somebody was first.
fn commit_one(table: &Arc<Table>, number: i64) -> bool {
    let mut transaction = Transaction::begin(std::slice::from_ref(table));
    let mut writer = transaction.write(table);
    let row = writer.find(&[key(number)]).expect("the row is there");
    let changes = next(writer.datum(row, 1));
    writer.update(row, &changes);
    drop(writer);
    match transaction.commit(|_| Ok(())) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::Conflict => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn threads_lose_no_change_and_readers_see_no_half() {
    const CHANGES: u64 = if cfg!(miri) { 50 } else { 40_000 };
    let equal = |number: i64| vec![key(number % 10); EQUAL];
    let table = table(&[DataType::Int64; EQUAL], Layout::Casper, equal);
    let (made, direct, writers) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(2));
    let first: i128 = (0..ROWS).map(|number| i128::from(number % 10)).sum();
    let read = |number: i64, reader: &TableReader<'_>| -> Vec<i128> {
        let (row, mut values) = (reader.find(&[key(number)]).expect("the row is there"), Vec::new());
        reader.read(row, &Vec::from_iter(1..=EQUAL), &mut values);
        let integer = |datum: Datum<'_>| match datum {
            Datum::Integer(value) => value,
            other => panic!("{other:?} is no number"),
        };
        values.into_iter().map(integer).collect()
    };
    thread::scope(|scope| {
        for seed in 1..=2 {
            let (table, made, direct, writers) = (&table, &made, &direct, &writers);
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..CHANGES {
                    direct.fetch_add(u64::from(add_one(table, random.below(CHANGED) as i64)), Relaxed);
                    made.fetch_add(1, Relaxed);
                }
                writers.fetch_sub(1, Relaxed);
            });
        }
        scope.spawn(|| {
            let mut random = Random(77);
            while writers.load(Relaxed) > 0 {
                made.fetch_add(u64::from(commit_one(&table, random.below(CHANGED) as i64)), Relaxed);
                thread::sleep(Duration::from_millis(1));
            }
        });
        scope.spawn(|| {
            while writers.load(Relaxed) > 0 {
                let values = table.read(|reader| (0..CHANGED as i64).map(|row| read(row, reader)).collect());
                let values: Vec<Vec<i128>> = values;
                assert!(values.iter().all(|row| row.iter().all(|v| *v == row[0])), "half of a change");
            }
        });
    });
    let snapshot = table.snapshot();
    snapshot.check();
    let sum = |column: usize| -> i128 {
        let integer = |id| match snapshot.datum(id, column) {
            Datum::Integer(value) => value,
            other => panic!("{other:?} is no number"),
        };
        snapshot.row_ids().map(integer).sum()
    };
    assert_eq!((sum(1) - first).rem_euclid(10), i128::from(made.into_inner()).rem_euclid(10));
    assert!((2..=EQUAL).all(|column| sum(column) == sum(1)));
    assert!(direct.into_inner() > 0);
}
