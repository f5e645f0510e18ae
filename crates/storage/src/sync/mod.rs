//! Locks, atomics and threads. All come from this module, so that `tests/interleavings` can replace those of
//! the standard library by a scheduler's.

pub(crate) mod lock_order;

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
pub(crate) use std::thread_local;

/// Waits for some hundred nanoseconds.
pub(crate) fn pause() {
    (0..32).for_each(|_| spin_loop());
}
