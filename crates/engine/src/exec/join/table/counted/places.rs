//! Keys by place, for a CAT: a bit for each. If no key has come twice, its rank is the id of its row; where a join asks for no row the bits
//! are all.

use super::super::bits::{Bits, BitsCount, BitsOnly};
use super::super::cat::Cat;
use super::super::places::Packing;
use super::super::{Asked, BuildInput, JoinTable, NO_ROW, ProbeKeys};
use super::{Placer, without_unmatchable};
use crate::exec::join::held_back::part_of_place;
use crate::exec::operator::Tasks;
use entasis_vector::Result;
use std::sync::Arc;

/// Keys while they are counted, by one worker.
pub(crate) struct PlaceCount {
    packing: Packing,
    bits: BitsCount,
    asked: Asked,
    has_failed: bool,
}

impl PlaceCount {
    /// The bytes of counting keys of this packing.
    pub(crate) fn bytes_for(packing: &Packing) -> usize {
        Bits::bytes_for(packing.places())
    }

    /// No keys yet, of which a join asks `asked`.
    pub(crate) fn new(packing: Packing, asked: Asked) -> PlaceCount {
        PlaceCount { bits: BitsCount::new(packing.places()), packing, asked, has_failed: false }
    }

    /// Counts the keys of a chunk but those that nothing equals. False if it is of no use to go on: a key is repeated, so that bits do
    /// not tell where rows are, or has no place.
    pub(crate) fn add(&mut self, keys: &mut ProbeKeys) -> bool {
        let (rows, places) = keys.places(&self.packing);
        let (are_inside, are_new) = self.bits.add(places, rows);
        self.has_failed |= !are_inside || !are_new && self.asked != Asked::Existence;
        !self.has_failed
    }

    /// Adds what another worker has counted.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn absorb(&mut self, other: &PlaceCount, tasks: &dyn Tasks) -> Result<()> {
        self.has_failed |= other.has_failed;
        self.bits.absorb(&other.bits, tasks)
    }

    /// What all workers have counted; `None` if there can be no such table.
    pub(crate) fn finish(self) -> Option<CountedPlaces> {
        let (mut packing, mut bits) = (self.packing, self.bits.finish());
        if self.has_failed || self.asked != Asked::Existence && !bits.is_unique() {
            return None;
        }
        if let Some((first, last)) = bits.ends() {
            // The plan may have expected keys that are not there.
            let first = first / 64 * 64;
            if let Some(cut) = packing.cut(first, last) {
                (packing, bits) = (cut, bits.cut(first, last + 1));
            }
        }
        Some(CountedPlaces { packing, bits: Arc::new(bits) })
    }
}

/// Which keys there are.
pub(crate) struct CountedPlaces {
    packing: Packing,
    bits: Arc<Bits>,
}

impl CountedPlaces {
    /// Distinct keys: rows, if none is repeated.
    pub(crate) fn keys(&self) -> usize {
        self.bits.keys()
    }

    /// Rows that have a key.
    pub(crate) fn rows(&self) -> usize {
        self.bits.rows()
    }

    /// True if every place is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.keys() as u64 == self.packing.places()
    }

    /// The bits, and whose places they are.
    pub(crate) fn bits(&self) -> (Packing, Arc<Bits>) {
        (self.packing.clone(), self.bits.clone())
    }

    /// Bytes of the bits, and of a CAT of them.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.bits.bytes(), Cat::bytes_for(self.packing.places()))
    }

    /// The CAT.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn cat(&self, tasks: &dyn Tasks) -> Result<Box<dyn Placer>> {
        Ok(Box::new(Cat::of_bits(self.packing.clone(), &self.bits, tasks)?))
    }

    /// The bitmap.
    pub(crate) fn bitmap(self) -> Box<dyn JoinTable> {
        Box::new(BitsOnly::new(self.packing, self.bits))
    }
}

impl Placer for Cat {
    fn parts(&self, keys: &mut ProbeKeys, parts: &mut Vec<u8>) {
        let end = self.packing().places();
        parts.extend(self.places(keys).1.iter().map(|&place| part_of_place(place, end)));
    }

    fn ids(&self, keys: &mut ProbeKeys, ids: &mut Vec<u32>) {
        let (rows, places) = self.places(keys);
        ids.resize(places.len(), NO_ROW);
        self.ranks(places, ids);
        // What stands in the place of a NULL has a rank as well.
        without_unmatchable(rows, ids);
    }

    fn finish(self: Box<Self>, _: &BuildInput<'_>) -> Result<Box<dyn JoinTable>> {
        Ok(self)
    }
}
