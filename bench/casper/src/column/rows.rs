//! Plain arrays: a key column and payload columns, of which slot i of each is a row; and the loops over them.
//!
//! Loops read all that they are given, as the paper's do, and have no branch within.

use crate::operations::READ;
use entasis_vector::simd::widest;
use std::ops::Range;

/// Rows in plain arrays.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    pub keys: Vec<i64>,
    pub payload: Vec<Vec<i32>>,
}

impl Rows {
    /// No rows, with this many payload columns.
    pub fn new(payloads: usize) -> Rows {
        Rows { keys: Vec::new(), payload: vec![Vec::new(); payloads] }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.keys.len() * (8 + 4 * self.payload.len())
    }

    /// Makes it `slots` long.
    pub fn resize(&mut self, slots: usize) {
        self.keys.resize(slots, 0);
        self.payload.iter_mut().for_each(|column| column.resize(slots, 0));
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
        READ.iter().map(|&column| total(&self.payload[column][slots.clone()])).sum()
    }

    /// The slot of a key among `slots`, all of which are compared.
    pub fn find(&self, slots: Range<usize>, key: i64) -> Option<usize> {
        let start = slots.start;
        find(&self.keys[slots], key).map(|at| start + at)
    }

    /// The number of keys within bounds among `slots`.
    pub fn count(&self, slots: Range<usize>, low: i64, high: i64) -> u64 {
        let keys = &self.keys[slots];
        widest(|| keys.iter().map(|&key| u64::from((low <= key) & (key <= high))).sum())
    }

    /// The sum of the columns that queries read over the rows of `slots` with keys within bounds.
    pub fn sum(&self, slots: Range<usize>, low: i64, high: i64) -> i64 {
        let of = |column: usize| -> i64 {
            let (keys, values) = (&self.keys[slots.clone()], &self.payload[column][slots.clone()]);
            let pairs = || keys.iter().zip(values);
            widest(|| pairs().map(|(&k, &v)| if (low <= k) & (k <= high) { i64::from(v) } else { 0 }).sum())
        };
        READ.iter().map(|&column| of(column)).sum()
    }
}

fn total(values: &[i32]) -> i64 {
    widest(|| values.iter().map(|&value| i64::from(value)).sum())
}

/// The last position of `key`. All keys are compared.
fn find(keys: &[i64], key: i64) -> Option<usize> {
    let at = widest(|| {
        let mut at = -1i64;
        for (number, &other) in keys.iter().enumerate() {
            at = if other == key { number as i64 } else { at };
        }
        at
    });
    usize::try_from(at).ok()
}
