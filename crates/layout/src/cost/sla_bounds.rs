//! Latencies of single operations by the model of our storage, and the widest partitions that keep a bound
//! about them (the SLAs of section 5 of *Optimal Column Layout for Hybrid Workloads*, for our engine).
//!
//! | SLA | bounds | by |
//! |---|---|---|
//! | reads | the slices that a point query compares, at worst all of its partition | [`Engine::point_query`] |
//! | updates | the slices in which an insert looks for its key, and for a ghost | [`Engine::insert`] |
//!
//! In the paper an update pays for the partitions that its ripple crosses, so that a bound of updates
//! bounds their number. Here an insert looks through its partition, and moves two rows on average in one of
//! any width, so that both bounds limit the width. A table declared with partitions of W slices has some of
//! up to 2 W − 1, since a partition is cut in two when it has 2 W: that is what must keep the bound
//! ([`Engine::declared_width`]).
//!
//! Not bounded: the single insert that does the moving ([`Engine::insert_at_worst`]), waiting for locks and
//! for the disk, and what a statement costs before it reaches storage.

use super::Engine;
use super::engine::SLICE;

/// Latencies that a table is to have, in nanoseconds. None by default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SlaBounds {
    /// Of a point query.
    pub read: Option<f64>,
    /// Of an insert.
    pub update: Option<f64>,
}

impl Engine {
    /// A point query in a partition of so many slices, all of which it compares; nanoseconds.
    pub fn point_query(&self, width: usize) -> f64 {
        self.lookup + self.read + self.compare * further(width)
    }

    /// An insert into a partition of so many slices, on average; nanoseconds.
    pub fn insert(&self, width: usize) -> f64 {
        self.lookup + self.write + 2.0 * self.move_row + self.room() * further(width)
    }

    /// The insert that finds its partition of so many slices full and lays it anew; nanoseconds.
    pub fn insert_at_worst(&self, width: usize) -> f64 {
        self.lookup + self.write + SLICE * self.move_row * width.max(1) as f64
    }

    /// The widest partition, in slices, that keeps the bounds. One slice if none does: there are no
    /// narrower ones. `None` if nothing is bounded.
    pub fn widest(&self, bounds: &SlaBounds) -> Option<usize> {
        let slices = |latency: f64, least: f64, each: f64| {
            let more = ((latency - least) / each).floor();
            // A comparison of floats decides at a border, as it does for whoever checks the bound.
            if more.is_finite() && more > 0.0 { more as usize + 1 } else { 1 }
        };
        let reads = bounds.read.map(|latency| slices(latency, self.point_query(1), self.compare));
        let updates = bounds.update.map(|latency| slices(latency, self.insert(1), self.room()));
        match (reads, updates) {
            (Some(reads), Some(updates)) => Some(reads.min(updates)),
            (reads, updates) => reads.or(updates),
        }
    }

    /// The width to declare, in slices, so that no partition becomes wider than `widest`.
    pub fn declared_width(widest: usize) -> usize {
        widest.div_ceil(2).max(1)
    }
}

/// Slices beyond the first.
fn further(width: usize) -> f64 {
    width.saturating_sub(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Model;
    use crate::frequency::{Frequency, Kind};
    use crate::partitioning::Partitioning;
    use crate::random::Random;

    /// The twin: tries widths one after the other.
    fn widest(engine: &Engine, bounds: &SlaBounds) -> usize {
        let is_kept = |width: usize| {
            bounds.read.is_none_or(|most| engine.point_query(width) <= most)
                && bounds.update.is_none_or(|most| engine.insert(width) <= most)
        };
        (1..10_000).take_while(|&width| width == 1 || is_kept(width)).last().unwrap_or(1)
    }

    #[test]
    fn the_widest_partition_is_found_by_trying() {
        let (engine, mut random) = (Engine::default(), Random::new(7));
        for _ in 0..500 {
            let mut latency = || (random.below(3) > 0).then(|| (300 + random.below(40_000)) as f64 + 0.25);
            let bounds = SlaBounds { read: latency(), update: latency() };
            match engine.widest(&bounds) {
                Some(found) => assert_eq!(found, widest(&engine, &bounds), "{bounds:?}"),
                None => assert_eq!(bounds, SlaBounds::default()),
            }
        }
        assert_eq!(engine.widest(&SlaBounds { read: Some(f64::NAN), update: None }), Some(1));
    }

    /// A declared width grows to less than its double before it is cut.
    #[test]
    fn a_declared_width_stays_below_the_widest() {
        for widest in 1..40 {
            let width = Engine::declared_width(widest);
            assert!(2 * width - 1 <= widest, "{widest}");
            assert!(2 * (width + 1) - 1 > widest, "{widest}");
        }
    }

    /// An insert costs what the model of the workload charges for it, and a point query never more than at
    /// worst.
    #[test]
    fn latencies_agree_with_the_model() {
        let engine = Engine::default();
        for width in 1..9 {
            let cost = |kind: Kind, block: usize| {
                let mut frequency = Frequency::new(width);
                frequency.of_mut(kind)[block] = 1.0;
                engine.terms(&frequency).cost(&Partitioning::equal(width, width))
            };
            for block in 0..width {
                assert!((cost(Kind::Insert, block) - engine.insert(width)).abs() < 1e-9);
                assert!(cost(Kind::PointQuery, block) <= engine.point_query(width));
            }
            assert!(engine.insert(width) < engine.insert_at_worst(width));
        }
    }
}
