//! A sorted column: found by binary search; all rows behind an insertion or a deletion move by one.

use super::rows::Rows;
use crate::store::Store;
use std::ops::Range;

/// The column.
pub struct Sorted(pub Rows);

/// The slots of the keys within bounds of sorted keys.
pub fn slots_of(keys: &[i64], low: i64, high: i64) -> Range<usize> {
    let start = keys.partition_point(|key| *key < low);
    start..start.max(keys.partition_point(|key| *key <= high))
}

/// Moves what is at `from` to `to`, and what is between by one.
fn carry<T: Copy>(values: &mut [T], from: usize, to: usize) {
    let value = values[from];
    if from < to {
        values.copy_within(from + 1..=to, from);
    } else {
        values.copy_within(to..from, to + 1);
    }
    values[to] = value;
}

impl Store for Sorted {
    fn point(&mut self, key: i64) -> Option<i64> {
        self.0.keys.binary_search(&key).ok().map(|slot| self.0.value(slot))
    }

    fn count(&mut self, low: i64, high: i64) -> u64 {
        slots_of(&self.0.keys, low, high).len() as u64
    }

    fn sum(&mut self, low: i64, high: i64) -> i64 {
        self.0.total(slots_of(&self.0.keys, low, high))
    }

    fn insert(&mut self, key: i64, row: &[i32]) {
        let slot = self.0.keys.partition_point(|other| *other < key);
        self.0.keys.insert(slot, key);
        self.0.payload.iter_mut().zip(row).for_each(|(column, value)| column.insert(slot, *value));
    }

    fn delete(&mut self, key: i64) -> bool {
        let Ok(slot) = self.0.keys.binary_search(&key) else { return false };
        self.0.keys.remove(slot);
        for column in &mut self.0.payload {
            column.remove(slot);
        }
        true
    }

    fn update(&mut self, from: i64, to: i64) -> bool {
        let Ok(source) = self.0.keys.binary_search(&from) else { return false };
        let behind = self.0.keys.partition_point(|other| *other < to);
        let target = if behind > source { behind - 1 } else { behind };
        carry(&mut self.0.keys, source, target);
        self.0.keys[target] = to;
        self.0.payload.iter_mut().for_each(|column| carry(column, source, target));
        true
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn check(&self) {
        assert!(self.0.keys.is_sorted());
    }
}
