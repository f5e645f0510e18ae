//! Rows on their way to a row group of a file.

use arrow_array::{ArrayRef, RecordBatch};
use entasis_engine::exec::Reservation;
use std::sync::Arc;

/// The most bytes of the rows of a row group, before they are encoded.
const GROUP_BYTES: usize = 256 << 20;
/// The part of all memory that the rows of one row group may take.
const GROUP_SHARE: usize = 16;

/// The most bytes of rows that become a row group, if there is `limit` memory.
pub(super) fn group_bytes(limit: usize) -> usize {
    (limit / GROUP_SHARE).clamp(1 << 20, GROUP_BYTES)
}

/// Rows, and the memory that they take. Parts of them share it.
#[derive(Clone)]
pub(crate) struct Batch {
    rows: RecordBatch,
    bytes: usize,
    _memory: Arc<Reservation>,
}

impl Batch {
    /// `rows`, for which `memory` is reserved.
    pub(crate) fn new(rows: RecordBatch, memory: Reservation) -> Batch {
        Batch { rows, bytes: memory.bytes(), _memory: Arc::new(memory) }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows.num_rows()
    }

    /// The values of a column.
    pub(crate) fn column(&self, index: usize) -> &ArrayRef {
        self.rows.column(index)
    }

    /// Bytes of the rows.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Some of the rows.
    pub(crate) fn slice(&self, start: usize, rows: usize) -> Batch {
        let bytes = (self.bytes as u128 * rows as u128 / self.rows().max(1) as u128) as usize;
        Batch { rows: self.rows.slice(start, rows), bytes, _memory: self._memory.clone() }
    }
}

/// Removes the first `rows` rows of `batches`, which have as many, and returns them.
pub(super) fn split(batches: &mut Vec<Batch>, rows: usize) -> Vec<Batch> {
    let (mut first, mut missing) = (Vec::new(), rows);
    let mut rest = std::mem::take(batches).into_iter();
    while missing > 0
        && let Some(batch) = rest.next()
    {
        let fits = missing.min(batch.rows());
        if fits < batch.rows() {
            batches.push(batch.slice(fits, batch.rows() - fits));
        }
        first.push(batch.slice(0, fits));
        missing -= fits;
    }
    batches.extend(rest);
    first
}
