//! Data extents: bytes are collected until an extent is full, and each piece learns its place once its extent
//! has been written.

use super::extents::ExtentWriter;
use super::manifest::{ALIGNMENT, Place};
use crate::backend::bytes::checksum;
use crate::file::Extent;
use entasis_vector::Result;

/// The size of a data extent, in bytes: once there are so many, they are written and the next extent begins.
const EXTENT_BYTES: usize = 4 << 20;

/// Where a piece of bytes is, now or after the next flush.
#[derive(Clone, Copy)]
pub(super) enum Stands {
    /// In an extent of an earlier checkpoint or a load; or nowhere, if there are no bytes.
    Kept(Place),
    /// Added during this checkpoint, as the piece of this number.
    Added(usize),
}

/// Collects pieces and writes them to data extents.
#[derive(Default)]
pub(super) struct Data {
    /// The bytes that have not been written yet.
    bytes: Vec<u8>,
    /// The place of every piece that was added.
    places: Vec<Place>,
    /// How many of the places are final, because their extent has been written.
    placed: usize,
}

impl Data {
    /// Adds a piece: the bytes that `write` appends. If a load has written them, they stay where they are.
    pub(super) fn add(
        &mut self,
        writer: &mut ExtentWriter<'_>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Stands> {
        if self.bytes.len() >= EXTENT_BYTES {
            self.flush(writer)?;
        }
        let end = self.bytes.len();
        let start = end.next_multiple_of(ALIGNMENT as usize);
        self.bytes.resize(start, 0);
        write(&mut self.bytes);
        let own = &self.bytes[start..];
        let (offset, bytes, checksum) = (start as u64, own.len() as u64, checksum(own, writer.seed()));
        if let Some(place) = writer.stored(own, checksum)? {
            self.bytes.truncate(end);
            return Ok(Stands::Kept(place));
        }
        self.places.push(Place { extent: Extent::default(), offset, bytes, checksum });
        Ok(Stands::Added(self.places.len() - 1))
    }

    /// Writes the bytes that were collected to an extent.
    pub(super) fn flush(&mut self, writer: &mut ExtentWriter<'_>) -> Result<()> {
        if !self.bytes.is_empty() {
            let extent = writer.put(&self.bytes)?;
            self.places[self.placed..].iter_mut().for_each(|place| place.extent = extent);
            self.placed = self.places.len();
            self.bytes.clear();
        }
        Ok(())
    }

    /// The place of a piece; all pieces must have been flushed.
    pub(super) fn place(&self, stands: Stands) -> Place {
        match stands {
            Stands::Kept(place) => place,
            Stands::Added(number) => self.places[number],
        }
    }
}
