//! The state of the art of the paper: a sorted column and one delta store. New rows go to the delta, in the
//! order in which they come; rows of the sorted part that are deleted get a tombstone. When delta and
//! tombstones together are a share of the rows, both are merged: all columns are written anew, run by run.
//!
//! Every query reads both parts.

use super::rows::Rows;
use super::sorted::slots_of;
use super::staggered::Staggered;
use crate::store::{Counts, Store};
use std::ops::Range;
use std::time::Instant;

/// The column and its delta.
pub struct Delta {
    main: Rows,
    /// A bit for each slot of `main`.
    gone: Vec<u64>,
    tombstones: usize,
    delta: Rows,
    /// The number of rows and tombstones at which they are merged.
    full: usize,
    carried: Vec<i32>,
    counts: Counts,
}

impl Delta {
    /// Rows that are in the order of their keys, and a delta that may take `full` changes.
    pub fn new(main: Rows, full: usize) -> Delta {
        let (gone, delta) = (vec![0; main.keys.len().div_ceil(64)], Rows::new(main.payload.len()));
        let (carried, counts) = (Vec::new(), Counts::default());
        Delta { main, gone, tombstones: 0, delta, full: full.max(1), carried, counts }
    }

    fn is_gone(&self, slot: usize) -> bool {
        self.gone[slot / 64] >> (slot % 64) & 1 == 1
    }

    fn in_main(&self, key: i64) -> Option<usize> {
        self.main.keys.binary_search(&key).ok().filter(|&slot| !self.is_gone(slot))
    }

    fn in_delta(&self, key: i64) -> Option<usize> {
        self.delta.find(0..self.delta.keys.len(), key)
    }

    /// Calls `each` with the slots of a range that have a tombstone.
    fn each_gone(&self, slots: Range<usize>, mut each: impl FnMut(usize)) {
        if self.tombstones == 0 {
            return;
        }
        for word in slots.start / 64..slots.end.div_ceil(64) {
            let mut bits = self.gone[word];
            while bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if slots.contains(&slot) {
                    each(slot);
                }
            }
        }
    }

    fn bury(&mut self, slot: usize) {
        self.gone[slot / 64] |= 1 << (slot % 64);
        self.tombstones += 1;
    }

    /// Merges if the delta is full.
    fn settle(&mut self) {
        if self.delta.keys.len() + self.tombstones >= self.full {
            let start = Instant::now();
            self.merge();
            self.counts.merges += 1;
            self.counts.merging += start.elapsed();
        }
    }

    /// Runs of slots of `main` that stay, and what of the delta follows each.
    fn pieces(&self) -> Vec<(Range<usize>, Option<usize>)> {
        let mut order: Vec<usize> = (0..self.delta.keys.len()).collect();
        order.sort_unstable_by_key(|&at| self.delta.keys[at]);
        // What ends a run: a row of the delta before a slot, or a tombstone at one.
        let place = |&at: &usize| self.main.keys.partition_point(|key| *key < self.delta.keys[at]);
        let mut cuts: Vec<(usize, Option<usize>)> = order.iter().map(|at| (place(at), Some(*at))).collect();
        self.each_gone(0..self.main.keys.len(), |slot| cuts.push((slot, None)));
        // Rows of the delta come before the tombstone at the same slot; the sort keeps their order.
        cuts.sort_by_key(|&(slot, from)| (slot, from.is_none()));
        let (mut pieces, mut start) = (Vec::with_capacity(cuts.len() + 1), 0);
        for (slot, from) in cuts {
            pieces.push((start..slot, from));
            start = slot + usize::from(from.is_none());
        }
        pieces.push((start..self.main.keys.len(), None));
        pieces
    }

    fn merge(&mut self) {
        fn merge<T: Copy + Default>(
            new: &mut Staggered<T>,
            (main, delta): (&[T], &[T]),
            pieces: &[(Range<usize>, Option<usize>)],
        ) {
            for (slots, from) in pieces {
                new.extend_from_slice(&main[slots.clone()]);
                from.iter().for_each(|&at| new.push(delta[at]));
            }
        }
        let (pieces, rows) = (self.pieces(), self.main.keys.len() + self.delta.keys.len());
        let mut new = Rows::with_capacity(self.main.payload.len(), rows);
        merge(&mut new.keys, (&self.main.keys, &self.delta.keys), &pieces);
        let old = self.main.payload.iter().zip(&self.delta.payload);
        for (new, (main, delta)) in new.payload.iter_mut().zip(old) {
            merge(new, (main, delta), &pieces);
        }
        self.main = new;
        self.delta.resize(0);
        self.gone.clear();
        self.gone.resize(self.main.keys.len().div_ceil(64), 0);
        self.tombstones = 0;
    }
}

impl Store for Delta {
    fn point(&mut self, key: i64) -> Option<i64> {
        if let Some(slot) = self.in_main(key) {
            return Some(self.main.value(slot));
        }
        self.in_delta(key).map(|at| self.delta.value(at))
    }

    fn count(&mut self, low: i64, high: i64) -> u64 {
        let slots = slots_of(&self.main.keys, low, high);
        let mut count = slots.len() as u64 + self.delta.count(0..self.delta.keys.len(), low, high);
        self.each_gone(slots, |_| count -= 1);
        count
    }

    fn sum(&mut self, low: i64, high: i64) -> i64 {
        let slots = slots_of(&self.main.keys, low, high);
        let mut sum = self.main.total(slots.clone()) + self.delta.sum(0..self.delta.keys.len(), low, high);
        self.each_gone(slots, |slot| sum -= self.main.value(slot));
        sum
    }

    fn insert(&mut self, key: i64, row: &[i32]) {
        self.delta.push(key, row);
        self.settle();
    }

    fn delete(&mut self, key: i64) -> bool {
        if let Some(slot) = self.in_main(key) {
            self.bury(slot);
            self.settle();
            return true;
        }
        let found = self.in_delta(key);
        found.inspect(|&at| self.delta.swap_remove(at)).is_some()
    }

    fn update(&mut self, from: i64, to: i64) -> bool {
        if let Some(slot) = self.in_main(from) {
            let mut carried = std::mem::take(&mut self.carried);
            self.main.read(slot, &mut carried);
            self.bury(slot);
            self.insert(to, &carried);
            self.carried = carried;
            return true;
        }
        let found = self.in_delta(from);
        found.inspect(|&at| self.delta.keys[at] = to).is_some()
    }

    fn bytes(&self) -> usize {
        self.main.bytes() + self.delta.bytes()
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn check(&self) {
        assert!(self.main.keys.is_sorted());
        assert_eq!(self.gone.iter().map(|word| word.count_ones() as usize).sum::<usize>(), self.tombstones);
    }
}
