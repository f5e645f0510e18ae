//! Reading a log: commits from a position on, and what follows the last one.
//!
//! A log may be read while another process writes to it ([`LogReader::next_commit_beside`]): a frame that is
//! not whole has not been written yet, or its segment has been reused, which the data file shows. What was
//! read once stays as it is, unless a disk has lost writes: so a frame of a later run counts only if the last
//! frame before it is still there.

use super::ahead::ReadAhead;
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
/// More positions than a log has had since a checkpoint.
const LOST: u64 = 1 << 40;
/// Bytes of the transaction's number, which precedes the records.
pub(super) const TRANSACTION_BYTES: usize = 8;

/// The changes of one transaction.
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
    /// What was certainly synced: everything before this position, as the header of the data file or a frame
    /// says.
    pub(super) synced: u64,
    /// The latest run that wrote a frame, even if that frame was lost.
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

    /// Where a log goes on whose frames from here on are lost, in a new file: so far behind them that none of
    /// them is ever taken for a frame of the new one, should they turn up.
    #[must_use]
    pub fn beyond_what_is_lost(self) -> Tail {
        Tail { position: self.position + LOST, ..self }
    }

    /// True if the database was closed, so that nothing can be missing.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// See the module.
#[derive(Debug)]
pub struct LogReader {
    backend: Arc<dyn Backend>,
    segments: Segments,
    /// What was read ahead, if that is done.
    ahead: Option<ReadAhead>,
    position: u64,
    /// As in [`Tail`].
    synced: u64,
    run: u32,
    /// The last frame that was read.
    last: Option<FrameHeader>,
    /// The last frame looked for extends into missing segments.
    misses_segments: bool,
    /// What was read last is no longer what the file holds there.
    has_lost_track: bool,
    is_closed: bool,
    /// Records of transactions that have not committed yet, by number.
    parts: HashMap<u64, Vec<u8>>,
}

impl LogReader {
    /// Reads the log of a database from a position on. The newest header gives it, and says whether there
    /// must be a log.
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
            ahead: None,
            position,
            synced: position,
            run: 0,
            last: None,
            misses_segments: false,
            has_lost_track: false,
            is_closed: false,
            parts: HashMap::new(),
        })
    }

    /// The position after the last frame that was read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads far ahead from now on, in a log that nobody writes to.
    pub fn read_ahead(&mut self) {
        self.ahead = Some(ReadAhead::default());
    }

    /// Finds the segments again, for a log that another process writes to.
    ///
    /// # Errors
    /// I/O; input, if it is the log of another database.
    pub fn find_segments(&mut self) -> Result<()> {
        let Segments { id, bytes, .. } = self.segments;
        self.segments = Segments::find(&*self.backend, id, bytes, self.position)?;
        Ok(())
    }

    /// The commit that comes next in a log that another process writes to; `None` if it is not there yet, or
    /// no longer there.
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

    /// The name of its file.
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
            let records = match self.parts.remove(&transaction) {
                Some(mut records) => {
                    records.append(&mut payload);
                    records
                }
                None => payload,
            };
            return Ok(Some(Commit { position: header.position, end: header.end(), records }));
        }
        Ok(None)
    }

    /// The frame that comes next, if there is a whole one.
    fn next_frame(&mut self) -> Result<Option<(FrameHeader, Vec<u8>)>> {
        let position = self.segments.bytes.room_for_frame(self.position);
        let mut header = [0; HEADER_BYTES];
        self.misses_segments = !self.read(position, &mut header)?;
        if self.misses_segments {
            return Ok(None);
        }
        let Some(header) = FrameHeader::of(&header, self.segments.id.seed()) else { return Ok(None) };
        let start = position + HEADER_BYTES as u64;
        let payload = start..start + u64::from(header.bytes);
        // The file must have all of these bytes before memory is allocated for them.
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
        let is_there = self.read(start, &mut payload)?;
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
            // Their commits will never come.
            self.parts.clear();
        }
        (self.position, self.run, self.last) = (header.end(), header.run, Some(header));
        self.synced = self.synced.max(header.durable);
        Ok(Some((header, payload)))
    }

    /// Fills `out` with the bytes from a position on. False if a segment is missing.
    fn read(&mut self, position: u64, out: &mut [u8]) -> Result<bool> {
        let read = match &mut self.ahead {
            Some(ahead) => ahead.read((&self.segments, &*self.backend), position, out),
            None => self.segments.read(&*self.backend, position, out),
        };
        read.map_err(|error| refused(&*self.backend, &error))
    }

    /// True if a frame follows the last one that was read. Within a run it always does; a later run
    /// starts at the end that its opening found, which may be earlier than before if a disk failed.
    fn follows_the_last(&self, header: &FrameHeader) -> Result<bool> {
        let Some(last) = self.last.filter(|last| last.run < header.run) else { return Ok(true) };
        let Segments { id, bytes, .. } = self.segments;
        let segments = Segments::find(&*self.backend, id, bytes, self.position)?;
        let mut bytes = [0; HEADER_BYTES];
        let read = segments.read(&*self.backend, last.position, &mut bytes);
        let is_there = read.map_err(|error| refused(&*self.backend, &error))?;
        // Segments are reused only when nobody needs them.
        Ok(!is_there || FrameHeader::of(&bytes, id.seed()) == Some(last))
    }

    /// True if a disk lost what was read last, and something else was written there: then the log must be
    /// read again from the position of the newest state.
    pub fn has_lost_track(&self) -> bool {
        self.has_lost_track
    }

    /// Reads the rest, and determines why the log ends where it does.
    ///
    /// The whole file is searched for headers of frames. If one of them was appended when the log had been
    /// synced beyond this end, synced data is lost.
    ///
    /// # Errors
    /// I/O. Corruption, if the end had been synced and is damaged.
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
                // PERF: most bytes are not a header, as the first number shows.
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
        let Self { synced, segments, is_closed, .. } = self;
        Ok(Tail { position: end, synced: synced.min(end), run, segments, is_closed })
    }
}
