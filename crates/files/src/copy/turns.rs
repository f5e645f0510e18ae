//! What the workers of a file share, and whose turn it is to write.
//!
//! Each worker's current morsel number only grows, so the parts up to the least of them
//! ([`FileState::least`]) may be written; others wait, by morsel. If many bytes wait, whoever would add to
//! them waits, too ([`SharedFile::wait_for_room`]); the worker of the least morsel never does, so somebody
//! always goes on.

use super::batch::Batch;
use super::parts::{FilePart, Output, RowFormat};
use crate::csv::text::Text;
use crate::pipe::LOOK_EVERY;
use crate::target::Target;
use entasis_engine::exec::{MemoryBudget, QueryContext, Reservation};
use entasis_vector::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The part of all memory that parts may take that wait for earlier ones.
pub(super) const WAITING_SHARE: usize = 8;

/// What workers share.
pub(super) struct SharedFile {
    pub(super) path: String,
    pub(super) format: RowFormat,
    pub(super) state: Mutex<FileState>,
    /// Tells workers that wait that others have gone on.
    pub(super) turn: Condvar,
    pub(super) target: Target,
    /// The memory of rows on their way to the file.
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) context: QueryContext,
}

/// The file, and the parts that wait for their turn.
pub(super) struct FileState {
    /// Taken out by the commit.
    pub(super) out: Option<Output>,
    /// Bytes at the start of the next text that are not written: the comma before the first row.
    pub(super) left_out: usize,
    /// Parts by morsel that wait for earlier ones.
    pub(super) waiting: BTreeMap<u64, Vec<FilePart>>,
    /// Their bytes.
    pub(super) waiting_bytes: usize,
    /// The current morsel of each worker; `None` once it has finished.
    pub(super) current: Vec<Option<u64>>,
    /// Buffers of text that has been written, at most one for each worker.
    pub(super) spare: Vec<Text>,
    pub(super) rows: u64,
}

impl FileState {
    /// The morsel whose parts may be written, as those of all before it.
    fn least(&self) -> u64 {
        self.current.iter().flatten().min().copied().unwrap_or(u64::MAX)
    }
}

impl SharedFile {
    pub(super) fn lock(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `write`. If that failed because waiting for a reader was interrupted, it is that error.
    pub(super) fn interruptible<T>(&self, write: impl FnOnce() -> Result<T>) -> Result<T> {
        write().map_err(|error| match error.kind() {
            ErrorKind::Io if self.context.cancel.is_raised() => Error::interrupted(),
            _ => error,
        })
    }

    /// Waits until `parts` of `morsel` may be written or added to those that wait, and reserves their memory
    /// if they are to wait.
    pub(super) fn wait_for_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, FileState>,
        morsel: u64,
        parts: &mut [FilePart],
    ) -> Result<MutexGuard<'a, FileState>> {
        let bytes: usize = parts.iter().map(FilePart::bytes).sum();
        let most = self.memory.free().saturating_add(state.waiting_bytes) / WAITING_SHARE;
        while bytes > 0 && morsel > state.least() {
            if state.waiting_bytes + bytes <= most && self.reserve(parts).is_ok() {
                break;
            }
            let waited = self.turn.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            self.context.check()?;
        }
        Ok(state)
    }

    /// Reserves the memory of texts; other parts have theirs.
    fn reserve(&self, parts: &mut [FilePart]) -> Result<()> {
        for part in parts {
            if let FilePart::Text(text, memory) = part {
                let mut own = Reservation::new(&self.memory);
                own.resize(text.memory())?;
                *memory = Some(own);
            }
        }
        Ok(())
    }

    /// Writes all parts that no earlier part can precede any more.
    pub(super) fn write_ready(&self, state: &mut FileState) -> Result<()> {
        let least = state.least();
        while let Some(entry) = state.waiting.first_entry().filter(|entry| *entry.key() <= least) {
            let parts = entry.remove();
            let FileState { out, left_out, spare, current, waiting_bytes, .. } = &mut *state;
            let out = out.as_mut().ok_or_else(|| Error::internal("the file has been committed before"))?;
            for part in parts {
                *waiting_bytes -= part.bytes();
                let text = out.write(part, left_out, &self.path)?;
                if spare.len() < current.len() {
                    spare.extend(text);
                }
            }
        }
        Ok(())
    }

    /// The encoded row group of `batches`.
    pub(super) fn encode(&self, batches: Vec<Batch>) -> Result<FilePart> {
        let encoder = match &mut self.lock().out {
            Some(Output::Parquet(out)) => out.encoder(&batches),
            _ => Err(Error::internal("row groups of another format than Parquet")),
        };
        let in_file = |e: Error| e.with_context(format!("'{}'", self.path));
        encoder.map_err(in_file)?.encode(&batches, &self.memory, &self.context).map(FilePart::Group)
    }

    /// Encodes row groups while there are complete ones.
    pub(super) fn encode_complete(&self) -> Result<()> {
        loop {
            let (group, encoder) = match &mut self.lock().out {
                Some(Output::Parquet(out)) => match out.take() {
                    Some(taken) => taken,
                    None => return Ok(()),
                },
                _ => return Ok(()),
            };
            let encoded = encoder.encode(&group.batches, &self.memory, &self.context)?;
            if let Some(Output::Parquet(out)) = &mut self.lock().out {
                out.append(group.number, encoded).map_err(|e| e.with_context(format!("'{}'", self.path)))?;
            }
        }
    }
}
