//! Lets other Python threads run within long work that needs Python's lock.

use pyo3::prelude::*;
use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a thread waits for Python's lock before it asks for it, 5 ms unless
/// `sys.setswitchinterval()` says otherwise.
///
/// A lock that is given back is taken again before a thread that waits for it has woken up, unless that has
/// asked for it; and each time that it is given back, the time begins anew after which it asks. So giving it
/// back often lets nobody run.
const EVERY: Duration = Duration::from_millis(8);

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Gives Python's lock to a thread that waits for it, if this has not been done for some milliseconds. To be
/// called often.
pub fn give_way(py: Python<'_>) {
    if LAST.get().is_none_or(|last| last.elapsed() >= EVERY) {
        py.detach(thread::yield_now);
        LAST.set(Some(Instant::now()));
    }
}
