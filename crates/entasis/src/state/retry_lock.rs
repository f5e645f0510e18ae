//! The retry lock of a database: why one transaction that conflicts always is not the one that loses always.
//!
//! The first to commit wins. A thread that runs transactions back to back so always wins against another one
//! with equally long transactions: its transaction began earlier, each time. Waiting before the next try only
//! shifts the other one's beginning. So, a transaction that has conflicted acquires the *retry lock* of its
//! database, and holds it until it is done; transactions that may be tried again begin when nobody holds it.
//!
//! It protects nothing but this order. Whoever has waited for [`LONGEST_WAIT`] goes on without it, so one
//! that is held for long, perhaps by this very thread, costs others that time and never stops them.
//! Transactions that are not tried again, and statements by themselves, know nothing of it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a transaction that holds the lock waits before it is tried for the third time; then for twice as
/// long each time.
const FIRST_WAIT: Duration = Duration::from_micros(100);
/// How long it waits at the most, and how long others wait for the lock.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Default)]
pub(crate) struct RetryLock {
    is_held: Mutex<bool>,
    released: Condvar,
}

/// The retry lock, held until this is dropped.
pub struct RetryGuard(Arc<RetryLock>);

impl RetryLock {
    /// Waits for the time to try a transaction that has conflicted `conflicts` times. `held` is what the last
    /// call for this transaction returned, and the result is to be kept until it is done.
    pub(crate) fn wait(
        self: &Arc<RetryLock>,
        conflicts: usize,
        held: Option<RetryGuard>,
    ) -> Option<RetryGuard> {
        if held.is_some() {
            // It conflicts with those that do not know the lock.
            let doublings = u32::try_from(conflicts.saturating_sub(2)).unwrap_or(u32::MAX).min(16);
            thread::sleep(LONGEST_WAIT.min(FIRST_WAIT * 2_u32.pow(doublings)));
            return held;
        }
        let end = Instant::now() + LONGEST_WAIT;
        let mut is_held = self.lock();
        while *is_held {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.released.wait_timeout(is_held, left);
            is_held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if conflicts == 0 {
            return None;
        }
        *is_held = true;
        drop(is_held);
        Some(RetryGuard(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RetryGuard {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_and_others_wait_but_not_for_ever() {
        let lock = Arc::new(RetryLock::default());
        assert!(lock.wait(0, None).is_none(), "a first try does not acquire it");
        let held = lock.wait(1, None).expect("nobody holds it");
        let began = Instant::now();
        assert!(lock.wait(1, None).is_none());
        assert!(lock.wait(0, None).is_none());
        assert!(began.elapsed() >= 2 * LONGEST_WAIT);
        let held = lock.wait(usize::MAX, Some(held));
        thread::scope(|scope| {
            let other = scope.spawn(|| lock.wait(3, None).is_some());
            drop(held);
            assert!(other.join().expect("no panic"));
        });
        assert!(lock.wait(1, None).is_some(), "the other one is done");
    }
}
