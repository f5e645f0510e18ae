//! Which keys there are, and nothing else: a bit for each place. The table of joins that ask only that, and the filter
//! for the probe side's scans ([`super::super::filter`]).

use super::places::{NOWHERE, Packing};
use super::{Cursor, JoinTable, NO_ROW, Pairs, ProbeKeys, for_each_batch};
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use entasis_vector::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A bit for each place that is taken.
#[derive(Debug)]
pub(crate) struct Bits {
    words: Vec<AtomicU64>,
    /// Rows that have a place.
    rows: usize,
    /// Places that are taken.
    keys: usize,
}

impl Bits {
    /// The places of the keys of `rows`, which are all below `packing`'s number or nowhere.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(super) fn of(rows: &Materialized, packing: &Packing, tasks: &dyn Tasks) -> Result<Bits> {
        let words: Vec<AtomicU64> = (0..packing.places().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let (placed, keys) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let shared = rows.segments() > 1;
        tasks.run(rows.segments(), &|segment| {
            let (mut own_placed, mut own_keys) = (0, 0);
            for_each_batch(rows, segment, packing, &mut |_, places| {
                for &place in places.iter().filter(|&&place| place != NOWHERE) {
                    let (word, bit) = (&words[(place / 64) as usize], 1 << (place % 64));
                    let old = word.load(Ordering::Relaxed);
                    // Another worker may set another bit of the word, or this one.
                    let is_new = old & bit == 0
                        && if shared {
                            word.fetch_or(bit, Ordering::Relaxed) & bit == 0
                        } else {
                            word.store(old | bit, Ordering::Relaxed);
                            true
                        };
                    own_placed += 1;
                    own_keys += usize::from(is_new);
                }
            });
            placed.fetch_add(own_placed, Ordering::Relaxed);
            keys.fetch_add(own_keys, Ordering::Relaxed);
            Ok(())
        })?;
        Ok(Bits { words, rows: placed.into_inner(), keys: keys.into_inner() })
    }

    /// Bits that are set already, of which nobody asks how often keys occur.
    pub(super) fn of_words(words: Vec<AtomicU64>) -> Bits {
        Bits { words, rows: usize::MAX, keys: 0 }
    }

    /// The keys of `rows`, one column of integers between these, the smallest and the largest; `None` if they are too
    /// far from each other.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn between(rows: &Materialized, bounds: (i64, i64), tasks: &dyn Tasks) -> Result<Option<Bits>> {
        Packing::of(&[bounds]).map(|packing| Bits::of(rows, &packing, tasks)).transpose()
    }

    /// True if `place` is taken.
    #[inline(always)]
    pub(crate) fn is_taken(&self, place: u64) -> bool {
        let word = self.words.get((place / 64) as usize).map_or(0, |word| word.load(Ordering::Relaxed));
        word >> (place % 64) & 1 != 0
    }
    /// True if no key occurs twice.
    pub(super) fn is_unique(&self) -> bool {
        self.rows == self.keys
    }
    /// Distinct keys.
    pub(super) fn keys(&self) -> usize {
        self.keys
    }
    fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

/// The table that knows no rows: a probe row has one candidate, row 0, if its key is there.
pub(super) struct BitsOnly {
    pub packing: Packing,
    pub bits: Arc<Bits>,
}

impl JoinTable for BitsOnly {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, _: &mut Cursor) {
        let (rows, places) = keys.places(&self.packing);
        pairs.fill(rows, places.len(), |row| if self.bits.is_taken(places[row]) { 0 } else { NO_ROW });
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
