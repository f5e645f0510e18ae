//! Builders make blocks of vectors, one builder for each column of a row group that is being filled.
//!
//! Values of fixed width are encoded as soon as a block is full. Strings are encoded at the end of the row
//! group, because only then is it known whether a dictionary pays; a column with too many distinct values is
//! encoded block by block as well.
//!
//! ```text
//! mod ──▶ fixed                   a row group's builders; values of fixed width
//!     ──▶ strings ──▶ interner    strings, and their dictionary as it grows
//! ```

mod fixed;
mod interner;
mod strings;

use crate::block::{Block, Form, with_fixed};
use crate::scan::read;
use crate::tree::{EncodedSlice, Piece, RowGroup, Shape, Slices};
use crate::value::Sketch;
use entasis_vector::{Buffer, CHUNK_ROWS, Field, Result, Vector};
use std::ops::Range;
use std::slice::from_ref;

/// Blocks may share a piece of memory if at most one part in so many of it is wasted.
const WASTE: usize = 16;
/// Fewer blocks than this do not get a piece of their own.
const FEW_TOGETHER: usize = 8;

/// Takes values of one column, in order, and returns blocks of 1024.
pub(crate) trait ColumnBuilder: Send {
    /// Adds rows `rows` of a chunk: row r is at position r of `vector`, or at `positions[r]`.
    ///
    /// # Errors
    /// Resource, if the strings of one block exceed 4 GiB.
    fn append(&mut self, vector: &Vector, positions: Option<&[u16]>, rows: Range<usize>) -> Result<()>;
    /// Adds the slots of a slice: slot s is at position `positions[s]` of `vector`. Slots that are not `live`
    /// hold no row: their positions are those of rows beside them, whose values widen no bounds.
    ///
    /// # Errors
    /// Those of [`ColumnBuilder::append`].
    fn append_slice(&mut self, vector: &Vector, positions: &[u16], live: &[u64]) -> Result<()> {
        let _ = live;
        self.append(vector, Some(positions), 0..positions.len())
    }
    /// Ends the row group: all blocks, full but for the last. The builder is empty again.
    fn finish(&mut self) -> Vec<Block>;
    /// The sketch of all values since it was last taken.
    fn take_sketch(&mut self) -> Sketch;
    /// Bytes of memory.
    fn bytes(&self) -> usize;
}

/// How thorough a builder is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Count distinct values.
    pub(crate) sketch: bool,
    /// Rows of a block.
    pub(crate) block_rows: usize,
    /// Slots of a block with memory, at least `block_rows`. Those beyond the rows are ghosts.
    pub(crate) capacity: usize,
    /// Rows of a row group.
    pub(crate) group_rows: usize,
}

fn column_builder(field: &Field, form: Form, effort: Effort) -> Box<dyn ColumnBuilder> {
    with_fixed!(
        field.ty.physical(),
        T => Box::new(fixed::FixedBuilder::<T>::new(field.ty, form, effort)),
        Box::new(strings::StringBuilder::new(field.ty, form, effort))
    )
}

/// Builds pieces of up to a row group from vectors, side by side.
pub(crate) struct GroupBuilder {
    columns: Vec<Box<dyn ColumnBuilder>>,
    rows: usize,
    effort: Effort,
    /// Blocks will be scanned, and hardly ever written.
    is_read: bool,
}

impl GroupBuilder {
    pub(crate) fn new(shape: &Shape, effort: Effort) -> GroupBuilder {
        let is_read = shape.key.is_none();
        GroupBuilder::of_forms(shape, |column| shape.form(column), effort, is_read)
    }

    /// For rows of a table with a layout key that rest.
    pub(crate) fn at_rest(shape: &Shape, effort: Effort) -> GroupBuilder {
        GroupBuilder::of_forms(shape, |column| shape.form_at_rest(column), effort, false)
    }

    fn of_forms(shape: &Shape, form: impl Fn(usize) -> Form, effort: Effort, is_read: bool) -> GroupBuilder {
        let builder = |(column, field)| column_builder(field, form(column), effort);
        let columns = shape.schema.iter().enumerate().map(builder).collect();
        GroupBuilder { columns, rows: 0, effort, is_read }
    }

    /// Rows taken since the last row group.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// How many more rows the row group takes.
    pub(crate) fn room(&self) -> usize {
        self.effort.group_rows - self.rows
    }

    /// The builders. Each must be given the same number of rows, which is then passed to
    /// [`GroupBuilder::added`].
    pub(crate) fn columns_mut(&mut self) -> &mut [Box<dyn ColumnBuilder>] {
        &mut self.columns
    }

    pub(crate) fn added(&mut self, rows: usize) {
        self.rows += rows;
        debug_assert!(self.rows <= self.effort.group_rows);
    }

    /// Adds the slots `slots`, all live, of slices of the same columns.
    pub(crate) fn append_slots<S: Slices>(
        &mut self,
        slices: &S,
        slots: Range<usize>,
        schema: &[Field],
    ) -> Result<()> {
        for (column, builder) in self.columns.iter_mut().enumerate() {
            let mut vector = Vector::new(schema[column].ty.physical());
            let mut first = slots.start;
            while first < slots.end {
                let rows = (slots.end - first).min(CHUNK_ROWS);
                read::decode(
                    slices,
                    column,
                    vector.physical(),
                    from_ref(&(first..first + rows)),
                    rows,
                    &mut vector,
                );
                builder.append(&vector, None, 0..rows)?;
                first += rows;
            }
        }
        self.added(slots.len());
        Ok(())
    }

    /// Adds slices of a row group, each with its index there, and for each slot the position that gives it
    /// its value: its own, or that of a row beside it.
    pub(crate) fn append_slices<'a>(
        &mut self,
        group: &RowGroup,
        slices: impl Iterator<Item = (usize, &'a Vec<u16>)> + Clone,
        schema: &[Field],
    ) -> Result<()> {
        let width = group.block_slots();
        for (column, builder) in self.columns.iter_mut().enumerate() {
            let mut vector = Vector::new(schema[column].ty.physical());
            for (number, positions) in slices.clone() {
                read::decode(
                    group,
                    column,
                    vector.physical(),
                    from_ref(&(number * width..(number + 1) * width)),
                    width,
                    &mut vector,
                );
                builder.append_slice(&vector, positions, group.slices[number].live())?;
            }
        }
        self.added(slices.map(|(_, positions)| positions.len()).sum());
        Ok(())
    }

    /// Adds the live slots of a row group.
    pub(crate) fn append_live(&mut self, group: &RowGroup, schema: &[Field]) -> Result<()> {
        let mut positions: Vec<u16> = Vec::with_capacity(CHUNK_ROWS);
        for (column, builder) in self.columns.iter_mut().enumerate() {
            let mut vector = Vector::new(schema[column].ty.physical());
            for first in (0..group.slots()).step_by(CHUNK_ROWS) {
                let window = (group.slots() - first).min(CHUNK_ROWS);
                positions.clear();
                group.each_live(first..first + window, |position| positions.push(position as u16));
                if !positions.is_empty() {
                    read::decode(
                        group,
                        column,
                        vector.physical(),
                        from_ref(&(first..first + window)),
                        window,
                        &mut vector,
                    );
                    builder.append(&vector, Some(&positions), 0..positions.len())?;
                }
            }
        }
        self.added(group.rows());
        Ok(())
    }

    /// The rows taken since the last call; there must be some.
    pub(crate) fn finish(&mut self) -> Piece {
        let slices = self.rows.div_ceil(self.effort.block_rows);
        let mut blocks: Vec<_> = (0..slices).map(|_| Vec::with_capacity(self.columns.len())).collect();
        for builder in &mut self.columns {
            let mut column = builder.finish();
            if self.is_read {
                put_together(&mut column);
            }
            debug_assert_eq!(column.len(), slices);
            for (slice, block) in blocks.iter_mut().zip(column) {
                slice.push(block);
            }
        }
        let rows = std::mem::take(&mut self.rows);
        let mut left = rows;
        let slice = |blocks| {
            let rows = left.min(self.effort.block_rows);
            left -= rows;
            EncodedSlice::new(rows, blocks)
        };
        Piece { block_slots: self.effort.block_rows, slices: blocks.into_iter().map(slice).collect(), rows }
    }

    /// The columns' sketches since they were last taken.
    pub(crate) fn take_sketches(&mut self) -> Vec<Sketch> {
        self.columns.iter_mut().map(|builder| builder.take_sketch()).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().map(|builder| builder.bytes()).sum()
    }
}

/// Moves the values of a column's blocks to one piece of memory, or to a few that fit the allocator's sizes.
/// A piece is freed when all of its blocks have been written to or encoded again, so a table with scattered
/// changes may keep twice the memory.
// PERF: the processor prefetches what is read sequentially, across pages as well. Where a piece of 96 KB ends
// and the next one begins 4 KB further on, a scan waits for some microseconds: 9 GB/s instead of 13
// (docs/design/compression.md).
pub(crate) fn put_together(blocks: &mut [Block]) {
    let mut buffers: Vec<&mut Buffer> =
        blocks.iter_mut().filter_map(|block| block.values.buffer_mut()).collect();
    let mut left = &mut buffers[..];
    while !left.is_empty() {
        let sizes: Vec<usize> = left.iter().map(|buffer| buffer.capacity()).collect();
        let (piece, rest) = left.split_at_mut(fitting(&sizes));
        Buffer::put_together(piece);
        left = rest;
    }
}

/// How many buffers of these sizes, from the first on, share one piece of memory: all, unless the allocator
/// would return much more memory than they need. It has four sizes from one power of two to the next.
fn fitting(sizes: &[usize]) -> usize {
    let all = sizes.iter().sum::<usize>() + Buffer::PIECE_HEAD;
    let step = (all.next_power_of_two() / 8).max(1);
    let (below, above) = (all / step * step, all.next_multiple_of(step));
    if (above - all) * WASTE <= all {
        return sizes.len();
    }
    let mut sum = Buffer::PIECE_HEAD;
    let fitting = sizes.iter().take_while(|size| {
        sum += **size;
        sum <= below
    });
    match fitting.count() {
        few if few < FEW_TOGETHER => sizes.len(),
        count => count,
    }
}

/// Calls `each` for each of `rows`, in order, with the position of the row.
fn for_each_position(positions: Option<&[u16]>, rows: Range<usize>, mut each: impl FnMut(usize)) {
    match positions {
        None => rows.for_each(each),
        Some(positions) => positions[rows].iter().for_each(|&position| each(position as usize)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fill_the_memory_that_an_allocator_gives() {
        let equal = |blocks: usize, bytes: usize| fitting(&vec![bytes; blocks]);
        // The header alone would need the next size.
        assert_eq!(equal(128, 3072), 127);
        assert_eq!(equal(128, 2176), 120);
        // 2 % are wasted.
        assert_eq!(equal(127, 3072), 127);
        assert_eq!(equal(1, 512), 1);
        assert_eq!(equal(9, 1 << 20), 9, "seven would be few");
        assert_eq!(fitting(&[]), 0);
        let mut sizes: Vec<usize> = (0..128).map(|block| 64 * (1 + block * 7 % 50)).collect();
        while !sizes.is_empty() {
            let count = fitting(&sizes);
            assert!(count >= FEW_TOGETHER.min(sizes.len()));
            sizes.drain(..count);
        }
    }
}
