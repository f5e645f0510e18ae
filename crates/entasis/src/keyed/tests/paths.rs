//! Which statements are keyed: those that run at once the first time.

use crate::{Config, Connection, Database, ErrorKind, Value};
use std::sync::mpsc::channel;
use std::thread;

fn connection() -> Connection {
    let connection = Database::in_memory(Config::default()).expect("in memory").connect();
    let tables = "CREATE TABLE t (k BIGINT PRIMARY KEY, a INTEGER, b VARCHAR);
         CREATE TABLE h (a INTEGER, p DECIMAL(10, 2) DEFAULT 1.5, d DATE, ts TIMESTAMPTZ);
         CREATE TABLE i (k BIGINT PRIMARY KEY, a INTEGER, b VARCHAR UNIQUE);
         CREATE TABLE n (k BIGINT GENERATED ALWAYS AS IDENTITY, a INTEGER);
         CREATE TABLE u (k BIGINT UNIQUE, a INTEGER);
         CREATE TABLE c (k BIGINT PRIMARY KEY, a INTEGER CHECK (a > 0));
         INSERT INTO t SELECT i, i, 'x' FROM range(1000) r(i);";
    connection.execute(tables).expect("tables");
    connection
}

fn is_at_once(connection: &Connection, sql: &str) -> bool {
    connection.query_at_once(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}")).is_some()
}

#[test]
fn what_is_keyed_runs_at_once() {
    let connection = connection();
    for sql in [
        "INSERT INTO h (a) VALUES (1), (2)",
        "INSERT INTO h VALUES (1, 5, '2024-02-29', NULL), (DEFAULT, DEFAULT, DEFAULT, DEFAULT)",
        "INSERT INTO h VALUES ('1', '5.25', NULL, '2024-02-29 12:00:00+01') RETURNING p",
        "INSERT INTO n (a) VALUES (1), (2) RETURNING k",
        "INSERT INTO t VALUES (-1, 1, 'y'), (-2, '2', 'y')",
        "INSERT INTO i VALUES (1, 1, 'y'), (2, 2, 'z') RETURNING b",
        "INSERT INTO i VALUES (1, 1, 'y') ON CONFLICT (k) DO UPDATE SET a = i.a + 1, b = excluded.b
            RETURNING a",
        "UPDATE i SET a = a + 1, b = 'w' WHERE k = 1 RETURNING b",
        "DELETE FROM i WHERE k = 1 RETURNING *",
        "SELECT a FROM t WHERE k IN (1, 2, NULL, 2)",
        "SELECT * FROM t WHERE k > 10 ORDER BY k LIMIT 10",
        "SELECT * FROM t ORDER BY k DESC LIMIT 1",
        "SELECT a FROM t WHERE k BETWEEN 5 AND 10",
        "SELECT a FROM u WHERE k = 1 LIMIT 1",
    ] {
        assert!(is_at_once(&connection, sql), "{sql}");
    }
}

#[test]
fn everything_else_does_not() {
    let connection = connection();
    for sql in [
        "INSERT INTO c VALUES (1, 1)",
        "INSERT INTO h VALUES (1, 2, 5, NULL)",
        "INSERT INTO h (ts) VALUES ('2024-02-29 12:00:00')",
        "INSERT INTO n VALUES (1, 1)",
        "INSERT INTO t VALUES (1, 1, 'y'), (1, 1, 'y') ON CONFLICT (k) DO NOTHING",
        "SELECT a FROM h WHERE a > 1 ORDER BY a LIMIT 1",
        "SELECT * FROM t WHERE k > 10",
        "SELECT * FROM t WHERE k > 10 LIMIT 257",
        "SELECT a FROM u ORDER BY k LIMIT 1",
        "SELECT a FROM t WHERE k > NULL",
        "SELECT a FROM t WHERE k > 1.5 LIMIT 1",
    ] {
        assert!(connection.query_at_once(sql, &[]).unwrap().is_none(), "{sql}");
    }
}

#[test]
fn transactions_of_few_rows_begin_and_end_at_once() {
    let connection = connection();
    assert!(connection.query_at_once("COMMIT", &[]).unwrap().is_none(), "none is open");
    for end in ["COMMIT", "ROLLBACK"] {
        assert!(is_at_once(&connection, "BEGIN"));
        assert!(connection.query_at_once("BEGIN", &[]).unwrap().is_none(), "one is open");
        assert!(is_at_once(&connection, "UPDATE t SET a = a + 1 WHERE k = 1"));
        assert!(is_at_once(&connection, "SELECT a FROM t WHERE k IN (1)"));
        assert!(is_at_once(&connection, end) && !connection.in_transaction());
    }
    let rows = connection.execute("SELECT a FROM t WHERE k = 1").unwrap();
    assert_eq!(rows.single_row().unwrap(), [Value::Integer(2)], "of two sums one was kept");
    // Names that change, and many rows, take longer.
    for change in [
        "CREATE TABLE new (a INTEGER)",
        "INSERT INTO t SELECT i + 5000, i, repeat('x' || (i * 7919 % 1000003), 9) FROM range(100000) r(i)",
    ] {
        connection.execute("BEGIN").unwrap();
        connection.execute(change).unwrap();
        assert!(connection.query_at_once("COMMIT", &[]).unwrap().is_none(), "{change}");
        connection.execute("ROLLBACK").unwrap();
    }
}

#[test]
fn tables_of_the_transaction_itself_have_programs() {
    let connection = connection();
    let row = |sql: &str| {
        let rows = connection.query_at_once(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        rows.unwrap_or_else(|| panic!("{sql} is not keyed")).row_values().next()
    };
    let integers = |values: &[i128]| Some(values.iter().map(|n| Value::Integer(*n)).collect::<Vec<_>>());
    for end in ["ROLLBACK", "COMMIT"] {
        connection.execute("BEGIN; CREATE TABLE own (k BIGINT PRIMARY KEY, a INTEGER UNIQUE)").unwrap();
        for sql in ["INSERT INTO own VALUES (1, 1), (2, 5)", "UPDATE own SET a = a + 1 WHERE k = 1"] {
            assert!(is_at_once(&connection, sql), "{sql}");
        }
        assert!(connection.query_at_once("INSERT INTO own VALUES (1, 9)", &[]).is_err());
        let star = "SELECT * FROM own WHERE k = 1";
        assert_eq!(row(star), integers(&[1, 2]));
        // Each change of names has programs of its own, and so has the state before it.
        connection.execute("SAVEPOINT s; ALTER TABLE own ADD COLUMN b INTEGER DEFAULT 7").unwrap();
        assert_eq!(row(star), integers(&[1, 2, 7]));
        connection.execute("ROLLBACK TO s").unwrap();
        assert_eq!(row(star), integers(&[1, 2]));
        connection.execute("DROP TABLE own; CREATE TABLE own (k BIGINT PRIMARY KEY, c VARCHAR)").unwrap();
        assert_eq!(row(star), None);
        assert!(is_at_once(&connection, "INSERT INTO own VALUES (1, 2)"));
        // Tables that were there before.
        assert!(is_at_once(&connection, "UPDATE t SET a = 100 WHERE k = 1"));
        connection.execute(end).unwrap();
        let kept = connection.execute("SELECT c FROM own").map(|rows| rows.row_values().next().unwrap());
        assert_eq!(kept.ok(), (end == "COMMIT").then(|| vec![Value::Text("2".into())]));
        assert_eq!(row("SELECT a FROM t WHERE k = 1"), integers(&[if end == "COMMIT" { 100 } else { 1 }]));
    }
    // Names that others have changed since.
    let other = connection.database().connect();
    connection.execute("BEGIN").unwrap();
    other.execute("ALTER TABLE own ADD COLUMN d INTEGER DEFAULT 3").unwrap();
    assert_eq!(row("SELECT * FROM own WHERE k = 1").map(|row| row.len()), Some(2));
    assert!(is_at_once(&connection, "UPDATE own SET c = 'x' WHERE k = 1"));
    assert_eq!(connection.execute("COMMIT").unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(row("SELECT * FROM own WHERE k = 1").map(|row| row.len()), Some(3));
}

/// Two connections with an open transaction each, which have changed the same row.
fn two_transactions(database: &Database) -> [Connection; 2] {
    let [first, second] = [(); 2].map(|()| database.connect());
    first.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, a INTEGER); INSERT INTO t VALUES (1, 0)").unwrap();
    for (connection, change) in
        [(&first, "UPDATE t SET a = 1 WHERE k = 1"), (&second, "DELETE FROM t WHERE k = 1")]
    {
        assert!(is_at_once(connection, "BEGIN") && is_at_once(connection, change));
    }
    [first, second]
}

#[test]
fn a_commit_that_conflicts_fails_once() {
    let database = Database::in_memory(Config::default()).unwrap();
    let [first, second] = two_transactions(&database);
    assert!(is_at_once(&first, "COMMIT"));
    let conflict = second.query_at_once("COMMIT", &[]).expect_err("it is a conflict");
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
    assert!(!second.in_transaction(), "it has failed as a whole");
}

#[test]
fn a_commit_that_would_wait_is_left_to_who_can_be_interrupted() {
    let database = Database::in_memory(Config::default()).unwrap();
    let [first, _second] = two_transactions(&database);
    let entry = database.shared.catalog.version().table("t").unwrap().clone();
    let ((is_held, held), (end, ended)) = (channel(), channel());
    thread::scope(|scope| {
        scope.spawn(move || {
            let writer = entry.table.write();
            is_held.send(()).unwrap();
            ended.recv().unwrap();
            drop(writer);
        });
        held.recv().unwrap();
        assert!(first.query_at_once("COMMIT", &[]).unwrap().is_none());
        assert!(first.in_transaction());
        end.send(()).unwrap();
    });
    first.execute("COMMIT").unwrap();
    assert_eq!(first.execute("SELECT a FROM t").unwrap().row_values().next().unwrap(), [Value::Integer(1)]);
}
