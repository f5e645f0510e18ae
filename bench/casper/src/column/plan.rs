//! Where partitions of a chunk begin, and how many ghosts each gets: in the middle between the optimizer,
//! which speaks of blocks, and chunks, which speak of rows.

use entasis_layout::cost::{Access, Ghosted, Model, Paper};
use entasis_layout::frequency::{Frequency, Kind};
use entasis_layout::ghosts::{self, budget, proportional};
use entasis_layout::partitioning::Partitioning;
use entasis_layout::solver::{Limits, Prices, solve};

/// What is decided about a chunk.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The partitions, in blocks.
    pub partitioning: Partitioning,
    /// The ghosts of each, if there are any.
    pub ghosts: Option<Vec<u64>>,
    /// Rows of a block.
    pub block: usize,
}

/// Boundaries are solved so many times with another cost of room, and ghosts for each.
const ROUNDS: usize = 3;

impl Plan {
    /// The first row of each partition.
    pub fn starts(&self) -> Vec<usize> {
        self.partitioning.iter().map(|blocks| blocks.start() * self.block).collect()
    }
}

/// The blocks of a chunk out of the histograms of a table.
pub fn part(frequency: &Frequency, blocks: std::ops::Range<usize>) -> Frequency {
    let mut part = Frequency::new(blocks.len());
    for kind in Kind::ALL {
        part.of_mut(kind).copy_from_slice(&frequency.of(kind)[blocks.clone()]);
    }
    part
}

/// The best partitions by the paper's model.
///
/// # Panics
/// If the limits cannot be met.
pub fn best(frequency: &Frequency, access: Access, limits: &Limits) -> Partitioning {
    let terms = Paper { access }.terms(frequency);
    let prices = Prices::of(&terms).expect("terms are finite");
    solve(&prices, limits).expect("limits can be met").partitioning
}

/// Partitions of equal width, about as many as given.
pub fn equal(blocks: usize, partitions: usize) -> Partitioning {
    Partitioning::equal(blocks, blocks.div_ceil(partitions).max(1))
}

/// The same number of ghosts for each partition.
pub fn even(partitioning: &Partitioning, rows: usize, share: f64) -> Vec<u64> {
    let partitions = partitioning.partitions() as u64;
    let all = budget(rows, share);
    (0..partitions).map(|number| all / partitions + u64::from(number < all % partitions)).collect()
}

/// Ghosts by equation 18, and evenly if nothing is ever inserted.
pub fn by_demand(frequency: &Frequency, partitioning: &Partitioning, rows: usize, share: f64) -> Vec<u64> {
    proportional(frequency, partitioning, budget(rows, share))
}

/// The histograms of as many operations as bring a row for each ghost: so long ghosts last, until rows that
/// go or a ripple have brought others. `None` if nothing is ever inserted, or there are no ghosts.
pub fn period(frequency: &Frequency, ghosts: u64) -> Option<Frequency> {
    let kinds = [Kind::Insert, Kind::UpdateToForward, Kind::UpdateToBackward];
    let added: f64 = kinds.iter().flat_map(|&kind| frequency.of(kind)).sum();
    let scale = ghosts as f64 / added;
    (added > 0.0 && ghosts > 0).then(|| {
        let mut period = frequency.clone();
        for kind in Kind::ALL {
            period.of_mut(kind).iter_mut().for_each(|bin| *bin *= scale);
        }
        period
    })
}

/// What an insert costs that finds no ghost, by partition: a ripple to the nearest one.
fn rooms(ghosts: &[u64], access: Access) -> Vec<f64> {
    let last = ghosts.len() - 1;
    let has = |place: Option<usize>| place.is_some_and(|place| place <= last && ghosts[place] > 0);
    let distance = |partition: usize| {
        let near = (1..=last).find(|by| has(Some(partition + by)) || has(partition.checked_sub(*by)));
        // There are free slots behind the end.
        near.unwrap_or(last - partition + 1)
    };
    let ripple = access.random_read + access.random_write;
    (0..=last).map(|partition| ripple * distance(partition) as f64).collect()
}

/// What the inserts of a period are expected to pay for room, and how many find no ghost.
pub fn shortage(
    period: &Frequency,
    partitioning: &Partitioning,
    ghosts: &[u64],
    access: Access,
) -> (f64, f64) {
    let needs = ghosts::needs(period, partitioning, 1.0);
    let short = needs.iter().zip(ghosts).map(|(need, &ghosts)| need.cost(ghosts));
    let priced = short.zip(rooms(ghosts, access));
    priced.fold((0.0, 0.0), |sum, (short, room)| (sum.0 + room * short, sum.1 + short))
}

/// Boundaries and ghosts that are solved together, for a column whose holes stay as ghosts.
///
/// What room costs depends on where the ghosts are. So both are solved with one cost for all, then the ghosts
/// again with those of their partitions, and all of it again with their mean; the best is taken.
///
/// # Panics
/// If the limits cannot be met.
pub fn joint(
    frequency: &Frequency,
    (rows, share): (usize, f64),
    access: Access,
    limits: &Limits,
) -> (Partitioning, Vec<u64>) {
    let budget = budget(rows, share);
    let Some(period) = period(frequency, budget) else {
        let finest = equal(frequency.blocks(), frequency.blocks());
        let ghosts = even(&finest, rows, share);
        return (finest, ghosts);
    };
    let terms = Ghosted { access }.terms(&period);
    let prices = Prices::of(&terms).expect("terms are finite");
    let mut room = access.random_read + access.random_write;
    let mut best: Option<(f64, Partitioning, Vec<u64>)> = None;
    for _ in 0..ROUNDS {
        let found = ghosts::joint(&prices, &period, room, budget, limits).expect("limits can be met");
        let (partitioning, mut own) = (found.partitioning, found.ghosts);
        for _ in 0..ROUNDS {
            let (paid, short) = shortage(&period, &partitioning, &own, access);
            let cost = terms.cost(&partitioning) + paid;
            if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                best = Some((cost, partitioning.clone(), own.clone()));
            }
            room = if short > 0.0 { paid / short } else { room };
            let mut needs = ghosts::needs(&period, &partitioning, 1.0);
            needs.iter_mut().zip(rooms(&own, access)).for_each(|(need, room)| need.room = room);
            own = ghosts::allocate(&needs, budget);
        }
    }
    let (_, partitioning, ghosts) = best.expect("there was a round");
    (partitioning, ghosts)
}
