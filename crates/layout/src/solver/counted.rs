//! The best partitioning with a limited number of partitions.
//!
//! Let f(k) be the least cost of exactly k partitions. As w is Monge, f is convex where it is finite, also
//! with windows and left-out columns. With a price λ for each partition, the least of f(k) + λ k is found
//! without counting. The smallest integer λ is sought at which some optimum has no more than K partitions;
//! then one with K partitions is among the optima, since f takes integer steps. The optima with the fewest
//! and with the most partitions at λ are spliced: at some position a partition of the first contains the
//! corresponding one of the second, and exchanging what follows them costs nothing.

use super::monotone::{Queue, Value};
use super::{Costs, Solution, Unsolvable, Window, trace};
use crate::partitioning::Partitioning;

/// The best partitioning if each partition has a price, with the fewest or with the most partitions.
fn priced<C: Costs>(costs: &C, window: &Window, price: i128, fewest: bool) -> Option<(i128, Partitioning)> {
    let blocks = costs.blocks();
    let tie = if fewest { 1 } else { -1 };
    let mut queue = Queue::new(costs, &window.reach);
    let mut begins = vec![0; blocks];
    let mut end = None;
    queue.push(0, Value { cost: price, tie }, 0);
    for (last, begin) in begins.iter_mut().enumerate() {
        end = if window.may_end(last) { queue.best(last) } else { None };
        if let Some((value, first)) = end {
            *begin = first;
            let next = Value { cost: value.cost + price, tie: value.tie + tie };
            queue.push(last + 1, next, last + 1);
        }
    }
    let partitioning = trace(blocks, |last| begins[last]);
    let (value, _) = end?;
    Some((value.cost - price * partitioning.partitions() as i128, partitioning))
}

/// See the module.
pub(super) fn solve<C: Costs>(
    costs: &C,
    window: &Window,
    most: Option<usize>,
) -> Result<Solution, Unsolvable> {
    let solved =
        |price: i128, fewest: bool| {
            priced(costs, window, price, fewest)
                .ok_or(Unsolvable::Together)
                .map(|(cost, partitioning)| Found { price, cost, partitioning })
        };
    let mut low = solved(0, true)?;
    let most = match most {
        Some(most) if most < low.partitioning.partitions() => most,
        _ => return Ok(low.solution()),
    };
    // The cost of a partition fits into 64 bits, and there are at most 2^31 partitions.
    let mut high = solved(1 << 96, true)?;
    let least = high.partitioning.partitions();
    if least > most {
        return Err(Unsolvable::Partitions { least, limit: most });
    }
    let mut step = 0;
    while high.price - low.price > 1 {
        let fewer = low.partitioning.partitions() - high.partitioning.partitions();
        let middle = match step % 3 {
            // The price at which both would be optimal.
            0 => (high.cost - low.cost) / fewer as i128,
            1 => high.price - 1,
            _ => low.price + (high.price - low.price) / 2,
        };
        step += 1;
        let found = solved(middle.clamp(low.price + 1, high.price - 1), true)?;
        if found.partitioning.partitions() <= most { high = found } else { low = found }
    }
    if high.partitioning.partitions() < most {
        let many = solved(high.price, false)?;
        high.partitioning = spliced(&high.partitioning, &many.partitioning, most);
        high.cost = cost(costs, &high.partitioning);
    }
    Ok(high.solution())
}

struct Found {
    price: i128,
    cost: i128,
    partitioning: Partitioning,
}

impl Found {
    fn solution(self) -> Solution {
        Solution { partitioning: self.partitioning, cost: self.cost, price_of_partition: self.price }
    }
}

fn cost<C: Costs>(costs: &C, partitioning: &Partitioning) -> i128 {
    partitioning.iter().map(|blocks| i128::from(costs.cost(*blocks.start(), *blocks.end()))).sum()
}

/// A partitioning with the wanted number of partitions: first those of `many`, then those of `few`.
fn spliced(few: &Partitioning, many: &Partitioning, wanted: usize) -> Partitioning {
    let more = wanted - few.partitions();
    let (few, many) = (few.ends(), many.ends());
    // The first partition of `few` that ends no earlier than the corresponding one of `many`; it also begins
    // no later, because the one before it ended earlier.
    let at = (0..few.len()).find(|&at| many[at + more] <= few[at]).expect("the last ones end together");
    let ends = many[..at + more].iter().chain(&few[at..]).copied().collect();
    Partitioning::of_ends(ends).expect("blocks are partitioned")
}
