//! Locks and atomics, and the sizes of parts that workers share. All come from this module, so that
//! `tests/interleavings` can replace those of the standard library by a scheduler's, and use smaller parts.

pub(crate) use entasis_vector::statement::within;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
pub(crate) use std::thread;

/// Sources of fewer chunks are not worth waking another worker: 32 K rows.
pub(crate) const CHUNKS_FOR_HELP: f64 = 16.0;
/// Rows that a partition of a join table should have.
pub(crate) const PARTITION_ROWS: u64 = 32 << 10;
/// The fewest places of such a partition, as a power of two: a multiple of what a word of a directory holds.
pub(crate) const MIN_PARTITION_SHIFT: u32 = 10;
/// Rows that a part of a build side should have that is put in place.
pub(crate) const PART_ROWS: usize = if cfg!(test) { 1 << 8 } else { 1 << 17 };

/// Locks a mutex. A panic of a thread that held it has failed the statement already, so what it left is as
/// good as anything.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
