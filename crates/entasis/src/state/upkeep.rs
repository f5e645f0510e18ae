//! Upkeep: a thread of the database that restores ghosts, bounds and encodings of tables after writes
//! ([`Table::upkeep`]).
//!
//! It also syncs commits that have not waited for the disk ([`super::durable`]), and measures the costs by
//! which plans are chosen when the file has become large ([`super::costs`]).
//!
//! It starts with the first write or long query. It visits all tables ten times a second while there is
//! something to do, and otherwise sleeps until the next write. It ends with the database.
//!
//! [`Table::upkeep`]: entasis_storage::Table::upkeep

use super::Shared;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Time between two rounds.
const REST: Duration = Duration::from_millis(100);
/// The longest that the upkeep of one table may take in a round.
const BUDGET: Duration = Duration::from_millis(20);

/// The database is idle after this time without anything to do.
const QUIET: Duration = Duration::from_millis(1200);

/// The upkeep thread, and how writers wake it.
#[derive(Default)]
pub(super) struct Upkeep {
    is_awake: AtomicBool,
    /// True while the thread holds the database.
    is_looking: AtomicBool,
    /// True when the database is being closed: what is not done is left.
    is_ending: AtomicBool,
    /// `None` if the thread could not be started: then there is no upkeep.
    thread: OnceLock<Option<Thread>>,
    /// Called after a round that leaves nothing to do.
    at_rest: OnceLock<fn(&Arc<Shared>)>,
}

impl Upkeep {
    /// True while the thread holds the database, and for moments before and after.
    pub(super) fn is_looking(&self) -> bool {
        self.is_looking.load(Ordering::SeqCst)
    }

    /// Ends the present round early.
    pub(super) fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// See [`Shared::at_rest`].
    pub(super) fn at_rest(&self, call: fn(&Arc<Shared>)) {
        self.at_rest.get_or_init(|| call);
    }

    /// Wakes the thread, because rows were written, or much memory was used and freed.
    #[inline]
    pub(super) fn wake(&self, shared: &Arc<Shared>) {
        if !self.is_awake.load(Ordering::Relaxed) {
            self.wake_now(shared);
        }
    }

    #[cold]
    fn wake_now(&self, shared: &Arc<Shared>) {
        self.is_awake.store(true, Ordering::SeqCst);
        let start = || {
            let shared = Arc::downgrade(shared);
            let named = thread::Builder::new().name("entasis-upkeep".into());
            named.spawn(move || run(&shared)).ok().map(|handle| handle.thread().clone())
        };
        if let Some(thread) = self.thread.get_or_init(start) {
            thread.unpark();
        }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        if let Some(Some(thread)) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// The main loop of the thread.
fn run(database: &Weak<Shared>) {
    loop {
        thread::sleep(REST);
        let Some(shared) = database.upgrade() else { return };
        shared.upkeep.is_looking.store(true, Ordering::SeqCst);
        shared.upkeep.is_awake.store(false, Ordering::SeqCst);
        // A bug in here must not end the thread: the next round may succeed.
        let is_done = catch_unwind(AssertUnwindSafe(|| look(&shared))).unwrap_or(true);
        let is_idle = is_done && !shared.upkeep.is_awake.load(Ordering::SeqCst);
        let when_idle = shared.config.when_idle;
        shared.upkeep.is_looking.store(false, Ordering::SeqCst);
        drop(shared);
        if is_idle && !rest(database, when_idle) {
            return;
        }
    }
}

/// Waits for the next write. False if the database is gone.
fn rest(database: &Weak<Shared>, when_idle: Option<fn()>) -> bool {
    let end = Instant::now() + QUIET;
    loop {
        // A writer before the last round may end the first wait.
        thread::park_timeout(end.saturating_duration_since(Instant::now()));
        let Some(shared) = database.upgrade() else { return false };
        if shared.upkeep.is_awake.load(Ordering::SeqCst) {
            return true;
        }
        drop(shared);
        if Instant::now() >= end {
            break;
        }
    }
    when_idle.iter().for_each(|when_idle| when_idle());
    thread::park();
    true
}

/// Visits all tables. True if nothing is left to do.
fn look(shared: &Arc<Shared>) -> bool {
    let names = shared.catalog.version();
    let mut is_done = shared.durable.as_ref().is_none_or(|durable| durable.upkeep(&shared.catalog));
    for table in
        names.tables().flat_map(|entry| std::iter::once(&entry.table).chain(entry.indexes.iter().flatten()))
    {
        if shared.upkeep.is_ending() {
            return true;
        }
        let did = table.upkeep(BUDGET);
        is_done &= did.is_done && did.warm == 0 && did.overtaken == 0;
    }
    if is_done && !shared.upkeep.is_ending() {
        shared.upkeep.at_rest.get().iter().for_each(|call| call(shared));
        shared.calibrate_when_large();
    }
    is_done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Database};
    use std::sync::Mutex;

    static CALLED: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

    #[test]
    fn idle_is_who_has_not_written_for_a_second() {
        let when_idle: fn() = || CALLED.lock().unwrap().push(Instant::now());
        let database =
            Database::in_memory(Config { when_idle: Some(when_idle), ..Config::default() }).unwrap();
        let connection = database.connect();
        connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v INTEGER)").unwrap();
        for round in 1..=2 {
            // Long enough that upkeep runs between two of them.
            for _ in 0..8 {
                connection.execute("INSERT INTO t SELECT 1 + coalesce(max(k), 0), 1 FROM t").unwrap();
                thread::sleep(REST / 2);
            }
            connection.execute("UPDATE t SET v = 2").unwrap();
            let written = Instant::now();
            while CALLED.lock().unwrap().len() < round {
                thread::sleep(REST);
            }
            let called = CALLED.lock().unwrap()[round - 1];
            assert!(
                called >= written + Duration::from_secs(1),
                "{:?} after the last write",
                called - written
            );
        }
    }
}
