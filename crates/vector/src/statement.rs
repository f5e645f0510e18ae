//! The statement that a thread works for, as far as kernels need it: whether it still runs, and whether it
//! may use more memory.
//!
//! A kernel whose results may be far larger than its arguments (`repeat`, `lpad`) runs deep inside of
//! expressions, which know nothing about statements. So the code that lets a thread work for a statement
//! records it ([`within`]), and the kernel looks it up in its thread. Without a record (in tests), everything
//! is allowed.
//!
//! **Memory.** What grows inside of a call is charged in one of three ways:
//! - The strings of vectors by their [heaps](crate::StringHeap), block by block. If there is not enough
//!   memory, the statement fails at its next check; a kernel that makes long strings asks first
//!   ([`Meter`](crate::meter::Meter)), or as they grow ([`Writer`](crate::writer::Writer)).
//! - States that grow with each row, by a [`Growth`], megabyte by megabyte, until the call returns and their
//!   owner counts them.
//! - Anything else by [`reserve`], before it is allocated.
//!
//! **Interrupts.** What takes long asks [`check`] at least once in some milliseconds. A single value may have
//! a gigabyte, so a loop over the bytes of one counts them ([`Looks`]), or takes a text in [`pieces`]; a
//! value of less than a [`STEP`] is never worth a look.

use crate::{Error, Result};
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

/// Bytes that are made between two checks, and reserved at a time by what grows in small steps.
pub const STEP: usize = 1 << 20;

/// Memory of a statement, until it is dropped.
pub type Charge = Box<dyn Any + Send + Sync>;

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
    fn reserve(&self, bytes: usize) -> Result<Charge>;

    /// The same for memory that was allocated already: if there is not enough, the next check fails.
    fn charge(&self, bytes: usize) -> Charge;
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
    CURRENT.with(|current| current.borrow().as_ref().map_or(Ok(()), |statement| statement.check()))
}

/// Looks whether the statement of this thread may go on, each time that a [`STEP`] has been done: for loops
/// over the bytes of values.
#[derive(Debug, Default, Clone, Copy)]
pub struct Looks {
    /// Bytes since the last look.
    done: usize,
}

impl Looks {
    /// Counts bytes that have been read or written.
    ///
    /// # Errors
    /// Interrupted; resource, if the statement has used memory that it could not ask for.
    #[inline]
    pub fn after(&mut self, bytes: usize) -> Result<()> {
        self.done += bytes;
        if self.done < STEP { Ok(()) } else { self.look() }
    }

    #[cold]
    fn look(&mut self) -> Result<()> {
        self.done = 0;
        check()
    }
}

/// A text in pieces of about a [`STEP`], cut between characters, with a look before each but the first: an
/// error, which is the last item, says that the statement must end. A text of less is one piece.
pub fn pieces(text: &str) -> Pieces<'_> {
    Pieces { rest: Some(text), is_begun: false }
}

/// See [`pieces`].
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    /// `None` once there is no more.
    rest: Option<&'a str>,
    is_begun: bool,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Result<&'a str>;

    #[inline]
    fn next(&mut self) -> Option<Result<&'a str>> {
        let rest = self.rest.take()?;
        if rest.len() <= STEP && !self.is_begun { Some(Ok(rest)) } else { self.cut(rest) }
    }
}

impl<'a> Pieces<'a> {
    #[cold]
    fn cut(&mut self, rest: &'a str) -> Option<Result<&'a str>> {
        if std::mem::replace(&mut self.is_begun, true)
            && let Err(error) = check()
        {
            return Some(Err(error));
        }
        if rest.len() <= STEP {
            return Some(Ok(rest));
        }
        let (piece, rest) = rest.split_at(rest.floor_char_boundary(STEP));
        self.rest = Some(rest);
        Some(Ok(piece))
    }
}

/// Reserves memory of the statement of this thread until what is returned is dropped.
///
/// # Errors
/// Resource, if there is not enough.
pub fn reserve(bytes: usize) -> Result<Option<Charge>> {
    current().map(|statement| statement.reserve(bytes)).transpose()
}

/// The same for memory that was allocated already: if there is not enough, the next check fails.
pub fn charge(bytes: usize) -> Option<Charge> {
    current().map(|statement| statement.charge(bytes))
}

/// Runs `work` before its statement, to keep the result in its plan: work that would need much memory fails,
/// and is left to the statement itself. It ends, too, once this has been cancelled.
pub fn ahead<T>(work: impl FnOnce() -> T) -> T {
    struct Ahead(Option<Arc<dyn Statement>>);
    impl Statement for Ahead {
        fn check(&self) -> Result<()> {
            self.0.as_ref().map_or(Ok(()), |statement| statement.check())
        }
        fn reserve(&self, bytes: usize) -> Result<Charge> {
            if bytes <= AHEAD {
                Ok(Box::new(()))
            } else {
                Err(Error::resource("too much to be computed ahead"))
            }
        }
        fn charge(&self, _: usize) -> Charge {
            Box::new(())
        }
    }
    within(Arc::new(Ahead(current())), work)
}

/// Bytes of one allocation that work ahead of a statement may make.
const AHEAD: usize = 16 << 20;

/// Charges the growth of states within a call, step by step. Their owner counts them once it has returned.
#[derive(Default)]
pub struct Growth {
    /// Bytes that are not reserved yet.
    open: usize,
    /// What was last reached.
    reached: usize,
    held: Vec<Charge>,
}

impl Growth {
    /// Counts `bytes` more.
    ///
    /// # Errors
    /// Interrupted; resource, if there is not enough memory.
    #[inline]
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        self.open += bytes;
        if self.open < STEP { Ok(()) } else { self.charge() }
    }

    /// Counts as many more as something has grown that has `bytes` in all now.
    ///
    /// # Errors
    /// As for `add`.
    #[inline]
    pub fn reach(&mut self, bytes: usize) -> Result<()> {
        if bytes <= self.reached {
            return Ok(());
        }
        let more = bytes - self.reached;
        self.reached = bytes;
        self.add(more)
    }

    #[cold]
    fn charge(&mut self) -> Result<()> {
        check()?;
        self.held.extend(reserve(std::mem::take(&mut self.open))?);
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
