//! Turns: one writer of a table at a time.
//!
//! A lock whose holder need not be borrowed from it: a transaction keeps the turns of its tables beside the tables. Turns of
//! several tables are taken in the order of the tables' addresses. Who has to take one out of this order waits only so
//! long ([`Turns::take_within`]), so that there is no ring of waiting threads for good.
//!
//! Nobody is promised to be next.

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, pause};
use crate::table::Table;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often who is awake looks for a turn, or for another one to take it: some tens of microseconds.
const TRIES: usize = 100;

/// The turns of one table.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    state: Mutex<State>,
    is_over: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    /// Threads that wait. A condition variable that is notified asks the kernel, even if nobody waits.
    waiting: usize,
    /// Somebody wants a turn who is to be let by.
    is_wanted: bool,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn.
    pub(crate) fn take(&self) -> Turn<'_> {
        self.wait();
        Turn(self)
    }

    /// A turn if it can be had soon, for who works for nobody in particular. Single writes that follow one another would
    /// leave no time for it, so the next one lets it by.
    pub(crate) fn take_soon(&self, patience: Duration) -> Option<Turn<'_>> {
        self.state().is_wanted = true;
        let take = |state: &mut State| (!std::mem::replace(&mut state.is_taken, true)).then(|| Turn(self));
        let turn = (0..TRIES).find_map(|_| {
            pause();
            take(&mut self.state())
        });
        let turn = turn.or_else(|| self.wait_within(patience).then(|| Turn(self)));
        self.state().is_wanted = false;
        turn
    }

    /// The state, after somebody was let by who wants a turn, once.
    fn let_by(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if state.is_wanted && !state.is_taken {
            for _ in 0..TRIES {
                drop(state);
                pause();
                state = self.state();
                if state.is_taken || !state.is_wanted {
                    return state;
                }
            }
            state.is_wanted = false;
        }
        state
    }

    fn wait(&self) {
        let mut state = self.let_by();
        state.waiting += 1;
        while state.is_taken {
            state = self.is_over.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state.is_taken = true;
    }

    /// Waits for a turn, but not for longer than that. True if it came.
    fn wait_within(&self, patience: Duration) -> bool {
        let mut state = self.state();
        let end = Instant::now() + patience;
        state.waiting += 1;
        while state.is_taken {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.is_over.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting -= 1;
        !std::mem::replace(&mut state.is_taken, true)
    }

    fn end(&self) {
        let mut state = self.state();
        state.is_taken = false;
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.is_over.notify_one();
        }
    }
}

/// A turn that ends when this is dropped.
pub(crate) struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The same for who holds the table as well.
pub(crate) struct WriterTurn(Arc<Table>);

impl WriterTurn {
    /// Waits for a turn.
    pub(crate) fn take(table: &Arc<Table>) -> WriterTurn {
        table.turns.wait();
        WriterTurn(table.clone())
    }

    /// Waits for a turn, but not for longer than that.
    pub(crate) fn take_within(table: &Arc<Table>, patience: Duration) -> Option<WriterTurn> {
        table.turns.wait_within(patience).then(|| WriterTurn(table.clone()))
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.0
    }
}

impl Drop for WriterTurn {
    fn drop(&mut self) {
        self.0.turns.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_at_a_time_and_a_panic_gives_it_back() {
        let table = Table::new("t", Vec::new());
        let counted = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let _turn = WriterTurn::take(&table);
                        // Not one operation, so that two at a time would lose some.
                        let count = counted.load(std::sync::atomic::Ordering::Relaxed);
                        counted.store(count + 1, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(counted.into_inner(), 8000);
        let (copy, patience) = (table.clone(), Duration::from_millis(1));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _turn = WriterTurn::take(&copy);
            assert!(WriterTurn::take_within(&copy, patience).is_none());
            std::panic::resume_unwind(Box::new("on purpose"));
        }));
        assert!(panicked.is_err());
        assert!(WriterTurn::take_within(&table, patience).is_some());
    }
}
