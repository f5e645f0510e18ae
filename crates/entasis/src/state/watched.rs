//! A file that reports its reads or writes, for progress bars and to be interrupted.

use entasis_engine::exec::Progress;
use entasis_storage::backend::{Backend, Lock, ReadRequest};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The operations that are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watched {
    Reads,
    Writes,
}

/// See the module.
pub(super) struct WatchedFile {
    pub(super) file: Arc<dyn Backend>,
    /// The operations that are reported.
    pub(super) watched: Watched,
    /// Called with the number of bytes before they are read or written. Its error is that of the operation.
    pub(super) tell: Box<dyn Fn(u64) -> io::Result<()> + Send + Sync>,
}

impl std::fmt::Debug for WatchedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.file.fmt(f)
    }
}

impl WatchedFile {
    fn tell(&self, watched: Watched, bytes: usize) -> io::Result<()> {
        if self.watched == watched { (self.tell)(bytes as u64) } else { Ok(()) }
    }
}

impl Backend for WatchedFile {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.tell(Watched::Reads, out.len())?;
        self.file.read(offset, out)
    }

    fn read_many(&self, reads: &mut [ReadRequest]) -> io::Result<()> {
        self.tell(Watched::Reads, reads.iter().map(|read| read.bytes.len()).sum())?;
        self.file.read_many(reads)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.tell(Watched::Writes, bytes.len())?;
        self.file.write(offset, bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn lock(&self, lock: Lock) -> io::Result<bool> {
        self.file.lock(lock)
    }
}

/// How many of an expected number of bytes are done.
#[derive(Debug)]
pub(super) struct Bytes {
    progress: Arc<Progress>,
    all: AtomicU64,
    done: AtomicU64,
}

impl Bytes {
    /// Starts with none done of this many.
    pub(super) fn new(progress: Arc<Progress>, all: u64) -> Bytes {
        Bytes { progress, all: AtomicU64::new(all), done: AtomicU64::new(0) }
    }

    /// Adds this many bytes to those expected.
    pub(super) fn expect(&self, bytes: u64) {
        self.all.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds this many bytes to those done.
    pub(super) fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.progress.set(done as f64 / self.all.load(Ordering::Relaxed).max(1) as f64);
    }
}
