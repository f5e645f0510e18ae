//! Reading a log: commits from a position on, and what is behind the last one.
//!
//! A log may be read while another process writes to it ([`LogReader::next_commit_beside`]): a frame that is
//! not whole is not written yet, or its segment has been given to others, which the reader is told by the
//! data file. What was read once stays as it is, unless a disk has lost what had been written to it: so a
//! frame of a later run counts only if the last one before it is still there.

use super::frame::{FrameHeader, HEADER_BYTES, Kind};
use super::segments::{FIRST, MOST_POSITIONS, SegmentBytes, Segments};
use crate::backend::bytes::{checksum, u64_at};
use crate::backend::{Backend, damaged, refused};
use crate::file::{DatabaseId, State};
use entasis_vector::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of the file that are searched at once.
const SEARCHED: usize = 1 << 20;
/// Bytes of a transaction's number, before the records.
pub(super) const TRANSACTION_BYTES: usize = 8;

/// What one transaction did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Where its frame begins.
    pub position: u64,
    /// Where the next one begins.
    pub end: u64,
    /// Its records.
    pub records: Vec<u8>,
}

/// The end of a log: where the next frame goes.
#[derive(Debug)]
pub struct Tail {
    pub(super) position: u64,
    /// The greatest run that has written a frame, even if that was lost.
    pub(super) run: u32,
    pub(super) segments: Segments,
    /// The last frame says that the database was closed.
    pub(super) is_closed: bool,
}

impl Tail {
    /// Where the log ends.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// True if the database was closed, and nothing can be missing.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// See the module.
#[derive(Debug)]
pub struct LogReader {
    backend: Arc<dyn Backend>,
    segments: Segments,
    position: u64,
    run: u32,
    /// The last frame that was read.
    last: Option<FrameHeader>,
    /// The last frame that was looked for reaches into segments that are not there.
    misses_segments: bool,
    /// What was read last is not what stands there now.
    has_lost_track: bool,
    is_closed: bool,
    /// Records of transactions that have not committed yet, by number.
    parts: HashMap<u64, Vec<u8>>,
}

impl LogReader {
    /// Reads the log of a database from a position on, which its newest header says, as well as whether there
    /// must be one.
    ///
    /// # Errors
    /// I/O. Input, if it is the log of another database; corruption, if it is missing or older than the
    /// position.
    pub fn open(
        backend: Arc<dyn Backend>,
        id: DatabaseId,
        bytes: SegmentBytes,
        position: u64,
        state: State,
    ) -> Result<LogReader> {
        if position >= MOST_POSITIONS {
            let what =
                format!("the log of the database is to begin at position {position}, which no log reaches");
            return Err(damaged(&*backend, 0, &what));
        }
        let segments = Segments::find(&*backend, id, bytes, position)?;
        let is_there = |position: u64| segments.place_of(position).is_some();
        if state == State::Open && !is_there(position) && !(position > 0 && is_there(position - 1)) {
            let what =
                format!("it does not have position {position}, at which the log of the database begins");
            return Err(damaged(&*backend, 0, &what));
        }
        Ok(LogReader {
            backend,
            segments,
            position,
            run: 0,
            last: None,
            misses_segments: false,
            has_lost_track: false,
            is_closed: false,
            parts: HashMap::new(),
        })
    }

    /// The position behind the last frame that was read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Looks anew for what stands where, of a log that another process writes to.
    ///
    /// # Errors
    /// I/O; input, if it is the log of another database.
    pub fn find_segments(&mut self) -> Result<()> {
        let Segments { id, bytes, .. } = self.segments;
        self.segments = Segments::find(&*self.backend, id, bytes, self.position)?;
        Ok(())
    }

    /// The commit that comes next in a log that another process writes to; `None` if it is not there yet, or
    /// not there any more.
    ///
    /// # Errors
    /// As [`LogReader::find_segments`].
    pub fn next_commit_beside(&mut self) -> Result<Option<Commit>> {
        let found = self.next_commit()?;
        if found.is_some() || !self.misses_segments {
            return Ok(found);
        }
        self.find_segments()?;
        self.next_commit()
    }

    /// What its file is called.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// The commit that comes next; `None` at the end.
    ///
    /// # Errors
    /// I/O.
    pub fn next_commit(&mut self) -> Result<Option<Commit>> {
        while let Some((header, mut payload)) = self.next_frame()? {
            self.is_closed = header.kind == Kind::Close;
            if header.kind == Kind::Close {
                continue;
            }
            let transaction = u64_at(&payload, 0);
            payload.drain(..TRANSACTION_BYTES);
            if header.kind == Kind::Part {
                self.parts.entry(transaction).or_default().append(&mut payload);
                continue;
            }
            let mut records = self.parts.remove(&transaction).unwrap_or_default();
            records.append(&mut payload);
            return Ok(Some(Commit { position: header.position, end: header.end(), records }));
        }
        Ok(None)
    }

    /// The frame that comes next, if there is a whole one.
    fn next_frame(&mut self) -> Result<Option<(FrameHeader, Vec<u8>)>> {
        let backend = &*self.backend;
        let io = |error| refused(backend, &error);
        let position = self.segments.bytes.room_for_frame(self.position);
        let mut header = [0; HEADER_BYTES];
        self.misses_segments = !self.segments.read(backend, position, &mut header).map_err(io)?;
        if self.misses_segments {
            return Ok(None);
        }
        let Some(header) = FrameHeader::of(&header, self.segments.id.seed()) else { return Ok(None) };
        let start = position + HEADER_BYTES as u64;
        let payload = start..start + u64::from(header.bytes);
        // Of which the file has all, before memory is taken for them.
        if header.position != position || header.run < self.run {
            return Ok(None);
        }
        self.misses_segments = !self.segments.have(payload);
        if self.misses_segments {
            return Ok(None);
        }
        self.has_lost_track = !self.follows_the_last(&header)?;
        if self.has_lost_track {
            return Ok(None);
        }
        let mut payload = vec![0; header.bytes as usize];
        let is_there = self.segments.read(backend, start, &mut payload).map_err(io)?;
        let is_short = header.kind != Kind::Close && payload.len() < TRANSACTION_BYTES;
        // A transaction without a number has no parts.
        let is_part_of_none = !is_short && header.kind == Kind::Part && u64_at(&payload, 0) == 0;
        if !is_there
            || is_short
            || is_part_of_none
            || checksum(&payload, self.segments.id.seed()) != header.checksum
        {
            return Ok(None);
        }
        if header.run > self.run {
            // Their commits do not come any more.
            self.parts.clear();
        }
        (self.position, self.run, self.last) = (header.end(), header.run, Some(header));
        Ok(Some((header, payload)))
    }

    /// True if a frame stands behind the last one that was read. Within a run it does; a later run begins at
    /// what its opening found, which may be less than was there before a disk failed.
    fn follows_the_last(&self, header: &FrameHeader) -> Result<bool> {
        let Some(last) = self.last.filter(|last| last.run < header.run) else { return Ok(true) };
        let Segments { id, bytes, .. } = self.segments;
        let segments = Segments::find(&*self.backend, id, bytes, self.position)?;
        let mut bytes = [0; HEADER_BYTES];
        let read = segments.read(&*self.backend, last.position, &mut bytes);
        let is_there = read.map_err(|error| refused(&*self.backend, &error))?;
        // Segments are given to others only if nobody will need them.
        Ok(!is_there || FrameHeader::of(&bytes, id.seed()) == Some(last))
    }

    /// True if what was read last was lost by a disk and written anew, otherwise: then it is to be read again
    /// from where the newest state begins.
    pub fn has_lost_track(&self) -> bool {
        self.has_lost_track
    }

    /// Reads what is left, and finds out why the log ends where it does.
    ///
    /// All of the file is searched for headers of frames. If one of them was appended when the log had been
    /// synced beyond this end, what was synced is gone.
    ///
    /// # Errors
    /// I/O. Corruption, if the end was synced once and is not whole any more.
    pub fn end(mut self) -> Result<Tail> {
        while self.next_commit()?.is_some() {}
        let (backend, end) = (&*self.backend, self.position);
        let io = |error| refused(backend, &error);
        let (seed, positions) = (self.segments.id.seed(), self.segments.bytes.positions());
        let (length, segment) = (backend.length().map_err(io)?, u64::from(self.segments.bytes.get()));
        let mut run = self.run;
        let mut window = vec![0; length.min((SEARCHED + HEADER_BYTES) as u64) as usize];
        for from in (0..length).step_by(SEARCHED) {
            let window = &mut window[..(length - from).min((SEARCHED + HEADER_BYTES) as u64) as usize];
            backend.read(from, window).map_err(io)?;
            for at in (0..window.len().saturating_sub(HEADER_BYTES - 1).min(SEARCHED)).step_by(8) {
                // PERF: most bytes are none, which the first number shows.
                let within = (from + at as u64) % segment;
                let position = u64_at(window, at);
                if within < FIRST as u64 || position % positions != within - FIRST as u64 {
                    continue;
                }
                let mut header = [0; HEADER_BYTES];
                header.copy_from_slice(&window[at..at + HEADER_BYTES]);
                let Some(header) = FrameHeader::of(&header, seed) else { continue };
                run = run.max(header.run);
                if header.durable > end {
                    let offset = self.segments.place_of(self.segments.bytes.room_for_frame(end)).unwrap_or(0);
                    let what = format!(
                        "the log had been written up to position {}, and what stands at position {end} is not whole",
                        header.durable
                    );
                    return Err(damaged(backend, offset, &what));
                }
            }
        }
        Ok(Tail { position: end, run, segments: self.segments, is_closed: self.is_closed })
    }
}
