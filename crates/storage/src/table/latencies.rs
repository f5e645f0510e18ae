//! How long operations on single rows take, as measured: what SLA bounds are judged by
//! (section 6.3 of *Optimal Column Layout for Hybrid Workloads*, *service-level agreements*).
//!
//! One operation in [`EVERY`] is timed, by chance, from when it has the table to when it leaves it: without
//! waiting for other writers, and without the log. Each kind has a histogram of eight buckets an octave, so
//! that a quantile is right within an eighth; the mean is exact. After [`FADE`] timed operations the numbers
//! are halved, so that what is shown is of late. Numbers are loaded and stored, not added to atomically: of
//! two threads that time one kind at one moment, one may be lost.
//!
//! They are not kept in files. When a table gets other columns, they go on ([`super::successor`]).

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::tree::counters::chance;
use entasis_layout::outlook::OperationKind;
use std::sync::OnceLock;
use std::time::Instant;

/// One operation in so many is timed.
const EVERY: u32 = 16;
/// After so many timed operations of a kind, what was measured before counts half.
const FADE: u32 = 1 << 20;
/// Buckets of an octave.
const STEPS: usize = 8;
/// The shortest time that has a bucket of its own, in nanoseconds, and the number of octaves from there on.
const LEAST: u64 = 64;
const OCTAVES: usize = 24;
const BUCKETS: usize = STEPS * OCTAVES;

/// What was measured of a kind of operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// The number of timed operations.
    pub timed: u64,
    /// Their mean, in nanoseconds.
    pub mean: f64,
    /// What 999 of 1000 do not exceed, in nanoseconds; with fewer, the longest.
    pub p999: f64,
}

/// The latencies of a table. See the module.
#[derive(Default)]
pub struct Latencies([OnceLock<Box<Histogram>>; OperationKind::ALL.len()]);

struct Histogram {
    /// The sum, in nanoseconds.
    sum: AtomicU64,
    timed: AtomicU32,
    buckets: [AtomicU32; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            sum: AtomicU64::new(0),
            timed: AtomicU32::new(0),
            buckets: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

/// Begins an operation: its time, if it is one of those that are timed.
#[inline]
pub fn begin() -> Option<Instant> {
    (chance(EVERY) == 0).then(Instant::now)
}

impl Latencies {
    /// Ends an operation, which [`begin`] has begun.
    #[inline]
    pub fn end(&self, operation: OperationKind, began: Option<Instant>) {
        if let Some(began) = began {
            self.add(operation, began.elapsed().as_nanos() as u64);
        }
    }

    /// Adds an operation of so many nanoseconds.
    fn add(&self, operation: OperationKind, nanoseconds: u64) {
        let own = self.0[operation as usize].get_or_init(Box::default);
        let add = |number: &AtomicU32| {
            let now = number.load(Ordering::Relaxed) + 1;
            number.store(now, Ordering::Relaxed);
            now
        };
        own.sum.store(own.sum.load(Ordering::Relaxed) + nanoseconds, Ordering::Relaxed);
        add(&own.buckets[bucket(nanoseconds)]);
        if add(&own.timed) >= FADE {
            own.halve();
        }
    }

    /// What was measured of a kind of operation; `None` if nothing was.
    pub fn of(&self, operation: OperationKind) -> Option<Latency> {
        let own = self.0[operation as usize].get()?;
        let numbers: Vec<u64> =
            own.buckets.iter().map(|number| number.load(Ordering::Relaxed).into()).collect();
        let timed: u64 = numbers.iter().sum();
        let last = numbers.iter().rposition(|number| *number > 0)?;
        let (mut seen, wanted) = (0, timed - timed / 1000);
        let reached = numbers.iter().position(|number| {
            seen += number;
            seen >= wanted
        });
        let mean = own.sum.load(Ordering::Relaxed) as f64 / timed as f64;
        Some(Latency { timed, mean, p999: end(reached.unwrap_or(last)) })
    }
}

impl Histogram {
    fn halve(&self) {
        let mut left = 0;
        for number in &self.buckets {
            let half = number.load(Ordering::Relaxed) / 2;
            number.store(half, Ordering::Relaxed);
            left += half;
        }
        // The mean stays, whatever halves are rounded to.
        let (sum, timed) = (self.sum.load(Ordering::Relaxed), self.timed.load(Ordering::Relaxed));
        let mean = sum as f64 / f64::from(timed.max(1));
        self.sum.store((mean * f64::from(left)) as u64, Ordering::Relaxed);
        self.timed.store(left, Ordering::Relaxed);
    }
}

/// The bucket of a time: the eighth of its octave.
fn bucket(nanoseconds: u64) -> usize {
    let nanoseconds = nanoseconds.max(LEAST);
    let octave = nanoseconds.ilog2() - LEAST.ilog2();
    let step = (nanoseconds >> (nanoseconds.ilog2() - STEPS.ilog2())) as usize % STEPS;
    (octave as usize * STEPS + step).min(BUCKETS - 1)
}

/// Where the times of a bucket end, in nanoseconds.
fn end(bucket: usize) -> f64 {
    let octave = (LEAST << (bucket / STEPS)) as f64;
    octave * (1.0 + (bucket % STEPS + 1) as f64 / STEPS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_eighths_of_octaves() {
        for nanoseconds in (64..5000).chain((13..40).map(|bits| (1u64 << bits) - 1)) {
            let own = bucket(nanoseconds);
            if own < BUCKETS - 1 {
                let (from, to) = (if own == 0 { LEAST as f64 } else { end(own - 1) }, end(own));
                assert!((from..to).contains(&(nanoseconds as f64)), "{nanoseconds} in {from} to {to}");
                assert!(to <= from * 1.126, "{from} to {to}");
            }
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        for (most, all) in [(1_u64, 1_u64), (50, 10), (3000, 5000), (1_000_000, 20_000)] {
            let latencies = Latencies::default();
            let mut times: Vec<u64> = (0..all).map(|i| 64 + i * 7919 % most).collect();
            times.iter().for_each(|time| latencies.add(OperationKind::Insert, *time));
            times.sort_unstable();
            let found = latencies.of(OperationKind::Insert).unwrap();
            let p999 = times[(times.len() - times.len() / 1000) - 1] as f64;
            let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
            assert_eq!((found.timed, found.mean), (all, mean));
            assert!((p999..=p999 * 1.126).contains(&found.p999), "{found:?}: {p999}");
            assert_eq!(latencies.of(OperationKind::PointQuery), None);
        }
    }

    #[test]
    fn what_is_long_ago_counts_less() {
        let latencies = Latencies::default();
        for round in 0..4 {
            let nanoseconds = if round == 0 { 100_000 } else { 1000 };
            (0..FADE / 2).for_each(|_| latencies.add(OperationKind::Delete, nanoseconds));
        }
        let found = latencies.of(OperationKind::Delete).unwrap();
        assert!(found.timed < u64::from(FADE) && found.mean < 30_000.0, "{found:?}");
    }
}
