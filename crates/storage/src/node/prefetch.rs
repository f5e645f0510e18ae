//! Asking for memory before it is read or written (software prefetch): one cache line, or many.

/// Asks for the cache line of `at`, which is going to be used. Any pointer will do.
// PERF: a row's values stand in as many blocks as it has columns; asked for one after the other they take a
// miss each.
pub(crate) use entasis_vector::prefetch::prefetch_at as prefetch;

/// Asks for the first cache lines of what is read from end to end; the machine asks for the others by itself.
// PERF: asked for all 64 lines of a block, a scan took 14 % longer than asked for 4; for none, 8 %.
#[inline(always)]
pub(crate) fn prefetch_stream(at: *const u8) {
    prefetch_all(at, 4 * 64);
}

/// Asks for the cache lines of `bytes` bytes from `at` on.
#[inline(always)]
pub(crate) fn prefetch_all<T>(at: *const T, bytes: usize) {
    (0..bytes).step_by(64).for_each(|byte| prefetch(at.cast::<u8>().wrapping_add(byte)));
}
