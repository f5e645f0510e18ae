//! The data file: one consistent state of a database, and how it becomes the next
//! (docs/design/file-format.md).
//!
//! ```text
//! preamble │ header A │ header B │ extent │ free │ extent │ extent │ …
//!              n-1         n ──roots──▶      ▲
//! ```
//! A header reaches all extents of its state. Nothing that the newest header reaches is ever written over, so
//! the machine may stop at any moment, and this state is there:
//!
//! 1. [`DataFile::write`] puts a payload into free pages, as often as wanted, and gives the [`Extent`] that
//!    it is found by.
//! 2. [`DataFile::give_up`] says which extents the next state does not need. Their pages stay as they are
//!    until that state is there.
//! 3. [`DataFile::commit`] writes the map of free space, syncs, writes the older header anew, and syncs. Now
//!    pages that were given up are free, and the free tail of the file is cut off.
//!
//! | module | |
//! |---|---|
//! | [`header`] | preamble and headers: bytes that are not believed, and what they become once they were checked |
//! | `space` | free runs: take, give back, join, cut |
//! | `verify` | whether all of it is what it should be |
//!
//! A file that is only read ([`Access::Read`]) takes no lock: another process may write to it meanwhile, and
//! never waits for who reads. [`DataFile::refresh`] looks for the state that is the newest by now. What an
//! older one reaches may be written over then, which checksums show: whoever reads it begins anew with the
//! newer one.
//!
//! Invariants: pages are free, or given up, or of one extent; the file is not written after an error of a
//! write or a sync. What is not done here: what extents mean, when a checkpoint comes, caching.

pub mod header;
mod space;
mod verify;

#[cfg(test)]
mod tests;

pub use verify::Damage;

pub use header::{Access, Contents, DatabaseId, Extent, Header, ROOTS, Root, State};

use crate::backend::bytes::checksum;
use crate::backend::{Backend, Lock, damaged, refused};
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};
use entasis_vector::{Error, ErrorKind, Result};
use header::{Headers, PAGE, PREAMBLE_BYTES, Preamble};
use space::{Run, Space};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Where the owner note stands.
const OWNER_AT: u64 = 512;
/// Bytes of the owner note.
const OWNER_BYTES: usize = 32;
/// Pages of a file for each that is in use, before its tail begins.
const FULLNESS: u64 = 2;
/// How often headers are read again that make no sense, as they are being written.
const TRIES: usize = 20;
/// What is waited for in between.
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
    /// Whoever commits has it.
    turn: Mutex<()>,
    /// A write or a sync has failed: nothing is written any more.
    has_failed: AtomicBool,
}

/// What becomes of pages.
#[derive(Debug)]
struct Pages {
    space: Space,
    /// What the newest header, or the log behind it, still reaches.
    given_up: Vec<Run>,
    /// What no header reaches, but the log does or is going to: pages by the first one. In the map of a state
    /// they are free, because whoever opens the file takes them by what the log says.
    ahead: BTreeMap<u64, u64>,
}

/// The pages of a file beyond a multiple of those that are in use. Whoever writes its extents anew, to free
/// pages before, lets the file be cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    /// Its first page.
    begin: u64,
    /// The most pages side by side that are free before.
    room: u64,
}

impl Tail {
    /// True if an extent is in it, and would find room before.
    pub(crate) fn holds(&self, extent: Extent) -> bool {
        let run = Run::of(extent);
        run.start >= self.begin && run.pages <= self.room
    }
}

/// The tail that no file has.
impl Default for Tail {
    fn default() -> Tail {
        Tail { begin: u64::MAX, room: 0 }
    }
}

impl DataFile {
    /// Makes an empty database of an empty file, which it locks and syncs.
    ///
    /// # Errors
    /// I/O; also if another has it locked.
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

    /// Opens a database and finds its newest state. Who is to write locks it.
    ///
    /// # Errors
    /// I/O; also if another has it locked, with the id of its process. Corruption: of a file that is only
    /// read and that another process writes to, it may be none the next time. Input, if it is no database of
    /// a version that can be read, or written if it is to be.
    pub fn open(backend: Arc<dyn Backend>, access: Access) -> Result<DataFile> {
        if access == Access::Write {
            take_lock(&*backend)?;
        }
        let id = header::id(&*backend)?;
        let (header, seen, space) = loop {
            let (header, seen) = newest(&*backend, id, access)?;
            match free_space(&*backend, id, &header) {
                // The map is not that of the newest state any more.
                Err(_) if access == Access::Read && header::read_both(&*backend)? != seen => {}
                space => break (header, seen, space?),
            }
        };
        let file = DataFile::of(backend, id, access, space, (header, seen));
        if access == Access::Write {
            file.note_owner()?;
            // A process that was killed may have left the newest state in the system's memory only. Pages
            // that it gave up are not to be written before it is on the disk.
            file.sync()?;
        }
        Ok(file)
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
        let (turn, has_failed) = (Mutex::new(()), AtomicBool::new(false));
        DataFile { backend, id, access, pages, newest, seen, turn, has_failed }
    }

    /// Looks for the state that whoever writes to the file has made the newest one, and gives its header. Of
    /// a file that is only read. Where nothing has changed it is one read.
    ///
    /// # Errors
    /// I/O, or corruption: then with the place.
    pub fn refresh(&self) -> Result<Header> {
        let mut seen = lock(&self.seen);
        if header::read_both(&*self.backend)? != *seen {
            let (found, headers) = newest(&*self.backend, self.id, self.access)?;
            let mut own = lock(&self.newest);
            // Else the other header is being written, and is not looked at before it is whole.
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

    /// What checksums of parts of an extent begin with.
    pub(crate) fn seed(&self) -> u64 {
        self.id.seed()
    }

    /// The error of finding something else at an offset than what was written there.
    pub(crate) fn damaged(&self, offset: u64, what: &str) -> Error {
        damaged(&*self.backend, offset, what)
    }

    /// The payload of an extent.
    ///
    /// # Errors
    /// I/O, or corruption: then with the place.
    pub fn read(&self, extent: Extent) -> Result<Vec<u8>> {
        read(&*self.backend, self.id, extent)
    }

    /// Writes a payload to free pages, or behind the end. It is there for good with the next
    /// [`DataFile::sync`] or [`DataFile::commit`], and reached by whatever is committed to have its place.
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

    /// Takes the pages of an extent that no header reaches, and a log does, out of the free ones: at opening,
    /// before anything is written. They are taken already if it was there when the map of free space was
    /// made.
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

    /// Makes all pages free that are of no extent of `reached`: at opening, before anything is written. An
    /// image whose commit never came may have been in a checkpoint's map of what is not free.
    ///
    /// # Errors
    /// Corruption, if two extents share a page.
    pub(crate) fn keep_only(&self, reached: &[Extent]) -> Result<()> {
        let map = self.header().roots[Root::FreeSpace as usize];
        let mut runs: Vec<Run> = reached.iter().chain([&map]).map(|extent| Run::of(*extent)).collect();
        runs.retain(|run| run.pages > 0);
        runs.sort_unstable_by_key(|run| run.start);
        let mut pages = lock(&self.pages);
        let mut space = Space::new(pages.space.end());
        let mut next = header::FIRST_PAGE;
        for run in runs {
            if run.start < next {
                return Err(self.damaged(run.start * PAGE, "two extents share a page"));
            }
            if run.start > next {
                space.release(Run { start: next, pages: run.start - next });
            }
            next = run.end();
        }
        if next < space.end() {
            space.release(Run { start: next, pages: space.end() - next });
        }
        pages.space = space;
        Ok(())
    }

    /// Says that the state that is committed next does not reach an extent, nor does the log behind it.
    pub fn give_up(&self, extent: Extent) {
        if extent.bytes > 0 {
            let run = Run::of(extent);
            let mut pages = lock(&self.pages);
            pages.ahead.remove(&run.start);
            pages.given_up.push(run);
        }
    }

    /// Returns when all that was written will stay.
    ///
    /// # Errors
    /// I/O.
    pub fn sync(&self) -> Result<()> {
        self.may_write()?;
        self.attempt(self.backend.sync())
    }

    /// Makes a new state the newest one: see the module. The log must have been synced up to its position.
    ///
    /// # Errors
    /// I/O. The state before is the newest one then, or this one, which nobody knows; nothing can be written
    /// any more.
    pub fn commit(&self, contents: Contents) -> Result<()> {
        self.may_write()?;
        let _turn = lock(&self.turn);
        let newest = self.header();
        self.give_up(newest.roots[Root::FreeSpace as usize]);

        // What is given up from now on, and what is taken, is for the next one to see.
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
                    self.has_failed.store(true, Ordering::Release);
                    let message = format!("{}: page {} was given up twice", self.backend.name(), run.start);
                    return Err(Error::new(ErrorKind::Internal, message));
                }
            }
            let end = free.cut_tail();
            (freed, space::bytes(&free, place.pages), place, end)
        };
        let map = self.put(place, &map)?;
        self.attempt(self.backend.sync())?;

        let mut roots = contents.roots;
        roots[Root::FreeSpace as usize] = map;
        let header = newest.next(Contents { roots, ..contents }, pages);
        self.attempt(self.backend.write(header.offset(), &header.bytes(self.id)))?;
        self.attempt(self.backend.sync())?;
        *lock(&self.newest) = header;

        let mut pages = lock(&self.pages);
        freed.into_iter().for_each(|run| _ = pages.space.release(run));
        let (before, end) = (pages.space.end(), pages.space.cut_tail());
        if end < before {
            // With the pages in hand, so that nobody writes there.
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

    /// The end of the file, if it has so much free space that it would be worth to be moved.
    pub(crate) fn tail(&self) -> Tail {
        let pages = lock(&self.pages);
        let begin = FULLNESS * (pages.space.end() - pages.space.free());
        Tail { begin, room: pages.space.largest_before(begin) }
    }

    /// An error if nothing can be written.
    fn may_write(&self) -> Result<()> {
        if self.access == Access::Read {
            return Err(Error::input(format!("{} was opened to be read only", self.backend.name())));
        }
        match self.has_failed.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Io,
                format!("{} is not written any more since an error; open it again", self.backend.name()),
            )),
        }
    }

    /// The result of a write, after which there is no other if it is an error.
    fn attempt(&self, result: std::io::Result<()>) -> Result<()> {
        result.map_err(|error| {
            self.has_failed.store(true, Ordering::Release);
            refused(&*self.backend, &error)
        })
    }

    /// Notes whose process has the file, for the error that others get.
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

/// What checksums of extents begin with.
fn extent_seed(id: DatabaseId, offset: u64) -> u64 {
    id.seed() ^ offset
}

/// The newest state of a database, and the headers that it was found in.
fn newest(backend: &dyn Backend, id: DatabaseId, access: Access) -> Result<(Header, Headers)> {
    let mut tries = 0;
    loop {
        let headers = header::read_both(backend)?;
        match header::newest_of(backend, &headers, id, access) {
            Ok(header) => return Ok((header, headers)),
            // Whoever writes has come between the headers and the length of the file, say.
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
    if extent.bytes == 0 {
        return Ok(Vec::new());
    }
    let length = backend.length().map_err(|error| refused(backend, &error))?;
    if !extent.is_well_placed() || extent.offset.checked_add(extent.bytes).is_none_or(|end| end > length) {
        let what = format!("an extent of {} bytes is to be here, and the file has {length}", extent.bytes);
        return Err(damaged(backend, extent.offset, &what));
    }
    let mut payload = vec![0; extent.bytes as usize];
    backend.read(extent.offset, &mut payload).map_err(|error| refused(backend, &error))?;
    if checksum(&payload, extent_seed(id, extent.offset)) != extent.checksum {
        let what = format!("the checksum of an extent of {} bytes is wrong", extent.bytes);
        return Err(damaged(backend, extent.offset, &what));
    }
    Ok(payload)
}

/// Locks a file against others who would write to it.
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
