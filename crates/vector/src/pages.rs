//! Large allocations: pages of their own, huge ones where the system has them.
//!
//! Random reads in more than a few megabytes miss the TLB as often as the caches. A huge page is 512 small
//! ones. Smaller allocations, and everything on other systems, are left to the allocator.
//!
//! This is a leaf module with `unsafe`: the system's calls. Its twin is the allocator.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// The least bytes of an allocation with pages of its own: those of a huge page.
const LARGE: usize = 2 << 20;

/// Zeroed memory of a layout whose size is not 0.
pub(crate) fn allocate(layout: Layout) -> *mut u8 {
    let bytes = match is_large(layout) {
        #[cfg(all(target_os = "linux", not(miri)))]
        true => map(layout.size()),
        // SAFETY: the size is not 0.
        _ => unsafe { alloc_zeroed(layout) },
    };
    if bytes.is_null() {
        handle_alloc_error(layout);
    }
    bytes
}

/// # Safety
/// [`allocate`] returned these bytes for this layout, and nobody uses them any more.
pub(crate) unsafe fn free(bytes: *mut u8, layout: Layout) {
    match is_large(layout) {
        #[cfg(all(target_os = "linux", not(miri)))]
        // SAFETY: they are a mapping of this size, or a part of one that it has been merged with. Splitting
        // it may fail if a process has too many mappings: then only the memory is lost.
        true => unsafe {
            let failed = libc::munmap(bytes.cast(), layout.size());
            debug_assert_eq!(failed, 0);
        },
        // SAFETY: they are the allocator's.
        _ => unsafe { dealloc(bytes, layout) },
    }
}

fn is_large(layout: Layout) -> bool {
    cfg!(all(target_os = "linux", not(miri))) && layout.size() >= LARGE
}

/// A mapping of at least `bytes` bytes that begins with a huge page; null if there is none.
#[cfg(all(target_os = "linux", not(miri)))]
fn map(bytes: usize) -> *mut u8 {
    // The system chooses where a mapping begins: the parts before the first huge page and after the end are
    // unmapped.
    let length = bytes + LARGE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a mapping of new memory, parts of which are unmapped, and advice on the rest of it. Parts end
    // where pages do: `bytes` is rounded up by the system in both calls.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return std::ptr::null_mut();
        }
        let before = start.align_offset(LARGE);
        if before > 0 {
            libc::munmap(start, before);
        }
        let first = start.add(before);
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let (end, all) = (bytes.next_multiple_of(page), length.next_multiple_of(page) - before);
        if all > end {
            libc::munmap(first.add(end), all - end);
        }
        // The last bytes get no huge page, which would be resident as a whole.
        libc::madvise(first, bytes / LARGE * LARGE, libc::MADV_HUGEPAGE);
        first.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_memory_is_zeroed_and_aligned() {
        for size in [64, LARGE - 64, LARGE, LARGE + 64, 3 * LARGE - 4096, 5 * LARGE] {
            let layout = Layout::from_size_align(size, 64).unwrap();
            for _ in 0..3 {
                let bytes = allocate(layout);
                assert_eq!(bytes.align_offset(64), 0);
                // SAFETY: allocated here, and freed once.
                unsafe {
                    let values = std::slice::from_raw_parts_mut(bytes, size);
                    assert!(values.iter().all(|&byte| byte == 0));
                    values.fill(7);
                    free(bytes, layout);
                }
            }
        }
    }
}
