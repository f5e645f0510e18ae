//! Names: what they mean where several objects have them, where none has, and where they look alike.
//!
//! * **Shadows**: every statement about the table `main.s`, under everything else that may be called `s`, has
//!   the outcome that it has without.
//! * **Missing**: every statement that takes a name, with one that nothing has, ends with an error. A
//!   watchdog ends the test if one does not end.
//! * **Identity**: objects whose names differ, however alike they look as text, are different objects, also
//!   after the database was closed.
//! * **Case**: there is one rule, and one function has it.

use entasis::{Config, Connection, Database, ErrorKind, Value};
use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{ColumnStatistics, Relation, ScanRequest, Source, Statistics};
use entasis_storage::{Datum, Table, TableSnapshot};
use entasis_vector::{DataType, Error, Field, Result, Schema};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

fn connect() -> Connection {
    Database::in_memory(Config::default()).expect("an empty database").connect()
}

fn run(connection: &Connection, sql: &str) {
    connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn rows(connection: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut rows: Vec<_> =
        connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).row_values().collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

// ---- shadows ----------------------------------------------------------------------------------------------

/// A relation of the host program: one row with k = 1 and v = 777.
#[derive(Debug)]
struct Frame(TableSnapshot);

impl Frame {
    fn new() -> Arc<Frame> {
        let columns = ["k", "v"].map(|name| Field::new(name, DataType::Int32));
        let table = Table::new("frame", columns.to_vec());
        table.write().insert(&[Datum::Integer(1), Datum::Integer(777)]);
        Arc::new(Frame(table.snapshot()))
    }
}

impl Relation for Frame {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn schema(&self) -> &Schema {
        self.0.schema()
    }
    fn statistics(&self) -> Statistics {
        let columns = self.0.schema().iter().map(|_| ColumnStatistics::default());
        Statistics { rows: Some(self.0.rows()), columns: columns.collect() }
    }
    fn table(&self) -> Option<&TableSnapshot> {
        Some(&self.0)
    }
    fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        Err(Error::internal("the engine scans stored tables by itself"))
    }
}

/// What else is called `s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shadow {
    Nothing,
    Frame,
    TemporaryTable,
    TemporaryView,
    TableOnThePath,
    ViewOnThePath,
    /// A database, whose tables are `s.t` and the like.
    Attached,
}

const SHADOWS: [Shadow; 6] = [
    Shadow::Frame,
    Shadow::TemporaryTable,
    Shadow::TemporaryView,
    Shadow::TableOnThePath,
    Shadow::ViewOnThePath,
    Shadow::Attached,
];

impl Shadow {
    fn cast(self, connection: &Connection) {
        let row = "SELECT 1::INTEGER AS k, 777::INTEGER AS v";
        match self {
            Shadow::Nothing => {}
            Shadow::Frame => connection.register("s", Frame::new()),
            Shadow::TemporaryTable => run(connection, &format!("CREATE TEMP TABLE s AS {row}")),
            Shadow::TemporaryView => run(connection, &format!("CREATE TEMP VIEW s AS {row}")),
            Shadow::TableOnThePath | Shadow::ViewOnThePath => {
                let what = if self == Shadow::TableOnThePath { "TABLE" } else { "VIEW" };
                run(connection, "CREATE SCHEMA x");
                run(connection, &format!("CREATE {what} x.s AS {row}"));
                run(connection, "SET search_path = 'x'");
            }
            Shadow::Attached => {
                run(connection, "ATTACH ':memory:' AS s");
                run(connection, &format!("CREATE TABLE s.s AS {row}"));
                run(connection, &format!("CREATE TABLE s.k AS {row}"));
            }
        }
    }
}

/// Statements about a table: `{t}` is the table that is changed or declared, `{q}` one that a query reads.
const STATEMENTS: [&str; 41] = [
    "SELECT * FROM {q} ORDER BY k",
    "SELECT k FROM {q} WHERE v = 2",
    "SELECT v FROM {q} WHERE k = 1",
    "SELECT (SELECT sum(v) FROM {q})",
    "DESCRIBE {q}",
    "SUMMARIZE {q}",
    "EXPLAIN ANALYZE SELECT count(*) FROM {q}",
    "CREATE TABLE main.n AS SELECT * FROM {q}",
    "CREATE VIEW main.n AS SELECT * FROM {q}",
    "ALTER TABLE {t} ADD COLUMN q INTEGER",
    "ALTER TABLE {t} ADD COLUMN q INTEGER DEFAULT 5",
    "ALTER TABLE {t} ADD COLUMN q INTEGER NOT NULL",
    "ALTER TABLE {t} DROP COLUMN v",
    "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
    "ALTER TABLE {t} ALTER COLUMN v TYPE VARCHAR USING 'v' || v",
    "ALTER TABLE {t} ALTER COLUMN v SET NOT NULL",
    "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 3",
    "ALTER TABLE {t} ADD CHECK (v < 100)",
    "ALTER TABLE {t} ADD CHECK (v > 100)",
    "ALTER TABLE {t} ADD UNIQUE (v)",
    "ALTER TABLE {t} ADD FOREIGN KEY (v) REFERENCES main.p",
    "ALTER TABLE {t} RENAME COLUMN v TO w",
    "ALTER TABLE {t} RENAME TO renamed",
    "ALTER TABLE {t} SET (layout_key = (v))",
    "CREATE INDEX i ON {t} (v)",
    "CREATE UNIQUE INDEX i ON {t} (v)",
    "INSERT INTO {t} VALUES (3, 3)",
    "INSERT INTO {t} VALUES (1, 9) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
    "INSERT INTO {t} VALUES (1, 9) ON CONFLICT DO NOTHING",
    "INSERT INTO {t} SELECT k + 100, v FROM {q}",
    "UPDATE {t} SET v = v + 1 WHERE v = 777",
    "UPDATE {t} SET v = v + 1 WHERE v + 0 = 1",
    "UPDATE {t} SET v = 5 WHERE k = 2",
    "UPDATE {t} SET v = (SELECT max(v) FROM {q})",
    "DELETE FROM {t} WHERE k = 2",
    "DELETE FROM {t} WHERE EXISTS (SELECT 1 FROM {q} AS o WHERE o.v = 777)",
    "MERGE INTO {t} AS t USING (SELECT 2 AS k) y ON t.k = y.k WHEN MATCHED THEN UPDATE SET v = 22 WHEN NOT MATCHED THEN INSERT VALUES (2, 0)",
    "TRUNCATE {t} CASCADE",
    "DROP TABLE {t} CASCADE",
    "VACUUM {t}",
    "PRAGMA integrity_check({t})",
];

/// What a statement does to a database: what it returns, and everything that is there afterwards.
fn outcome(shadow: Shadow, statement: &str) -> String {
    let database = Database::in_memory(Config::default()).expect("an empty database");
    let connection = database.connect();
    for sql in [
        "CREATE TABLE p (k INTEGER PRIMARY KEY)",
        "INSERT INTO p VALUES (1), (3)",
        "CREATE TABLE s (k INTEGER PRIMARY KEY, v INTEGER)",
        "INSERT INTO s VALUES (1, 1), (2, 2), (4, NULL), (5, 1)",
        "CREATE TABLE c (r INTEGER REFERENCES s)",
        "INSERT INTO c VALUES (2)",
        "CREATE VIEW w AS SELECT k AS of_view FROM main.s",
    ] {
        run(&connection, sql);
    }
    shadow.cast(&connection);
    let result = match connection.execute(statement) {
        Ok(_) if statement.starts_with("EXPLAIN") => "explained".to_owned(),
        Ok(rows) => format!("{:?}", rows.row_values().collect::<Vec<_>>()),
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Internal, "{shadow:?}: {statement}: {error}");
            "an error".to_owned()
        }
    };
    // Another connection sees no shadow.
    let seen = database.connect();
    let mut there = Vec::new();
    let objects = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'";
    for object in rows(&seen, objects) {
        let Value::Text(name) = &object[0] else { panic!("a name is a text") };
        there.push(format!("{name}: {:?}", rows(&seen, &format!("SELECT * FROM main.{name}"))));
    }
    there.push(format!("{:?}", rows(&seen, "SELECT column_name, data_type, column_default, is_nullable FROM information_schema.columns WHERE table_schema = 'main'")));
    there.push(format!(
        "{:?}",
        rows(&seen, "SELECT * FROM information_schema.table_constraints WHERE table_schema = 'main'")
    ));
    there.push(format!("{:?}", rows(&seen, "PRAGMA integrity_check")));
    format!("{result}\n{}", there.join("\n"))
}

#[test]
fn a_qualified_name_means_one_table_whatever_else_is_called_so() {
    for statement in STATEMENTS {
        let sql = statement.replace("{t}", "main.s").replace("{q}", "main.s");
        let expected = outcome(Shadow::Nothing, &sql);
        for shadow in SHADOWS {
            assert_eq!(outcome(shadow, &sql), expected, "{shadow:?}: {sql}");
        }
    }
}

#[test]
fn a_registered_relation_hides_a_table_from_queries_only() {
    for statement in STATEMENTS {
        let expected = outcome(Shadow::Nothing, &statement.replace("{t}", "main.s").replace("{q}", "main.s"));
        let sql = statement.replace("{t}", "s").replace("{q}", "main.s");
        // A database does not hide a table without a schema, either.
        for shadow in [Shadow::Frame, Shadow::Attached] {
            assert_eq!(outcome(shadow, &sql), expected, "{shadow:?}: {sql}");
        }
        // A query of a WITH hides the table from queries, too.
        if ["INSERT", "UPDATE", "DELETE"].iter().any(|word| statement.starts_with(word)) {
            let sql = format!("WITH s AS (SELECT 1 AS k, 777 AS v) {sql}");
            assert_eq!(outcome(Shadow::Nothing, &sql), expected, "{sql}");
        }
    }
}

#[test]
fn what_a_bare_name_means_beside_a_registered_relation() {
    let connection = connect();
    run(&connection, "CREATE TABLE s (k INTEGER PRIMARY KEY, v INTEGER)");
    run(&connection, "INSERT INTO s VALUES (1, 1), (2, 2)");
    run(&connection, "CREATE VIEW w AS SELECT sum(v) AS v FROM s");
    connection.register("S", Frame::new());
    let (one, two) = (Value::Integer(1), Value::Integer(2));
    let stored = || vec![vec![one.clone(), one.clone()], vec![two.clone(), two.clone()]];
    let frame = || vec![vec![one.clone(), Value::Integer(777)]];
    for sql in [
        "SELECT * FROM s",
        "FROM S",
        "SELECT q.* FROM s AS q",
        "WITH c AS (FROM s) FROM c",
        "SELECT s.* FROM \"s\"",
    ] {
        assert_eq!(rows(&connection, sql), frame(), "{sql}");
    }
    assert_eq!(rows(&connection, "SELECT * FROM main.s"), stored());
    assert_eq!(rows(&connection, "WITH s AS (SELECT 5) FROM s"), [[Value::Integer(5)]]);
    assert_eq!(rows(&connection, "SELECT v::INTEGER FROM w"), [[Value::Integer(3)]]);
    // One name for two things in a statement that might destroy rows.
    for sql in [
        "DELETE FROM s WHERE EXISTS (SELECT 1 FROM s x WHERE x.v = 777)",
        "UPDATE s SET v = (SELECT max(v) FROM s x)",
        "MERGE INTO s AS t USING s ON t.k = s.k WHEN MATCHED THEN DELETE",
        "CREATE VIEW n AS SELECT * FROM s",
    ] {
        let error = connection.execute(sql).expect_err(sql);
        assert!(
            error.message().contains("a relation of the program and an object of the database"),
            "{error}"
        );
        assert_eq!(rows(&connection, "SELECT * FROM main.s"), stored(), "{sql}");
    }
    // Rows of the program go into the table.
    run(&connection, "INSERT INTO s SELECT k + 10, v FROM s");
    assert_eq!(rows(&connection, "SELECT v FROM main.s WHERE k = 11"), [[Value::Integer(777)]]);
    // Only a relation of the program.
    connection.register("only", Frame::new());
    assert_eq!(rows(&connection, "SELECT * FROM only"), frame());
    for sql in [
        "SELECT * FROM main.only",
        "INSERT INTO only VALUES (1, 2)",
        "UPDATE only SET v = 1",
        "DROP TABLE only",
    ] {
        connection.execute(sql).expect_err(sql);
    }
    run(&connection, "CREATE VIEW of_program AS SELECT * FROM only");
    assert_eq!(rows(&connection, "SELECT * FROM of_program"), frame());
    assert!(connection.unregister("s"));
    assert_eq!(rows(&connection, "SELECT count(*) FROM s"), [[Value::Integer(3)]]);
}

// ---- missing ----------------------------------------------------------------------------------------------

/// Statements with a name that nothing has; `nosuch` where it is.
const OF_NOTHING: [&str; 72] = [
    "SELECT * FROM nosuch",
    "SELECT nosuch",
    "SELECT nosuch(1)",
    "SELECT * FROM nosuch(1)",
    "SELECT nosuch.a FROM t",
    "SELECT nosuch.* FROM t",
    "SELECT CAST(1 AS nosuch)",
    "SELECT sum(a) OVER nosuch FROM t",
    "SELECT a FROM t ORDER BY nosuch",
    "SELECT a FROM t GROUP BY nosuch",
    "SELECT * FROM t JOIN t u USING (nosuch)",
    "SELECT nextval('nosuch')",
    "SELECT currval('nosuch')",
    "SELECT * FROM nosuch.t",
    "SELECT * FROM nosuch.main.t",
    "FROM nosuch",
    "TABLE nosuch",
    "WITH c AS (FROM nosuch) FROM c",
    "VALUES (nosuch)",
    "INSERT INTO nosuch VALUES (1)",
    "INSERT INTO t (nosuch) VALUES (1)",
    "INSERT INTO t VALUES (1) ON CONFLICT (nosuch) DO NOTHING",
    "INSERT INTO t VALUES (1) ON CONFLICT ON CONSTRAINT nosuch DO NOTHING",
    "INSERT INTO t VALUES (1) RETURNING nosuch",
    "UPDATE nosuch SET a = 1",
    "UPDATE t SET nosuch = 1",
    "UPDATE t SET a = 1 FROM nosuch",
    "DELETE FROM nosuch",
    "DELETE FROM t USING nosuch",
    "DELETE FROM t WHERE nosuch",
    "MERGE INTO nosuch USING t ON true WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING nosuch ON true WHEN MATCHED THEN DELETE",
    "TRUNCATE nosuch",
    "COPY nosuch FROM 'x.csv'",
    "COPY nosuch TO 'x.csv'",
    "COPY (FROM nosuch) TO 'x.csv'",
    "CREATE TABLE nosuch.t (a INTEGER)",
    "CREATE TABLE u (a nosuch)",
    "CREATE TABLE u (a INTEGER REFERENCES nosuch)",
    "CREATE TABLE u (a INTEGER, PRIMARY KEY (nosuch))",
    "CREATE TABLE u (a INTEGER CHECK (nosuch > 0))",
    "CREATE TABLE u (a INTEGER DEFAULT nextval('nosuch'))",
    "CREATE TABLE u AS FROM nosuch",
    "CREATE VIEW v AS FROM nosuch",
    "CREATE INDEX i ON nosuch (a)",
    "CREATE INDEX i ON t (nosuch)",
    "CREATE SEQUENCE nosuch.s",
    "ALTER TABLE nosuch ADD COLUMN b INTEGER",
    "ALTER TABLE t DROP COLUMN nosuch",
    "ALTER TABLE t RENAME COLUMN nosuch TO b",
    "ALTER TABLE t ALTER COLUMN nosuch TYPE BIGINT",
    "ALTER TABLE t DROP CONSTRAINT nosuch",
    "ALTER TABLE nosuch RENAME TO b",
    "DROP TABLE nosuch",
    "DROP VIEW nosuch",
    "DROP INDEX nosuch",
    "DROP SEQUENCE nosuch",
    "DROP SCHEMA nosuch",
    "DESCRIBE nosuch",
    "SUMMARIZE nosuch",
    "EXPLAIN FROM nosuch",
    "EXPLAIN LAYOUT nosuch",
    "SHOW nosuch",
    "SET nosuch = 1",
    "RESET nosuch",
    "USE nosuch",
    "EXECUTE nosuch",
    "DEALLOCATE nosuch",
    "PREPARE p AS FROM nosuch",
    "VACUUM nosuch",
    "PRAGMA integrity_check(nosuch)",
    "DETACH nosuch",
];

/// The same in an open transaction.
const IN_A_TRANSACTION: [&str; 3] = ["ROLLBACK TO nosuch", "RELEASE nosuch", "CHECKPOINT nosuch"];

#[test]
fn every_statement_with_a_name_that_nothing_has_ends_with_an_error() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for is_open in [false, true] {
            let connection = connect();
            run(&connection, "CREATE TABLE t (a INTEGER PRIMARY KEY)");
            // The near name is what a hint suggests.
            run(&connection, "PREPARE nosuch2 AS SELECT 1");
            if is_open {
                run(&connection, "BEGIN");
            }
            for sql in OF_NOTHING.iter().chain(IN_A_TRANSACTION.iter().filter(|_| is_open)) {
                sender.send(Err(*sql)).unwrap();
                let error = connection.execute(sql).err();
                sender.send(Ok((*sql, error))).unwrap();
            }
            // It still answers.
            assert_eq!(rows(&connection, "SELECT 1"), [[Value::Integer(1)]]);
        }
    });
    let mut begun = "";
    let mut ended = 0;
    loop {
        match receiver.recv_timeout(Duration::from_secs(60)) {
            Ok(Err(sql)) => begun = sql,
            Ok(Ok((sql, error))) => {
                let error = error.unwrap_or_else(|| panic!("{sql} is accepted"));
                assert_ne!(error.kind(), ErrorKind::Internal, "{sql}: {error}");
                assert!(!error.message().is_empty());
                ended += 1;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{begun} does not end"),
        }
    }
    assert_eq!(ended, 2 * OF_NOTHING.len() + IN_A_TRANSACTION.len());
}

// ---- identity ---------------------------------------------------------------------------------------------

/// A directory that is removed.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("entasis-names-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn objects_are_told_apart_by_the_parts_of_their_names() {
    let directory = Directory::new("identity");
    let path = directory.0.join("some.name.db");
    let owns = [
        "t",
        "x.t",
        "temp.t",
        "main.t",
        "pg_temp.t",
        "d.main.t",
        "information_schema.tables",
        ".t",
        "t.",
        "a\"b.c",
        "t..t",
    ];
    let quoted = |own: &str| format!("\"{}\"", own.replace('"', "\"\""));
    let mut all: Vec<String> = Vec::new();
    for schema in ["main", "x"] {
        all.extend(owns.iter().map(|own| format!("{schema}.{}", quoted(own))));
    }
    // Without a schema: in main.
    let bare: Vec<String> = owns.iter().map(|own| quoted(own)).collect();
    {
        let connection = Database::open(&path, Config::default()).unwrap().connect();
        run(&connection, "CREATE SCHEMA x");
        for (number, name) in all.iter().enumerate() {
            run(
                &connection,
                &format!(
                    "CREATE TABLE {name} (a INTEGER PRIMARY KEY, n INTEGER GENERATED BY DEFAULT AS IDENTITY)"
                ),
            );
            run(&connection, &format!("INSERT INTO {name} (a) VALUES ({number})"));
            run(&connection, &format!("CREATE INDEX ON {name} (n)"));
            run(&connection, &format!("CREATE TEMP TABLE {} (a INTEGER)", quoted(&format!("of {number}"))));
        }
        for (number, name) in bare.iter().enumerate() {
            let view = quoted(&format!("view.{number}"));
            run(&connection, &format!("CREATE VIEW {view} AS SELECT a FROM {name}"));
            run(
                &connection,
                &format!("CREATE SEQUENCE {} START {}", quoted(&format!("sequence.{number}")), number + 100),
            );
        }
    }
    let connection = Database::open(&path, Config::default()).unwrap().connect();
    for (number, name) in all.iter().enumerate() {
        assert_eq!(
            rows(&connection, &format!("SELECT a, n FROM {name}")),
            [[Value::Integer(number as i128), Value::Integer(1)]],
            "{name}"
        );
        run(&connection, &format!("UPDATE {name} SET n = a + 1000 WHERE a = {number}"));
        run(&connection, &format!("ALTER TABLE {name} ADD COLUMN b INTEGER DEFAULT 7"));
        run(&connection, &format!("INSERT INTO {name} (a) VALUES (-1)"));
    }
    for (number, name) in bare.iter().enumerate() {
        let expected = vec![vec![Value::Integer(-1)], vec![Value::Integer(number as i128)]];
        assert_eq!(rows(&connection, &format!("SELECT a FROM {name}")), expected, "{name}");
        assert_eq!(
            rows(&connection, &format!("SELECT * FROM {}", quoted(&format!("view.{number}")))),
            expected
        );
        let next = format!("SELECT nextval('\"sequence.{number}\"')");
        assert_eq!(rows(&connection, &next), [[Value::Integer(number as i128 + 100)]]);
    }
    assert_eq!(rows(&connection, "PRAGMA integrity_check")[0][0], Value::Text("ok".into()));
    // No schema of these exists.
    for missing in ["x.x.t", "d.main.t", "temp.t", "pg_temp.t", "view.0"] {
        connection.execute(&format!("SELECT * FROM {missing}")).expect_err(missing);
    }
    let listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' AND table_type = 'BASE TABLE'";
    let mut expected: Vec<Vec<Value>> = owns.iter().map(|own| vec![Value::Text((*own).into())]).collect();
    expected.sort_by_key(|row| format!("{row:?}"));
    assert_eq!(rows(&connection, listed), expected);
    // What is listed can be described.
    for table in connection.tables() {
        assert!(connection.table_schema(&table).is_some(), "{table}");
    }
    // An export and an import give the same.
    let export = directory.0.join("export").display().to_string();
    run(&connection, &format!("EXPORT DATABASE '{export}'"));
    let other = connect();
    run(&other, &format!("IMPORT DATABASE '{export}'"));
    for name in &all {
        let sql = format!("SELECT * FROM {name}");
        assert_eq!(rows(&other, &sql), rows(&connection, &sql), "{name}");
    }
    for name in &all {
        run(&connection, &format!("DROP TABLE {name} CASCADE"));
    }
    assert_eq!(rows(&connection, listed), Vec::<Vec<Value>>::new());
    // From another database.
    let other = connect();
    run(&other, &format!("ATTACH '{export}/../other.db' AS d"));
    run(&other, "CREATE TABLE d.\"a.b\" AS SELECT 5 AS a");
    run(&other, "CREATE TABLE \"d.a\" AS SELECT 6 AS a");
    run(&other, "CREATE TABLE \"d.main.a.b\" AS SELECT 7 AS a");
    for (name, value) in [("d.\"a.b\"", 5), ("d.main.\"a.b\"", 5), ("\"d.a\"", 6), ("\"d.main.a.b\"", 7)] {
        assert_eq!(rows(&other, &format!("SELECT a FROM {name}")), [[Value::Integer(value)]], "{name}");
    }
}

// ---- case -------------------------------------------------------------------------------------------------

#[test]
fn columns_are_found_by_one_rule_everywhere() {
    let connection = connect();
    run(&connection, "CREATE TABLE two (\"Ü\" INTEGER PRIMARY KEY, \"ü\" INTEGER, Plain INTEGER)");
    run(&connection, "INSERT INTO two VALUES (1, 2, 3)");
    let integers =
        |values: &[i128]| vec![values.iter().map(|value| Value::Integer(*value)).collect::<Vec<_>>()];
    for sql in [
        "SELECT \"Ü\", \"ü\", PLAIN FROM two",
        "SELECT Ü, ü, plain FROM TWO",
        "SELECT two.Ü, two.ü, \"PLAIN\" FROM two WHERE Ü = 1 AND ü = 2",
    ] {
        assert_eq!(rows(&connection, sql), integers(&[1, 2, 3]), "{sql}");
    }
    run(&connection, "UPDATE two SET ü = 9 WHERE ü = 2");
    run(&connection, "UPDATE two SET plain = 4 WHERE Ü = 1");
    run(&connection, "CREATE INDEX i ON two (ü)");
    run(&connection, "INSERT INTO two (ü, Ü) VALUES (20, 10)");
    run(&connection, "INSERT INTO two (ü, Ü) VALUES (21, 10) ON CONFLICT (Ü) DO UPDATE SET ü = excluded.ü");
    assert_eq!(rows(&connection, "SELECT ü FROM two WHERE Ü = 1"), integers(&[9]));
    assert_eq!(rows(&connection, "SELECT Ü FROM two WHERE ü = 21"), integers(&[10]));
    run(&connection, "ALTER TABLE two ADD CHECK (ü > 5)");
    connection.execute("UPDATE two SET ü = 1").expect_err("the check is on that column");
    run(&connection, "UPDATE two SET Ü = Ü + 100");
    run(&connection, "ALTER TABLE two RENAME COLUMN ü TO x");
    assert_eq!(rows(&connection, "SELECT max(x), max(Ü) FROM two"), integers(&[21, 110]));
    // Tables, schemas, relations of the program, prepared statements.
    run(&connection, "CREATE TABLE \"Ä\" AS SELECT 1 AS a");
    run(&connection, "CREATE TABLE \"ä\" AS SELECT 2 AS a");
    assert_eq!(
        rows(&connection, "SELECT a FROM Ä UNION ALL SELECT a FROM ä"),
        [[Value::Integer(1)], [Value::Integer(2)]]
    );
    connection.register("Ö", Frame::new());
    connection.execute("SELECT * FROM ö").expect_err("it is another name");
    assert_eq!(rows(&connection, "SELECT v FROM Ö"), integers(&[777]));
}

/// Names are folded by `entasis_vector::name::fold`, or by what that does, and never by Unicode's rules.
#[test]
fn no_name_is_folded_by_another_rule() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in ["sql", "storage", "entasis"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    assert!(files.len() > 200);
    for file in files {
        // These fold values.
        if file.components().any(|part| part.as_os_str() == "kernels" || part.as_os_str() == "tests") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let found = text.lines().find(|line| line.contains(concat!("to_lower", "case")));
        assert_eq!(found, None, "{}", file.display());
    }
}

/// The `.rs` files of a folder and those below it.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
