//! Conflicts are judged by rows; changes of a table succeed beside its writers; a commit of many rows takes them as they are.

use super::race::{Worker, race};
use super::sessions::Expected::{Count, Done, Rows};
use super::sessions::{Sessions, database, query, run};
use entasis::{Connection, DataType, Database, Value};
use std::thread;
use std::time::Duration;

// ---- rows that are told by their places -------------------------------------------------------------------------------

/// Long enough that upkeep takes a table for one that rests, and puts it in order.
fn rest() {
    thread::sleep(Duration::from_millis(1500));
}

const MANY: &str = "INSERT INTO t SELECT i, 0 FROM range(100000) r(i)";

#[test]
fn an_update_and_a_delete_of_many_other_rows_are_no_conflict() {
    Sessions::new().check(&[
        ("", "CREATE TABLE t (v BIGINT, w BIGINT)", Done),
        ("", MANY, Count(100000)),
        ("1", "BEGIN", Done),
        ("1", "UPDATE t SET w = 1 WHERE v = 99999", Count(1)),
        ("2", "DELETE FROM t WHERE v < 80000", Count(80000)),
        ("1", "COMMIT", Done),
        ("", "SELECT count(*), sum(w) FROM t", Rows("20000 1")),
        ("", "SELECT v FROM t WHERE w = 1", Rows("99999")),
    ]);
}

#[test]
fn two_deletes_of_different_rows_are_no_conflict() {
    for layout in ["", "WITH (layout = 'insertion', compression = 'none')", "WITH (compression = 'packed')"] {
        let create = format!("CREATE TABLE t (v BIGINT, w BIGINT) {layout}");
        Sessions::new().check(&[
            ("", &create, Done),
            ("", MANY, Count(100000)),
            ("1", "BEGIN", Done),
            ("1", "DELETE FROM t WHERE v >= 99990", Count(10)),
            ("1", "INSERT INTO t VALUES (-1, 5)", Count(1)),
            ("2", "DELETE FROM t WHERE v % 10 < 9 AND v < 99990", Count(89991)),
            ("2", "UPDATE t SET w = 2 WHERE v = 9", Count(1)),
            ("1", "COMMIT", Done),
            ("", "SELECT count(*), sum(w) FROM t", Rows("10000 7")),
            ("", "SELECT max(v) FROM t", Rows("99989")),
        ]);
    }
}

#[test]
fn upkeep_between_makes_no_conflict_of_different_rows() {
    let mut sessions = Sessions::new();
    sessions.check(&[
        ("", "CREATE TABLE t (v BIGINT, w BIGINT)", Done),
        ("", MANY, Count(100000)),
        ("", "DELETE FROM t WHERE v % 3 = 1", Count(33333)),
        ("1", "BEGIN", Done),
        ("1", "UPDATE t SET w = 1 WHERE v >= 99998", Count(2)),
        ("2", "DELETE FROM t WHERE v < 50000", Count(33333)),
        ("2", "DELETE FROM t WHERE v BETWEEN 50000 AND 89999", Count(26667)),
    ]);
    rest();
    sessions.check(&[
        ("2", "INSERT INTO t VALUES (-1, 0)", Count(1)),
        ("1", "COMMIT", Done),
        ("", "SELECT count(*), sum(w) FROM t", Rows("6668 2")),
        ("", "SELECT v FROM t WHERE w = 1 ORDER BY v", Rows("99998, 99999")),
    ]);
}

// ---- changes of a table beside its writers -----------------------------------------------------------------------------

/// Runs statements that change table `t` while another connection updates single rows of it without a pause. None may fail, nor an
/// update.
fn check_beside_updates(statements: &[&str]) -> Database {
    const ROWS: u64 = 50_000;
    let database = database();
    let connection = database.connect();
    run(
        &connection,
        &["CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)", "INSERT INTO t SELECT i, 0 FROM range(50000) r(i)"],
    );
    let integer = |value: u64| (Value::Integer(value.into()), DataType::Int64);
    let update = |connection: &Connection, round: u64| {
        let parameters = [integer(round), integer(round % ROWS)];
        let result = connection.query("UPDATE t SET v = ? WHERE k = ?", &parameters);
        result.unwrap_or_else(|error| panic!("an update by itself has nothing to be in conflict with: {error:?}"));
        Ok(())
    };
    let change = |connection: &Connection, _| {
        run(connection, statements);
        Ok(())
    };
    race(&database, 1, &[Worker::new("change", change), Worker::new("updates", update).in_background()]);
    database
}

#[test]
fn create_index_succeeds_beside_updates() {
    let connection = check_beside_updates(&["CREATE INDEX ix ON t (v)"]).connect();
    // What the index finds is what is there.
    let wanted = query(&connection, "SELECT max(v) FROM t");
    assert_eq!(query(&connection, &format!("SELECT count(*) FROM t WHERE v = {wanted}")), "1");
    assert_eq!(query(&connection, "SELECT count(*) FROM t a WHERE NOT EXISTS (SELECT FROM t b WHERE b.v = a.v)"), "0");
}

#[test]
fn alter_table_succeeds_beside_updates() {
    let connection = check_beside_updates(&[
        "ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7",
        "ALTER TABLE t ALTER COLUMN more TYPE VARCHAR",
        "ALTER TABLE t SET (layout = 'sorted')",
    ])
    .connect();
    assert_eq!(query(&connection, "SELECT count(*), min(more), max(more) FROM t"), "50000 7 7");
}

#[test]
fn truncate_succeeds_beside_updates() {
    let connection = check_beside_updates(&["TRUNCATE t"]).connect();
    assert_eq!(query(&connection, "SELECT count(*) FROM t"), "0");
}

#[test]
fn a_table_is_replaced_beside_updates() {
    let connection = check_beside_updates(&["CREATE OR REPLACE TABLE t AS SELECT k, v, 1 AS w FROM t"]).connect();
    assert_eq!(query(&connection, "SELECT count(*), count(DISTINCT k), sum(w) FROM t"), "50000 50000 50000");
}
