//! Rows that one worker holds back until there are many, and then passes on in the order of a table.
//!
//! If a table is larger than the caches, each lookup costs some cache misses. Lookups near each other share
//! them, so a worker keeps its rows in 256 parts, by the leading bits of their place in the table. When the
//! buffer reaches `join_stride` bytes, or memory is short, they are passed on part by part, and 1/256 of the
//! table is touched at a time.
//!
//! Nothing is held back unless a setting says so: cache misses that are [prefetched](crate::exec::prefetch)
//! cost less (docs/decisions/0015-no-strides-unless-asked.md).
//!
//! ```text
//! rows → waiting, up to a batch → hand_out: each to its part → give: part after part, chunk by chunk
//! ```
//!
//! The rows are probe rows, held back before their lookup ([`buffered_probe`](super::buffered_probe)). Rows
//! of a part keep their order.

use super::strategy::partitions::width;
use crate::context::QueryContext;
use crate::exec::materialized::{Materialized, SEGMENT_ROWS};
use crate::exec::operator::Flow;
use crate::exec::scatter::Scatter;
use crate::memory::Reservation;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Chunk, Result, Vector};

/// The number of parts.
const PARTS: usize = 256;
/// The leading bits of a hash that choose the part.
const PART_BITS: u32 = PARTS.ilog2();
/// Rows that are moved to their parts together.
// PERF: about 64 for each part, since each run of rows has a fixed cost.
pub(super) const BATCH: usize = 8 * CHUNK_ROWS;
/// The part of a row with this hash.
#[inline(always)]
pub(super) fn part_of_hash(hash: u64) -> u8 {
    (hash >> (u64::BITS - PART_BITS)) as u8
}

/// Buffered rows of one worker.
pub(super) struct ProbeBuffer {
    columns: Vec<ColumnMeta>,
    /// The buffered rows of each part.
    parts: Vec<Materialized>,
    /// Rows that have not been moved to their parts yet; their destinations are in `spread`.
    waiting: Materialized,
    spread: Scatter<PARTS>,
    vectors: Vec<Vector>,
    /// Bytes of a row.
    row: usize,
    /// Bytes of the buffered rows.
    held: usize,
    /// Bytes of the parts, whose memory is kept when the buffer is emptied.
    bytes: usize,
    most: usize,
    memory: Reservation,
    /// Memory was too short for more: memory is released with the rows.
    is_short: bool,
    context: QueryContext,
}

impl ProbeBuffer {
    /// An empty buffer for rows with these columns, of at most `most` bytes.
    pub(super) fn new(columns: &[ColumnMeta], most: usize, context: &QueryContext) -> ProbeBuffer {
        let row = ProbeBuffer::row_bytes(columns);
        ProbeBuffer {
            columns: columns.to_vec(),
            parts: (0..PARTS).map(|_| Materialized::in_pages(columns, Materialized::FIRST_ROOM)).collect(),
            waiting: Materialized::expecting(columns, BATCH),
            spread: Scatter::default(),
            vectors: columns.iter().map(|meta| Vector::new(meta.physical)).collect(),
            row,
            held: 0,
            bytes: 0,
            most,
            is_short: false,
            memory: Reservation::new(&context.memory),
            context: context.clone(),
        }
    }

    /// Bytes of a row of these columns.
    pub(super) fn row_bytes(columns: &[ColumnMeta]) -> usize {
        columns.iter().map(|meta| width(meta.physical)).sum()
    }

    /// The vector to which the caller appends the part of each row of the next chunk.
    pub(super) fn parts(&mut self) -> &mut Vec<u8> {
        self.spread.more()
    }

    /// Buffers the rows of a chunk, whose columns are at `places`. True if the buffer is full.
    pub(super) fn add(&mut self, chunk: &Chunk, places: &[usize]) -> bool {
        self.waiting.append(chunk, places, None);
        let (rows, heap) = (self.waiting.rows(), self.waiting.heap_bytes());
        if rows + CHUNK_ROWS <= BATCH && rows * self.row + heap < self.most {
            return false;
        }
        self.hand_out();
        // If memory is short, the buffer counts as full; as much as it has must remain free for others.
        let bytes = self.own_bytes();
        self.is_short = self.memory.resize(bytes).is_err() || self.memory.free() < bytes;
        self.held >= self.most || self.is_short
    }

    /// Bytes of the parts, plus twice a batch: once as it waits, once as it is moved.
    fn own_bytes(&self) -> usize {
        self.bytes + 2 * self.waiting.bytes()
    }

    /// Moves the waiting rows to their parts.
    fn hand_out(&mut self) {
        let rows = self.waiting.rows();
        if rows == 0 {
            return;
        }
        for (column, vector) in self.vectors.iter_mut().enumerate() {
            self.waiting.read(column, 0, 0, rows, vector);
        }
        self.spread.arrange();
        for (number, part) in self.parts.iter_mut().enumerate() {
            let rows = self.spread.rows(number);
            if !rows.is_empty() {
                let (before, heap) = (part.bytes(), part.heap_bytes());
                let vectors: Vec<(&Vector, Option<&[u16]>)> =
                    self.vectors.iter().map(|vector| (vector, Some(rows))).collect();
                part.append_vectors(&vectors, rows.len());
                self.bytes = self.bytes - before + part.bytes();
                self.held += rows.len() * self.row + part.heap_bytes() - heap;
            }
        }
        self.spread.begin();
        // Strings have been copied to the parts; the next batch gets a heap of its own.
        self.vectors.iter_mut().for_each(|vector| vector.begin(0));
        match self.waiting.heap_bytes() {
            0 => self.waiting.restart(),
            _ => self.waiting = Materialized::expecting(&self.columns, BATCH),
        }
    }

    /// Passes all rows to `take`, part by part, as the columns and number of at most a chunk of rows at a
    /// time.
    ///
    /// # Errors
    /// Those of `take`; cancelled.
    pub(super) fn give(&mut self, mut take: impl FnMut(&[Vector], usize) -> Result<Flow>) -> Result<Flow> {
        self.hand_out();
        self.held = 0;
        for part in &mut self.parts {
            for segment in 0..part.segments() {
                for first in (0..part.segment_rows(segment)).step_by(CHUNK_ROWS) {
                    let rows = CHUNK_ROWS.min(part.segment_rows(segment) - first);
                    for (column, vector) in self.vectors.iter_mut().enumerate() {
                        part.read(column, segment, first, rows, vector);
                    }
                    self.context.check()?;
                    if take(&self.vectors, rows)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
            }
            self.bytes -= part.bytes();
            // The next buffer brings about as many rows, hardly ever exactly as many; they fit into one page
            // then.
            let room = (part.rows() / 16 * 17).clamp(Materialized::FIRST_ROOM, SEGMENT_ROWS);
            match part.segments() {
                1 if !self.is_short && part.heap_bytes() == 0 => part.restart(),
                _ => {
                    *part = Materialized::in_pages(
                        &self.columns,
                        if self.is_short { Materialized::FIRST_ROOM } else { room },
                    )
                }
            }
            self.bytes += part.bytes();
            // Leaves memory to the operators that follow. Memory that was refused is not requested again.
            let bytes = self.bytes + 2 * self.waiting.bytes();
            self.memory.resize(bytes.min(self.memory.bytes()))?;
        }
        Ok(Flow::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_the_order_of_hashes() {
        assert_eq!([0, 1 << 55, 1 << 56, u64::MAX].map(part_of_hash), [0, 0, 1, 255]);
    }
}
