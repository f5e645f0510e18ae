//! Collects the keys of a build side that is not entirely in memory, for a join filter.
//!
//! Bits need bounds before the first key arrives, so they are used only if the plan knows that the keys are
//! in a narrow range. Otherwise the least and the greatest key are kept.

use super::bits::Bits;
use super::build_keys::{for_each_batch, segment_bounds};
use super::filter::{FEW_PLACES, KeyFilter};
use super::integers::is_integer;
use super::places::{NOWHERE, OUTSIDE, Packing};
use crate::exec::materialized::Materialized;
use crate::memory::Reservation;
use crate::sync::{AtomicU64, Mutex, OnceLock, Ordering, lock};
use entasis_vector::PhysicalType;
use entasis_vector::expr::ColumnMeta;
use std::sync::Arc;

/// The keys of rows that come in parts, from any worker: one column of integers that fit into 64 bits with a
/// sign.
pub(crate) struct Seen {
    /// The places of the keys, if they are few.
    packing: Option<Packing>,
    /// A bit per place, allocated with the first row.
    words: OnceLock<Vec<AtomicU64>>,
    bounds: Mutex<Option<(i64, i64)>>,
}

impl Seen {
    /// No keys yet, of this column; `None` if its type does not fit.
    pub(crate) fn of(key: &ColumnMeta) -> Option<Seen> {
        if !is_integer(key.physical) || key.physical == PhysicalType::U64 {
            return None;
        }
        let narrow = key.range.and_then(|(min, max)| {
            let bounds = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
            (bounds.0 <= bounds.1 && bounds.1.abs_diff(bounds.0) < FEW_PLACES).then_some(bounds)
        });
        let packing = narrow.and_then(|bounds| Packing::of(&[bounds]));
        Some(Seen { packing, words: OnceLock::new(), bounds: Mutex::default() })
    }

    /// Adds the first column of `rows`.
    pub(crate) fn add(&self, rows: &Materialized) {
        for segment in 0..rows.segments() {
            let Some(packing) = &self.packing else {
                let (min, max) = segment_bounds(rows, 0, segment);
                if min <= max {
                    let mut bounds = lock(&self.bounds);
                    *bounds =
                        Some(bounds.map_or((min, max), |(least, most)| (least.min(min), most.max(max))));
                }
                continue;
            };
            let none = || (0..packing.places().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
            let words = self.words.get_or_init(none);
            for_each_batch(rows, segment, packing, &mut |_, places| {
                for &place in places.iter().filter(|&&place| place != NOWHERE && place != OUTSIDE) {
                    words[(place / 64) as usize].fetch_or(1 << (place % 64), Ordering::Relaxed);
                }
            });
        }
    }

    /// A filter of the collected keys. `memory` reserves what it needs; without memory it has only bounds.
    pub(crate) fn filter(&self, mut memory: Reservation) -> KeyFilter {
        let (Some(packing), Some(words)) = (&self.packing, self.words.get()) else {
            let bounds = *lock(&self.bounds);
            return KeyFilter::of_column(bounds, None, memory);
        };
        let bits = memory
            .resize(words.len() * 8)
            .is_ok()
            .then(|| (packing.clone(), Arc::new(Bits::of_words(words))));
        KeyFilter::of_column(Some(packing.window()), bits, memory)
    }
}
