//! Finds the best partitioning exactly (equation 1 of *Optimal Column Layout for Hybrid Workloads*; the paper
//! solves the binary program of its equations 20 and 21 instead).
//!
//! **The recurrence.** Σ_i trailing_i · boundaries(i) counts, for each partition end b, the trailing terms up
//! to b. So the total is a constant and, for each partition of blocks a..=b,
//!
//! ```text
//! w(a, b) = Σ_{i=a..b} back_i · (i − a) + forward_i · (b − i)  +  boundary_b + Σ_{i≤b} trailing_i
//! D(b)    = min_{a≤b} D(a − 1) + w(a, b)
//! ```
//! and w(a, b) is a few operations on prefix sums ([`Prices`]).
//!
//! **Its structure.** If back and forward are not negative, w is Monge: for a ≤ a' ≤ b ≤ b', w(a, b) + w(a',
//! b') ≤ w(a, b') + w(a', b), since the second difference is (b' − b) · Σ_{a≤i<a'} forward_i + (a' − a) ·
//! Σ_{b<i≤b'} back_i. Terms that depend only on b cancel, so trailing and boundary may have any sign.
//! Constraints preserve this: if a partition may not be as wide as a..=b or a'..=b', neither may a..=b', and
//! a block with which no partition may end is a column left out. Then a candidate a that is overtaken by a
//! later one stays overtaken, and candidates are kept in a queue with the first b of each ([`monotone`]): O(N
//! log N). A convex hull is not sufficient, as w has two products, a · Σ back and b · Σ forward.
//!
//! **Limits** ([`Limits`]):
//!
//! | limit | paper | method | cost |
//! |---|---|---|---|
//! | blocks of a partition, for all or by block | read SLA, 21 | candidates too far back are outside the window | none |
//! | where a partition may end | equal values together, 4.1 | columns left out | none |
//! | partitions | update SLA, 21 | the least cost is convex in their number, so there is a price λ for each: integer search, each step a solution; one with the exact number is spliced from the two optima at λ ([`counted`]) | × about 2 log of the greatest cost |
//! | partitions that end at or after a block | by position | a layer for each number of partitions, from the end ([`layered`]) | × the number allowed at block 0 |
//!
//! **Numbers.** Costs are rounded once to integers ([`Prices::of`]), of at most 2^61 for the worst partition,
//! and everything after that is exact: ties are ties, and prices of partitions are integers.
//!
//! There are also [`general`] for costs that are not Monge, O(N · width), and [`Rewrites`] for changing from
//! a present partitioning, each of whose partitions is rewritten once if it is cut at all.

mod counted;
mod general;
mod layered;
mod limits;
mod monotone;
mod prices;
mod rewrites;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twins;

pub use general::general;
pub use limits::{Limits, Unsolvable};
pub use prices::Prices;
pub use rewrites::Rewrites;

use crate::partitioning::Partitioning;
use limits::Window;

/// An optimal partitioning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The partitioning.
    pub partitioning: Partitioning,
    /// Its cost without fixed costs, in the units of the prices.
    pub cost: i128,
    /// The cost that the last partition saves, if their number is limited: the price of the limit.
    pub price_of_partition: i128,
}

/// The costs of a partition by its first and last block, which are summed over a partitioning.
pub trait Costs {
    /// The number of blocks.
    fn blocks(&self) -> usize;

    /// The cost of the partition of blocks `first..=last`.
    fn cost(&self, first: usize, last: usize) -> i64;
}

/// The partitioning of the least cost within limits; of those with equal costs, one with the fewest
/// partitions.
///
/// # Errors
/// The limit that no partitioning satisfies, or the invalid prices.
pub fn solve(prices: &Prices, limits: &Limits) -> Result<Solution, Unsolvable> {
    let window = limits.window(prices.blocks())?;
    prices.check(window.widest())?;
    let solution = match &limits.trailing {
        Some(trailing) => {
            let mut trailing = trailing.clone();
            if let (Some(most), Some(all)) = (limits.partitions, trailing.first_mut()) {
                *all = most.min(*all);
            }
            layered::solve(prices, &window, &trailing)?
        }
        None => counted::solve(prices, &window, limits.partitions)?,
    };
    debug_assert_eq!(prices.cost_of(&solution.partitioning), solution.cost);
    Ok(solution)
}

/// The partitioning that ends with the last block, where `begins` gives the first block of the partition that
/// ends with a block.
fn trace(blocks: usize, begins: impl Fn(usize) -> usize) -> Partitioning {
    let mut ends = Vec::new();
    let mut end = blocks;
    while end > 0 {
        ends.push(end - 1);
        end = begins(end - 1);
    }
    ends.reverse();
    Partitioning::of_ends(ends).expect("blocks are partitioned")
}
