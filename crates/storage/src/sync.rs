//! What threads meet by. One module, so that a test can put a scheduler of its own in the place of the standard library's.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
