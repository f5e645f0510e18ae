//! Turns of transactions that are tried again: why one that conflicts always is not the one that loses
//! always.
//!
//! The first to commit wins. A thread that runs transactions back to back so always wins against another one
//! with equally long transactions: its transaction began earlier, each time. Waiting before the next try only
//! shifts the other one's beginning. So, a transaction that has conflicted takes the *turn* of its database,
//! and keeps it until it is done; transactions that may be tried again begin when nobody has the turn.
//!
//! The turn locks nothing. Whoever has waited for [`LONGEST_WAIT`] goes on without it, so one that is held for
//! long, perhaps by this very thread, costs others that time and never stops them. Transactions that are not
//! tried again, and statements by themselves, know nothing of turns.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a transaction that has the turn waits before it is tried for the third time; then for twice as
/// long each time.
const FIRST_WAIT: Duration = Duration::from_micros(100);
/// How long it waits at the most, and how long others wait for the turn.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// The turn of a database, which one transaction has, or none.
#[derive(Default)]
pub(crate) struct Turns {
    is_taken: Mutex<bool>,
    given_back: Condvar,
}

/// The turn, until it is dropped.
pub struct Turn(Arc<Turns>);

impl Turns {
    /// Waits for the time to try a transaction that has conflicted `conflicts` times. `turn` is what the last
    /// call for this transaction returned, and the result is to be kept until it is done.
    pub(crate) fn wait(self: &Arc<Turns>, conflicts: usize, turn: Option<Turn>) -> Option<Turn> {
        if let Some(turn) = turn {
            // It conflicts with those that have no turns.
            let doublings = u32::try_from(conflicts.saturating_sub(2)).unwrap_or(u32::MAX).min(16);
            thread::sleep(LONGEST_WAIT.min(FIRST_WAIT * 2_u32.pow(doublings)));
            return Some(turn);
        }
        let end = Instant::now() + LONGEST_WAIT;
        let mut is_taken = self.lock();
        while *is_taken {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.given_back.wait_timeout(is_taken, left);
            is_taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if conflicts == 0 {
            return None;
        }
        *is_taken = true;
        drop(is_taken);
        Some(Turn(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_turn_and_others_wait_for_it_but_not_for_ever() {
        let turns = Arc::new(Turns::default());
        assert!(turns.wait(0, None).is_none(), "a first try takes no turn");
        let turn = turns.wait(1, None).expect("nobody has it");
        let began = Instant::now();
        assert!(turns.wait(1, None).is_none());
        assert!(turns.wait(0, None).is_none());
        assert!(began.elapsed() >= 2 * LONGEST_WAIT);
        let turn = turns.wait(usize::MAX, Some(turn));
        thread::scope(|scope| {
            let other = scope.spawn(|| turns.wait(3, None).is_some());
            drop(turn);
            assert!(other.join().expect("no panic"));
        });
        assert!(turns.wait(1, None).is_some(), "the other one's turn is over");
    }
}
