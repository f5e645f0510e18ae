//! Statements by themselves, commits of several tables and changes of the catalog must not deadlock.
//!
//! The deadlocks were: a writer holds its table's write lock and waits to publish, while a commit that
//! publishes waits for that write lock. So each test has a session that holds a write lock most of the time,
//! and another one that commits.

use super::race::{Worker, race};
use super::sessions::{database, run};
use entasis::Database;

const ROUNDS: u64 = 60;

/// Tables `t` and `u` with a key `k` and columns `v` and `w`.
fn tables() -> Database {
    let database = database();
    let connection = database.connect();
    for table in ["t", "u"] {
        run(
            &connection,
            &[
                &format!("CREATE TABLE {table} (k BIGINT PRIMARY KEY, v BIGINT, w BIGINT)"),
                &format!("INSERT INTO {table} SELECT i, 0, i FROM range(10000) r(i)"),
            ],
        );
    }
    database
}

// ---- a commit beside a statement that writes to an index as well ------------------------------------------

#[test]
fn an_update_of_an_indexed_table_beside_commits() {
    let database = tables();
    run(&database.connect(), &["CREATE INDEX tw ON t (w)"]);
    race(
        &database,
        ROUNDS,
        &[
            Worker::of("update", &["UPDATE t SET v = v + 1 WHERE w >= 5000"]),
            Worker::of("transaction", &["BEGIN", "UPDATE t SET v = v + 1 WHERE k = 5", "COMMIT"]),
        ],
    );
}

#[test]
fn a_table_with_a_unique_constraint_beside_commits() {
    let database = tables();
    run(&database.connect(), &["ALTER TABLE t ADD CONSTRAINT once UNIQUE (w)"]);
    race(
        &database,
        ROUNDS,
        &[
            Worker::of(
                "delete and insert",
                &["DELETE FROM t WHERE k < 1000", "INSERT INTO t SELECT i, 0, i FROM range(1000) r(i)"],
            ),
            Worker::of("transaction", &["BEGIN", "UPDATE t SET w = -w WHERE k = 5000", "COMMIT"]),
        ],
    );
}

#[test]
fn a_table_with_a_foreign_key_beside_commits() {
    let database = tables();
    run(
        &database.connect(),
        &[
            "CREATE TABLE child (k BIGINT PRIMARY KEY, p BIGINT REFERENCES t (k))",
            "INSERT INTO child SELECT i, i FROM range(5000) r(i)",
        ],
    );
    race(
        &database,
        ROUNDS,
        &[
            Worker::of("update", &["UPDATE child SET p = (p + 1) % 5000 WHERE k < 2000"]),
            Worker::of("transaction", &["BEGIN", "UPDATE child SET p = 7 WHERE k = 4000", "COMMIT"]),
        ],
    );
}

#[test]
fn merges_beside_commits_and_upkeep() {
    let database = tables();
    run(&database.connect(), &["CREATE INDEX tw ON t (w)"]);
    let merge = "MERGE INTO t USING (SELECT i, {round} AS n FROM range(8000, 12000) r(i)) s ON t.k = s.i \
                 WHEN MATCHED AND s.n % 4 = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET w = s.n \
                 WHEN NOT MATCHED THEN INSERT VALUES (s.i, 0, s.n)";
    race(
        &database,
        ROUNDS,
        &[
            Worker::of("merge", &[merge]),
            Worker::of("transaction", &["BEGIN", "UPDATE t SET w = {round} WHERE k < 10", "COMMIT"]),
            // Makes upkeep find used-up ghosts and idle row groups.
            Worker::of(
                "insert and delete",
                &[
                    "INSERT INTO u SELECT i, 0, 0 FROM range(20000, 24000) r(i)",
                    "DELETE FROM u WHERE k >= 20000",
                ],
            ),
        ],
    );
}

// ---- a commit of several tables beside statements that wait for one of them -------------------------------

#[test]
fn two_updates_of_a_table_beside_commits_of_two_tables() {
    let database = tables();
    let update = ["UPDATE t SET v = v + 1 WHERE v >= 0"];
    race(
        &database,
        ROUNDS,
        &[
            Worker::of("update", &update),
            Worker::of("another update", &update),
            Worker::of(
                "transaction",
                &["BEGIN", "UPDATE t SET v = 0 WHERE k = 5", "UPDATE u SET v = 0 WHERE k = 5", "COMMIT"],
            ),
        ],
    );
}

#[test]
fn inserts_and_deletes_of_many_rows_beside_commits_of_two_tables() {
    let database = tables();
    race(
        &database,
        ROUNDS,
        &[
            Worker::of(
                "insert",
                &["INSERT INTO t SELECT 100000 + 4000 * {round} + i, 0, 0 FROM range(4000) r(i)"],
            ),
            Worker::of("delete", &["DELETE FROM t WHERE k >= 100000"]),
            Worker::of(
                "transaction",
                &[
                    "BEGIN",
                    "DELETE FROM u WHERE k = {round}",
                    "INSERT INTO t VALUES (-1 - {round}, 0, 0)",
                    "COMMIT",
                ],
            ),
        ],
    );
}

#[test]
fn commits_of_two_tables_in_opposite_orders_beside_updates_of_each() {
    let database = tables();
    race(
        &database,
        ROUNDS,
        &[
            Worker::of("update t", &["UPDATE t SET v = v + 1 WHERE v >= 0"]),
            Worker::of("update u", &["UPDATE u SET v = u.v + 1 FROM t WHERE u.k = t.k"]),
            Worker::of(
                "t, then u",
                &["BEGIN", "UPDATE t SET w = 1 WHERE k = 5", "UPDATE u SET w = 1 WHERE k = 5", "COMMIT"],
            ),
            Worker::of(
                "u, then t",
                &["BEGIN", "DELETE FROM u WHERE k = {round}", "DELETE FROM t WHERE k = {round}", "COMMIT"],
            ),
        ],
    );
}

// ---- a commit of names and rows ---------------------------------------------------------------------------

#[test]
fn a_table_is_made_and_another_written_in_one_transaction_beside_updates() {
    race(
        &tables(),
        ROUNDS,
        &[
            Worker::of("update", &["UPDATE t SET v = v + 1 WHERE v >= 0"]),
            Worker::of(
                "transaction",
                &[
                    "BEGIN",
                    "CREATE TABLE made{round} (a INTEGER)",
                    "UPDATE t SET w = 1 WHERE k = 9999",
                    "COMMIT",
                ],
            ),
            Worker::of("reader", &["SELECT 1 + 1"]),
        ],
    );
}

#[test]
fn a_table_is_altered_and_another_written_in_one_transaction_beside_updates() {
    race(
        &tables(),
        ROUNDS,
        &[
            Worker::of("update", &["UPDATE t SET v = v + 1 WHERE v >= 0"]),
            Worker::of(
                "transaction",
                &[
                    "BEGIN",
                    "ALTER TABLE u ADD COLUMN more{round} INTEGER",
                    "DELETE FROM t WHERE k = {round}",
                    "COMMIT",
                ],
            ),
            Worker::of("reader", &["SELECT count(*) FROM t, u WHERE t.k = u.k"]),
        ],
    );
}

#[test]
fn views_and_sequences_change_beside_updates_and_other_changes_of_the_catalog() {
    race(
        &tables(),
        ROUNDS,
        &[
            Worker::of("update", &["UPDATE t SET v = v + 1 WHERE v >= 0"]),
            Worker::of(
                "transaction",
                &[
                    "BEGIN",
                    "CREATE OR REPLACE VIEW seen AS SELECT k + {round} AS k FROM u",
                    "CREATE SEQUENCE counts{round}",
                    "UPDATE t SET w = 1 WHERE k = 9999",
                    "COMMIT",
                ],
            ),
            Worker::of("names", &["CREATE TABLE other{round} (a INTEGER)", "DROP TABLE other{round}"]),
            Worker::of("reader", &["SELECT 1 + 1"]),
        ],
    );
}
