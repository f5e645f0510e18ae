//! Counts what became of the partitions of a join, for the profile.

use crate::exec::spill::store::Store;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Counts, from all workers.
#[derive(Default)]
pub(super) struct PartitionStatistics {
    deepest: AtomicU32,
    blocks: AtomicUsize,
    /// Partitions that were split for a cache, and how many resulted.
    second: [AtomicUsize; 2],
    /// Bytes written to and read from files that are gone.
    again: [AtomicU64; 2],
}

impl PartitionStatistics {
    /// Records the depth of a split.
    pub(super) fn note_depth(&self, depth: u32) {
        self.deepest.fetch_max(depth, Ordering::Relaxed);
    }

    /// Records a block of build rows with frequent keys.
    pub(super) fn note_block(&self) {
        self.blocks.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a partition is split into `parts` for a cache.
    pub(super) fn note_second_pass(&self, parts: usize) {
        self.second[0].fetch_add(1, Ordering::Relaxed);
        self.second[1].fetch_add(parts, Ordering::Relaxed);
    }

    /// Records the traffic of files that are about to go.
    pub(super) fn note_traffic(&self, store: &Store) {
        let (written, read) = store.traffic();
        self.again[0].fetch_add(written, Ordering::Relaxed);
        self.again[1].fetch_add(read, Ordering::Relaxed);
    }

    /// The greatest depth to which partitions were split.
    pub(super) fn deepest(&self) -> u32 {
        self.deepest.load(Ordering::Relaxed)
    }

    /// Blocks of rows with frequent keys.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.load(Ordering::Relaxed)
    }

    /// Partitions that were split for a cache, and how many resulted.
    pub(super) fn second_pass(&self) -> [usize; 2] {
        self.second.each_ref().map(|partitions| partitions.load(Ordering::Relaxed))
    }

    /// Bytes written to and read from files that are gone.
    pub(super) fn again(&self) -> [u64; 2] {
        self.again.each_ref().map(|bytes| bytes.load(Ordering::Relaxed))
    }
}
