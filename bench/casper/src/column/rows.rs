//! Plain arrays: a key column and payload columns, of which slot i of each is a row.

use super::loops;
use super::staggered::Staggered;
use crate::operations::READ;
use std::ops::Range;

/// Rows in plain arrays.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    pub keys: Staggered<i64>,
    pub payload: Vec<Staggered<i32>>,
}

impl Rows {
    /// No rows, with this many payload columns.
    pub fn new(payloads: usize) -> Rows {
        Rows::with_capacity(payloads, 0)
    }

    /// The same, with room for so many rows.
    pub fn with_capacity(payloads: usize, rows: usize) -> Rows {
        let payload = (1..=payloads).map(|number| Staggered::new(number, rows));
        Rows { keys: Staggered::new(0, rows), payload: payload.collect() }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.keys.len() * (8 + 4 * self.payload.len())
    }

    /// Makes it `slots` long.
    pub fn resize(&mut self, slots: usize) {
        self.keys.resize(slots);
        self.payload.iter_mut().for_each(|column| column.resize(slots));
    }

    /// Appends a row.
    pub fn push(&mut self, key: i64, row: &[i32]) {
        self.keys.push(key);
        self.payload.iter_mut().zip(row).for_each(|(column, value)| column.push(*value));
    }

    /// Removes a row; the last one takes its place.
    pub fn swap_remove(&mut self, slot: usize) {
        self.keys.swap_remove(slot);
        for column in &mut self.payload {
            column.swap_remove(slot);
        }
    }

    /// Copies a row from one slot to another.
    pub fn copy(&mut self, from: usize, to: usize) {
        self.keys[to] = self.keys[from];
        self.payload.iter_mut().for_each(|column| column[to] = column[from]);
    }

    /// Writes a row into a slot.
    pub fn write(&mut self, slot: usize, key: i64, row: &[i32]) {
        self.keys[slot] = key;
        self.payload.iter_mut().zip(row).for_each(|(column, value)| column[slot] = *value);
    }

    /// Reads the payload of a slot.
    pub fn read(&self, slot: usize, row: &mut Vec<i32>) {
        row.clear();
        row.extend(self.payload.iter().map(|column| column[slot]));
    }

    /// The sum of the columns that queries read, of one slot.
    pub fn value(&self, slot: usize) -> i64 {
        READ.iter().map(|&column| i64::from(self.payload[column][slot])).sum()
    }

    /// The sum of these columns over slots all of which are wanted.
    pub fn total(&self, slots: Range<usize>) -> i64 {
        READ.iter().map(|&column| loops::total(&self.payload[column][slots.clone()])).sum()
    }

    /// The slot of a key among `slots`, all of which are compared.
    pub fn find(&self, slots: Range<usize>, key: i64) -> Option<usize> {
        let start = slots.start;
        loops::find(&self.keys[slots], key).map(|at| start + at)
    }

    /// The number of keys within bounds among `slots`.
    pub fn count(&self, slots: Range<usize>, low: i64, high: i64) -> u64 {
        loops::count(&self.keys[slots], low, high)
    }

    /// The sum of the columns that queries read over the rows of `slots` with keys within bounds.
    pub fn sum(&self, slots: Range<usize>, low: i64, high: i64) -> i64 {
        let of = |column: usize| {
            loops::sum(&self.keys[slots.clone()], &self.payload[column][slots.clone()], low, high)
        };
        READ.iter().map(|&column| of(column)).sum()
    }
}
