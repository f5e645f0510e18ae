//! The best partitioning if there is one already: each present partition that is cut is rewritten once,
//! however often it is cut. Merging is free.
//!
//! The price of a rewrite is paid by the first end within a present partition s..=e, so by a partition a..=b
//! with a ≤ s and s ≤ b < e. That is not Monge: a cut is cheaper where there are others already. But the
//! price is the same for all candidates up to s, and 0 for later ones. So within a present partition there
//! are two queues: that of the candidates up to s, whose results include the price of the rewrite, and that
//! of the candidates after s, which is created for each present partition; at its end they move to the first
//! queue. Each candidate is pushed twice: O(N log N).

use super::monotone::{Queue, Value};
use super::{Limits, Prices, Solution, Unsolvable, trace};
use crate::partitioning::Partitioning;

/// The cost of changing from a present partitioning. See the module.
#[derive(Debug, Clone)]
pub struct Rewrites<'a> {
    /// The present partitioning.
    pub present: &'a Partitioning,
    /// For each of its partitions, the price of cutting it.
    pub prices: &'a [i64],
}

impl Rewrites<'_> {
    /// The cost of changing to another partitioning.
    pub fn cost(&self, new: &Partitioning) -> i128 {
        let is_cut = |blocks: &std::ops::RangeInclusive<usize>| {
            new.ends().iter().any(|end| blocks.start() <= end && end < blocks.end())
        };
        let partitions = self.present.iter().zip(self.prices);
        partitions.filter(|(blocks, _)| is_cut(blocks)).map(|(_, &price)| i128::from(price)).sum()
    }

    /// The partitioning of the least cost, including the change to it, within limits on width and on where
    /// partitions end. Other limits are ignored: costs are not convex in the number of partitions.
    ///
    /// # Errors
    /// The limit that no partitioning satisfies, or the invalid prices.
    pub fn solve(&self, prices: &Prices, limits: &Limits) -> Result<Solution, Unsolvable> {
        let blocks = super::Costs::blocks(prices);
        if self.present.blocks() != blocks {
            return Err(Unsolvable::Lengths { what: "present", found: self.present.blocks(), blocks });
        }
        if self.prices.len() != self.present.partitions() {
            let (found, blocks) = (self.prices.len(), self.present.partitions());
            return Err(Unsolvable::Lengths { what: "rewrites", found, blocks });
        }
        let window = limits.window(blocks)?;
        prices.check(window.widest())?;
        let mut begins = vec![0; blocks];
        let mut outer = Queue::new(prices, &window.reach);
        let mut end = Some(Value::default());
        for (partition, &price) in self.present.iter().zip(self.prices) {
            let (start, last) = (*partition.start(), *partition.end());
            if let Some(value) = end {
                outer.push(start, value, start);
            }
            let mut inner = Queue::new(prices, &window.reach);
            let mut inside: Vec<(usize, Value)> = Vec::new();
            for block in partition {
                let whole = outer.best(block).map(|(value, first)| {
                    let rewrite = if block < last { i128::from(price) } else { 0 };
                    (Value { cost: value.cost + rewrite, ..value }, first)
                });
                let cut = inner.best(block);
                let best = [whole, cut].into_iter().flatten().min().filter(|_| window.may_end(block));
                end = best.map(|(value, _)| Value { tie: value.tie + 1, ..value });
                begins[block] = best.map_or(0, |(_, first)| first);
                if let Some(value) = end
                    && block < last
                {
                    inner.push(block + 1, value, block + 1);
                    inside.push((block + 1, value));
                }
            }
            inside.into_iter().for_each(|(first, value)| outer.push(first, value, last + 1));
        }
        let Some(value) = end else { return Err(Unsolvable::Together) };
        let partitioning = trace(blocks, |last| begins[last]);
        debug_assert_eq!(prices.cost_of(&partitioning) + self.cost(&partitioning), value.cost);
        Ok(Solution { partitioning, cost: value.cost, price_of_partition: 0 })
    }
}
