//! The table of joins that only need to know whether a key exists: a bit per place, and nothing else.

use super::probe_keys::ProbeKeys;
use super::{Cursor, JoinTable, NO_ROW, Pairs};
use crate::exec::key_filter::{Bits, Packing};
use entasis_vector::simd::widest;
use std::sync::Arc;

/// The table without rows: a probe row has one candidate, row 0, if its key exists.
pub(super) struct BitsOnly {
    packing: Packing,
    bits: Arc<Bits>,
    /// Every place is taken.
    is_full: bool,
}

impl BitsOnly {
    /// The table of the places that have a bit.
    pub(super) fn new(packing: Packing, bits: Arc<Bits>) -> BitsOnly {
        BitsOnly { is_full: bits.taken() == packing.places(), packing, bits }
    }

    /// True if every place is taken.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }
}

impl JoinTable for BitsOnly {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        let (rows, places) = keys.places(&self.packing);
        let heads = cursor.heads(places.len());
        if self.is_full {
            // PERF: one comparison per row; with two threads 1.1 ns instead of 1.4
            // (bench/record/bitmap-full-2026-11-22.txt).
            let end = self.packing.places();
            widest(|| {
                let heads = heads.iter_mut().zip(places);
                heads.for_each(|(head, &place)| *head = if place < end { 0 } else { NO_ROW });
            });
        } else {
            self.bits.write(places, heads, (0, NO_ROW));
        }
        pairs.take(rows, heads);
    }
    fn next(&self, _: &mut ProbeKeys, pairs: &mut Pairs, _: &mut Cursor) {
        pairs.clear();
    }
    fn is_exact(&self, _: &Cursor) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        self.bits.bytes()
    }
}
