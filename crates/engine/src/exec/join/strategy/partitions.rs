//! Whether a finished build side that fits into memory is joined by partitions in memory.
//!
//! Splitting both sides costs every row a copy or two; it saves accesses to memory that no cache holds. So it
//! pays off if there are many of these (the table goes by hash and is far larger than the caches, or keys
//! have several rows) and the copies are small: narrow rows, few probe rows per build row. This is the rule
//! of Bandle, Giceva and Neumann, *To Partition, or Not to Partition*, SIGMOD 2021, Table 4, with one
//! addition: where keys are repeated, smaller build sides suffice. Which rows match is left to join filters,
//! as there (decision 55).

use crate::exec::join::table::Repetition;
use crate::exec::join::tuning::{
    DISTINCT_PER_KEY, LARGE, MOST_SKEW, MOST_TIMES, NARROW, RADIX_MEMORY_PART, TEXT_WIDTH,
};
use entasis_vector::PhysicalType;
use std::fmt;

/// Bytes of a value that is copied. Text counts as wide, however short: its bytes may have to be copied too.
pub(crate) fn width(physical: PhysicalType) -> usize {
    match physical {
        PhysicalType::Str => TEXT_WIDTH,
        other => other.width(),
    }
}

/// True if the probe keys are too skewed for `workers`: their Zipf exponent, and `most`, the share of the
/// most frequent key.
// PERF: 10 million build and 40 million probe rows of 16 bytes take 0.81 s with an exponent of 0.5, 0.84 with
// 0.75, 0.85 with 1, 0.99 with 1.25 and 1.15 with 1.5; with a concise hash table 1.12, 1.16, 1.26, 1.08 and
// 1.03. A partition is one worker's work.
pub(crate) fn is_skewed(exponent: f64, most: f64, workers: usize) -> bool {
    exponent > MOST_SKEW || most > worker_share(workers)
}

/// What is known when the build side has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides {
    /// Rows of the build side, bytes of one, and bytes of all with their table.
    pub build: (usize, usize, usize),
    /// Expected rows of the probe side, and bytes of one.
    pub probe: (f64, usize),
    /// The share of the probe rows that is expected to match.
    pub matching: f64,
    /// Bytes that a partition should have.
    pub partition: usize,
    /// Bytes of memory that are free.
    pub free: usize,
}

impl Sides {
    /// True if the sides are such that partitions pay off for keys that are repeated, or that are not.
    fn suit(&self, is_repeated: bool) -> bool {
        let (rows, width, bytes) = self.build;
        let (probe_rows, probe_width) = self.probe;
        let rows_times = (probe_rows / rows.max(1) as f64).max(rows as f64 / probe_rows);
        let copied = (rows * width) as f64 + probe_rows * probe_width as f64;
        bytes / if is_repeated { LARGE.1 } else { LARGE.0 } >= self.partition
            && width <= NARROW.0
            && probe_width <= NARROW.1
            && rows_times < MOST_TIMES
            && copied <= (self.free / RADIX_MEMORY_PART) as f64
    }
}

/// True if partitions pay off for some keys, so that the keys are worth a look.
pub(crate) fn may_pay(sides: &Sides) -> bool {
    sides.suit(true)
}

/// Why a join is partitioned in memory: the sizes of its sides, and how often build keys are repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartitionReason {
    sides: Sides,
    /// Rows per key, if keys are repeated.
    per_key: Option<f64>,
}

impl fmt::Display for PartitionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, width, bytes) = self.sides.build;
        let (probe_rows, probe_width) = self.sides.probe;
        write!(f, "{rows} build rows of {width} bytes")?;
        if let Some(per_key) = self.per_key {
            write!(f, ", {per_key:.1} per key")?;
        }
        let matching = 100.0 * self.sides.matching;
        write!(
            f,
            ", {bytes} bytes with a hash table; {probe_rows:.0} probe rows of {probe_width} bytes expected, {matching:.0} % matching"
        )
    }
}

/// Why a join with these build keys is partitioned; `None` if it is not.
pub(crate) fn reason(sides: &Sides, keys: Repetition, workers: usize) -> Option<PartitionReason> {
    let is_repeated = keys.per_key > DISTINCT_PER_KEY;
    if !sides.suit(is_repeated) || is_repeated && keys.most > worker_share(workers) {
        return None;
    }
    Some(PartitionReason { sides: *sides, per_key: is_repeated.then_some(keys.per_key) })
}

/// True if partitions in memory pay off for distinct build keys that could be read twice instead.
pub(crate) fn pays_beside_two_readings(sides: &Sides) -> bool {
    sides.suit(false)
}

/// The share of the rows that falls to one worker.
fn worker_share(workers: usize) -> f64 {
    1.0 / workers.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_the_exponent_or_one_key_that_has_more_than_a_workers_share() {
        assert!(!is_skewed(1.0, 0.06, 16));
        assert!(is_skewed(1.0, 0.07, 16));
        assert!(is_skewed(1.5, 0.3, 2));
        assert!(!is_skewed(0.0, 1.0, 0));
    }

    /// 10 M build rows with 40 M probe rows, which partitions suit.
    const GOOD: Sides = Sides {
        build: (10_000_000, 16, 800 << 20),
        probe: (40e6, 24),
        partition: 1 << 20,
        free: 16 << 30,
        matching: 1.0,
    };
    const DISTINCT: Repetition = Repetition { per_key: 1.0, most: 0.001 };
    const REPEATED: Repetition = Repetition { per_key: 3.0, most: 0.4 };

    #[test]
    fn each_condition_decides() {
        let begins = |keys, text: &str| reason(&GOOD, keys, 2).unwrap().to_string().starts_with(text);
        assert!(begins(DISTINCT, "10000000 build rows of 16 bytes, 838860800 bytes with a hash table; "));
        assert!(begins(REPEATED, "10000000 build rows of 16 bytes, 3.0 per key, 838860800 bytes with"));
        for good in [
            Sides { build: (10_000_000, 24, 512 << 20), ..GOOD },
            Sides { probe: (40e6, 32), ..GOOD },
            Sides { probe: (1.1e6, 24), ..GOOD },
            Sides { probe: (99e6, 24), ..GOOD },
            Sides { matching: 0.1, ..GOOD },
        ] {
            for keys in [DISTINCT, REPEATED] {
                assert!(reason(&good, keys, 2).is_some(), "{good:?}");
            }
            assert!(may_pay(&good) && pays_beside_two_readings(&good));
        }
        for bad in [
            Sides { build: (10_000_000, 16, 15 << 20), ..GOOD },
            Sides { build: (10_000_000, 32, 800 << 20), ..GOOD },
            Sides { probe: (40e6, 36), ..GOOD },
            Sides { probe: (100e6, 24), ..GOOD },
            Sides { probe: (1e6, 24), ..GOOD },
            Sides { probe: (0.0, 24), ..GOOD },
            Sides { partition: 60 << 20, ..GOOD },
            Sides { free: 1 << 30, ..GOOD },
        ] {
            for keys in [DISTINCT, REPEATED] {
                assert!(reason(&bad, keys, 2).is_none(), "{bad:?}");
            }
            assert!(!may_pay(&bad) && !pays_beside_two_readings(&bad), "{bad:?}");
        }
    }

    #[test]
    fn repeated_keys_profit_earlier_unless_one_has_more_than_a_workers_share() {
        let small = Sides { build: (2_000_000, 16, 511 << 20), probe: (4e6, 24), ..GOOD };
        assert!(may_pay(&small) && reason(&small, REPEATED, 2).is_some());
        assert!(reason(&small, DISTINCT, 2).is_none() && !pays_beside_two_readings(&small));
        assert!(reason(&small, REPEATED, 3).is_none(), "one key has more than a worker's share");
    }
}
