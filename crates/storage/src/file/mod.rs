//! The data file: one consistent state of a database, and how it becomes the next
//! (docs/design/file-format.md).
//!
//! ```text
//! preamble │ header A │ header B │ extent │ free │ extent │ extent │ …
//!              n-1         n ──roots──▶      ▲
//! ```
//! A header reaches all extents of its state. Nothing that the newest header reaches is ever overwritten, so
//! this state survives if the machine stops at any moment:
//!
//! 1. [`DataFile::write`] writes a payload to free pages and returns its [`Extent`]. It is called as often as
//!    necessary.
//! 2. [`DataFile::give_up`] names the extents that the next state does not need. Their pages stay as they are
//!    until that state is committed.
//! 3. [`DataFile::commit`] writes the map of free space, syncs, overwrites the older header, and syncs. Now
//!    pages that were given up are free, and the free tail of the file is truncated.
//!
//! | module | |
//! |---|---|
//! | [`header`] | preamble and headers: bytes before and after their verification |
//! | `space` | free runs: allocate, free, merge, truncate |
//! | `verify` | checks the whole file, and the use of its pages |
//!
//! # The map of free pages is trusted
//!
//! The map of the newest header is what opening knows of pages: nothing walks the extents of the state, which
//! would take time in proportion to the file. It is right because it is made of what the process knows when
//! it commits: every page that the new header does not reach is free in it, whatever else there is that has
//! the page. What the map says at the next opening, where one might doubt it:
//!
//! - **A crash before the new header is whole**: it is the older map. The new state was written to pages that
//!   are free in it, or behind its end; so they are free, and nothing that it counts as used was touched.
//! - **A crash behind the header, before the tail is cut**: pages behind the end that the header knows of are
//!   as good as free, since the file grows there.
//! - **A header that is in the system's cache only**: it is written and synced again before anything else, so
//!   that no page which its state gave up is written before that state is safe.
//! - **Written ahead, and named by the log behind the header**: free. Replay claims it, at each opening anew,
//!   before anything is written; so it is neither lost nor used twice.
//! - **Written ahead, and named by no commit** (a crash, a rollback, a log that is lost): free, and nobody
//!   claims it.
//! - **Written ahead while a state was committed**: free, as its header does not reach it; so it is one of
//!   these two, whenever its commit came.
//! - **Written ahead, and taken over by a state**: used, and the log behind that state does not name it. What
//!   the state gave up instead is free.
//! - **A checkpoint that failed before it wrote its map**: what it wrote is free in the map of the state
//!   before. In memory it stays given up until a state is committed, or the process ends. The images and
//!   loads that it was to take over are free, and the log still names them.
//! - **A write or a sync that failed**: nothing is written behind it, so it is as a crash.
//! - **A commit of the same roots**, when a database is opened or closed: only the map itself has moved. What
//!   the log names has been claimed by then, and is free in the new map as well.
//! - **An older program**, whose maps count as used what was written ahead: what the log names is claimed as
//!   it is. What no commit names is nobody's, which does no harm, until `VACUUM` frees it
//!   ([`DataFile::reclaim`]).
//!
//! So opening has an order: the headers and the map; the header once more, and a sync; the extents of the
//! state; the log, whose extents are claimed. Only then is anything written: recovery ends before there is a
//! log to append to, or a checkpoint. A map with a right checksum that is wrong all the same is a bug, here
//! or in the program that wrote it. `integrity_check` finds it ([`DataFile::misused`]), before it makes a
//! checkpoint that might write over what is in use.
//!
//! The map is read at opening and not at the first write: it is one extent, claims need it, and a database
//! that was closed is written to at once, as it is open from then on.
//!
//! A file that is only read ([`Access::Read`]) takes no lock: another process may write to it meanwhile, and
//! never waits for readers. [`DataFile::refresh`] finds the state that is the newest by now. What an older
//! state reaches may then be overwritten, which checksums reveal: its reader starts again with the newer
//! state.
//!
//! Invariants: each page is free, or given up, or belongs to one extent; after a failed write or sync the
//! file is never written again. Not here: what extents mean, when checkpoints happen, caching.

pub mod header;
mod space;
mod verify;

#[cfg(test)]
mod tests;

pub use verify::Damage;

pub use header::{Access, Contents, DatabaseId, Extent, Header, ROOTS, Root, State};

use crate::backend::bytes::checksum;
use crate::backend::{Backend, Lock, damaged, refused};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use entasis_vector::{Error, ErrorKind, Result};
use header::{Headers, PAGE, PREAMBLE_BYTES, Preamble};
use space::{Run, Space};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// Offset of the owner note.
const OWNER_AT: u64 = 512;
/// Bytes of the owner note.
const OWNER_BYTES: usize = 32;
/// How often headers are read again if they are invalid, as a writer may be writing them.
const TRIES: usize = 20;
/// The wait between two attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// See the module. All methods may be called from several threads.
#[derive(Debug)]
pub struct DataFile {
    backend: Arc<dyn Backend>,
    id: DatabaseId,
    access: Access,
    pages: Mutex<Pages>,
    newest: Mutex<Header>,
    /// The headers that `newest` was found in, of a file that is only read.
    seen: Mutex<Headers>,
    /// Held during a commit.
    turn: Mutex<()>,
    /// Held during a sync: the system tells only one of two threads that a sync has failed.
    syncing: Mutex<()>,
    /// Why a write or a sync has failed, after which nothing is written any more.
    failure: OnceLock<String>,
    /// How many threads may read its tables, and repeat its log, at once, at least 1.
    threads: usize,
}

/// The state of the pages.
#[derive(Debug)]
struct Pages {
    space: Space,
    /// Extents that the newest header, or the log after it, still reaches.
    given_up: Vec<Run>,
    /// What no header reaches, but the log does or is going to: pages by the first one. In the map of a state
    /// they are free, because whoever opens the file takes them by what the log says.
    ahead: BTreeMap<u64, u64>,
}

impl Pages {
    /// The runs that are somebody's, if the newest state reaches these extents, and has its map in another.
    fn used(&self, reached: &[Extent], map: Extent) -> Vec<Run> {
        let mut used: Vec<Run> = reached.iter().chain([&map]).map(|extent| Run::of(*extent)).collect();
        used.retain(|run| run.pages > 0);
        // A recovery reaches what the log does.
        let known: HashSet<u64> = used.iter().map(|run| run.start).collect();
        let ahead = self.ahead.iter().map(|(&start, &pages)| Run { start, pages });
        used.extend(ahead.filter(|run| !known.contains(&run.start)));
        used.extend(&self.given_up);
        used
    }
}

/// How long a file may stay. What lies behind that is its tail, whose extents a checkpoint writes again to
/// free pages, so that the file can be truncated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Length {
    /// Twice as long as what is in use: so that little is written again.
    #[default]
    Double,
    /// As long as what is in use. As many pages are written again as were free, at most.
    Least,
}

/// The pages of a file behind its [`Length`]. If its extents are rewritten to free pages before
/// it, the file can be truncated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    /// Its first page.
    begin: u64,
    /// The longest free run before it.
    room: u64,
}

impl Tail {
    /// True if an extent is in it, and fits before it.
    pub(crate) fn holds(&self, extent: Extent) -> bool {
        let run = Run::of(extent);
        run.start >= self.begin && run.pages <= self.room
    }
}

/// A tail that contains no extent.
impl Default for Tail {
    fn default() -> Tail {
        Tail { begin: u64::MAX, room: 0 }
    }
}

impl DataFile {
    /// Creates an empty database in an empty file, which it locks and syncs.
    ///
    /// # Errors
    /// I/O; also if another process has locked it.
    pub fn create(backend: Arc<dyn Backend>, id: DatabaseId, segment_bytes: u32) -> Result<DataFile> {
        let io = |error| refused(&*backend, &error);
        take_lock(&*backend)?;
        let header = Header::first(segment_bytes);
        let mut bytes = vec![0; header::FIRST_PAGE as usize * PAGE as usize];
        bytes[..PREAMBLE_BYTES].copy_from_slice(&Preamble::bytes(id));
        let at = header.offset() as usize;
        bytes[at..at + header::HEADER_BYTES].copy_from_slice(&header.bytes(id));
        backend.write(0, &bytes).map_err(io)?;
        backend.sync().map_err(io)?;
        let space = Space::new(header::FIRST_PAGE);
        let seen = Headers::default();
        let file = DataFile::of(backend, id, Access::Write, space, (header, seen));
        file.note_owner()?;
        Ok(file)
    }

    /// Opens a database and finds its newest state. A writer locks the file.
    ///
    /// # Errors
    /// I/O; also, with its process id, if another process has locked the file. Corruption, which may be
    /// transient if the file is only read while another process writes to it. Input, if it is not a database
    /// of a version that can be read (or written).
    pub fn open(backend: Arc<dyn Backend>, access: Access) -> Result<DataFile> {
        if access == Access::Write {
            take_lock(&*backend)?;
        }
        let id = header::id(&*backend)?;
        let (header, seen, space) = loop {
            let (header, seen) = newest(&*backend, id, access)?;
            match free_space(&*backend, id, &header) {
                // The map is no longer that of the newest state.
                Err(_) if access == Access::Read && header::read_both(&*backend)? != seen => {}
                space => break (header, seen, space?),
            }
        };
        let file = DataFile::of(backend, id, access, space, (header, seen));
        if access == Access::Write {
            file.write_header_again()?;
            file.note_owner()?;
            // Pages that the newest state gave up must not be written before that state is on the disk.
            file.sync()?;
        }
        Ok(file)
    }

    /// Writes again, as it was read, what may be in the system's cache only, because a process was killed or
    /// its sync failed: the newest header. Its extents were synced before it was written. Before the first
    /// commit this may be true of all that the creation of the file has written.
    fn write_header_again(&self) -> Result<()> {
        let (header, seen) = (self.header(), lock(&self.seen));
        if header.is_first() {
            let mut pages = vec![0; (header::FIRST_PAGE * PAGE) as usize];
            self.backend.read(0, &mut pages).map_err(|error| refused(&*self.backend, &error))?;
            return self.attempt(self.backend.write(0, &pages));
        }
        self.attempt(self.backend.write(header.offset(), seen.bytes_of(&header)))
    }

    fn of(
        backend: Arc<dyn Backend>,
        id: DatabaseId,
        access: Access,
        space: Space,
        (newest, seen): (Header, Headers),
    ) -> DataFile {
        let pages = Mutex::new(Pages { space, given_up: Vec::new(), ahead: BTreeMap::new() });
        let (newest, seen) = (Mutex::new(newest), Mutex::new(seen));
        let (turn, syncing, failure) = (Mutex::new(()), Mutex::new(()), OnceLock::new());
        DataFile { backend, id, access, pages, newest, seen, turn, syncing, failure, threads: 1 }
    }

    /// The same file, whose tables up to so many threads may read, and whose log they may repeat, at once.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> DataFile {
        DataFile { threads: threads.max(1), ..self }
    }

    /// How many threads may read its tables, and repeat its log, at once.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Finds the newest state that the writer has committed, and returns its header; for files that are only
    /// read. If nothing has changed, this takes a single read.
    ///
    /// # Errors
    /// I/O; corruption, with its place.
    pub fn refresh(&self) -> Result<Header> {
        let mut seen = lock(&self.seen);
        if header::read_both(&*self.backend)? != *seen {
            let (found, headers) = newest(&*self.backend, self.id, self.access)?;
            let mut own = lock(&self.newest);
            // Otherwise the other header is being written, and is ignored until it is whole.
            if found.number > own.number {
                (*own, *seen) = (found, headers);
            }
        }
        Ok(self.header())
    }

    /// Its id, which its log has, too.
    pub fn id(&self) -> DatabaseId {
        self.id
    }

    /// Its newest state.
    pub fn header(&self) -> Header {
        *lock(&self.newest)
    }

    /// The seed of checksums of parts of an extent.
    pub(crate) fn seed(&self) -> u64 {
        self.id.seed()
    }

    /// The error for bytes at an offset that are not those that were written.
    pub(crate) fn damaged(&self, offset: u64, what: &str) -> Error {
        damaged(&*self.backend, offset, what)
    }

    /// The payload of an extent.
    ///
    /// # Errors
    /// I/O; corruption, with its place.
    pub fn read(&self, extent: Extent) -> Result<Vec<u8>> {
        read(&*self.backend, self.id, extent)
    }

    /// The same, in place of what is in `payload`, and without a look at the checksum of the whole: for an
    /// extent all of whose parts have their own.
    ///
    /// # Errors
    /// I/O; corruption, if the file is too short.
    pub(crate) fn read_parts(&self, extent: Extent, payload: &mut Vec<u8>) -> Result<()> {
        read_unverified(&*self.backend, extent, payload)
    }

    /// Writes a payload to free pages, or at the end. It is durable after the next [`DataFile::sync`] or
    /// [`DataFile::commit`], and reachable once something that refers to it is committed.
    ///
    /// # Errors
    /// I/O.
    pub fn write(&self, payload: &[u8]) -> Result<Extent> {
        self.may_write()?;
        if payload.is_empty() {
            return Ok(Extent::default());
        }
        let run = lock(&self.pages).space.take((payload.len() as u64).div_ceil(PAGE));
        self.put(run, payload)
    }

    /// The same for an extent that the log is going to refer to: the states of checkpoints do not know of it
    /// before one of them takes it over ([`DataFile::reach`]).
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn write_ahead(&self, payload: &[u8]) -> Result<Extent> {
        self.may_write()?;
        if payload.is_empty() {
            return Ok(Extent::default());
        }
        let run = {
            let mut pages = lock(&self.pages);
            let run = pages.space.take((payload.len() as u64).div_ceil(PAGE));
            pages.ahead.insert(run.start, run.pages);
            run
        };
        self.put(run, payload)
    }

    /// Makes the pages of an extent free at once, which was written ahead, and which nothing has ever
    /// referred to.
    pub(crate) fn take_back(&self, extent: Extent) {
        let run = Run::of(extent);
        let mut pages = lock(&self.pages);
        if pages.ahead.remove(&run.start).is_some() {
            let is_released = pages.space.release(run);
            debug_assert!(is_released, "pages that were written ahead are not free");
        }
    }

    /// Says that the state that is committed next reaches these extents, whoever has written them.
    pub(crate) fn reach(&self, extents: impl Iterator<Item = Extent>) {
        let mut pages = lock(&self.pages);
        extents.for_each(|extent| _ = pages.ahead.remove(&Run::of(extent).start));
    }

    /// True if the file has these bytes at an offset, within an extent.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn has(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        let mut found = vec![0; bytes.len()];
        self.backend.read(offset, &mut found).map_err(|error| refused(&*self.backend, &error))?;
        Ok(found == bytes)
    }

    /// Writes a payload to pages that were taken for it.
    fn put(&self, run: Run, payload: &[u8]) -> Result<Extent> {
        let offset = run.start * PAGE;
        let bytes = payload.len() as u64;
        let rest = (run.pages * PAGE - bytes) as usize;
        self.attempt(self.backend.write(offset, payload))?;
        if rest > 0 {
            self.attempt(self.backend.write(offset + bytes, &vec![0; rest]))?;
        }
        Ok(Extent { offset, bytes, checksum: checksum(payload, extent_seed(self.id, offset)) })
    }

    /// Allocates the pages of an extent that only the log reaches: at opening, before anything is written.
    /// They are allocated already if the extent existed when the map of free space was made.
    ///
    /// # Errors
    /// Corruption, if some of them are free and others are not.
    pub fn claim(&self, extent: Extent) -> Result<()> {
        let run = Run::of(extent);
        let mut pages = lock(&self.pages);
        if extent.bytes == 0 || !extent.is_well_placed() || !pages.space.claim(run) {
            return Err(damaged(&*self.backend, extent.offset, "an extent of the log is in use"));
        }
        pages.ahead.insert(run.start, run.pages);
        Ok(())
    }

    /// Frees pages that are nobody's: neither free, nor given up, nor written ahead, nor of the map, nor of
    /// `reached`, which are the other extents of the newest state. Returns how many. No state may be
    /// committed meanwhile.
    pub fn reclaim(&self, reached: &[Extent]) -> u64 {
        let map = self.header().roots[Root::FreeSpace as usize];
        let mut pages = lock(&self.pages);
        let mut runs = pages.used(reached, map);
        runs.extend(pages.space.free_runs());
        runs.sort_unstable_by_key(|run| run.start);
        let end = pages.space.end();
        let (mut next, mut reclaimed) = (header::FIRST_PAGE, 0);
        for run in runs.into_iter().chain([Run { start: end, pages: 0 }]) {
            if run.start > next {
                let lost = Run { start: next, pages: run.start.min(end) - next };
                reclaimed += if pages.space.release(lost) { lost.pages } else { 0 };
            }
            next = next.max(run.end()).min(end);
        }
        reclaimed
    }

    /// Declares that neither the next committed state nor the log after it reaches an extent.
    pub fn give_up(&self, extent: Extent) {
        if extent.bytes > 0 {
            let run = Run::of(extent);
            let mut pages = lock(&self.pages);
            pages.ahead.remove(&run.start);
            pages.given_up.push(run);
        }
    }

    /// Returns when everything that was written is durable.
    ///
    /// # Errors
    /// I/O.
    pub fn sync(&self) -> Result<()> {
        // A thread whose bytes another one's sync has lost must not take its own, which has nothing to write
        // any more, for success. So it looks for failures when no sync is under way.
        let _syncing = lock(&self.syncing);
        self.may_write()?;
        self.attempt(self.backend.sync())
    }

    /// Makes a new state the newest: see the module. The log must have been synced up to its position.
    ///
    /// # Errors
    /// I/O. Then it is unknown whether the previous state or this one is the newest; nothing can be written
    /// any more.
    pub fn commit(&self, contents: Contents) -> Result<()> {
        self.may_write()?;
        let _turn = lock(&self.turn);
        let newest = self.header();
        self.give_up(newest.roots[Root::FreeSpace as usize]);

        // What is given up or allocated from now on belongs to the next state.
        let (freed, map, place, pages) = {
            let mut pages = lock(&self.pages);
            let freed = std::mem::take(&mut pages.given_up);
            let runs = pages.space.runs() + freed.len() + pages.ahead.len() + 1;
            let place = pages.space.take(space::pages_for(runs));
            let mut free = pages.space.clone();
            for (&start, &pages) in &pages.ahead {
                let is_released = free.release(Run { start, pages });
                debug_assert!(is_released, "pages that were written ahead are not free");
            }
            for &run in &freed {
                if !free.release(run) {
                    let reason = format!("page {} was given up twice", run.start);
                    let message = format!("{}: {reason}", self.backend.name());
                    self.failure.get_or_init(|| reason);
                    return Err(Error::new(ErrorKind::Internal, message));
                }
            }
            let end = free.cut_tail();
            (freed, space::bytes(&free, place.pages), place, end)
        };
        let map = self.put(place, &map)?;
        self.sync()?;

        let mut roots = contents.roots;
        roots[Root::FreeSpace as usize] = map;
        let header = newest.next(Contents { roots, ..contents }, pages);
        self.attempt(self.backend.write(header.offset(), &header.bytes(self.id)))?;
        self.sync()?;
        *lock(&self.newest) = header;

        let mut pages = lock(&self.pages);
        freed.into_iter().for_each(|run| _ = pages.space.release(run));
        let (before, end) = (pages.space.end(), pages.space.cut_tail());
        if end < before {
            // While the pages are locked, so that nobody writes there.
            self.attempt(self.backend.set_len(end * PAGE))?;
        }
        Ok(())
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.size().0 * PAGE
    }

    /// Pages of the file, and how many of them are free.
    pub fn size(&self) -> (u64, u64) {
        let pages = lock(&self.pages);
        (pages.space.end(), pages.space.free())
    }

    /// The tail of the file, if there is so much free space that moving it is worthwhile.
    pub(crate) fn tail(&self, length: Length) -> Tail {
        let pages = lock(&self.pages);
        let used = pages.space.end() - pages.space.free();
        let begin = if length == Length::Double { 2 * used } else { used };
        Tail { begin, room: pages.space.largest_before(begin) }
    }

    /// An error if the file can no longer be written.
    fn may_write(&self) -> Result<()> {
        if self.access == Access::Read {
            return Err(Error::input(format!("{} was opened to be read only", self.backend.name())));
        }
        match self.failure.get() {
            None => Ok(()),
            Some(reason) => {
                let name = self.backend.name();
                let message = format!("{name} is not written any more since an error: {reason}");
                Err(Error::new(ErrorKind::Io, message).with_hint("open it again when the cause is fixed"))
            }
        }
    }

    /// Passes the result of a write on; after an error, all later writes fail.
    fn attempt(&self, result: std::io::Result<()>) -> Result<()> {
        result.map_err(|error| {
            self.failure.get_or_init(|| error.to_string());
            refused(&*self.backend, &error)
        })
    }

    /// Records the process that owns the file, for the error that others get.
    fn note_owner(&self) -> Result<()> {
        let mut note = [0; OWNER_BYTES];
        let text = format!("pid {}", std::process::id());
        note[..text.len()].copy_from_slice(text.as_bytes());
        self.attempt(self.backend.write(OWNER_AT, &note))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The seed of checksums of extents.
fn extent_seed(id: DatabaseId, offset: u64) -> u64 {
    id.seed() ^ offset
}

/// The newest state of a database, and the headers in which it was found.
fn newest(backend: &dyn Backend, id: DatabaseId, access: Access) -> Result<(Header, Headers)> {
    let mut tries = 0;
    loop {
        let headers = header::read_both(backend)?;
        match header::newest_of(backend, &headers, id, access) {
            Ok(header) => return Ok((header, headers)),
            // For example, a writer has changed the file between the reads of the headers and of its length.
            Err(_) if access == Access::Read && tries < TRIES => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The free pages of a state.
fn free_space(backend: &dyn Backend, id: DatabaseId, header: &Header) -> Result<Space> {
    let mut space = Space::new(header.pages);
    let map = header.roots[Root::FreeSpace as usize];
    if map.bytes > 0 {
        let bytes = read(backend, id, map)?;
        let free = space::parse(&bytes, header.pages, map);
        for run in free.ok_or_else(|| damaged(backend, map.offset, "the map of free space"))? {
            space.release(run);
        }
    }
    Ok(space)
}

/// The payload of an extent.
fn read(backend: &dyn Backend, id: DatabaseId, extent: Extent) -> Result<Vec<u8>> {
    let mut payload = Vec::new();
    read_unverified(backend, extent, &mut payload)?;
    if extent.bytes > 0 && checksum(&payload, extent_seed(id, extent.offset)) != extent.checksum {
        let what = format!("the checksum of an extent of {} bytes is wrong", extent.bytes);
        return Err(damaged(backend, extent.offset, &what));
    }
    Ok(payload)
}

/// The payload of an extent, in place of what is in `payload`.
fn read_unverified(backend: &dyn Backend, extent: Extent, payload: &mut Vec<u8>) -> Result<()> {
    if extent.bytes == 0 {
        payload.clear();
        return Ok(());
    }
    let length = backend.length().map_err(|error| refused(backend, &error))?;
    if !extent.is_well_placed() || extent.offset.checked_add(extent.bytes).is_none_or(|end| end > length) {
        let what = format!("an extent of {} bytes is to be here, and the file has {length}", extent.bytes);
        return Err(damaged(backend, extent.offset, &what));
    }
    let bytes = extent.bytes as usize;
    if payload.capacity() < bytes {
        // PERF: to grow it would move what it has, and clear memory that the system has just cleared.
        *payload = vec![0; bytes];
    }
    payload.resize(bytes, 0);
    backend.read(extent.offset, payload).map_err(|error| refused(backend, &error))
}

/// Locks a file against other writers.
fn take_lock(backend: &dyn Backend) -> Result<()> {
    if backend.lock(Lock::Exclusive).map_err(|error| refused(backend, &error))? {
        return Ok(());
    }
    let mut note = [0; OWNER_BYTES];
    let text = backend.read(OWNER_AT, &mut note).ok().and_then(|()| std::str::from_utf8(&note).ok());
    let owner = text.and_then(|text| text.trim_end_matches('\0').strip_prefix("pid ")?.parse::<u32>().ok());
    let who = owner.map_or("another process".to_owned(), |pid| format!("process {pid}"));
    let error = Error::new(ErrorKind::Io, format!("{} is in use by {who}", backend.name()));
    Err(error.with_hint("it can be read meanwhile: open it read-only"))
}
