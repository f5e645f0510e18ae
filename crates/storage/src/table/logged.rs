//! Logged tables: what is done to their rows is appended to the write-ahead log at the moment at which it
//! becomes visible.
//!
//! | step | where |
//! |---|---|
//! | records are written, as rows are changed or from a fork's log | outside of all locks; of single rows, under the head's |
//! | [`Framed::append`]: a copy of bytes into memory | under the locks of the heads that it is about |
//! | [`Appended::wait`]: the disk | outside of all locks, which debug builds check |
//!
//! So the log has the order in which versions became visible, for each table and for all together, and nobody
//! waits for the disk but who is told that his commit will stay. Others read it before, and what they make of
//! it stands behind it in the log. If the wait fails, the commit is visible and may or may not be in the
//! file; from then on the log refuses all.
//!
//! A table is logged from the moment at which it is told so: when its database is opened, or when it gets its
//! name. One that never is, a temporary one for instance, pays for one question a writer.

use crate::record::{Recorder, Wording};
use crate::sync::lock_order::assert_none_is_held;
use crate::tree::Shape;
use crate::wal::{Frame, Log};
use entasis_vector::Result;
use std::sync::Arc;

/// What a logged table is called by in the log, and what its rows are.
#[derive(Debug)]
pub(crate) struct Logged {
    /// The id of the table: that of its object in the catalog.
    id: u64,
    wording: Wording,
    /// The log of the database.
    pub(crate) log: Arc<Log>,
}

/// The records of a commit, ready for the log.
pub(crate) struct Framed {
    log: Arc<Log>,
    frames: Vec<Frame>,
}

/// A commit that is in the log.
#[must_use = "it is not safe before it was waited for"]
pub(crate) struct Appended {
    log: Arc<Log>,
    end: u64,
}

impl Logged {
    /// A table with a shape, under an id.
    pub(super) fn new(id: u64, shape: &Shape, log: Arc<Log>) -> Logged {
        Logged { id, wording: Wording::of(shape), log }
    }

    /// What appends records of the table.
    pub(crate) fn recorder<'a>(&'a self, shape: &'a Shape, out: &'a mut Vec<u8>) -> Recorder<'a> {
        Recorder::new(self.id, shape, &self.wording, out)
    }
}

impl Framed {
    /// Records, ready for a log, if there are any.
    pub(crate) fn of(records: &[u8], log: &Arc<Log>) -> Result<Option<Framed>> {
        if records.is_empty() {
            return Ok(None);
        }
        Ok(Some(Framed { frames: log.frames(records)?, log: log.clone() }))
    }

    /// Appends the commit to the log. Under the locks that make it visible.
    ///
    /// # Errors
    /// I/O, if a write has failed before; then it is not in the log.
    pub(crate) fn append(&self) -> Result<Appended> {
        Ok(Appended { end: self.log.append_all(&self.frames)?, log: self.log.clone() })
    }
}

impl Appended {
    /// Waits until it is as safe as was asked for.
    ///
    /// # Errors
    /// I/O: nothing is known then of the commit, and all that follows is refused.
    pub(crate) fn wait(self) -> Result<()> {
        assert_none_is_held();
        self.log.wait(self.end, self.log.synchronous())
    }
}
