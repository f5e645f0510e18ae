//! What threads meet by, with a scheduler that tries one interleaving after the other.

#[path = "../../src/sync/lock_order.rs"]
pub(crate) mod lock_order;

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicIsize, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use shuttle::thread_local;
pub(crate) use std::sync::PoisonError;

pub(crate) fn pause() {
    shuttle::thread::yield_now();
}

pub(crate) fn spin_loop() {
    shuttle::hint::spin_loop();
}
