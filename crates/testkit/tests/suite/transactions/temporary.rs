//! Temporary objects belong to one connection: others neither see nor disturb them, and what a connection
//! remembers about a statement never mistakes a temporary table for a permanent one of the same name, or the
//! other way round.

use super::sessions::Expected::{Count, Done, Fails, Rows};
use super::sessions::{Outcome, Sessions};
use entasis::{Config, Database, ErrorKind};

#[test]
fn each_session_has_its_own() {
    Sessions::new().check(&[
        ("1", "CREATE TEMP TABLE t (k INTEGER PRIMARY KEY, v VARCHAR UNIQUE)", Done),
        ("2", "SELECT * FROM t", Fails(ErrorKind::Input)),
        ("2", "CREATE TEMP TABLE t (k INTEGER PRIMARY KEY, v VARCHAR UNIQUE)", Done),
        ("1", "INSERT INTO t VALUES (1, 'one')", Count(1)),
        ("2", "INSERT INTO t VALUES (1, 'two'), (2, 'two, too')", Count(2)),
        ("1", "SELECT v FROM t WHERE k = 1", Rows("one")),
        ("2", "SELECT v FROM t WHERE k = 1", Rows("two")),
        ("1", "SELECT table_name FROM information_schema.tables", Rows("t")),
        ("3", "SELECT table_name FROM information_schema.tables", Rows("")),
        ("3", "SHOW TABLES", Rows("")),
        ("3", "CREATE TABLE t (k INTEGER PRIMARY KEY, v VARCHAR UNIQUE)", Done),
        ("3", "INSERT INTO t VALUES (1, 'three')", Count(1)),
        ("1", "SELECT v FROM t WHERE k = 1", Rows("one")),
        ("1", "SELECT v FROM main.t WHERE k = 1", Rows("three")),
        ("1", "CREATE INDEX ix ON t (v, k)", Done),
        ("2", "CREATE INDEX ix ON t (v, k)", Done),
        ("3", "CREATE INDEX ix ON t (v, k)", Done),
        ("2", "DROP INDEX ix", Done),
        ("2", "DROP TABLE t", Done),
        ("2", "SELECT v FROM t WHERE k = 1", Rows("three")),
        ("1", "SELECT v FROM t WHERE k = 1", Rows("one")),
        ("1", "CREATE INDEX iy ON t (v)", Done),
    ]);
}

/// The same texts, again and again, while the meaning of their names changes: by key, as a template, and
/// bound each time.
#[test]
fn what_is_remembered_of_a_text_is_of_the_right_table() {
    let mut sessions = Sessions::new();
    let texts = [
        "SELECT v FROM t WHERE k = 1",
        "SELECT max(v) FROM t WHERE k < 5",
        "SELECT a.v FROM t AS a JOIN t AS b USING (k)",
    ];
    fn see(sessions: &mut Sessions, texts: &[&str], session: &'static str, expected: &str) {
        // A template is made in the second run.
        for _ in 0..3 {
            for text in texts {
                let outcome = sessions.step(session, text);
                assert_eq!(outcome, Outcome::Rows(expected.to_owned()), "{text}\n{}", sessions.transcript());
            }
        }
    }
    sessions.check(&[
        ("1", "CREATE TABLE t (k INTEGER PRIMARY KEY, v VARCHAR)", Done),
        ("1", "INSERT INTO t VALUES (1, 'permanent')", Count(1)),
    ]);
    for session in ["1", "2"] {
        see(&mut sessions, &texts, session, "permanent");
    }
    sessions.check(&[("2", "CREATE TEMP TABLE t AS SELECT 1 AS k, 'temporary' AS v", Done)]);
    see(&mut sessions, &texts, "2", "temporary");
    see(&mut sessions, &texts, "1", "permanent");
    sessions.check(&[("2", "CREATE OR REPLACE TEMP TABLE t (k INTEGER PRIMARY KEY, v VARCHAR)", Done)]);
    for _ in 0..3 {
        sessions.check(&[
            ("2", "INSERT INTO t VALUES (1, 'by key')", Count(1)),
            ("2", "UPDATE t SET v = 'changed by key' WHERE k = 1", Count(1)),
        ]);
        see(&mut sessions, &texts, "2", "changed by key");
        sessions.check(&[("2", "DELETE FROM t WHERE k = 1", Count(1))]);
    }
    see(&mut sessions, &texts, "1", "permanent");
    sessions.check(&[("2", "INSERT INTO t VALUES (1, 'by key')", Count(1))]);
    // Within a transaction that creates one, and after it is rolled back.
    sessions
        .check(&[("1", "BEGIN", Done), ("1", "CREATE TEMP TABLE t AS SELECT 1 AS k, 'undone' AS v", Done)]);
    see(&mut sessions, &texts, "1", "undone");
    see(&mut sessions, &texts, "2", "by key");
    sessions.check(&[("1", "ROLLBACK", Done)]);
    see(&mut sessions, &texts, "1", "permanent");
    // The permanent table is changed and dropped meanwhile.
    sessions.check(&[("1", "UPDATE t SET v = 'changed' WHERE k = 1", Count(1))]);
    see(&mut sessions, &texts, "2", "by key");
    sessions.check(&[("1", "DROP TABLE t", Done)]);
    see(&mut sessions, &texts, "2", "by key");
    sessions.check(&[("2", "DROP TABLE t", Done), ("2", texts[0], Fails(ErrorKind::Input))]);
    sessions.check(&[("1", "CREATE TABLE t AS SELECT 1 AS k, 'new' AS v", Done)]);
    see(&mut sessions, &texts, "2", "new");
}

#[test]
fn a_prepared_statement_follows_its_names() {
    Sessions::new().check(&[
        ("1", "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)", Done),
        ("1", "INSERT INTO t VALUES (1, 10)", Count(1)),
        ("1", "PREPARE p AS SELECT v FROM t WHERE k = $1", Done),
        ("1", "EXECUTE p(1)", Rows("10")),
        ("1", "EXECUTE p(1)", Rows("10")),
        ("1", "CREATE TEMP TABLE t (k INTEGER PRIMARY KEY, v INTEGER)", Done),
        ("1", "EXECUTE p(1)", Rows("")),
        ("1", "INSERT INTO t VALUES (1, 20)", Count(1)),
        ("1", "EXECUTE p(1)", Rows("20")),
        ("1", "DROP TABLE t", Done),
        ("1", "EXECUTE p(1)", Rows("10")),
    ]);
}

#[test]
fn transactions_of_several_sessions_do_not_conflict_about_them() {
    Sessions::new().check(&[
        ("1", "BEGIN", Done),
        ("2", "BEGIN", Done),
        ("1", "CREATE TEMP TABLE t (k INTEGER PRIMARY KEY)", Done),
        ("2", "CREATE TEMP TABLE t (k INTEGER PRIMARY KEY)", Done),
        ("1", "CREATE TEMP VIEW v AS SELECT k + 1 AS k FROM t", Done),
        ("2", "CREATE TEMP VIEW v AS SELECT k + 2 AS k FROM t", Done),
        ("1", "INSERT INTO t VALUES (1)", Count(1)),
        ("2", "INSERT INTO t VALUES (1)", Count(1)),
        ("1", "COMMIT", Done),
        ("2", "COMMIT", Done),
        ("1", "SELECT k FROM v", Rows("2")),
        ("2", "SELECT k FROM v", Rows("3")),
        // A temporary view of a table that another session drops meanwhile.
        ("1", "CREATE TABLE p (k INTEGER)", Done),
        ("2", "BEGIN", Done),
        ("2", "CREATE TEMP VIEW w AS SELECT * FROM p", Done),
        ("1", "DROP TABLE p", Done),
        ("2", "COMMIT", Fails(ErrorKind::Conflict)),
    ]);
}

#[test]
fn they_go_with_their_connection() {
    let database = Database::in_memory(Config::default()).unwrap();
    let (one, two) = (database.connect(), database.connect());
    one.execute("CREATE TEMP TABLE big AS SELECT i, i * 7919 % 100003 AS x FROM range(200000) r(i)").unwrap();
    one.execute("CREATE TEMP VIEW v AS SELECT sum(i) FROM big").unwrap();
    two.execute("CREATE TEMP TABLE big (a INTEGER)").unwrap();
    two.execute("CREATE TABLE p AS SELECT 1 AS a").unwrap();
    two.execute("CREATE VIEW over_p AS SELECT * FROM p").unwrap();
    one.execute("CREATE TEMP VIEW of_p AS SELECT * FROM p").unwrap();
    assert!(
        two.execute("DROP TABLE p CASCADE").is_ok(),
        "a temporary view of another connection keeps nothing"
    );
    one.execute("BEGIN").unwrap();
    one.execute("CREATE TEMP TABLE more (a INTEGER)").unwrap();
    assert_eq!(one.tables(), ["temp.big", "temp.more", "temp.of_p", "temp.v"]);
    drop(one);
    assert_eq!(two.tables(), ["temp.big"]);
    drop(two);
    assert!(database.connect().tables().is_empty());
}
