//! Rows that are read while they are produced.
//!
//! ```text
//! workers ──push──▶ runs: by morsel, parts in memory or in a file ──next──▶ reader
//! ```
//! 1. Each worker copies its rows into chunks, and adds these to the run of its morsel: as they are while no
//!    more than `result_buffer` bytes wait in memory, then as pieces of a temporary file ([`super::spill`]).
//! 2. The reader takes the parts of the first run, as soon as no worker can add rows that come before them.
//!    So it gets the rows in the order of their source, as from a [`Collector`](super::result::Collector).
//! 3. When the execution has ended, [`StreamSink::end`] says how. The reader gets what is left, and then the
//!    error, if there is one.
//!
//! Workers never wait for the reader, however slow it is: they hold a snapshot, from which writers would have
//! to copy, and are shared by all statements. A reader that is dropped ends the execution at the next chunk.
//!
//! The least of the workers' morsels bounds what may still be added, because a worker's morsels ascend, and
//! one that no worker has begun comes after all that were. (A source that gives them in another order, which
//! has rows skipped for a sort, gives its rows to a sort.) Rows of a morsel that an error cut short are the
//! last that the reader gets: what it has seen is always a beginning of the result.

use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::row_copier::RowCopier;
use crate::exec::sink::{ResultSink, ResultWorker};
use crate::exec::spill::file::{Extent, TempFile};
use crate::exec::spill::rows::{Blocks, RowFormat};
use crate::memory::{MemoryBudget, Reservation};
use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, PoisonError, lock};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, Error, PhysicalType, Result};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The size from which rows that wait for the file become a piece of it, in bytes.
const PIECE_BYTES: usize = 512 << 10;

/// How pieces are written, and the file that has them.
type Spilled = Arc<(RowFormat, TempFile)>;

/// The end of a stream at which rows come in. See the module.
pub struct StreamSink(Arc<Channel>);

/// The end of a stream at which rows are read. Dropping it ends the execution.
pub struct StreamReader {
    channel: Arc<Channel>,
    /// Makes chunks of their own of those that are read from a piece.
    copier: RowCopier,
    /// Chunks that come next.
    ready: VecDeque<Chunk>,
}

/// Some rows.
enum Part {
    /// In memory, with their bytes.
    Chunk(Chunk, usize),
    /// In the file.
    Piece(Extent),
}

struct Channel {
    types: Vec<DataType>,
    context: QueryContext,
    /// Bytes that may wait in memory.
    most: usize,
    state: Mutex<State>,
    /// Something has changed that the reader may wait for.
    changed: Condvar,
    /// The reader waits: what there is should come now.
    is_hungry: AtomicBool,
    /// The reader is gone.
    is_gone: AtomicBool,
}

struct State {
    workers: Vec<Place>,
    /// The greatest morsel that was begun.
    latest: u64,
    runs: BTreeMap<u64, VecDeque<Part>>,
    /// Of the chunks that wait.
    memory: Reservation,
    spilled: Option<Spilled>,
    /// A worker has failed: others may have left in the middle of a morsel since.
    has_failed: bool,
    /// How the execution ended.
    outcome: Option<Result<()>>,
}

/// Where a worker is.
#[derive(Clone, Copy)]
struct Place {
    /// The morsel before which it adds nothing.
    morsel: u64,
    /// It adds nothing any more.
    has_left: bool,
}

/// Makes a stream of rows whose columns have these types, for an execution with `context`.
pub fn stream(context: &QueryContext, types: Vec<DataType>) -> (StreamSink, StreamReader) {
    let physical: Vec<PhysicalType> = types.iter().map(|ty| ty.physical()).collect();
    let copier = RowCopier::owning(&physical);
    let channel = Arc::new(Channel {
        types,
        context: context.clone(),
        most: context.settings.result_buffer,
        state: Mutex::new(State {
            workers: Vec::new(),
            latest: 0,
            runs: BTreeMap::new(),
            memory: Reservation::new(&MemoryBudget::part_of(&context.memory, "a stream")),
            spilled: None,
            has_failed: false,
            outcome: None,
        }),
        changed: Condvar::new(),
        is_hungry: AtomicBool::new(false),
        is_gone: AtomicBool::new(false),
    });
    (StreamSink(channel.clone()), StreamReader { channel, copier, ready: VecDeque::new() })
}

impl StreamSink {
    /// Says how the execution ended. All its workers have left by then.
    pub fn end(&self, outcome: Result<()>) {
        let mut state = self.0.lock();
        if outcome.is_ok() {
            state.workers.clear();
        }
        state.outcome = Some(outcome);
        self.0.changed.notify_all();
    }
}

impl ResultSink for StreamSink {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        let mut state = self.0.lock();
        // The last pipeline may have several parts, one after the other.
        if state.workers.iter().all(|worker| worker.has_left) {
            state.workers.clear();
        }
        // What it begins comes after all that was begun.
        let latest = state.latest;
        state.workers.push(Place { morsel: latest, has_left: false });
        let number = state.workers.len() - 1;
        drop(state);
        let types: Vec<PhysicalType> = self.0.types.iter().map(|ty| ty.physical()).collect();
        Ok(Box::new(StreamWorker {
            channel: self.0.clone(),
            number,
            morsel: latest,
            rows: RowCopier::owning(&types),
            spilling: None,
            failure: None,
            has_finished: false,
        }))
    }
}

impl Channel {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn may_spill(&self) -> bool {
        !self.context.settings.temp_directory.is_empty() && !self.types.is_empty()
    }

    fn columns(&self) -> Vec<ColumnMeta> {
        let column = |(number, &ty)| ColumnMeta::new(ColumnId(number as u32), ty);
        self.types.iter().enumerate().map(column).collect()
    }

    /// Reserves memory for a chunk. False if it is to go to the file.
    ///
    /// # Errors
    /// Resource, if there is no memory and nowhere else to go.
    fn reserve(&self, state: &mut State, bytes: usize) -> Result<bool> {
        let all = state.memory.bytes() + bytes;
        match self.may_spill() {
            false => state.memory.resize(all).map(|()| true),
            true => Ok((state.memory.bytes() == 0 || all <= self.most) && state.memory.resize(all).is_ok()),
        }
    }

    /// The file, which is created if there is none yet.
    fn spilled(&self) -> Result<Spilled> {
        let mut state = self.lock();
        if let Some(spilled) = &state.spilled {
            return Ok(spilled.clone());
        }
        let spilled = Arc::new((RowFormat::new(&self.columns()), TempFile::new(&self.context)?));
        Ok(state.spilled.insert(spilled).clone())
    }
}

impl State {
    /// The next part, if no rows can come before it any more.
    fn take(&mut self) -> Option<Part> {
        let counts = |worker: &&Place| !worker.has_left || self.has_failed;
        let bound = self.workers.iter().filter(counts).map(|worker| worker.morsel).min();
        let mut first = self.runs.first_entry()?;
        if bound.is_some_and(|bound| *first.key() > bound) {
            return None;
        }
        let part = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        if let Some(Part::Chunk(_, bytes)) = &part {
            // Giving back always succeeds.
            let left = self.memory.bytes().saturating_sub(*bytes);
            let _ = self.memory.resize(left);
        }
        part
    }
}

struct StreamWorker {
    channel: Arc<Channel>,
    /// Its place among the workers.
    number: usize,
    morsel: u64,
    /// Rows that are being copied together.
    rows: RowCopier,
    /// Rows that are to become a piece of the file.
    spilling: Option<Materialized>,
    /// What went wrong when a morsel began.
    failure: Option<Error>,
    has_finished: bool,
}

impl StreamWorker {
    /// Adds the rows that have been copied.
    fn flush(&mut self) -> Result<()> {
        if self.rows.rows() == 0 {
            return Ok(());
        }
        let (chunk, bytes) = self.rows.take();
        let fits = self.channel.reserve(&mut self.channel.lock(), bytes)?;
        if fits {
            self.spill()?;
            self.add(Part::Chunk(chunk, bytes));
            return Ok(());
        }
        let columns: Vec<usize> = (0..self.channel.types.len()).collect();
        let rows = self.spilling.get_or_insert_with(|| Materialized::new(&self.channel.columns()));
        rows.append(&chunk, &columns, None);
        if rows.bytes() >= PIECE_BYTES { self.spill() } else { Ok(()) }
    }

    /// Writes the rows that are to become a piece.
    fn spill(&mut self) -> Result<()> {
        let Some(rows) = self.spilling.take() else { return Ok(()) };
        let spilled = self.channel.spilled()?;
        let (format, file) = &*spilled;
        let mut piece = Vec::new();
        format.write_all(&rows, &mut piece)?;
        self.add(Part::Piece(file.add(&piece)?));
        Ok(())
    }

    fn add(&self, part: Part) {
        let mut state = self.channel.lock();
        state.runs.entry(self.morsel).or_default().push_back(part);
        self.channel.changed.notify_one();
    }

    /// Adds everything.
    fn settle(&mut self) -> Result<()> {
        self.flush()?;
        self.spill()
    }
}

impl ResultWorker for StreamWorker {
    fn start_morsel(&mut self, morsel: u64) {
        if let Err(error) = self.settle() {
            self.failure.get_or_insert(error);
            return;
        }
        self.morsel = morsel;
        let mut state = self.channel.lock();
        state.workers[self.number].morsel = morsel;
        state.latest = state.latest.max(morsel);
        self.channel.changed.notify_one();
    }

    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        if self.channel.is_gone.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        self.failure.take().map_or(Ok(()), Err)?;
        let mut from = 0;
        while from < chunk.len() {
            from += self.rows.append(chunk, from);
            if self.rows.is_full() {
                self.flush()?;
                self.channel.context.check()?;
            }
        }
        if self.channel.is_hungry.load(Ordering::Relaxed) { self.settle() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)?;
        self.settle()?;
        self.has_finished = true;
        self.channel.lock().workers[self.number].has_left = true;
        self.channel.changed.notify_one();
        Ok(())
    }
}

/// A worker that does not finish has failed. What it has comes before the error.
impl Drop for StreamWorker {
    fn drop(&mut self) {
        if !self.has_finished {
            self.channel.lock().has_failed = true;
            let _ = self.settle();
        }
    }
}

impl StreamReader {
    /// The next rows, at least one, in a dense chunk of flat vectors that owns its strings; waits until there
    /// are some. `None` at the end.
    ///
    /// # Errors
    /// Those of the execution, after the rows that come before them; I/O, if the temporary file cannot be
    /// read. Nothing follows an error.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            match self.next_part()? {
                None => return Ok(None),
                Some(Part::Chunk(chunk, _)) => return Ok(Some(chunk)),
                Some(Part::Piece(extent)) => self.read(extent)?,
            }
        }
    }

    /// True if the execution has ended, whatever has been read of its rows.
    pub fn has_ended(&self) -> bool {
        self.channel.lock().outcome.is_some()
    }

    /// Waits for the next part; `None` at the end.
    fn next_part(&mut self) -> Result<Option<Part>> {
        let channel = &self.channel;
        let mut state = channel.lock();
        loop {
            if let Some(part) = state.take() {
                return Ok(Some(part));
            }
            if let Some(outcome) = &mut state.outcome {
                let outcome = std::mem::replace(outcome, Ok(()));
                // Rows behind an error have a gap before them.
                state.runs.clear();
                return outcome.map(|()| None);
            }
            channel.is_hungry.store(true, Ordering::Relaxed);
            state = channel.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            channel.is_hungry.store(false, Ordering::Relaxed);
        }
    }

    /// Makes the rows of a piece the next ones.
    fn read(&mut self, extent: Extent) -> Result<()> {
        let spilled = self.channel.spilled()?;
        let (format, file) = &*spilled;
        let mut blocks = Blocks::new(format, CHUNK_ROWS);
        file.read(extent, blocks.next_piece())?;
        let mut chunk = Chunk::new();
        while blocks.next(format, &mut chunk)? {
            let mut from = 0;
            while from < chunk.len() {
                from += self.copier.append(&chunk, from);
                self.ready.push_back(self.copier.take().0);
            }
        }
        Ok(())
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.channel.is_gone.store(true, Ordering::Relaxed);
        let mut state = self.channel.lock();
        state.runs.clear();
        let _ = state.memory.resize(0);
    }
}
