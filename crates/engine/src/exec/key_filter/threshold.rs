//! One worker's test of a threshold ([`crate::threshold`]) where filters are tested.

use crate::exec::profile::PassRate;
use crate::threshold::{Threshold, ThresholdTest};
use entasis_vector::buffer::unique;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Buffer, CHUNK_ROWS, Chunk, Result, Selection, Vector};
use std::sync::Arc;

/// The number of tested rows after which the test is continued or suspended.
const TRIAL_ROWS: usize = 32_768;
/// The percentage of rows that pass above which it is suspended, until the threshold changes.
const USELESS: usize = 90;

/// See the module.
pub(crate) struct ThresholdWorker {
    threshold: Arc<Threshold>,
    test: ThresholdTest,
    rate: Arc<PassRate>,
    /// Rows of the current trial, and how many of them passed.
    seen: usize,
    passed: usize,
    /// The version of the threshold that most rows pass, if the test is suspended.
    useless: u64,
    /// Rows in total: tested, passed.
    total: [u64; 2],
    /// The key column, at the rows that are tested.
    input: Chunk,
    positions: Arc<Buffer>,
}

impl ThresholdWorker {
    /// A test of `threshold` on the column `key`.
    pub(super) fn new(threshold: &Arc<Threshold>, key: &ColumnMeta, rate: &Arc<PassRate>) -> ThresholdWorker {
        ThresholdWorker {
            test: ThresholdTest::new(threshold.clone(), vec![key.clone()], 0),
            threshold: threshold.clone(),
            rate: rate.clone(),
            seen: 0,
            passed: 0,
            useless: 0,
            total: [0; 2],
            input: Chunk::new(),
            positions: Arc::new(Buffer::zeroed(CHUNK_ROWS * 2)),
        }
    }

    /// True if the threshold drops rows, as far as is known.
    pub(super) fn is_on(&self) -> bool {
        self.threshold.version() != self.useless
    }

    /// Keeps in `rows`, which ascend, those that are not beyond the threshold. `positions` are those of rows
    /// in `key`, unless they are the rows themselves.
    ///
    /// # Errors
    /// Those of compiling the comparison.
    pub(super) fn retain(
        &mut self,
        key: &Vector,
        positions: Option<&[u16]>,
        rows: &mut Vec<u16>,
    ) -> Result<()> {
        let Some(machine) = self.test.machine()? else { return Ok(()) };
        let seen = rows.len();
        let buffer = unique(&mut self.positions, seen.max(CHUNK_ROWS) * 2);
        let at = &mut buffer.as_mut_slice::<u16>()[..seen];
        match positions {
            None => at.copy_from_slice(rows),
            Some(positions) => {
                at.iter_mut().zip(&*rows).for_each(|(at, &row)| *at = positions[usize::from(row)]);
            }
        }
        self.input.reset(seen);
        let group = self.input.push_group(Selection::from_buffer(self.positions.clone()));
        self.input.push_column(key.clone(), group);
        let picked = machine.select(&self.input).map(|picks| {
            // Picks ascend, so an element is read before it is overwritten.
            picks.iter().enumerate().for_each(|(to, &pick)| rows[to] = rows[usize::from(pick)]);
            picks.len()
        });
        self.input.reset(0);
        rows.truncate(picked?);
        self.count(seen, rows.len());
        Ok(())
    }

    fn count(&mut self, seen: usize, passed: usize) {
        self.total = [self.total[0] + seen as u64, self.total[1] + passed as u64];
        (self.seen, self.passed) = (self.seen + seen, self.passed + passed);
        if self.seen >= TRIAL_ROWS {
            if self.passed * 100 > self.seen * USELESS {
                self.useless = self.threshold.version();
            }
            (self.seen, self.passed) = (0, 0);
        }
    }
}

impl Drop for ThresholdWorker {
    fn drop(&mut self) {
        self.rate.add([self.total[0], self.total[1], 0]);
    }
}
