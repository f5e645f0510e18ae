//! Bad input: a clear error, the process still runs, earlier tables are intact.

use entasis::{Config, Connection, Database, ErrorKind, Result, Rows, Value};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Session {
    connection: Connection,
    directory: PathBuf,
    _database: Database,
}

impl Session {
    fn new() -> Session {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("entasis-bad-input-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a temporary directory");
        let database = Database::in_memory(Config::default()).expect("an empty database");
        let connection = database.connect();
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer").expect("a table");
        Session { connection, directory, _database: database }
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.directory.join(name);
        std::fs::write(&path, content).expect("a temporary file");
        path
    }

    fn run(&self, sql: &str) -> Result<Rows> {
        self.connection.execute(sql)
    }

    /// The error of a statement that must fail.
    fn fails(&self, sql: &str) -> entasis::Error {
        match self.run(sql) {
            Ok(rows) => panic!("{} rows from {}", rows.rows(), sql.chars().take(200).collect::<String>()),
            Err(error) => error,
        }
    }

    /// The error of a statement that must fail, after which the earlier table must still exist.
    fn error(&self, sql: &str) -> entasis::Error {
        let error = self.fails(sql);
        assert_ne!(error.kind(), ErrorKind::Internal, "{error:?}");
        self.check_alive();
        error
    }

    fn check_alive(&self) {
        let rows = self.run("SELECT answer FROM kept").expect("the earlier table is there");
        assert_eq!(rows.row_values().next(), Some(vec![Value::Integer(42)]));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A directory that remains is not a failure of the tested code.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The message must contain all of `parts`: where the error happened, and what it was.
fn says(error: &entasis::Error, parts: &[&str]) {
    let text = error.to_string().to_lowercase();
    for part in parts {
        assert!(text.contains(&part.to_lowercase()), "'{part}' is not in: {error:?}");
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

// ---- statements -------------------------------------------------------------------------------------------

#[test]
fn ten_thousand_parentheses() {
    let session = Session::new();
    let sql = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    match session.run(&sql) {
        Ok(rows) => assert_eq!(rows.rows(), 1),
        Err(error) => assert_ne!(error.kind(), ErrorKind::Internal, "{error:?}"),
    }
    session.check_alive();
}

#[test]
fn a_deep_expression_and_a_deep_subquery() {
    let session = Session::new();
    let sum = format!("SELECT {}1", "1 + ".repeat(5000));
    let not = format!("SELECT {}true", "NOT ".repeat(5000));
    let case = format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(2000), " END".repeat(2000));
    let nested = format!("SELECT * FROM {}kept{}", "(SELECT * FROM ".repeat(1000), ") q".repeat(1000));
    let except = vec!["SELECT 1"; 5000].join(" EXCEPT ALL ");
    let mixed = "SELECT 1, 2 UNION ALL SELECT 1, 2 UNION ".repeat(2000) + "SELECT 1, 2";
    let joins = format!("SELECT count(*) FROM kept {}", "JOIN kept USING (answer) ".repeat(3000));
    let around = format!("SELECT {}true{}", "1 < 2 AND (".repeat(190), ")".repeat(190));
    for sql in [sum, not, case, nested, except, mixed, joins, around] {
        if let Err(error) = session.run(&sql) {
            assert_ne!(error.kind(), ErrorKind::Internal, "{error:?}");
        }
        session.check_alive();
    }
}

/// What is flat in a plan may be long.
#[test]
fn long_chains_of_and_or_and_union() {
    let session = Session::new();
    let chain = |word: &str, of: &dyn Fn(i64) -> String| {
        (0..10_000).map(of).collect::<Vec<String>>().join(&format!(" {word} "))
    };
    let count = |sql: String| match session.run(&sql).expect("a result").row_values().next().as_deref() {
        Some([Value::Integer(count)]) => *count,
        other => panic!("{other:?}"),
    };
    let numbers = "SELECT count(*) FROM range(30000) r(i) WHERE";
    assert_eq!(count(format!("{numbers} {}", chain("OR", &|i| format!("i = {}", i * 2)))), 10_000);
    assert_eq!(count(format!("{numbers} {}", chain("AND", &|i| format!("i <> {}", i * 2)))), 20_000);
    assert_eq!(count(format!("{numbers} NOT ({})", chain("OR", &|i| format!("i % 10007 = {i}")))), 14);
    let rows = |i| format!("SELECT {} AS i", i % 100);
    assert_eq!(count(format!("SELECT count(*) FROM ({})", chain("UNION ALL", &rows))), 10_000);
    assert_eq!(count(format!("SELECT count(*) FROM ({})", chain("UNION", &rows))), 100);
    let error = session.error(&format!("SELECT {}true", "1 < 2 AND ".repeat(60_000)));
    says(&error, &["too many operators"]);
    session.check_alive();
}

#[test]
fn a_statement_of_a_megabyte() {
    let session = Session::new();
    let rows: Vec<String> = (0..60_000).map(|i| format!("({i}, 'row {i}')")).collect();
    session.run("CREATE TABLE wide (i INTEGER, s VARCHAR)").expect("a table");
    let sql = format!("INSERT INTO wide VALUES {}", rows.join(", "));
    assert!(sql.len() > 1 << 20);
    session.run(&sql).expect("a long statement is a statement");
    let count = session.run("SELECT count(*), sum(i) FROM wide").expect("a result").row_values().next();
    assert_eq!(count, Some(vec![Value::Integer(60_000), Value::Integer(1_799_970_000)]));

    let list: Vec<String> = (0..150_000).map(|i| (i * 2).to_string()).collect();
    let sql = format!("SELECT count(*) FROM wide WHERE i IN ({})", list.join(","));
    assert_eq!(session.run(&sql).expect("a result").row_values().next(), Some(vec![Value::Integer(30_000)]));

    let text = "x".repeat(1 << 20);
    let length = session.run(&format!("SELECT length('{text}')")).expect("a result").row_values().next();
    assert_eq!(length, Some(vec![Value::Integer(1 << 20)]));
    session.error(&format!("SELECT {text}"));
    session.error(&format!("SELECT '{text}"));
}

#[test]
fn garbage() {
    let session = Session::new();
    for sql in [
        "\u{0}",
        "🦀",
        "SELECT \u{0}",
        ";;; SELECT",
        "'",
        "\"",
        "--",
        "/*",
        "SELECT * FROM kept WHERE",
        "%s",
        "\\d",
    ] {
        if let Err(error) = session.run(sql) {
            assert_ne!(error.kind(), ErrorKind::Internal, "{sql}: {error:?}");
        }
        session.check_alive();
    }
}

#[test]
fn the_statements_before_a_failing_one_have_run() {
    let session = Session::new();
    let error = session
        .run("CREATE TABLE first AS SELECT 1 AS x;\nSELECT nothing;\nCREATE TABLE last AS SELECT 1")
        .unwrap_err();
    assert_eq!(error.position().map(|place| place.line), Some(2), "{error:?}");
    session.run("SELECT * FROM first").expect("it was made");
    session.error("SELECT * FROM last");
}

#[test]
fn errors_point_into_the_text() {
    let session = Session::new();
    let place = |sql: &str| session.error(sql).position().map(|place| (place.line, place.column));
    assert_eq!(place("SELECT answer\nFROM kept\nWHERE anser = 1"), Some((3, 7)));
    assert_eq!(place("SELECT *\nFROM kapt"), Some((2, 6)));
    assert_eq!(place("SELECT 1 +\n  + FROM"), Some((2, 5)));
    says(&session.error("SELECT anser FROM kept"), &["anser", "answer"]);
    says(&session.error("SELECT * FROM kapt"), &["kapt", "kept"]);
    says(&session.error("SELECT lenght('x')"), &["lenght", "length"]);
}

// ---- files ------------------------------------------------------------------------------------------------

#[test]
fn missing_and_unreadable_files() {
    let session = Session::new();
    for name in ["none.csv", "none.parquet", "none*.csv", "none/none.csv"] {
        let path = quoted(&session.directory.join(name));
        says(&session.error(&format!("SELECT * FROM {path}")), &["none"]);
    }
    // A directory is not a file.
    let path = session.directory.join("directory.csv");
    std::fs::create_dir(&path).expect("a directory");
    session.error(&format!("SELECT * FROM {}", quoted(&path)));
    // The target directory does not exist.
    let path = quoted(&session.directory.join("none/out.csv"));
    assert_eq!(session.error(&format!("COPY kept TO {path}")).kind(), ErrorKind::Io);
}

#[test]
fn a_csv_value_of_another_type() {
    let session = Session::new();
    let path = session.file("typed.csv", b"id,price\n1,1.5\n2,cheap\n3,2.5\n");
    session.run("CREATE TABLE typed (id INTEGER, price DOUBLE)").expect("a table");
    let error = session.error(&format!("COPY typed FROM {}", quoted(&path)));
    says(&error, &["typed.csv", "line 3", "price", "cheap"]);
    let rows = session.run("SELECT count(*) FROM typed").expect("the table is there").row_values().next();
    assert_eq!(rows, Some(vec![Value::Integer(0)]), "a failed COPY inserts nothing");
    // Far beyond the rows used for detection.
    let mut text = String::from("n\n");
    (0..100_000).for_each(|i| text.push_str(&format!("{i}\n")));
    text.push_str("many\n");
    let path = session.file("late.csv", text.as_bytes());
    says(&session.error(&format!("SELECT sum(n) FROM {}", quoted(&path))), &["late.csv", "100002", "many"]);
}

#[test]
fn a_csv_row_with_too_many_or_too_few_fields() {
    let session = Session::new();
    let path = session.file("few.csv", b"a,b,c\n1,2,3\n4,5\n6,7,8\n");
    says(&session.error(&format!("SELECT * FROM {}", quoted(&path))), &["few.csv", "line 3", "2", "3"]);
    let path = session.file("many.csv", b"a,b\n1,2\n3,4\n5,6,7\n");
    says(&session.error(&format!("SELECT * FROM {}", quoted(&path))), &["many.csv", "line 4", "3", "2"]);
}

#[test]
fn odd_csv_files() {
    let session = Session::new();
    for (name, content) in [
        ("empty.csv", &b""[..]),
        ("newline.csv", b"\n"),
        ("header.csv", b"a,b\n"),
        ("no_newline.csv", b"a,b\n1,2"),
        ("open_quote.csv", b"a,b\n1,\"open\n2,3\n"),
        ("not_utf8.csv", b"a,b\n1,\xff\xfe\n"),
        ("zeros.csv", b"a\n\0\0\0\n"),
        ("crlf.csv", b"a,b\r\n1,x\r\n2,y\r\n"),
        ("bom.csv", b"\xef\xbb\xbfa,b\n1,2\n"),
    ] {
        let path = session.file(name, content);
        if let Err(error) = session.run(&format!("SELECT * FROM {}", quoted(&path))) {
            assert_ne!(error.kind(), ErrorKind::Internal, "{name}: {error:?}");
            says(&error, &[name]);
        }
        session.check_alive();
    }
    let crlf = quoted(&session.directory.join("crlf.csv"));
    let rows =
        session.run(&format!("SELECT sum(a), max(b) FROM {crlf}")).expect("a result").row_values().next();
    assert_eq!(rows, Some(vec![Value::Integer(3), Value::Text("y".into())]));
    let bom = quoted(&session.directory.join("bom.csv"));
    session.run(&format!("SELECT a FROM {bom}")).expect("the mark is no part of the name");
}

#[test]
fn truncated_and_damaged_parquet() {
    let session = Session::new();
    let whole = session.directory.join("whole.parquet");
    session
        .run(&format!(
            "COPY (SELECT value AS n, 'text ' || value AS s FROM generate_series(1, 5000) v(value)) TO {}",
            quoted(&whole)
        ))
        .expect("a file");
    let bytes = std::fs::read(&whole).expect("the file");
    for length in [0, 3, 4, 8, bytes.len() / 2, bytes.len() - 9, bytes.len() - 1] {
        let path = session.file("cut.parquet", &bytes[..length]);
        says(&session.error(&format!("SELECT * FROM {}", quoted(&path))), &["cut.parquet"]);
    }
    // Bytes in the middle are damaged: an error or a wrong value, but no panic.
    for at in (4..bytes.len() - 1).step_by(bytes.len() / 40 + 1) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        let path = session.file("damaged.parquet", &damaged);
        if let Err(error) = session.run(&format!("SELECT count(*), sum(n), max(s) FROM {}", quoted(&path))) {
            assert_ne!(error.kind(), ErrorKind::Internal, "byte {at}: {error:?}");
            assert!(!error.message().contains("unwrap"), "byte {at}: {error:?}");
        }
        session.check_alive();
    }
}

// ---- limits -----------------------------------------------------------------------------------------------

#[test]
fn the_memory_limit_is_an_error_and_then_over() {
    let session = Session::new();
    session.run("SET memory_limit = '20MB'").expect("a limit");
    let join = "SELECT max(a.value) FROM generate_series(1, 3000000) a(value) JOIN generate_series(1, 3000000) b(value) ON a.value = b.value";
    session.run(join).expect("goes to files");
    session.run("SET temp_directory = ''").expect("a setting");
    for sql in [
        join,
        "SELECT count(*) FROM (SELECT value, count(*) FROM generate_series(1, 3000000) v(value) GROUP BY value) q",
        "SELECT count(*) FROM (SELECT value FROM generate_series(1, 3000000) v(value) ORDER BY value % 1000 OFFSET 1) q",
        "CREATE TABLE large AS SELECT value, 'text ' || (value * 7919) AS s FROM generate_series(1, 3000000) v(value)",
        "SELECT value, 'text ' || value FROM generate_series(1, 3000000) v(value)",
    ] {
        let error = session.error(sql);
        assert_eq!(error.kind(), ErrorKind::Resource, "{sql}: {error:?}");
        says(&error, &["memory_limit"]);
    }
    // Binding a long statement needs memory as well.
    let list: Vec<String> = (0..60_000).map(|i| i.to_string()).collect();
    let error = session.error(&format!("SELECT answer FROM kept WHERE answer IN ({})", list.join(",")));
    assert_eq!(error.kind(), ErrorKind::Resource, "{error:?}");
    says(&error, &["memory_limit"]);
    session.run("SET memory_limit = '2GB'").expect("a limit");
    session
        .run("SELECT count(*) FROM (SELECT value FROM generate_series(1, 100000) v(value) GROUP BY value) q")
        .expect("fits");
}

#[test]
fn a_statement_stops_when_it_is_cancelled() {
    let session = Session::new();
    for sql in [
        "SELECT count(*) FROM generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) WHERE x * y % 1000003 = 7",
        "SELECT sum(x % 7) FROM generate_series(1, 100000000000) a(x)",
        "SELECT count(*) FROM generate_series(1, 100000) a(x) JOIN generate_series(1, 100000) b(y) ON x % 3 = y % 3",
        "SELECT max(length(repeat('x', 100000 + x % 7))) FROM generate_series(1, 10000000) a(x)",
    ] {
        let flag = session.connection.cancel_flag();
        let raised = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            let now = Instant::now();
            flag.raise();
            now
        });
        let error = session.fails(sql);
        let stopped = Instant::now();
        let waited = stopped.duration_since(raised.join().expect("the thread raised the flag"));
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{sql}: {error:?}");
        // The promise is a tenth of a second, for an optimized build on an idle machine.
        assert!(waited < Duration::from_millis(1500), "{sql}: stopped after {waited:?}");
        session.check_alive();
    }
}
