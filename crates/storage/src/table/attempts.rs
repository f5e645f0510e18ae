//! Whether changes of single rows in place ([`super::in_place`]) are worth an attempt.

use crate::sync::{AtomicU32, Ordering};

/// So many failures in a row show that attempts are in vain.
const FAILURES: u32 = 4;
/// So many attempts are then left out.
pub(super) const SKIPPED: u32 = 32;

/// Whether changes in place succeed. Threads overwrite each other's counts, which only shifts the moment when
/// the next attempt is made.
// PERF: while they succeed, nobody writes here.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// Failures since the last success.
    failures: AtomicU32,
    /// Attempts to be left out.
    skips: AtomicU32,
}

impl Attempts {
    /// True if the next attempt is to be made.
    pub(super) fn are_worthwhile(&self) -> bool {
        let skips = self.skips.load(Ordering::Relaxed);
        if skips > 0 {
            self.skips.store(skips - 1, Ordering::Relaxed);
        }
        skips == 0
    }

    /// Counts an attempt.
    pub(super) fn count(&self, is_success: bool) {
        let before = self.failures.load(Ordering::Relaxed);
        let failures = if is_success { 0 } else { FAILURES.min(before + 1) };
        if failures != before {
            self.failures.store(failures, Ordering::Relaxed);
        }
        if failures == FAILURES {
            self.skips.store(SKIPPED, Ordering::Relaxed);
        }
    }
}
