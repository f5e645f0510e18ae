//! Whether a query that runs on a thread of its own has run, and waiting for that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The last query of a connection that runs so.
#[derive(Default)]
pub(crate) struct Last {
    /// False if there is none that may be running.
    is_there: AtomicBool,
    query: Mutex<Option<Arc<HasRun>>>,
}

impl Last {
    /// A query begins.
    pub(crate) fn begins(&self, query: Arc<HasRun>) {
        *self.query.lock().unwrap_or_else(PoisonError::into_inner) = Some(query);
        self.is_there.store(true, Ordering::Release);
    }

    /// The query, if it is running.
    #[inline]
    pub(crate) fn running(&self) -> Option<Arc<HasRun>> {
        if self.is_there.load(Ordering::Acquire) { self.look() } else { None }
    }

    fn look(&self) -> Option<Arc<HasRun>> {
        let mut query = self.query.lock().unwrap_or_else(PoisonError::into_inner);
        if query.as_ref().is_some_and(|query| query.is_so()) {
            *query = None;
            self.is_there.store(false, Ordering::Release);
        }
        query.clone()
    }
}

/// Whether the query of a connection's last stream has run.
#[derive(Default)]
pub(crate) struct HasRun(Mutex<bool>, Condvar);

impl HasRun {
    /// True if it has.
    pub(crate) fn is_so(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has.
    pub(crate) fn wait(&self) {
        let mut has_run = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*has_run {
            has_run = self.1.wait(has_run).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Says that a query has run, however it ended.
pub(crate) struct Ending(Arc<HasRun>);

impl Drop for Ending {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

impl Ending {
    /// Says it of this query when it is dropped.
    pub(crate) fn of(query: Arc<HasRun>) -> Ending {
        Ending(query)
    }
}
