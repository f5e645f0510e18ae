//! Threads that meet in a table, under a scheduler that tries thousands of interleavings (`shuttle`).
//!
//! The modules are those of the crate, compiled once more, with another `sync`. A run that fails prints its
//! schedule.

#![allow(dead_code, unused_imports, unreachable_pub)]

#[path = "../../src/backend/mod.rs"]
pub mod backend;
#[path = "../../src/block/mod.rs"]
pub mod block;
#[path = "../../src/builder/mod.rs"]
pub mod builder;
#[path = "../../src/catalog/mod.rs"]
pub mod catalog;
#[path = "../../src/checkpoint/mod.rs"]
pub mod checkpoint;
#[path = "../../src/definition/mod.rs"]
pub mod definition;
#[path = "../../src/file/mod.rs"]
pub mod file;
#[path = "../../src/node/mod.rs"]
mod node;
#[path = "../../src/parallel.rs"]
mod parallel;
#[path = "../../src/record/mod.rs"]
mod record;
#[path = "../../src/scan/mod.rs"]
pub mod scan;
mod sync;
#[path = "../../src/table/mod.rs"]
pub mod table;
#[path = "../../src/transaction/mod.rs"]
pub mod transaction;
#[path = "../../src/tree/mod.rs"]
mod tree;
#[path = "../../src/value/mod.rs"]
pub mod value;
#[path = "../../src/wal/mod.rs"]
pub mod wal;
#[path = "../../src/write/mod.rs"]
mod write;

#[cfg(test)]
#[path = "../../src/tests/mod.rs"]
mod tests;

pub use catalog::{
    Catalog, CatalogVersion, Entry, IfExists, NameChange, TableEntry, View, dependencies, is_temporary,
};
pub use definition::{
    Compression, CounterOptions, Curve, Definition, Layout, NEVER, ObjectId, Sequence, TableOptions, sequence,
};
pub use scan::{CodeSet, Condition, KeyRange, SlotRange, TextSearch, ValueRange};
pub use table::{
    Among, AppendedRows, Appender, BinInfo, Difference, Frequencies, HeadWriters, Interrupt, PartitionInfo,
    Table, TableReader, TableSnapshot, TableWriter, Upkeep, Waiter, WriterName, index,
};
pub use transaction::{Prologue, Transaction};
pub use tree::{ColumnSource, Decision, Flaw, RowGroup, RowId, Standing, UpkeepReason, Upkept, inspect};
pub use value::{ColumnSummary, Datum, Zone};

/// Slots of a block and of a slice.
pub const BLOCK_ROWS: usize = 1024;
/// Slots of a full row group.
pub const ROW_GROUP_ROWS: usize = 131_072;

use backend::MemoryBackend;
use checkpoint::{Checkpointed, Images, Moment};
use entasis_vector::{DataType, ErrorKind, Field, Schema};
use file::{Access, DataFile, DatabaseId, State};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Two columns: a key, and a value.
fn table(group_slots: usize) -> Arc<Table> {
    let key = Field { nullable: false, ..Field::new("k", DataType::Int64) };
    let schema: Schema = vec![key, Field::new("v", DataType::Int64)];
    let partitions = group_slots / 4;
    let options = TableOptions {
        unique: true,
        block_slots: 4,
        group_slots,
        partitions,
        ..TableOptions::keyed(vec![0])
    };
    Table::with_options("t", schema, options)
}

fn row(key: i64, value: i64) -> [Datum<'static>; 2] {
    [Datum::Integer(key.into()), Datum::Integer(value.into())]
}

fn insert(table: &Arc<Table>, keys: impl Iterator<Item = i64>) {
    for key in keys {
        table.write().insert(&row(key, 100));
    }
}

/// The rows of a version, by key.
fn rows(snapshot: &TableSnapshot) -> Vec<(i64, i64)> {
    snapshot.check();
    let integer = |id, column| match snapshot.datum(id, column) {
        Datum::Integer(v) => v as i64,
        other => panic!("{other:?}"),
    };
    let mut rows: Vec<(i64, i64)> = snapshot.row_ids().map(|id| (integer(id, 0), integer(id, 1))).collect();
    rows.sort_unstable();
    rows
}

fn keys(snapshot: &TableSnapshot) -> Vec<i64> {
    rows(snapshot).into_iter().map(|(key, _)| key).collect()
}

/// Adds a row in a transaction beside others. True if nobody was first.
fn commit(table: &Arc<Table>, key: i64) -> bool {
    let mut transaction = Transaction::begin(std::slice::from_ref(table));
    let mut writer = transaction.write(table);
    if writer.find(&row(key, 0)[..1]).is_some() {
        return false;
    }
    writer.insert(&row(key, 100));
    drop(writer);
    match transaction.commit(|_| Ok(())) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::Conflict => false,
        Err(error) => panic!("{error}"),
    }
}

fn different_keys_are_both_committed() {
    let table = table(16);
    let other = table.clone();
    let thread = thread::spawn(move || assert!(commit(&other, 1)));
    assert!(commit(&table, 2));
    thread.join().unwrap();
    assert_eq!(keys(&table.snapshot()), [1, 2]);
}

fn one_of_two_equal_keys_is_committed() {
    let table = table(16);
    let other = table.clone();
    let thread = thread::spawn(move || commit(&other, 1));
    let mine = commit(&table, 1);
    assert!(mine != thread.join().unwrap(), "one of them is first");
    assert_eq!(keys(&table.snapshot()), [1]);
}

/// Moves an amount between two rows, in two operations of one writer.
fn transfer(table: &Arc<Table>) {
    let mut writer = table.write();
    for (key, value) in [(0, 60), (1, 140)] {
        let found = writer.find(&row(key, 0)[..1]).expect("the row is there");
        writer.update(found, &[(1, Datum::Integer(value))]);
    }
}

fn a_snapshot_sees_no_half_of_a_change() {
    let table = table(16);
    insert(&table, 0..3);
    let other = table.clone();
    let thread = thread::spawn(move || {
        transfer(&other);
        insert(&other, 3..5);
    });
    let before = table.snapshot();
    let seen = rows(&before);
    assert_eq!(seen[0].1 + seen[1].1, 200);
    thread.join().unwrap();
    assert_eq!(rows(&before), seen, "a snapshot stays as it is");
    assert_eq!(rows(&table.snapshot()), [(0, 60), (1, 140), (2, 100), (3, 100), (4, 100)]);
}

/// How often a value was changed in place, in all schedules.
static IN_PLACE: AtomicU64 = AtomicU64::new(0);

/// Changes the value of a row to the next of three, in place if that can be done.
fn write_lock(table: &Table, key: i64) {
    let next = |datum: Datum<'_>| match datum {
        Datum::Integer(value) => [(1, Datum::Integer((value + 1) % 3))],
        other => panic!("{other:?}"),
    };
    let changed = table.change_in_place(&row(key, 0)[..1], |row| {
        let changes = next(row.datum(1));
        Ok(row.change(&changes)?.then_some(()))
    });
    if changed.expect("it is not logged").is_some() {
        IN_PLACE.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let mut writer = table.write();
    let found = writer.find(&row(key, 0)[..1]).expect("the row is there");
    let changes = next(writer.datum(found, 1));
    writer.update(found, &changes);
}

fn changes_in_place_are_neither_lost_nor_torn() {
    let table = table(16);
    for key in 0..6 {
        table.write().insert(&row(key, (key - 3).max(0)));
    }
    let [first, second, third] = [(); 3].map(|()| table.clone());
    let first = thread::spawn(move || {
        for _ in 0..2 {
            write_lock(&first, 1);
            write_lock(&first, 2);
        }
    });
    let second = thread::spawn(move || {
        write_lock(&second, 3);
        let _seen = second.snapshot();
        write_lock(&second, 3);
    });
    let third = thread::spawn(move || {
        let mut transaction = Transaction::begin(std::slice::from_ref(&third));
        let mut writer = transaction.write(&third);
        let found = writer.find(&row(0, 0)[..1]).expect("the row is there");
        writer.update(found, &[(1, Datum::Integer(2))]);
        drop(writer);
        transaction.commit(|_| Ok(())).expect("nobody else changes the row");
    });
    for _ in 0..2 {
        let [one, two] = table.read(|reader| {
            [1, 2].map(|key| {
                let (found, mut values) = (reader.find(&row(key, 0)[..1]), Vec::new());
                reader.read(found.expect("the row is there"), &[1], &mut values);
                match values[0] {
                    Datum::Integer(value) => value as i64,
                    other => panic!("{other:?}"),
                }
            })
        });
        assert!(one - two == 0 || one - two == 1, "{one} and {two}: of two moments");
    }
    [first, second, third].into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(rows(&table.snapshot()), [(0, 2), (1, 2), (2, 2), (3, 2), (4, 1), (5, 2)]);
}

/// Adds to the values of rows, in a transaction that keeps them until its commit. True if nobody was first.
fn keep(table: &Arc<Table>, differences: &[(i64, i128)]) -> bool {
    let mut transaction = Transaction::begin(std::slice::from_ref(table));
    for &(key, difference) in differences {
        let mut kept = transaction.keep(table).expect("nothing else was done");
        let found = kept.find(&row(key, 0)[..1]).expect("the row is there");
        let Datum::Integer(value) = kept.datum(found, 1) else { panic!("it is a number") };
        kept.update(found, &[(1, Datum::Integer(value + difference))]);
    }
    match transaction.commit(|_| Ok(())) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::Conflict => false,
        Err(error) => panic!("{error}"),
    }
}

fn values_that_are_kept_are_neither_lost_nor_torn() {
    let table = table(16);
    insert(&table, 0..6);
    let keepers = [(); 2].map(|()| {
        let table = table.clone();
        thread::spawn(move || {
            let one = keep(&table, &[(0, 1)]);
            [one, keep(&table, &[(2, 10), (1, -10)])].map(i64::from)
        })
    });
    let writer = {
        let table = table.clone();
        thread::spawn(move || {
            write_lock(&table, 3);
            insert(&table, 6..10);
            write_lock(&table, 3);
        })
    };
    for _ in 0..2 {
        let read = table.read(|reader| {
            let mut values = Vec::new();
            for key in [1, 2] {
                reader.read(reader.find(&row(key, 0)[..1]).expect("it is there"), &[1], &mut values);
            }
            values
                .iter()
                .map(|value| if let Datum::Integer(value) = value { *value } else { 0 })
                .sum::<i128>()
        });
        assert_eq!(read, 200, "both or none");
        let seen = rows(&table.snapshot());
        assert_eq!(seen[1].1 + seen[2].1, 200, "both or none");
    }
    let done = keepers.map(|thread| thread.join().unwrap());
    writer.join().unwrap();
    let [ones, tens] = [0, 1].map(|at| done[0][at] + done[1][at]);
    assert!(ones > 0 && tens > 0, "one of two is the first");
    let first = [(0, 100 + ones), (1, 100 - 10 * tens), (2, 100 + 10 * tens), (3, 0)];
    assert_eq!(rows(&table.snapshot())[..4], first);
}

fn row_groups_are_split_beside_readers_and_forks() {
    let table = table(8);
    insert(&table, (0..12).map(|key| key * 10));
    let (writer, forker) = (table.clone(), table.clone());
    let writer = thread::spawn(move || insert(&writer, (0..12).map(|key| key * 10 + 1)));
    let forker = thread::spawn(move || {
        let mut transaction = Transaction::begin(std::slice::from_ref(&forker));
        let mut writer = transaction.write(&forker);
        for key in 0..8 {
            writer.insert(&row(key * 10 + 2, 100));
        }
        drop(writer);
        transaction.commit(|_| Ok(())).expect("nobody has these keys");
    });
    for _ in 0..2 {
        let snapshot = table.snapshot();
        let seen = keys(&snapshot);
        let forked = seen.iter().filter(|key| **key % 10 == 2).count();
        assert!(forked == 0 || forked == 8, "a commit is all or nothing");
        assert_eq!(keys(&snapshot), seen);
    }
    writer.join().unwrap();
    forker.join().unwrap();
    assert_eq!(table.snapshot().rows(), 32);
}

fn upkeep_changes_nothing_beside_writers() {
    let table = table(16);
    insert(&table, (0..20).map(|key| key * 10));
    // From now on the rows rest, so that the next round has something to do.
    assert!(table.upkeep(Duration::from_secs(60)).warm > 0);
    let (keeper, writer) = (table.clone(), table.clone());
    let keeper = thread::spawn(move || {
        for _ in 0..3 {
            keeper.upkeep(Duration::from_secs(60));
        }
    });
    let forker = {
        let table = table.clone();
        thread::spawn(move || {
            let mut transaction = Transaction::begin(std::slice::from_ref(&table));
            let mut writer = transaction.write(&table);
            let found = writer.find(&row(20, 0)[..1]).expect("the row is there");
            writer.update(found, &[(1, Datum::Integer(7))]);
            drop(writer);
            transaction.commit(|_| Ok(())).expect("upkeep is in conflict with nobody");
        })
    };
    let writer = thread::spawn(move || {
        insert(&writer, 1..6);
        let mut removing = writer.write();
        let found = removing.find(&row(0, 0)[..1]).expect("the row is there");
        removing.delete(found);
    });
    let snapshot = table.snapshot();
    let seen = rows(&snapshot);
    [keeper, forker, writer].into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(rows(&snapshot), seen);
    let now = rows(&table.snapshot());
    let mut expected: Vec<(i64, i64)> =
        (1..6).chain((1..20).map(|key| key * 10)).map(|key| (key, 100)).collect();
    expected.sort_unstable();
    expected.iter_mut().filter(|(key, _)| *key == 20).for_each(|(_, value)| *value = 7);
    assert_eq!(now, expected);
    drop((snapshot, seen));
    table.sweep();
    assert_eq!(table.retired(), 0, "nothing is left of old versions");
}

/// A database of two tables of four rows, as the connections of a process share it.
struct Database {
    catalog: Catalog,
    tables: [Arc<TableEntry>; 2],
}

impl Database {
    fn new() -> Arc<Database> {
        let catalog = Catalog::new();
        let base = catalog.version();
        let mut names = base.clone();
        let tables = ["t", "u"].map(|name| {
            let table = table(16);
            insert(&table, 0..4);
            let entry = Arc::new(TableEntry { name: name.into(), ..TableEntry::plain(table) });
            names.add(Entry::Table(entry.clone()), IfExists::Fail).unwrap();
            entry
        });
        assert!(catalog.publish(&base, &names, &[], &mut || true).unwrap());
        Arc::new(Database { catalog, tables })
    }

    fn table(&self, number: usize) -> &Arc<Table> {
        &self.tables[number].table
    }

    /// A statement by itself, which adds one to a value of table `number`.
    fn statement(&self, number: usize, key: i64) -> bool {
        let table = self.table(number);
        let mut rows = Transaction::alone(std::slice::from_ref(table));
        let names = self.catalog.version();
        add(&mut rows, table, key);
        self.commit(&names, &names, &[number], rows)
    }

    /// Commits what was done to the rows of some tables, and to names.
    fn commit(&self, base: &CatalogVersion, now: &CatalogVersion, used: &[usize], rows: Transaction) -> bool {
        let used: Vec<_> = used.iter().map(|&at| self.tables[at].clone()).collect();
        let publish = |rows: &mut dyn FnMut() -> bool| self.catalog.publish(base, now, &used, rows);
        succeeds(rows.commit_as(&Waiter::default(), |_| Ok(None), publish, |_| Ok(())))
    }
}

/// False for a conflict.
/// A table succeeds another one beside readers, upkeep and a fork of that, and is written.
fn a_table_succeeds_another_one_beside_its_readers() {
    let old = table(16);
    insert(&old, (0..20).map(|key| key * 10));
    assert!(old.upkeep(Duration::from_secs(60)).warm > 0);
    let first = rows(&old.snapshot());
    let (reader, keeper, forker) = (old.clone(), old.clone(), old.clone());
    let seen = first.clone();
    let reader = thread::spawn(move || {
        let early = reader.snapshot();
        assert_eq!(rows(&early), seen);
        let late = reader.snapshot();
        drop((reader, early));
        assert_eq!(rows(&late), seen);
    });
    let keeper = thread::spawn(move || {
        for _ in 0..2 {
            keeper.upkeep(Duration::from_secs(60));
        }
    });
    let forker = thread::spawn(move || {
        let mut transaction = Transaction::begin(std::slice::from_ref(&forker));
        let mut writer = transaction.write(&forker);
        (0..4).for_each(|key| _ = writer.insert(&row(key * 10 + 5, 0)));
        drop(writer);
        assert_eq!(transaction.snapshot(&forker).rows(), 24);
    });
    let mut schema = old.schema().clone();
    schema.push(Field::new("c", DataType::Int64));
    let constant = ColumnSource::Constant(entasis_vector::Value::Integer(7));
    let sources = [ColumnSource::Old(0), ColumnSource::Old(1), constant];
    let new = old.snapshot().with_columns(schema, &sources, old.options().clone());
    let new = new.expect("it is a version of the head");
    assert!(new.succeed(), "nobody has changed its rows");
    drop(old);
    for key in 0..4 {
        let found = new.snapshot().find(&row(key * 10, 0)[..1]).expect("the row is there");
        new.write().delete(found);
        new.write().insert(&[Datum::Integer((key * 10 + 1).into()), Datum::Integer(1), Datum::Integer(7)]);
    }
    [reader, keeper, forker].into_iter().for_each(|thread| thread.join().unwrap());
    let moved = |(key, value): (i64, i64)| if key < 40 { (key + 1, 1) } else { (key, value) };
    assert_eq!(rows(&new.snapshot()), first.into_iter().map(moved).collect::<Vec<_>>());
    new.sweep();
    assert_eq!((new.retired(), new.snapshots()), (0, 0), "nothing is left of the other one");
}

fn succeeds(result: entasis_vector::Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::Conflict => false,
        Err(error) => panic!("{error}"),
    }
}

/// Adds one to the value of a row.
fn add(transaction: &mut Transaction, table: &Arc<Table>, key: i64) {
    let mut writer = transaction.write(table);
    let found = writer.find(&row(key, 0)[..1]).expect("the row is there");
    let Datum::Integer(value) = writer.datum(found, 1) else { panic!("a number") };
    writer.update(found, &[(1, Datum::Integer(value + 1))]);
}

/// The first two of these hung for good while commits took the write locks of their tables behind a lock of
/// their own that excluded those who take snapshots of several tables, and the third while they took them
/// behind the names.
fn a_statement_and_a_commit_of_its_table_both_end() {
    let database = Database::new();
    let other = database.clone();
    let thread = thread::spawn(move || assert!(other.statement(0, 1), "its write lock comes first"));
    let names = database.catalog.version();
    let mut rows = Transaction::begin(std::slice::from_ref(database.table(0)));
    add(&mut rows, database.table(0), 2);
    assert!(database.commit(&names, &names, &[0], rows), "the rows are different");
    thread.join().unwrap();
    assert_eq!(rows_of(&database, 0), [100, 101, 101, 100]);
}

fn statements_and_a_commit_of_two_tables_all_end() {
    let database = Database::new();
    let threads = [0, 1].map(|number| {
        let other = database.clone();
        thread::spawn(move || assert!(other.statement(number, 1), "its write lock comes first"))
    });
    let names = database.catalog.version();
    let tables = [0, 1].map(|number| database.table(number).clone());
    let mut rows = Transaction::begin(&tables);
    tables.iter().for_each(|table| add(&mut rows, table, 2));
    assert!(database.commit(&names, &names, &[0, 1], rows), "the rows are different");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!([0, 1].map(|number| rows_of(&database, number)), [[100, 101, 101, 100]; 2]);
}

fn a_commit_of_names_and_rows_ends_beside_statements() {
    let database = Database::new();
    let (writer, definer) = (database.clone(), database.clone());
    let writer = thread::spawn(move || assert!(writer.statement(0, 1), "its write lock comes first"));
    let definer = thread::spawn(move || definer.define("y", Transaction::default(), &[]));
    let base = database.catalog.version();
    let mut rows = Transaction::begin(std::slice::from_ref(database.table(0)));
    add(&mut rows, database.table(0), 2);
    let mut now = base.clone();
    now.add(new_table("x"), IfExists::Fail).unwrap();
    assert!(database.commit(&base, &now, &[0], rows));
    writer.join().unwrap();
    assert!(definer.join().unwrap(), "the names are different");
    assert_eq!(rows_of(&database, 0), [100, 101, 101, 100]);
    let names = database.catalog.version();
    assert!(names.get("x").is_some() && names.get("y").is_some());
}

impl Database {
    /// Makes a table known, and commits `rows` with it.
    fn define(&self, name: &str, rows: Transaction, used: &[usize]) -> bool {
        let base = self.catalog.version();
        let mut now = base.clone();
        now.add(new_table(name), IfExists::Fail).unwrap();
        self.commit(&base, &now, used, rows)
    }

    /// What a statement sees that names both tables, the first one earlier.
    fn seen(&self) -> [Vec<(i64, i64)>; 2] {
        let mut rows = Transaction::alone(&[]);
        loop {
            let seen = [0, 1].map(|number| crate::rows(&rows.snapshot(self.table(number))));
            if self.catalog.at_rest(|_| rows.sees_one_moment()) {
                return seen;
            }
        }
    }
}

fn new_table(name: &str) -> Entry {
    Entry::Table(Arc::new(TableEntry { name: name.into(), ..TableEntry::plain(table(16)) }))
}

/// The values of a table, by key.
fn rows_of(database: &Database, number: usize) -> [i64; 4] {
    let rows = rows(&database.table(number).snapshot());
    [0, 1, 2, 3].map(|at| rows[at].1)
}

fn a_statement_sees_its_tables_at_one_moment() {
    let database = Database::new();
    let other = database.clone();
    // The second table is never ahead of the first, nor behind it by more than one.
    let thread = thread::spawn(move || {
        for _ in 0..2 {
            assert!(other.statement(0, 1) && other.statement(1, 1));
        }
    });
    for _ in 0..2 {
        let [t, u] = database.seen().map(|rows| rows[1].1);
        assert!(t == u || t == u + 1, "t was seen at {t}, u at {u}");
    }
    thread.join().unwrap();
}

fn a_statement_sees_a_commit_of_two_tables_whole() {
    let database = Database::new();
    let other = database.clone();
    let thread = thread::spawn(move || {
        let names = other.catalog.version();
        let tables = [0, 1].map(|number| other.table(number).clone());
        let mut rows = Transaction::begin(&tables);
        tables.iter().for_each(|table| add(&mut rows, table, 2));
        assert!(other.commit(&names, &names, &[0, 1], rows));
    });
    let [t, u] = database.seen();
    assert_eq!(t, u);
    thread.join().unwrap();
}

/// Two transactions rely on what the other one changes: one of them must see it.
fn of_two_that_rely_on_each_other_one_fails() {
    let database = Database::new();
    let run = |database: Arc<Database>, changed: usize| {
        let names = database.catalog.version();
        let mut rows = Transaction::begin(&[0, 1].map(|number| database.table(number).clone()));
        let other = database.table(1 - changed).clone();
        rows.depend_on(&other);
        let is_as_before = |rows: &mut Transaction| match crate::rows(&rows.snapshot(&other))[1].1 {
            100 => Ok(()),
            _ => Err(entasis_vector::Error::new(ErrorKind::Conflict, "the other was first")),
        };
        if is_as_before(&mut rows).is_err() {
            return false;
        }
        add(&mut rows, database.table(changed), 1);
        let used = [database.tables[changed].clone()];
        let publish = |rows: &mut dyn FnMut() -> bool| database.catalog.publish(&names, &names, &used, rows);
        succeeds(rows.commit_as(&Waiter::default(), |_| Ok(None), publish, is_as_before))
    };
    let other = database.clone();
    let thread = thread::spawn(move || run(other, 1));
    let mine = run(database, 0);
    assert!(!(mine && thread.join().unwrap()), "this would be write skew");
}

fn who_waits_for_a_turn_gets_it_or_gives_up() {
    let table = table(16);
    let threads = [0, 1].map(|number| {
        let table = table.clone();
        thread::spawn(move || {
            let is_interrupted = || number == 1;
            let waiter =
                Waiter { is_interrupted: (number == 1).then_some(&is_interrupted), ..Waiter::default() };
            match table.write_as(&waiter) {
                Ok(mut writer) => drop(writer.insert(&row(number, 0))),
                Err(error) => assert!(number == 1, "{error}"),
            }
        })
    });
    insert(&table, 2..4);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let keys = keys(&table.snapshot());
    assert!(keys == [0, 1, 2, 3] || keys == [0, 2, 3], "{keys:?}");
}

/// Opens what is in a file, and gives the rows of its one table.
fn file_rows(backend: &MemoryBackend) -> Vec<(i64, i64)> {
    let copy = Arc::new(MemoryBackend::of("copy", backend.bytes()));
    let file = DataFile::open(copy, Access::Write).expect("it is a database");
    let (catalog, _) = checkpoint::open(&file).expect("it is whole");
    rows(&catalog.version().table("t").expect("it is there").table.snapshot())
}

/// Rows come and go in the slots of shared blocks while a checkpoint runs: it is of the version that it
/// pinned, and the next one leaves nothing out.
fn ghosts_are_stored_beside_a_checkpoint() {
    let table = table(16);
    insert(&table, 0..9);
    let mut names = CatalogVersion::default();
    let entry = Entry::Table(Arc::new(TableEntry::plain(table.clone())));
    names.add(entry, IfExists::Fail).expect("the name is new");
    let catalog = Catalog::new();
    catalog.publish(&CatalogVersion::default(), &names, &[], &mut || true).expect("nobody else is there");
    let backend = MemoryBackend::new("memory");
    let file = DataFile::create(Arc::new(backend.clone()), DatabaseId([7; 16]), 4096).expect("it is empty");
    let save = |last: &Checkpointed| {
        let moment = Moment::take(&catalog, &Images::default(), || 0);
        let pinned = rows(&table.snapshot());
        (checkpoint::checkpoint(&file, &moment, last, State::Open).expect("memory does not fail"), pinned)
    };
    let (last, _) = save(&Checkpointed::default());
    let other = table.clone();
    let thread = thread::spawn(move || {
        for (key, value) in [(3, 7), (5, 8), (3, 9)] {
            let mut writer = other.write();
            let found = writer.find(&row(key, 0)[..1]).expect("the row is there");
            writer.delete(found);
            drop(writer);
            let _seen = other.snapshot();
            other.write().insert(&row(key, value));
        }
    });
    let moment = Moment::take(&catalog, &Images::default(), || 0);
    let pinned = moment.tables().map(rows).next().expect("one table");
    let last = checkpoint::checkpoint(&file, &moment, &last, State::Open).expect("memory does not fail");
    drop(moment);
    assert_eq!(file_rows(&backend), pinned);
    let (last, _) = save(&last);
    thread.join().unwrap();
    let (_, head) = save(&last);
    assert_eq!(file_rows(&backend), head);
}

/// Runs schedules of each scheduler: a third of `most`, or all if ENTASIS_SCHEDULES is set, because one
/// thread runs them all.
fn run(name: &str, test: fn(), most: usize) {
    let schedules = if std::env::var_os("ENTASIS_SCHEDULES").is_some() { most } else { most / 3 };
    let start = Instant::now();
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.silence_warnings = true;
    let schedulers: [Box<dyn Scheduler + Send>; 2] =
        [Box::new(RandomScheduler::new(schedules)), Box::new(PctScheduler::new(3, schedules))];
    for scheduler in schedulers {
        Runner::new(scheduler, config.clone()).run(test);
    }
    println!("{name}: {} schedules in {:.1} s", schedules * 2, start.elapsed().as_secs_f64());
}

fn main() {
    run("different keys are both committed", different_keys_are_both_committed, 5000);
    run("one of two equal keys is committed", one_of_two_equal_keys_is_committed, 5000);
    run("a snapshot sees no half of a change", a_snapshot_sees_no_half_of_a_change, 5000);
    run("changes in place are neither lost nor torn", changes_in_place_are_neither_lost_nor_torn, 15_000);
    assert!(IN_PLACE.load(Ordering::Relaxed) > 5000, "some are made in place");
    run(
        "values that are kept are neither lost nor torn",
        values_that_are_kept_are_neither_lost_nor_torn,
        5000,
    );
    run("row groups are split beside readers and forks", row_groups_are_split_beside_readers_and_forks, 5000);
    run("upkeep changes nothing beside writers", upkeep_changes_nothing_beside_writers, 5000);
    run(
        "a table succeeds another one beside its readers",
        a_table_succeeds_another_one_beside_its_readers,
        3000,
    );
    run(
        "a statement and a commit of its table both end",
        a_statement_and_a_commit_of_its_table_both_end,
        5000,
    );
    run("statements and a commit of two tables all end", statements_and_a_commit_of_two_tables_all_end, 5000);
    run(
        "a commit of names and rows ends beside statements",
        a_commit_of_names_and_rows_ends_beside_statements,
        5000,
    );
    run("a statement sees its tables at one moment", a_statement_sees_its_tables_at_one_moment, 5000);
    run("a statement sees a commit of two tables whole", a_statement_sees_a_commit_of_two_tables_whole, 5000);
    run("of two that rely on each other one fails", of_two_that_rely_on_each_other_one_fails, 5000);
    run("ghosts are stored beside a checkpoint", ghosts_are_stored_beside_a_checkpoint, 3000);
    run("who waits for a write lock gets it or gives up", who_waits_for_a_turn_gets_it_or_gives_up, 5000);
}
