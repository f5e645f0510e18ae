//! A sorted run: rows in their order, in a temporary file, block by block.
//!
//! A block is a piece of the file with the [tuples](crate::exec::spill::rows) of up to 8192 rows, fewer if
//! they are wide. With it goes what its reader must know beforehand: the number of rows, and the memory that
//! they will need as columns. Only one block of a run is in memory at a time.
//!
//! Each row carries its morsel as a last column, which rows in memory do not need: there, a worker remembers
//! where each morsel begins.
//!
//! Invariants: the rows of a run are in the order of all keys; of equal rows, those of the lower morsel come
//! first, and within a morsel the earlier ones.

use super::run_spec::{BlockSize, RunSpec};
use crate::exec::materialized::Materialized;
use crate::exec::spill::file::{Extent, TempFile};
use entasis_vector::{CHUNK_ROWS, PhysicalType, Result, StringView, Vector};
use std::sync::Arc;

/// Bytes that ordering takes for a row while runs are merged: its entry twice, its place, its id.
pub const ORDER_BYTES: usize = 56;
/// Bytes of a string that its view holds.
const INLINE_BYTES: usize = 12;
/// A heap of strings takes at most this multiple of their bytes, plus a constant.
const HEAP_PARTS: usize = 3;
const HEAP_LEAST: usize = 4 << 10;

/// A block that was written.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Where it is.
    pub extent: Extent,
    /// Its rows.
    pub rows: usize,
    /// Memory that they need as columns.
    bytes: usize,
}

impl Block {
    /// Memory that it needs while it is merged with others: as columns, as columns of the output rows, in
    /// their order.
    fn needs(&self) -> usize {
        2 * self.bytes + self.rows * ORDER_BYTES
    }
}

/// Rows in order, in a file.
pub struct SortedRun {
    /// Where its blocks are. It is deleted with the last run in it.
    pub file: Arc<TempFile>,
    /// Its blocks, at least one.
    pub blocks: Vec<Block>,
    /// Its rows.
    pub rows: usize,
    /// Memory that it needs while it is merged with others.
    pub needs: usize,
}

/// Writes one sorted run.
pub struct RunWriter<'a> {
    spec: &'a RunSpec,
    run: SortedRun,
    size: BlockSize,
    /// Columns of strings.
    texts: Vec<usize>,
    /// Rows that are not yet written, and bytes of their long strings.
    block: Materialized,
    text: usize,
    vectors: Vec<Vector>,
    piece: Vec<u8>,
}

impl<'a> RunWriter<'a> {
    /// An empty run in `file`.
    pub fn new(spec: &'a RunSpec, file: Arc<TempFile>) -> RunWriter<'a> {
        let size = spec.block_size();
        let columns = spec.columns();
        let is_text = |column: &usize| columns[*column].physical == PhysicalType::Str;
        RunWriter {
            spec,
            run: SortedRun { file, blocks: Vec::new(), rows: 0, needs: 0 },
            size,
            texts: (0..columns.len()).filter(is_text).collect(),
            block: Materialized::expecting(columns, size.rows),
            text: 0,
            vectors: columns.iter().map(|meta| Vector::new(meta.physical)).collect(),
            piece: Vec::new(),
        }
    }

    /// Adds the rows `ids`, in that order. `gather` writes all columns of some of them to vectors.
    ///
    /// # Errors
    /// I/O; resource, if temporary files would be too large; interrupted.
    pub fn add(&mut self, mut ids: &[u32], mut gather: impl FnMut(&[u32], &mut [Vector])) -> Result<()> {
        while !ids.is_empty() {
            let room = (self.size.rows - self.block.rows()).min(CHUNK_ROWS);
            let now = &ids[..room.min(ids.len())];
            gather(now, &mut self.vectors);
            let fitting = self.fitting(now.len());
            let vectors: Vec<(&Vector, Option<&[u16]>)> =
                self.vectors.iter().map(|vector| (vector, None)).collect();
            self.block.append_vectors(&vectors, fitting);
            ids = &ids[fitting..];
            if self.block.rows() == self.size.rows || self.text >= self.size.text {
                self.write_block()?;
            }
        }
        Ok(())
    }

    /// How many of the first `rows` rows of the vectors are added before strings have filled the block: at
    /// least one.
    fn fitting(&mut self, rows: usize) -> usize {
        if self.texts.is_empty() {
            return rows;
        }
        let full = (0..rows).find(|&row| {
            let vectors = self.texts.iter().map(|&column| &self.vectors[column]);
            let lengths =
                vectors.filter(|vector| vector.is_valid(row)).map(|v| v.values::<StringView>()[row].len());
            self.text += lengths.filter(|&length| length > INLINE_BYTES).sum::<usize>();
            self.text >= self.size.text
        });
        full.map_or(rows, |row| row + 1)
    }

    fn write_block(&mut self) -> Result<()> {
        self.spec.context().check()?;
        let rows = self.block.rows();
        self.piece.clear();
        let long = self.spec.format().write(&self.block, 0, 0..rows, &mut self.piece)?;
        let extent = self.run.file.add(&self.piece)?;
        self.spec.note_written(self.piece.len());
        let heap = if long > 0 { long * HEAP_PARTS + HEAP_LEAST } else { 0 };
        let block = Block { extent, rows, bytes: self.block.bytes() - self.block.heap_bytes() + heap };
        self.run.blocks.push(block);
        self.run.rows += rows;
        self.run.needs = self.run.needs.max(block.needs());
        self.block = Materialized::expecting(self.spec.columns(), self.size.rows);
        self.text = 0;
        Ok(())
    }

    /// The finished run, once all its rows have been added; `None` if there are none.
    ///
    /// # Errors
    /// As for `add`.
    pub fn finish(mut self) -> Result<Option<SortedRun>> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        Ok((self.run.rows > 0).then_some(self.run))
    }
}
