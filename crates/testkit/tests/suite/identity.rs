//! A database is a file and a process: whatever becomes of the names of its files, nothing of others is
//! overwritten, truncated or removed, and nothing that was acknowledged is lost.
//!
//! The first test crosses what may happen to the names with what a program does next and how it ends. Each
//! case is a process of its own ([`program`]), because it changes its directory, or is killed. The directory
//! has files of others, and databases of others under the names that are to be confused: afterwards all of
//! them must have the bytes that they had. What the program was told is committed must be in the file that it
//! has opened, wherever that is now.
//!
//! Forked processes are in `crates/python/tests/test_fork.py`: Rust's own programs seldom fork.

use entasis::{Config, Connection, Database, Value};
use entasis_testkit::scratch::Scratch;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The variable that turns a test into the process of a case.
const CASE: &str = "ENTASIS_IDENTITY";

fn open(path: impl AsRef<Path>) -> Database {
    Database::open(path, Config::default()).expect("the file can be opened")
}

fn refused(path: impl AsRef<Path>) -> String {
    Database::open(path, Config::default()).err().expect("it is refused").to_string()
}

fn run(connection: &Connection, sql: &str) {
    connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn keys(connection: &Connection) -> Vec<i128> {
    let rows = connection.execute("SELECT k FROM t ORDER BY k").expect("its rows");
    let key = |row: Vec<Value>| if let Value::Integer(key) = row[0] { key } else { panic!("a number") };
    rows.row_values().map(key).collect()
}

/// A database with some rows. If it `crashed`, it has a log, too, in which its rows are.
fn make(path: &Path, rows: i128, crashed: bool) {
    if !crashed {
        let connection = open(path).connect();
        run(&connection, "CREATE TABLE t (k INTEGER PRIMARY KEY)");
        run(&connection, &format!("INSERT INTO t SELECT i FROM range({rows}) r(i)"));
        return;
    }
    let mut other = spawn(&["make", &path.display().to_string(), &rows.to_string()]);
    assert!(other.wait_for("made"), "{}", path.display());
    other.kill();
}

/// A process of this test.
struct Other {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Other {
    /// True when it has said this; false if it has ended.
    fn wait_for(&mut self, text: &str) -> bool {
        self.lines.by_ref().map_while(Result::ok).any(|line| line.contains(text))
    }

    fn kill(&mut self) {
        self.child.kill().expect("it is a process of this test");
        self.child.wait().expect("it is a process of this test");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(case: &[&str]) -> Other {
    let mut child = Command::new(std::env::current_exe().expect("a test has one"))
        .args(["--exact", "identity::program", "--nocapture", "--test-threads=1"])
        .env(CASE, case.join("\n"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test once more");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    Other { child, lines }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").expect("the test listens");
    out.flush().expect("the test listens");
}

/// Not a test, but the process of a case.
#[test]
fn program() {
    let Ok(case) = std::env::var(CASE) else { return };
    let case: Vec<&str> = case.split('\n').collect();
    match case[..] {
        ["make", path, rows] => {
            let connection = open(path).connect();
            run(&connection, "CREATE TABLE t (k INTEGER PRIMARY KEY)");
            run(&connection, &format!("INSERT INTO t SELECT i FROM range({rows}) r(i)"));
            say("made");
            let _ = std::io::stdin().lines().next();
        }
        ["hold", path] => {
            let _database = open(path);
            say("holds");
            let _ = std::io::stdin().lines().next();
        }
        [event, action, end, directory] => {
            std::env::set_current_dir(directory).expect("the directory of the test");
            one_case(event, action, end);
        }
        _ => panic!("{case:?}"),
    }
}

// ---- what happens to the names ----------------------------------------------------------------------------

/// What becomes of the names `my.db` and `my.db.wal` while the database is open.
const EVENTS: [&str; 12] = [
    "nothing",
    "the program changes its directory",
    "both files are moved",
    "both files are moved, and others are put there",
    "the data file is moved",
    "the data file is moved, and another is put there",
    "it was opened by a symbolic link",
    "it was opened by a hard link",
    "the data file is removed",
    "the log is removed",
    "both are removed, and others are put there",
    "the log is replaced",
];

/// What the program does then.
const ACTIONS: [&str; 7] = ["nothing", "write", "checkpoint", "back up", "attach", "reopen", "load much"];

fn name_of(event: &str) -> &'static str {
    match event {
        "it was opened by a symbolic link" => "links/symbolic.db",
        "it was opened by a hard link" => "hard.db",
        _ => "my.db",
    }
}

fn happens(event: &str) {
    let rename = |from: &str, to: &str| fs::rename(from, to).expect("it is there");
    let others = |name: &str| {
        fs::rename(format!("victim/put{name}"), format!("my.db{name}")).expect("the others' files are there");
    };
    match event {
        "nothing" | "it was opened by a symbolic link" | "it was opened by a hard link" => {}
        "the program changes its directory" => std::env::set_current_dir("victim").expect("it is there"),
        "the data file is moved" => rename("my.db", "moved.db"),
        "the data file is moved, and another is put there" => {
            rename("my.db", "moved.db");
            others("");
        }
        "both files are moved" | "both files are moved, and others are put there" => {
            rename("my.db", "moved.db");
            rename("my.db.wal", "moved.db.wal");
            if event.ends_with("put there") {
                others("");
                others(".wal");
            }
        }
        "the data file is removed" => fs::remove_file("my.db").expect("it is there"),
        "the log is removed" => fs::remove_file("my.db.wal").expect("it is there"),
        "both are removed, and others are put there" => {
            others("");
            others(".wal");
        }
        "the log is replaced" => others(".wal"),
        _ => panic!("{event}"),
    }
}

fn one_case(event: &str, action: &str, end: &str) {
    let database = open(name_of(event));
    let connection = database.connect();
    run(&connection, "CREATE TABLE t (k INTEGER PRIMARY KEY)");
    run(&connection, "CHECKPOINT");
    for k in 0..3 {
        run(&connection, &format!("INSERT INTO t VALUES ({k})"));
        say(&format!("before {k}"));
    }
    happens(event);
    let write = |from: i128, sql: &str| match connection.execute(sql) {
        Ok(_) => say(&format!("after {from}")),
        Err(error) => say(&format!("refused {error}")),
    };
    match action {
        "nothing" => {}
        "write" => (3..6).for_each(|k| write(k, &format!("INSERT INTO t VALUES ({k})"))),
        "load much" => write(3, "INSERT INTO t SELECT i + 3 FROM range(300000) r(i)"),
        "checkpoint" => match connection.execute("CHECKPOINT") {
            Ok(_) => say("checkpoint"),
            Err(error) => say(&format!("refused {error}")),
        },
        "back up" => match connection.execute("BACKUP TO 'saved.db'") {
            Ok(_) => say(&format!("saved {}", fs::canonicalize("saved.db").expect("it is there").display())),
            Err(error) => panic!("a backup needs none of the names: {error}"),
        },
        "attach" => {
            let path =
                fs::canonicalize(if Path::new("other.db").exists() { "other.db" } else { "../other.db" });
            let path = path.expect("it is there");
            run(&connection, &format!("ATTACH '{}' AS other (READ_ONLY)", path.display()));
            run(&connection, "SELECT count(*) FROM other.t");
            run(&connection, "DETACH other");
        }
        "reopen" => {
            let again = Database::open("my.db", Config::new().with_read_only(true));
            say(&format!("refused {}", again.is_err()));
        }
        _ => panic!("{action}"),
    }
    match end {
        "killed" => {
            say("done");
            // The other process kills this one.
            let _ = std::io::stdin().lines().next();
        }
        _ => {
            drop(connection);
            drop(database);
            say("done");
        }
    }
}

/// Files below a directory by inode, with their paths and bytes.
fn snapshot(directory: &Path, files: &mut BTreeMap<u64, (Vec<PathBuf>, Vec<u8>)>) {
    for entry in fs::read_dir(directory).expect("the directory of the test") {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        if metadata.is_dir() {
            snapshot(&path, files);
        } else if metadata.is_file() {
            let bytes = fs::read(&path).expect("it can be read");
            files.entry(metadata.ino()).or_insert_with(|| (Vec::new(), bytes)).0.push(path);
        }
    }
}

fn all_files(directory: &Path) -> BTreeMap<u64, (Vec<PathBuf>, Vec<u8>)> {
    let mut files = BTreeMap::new();
    snapshot(directory, &mut files);
    files
}

fn others_around(directory: &Path) {
    fs::create_dir(directory.join("victim")).expect("a directory");
    fs::create_dir(directory.join("links")).expect("a directory");
    // Opened by whoever is confused about names, and put in the place of the own files.
    make(&directory.join("victim/my.db"), 7, true);
    make(&directory.join("victim/put"), 11, true);
    make(&directory.join("other.db"), 5, false);
    make(&directory.join("my.db.new"), 5, false);
    for name in ["notes.txt", "victim/notes.txt", "my.db.tmp", "links/symbolic.db.wal"] {
        fs::write(directory.join(name), "precious ".repeat(100)).expect("a file");
    }
}

fn check_case(event: &str, action: &str, end: &str) {
    let scratch = Scratch::new();
    let directory = scratch.directory().canonicalize().expect("it is there");
    others_around(&directory);
    drop(open(directory.join("my.db")));
    symlink("../my.db", directory.join("links/symbolic.db")).expect("a link");
    if event == "it was opened by a hard link" {
        fs::hard_link(directory.join("my.db"), directory.join("hard.db")).expect("a link");
    }
    let data = fs::metadata(directory.join("my.db")).expect("it is there").ino();
    let mut others = all_files(&directory);
    others.remove(&data);
    let case = format!("{event}; then {action}; {end}");

    let mut process = spawn(&[event, action, end, &directory.display().to_string()]);
    let (mut told, mut after, mut refusals, mut has_checkpoint) = (Vec::new(), 0, 0, false);
    for line in process.lines.by_ref().map_while(Result::ok) {
        let number = |text: &str| text.trim().parse::<i128>().expect("a key");
        // The harness may have begun the line.
        if let Some((_, key)) = line.split_once("before ") {
            told.push(number(key));
        } else if let Some((_, key)) = line.split_once("after ") {
            after += 1;
            let last = if action == "load much" { 300_002 } else { number(key) };
            told.extend([number(key), last]);
        } else if line.contains("refused ") {
            refusals += 1;
        } else if line.contains("checkpoint") {
            has_checkpoint = true;
        } else if line.contains("done") {
            break;
        }
    }
    assert_eq!(told[..3], [0, 1, 2], "{case}: it began");
    match end {
        "killed" => process.kill(),
        _ => assert!(process.child.wait().expect("it ends").success(), "{case}"),
    }

    let now = all_files(&directory);
    for (inode, (paths, bytes)) in &others {
        let there = now.get(inode).unwrap_or_else(|| panic!("{case}: {paths:?} is gone"));
        assert!(there.1 == *bytes, "{case}: {paths:?}, now {:?}, has changed", there.0);
    }
    assert!(
        !now.values().any(|(paths, _)| paths[0].to_string_lossy().contains(".new-")),
        "{case}: left over"
    );

    let takes_part = ["write", "load much"].contains(&action);
    let Some((paths, _)) = now.get(&data) else {
        // Nobody can find anything that is written now.
        assert!(after == 0 && (!takes_part || refusals > 0), "{case}: {after} were acknowledged");
        return;
    };
    // By the name it has now, beside which its log is put if it is elsewhere.
    let path = paths.iter().find(|path| path.ends_with("my.db")).unwrap_or(&paths[0]);
    let log = PathBuf::from(format!("{}.wal", path.display()));
    let is_log_lost = event.starts_with("the log is");
    if is_log_lost {
        assert_eq!(after, 0, "{case}: without its log");
        // What another has put there is moved away.
        if log.exists() {
            fs::rename(&log, directory.join("away")).expect("it is there");
        }
        if end == "killed" {
            let message = refused(path);
            assert!(message.contains("is missing") && message.contains("ALLOW_MISSING_LOG"), "{message}");
            if !has_checkpoint {
                told.clear();
            }
        }
    }
    let is_elsewhere = event.starts_with("the data file is moved");
    if is_elsewhere && directory.join("my.db.wal").exists() {
        assert!(end == "killed", "{case}: its log is there still");
        fs::rename(directory.join("my.db.wal"), &log).expect("it is there");
    }
    if event.ends_with("put there") && action == "write" {
        assert!(after == 0 && refusals == 3, "{case}: {after} were acknowledged, {refusals} refused");
    }
    let config = Config::new().with_missing_log_allowed(is_log_lost);
    let database = Database::open(path, config).unwrap_or_else(|error| panic!("{case}: {error}"));
    let there = keys(&database.connect());
    let missing: Vec<_> = told.iter().filter(|key| !there.contains(key)).collect();
    assert!(missing.is_empty(), "{case}: lost {missing:?}, there are {} rows", there.len());
}

#[test]
fn whatever_happens_to_the_names_others_keep_their_files_and_nothing_is_lost() {
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                for (number, event) in EVENTS.into_iter().enumerate() {
                    for (other, action) in ACTIONS.into_iter().enumerate() {
                        if (number + other) % 2 == half {
                            check_case(event, action, "killed");
                            check_case(event, action, "closed");
                        }
                    }
                }
            });
        }
    });
}

// ---- one database, whatever it is called
// --------------------------------------------------------------------

#[test]
fn two_names_of_a_file_are_one_database() {
    let scratch = Scratch::new();
    let directory = scratch.directory().canonicalize().expect("it is there");
    let path = directory.join("my.db");
    make(&path, 3, true);
    fs::create_dir(directory.join("d")).expect("a directory");
    symlink(&path, directory.join("d/absolute.db")).expect("a link");
    symlink("../my.db", directory.join("d/relative.db")).expect("a link");
    symlink("d/relative.db", directory.join("twice.db")).expect("a link");
    symlink("d", directory.join("e")).expect("a link");
    fs::hard_link(&path, directory.join("hard.db")).expect("a link");
    let names =
        ["my.db", "d/../my.db", "d/absolute.db", "d/relative.db", "twice.db", "e/relative.db", "hard.db"];
    let mut expected = 3;
    for first in names {
        for second in names {
            let one = open(directory.join(first)).connect();
            let other = open(directory.join(second)).connect();
            run(&one, &format!("INSERT INTO t VALUES ({expected})"));
            expected += 1;
            assert_eq!(keys(&other).len() as i128, expected, "{first}, {second}");
            drop((one, other));
            assert!(!directory.join("my.db.wal").exists(), "{first}, {second}: it is closed");
        }
        // A process that is killed leaves the log beside the file, by whatever name it opened it.
        let mut other = spawn(&["hold", &directory.join(first).display().to_string()]);
        assert!(other.wait_for("holds"), "{first}");
        for second in names {
            let message = refused(directory.join(second));
            assert!(message.contains(&format!("is in use by process {}", other.child.id())), "{message}");
        }
        other.kill();
        for second in names {
            let reading = Config::new().with_read_only(true);
            let reading = Database::open(directory.join(second), reading).expect("it can be read");
            assert_eq!(keys(&reading.connect()).len() as i128, expected, "{first}, {second}");
        }
    }
    assert!(!fs::exists(directory.join("d/absolute.db.wal")).expect("it can be seen"));
}

#[test]
fn a_dangling_link_names_the_file_that_is_created() {
    let scratch = Scratch::new();
    symlink("target.db", scratch.path("link.db")).expect("a link");
    make(&scratch.path("link.db"), 3, true);
    assert!(scratch.path("target.db").is_file() && scratch.path("target.db.wal").is_file());
    assert!(fs::symlink_metadata(scratch.path("link.db")).expect("it is there").is_symlink());
    assert_eq!(keys(&open(scratch.path("target.db")).connect()).len(), 3);
}

// ---- files of others
// -----------------------------------------------------------------------------------------

/// Puts something that is no log of a database there.
fn put_foreign(kind: &str, path: &Path) {
    match kind {
        "text" => fs::write(path, "precious text, not a log\n".repeat(100)).expect("a file"),
        "zeros, then text" => {
            let bytes = [vec![0; 5 << 20], b"precious".to_vec()].concat();
            fs::write(path, bytes).expect("a file");
        }
        "one byte" => fs::write(path, "x").expect("a file"),
        "a database" => make(path, 3, false),
        "the log of another" => {
            let other = path.with_file_name("another.db");
            make(&other, 3, true);
            fs::rename(path.with_file_name("another.db.wal"), path).expect("it is there");
        }
        "a directory" => fs::create_dir(path).expect("a directory"),
        "a pipe" => {
            let made = Command::new("mkfifo").arg(path).status().expect("there is such a program");
            assert!(made.success());
        }
        "a dangling link" => symlink("nowhere/at/all", path).expect("a link"),
        _ => panic!("{kind}"),
    }
}

const FOREIGN: [&str; 8] = [
    "text",
    "zeros, then text",
    "one byte",
    "a database",
    "the log of another",
    "a directory",
    "a pipe",
    "a dangling link",
];

#[test]
fn what_has_the_name_of_a_log_and_is_none_is_refused_and_left_alone() {
    for kind in FOREIGN {
        for state in ["new", "empty", "closed", "crashed"] {
            let scratch = Scratch::new();
            let (path, log) = (scratch.path("song"), scratch.path("song.wal"));
            match state {
                "new" => {}
                "empty" => fs::write(&path, "").expect("a file"),
                _ => make(&path, 2, state == "crashed"),
            }
            if log.exists() {
                fs::rename(&log, scratch.path("away")).expect("it is there");
            }
            put_foreign(kind, &log);
            let before = all_files(scratch.directory());
            let message = refused(&path);
            assert!(message.contains("song.wal"), "{state}, {kind}: {message}");
            if state == "new" {
                assert!(!path.exists(), "{kind}: it was created");
            }
            let now = all_files(scratch.directory());
            for (inode, (paths, bytes)) in before {
                let there = &now[&inode];
                // The owner is noted in a database that is opened.
                let is_same = if paths[0] == path { there.1.len() == bytes.len() } else { there.1 == bytes };
                assert!(there.0 == paths && is_same, "{state}, {kind}: {paths:?} has changed");
            }
            if state == "crashed" && !log.is_dir() {
                fs::rename(&log, scratch.path("foreign")).expect("it is there");
                fs::rename(scratch.path("away"), &log).expect("it is there");
                assert_eq!(keys(&open(&path).connect()).len(), 2, "{kind}");
            }
        }
    }
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    for kind in ["text", "zeros, then text", "one byte", "the log of another", "a directory", "a pipe"] {
        let scratch = Scratch::new();
        let path = scratch.path("song");
        put_foreign(kind, &path);
        let before = all_files(scratch.directory());
        let message = refused(&path);
        assert!(message.contains("song"), "{kind}: {message}");
        assert!(before == all_files(scratch.directory()), "{kind}: something has changed");
        assert!(!scratch.path("song.wal").exists(), "{kind}");
    }
    assert!(refused("/dev/null").contains("not a regular file"));
}

#[test]
fn names_beside_a_database_are_not_scratch() {
    let scratch = Scratch::new();
    for name in ["app.db.new", "copy.db.new", "app.db-wal", "app.db.tmp"] {
        make(&scratch.path(name), 9, false);
    }
    let before = all_files(scratch.directory());
    let connection = open(scratch.path("app.db")).connect();
    run(&connection, "CREATE TABLE t (k INTEGER)");
    run(&connection, &format!("BACKUP TO '{}'", scratch.path("copy.db").display()));
    run(&connection, &format!("BACKUP TO '{}' (OVERWRITE)", scratch.path("copy.db").display()));
    run(&connection, &format!("COPY t TO '{}'", scratch.path("app.db.csv").display()));
    drop(connection);
    let now = all_files(scratch.directory());
    for (inode, (paths, bytes)) in &before {
        assert!(now[inode].0 == *paths && now[inode].1 == *bytes, "{paths:?} has changed");
    }
    assert_eq!(now.len(), before.len() + 3);
}

// ---- statements that write files
// ----------------------------------------------------------------------------

#[test]
fn no_statement_writes_over_a_database_or_a_log() {
    let scratch = Scratch::new();
    let directory = scratch.directory().canonicalize().expect("it is there");
    let at = |name: &str| directory.join(name);
    let own = open(at("own.db"));
    let connection = own.connect();
    run(&connection, "CREATE TABLE t (k INTEGER PRIMARY KEY)");
    run(&connection, "INSERT INTO t SELECT i FROM range(4) r(i)");
    let reading = open(at("second.db"));
    let mut held = spawn(&["make", &at("held.db").display().to_string(), "6"]);
    assert!(held.wait_for("made"));
    make(&at("crashed.db"), 5, true);
    make(&at("closed.db"), 3, false);
    fs::create_dir(at("d")).expect("a directory");
    let files = [
        "own.db",
        "own.db.wal",
        "second.db",
        "second.db.wal",
        "held.db",
        "held.db.wal",
        "crashed.db",
        "crashed.db.wal",
        "closed.db",
    ];
    for file in files {
        symlink(at(file), at(&format!("d/{file}.symbolic"))).expect("a link");
        fs::hard_link(at(file), at(&format!("d/{file}.hard"))).expect("a link");
    }
    let inodes: Vec<u64> = files.map(|file| fs::metadata(at(file)).expect("it is there").ino()).into();
    for file in files {
        let aliases =
            [file.to_owned(), format!("d/../{file}"), format!("d/{file}.symbolic"), format!("d/{file}.hard")];
        for alias in aliases {
            let path = at(&alias).display().to_string();
            let mut statements = vec![
                format!("COPY t TO '{path}'"),
                format!("COPY (SELECT 1) TO '{path}' (FORMAT parquet)"),
                format!("EXPORT DATABASE '{path}'"),
                format!("BACKUP TO '{path}'"),
            ];
            if !["crashed.db", "closed.db"].contains(&file) {
                statements.push(format!("BACKUP TO '{path}' (OVERWRITE)"));
            }
            for sql in statements {
                assert!(connection.execute(&sql).is_err(), "{sql} succeeds");
            }
        }
    }
    let after: Vec<u64> = files.map(|file| fs::metadata(at(file)).expect("it is there").ino()).into();
    assert_eq!(inodes, after);
    drop((connection, own, reading));
    held.kill();
    for (file, rows) in [("own.db", 4), ("held.db", 6), ("crashed.db", 5), ("closed.db", 3)] {
        assert_eq!(keys(&open(at(file)).connect()).len(), rows, "{file}");
    }
}

#[test]
fn a_backup_replaces_a_database_with_its_log_and_nothing_else() {
    for (kind, log) in
        [("closed", "none"), ("crashed", "own"), ("closed", "text"), ("crashed", "the log of another")]
    {
        let scratch = Scratch::new();
        let (path, wal) = (scratch.path("x.db"), scratch.path("x.db.wal"));
        make(&path, 3, kind == "crashed");
        if !["none", "own"].contains(&log) {
            let _ = fs::remove_file(&wal);
            put_foreign(log, &wal);
        }
        let connection = Database::in_memory(Config::default()).expect("a database").connect();
        run(&connection, "CREATE TABLE t (k INTEGER)");
        let before = all_files(scratch.directory());
        let saved = connection.execute(&format!("BACKUP TO '{}' (OVERWRITE)", path.display()));
        if ["none", "own"].contains(&log) {
            saved.expect("nobody has it open");
            assert!(!wal.exists());
            assert!(keys(&open(&path).connect()).is_empty(), "{kind}, {log}");
        } else {
            let message = saved.expect_err("it could not be opened").to_string();
            assert!(message.contains("x.db.wal is there"), "{message}");
            assert!(before == all_files(scratch.directory()), "{kind}, {log}");
        }
    }
    // One for which a log is waiting that is not its own.
    let scratch = Scratch::new();
    fs::write(scratch.path("new.db.wal"), "precious").expect("a file");
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    let refused = connection.execute(&format!("BACKUP TO '{}'", scratch.path("new.db").display()));
    assert!(refused.is_err() && !scratch.path("new.db").exists());
}

// ---- a log that is lost
// ---------------------------------------------------------------------------------------

#[test]
fn the_last_checkpoint_can_be_opened_without_its_log() {
    let scratch = Scratch::new();
    let (path, log, away) = (scratch.path("my.db"), scratch.path("my.db.wal"), scratch.path("away"));
    {
        let connection = open(&path).connect();
        run(&connection, "CREATE TABLE t (k INTEGER PRIMARY KEY)");
        run(&connection, "INSERT INTO t VALUES (1), (2)");
    }
    let mut other = spawn(&["hold", &path.display().to_string()]);
    assert!(other.wait_for("holds"));
    other.kill();
    fs::rename(&log, &away).expect("it is there");
    let before = fs::read(&path).expect("it is there");
    let reading =
        |allow_missing_log| Config::new().with_read_only(true).with_missing_log_allowed(allow_missing_log);
    for _ in 0..2 {
        let message = refused(&path);
        assert!(
            message.contains("my.db.wal is missing") && message.contains("ALLOW_MISSING_LOG"),
            "{message}"
        );
        assert!(Database::open(&path, reading(false)).is_err());
        assert!(!log.exists(), "a failed opening leaves nothing");
    }
    let only_read = Database::open(&path, reading(true)).expect("its checkpoint is whole");
    assert_eq!(keys(&only_read.connect()), [1, 2]);
    drop(only_read);
    assert_eq!(fs::read(&path).expect("it is there").len(), before.len());
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    assert!(connection.execute(&format!("ATTACH '{}' AS d", path.display())).is_err());
    run(&connection, &format!("ATTACH '{}' AS d (ALLOW_MISSING_LOG)", path.display()));
    run(&connection, "INSERT INTO d.t VALUES (3)");
    run(&connection, "DETACH d");
    drop(connection);
    assert!(!log.exists());
    assert_eq!(keys(&open(&path).connect()), [1, 2, 3]);
    // The old log turns up: it is that of another time.
    let mut other = spawn(&["hold", &path.display().to_string()]);
    assert!(other.wait_for("holds"));
    other.kill();
    fs::rename(&log, scratch.path("right")).expect("it is there");
    fs::copy(&away, &log).expect("it is there");
    assert!(refused(&path).contains("does not have position"), "{}", refused(&path));
    fs::rename(scratch.path("right"), &log).expect("it is there");
    assert_eq!(keys(&open(&path).connect()), [1, 2, 3]);
}
