//! The memory allocator of the programs: mimalloc. It is faster than the system's for many small results, and
//! returns unused memory to the system.
//!
//! It does so a second after the memory was freed, but only at the next allocation. An idle database would
//! keep what its last statement freed; hence [`give_back`], which a program sets as [`Config::when_idle`].
//!
//! Memory is asked for without an alignment where the library aligns it anyway. Asked for 4 KiB or more with
//! an alignment, it takes the next larger size, so that a block of 8 KiB would take 10 and a column of them a
//! quarter more than what is counted.
//!
//! This is a leaf module with `unsafe`: the calls to the library. Its twin is the library's own global
//! allocator, which always passes the alignment on.
//!
//! A statement stopped by the memory limit has just freed much memory; hence [`give_back_now`], for
//! [`Config::when_short`].
//!
//! [`Config::when_idle`]: ../entasis/config/struct.Config.html#structfield.when_idle
//! [`Config::when_short`]: ../entasis/config/struct.Config.html#structfield.when_short
#![allow(unsafe_code)]

use libmimalloc_sys as library;
use std::alloc::{GlobalAlloc, Layout};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Alignment of all memory of at least as many bytes.
const ALIGNED: usize = 16;

/// The global allocator.
struct Allocator;

impl Allocator {
    /// Memory from `plain` if it is aligned as wanted, or else from `aligned`.
    #[inline]
    fn place(
        layout: Layout,
        plain: impl FnOnce(usize) -> *mut u8,
        aligned: impl FnOnce(usize, usize) -> *mut u8,
    ) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // Less than its alignment is seldom aligned.
        if size < align {
            return aligned(size, align);
        }
        let found = plain(size);
        // Always so up to `ALIGNED`; beyond it nearly always, if the size is a multiple of the alignment.
        if align <= ALIGNED || found.addr().is_multiple_of(align) {
            return found;
        }
        // SAFETY: it is from the library, and nobody else has it.
        unsafe { library::mi_free(found.cast()) };
        aligned(size, align)
    }
}

// SAFETY: the library's memory is as large and as aligned as a layout says, and is not moved.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Allocator::place(
            layout,
            // SAFETY: it may be called with any size.
            |size| unsafe { library::mi_malloc(size) }.cast(),
            // SAFETY: the alignment of a layout is a power of two.
            |size, align| unsafe { library::mi_malloc_aligned(size, align) }.cast(),
        )
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Allocator::place(
            layout,
            // SAFETY: as above.
            |size| unsafe { library::mi_zalloc(size) }.cast(),
            // SAFETY: as above.
            |size, align| unsafe { library::mi_zalloc_aligned(size, align) }.cast(),
        )
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: the caller has it from this allocator, so it is from the library.
        unsafe { library::mi_free(memory.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: as above, and the alignment is a power of two.
        unsafe {
            match align <= ALIGNED && size >= align {
                true => library::mi_realloc(memory.cast(), size).cast(),
                false => library::mi_realloc_aligned(memory.cast(), size, align).cast(),
            }
        }
    }
}

/// Returns memory to the system that was freed more than a second ago.
pub fn give_back() {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { libmimalloc_sys::mi_collect(false) }
}

/// Returns all memory to the system that this thread has freed. Takes some time.
pub fn give_back_now() {
    // SAFETY: as above.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates, fills, grows and frees memory of many sizes and alignments.
    fn try_all(allocator: &impl GlobalAlloc, usable: &mut impl FnMut(Layout, usize)) {
        for align in [1, 8, 16, 64, 4096] {
            for size in
                (1..300).chain((9..21).flat_map(|bits| [(1 << bits) - 64, 1 << bits, (1 << bits) + 64]))
            {
                let layout = Layout::from_size_align(size, align).unwrap();
                let grown = Layout::from_size_align(size * 2, align).unwrap();
                // SAFETY: each is used within its size, and freed once.
                unsafe {
                    let dirty = allocator.alloc(layout);
                    dirty.write_bytes(1, size);
                    allocator.dealloc(dirty, layout);
                    let memory = allocator.alloc_zeroed(layout);
                    assert!(memory.addr().is_multiple_of(align), "{layout:?}");
                    assert!(
                        std::slice::from_raw_parts(memory, size).iter().all(|byte| *byte == 0),
                        "{layout:?}"
                    );
                    usable(layout, library::mi_usable_size(memory.cast()));
                    memory.write_bytes(7, size);
                    let memory = allocator.realloc(memory, layout, size * 2);
                    assert!(memory.addr().is_multiple_of(align), "{grown:?}");
                    assert!(
                        std::slice::from_raw_parts(memory, size).iter().all(|byte| *byte == 7),
                        "{layout:?}"
                    );
                    allocator.dealloc(memory, grown);
                }
            }
        }
    }

    #[test]
    fn memory_is_aligned_and_takes_no_more_than_its_size() {
        try_all(&mimalloc::MiMalloc, &mut |_, _| ());
        try_all(&Allocator, &mut |layout, usable| {
            let is_whole = layout.size().is_power_of_two() && layout.align() <= 64 && layout.size() >= 64;
            assert!(
                usable >= layout.size() && (!is_whole || usable == layout.size()),
                "{layout:?}: {usable}"
            );
        });
    }
}
