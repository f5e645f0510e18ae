//! Slices side by side, wherever they hang: what windows are read from.

use crate::block::Block;
use crate::block::masks::WORDS;

/// Slices side by side, each of as many slots.
pub(crate) trait Slices {
    /// Slots of each slice.
    fn block_slots(&self) -> usize;
    /// The block of a column in a slice, and the live slots.
    fn block(&self, slice: usize, column: usize) -> (&Block, &[u64; WORDS]);
    /// Asks for the memory of a column behind a slice, whose block is there.
    fn prefetch_behind(&self, _slice: usize, _column: usize) {}
}
