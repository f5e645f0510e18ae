//! Which process this is, and what becomes of open files when it forks.
//!
//! A forked child starts as a copy of its parent's memory, with the same files open. It has none of the
//! parent's other threads; a lock that one of those held is never released. So nothing that was opened
//! before a fork may be used after it: whoever opens something keeps the [`Process`] that it is of, and asks
//! [`Process::is_current`] before it touches anything. That is one load, since a system call would cost as
//! much as a keyed statement does.
//!
//! A lock on a file (`flock`) belongs to what `open` made, which parent and child share: it would outlive a
//! parent that is killed, for as long as any child runs. So a child gives its share up as it begins: its
//! descriptors of locked files ([`HeldFile`]) become descriptors of `/dev/null`. Then the lock is the
//! parent's alone, and the child is to the file what any process is.
//!
//! This is a leaf module with `unsafe`: it registers a handler with the C library, which calls it in each
//! child of `fork` before anything else runs there. The handler may only do what a signal handler may; it
//! counts, and calls `dup2`. A process that was made without the C library (`clone` by itself) goes
//! unnoticed, and so does one made by `vfork`, which may do nothing but replace itself.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Forks between the program's start and this process.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Descriptors of locked files; `NONE` where there is none.
static HELD: [AtomicI32; 1024] = [const { AtomicI32::new(NONE) }; 1024];
/// A descriptor of `/dev/null`.
static NOTHING: AtomicI32 = AtomicI32::new(NONE);
const NONE: i32 = -1;

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    forks: u32,
    id: u32,
}

impl Process {
    /// This one.
    pub fn current() -> Process {
        watch();
        Process { forks: FORKS.load(Ordering::Relaxed), id: std::process::id() }
    }

    /// True in this process, and false in all that are forked from it.
    #[inline]
    pub fn is_current(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.forks
    }

    /// Its number, as the operating system has it.
    pub fn id(self) -> u32 {
        self.id
    }

    /// How many forks lead from the program's first process to this one.
    pub fn generation() -> usize {
        FORKS.load(Ordering::Relaxed) as usize
    }
}

/// Says that a file is locked, until it is dropped. Beyond a great number of them a file is not noted, and
/// its lock is shared with children until it is released or they end.
#[derive(Debug)]
pub(super) struct HeldFile(Option<&'static AtomicI32>);

impl HeldFile {
    /// Called before the file is locked.
    pub(super) fn new(file: &File) -> HeldFile {
        watch();
        let file = file.as_raw_fd();
        let take = |place: &AtomicI32| {
            place.compare_exchange(NONE, file, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        HeldFile(HELD.iter().find(|place| take(place)))
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(NONE, Ordering::Release);
        }
    }
}

/// Registers the handler, once.
fn watch() {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
            NOTHING.store(nothing.into_raw_fd(), Ordering::Release);
        }
        // SAFETY: the handler has the type that is asked for, lives as long as the library, and does only
        // what is allowed in a child of a process with threads: it uses atomics and calls `dup2`.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// What a child does first.
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let nothing = NOTHING.load(Ordering::Acquire);
    if nothing == NONE {
        return;
    }
    for place in &HELD {
        let file = place.load(Ordering::Acquire);
        if file != NONE {
            // SAFETY: the descriptor is that of a file that this library opened and has not closed: it is
            // noted while the file is open. Its number stays taken, so that closing it later closes no other.
            unsafe { libc::dup2(nothing, file) };
        }
    }
}

/// True if `work` holds in a process that is forked from this one, which ends with it: false if it panics
/// there, or does not return within a minute.
#[cfg(test)]
pub(super) fn holds_in_a_child(work: impl FnOnce() -> bool) -> bool {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::{Duration, Instant};
    // SAFETY: the child is a copy of this thread alone. It runs `work`, of which a panic goes no further, and
    // ends there: it never returns into the test.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a process can be forked");
    if child == 0 {
        let holds = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: it ends this process, without anything that others have left to be done.
        unsafe { libc::_exit(i32::from(!holds)) };
    }
    let (began, mut status) = (Instant::now(), 0);
    loop {
        // SAFETY: the status is written to a number that lives longer than the call.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if began.elapsed() > Duration::from_secs(60) {
            // SAFETY: nobody has waited for the child yet, so that the number is that of no other process.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_the_current_one() {
        let process = Process::current();
        assert!(process.is_current());
        assert_eq!(process.id(), std::process::id());
        let other = Process { forks: process.forks + 1, ..process };
        assert!(!other.is_current());
    }

    #[test]
    fn a_child_is_another_process() {
        let process = Process::current();
        let generation = Process::generation();
        assert!(holds_in_a_child(|| !process.is_current() && Process::generation() == generation + 1));
        assert!(!holds_in_a_child(|| process.is_current()));
        assert!(process.is_current());
    }
}
