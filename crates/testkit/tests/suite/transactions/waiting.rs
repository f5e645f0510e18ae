//! Statements that wait for another writer can be interrupted, and have a time limit if `lock_timeout` is
//! set.
//!
//! A statement is held in the middle, together with the write lock of its table, by a relation whose scan
//! waits until the test releases it.

use super::race::PATIENCE;
use super::sessions::{Outcome, database, query, run};
use entasis::{Connection, DataType, Database, ErrorKind, Field, Relation, Rows, Schema};
use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::Chunk;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The position of a scan.
#[derive(Debug, Default)]
struct Passage {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Passage {
    fn change(&self, change: impl FnOnce(&mut (bool, bool))) {
        change(&mut self.state.lock().expect("no panic while locked"));
        self.changed.notify_all();
    }

    fn wait(&self, patience: Duration, until: impl Fn(&(bool, bool)) -> bool) {
        let state = self.state.lock().expect("no panic while locked");
        let waited = self.changed.wait_timeout_while(state, patience, |state| !until(state));
        let (state, result) = waited.expect("no panic while locked");
        drop(state);
        assert!(!result.timed_out(), "nothing has happened for {patience:?}");
    }
}

/// A relation without rows whose scan waits.
#[derive(Debug)]
struct Gate {
    schema: Schema,
    passage: Arc<Passage>,
}

struct GateSource(Arc<Passage>);

impl Relation for Gate {
    fn name(&self) -> &str {
        "gate"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
    fn scan(&self, _: &ScanRequest, _: &QueryContext) -> entasis::Result<Arc<dyn Source>> {
        Ok(Arc::new(GateSource(self.passage.clone())))
    }
}

impl Source for GateSource {
    fn worker(&self) -> entasis::Result<Box<dyn SourceWorker>> {
        Ok(Box::new(GateSource(self.0.clone())))
    }
}

impl SourceWorker for GateSource {
    fn next(&mut self, chunk: &mut Chunk) -> entasis::Result<bool> {
        self.0.change(|(is_entered, _)| *is_entered = true);
        // Longer than the test waits for others, whose failure is the one to report.
        self.0.wait(3 * PATIENCE, |(_, is_open)| *is_open);
        chunk.reset(0);
        Ok(false)
    }
    fn morsel(&self) -> u64 {
        0
    }
}

/// A statement that is held in the middle, in a thread of its own.
struct Holder {
    passage: Arc<Passage>,
    thread: JoinHandle<entasis::Result<Rows>>,
}

impl Holder {
    /// An UPDATE of table `accounts` that is held.
    fn start(database: &Database) -> Holder {
        let passage = Arc::new(Passage::default());
        let connection = database.connect();
        let schema = vec![Field::new("i", DataType::Int64)];
        connection.register("gate", Arc::new(Gate { schema, passage: passage.clone() }));
        let update = "UPDATE accounts SET v = -1 FROM gate WHERE k = i";
        let thread = thread::spawn(move || connection.execute(update));
        passage.wait(PATIENCE, |(is_entered, _)| *is_entered);
        Holder { passage, thread }
    }

    /// Releases it. It must end normally.
    fn end(self) {
        self.passage.change(|(_, is_open)| *is_open = true);
        let outcome = Outcome::of(self.thread.join().expect("it does not panic"));
        assert_eq!(outcome, Outcome::Count(0));
    }
}

/// A statement in a thread of its own.
struct Waiter {
    connection: Arc<Connection>,
    sql: &'static str,
    end: mpsc::Receiver<Outcome>,
}

impl Waiter {
    fn start(connection: &Arc<Connection>, sql: &'static str) -> Waiter {
        let (sender, end) = mpsc::channel();
        let own = connection.clone();
        thread::spawn(move || sender.send(Outcome::of(own.execute(sql))));
        Waiter { connection: connection.clone(), sql, end }
    }

    /// Interrupts it until it ends.
    fn interrupt(&self) -> Outcome {
        let tries = PATIENCE.as_millis();
        for _ in 0..tries {
            // It has no effect if it is raised before the statement has begun.
            self.connection.cancel_flag().raise();
            match self.end.recv_timeout(Duration::from_millis(1)) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("{} panics", self.sql),
            }
        }
        panic!("{} was interrupted {tries} times and goes on waiting", self.sql)
    }

    /// Waits until it ends.
    fn outcome(&self) -> Outcome {
        self.end.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{} does not end", self.sql))
    }
}

const ROWS: &str = "SELECT count(*), sum(v), count(DISTINCT w) FROM accounts";
const ROWS_AT_FIRST: &str = "1000 0 1000";

fn accounts() -> Database {
    let database = database();
    run(
        &database.connect(),
        &[
            "CREATE TABLE accounts (k BIGINT PRIMARY KEY, v BIGINT, w BIGINT)",
            "INSERT INTO accounts SELECT i, 0, i FROM range(1000) r(i)",
        ],
    );
    database
}

/// Runs `before`, and then interrupts `sql` while it waits. It has no effect, and the connection can still be
/// used.
fn check_interrupted(before: &[&str], sql: &'static str) {
    let database = accounts();
    let connection = Arc::new(database.connect());
    run(&connection, before);
    let holder = Holder::start(&database);
    let outcome = Waiter::start(&connection, sql).interrupt();
    assert_eq!(outcome.error(), Some(ErrorKind::Interrupted), "{sql}: {outcome}");
    holder.end();
    if connection.in_transaction() {
        run(&connection, &["ROLLBACK"]);
    }
    assert_eq!(query(&connection, ROWS), ROWS_AT_FIRST, "after {sql}");
    run(&connection, &["UPDATE accounts SET v = v + 1 WHERE k = 3", "CREATE INDEX later ON accounts (w)"]);
    assert_eq!(query(&connection, ROWS), "1000 1 1000");
}

/// The same with a time limit instead of an interrupt: the error names the table.
fn check_timeout(before: &[&str], sql: &'static str) {
    let database = accounts();
    let connection = Arc::new(database.connect());
    run(&connection, &["SET lock_timeout = '100ms'"]);
    run(&connection, before);
    let holder = Holder::start(&database);
    let outcome = Waiter::start(&connection, sql).outcome();
    assert_eq!(outcome.error(), Some(ErrorKind::Conflict), "{sql}: {outcome}");
    let message = outcome.to_string();
    assert!(message.contains("accounts"), "{message}");
    holder.end();
    if connection.in_transaction() {
        run(&connection, &["ROLLBACK"]);
    }
    assert_eq!(query(&connection, ROWS), ROWS_AT_FIRST, "after {sql}");
    run(&connection, &["UPDATE accounts SET v = v + 1 WHERE k = 3"]);
}

#[test]
fn an_update_that_waits_is_interrupted() {
    check_interrupted(&[], "UPDATE accounts SET v = v + 1 WHERE w = 3");
}

#[test]
fn a_keyed_statement_that_waits_is_interrupted() {
    check_interrupted(&[], "UPDATE accounts SET v = 7 WHERE k = 3");
    check_interrupted(&[], "INSERT INTO accounts VALUES (5000, 7, 7)");
    check_interrupted(&[], "DELETE FROM accounts WHERE k = 3");
}

#[test]
fn a_commit_that_waits_is_interrupted() {
    check_interrupted(&["BEGIN", "UPDATE accounts SET v = 7 WHERE k = 500"], "COMMIT");
}

#[test]
fn a_change_of_the_table_that_waits_is_interrupted() {
    check_interrupted(&[], "CREATE UNIQUE INDEX once ON accounts (w)");
    check_interrupted(&[], "ALTER TABLE accounts ADD COLUMN x INTEGER");
    check_interrupted(&[], "TRUNCATE accounts");
}

#[test]
fn a_statement_waits_no_longer_than_the_lock_timeout() {
    check_timeout(&[], "UPDATE accounts SET v = v + 1 WHERE w = 3");
    check_timeout(&[], "UPDATE accounts SET v = 7 WHERE k = 3");
    check_timeout(&[], "CREATE INDEX found ON accounts (w)");
}

#[test]
fn a_commit_waits_no_longer_than_the_lock_timeout() {
    check_timeout(&["BEGIN", "UPDATE accounts SET v = 7 WHERE k = 500"], "COMMIT");
}

#[test]
fn without_a_lock_timeout_a_statement_waits_until_the_other_has_ended() {
    let database = accounts();
    let connection = Arc::new(database.connect());
    for (timeout, value) in [("SET lock_timeout = 0", "1000 3 1000"), ("RESET lock_timeout", "1000 6 1000")] {
        run(&connection, &[timeout]);
        let holder = Holder::start(&database);
        let waiter = Waiter::start(&connection, "UPDATE accounts SET v = v + 1 WHERE w < 3");
        // An error would be returned immediately.
        assert!(waiter.end.recv_timeout(Duration::from_millis(300)).is_err(), "it did not wait");
        holder.end();
        assert_eq!(waiter.outcome(), Outcome::Count(3));
        assert_eq!(query(&connection, ROWS), value);
    }
}
