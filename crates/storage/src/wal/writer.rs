//! Writing a log: frames are ordered in memory, and a leader writes them to the disk.

use super::frame::{ALIGNMENT, Frame, FrameHeader, Kind, MAX_FRAME};
use super::reader::{TRANSACTION_BYTES, Tail};
use super::segments::{SegmentBytes, Segments};
use crate::backend::bytes::checksum;
use crate::backend::{Backend, refused};
use crate::file::DatabaseId;
use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering, PoisonError};
use entasis_vector::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

/// The most bytes that [`Synchronous::Off`] keeps in memory.
const KEPT: usize = 1 << 20;

/// What a commit waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Synchronous {
    /// Until it is durable, whatever happens to the machine.
    #[default]
    Full,
    /// Until the operating system has it: it survives whatever happens to the process.
    Normal,
    /// For nothing: it is written when there is much to write, or by a checkpoint.
    Off,
}

impl Synchronous {
    /// All of them.
    pub const ALL: [Synchronous; 3] = [Synchronous::Full, Synchronous::Normal, Synchronous::Off];
}

/// By its name in SQL.
impl fmt::Display for Synchronous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Synchronous::Full => "full",
            Synchronous::Normal => "normal",
            Synchronous::Off => "off",
        })
    }
}

/// See the module. All methods may be called from several threads.
#[derive(Debug)]
pub struct Log {
    backend: Arc<dyn Backend>,
    /// The seed of checksums.
    seed: u64,
    bytes: SegmentBytes,
    run: u32,
    /// Numbers of transactions that have parts.
    transactions: AtomicU64,
    /// What commits wait for: a [`Synchronous`], as a number.
    synchronous: AtomicU8,
    queue: Mutex<Queue>,
    /// Signalled when a leader has finished.
    changed: Condvar,
    /// Locked by the leader while it writes. It releases the queue before it takes this lock.
    segments: Mutex<Segments>,
}

/// What was appended.
#[derive(Debug)]
struct Queue {
    /// Bytes that are not yet written.
    waiting: Vec<u8>,
    /// The buffer of the previous leader, to be reused.
    spare: Vec<u8>,
    /// The position after everything that was appended.
    end: u64,
    /// The position after what the operating system has.
    written: u64,
    /// The position after what is durable.
    durable: u64,
    has_leader: bool,
    /// The error for which everything is refused.
    refusal: Option<Error>,
}

impl Log {
    /// Creates a log in an empty file, and syncs it.
    ///
    /// # Errors
    /// I/O.
    pub fn create(backend: Arc<dyn Backend>, id: DatabaseId, bytes: SegmentBytes) -> Result<Log> {
        Log::begin(
            backend,
            Tail { position: 0, synced: 0, run: 0, segments: Segments::none(id, bytes), is_closed: false },
        )
    }

    /// Continues after the end of a log that was read.
    ///
    /// # Errors
    /// I/O.
    pub fn resume(backend: Arc<dyn Backend>, tail: Tail) -> Result<Log> {
        Log::begin(backend, tail)
    }

    fn begin(backend: Arc<dyn Backend>, tail: Tail) -> Result<Log> {
        let Tail { position, synced, run, mut segments, .. } = tail;
        let io = |error| refused(&*backend, &error);
        let Some(run) = run.checked_add(1) else {
            return Err(Error::resource(format!("{} was opened too often", backend.name())));
        };
        // A process that was killed, or whose sync failed, may have left this in the system's cache only. A
        // sync that succeeds says nothing about it (docs/decisions/0040).
        segments.write_again(&*backend, synced..position).map_err(io)?;
        let (number, _) = segments.bytes.split(position);
        if segments.place_of(position).is_none() {
            segments.begin(&*backend, number).map_err(io)?;
        }
        backend.sync().map_err(io)?;
        let queue = Queue {
            waiting: Vec::new(),
            spare: Vec::new(),
            end: position,
            written: position,
            durable: position,
            has_leader: false,
            refusal: None,
        };
        Ok(Log {
            seed: segments.id.seed(),
            bytes: segments.bytes,
            run,
            transactions: AtomicU64::new((u64::from(run) << 32) + 1),
            synchronous: AtomicU8::new(Synchronous::default() as u8),
            backend,
            queue: Mutex::new(queue),
            changed: Condvar::new(),
            segments: Mutex::new(segments),
        })
    }

    /// What commits wait for; at first [`Synchronous::Full`].
    pub fn synchronous(&self) -> Synchronous {
        let code = self.synchronous.load(Ordering::Relaxed);
        Synchronous::ALL.into_iter().find(|own| *own as u8 == code).unwrap_or_default()
    }

    /// Sets what commits wait for from now on.
    pub fn set_synchronous(&self, synchronous: Synchronous) {
        self.synchronous.store(synchronous as u8, Ordering::Relaxed);
    }

    /// A number for a transaction that has parts.
    pub fn transaction(&self) -> u64 {
        self.transactions.fetch_add(1, Ordering::Relaxed)
    }

    /// A frame of some records of a transaction: of all, if its number is 0, or of those after its parts.
    ///
    /// # Errors
    /// Resource, if there are too many for one frame: write parts.
    pub fn frame(&self, kind: Kind, transaction: u64, records: &[u8]) -> Result<Frame> {
        if records.len() > MAX_FRAME - TRANSACTION_BYTES {
            let message = format!("{} bytes of records are too many for one frame of the log", records.len());
            return Err(Error::resource(message));
        }
        let payload = [&transaction.to_le_bytes(), records].concat();
        Ok(Frame { kind, checksum: checksum(&payload, self.seed), payload })
    }

    /// The frames of all records of a transaction, however many they are: parts, and the commit.
    ///
    /// # Errors
    /// None, since no frame is too large.
    pub fn frames(&self, records: &[u8]) -> Result<Vec<Frame>> {
        const MOST: usize = MAX_FRAME - TRANSACTION_BYTES;
        let transaction = if records.len() > MOST { self.transaction() } else { 0 };
        let last = records.len().div_ceil(MOST).saturating_sub(1) * MOST;
        let (parts, end) = records.split_at(last);
        let parts = parts.chunks(MOST).map(|part| self.frame(Kind::Part, transaction, part));
        parts.chain(std::iter::once(self.frame(Kind::Commit, transaction, end))).collect()
    }

    /// Gives frames consecutive positions in the log. Returns the position to wait for.
    ///
    /// # Errors
    /// I/O, if a write has failed before. Then none is in the log.
    pub fn append_all(&self, frames: &[Frame]) -> Result<u64> {
        let mut queue = self.lock();
        queue.refuse()?;
        frames.iter().for_each(|frame| {
            self.put(&mut queue, frame);
        });
        Ok(queue.end)
    }

    /// An error, if a write has failed before: then everything is refused.
    ///
    /// # Errors
    /// I/O.
    pub fn look(&self) -> Result<()> {
        self.lock().refuse()
    }

    /// Gives a frame its position in the log, after all those appended before. Returns the position to wait
    /// for.
    ///
    /// # Errors
    /// I/O, if a write has failed before.
    pub fn append(&self, frame: &Frame) -> Result<u64> {
        let mut queue = self.lock();
        queue.refuse()?;
        Ok(self.put(&mut queue, frame))
    }

    fn put(&self, queue: &mut Queue, frame: &Frame) -> u64 {
        let position = self.bytes.room_for_frame(queue.end);
        let header = FrameHeader {
            position,
            durable: queue.durable,
            run: self.run,
            bytes: frame.payload.len() as u32,
            kind: frame.kind,
            checksum: frame.checksum,
        };
        let start = queue.waiting.len() + (position - queue.end) as usize;
        queue.waiting.resize(start, 0);
        queue.waiting.extend_from_slice(&header.to_bytes(self.seed));
        queue.waiting.extend_from_slice(&frame.payload);
        let length = (queue.waiting.len() - start).next_multiple_of(ALIGNMENT);
        queue.waiting.resize(start + length, 0);
        queue.end = header.end();
        queue.end
    }

    /// Waits until everything before a position is as durable as the setting demands.
    ///
    /// # Errors
    /// I/O: then the fate of what was not waited for is unknown, and all later calls are refused.
    pub fn wait(&self, position: u64, synchronous: Synchronous) -> Result<()> {
        let mut queue = self.lock();
        loop {
            let is_done = match synchronous {
                Synchronous::Full => queue.durable >= position,
                Synchronous::Normal => queue.written >= position,
                Synchronous::Off => queue.waiting.len() < KEPT,
            };
            if is_done {
                return Ok(());
            }
            queue.refuse()?;
            queue = match queue.has_leader {
                true => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                false => self.lead(queue, synchronous == Synchronous::Full)?,
            };
        }
    }

    /// Writes everything that was appended, and syncs it on request.
    fn lead<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, syncs: bool) -> Result<MutexGuard<'a, Queue>> {
        queue.has_leader = true;
        let spare = std::mem::take(&mut queue.spare);
        let mut group = std::mem::replace(&mut queue.waiting, spare);
        let start = queue.written;
        drop(queue);
        let written = lock(&self.segments).write(&*self.backend, start, &group);
        let done = written.and_then(|()| if syncs { self.backend.sync() } else { Ok(()) });
        let mut queue = self.lock();
        queue.has_leader = false;
        self.changed.notify_all();
        match done {
            Ok(()) => {
                queue.written = start + group.len() as u64;
                if syncs {
                    queue.durable = queue.written;
                }
                group.clear();
                // The memory of a large group is freed.
                if group.capacity() <= KEPT {
                    queue.spare = group;
                }
                Ok(queue)
            }
            Err(error) => Err(queue.fail(refused(&*self.backend, &error))),
        }
    }

    /// Where the next frame goes. Under the locks that order commits it is the position of a checkpoint.
    pub fn position(&self) -> u64 {
        self.lock().end
    }

    /// True if everything that was appended is durable.
    pub fn is_durable(&self) -> bool {
        let queue = self.lock();
        queue.durable >= queue.end
    }

    /// Frees segments that end before a position, because a state of the data file that begins there is
    /// synced.
    ///
    /// # Errors
    /// I/O, after which everything is refused.
    pub fn cut(&self, position: u64) -> Result<()> {
        let done = lock(&self.segments).cut(&*self.backend, position);
        done.map_err(|error| self.lock().fail(refused(&*self.backend, &error)))
    }

    /// Syncs everything that was appended, and marks the log as closed. Nothing can be appended any more.
    ///
    /// # Errors
    /// I/O.
    pub fn close(&self) -> Result<()> {
        self.wait(self.position(), Synchronous::Full)?;
        let frame = Frame { kind: Kind::Close, payload: Vec::new(), checksum: checksum(&[], self.seed) };
        let end = self.append(&frame)?;
        self.wait(end, Synchronous::Full)?;
        let mut queue = self.lock();
        let closed = Error::new(ErrorKind::Io, format!("{} was closed", self.backend.name()));
        queue.refusal.get_or_insert(closed);
        Ok(())
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        lock(&self.segments).count() * u64::from(self.bytes.get())
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

impl Queue {
    /// An error, if everything is refused.
    fn refuse(&self) -> Result<()> {
        match &self.refusal {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Makes all later calls fail, for this reason.
    fn fail(&mut self, error: Error) -> Error {
        let message = format!("{}; nothing is written any more: open the database again", error.message());
        self.refusal.get_or_insert_with(|| Error::new(ErrorKind::Io, message));
        error
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
