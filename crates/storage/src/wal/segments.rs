//! Segments: where each position is in the file, and whose log the file is.
//!
//! A log has the header of a segment from the moment at which it is first synced, and before that nothing but
//! zeros: whatever else a file contains, it is not a log, and is left alone ([`LogOwner`]).

use super::frame::HEADER_BYTES;
use crate::backend::bytes::{checksum, put_at, u32_at, u64_at};
use crate::backend::{Backend, SECTOR, damaged, refused};
use crate::file::DatabaseId;
use entasis_vector::{Error, Result};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

const MAGIC: [u8; 8] = *b"ENTALOG\0";
const VERSION: u32 = 1;
const VERSION_AT: usize = MAGIC.len();
const BYTES_AT: usize = VERSION_AT + 4;
const ID_AT: usize = BYTES_AT + 4;
const NUMBER_AT: usize = ID_AT + 16;
const CHECKSUM_AT: usize = NUMBER_AT + 8;
const SEGMENT_HEADER: usize = CHECKSUM_AT + 8;
/// Where positions begin within a segment, as the header has a sector of its own.
pub(super) const FIRST: usize = SECTOR;
/// Bytes that are written or searched at once.
const PIECE: usize = 1 << 20;
/// Free segments that are kept.
const SPARE: usize = 2;

const _: () = assert!(CHECKSUM_AT == 40 && SEGMENT_HEADER <= FIRST);

/// The length of a log's segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentBytes(u32);

impl Default for SegmentBytes {
    fn default() -> SegmentBytes {
        SegmentBytes(4 << 20)
    }
}

impl SegmentBytes {
    /// A length: a multiple of a sector, at least two of them.
    pub fn new(bytes: u32) -> Option<SegmentBytes> {
        let is_good = (bytes as usize).is_multiple_of(SECTOR) && bytes as usize >= 2 * SECTOR;
        is_good.then_some(SegmentBytes(bytes))
    }

    /// As a number.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Positions of a segment.
    pub(super) fn positions(self) -> u64 {
        u64::from(self.0) - FIRST as u64
    }

    /// The segment of a position, and which of its positions that is.
    pub(super) fn split(self, position: u64) -> (u64, u64) {
        (position / self.positions(), position % self.positions())
    }

    /// Where a frame can begin, from a position on: its header is not split.
    pub(super) fn room_for_frame(self, position: u64) -> u64 {
        let (number, at) = self.split(position);
        match self.positions() - at < HEADER_BYTES as u64 {
            true => (number + 1) * self.positions(),
            false => position,
        }
    }

    /// Splits a range where segments end: each piece with its segment and its first position there.
    pub(super) fn pieces(self, range: Range<u64>) -> impl Iterator<Item = (u64, u64, Range<u64>)> {
        let mut start = range.start;
        std::iter::from_fn(move || {
            if start >= range.end {
                return None;
            }
            let (number, at) = self.split(start);
            let piece = start..range.end.min((number + 1) * self.positions());
            start = piece.end;
            Some((number, at, piece))
        })
    }
}

/// Whose log a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogOwner {
    /// Nobody's: the file is empty, or has nothing but zeros. A log of which nothing was synced is like that.
    Nobody,
    /// This database's.
    Database(DatabaseId),
    /// It begins as a log does, and cannot be read.
    Unreadable,
    /// The file is something else.
    Other,
}

impl LogOwner {
    /// Looks at a file.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn of(backend: &dyn Backend) -> io::Result<LogOwner> {
        let length = backend.length()?;
        let mut first = [0; SEGMENT_HEADER];
        let known = (length as usize).min(SEGMENT_HEADER);
        read_while_there(backend, 0, &mut first[..known])?;
        if first.starts_with(&MAGIC) {
            return Ok(owner(&first).map_or(LogOwner::Unreadable, LogOwner::Database));
        }
        let mut piece = vec![0; length.min(PIECE as u64) as usize];
        for at in (0..length).step_by(PIECE) {
            let piece = &mut piece[..(length - at).min(PIECE as u64) as usize];
            read_while_there(backend, at, piece)?;
            if piece.iter().any(|byte| *byte != 0) {
                return Ok(LogOwner::Other);
            }
        }
        Ok(LogOwner::Nobody)
    }
}

/// Reads bytes; zeros, if a writer has truncated the file meanwhile.
fn read_while_there(backend: &dyn Backend, offset: u64, out: &mut [u8]) -> io::Result<()> {
    match backend.read(offset, out) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            out.fill(0);
            Ok(())
        }
        read => read,
    }
}

/// The database that a segment's header names, if it is one.
fn owner(header: &[u8; SEGMENT_HEADER]) -> Option<DatabaseId> {
    let mut owner = DatabaseId([0; 16]);
    owner.0.copy_from_slice(&header[ID_AT..NUMBER_AT]);
    let is_whole = checksum(&header[..CHECKSUM_AT], owner.seed()) == u64_at(header, CHECKSUM_AT);
    (header.starts_with(&MAGIC) && is_whole).then_some(owner)
}

fn of_another(backend: &dyn Backend) -> Error {
    Error::input(format!("{} is the log of another database", backend.name()))
        .with_hint("it was not touched: if that database is gone, move the log away")
}

/// Positions are below this limit, so that their sums do not overflow.
pub(super) const MOST_POSITIONS: u64 = 1 << 62;

/// Which segment is at which place of a file.
#[derive(Debug)]
pub(super) struct Segments {
    pub(super) id: DatabaseId,
    pub(super) bytes: SegmentBytes,
    /// Places by number.
    places: BTreeMap<u64, u64>,
    /// Places of the file.
    count: u64,
    /// Positions before it are no longer needed.
    cut: u64,
}

impl Segments {
    /// Those of an empty file.
    pub(super) fn none(id: DatabaseId, bytes: SegmentBytes) -> Segments {
        Segments { id, bytes, places: BTreeMap::new(), count: 0, cut: 0 }
    }

    /// Those of a file that is replayed from a position on.
    pub(super) fn find(
        backend: &dyn Backend,
        id: DatabaseId,
        bytes: SegmentBytes,
        cut: u64,
    ) -> Result<Segments> {
        let io = |error| refused(backend, &error);
        // A writer may be making its first segment between the looks.
        for _ in 0..2 {
            let found = Segments::find_once(backend, id, bytes, cut)?;
            if !found.places.is_empty() {
                return Ok(found);
            }
            match LogOwner::of(backend).map_err(io)? {
                LogOwner::Nobody => return Ok(found),
                // The header is there, and the rest of its segment is not.
                LogOwner::Database(owner) if owner == id => return Ok(found),
                LogOwner::Database(_) => return Err(of_another(backend)),
                LogOwner::Unreadable | LogOwner::Other => {}
            }
        }
        match LogOwner::of(backend).map_err(io)? {
            LogOwner::Other => Err(Error::input(format!("{} is not a log", backend.name()))
                .with_hint("it was not touched: the log of the database would have this name")),
            _ => Err(damaged(backend, 0, "the first segment of the log")),
        }
    }

    /// One look at the headers.
    fn find_once(backend: &dyn Backend, id: DatabaseId, bytes: SegmentBytes, cut: u64) -> Result<Segments> {
        let io = |error| refused(backend, &error);
        let count = backend.length().map_err(io)? / u64::from(bytes.get());
        let mut segments = Segments { count, cut, ..Segments::none(id, bytes) };
        for place in 0..count {
            let (offset, mut header) = (segments.offset(place), [0; SEGMENT_HEADER]);
            match backend.read(offset, &mut header) {
                // A writer has truncated it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                read => read.map_err(io)?,
            }
            match owner(&header) {
                None => continue,
                Some(owner) if owner != id => return Err(of_another(backend)),
                Some(_) => {}
            }
            let version = u32_at(&header, VERSION_AT);
            if version > VERSION {
                let what = format!(
                    "was written by a newer version of Entasis (log {version}; this one reads {VERSION})"
                );
                return Err(Error::not_supported(format!("{} {what}", backend.name())));
            }
            if u32_at(&header, BYTES_AT) != bytes.get() {
                return Err(damaged(backend, offset, "a segment of another length"));
            }
            let number = u64_at(&header, NUMBER_AT);
            if number >= MOST_POSITIONS / bytes.positions() {
                return Err(damaged(backend, offset, "a segment whose number no log reaches"));
            }
            if segments.places.insert(number, place).is_some() {
                return Err(damaged(backend, offset, "a segment that stands elsewhere, too"));
            }
        }
        Ok(segments)
    }

    /// Where a place begins in the file.
    fn offset(&self, place: u64) -> u64 {
        place * u64::from(self.bytes.get())
    }

    /// Where a position is in the file, if its segment is there.
    pub(super) fn place_of(&self, position: u64) -> Option<u64> {
        let (number, at) = self.bytes.split(position);
        Some(self.offset(*self.places.get(&number)?) + FIRST as u64 + at)
    }

    /// Fills `out` with the bytes from a position on. False if a segment is missing, or was cut off by a
    /// concurrent writer.
    pub(super) fn read(&self, backend: &dyn Backend, position: u64, out: &mut [u8]) -> io::Result<bool> {
        let range = position..position + out.len() as u64;
        for (_, _, piece) in self.bytes.pieces(range) {
            let Some(offset) = self.place_of(piece.start) else { return Ok(false) };
            let within = (piece.start - position) as usize..(piece.end - position) as usize;
            match backend.read(offset, &mut out[within]) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                read => read?,
            }
        }
        Ok(true)
    }

    /// True if all positions of a range have their segments.
    pub(super) fn have(&self, range: Range<u64>) -> bool {
        self.bytes.pieces(range).all(|(number, ..)| self.places.contains_key(&number))
    }

    /// Writes bytes from a position on. Missing segments are made of free ones, or the file grows.
    pub(super) fn write(&mut self, backend: &dyn Backend, position: u64, bytes: &[u8]) -> io::Result<()> {
        for (number, _, piece) in self.bytes.pieces(position..position + bytes.len() as u64) {
            if !self.places.contains_key(&number) {
                self.begin(backend, number)?;
            }
            let Some(offset) = self.place_of(piece.start) else { return Err(io::ErrorKind::NotFound.into()) };
            let within = (piece.start - position) as usize..(piece.end - position) as usize;
            backend.write(offset, &bytes[within])?;
        }
        Ok(())
    }

    /// Gives a segment a place.
    pub(super) fn begin(&mut self, backend: &dyn Backend, number: u64) -> io::Result<()> {
        let place = match self.free().first() {
            Some(&place) => {
                self.places.retain(|_, other| *other != place);
                place
            }
            None => {
                // So that no later sync has to write the length of the file, or its allocation on the disk.
                let (start, bytes) = (self.offset(self.count), self.bytes.get() as usize);
                let zeros = vec![0; bytes.min(PIECE)];
                for at in (0..bytes).step_by(PIECE) {
                    backend.write(start + at as u64, &zeros[..zeros.len().min(bytes - at)])?;
                }
                self.count += 1;
                self.count - 1
            }
        };
        backend.write(self.offset(place), &self.header(number))?;
        self.places.insert(number, place);
        Ok(())
    }

    /// The header of a segment.
    fn header(&self, number: u64) -> [u8; SEGMENT_HEADER] {
        let mut header = [0; SEGMENT_HEADER];
        put_at(&mut header, 0, &MAGIC);
        put_at(&mut header, VERSION_AT, &VERSION.to_le_bytes());
        put_at(&mut header, BYTES_AT, &self.bytes.get().to_le_bytes());
        put_at(&mut header, ID_AT, &self.id.0);
        put_at(&mut header, NUMBER_AT, &number.to_le_bytes());
        let sum = checksum(&header[..CHECKSUM_AT], self.id.seed());
        put_at(&mut header, CHECKSUM_AT, &sum.to_le_bytes());
        header
    }

    /// Writes again, as it is read, what may be in the system's cache only: the positions of a range, of
    /// which nobody knows that they were synced, the headers of its segments and of all later ones, and the
    /// end of the file, so that its length is written as well.
    pub(super) fn write_again(&self, backend: &dyn Backend, range: Range<u64>) -> io::Result<()> {
        let again = |offset: u64, bytes: usize| {
            let mut buffer = vec![0; bytes];
            backend.read(offset, &mut buffer)?;
            backend.write(offset, &buffer)
        };
        let (first, _) = self.bytes.split(range.start);
        for (&number, &place) in self.places.range(first..) {
            backend.write(self.offset(place), &self.header(number))?;
            let begin = number * self.bytes.positions();
            let (from, to) = (range.start.max(begin), range.end.min(begin + self.bytes.positions()));
            for start in (from..to).step_by(PIECE) {
                let offset = self.offset(place) + FIRST as u64 + (start - begin);
                again(offset, (to - start).min(PIECE as u64) as usize)?;
            }
        }
        if self.count > 0 {
            again(self.offset(self.count) - SECTOR as u64, SECTOR)?;
        }
        Ok(())
    }

    /// Places of no segment, or of one that is no longer needed. The segment that ends at the cut is kept, so
    /// that a log always has the position from which it is replayed.
    fn free(&self) -> Vec<u64> {
        let needed = |number: u64| (number + 1) * self.bytes.positions() >= self.cut;
        let taken = self.places.iter().filter(|(number, _)| needed(**number)).map(|(_, place)| *place);
        let mut is_free = vec![true; self.count as usize];
        taken.for_each(|place| is_free[place as usize] = false);
        (0..self.count).filter(|place| is_free[*place as usize]).collect()
    }

    /// Declares that positions before a given one are no longer needed, and truncates the free end of the
    /// file.
    pub(super) fn cut(&mut self, backend: &dyn Backend, position: u64) -> io::Result<()> {
        self.cut = self.cut.max(position);
        let mut free = self.free();
        let before = self.count;
        while free.len() > SPARE && free.last() == Some(&(self.count - 1)) {
            free.pop();
            self.count -= 1;
        }
        if self.count < before {
            self.places.retain(|_, place| *place < self.count);
            backend.set_len(self.offset(self.count))?;
        }
        Ok(())
    }

    /// Places of the file.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
