//! Every kind of statement can be interrupted wherever it is.
//!
//! Nothing is timed: debug builds count how often a statement looks whether it is interrupted, and raise the
//! flag at a certain look ([`CancelFlag::raise_at`]). Each statement below runs once to be counted; then
//! again and again, interrupted at some of its looks, from the first to the last. It must end as interrupted,
//! leave no trace, and let the connection go on. And over twice the rows it must look more often: a step that
//! takes time without a look, or a loop that looks only before it begins, shows as a count that does not
//! grow.
#![cfg(debug_assertions)]

use entasis::{Config, Connection, Database, ErrorKind};
use entasis_testkit::random::Random;
use entasis_testkit::scratch::Scratch;

/// Rows of the table.
const ROWS: usize = 10_000;
/// Looks at which each statement is interrupted.
const PLACES: usize = 12;

/// Statements of every kind. `{dir}` is a directory, `{new}` makes a name new, `{list}` and `{rows}` are as
/// many constants, and rows of them, as the table has rows.
const STATEMENTS: &[&str] = &[
    "SELECT count(*) FROM b x, b y WHERE x.id < 200 AND x.d < y.d",
    "SELECT s FROM b ORDER BY s, d",
    "SELECT s, g, count(*) FROM b GROUP BY ALL",
    "SELECT max(m) FROM (SELECT median(d) OVER (ORDER BY id ROWS BETWEEN 500 PRECEDING AND CURRENT ROW) m FROM b)",
    "SELECT max(m) FROM (SELECT sum(g) OVER (PARTITION BY g ORDER BY s) m FROM b)",
    "SELECT max(len(l)) FROM (SELECT list(id) OVER (ORDER BY id ROWS 300 PRECEDING) l FROM b)",
    "SELECT length(string_agg(s, ',' ORDER BY d, s)) FROM b",
    "SELECT len(list_sort(list(s))) FROM b",
    "SELECT len(list_distinct(list(s))) FROM b",
    "WITH RECURSIVE r(n, d) AS (SELECT id, 0 FROM b UNION ALL SELECT n, d + 1 FROM r WHERE d < 3) SELECT count(*) FROM r",
    "SELECT count(*) FROM b x ASOF JOIN b y ON x.g = y.g AND x.d >= y.d",
    "SELECT count(*) FROM b x JOIN b y ON x.id BETWEEN y.id AND y.id + 5",
    "SELECT count(*) FROM b x JOIN b y USING (s)",
    "SELECT count(*) FROM b WHERE regexp_matches(s || 'aaaaaaaaaaaa', '(a|aa)+$b')",
    "SELECT max(levenshtein(s, s || 'xyz')) FROM b",
    "SELECT sum(length(repeat(s, 50))) FROM b",
    "SELECT count(*) FROM (SELECT g, s, count(*) FROM b GROUP BY CUBE (g, s))",
    "SELECT count(*) FROM (SELECT list(id) l FROM b) q, unnest(l) u(x)",
    "SELECT sum((SELECT sum(x) FROM unnest([id, g]) u(x))) FROM b",
    "SELECT count(*) FROM b WHERE id IN ({list})",
    "SELECT max(x) FROM (VALUES {rows}) v(x, y, z, w)",
    "SELECT count(*) FROM b x WHERE d < (SELECT avg(d) FROM b y WHERE y.g = x.g)",
    "SELECT s FROM b UNION SELECT s || 'x' FROM b",
    "SUMMARIZE b",
    "UPDATE b SET s = s || 'x', d = d + 1",
    "UPDATE b SET g = g + 1",
    "UPDATE b SET id = id + 10000000",
    "DELETE FROM b WHERE id % 2 = 0",
    "INSERT INTO b SELECT id + 50000000, g, s, d FROM b",
    "INSERT INTO b SELECT (id * 7919) % 1000003 + 50000000, g, s, d FROM b",
    "INSERT INTO b VALUES {rows}",
    "INSERT INTO b SELECT id, g + 1, s, d FROM b ON CONFLICT (id) DO UPDATE SET g = excluded.g",
    "MERGE INTO b USING (SELECT id + 20000 i, g, s, d FROM b) q ON b.id = q.i WHEN MATCHED THEN UPDATE SET g = q.g WHEN NOT MATCHED THEN INSERT VALUES (i, g, s, d)",
    "CREATE INDEX made ON b (s)",
    "CREATE UNIQUE INDEX made ON b (s, id)",
    "ALTER TABLE b ALTER COLUMN g TYPE VARCHAR",
    "ALTER TABLE b SET (layout = 'sorted', layout_key = (s))",
    "CREATE TABLE z AS SELECT * FROM b",
    "COPY b TO '{dir}/o.csv'",
    "COPY b TO '{dir}/o.parquet'",
    "COPY b FROM '{dir}/more.csv'",
    "SELECT count(*), max(s) FROM '{dir}/more.csv'",
    "SELECT count(DISTINCT s) FROM '{dir}/more.parquet'",
    "PRAGMA integrity_check",
    "VACUUM b",
    "EXPORT DATABASE '{dir}/exported{new}'",
];

/// A database with a table of so many rows, and files of them in a directory.
fn database(scratch: &Scratch, rows: usize) -> Connection {
    let database = Database::in_memory(Config::new().with_threads(1)).expect("a database");
    let connection = database.connect();
    // Small chunks, so that few rows are many of them.
    connection.set("chunk_size", "256").expect("a setting");
    for sql in [
        "CREATE TABLE b (id BIGINT PRIMARY KEY, g INTEGER, s VARCHAR, d DOUBLE)",
        "INSERT INTO b SELECT i, i % 1000, 'v' || (i * 7919) % 1000003, i / 3 FROM range({count}) r(i)",
        "CREATE INDEX by_g ON b (g)",
        "COPY (SELECT id + 90000000 AS id, g, s, d FROM b) TO '{dir}/more.csv'",
        "COPY b TO '{dir}/more.parquet'",
    ] {
        let sql = filled(scratch, sql, rows);
        connection.execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    connection
}

/// A statement for a table of so many rows.
fn filled(scratch: &Scratch, sql: &str, rows: usize) -> String {
    let all = |text: fn(usize) -> String| (0..rows).map(text).collect::<Vec<_>>().join(", ");
    sql.replace("{dir}", scratch.path("").to_str().expect("a path of UTF-8").trim_end_matches('/'))
        .replace("{count}", &rows.to_string())
        .replace("{list}", &all(|i| (7 * i).to_string()))
        .replace("{rows}", &all(|i| format!("({}, {i}, 'v{i}', 0.5)", i + 70_000_000)))
}

/// What must not change.
fn state(connection: &Connection) -> String {
    let sql = "SELECT count(*), sum(id), sum(g), sum(length(s)), count(DISTINCT s) FROM b";
    let rows = connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let values: Vec<_> = rows.row_values().collect();
    format!("{values:?} {:?} {:?}", connection.tables(), connection.table_schema("b"))
}

/// The looks that a statement takes, if it succeeds.
fn looks(connection: &Connection, sql: &str) -> u64 {
    let flag = connection.cancel_flag();
    flag.raise_at(0);
    connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    flag.raise_at(0)
}

#[test]
fn statements_look_more_often_over_more_rows() {
    let mut faults = Vec::new();
    // VACUUM finds nothing to do in tables that rest.
    for sql in STATEMENTS.iter().filter(|sql| !sql.starts_with("VACUUM")) {
        let [few, many] = [ROWS, 4 * ROWS].map(|rows| {
            let scratch = Scratch::new();
            looks(&database(&scratch, rows), &filled(&scratch, sql, rows).replace("{new}", ""))
        });
        // Once for each chunk or block, and what the statement itself takes.
        let rows = if sql.starts_with("PRAGMA") { 1024 } else { 256 };
        if many < 2 * few || many < (4 * ROWS / rows) as u64 {
            faults.push(format!("{few} looks, {many} over four times the rows: {sql}"));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn statements_are_interrupted_at_each_look() {
    let mut random = Random::new(57);
    for sql in STATEMENTS.iter().filter(|sql| !sql.starts_with("VACUUM")) {
        let scratch = Scratch::new();
        let mut connection = database(&scratch, ROWS);
        let sql = filled(&scratch, sql, ROWS);
        let before = state(&connection);
        let all = looks(&connection, &sql.replace("{new}", ""));
        let mut is_fresh = false;
        for place in 0..PLACES {
            if !is_fresh {
                connection = database(&scratch, ROWS);
                is_fresh = true;
            }
            let look = match place {
                0 => 1,
                _ => 1 + random.below(all as usize) as u64,
            };
            let in_transaction =
                place % 2 == 1 && !["VACUUM", "EXPORT", "PRAGMA"].iter().any(|kind| sql.starts_with(kind));
            if in_transaction {
                connection.execute("BEGIN").expect("a transaction");
            }
            let flag = connection.cancel_flag();
            flag.raise_at(look);
            let outcome = connection.execute(&sql.replace("{new}", &place.to_string()));
            flag.raise_at(0);
            match outcome {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Interrupted, "{sql} at {look} of {all}: {error:?}")
                }
                // Looks before the statement begins are forgotten; after its commit it is done. How many
                // there are differs from run to run, since workers share the rows in different ways.
                Ok(_) => {
                    assert!(look < 5 || look * 2 > all, "{sql} was not interrupted at {look} of {all}");
                    is_fresh = in_transaction;
                }
            }
            if in_transaction {
                connection.execute("ROLLBACK").expect("the end of a transaction");
            }
            if is_fresh {
                assert_eq!(state(&connection), before, "after {sql} at {look} of {all}");
            }
        }
    }
}

#[test]
fn a_commit_and_a_calibration_are_interrupted() {
    let scratch = Scratch::new();
    let connection = database(&scratch, ROWS);
    let other = connection.database().connect();
    let before = state(&connection);
    let mut interrupted = 0;
    for look in [2, 4, 8, 16, 64] {
        connection
            .execute("BEGIN; UPDATE b SET d = d + 1; UPDATE b SET g = 1 WHERE id < 5000")
            .expect("changes");
        // Another commit, so that this one must be replayed.
        other.execute("UPDATE b SET d = d WHERE id = 7000").expect("a change");
        let flag = connection.cancel_flag();
        flag.raise_at(look);
        let outcome = connection.execute("COMMIT");
        flag.raise_at(0);
        match outcome {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Interrupted, "at {look}: {error:?}");
                interrupted += 1;
                let _ = connection.execute("ROLLBACK");
                assert_eq!(state(&connection), before, "after a commit that was interrupted at {look}");
            }
            Ok(_) => break,
        }
    }
    assert!(interrupted > 0, "no commit was interrupted");
    let all = looks(&connection, "CALIBRATE");
    assert!(all > 100, "{all} looks while costs are measured");
    let flag = connection.cancel_flag();
    flag.raise_at(all / 2);
    let error = connection.execute("CALIBRATE").expect_err("it is interrupted");
    flag.raise_at(0);
    assert_eq!(error.kind(), ErrorKind::Interrupted, "{error:?}");
}
