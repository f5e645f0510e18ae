//! Databases that are read while another process writes to them, and files that a process opens several
//! times.
//!
//! The tests of `storage` place all kinds of writes between any two reads of a follower; here are real
//! processes and files, and what a user sees.

use entasis::{Config, Connection, Database, Value};
use entasis_testkit::scratch::Scratch;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The variables that turn a test into a child process of another test: the file, and for readers how long
/// they read.
const WRITES: &str = "ENTASIS_BESIDE_WRITES";
const READS: &str = "ENTASIS_BESIDE_READS";
/// How long processes read while another one writes, in milliseconds: `ENTASIS_BESIDE=60000` for longer runs.
const LASTS: &str = "ENTASIS_BESIDE";
const ACCOUNTS: i64 = 500;
const SUM: i64 = 1000 * ACCOUNTS;

fn open(path: &Path) -> Database {
    Database::open(path, Config::default()).expect("the file can be opened")
}

fn reading() -> Config {
    Config::new().with_read_only(true).with_threads(2)
}

fn read(path: &Path) -> Database {
    Database::open(path, reading()).expect("the file can be read")
}

fn refused(path: &Path, config: Config) -> String {
    Database::open(path, config).err().expect("it is refused").to_string()
}

fn run(connection: &Connection, statements: &[&str]) {
    for sql in statements {
        connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

fn numbers(connection: &Connection, sql: &str) -> Vec<i64> {
    let rows = connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let row = rows.row_values().next().unwrap_or_default();
    let number = |value: &Value| match value {
        Value::Integer(number) => *number as i64,
        Value::Null => -1,
        other => panic!("{other:?}"),
    };
    row.iter().map(number).collect()
}

/// Returns when a database is closed: upkeep may hold it a moment longer than its users.
fn wait_for_end(path: &Path) {
    while path.with_extension("db.wal").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn error(connection: &Connection, sql: &str) -> String {
    connection.execute(sql).err().unwrap_or_else(|| panic!("{sql} is done")).message().to_owned()
}

/// Starts another process: one of the tests below, which prints a line when it is ready.
fn process(test: &str, variables: &[(&str, &str)]) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    (child, said)
}

/// Not a test: writes to a file as fast as it can, until it is killed. In every state two tables have the
/// right sum, and a number of steps that only grows.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITES) else { return };
    let database = open(Path::new(&path));
    let connection = database.connect();
    if connection.table_schema("steps").is_none() {
        let fill = format!("INSERT INTO accounts SELECT i, 1000 FROM range({ACCOUNTS}) r(i)");
        run(
            &connection,
            &[
                "BEGIN",
                "CREATE TABLE accounts (id BIGINT PRIMARY KEY, amount BIGINT NOT NULL)",
                &fill,
                "CREATE TABLE moves (step BIGINT, amount BIGINT)",
                "CREATE TABLE steps (one INTEGER PRIMARY KEY, step BIGINT)",
                "INSERT INTO steps VALUES (1, 0)",
                "COMMIT",
            ],
        );
    }
    run(&connection, &["SET wal_autocheckpoint = '200kB'"]);
    let first = numbers(&connection, "SELECT step FROM steps")[0];
    println!("\nready");
    for step in first + 1.. {
        let (from, to) = (step * 7919 % ACCOUNTS, step * 104_729 % ACCOUNTS);
        let synchronous = ["off", "normal", "full"][(step / 100 % 3) as usize];
        run(
            &connection,
            &[
                &format!("SET synchronous = '{synchronous}'"),
                "BEGIN",
                &format!("UPDATE accounts SET amount = amount - 1 WHERE id = {from}"),
                &format!("UPDATE accounts SET amount = amount + 1 WHERE id = {to}"),
                &format!("INSERT INTO moves VALUES ({step}, 1), ({step}, -1)"),
                &format!("UPDATE steps SET step = {step} WHERE one = 1"),
                "COMMIT",
            ],
        );
        if step % 50 == 0 {
            // A table that is written to the file as a whole, and is dropped soon.
            let create =
                format!("CREATE OR REPLACE TABLE copied AS SELECT {step} AS step, amount FROM accounts");
            run(&connection, &[&create]);
        }
        match step % 700 {
            0 => run(&connection, &["VACUUM"]),
            350 => {
                run(&connection, &["CHECKPOINT", &format!("DELETE FROM moves WHERE step < {}", step - 500)])
            }
            _ => {}
        }
    }
}

/// Not a test: reads a file for a while, and panics if it sees an impossible state.
#[test]
fn reader() {
    let Ok(path) = std::env::var(READS) else { return };
    let lasts = std::env::var(LASTS).ok().and_then(|text| text.parse().ok()).unwrap_or(3000);
    let end = Instant::now() + Duration::from_millis(lasts);
    let database = read(Path::new(&path));
    let (connection, other) = (database.connect(), database.connect());
    run(&other, &["CREATE TEMP TABLE own (step BIGINT)"]);
    let (mut last, mut looks, mut changes) = (0, 0, 0);
    println!("\nready");
    while Instant::now() < end {
        let step = numbers(&connection, "SELECT step FROM steps WHERE one = 1")[0];
        assert!(step >= last, "step {step} behind {last}");
        run(&connection, &["BEGIN"]);
        let look = || {
            numbers(
                &connection,
                "SELECT (SELECT step FROM steps), (SELECT max(step) FROM moves), \
                 (SELECT sum(amount) FROM accounts), (SELECT sum(amount) FROM moves), \
                 (SELECT count(*) FROM accounts)",
            )
        };
        let state = look();
        let [now, moved, sum, moves, accounts] = state[..] else { panic!("{state:?}") };
        assert!(now >= step && (moved == now || now == 0), "{state:?} behind {step}");
        assert!(sum == SUM && moves <= 0 && accounts == ACCOUNTS, "{state:?}");
        // It is copied every fifty steps, unless its process was killed just then.
        if now >= 200 {
            let copied = "SELECT min(step), max(step), sum(amount), count(*) FROM copied";
            let copied = numbers(&connection, copied);
            let [least, most, sum, count] = copied[..] else { panic!("{copied:?}") };
            assert!(least == most && most <= now && now - most < 200, "{copied:?} in {now}");
            assert!(sum == SUM && count == ACCOUNTS, "{copied:?}");
        }
        assert_eq!(look(), state, "a transaction sees one moment");
        last = now;
        changes += i64::from(last > step);
        run(&connection, &["COMMIT"]);
        let insert = format!("INSERT INTO own VALUES ({last})");
        run(&other, &[&insert]);
        looks += 1;
    }
    assert_eq!(numbers(&other, "SELECT count(*) FROM own"), [looks]);
    assert!(error(&other, "INSERT INTO moves VALUES (1, 1)").contains("opened read-only"));
    println!("\nread {looks} {changes} {last}");
}

fn wait_for(said: &mut BufReader<ChildStdout>, start: &str) -> String {
    let mut lines = said.lines().map_while(Result::ok);
    lines.find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("a process has not said {start}"))
}

#[test]
fn processes_read_while_one_writes() {
    let scratch = Scratch::new();
    let path = scratch.path("my.db");
    let text = path.to_str().expect("a path of the test");
    let (mut writing, mut said) = process("beside::writer", &[(WRITES, text)]);
    wait_for(&mut said, "ready");
    let mut readers: Vec<_> = (0..3).map(|_| process("beside::reader", &[(READS, text)])).collect();
    readers.iter_mut().for_each(|(_, said)| _ = wait_for(said, "ready"));
    // The error for a second writer names the first.
    let message = refused(&path, Config::default());
    assert!(message.contains(&format!("is in use by process {}", writing.id())), "{message}");
    assert!(message.contains("open it read-only"), "{message}");
    // The writer is killed, and another one continues, while they read.
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(700));
        writing.kill().unwrap();
        writing.wait().unwrap();
        (writing, said) = process("beside::writer", &[(WRITES, text)]);
        wait_for(&mut said, "ready");
    }
    for (reader, said) in &mut readers {
        let read = wait_for(said, "read ");
        let counts: Vec<i64> = read.split(' ').skip(1).map(|text| text.parse().unwrap()).collect();
        assert!(counts[0] > 10 && counts[2] > 0, "{read}");
        assert!(reader.wait().unwrap().success());
    }
    writing.kill().unwrap();
    writing.wait().unwrap();
    let sums = "SELECT sum(amount), count(*) FROM accounts";
    assert_eq!(numbers(&open(&path).connect(), sums), [SUM, ACCOUNTS]);
}

/// Not a test: follows commands, line by line.
#[test]
fn servant() {
    let Some(path) = std::env::var_os("ENTASIS_BESIDE_SERVES") else { return };
    let mut database = Some(open(Path::new(&path)));
    println!("\nready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.as_str() {
            "close" => database = None,
            "open" => database = Some(open(Path::new(&path))),
            sql => run(&database.as_ref().expect("it is open").connect(), &[sql]),
        }
        println!("\ndone");
        std::io::stdout().flush().unwrap();
    }
}

struct Servant {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Servant {
    fn new(path: &Path) -> Servant {
        let text = path.to_str().expect("a path of the test");
        let (child, mut said) = process("beside::servant", &[("ENTASIS_BESIDE_SERVES", text)]);
        wait_for(&mut said, "ready");
        Servant { child, said }
    }

    /// Returns when the command has been done.
    fn does(&mut self, what: &str) {
        writeln!(self.child.stdin.as_mut().expect("it is piped"), "{what}").unwrap();
        wait_for(&mut self.said, "done");
    }
}

impl Drop for Servant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_transaction_sees_what_was_committed_before() {
    let scratch = Scratch::new();
    let path = scratch.path("my.db");
    let mut writer = Servant::new(&path);
    writer.does("CREATE TABLE t (k INTEGER PRIMARY KEY, v VARCHAR)");
    let database = read(&path);
    let (one, other) = (database.connect(), database.connect());
    assert_eq!(numbers(&one, "SELECT count(*) FROM t"), [0]);
    writer.does("INSERT INTO t VALUES (1, 'one'), (2, 'two')");
    assert_eq!(numbers(&one, "SELECT k FROM t WHERE k = 2"), [2]);
    // A transaction continues to see what it saw.
    run(&one, &["BEGIN"]);
    writer.does("DELETE FROM t WHERE k = 1");
    assert_eq!(numbers(&one, "SELECT count(*) FROM t"), [2]);
    assert_eq!(numbers(&other, "SELECT count(*) FROM t"), [1]);
    run(&one, &["COMMIT"]);
    assert_eq!(numbers(&one, "SELECT count(*) FROM t"), [1]);
    // Names, definitions, views, indexes and sequences.
    writer.does("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7");
    writer.does("CREATE VIEW doubled AS SELECT 2 * w AS w FROM t");
    writer.does("CREATE INDEX by_w ON t (w)");
    writer.does("CREATE SEQUENCE s START 10");
    assert_eq!(numbers(&one, "SELECT w FROM doubled"), [14]);
    assert!(error(&one, "SELECT nextval('s')").contains("the database my was opened read-only"));
    // However the writer ends and starts again, and whatever it does to the file.
    writer.does("close");
    assert_eq!(numbers(&one, "SELECT w FROM doubled"), [14]);
    writer.does("open");
    for number in 0..3 {
        writer.does(&format!(
            "INSERT INTO t SELECT 100 + i, 'more', 1 FROM range({number}0000, {number}9999) r(i)"
        ));
        assert_eq!(numbers(&one, "SELECT count(*) FROM t"), [1 + 9999 * (number + 1)]);
        writer.does("VACUUM");
        writer.does("close");
        writer.does("open");
    }
    writer.does("DELETE FROM t WHERE k > 2");
    writer.does("VACUUM");
    assert_eq!(numbers(&one, "SELECT count(*), sum(w) FROM t"), [1, 7]);
    // A process that is killed leaves what it has committed.
    writer.does("UPDATE t SET w = 8");
    drop(writer);
    assert_eq!(numbers(&one, "SELECT w FROM t WHERE w = 8"), [8]);
    let mut writer = Servant::new(&path);
    writer.does("UPDATE t SET w = 9");
    assert_eq!(numbers(&one, "SELECT w FROM doubled"), [18]);
    // Another file of that name, and none.
    drop(writer);
    let backup = format!("BACKUP TO '{}'", scratch.path("copy.db").display());
    run(&one, &["CREATE TEMP TABLE own AS SELECT 3 AS a", &backup]);
    let mut elsewhere = Servant::new(&scratch.path("copy.db"));
    elsewhere.does("UPDATE t SET w = 20");
    elsewhere.does("close");
    wait_for_end(&scratch.path("copy.db"));
    std::fs::remove_file(scratch.path("my.db.wal")).unwrap();
    std::fs::rename(scratch.path("copy.db"), &path).unwrap();
    assert_eq!(numbers(&one, "SELECT w, a FROM doubled, own"), [40, 3]);
    std::fs::remove_file(&path).unwrap();
    assert!(error(&one, "SELECT 1").contains("my.db is not there"));
}

#[test]
fn what_is_only_read_is_not_written() {
    let scratch = Scratch::new();
    let path = scratch.path("my.db");
    assert!(refused(&path, reading()).contains("the file does not exist"));
    assert!(!path.exists());
    assert!(refused(Path::new(":memory:"), reading()).contains("in memory cannot be opened read-only"));
    run(
        &open(&path).connect(),
        &[
            "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE VIEW w AS SELECT 1 AS a",
        ],
    );
    wait_for_end(&path);
    let before = std::fs::read(&path).unwrap();
    let database = read(&path);
    let connection = database.connect();
    let changes = [
        "INSERT INTO t VALUES (2, 2)",
        "INSERT INTO t SELECT 3, 3",
        "UPDATE t SET v = 2 WHERE k = 1",
        "UPDATE t SET v = v + 1",
        "DELETE FROM t WHERE k = 7",
        "DELETE FROM t",
        "TRUNCATE t",
        "CREATE TABLE u (a INTEGER)",
        "CREATE TABLE u AS SELECT 1 AS a",
        "CREATE INDEX by_v ON t (v)",
        "CREATE VIEW x AS SELECT 1 AS a",
        "CREATE SCHEMA s",
        "CREATE SEQUENCE s",
        "ALTER TABLE t ADD COLUMN x INTEGER",
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE t",
        "DROP VIEW w",
    ];
    for sql in changes.into_iter().chain(["CHECKPOINT", "VACUUM"]) {
        assert_eq!(error(&connection, sql), "the database my was opened read-only", "{sql}");
    }
    for sql in changes {
        run(&connection, &["BEGIN"]);
        assert_eq!(error(&connection, sql), "the database my was opened read-only", "{sql}");
        run(&connection, &["SELECT * FROM t", "COMMIT"]);
    }
    // Temporary objects belong to the connection.
    run(
        &connection,
        &[
            "CREATE TEMP TABLE own (k INTEGER PRIMARY KEY, v INTEGER)",
            "INSERT INTO own SELECT * FROM t",
            "INSERT INTO own VALUES (2, 2)",
            "UPDATE own SET v = 5 WHERE k = 2",
            "CREATE TEMP VIEW joined AS SELECT t.v + own.v AS v FROM t, own",
            "CREATE TEMP SEQUENCE counted",
            "BEGIN",
            "DELETE FROM own WHERE k = 1",
            "COMMIT",
        ],
    );
    assert_eq!(numbers(&connection, "SELECT v, nextval('counted') FROM joined"), [6, 1]);
    assert_eq!(numbers(&connection, "SELECT count(*) FROM t"), [1]);
    let shown = "SELECT CAST(count(*) AS INTEGER) FROM t WHERE k = 1";
    assert_eq!(numbers(&connection, shown), [1]);
    run(&connection, &["PRAGMA integrity_check"]);
    drop((connection, database));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(scratch.directory()).unwrap().count(), 1);
}

#[test]
fn a_file_is_open_once_in_a_process() {
    let scratch = Scratch::new();
    let path = scratch.path("my.db");
    let (one, other) = (open(&path), open(&path));
    run(&one.connect(), &["CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)"]);
    assert_eq!(numbers(&other.connect(), "SELECT a FROM t"), [1]);
    // By any of its names, and as an attached database of several connections.
    std::os::unix::fs::symlink(&path, scratch.path("link.db")).unwrap();
    assert_eq!(numbers(&open(&scratch.path("link.db")).connect(), "SELECT a FROM t"), [1]);
    let memory = Database::in_memory(Config::default()).unwrap();
    let (first, second) = (memory.connect(), memory.connect());
    let attach = format!("ATTACH '{}' AS b", path.display());
    run(&first, &[&attach, "INSERT INTO b.t VALUES (2)"]);
    run(&second, &[&attach, "INSERT INTO b.t VALUES (3)"]);
    assert_eq!(numbers(&one.connect(), "SELECT sum(a) FROM t"), [6]);
    // All of them write, or all only read.
    let message = refused(&path, reading());
    assert!(
        message.contains("is open in this process and written to: it cannot be opened read-only as well"),
        "{message}"
    );
    assert!(
        error(&second, &format!("ATTACH '{}' AS c (READ_ONLY)", path.display()))
            .contains("is open in this process")
    );
    drop((one, other));
    run(&first, &["DETACH b"]);
    assert_eq!(numbers(&second, "SELECT sum(a) FROM b.t"), [6]);
    drop((first, second, memory));
    // Opened again when the last one is gone.
    let (reader, another) = (read(&path), read(&path));
    assert_eq!(numbers(&reader.connect(), "SELECT sum(a) FROM t"), [6]);
    let message = refused(&path, Config::default());
    assert!(
        message.contains("is open in this process and only read: it cannot be opened to be written as well"),
        "{message}"
    );
    let connection = Database::in_memory(Config::default()).unwrap().connect();
    run(&connection, &[&format!("ATTACH '{}' AS b (READ_ONLY)", path.display())]);
    assert_eq!(numbers(&connection, "SELECT sum(a) FROM b.t"), [6]);
    assert!(error(&connection, "INSERT INTO b.t VALUES (4)").contains("READ_ONLY"));
    drop((reader, another, connection));
    run(&open(&path).connect(), &["INSERT INTO t VALUES (4)"]);
    // Threads that open it at the same time get the same database.
    let opened: Vec<Database> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| open(&path))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    run(&opened[0].connect(), &["INSERT INTO t VALUES (5)"]);
    opened.iter().for_each(|database| assert_eq!(numbers(&database.connect(), "SELECT sum(a) FROM t"), [15]));
}

#[test]
fn an_attached_database_is_followed() {
    let scratch = Scratch::new();
    let path = scratch.path("other.db");
    let mut writer = Servant::new(&path);
    writer.does("CREATE TABLE t (a INTEGER)");
    let connection = Database::in_memory(Config::default()).unwrap().connect();
    run(&connection, &[&format!("ATTACH '{}' (READ_ONLY)", path.display()), "CREATE TABLE own (a INTEGER)"]);
    for number in 1..20 {
        writer.does(&format!("INSERT INTO t VALUES ({number})"));
        assert_eq!(numbers(&connection, "SELECT count(*) FROM other.t"), [number]);
        run(&connection, &["INSERT INTO own SELECT max(a) FROM other.t"]);
    }
    assert_eq!(numbers(&connection, "SELECT sum(a) FROM own"), [190]);
    run(&connection, &["BEGIN"]);
    writer.does("DROP TABLE t");
    writer.does("CHECKPOINT");
    assert_eq!(numbers(&connection, "SELECT count(*) FROM own"), [19]);
    run(&connection, &["COMMIT"]);
    assert!(connection.execute("SELECT * FROM other.t").is_err());
}
