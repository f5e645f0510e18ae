//! What workers meet by, with a scheduler that tries one interleaving after the other, and parts so small
//! that a few rows have several.

use entasis_vector::statement::Statement;
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use shuttle::thread;
use std::sync::Arc;
pub(crate) use std::sync::PoisonError;

pub(crate) const CHUNKS_FOR_HELP: f64 = 2.0;
pub(crate) const PARTITION_ROWS: u64 = 4;
pub(crate) const MIN_PARTITION_SHIFT: u32 = 5;
pub(crate) const PART_ROWS: usize = 4;

/// Locks a mutex.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cell that is written once. The scheduler has none of its own, and nobody may wait in one that it does
/// not know.
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    turn: Mutex<()>,
}

impl<T> OnceLock<T> {
    pub(crate) const fn new() -> OnceLock<T> {
        OnceLock { value: std::sync::OnceLock::new(), turn: Mutex::new(()) }
    }
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn get(&self) -> Option<&T> {
        let _turn = self.turn();
        self.value.get()
    }
    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        let _turn = self.turn();
        self.value.set(value)
    }
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let _turn = self.turn();
        self.value.get_or_init(make)
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> OnceLock<T> {
        OnceLock { value: value.into(), turn: Mutex::new(()) }
    }
}

/// Runs `work`. The scheduler's threads are one of the system's, which cannot say whom each of them works
/// for.
pub(crate) fn within<T>(_: Arc<dyn Statement>, work: impl FnOnce() -> T) -> T {
    work()
}
