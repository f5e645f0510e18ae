//! Conflicts are determined by rows; changes of a table's definition succeed while others write to it; a
//! commit of many rows adopts their blocks.

use super::race::{Worker, race};
use super::sessions::Expected::{Count, Done, Rows};
use super::sessions::{Sessions, database, query, run};
use entasis::{Config, Connection, DataType, Database, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

// ---- rows that are told by their places -------------------------------------------------------------------

/// Long enough for upkeep to consider a table idle, and encode it.
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

// ---- changes of a table beside its writers ----------------------------------------------------------------

const COUNT_UP: &str = "UPDATE t SET v = v + 1 WHERE k = ?";

/// Runs statements that change table `t` in each round, while two other connections continuously run `update`
/// for one of its keys after another. None may fail. Returns a connection, and the number of updated rows.
fn check_beside_updates(rounds: u64, statements: &[&str], update: &str) -> (Connection, u64) {
    const ROWS: u64 = 50_000;
    let database = database();
    let connection = database.connect();
    run(
        &connection,
        &[
            "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)",
            "INSERT INTO t SELECT i, 0 FROM range(50000) r(i)",
        ],
    );
    let updated = AtomicU64::new(0);
    let updates = |connection: &Connection, round: u64| {
        let key = [(Value::Integer((round * 7919 % ROWS).into()), DataType::Int64)];
        let rows = connection.query(update, &key);
        let rows = rows
            .unwrap_or_else(|error| panic!("nothing can be in conflict with an update by itself: {error:?}"));
        updated.fetch_add(rows.changed().unwrap_or(0), Ordering::Relaxed);
        Ok(())
    };
    let change = |connection: &Connection, round: u64| {
        let before = updated.load(Ordering::Relaxed);
        while round == 0 && updated.load(Ordering::Relaxed) < before + 100 {
            thread::yield_now();
        }
        for sql in statements {
            run(connection, &[&sql.replace("{round}", &round.to_string())]);
        }
        Ok(())
    };
    race(
        &database,
        rounds,
        &[
            Worker::new("change", change),
            Worker::new("updates", updates).in_background(),
            Worker::new("more updates", updates).in_background(),
        ],
    );
    (connection, updated.into_inner())
}

#[test]
fn create_index_succeeds_beside_updates() {
    let (connection, updated) = check_beside_updates(1, &["CREATE INDEX ix ON t (v)"], COUNT_UP);
    assert_eq!(query(&connection, "SELECT count(*), sum(v) FROM t"), format!("50000 {updated}"));
    // The index finds exactly the rows that exist.
    for value in 0..5 {
        let found = query(&connection, &format!("SELECT count(*) FROM t WHERE v = {value}"));
        assert_eq!(query(&connection, &format!("SELECT count(*) FROM t WHERE v + 0 = {value}")), found);
    }
}

#[test]
fn alter_table_succeeds_beside_updates() {
    let statements = [
        "ALTER TABLE t SET (layout = 'sorted')",
        "ALTER TABLE t ADD COLUMN more{round} INTEGER DEFAULT 7",
        "ALTER TABLE t ALTER COLUMN more{round} TYPE BIGINT",
        "ALTER TABLE t SET (layout = 'equi_ghost')",
    ];
    let (connection, updated) = check_beside_updates(3, &statements, COUNT_UP);
    let expected = format!("50000 {updated} 7 7");
    assert_eq!(query(&connection, "SELECT count(*), sum(v), min(more0), max(more2) FROM t"), expected);
}

#[test]
fn truncate_succeeds_beside_updates() {
    let statements = ["TRUNCATE t", "INSERT INTO t SELECT i, 0 FROM range(50000) r(i)"];
    let (connection, _) = check_beside_updates(20, &statements, "UPDATE t SET v = 1 WHERE k = ?");
    assert_eq!(query(&connection, "SELECT count(*), max(k) FROM t"), "50000 49999");
}

#[test]
fn a_table_that_is_replaced_beside_updates_loses_none() {
    let replace = ["CREATE OR REPLACE TABLE t AS SELECT k, v, 1 AS w FROM t"];
    let (connection, updated) = check_beside_updates(3, &replace, COUNT_UP);
    assert_eq!(
        query(&connection, "SELECT count(*), sum(v), sum(w) FROM t"),
        format!("50000 {updated} 50000")
    );
}

// ---- commits of many rows beside single ones --------------------------------------------------------------

/// Changes many rows in a transaction, runs `other` meanwhile, and commits. The transaction's blocks are
/// adopted: afterwards they are in the table, not the ones that single writes of all of these rows would have
/// made, which are hot and wider.
fn check_blocks_are_taken(changes: &[&str], other: impl Fn(&mut Sessions)) {
    const BLOCKS: &str = "SELECT count(*) FILTER (WHERE hot), sum(bytes) FROM entasis_blocks('t')";
    /// The blocks that the other one has written to: a few for each column.
    const FEW: u64 = 16;
    let mut sessions = Sessions::new();
    sessions.check(&[
        ("", "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, a BIGINT)", Done),
        ("", "INSERT INTO t SELECT 2 * i, 0, i * 7919 % 10007 FROM range(100000) r(i)", Count(100_000)),
        // Gives upkeep something to do.
        ("", "UPDATE t SET a = 1 WHERE k % 10000 = 10", Count(20)),
        ("1", "BEGIN", Done),
    ]);
    for sql in changes {
        sessions.check(&[("1", sql, Done)]);
    }
    let blocks = |sessions: &mut Sessions| -> (u64, u64) {
        let found = sessions.rows("1", BLOCKS);
        let (hot, bytes) = found.split_once(' ').expect("two columns");
        (hot.parse().expect("a number"), bytes.parse().expect("a number"))
    };
    let sums = "SELECT count(*), sum(k), sum(v), sum(a) FROM t WHERE k >= 10";
    let (hot, bytes) = blocks(&mut sessions);
    let rows = sessions.rows("1", sums);
    other(&mut sessions);
    sessions.check(&[("1", "COMMIT", Done)]);
    let (hot_now, bytes_now) = blocks(&mut sessions);
    assert_eq!(sessions.rows("2", sums), rows, "\n{}", sessions.transcript());
    assert!(hot_now <= hot + FEW && bytes_now <= bytes + FEW * 8192, "\n{}", sessions.transcript());
}

fn one_row(sessions: &mut Sessions) {
    sessions.check(&[
        ("2", "UPDATE t SET v = 5 WHERE k = 0", Count(1)),
        ("2", "INSERT INTO t VALUES (1, 0, 0)", Count(1)),
    ]);
}

#[test]
fn an_insert_of_many_rows_is_committed_beside_a_single_one() {
    check_blocks_are_taken(
        &["INSERT INTO t SELECT 2 * i, 0, i * 7919 % 10007 FROM range(100000, 300000) r(i)"],
        one_row,
    );
}

const UPDATE: &str = "UPDATE t SET v = v + k * 1000000 WHERE k >= 10";

#[test]
fn an_update_of_many_rows_is_committed_beside_a_single_one() {
    check_blocks_are_taken(&[UPDATE], one_row);
}

#[test]
fn rows_that_are_updated_deleted_and_inserted_are_committed_beside_a_single_one() {
    check_blocks_are_taken(
        &[
            UPDATE,
            "DELETE FROM t WHERE k >= 100000 AND k % 3 = 0",
            "INSERT INTO t SELECT 2 * i, i * 1000003, i * 7919 % 10007 FROM range(100000, 150000) r(i)",
        ],
        one_row,
    );
}

#[test]
fn an_update_of_many_rows_is_committed_after_upkeep() {
    check_blocks_are_taken(&[UPDATE], |_| rest());
}

/// What another connection may do beside a transaction without changing a row that the transaction relies on.
const CHANGES_NOTHING: [&str; 12] = [
    "INSERT INTO parent VALUES (1, 'taken')",
    "INSERT INTO parent VALUES (1, 'taken') ON CONFLICT DO NOTHING",
    "INSERT INTO parent SELECT k, 'taken' FROM range(1, 500) r(k)",
    "UPDATE parent SET k = 2 WHERE k = 1",
    "UPDATE parent SET v = NULL WHERE k = 1",
    "DELETE FROM parent WHERE k = -1",
    "UPDATE parent SET v = 'same' WHERE k = -1",
    "DELETE FROM parent",
    "BEGIN; UPDATE parent SET v = 'undone'; ROLLBACK",
    "CREATE TEMP TABLE IF NOT EXISTS own (a INTEGER); INSERT INTO own VALUES (1)",
    "VACUUM parent",
    "VACUUM; CHECKPOINT",
];

/// Any two of these, with upkeep in between, which moves rows: the transaction relies on all tables, and has
/// built an index beside rows that it has changed.
#[test]
fn nothing_but_changed_rows_makes_a_conflict() {
    for first in CHANGES_NOTHING {
        for second in CHANGES_NOTHING {
            let database = Database::in_memory(Config::default()).expect("an empty database");
            let (own, other) = (database.connect(), database.connect());
            let run = |sql: &str| own.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            run("CREATE TABLE parent (k BIGINT PRIMARY KEY, v VARCHAR NOT NULL)");
            run("CREATE TABLE child (id BIGINT PRIMARY KEY, r BIGINT REFERENCES parent, n BIGINT)");
            run("INSERT INTO parent SELECT k, 'v' || k FROM range(1, 700) r(k)");
            run("INSERT INTO child SELECT k, k, k FROM range(1, 700) r(k)");
            run("DELETE FROM child WHERE id % 3 = 0");
            other.execute("SET upkeep = 'always'").expect("a setting");
            run("BEGIN");
            run("UPDATE child SET n = n + 1, r = 1 + r % 600 WHERE id < 100");
            run("INSERT INTO child VALUES (5000, 7, 1)");
            run("CREATE INDEX by_n ON child (n)");
            run("ALTER TABLE child ALTER COLUMN n SET DEFAULT 4");
            for sql in [first, second] {
                // Some of them fail.
                let _ = other.execute(sql);
            }
            own.execute("COMMIT").unwrap_or_else(|error| panic!("beside {first}, {second}: {error}"));
            let ok = own.execute("PRAGMA integrity_check").expect("a check").row_values().next();
            assert_eq!(ok.expect("a row")[0], Value::Text("ok".into()), "beside {first}, {second}");
        }
    }
}
