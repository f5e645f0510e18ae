//! What loads have written: their extents, and where in them a checkpoint finds the bytes of a block that it
//! would write alike ([`super::loads`]).

use super::manifest::Place;
use crate::definition::ObjectId;
use crate::file::Extent;
use std::collections::HashMap;
use std::sync::Arc;

/// A load that the log refers to.
#[derive(Debug)]
pub(super) struct Load {
    table: ObjectId,
    index: Extent,
    /// The extents of its data.
    data: Vec<Extent>,
    /// The places of its blocks and of what they share.
    places: Vec<Place>,
}

impl Load {
    /// A load of a table, with the extent of its index and those of its data.
    pub(super) fn new<'a>(
        table: ObjectId,
        index: Extent,
        data: &[Extent],
        places: impl Iterator<Item = &'a Place>,
    ) -> Load {
        Load { table, index, data: data.to_vec(), places: places.copied().collect() }
    }

    /// The table.
    pub(super) fn table(&self) -> ObjectId {
        self.table
    }

    /// The extent of its index.
    pub(super) fn index(&self) -> Extent {
        self.index
    }

    /// All its extents.
    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        self.data.iter().copied().chain([self.index])
    }

    /// Bytes of its extents.
    pub(super) fn bytes(&self) -> u64 {
        self.extents().map(|extent| extent.bytes).sum()
    }
}

/// What loads have written of one table, and of those that it was made of, by length and checksum.
#[derive(Debug, Default)]
pub(super) struct Stored(HashMap<(u64, u64), Place>);

impl Stored {
    /// What some loads have written of the tables of a lineage.
    pub(super) fn of(loads: &[Arc<Load>], tables: &[ObjectId]) -> Stored {
        let places = loads.iter().filter(|load| tables.contains(&load.table)).flat_map(|load| &load.places);
        Stored(places.map(|place| ((place.bytes, place.checksum), *place)).collect())
    }

    /// Where these bytes probably are, which have this checksum.
    pub(super) fn find(&self, bytes: &[u8], checksum: u64) -> Option<Place> {
        self.0.get(&(bytes.len() as u64, checksum)).copied()
    }
}
