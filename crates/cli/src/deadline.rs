//! `--timeout`: a limit of the time that a statement may take, or a command that runs some.
//!
//! Another thread raises the connection's flag at the end of that time, as Ctrl-C does. It raises it again
//! and again, because a statement lowers it when it begins.

use crate::session::{Fault, Session};
use crate::words::duration;
use entasis::{CancelFlag, Error, ErrorKind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Time between two attempts to cancel the statement.
const AGAIN: Duration = Duration::from_millis(20);

impl Session {
    /// Calls `run`, and cancels it when it has taken longer than a statement may; the error says `what` it
    /// is.
    ///
    /// # Errors
    /// Those of `run`, and [`Fault::Timeout`].
    pub fn limited<T>(
        &mut self,
        what: &str,
        run: impl FnOnce(&mut Session) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (limit, cancel) = (self.timeout, self.interrupts.cancel());
        match within(limit, &cancel, || run(self)) {
            (Err(fault), true) if fault.is_interruption() => {
                let message = format!("{what} took longer than {}", duration(limit.unwrap_or_default()));
                let error = Error::new(ErrorKind::Interrupted, message);
                Err(Fault::Timeout(error.with_hint("--timeout sets how long a statement may take")))
            }
            (result, _) => result,
        }
    }
}

/// Calls `run`, and raises `cancel` when it has taken longer than `limit`. Returns its result, and whether
/// that was done.
fn within<T>(limit: Option<Duration>, cancel: &CancelFlag, run: impl FnOnce() -> T) -> (T, bool) {
    let Some(limit) = limit else { return (run(), false) };
    let (running, end) = channel::<()>();
    thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let mut has_expired = false;
            let mut wait = limit;
            while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                cancel.raise();
                (has_expired, wait) = (true, AGAIN);
            }
            has_expired
        });
        let result = run();
        drop(running);
        let has_expired = watch.join().unwrap_or(false);
        if has_expired {
            // What comes next has time of its own.
            cancel.clear();
        }
        (result, has_expired)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_cancelled_even_if_the_flag_is_lowered_again() {
        let cancel = CancelFlag::default();
        let wait = || {
            while !cancel.is_raised() {
                thread::yield_now();
            }
            cancel.clear();
            while !cancel.is_raised() {
                thread::yield_now();
            }
            7
        };
        assert_eq!(within(Some(Duration::from_millis(1)), &cancel, wait), (7, true));
        assert!(!cancel.is_raised());
        assert_eq!(within(Some(Duration::from_secs(600)), &cancel, || 8), (8, false));
        assert_eq!(within(None, &cancel, || 9), (9, false));
        assert!(!cancel.is_raised());
    }
}
