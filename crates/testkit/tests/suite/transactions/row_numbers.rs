//! Indexes of tables without a layout key, which refer to rows by number: transactions that add rows get
//! other numbers for them if others commit first, and their indexes with them.
//!
//! The slow twin of a table with indexes is a table without any, to which the same statements are applied: an
//! index never changes the table, so both have the same rows in the same order. What is looked up by an index
//! is compared with a condition that no index knows.

use super::sessions::Expected::{Count, Done, Fails, Rows};
use super::sessions::{Sessions, query, run};
use entasis::{Config, Connection, Database, ErrorKind};
use entasis_testkit::random::Random;
use entasis_testkit::scratch::Scratch;
use std::path::Path;

const CHECK: &str = "PRAGMA integrity_check";
const OK: &str = "ok NULL NULL";

#[test]
fn rows_of_two_transactions_are_found_whichever_commits_first() {
    for (first, second) in [("one", "two"), ("two", "one")] {
        let mut sessions = Sessions::new();
        sessions.check(&[
            ("", "CREATE TABLE t (k BIGINT, v BIGINT)", Done),
            ("", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)", Count(5)),
            ("", "CREATE INDEX i ON t (v)", Done),
            ("", "CREATE UNIQUE INDEX u ON t (k)", Done),
            ("one", "BEGIN", Done),
            ("two", "BEGIN", Done),
            ("one", "INSERT INTO t VALUES (10, 1), (11, 2), (NULL, 1)", Count(3)),
            ("two", "INSERT INTO t SELECT 20 + i, 1 FROM range(3) r(i)", Count(3)),
            ("two", "DELETE FROM t WHERE k = 21", Count(1)),
            ("one", "UPDATE t SET v = 1 WHERE k = 11", Count(1)),
            ("one", "UPDATE t SET v = 30 WHERE k = 3", Count(1)),
            ("two", "UPDATE t SET k = 40 WHERE v = 4", Count(1)),
            ("two", "UPDATE t SET v = 7 WHERE k = 22", Count(1)),
            ("one", "SELECT k FROM t WHERE v = 1", Rows("1, 10, 11, NULL")),
            ("two", "SELECT k FROM t WHERE v = 1", Rows("1, 20")),
            (first, "COMMIT", Done),
            (second, "COMMIT", Done),
            ("", "SELECT k FROM t WHERE k > 9 ORDER BY k", Rows("10, 11, 20, 22, 40")),
            ("", "SELECT k FROM t WHERE v = 1 ORDER BY k", Rows("1, 10, 11, 20, NULL")),
            ("", "SELECT k FROM t WHERE v = 7", Rows("22")),
            ("", "SELECT v FROM t WHERE k = 20", Rows("1")),
            ("", "SELECT v FROM t WHERE k = 40", Rows("4")),
            ("", "SELECT k FROM t WHERE v = 30", Rows("3")),
            ("", CHECK, Rows(OK)),
            ("", "DELETE FROM t WHERE v = 1", Count(5)),
            ("", "SELECT k FROM t", Rows("2, 3, 40, 5, 22")),
            ("", CHECK, Rows(OK)),
        ]);
    }
}

#[test]
fn a_key_that_two_transactions_add_is_given_to_the_first() {
    Sessions::new().check(&[
        ("", "CREATE TABLE t (k BIGINT, v BIGINT)", Done),
        ("", "CREATE UNIQUE INDEX u ON t (k)", Done),
        ("one", "BEGIN", Done),
        ("two", "BEGIN", Done),
        ("one", "INSERT INTO t VALUES (1, 1), (2, 1)", Count(2)),
        ("two", "INSERT INTO t SELECT 2 + i, 2 FROM range(5000) r(i)", Count(5000)),
        ("one", "COMMIT", Done),
        ("two", "COMMIT", Fails(ErrorKind::Conflict)),
        ("", "SELECT count(*) FROM t", Rows("2")),
        // A row without a key moves the numbers of the table, and no row of the index.
        ("two", "BEGIN", Done),
        ("two", "INSERT INTO t VALUES (3, 2)", Count(1)),
        ("one", "INSERT INTO t VALUES (NULL, 1)", Count(1)),
        ("two", "COMMIT", Done),
        ("", "SELECT v FROM t WHERE k = 3", Rows("2")),
        ("", CHECK, Rows(OK)),
        // Rows that only move change no number.
        ("two", "BEGIN", Done),
        ("two", "INSERT INTO t VALUES (4, 2)", Count(1)),
        ("one", "VACUUM t", Done),
        ("two", "COMMIT", Done),
        ("", "SELECT v FROM t WHERE k = 4", Rows("2")),
        ("", CHECK, Rows(OK)),
    ]);
}

#[test]
fn an_index_that_is_built_beside_writers_has_their_rows() {
    Sessions::new().check(&[
        ("", "CREATE TABLE t (k BIGINT, v BIGINT)", Done),
        ("", "INSERT INTO t SELECT i, i % 10 FROM range(5000) r(i)", Count(5000)),
        ("one", "BEGIN", Done),
        ("one", "CREATE INDEX i ON t (v)", Done),
        ("two", "INSERT INTO t VALUES (7000, 77)", Count(1)),
        ("two", "DELETE FROM t WHERE k BETWEEN 100 AND 4000", Count(3901)),
        ("two", "UPDATE t SET v = 78 WHERE k IN (5, 4500)", Count(2)),
        ("two", "DELETE FROM t WHERE k = 7000", Count(1)),
        // The slot of the last row is used again, by an equal one.
        ("two", "INSERT INTO t VALUES (7000, 77)", Count(1)),
        ("one", "COMMIT", Done),
        ("", "SELECT k FROM t WHERE v = 77", Rows("7000")),
        ("", "SELECT k FROM t WHERE v = 78", Rows("5, 4500")),
        ("", CHECK, Rows(OK)),
        // Its own rows have numbers that others may be given.
        ("one", "BEGIN", Done),
        ("one", "INSERT INTO t VALUES (8000, 80)", Count(1)),
        ("one", "CREATE INDEX j ON t (k)", Done),
        ("two", "INSERT INTO t VALUES (9000, 90)", Count(1)),
        ("one", "COMMIT", Fails(ErrorKind::Conflict)),
        ("one", "BEGIN", Done),
        ("one", "INSERT INTO t VALUES (8000, 80)", Count(1)),
        ("one", "CREATE INDEX j ON t (k)", Done),
        ("one", "INSERT INTO t SELECT 8001 + i, 81 FROM range(3000) r(i)", Count(3000)),
        ("one", "COMMIT", Done),
        ("", "SELECT v FROM t WHERE k = 8000", Rows("80")),
        ("", "SELECT v FROM t WHERE k = 11000", Rows("81")),
        ("", CHECK, Rows(OK)),
    ]);
}

fn open(path: &Path) -> Database {
    Database::open(path, Config::new().with_threads(2)).expect("the file can be opened")
}

#[test]
fn an_index_takes_no_room_in_its_table() {
    let scratch = Scratch::new();
    let database = open(&scratch.path("my.db"));
    let connection = database.connect();
    let fill = "SELECT i * 7919 % 100000 AS k, 'text ' || i % 100 AS s FROM range(100000) r(i)";
    run(&connection, &[&format!("CREATE TABLE t AS {fill}"), "VACUUM t"]);
    let look = |sql: &str| query(&connection, sql);
    let bytes = "SELECT bytes, layout FROM entasis_tables()";
    let rows = "SELECT md5(string_agg(k || s, ',')) FROM t";
    let before = [look(bytes), look(rows)];
    run(&connection, &["CREATE INDEX by_s ON t (s)", "CREATE UNIQUE INDEX by_k ON t (k)"]);
    assert_eq!([look(bytes), look(rows)], before);
    assert_eq!(look("SELECT s FROM t WHERE k = 7919"), "text 1");
    run(&connection, &["DROP INDEX by_s", "DROP INDEX by_k"]);
    assert_eq!([look(bytes), look(rows)], before);
}

/// A large load is written to the data file before its commit, with numbers that may change.
#[test]
fn loads_that_commit_second_are_there_after_a_crash() {
    let scratch = Scratch::new();
    let path = scratch.path("my.db");
    let database = open(&path);
    let [one, two] = [database.connect(), database.connect()];
    run(
        &one,
        &[
            "SET wal_autocheckpoint = 'off'",
            "CREATE TABLE t (k BIGINT, s VARCHAR)",
            "CREATE UNIQUE INDEX by_k ON t (k)",
            "CREATE INDEX by_s ON t (s, k)",
            "INSERT INTO t VALUES (-1, 'first')",
            "BEGIN",
            "INSERT INTO t SELECT i, 'a long text of its own ' || md5(i::VARCHAR) FROM range(150000) r(i)",
            "UPDATE t SET s = 'changed' WHERE k = 149999",
            "DELETE FROM t WHERE k = 149998",
        ],
    );
    run(&two, &["INSERT INTO t VALUES (-2, 'second')", "DELETE FROM t WHERE k = -1"]);
    run(&one, &["COMMIT"]);
    let check = |connection: &Connection| {
        for (sql, expected) in [
            ("SELECT count(*) FROM t", "150000"),
            ("SELECT k FROM t WHERE s = 'changed'", "149999"),
            ("SELECT s FROM t WHERE k = -2", "second"),
            ("SELECT count(*) FROM t WHERE k = -1", "0"),
            ("SELECT s = 'a long text of its own ' || md5('777') FROM t WHERE k = 777", "true"),
            (CHECK, OK),
        ] {
            assert_eq!(query(connection, sql), expected, "{sql}");
        }
    };
    check(&two);
    // What a machine that stops now leaves behind.
    let left = scratch.path("left.db");
    for suffix in ["", ".wal"] {
        let file = |path: &Path| format!("{}{suffix}", path.display());
        std::fs::copy(file(&path), file(&left)).expect("the file can be copied");
    }
    check(&open(&left).connect());
    drop((one, two, database));
    check(&open(&path).connect());
}

// ---- a slow twin ------------------------------------------------------------------------------------------

/// A session; `None` if it has no transaction.
struct Session {
    connection: Connection,
    is_open: bool,
}

impl Session {
    fn of(database: &Database, random: &mut Random) -> Session {
        let connection = database.connect();
        if random.chance(50) {
            run(&connection, &["SET upkeep = 'always'"]);
        }
        Session { connection, is_open: false }
    }

    /// Applies a change to the table and its twin, at once. False if it was refused.
    fn change(&mut self, sql: &str) -> bool {
        let begins = !self.is_open;
        if begins {
            self.connection.execute("BEGIN").expect("a transaction");
            self.is_open = true;
        }
        let changed = self.connection.execute(&sql.replace("{}", "t"));
        let is_done = match changed {
            Ok(changed) => {
                let twin = self.connection.execute(&sql.replace("{}", "twin")).expect("no key refuses it");
                assert_eq!(twin.changed(), changed.changed(), "{sql}");
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Constraint, "{sql}: {error}");
                false
            }
        };
        if begins {
            self.end("COMMIT");
        }
        is_done
    }

    fn end(&mut self, how: &str) {
        if let Err(error) = self.connection.execute(how) {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            let _ = self.connection.execute("ROLLBACK");
        }
        self.is_open = false;
    }

    /// Compares the table with its twin, and what indexes find with what is there.
    fn look(&self, random: &mut Random) {
        let look = |sql: &str| query(&self.connection, sql);
        let all = "SELECT k, g, s FROM {}";
        assert_eq!(look(&all.replace("{}", "t")), look(&all.replace("{}", "twin")));
        let (k, g, s) = (random.below(60), random.below(8), random.below(5));
        for (found, searched) in [
            (format!("k = {k}"), format!("k + 0 = {k}")),
            (format!("k BETWEEN {k} AND {}", k + 5), format!("k + 0 BETWEEN {k} AND {}", k + 5)),
            (format!("g = {g}"), format!("g + 0 = {g}")),
            (format!("s = 's{s}' AND g = {g}"), format!("s || '' = 's{s}' AND g + 0 = {g}")),
            (format!("s = 's{s}'"), format!("s || '' = 's{s}'")),
        ] {
            let found = look(&format!("SELECT k, g, s FROM t WHERE {found}"));
            assert_eq!(found, look(&format!("SELECT k, g, s FROM twin WHERE {searched}")), "{searched}");
        }
    }
}

/// A change of the table `{}`, which does the same to one without indexes.
fn change(random: &mut Random) -> String {
    let (k, g, s) = (random.below(60), random.below(8), random.below(5));
    let key = if random.chance(20) { "NULL".to_owned() } else { k.to_string() };
    match random.below(14) {
        0..=2 => format!("INSERT INTO {{}} VALUES ({key}, {g}, 's{s}')"),
        3 => format!("INSERT INTO {{}} VALUES ({key}, {g}, 's{s}'), (NULL, NULL, NULL)"),
        4 => {
            let rows = random.pick(&[3, 700, 3000]);
            let key = format!("CASE WHEN i = {} THEN {key} END", random.below(3));
            format!("INSERT INTO {{}} SELECT {key}, (i + {g}) % 8, 's' || i % 5 FROM range({rows}) r(i)")
        }
        5 => format!("UPDATE {{}} SET g = {g} WHERE k = {k}"),
        6 => format!("UPDATE {{}} SET k = {key} WHERE k = {k} OR k = {}", k + 1),
        7 => format!("UPDATE {{}} SET g = g + 1, s = 's{s}' WHERE k BETWEEN {k} AND {}", k + 8),
        8 => format!("UPDATE {{}} SET s = 's{s}' WHERE g = {g} AND k IS NOT NULL"),
        9 => format!("DELETE FROM {{}} WHERE k = {k}"),
        10 => format!("DELETE FROM {{}} WHERE g = {g} AND s = 's{s}'"),
        11 => format!("DELETE FROM {{}} WHERE k IS NULL AND g > {}", random.below(6)),
        12 => format!("UPDATE {{}} SET k = k + 1 WHERE k >= {k}"),
        _ => "DELETE FROM {} WHERE k IS NULL AND s IS NOT NULL".to_owned(),
    }
}

#[test]
fn a_table_with_indexes_is_like_its_twin_without() {
    for seed in 0..4 {
        let random = &mut Random::new(seed);
        let scratch = Scratch::new();
        let path = scratch.path("my.db");
        let mut database = open(&path);
        run(
            &database.connect(),
            &[
                "CREATE TABLE t (k BIGINT, g BIGINT, s VARCHAR)",
                "CREATE TABLE twin (k BIGINT, g BIGINT, s VARCHAR)",
                "CREATE UNIQUE INDEX by_k ON t (k)",
                "CREATE INDEX by_g ON t (g)",
                "CREATE INDEX by_s ON t (s, g)",
            ],
        );
        let mut sessions: Vec<Session> = (0..3).map(|_| Session::of(&database, random)).collect();
        let mut has_index = true;
        for _ in 0..250 {
            let number = random.below(sessions.len());
            let session = &mut sessions[number];
            match random.below(20) {
                0..=2 if !session.is_open => {
                    run(&session.connection, &["BEGIN"]);
                    session.is_open = true;
                }
                0..=2 => session.end("COMMIT"),
                3 if session.is_open => session.end("ROLLBACK"),
                4 if session.is_open => {
                    run(&session.connection, &["SAVEPOINT p"]);
                    session.change(&change(random));
                    run(&session.connection, &["ROLLBACK TO p", "RELEASE p"]);
                }
                5 if !session.is_open => {
                    let sql = if has_index { "DROP INDEX by_g" } else { "CREATE INDEX by_g ON t (g)" };
                    if session.connection.execute(sql).is_ok() {
                        has_index = !has_index;
                    }
                }
                6 if !session.is_open && random.chance(30) => {
                    run(&session.connection, &["VACUUM"]);
                }
                7 if random.chance(20) => {
                    sessions.clear();
                    drop(database);
                    database = open(&path);
                    sessions = (0..3).map(|_| Session::of(&database, random)).collect();
                }
                8 if !session.is_open && random.chance(10) => {
                    session.change("TRUNCATE {}");
                }
                9..=10 => session.look(random),
                _ => {
                    session.change(&change(random));
                }
            }
            if random.chance(10) {
                let newest = database.connect();
                Session { connection: newest, is_open: false }.look(random);
                assert_eq!(query(&database.connect(), CHECK), OK, "seed {seed}");
            }
        }
    }
}
