//! Transactions of a few keyed updates, whose new values are kept until the commit.

use super::rows;
use crate::{Config, Connection, Database};
use entasis_storage::backend::MemoryBackend;
use entasis_storage::file::{Access, DataFile, DatabaseId};
use entasis_vector::ErrorKind;
use std::sync::Arc;

const TABLE: &str = "CREATE TABLE t (k BIGINT PRIMARY KEY, a TINYINT NOT NULL, b VARCHAR)";

fn database() -> Database {
    let database = Database::in_memory(Config::default()).expect("in memory");
    let connection = database.connect();
    connection.execute(TABLE).expect("a table");
    connection.execute("INSERT INTO t SELECT i, i % 10, 'x' FROM range(3000) r(i)").expect("rows");
    database
}

fn run(connection: &Connection, statements: &[&str]) {
    for sql in statements {
        connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// The value of a row, looked up by its key.
fn a(connection: &Connection, key: u64) -> String {
    rows(connection, &format!("SELECT a FROM t WHERE k = {key}")).concat().concat()
}

#[test]
fn statements_of_a_transaction_see_what_it_has_changed() {
    let database = database();
    let [own, other] = [(); 2].map(|()| database.connect());
    run(&own, &["BEGIN", "UPDATE t SET a = 100 WHERE k = 1", "UPDATE t SET b = 'y' WHERE k = 1"]);
    let returned = rows(&own, "UPDATE t SET a = a + 1 WHERE k = 1 RETURNING k, a, b");
    assert_eq!(returned, [["Integer(1)", "Integer(101)", "Text(\"y\")"]]);
    run(&own, &["UPDATE t SET a = 5 WHERE k = 9999"]);
    assert_eq!((a(&own, 1).as_str(), a(&other, 1).as_str()), ("Integer(101)", "Integer(1)"));
    let range = "SELECT a FROM t WHERE k BETWEEN 1 AND 2";
    assert_eq!(rows(&own, range), [["Integer(101)"], ["Integer(2)"]]);
    // By a plan, which needs a fork.
    assert_eq!(rows(&own, "SELECT count(*) FROM t WHERE a > 99"), [["Integer(1)"]]);
    run(&own, &["UPDATE t SET a = 102 WHERE k = 2", "INSERT INTO t VALUES (5000, 1, 'z')"]);
    run(&own, &["DELETE FROM t WHERE k = 1"]);
    assert_eq!(rows(&own, "SELECT count(*), max(a) FROM t"), [["Integer(3000)", "Integer(102)"]]);
    assert_eq!(rows(&other, "SELECT count(*), max(a) FROM t"), [["Integer(3000)", "Integer(9)"]]);
    run(&own, &["COMMIT"]);
    assert_eq!(rows(&other, "SELECT k FROM t WHERE a > 99"), [["Integer(2)"]]);
    assert_eq!(rows(&other, "PRAGMA integrity_check").len(), 1);
}

#[test]
fn a_statement_that_fails_is_undone_alone() {
    let database = database();
    let own = database.connect();
    run(&own, &["BEGIN", "UPDATE t SET a = 50 WHERE k = 1"]);
    for sql in [
        "UPDATE t SET a = NULL WHERE k = 1",
        "UPDATE t SET a = a + 100 WHERE k = 1",
        "INSERT INTO t VALUES (6000, 1, 'x'), (2, 1, 'x')",
        "UPDATE t SET k = 2 WHERE k = 1",
    ] {
        assert!(own.execute(sql).is_err(), "{sql}");
        assert_eq!(a(&own, 1), "Integer(50)", "{sql}");
    }
    run(&own, &["UPDATE t SET a = 51 WHERE k = 2", "COMMIT"]);
    assert_eq!((a(&own, 1).as_str(), a(&own, 2).as_str()), ("Integer(50)", "Integer(51)"));
    assert_eq!(rows(&own, "SELECT count(*) FROM t"), [["Integer(3000)"]]);
}

#[test]
fn rollbacks_and_savepoints_undo() {
    let database = database();
    let own = database.connect();
    run(&own, &["BEGIN", "UPDATE t SET a = 50 WHERE k = 1", "ROLLBACK"]);
    assert_eq!(a(&own, 1), "Integer(1)");
    run(&own, &["BEGIN", "UPDATE t SET a = 50 WHERE k = 1", "SAVEPOINT s"]);
    run(&own, &["UPDATE t SET a = 51 WHERE k = 1", "UPDATE t SET a = 51 WHERE k = 2", "ROLLBACK TO s"]);
    assert_eq!((a(&own, 1).as_str(), a(&own, 2).as_str()), ("Integer(50)", "Integer(2)"));
    run(&own, &["RELEASE s", "UPDATE t SET a = 52 WHERE k = 3", "COMMIT"]);
    assert_eq!([1, 2, 3].map(|key| a(&own, key)), ["Integer(50)", "Integer(2)", "Integer(52)"]);
}

#[test]
fn the_first_to_commit_a_row_wins() {
    let database = database();
    let [first, second, by_itself] = [(); 3].map(|()| database.connect());
    run(&first, &["BEGIN", "UPDATE t SET a = 50 WHERE k = 1"]);
    run(&second, &["BEGIN", "UPDATE t SET a = 60 WHERE k = 1", "UPDATE t SET a = 60 WHERE k = 2"]);
    run(&first, &["COMMIT"]);
    assert_eq!(second.execute("COMMIT").map(drop).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((a(&first, 1).as_str(), a(&first, 2).as_str()), ("Integer(50)", "Integer(2)"));
    // Other rows of the same block conflict with nothing.
    run(&first, &["BEGIN", "UPDATE t SET a = 70 WHERE k = 3"]);
    run(&second, &["BEGIN", "UPDATE t SET a = 80 WHERE k = 4"]);
    run(&by_itself, &["UPDATE t SET a = 90 WHERE k = 5", "DELETE FROM t WHERE k = 6"]);
    run(&second, &["COMMIT"]);
    run(&first, &["COMMIT"]);
    let all = rows(&first, "SELECT a FROM t WHERE k BETWEEN 3 AND 7 ORDER BY k");
    assert_eq!(all.concat(), ["Integer(70)", "Integer(80)", "Integer(90)", "Integer(7)"]);
    // A row that was removed.
    run(&first, &["BEGIN", "UPDATE t SET a = 70 WHERE k = 7"]);
    run(&by_itself, &["DELETE FROM t WHERE k = 7"]);
    assert_eq!(first.execute("COMMIT").map(drop).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_changed_definition_makes_a_conflict() {
    let database = database();
    let [own, other] = [(); 2].map(|()| database.connect());
    run(&own, &["BEGIN", "UPDATE t SET a = 50 WHERE k = 1"]);
    run(&other, &["ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 3"]);
    assert_eq!(own.execute("COMMIT").map(drop).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(a(&other, 1), "Integer(1)");
    // The other way round, and names that the transaction itself changes after it kept new values.
    run(&own, &["BEGIN", "UPDATE t SET a = 50 WHERE k = 1", "CREATE TABLE u (i INTEGER)"]);
    run(&own, &["CREATE INDEX ta ON t (a)", "UPDATE t SET a = 51 WHERE k = 2", "COMMIT"]);
    assert_eq!(rows(&own, "SELECT k FROM t WHERE a = 50 OR a = 51 ORDER BY k").len(), 2);
    assert_eq!(rows(&own, "PRAGMA integrity_check").len(), 1);
}

#[test]
fn more_rows_than_are_kept_change_as_well() {
    let database = database();
    let own = database.connect();
    run(&own, &["BEGIN"]);
    for key in 0..400 {
        own.execute(&format!("UPDATE t SET a = 111 WHERE k = {}", key * 7)).expect("it is changed");
    }
    assert_eq!(a(&own, 7), "Integer(111)");
    run(&own, &["COMMIT"]);
    assert_eq!(rows(&own, "SELECT count(*) FROM t WHERE a = 111"), [["Integer(400)"]]);
}

#[test]
fn what_was_committed_is_there_when_the_file_is_opened_again() {
    let (file, log) = (MemoryBackend::new("my.db"), MemoryBackend::new("my.db.wal"));
    let data = DataFile::create(Arc::new(file.clone()), DatabaseId([7; 16]), 4096).expect("it is new");
    let database = Database::on(data, Arc::new(log.clone()), Config::default()).expect("it opens");
    let connection = database.connect();
    run(&connection, &[TABLE, "INSERT INTO t SELECT i, i % 10, 'x' FROM range(100) r(i)"]);
    run(
        &connection,
        &["BEGIN", "UPDATE t SET a = 50, b = 'y' WHERE k = 1", "UPDATE t SET a = 51 WHERE k = 2"],
    );
    run(&connection, &["UPDATE t SET a = a + 1 WHERE k = 2", "COMMIT"]);
    run(&connection, &["BEGIN", "UPDATE t SET a = 77 WHERE k = 3", "ROLLBACK"]);
    run(&connection, &["BEGIN", "UPDATE t SET a = 78 WHERE k = 4"]);
    let committed = rows(&database.connect(), "SELECT * FROM t ORDER BY k");
    // What a crash leaves.
    let copy = |backend: &MemoryBackend| Arc::new(MemoryBackend::of("a copy", backend.bytes()));
    let data = DataFile::open(copy(&file), Access::Write).expect("it is a database");
    let again = Database::on(data, copy(&log), Config::default()).expect("it opens again").connect();
    assert_eq!(rows(&again, "SELECT * FROM t ORDER BY k"), committed);
    assert_eq!(
        [1, 2, 3, 4].map(|key| a(&again, key)),
        ["Integer(50)", "Integer(52)", "Integer(3)", "Integer(4)"]
    );
}

/// Commits of kept values are charged to the memory limit like others.
#[test]
fn transactions_end_where_memory_does() {
    let config = Config { memory_limit: 40 << 20, ..Config::default() };
    let database = Database::in_memory(config).expect("in memory");
    let connection = database.connect();
    run(&connection, &[TABLE, "INSERT INTO t SELECT i, i % 10, 'x' FROM range(3000) r(i)"]);
    let long = "long ".repeat(8000);
    let written = (0..3000).find_map(|key| {
        run(&connection, &["BEGIN"]);
        let changed = connection.execute(&format!("UPDATE t SET b = '{long}{key}' WHERE k = {key}"));
        let ended = changed.and_then(|_| connection.execute("COMMIT"));
        let error = ended.err()?;
        let _ = connection.execute("ROLLBACK");
        Some((key, error.kind()))
    });
    let (key, kind) = written.expect("3000 rows take three times as much");
    assert_eq!(kind, ErrorKind::Resource);
    assert!((300..2000).contains(&key), "{key} rows of 40 KB");
    assert_eq!(
        rows(&connection, "SELECT count(*) FROM t WHERE length(b) > 9"),
        [[format!("Integer({key})")]]
    );
}
