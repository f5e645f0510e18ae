//! Asking ahead: where values stand here and there in much memory, the lines of a [`BLOCK`] of rows are asked for by a loop that does
//! nothing else, and only then does another loop read or write them.
//!
//! What no cache holds takes hundreds of cycles to come. A processor asks for as many lines at once as there are loads among the few
//! hundred instructions that it looks ahead: for few of them, if the loop computes with what it reads. A request for a line that
//! nobody waits for costs an instruction, so that as many are under way as the memory can serve.
// PERF: two threads, ns a row of each, without, with lines asked for 16 rows ahead as the loop goes, and by blocks: a read in 50 MB 4.0,
// not tried, 2.3, in 800 MB 6.2, not tried, 3.9; a bit that is set in 25 MB, not tried, 7.1, 2.3, in 100 MB, not tried, 8.2, 3.2.

use entasis_vector::prefetch::prefetch;

/// Rows of a block: enough that the end of one is no matter, and few enough that their lines stay in the nearest cache.
pub(crate) const BLOCK: usize = 256;
/// Bytes from which on lines are asked for: what the nearer caches hold is there as soon.
pub(crate) const FAR_BYTES: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// True if these values are more than the nearer caches hold.
#[inline(always)]
pub(crate) fn are_far<T>(values: &[T]) -> bool {
    size_of_val(values) > FAR_BYTES
}

/// Asks for the values at the index of each of `at`, a block or less, if `values` [are far](are_far); there need be none at an index.
#[inline(always)]
pub(crate) fn ask<T, A: Copy>(values: &[T], at: &[A], index: impl Fn(A) -> usize) {
    debug_assert!(at.len() <= BLOCK);
    if are_far(values) {
        at.iter().for_each(|&at| prefetch(values, index(at)));
    }
}
