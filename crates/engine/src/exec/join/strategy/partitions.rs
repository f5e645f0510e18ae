//! Whether a finished build side that fits into memory is joined by partitions in memory.
//!
//! Splitting both sides costs every row a copy or two; it saves accesses to memory that no cache holds. So it
//! pays off if there are many of these (the table goes by hash and is far larger than the caches, or keys
//! have several rows) and the copies are small: narrow rows, few probe rows per build row, most of which
//! match. These are the conditions of Bandle, Giceva and Neumann, *To Partition, or Not to Partition*, SIGMOD
//! 2021, table 4; the figures are from measurements (`docs/design/joins-measured.md`).

use crate::exec::join::table::Repetition;
use crate::exec::join::tuning::{
    DISTINCT_KEYS, DISTINCT_PER_KEY, FEW_COME_OUT, Gates, MOST_SKEW, RADIX_MEMORY_PART, RADIX_ROWS,
    REPEATED_KEYS, WIDE_PAYLOAD,
};
use entasis_vector::PhysicalType;
use std::fmt;

/// Bytes of a value that is copied. Text counts as wide, however short: its bytes may have to be copied too.
pub(crate) fn width(physical: PhysicalType) -> usize {
    match physical {
        PhysicalType::Str => WIDE_PAYLOAD,
        other => other.width(),
    }
}

/// True if `bytes` of payload per row should stay where the first pass has put them, given the share of rows
/// expected to come out of the join.
// PERF: with 20 million rows of which 5 % come out, 64 bytes take 0.81 s instead of 1.00, 32 bytes 0.60
// instead of 0.69; with 25 %, the times are equal; with all, they are a sixth longer: gathering a row costs
// more than copying it twice in order.
pub(crate) fn leaves_payload(bytes: usize, comes_out: f64) -> bool {
    bytes >= WIDE_PAYLOAD && comes_out <= FEW_COME_OUT
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

impl Gates {
    fn are_passed(&self, sides: &Sides) -> bool {
        let (rows, width, bytes) = sides.build;
        let (probe_rows, probe_width) = sides.probe;
        let ratio = probe_rows / rows.max(1) as f64;
        let copied = (rows * width) as f64 + probe_rows * probe_width as f64;
        bytes / self.large >= sides.partition
            && width <= self.narrow.0
            && probe_width <= self.narrow.1
            && (self.ratio.0..self.ratio.1).contains(&ratio)
            && sides.matching >= self.matching
            && copied <= (sides.free / RADIX_MEMORY_PART) as f64
    }
}

/// True if partitions pay off for some keys, so that the keys are worth a look.
pub(crate) fn may_pay(sides: &Sides) -> bool {
    DISTINCT_KEYS.are_passed(sides) || REPEATED_KEYS.are_passed(sides)
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
    let gates = if is_repeated { REPEATED_KEYS } else { DISTINCT_KEYS };
    if keys.per_key < gates.per_key
        || !gates.are_passed(sides)
        || is_repeated && keys.most > worker_share(workers)
    {
        return None;
    }
    Some(PartitionReason { sides: *sides, per_key: is_repeated.then_some(keys.per_key) })
}

/// True if partitions in memory pay off for distinct build keys that could be read twice instead.
// PERF: keys of 4 and 8 bytes far from each other, 8 and 16 million rows and as many probe rows take 0.93 to
// 1.2 of the time of a concise hash table in two passes, 32 and 64 million 0.76 and 0.92; with twice as many
// probe rows 0.84 to 0.93, with four times as many 0.78 to 0.99. They need three times the memory.
pub(crate) fn pays_beside_two_readings(sides: &Sides, workers: usize) -> bool {
    let rows = sides.build.0;
    let least = if rows >= RADIX_ROWS { 1.0 } else { 2.0 };
    let distinct = Repetition { per_key: 1.0, most: 0.0 };
    sides.probe.0 >= least * rows as f64 && reason(sides, distinct, workers).is_some()
}

/// The share of the rows that falls to one worker.
fn worker_share(workers: usize) -> f64 {
    1.0 / workers.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_payload_of_rows_of_which_few_come_out_stays_behind() {
        assert!(leaves_payload(32, 0.05));
        assert!(!leaves_payload(16, 0.05));
        assert!(!leaves_payload(64, 0.25));
    }

    #[test]
    fn skew_is_the_exponent_or_one_key_that_has_more_than_a_workers_share() {
        assert!(!is_skewed(1.0, 0.06, 16));
        assert!(is_skewed(1.0, 0.07, 16));
        assert!(is_skewed(1.5, 0.3, 2));
        assert!(!is_skewed(0.0, 1.0, 0));
    }

    #[test]
    fn each_condition_decides() {
        let good = Sides {
            build: (10_000_000, 8, 400 << 20),
            probe: (40e6, 8),
            matching: 1.0,
            partition: 1 << 20,
            free: 16 << 30,
        };
        let distinct = Repetition { per_key: 1.0, most: 0.001 };
        let reason = |sides: &Sides| reason(sides, distinct, 2);
        assert!(
            reason(&good)
                .unwrap()
                .to_string()
                .starts_with("10000000 build rows of 8 bytes, 419430400 bytes with a hash table; ")
        );
        assert!(reason(&Sides { probe: (40e6, 12), ..good }).is_some());
        for bad in [
            Sides { build: (10_000_000, 8, 100 << 20), ..good },
            Sides { build: (10_000_000, 16, 400 << 20), ..good },
            Sides { probe: (40e6, 16), ..good },
            Sides { probe: (9e6, 8), ..good },
            Sides { probe: (101e6, 8), ..good },
            Sides { matching: 0.3, ..good },
            Sides { partition: 4 << 20, ..good },
            Sides { free: 1 << 30, ..good },
        ] {
            assert!(reason(&bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn what_could_be_read_twice_asks_for_more_probe_rows_unless_it_is_very_large() {
        let pays = |rows: usize, probes: f64| {
            let sides = Sides {
                build: (rows, 8, rows * 18),
                probe: (probes * rows as f64, 8),
                matching: 1.0,
                partition: 1 << 20,
                free: 16 << 30,
            };
            pays_beside_two_readings(&sides, 2)
        };
        assert_eq!(
            [1.0, 1.9, 2.0, 9.0, 11.0].map(|probes| pays(10_000_000, probes)),
            [false, false, true, true, false]
        );
        assert_eq!([0.9, 1.0, 2.0].map(|probes| pays(30_000_000, probes)), [false, true, true]);
        assert!(pays(RADIX_ROWS, 1.0) && !pays(RADIX_ROWS - 1, 1.0));
        // The other gates still hold: a small build side does not profit from partitions.
        assert!(!pays(1_000_000, 4.0));
    }

    #[test]
    fn each_condition_decides_where_keys_are_repeated() {
        let good = Sides {
            build: (2_000_000, 16, 48 << 20),
            probe: (4e6, 24),
            matching: 0.3,
            partition: 1 << 20,
            free: 16 << 30,
        };
        let ten_times = Repetition { per_key: 10.0, most: 0.4 };
        assert!(
            reason(&good, ten_times, 2).unwrap().to_string().starts_with(
                "2000000 build rows of 16 bytes, 10.0 per key, 50331648 bytes with a hash table; "
            )
        );
        assert!(may_pay(&good));
        for per_key in [1.0, 4.0] {
            assert!(reason(&good, Repetition { per_key, ..ten_times }, 2).is_none());
        }
        assert!(reason(&good, ten_times, 3).is_none(), "one key has more than a worker's share");
        for bad in [
            Sides { build: (2_000_000, 16, 15 << 20), ..good },
            Sides { build: (2_000_000, 24, 48 << 20), ..good },
            Sides { probe: (4e6, 32), ..good },
            Sides { probe: (4e5, 24), ..good },
            Sides { probe: (21e6, 24), ..good },
            Sides { matching: 0.2, ..good },
            Sides { free: 256 << 20, ..good },
        ] {
            assert!(!may_pay(&bad) && reason(&bad, ten_times, 2).is_none(), "{bad:?}");
        }
    }
}
