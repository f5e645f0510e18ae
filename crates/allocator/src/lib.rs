//! The memory allocator of the programs: mimalloc. It is faster than the system's for many small results, and
//! returns unused memory to the system.
//!
//! It does so a second after the memory was freed, but only at the next allocation. An idle database would
//! keep what its last statement freed; hence [`give_back`], which a program sets as [`Config::when_idle`].
//!
//! This is a leaf module with `unsafe`: the calls to the library.
//!
//! A statement stopped by the memory limit has just freed much memory; hence [`give_back_now`], for
//! [`Config::when_short`].
//!
//! [`Config::when_idle`]: ../entasis/config/struct.Config.html#structfield.when_idle
//! [`Config::when_short`]: ../entasis/config/struct.Config.html#structfield.when_short
#![allow(unsafe_code)]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
