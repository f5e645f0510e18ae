//! Whether a finished build side that fits into memory is joined by partitions there.
//!
//! Splitting both sides costs every row a copy or two; what it saves are accesses to memory that no cache holds. So it pays
//! if there are many of these, which is where the table goes by hash and is far larger than the caches, and if the copies are
//! small: narrow rows, not many probe rows for each build row, most of which match. These are the conditions of Bandle, Giceva and
//! Neumann, *To Partition, or Not to Partition*, SIGMOD 2021, table 4; the figures are from measurements
//! (`docs/design/joins.md`).

use entasis_vector::PhysicalType;

/// Partitions of full size that the build rows and their table must have.
pub(crate) const LARGE: usize = 128;
/// Bytes of a row of the build side: a key and a number, of four bytes each.
// PERF: 10 to 40 million build rows, ratios of 1 to 10: rows of 4 and 4 bytes take 0.65 to 0.98 of what a concise hash table takes, those of 8 and 8
// bytes 0.85 to 1.02, for three times the memory, and 1.7 times as long where all of it is new to the process.
const NARROW: usize = 8;
/// The same of the probe side: a key and two numbers.
const NARROW_PROBE: usize = 12;
/// Probe rows for each build row: fewer, more.
const RATIO: (f64, f64) = (1.0, 10.0);
/// Share of the probe rows that match.
const MATCHING: f64 = 0.5;
/// The exponent of Zipf's law by which keys of the probe side are.
const SKEW: f64 = 1.35;
/// Bytes of payload that a second pass leaves behind,
const WIDE: usize = 32;
/// if no larger share of the rows comes out.
const FEW: f64 = 0.1;
/// The part of the free memory that both sides may have.
const MEMORY_PART: usize = 4;

/// Bytes of a value that is copied; a text is not narrow, however short: its bytes may have to be copied too.
pub(crate) fn width(physical: PhysicalType) -> usize {
    match physical {
        PhysicalType::Str => WIDE,
        other => other.width(),
    }
}

/// True if payload of so many bytes a row should stay where the first pass has put it, this share of the rows being expected to come
/// out of the join.
// PERF: with 20 million rows of which 5 % come out, 64 bytes take 0.81 s instead of 1.00, 32 bytes 0.60 instead of 0.69; if 25 % do, as
// long; if all do, a sixth longer: a row that is gathered costs more than one that is copied twice in order.
pub(crate) fn leaves_payload(bytes: usize, comes_out: f64) -> bool {
    bytes >= WIDE && comes_out <= FEW
}

/// True if the keys of the probe side, by Zipf's law with this exponent, of which `most` is the share of the most frequent one, are too
/// skewed for so many workers.
// PERF: 10 million build and 40 million probe rows of 16 bytes take 0.81 s with an exponent of 0.5, 0.84 with 0.75, 0.85 with 1, 0.99 with
// 1.25 and 1.15 with 1.5; with a concise hash table 1.12, 1.16, 1.26, 1.08 and 1.03. A partition is one worker's work.
pub(crate) fn is_skewed(exponent: f64, most: f64, workers: usize) -> bool {
    exponent > SKEW || most > 1.0 / workers.max(1) as f64
}

/// What is known when the build side has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides {
    /// Rows of the build side, bytes of one, and of all with their table.
    pub build: (usize, usize, usize),
    /// Rows that are expected on the probe side, bytes of one.
    pub probe: (f64, usize),
    /// The share of them that is expected to match.
    pub matching: f64,
    /// Bytes that a partition should have.
    pub partition: usize,
    /// Bytes of memory that are free.
    pub free: usize,
}

/// Why the join is by partitions; `None` if it is not.
pub(crate) fn reason(sides: &Sides) -> Option<String> {
    let (rows, width, bytes) = sides.build;
    let (probe_rows, probe_width) = sides.probe;
    let ratio = probe_rows / rows.max(1) as f64;
    let copied = (rows * width) as f64 + probe_rows * probe_width as f64;
    let pays = bytes / LARGE >= sides.partition
        && width <= NARROW
        && probe_width <= NARROW_PROBE
        && (RATIO.0..RATIO.1).contains(&ratio)
        && sides.matching >= MATCHING
        && copied <= (sides.free / MEMORY_PART) as f64;
    pays.then(|| {
        format!(
            "{rows} rows with a table by hash have {bytes} bytes, {probe_rows:.0} probe rows are expected, {:.0} % to match, of {width} and {probe_width} bytes",
            100.0 * sides.matching
        )
    })
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
        assert!(reason(&good).unwrap().starts_with("10000000 rows with a table by hash"));
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
            assert_eq!(reason(&bad), None, "{bad:?}");
        }
    }
}
