//! What all contestants can do: the six queries of the HAP benchmark on one table.

use crate::operations::Step;
use std::time::Duration;

/// What a structure has done so far, that its mechanism may be seen to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that came into a free slot of their own partition.
    pub ghosts: u64,
    /// Slots that were brought to a partition, or taken to the end, from another one.
    pub rippled: u64,
    /// Partitions that these went through.
    pub crossed: u64,
    /// Merges of a delta, and the time that they took.
    pub merges: u64,
    pub merging: Duration,
}

impl Counts {
    /// Adds what another structure has done.
    pub fn add(&mut self, other: Counts) {
        self.ghosts += other.ghosts;
        self.rippled += other.rippled;
        self.crossed += other.crossed;
        self.merges += other.merges;
        self.merging += other.merging;
    }

    /// What was done since an earlier moment.
    pub fn since(self, before: Counts) -> Counts {
        Counts {
            ghosts: self.ghosts - before.ghosts,
            rippled: self.rippled - before.rippled,
            crossed: self.crossed - before.crossed,
            merges: self.merges - before.merges,
            merging: self.merging - before.merging,
        }
    }
}

/// A table of a 64-bit key and 32-bit payload columns.
pub trait Store: Send {
    /// Q1: the sum of the columns of [`crate::operations::READ`] of one row; `None` if there is no such row.
    fn point(&mut self, key: i64) -> Option<i64>;
    /// Q2: the number of rows of a range, both ends included.
    fn count(&mut self, low: i64, high: i64) -> u64;
    /// Q3: the sum of the same columns over a range.
    fn sum(&mut self, low: i64, high: i64) -> i64;
    /// Q4: adds a row, whose key is new.
    fn insert(&mut self, key: i64, row: &[i32]);
    /// Q5: removes a row. False if there is none.
    fn delete(&mut self, key: i64) -> bool;
    /// Q6: changes a key to a new one. False if there is no such row.
    fn update(&mut self, from: i64, to: i64) -> bool;
    /// Bytes of memory for rows, ghosts included.
    fn bytes(&self) -> usize;
    /// What it has done so far, if it counts.
    fn counts(&self) -> Counts {
        Counts::default()
    }
    /// Panics if an invariant of the structure does not hold. For tests.
    fn check(&self) {}
}

/// Performs an operation and returns a number that depends on its answer. `row` is what an insertion adds.
pub fn perform(store: &mut dyn Store, step: Step, row: &[i32]) -> u64 {
    match step {
        Step::Point(key) => store.point(key).unwrap_or(-1) as u64,
        Step::Count(low, high) => store.count(low, high),
        Step::Sum(low, high) => store.sum(low, high) as u64,
        Step::Insert(key) => {
            store.insert(key, row);
            1
        }
        Step::Delete(key) => u64::from(store.delete(key)),
        Step::Update(from, to) => u64::from(store.update(from, to)),
    }
}

#[cfg(test)]
pub mod twin {
    //! The slow twin: keys in a map, each with the key that its row was inserted with.

    use super::{Store, perform};
    use crate::operations::{READ, Step, fill, key_of, value_of};
    use entasis_layout::random::Random;
    use std::collections::BTreeMap;

    /// The twin.
    pub struct Twin(pub BTreeMap<i64, i64>);

    fn read(origin: i64) -> i64 {
        READ.iter().map(|&column| i64::from(value_of(origin, column))).sum()
    }

    impl Store for Twin {
        fn point(&mut self, key: i64) -> Option<i64> {
            self.0.get(&key).map(|&origin| read(origin))
        }
        fn count(&mut self, low: i64, high: i64) -> u64 {
            self.0.range(low..=high).count() as u64
        }
        fn sum(&mut self, low: i64, high: i64) -> i64 {
            self.0.range(low..=high).map(|(_, &origin)| read(origin)).sum()
        }
        fn insert(&mut self, key: i64, _: &[i32]) {
            self.0.insert(key, key);
        }
        fn delete(&mut self, key: i64) -> bool {
            self.0.remove(&key).is_some()
        }
        fn update(&mut self, from: i64, to: i64) -> bool {
            let origin = self.0.remove(&from);
            origin.is_some_and(|origin| self.0.insert(to, origin).is_none())
        }
        fn bytes(&self) -> usize {
            0
        }
    }

    /// Any operation, on keys that are there and on keys that are not.
    fn random_step(random: &mut Random, twin: &Twin, rows: u64) -> Step {
        let end = key_of(rows) as usize;
        let mut any = || random.below(end + end / 8) as i64;
        let (a, b) = (any(), any());
        let there = |key: i64| twin.0.range(key..).next().map_or(key, |entry| *entry.0);
        let new = |key: i64| if twin.0.contains_key(&key) { None } else { Some(key) };
        match random.below(8) {
            0 => Step::Point(there(a)),
            1 => Step::Point(a),
            2 => Step::Count(a.min(b), a.max(b)),
            3 => Step::Sum(a.min(b), a.max(b)),
            4 => Step::Delete(if random.below(8) == 0 { a } else { there(a) }),
            5 => new(b).map_or(Step::Point(b), |b| Step::Update(there(a), b)),
            _ => new(a).map_or(Step::Point(a), Step::Insert),
        }
    }

    /// Compares a store of `rows` loaded rows with the twin under random operations.
    pub fn compare(name: &str, store: &mut dyn Store, rows: u64, payloads: usize, seed: u64) {
        let mut twin = Twin((0..rows).map(|place| (key_of(place), key_of(place))).collect());
        let mut random = Random::new(seed);
        let mut row = vec![0; payloads];
        for number in 0..4000 {
            // In phases, most operations fall on an eighth of the keys, so that ghosts run out there.
            let step = random_step(&mut random, &twin, if number / 500 % 2 == 0 { rows } else { rows / 8 });
            if let Step::Insert(key) = step {
                fill(key, &mut row);
            }
            let (found, expected) = (perform(store, step, &row), perform(&mut twin, step, &row));
            assert_eq!(found, expected, "{name}: operation {number}, {step:?}");
            if number % 64 == 0 {
                store.check();
            }
        }
        assert_eq!(store.count(i64::MIN, i64::MAX), twin.0.len() as u64, "{name}");
        assert_eq!(store.sum(i64::MIN, i64::MAX), twin.sum(i64::MIN, i64::MAX), "{name}");
    }
}
