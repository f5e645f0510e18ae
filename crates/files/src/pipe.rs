//! Sources that can be read only once: pipes, FIFOs, terminals, sockets.
//!
//! A statement meets its file several times: to guess the columns, when it is described or prepared, and when
//! it runs. A regular file is opened each time; of a pipe, what was read once is gone. So:
//!
//! 1. A thread reads the pipe, block by block, ahead of its reader by a few blocks. Whoever waits for it, be
//!    it for a writer that has not come yet, can be interrupted.
//! 2. Guessing *peeks* ([`Pipe::peek`]): the bytes are kept, and are still the first ones for whoever comes
//!    next.
//! 3. A scan *takes* the pipe ([`Pipe::take`]): it gets the bytes that were kept, then the rest. It is taken
//!    once; a second scan, of the same statement or of a later one, gets an error and not a part of the rows.
//! 4. A pipe belongs to the process, not to a connection, and so does the list of those that were opened
//!    ([`find`]): whoever names the same pipe, by whatever path, meets the same bytes.
//!
//! A FIFO in the file system may be opened again once its scan has ended and nobody reads it any more: it has
//! another writer then. If no writer came before the reader was interrupted, the thread that waits for it is
//! released, and the next one opens it anew. A pipe without a name of its own, such as that of standard
//! input, has lost what a scan did not take when it ended early (`LIMIT`), so it cannot be read again.

use entasis_engine::exec::CancelFlag;
use entasis_vector::{Error, Result};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that are read at once: as many as a pipe of Linux holds.
const BLOCK_BYTES: usize = 64 << 10;
/// Blocks that are read ahead.
const BLOCKS_AHEAD: usize = 16;
/// Time between two looks for an interrupt.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The pipes of this process that have been opened and not been read to their end. It is locked before the
/// state of one of them.
static OPEN: Mutex<Vec<Arc<Pipe>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pipe at `path`; `None` if it is a regular file or a directory.
///
/// # Errors
/// I/O, if there is nothing at `path`, or it cannot be opened.
pub(super) fn find(path: &Path) -> Result<Option<Arc<Pipe>>> {
    let failed = |e: io::Error| Error::io(format!("'{}'", path.display()), &e);
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !is_pipe(&metadata) {
        return Ok(None);
    }
    let id = Id::of(&metadata, path);
    let mut open = lock(&OPEN);
    open.retain(|pipe| !pipe.is_over());
    if let Some(pipe) = open.iter().find(|pipe| pipe.id == id) {
        return Ok(Some(pipe.clone()));
    }
    let pipe = Arc::new(Pipe::open(path, id).map_err(failed)?);
    open.push(pipe.clone());
    Ok(Some(pipe))
}

/// True for everything that is read from its start to its end, once.
pub(super) fn is_pipe(metadata: &Metadata) -> bool {
    !metadata.is_file() && !metadata.is_dir()
}

/// What tells pipes apart, whatever their paths.
#[derive(Debug, PartialEq, Eq)]
struct Id(u64, u64, PathBuf);

impl Id {
    #[cfg(unix)]
    fn of(metadata: &Metadata, _: &Path) -> Id {
        use std::os::unix::fs::MetadataExt;
        Id(metadata.dev(), metadata.ino(), PathBuf::new())
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata, path: &Path) -> Id {
        Id(0, 0, path.to_owned())
    }
}

/// Standard input, if `path` names it. It may be a socket, which cannot be opened by its path, and a FIFO is
/// not to be opened anew.
fn standard_input(path: &Path) -> io::Result<Option<File>> {
    if !["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|own| path == Path::new(own)) {
        return Ok(None);
    }
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        Ok(Some(File::from(io::stdin().as_fd().try_clone_to_owned()?)))
    }
    #[cfg(not(unix))]
    Ok(None)
}

/// What the reading thread sends.
enum Block {
    Bytes(Vec<u8>),
    /// The end, and the file: while it is open no other pipe can have its identity.
    End(File),
    Failed(io::Error),
}

/// A source that can be read only once.
pub(super) struct Pipe {
    id: Id,
    path: PathBuf,
    /// Keeps the identity of a pipe without a name from being another's.
    kept: Option<File>,
    /// The thread that reads it.
    reader: JoinHandle<()>,
    /// Whether that has opened it: a FIFO has had a writer then.
    is_opened: Arc<AtomicBool>,
    /// Whether that was let go because no writer had come: its end is not that of any bytes.
    is_given_up: AtomicBool,
    state: Mutex<State>,
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pipe({})", self.path.display())
    }
}

struct State {
    /// The first bytes, which somebody has peeked at.
    head: Vec<u8>,
    /// Whether nothing comes after them.
    ended: Option<File>,
    /// The blocks after them; `None` once the pipe is taken.
    rest: Option<Receiver<Block>>,
    /// Whether the scan that took it has ended.
    left: bool,
}

impl Pipe {
    fn open(path: &Path, id: Id) -> io::Result<Pipe> {
        let mut file = standard_input(path)?;
        // A pipe without a name has a path that leads nowhere. Opening it never waits.
        if file.is_none() && std::fs::canonicalize(path).is_err() {
            file = Some(File::open(path)?);
        }
        let kept = file.as_ref().map(File::try_clone).transpose()?;
        let (sender, rest) = sync_channel(BLOCKS_AHEAD);
        let own_path = path.to_owned();
        let is_opened = Arc::new(AtomicBool::new(file.is_some()));
        let opened = is_opened.clone();
        let reader = std::thread::Builder::new().name("entasis-pipe".into()).spawn(move || {
            // Opening a FIFO waits for a writer.
            match file.map_or_else(|| File::open(&own_path), Ok) {
                Ok(file) => {
                    opened.store(true, Ordering::Relaxed);
                    read_ahead(file, &sender);
                }
                // Nobody may be left to hear it.
                Err(error) => {
                    let _ = sender.send(Block::Failed(error));
                }
            }
        })?;
        let state = State { head: Vec::new(), ended: None, rest: Some(rest), left: false };
        Ok(Pipe {
            id,
            path: path.to_owned(),
            kept,
            reader,
            is_opened,
            is_given_up: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    /// Reads from the start without taking anything away.
    ///
    /// # Errors
    /// Input, if a scan has taken it.
    pub(super) fn peek(self: &Arc<Self>, cancel: CancelFlag) -> Result<Peeking> {
        match lock(&self.state).rest {
            Some(_) => Ok(Peeking { pipe: self.clone(), at: 0, cancel }),
            None => Err(self.taken()),
        }
    }

    /// Reads everything, once.
    ///
    /// # Errors
    /// Input, if another scan has taken it.
    pub(super) fn take(self: &Arc<Self>, cancel: CancelFlag) -> Result<Taking> {
        let mut state = lock(&self.state);
        let rest = state.rest.take().ok_or_else(|| self.taken())?;
        let block = std::mem::take(&mut state.head);
        let ended = state.ended.is_some();
        Ok(Taking { pipe: self.clone(), block, at: 0, rest, ended, cancel })
    }

    fn taken(&self) -> Error {
        Error::input(format!(
            "'{}' is a pipe, which can be read only once, and has been read already",
            self.path.display()
        ))
        .with_hint("load it into a table first: CREATE TABLE t AS SELECT * FROM read_csv('…')")
    }

    /// True if a scan did not take all of it, and its path may be opened again: nobody reads it any more, and
    /// it has a name, so that it has been closed and the next writer is another one.
    fn is_over(&self) -> bool {
        self.kept.is_none()
            && self.reader.is_finished()
            && self.state.try_lock().is_ok_and(|state| state.left)
    }

    /// True if no writer has come yet.
    fn is_waiting(&self) -> bool {
        !self.is_opened.load(Ordering::Relaxed) && !self.reader.is_finished()
    }

    /// The next block.
    fn next(&self, rest: &Receiver<Block>, cancel: &CancelFlag) -> io::Result<Block> {
        match next_block(rest, cancel)? {
            Block::End(_) if self.is_given_up.load(Ordering::Relaxed) => {
                Err(io::Error::other("another statement was interrupted that waited for its writer"))
            }
            block => Ok(block),
        }
    }

    /// Forgets it, and lets the thread go that waits for a writer, before anybody else opens it.
    fn give_up(&self) {
        let mut open = lock(&OPEN);
        open.retain(|pipe| !std::ptr::eq(&**pipe, self));
        if self.is_waiting() {
            self.is_given_up.store(true, Ordering::Relaxed);
            release(&self.path);
            // It has nothing to do but to open and close the FIFO; if a writer has come just now, it has it.
            let until = Instant::now() + LOOK_EVERY;
            while !self.reader.is_finished() && Instant::now() < until {
                std::thread::yield_now();
            }
        }
    }
}

/// Lets the thread go on that waits for a writer of the FIFO at `path`: there is one for a moment, which
/// writes nothing.
#[cfg(unix)]
fn release(path: &Path) {
    use std::os::unix::fs::OpenOptionsExt;
    // If nobody waits, or the FIFO is gone, there is nothing to do.
    let _ = std::fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
}

#[cfg(not(unix))]
fn release(_: &Path) {}

/// Sends the blocks of `file`, until nobody wants them.
fn read_ahead(mut file: File, sender: &SyncSender<Block>) {
    let last = loop {
        let mut bytes = vec![0; BLOCK_BYTES];
        match file.read(&mut bytes) {
            Ok(0) => break Block::End(file),
            Ok(read) => bytes.truncate(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break Block::Failed(error),
        }
        if sender.send(Block::Bytes(bytes)).is_err() {
            return;
        }
    };
    // Nobody may be left to hear it.
    let _ = sender.send(last);
}

/// The next block, unless the statement is interrupted first.
fn next_block(rest: &Receiver<Block>, cancel: &CancelFlag) -> io::Result<Block> {
    loop {
        match rest.recv_timeout(LOOK_EVERY) {
            Ok(Block::Failed(error)) => return Err(error),
            Ok(block) => return Ok(block),
            Err(RecvTimeoutError::Timeout) if cancel.is_raised() => {
                return Err(io::Error::other("interrupted"));
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The thread has ended, having failed before.
            Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// The bytes of a pipe, which stay there.
pub(super) struct Peeking {
    pipe: Arc<Pipe>,
    at: usize,
    cancel: CancelFlag,
}

impl Read for Peeking {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut state = lock(&self.pipe.state);
        let State { head, ended, rest, .. } = &mut *state;
        let Some(rest) = rest else { return Err(io::Error::other("another statement has read the pipe")) };
        if self.at == head.len() && ended.is_none() {
            match self.pipe.next(rest, &self.cancel) {
                Ok(Block::Bytes(bytes)) => head.extend_from_slice(&bytes),
                Ok(Block::End(file)) => *ended = Some(file),
                Ok(Block::Failed(error)) | Err(error) => {
                    drop(state);
                    // Whoever is next opens it again, unless there is a writer whose bytes it is to get.
                    if !self.cancel.is_raised() || self.pipe.is_waiting() {
                        self.pipe.give_up();
                    }
                    return Err(error);
                }
            }
        }
        let read = (&head[self.at..]).read(out)?;
        self.at += read;
        Ok(read)
    }
}

/// The bytes of a pipe, as they leave it.
pub(super) struct Taking {
    pipe: Arc<Pipe>,
    block: Vec<u8>,
    at: usize,
    rest: Receiver<Block>,
    ended: bool,
    cancel: CancelFlag,
}

impl Read for Taking {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() && !self.ended {
            self.at = 0;
            match self.pipe.next(&self.rest, &self.cancel)? {
                Block::Bytes(bytes) => self.block = bytes,
                Block::End(_) => (self.block, self.ended) = (Vec::new(), true),
                Block::Failed(error) => return Err(error),
            }
        }
        let read = (&self.block[self.at..]).read(out)?;
        self.at += read;
        Ok(read)
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        lock(&self.pipe.state).left = true;
        if self.ended || self.pipe.is_waiting() {
            self.pipe.give_up();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::test_files::Directory;
    use std::process::Command;

    fn fifo(directory: &Directory) -> PathBuf {
        let path = PathBuf::from(directory.path("fifo"));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    fn all(mut bytes: impl Read) -> Vec<u8> {
        let mut out = Vec::new();
        bytes.read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn what_was_peeked_at_is_read_again_and_taken_once() {
        let directory = Directory::new();
        let path = fifo(&directory);
        let bytes: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        let cancel = CancelFlag::default();
        for peeked in [0, 1, BLOCK_BYTES, 1_000_000, bytes.len(), bytes.len() + 1] {
            let (writer_path, written) = (path.clone(), bytes.clone());
            let writer = std::thread::spawn(move || std::fs::write(writer_path, written));
            let pipe = find(&path).unwrap().unwrap();
            for _ in 0..2 {
                let mut start = Vec::new();
                pipe.peek(cancel.clone()).unwrap().take(peeked as u64).read_to_end(&mut start).unwrap();
                assert!(bytes.starts_with(&start) && start.len() == peeked.min(bytes.len()), "{peeked}");
            }
            let again = find(&path).unwrap().unwrap();
            let taking = again.take(cancel.clone()).unwrap();
            for refused in [pipe.take(cancel.clone()).err(), pipe.peek(cancel.clone()).err()] {
                assert!(refused.unwrap().message().contains("only once"));
            }
            assert!(all(taking) == bytes, "{peeked}");
            writer.join().unwrap().unwrap();
            // The next one who opens it gets another writer.
            assert!(lock(&OPEN).iter().all(|open| !Arc::ptr_eq(open, &pipe)));
        }
    }

    #[test]
    fn waiting_for_a_writer_ends_with_an_interrupt() {
        let directory = Directory::new();
        let pipe = find(&fifo(&directory)).unwrap().unwrap();
        let cancel = CancelFlag::default();
        cancel.raise();
        assert!(pipe.peek(cancel.clone()).unwrap().read(&mut [0]).is_err());
        assert!(pipe.take(cancel).unwrap().read(&mut [0]).is_err());
    }

    #[test]
    fn a_fifo_that_nobody_waits_for_any_more_is_opened_anew() {
        let directory = Directory::new();
        let path = fifo(&directory);
        let (interrupted, cancel) = (CancelFlag::default(), CancelFlag::default());
        interrupted.raise();
        for take in [false, true] {
            let pipe = find(&path).unwrap().unwrap();
            let waits = pipe.is_opened.clone();
            match take {
                false => assert!(pipe.peek(interrupted.clone()).unwrap().read(&mut [0]).is_err()),
                true => assert!(pipe.take(interrupted.clone()).unwrap().read(&mut [0]).is_err()),
            }
            while !pipe.reader.is_finished() {
                std::thread::yield_now();
            }
            assert!(
                waits.load(Ordering::Relaxed),
                "the thread that waited was let go, without a writer of ours"
            );
            assert!(lock(&OPEN).iter().all(|open| !Arc::ptr_eq(open, &pipe)), "it is forgotten");
        }
        let (writer_path, text) = (path.clone(), "a,b\n");
        let writer = std::thread::spawn(move || std::fs::write(writer_path, text));
        let pipe = find(&path).unwrap().unwrap();
        assert_eq!(all(pipe.take(cancel).unwrap()), text.as_bytes());
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn files_and_directories_are_not_pipes() {
        let directory = Directory::new();
        assert!(find(directory.write("a", "x").as_ref()).unwrap().is_none());
        assert!(find(directory.path("").as_ref()).unwrap().is_none());
        assert!(find(directory.path("none").as_ref()).is_err());
    }
}
