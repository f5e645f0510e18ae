//! Data extents: bytes that are added one behind the other, and where each of them comes to stand.

use super::extents::ExtentWriter;
use super::manifest::{ALIGNMENT, Place};
use crate::backend::bytes::checksum;
use crate::file::Extent;
use entasis_vector::Result;

/// Bytes of a data extent from which on the next one is begun.
const EXTENT_BYTES: usize = 4 << 20;

/// Where bytes are, once their extent is written.
#[derive(Clone, Copy)]
pub(super) enum Stands {
    /// In an extent of a checkpoint before, or nowhere.
    Kept(Place),
    /// The number of what was added.
    Added(usize),
}

/// See the module.
#[derive(Default)]
pub(super) struct Data {
    /// Those of the extent that comes next.
    bytes: Vec<u8>,
    /// Of all that was added.
    places: Vec<Place>,
    /// How many of the places have their extents.
    placed: usize,
}

impl Data {
    /// Adds what `write` appends.
    pub(super) fn add(
        &mut self,
        writer: &mut ExtentWriter<'_>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Stands> {
        if self.bytes.len() >= EXTENT_BYTES {
            self.flush(writer)?;
        }
        let start = self.bytes.len().next_multiple_of(ALIGNMENT as usize);
        self.bytes.resize(start, 0);
        write(&mut self.bytes);
        let own = &self.bytes[start..];
        let (offset, bytes, checksum) = (start as u64, own.len() as u64, checksum(own, writer.seed()));
        self.places.push(Place { extent: Extent::default(), offset, bytes, checksum });
        Ok(Stands::Added(self.places.len() - 1))
    }

    /// Writes what was added to an extent.
    pub(super) fn flush(&mut self, writer: &mut ExtentWriter<'_>) -> Result<()> {
        if !self.bytes.is_empty() {
            let extent = writer.put(&self.bytes)?;
            self.places[self.placed..].iter_mut().for_each(|place| place.extent = extent);
            self.placed = self.places.len();
            self.bytes.clear();
        }
        Ok(())
    }

    /// Where it is, after the last flush.
    pub(super) fn place(&self, stands: Stands) -> Place {
        match stands {
            Stands::Kept(place) => place,
            Stands::Added(number) => self.places[number],
        }
    }
}
