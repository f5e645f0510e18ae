//! Histograms computed from distributions (section 4.3, figure 8b): the share of operations in each block,
//! instead of single operations.
//!
//! A distribution is given by its cumulative function over *places*: 0 is the first row in the order of the
//! layout key and 1 the end of the last one, so that block b of N is [b/N, (b+1)/N). A distribution of values
//! is composed with that of the data ([`over_values`]). The number of blocks is arbitrary, so one workload
//! has histograms of any granularity.

use super::{Bounds, Frequency, Kind};

/// The share of operations at places below x, for x in [0, 1]. It is non-decreasing, 0 at 0 and 1 at 1.
pub type Cumulative<'a> = &'a dyn Fn(f64) -> f64;

/// The uniform distribution over places.
pub fn uniform(place: f64) -> f64 {
    place.clamp(0.0, 1.0)
}

/// Skewed towards the end, where the newest keys are: the share `share` of all operations falls on the last
/// `part` of the places, the share `share` of these on the last `part` of them, and so on.
pub fn newest(share: f64, part: f64) -> impl Fn(f64) -> f64 {
    let power = share.ln() / part.ln();
    move |place| 1.0 - (1.0 - place.clamp(0.0, 1.0)).powf(power)
}

/// Converts a distribution over values to one over places of data with these bounds: `below` returns the
/// share of operations with values less than its argument. Within a block it is assumed to be uniform.
pub fn over_values<'a, T: Ord + Clone>(
    bounds: &'a Bounds<T>,
    below: impl Fn(&T) -> f64 + 'a,
) -> impl Fn(f64) -> f64 + 'a {
    let blocks = bounds.blocks();
    let at = move |block: usize| match block {
        0 => 0.0,
        block if block >= blocks => 1.0,
        block => below(bounds.least(block)),
    };
    move |place| {
        let place = place.clamp(0.0, 1.0) * blocks as f64;
        let block = (place as usize).min(blocks - 1);
        at(block) + (at(block + 1) - at(block)) * (place - block as f64)
    }
}

impl Frequency {
    /// Counts `count` operations of one kind with this distribution of places.
    pub fn add_points(&mut self, kind: Kind, count: f64, places: Cumulative<'_>) {
        let shares = shares(self.blocks(), places);
        self.of_mut(kind).iter_mut().zip(shares).for_each(|(bin, share)| *bin += count * share);
    }

    /// Counts `count` ranges, each with the share `width` of all rows, whose starts have this distribution. A
    /// range that would cross the end ends there.
    pub fn add_ranges(&mut self, count: f64, width: f64, starts: Cumulative<'_>) {
        let blocks = self.blocks();
        let ends = |place: f64| if place >= 1.0 { 1.0 } else { starts((place - width).max(0.0)) };
        self.add_points(Kind::RangeStart, count, starts);
        self.add_points(Kind::RangeEnd, count, &ends);
        for block in 0..blocks {
            let (left, right) = (edge(block, blocks), edge(block + 1, blocks));
            // Ranges that start before the block and end after it: those that start before it, less those
            // that end no later than in it; of these, those that start in it do not start before it.
            let within = if right >= 1.0 {
                1.0 - starts(left)
            } else {
                (starts((right - width).max(0.0)) - starts(left)).max(0.0)
            };
            let scanned = starts(left) - (ends(right) - within);
            self.of_mut(Kind::Scan)[block] += count * scanned.max(0.0);
        }
    }

    /// Counts `count` updates of the key between places that are independent of each other.
    pub fn add_updates(&mut self, count: f64, from: Cumulative<'_>, to: Cumulative<'_>) {
        let blocks = self.blocks();
        for block in 0..blocks {
            let (left, right) = (edge(block, blocks), edge(block + 1, blocks));
            let (leaves, comes) = (from(right) - from(left), to(right) - to(left));
            let mut add = |kind: Kind, share: f64| self.of_mut(kind)[block] += count * share;
            add(Kind::UpdateFromForward, leaves * (1.0 - to(right)));
            add(Kind::UpdateFromBackward, leaves * to(right));
            add(Kind::UpdateToForward, comes * from(left));
            add(Kind::UpdateToBackward, comes * (1.0 - from(left)));
        }
    }
}

fn edge(block: usize, blocks: usize) -> f64 {
    block as f64 / blocks as f64
}

/// The share of each block.
fn shares(blocks: usize, places: Cumulative<'_>) -> Vec<f64> {
    (0..blocks).map(|block| places(edge(block + 1, blocks)) - places(edge(block, blocks))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::Operation;
    use crate::random::Random;

    const BLOCKS: usize = 16;
    const COUNT: usize = 200_000;

    /// A place drawn from the distribution, by bisection.
    fn draw(places: Cumulative<'_>, random: &mut Random) -> f64 {
        let (share, mut low, mut high) = (random.unit(), 0.0, 1.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            *(if places(middle) <= share { &mut low } else { &mut high }) = middle;
        }
        low
    }

    fn assert_near(counted: &Frequency, computed: &Frequency) {
        for kind in Kind::ALL {
            for (block, (counted, computed)) in counted.of(kind).iter().zip(computed.of(kind)).enumerate() {
                let error = 5.0 * computed.max(1.0).sqrt();
                assert!((counted - computed).abs() <= error, "{kind:?} of {block}: {counted}, {computed}");
            }
        }
    }

    /// The twin: single operations at randomly drawn places.
    fn counted(mut operation: impl FnMut(&mut Random) -> Operation<usize>) -> Frequency {
        let (mut frequency, mut random) = (Frequency::new(BLOCKS), Random::new(11));
        (0..COUNT).for_each(|_| frequency.count(operation(&mut random), 1.0));
        frequency
    }

    fn block_of(place: f64) -> usize {
        ((place * BLOCKS as f64) as usize).min(BLOCKS - 1)
    }

    #[test]
    fn distributions_are_the_limits_of_samples() {
        let skewed = newest(0.8, 0.2);
        assert!((skewed(0.8) - 0.2).abs() < 1e-12);
        let cases: [Cumulative<'_>; 2] = [&uniform, &skewed];
        for places in cases {
            let points = counted(|random| Operation::Point(block_of(draw(places, random))));
            let mut computed = Frequency::new(BLOCKS);
            computed.add_points(Kind::PointQuery, COUNT as f64, places);
            assert_near(&points, &computed);
            for width in [0.0, 0.01, 0.2, 0.9] {
                let ranges = counted(|random| {
                    let start = draw(places, random);
                    Operation::Range(block_of(start), block_of((start + width).min(1.0)))
                });
                let mut computed = Frequency::new(BLOCKS);
                computed.add_ranges(COUNT as f64, width, places);
                assert_near(&ranges, &computed);
            }
            let updates = counted(|random| {
                let (from, to) = (draw(places, random), draw(&uniform, random));
                Operation::Update { from: block_of(from), to: block_of(to) }
            });
            let mut computed = Frequency::new(BLOCKS);
            computed.add_updates(COUNT as f64, places, &uniform);
            assert_near(&updates, &computed);
        }
    }

    #[test]
    fn values_become_places() {
        // Keys are dense below 8 and sparse above; operations are uniform over values.
        let keys: Vec<u32> = (0..8).chain((1..=8).map(|i| i * 8)).collect();
        let bounds = Bounds::of_sorted(&keys, 4);
        let places = over_values(&bounds, |key| f64::from(*key) / 72.0);
        assert_eq!(
            [places(0.0), places(0.5), places(0.75), places(1.0)],
            [0.0, 8.0 / 72.0, 40.0 / 72.0, 1.0]
        );
        let mut frequency = Frequency::new(4);
        frequency.add_points(Kind::Insert, 72.0, &places);
        let bins: Vec<i64> = frequency.of(Kind::Insert).iter().map(|bin| bin.round() as i64).collect();
        assert_eq!(bins, [4, 4, 32, 32]);
    }
}
