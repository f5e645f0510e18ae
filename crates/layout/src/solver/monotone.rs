//! The queue of candidates: for one block b after the other, the partition that ends there at the least cost,
//! where w is Monge (see the parent module).
//!
//! A candidate is a first block a with the cost of all before it, D(a − 1). Of two, the earlier one is better
//! up to some b and the later one from there on, for ever. So those that are the best for some b to come
//! stand in the order of their first blocks, each with the b from which it is the best. A new one takes over
//! from the last ones; where it does is searched in steps that double, and by bisection: O(log N) each.
//!
//! A candidate may come later than its block, for the b that are still to come.

use super::Costs;
use std::collections::VecDeque;

/// Costs, then what ties are broken by: partitions, or less partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Value {
    pub(super) cost: i128,
    pub(super) tie: i64,
}

impl Value {
    /// With a partition more.
    #[inline]
    fn and(self, cost: i64) -> Value {
        Value { cost: self.cost + i128::from(cost), ..self }
    }
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    first: usize,
    base: Value,
    /// It is the best of all from this block on.
    from: usize,
}

/// See the module.
pub(super) struct Queue<'a, C> {
    costs: &'a C,
    /// For each block: the block behind the widest partition that begins with it. Does not fall.
    reach: &'a [usize],
    candidates: VecDeque<Candidate>,
}

impl<'a, C: Costs> Queue<'a, C> {
    pub(super) fn new(costs: &'a C, reach: &'a [usize]) -> Queue<'a, C> {
        Queue { costs, reach, candidates: VecDeque::new() }
    }

    #[inline]
    fn value(&self, candidate: &Candidate, last: usize) -> Value {
        candidate.base.and(self.costs.cost(candidate.first, last))
    }

    /// True if a later candidate is as good as an earlier one, or the earlier one cannot reach so far.
    #[inline]
    fn overtakes(&self, later: &Candidate, earlier: &Candidate, last: usize) -> bool {
        last >= self.reach[earlier.first] || self.value(later, last) <= self.value(earlier, last)
    }

    /// A partition may begin with `first`, behind all candidates so far, and what is before it costs `base`.
    /// `now` is the next block that is asked for.
    pub(super) fn push(&mut self, first: usize, base: Value, now: usize) {
        let blocks = self.reach.len();
        let mut new = Candidate { first, base, from: now };
        while let Some(last) = self.candidates.back() {
            let at = last.from.max(now);
            if at >= blocks {
                return;
            }
            if self.overtakes(&new, last, at) {
                self.candidates.pop_back();
                continue;
            }
            // It does not at `low`, and does at `high` or nowhere.
            let (mut low, mut step) = (at, 1);
            let mut high = loop {
                let next = low + step;
                if next >= blocks {
                    break blocks;
                }
                if self.overtakes(&new, last, next) {
                    break next;
                }
                (low, step) = (next, step * 2);
            };
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                *(if self.overtakes(&new, last, middle) { &mut high } else { &mut low }) = middle;
            }
            if high == blocks {
                return;
            }
            new.from = high;
            break;
        }
        self.candidates.push_back(new);
    }

    /// The least cost of all up to `last`, if a partition ends with it, and where that begins. `last` does
    /// not fall from call to call.
    pub(super) fn best(&mut self, last: usize) -> Option<(Value, usize)> {
        while self.candidates.get(1).is_some_and(|next| next.from <= last) {
            self.candidates.pop_front();
        }
        let best = self.candidates.front().filter(|best| last < self.reach[best.first])?;
        Some((self.value(best, last), best.first))
    }
}
