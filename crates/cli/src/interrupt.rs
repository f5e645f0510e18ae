//! Ctrl-C: the first one cancels the running statement; a second one, if the first had no effect, ends the
//! shell.
//!
//! While a line is edited, the terminal passes Ctrl-C to the line editor, and none of this applies.

use entasis::CancelFlag;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a program ended by Ctrl-C.
const ENDED: i32 = 130;

/// Connects Ctrl-C to a connection.
pub struct Interrupts {
    cancel: CancelFlag,
    running: Arc<AtomicBool>,
}

impl Interrupts {
    /// From now on Ctrl-C raises `cancel` while [`Interrupts::guard`] runs something, and ends the program
    /// otherwise.
    pub fn new(cancel: CancelFlag) -> Interrupts {
        let running = Arc::new(AtomicBool::new(false));
        let (flag, is_running) = (cancel.clone(), running.clone());
        // Without a handler Ctrl-C ends the program, as it would without this module.
        let _ = ctrlc::set_handler(move || {
            if !is_running.load(Ordering::SeqCst) || flag.is_raised() {
                std::process::exit(ENDED);
            }
            flag.raise();
        });
        Interrupts { cancel, running }
    }

    /// Calls `run`, which Ctrl-C can cancel.
    pub fn guard<T>(&self, run: impl FnOnce() -> T) -> T {
        self.cancel.clear();
        self.running.store(true, Ordering::SeqCst);
        let result = run();
        self.running.store(false, Ordering::SeqCst);
        result
    }

    /// `out`, until the user presses Ctrl-C.
    pub fn output<'a>(&'a self, out: &'a mut dyn Write) -> Output<'a> {
        Output { out, cancel: &self.cancel }
    }
}

/// A writer that fails once its statement is cancelled; made by [`Interrupts::output`].
pub struct Output<'a> {
    out: &'a mut dyn Write,
    cancel: &'a CancelFlag,
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
        let interrupts = Interrupts { cancel: CancelFlag::default(), running: Arc::default() };
        let mut bytes = Vec::new();
        let mut output = interrupts.output(&mut bytes);
        output.write_all(b"a").unwrap();
        interrupts.cancel.raise();
        assert!(is_cancelled(&output.write_all(b"b").unwrap_err()));
        assert_eq!(bytes, b"a");
    }
}
