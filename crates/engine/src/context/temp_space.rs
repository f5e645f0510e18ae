//! The bytes that the temporary files of a database have, counted for all statements together.

use crate::sync::{AtomicU64, Ordering};

/// The bytes that the temporary files of a database have.
#[derive(Debug, Default)]
pub struct TempSpace(AtomicU64);

impl TempSpace {
    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts `bytes` more; those in use before.
    pub(crate) fn take(&self, bytes: u64) -> u64 {
        self.0.fetch_add(bytes, Ordering::Relaxed)
    }

    /// Counts `bytes` less.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}
