//! Asking for memory before it is read or written.
//!
//! This is a leaf module with `unsafe`: the instruction. Its twin is to do nothing.
#![allow(unsafe_code)]

/// Asks for the cache line of a value that is going to be read or written; there need be none at that index.
#[inline(always)]
pub fn prefetch<T>(values: &[T], index: usize) {
    prefetch_at(values.as_ptr().wrapping_add(index));
}

/// Asks for the cache line of `at`, which is going to be read or written. Any pointer will do.
#[inline(always)]
pub fn prefetch_at<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    if !cfg!(miri) {
        // SAFETY: a prefetch reads nothing, and every x86-64 has it.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
