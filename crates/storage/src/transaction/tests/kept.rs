//! New values that a transaction keeps until its commit, without a fork.

use crate::backend::MemoryBackend;
use crate::file::{DatabaseId, State};
use crate::wal::{Log, LogReader, SegmentBytes};
use crate::{Datum, Table, TableOptions, Transaction};
use entasis_vector::{DataType, Error, ErrorKind, Field, Result};
use std::sync::Arc;

const ID: DatabaseId = DatabaseId(*b"0123456789abcdef");

/// Rows 0 to 99: k = id, v = 10 * id, t = "text".
fn table() -> Arc<Table> {
    let table = empty();
    let mut writer = table.write();
    for k in 0..100i64 {
        writer.insert(&[integer(k), integer(10 * k), Datum::Bytes(b"text")]);
    }
    drop(writer);
    table
}

fn empty() -> Arc<Table> {
    let schema = vec![
        Field { nullable: false, ..Field::new("k", DataType::Int64) },
        Field::new("v", DataType::Int64),
        Field::new("t", DataType::Varchar),
    ];
    let options = TableOptions {
        unique: true,
        block_slots: 8,
        group_slots: 32,
        partitions: 4,
        ..TableOptions::keyed(vec![0])
    };
    Table::with_options("t", schema, options)
}

fn integer<'a>(value: i64) -> Datum<'a> {
    Datum::Integer(value.into())
}

fn number(datum: Datum<'_>) -> i64 {
    match datum {
        Datum::Integer(value) => value as i64,
        other => panic!("{other:?}"),
    }
}

/// Keeps a value of a row; false if it would have to be written.
fn keep(transaction: &mut Transaction, table: &Arc<Table>, key: i64, value: i64) -> bool {
    let Some(mut kept) = transaction.keep(table) else { return false };
    let row = kept.find(&[integer(key)]).expect("it is there");
    kept.update(row, &[(1, integer(value))]);
    true
}

/// The value of a row as the transaction reads single rows.
fn seen(transaction: &mut Transaction, table: &Arc<Table>, key: i64) -> Option<i64> {
    transaction.read(table, |reader| {
        let mut read = Vec::new();
        reader.read(reader.find(&[integer(key)])?, &[2, 1], &mut read);
        assert!(read[0].is_same(Datum::Bytes(b"text")));
        Some(number(read[1]))
    })
}

/// The value of a row as the transaction scans it.
fn scanned(transaction: &mut Transaction, table: &Arc<Table>, key: i64) -> i64 {
    let snapshot = transaction.snapshot(table);
    number(snapshot.datum(snapshot.find(&[integer(key)]).expect("it is there"), 1))
}

/// The value of a row of the newest version.
fn newest(table: &Arc<Table>, key: i64) -> i64 {
    scanned(&mut Transaction::begin(&[]), table, key)
}

fn commit(transaction: Transaction) -> Result<()> {
    transaction.commit(|_| Err(Error::internal("it relies on nothing")))
}

#[test]
fn a_transaction_reads_what_it_keeps_and_nobody_else_does() {
    let table = table();
    let mut own = Transaction::begin(std::slice::from_ref(&table));
    assert!(keep(&mut own, &table, 3, 31) && keep(&mut own, &table, 4, 41) && keep(&mut own, &table, 3, 32));
    assert!(own.is_changed(&table) && own.growth() > 0 && own.is_small());
    assert_eq!((seen(&mut own, &table, 3), seen(&mut own, &table, 4)), (Some(32), Some(41)));
    assert_eq!((seen(&mut own, &table, 5), seen(&mut own, &table, 200)), (Some(50), None));
    let kept = own.keep(&table).expect("there is room");
    let row = kept.find(&[integer(3)]).expect("it is there");
    assert!(kept.datum(row, 1).is_same(integer(32)) && kept.datum(row, 0).is_same(integer(3)));
    assert!(kept.find(&[Datum::Null]).is_none());
    assert_eq!(newest(&table, 3), 30);
    // A scan needs a fork, to which later changes go.
    assert_eq!((scanned(&mut own, &table, 3), scanned(&mut own, &table, 4)), (32, 41));
    assert!(!keep(&mut own, &table, 5, 51));
    assert_eq!((seen(&mut own, &table, 3), newest(&table, 3)), (Some(32), 30));
    commit(own).unwrap();
    assert_eq!((newest(&table, 3), newest(&table, 4), newest(&table, 5)), (32, 41, 50));
    table.snapshot().check();
}

#[test]
fn a_commit_copies_nothing_that_only_it_has_seen() {
    let table = table();
    for value in 0..3 {
        let mut own = Transaction::begin(std::slice::from_ref(&table));
        (0..100).for_each(|key| assert!(keep(&mut own, &table, key, value)));
        commit(own).unwrap();
        assert_eq!(table.retired(), 0);
    }
    let reader = table.snapshot();
    let mut own = Transaction::begin(std::slice::from_ref(&table));
    assert!(keep(&mut own, &table, 7, 71));
    commit(own).unwrap();
    assert!(table.retired() > 0, "the reader still sees what was there");
    assert_eq!(number(reader.datum(reader.find(&[integer(7)]).unwrap(), 1)), 2);
    assert_eq!(newest(&table, 7), 71);
}

#[test]
fn the_first_to_commit_a_row_wins() {
    let table = table();
    let begin = || Transaction::begin(std::slice::from_ref(&table));
    let [mut first, mut second, mut beside, mut same] = [(); 4].map(|()| begin());
    assert!(keep(&mut first, &table, 3, 1) && keep(&mut second, &table, 3, 2));
    assert!(keep(&mut second, &table, 50, 2) && keep(&mut beside, &table, 4, 5));
    assert!(keep(&mut same, &table, 4, 40));
    commit(first).unwrap();
    let error = commit(second).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("changed or removed the row of table t with k = 3"), "{error}");
    // Another row of the same slice, and one that has its old values again.
    commit(same).unwrap();
    commit(beside).unwrap();
    assert_eq!((newest(&table, 3), newest(&table, 4), newest(&table, 50)), (1, 5, 500));
    table.snapshot().check();
}

#[test]
fn rows_are_found_where_others_have_moved_them() {
    let table = table();
    let mut own = Transaction::begin(std::slice::from_ref(&table));
    let mut late = Transaction::begin(std::slice::from_ref(&table));
    [2, 55, 98].into_iter().for_each(|key| assert!(keep(&mut own, &table, key, -key)));
    assert!(keep(&mut late, &table, 60, 0));
    let mut writer = table.write();
    for key in (100..300).chain(-200..0) {
        writer.insert(&[integer(key), integer(0), Datum::Bytes(b"text")]);
    }
    let gone = writer.find(&[integer(60)]).unwrap();
    writer.delete(gone);
    drop(writer);
    commit(own).unwrap();
    assert_eq!(commit(late).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!([2, 55, 98, 56].map(|key| newest(&table, key)), [-2, -55, -98, 560]);
    table.snapshot().check();
}

#[test]
fn savepoints_and_rollbacks_undo_what_is_kept() {
    let table = table();
    let mut own = Transaction::begin(std::slice::from_ref(&table));
    assert!(keep(&mut own, &table, 1, 11));
    let mark = own.savepoint();
    assert!(!keep(&mut own, &table, 2, 21), "it could not be undone");
    let mut writer = own.write(&table);
    let row = writer.find(&[integer(1)]).unwrap();
    writer.update(row, &[(1, integer(12))]);
    drop(writer);
    assert_eq!(seen(&mut own, &table, 1), Some(12));
    own.roll_back_to(mark);
    assert_eq!(seen(&mut own, &table, 1), Some(11));
    commit(own).unwrap();
    assert_eq!(newest(&table, 1), 11);

    let mut dropped = Transaction::begin(std::slice::from_ref(&table));
    assert!(keep(&mut dropped, &table, 1, 13));
    drop(dropped);
    assert_eq!((newest(&table, 1), table.snapshots(), table.retired() > 100), (11, 0, false));
}

#[test]
fn changes_that_nobody_keeps_go_to_a_fork() {
    let table = table();
    let mut own = Transaction::begin(std::slice::from_ref(&table));
    let text = "x".repeat(1 << 16);
    let mut kept = own.keep(&table).unwrap();
    let row = kept.find(&[integer(9)]).unwrap();
    kept.update(row, &[(2, Datum::Bytes(text.as_bytes()))]);
    assert!(!keep(&mut own, &table, 1, 11), "many bytes");
    let mut writer = own.write(&table);
    let row = writer.find(&[integer(9)]).unwrap();
    assert!(writer.datum(row, 2).is_same(Datum::Bytes(text.as_bytes())));
    writer.delete(row);
    drop(writer);
    commit(own).unwrap();
    assert!(table.snapshot().find(&[integer(9)]).is_none());
    assert!(Transaction::alone(&[]).keep(&table).is_none());
}

#[test]
fn two_tables_change_at_one_moment() {
    let tables = [table(), table()];
    let mut own = Transaction::begin(&tables);
    assert!(keep(&mut own, &tables[0], 1, 11) && keep(&mut own, &tables[1], 1, 11));
    own.write(&tables[1]).insert(&[integer(777), integer(0), Datum::Bytes(b"text")]);
    let mut other = Transaction::begin(&tables);
    assert!(keep(&mut other, &tables[0], 2, 22));
    let row = tables[1].snapshot().find(&[integer(1)]).unwrap();
    other.write(&tables[1]).delete(row);
    commit(other).unwrap();
    assert_eq!(commit(own).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((newest(&tables[0], 1), newest(&tables[0], 2)), (10, 22));
}

#[test]
fn a_table_that_the_outcome_depends_on_is_judged() {
    let table = table();
    let mut own = Transaction::begin(std::slice::from_ref(&table));
    assert!(keep(&mut own, &table, 1, 11));
    own.depend_on(&table);
    let mut other = Transaction::begin(std::slice::from_ref(&table));
    assert!(keep(&mut other, &table, 2, 22));
    commit(other).unwrap();
    let mut judged = 0;
    own.commit(|newest| {
        judged += 1;
        assert_eq!((scanned(newest, &table, 1), scanned(newest, &table, 2)), (11, 22));
        Ok(())
    })
    .unwrap();
    assert_eq!((judged, newest(&table, 1)), (1, 11));
}

#[test]
fn the_log_has_what_was_kept() {
    let backend = Arc::new(MemoryBackend::new("log"));
    let segment = || SegmentBytes::new(1 << 16).expect("many sectors");
    let log = Arc::new(Log::create(backend.clone(), ID, segment()).unwrap());
    let (table, twin) = (empty(), empty());
    table.log_to(log, None);
    let mut writer = table.write();
    for key in 0..20 {
        writer.insert(&[integer(key), integer(0), Datum::Bytes(b"text")]);
    }
    writer.commit().unwrap();
    let begin = || Transaction::begin(std::slice::from_ref(&table));
    let [mut first, mut second, mut dropped] = [(); 3].map(|()| begin());
    assert!(keep(&mut first, &table, 1, 10) && keep(&mut first, &table, 2, 20));
    assert!(keep(&mut second, &table, 3, 30) && keep(&mut dropped, &table, 1, 99));
    commit(first).unwrap();
    commit(second).unwrap();
    assert_eq!(commit(dropped).unwrap_err().kind(), ErrorKind::Conflict);
    let mut reader = LogReader::open(backend, ID, segment(), 0, State::Open).unwrap();
    let mut commits = 0;
    while let Some(commit) = reader.next_commit().unwrap() {
        let is_it = |id| (id == table.object().number()).then(|| twin.clone());
        Table::redo(&commit.records, &is_it).unwrap();
        commits += 1;
    }
    assert_eq!(commits, 3);
    for key in 0..20 {
        assert_eq!(newest(&twin, key), newest(&table, key));
    }
    assert_eq!([1, 2, 3].map(|key| newest(&twin, key)), [10, 20, 30]);
}
