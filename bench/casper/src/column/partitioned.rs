//! A column chunk with the paper's mechanics (*Optimal Column Layout for Hybrid Workloads*, section 3):
//! partitions of any size, unordered inside, one behind the other in plain arrays.
//!
//! ```text
//! slots    | 3 1 2 · | 7 5 | 9 8 9 · · |      partition p: first[p] .. first[p] + rows[p], then its ghosts
//! fences     0         5     8                the least key that belongs to it
//! ```
//!
//! | operation | |
//! |---|---|
//! | point query | the index gives the partition, all of which is compared |
//! | range | first and last partition are filtered, those between are taken without a look |
//! | insert | into a ghost of its partition; if none, a slot ripples from the nearest one, or from the end |
//! | delete | the last row of the partition takes its place; the hole stays, or ripples to the end |
//! | update of the key | the hole ripples straight from source to target, unless the target has a ghost |
//!
//! **Ripple**: a partition hands b slots at its end to the one before it by moving its first b rows to its
//! end, and takes b slots from the one behind it by moving its last b rows to its front. So each partition on
//! the way costs b moves of a row of all columns.
//!
//! **Invariants**: regions follow each other and cover all slots; the keys of partition p are at least its
//! fence (but for the first) and less than the next one; without ghosts only the last partition has free
//! slots.
//!
//! Insertion order is the case of one partition.

use super::rows::Rows;
use crate::store::{Counts, Store};

/// A chunk. See the module.
pub struct Partitioned {
    rows: Rows,
    /// The first slot of each partition, and the number of slots.
    first: Vec<usize>,
    /// The rows of each partition.
    count: Vec<usize>,
    fences: Vec<i64>,
    /// Holes stay where they are, as ghosts.
    keeps_ghosts: bool,
    /// How many slots ripple at once, where there are ghosts (section 6.1).
    batch: usize,
    /// A row on its way from one partition to another.
    carried: Vec<i32>,
    counts: Counts,
}

impl Partitioned {
    /// A chunk of rows that are in the order of their keys, cut before the given rows (the first is 0), with
    /// `ghosts` free slots in each partition. `None`: without ghosts.
    pub fn new(sorted: &Rows, starts: &[usize], ghosts: Option<&[u64]>, batch: usize) -> Partitioned {
        let mut rows = Rows::new(sorted.payload.len());
        let ghost = |partition: usize| ghosts.map_or(0, |ghosts| ghosts[partition] as usize);
        rows.resize(sorted.keys.len() + (0..starts.len()).map(ghost).sum::<usize>());
        let (mut first, mut count, mut fences, mut at) = (vec![0], Vec::new(), Vec::new(), 0);
        for (partition, &start) in starts.iter().enumerate() {
            let end = starts.get(partition + 1).copied().unwrap_or(sorted.keys.len());
            let len = end - start;
            rows.keys[at..at + len].copy_from_slice(&sorted.keys[start..end]);
            for (new, old) in rows.payload.iter_mut().zip(&sorted.payload) {
                new[at..at + len].copy_from_slice(&old[start..end]);
            }
            at += len + ghost(partition);
            first.push(at);
            count.push(len);
            fences.push(sorted.keys[start]);
        }
        let (keeps_ghosts, carried, counts) = (ghosts.is_some(), Vec::new(), Counts::default());
        Partitioned { rows, first, count, fences, keeps_ghosts, batch, carried, counts }
    }

    /// The number of partitions.
    pub fn partitions(&self) -> usize {
        self.count.len()
    }

    fn partition_of(&self, key: i64) -> usize {
        self.fences.partition_point(|fence| *fence <= key).saturating_sub(1)
    }

    fn slots(&self, partition: usize) -> std::ops::Range<usize> {
        self.first[partition]..self.first[partition] + self.count[partition]
    }

    fn free(&self, partition: usize) -> usize {
        self.first[partition + 1] - self.slots(partition).end
    }

    /// The slot of a key: what a point query returns that reads no other column.
    pub fn position(&self, key: i64) -> Option<usize> {
        self.find(key).map(|(_, slot)| slot)
    }

    fn find(&self, key: i64) -> Option<(usize, usize)> {
        let partition = self.partition_of(key);
        self.rows.find(self.slots(partition), key).map(|slot| (partition, slot))
    }

    /// Hands `by` free slots at the end of a partition to the one before it.
    fn shift_right(&mut self, partition: usize, by: usize) {
        let (first, count) = (self.first[partition], self.count[partition]);
        (0..by.min(count)).for_each(|at| self.rows.copy(first + at, first + count.max(by) + at));
        self.first[partition] += by;
    }

    /// Takes `by` free slots at the end of the partition before it.
    fn shift_left(&mut self, partition: usize, by: usize) {
        let (first, count) = (self.first[partition], self.count[partition]);
        let moved = by.min(count);
        (0..moved).for_each(|at| self.rows.copy(first + count - moved + at, first - by + at));
        self.first[partition] -= by;
    }

    /// Moves free slots from one partition to another.
    fn ripple(&mut self, from: usize, to: usize, by: usize) {
        self.counts.rippled += by as u64;
        self.counts.crossed += (by * from.abs_diff(to)) as u64;
        if from < to {
            (from + 1..=to).for_each(|partition| self.shift_left(partition, by));
        } else {
            (to + 1..=from).rev().for_each(|partition| self.shift_right(partition, by));
        }
    }

    /// The nearest partition with free slots.
    fn donor(&self, partition: usize) -> Option<usize> {
        let last = self.partitions() - 1;
        if !self.keeps_ghosts {
            return (self.free(last) > 0).then_some(last);
        }
        (1..=last).find_map(|distance| {
            let behind = Some(partition + distance).filter(|&other| other <= last);
            let before = partition.checked_sub(distance);
            [behind, before].into_iter().flatten().find(|&other| self.free(other) > 0)
        })
    }

    /// Adds free slots at the end.
    fn grow(&mut self) -> usize {
        let slots = self.rows.keys.len() + self.rows.keys.len() / 16 + 16;
        self.rows.resize(slots);
        *self.first.last_mut().expect("there is one") = slots;
        self.partitions() - 1
    }

    /// Makes sure that a partition has a free slot.
    fn make_room(&mut self, partition: usize) {
        if self.free(partition) > 0 {
            self.counts.ghosts += 1;
        } else {
            let donor = self.donor(partition).unwrap_or_else(|| self.grow());
            let most = if self.keeps_ghosts { self.batch.min(self.free(donor).div_ceil(2)) } else { 1 };
            self.ripple(donor, partition, most);
        }
    }

    /// Fills the hole at `slot` with the last row of the partition.
    fn remove(&mut self, partition: usize, slot: usize) {
        let last = self.slots(partition).end - 1;
        self.rows.copy(last, slot);
        self.count[partition] -= 1;
    }

    fn put(&mut self, partition: usize, key: i64, row: &[i32]) {
        let slot = self.slots(partition).end;
        self.rows.write(slot, key, row);
        self.count[partition] += 1;
    }

    /// Calls `each` with the slots of the partitions of a range, and whether all of their rows are in it.
    fn each_of_range(&self, low: i64, high: i64, mut each: impl FnMut(std::ops::Range<usize>, bool)) {
        let (first, last) = (self.partition_of(low), self.partition_of(high));
        for partition in first..=last {
            each(self.slots(partition), first < partition && partition < last);
        }
    }
}

impl Store for Partitioned {
    fn point(&mut self, key: i64) -> Option<i64> {
        self.find(key).map(|(_, slot)| self.rows.value(slot))
    }

    fn count(&mut self, low: i64, high: i64) -> u64 {
        let mut count = 0;
        self.each_of_range(low, high, |slots, is_whole| {
            count += if is_whole { slots.len() as u64 } else { self.rows.count(slots, low, high) };
        });
        count
    }

    fn sum(&mut self, low: i64, high: i64) -> i64 {
        let mut sum = 0;
        self.each_of_range(low, high, |slots, is_whole| {
            sum += if is_whole { self.rows.total(slots) } else { self.rows.sum(slots, low, high) };
        });
        sum
    }

    fn insert(&mut self, key: i64, row: &[i32]) {
        let partition = self.partition_of(key);
        self.make_room(partition);
        self.put(partition, key, row);
    }

    fn delete(&mut self, key: i64) -> bool {
        let Some((partition, slot)) = self.find(key) else { return false };
        self.remove(partition, slot);
        if !self.keeps_ghosts {
            self.ripple(partition, self.partitions() - 1, 1);
        }
        true
    }

    fn update(&mut self, from: i64, to: i64) -> bool {
        let Some((source, slot)) = self.find(from) else { return false };
        let target = self.partition_of(to);
        if source == target {
            self.rows.keys[slot] = to;
            return true;
        }
        let mut carried = std::mem::take(&mut self.carried);
        self.rows.read(slot, &mut carried);
        self.remove(source, slot);
        if self.keeps_ghosts {
            self.make_room(target);
        } else {
            self.ripple(source, target, 1);
        }
        self.put(target, to, &carried);
        self.carried = carried;
        true
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn check(&self) {
        assert_eq!((self.first[0], self.first.last()), (0, Some(&self.rows.keys.len())));
        for partition in 0..self.partitions() {
            let slots = self.slots(partition);
            assert!(slots.end <= self.first[partition + 1]);
            assert!(self.keeps_ghosts || partition + 1 == self.partitions() || self.free(partition) == 0);
            let keys = &self.rows.keys[slots];
            assert!(partition == 0 || keys.iter().all(|key| *key >= self.fences[partition]));
            assert!(self.fences.get(partition + 1).is_none_or(|next| keys.iter().all(|key| key < next)));
        }
    }
}
