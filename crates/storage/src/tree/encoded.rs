//! Encoded rows that are not part of a table yet: slices, and pieces of up to a row group.

use super::Slices;
use crate::BLOCK_ROWS;
use crate::block::Block;
use crate::block::masks::{WORDS, first_slots};
use entasis_vector::{Schema, bitmap};

/// Up to a row group of rows that a builder has encoded, not part of a table yet.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) block_slots: usize,
    pub(crate) slices: Vec<EncodedSlice>,
    pub(crate) rows: usize,
}

/// Up to 1024 slots of all columns, not part of a table yet.
#[derive(Debug)]
pub(crate) struct EncodedSlice {
    pub(crate) rows: usize,
    pub(crate) live: [u64; WORDS],
    pub(crate) blocks: Vec<Block>,
}

impl EncodedSlice {
    pub(crate) fn new(rows: usize, blocks: Vec<Block>) -> EncodedSlice {
        EncodedSlice { rows, live: first_slots(rows), blocks }
    }

    /// A slice without rows, and without memory for any.
    pub(crate) fn empty(columns: usize) -> EncodedSlice {
        EncodedSlice::new(0, (0..columns).map(|_| Block::without_slots()).collect())
    }

    /// A slice whose live slots are `live`.
    pub(crate) fn of(live: [u64; WORDS], blocks: Vec<Block>) -> EncodedSlice {
        EncodedSlice { rows: bitmap::count_ones(&live, BLOCK_ROWS), live, blocks }
    }
}

impl Slices for Piece {
    fn block_slots(&self) -> usize {
        self.block_slots
    }
    fn block(&self, slice: usize, column: usize) -> (&Block, &[u64; WORDS]) {
        (&self.slices[slice].blocks[column], &self.slices[slice].live)
    }
}

impl Piece {
    /// Another piece with the same rows.
    pub(crate) fn twin(&self, schema: &Schema) -> Piece {
        let twin = |slice: &EncodedSlice| {
            let blocks = slice.blocks.iter().zip(schema);
            let blocks = blocks.map(|(block, field)| block.twin(&slice.live, field.ty.physical())).collect();
            EncodedSlice { rows: slice.rows, live: slice.live, blocks }
        };
        Piece {
            block_slots: self.block_slots,
            slices: self.slices.iter().map(twin).collect(),
            rows: self.rows,
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.slices
            .iter()
            .flat_map(|slice| &slice.blocks)
            .map(|block| block.bytes() + block.dictionary_bytes() / 64)
            .sum()
    }

    /// Bytes of its dictionaries.
    pub(crate) fn dictionary_bytes(&self) -> usize {
        let columns = 0..self.slices.first().map_or(0, |slice| slice.blocks.len());
        let of_slice = |number: usize, column: usize| {
            let block = |number: usize| &self.slices[number].blocks[column];
            let shared = number > 0 && block(number - 1).shares_dictionary(block(number));
            if shared { 0 } else { block(number).dictionary_bytes() }
        };
        let of_column = |column| (0..self.slices.len()).map(|number| of_slice(number, column)).sum::<usize>();
        columns.map(of_column).sum()
    }
}
