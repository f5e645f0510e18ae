//! Rows that are still where a table keeps them.
//!
//! A chunk may stand for rows that have not been copied out of their blocks ([`crate::Chunk::push_stored`]).
//! A sink that needs only a few aggregates of them requests these: the blocks are folded as they are encoded,
//! and blocks whose bounds show that they do not matter are not even read. This goes beyond the lazy
//! decompression of Westmann et al., *The Implementation and Performance of Compressed Databases*, section
//! 3.1.

/// Rows of some columns. Aggregates are taken of columns of integers of up to 64 bits: numbers, decimals,
/// dates, times, booleans.
pub trait Stored: std::fmt::Debug + Send + Sync {
    /// Rows where `column` is not NULL.
    fn count(&self, column: usize) -> usize;
    /// The sum of `column`'s values; 0 if there are none.
    fn sum(&self, column: usize) -> i128;
    /// The largest of `best` and `column`'s values, or the smallest.
    fn extreme(&self, column: usize, largest: bool, best: i128) -> i128;
}
