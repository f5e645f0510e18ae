//! The statement that a thread works for, as far as kernels need it: whether it still runs, and whether it
//! may use more memory.
//!
//! A kernel whose results may be far larger than its arguments (`repeat`, `lpad`) runs deep inside of
//! expressions, which know nothing about statements. So the code that lets a thread work for a statement
//! records it ([`within`]), and the kernel looks it up in its thread. Without a record (in tests), everything
//! is allowed.
//!
//! Kernels use a [`Meter`]: up to [`STEP`] bytes per chunk are free, like all other vectors of a chunk; each
//! further step is reserved before it is used, and counted as long as the strings live.

use crate::string::StringHeap;
use crate::{Error, Result};
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

/// Bytes that a kernel makes between two reservations.
pub const STEP: usize = 16 << 20;

/// Bytes of the longest string that a function makes.
pub const LONGEST: usize = 1 << 30;

/// What a kernel needs from its statement.
pub trait Statement: Send + Sync {
    /// Fails once the statement has been cancelled.
    ///
    /// # Errors
    /// Interrupted.
    fn check(&self) -> Result<()>;

    /// Reserves memory until what is returned is dropped.
    ///
    /// # Errors
    /// Resource, if there is not enough.
    fn reserve(&self, bytes: usize) -> Result<Box<dyn Any + Send + Sync>>;
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Statement>>> = const { RefCell::new(None) };
}

/// Restores the previous statement, on unwinding too.
struct Restore(Option<Arc<dyn Statement>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.with(|current| *current.borrow_mut() = self.0.take());
    }
}

/// Runs `work` for `statement` on this thread.
pub fn within<T>(statement: Arc<dyn Statement>, work: impl FnOnce() -> T) -> T {
    let _restore = Restore(CURRENT.with(|current| current.borrow_mut().replace(statement)));
    work()
}

/// The statement that this thread works for, to be passed to another thread that helps it.
pub fn current() -> Option<Arc<dyn Statement>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Fails once the statement of this thread has been cancelled.
///
/// # Errors
/// Interrupted.
pub fn check() -> Result<()> {
    current().map_or(Ok(()), |statement| statement.check())
}

/// Reserves memory of the statement of this thread until what is returned is dropped.
///
/// # Errors
/// Resource, if there is not enough.
pub fn reserve(bytes: usize) -> Result<Option<Box<dyn Any + Send + Sync>>> {
    current().map(|statement| statement.reserve(bytes)).transpose()
}

/// Runs `work` before its statement, to keep the result in its plan: work that would need much memory fails,
/// and is left to the statement itself.
pub fn ahead<T>(work: impl FnOnce() -> T) -> T {
    struct Ahead;
    impl Statement for Ahead {
        fn check(&self) -> Result<()> {
            Ok(())
        }
        fn reserve(&self, _: usize) -> Result<Box<dyn Any + Send + Sync>> {
            Err(Error::resource("too much to be computed ahead"))
        }
    }
    within(Arc::new(Ahead), work)
}

/// Counts the strings that one call of a kernel makes.
#[derive(Debug)]
pub struct Meter {
    made: usize,
    allowed: usize,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter { made: 0, allowed: STEP }
    }
}

impl Meter {
    /// Reserves `bytes` more, which go to `heap`.
    ///
    /// # Errors
    /// Interrupted; resource, if there is not enough memory or the string would be too long.
    #[inline]
    pub fn ask(&mut self, bytes: usize, heap: &mut StringHeap) -> Result<()> {
        self.made = self.made.saturating_add(bytes);
        if self.made <= self.allowed && bytes <= LONGEST { Ok(()) } else { self.ask_statement(bytes, heap) }
    }

    #[cold]
    fn ask_statement(&mut self, bytes: usize, heap: &mut StringHeap) -> Result<()> {
        if bytes > LONGEST {
            return Err(too_long(bytes));
        }
        let more = (self.made - self.allowed).max(STEP);
        if let Some(statement) = current() {
            statement.check()?;
            heap.hold(statement.reserve(more)?);
        }
        self.allowed += more;
        Ok(())
    }
}

/// The error for a string that would be longer than [`LONGEST`].
pub fn too_long(bytes: usize) -> Error {
    Error::resource(format!(
        "a string of {bytes} bytes would be longer than the {} MB that one may have",
        LONGEST >> 20
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counting(Arc<AtomicUsize>);
    struct Held(Arc<AtomicUsize>, usize);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_sub(self.1, Ordering::Relaxed);
        }
    }

    impl Statement for Counting {
        fn check(&self) -> Result<()> {
            Ok(())
        }
        fn reserve(&self, bytes: usize) -> Result<Box<dyn Any + Send + Sync>> {
            if self.0.fetch_add(bytes, Ordering::Relaxed) + bytes > 4 * STEP {
                self.0.fetch_sub(bytes, Ordering::Relaxed);
                return Err(Error::resource("no more"));
            }
            Ok(Box::new(Held(self.0.clone(), bytes)))
        }
    }

    #[test]
    fn what_is_asked_for_is_held_as_long_as_the_strings() {
        let used = Arc::new(AtomicUsize::new(0));
        let statement = Arc::new(Counting(used.clone()));
        within(statement, || {
            let (mut meter, mut heap) = (Meter::default(), StringHeap::new());
            meter.ask(STEP, &mut heap).unwrap();
            assert_eq!(used.load(Ordering::Relaxed), 0, "the first step is free");
            meter.ask(1, &mut heap).unwrap();
            assert_eq!(used.load(Ordering::Relaxed), STEP);
            meter.ask(3 * STEP, &mut heap).unwrap();
            assert!(meter.ask(STEP, &mut heap).is_err());
            assert!(ahead(|| Meter::default().ask(2 * STEP, &mut StringHeap::new())).is_err());
            heap.clear();
            assert_eq!(used.load(Ordering::Relaxed), 0);
        });
        assert!(Meter::default().ask(LONGEST + 1, &mut StringHeap::new()).is_err(), "longer than any string");
        Meter::default().ask(LONGEST, &mut StringHeap::new()).unwrap();
    }
}
