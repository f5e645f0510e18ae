//! Reading ahead: what is read of a log frame by frame, which would take two calls of the system for each, is
//! read from the file in pieces of a mebibyte. Only of a log that nobody writes to: a piece stays what it was
//! when it was read.

use super::segments::Segments;
use crate::backend::Backend;
use std::io;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// A piece of a log.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    /// The position at which it begins.
    start: u64,
    bytes: Vec<u8>,
}

impl ReadAhead {
    /// Fills `out` with the bytes from a position on, as [`Segments::read`] does.
    pub(super) fn read(
        &mut self,
        (segments, backend): (&Segments, &dyn Backend),
        position: u64,
        out: &mut [u8],
    ) -> io::Result<bool> {
        if !self.has(position, out.len()) {
            self.fill((segments, backend), position)?;
        }
        if !self.has(position, out.len()) {
            // It is longer, or goes on in another segment.
            return segments.read(backend, position, out);
        }
        let at = (position - self.start) as usize;
        out.copy_from_slice(&self.bytes[at..at + out.len()]);
        Ok(true)
    }

    fn has(&self, position: u64, count: usize) -> bool {
        self.start <= position && position + count as u64 <= self.start + self.bytes.len() as u64
    }

    /// Reads from a position on, to the end of its segment at most.
    fn fill(&mut self, (segments, backend): (&Segments, &dyn Backend), position: u64) -> io::Result<()> {
        let (_, at) = segments.bytes.split(position);
        self.start = position;
        self.bytes.resize((segments.bytes.positions() - at).min(PIECE as u64) as usize, 0);
        let read = segments.read(backend, position, &mut self.bytes);
        if !matches!(read, Ok(true)) {
            self.bytes.clear();
        }
        read.map(drop)
    }
}
