//! UNIQUE holds under changes of many rows and between concurrent transactions.
//!
//! A table that is laid out by the columns of a key has no index for it, and rows may be found by any of
//! several keys with the same columns: all of them must be checked, not only the first. A key whose columns
//! may be NULL is checked at commit like any other; `tests/anomalies/unique_with_nulls.slt` tests sessions
//! that take turns.

use super::race::{Worker, race};
use super::sessions::Expected::{Count, Done, Fails, Rows};
use super::sessions::{Sessions, database, query, run};
use entasis::{Connection, ErrorKind};
use std::sync::{Arc, Barrier};

/// As many rows as are changed in bulk, and more.
const FILL: &str = "INSERT INTO t SELECT i, i FROM range(10000) r(i)";
const COUNTS: &str = "SELECT count(*), count(DISTINCT a), count(DISTINCT b) FROM t";

#[test]
fn a_bulk_update_is_judged_by_a_unique_index_beside_a_plain_one() {
    Sessions::new().check(&[
        ("", "CREATE TABLE t (a BIGINT, b BIGINT)", Done),
        ("", FILL, Count(10000)),
        ("", "CREATE INDEX i ON t (a)", Done),
        ("", "CREATE UNIQUE INDEX u ON t (a)", Done),
        ("", "UPDATE t SET a = 1", Fails(ErrorKind::Constraint)),
        ("", COUNTS, Rows("10000 10000 10000")),
        ("", "UPDATE t SET a = a + 1", Count(10000)),
        // No NULL equals another.
        ("", "UPDATE t SET a = NULL", Count(10000)),
        ("", COUNTS, Rows("10000 0 10000")),
    ]);
}

#[test]
fn an_update_from_a_table_is_judged_by_a_constraint_beside_an_index_of_two_columns() {
    Sessions::new().check(&[
        ("", "CREATE TABLE t (a BIGINT, b BIGINT)", Done),
        ("", FILL, Count(10000)),
        ("", "CREATE INDEX i ON t (a, b)", Done),
        ("", "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a, b)", Done),
        ("", "CREATE TABLE other AS SELECT a, a % 5 AS c FROM t", Done),
        ("", "UPDATE t SET a = c, b = c FROM other WHERE other.a = t.a", Fails(ErrorKind::Constraint)),
        ("", COUNTS, Rows("10000 10000 10000")),
        ("", "UPDATE t SET a = c FROM other WHERE other.a = t.a", Count(10000)),
        ("", COUNTS, Rows("10000 5 10000")),
    ]);
}

#[test]
fn a_bulk_update_in_a_transaction_is_judged_by_each_of_several_unique_keys() {
    Sessions::new().check(&[
        ("", "CREATE TABLE t (a BIGINT, b BIGINT) WITH (layout = 'sorted', layout_key = (a))", Done),
        ("", FILL, Count(10000)),
        ("", "CREATE INDEX i ON t (a)", Done),
        ("", "CREATE UNIQUE INDEX u ON t (a)", Done),
        ("", "ALTER TABLE t ADD CONSTRAINT v UNIQUE (a)", Done),
        ("", "BEGIN", Done),
        ("", "DELETE FROM t WHERE a < 100", Count(100)),
        ("", "UPDATE t SET a = a - a % 2", Fails(ErrorKind::Constraint)),
        ("", "UPDATE t SET a = -a", Count(9900)),
        ("", "COMMIT", Done),
        ("", COUNTS, Rows("9900 9900 9900")),
        ("", "DROP INDEX u", Done),
        ("", "UPDATE t SET a = 7", Fails(ErrorKind::Constraint)),
        ("", COUNTS, Rows("9900 9900 9900")),
    ]);
}

#[test]
fn a_merge_is_judged_by_unique_indexes_of_several_columns() {
    Sessions::new().check(&[
        ("", "CREATE TABLE t (a BIGINT, b BIGINT)", Done),
        ("", FILL, Count(10000)),
        ("", "CREATE INDEX i ON t (a)", Done),
        ("", "CREATE UNIQUE INDEX u ON t (a)", Done),
        ("", "CREATE UNIQUE INDEX v ON t (b)", Done),
        (
            "",
            "MERGE INTO t USING range(10000) r(i) ON t.a = r.i WHEN MATCHED THEN UPDATE SET a = 1",
            Fails(ErrorKind::Constraint),
        ),
        (
            "",
            "MERGE INTO t USING range(10000) r(i) ON t.a = r.i WHEN MATCHED THEN UPDATE SET b = 1",
            Fails(ErrorKind::Constraint),
        ),
        ("", COUNTS, Rows("10000 10000 10000")),
    ]);
}

/// In each round two transactions, both begun before either commits, try to add a value.
fn race_for_values(create: &[&str], insert: &str, count: &str) {
    const ROUNDS: u64 = 200;
    let database = database();
    run(&database.connect(), create);
    let begun = Arc::new(Barrier::new(2));
    let transaction = |connection: &Connection, round: u64| {
        connection.execute("BEGIN")?;
        begun.wait();
        let added = connection.execute(&insert.replace("{round}", &round.to_string())).map(drop);
        let result = added.and_then(|()| connection.execute("COMMIT").map(drop));
        // Both have ended before the next round begins.
        begun.wait();
        result
    };
    let won =
        race(&database, ROUNDS, &[Worker::new("one", transaction), Worker::new("the other", transaction)]);
    assert_eq!(won.iter().sum::<u64>(), ROUNDS, "in each round one of the two wins");
    assert_eq!(query(&database.connect(), count), ROUNDS.to_string());
}

#[test]
fn of_two_threads_that_add_a_unique_value_one_wins() {
    race_for_values(
        &["CREATE TABLE t (a INTEGER UNIQUE, b INTEGER)"],
        "INSERT INTO t VALUES ({round}, 1), (NULL, 1)",
        "SELECT count(a) FROM t",
    );
}

#[test]
fn of_two_threads_that_make_rows_equal_one_wins() {
    race_for_values(
        &["CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER)", "CREATE UNIQUE INDEX once ON t (a, b)"],
        "INSERT INTO t VALUES ({round}, 1, 1), ({round}, NULL, 1)",
        "SELECT count(*) FROM t WHERE b = 1",
    );
}
