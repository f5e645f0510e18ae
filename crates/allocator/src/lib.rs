//! The memory allocator of the programs: mimalloc. Faster than the system's at many small results, and it
//! gives memory back that is not used any more.
//!
//! It does so a second after the memory was freed, but only when somebody allocates. A database that nobody
//! uses would keep what its last statement freed; hence [`give_back`], which a program hands to
//! [`Config::when_idle`].
//!
//! This is a leaf module with `unsafe`: the call into the library.
//!
//! A statement that the memory limit has stopped leaves much behind that was freed at once; hence
//! [`give_back_now`], for [`Config::when_short`].
//!
//! [`Config::when_idle`]: ../entasis/config/struct.Config.html#structfield.when_idle
//! [`Config::when_short`]: ../entasis/config/struct.Config.html#structfield.when_short
#![allow(unsafe_code)]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Gives memory back to the system that was freed more than a second ago.
pub fn give_back() {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { libmimalloc_sys::mi_collect(false) }
}

/// Gives all memory back to the system that this thread has freed. Takes its time.
pub fn give_back_now() {
    // SAFETY: as above.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
