//! Interrupts changes of many rows.

use entasis_engine::exec::CancelFlag;
use entasis_vector::{Error, Result};

/// How many rows are worked on between two looks at whether that is to go on.
const LOOK_EVERY: usize = 1024;

/// See the module.
pub(crate) struct Interrupt {
    /// Raised from another thread.
    cancel: CancelFlag,
    /// How often it was to be looked at.
    asked: usize,
}

impl Interrupt {
    /// What is interrupted by this flag.
    pub(crate) fn by(cancel: CancelFlag) -> Interrupt {
        Interrupt { cancel, asked: 0 }
    }

    /// Looks whether it was interrupted.
    ///
    /// # Errors
    /// Interrupted.
    pub(crate) fn look(&self) -> Result<()> {
        if self.cancel.is_raised() { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// The same for each row: it is not looked every time.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub(crate) fn look_now_and_then(&mut self) -> Result<()> {
        self.asked += 1;
        if self.asked.is_multiple_of(LOOK_EVERY) { self.look() } else { Ok(()) }
    }
}
