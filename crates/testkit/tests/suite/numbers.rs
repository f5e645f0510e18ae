//! Numbers of sequences are given out once, whatever happens to the process or the machine: for each way in
//! which a program can come to see a number, the disk stops behind it, and the next number is another.

use entasis::{Arguments, Config, Connection, Database, Value};
use entasis_storage::backend::{Backend, FaultyDisk};
use entasis_storage::file::{Access, DataFile, DatabaseId};
use entasis_testkit::scratch::Scratch;
use std::sync::Arc;

const SEGMENT_BYTES: u32 = 1 << 16;

fn open(disk: &FaultyDisk) -> Database {
    let file = Arc::new(disk.file("my.db"));
    let file = match file.length().unwrap() {
        0 => DataFile::create(file, DatabaseId(*b"numbers and more"), SEGMENT_BYTES).unwrap(),
        _ => DataFile::open(file, Access::Write).unwrap(),
    };
    Database::on(file, Arc::new(disk.file("my.db.wal")), Config::new().with_threads(1)).unwrap()
}

/// The greatest number in a result.
fn greatest(connection: &Connection, sql: &str) -> i128 {
    let rows = connection.query(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let number = |value: &Value| if let Value::Integer(number) = value { Some(*number) } else { None };
    rows.row_values().flatten().filter_map(|value| number(&value)).max().expect("there are numbers")
}

fn run(connection: &Connection, sql: &[&str]) {
    sql.iter().for_each(|sql| drop(connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))));
}

/// A way to see a number: returns the greatest that was seen.
type Way = (&'static str, fn(&Connection) -> i128);

const SETUP: [&str; 4] = [
    "CREATE SEQUENCE s",
    "CREATE TABLE keyed (k BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v INTEGER)",
    "CREATE TABLE plain (k BIGINT DEFAULT nextval('s'), v INTEGER)",
    "CREATE TABLE few (v INTEGER PRIMARY KEY)",
];

/// Numbers of `s`.
const WAYS: [Way; 12] = [
    ("SELECT", |c| greatest(c, "SELECT nextval('s')")),
    ("SELECT of many", |c| greatest(c, "SELECT nextval('s') FROM range(500) r(i)")),
    ("SELECT of an aggregate", |c| {
        greatest(c, "SELECT max(n) FROM (SELECT nextval('s') AS n FROM range(40) r(i)) q")
    }),
    ("SELECT in a transaction that is rolled back", |c| {
        run(c, &["BEGIN"]);
        let seen = greatest(c, "SELECT nextval('s')");
        run(c, &["ROLLBACK"]);
        seen
    }),
    ("SELECT in a transaction that is open", |c| {
        run(c, &["BEGIN"]);
        greatest(c, "SELECT nextval('s')")
    }),
    ("currval behind an INSERT in a transaction that is open", |c| {
        run(c, &["BEGIN", "INSERT INTO plain (v) VALUES (1)", "INSERT INTO plain (v) VALUES (2), (3)"]);
        greatest(c, "SELECT currval('s')")
    }),
    ("rows of a transaction that is rolled back", |c| {
        run(c, &["BEGIN", "INSERT INTO plain (v) SELECT i FROM range(100) r(i)"]);
        let seen = greatest(c, "SELECT max(k) FROM plain");
        run(c, &["ROLLBACK"]);
        seen
    }),
    ("RETURNING", |c| greatest(c, "INSERT INTO plain (v) VALUES (1), (2) RETURNING k")),
    ("RETURNING in a transaction that is rolled back", |c| {
        run(c, &["BEGIN"]);
        let seen = greatest(c, "INSERT INTO plain (v) VALUES (1), (2) RETURNING k");
        run(c, &["ROLLBACK"]);
        seen
    }),
    ("currval behind a statement that failed", |c| {
        run(c, &["INSERT INTO few VALUES (1)"]);
        c.execute("INSERT INTO few SELECT 1 WHERE nextval('s') > 0").expect_err("a duplicate");
        greatest(c, "SELECT currval('s')")
    }),
    ("a file", |c| {
        let scratch = Scratch::new();
        let path = scratch.path("numbers.csv");
        run(
            c,
            &[
                "BEGIN",
                &format!("COPY (SELECT nextval('s') AS n FROM range(3) r(i)) TO '{}'", path.display()),
            ],
        );
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().filter_map(|line| line.parse().ok()).max().expect("numbers were written")
    }),
    ("several statements at once", |c| {
        let sets: Vec<Arguments> = (0..70).map(|_| Arguments::Values(Vec::new())).collect();
        c.execute_many("INSERT INTO plain (v) VALUES (7)", &sets).unwrap();
        greatest(c, "SELECT max(k) FROM plain")
    }),
];

/// Numbers of the identity column of `keyed`, whose statements run by their key.
const KEYED: [Way; 4] = [
    ("RETURNING", |c| greatest(c, "INSERT INTO keyed (v) VALUES (1) RETURNING k")),
    ("RETURNING in a transaction that is rolled back", |c| {
        run(c, &["BEGIN"]);
        let seen = greatest(c, "INSERT INTO keyed (v) VALUES (1) RETURNING k");
        run(c, &["ROLLBACK"]);
        seen
    }),
    ("at once", |c| {
        let sql = "INSERT INTO keyed (v) VALUES (1) RETURNING k";
        run(c, &[sql]);
        let rows = c.query_at_once(sql, &[]).unwrap().expect("it is short");
        let Some([Value::Integer(number)]) = rows.single_row() else { panic!("one number") };
        *number
    }),
    ("a row that is read in a transaction", |c| {
        run(c, &["BEGIN", "INSERT INTO keyed (v) VALUES (1)"]);
        greatest(c, "SELECT k FROM keyed WHERE k = (SELECT max(k) FROM keyed)")
    }),
];

#[test]
fn a_number_that_was_seen_is_not_given_out_again() {
    let next_of_s = |c: &Connection| greatest(c, "SELECT nextval('s')");
    let next_of_keyed = |c: &Connection| greatest(c, "INSERT INTO keyed (v) VALUES (1) RETURNING k");
    let all = WAYS.iter().map(|way| (way, next_of_s as fn(&Connection) -> i128));
    let all = all.chain(KEYED.iter().map(|way| (way, next_of_keyed as fn(&Connection) -> i128)));
    for ((name, way), next) in all {
        // The machine stops, or the process; numbers have been taken before, or not.
        for (seed, stops_machine, taken) in
            [(1, true, 0), (2, true, 31), (3, true, 5), (4, false, 0), (5, false, 31)]
        {
            let disk = FaultyDisk::new(seed);
            let connection = open(&disk).connect();
            run(&connection, &SETUP);
            (0..taken).for_each(|_| _ = next(&connection));
            let seen = way(&connection);
            let found = disk.copy();
            if stops_machine {
                found.crash();
            }
            let next = next(&open(&found).connect());
            assert!(next > seen, "{name}, {taken} taken before: {seen} was seen, and {next} is the next");
        }
    }
}

/// One number in 32 waits for the disk.
#[test]
fn most_numbers_wait_for_nothing() {
    const NUMBERS: u64 = 320;
    let disk = FaultyDisk::new(6);
    let connection = open(&disk).connect();
    run(&connection, &SETUP);
    let before = disk.operations();
    (0..NUMBERS).for_each(|_| run(&connection, &["SELECT nextval('s')"]));
    // A write and a sync for each reservation.
    let each = disk.operations() - before;
    assert!((2 * NUMBERS / 32..=3 * (NUMBERS / 32 + 1)).contains(&each), "{each} operations");
}
