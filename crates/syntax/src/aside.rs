//! Long texts, aside: on threads of their own.
//!
//! The parser reads a statement in one go, and a tree is freed in one go. For a text of megabytes either
//! takes a tenth of a second or more, in which the statement would not answer an interrupt. So
//! - [`aside`] lets another thread do such work, while its caller waits and looks whether the statement may
//!   go on. Once it may not, the caller leaves with the error. The work ends at its own next look, and what
//!   it has made is freed on its thread;
//! - a [`FreedAside`] is freed on another thread, for which nobody waits.
//!
//! A thread that is left runs on after its statement, and maybe after its connection. So it borrows nothing:
//! it has the text itself, and of the statement what says how much memory there is.

use super::depth::detach;
use entasis_vector::statement::{self, Charge, Statement, within};
use entasis_vector::{Error, Result};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Time between two looks of a caller that waits.
const LOOK: Duration = Duration::from_millis(10);

/// Number of parts from which a value is freed aside: fewer are freed in a few milliseconds.
const MANY_PARTS: usize = 100_000;

/// The statement of a caller, for the thread that works for it.
struct Delegate {
    of: Arc<dyn Statement>,
    /// Set when the caller has left. Whatever interrupted its statement may be over by then: a connection's
    /// flag is cleared for the next one.
    is_left: AtomicBool,
}

impl Statement for Delegate {
    fn check(&self) -> Result<()> {
        if self.is_left.load(Ordering::Relaxed) { Err(Error::interrupted()) } else { self.of.check() }
    }

    fn reserve(&self, bytes: usize) -> Result<Charge> {
        self.of.reserve(bytes)
    }

    fn charge(&self, bytes: usize) -> Charge {
        self.of.charge(bytes)
    }
}

/// Does `work` on another thread, with enough stack for a deep statement, and returns what it does. The
/// caller leaves as soon as its statement must end; without a statement, which nobody could interrupt, and if
/// no thread can be started, the work is done here.
///
/// # Errors
/// Those of `work`; interrupted, and resource, as a look at the statement finds them.
pub fn aside<T, F>(work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    let Some(of) = statement::current() else { return work() };
    of.check()?;
    let delegate = Arc::new(Delegate { of: of.clone(), is_left: AtomicBool::new(false) });
    // The work is handed over once there is a thread for it.
    let (give, take) = sync_channel::<F>(1);
    // There is no room for an answer on the way: the caller takes it, or it stays with the thread.
    let (answer, wait) = sync_channel(0);
    let own = delegate.clone();
    let body = move || {
        let Ok(work) = take.recv() else { return };
        let outcome = catch_unwind(AssertUnwindSafe(move || within(own, work)));
        // Of a caller that has left, it is freed here.
        let _ = answer.send(outcome);
    };
    if detach("long statement", body).is_err() {
        return work();
    }
    if give.send(work).is_err() {
        return Err(Error::internal("the thread of a long statement has ended"));
    }
    loop {
        match wait.recv_timeout(LOOK) {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::internal("the thread of a long statement has ended"));
            }
        }
        if let Err(error) = of.check() {
            delegate.is_left.store(true, Ordering::Relaxed);
            return Err(error);
        }
    }
}

/// A value that is freed on another thread, if it has many parts and a thread can be started.
#[derive(Debug)]
pub struct FreedAside<T: Send + 'static> {
    /// Absent once it has been taken out.
    value: Option<T>,
    is_large: bool,
}

impl<T: Send + 'static> FreedAside<T> {
    /// A value of about so many parts, each with memory of its own.
    pub fn new(value: T, parts: usize) -> FreedAside<T> {
        FreedAside { value: Some(value), is_large: parts >= MANY_PARTS }
    }

    /// The value, which is freed as any other from now on.
    pub fn into_inner(mut self) -> T {
        self.value.take().expect("it is taken once")
    }
}

impl<T: Send + 'static> Deref for FreedAside<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("whoever takes it has no more of this")
    }
}

impl<T: Send + 'static> DerefMut for FreedAside<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("whoever takes it has no more of this")
    }
}

impl<T: Send + 'static> Drop for FreedAside<T> {
    fn drop(&mut self) {
        if self.is_large
            && let Some(value) = self.value.take()
        {
            // Without a thread, this has freed it.
            let _ = detach("freeing", move || drop(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};
    use std::thread::{self, ThreadId};

    /// A statement that a flag interrupts.
    #[derive(Default)]
    struct Flagged(AtomicBool);

    impl Statement for Flagged {
        fn check(&self) -> Result<()> {
            if self.0.load(Ordering::Relaxed) { Err(Error::interrupted()) } else { Ok(()) }
        }
        fn reserve(&self, bytes: usize) -> Result<Charge> {
            if bytes < 10 { Ok(Box::new(())) } else { Err(Error::resource("no more")) }
        }
        fn charge(&self, _: usize) -> Charge {
            Box::new(())
        }
    }

    /// Tells on which thread it is freed.
    struct Tells(Sender<ThreadId>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().id());
        }
    }

    #[test]
    fn what_is_done_aside_has_the_same_outcome() {
        let here = thread::current().id();
        let done = || aside(|| Ok(thread::current().id()));
        assert_eq!(done().unwrap(), here, "without a statement");
        within(Arc::new(Flagged::default()), || {
            assert_ne!(done().unwrap(), here);
            // It works for the statement of its caller.
            assert!(aside(|| statement::reserve(9).map(drop)).is_ok());
            let error = aside(|| statement::reserve(10).map(drop)).unwrap_err();
            assert_eq!(error.message(), "no more");
            assert!(catch_unwind(|| aside::<(), _>(|| panic!("on purpose"))).is_err());
        });
    }

    #[test]
    fn a_caller_does_not_wait_for_work_of_a_statement_that_must_end() {
        let here = thread::current().id();
        let statement = Arc::new(Flagged::default());
        let (free, freed) = channel();
        let (proceed, may_proceed) = channel::<()>();
        let (look, looked) = channel();
        let flag = statement.clone();
        let work = move || {
            flag.0.store(true, Ordering::Relaxed);
            // Now the caller leaves: otherwise this never ends.
            may_proceed.recv().expect("the caller has left");
            look.send(statement::check().is_err()).expect("the test waits");
            Ok(Tells(free))
        };
        let outcome = within(statement.clone(), || aside(work));
        assert_eq!(outcome.map(drop).unwrap_err().message(), Error::interrupted().message());
        // The next statement of the connection begins.
        statement.0.store(false, Ordering::Relaxed);
        proceed.send(()).expect("the work waits");
        assert!(looked.recv().expect("a look"), "the work goes on");
        assert_ne!(freed.recv().expect("it is freed"), here);
    }

    #[test]
    fn work_of_a_statement_that_has_been_interrupted_does_not_begin() {
        let statement = Arc::new(Flagged(AtomicBool::new(true)));
        assert!(within(statement, || aside::<(), _>(|| unreachable!("it begins"))).is_err());
    }

    #[test]
    fn only_what_has_many_parts_is_freed_aside() {
        let here = thread::current().id();
        for (parts, is_aside) in [(MANY_PARTS, true), (MANY_PARTS - 1, false)] {
            let (free, freed) = channel();
            drop(FreedAside::new(Tells(free.clone()), parts));
            assert_eq!(freed.recv().expect("it is freed") != here, is_aside, "{parts} parts");
            drop(FreedAside::new(Tells(free), parts).into_inner());
            assert_eq!(freed.recv().expect("it is freed"), here, "{parts} parts, taken out");
        }
    }
}
