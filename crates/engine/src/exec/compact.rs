//! Compaction: small chunks are copied together before an operator that costs the same for few rows as for
//! many.
//!
//! A selective filter or join leaves chunks of a handful of rows, and each of them pays for a dozen passes of
//! a probe or an aggregation. Chunks of less than a sixteenth of the full size are copied, column by column,
//! to one that is passed on when it is nearly full; larger chunks pass through untouched. The threshold is
//! fixed: at 128 rows, copying and passing on cost the same for most operators. (Qiao and Zhang, *Data Chunk
//! Compaction*, SIGMOD 2025, learn it.)
//!
//! Rows may be held back beyond the end of their morsel, so compaction is only used where order is lost
//! anyway.

use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use crate::exec::row_copier::RowCopier;
use entasis_vector::{Chunk, PhysicalType, Result};

/// A chunk is small below this part of a full one.
const SMALL_PART: usize = 16;

/// Copies small chunks together.
pub(crate) struct Compact {
    /// The columns' physical types.
    pub types: Vec<PhysicalType>,
    /// Rows of a full chunk.
    pub chunk_rows: usize,
}

impl OperatorFactory for Compact {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Worker {
            rows: RowCopier::sharing(&self.types),
            output: Chunk::new(),
            small: (self.chunk_rows / SMALL_PART).max(2).min(self.chunk_rows),
            chunk_rows: self.chunk_rows,
        }))
    }
}

struct Worker {
    rows: RowCopier,
    output: Chunk,
    small: usize,
    chunk_rows: usize,
}

impl Worker {
    fn flush(&mut self, next: &mut dyn Push) -> Result<Flow> {
        if self.rows.rows() == 0 {
            return Ok(Flow::Continue);
        }
        self.rows.lend(&mut self.output);
        let flow = next.push(&mut self.output);
        self.output.reset(0);
        flow
    }
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        if chunk.len() >= self.small || chunk.stored().is_some() {
            return next.push(chunk);
        }
        let taken = self.rows.append(chunk, 0);
        debug_assert_eq!(taken, chunk.len());
        if self.rows.rows() + self.small > self.chunk_rows { self.flush(next) } else { Ok(Flow::Continue) }
    }

    fn finish(&mut self, next: &mut dyn Push) -> Result<Flow> {
        self.flush(next)
    }
}
