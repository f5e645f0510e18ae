//! A bit for the place of each key; this is the whole table if a join needs no row.

use super::super::LookupKind;
use super::{JoinTable, ProbeKeys};
use crate::exec::join::table::bitmap::BitsOnly;
use crate::exec::key_filter::{Bits, BitsCount, Packing};
use crate::exec::operator::Tasks;
use entasis_vector::Result;
use std::sync::Arc;

/// Keys counted by one worker.
pub(crate) struct BitCount {
    packing: Packing,
    bits: BitsCount,
    asked: LookupKind,
    has_failed: bool,
}

impl BitCount {
    /// Bytes of the counters for keys of this many places.
    pub(crate) fn bytes_for(places: u64) -> usize {
        Bits::bytes_for(places)
    }

    /// No keys yet; `asked` is what the join looks up.
    pub(crate) fn new(packing: Packing, asked: LookupKind) -> BitCount {
        BitCount { bits: BitsCount::new(packing.places()), packing, asked, has_failed: false }
    }

    /// Counts the keys of a chunk, except those that equal nothing. False if counting is of no use because a
    /// key is repeated, so that bits do not tell how often it occurs, or has no place.
    pub(crate) fn add(&mut self, keys: &mut ProbeKeys) -> bool {
        let (rows, places) = keys.places(&self.packing);
        let (are_inside, are_new) = self.bits.add(places, rows);
        self.has_failed |= !are_inside || !are_new && self.asked != LookupKind::Existence;
        !self.has_failed
    }

    /// Adds what another worker has counted.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn absorb(&mut self, other: &BitCount, tasks: &dyn Tasks) -> Result<()> {
        self.has_failed |= other.has_failed;
        self.bits.absorb(&other.bits, tasks)
    }

    /// What all workers have counted; `None` if such a table is impossible.
    pub(crate) fn finish(self) -> Option<CountedBits> {
        let (mut packing, mut bits) = (self.packing, self.bits.finish());
        if self.has_failed || self.asked != LookupKind::Existence && !bits.is_unique() {
            return None;
        }
        if let Some((first, last)) = bits.ends() {
            // The plan may have expected keys that do not occur.
            let first = first / 64 * 64;
            if let Some(cut) = packing.cut(first, last) {
                (packing, bits) = (cut, bits.cut(first, last + 1));
            }
        }
        Some(CountedBits { packing, bits: Arc::new(bits) })
    }
}

/// The keys that occur.
pub(crate) struct CountedBits {
    packing: Packing,
    bits: Arc<Bits>,
}

impl CountedBits {
    /// The number of distinct keys: of rows, if none is repeated.
    pub(crate) fn keys(&self) -> usize {
        self.bits.keys()
    }

    /// The number of rows that have a key.
    pub(crate) fn rows(&self) -> usize {
        self.bits.rows()
    }

    /// The bits, and the packing of their places.
    pub(crate) fn bits(&self) -> (Packing, Arc<Bits>) {
        (self.packing.clone(), self.bits.clone())
    }

    /// Bytes of the bits.
    pub(crate) fn bytes(&self) -> usize {
        self.bits.bytes()
    }

    /// The bitmap.
    pub(crate) fn bitmap(self) -> Box<dyn JoinTable> {
        Box::new(BitsOnly::new(self.packing, self.bits))
    }
}
