//! Reading a log: commits from a position on, and what is behind the last one.

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
        Ok(LogReader { backend, segments, position, run: 0, is_closed: false, parts: HashMap::new() })
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
            return Ok(Some(Commit { position: header.position, records }));
        }
        Ok(None)
    }

    /// The frame that comes next, if there is a whole one.
    fn next_frame(&mut self) -> Result<Option<(FrameHeader, Vec<u8>)>> {
        let backend = &*self.backend;
        let io = |error| refused(backend, &error);
        let position = self.segments.bytes.room_for_frame(self.position);
        let mut header = [0; HEADER_BYTES];
        if !self.segments.read(backend, position, &mut header).map_err(io)? {
            return Ok(None);
        }
        let Some(header) = FrameHeader::of(&header, self.segments.id.seed()) else { return Ok(None) };
        let start = position + HEADER_BYTES as u64;
        let payload = start..start + u64::from(header.bytes);
        // Of which the file has all, before memory is taken for them.
        if header.position != position || header.run < self.run || !self.segments.have(payload) {
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
        (self.position, self.run) = (header.end(), header.run);
        Ok(Some((header, payload)))
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
