//! Interrupts changes of many rows.

use entasis_engine::exec::CancelFlag;
use entasis_vector::{Error, Result};

/// Number of rows between two checks for an interrupt.
const LOOK_EVERY: usize = 1024;

/// See the module.
pub(crate) struct Interrupt {
    /// Raised by another thread.
    cancel: CancelFlag,
    /// Number of calls that may check.
    asked: usize,
}

impl Interrupt {
    /// An interrupt that is raised through this flag.
    pub(crate) fn by(cancel: CancelFlag) -> Interrupt {
        Interrupt { cancel, asked: 0 }
    }

    /// Checks for an interrupt.
    ///
    /// # Errors
    /// Interrupted.
    pub(crate) fn look(&self) -> Result<()> {
        if self.cancel.is_raised() { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// As [`Interrupt::look`], but cheap enough for each row: only some calls check.
    ///
    /// # Errors
    /// Interrupted.
    #[inline]
    pub(crate) fn look_now_and_then(&mut self) -> Result<()> {
        self.asked += 1;
        if self.asked.is_multiple_of(LOOK_EVERY) { self.look() } else { Ok(()) }
    }
}
