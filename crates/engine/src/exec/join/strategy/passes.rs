//! Whether the input of a build side is read once or twice: decided by estimates before it is read, and again
//! once its keys have been counted.
//!
//! A second reading costs finding the rows again, and saves moving them: rows are put where their table needs
//! them. So it pays off for many rows that are cheap to find, and whose keys are hardly repeated, since the
//! tables built this way are for distinct keys.

use crate::exec::join::tuning::{
    COUNTED_BYTES, DISTINCT_PER_KEY, FEW_COUNTED_BYTES, LOOKED_AT, TWO_PASS_ROWS,
};
use crate::settings::Readings;
use std::fmt;

/// What is expected of an input that could be read twice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// Rows that are kept.
    pub rows: f64,
    /// How many kept rows share a key.
    pub per_key: f64,
    /// Rows that are scanned to find them.
    pub looked_at: f64,
    /// No condition, key or computed column calls a function or reads text.
    pub is_cheap: bool,
}

/// Why an input is read once, though it could be read twice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Once {
    /// The setting says so.
    Forced,
    /// Few rows are expected, this many.
    FewRows(f64),
    /// Keys should be repeated, with this many rows per key.
    Repeated(f64),
    /// A function is called, or text is read.
    Expensive,
    /// This many rows are scanned for each kept one.
    LooksAtMany(f64),
    /// The workers' counters take this many bytes.
    Counters(f64),
    /// Keys turned out to be repeated, with this many rows per key.
    FoundRepeated(f64),
    /// Far more rows arrived than the places were laid out for.
    Crowded,
    /// Partitions in memory are faster.
    Partitions,
}

impl Once {
    /// True if the profile names the reason: the input looked like one to read twice.
    pub(crate) fn is_noted(self) -> bool {
        !matches!(self, Once::Forced | Once::FewRows(_))
    }
}

impl fmt::Display for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "build side read once: ")?;
        match self {
            Once::Forced => write!(f, "join_build = {}", Readings::Once),
            Once::FewRows(rows) => write!(f, "{rows:.0} rows are expected"),
            Once::Repeated(per_key) => write!(f, "{per_key:.1} rows per key are expected"),
            Once::Expensive => write!(f, "the input calls a function or reads text"),
            Once::LooksAtMany(rows) => write!(f, "{rows:.1} rows are scanned for each kept row"),
            Once::Counters(bytes) => write!(f, "counting would take {bytes:.0} bytes"),
            Once::FoundRepeated(per_key) => write!(f, "{per_key:.1} rows per key were counted"),
            Once::Crowded => write!(f, "far more rows were counted than expected"),
            Once::Partitions => write!(f, "partitions in memory are expected to be faster"),
        }
    }
}

/// Why this input is read once; `None` if it is read twice.
pub(crate) fn once(setting: Readings, reading: &Reading) -> Option<Once> {
    match setting {
        Readings::Once => return Some(Once::Forced),
        Readings::Twice => return None,
        Readings::Auto => {}
    }
    let looked_at = reading.looked_at <= LOOKED_AT * reading.rows;
    first_that_fails([
        (reading.rows >= TWO_PASS_ROWS, Once::FewRows(reading.rows)),
        (reading.per_key <= DISTINCT_PER_KEY, Once::Repeated(reading.per_key)),
        (reading.is_cheap, Once::Expensive),
        (looked_at, Once::LooksAtMany(reading.looked_at / reading.rows)),
    ])
}

/// Like [`once`], for the bytes of all workers' counters.
pub(crate) fn once_beside_counters(setting: Readings, rows: f64, counters: f64) -> Option<Once> {
    let is_large = counters > (rows * COUNTED_BYTES).max(FEW_COUNTED_BYTES);
    (setting != Readings::Twice && is_large).then_some(Once::Counters(counters))
}

/// The result of counting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedKeys {
    /// How many rows share a key.
    pub per_key: f64,
    /// There are more rows than the buckets can take.
    pub is_crowded: bool,
    /// Partitions in memory are expected to be faster ([`super::partitions::pays_beside_two_readings`]).
    pub partitions_pay: bool,
}

/// Why rows are kept as they come even though their keys have been counted; `None` if they are put in place.
pub(crate) fn once_counted(counted: &CountedKeys) -> Option<Once> {
    first_that_fails([
        (counted.per_key <= DISTINCT_PER_KEY, Once::FoundRepeated(counted.per_key)),
        (!counted.is_crowded, Once::Crowded),
        (!counted.partitions_pay, Once::Partitions),
    ])
}

/// The reason of the first condition that does not hold.
fn first_that_fails<const N: usize>(conditions: [(bool, Once); N]) -> Option<Once> {
    conditions.into_iter().find(|(holds, _)| !holds).map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Reading = Reading { rows: 100_000.0, per_key: 1.0, looked_at: 400_000.0, is_cheap: true };

    #[test]
    fn each_condition_decides_and_is_the_reason() {
        assert_eq!(once(Readings::Auto, &GOOD), None);
        for (reading, why) in [
            (Reading { rows: 65_535.0, ..GOOD }, Once::FewRows(65_535.0)),
            (Reading { per_key: 1.1, ..GOOD }, Once::Repeated(1.1)),
            (Reading { is_cheap: false, ..GOOD }, Once::Expensive),
            (Reading { looked_at: 500_000.0, ..GOOD }, Once::LooksAtMany(5.0)),
            (Reading { looked_at: f64::INFINITY, ..GOOD }, Once::LooksAtMany(f64::INFINITY)),
        ] {
            assert_eq!(once(Readings::Auto, &reading), Some(why));
            assert_eq!(once(Readings::Twice, &reading), None, "it is forced");
        }
        assert_eq!(once(Readings::Once, &GOOD), Some(Once::Forced));
    }

    #[test]
    fn counters_may_be_large_for_many_rows() {
        let megabyte = 1048576.0;
        assert_eq!(once_beside_counters(Readings::Auto, 1000.0, 4.0 * megabyte), None);
        assert_eq!(
            once_beside_counters(Readings::Auto, 1000.0, 5.0 * megabyte),
            Some(Once::Counters(5.0 * megabyte))
        );
        assert_eq!(once_beside_counters(Readings::Auto, megabyte, 8.0 * megabyte), None);
        assert_eq!(once_beside_counters(Readings::Twice, 1000.0, 50.0 * megabyte), None);
    }

    #[test]
    fn what_was_counted_may_end_it() {
        let good = CountedKeys { per_key: 1.0, is_crowded: false, partitions_pay: false };
        assert_eq!(once_counted(&good), None);
        assert_eq!(once_counted(&CountedKeys { per_key: 2.0, ..good }), Some(Once::FoundRepeated(2.0)));
        assert_eq!(once_counted(&CountedKeys { is_crowded: true, ..good }), Some(Once::Crowded));
        assert_eq!(once_counted(&CountedKeys { partitions_pay: true, ..good }), Some(Once::Partitions));
        let text = Once::FoundRepeated(2.0).to_string();
        assert_eq!(text, "build side read once: 2.0 rows per key were counted");
    }
}
