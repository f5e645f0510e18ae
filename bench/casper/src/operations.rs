//! The operations of the HAP benchmark on concrete keys, made before anything is timed.
//!
//! Loaded rows have the keys [`key_of`] 0, 1, 2, …, which are 2^20 apart, so that there is room for new keys
//! between any two. An operation of [`crate::workloads`] names a place among the rows: a query, a
//! deletion or a change of a key takes the nearest key from there on that is in the table at that moment, and
//! an insertion a new key between this row and the next one. So every operation finds what it is about, in
//! every layout.
//!
//! The payload of a row is computed from the key that it was inserted with, so a row can be recognized.

use crate::workloads::Workload;
use entasis_layout::frequency::{Frequency, Kind, Operation};
use entasis_layout::random::Random;
use std::collections::BTreeSet;

/// The columns that a query reads: k of the paper.
pub const READ: [usize; 4] = [0, 4, 8, 12];
/// Keys of adjacent loaded rows are this far apart, as a power of two.
const GAP: u32 = 20;

/// The key of the row that is loaded at a place.
pub fn key_of(place: u64) -> i64 {
    (place << GAP) as i64
}

/// A value of the payload of the row that was inserted with a key.
pub fn value_of(key: i64, column: usize) -> i32 {
    let mixed = (key as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(column as u32 * 7);
    (mixed >> 12) as i32 & 0xf_ffff
}

/// Fills the payload of the row that is inserted with a key.
pub fn fill(key: i64, row: &mut [i32]) {
    row.iter_mut().enumerate().for_each(|(column, value)| *value = value_of(key, column));
}

/// An operation on concrete keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Q1: the sum of some columns of one row.
    Point(i64),
    /// Q2: the number of rows of a range, both ends included.
    Count(i64, i64),
    /// Q3: the sum of some columns of the rows of a range.
    Sum(i64, i64),
    /// Q4.
    Insert(i64),
    /// Q5.
    Delete(i64),
    /// Q6.
    Update(i64, i64),
}

impl Step {
    /// The names of the queries, by [`Step::query`].
    pub const QUERIES: [&str; 6] = ["Q1 point", "Q2 count", "Q3 sum", "Q4 insert", "Q5 delete", "Q6 update"];

    /// The index of the query.
    pub fn query(self) -> usize {
        match self {
            Step::Point(_) => 0,
            Step::Count(..) => 1,
            Step::Sum(..) => 2,
            Step::Insert(_) => 3,
            Step::Delete(_) => 4,
            Step::Update(..) => 5,
        }
    }
}

/// The keys in the table, while operations are made.
pub struct Keys {
    live: BTreeSet<i64>,
    random: Random,
}

impl Keys {
    /// Those of `rows` loaded rows.
    pub fn loaded(rows: u64) -> Keys {
        Keys { live: (0..rows).map(key_of).collect(), random: Random::new(11) }
    }

    /// The keys that are in the table at this moment, in order.
    pub fn now(&self) -> Vec<i64> {
        self.live.iter().copied().collect()
    }

    /// The nearest key from a place on, or before it if there is none.
    fn near(&self, place: u64) -> i64 {
        let key = key_of(place);
        let next = self.live.range(key..).next().or_else(|| self.live.range(..key).next_back());
        *next.expect("the table has rows")
    }

    /// A key behind a place that is not in the table.
    fn new_key(&mut self, place: u64) -> i64 {
        loop {
            let key = key_of(place) + 1 + self.random.below((1 << GAP) - 1) as i64;
            if self.live.insert(key) {
                return key;
            }
        }
    }

    /// An operation on the keys of this moment, which are those after it from then on. Ranges are sums or
    /// counts.
    pub fn step(&mut self, operation: Operation<u64>, sums: bool) -> Step {
        match operation {
            Operation::Point(place) => Step::Point(self.near(place)),
            Operation::Range(low, high) if sums => Step::Sum(key_of(low), key_of(high)),
            Operation::Range(low, high) => Step::Count(key_of(low), key_of(high)),
            Operation::Insert(place) => Step::Insert(self.new_key(place)),
            Operation::Delete(place) => {
                let key = self.near(place);
                self.live.remove(&key);
                Step::Delete(key)
            }
            Operation::Update { from, to } => {
                let from = self.near(from);
                let to = self.new_key(to);
                self.live.remove(&from);
                Step::Update(from, to)
            }
        }
    }
}

/// `count` operations on a table of `rows` loaded rows.
pub fn steps(
    operations: impl Iterator<Item = Operation<u64>>,
    rows: u64,
    count: usize,
    sums: bool,
) -> Vec<Step> {
    let mut keys = Keys::loaded(rows);
    operations.take(count).map(|operation| keys.step(operation, sums)).collect()
}

/// `count` operations of a workload.
pub fn steps_of(workload: Workload, rows: u64, count: usize, seed: u64) -> Vec<Step> {
    steps(workload.operations(rows, seed), rows, count, workload == Workload::HybridRange)
}

/// Point queries and inserts that are distributed as two histograms say.
pub fn drawn(frequency: &Frequency, rows: u64, seed: u64) -> impl Iterator<Item = Operation<u64>> {
    let mut random = Random::new(seed);
    let width = rows as f64 / frequency.blocks() as f64;
    let mut bins: Vec<(f64, bool, usize)> = Vec::new();
    let mut total = 0.0;
    for (kind, is_point) in [(Kind::PointQuery, true), (Kind::Insert, false)] {
        for (block, count) in frequency.of(kind).iter().enumerate() {
            total += count;
            bins.push((total, is_point, block));
        }
    }
    std::iter::from_fn(move || {
        let at = random.unit() * total;
        let bin = bins.partition_point(|bin| bin.0 <= at).min(bins.len() - 1);
        let (_, is_point, block) = bins[bin];
        let place = (((block as f64 + random.unit()) * width) as u64).min(rows - 1);
        Some(if is_point { Operation::Point(place) } else { Operation::Insert(place) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the module says: operations find their keys, and new keys are new.
    #[test]
    fn operations_find_what_they_are_about() {
        for workload in Workload::ALL {
            let mut live: BTreeSet<i64> = (0..1000).map(key_of).collect();
            for step in steps_of(workload, 1000, 3000, 5) {
                match step {
                    Step::Point(key) => assert!(live.contains(&key)),
                    Step::Count(low, high) | Step::Sum(low, high) => assert!(low <= high),
                    Step::Insert(key) => assert!(live.insert(key)),
                    Step::Delete(key) => assert!(live.remove(&key)),
                    Step::Update(from, to) => assert!(live.remove(&from) && live.insert(to)),
                }
            }
        }
    }

    #[test]
    fn operations_are_drawn_as_histograms_say() {
        let mut frequency = Frequency::new(4);
        frequency.of_mut(Kind::PointQuery)[3] = 30.0;
        frequency.of_mut(Kind::Insert)[0] = 10.0;
        let drawn: Vec<_> = drawn(&frequency, 4000, 1).take(4000).collect();
        let points = drawn.iter().filter(|op| matches!(op, Operation::Point(3000..4000))).count();
        let inserts = drawn.iter().filter(|op| matches!(op, Operation::Insert(0..1000))).count();
        assert_eq!(points + inserts, 4000);
        assert!((2850..3150).contains(&points), "{points}");
    }
}
