//! Foreign keys refer to columns, not to their numbers; to keys that cannot be dropped while they are
//! referred to; to values that can be compared.
//!
//! Keys that are added during an open transaction, and TRUNCATE concurrent with an INSERT, are tested in
//! `tests/anomalies` where sessions take turns, and here in threads.

use super::race::{Worker, race};
use super::sessions::Expected::{Count, Done, Fails, Refused, Rows};
use super::sessions::{Sessions, database, query, run, show};
use entasis::{Connection, ErrorKind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

/// The outcome of adding a row whose reference does not exist, and of removing one that is referred to.
const VIOLATES: super::sessions::Expected = Fails(ErrorKind::Constraint);

// ---- columns that get other numbers or names --------------------------------------------------------------

#[test]
fn a_foreign_key_follows_its_column_when_the_parent_loses_another() {
    Sessions::new().check(&[
        ("", "CREATE TABLE parent (junk INTEGER, id INTEGER PRIMARY KEY, code INTEGER UNIQUE)", Done),
        ("", "CREATE TABLE child (c INTEGER PRIMARY KEY, p INTEGER REFERENCES parent (id))", Done),
        ("", "INSERT INTO parent VALUES (7, 1, 100)", Count(1)),
        ("", "INSERT INTO child VALUES (1, 1)", Count(1)),
        ("", "ALTER TABLE parent DROP COLUMN junk", Done),
        ("", "INSERT INTO child VALUES (2, 1)", Count(1)),
        ("", "INSERT INTO child VALUES (3, 100)", VIOLATES),
        ("", "DELETE FROM parent", VIOLATES),
        ("", "SELECT * FROM child ORDER BY c", Rows("1 1, 2 1")),
    ]);
}

#[test]
fn a_foreign_key_of_several_columns_follows_them_in_the_parent_and_in_the_child() {
    Sessions::new().check(&[
        (
            "",
            "CREATE TABLE parent (junk INTEGER, a INTEGER, more INTEGER, b INTEGER, c INTEGER, PRIMARY KEY (a, b))",
            Done,
        ),
        (
            "",
            "CREATE TABLE child (waste INTEGER, x INTEGER, y INTEGER, FOREIGN KEY (x, y) REFERENCES parent (a, b))",
            Done,
        ),
        ("", "INSERT INTO parent VALUES (0, 1, 5, 2, 3)", Count(1)),
        ("", "ALTER TABLE parent DROP COLUMN junk", Done),
        ("", "ALTER TABLE parent DROP COLUMN more", Done),
        ("", "ALTER TABLE child DROP COLUMN waste", Done),
        ("", "INSERT INTO child VALUES (1, 2)", Count(1)),
        ("", "INSERT INTO child VALUES (2, 3)", VIOLATES),
        ("", "INSERT INTO child VALUES (1, 5)", VIOLATES),
        ("", "DELETE FROM parent WHERE a = 1", VIOLATES),
    ]);
}

#[test]
fn a_table_that_refers_to_itself_may_lose_another_column() {
    Sessions::new().check(&[
        (
            "",
            "CREATE TABLE tree (junk INTEGER, id INTEGER PRIMARY KEY, up INTEGER REFERENCES tree (id), x INTEGER)",
            Done,
        ),
        ("", "INSERT INTO tree VALUES (50, 1, NULL, 9)", Count(1)),
        ("", "ALTER TABLE tree DROP COLUMN junk", Done),
        ("", "INSERT INTO tree VALUES (2, 1, 9)", Count(1)),
        ("", "INSERT INTO tree VALUES (3, 9, 9)", VIOLATES),
        ("", "INSERT INTO tree VALUES (4, 4, 9)", Count(1)),
        ("", "DELETE FROM tree WHERE id = 1", VIOLATES),
    ]);
}

#[test]
fn a_foreign_key_follows_new_names_of_its_tables_and_columns() {
    Sessions::new().check(&[
        ("", "CREATE TABLE parent (id INTEGER PRIMARY KEY, x INTEGER)", Done),
        ("", "CREATE TABLE child (p INTEGER REFERENCES parent (id))", Done),
        ("", "INSERT INTO parent VALUES (1, 10)", Count(1)),
        ("", "ALTER TABLE parent RENAME COLUMN id TO number", Done),
        ("", "ALTER TABLE parent RENAME TO elder", Done),
        ("", "ALTER TABLE child RENAME COLUMN p TO of", Done),
        ("", "CREATE TABLE parent (id INTEGER PRIMARY KEY)", Done),
        ("", "INSERT INTO parent VALUES (2)", Count(1)),
        ("", "INSERT INTO child VALUES (1)", Count(1)),
        ("", "INSERT INTO child VALUES (2)", VIOLATES),
        ("", "DELETE FROM elder", VIOLATES),
        ("", "DELETE FROM parent", Count(1)),
    ]);
}

// ---- keys that are referred to ----------------------------------------------------------------------------

/// Tables refer to the key and the unique index of table `parent`. Each of `changes` in turn must be refused,
/// and the foreign keys hold as before.
fn check_refused(changes: &[&str]) {
    let mut sessions = Sessions::new();
    sessions.check(&[
        (
            "",
            "CREATE TABLE parent (id INTEGER PRIMARY KEY, code INTEGER UNIQUE, up INTEGER REFERENCES parent (id))",
            Done,
        ),
        ("", "CREATE TABLE child (p INTEGER REFERENCES parent (id))", Done),
        ("", "CREATE TABLE other (q INTEGER REFERENCES parent (code))", Done),
        ("", "INSERT INTO parent VALUES (1, 10, 1)", Count(1)),
        ("", "INSERT INTO child VALUES (1)", Count(1)),
        ("", "INSERT INTO other VALUES (10)", Count(1)),
    ]);
    for change in changes {
        sessions.check(&[
            ("", change, Refused),
            ("", "INSERT INTO child VALUES (1)", Count(1)),
            ("", "INSERT INTO child VALUES (2)", VIOLATES),
            ("", "INSERT INTO other VALUES (10)", Count(1)),
            ("", "INSERT INTO other VALUES (11)", VIOLATES),
            ("", "DELETE FROM parent", VIOLATES),
        ]);
    }
}

#[test]
fn a_key_that_is_referred_to_cannot_be_dropped() {
    check_refused(&[
        "ALTER TABLE parent DROP CONSTRAINT parent_pkey",
        "ALTER TABLE parent DROP CONSTRAINT parent_code_key",
        "DROP INDEX parent_code_key",
    ]);
}

#[test]
fn a_column_that_is_referred_to_cannot_get_another_type() {
    check_refused(&[
        "ALTER TABLE parent ALTER COLUMN id TYPE VARCHAR",
        "ALTER TABLE parent ALTER COLUMN code TYPE DOUBLE",
        "ALTER TABLE child ALTER COLUMN p TYPE VARCHAR",
    ]);
}

#[test]
fn a_column_that_is_referred_to_cannot_be_dropped() {
    check_refused(&[
        "ALTER TABLE parent DROP COLUMN id",
        "ALTER TABLE parent DROP COLUMN code",
        "DROP TABLE parent",
    ]);
}

// ---- types ------------------------------------------------------------------------------------------------

/// A foreign key between columns of two types is refused when it is created, or it compares values:
/// `stranger` of the child's type equals none of the parent's `value`, `equal` does.
fn check_types(parent: &str, value: &str, child: &str, stranger: &str, equal: &str) {
    let mut sessions = Sessions::new();
    sessions.check(&[
        (
            "",
            &format!("CREATE TABLE parent (a INTEGER, id {parent}, PRIMARY KEY (id), UNIQUE (a, id))"),
            Done,
        ),
        ("", &format!("INSERT INTO parent VALUES (1, {value})"), Count(1)),
    ]);
    for (table, create) in [
        ("one", format!("CREATE TABLE one (x INTEGER, p {child} REFERENCES parent (id))")),
        (
            "two",
            format!("CREATE TABLE two (x INTEGER, p {child}, FOREIGN KEY (x, p) REFERENCES parent (a, id))"),
        ),
    ] {
        if sessions.step("", &create).is_refused() {
            continue;
        }
        sessions.check(&[
            ("", &format!("INSERT INTO {table} VALUES (1, {stranger})"), VIOLATES),
            ("", &format!("INSERT INTO {table} VALUES (1, {equal})"), Count(1)),
            ("", "DELETE FROM parent", VIOLATES),
            ("", &format!("SELECT count(*) FROM {table}, parent WHERE {table}.p = parent.id"), Rows("1")),
        ]);
    }
    let bare = format!("CREATE TABLE late (p {child})");
    sessions.check(&[("", &bare, Done), ("", &format!("INSERT INTO late VALUES ({stranger})"), Count(1))]);
    let outcome = sessions.step("", "ALTER TABLE late ADD FOREIGN KEY (p) REFERENCES parent (id)");
    assert!(outcome.is_refused(), "a row of it refers to nothing\n{}", sessions.transcript());
}

#[test]
fn a_decimal_that_refers_to_an_integer_is_compared_by_value() {
    check_types("INTEGER", "100", "DECIMAL(10, 2)", "1.00", "100.00");
    check_types("DECIMAL(10, 2)", "1.00", "INTEGER", "100", "1");
}

#[test]
fn a_double_that_refers_to_an_integer_is_compared_by_value() {
    check_types("INTEGER", "1", "DOUBLE", "1.5", "1.0");
    check_types("DOUBLE", "2.0", "BIGINT", "3", "2");
}

#[test]
fn decimals_of_different_scales_are_compared_by_value() {
    check_types("DECIMAL(10, 1)", "1.0", "DECIMAL(10, 3)", "0.010", "1.000");
    check_types("DECIMAL(18, 0)", "123", "DECIMAL(10, 2)", "1.23", "123.00");
}

#[test]
fn integers_of_different_widths_are_compared_by_value() {
    check_types("SMALLINT", "1", "BIGINT", "4294967297", "1");
    check_types("BIGINT", "-1", "SMALLINT", "32767", "-1");
}

// ---- beside each other ------------------------------------------------------------------------------------

/// In each round one thread runs `open` in a transaction, and another runs `meanwhile` while the first one
/// commits, a little earlier or later. Afterwards every reference in `child` must exist in `parent`. `clean`
/// prepares the next round.
fn check_none_dangles(open: &str, meanwhile: &[&str], clean: &[&str]) {
    const DANGLING: &str = "SELECT count(*) FROM child WHERE p NOT IN (SELECT k FROM parent)";
    let database = database();
    run(
        &database.connect(),
        &["CREATE TABLE parent (k INTEGER PRIMARY KEY)", "INSERT INTO parent SELECT i FROM range(10) r(i)"],
    );
    run(&database.connect(), clean);
    let step = Barrier::new(2);
    let dangling = AtomicU64::new(0);
    let opens = |connection: &Connection, round: u64| {
        let opened = connection.execute("BEGIN").and_then(|_| connection.execute(open));
        step.wait();
        // Sometimes later than the other, sometimes earlier.
        (0..round % 8).for_each(|_| _ = query(connection, "SELECT count(*) FROM parent"));
        let committed = opened.and_then(|_| connection.execute("COMMIT"));
        step.wait();
        step.wait();
        committed.map(drop)
    };
    let comes = |connection: &Connection, _| {
        step.wait();
        let done = meanwhile.iter().try_for_each(|sql| connection.execute(sql).map(drop));
        step.wait();
        // There is no child if the other one was first.
        if connection.execute(DANGLING).is_ok_and(|rows| show(&rows) != "0") {
            dangling.fetch_add(1, Ordering::Relaxed);
        }
        let cleaned = clean.iter().try_for_each(|sql| connection.execute(sql).map(drop));
        step.wait();
        match done {
            // The row to which it refers has been removed.
            Err(error) if error.kind() == ErrorKind::Constraint => cleaned,
            done => done.and(cleaned),
        }
    };
    race(&database, 200, &[Worker::new("transaction", opens), Worker::new("meanwhile", comes)]);
    assert_eq!(dangling.into_inner(), 0, "of 200 rounds left rows that refer to nothing");
}

#[test]
fn a_foreign_key_comes_into_being_while_what_it_refers_to_is_deleted() {
    check_none_dangles(
        "DELETE FROM parent WHERE k = 1",
        &["CREATE TABLE child (p INTEGER REFERENCES parent (k))", "INSERT INTO child VALUES (1)"],
        &["DROP TABLE IF EXISTS child", "INSERT INTO parent VALUES (1) ON CONFLICT DO NOTHING"],
    );
}

#[test]
fn a_row_is_inserted_while_what_it_refers_to_is_truncated() {
    check_none_dangles(
        "TRUNCATE parent",
        &["INSERT INTO child VALUES (1)"],
        &[
            "CREATE TABLE IF NOT EXISTS child (p INTEGER REFERENCES parent (k))",
            "DELETE FROM child",
            "INSERT INTO parent VALUES (1) ON CONFLICT DO NOTHING",
        ],
    );
}

#[test]
fn a_row_is_inserted_while_what_it_refers_to_is_deleted_with_all_that_do() {
    for action in ["CASCADE", "SET NULL"] {
        let child =
            format!("CREATE TABLE IF NOT EXISTS child (p INTEGER REFERENCES parent (k) ON DELETE {action})");
        check_none_dangles(
            "DELETE FROM parent WHERE k = 1",
            &["INSERT INTO child VALUES (1)"],
            &[
                &child,
                "DELETE FROM child",
                "INSERT INTO parent VALUES (1) ON CONFLICT DO NOTHING",
                "INSERT INTO child VALUES (1), (2)",
            ],
        );
    }
}

#[test]
fn rows_follow_keys_that_come_and_go_while_others_write_them() {
    let database = database();
    run(
        &database.connect(),
        &[
            "CREATE TABLE parent (k INTEGER PRIMARY KEY)",
            "CREATE TABLE child (c INTEGER PRIMARY KEY, p INTEGER REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)",
            "CREATE TABLE plain (c INTEGER REFERENCES child ON DELETE SET NULL ON UPDATE CASCADE)",
            "INSERT INTO parent SELECT i FROM range(10) r(i)",
        ],
    );
    // Keys may be taken, and referenced rows removed.
    let try_all = |statements: [&'static str; 2]| {
        move |connection: &Connection, round: u64| {
            for sql in statements {
                let sql =
                    sql.replace("{key}", &(round % 10).to_string()).replace("{round}", &round.to_string());
                match connection.execute(&sql) {
                    Err(error) if error.kind() != ErrorKind::Constraint => return Err(error),
                    _ => {}
                }
            }
            Ok(())
        }
    };
    let deletes = ["DELETE FROM parent WHERE k = {key}", "INSERT INTO parent VALUES ({key})"];
    let moves =
        ["UPDATE parent SET k = k + 10 WHERE k = {key}", "UPDATE parent SET k = k - 10 WHERE k >= 10"];
    let inserts = ["INSERT INTO child VALUES ({round}, {key})", "INSERT INTO plain VALUES ({round})"];
    let updates =
        ["UPDATE child SET c = c + 1000 WHERE c = {round} - 3", "DELETE FROM child WHERE c = {round} - 5"];
    let looks = |connection: &Connection, _| {
        let dangling = "SELECT (SELECT count(*) FROM child WHERE p NOT IN (SELECT k FROM parent)), \
                        (SELECT count(*) FROM plain WHERE c IS NOT NULL AND c NOT IN (SELECT c FROM child))";
        assert_eq!(query(connection, dangling), "0 0");
        Ok(())
    };
    let workers = [
        Worker::new("deletes", try_all(deletes)),
        Worker::new("moves", try_all(moves)),
        Worker::new("inserts", try_all(inserts)),
        Worker::new("updates", try_all(updates)),
        Worker::new("looks", looks).in_background(),
    ];
    race(&database, 200, &workers);
    looks(&database.connect(), 0).expect("it is a query");
}
