//! Threads that update rows of one table at once: nothing is lost, neither in memory nor in the log.

use super::{Random, rows};
use crate::{Config, Connection, DataType, Database, Value};
use entasis_storage::backend::MemoryBackend;
use entasis_storage::file::{Access, DataFile, DatabaseId};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const KEYS: u64 = 50;
const CHANGES: u64 = 2_000;

fn integer(value: u64) -> (Value, DataType) {
    (Value::Integer(value.into()), DataType::Int64)
}

/// Adds one to both counters of a row, which are equal, or takes one from them: returns which.
fn update(connection: &Connection, random: &mut Random) -> i128 {
    let (sql, added) = match random.below(2) {
        0 => ("UPDATE t SET a = a + 1, b = b + 1 WHERE k = ? RETURNING a, b", 1),
        _ => ("UPDATE t SET a = a - 1, b = b - 1 WHERE k = ? RETURNING a, b", -1),
    };
    let changed = connection.query(sql, &[integer(random.below(KEYS))]).expect("it is changed");
    assert_eq!(changed.changed(), Some(1));
    let row: Vec<Value> = changed.row_values().next().expect("the row is returned");
    assert_eq!(row[0], row[1], "both or none");
    added
}

#[test]
fn updates_beside_others_are_kept_and_logged() {
    let (file, log) = (MemoryBackend::new("my.db"), MemoryBackend::new("my.db.wal"));
    let data = DataFile::create(Arc::new(file.clone()), DatabaseId([7; 16]), 4096).expect("it is new");
    let config = || Config { threads: 1, ..Config::default() };
    let database = Database::on(data, Arc::new(log.clone()), config()).expect("it opens");
    let connection = database.connect();
    connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, a INTEGER, b INTEGER, c VARCHAR)").unwrap();
    let all = format!("INSERT INTO t SELECT i, i % 7, i % 7, 'x' FROM range({KEYS}) r(i)");
    connection.execute(&all).unwrap();
    let added: i128 = thread::scope(|scope| {
        let writers = [1, 2, 3].map(|seed| {
            let database = &database;
            scope.spawn(move || {
                let (connection, mut random) = (database.connect(), Random(seed));
                (0..CHANGES).map(|_| update(&connection, &mut random)).sum::<i128>()
            })
        });
        while writers.iter().any(|writer| !writer.is_finished()) {
            let torn = rows(&connection, "SELECT count(*) FROM t WHERE a <> b");
            assert_eq!(torn, [["Integer(0)"]]);
            let one = connection.query("SELECT a, b FROM t WHERE k = ?", &[integer(3)]).unwrap();
            let pair: Vec<Value> = one.row_values().next().expect("the row is there");
            assert_eq!(pair[0], pair[1]);
            thread::sleep(Duration::from_millis(1));
        }
        writers.into_iter().map(|writer| writer.join().expect("a writer does not panic")).sum()
    });
    let sql = "SELECT * FROM t ORDER BY k";
    let last = rows(&connection, sql);
    let first: i128 = (0..KEYS).map(|key| i128::from(key % 7)).sum();
    let sum = format!("Integer({})", first + added);
    assert_eq!(rows(&connection, "SELECT sum(a), sum(b) FROM t"), [[sum.clone(), sum]]);
    // What a crash leaves.
    let copy = |backend: &MemoryBackend| Arc::new(MemoryBackend::of("a copy", backend.bytes()));
    let data = DataFile::open(copy(&file), Access::Write).expect("it is a database");
    let again = Database::on(data, copy(&log), config()).expect("it opens again");
    assert_eq!(rows(&again.connect(), sql), last);
}
