//! Statements about a whole database: EXPORT and IMPORT, BACKUP, VACUUM, PRAGMA integrity_check, where a text
//! test cannot look: into files, and beside writers.

use entasis::{Config, Connection, Database, ErrorKind, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A directory that is gone with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("entasis-commands-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory for the test");
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // One that stays behind is no failure of what was tested.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn in_memory() -> Database {
    Database::in_memory(Config::default()).expect("there is memory")
}

fn open(path: &Path) -> Database {
    Database::open(path, Config::default()).expect("the file can be opened")
}

fn run(connection: &Connection, statements: &[&str]) {
    for sql in statements {
        connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// All rows of a query, as text.
fn rows(connection: &Connection, sql: &str) -> Vec<String> {
    let rows = connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let types: Vec<_> = rows.schema().iter().map(|field| field.ty).collect();
    let text = |row: Vec<Value>| {
        let cells: Vec<String> =
            row.iter().zip(&types).map(|(value, ty)| value.display(*ty).to_string()).collect();
        cells.join("|")
    };
    rows.row_values().map(text).collect()
}

fn number(connection: &Connection, sql: &str) -> i64 {
    rows(connection, sql)[0].parse().expect("a number")
}

/// The files of a directory.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("it is a directory");
    let file = |entry: fs::DirEntry| {
        (entry.file_name().into_string().expect("a name"), fs::read(entry.path()).expect("it is there"))
    };
    entries.map(|entry| file(entry.expect("it can be read"))).collect()
}

// ---- export and import ------------------------------------------------------------------------------------

/// Objects of every kind, under all names that are difficult.
const OBJECTS: &[&str] = &[
    "CREATE SCHEMA s",
    "CREATE SCHEMA \"two words\"",
    "CREATE SEQUENCE plain",
    "CREATE SEQUENCE down INCREMENT BY -3 MINVALUE -9223372036854775808 MAXVALUE 10 START WITH 4",
    "CREATE SEQUENCE s.circle MINVALUE 1 MAXVALUE 3 START WITH 2 CYCLE",
    "CREATE SEQUENCE at_its_end MINVALUE 1 MAXVALUE 2",
    "SELECT nextval('plain'), nextval('plain'), nextval('down'), nextval('s.circle'), nextval('s.circle')",
    "SELECT nextval('at_its_end')",
    "SELECT nextval('at_its_end')",
    "CREATE TABLE types (b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INTEGER, i8 BIGINT, u1 UTINYINT, \
     u2 USMALLINT, u4 UINTEGER, u8 UBIGINT, f REAL, d DOUBLE, n DECIMAL(38, 10), m DECIMAL(4, 2), t VARCHAR, \
     x BLOB, da DATE, ti TIME, ts TIMESTAMP, tz TIMESTAMPTZ, iv INTERVAL, id UUID)",
    "INSERT INTO types VALUES (true, -128, -32768, -2147483648, -9223372036854775808, 255, 65535, 4294967295, \
     18446744073709551615, 1.1, 0.1, 1234567890123456789012345678.0123456789, -12.34, 'text', \
     '\\x00\\xFF'::BLOB, '2024-02-29', '23:59:59.999999', '0044-03-15 12:00:00.000001', \
     '2026-07-01 12:00:00+02', INTERVAL '-1 year 2 months -3 days 04:05:06.000007', \
     '00112233-4455-6677-8899-aabbccddeeff')",
    "INSERT INTO types (t) VALUES (NULL), (''), (' '), ('NULL'), ('a,b'), ('\"'), ('\"\"'), ('''')",
    "INSERT INTO types (t) VALUES (E'two\\nlines'), (E'\\r'), (E'\\t'), ('größe 東京'), ('#no comment'), ('\\N')",
    "INSERT INTO types (d, f) VALUES ('NaN', 'NaN'), ('Infinity', '-Infinity'), (-0.0, 1e-45), (5e-324, 3.4e38), \
     (1.7976931348623157e308, 16777216)",
    "INSERT INTO types (x, da, ts) VALUES (''::BLOB, 'infinity', 'infinity'), ('a\"b,c'::BLOB, '-infinity', '-infinity')",
    "CREATE TABLE one_column (\"Only\" VARCHAR)",
    "INSERT INTO one_column VALUES ('first'), (NULL), (''), (NULL)",
    "CREATE TABLE no_rows (a INTEGER PRIMARY KEY, b VARCHAR)",
    "CREATE TABLE \"select\" (\"from\" INTEGER PRIMARY KEY, \"order by\" VARCHAR NOT NULL, \"Größe\" INTEGER, \
     \"a\"\"b\" DATE DEFAULT DATE '2026-01-01', CONSTRAINT \"the check\" CHECK (\"from\" > 0 AND \"Größe\" <> 7))",
    "INSERT INTO \"select\" VALUES (3, 'c', NULL, NULL), (1, 'a', 5, '2020-02-02')",
    "INSERT INTO \"select\" (\"from\", \"order by\") VALUES (2, 'b')",
    "CREATE TABLE \"two words\".\"with.dot\" (a INTEGER UNIQUE, b INTEGER REFERENCES \"select\")",
    "INSERT INTO \"two words\".\"with.dot\" VALUES (1, 3), (NULL, NULL), (NULL, 1)",
    "CREATE TABLE s.t (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a SMALLINT DEFAULT 1 + 2, \
     b VARCHAR DEFAULT nextval('plain') || ' of all', c VARCHAR DEFAULT 'it''s', \
     d TIMESTAMP DEFAULT current_timestamp, e DECIMAL(9, 2) DEFAULT -1.50)",
    "INSERT INTO s.t (a) SELECT i FROM range(3000) r(i)",
    "DELETE FROM s.t WHERE a % 3 = 1",
    "CREATE TABLE s_t (id SMALLINT GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY 5), a INTEGER)",
    "INSERT INTO s_t (a) VALUES (1), (2), (3)",
    "CREATE TABLE renamed (id INTEGER GENERATED BY DEFAULT AS IDENTITY, old INTEGER)",
    "ALTER TABLE renamed RENAME COLUMN old TO new",
    "ALTER TABLE renamed RENAME TO of_a_new_name",
    "INSERT INTO of_a_new_name (new) VALUES (10)",
    // Chains and circles of foreign keys.
    "CREATE TABLE a_child (id INTEGER PRIMARY KEY, p INTEGER)",
    "CREATE TABLE z_parent (id INTEGER PRIMARY KEY, c INTEGER REFERENCES a_child ON DELETE SET NULL)",
    "ALTER TABLE a_child ADD CONSTRAINT to_z FOREIGN KEY (p) REFERENCES z_parent (id) ON UPDATE CASCADE",
    "CREATE TABLE itself (id INTEGER PRIMARY KEY, up INTEGER REFERENCES itself ON DELETE CASCADE, \
     x INTEGER, y INTEGER, UNIQUE (x, y), FOREIGN KEY (y, x) REFERENCES itself (y, x))",
    "CREATE TABLE a_first (k INTEGER REFERENCES itself ON DELETE SET DEFAULT)",
    "INSERT INTO a_child VALUES (1, NULL), (2, NULL)",
    "INSERT INTO z_parent VALUES (10, 1), (20, 2)",
    "UPDATE a_child SET p = id * 10",
    "INSERT INTO itself VALUES (1, 2, 1, 1), (2, NULL, 2, NULL), (3, 1, 1, 2)",
    "INSERT INTO a_first VALUES (3), (NULL), (1)",
    // Layouts and encodings.
    "CREATE TABLE laid (a INTEGER, b VARCHAR, c DOUBLE) WITH (layout = 'delta', layout_key = (b, a), \
     partitions = 4, ghost = 0.25, compression = ('packed', c = 'none'))",
    "INSERT INTO laid SELECT i % 7, 'k' || (i % 5), i / 3.0 FROM range(500) r(i)",
    "CREATE TABLE heap (a INTEGER, b VARCHAR)",
    "INSERT INTO heap SELECT i * 7919 % 5003, 'b' || i FROM range(5000) r(i)",
    "CREATE TABLE indexed (a INTEGER, b VARCHAR, c INTEGER)",
    "INSERT INTO indexed SELECT i % 100, 'b' || (i % 3), i FROM range(2000) r(i)",
    "CREATE INDEX by_a ON indexed (a)",
    "CREATE INDEX \"By B\" ON indexed (b, c)",
    "CREATE UNIQUE INDEX by_c ON indexed (c)",
    // Views over views, in another order than that of their names.
    "CREATE VIEW z_below AS SELECT \"from\", \"Größe\" AS g FROM \"select\" WHERE \"order by\" <> 'it''s'",
    "CREATE VIEW a_above (n, \"Sum\") AS SELECT count(*), sum(g) FROM z_below",
    "CREATE VIEW s.over_all AS WITH c AS (SELECT n FROM a_above) SELECT c.n, (SELECT max(id) FROM s.t) AS m FROM c",
];

/// What is asked of both databases.
const QUESTIONS: &[&str] = &[
    "SELECT * FROM types ORDER BY ALL",
    "SELECT * FROM one_column",
    "SELECT * FROM \"select\" ORDER BY 1",
    "SELECT * FROM \"two words\".\"with.dot\" ORDER BY ALL",
    "SELECT * FROM s.t ORDER BY id",
    "SELECT * FROM s_t ORDER BY id",
    "SELECT * FROM of_a_new_name",
    "SELECT * FROM itself ORDER BY id",
    "SELECT * FROM a_child ORDER BY id",
    "SELECT * FROM z_parent ORDER BY id",
    "SELECT * FROM laid ORDER BY ALL",
    "SELECT * FROM heap",
    "SELECT * FROM indexed ORDER BY c",
    "SELECT * FROM s.over_all",
    "SELECT * FROM a_above",
    "SELECT table_schema, table_name, column_name, ordinal_position, \
     replace(replace(column_default, '(', ''), ')', ''), is_nullable, data_type, \
     is_identity FROM information_schema.columns ORDER BY 1, 2, 4",
    "SELECT constraint_schema, constraint_name, table_name, constraint_type \
     FROM information_schema.table_constraints ORDER BY ALL",
    "SELECT * FROM information_schema.referential_constraints ORDER BY ALL",
    "SELECT * FROM information_schema.sequences ORDER BY ALL",
    "PRAGMA integrity_check",
];

fn example() -> Database {
    let database = in_memory();
    run(&database.connect(), OBJECTS);
    database
}

fn round_trip(options: &str) -> (Scratch, Database) {
    let scratch = Scratch::new();
    let directory = |name: &str| scratch.path(name).display().to_string();
    let (first, second) = (example(), in_memory());
    let (one, two) = (first.connect(), second.connect());
    run(&one, &[&format!("EXPORT DATABASE '{}' {options}", directory("first"))]);
    // Nothing that the connection has set matters.
    run(&two, &["SET timezone = 'Asia/Kolkata'", "CREATE TEMPORARY TABLE heap (other DATE)"]);
    run(&two, &[&format!("IMPORT DATABASE '{}'", directory("first"))]);
    let two = second.connect();
    run(&two, &[&format!("EXPORT DATABASE '{}' {options}", directory("second"))]);
    let (before, after) = (files(&scratch.path("first")), files(&scratch.path("second")));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for (name, bytes) in &before {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match name.ends_with(".parquet") {
            true => assert!(*bytes == after[name], "{name}"),
            false => assert_eq!(shown(bytes), shown(&after[name]), "{name}"),
        }
    }
    for question in QUESTIONS {
        assert_eq!(rows(&one, question), rows(&two, question), "{question}");
    }
    for sequence in ["plain", "down", "s.circle"] {
        let next = format!("SELECT nextval('{sequence}')");
        assert_eq!(rows(&one, &next), rows(&two, &next));
    }
    for insert in [
        "INSERT INTO s.t (a) VALUES (1) RETURNING id, a",
        "INSERT INTO s_t (a) VALUES (1) RETURNING id",
        "INSERT INTO of_a_new_name (new) VALUES (1) RETURNING id",
        "SELECT nextval('renamed_id_seq')",
    ] {
        assert_eq!(rows(&one, insert), rows(&two, insert), "{insert}");
    }
    for refused in [
        "SELECT nextval('at_its_end')",
        "INSERT INTO s.t (id) VALUES (1)",
        "INSERT INTO \"select\" VALUES (0, 'x')",
        "INSERT INTO \"select\" VALUES (9, 'x', 7)",
        "INSERT INTO \"select\" VALUES (9, NULL)",
        "INSERT INTO a_child VALUES (9, 9)",
        "INSERT INTO z_parent VALUES (9, 9)",
        "INSERT INTO indexed VALUES (1, 'x', 5)",
    ] {
        let told = |connection: &Connection| connection.execute(refused).expect_err(refused).to_string();
        assert_eq!(told(&one), told(&two));
    }
    (scratch, second)
}

#[test]
fn what_is_exported_comes_in_again_as_it_was() {
    let (scratch, _) = round_trip("");
    let schema = fs::read_to_string(scratch.path("first/schema.sql")).unwrap();
    let place = |text: &str| schema.find(text).unwrap_or_else(|| panic!("{text} is not in\n{schema}"));
    assert!(place("CREATE SCHEMA s;") < place("CREATE SEQUENCE s."));
    assert!(place("CREATE TABLE itself") < place("CREATE TABLE a_first"), "the chain is in order");
    assert!(place("CREATE VIEW z_below") < place("CREATE VIEW a_above"));
    let load = fs::read_to_string(scratch.path("first/load.sql")).unwrap();
    assert_eq!(load.matches("ADD CONSTRAINT").count(), 1, "the circle is closed once:\n{load}");
}

#[test]
fn so_it_does_in_parquet_files() {
    round_trip("(FORMAT parquet)");
}

#[test]
fn an_export_that_fails_leaves_nothing() {
    let scratch = Scratch::new();
    let connection = in_memory().connect();
    run(&connection, &["CREATE TABLE big AS SELECT i AS a FROM range(3000000) r(i)"]);
    let directory = scratch.path("out");
    let cancel = connection.cancel_flag();
    let export = format!("EXPORT DATABASE '{}'", directory.display());
    let error = thread::scope(|scope| {
        let export = scope.spawn(|| connection.execute(&export).err());
        while !directory.exists() {
            thread::yield_now();
        }
        cancel.raise();
        export.join().unwrap()
    });
    // It may have ended before.
    match error {
        Some(error) => {
            assert_eq!(error.kind(), ErrorKind::Interrupted);
            assert!(!directory.exists());
        }
        None => assert!(directory.join("schema.sql").exists()),
    }
}

#[test]
fn an_import_of_which_anything_fails_brings_nothing() {
    let scratch = Scratch::new();
    run(&example().connect(), &[&format!("EXPORT DATABASE '{}'", scratch.path("out").display())]);
    // The last statement is one that cannot be.
    let load = scratch.path("out/load.sql");
    let text = fs::read_to_string(&load).unwrap() + "ALTER TABLE itself ADD CHECK (id > 1);\n";
    fs::write(&load, text).unwrap();
    let database = in_memory();
    let connection = database.connect();
    let import = format!("IMPORT DATABASE '{}'", scratch.path("out").display());
    let error = connection.execute(&import).expect_err("a row violates it");
    assert!(error.message().contains("load.sql', ALTER TABLE itself ADD CHECK"), "{error}");
    assert_eq!(number(&connection, "SELECT count(*) FROM information_schema.tables"), 0);
    assert_eq!(number(&connection, "SELECT count(*) FROM information_schema.sequences"), 0);
    fs::write(&load, "COMMIT;\n").unwrap();
    let error = connection.execute(&import).expect_err("it is one transaction");
    assert!(error.message().contains("one transaction"), "{error}");
    fs::write(&load, "COPY\nheap FROM 5;\n").unwrap();
    let error = connection.execute(&import).expect_err("it is no SQL");
    assert!(error.message().contains("load.sql', line 2: syntax error"), "{error}");
    assert_eq!(number(&connection, "SELECT count(*) FROM information_schema.tables"), 0);
}

// ---- checks -----------------------------------------------------------------------------------------------

const FILE: &[&str] = &[
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE)",
    "INSERT INTO t SELECT i, 'name ' || i FROM range(20000) r(i)",
    "CREATE TABLE u AS SELECT i AS a, i / 3.0 AS b FROM range(20000) r(i)",
];

#[test]
fn damage_of_a_file_is_told_with_its_place() {
    let scratch = Scratch::new();
    let path = scratch.path("my.db");
    run(&open(&path).connect(), FILE);
    let whole = fs::read(&path).unwrap();
    // Closed: a byte among the rows. In the middle there may be a page that is free.
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        (at, Database::open(&path, Config::default()).err())
    };
    let (at, error) = (whole.len() / 2..)
        .step_by(1000)
        .map(flipped)
        .find_map(|(at, error)| Some((at, error?)))
        .expect("some page is in use");
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("my.db is damaged at byte "), "{error}");
    // Open: all is in memory by then, and the file is looked at.
    fs::write(&path, &whole).unwrap();
    let database = open(&path);
    let connection = database.connect();
    assert_eq!(rows(&connection, "PRAGMA integrity_check"), ["ok|NULL|NULL"]);
    // Its header says by now that it is open; its rows are where they were.
    let flip = || {
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
    };
    flip();
    let found = rows(&connection, "PRAGMA integrity_check");
    assert!(found[0].starts_with("the checksum of an extent of "), "{found:?}");
    let place = found[0].split("|byte ").nth(1).and_then(|rest| rest.strip_suffix(" of the file"));
    let place: usize = place.expect("it has a place").parse().unwrap();
    assert!(place <= at && place + (8 << 20) > at, "{found:?}");
    // A table by itself is in memory.
    assert_eq!(rows(&connection, "PRAGMA integrity_check(t)"), ["ok|NULL|NULL"]);
    // So is its own backup.
    run(&connection, &[&format!("BACKUP TO '{}'", scratch.path("saved.db").display())]);
    assert_eq!(rows(&open(&scratch.path("saved.db")).connect(), "PRAGMA integrity_check"), ["ok|NULL|NULL"]);
    flip();
    assert_eq!(rows(&connection, "PRAGMA integrity_check"), ["ok|NULL|NULL"]);
}

/// Writes to a table until it is told to stop, two rows a transaction with the sum 0.
fn write(database: &Database, stop: &AtomicBool) -> u64 {
    let connection = database.connect();
    let mut commits = 0;
    while !stop.load(Ordering::Relaxed) {
        let a = commits + 1;
        run(&connection, &["BEGIN"]);
        run(&connection, &[&format!("INSERT INTO pairs (number, a) VALUES ({commits}, {a})")]);
        run(&connection, &[&format!("INSERT INTO others (number, a) VALUES ({commits}, -{a})")]);
        run(&connection, &["COMMIT"]);
        commits += 1;
    }
    commits
}

const PAIRS: &[&str] = &[
    "CREATE TABLE pairs (number BIGINT PRIMARY KEY, a BIGINT)",
    "CREATE TABLE others (number BIGINT PRIMARY KEY REFERENCES pairs, a BIGINT, UNIQUE (a))",
];

#[test]
fn nobody_waits_for_a_check_and_all_of_it_is_of_one_moment() {
    let scratch = Scratch::new();
    let database = open(&scratch.path("my.db"));
    run(&database.connect(), PAIRS);
    run(&database.connect(), FILE);
    run(&database.connect(), &["SET synchronous = normal"]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&database, &stop));
        let connection = database.connect();
        for _ in 0..10 {
            assert_eq!(rows(&connection, "PRAGMA integrity_check"), ["ok|NULL|NULL"]);
            run(&connection, &["CHECKPOINT"]);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 0);
    });
}

// ---- backups ----------------------------------------------------------------------------------------------

#[test]
fn a_backup_is_a_state_that_there_was() {
    for is_in_file in [true, false] {
        let scratch = Scratch::new();
        let database = if is_in_file { open(&scratch.path("my.db")) } else { in_memory() };
        run(&database.connect(), PAIRS);
        run(&database.connect(), &["SET synchronous = normal"]);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| write(&database, &stop));
            let connection = database.connect();
            let mut last = 0;
            for number in 0..5 {
                let path = scratch.path(&format!("saved-{number}.db"));
                let before = self::number(&connection, "SELECT count(*) FROM pairs");
                run(&connection, &[&format!("BACKUP TO '{}'", path.display())]);
                let after = self::number(&connection, "SELECT count(*) FROM pairs");
                let saved = open(&path).connect();
                let count = self::number(&saved, "SELECT count(*) FROM pairs");
                assert!((before..=after).contains(&count), "{before} <= {count} <= {after}");
                assert!(count >= last);
                last = count;
                let whole =
                    "SELECT count(*) FROM pairs p JOIN others o ON p.number = o.number AND p.a = -o.a";
                assert_eq!(self::number(&saved, whole), count);
                assert_eq!(self::number(&saved, "SELECT count(*) FROM others"), count);
                assert_eq!(rows(&saved, "PRAGMA integrity_check"), ["ok|NULL|NULL"]);
                thread::sleep(Duration::from_millis(20));
            }
            stop.store(true, Ordering::Relaxed);
            assert!(writer.join().unwrap() > 0);
        });
        let names: Vec<String> = files(&scratch.0).into_keys().collect();
        assert!(names.iter().all(|name| name.ends_with(".db") || name == "my.db.wal"), "{names:?}");
    }
}

#[test]
fn a_backup_is_a_database_of_its_own() {
    let scratch = Scratch::new();
    let path = scratch.path("my.db");
    let database = open(&path);
    let connection = database.connect();
    run(&connection, FILE);
    run(
        &connection,
        &["CREATE SEQUENCE s START 7", "SELECT nextval('s')", "CREATE VIEW v AS SELECT max(a) AS m FROM u"],
    );
    let saved = scratch.path("saved.db");
    run(&connection, &[&format!("BACKUP TO '{}'", saved.display())]);
    run(&connection, &["DELETE FROM t", "DROP VIEW v"]);
    let other = open(&saved);
    let copy = other.connect();
    assert_eq!(rows(&copy, "SELECT count(*) FROM t WHERE name LIKE 'name 1%'"), ["11111"]);
    assert_eq!(rows(&copy, "SELECT m, nextval('s') FROM v"), ["19999|8"]);
    run(&copy, &["INSERT INTO t VALUES (-1, 'new')"]);
    drop((copy, other));
    assert_eq!(number(&open(&saved).connect(), "SELECT count(*) FROM t"), 20001);
    assert_eq!(number(&connection, "SELECT count(*) FROM t"), 0);
    // Its own file, also by another name, and one that is open.
    for (name, options) in [("my.db", ""), ("my.db", "(OVERWRITE)"), ("link.db", "(OVERWRITE)")] {
        let to = scratch.path(name);
        if !to.exists() {
            fs::hard_link(&path, &to).unwrap();
        }
        let error =
            connection.execute(&format!("BACKUP TO '{}' {options}", to.display())).expect_err("refused");
        assert!(error.message().contains("cannot back up to"), "{error}");
    }
    let reader = open(&saved);
    let overwrite = format!("BACKUP TO '{}' (OVERWRITE)", saved.display());
    let error = connection.execute(&overwrite).expect_err("it is open");
    assert!(error.message().ends_with("it is a database that is open"), "{error}");
    let held = number(&reader.connect(), "SELECT count(*) FROM t");
    drop(reader);
    assert_eq!(held, 20001);
    // Until upkeep lets go of it.
    while connection.execute(&overwrite).is_err() {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(number(&open(&saved).connect(), "SELECT count(*) FROM t"), 0);
}

// ---- VACUUM -----------------------------------------------------------------------------------------------

#[test]
fn a_file_shrinks_to_what_it_needs() {
    let scratch = Scratch::new();
    let path = scratch.path("my.db");
    let size = || fs::metadata(&path).unwrap().len();
    {
        let database = open(&path);
        let connection = database.connect();
        run(
            &connection,
            &[
                "CREATE TABLE keyed (id BIGINT PRIMARY KEY, a VARCHAR, b DOUBLE)",
                "INSERT INTO keyed SELECT i, md5(i::VARCHAR), random() FROM range(200000) r(i)",
                "CREATE TABLE heap AS SELECT i AS a, md5(i::VARCHAR) AS b FROM range(200000) r(i)",
                "CREATE INDEX by_a ON keyed (a)",
                "CHECKPOINT",
            ],
        );
        let full = size();
        run(
            &connection,
            &["DELETE FROM keyed WHERE id % 10 > 0", "DELETE FROM heap WHERE a % 10 > 0", "VACUUM"],
        );
        let rest = size();
        assert!(rest < full / 3, "{rest} of {full} bytes are left");
        assert_eq!(rows(&connection, "PRAGMA integrity_check"), ["ok|NULL|NULL"]);
        assert_eq!(number(&connection, "SELECT count(*) FROM keyed"), 20000);
        // Once more, and nothing is left to do.
        run(&connection, &["VACUUM"]);
        assert!(size() <= rest);
        // A fresh copy is no much smaller.
        let saved = scratch.path("saved.db");
        run(&connection, &[&format!("BACKUP TO '{}'", saved.display())]);
        let needed = fs::metadata(&saved).unwrap().len();
        assert!(rest <= needed * 2 + (1 << 20), "{rest} bytes, and {needed} are needed");
        run(&connection, &["DELETE FROM keyed", "DELETE FROM heap", "VACUUM keyed", "VACUUM heap"]);
        assert!(size() < 1 << 20, "{} bytes are left of nothing", size());
    }
    let again = open(&path).connect();
    assert_eq!(number(&again, "SELECT count(*) FROM keyed") + number(&again, "SELECT count(*) FROM heap"), 0);
}
