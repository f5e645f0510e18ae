//! Where partitions of a chunk begin, and how many ghosts each gets: in the middle between the optimizer,
//! which speaks of blocks, and chunks, which speak of rows.

use entasis_layout::cost::{Access, Model, Paper};
use entasis_layout::frequency::{Frequency, Kind};
use entasis_layout::ghosts::{budget, proportional};
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
