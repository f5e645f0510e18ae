//! Looks now and then, while many rows are changed, whether the statement may go on: whether it was
//! interrupted, and whether there is memory for what it keeps and writes. The latter is charged by the
//! megabyte until this is dropped; by then the transaction is to have charged what was written.

use entasis_engine::exec::CancelFlag;
use entasis_storage::TableWriter;
use entasis_vector::statement::Growth;
use entasis_vector::{Error, Result, Value};

/// Number of rows between two checks for an interrupt.
const LOOK_EVERY: usize = 1024;

/// Bytes of a list or a text besides its contents.
const HEAD: usize = 40;

/// See the module.
pub(crate) struct Interrupt {
    /// Raised by another thread.
    cancel: CancelFlag,
    /// Number of calls that may check.
    asked: usize,
    /// Of lists that are kept, and of the table.
    kept: Growth,
    written: Growth,
}

impl Interrupt {
    /// An interrupt that is raised through this flag.
    pub(crate) fn by(cancel: CancelFlag) -> Interrupt {
        Interrupt { cancel, asked: 0, kept: Growth::default(), written: Growth::default() }
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

    /// Counts the values of a row that are kept.
    ///
    /// # Errors
    /// Interrupted; resource, if there is no memory for them.
    pub(crate) fn keep(&mut self, row: &[Value]) -> Result<()> {
        let long: usize = row.iter().filter_map(Value::bytes).map(|bytes| bytes + HEAD).sum();
        self.keep_bytes(HEAD + size_of_val(row) + long)
    }

    /// Counts bytes that are kept.
    ///
    /// # Errors
    /// As for `keep`.
    pub(crate) fn keep_bytes(&mut self, bytes: usize) -> Result<()> {
        self.kept.add(bytes)
    }

    /// The transaction has charged, or is going to charge, what was written.
    pub(crate) fn charged(&mut self) {
        self.written = Growth::default();
    }

    /// After a row was written: looks now and then, and counts what the table has grown.
    ///
    /// # Errors
    /// Interrupted; resource, if there is no memory for more.
    #[inline]
    pub(crate) fn wrote(&mut self, writer: &TableWriter<'_>) -> Result<()> {
        self.look_now_and_then()?;
        self.written.reach(writer.growth())
    }
}
