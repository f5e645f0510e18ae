//! The best partitioning with limits on the number of partitions that end at or after each block.
//!
//! G_t(a) is the least cost of the blocks from a on in exactly t partitions. The first of them, a..=b, is the
//! t-th from the end, so each of its blocks has t partitions at or after it, and must be allowed as many.
//! That is a window again: b is before the next block that is not. Each layer is computed from the previous
//! one by the queue, over the blocks in reverse order, in which w is Monge as well.

use super::monotone::{Queue, Value};
use super::{Costs, Solution, Unsolvable, Window};
use crate::partitioning::Partitioning;

/// Blocks in reverse order.
struct Reversed<'a, C>(&'a C);

impl<C: Costs> Costs for Reversed<'_, C> {
    fn blocks(&self) -> usize {
        self.0.blocks()
    }

    #[inline]
    fn cost(&self, first: usize, last: usize) -> i64 {
        let end = self.blocks() - 1;
        self.0.cost(end - last, end - first)
    }
}

/// For each block in reverse order, as the end of a partition: how far the partition can reach.
fn reversed_reach(window: &Window) -> Vec<usize> {
    let blocks = window.reach.len();
    let mut first = 0;
    let ends = (0..blocks).map(|last| {
        while first < last && window.reach[first] <= last {
            first += 1;
        }
        if window.reach[first] <= last { blocks - 1 - last } else { blocks - first }
    });
    let mut reach: Vec<usize> = ends.collect();
    reach.reverse();
    reach
}

/// See the module.
pub(super) fn solve<C: Costs>(
    costs: &C,
    window: &Window,
    trailing: &[usize],
) -> Result<Solution, Unsolvable> {
    let blocks = costs.blocks();
    let reversed = Reversed(costs);
    let reach = reversed_reach(window);
    let allowed = |block: usize| trailing[blocks - 1 - block];
    let mut before: Vec<Option<Value>> = Vec::new();
    let mut begins: Vec<Vec<u32>> = Vec::new();
    let mut best: Option<(Value, usize)> = None;
    for layer in 1..=trailing[0].min(blocks) {
        // In reverse order, a partition ends before the next block that does not allow as many.
        let mut wall = blocks;
        let mut limited = vec![0; blocks];
        for block in (0..blocks).rev() {
            if allowed(block) < layer {
                wall = block;
            }
            limited[block] = reach[block].min(wall);
        }
        let mut queue = Queue::new(&reversed, &limited);
        let mut own = vec![0u32; blocks];
        let mut values = vec![None; blocks];
        for block in 0..blocks {
            let base = match block.checked_sub(1) {
                None => (layer == 1).then(Value::default),
                Some(behind) => before.get(behind).copied().flatten(),
            };
            let may_begin = window.may_end(blocks - 1 - block) && limited[block] > block;
            if let Some(base) = base.filter(|_| may_begin) {
                queue.push(block, base, block);
            }
            if let Some((value, first)) = queue.best(block) {
                (values[block], own[block]) = (Some(value), first as u32);
            }
        }
        if let Some(value) = values[blocks - 1]
            && best.is_none_or(|(best, _)| value < best)
        {
            best = Some((value, layer));
        }
        before = values;
        begins.push(own);
    }
    let Some((value, layers)) = best else { return Err(culprit(window, trailing)) };
    let (mut ends, mut block) = (Vec::with_capacity(layers), blocks);
    for layer in begins[..layers].iter().rev() {
        let first = layer[block - 1] as usize;
        ends.push(blocks - 1 - first);
        block = first;
    }
    let partitioning = Partitioning::of_ends(ends).expect("blocks are partitioned");
    Ok(Solution { partitioning, cost: value.cost, price_of_partition: 0 })
}

/// The last block that needs more partitions than it is allowed.
fn culprit(window: &Window, trailing: &[usize]) -> Unsolvable {
    for (block, &limit) in trailing.iter().enumerate().rev() {
        // A partition that contains the block and begins earlier reaches no farther.
        let least = window.fewest(block).unwrap_or(1);
        if least > limit {
            return Unsolvable::Trailing { block, least, limit };
        }
    }
    Unsolvable::Together
}
