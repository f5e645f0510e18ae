//! The queue of candidates: for each block b in turn, the partition that ends there at the least cost, where
//! w is Monge (see the parent module).
//!
//! A candidate is a first block a with the cost of everything before it, D(a − 1). Of two, the earlier one is
//! better up to some b and the later one from there on. So the candidates that will be the best for some
//! later b are kept in the order of their first blocks, each with the b from which it is the best. A new one
//! replaces the last ones; where it becomes the best is found by steps that double, and then by bisection:
//! O(log N) each.
//!
//! A candidate may be added later than its block; it then counts for the remaining b.

use super::Costs;
use std::collections::VecDeque;

/// Costs, then the tie-breaker: the number of partitions, or its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Value {
    pub(super) cost: i128,
    pub(super) tie: i64,
}

impl Value {
    /// With one more partition.
    #[inline]
    fn and(self, cost: i64) -> Value {
        Value { cost: self.cost + i128::from(cost), ..self }
    }
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    first: usize,
    base: Value,
    /// The block from which on it is the best of all.
    from: usize,
}

/// See the module.
pub(super) struct Queue<'a, C> {
    costs: &'a C,
    /// For each block, the block after the widest partition that begins with it. Non-decreasing.
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

    /// True if a later candidate is as good as an earlier one, or the earlier one cannot reach as far.
    #[inline]
    fn overtakes(&self, later: &Candidate, earlier: &Candidate, last: usize) -> bool {
        last >= self.reach[earlier.first] || self.value(later, last) <= self.value(earlier, last)
    }

    /// Adds a candidate: a partition may begin with `first`, later than all candidates so far, and what is
    /// before it costs `base`. `now` is the next block for which [`Queue::best`] is called.
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
            // It does not overtake at `low`, and does at `high` or nowhere.
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

    /// The least cost of all blocks up to `last`, if a partition ends with it, and where that begins. `last`
    /// must not decrease from call to call.
    pub(super) fn best(&mut self, last: usize) -> Option<(Value, usize)> {
        while self.candidates.get(1).is_some_and(|next| next.from <= last) {
            self.candidates.pop_front();
        }
        let best = self.candidates.front().filter(|best| last < self.reach[best.first])?;
        Some((self.value(best, last), best.first))
    }
}
