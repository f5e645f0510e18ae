//! Which keys have come, where a build side is not in memory as a whole: for the probe side's scans.
//!
//! Bits need bounds before the first key comes, so there are some only if the plan knows that the keys lie in a narrow
//! range. Otherwise there are the least and the greatest key.

use super::Bits;
use super::keys::{for_each_batch, segment_bounds};
use super::places::{NOWHERE, OUTSIDE, Packing};
use crate::exec::join::filter::{KeySet, MAX_BITS};
use crate::exec::materialized::Materialized;
use entasis_vector::expr::ColumnMeta;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The keys of rows that come in parts, from any worker: one column of integers that 64 bits hold with a sign.
pub(crate) struct Seen {
    bits: Option<(Packing, Vec<AtomicU64>)>,
    bounds: Mutex<Option<(i64, i64)>>,
}

impl Seen {
    /// No keys yet, of this column.
    pub(crate) fn new(key: &ColumnMeta) -> Seen {
        let narrow = key.range.and_then(|(min, max)| {
            let bounds = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
            (bounds.0 <= bounds.1 && bounds.1.abs_diff(bounds.0) < MAX_BITS).then_some(bounds)
        });
        let bits = narrow.and_then(|bounds| Packing::of(&[bounds])).map(|packing| {
            let words = (0..packing.places().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
            (packing, words)
        });
        Seen { bits, bounds: Mutex::default() }
    }

    /// Adds the first column of `rows`.
    pub(crate) fn add(&self, rows: &Materialized) {
        for segment in 0..rows.segments() {
            let Some((packing, words)) = &self.bits else {
                let (min, max) = segment_bounds(rows, 0, segment);
                if min <= max {
                    let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
                    *bounds = Some(bounds.map_or((min, max), |(least, most)| (least.min(min), most.max(max))));
                }
                continue;
            };
            for_each_batch(rows, segment, packing, &mut |_, places| {
                for &place in places.iter().filter(|&&place| place != NOWHERE && place != OUTSIDE) {
                    words[(place / 64) as usize].fetch_or(1 << (place % 64), Ordering::Relaxed);
                }
            });
        }
    }

    /// The keys that have come.
    pub(crate) fn keys(&self) -> KeySet {
        let Some((packing, words)) = &self.bits else {
            return KeySet::known(*self.bounds.lock().unwrap_or_else(PoisonError::into_inner), None);
        };
        let words = words.iter().map(|word| AtomicU64::new(word.load(Ordering::Relaxed))).collect();
        KeySet::known(Some(packing.window()), Some(Arc::new(Bits::of_words(words))))
    }
}
