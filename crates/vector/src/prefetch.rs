//! Software prefetch: requests memory before it is read or written.
//!
//! This is a leaf module with `unsafe`: the instruction. Its twin does nothing.
#![allow(unsafe_code)]

/// Prefetches the cache line of a value that is going to be read or written; the index may be out of bounds.
#[inline(always)]
pub fn prefetch<T>(values: &[T], index: usize) {
    prefetch_at(values.as_ptr().wrapping_add(index));
}

/// Prefetches the cache line of `at`, which is going to be read or written. Any pointer is allowed.
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
