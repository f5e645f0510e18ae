//! Ctrl-C: the first one cancels the running statement; a second one, if the first had no effect, ends the
//! shell.
//!
//! What runs is guarded, from the outside in: all that was typed at the prompt, a command that repeats
//! statements, a statement. A press between two statements counts for what is around them.
//!
//! While a line is edited, the terminal passes Ctrl-C to the line editor, and none of this applies.

use entasis::CancelFlag;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Exit code of a program ended by Ctrl-C.
pub const ENDED: u8 = 130;
/// Time between two looks while waiting.
const LOOK: Duration = Duration::from_millis(20);

/// Connects Ctrl-C to a connection.
#[derive(Clone)]
pub struct Interrupts {
    /// That of the connection, which may be replaced.
    cancel: Arc<Mutex<CancelFlag>>,
    /// How many guards there are.
    running: Arc<AtomicUsize>,
    /// The user has pressed Ctrl-C since the outermost guard began.
    pressed: Arc<AtomicBool>,
}

impl Interrupts {
    /// From now on Ctrl-C raises `cancel` while [`Interrupts::guard`] runs something, and ends the program
    /// otherwise.
    pub fn new(cancel: CancelFlag) -> Interrupts {
        let interrupts = Interrupts::detached(cancel);
        let own = interrupts.clone();
        // Without a handler Ctrl-C ends the program, as it would without this module.
        let _ = ctrlc::set_handler(move || {
            let flag = own.cancel();
            let was_pressed = own.pressed.swap(true, Ordering::SeqCst);
            if own.running.load(Ordering::SeqCst) == 0 || was_pressed && flag.is_raised() {
                std::process::exit(ENDED.into());
            }
            flag.raise();
        });
        interrupts
    }

    fn detached(cancel: CancelFlag) -> Interrupts {
        Interrupts { cancel: Arc::new(Mutex::new(cancel)), running: Arc::default(), pressed: Arc::default() }
    }

    /// From now on Ctrl-C raises this flag.
    pub fn attach(&self, cancel: CancelFlag) {
        *self.cancel.lock().unwrap_or_else(PoisonError::into_inner) = cancel;
    }

    /// The flag that Ctrl-C raises.
    pub fn cancel(&self) -> CancelFlag {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls `run`, which Ctrl-C can cancel.
    pub fn guard<T>(&self, run: impl FnOnce() -> T) -> T {
        if self.running.load(Ordering::SeqCst) == 0 {
            self.pressed.store(false, Ordering::SeqCst);
            self.cancel().clear();
        }
        self.running.fetch_add(1, Ordering::SeqCst);
        let result = run();
        self.running.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Whether the user has pressed Ctrl-C since the outermost guard began.
    pub fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::SeqCst)
    }

    /// Waits within a guard. False if the user has pressed Ctrl-C.
    pub fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.is_pressed() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LOOK));
        }
        false
    }

    /// `out`, until the user presses Ctrl-C.
    pub fn output<'a>(&self, out: &'a mut dyn Write) -> Output<'a> {
        Output { out, cancel: self.cancel() }
    }
}

/// A writer that fails once its statement is cancelled; made by [`Interrupts::output`].
pub struct Output<'a> {
    out: &'a mut dyn Write,
    cancel: CancelFlag,
}

/// The error of a cancelled [`Output`]. Not `ErrorKind::Interrupted`, on which writers retry.
#[derive(Debug)]
pub struct Cancelled;

impl std::fmt::Display for Cancelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cancelled")
    }
}

impl std::error::Error for Cancelled {}

/// True if `error` comes from a cancelled [`Output`].
pub fn is_cancelled(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Cancelled>())
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cancel.is_raised() { Err(io::Error::other(Cancelled)) } else { self.out.write(bytes) }
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_ends_when_it_is_cancelled() {
        let interrupts = Interrupts::detached(CancelFlag::default());
        let mut bytes = Vec::new();
        let mut output = interrupts.output(&mut bytes);
        output.write_all(b"a").unwrap();
        interrupts.cancel().raise();
        assert!(is_cancelled(&output.write_all(b"b").unwrap_err()));
        assert_eq!(bytes, b"a");
    }

    #[test]
    fn a_press_counts_until_the_outermost_guard_ends() {
        let interrupts = Interrupts::detached(CancelFlag::default());
        let press = || {
            interrupts.pressed.store(true, Ordering::SeqCst);
            interrupts.cancel().raise();
        };
        interrupts.guard(|| {
            assert!(interrupts.wait(Duration::ZERO));
            press();
            interrupts.guard(|| assert!(interrupts.is_pressed() && interrupts.cancel().is_raised()));
            assert!(!interrupts.wait(Duration::from_secs(600)));
        });
        interrupts.guard(|| assert!(!interrupts.is_pressed() && !interrupts.cancel().is_raised()));
    }
}
