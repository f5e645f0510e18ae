//! Software prefetch: memory is requested before it is read or written, one cache line or many.

use entasis_vector::prefetch::prefetch_at;

/// Prefetches the cache line of `at`, which may be any pointer.
// PERF: a row's values are in as many blocks as it has columns; read one after the other they take a cache
// miss each.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    prefetch_at(at);
}

/// Prefetches the first cache lines of what is read sequentially; the processor prefetches the others.
// PERF: if all 64 lines of a block were requested, a scan took 14 % longer than with 4; with none, 8 %
// longer.
#[inline(always)]
pub(crate) fn prefetch_stream(at: *const u8) {
    prefetch_all(at, 4 * 64);
}

/// Prefetches the cache lines of `bytes` bytes from `at` on.
#[inline(always)]
pub(crate) fn prefetch_all<T>(at: *const T, bytes: usize) {
    (0..bytes).step_by(64).for_each(|byte| prefetch(at.cast::<u8>().wrapping_add(byte)));
}
