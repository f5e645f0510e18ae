//! Logged tables: changes of their rows are appended to the write-ahead log at the moment when they become
//! visible.
//!
//! | step | locks |
//! |---|---|
//! | records are written, as rows are changed or from a fork's log | none; for single rows, the head's |
//! | [`Framed::append`]: bytes are copied in memory | those of all heads that the commit changes |
//! | [`Appended::wait`]: the disk | none, which debug builds check |
//!
//! So the log has the order in which versions became visible, of each table and of all together. Nobody waits
//! for the disk but the one who is told that his commit is durable. Others may read it before, and what they
//! commit comes after it in the log. If the wait fails, the commit is visible and may or may not be in the
//! log's file; from then on the log refuses everything.
//!
//! A table is logged from the moment when [`Table::log_to`](crate::Table::log_to) is called: when its
//! database is opened, or when it gets its name. A table that is never logged, such as a temporary one, pays
//! for one test a writer.

use crate::record::{Recorder, Wording};
use crate::sync::lock_order::assert_none_is_held;
use crate::tree::Shape;
use crate::wal::{Frame, Log};
use entasis_vector::Result;
use std::sync::Arc;

/// How a table is known to the log.
#[derive(Debug)]
pub(crate) struct Logged {
    /// The id of the table's object in the catalog.
    id: u64,
    wording: Wording,
    /// The log of the database.
    pub(crate) log: Arc<Log>,
}

/// The records of a commit, ready to be appended to the log.
pub(crate) struct Framed {
    log: Arc<Log>,
    frames: Vec<Frame>,
}

/// A commit that has been appended to the log.
#[must_use = "it is not safe before it was waited for"]
pub(crate) struct Appended {
    log: Arc<Log>,
    end: u64,
}

impl Logged {
    /// A table of this shape, with its id.
    pub(super) fn new(id: u64, shape: &Shape, log: Arc<Log>) -> Logged {
        Logged { id, wording: Wording::of(shape), log }
    }

    /// A recorder of changes of the table.
    pub(crate) fn recorder<'a>(&'a self, shape: &'a Shape, out: &'a mut Vec<u8>) -> Recorder<'a> {
        Recorder::new(self.id, shape, &self.wording, out)
    }
}

impl Framed {
    /// The records of a commit, framed for a log; `None` if there are none.
    pub(crate) fn of(records: &[u8], log: &Arc<Log>) -> Result<Option<Framed>> {
        if records.is_empty() {
            return Ok(None);
        }
        Ok(Some(Framed { frames: log.frames(records)?, log: log.clone() }))
    }

    /// Appends the commit to the log. To be called under the locks that make it visible.
    ///
    /// # Errors
    /// I/O, if a write has failed before; then the commit is not in the log.
    pub(crate) fn append(&self) -> Result<Appended> {
        Ok(Appended { end: self.log.append_all(&self.frames)?, log: self.log.clone() })
    }
}

impl Appended {
    /// Waits until the commit is as durable as the settings ask for.
    ///
    /// # Errors
    /// I/O. Then it is not known whether the commit is in the file, and everything after it is refused.
    pub(crate) fn wait(self) -> Result<()> {
        assert_none_is_held();
        self.log.wait(self.end, self.log.synchronous())
    }
}
