//! Write locks: one writer of a table at a time.
//!
//! It is a lock whose guard need not borrow from it: a transaction keeps the write locks of its tables beside
//! the tables. Write locks of several tables are taken in the order of the tables' ids
//! ([`crate::sync::lock_order`]). The wait for a write lock out of this order is limited
//! (`OwnedWriteGuard::take_within`).
//!
//! **Waiting.** A waiter says who it is, how long it waits, and what interrupts it ([`Waiter`]). It spins
//! for a few microseconds, in which several writes of single rows end, before it sleeps. A thread that finds
//! the write lock free takes it, even if others have waited for longer, because to hand the write lock to a
//! sleeping thread costs some ten microseconds. Waiters are woken one at a time; a waiter that has been woken
//! [`MISSED`] times and found the write lock taken reserves it. So a stream of single writes neither pays for
//! every waiter nor starves them.

use crate::sync::lock_order::{Held, Lock};
use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, PoisonError, pause, spin_loop};
use entasis_vector::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a running thread tries again before it sleeps, or waits for a woken one to take the write lock:
/// some tens of microseconds.
const TRIES: usize = 100;
/// How often a waiter spins and then tries to take the write lock, before it sleeps.
const SPINS: usize = 32;
/// How often a spinning thread looks before it tries, if the write lock seems to be taken: a few tenths of a
/// microsecond.
const LOOKS: usize = 16;
/// How often a waiter is woken in vain before the write lock is reserved.
const MISSED: u32 = 4;
/// How often a waiter checks whether it has been interrupted.
const LOOK: Duration = Duration::from_millis(5);

/// Waits for a write lock. The default waits as long as it takes.
#[derive(Clone, Default)]
pub struct Waiter<'a> {
    /// Who it is, for the errors of others.
    pub name: WriterName,
    /// For how long it waits.
    pub limit: Option<Duration>,
    /// True once it has been interrupted.
    pub is_interrupted: Option<&'a dyn Fn() -> bool>,
}

/// True once the caller is to stop. Work that takes long calls it now and then.
pub type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

/// The holder of a write lock.
#[derive(Debug, Clone, Default)]
pub struct WriterName {
    /// The number of the connection; 0 for the database itself.
    pub connection: u64,
    /// The text of the statement, if it is known.
    pub statement: Option<Arc<str>>,
}

impl Waiter<'_> {
    /// An error, if it has been interrupted.
    ///
    /// # Errors
    /// Interrupted.
    pub fn look(&self) -> Result<()> {
        match self.is_interrupted {
            Some(is_interrupted) if is_interrupted() => Err(Error::interrupted()),
            _ => Ok(()),
        }
    }
}

/// The write lock of one table.
#[derive(Debug)]
pub(crate) struct WriteLock {
    /// The id of the table.
    id: u64,
    state: Mutex<State>,
    /// True while a thread has the write lock. Only a hint for those that spin.
    ///
    /// PERF: they look at it and leave the cache line of the state to the holder. Two threads of single
    /// updates made 1.4 times as many as with tries that lock the state.
    is_taken: AtomicBool,
    /// True while nobody may change rows in place, because a statement or commit has the write lock.
    is_closed: AtomicBool,
    is_over: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Who has the write lock.
    writer: Option<WriterName>,
    /// The number of waiting threads: to notify a condition variable is a system call even if nobody waits.
    waiting: usize,
    /// One of them was woken, and has not looked yet.
    is_woken: bool,
    /// The lock is next for one of them.
    is_reserved: bool,
    /// Upkeep wants a write lock, and is let in once.
    is_wanted: bool,
}

impl WriteLock {
    pub(crate) fn new(id: u64) -> WriteLock {
        WriteLock {
            id,
            state: Mutex::default(),
            is_taken: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_over: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the write lock, if it is free and not reserved.
    fn take_by_the_way(&self, state: &mut State, writer: &WriterName) -> bool {
        let is_free = state.writer.is_none() && !state.is_reserved;
        if is_free {
            self.give(state, writer);
        }
        is_free
    }

    fn give(&self, state: &mut State, writer: &WriterName) {
        state.writer = Some(writer.clone());
        self.is_taken.store(true, Ordering::Relaxed);
    }

    /// Waits for a write lock. Errors name the `table`.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up.
    pub(crate) fn take(&self, table: &str, waiter: &Waiter<'_>) -> Result<WriteGuard<'_>> {
        let held = Held::ordered(Lock::Write(self.id));
        self.wait(table, waiter)?;
        Ok(WriteGuard { lock: self, _held: held })
    }

    /// A write lock for background work, if it can be had soon. Single writes that follow one another would
    /// leave no gap, so the next one lets it in.
    pub(crate) fn take_soon(&self, patience: Duration) -> Option<WriteGuard<'_>> {
        let held = Held::ordered(Lock::Write(self.id));
        let writer = WriterName { connection: 0, statement: Some("upkeep".into()) };
        self.state().is_wanted = true;
        let is_taken = (0..TRIES).any(|_| {
            pause();
            self.take_by_the_way(&mut self.state(), &writer)
        });
        let is_taken = is_taken || {
            let waiter = Waiter { name: writer, limit: Some(patience), is_interrupted: None };
            self.wait_in_line(self.state(), &waiter).is_ok()
        };
        self.state().is_wanted = false;
        // Only made if the write lock was taken: to drop a `WriteGuard` ends the write lock, whoever has it.
        is_taken.then(|| WriteGuard { lock: self, _held: held })
    }

    /// The state, once upkeep that wants a write lock has been let in.
    fn let_by(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if state.is_wanted && state.writer.is_none() {
            for _ in 0..TRIES {
                drop(state);
                pause();
                state = self.state();
                if state.writer.is_some() || !state.is_wanted {
                    return state;
                }
            }
            state.is_wanted = false;
        }
        state
    }

    pub(super) fn wait(&self, table: &str, waiter: &Waiter<'_>) -> Result<()> {
        let mut state = self.let_by();
        for _ in 0..SPINS {
            if self.take_by_the_way(&mut state, &waiter.name) {
                return Ok(());
            }
            drop(state);
            self.spin();
            state = self.state();
        }
        self.wait_in_line(state, waiter).map_err(|holder| match holder {
            None => Error::interrupted(),
            Some(holder) => timed_out(table, waiter, &holder),
        })
    }

    /// Waits until the write lock seems to be free, or has been looked at often enough.
    fn spin(&self) {
        let is_taken = |_: &usize| self.is_taken.load(Ordering::Relaxed);
        (0..LOOKS).take_while(is_taken).for_each(|_| spin_loop());
    }

    /// Waits for a write lock among the other waiters. On failure returns the holder if the time is up, or
    /// `None` if the waiter was interrupted.
    fn wait_in_line(
        &self,
        mut state: MutexGuard<'_, State>,
        waiter: &Waiter<'_>,
    ) -> Result<(), Option<WriterName>> {
        let end = waiter.limit.map(|limit| Instant::now() + limit);
        state.waiting += 1;
        let (mut result, mut missed) = (Ok(()), 0);
        while let Some(holder) = &state.writer {
            if waiter.is_interrupted.is_some_and(|is_interrupted| is_interrupted()) {
                result = Err(None);
                break;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                result = Err(Some(holder.clone()));
                break;
            }
            let most = waiter.is_interrupted.map(|_| LOOK);
            state = match [left, most].into_iter().flatten().min() {
                Some(time) => {
                    self.is_over.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.is_over.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.is_woken = false;
            missed += u32::from(state.writer.is_some());
            state.is_reserved |= missed >= MISSED;
        }
        state.waiting -= 1;
        if result.is_ok() {
            self.give(&mut state, &waiter.name);
            state.is_reserved = false;
        } else {
            state.is_reserved &= state.waiting > 0;
        }
        result
    }

    /// True while nobody may change rows in place. To be asked with the head shared.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Forbids changes in place to all who share the head from now on, until the write lock ends. To be
    /// called by the thread that has the write lock.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Releases a write lock that closed them.
    pub(super) fn end_closed(&self) {
        self.is_closed.store(false, Ordering::Release);
        self.end();
    }

    pub(super) fn end(&self) {
        let mut state = self.state();
        state.writer = None;
        self.is_taken.store(false, Ordering::Relaxed);
        // PERF: waking takes a call of the kernel, which a microsecond's write would pay for each time while
        // others wait.
        let wakes = state.waiting > 0 && !state.is_woken;
        state.is_woken |= wakes;
        drop(state);
        if wakes {
            self.is_over.notify_one();
        }
    }
}

fn timed_out(table: &str, waiter: &Waiter<'_>, holder: &WriterName) -> Error {
    let waited = waiter.limit.unwrap_or_default().as_millis();
    let who = match holder.connection {
        0 => "the database itself".to_string(),
        connection => format!("connection {connection}"),
    };
    let what = holder.statement.as_deref().map(|sql| format!(": {}", shortened(sql))).unwrap_or_default();
    let text = format!("waited {waited} ms to write to table {table}, which {who} is writing to{what}");
    let hint = "try again, or wait longer: SET lock_timeout = '10s'; 0 waits for as long as it takes";
    Error::new(ErrorKind::Conflict, text).with_hint(hint)
}

/// The first words of a statement.
fn shortened(sql: &str) -> String {
    const MOST: usize = 80;
    let mut words = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > MOST {
        words = words.chars().take(MOST).collect::<String>() + "…";
    }
    words
}

/// The guard of a write lock, which is released when this is dropped.
#[derive(Debug)]
pub(crate) struct WriteGuard<'a> {
    lock: &'a WriteLock,
    _held: Held,
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        self.lock.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use crate::table::write_guard::OwnedWriteGuard;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
    use std::thread;

    #[test]
    fn one_has_it_at_a_time_and_a_panic_gives_it_back() {
        let table = Table::new("t", Vec::new());
        let counted = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let _guard = OwnedWriteGuard::take(&table, &Waiter::default()).unwrap();
                        // Not one operation, so that two at a time would lose some.
                        let count = counted.load(Relaxed);
                        counted.store(count + 1, Relaxed);
                    }
                });
            }
        });
        assert_eq!(counted.into_inner(), 8000);
        let copy = table.clone();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = OwnedWriteGuard::take(&copy, &Waiter::default()).unwrap();
            std::panic::resume_unwind(Box::new("on purpose"));
        }));
        assert!(panicked.is_err());
        assert!(OwnedWriteGuard::take_within(&table, &Waiter::default(), Duration::from_millis(1)).is_ok());
    }

    #[test]
    fn upkeep_that_gives_up_leaves_the_write_lock_to_who_has_it() {
        let table = Table::new("t", Vec::new());
        let write_lock = OwnedWriteGuard::take(&table, &Waiter::default()).unwrap();
        thread::scope(|scope| {
            let gives_up = || assert!(table.write_lock.take_soon(Duration::from_millis(1)).is_none());
            scope.spawn(gives_up).join().unwrap();
            let other = || {
                OwnedWriteGuard::take_within(&table, &Waiter::default(), Duration::from_millis(1)).is_err()
            };
            assert!(scope.spawn(other).join().unwrap(), "two have the write lock");
        });
        drop(write_lock);
        assert!(table.write_lock.take_soon(Duration::from_millis(1)).is_some());
    }

    #[test]
    fn who_waits_is_told_whom_for_or_interrupted() {
        let table = Table::new("t", Vec::new());
        let statement = format!("UPDATE t\n SET v = '{}'", "x".repeat(100));
        let writer = WriterName { connection: 7, statement: Some(statement.into()) };
        let write_lock =
            OwnedWriteGuard::take(&table, &Waiter { name: writer, ..Waiter::default() }).unwrap();
        let others = |waiter: Waiter<'_>| OwnedWriteGuard::take(&table, &waiter).map(drop).unwrap_err();
        thread::scope(|scope| {
            let timed_out =
                scope.spawn(|| others(Waiter { limit: Some(Duration::from_millis(2)), ..Waiter::default() }));
            let error = timed_out.join().unwrap();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            let expected =
                "waited 2 ms to write to table t, which connection 7 is writing to: UPDATE t SET v = 'xxx";
            assert!(error.message().starts_with(expected) && error.message().ends_with('…'), "{error}");
            let interrupted =
                scope.spawn(|| others(Waiter { is_interrupted: Some(&|| true), ..Waiter::default() }));
            assert_eq!(interrupted.join().unwrap().message(), Error::interrupted().message());
        });
        drop(write_lock);
        assert!(OwnedWriteGuard::take(&table, &Waiter::default()).is_ok(), "who gave up is in nobody's way");
    }

    #[test]
    fn who_waits_is_not_overtaken_for_ever() {
        let table = Table::new("t", Vec::new());
        let is_served = AtomicBool::new(false);
        thread::scope(|scope| {
            // Two that never let go of the write lock but to take it again.
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_served.load(Relaxed) {
                        drop(table.write_lock.take("t", &Waiter::default()));
                    }
                });
            }
            for _ in 0..20 {
                drop(OwnedWriteGuard::take(&table, &Waiter::default()).unwrap());
            }
            is_served.store(true, Relaxed);
        });
        let (lock, other) = (WriteLock::new(0), WriterName::default());
        let mut state = lock.state();
        state.is_reserved = true;
        assert!(!lock.take_by_the_way(&mut state, &other), "it is for who waits");
        state.is_reserved = false;
        assert!(lock.take_by_the_way(&mut state, &other) && !lock.take_by_the_way(&mut state, &other));
    }
}
