//! Frames: a header of 48 bytes, and the records of a commit, or a part of them.

use crate::backend::bytes::{checksum, put_at, u32_at, u64_at};

/// Bytes of a frame's header.
pub(super) const HEADER_BYTES: usize = CHECKSUM + 8;
/// The most bytes of a frame's payload.
pub const MAX_FRAME: usize = 64 << 20;
/// Frames begin at multiples of it.
pub(super) const ALIGNMENT: usize = 8;

const POSITION: usize = 0;
const DURABLE: usize = POSITION + 8;
const RUN: usize = DURABLE + 8;
const BYTES: usize = RUN + 4;
const KIND: usize = BYTES + 4;
const PAYLOAD_CHECKSUM: usize = KIND + 8;
const CHECKSUM: usize = PAYLOAD_CHECKSUM + 8;

// This size is the one in docs/design/file-format.md.
const _: () = assert!(KIND == 24 && PAYLOAD_CHECKSUM == 32 && CHECKSUM == 40 && HEADER_BYTES == 48);

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All records of a transaction, or those after its parts.
    Commit = 1,
    /// Some records of a transaction, whose commit may or may not follow.
    Part = 2,
    /// The database was closed.
    Close = 3,
}

impl Kind {
    fn of(code: u8) -> Option<Kind> {
        match code {
            1 => Some(Kind::Commit),
            2 => Some(Kind::Part),
            3 => Some(Kind::Close),
            _ => None,
        }
    }
}

/// A frame without a place yet. The checksum of its records is computed.
#[derive(Debug)]
pub struct Frame {
    pub(super) kind: Kind,
    /// The number of the transaction, and its records.
    pub(super) payload: Vec<u8>,
    pub(super) checksum: u64,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Where the frame begins in the log.
    pub(super) position: u64,
    /// How far the log had been synced when it was appended.
    pub(super) durable: u64,
    /// The opening of the database that wrote it.
    pub(super) run: u32,
    /// Bytes of the payload.
    pub(super) bytes: u32,
    pub(super) kind: Kind,
    /// That of the payload.
    pub(super) checksum: u64,
}

impl FrameHeader {
    pub(super) fn to_bytes(self, seed: u64) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put_at(&mut bytes, POSITION, &self.position.to_le_bytes());
        put_at(&mut bytes, DURABLE, &self.durable.to_le_bytes());
        put_at(&mut bytes, RUN, &self.run.to_le_bytes());
        put_at(&mut bytes, BYTES, &self.bytes.to_le_bytes());
        put_at(&mut bytes, KIND, &[self.kind as u8]);
        put_at(&mut bytes, PAYLOAD_CHECKSUM, &self.checksum.to_le_bytes());
        let sum = checksum(&bytes[..CHECKSUM], seed ^ self.position);
        put_at(&mut bytes, CHECKSUM, &sum.to_le_bytes());
        bytes
    }

    /// Parses a header, if the bytes are one, for whatever position it states.
    pub(super) fn of(bytes: &[u8; HEADER_BYTES], seed: u64) -> Option<FrameHeader> {
        let position = u64_at(bytes, POSITION);
        if checksum(&bytes[..CHECKSUM], seed ^ position) != u64_at(bytes, CHECKSUM) {
            return None;
        }
        let header = FrameHeader {
            position,
            durable: u64_at(bytes, DURABLE),
            run: u32_at(bytes, RUN),
            bytes: u32_at(bytes, BYTES),
            kind: Kind::of(bytes[KIND])?,
            checksum: u64_at(bytes, PAYLOAD_CHECKSUM),
        };
        (header.bytes as usize <= MAX_FRAME).then_some(header)
    }

    /// Where the payload ends, padding included: where the next frame may begin.
    pub(super) fn end(&self) -> u64 {
        self.position + (HEADER_BYTES as u64 + u64::from(self.bytes)).next_multiple_of(ALIGNMENT as u64)
    }
}
