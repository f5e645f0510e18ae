//! Databases in files: what was committed is there again, however the process ended.
//!
//! Text tests under the configuration `reopened` show that every statement leaves a file with the same state;
//! the tests of `storage` stop a checkpoint at each of its writes. Here are processes that are killed while
//! they write, and what a user sees of a file. `make kill` (tests/kill) is the long run, with DDL, loads and
//! indexes.

use entasis::{Config, Connection, Database, Value};
use entasis_testkit::scratch::Scratch;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Threads of the process that is killed, each with a connection.
const WRITERS: i64 = 4;
/// The variable that turns a test into the process that is killed.
const VICTIM: &str = "ENTASIS_VICTIM";

fn open(path: &Path) -> Database {
    Database::open(path, Config::default()).expect("the file can be opened")
}

/// All rows of a query, as text.
fn rows(connection: &Connection, sql: &str) -> Vec<String> {
    let rows = connection.execute(sql).expect(sql);
    let types: Vec<_> = rows.schema().iter().map(|field| field.ty).collect();
    let text = |row: Vec<Value>| {
        let cells: Vec<String> =
            row.iter().zip(&types).map(|(value, ty)| value.display(*ty).to_string()).collect();
        cells.join("|")
    };
    rows.row_values().map(text).collect()
}

fn run(connection: &Connection, statements: &[&str]) {
    for sql in statements {
        connection.execute(sql).expect(sql);
    }
}

#[test]
fn all_kinds_of_objects_are_there_again() {
    let scratch = Scratch::new();
    run(
        &open(&scratch.path("my.db")).connect(),
        &[
            "CREATE SCHEMA s",
            "CREATE SEQUENCE counted START 5",
            "CREATE TABLE t (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name VARCHAR NOT NULL, \
             at TIMESTAMP DEFAULT '2026-01-01', amount DECIMAL(20, 3) CHECK (amount > 0), UNIQUE (name))",
            "INSERT INTO t (name, amount) SELECT 'row ' || i, i + 0.125 FROM range(3000) r(i)",
            "CREATE TABLE s.child (t INTEGER REFERENCES t ON DELETE CASCADE, x DOUBLE)",
            "INSERT INTO s.child SELECT 1 + i % 3000, i / 7.0 FROM range(9000) r(i)",
            "CREATE INDEX by_amount ON t (amount)",
            "CREATE VIEW v AS SELECT name, sum(x) AS total FROM t JOIN s.child ON t.id = child.t GROUP BY name",
            "CREATE TABLE empty (a UUID, b BLOB, c INTERVAL, d BOOLEAN)",
            "CREATE TEMPORARY TABLE gone (a INTEGER)",
            "DELETE FROM t WHERE id % 10 = 0",
            "UPDATE t SET name = 'the second' WHERE id = 2",
            "SELECT nextval('counted')",
        ],
    );
    let questions = [
        "SELECT count(*), min(id), max(id), sum(amount), min(at), count(DISTINCT name) FROM t",
        "SELECT count(*), count(DISTINCT t) FROM s.child",
        "SELECT total FROM v WHERE name = 'the second'",
        "SELECT name FROM t WHERE amount = 5.125",
        "SELECT count(*) FROM empty",
    ];
    let first = open(&scratch.path("my.db"));
    let before: Vec<_> = questions.map(|sql| rows(&first.connect(), sql)).into();
    assert_eq!(before[0][0].split('|').next(), Some("2700"));
    drop(first);
    let second = open(&scratch.path("my.db")).connect();
    assert_eq!(questions.map(|sql| rows(&second, sql)).to_vec(), before);
    // Declarations still hold.
    for refused in [
        "INSERT INTO t (name, amount) VALUES ('the second', 1)",
        "INSERT INTO t (name, amount) VALUES ('new', -1)",
        "INSERT INTO t (name, amount) VALUES (NULL, 1)",
        "INSERT INTO s.child VALUES (10, 1)",
        "SELECT * FROM gone",
    ] {
        assert!(second.execute(refused).is_err(), "{refused}");
    }
    // The inserts that failed have taken a number each.
    assert_eq!(rows(&second, "INSERT INTO t (name, amount) VALUES ('new', 1) RETURNING id"), ["3004"]);
    assert_eq!(rows(&second, "SELECT nextval('counted')"), ["6"]);
    assert_eq!(rows(&second, "DELETE FROM t WHERE id = 1 RETURNING name"), ["row 0"]);
    assert_eq!(rows(&second, "SELECT count(*) FROM s.child WHERE t = 1"), ["0"]);
}

#[test]
fn a_transaction_that_did_not_commit_is_not_there() {
    let scratch = Scratch::new();
    let database = open(&scratch.path("my.db"));
    let (writer, other) = (database.connect(), database.connect());
    run(&writer, &["CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)", "BEGIN"]);
    run(&writer, &["INSERT INTO t VALUES (2)", "CREATE TABLE u (a INTEGER)"]);
    run(&other, &["INSERT INTO t VALUES (3)", "CHECKPOINT"]);
    drop((database, writer, other));
    let again = open(&scratch.path("my.db")).connect();
    assert_eq!(rows(&again, "SELECT a FROM t ORDER BY a"), ["1", "3"]);
    assert!(again.execute("SELECT * FROM u").is_err());
}

#[test]
fn a_file_that_is_none_is_refused_and_left_alone() {
    let scratch = Scratch::new();
    let refused =
        |path: &Path| Database::open(path, Config::default()).err().expect("it is refused").to_string();
    let text = scratch.path("text");
    std::fs::write(&text, "a,b\n1,2\n".repeat(4000)).unwrap();
    assert!(refused(&text).contains("is not an Entasis database"), "{}", refused(&text));
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "a,b\n1,2\n".repeat(4000));
    assert!(refused(scratch.directory()).contains("is a directory"));
    assert!(refused(&scratch.path("no/such/my.db")).contains("cannot open the database"));
    drop(open(&scratch.path("my.db")));
    drop(open(&scratch.path("my.db")));
}

#[test]
fn commits_share_checkpoints() {
    let scratch = Scratch::new();
    let database = open(&scratch.path("my.db"));
    run(&database.connect(), &["CREATE TABLE t (k INTEGER PRIMARY KEY, w INTEGER)"]);
    thread::scope(|scope| {
        for writer in 0..8 {
            let connection = database.connect();
            scope.spawn(move || {
                for i in 0..25 {
                    connection
                        .execute(&format!("INSERT INTO t VALUES ({}, {writer})", i * 8 + writer))
                        .unwrap();
                }
            });
        }
    });
    drop(database);
    assert_eq!(
        rows(&open(&scratch.path("my.db")).connect(), "SELECT count(*), sum(k) FROM t"),
        ["200|19900"]
    );
}

#[test]
fn what_waits_for_upkeep_is_there_after_the_end() {
    for synchronous in ["normal", "off"] {
        let scratch = Scratch::new();
        let connection = open(&scratch.path("my.db")).connect();
        run(&connection, &["CREATE TABLE t (k INTEGER PRIMARY KEY)"]);
        run(&connection, &[&format!("SET synchronous = '{synchronous}'")]);
        for k in 0..100 {
            run(&connection, &[&format!("INSERT INTO t VALUES ({k})")]);
        }
        drop(connection);
        assert_eq!(rows(&open(&scratch.path("my.db")).connect(), "SELECT count(*) FROM t"), ["100"]);
    }
}

// ---- processes that are killed ----------------------------------------------------------------------------

/// Not a test but the process that the next one kills: writes as fast as it can, and reports what was
/// committed.
#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM) else { return };
    let database = open(Path::new(&path));
    run(
        &database.connect(),
        &[
            "CREATE TABLE IF NOT EXISTS t (k BIGINT PRIMARY KEY, v VARCHAR)",
            "CREATE TABLE IF NOT EXISTS u (k BIGINT, twice BIGINT)",
        ],
    );
    let first: i64 = rows(&database.connect(), "SELECT coalesce(max(k) + 1, 0) FROM t")[0].parse().unwrap();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let connection = database.connect();
            scope.spawn(move || {
                for k in (first + writer..).step_by(WRITERS as usize) {
                    let insert = format!("INSERT INTO t VALUES ({k}, 'row {k}')");
                    // Single rows, and two tables in one transaction.
                    match k % 3 {
                        0 => run(&connection, &[&insert]),
                        _ => run(
                            &connection,
                            &["BEGIN", &insert, &format!("INSERT INTO u VALUES ({k}, 2 * {k})"), "COMMIT"],
                        ),
                    }
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "committed {k}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
    });
}

/// `ENTASIS_KILLS=200` for longer runs.
#[test]
fn killed_processes_lose_nothing() {
    let kills = std::env::var("ENTASIS_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let scratch = Scratch::new();
    let mut committed = BTreeSet::new();
    let mut random = entasis_testkit::random::Random::new(36);
    for round in 0..kills {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "durability::victim", "--nocapture", "--test-threads=1"])
            .env(VICTIM, scratch.path("my.db"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(victim.stdout.take().unwrap());
        let listener = thread::spawn(move || {
            let key = |line: String| line.split("committed ").nth(1)?.trim().parse::<i64>().ok();
            said.lines().map_while(Result::ok).filter_map(key).collect::<Vec<_>>()
        });
        thread::sleep(Duration::from_millis(300 + random.below(700) as u64));
        victim.kill().unwrap();
        victim.wait().unwrap();
        let said = listener.join().unwrap();
        assert!(round > 0 || !said.is_empty(), "it wrote nothing");
        committed.extend(said);

        let connection = open(&scratch.path("my.db")).connect();
        let there: BTreeSet<i64> =
            rows(&connection, "SELECT k FROM t").iter().map(|k| k.parse().unwrap()).collect();
        let lost: Vec<_> = committed.difference(&there).collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
        let more = there.difference(&committed).count();
        assert!(more <= (WRITERS * (round + 1)) as usize, "round {round}: {more} were not committed");
        let torn = "SELECT count(*) FROM t FULL JOIN u ON t.k = u.k \
                    WHERE t.k IS NULL OR (u.k IS NULL) <> (t.k % 3 = 0) OR u.twice <> 2 * u.k OR v <> 'row ' || CAST(t.k AS VARCHAR)";
        assert_eq!(rows(&connection, torn), ["0"], "round {round}");
        // What was not acknowledged may be there, and is then permanent.
        committed = there;
    }
}
