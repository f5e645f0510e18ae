//! Consecutive slices, in a row group or elsewhere: what a window of slots is read from.

use crate::block::Block;
use crate::block::masks::WORDS;

/// Consecutive slices of equal length.
pub(crate) trait Slices {
    /// Slots of each slice.
    fn block_slots(&self) -> usize;
    /// The block of a column in a slice, and the live slots.
    fn block(&self, slice: usize, column: usize) -> (&Block, &[u64; WORDS]);
    /// Prefetches the values of a column in the slices after one, whose own block has been fetched.
    fn prefetch_behind(&self, _slice: usize, _column: usize) {}
}
