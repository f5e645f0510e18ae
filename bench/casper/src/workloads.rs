//! The six workloads of the HAP benchmark (section 7.1 of *Optimal Column Layout for Hybrid Workloads*), as
//! reproducible operations from a seed and as their histograms.
//!
//! | workload | queries | where |
//! |---|---|---|
//! | hybrid, point | Q1, Q4 | the newest keys |
//! | hybrid, range | Q3, Q4 | the newest keys |
//! | read-only, skewed | Q1, Q2 | the newest keys |
//! | read-only, uniform | Q1, Q2 | anywhere |
//! | update-only, skewed | Q4, Q5 | the newest keys |
//! | update-only, uniform | Q4, Q5 | anywhere |
//!
//! In each workload one operation in a hundred changes a key (Q6), from anywhere to anywhere.
//!
//! **Ambiguities of the text** and how they are resolved: the two queries are half each of the remaining
//! operations; "skewed accesses to more recent data" are those of which 80 % fall on the last 20 % of the
//! keys, and 80 % of these on the last 20 % of them ([`newest`]); ranges contain 1 % of the keys.

use entasis_layout::frequency::distribution::{newest, uniform};
use entasis_layout::frequency::{Frequency, Kind, Operation};
use entasis_layout::random::Random;

/// The share of updates of the key.
const UPDATES: f64 = 0.01;
/// If skewed, the share of operations that falls on that share of the places.
const SKEW: (f64, f64) = (0.8, 0.2);
/// The share of all rows that a range contains.
const RANGE: f64 = 0.01;

/// One of the six workloads. See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    HybridPoint,
    HybridRange,
    ReadSkewed,
    ReadUniform,
    UpdateSkewed,
    UpdateUniform,
}

/// The kind of an operation, without its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Query {
    Point,
    Range,
    Insert,
    Delete,
}

impl Workload {
    /// All six, in the order of the paper's figure 12.
    pub const ALL: [Workload; 6] = [
        Workload::HybridPoint,
        Workload::HybridRange,
        Workload::ReadSkewed,
        Workload::ReadUniform,
        Workload::UpdateSkewed,
        Workload::UpdateUniform,
    ];

    /// A name for output tables.
    pub fn name(self) -> &'static str {
        match self {
            Workload::HybridPoint => "hybrid, point, skewed",
            Workload::HybridRange => "hybrid, range, skewed",
            Workload::ReadSkewed => "read-only, skewed",
            Workload::ReadUniform => "read-only, uniform",
            Workload::UpdateSkewed => "update-only, skewed",
            Workload::UpdateUniform => "update-only, uniform",
        }
    }

    fn queries(self) -> [Query; 2] {
        match self {
            Workload::HybridPoint => [Query::Point, Query::Insert],
            Workload::HybridRange => [Query::Range, Query::Insert],
            Workload::ReadSkewed | Workload::ReadUniform => [Query::Point, Query::Range],
            Workload::UpdateSkewed | Workload::UpdateUniform => [Query::Insert, Query::Delete],
        }
    }

    fn is_skewed(self) -> bool {
        !matches!(self, Workload::ReadUniform | Workload::UpdateUniform)
    }

    /// An endless sequence of operations, on keys 0..`keys`.
    pub fn operations(self, keys: u64, seed: u64) -> impl Iterator<Item = Operation<u64>> {
        let mut random = Random::new(seed);
        // The inverse of `newest`.
        let power = SKEW.1.ln() / SKEW.0.ln();
        let key = move |place: f64| ((place * keys as f64) as u64).min(keys.saturating_sub(1));
        std::iter::from_fn(move || {
            if random.unit() < UPDATES {
                let (from, to) = (key(random.unit()), key(random.unit()));
                return Some(Operation::Update { from, to });
            }
            let query = self.queries()[random.below(2)];
            let unit = random.unit();
            let place = if self.is_skewed() { 1.0 - (1.0 - unit).powf(power) } else { unit };
            Some(match query {
                Query::Point => Operation::Point(key(place)),
                Query::Range => Operation::Range(key(place), key((place + RANGE).min(1.0))),
                Query::Insert => Operation::Insert(key(place)),
                Query::Delete => Operation::Delete(key(place)),
            })
        })
    }

    /// The expected histograms of `count` operations.
    pub fn frequency(self, blocks: usize, count: f64) -> Frequency {
        let mut frequency = Frequency::new(blocks);
        let skewed = newest(SKEW.0, SKEW.1);
        let places: &dyn Fn(f64) -> f64 = if self.is_skewed() { &skewed } else { &uniform };
        frequency.add_updates(count * UPDATES, &uniform, &uniform);
        for query in self.queries() {
            let count = count * (1.0 - UPDATES) / 2.0;
            match query {
                Query::Point => frequency.add_points(Kind::PointQuery, count, places),
                Query::Range => frequency.add_ranges(count, RANGE, places),
                Query::Insert => frequency.add_points(Kind::Insert, count, places),
                Query::Delete => frequency.add_points(Kind::Delete, count, places),
            }
        }
        frequency
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_layout::cost::{Access, Ghosted, Model, Paper};
    use entasis_layout::frequency::Bounds;
    use entasis_layout::solver::{Limits, Prices, solve};

    const BLOCKS: usize = 25;
    const COUNT: usize = 200_000;

    /// Single operations approximate the computed histograms.
    #[test]
    fn operations_come_to_the_histograms() {
        let keys: Vec<u64> = (0..50_000).collect();
        let bounds = Bounds::of_sorted(&keys, keys.len() / BLOCKS);
        for workload in Workload::ALL {
            let mut counted = Frequency::new(BLOCKS);
            for operation in workload.operations(50_000, 3).take(COUNT) {
                counted.count(bounds.locate(&operation), 1.0);
            }
            let computed = workload.frequency(BLOCKS, COUNT as f64);
            for kind in Kind::ALL {
                for (counted, computed) in counted.of(kind).iter().zip(computed.of(kind)) {
                    // Five standard errors, plus the error of rounding places to keys.
                    let error = 5.0 * computed.max(1.0).sqrt() + computed / 100.0;
                    assert!((counted - computed).abs() <= error, "{}: {kind:?}", workload.name());
                }
            }
        }
    }

    #[test]
    fn seeds_repeat() {
        let first = |seed: u64| Workload::HybridRange.operations(1000, seed).take(50).collect::<Vec<_>>();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    /// The best number of partitions for each workload.
    fn partitions(model: &dyn Model) -> [usize; 6] {
        Workload::ALL.map(|workload| {
            let terms = model.terms(&workload.frequency(244, 10_000.0));
            let prices = Prices::of(&terms).expect("finite terms");
            solve(&prices, &Limits::default()).expect("no limits").partitioning.partitions()
        })
    }

    /// What sections 2 and 7.3 say about layouts: reads favour many partitions, updates few.
    #[test]
    fn the_papers_model_balances_reads_and_updates() {
        let counts = partitions(&Paper { access: Access::OF_THE_PAPER });
        let [hybrid, _, read, read_anywhere, update, update_anywhere] = counts;
        assert!(update < hybrid && hybrid < read && update_anywhere < read_anywhere, "{counts:?}");
    }

    /// With ghosts, an insert costs what its slot has to travel: nothing where as many rows go as come.
    #[test]
    fn with_ghosts_balanced_workloads_favour_the_finest_partitions_and_growing_ones_do_not() {
        let [point, _, read, _, _, anywhere] = partitions(&Ghosted { access: Access::OF_THE_PAPER });
        assert_eq!((read, anywhere), (244, 244));
        assert!(point < 244, "{point}");
    }
}
