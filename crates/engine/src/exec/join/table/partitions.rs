//! Build rows by partition of their places, so that workers build one table in parallel without latches.
//!
//! A partition is a range of places, as many as a power of two: it owns a range of the table's directory and
//! a range of its rows, small enough for the second-level cache. Rows are spread in two passes over the
//! segments, which count and then write; within a partition they are in the order of their ids, however the
//! workers were scheduled. Then each partition is one task ([`in_parallel`]). The result is a single table,
//! and probes know nothing of partitions (Barber et al., section 2.3, with counting instead of lists of
//! pages).
//!
//! Unlike in the paper, keys are not scrambled against skew
//! (`docs/decisions/0012-keys-are-not-scrambled.md`).

use crate::exec::key_filter::{NOWHERE, OUTSIDE};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Tasks, in_parallel};
use crate::sync::{AtomicU64, MIN_PARTITION_SHIFT, Ordering, PARTITION_ROWS};
use entasis_vector::Result;

/// The most partitions: each has an open cache line while rows are spread.
const MAX_PARTITIONS: u64 = 1024;

/// Calls back with the offset of a row in a segment, and the places of that row and those that follow.
pub(super) type PlacesOf<'a> = &'a (dyn Fn(usize, &mut dyn FnMut(usize, &[u64])) + Sync);

/// Rows by partition.
pub(super) struct Partitions {
    /// The rows of all partitions; then those outside, then those nowhere.
    entries: Vec<Entries>,
    /// Where each partition starts; then where the rows outside and the rows nowhere start, and the end.
    starts: Vec<usize>,
    shift: u32,
}

/// The rows of a partition. High half: the place within the partition. Low half: the row id.
#[derive(Default)]
pub(super) struct Entries(Vec<AtomicU64>);

impl Entries {
    fn new(count: usize) -> Entries {
        // Zeroed memory is touched where rows are written, not here.
        Entries(vec![0u64; count].into_iter().map(AtomicU64::new).collect())
    }

    /// The place within the partition, and the row id.
    #[inline(always)]
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.0.iter().map(|entry| {
            let entry = entry.load(Ordering::Relaxed);
            ((entry >> 32) as usize, entry as u32)
        })
    }
}

/// The binary logarithm of a partition's places, for a table of this many places and rows.
pub(super) fn shift_for(places: u64, rows: usize) -> u32 {
    let partitions = (rows as u64).div_ceil(PARTITION_ROWS).clamp(1, MAX_PARTITIONS);
    let width = places.div_ceil(partitions).next_power_of_two();
    width.trailing_zeros().clamp(MIN_PARTITION_SHIFT, 32)
}

impl Partitions {
    /// Spreads `rows`, whose places are below `places`, or [`OUTSIDE`] or [`NOWHERE`]. `done` is called for
    /// each segment whose places are no longer needed.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(super) fn spread(
        rows: &Materialized,
        places: u64,
        shift: u32,
        places_of: PlacesOf<'_>,
        done: &(dyn Fn(usize) + Sync),
        tasks: &dyn Tasks,
    ) -> Result<Partitions> {
        let partitions = places.div_ceil(1 << shift) as usize;
        let partition_of = |place: u64| match place {
            OUTSIDE => partitions,
            NOWHERE => partitions + 1,
            _ => (place >> shift) as usize,
        };
        let segments = rows.segments();
        let mut counts: Vec<Vec<usize>> = vec![vec![0; partitions + 2]; segments];
        in_parallel(tasks, counts.iter_mut().collect(), &|segment, counts| {
            places_of(segment, &mut |_, places| {
                places.iter().for_each(|&place| counts[partition_of(place)] += 1)
            });
            Ok(())
        })?;
        let mut starts = vec![0];
        let mut entries = Vec::with_capacity(partitions + 2);
        for partition in 0..partitions + 2 {
            let mut rows = 0;
            for counts in &mut counts {
                rows += std::mem::replace(&mut counts[partition], rows);
            }
            starts.push(starts[partition] + rows);
            entries.push(Entries::new(rows));
        }
        let within = (1u64 << shift) - 1;
        in_parallel(tasks, counts.iter_mut().collect(), &|segment, next| {
            places_of(segment, &mut |first, places| {
                for (i, &place) in places.iter().enumerate() {
                    let id = (segment << 16 | (first + i)) as u64;
                    let partition = partition_of(place);
                    let slot = &mut next[partition];
                    entries[partition].0[*slot].store((place & within) << 32 | id, Ordering::Relaxed);
                    *slot += 1;
                }
            });
            done(segment);
            Ok(())
        })?;
        Ok(Partitions { entries, starts, shift })
    }

    /// The number of partitions.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 3
    }
    /// Words of 32 places per partition; the last partition may have fewer.
    pub(super) fn words(&self) -> usize {
        1 << (self.shift - 5)
    }
    /// Rows of the partitions before `partition`.
    pub(super) fn start(&self, partition: usize) -> usize {
        self.starts[partition]
    }
    /// Rows of each partition.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        self.starts[..self.count() + 1].windows(2).map(|pair| pair[1] - pair[0])
    }
    /// The rows of a partition: place within it, and row id.
    #[inline(always)]
    pub(super) fn rows(&self, partition: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.entries[partition].rows()
    }
    /// Hands out the rows of each partition, so that each can be freed alone; those outside and nowhere stay.
    pub(super) fn take(&mut self) -> Vec<Entries> {
        let count = self.count();
        self.entries[..count].iter_mut().map(std::mem::take).collect()
    }
    /// The row ids of those outside.
    pub(super) fn outside(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows(self.count()).map(|(_, id)| id)
    }
    /// The row ids of those nowhere.
    pub(super) fn nowhere(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows(self.count() + 1).map(|(_, id)| id)
    }
}

/// Cuts `values` into parts of the given lengths; values may be left over.
pub(super) fn cut<T>(mut values: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut parts = Vec::new();
    for length in lengths {
        let (part, rest) = std::mem::take(&mut values).split_at_mut(length);
        parts.push(part);
        values = rest;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::materialized::column_of;
    use crate::exec::testing::{Chance, TwoThreads};
    use entasis_vector::{CHUNK_ROWS, DataType, Vector};
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    #[test]
    fn every_row_is_in_the_partition_of_its_place_in_the_order_of_ids() {
        let mut rows = Materialized::new(&[column_of(DataType::UInt64)]);
        let mut chance = Chance(5);
        let count = 100 * CHUNK_ROWS + 17;
        let places: Vec<u64> = (0..count)
            .map(|_| match chance.below(10) {
                0 => OUTSIDE,
                1 => NOWHERE,
                _ => chance.below(5000),
            })
            .collect();
        for places in places.chunks(CHUNK_ROWS) {
            rows.append_vectors(&[(&Vector::from_slice(places), None)], places.len());
        }
        let of = |segment: usize, give: &mut dyn FnMut(usize, &[u64])| {
            for (i, places) in rows.values::<u64>(0, segment).chunks(1000).enumerate() {
                give(i * 1000, places);
            }
        };
        let finished = Mutex::new(BTreeSet::new());
        let done = |segment: usize| assert!(finished.lock().unwrap().insert(segment));
        for shift in [10, 12, 13] {
            let partitions = Partitions::spread(&rows, 5000, shift, &of, &done, &TwoThreads).unwrap();
            assert_eq!(finished.lock().unwrap().split_off(&0).len(), rows.segments());
            assert_eq!(partitions.count(), 5000usize.div_ceil(1 << shift));
            for partition in 0..partitions.count() {
                let expected = (0..count).filter(|&id| places[id] >> shift == partition as u64);
                let expected = expected.map(|id| (places[id] as usize & ((1 << shift) - 1), id as u32));
                assert!(partitions.rows(partition).eq(expected));
            }
            assert_eq!(
                partitions.lengths().collect::<Vec<_>>(),
                (0..partitions.count()).map(|p| partitions.rows(p).count()).collect::<Vec<_>>()
            );
            assert!(partitions.outside().eq((0..count as u32).filter(|&id| places[id as usize] == OUTSIDE)));
            assert!(partitions.nowhere().eq((0..count as u32).filter(|&id| places[id as usize] == NOWHERE)));
        }
    }

    #[test]
    fn partitions_hold_a_share_of_the_rows() {
        assert_eq!(shift_for(100, 10), MIN_PARTITION_SHIFT);
        assert_eq!(shift_for(1 << 20, 1 << 15), 20);
        assert_eq!(shift_for(1 << 20, 1 << 17), 18);
        assert_eq!(shift_for(1 << 40, 1 << 30), 30);
    }
}
