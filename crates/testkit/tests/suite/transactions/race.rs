//! Concurrent threads that run statements, each on a connection of its own, for a number of rounds.
//!
//! Nothing is timed. But if no worker ends a round for [`PATIENCE`], the database hangs: then the process
//! aborts, since a thread that waits for a lock cannot be ended, and reports on stderr which test hangs and
//! how far its workers are.

use entasis::{Connection, Database, ErrorKind};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A worker that makes no progress for this time hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

type Round<'a> = Box<dyn Fn(&Connection, u64) -> entasis::Result<()> + Send + Sync + 'a>;

/// The task of one thread in each round.
pub(super) struct Worker<'a> {
    name: &'a str,
    round: Round<'a>,
    is_background: bool,
}

impl<'a> Worker<'a> {
    /// A worker that runs as many rounds as the race has. A conflict ends a round, any other error the test.
    pub(super) fn new(
        name: &'a str,
        round: impl Fn(&Connection, u64) -> entasis::Result<()> + Send + Sync + 'a,
    ) -> Worker<'a> {
        Worker { name, round: Box::new(round), is_background: false }
    }

    /// A worker that runs statements, with `{round}` replaced by the number of the round.
    pub(super) fn of(name: &'a str, statements: &'a [&'a str]) -> Worker<'a> {
        Worker::new(name, move |connection, round| {
            for sql in statements {
                connection.execute(&sql.replace("{round}", &round.to_string()))?;
            }
            Ok(())
        })
    }

    /// The same worker, but it runs until all other workers have ended, and its rounds do not count as
    /// progress of the database.
    pub(super) fn in_background(self) -> Worker<'a> {
        Worker { is_background: true, ..self }
    }
}

/// Runs all workers until they have ended. Returns for each the number of rounds without a conflict.
pub(super) fn race(database: &Database, rounds: u64, workers: &[Worker<'_>]) -> Vec<u64> {
    let done: Vec<AtomicU64> = workers.iter().map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (progress, news) = mpsc::channel();
        let (alive, end) = mpsc::channel::<()>();
        for (worker, done) in workers.iter().zip(&done) {
            let (progress, alive, is_over) = (progress.clone(), alive.clone(), &is_over);
            scope.spawn(move || {
                let connection = database.connect();
                if worker.is_background {
                    drop(progress);
                    (0..).take_while(|_| !is_over.load(Ordering::Relaxed)).for_each(|round| {
                        run(worker, &connection, round, done);
                    });
                } else {
                    for round in 0..rounds {
                        run(worker, &connection, round, done);
                        // The receiver exists until all senders are gone.
                        let _ = progress.send(());
                    }
                }
                drop(alive);
            });
        }
        drop((progress, alive));
        let report = || {
            let done = workers
                .iter()
                .zip(&done)
                .map(|(worker, done)| format!("{} {}", worker.name, done.load(Ordering::Relaxed)));
            format!("rounds: {}", done.collect::<Vec<_>>().join(", "))
        };
        wait(&news, report);
        is_over.store(true, Ordering::Relaxed);
        wait(&end, report);
    });
    done.into_iter().map(AtomicU64::into_inner).collect()
}

/// One round of a worker.
fn run(worker: &Worker<'_>, connection: &Connection, round: u64, done: &AtomicU64) {
    match (worker.round)(connection, round) {
        Ok(()) => _ = done.fetch_add(1, Ordering::Relaxed),
        Err(error) if error.kind() == ErrorKind::Conflict => {
            if connection.in_transaction() {
                connection.execute("ROLLBACK").expect("a transaction can be rolled back");
            }
        }
        Err(error) => panic!("{}, round {round}: {error:?}", worker.name),
    }
}

/// Waits until all senders are gone, each of which sends something now and then.
fn wait(news: &Receiver<()>, report: impl Fn() -> String) {
    loop {
        match news.recv_timeout(PATIENCE) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => abort(&report()),
        }
    }
}

/// Ends the process, which nothing else can do.
fn abort(report: &str) -> ! {
    let test = thread::current().name().unwrap_or("a test").to_string();
    // Not eprintln, whose output the test harness captures until the test ends.
    let message = format!("\n{test}: the database hangs, nothing has happened for {PATIENCE:?}; {report}\n");
    let _ = std::io::stderr().write_all(message.as_bytes());
    std::process::abort()
}
