//! The extents that a checkpoint writes; and, in debug builds, the check that what it leaves out is in the
//! file already.

use super::manifest::Place;
use super::stored::Stored;
use crate::block::Block;
use crate::block::serialized::{self, Column};
use crate::file::{DataFile, Extent, Tail};
use crate::node::Link;
use entasis_vector::{Field, Result, bitmap};

/// Writes extents and remembers them, so that a checkpoint that fails can give them back.
pub(super) struct ExtentWriter<'a> {
    file: &'a DataFile,
    /// The end of the file that is to be vacated: extents there are written anew.
    tail: Tail,
    /// The extents written so far. They are given back if the checkpoint fails.
    written: Vec<Extent>,
    /// The log is going to refer to them, and not a checkpoint.
    is_ahead: bool,
    /// What loads have written of the table that is being written.
    stored: Stored,
    /// Debug builds only: the extent that was read last.
    read: Option<(Extent, Vec<u8>)>,
}

impl<'a> ExtentWriter<'a> {
    pub(super) fn new(file: &'a DataFile, tail: Tail) -> ExtentWriter<'a> {
        ExtentWriter {
            file,
            tail,
            written: Vec::new(),
            is_ahead: false,
            stored: Stored::default(),
            read: None,
        }
    }

    /// A writer of extents that the log is going to refer to.
    pub(super) fn ahead(file: &'a DataFile) -> ExtentWriter<'a> {
        ExtentWriter { is_ahead: true, ..ExtentWriter::new(file, Tail::default()) }
    }

    /// Says what loads have written of the table that is written next.
    pub(super) fn look_in(&mut self, stored: Stored) {
        self.stored = stored;
    }

    /// Where a load has written these bytes, which have this checksum.
    pub(super) fn stored(&self, bytes: &[u8], checksum: u64) -> Result<Option<Place>> {
        let place = self.stored.find(bytes, checksum).filter(|place| !self.tail.holds(place.extent));
        let Some(place) = place else { return Ok(None) };
        Ok(self.file.has(place.in_file(), bytes)?.then_some(place))
    }

    /// The extents written so far.
    pub(super) fn written(&self) -> &[Extent] {
        &self.written
    }

    /// The seed of the checksums of places.
    pub(super) fn seed(&self) -> u64 {
        self.file.seed()
    }

    /// The end of the file that is to be vacated.
    pub(super) fn tail(&self) -> Tail {
        self.tail
    }

    /// Writes an extent.
    pub(super) fn put(&mut self, payload: &[u8]) -> Result<Extent> {
        let extent =
            if self.is_ahead { self.file.write_ahead(payload)? } else { self.file.write(payload)? };
        self.written.push(extent);
        Ok(extent)
    }

    /// Gives back what was written, because nothing will refer to it.
    pub(super) fn abandon(self) {
        let give_back =
            |extent| if self.is_ahead { self.file.take_back(extent) } else { self.file.give_up(extent) };
        self.written.into_iter().for_each(give_back);
    }

    /// The slow twin of not writing a block: debug builds check that the block in the file has the same
    /// values.
    pub(super) fn compare(
        &mut self,
        place: Place,
        block: Link<Block>,
        field: &Field,
        live: &[u64],
    ) -> Result<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        let bytes = match self.read.take().filter(|(extent, _)| *extent == place.extent) {
            Some((_, bytes)) => bytes,
            None => self.file.read(place.extent)?,
        };
        let written = serialized::read(&bytes[place.range()], Column::of(field.ty), &block.shared())?;
        let mut slots = (0..block.slots()).filter(|slot| bitmap::get(live, *slot));
        let differs = slots.find(|&slot| {
            let physical = field.ty.physical();
            !written.datum(slot, physical).is_same(block.datum(slot, physical))
        });
        let name = &field.name;
        assert!(differs.is_none(), "a block of {name} is taken for unchanged, and slot {differs:?} is not");
        self.read = Some((place.extent, bytes));
        Ok(())
    }
}
