//! The order of locks, checked in debug builds: a thread only takes locks that come after all those that it
//! holds, so there are no deadlocks.
//!
//! | lock | held for | what its holder may wait for |
//! |---|---|---|
//! | a write lock, by table id | a statement or commit | later write locks, and all below |
//! | the names of the catalog | publishing a commit, taking snapshots of several tables | all below |
//! | a table's head, by table id | a snapshot, a few rows, a fast-forward | later heads |
//!
//! A write lock may be taken out of order if the wait for it is limited ([`Held::limited`]): such a deadlock
//! ends by itself. Locks under which no other lock is taken are not listed; `docs/design/locks.md` names all
//! of them.

use super::thread_local;
use std::cell::RefCell;

/// A lock, in the order in which locks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lock {
    /// The write lock of the table with this id.
    Write(u64),
    /// [`crate::Catalog`]'s newest version.
    Names,
    /// The head of the table with this id.
    Head(u64),
}

thread_local! {
    static HELD: RefCell<Vec<Lock>> = const { RefCell::new(Vec::new()) };
}

/// A lock that the thread holds while this lives. Empty in release builds.
#[derive(Debug)]
pub(crate) struct Held(#[cfg(debug_assertions)] Lock);

impl Held {
    /// Notes that the thread is about to wait for a lock.
    ///
    /// # Panics
    /// In debug builds, if the thread holds a lock that does not come before it.
    #[inline]
    pub(crate) fn ordered(lock: Lock) -> Held {
        Held::checked(lock, |held| held < lock)
    }

    /// Notes that the thread is about to wait for a write lock, but not for long.
    ///
    /// # Panics
    /// In debug builds, if the thread holds a lock other than write locks of other tables.
    #[inline]
    pub(crate) fn limited(lock: Lock) -> Held {
        Held::checked(lock, |held| held < Lock::Names && held != lock)
    }

    #[inline]
    fn checked(lock: Lock, may_hold: impl Fn(Lock) -> bool) -> Held {
        if cfg!(debug_assertions) {
            HELD.with(|held| {
                let mut held = held.borrow_mut();
                let before = held.iter().find(|held| !may_hold(**held));
                // A thread that is panicking releases its locks in any order.
                assert!(
                    before.is_none() || std::thread::panicking(),
                    "{lock:?} is taken by a thread that holds {held:?}"
                );
                held.push(lock);
            });
        }
        #[cfg(debug_assertions)]
        return Held(lock);
        #[cfg(not(debug_assertions))]
        return Held();
    }
}

/// Notes that the thread is about to wait for a disk.
///
/// # Panics
/// In debug builds, if the thread holds any lock.
#[inline]
pub(crate) fn assert_none_is_held() {
    if cfg!(debug_assertions) {
        HELD.with(|held| {
            let held = held.borrow();
            assert!(held.is_empty() || std::thread::panicking(), "a disk is waited for under {held:?}");
        });
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        // Thread-local storage may be gone when a thread releases its last locks.
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|lock| *lock == self.0) {
                held.remove(at);
            }
        });
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn locks_are_taken_in_one_order() {
        let is_refused =
            |take: fn(Lock) -> Held, lock| catch_unwind(AssertUnwindSafe(|| drop(take(lock)))).is_err();
        let write_lock = Held::ordered(Lock::Write(3));
        assert!(is_refused(Held::ordered, Lock::Write(2)) && is_refused(Held::ordered, Lock::Write(3)));
        assert!(!is_refused(Held::limited, Lock::Write(2)) && is_refused(Held::limited, Lock::Write(3)));
        let names = Held::ordered(Lock::Names);
        assert!(is_refused(Held::ordered, Lock::Write(4)) && is_refused(Held::limited, Lock::Write(4)));
        assert!(is_refused(Held::ordered, Lock::Names), "a lock is not taken twice");
        let head = Held::ordered(Lock::Head(1));
        assert!(is_refused(Held::ordered, Lock::Names) && is_refused(Held::ordered, Lock::Head(1)));
        assert!(!is_refused(Held::ordered, Lock::Head(2)));
        assert!(catch_unwind(assert_none_is_held).is_err());
        drop((head, names, write_lock));
        assert_none_is_held();
        assert!(!is_refused(Held::ordered, Lock::Write(1)), "what was given back does not count");
    }
}
