//! Crashes: random transactions on a disk that produces, before each of its operations, a copy as it would be
//! if the machine stopped there ([`FaultyDisk::at_each`]). Each of these copies is reopened, and has to
//! contain exactly one of the committed states: none before the last acknowledged commit, and none after the
//! one in progress.
//!
//! ```text
//! writer ──▶ statements ──▶ database ──▶ disk ──▶ at each operation: a copy, torn ──▶ checkers: reopen
//!   └────────▶ states: contents of all tables after each commit ──────────────────────────▲
//! ```
//! The state of a database is a text: all objects with their declarations, and the rows of tables and
//! indexes.
//!
//! With [`Faults::Syncs`] syncs fail now and then. The database is opened again on the same disk, whose cache
//! still shows what it will never write, and goes on from there, so that each crash behind that tells whether
//! something was acknowledged that relies on the cache.

use crate::random::Random;
use entasis::{Config, Database};
use entasis_storage::backend::{Backend, FaultyDisk, Operation};
use entasis_storage::file::{Access, DataFile, DatabaseId};
use entasis_storage::wal::Synchronous;
use entasis_storage::{Entry, Table};
use entasis_vector::{Error, ErrorKind, Result};
use std::collections::HashSet;
use std::fmt::Write;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Size of a segment of the log: small, so that segments are recycled, and crashes are cheap.
const SEGMENT_BYTES: u32 = 8192;
/// The most disks that wait for a checker.
const WAITING: usize = 16;
/// One in so many crashes also gets an integrity check.
const CHECKED: u64 = 8;
/// With failing syncs, one fails about every so many transactions.
const BETWEEN_FAILURES: usize = 12;
/// How often a database is opened whose syncs fail, or which upkeep still holds.
const OPENINGS: usize = 5000;
/// Time between two openings.
const PAUSE: Duration = Duration::from_millis(2);
/// The most tables, besides those that statements create briefly.
const TABLES: usize = 5;

/// What goes wrong before the machine stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// Nothing.
    None,
    /// Syncs fail, now and then.
    Syncs,
}

/// The result of a run.
#[derive(Debug, Default, Clone, Copy)]
pub struct Found {
    /// Crashes whose disks were reopened.
    pub crashes: u64,
    /// Acknowledged commits.
    pub commits: u64,
    /// Crashes that found the state after the last acknowledgement: of a commit in progress.
    pub ahead: u64,
    /// How often the database was opened again because a sync had failed.
    pub reopened: u64,
}

/// A disk as it was when the machine stopped.
struct Crash {
    disk: FaultyDisk,
    /// Number of commits acknowledged before.
    answered: usize,
    /// The operation that was about to be done.
    operation: u64,
}

/// Runs transactions of a seed until there were this many crashes, and checks each with `checkers` threads.
/// Commits are acknowledged as `synchronous` says; only under `full` must everything acknowledged be there.
///
/// # Errors
/// What is wrong, with the seed and the number of the operation.
pub fn run(
    seed: u64,
    crashes: u64,
    checkers: usize,
    synchronous: Synchronous,
    faults: Faults,
) -> std::result::Result<Found, String> {
    let disk = FaultyDisk::new(seed + 1);
    // Upkeep may hold the database for a while after it was dropped.
    disk.exclude();
    let database = open(&disk).map_err(|error| format!("seed {seed}: {error}"))?;
    let states = Arc::new(Mutex::new(vec![state(&database)]));
    let answered = Arc::new(AtomicUsize::new(0));
    let (send, receive) = sync_channel::<Crash>(WAITING);
    let (seen, counter) = (Arc::new(AtomicU64::new(0)), answered.clone());
    let operations = seen.clone();
    disk.at_each(move |disk| {
        let operation = operations.fetch_add(1, Ordering::Relaxed) + 1;
        // If one was wrong, no checker is left to receive them.
        let _ = send.send(Crash { disk, answered: counter.load(Ordering::SeqCst), operation });
    });
    let receive = Mutex::new(receive);
    let ahead = AtomicU64::new(0);
    let (states, answered, seen, reopened) = (&states, &answered, &seen, &AtomicU64::new(0));
    let result = thread::scope(|scope| {
        let checks: Vec<_> =
            (0..checkers.max(1)).map(|_| scope.spawn(|| check_all(&receive, states, &ahead))).collect();
        let writer = Writer { disk: &disk, states, answered, reopened, faults };
        // The last crashes happen while it is closed.
        let written = writer.write(database, (seed, synchronous), &|| seen.load(Ordering::Relaxed) < crashes);
        disk.at_each(|_| ());
        let mut result = written.map_err(|error| format!("seed {seed}: {error}"));
        for check in checks {
            let checked = check.join().unwrap_or_else(|_| Err("a panic while a crash was checked".into()));
            result = result.and(checked.map_err(|what| format!("seed {seed}, {what}")));
        }
        result
    });
    result.map(|()| Found {
        crashes: seen.load(Ordering::Relaxed),
        commits: answered.load(Ordering::Relaxed) as u64,
        ahead: ahead.load(Ordering::Relaxed),
        reopened: reopened.load(Ordering::Relaxed),
    })
}

fn open(disk: &FaultyDisk) -> Result<Database> {
    let file = Arc::new(disk.file("my.db"));
    let file = match file.length().map_err(|error| Error::io("no length", &error))? {
        0 => DataFile::create(file, DatabaseId(*b"a database of it"), SEGMENT_BYTES)?,
        _ => DataFile::open(file, Access::Write)?,
    };
    Database::on(file, Arc::new(disk.file("my.db.wal")), Config::new().with_threads(1))
}

// ---- what is checked --------------------------------------------------------------------------------------

/// The contents of a disk.
struct Opened {
    state: String,
    answered: usize,
    operation: u64,
}

fn check_all(
    crashes: &Mutex<Receiver<Crash>>,
    states: &Mutex<Vec<String>>,
    ahead: &AtomicU64,
) -> std::result::Result<(), String> {
    let result = check_each(crashes, states, ahead);
    // The disk waits until its crashes are received.
    while crashes.lock().is_ok_and(|crashes| crashes.recv().is_ok()) {}
    result
}

fn check_each(
    crashes: &Mutex<Receiver<Crash>>,
    states: &Mutex<Vec<String>>,
    ahead: &AtomicU64,
) -> std::result::Result<(), String> {
    // Disks with a commit that was not acknowledged to its writer.
    let mut later: Vec<Opened> = Vec::new();
    loop {
        let next = crashes.lock().map_err(|_| "another check has failed")?.recv();
        let is_last = next.is_err();
        if let Ok(crash) = next {
            let operation = crash.operation;
            later.push(opened(crash).map_err(|what| format!("operation {operation}: {what}"))?);
        }
        for opened in std::mem::take(&mut later) {
            let is_as_answered = compare(&opened, &states.lock().map_err(|_| "the writer has failed")?);
            match is_as_answered {
                Some(true) => {}
                Some(false) => _ = ahead.fetch_add(1, Ordering::Relaxed),
                None if !is_last => later.push(opened),
                None => return Err(format!("operation {}: {}", opened.operation, wrong(&opened, states))),
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

/// True if a disk has what was acknowledged, false if it also has the commit in progress.
fn compare(opened: &Opened, states: &[String]) -> Option<bool> {
    if states[opened.answered] == opened.state {
        return Some(true);
    }
    states.get(opened.answered + 1).filter(|next| **next == opened.state).map(|_| false)
}

fn wrong(opened: &Opened, states: &Mutex<Vec<String>>) -> String {
    let states = states.lock().map(|states| states.clone()).unwrap_or_default();
    let is = states.iter().position(|state| *state == opened.state);
    let is = is.map_or("a state that never was".to_owned(), |number| format!("the state after {number}"));
    let (found, answered) = (&opened.state, opened.answered);
    let expected = states.get(answered).map_or("", String::as_str);
    let differs = |one: &str, other: &str| {
        let other: HashSet<&str> = other.lines().collect();
        one.lines().filter(|line| !other.contains(line)).take(20).collect::<Vec<_>>().join("\n")
    };
    format!(
        "{answered} commits had been answered, and there is {is}\n-- too much:\n{}\n-- missing:\n{}",
        differs(found, expected),
        differs(expected, found)
    )
}

/// Reopens the disk, and writes to it.
fn opened(crash: Crash) -> std::result::Result<Opened, String> {
    let database = open(&crash.disk).map_err(|error| format!("it cannot be opened: {error}"))?;
    let state = state(&database);
    // It is writable as before: identity values are not used twice.
    let identity = "INSERT INTO identified (v) VALUES (0)";
    if state.contains("table identified\n") {
        database.connect().execute(identity).map_err(|error| format!("{identity}: {error}"))?;
    }
    if crash.operation.is_multiple_of(CHECKED) {
        let damage = database.connect().execute("PRAGMA integrity_check");
        let damage = damage.map_err(|error| format!("integrity_check: {error}"))?;
        let damage = format!("{:?}", damage.row_values().collect::<Vec<_>>());
        if !damage.contains("\"ok\"") {
            return Err(format!("integrity_check: {damage}"));
        }
    }
    drop(database);
    Ok(Opened { state, answered: crash.answered, operation: crash.operation })
}

/// The entire contents of a database, as a text. Also checks its trees.
fn state(database: &Database) -> String {
    let mut text = String::new();
    for entry in database.names().entries() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {}", entry.kind(), entry.name());
        match entry {
            Entry::Table(entry) => {
                let _ = writeln!(text, "  {:?}", entry.definition);
                rows_of(&entry.table, &mut text);
                for (key, index) in entry.definition.keys.iter().zip(&entry.indexes) {
                    if let Some(index) = index {
                        let _ = writeln!(text, "  by {}", key.name);
                        rows_of(index, &mut text);
                    }
                }
            }
            Entry::View(view) => _ = writeln!(text, "  {}", view.sql),
            Entry::Type(named) => _ = writeln!(text, "  {}", named.ty),
            Entry::Sequence(_) | Entry::Schema(_) => {}
        }
    }
    text
}

/// The columns of a table, and its rows in an order that depends only on their values.
fn rows_of(table: &Arc<Table>, text: &mut String) {
    let snapshot = table.snapshot();
    snapshot.check();
    let _ = writeln!(text, "  {:?}", snapshot.schema());
    let row = |row| {
        let columns = snapshot.schema().iter().enumerate();
        let values = columns.map(|(column, field)| snapshot.datum(row, column).value(field.ty));
        values.map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", ")
    };
    let mut rows: Vec<String> = snapshot.row_ids().map(row).collect();
    rows.sort_unstable();
    rows.iter().for_each(|row| _ = writeln!(text, "  {row}"));
}

// ---- what is written --------------------------------------------------------------------------------------

/// Commits transactions, and says which were answered.
struct Writer<'a> {
    disk: &'a FaultyDisk,
    states: &'a Mutex<Vec<String>>,
    answered: &'a AtomicUsize,
    reopened: &'a AtomicU64,
    faults: Faults,
}

impl Writer<'_> {
    /// Commits transactions while `goes_on` returns true.
    fn write(
        &self,
        mut database: Database,
        (seed, synchronous): (u64, Synchronous),
        goes_on: &dyn Fn() -> bool,
    ) -> Result<()> {
        let random = &mut Random::new(seed);
        let threshold = [4 << 10, 16 << 10, 64 << 10][random.below(3)];
        let connect = |database: &Database| {
            let connection = database.connect();
            connection.execute(&format!("SET synchronous = {synchronous}"))?;
            connection.execute(&format!("SET wal_autocheckpoint = '{threshold}'"))?;
            Ok::<_, Error>(connection)
        };
        let mut connection = connect(&database)?;
        let mut script = Script { random, tables: Vec::new(), made: 0 };
        while goes_on() {
            if self.faults == Faults::Syncs && script.random.below(BETWEEN_FAILURES) == 0 {
                self.disk.refuse(Operation::Sync, 1 + script.random.below(4) as u64, io::ErrorKind::Other);
            }
            let is_one = script.random.below(3) > 0;
            let statements = if is_one { vec![script.statement()] } else { script.transaction() };
            let done = statements.iter().try_for_each(|sql| connection.execute(sql).map(drop));
            if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::Io) {
                // What the transaction has made visible, whether or not it is in the file.
                let visible = state(&database);
                drop(connection);
                drop(database);
                database = self.open_again()?;
                connection = connect(&database)?;
                self.found_again(state(&database), &visible)?;
                continue;
            }
            if done.is_err() && !is_one {
                // A constraint, or a name that is taken or gone: the whole transaction is rolled back.
                let _ = connection.execute("ROLLBACK");
            }
            // Every transaction counts, even one without effect: what matters is that it was acknowledged.
            self.answer(state(&database))?;
        }
        Ok(())
    }

    /// The transaction that leads to a state has been answered.
    fn answer(&self, state: String) -> Result<()> {
        self.states.lock().map_err(|_| Error::internal("a check has failed"))?.push(state);
        self.answered.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Opens the database after an error of the disk, which may have more of them.
    fn open_again(&self) -> Result<Database> {
        self.reopened.fetch_add(1, Ordering::Relaxed);
        let mut tries = 0;
        loop {
            match open(self.disk) {
                Err(error) if error.kind() == ErrorKind::Io && tries < OPENINGS => {
                    tries += 1;
                    thread::sleep(PAUSE);
                }
                opened => return opened,
            }
        }
    }

    /// A database that was opened again has what was answered, or the transaction that failed as well: then
    /// that counts as answered from now on.
    fn found_again(&self, found: String, visible: &str) -> Result<()> {
        let is_as_before = {
            let states = self.states.lock().map_err(|_| Error::internal("a check has failed"))?;
            states.last().is_some_and(|last| *last == found)
        };
        match is_as_before {
            true => Ok(()),
            false if found == visible => self.answer(found),
            false => Err(Error::internal(format!(
                "after a sync had failed there is neither what was answered nor that and the change:\n{found}"
            ))),
        }
    }
}

/// Generates statements.
struct Script<'a> {
    random: &'a mut Random,
    /// The names of tables that should exist; all have the columns k and v.
    tables: Vec<String>,
    made: usize,
}

impl Script<'_> {
    /// A transaction of several statements, with savepoints.
    fn transaction(&mut self) -> Vec<String> {
        let mut all = vec!["BEGIN".to_owned()];
        for _ in 0..1 + self.random.below(4) {
            match self.random.below(8) {
                0 => all.extend([
                    "SAVEPOINT s".to_owned(),
                    self.change(),
                    "ROLLBACK TO SAVEPOINT s".to_owned(),
                    self.change(),
                ]),
                1 => all.extend(["SAVEPOINT s".to_owned(), self.change(), "RELEASE SAVEPOINT s".to_owned()]),
                _ => all.push(self.statement()),
            }
        }
        all.push(if self.random.below(8) == 0 { "ROLLBACK" } else { "COMMIT" }.to_owned());
        all
    }

    fn statement(&mut self) -> String {
        if self.tables.len() < 2 || self.random.below(10) == 0 { self.definition() } else { self.change() }
    }

    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("t{}", self.made)
    }

    fn table(&mut self) -> String {
        match self.tables.len() {
            0 => "none".to_owned(),
            count => self.tables[self.random.below(count)].clone(),
        }
    }

    fn definition(&mut self) -> String {
        if !self.tables.iter().any(|name| name == "identified") {
            self.tables.push("identified".into());
            return "CREATE TABLE identified (k BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v BIGINT)"
                .into();
        }
        let table = self.table();
        match self.random.below(12) {
            0 | 1 if self.tables.len() < TABLES => {
                let name = self.new_name();
                self.tables.push(name.clone());
                let layout =
                    ["insertion", "sorted", "delta", "equi", "equi_ghost", "casper"][self.random.below(6)];
                format!(
                    "CREATE TABLE {name} (k BIGINT PRIMARY KEY, v BIGINT, s VARCHAR DEFAULT 'x') WITH (layout = '{layout}')"
                )
            }
            2 if self.tables.len() < TABLES => {
                let name = self.new_name();
                self.tables.push(name.clone());
                format!("CREATE TABLE {name} (k DOUBLE, v INTEGER CHECK (v < 1000000), d DATE)")
            }
            3 if self.tables.len() < TABLES => {
                let name = self.new_name();
                self.tables.push(name.clone());
                format!("CREATE TABLE {name} AS SELECT k, v FROM {table}")
            }
            4 | 5 => {
                self.made += 1;
                format!("CREATE INDEX i{} ON {table} (v)", self.made)
            }
            6 => format!("DROP INDEX i{}", self.made),
            7 if self.tables.len() > 2 && table != "identified" => {
                self.tables.retain(|other| *other != table);
                format!("DROP TABLE {table}")
            }
            8 => {
                self.made += 1;
                format!("ALTER TABLE {table} ADD COLUMN c{} INTEGER DEFAULT 7", self.made)
            }
            9 if table != "identified" => {
                let name = self.new_name();
                self.tables.retain(|other| *other != table);
                self.tables.push(name.clone());
                format!("ALTER TABLE {table} RENAME TO {name}")
            }
            10 => {
                self.made += 1;
                format!("CREATE VIEW w{} AS SELECT v FROM {table}", self.made)
            }
            11 => format!("DROP VIEW w{}", self.made),
            _ => "CHECKPOINT".into(),
        }
    }

    fn change(&mut self) -> String {
        let table = self.table();
        let (a, b) = (self.random.below(400), self.random.below(40));
        match self.random.below(13) {
            0..=2 if table == "identified" => format!("INSERT INTO identified (v) VALUES ({a}), ({b})"),
            0..=2 => format!("INSERT INTO {table} (k, v) VALUES ({a}, {b})"),
            3 if table == "identified" => "INSERT INTO identified (v) SELECT i FROM range(200) r(i)".into(),
            3 => format!(
                "INSERT INTO {table} (k, v) SELECT {a} + i, i % {} FROM range({}) r(i)",
                b + 1,
                [20, 150, 1500][self.random.below(3)]
            ),
            4 | 5 => format!("UPDATE {table} SET v = {b} WHERE k = {a}"),
            6 => format!("UPDATE {table} SET v = v + 1 WHERE v < {b}"),
            7 => format!("DELETE FROM {table} WHERE k = {a}"),
            8 => format!("DELETE FROM {table} WHERE k > {a}"),
            9 if table != "identified" => format!("UPDATE {table} SET k = k + 1000 WHERE k < {b}"),
            10 => format!("DELETE FROM {table} WHERE v = {b}"),
            11 if self.random.below(4) == 0 => format!("TRUNCATE {table}"),
            12 if self.random.below(3) == 0 => "CHECKPOINT".into(),
            _ => format!("UPDATE {table} SET v = NULL WHERE k BETWEEN {a} AND {}", a + b),
        }
    }
}
