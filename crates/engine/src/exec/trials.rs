//! Trials of a test that only saves work to later operators, like a join filter: if most rows pass it, the
//! next million pass untested, and then it is tried again.

use super::profile::PassRate;
use std::sync::Arc;

/// The number of rows that pass untested while a test rests.
pub(crate) const REST_ROWS: usize = 1 << 20;

/// One worker's trials of a test.
pub(crate) struct Trials {
    rate: Arc<PassRate>,
    /// The test may rest.
    may_rest: bool,
    /// Rows of a trial.
    rows: usize,
    /// Rows of the current trial, and how many of them passed.
    seen: usize,
    passed: usize,
    /// Rows that have yet to pass untested.
    rest: usize,
    /// Rows in total: tested, passed, untested.
    total: [u64; 3],
}

impl Trials {
    /// Trials of so many rows each. What is found is added to `rate` at the end.
    pub(crate) fn new(rate: &Arc<PassRate>, may_rest: bool, rows: usize) -> Trials {
        Trials { rate: rate.clone(), may_rest, rows, seen: 0, passed: 0, rest: 0, total: [0; 3] }
    }

    /// The same of a test that cannot be made: all rows pass untested.
    pub(crate) fn without_test(mut self) -> Trials {
        self.rest = usize::MAX;
        self
    }

    /// True if the next `rows` rows pass untested.
    #[inline]
    pub(crate) fn rests(&mut self, rows: usize) -> bool {
        let rests = self.rest > 0;
        if rests {
            self.rest = self.rest.saturating_sub(rows);
            self.total[2] += rows as u64;
        }
        rests
    }

    /// Counts tested rows and those that passed. At the end of a trial in which a larger percentage than
    /// `useless` passed, the test rests.
    #[inline]
    pub(crate) fn count(&mut self, seen: usize, passed: usize, useless: impl FnOnce() -> usize) {
        self.total[0] += seen as u64;
        self.total[1] += passed as u64;
        self.seen += seen;
        self.passed += passed;
        if self.seen >= self.rows {
            if self.may_rest && self.passed * 100 > self.seen * useless() {
                self.rest = REST_ROWS;
            }
            (self.seen, self.passed) = (0, 0);
        }
    }
}

impl Drop for Trials {
    fn drop(&mut self) {
        self.rate.add(self.total);
    }
}
