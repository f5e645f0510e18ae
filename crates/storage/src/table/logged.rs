//! Logged tables: changes of their rows are appended to the write-ahead log at the moment when they become
//! visible.
//!
//! | step | locks |
//! |---|---|
//! | records are written, as rows are changed or from a fork's log | none; for single rows, the head's |
//! | loads that they refer to ([`super::loads`]) are synced | none but write locks |
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

use super::loads::{LoadStore, StoredLoad};
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
    /// Where large loads are written instead; `None`: nowhere.
    pub(crate) loads: Option<Arc<dyn LoadStore>>,
}

/// Redo records, and the loads that they refer to.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    bytes: Vec<u8>,
    /// Each with the number of bytes before its record.
    loads: Vec<(usize, Arc<dyn StoredLoad>)>,
}

/// The records of a commit, ready to be appended to the log.
pub(crate) struct Framed {
    log: Arc<Log>,
    frames: Vec<Frame>,
    loads: Vec<Arc<dyn StoredLoad>>,
}

/// A commit that has been appended to the log.
#[must_use = "it is not safe before it was waited for"]
pub(crate) struct Appended {
    log: Arc<Log>,
    end: u64,
}

impl Logged {
    /// A table of this shape, with its id.
    pub(super) fn new(id: u64, shape: &Shape, log: Arc<Log>, loads: Option<Arc<dyn LoadStore>>) -> Logged {
        Logged { id, wording: Wording::of(shape), log, loads }
    }

    /// A recorder of changes of the table.
    pub(crate) fn recorder<'a>(&'a self, shape: &'a Shape, out: &'a mut Vec<u8>) -> Recorder<'a> {
        Recorder::new(self.id, shape, &self.wording, out)
    }
}

impl Recorded {
    /// Records that refer to no loads.
    pub(crate) fn of(bytes: Vec<u8>) -> Recorded {
        Recorded { bytes, loads: Vec::new() }
    }

    /// How many bytes they have.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory that they take.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Removes those beyond a length.
    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.loads.retain(|(before, _)| *before < len);
    }

    /// Where more of them may be appended.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Notes that the record to be appended next refers to a load.
    pub(super) fn refer_to(&mut self, load: &Arc<dyn StoredLoad>) {
        self.loads.push((self.bytes.len(), load.clone()));
    }

    /// Appends others.
    pub(super) fn extend(&mut self, others: &Recorded) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&others.bytes);
        self.loads.extend(others.loads.iter().map(|(at, load)| (before + at, load.clone())));
    }
}

impl Framed {
    /// The records of a commit, framed for a log, when the loads that they refer to are on the disk; `None`
    /// if there are none.
    ///
    /// # Errors
    /// I/O, also if a write has failed before.
    pub(crate) fn of(records: &Recorded, log: &Arc<Log>) -> Result<Option<Framed>> {
        if records.bytes.is_empty() {
            return Ok(None);
        }
        let loads: Vec<_> = records.loads.iter().map(|(_, load)| load.clone()).collect();
        loads.iter().try_for_each(|load| load.sync())?;
        Ok(Some(Framed { frames: log.frames(&records.bytes)?, log: log.clone(), loads }))
    }

    /// Appends the commit to the log. To be called under the locks that make it visible.
    ///
    /// # Errors
    /// I/O, if a write has failed before; then the commit is not in the log.
    pub(crate) fn append(&self) -> Result<Appended> {
        let end = self.log.append_all(&self.frames)?;
        self.loads.iter().for_each(|load| load.commit());
        Ok(Appended { end, log: self.log.clone() })
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
