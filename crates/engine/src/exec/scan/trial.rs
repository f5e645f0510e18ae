//! How many rows pass conditions on codes, measured while a worker scans: where few do, the next stretch is
//! longer, and what is read after these conditions is not prefetched.

/// The largest fraction of remaining rows that counts as few, as a divisor.
pub(super) const SPARSE: usize = 8;
/// The most chunks whose slots are processed together if few rows remain.
const LONG_CHUNKS: usize = 16;
/// The number of rows after which older measurements of conditions on codes count half.
const FORGET_ROWS: usize = 1 << 17;

/// Measures how many rows pass conditions on codes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trial {
    seen: usize,
    passed: usize,
}

impl Trial {
    /// Adds a measurement. Older ones count less.
    pub(super) fn count(&mut self, seen: usize, passed: usize) {
        if self.seen > FORGET_ROWS {
            (self.seen, self.passed) = (self.seen / 2, self.passed / 2);
        }
        self.seen += seen;
        self.passed += passed;
    }

    /// The expected number of `rows` that will pass; all, if nothing is known.
    pub(super) fn of(&self, rows: usize) -> usize {
        (rows * self.passed).checked_div(self.seen).unwrap_or(rows)
    }

    /// True unless only few rows have passed so far.
    pub(super) fn are_many(&self) -> bool {
        self.seen > 0 && self.passed * SPARSE >= self.seen
    }

    /// As many chunks' rows as should leave about a chunk, if few rows pass.
    // PERF: a chunk of forty rows costs much of what one of two thousand costs; Q6 of TPC-H takes a fifth
    // less time.
    pub(super) fn chunks(&self, chunk_rows: usize) -> usize {
        match self.seen >= 2 * chunk_rows && self.passed * SPARSE < self.seen {
            true => (self.seen / (self.passed + 1)).clamp(1, LONG_CHUNKS),
            false => 1,
        }
    }
}
