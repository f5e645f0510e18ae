//! The paper's model for a column whose holes stay where they are, as ghosts (section 4.6 of *Optimal Column
//! Layout for Hybrid Workloads*). Its equations are those of a dense column, where each insert and each
//! delete ripples to the end, and a solver that is given these for a column with ghosts has too few
//! partitions.
//!
//! | operation | dense | with ghosts |
//! |---|---|---|
//! | delete, update from | a point query, and a ripple to the end or to the target | a point query, and the hole is filled: RW |
//! | insert, update to | a ripple from the end or from the source | RR + RW; and *room*, if its partition has no ghost |
//!
//! **Room** is two things. Where as many rows go as come, ghosts are short now and then, and a ripple brings
//! one from near by: that depends on how many there are, and [`crate::ghosts`] charges it. Where more rows
//! come than go, slots have to come from elsewhere in any case, from where more go or from the end. This is
//! the *flow* ([`Ghosted::flow`]): slots that cross the end of each block. A boundary there costs RR + RW for
//! each, so that growth favours few partitions, in front of it, as inserts do in a dense column; and if
//! nothing grows the finest are the best.
//!
//! The flow is the least that gives every block what it needs. With f(b) slots that come over the end of
//! block b to those before it, below 0 if they go the other way, and need(b) rows that come more than go,
//!
//! ```text
//! least Σ |f(b)|   where  f(b) − f(b − 1) ≥ need(b),  f(−1) = 0
//! ```
//! f less its least is a sequence that does not fall: an isotonic regression by least deviations, O(N log N).

use super::{Access, Model, Terms};
use crate::frequency::{Frequency, Kind};
use std::collections::BinaryHeap;

/// The model. See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ghosted {
    /// The costs of accesses.
    pub access: Access,
}

impl Ghosted {
    /// The terms without the flow, which are linear in the histograms.
    pub fn in_place(&self, frequency: &Frequency) -> Terms {
        let Access { jump, random_read: rr, random_write: rw, sequential_read: sr, .. } = self.access;
        let of = |kind: Kind| frequency.of(kind);
        let mut terms = Terms::new(frequency.blocks());
        for i in 0..frequency.blocks() {
            let (starts, scans, ends) = (of(Kind::RangeStart)[i], of(Kind::Scan)[i], of(Kind::RangeEnd)[i]);
            let (added, taken) = (added(frequency, i), taken(frequency, i));
            let sought = of(Kind::PointQuery)[i] + taken;
            terms.fixed[i] = jump * (starts + sought) + sr * (scans + ends) + rw * taken + (rr + rw) * added;
            terms.back[i] = sr * (starts + sought);
            terms.forward[i] = sr * (ends + sought);
        }
        terms
    }

    /// For each block, how many slots cross its end.
    pub fn flow(frequency: &Frequency) -> Vec<f64> {
        let needs = (0..frequency.blocks()).map(|block| added(frequency, block) - taken(frequency, block));
        let mut sum = 0.0;
        let needed: Vec<f64> = needs
            .map(|need| {
                sum += need;
                sum
            })
            .collect();
        // The end has slots for all, whether a partition ends there or not.
        let inner = &needed[..needed.len().saturating_sub(1)];
        let kept = isotonic(&inner.iter().map(|needed| -needed).collect::<Vec<f64>>());
        let flow = inner.iter().zip(kept).map(|(needed, kept)| (needed + kept.max(0.0)).abs());
        flow.chain((!needed.is_empty()).then_some(0.0)).collect()
    }
}

/// Rows that come to a block.
fn added(frequency: &Frequency, block: usize) -> f64 {
    let kinds = [Kind::Insert, Kind::UpdateToForward, Kind::UpdateToBackward];
    kinds.iter().map(|&kind| frequency.of(kind)[block]).sum()
}

/// Rows that leave it.
fn taken(frequency: &Frequency, block: usize) -> f64 {
    let kinds = [Kind::Delete, Kind::UpdateFromForward, Kind::UpdateFromBackward];
    kinds.iter().map(|&kind| frequency.of(kind)[block]).sum()
}

/// A number as a heap orders it.
#[derive(PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The sequence that does not fall and deviates least from some numbers, in sum. Where it may not be below 0,
/// it is this one, with 0 for what is below.
fn isotonic(wanted: &[f64]) -> Vec<f64> {
    let mut heap = BinaryHeap::new();
    let mut found: Vec<f64> = wanted
        .iter()
        .map(|&own| {
            heap.push(Ordered(own));
            if heap.peek().is_some_and(|top| top.0 > own) {
                heap.pop();
                heap.push(Ordered(own));
            }
            heap.peek().map_or(own, |top| top.0)
        })
        .collect();
    for at in (1..found.len()).rev() {
        found[at - 1] = found[at - 1].min(found[at]);
    }
    found
}

impl Model for Ghosted {
    fn terms(&self, frequency: &Frequency) -> Terms {
        let ripple = self.access.random_read + self.access.random_write;
        let boundary = Ghosted::flow(frequency).into_iter().map(|flow| ripple * flow).collect();
        Terms { boundary, ..self.in_place(frequency) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitioning::Partitioning;
    use crate::random::Random;

    /// The twin: all flows of whole slots.
    fn least(needs: &[i32], before: i32, most: i32) -> i32 {
        let Some((&need, rest)) = needs.split_first() else { return 0 };
        // The last one is free: slots come from the end.
        let cost = |flow: i32| if rest.is_empty() { 0 } else { flow.abs() };
        (before + need..=most.max(before + need))
            .map(|flow| cost(flow) + least(rest, flow, most))
            .min()
            .unwrap_or(0)
    }

    #[test]
    fn the_flow_is_the_least() {
        let mut random = Random::new(8);
        for _ in 0..400 {
            let needs: Vec<i32> = (0..1 + random.below(6)).map(|_| random.below(7) as i32 - 3).collect();
            let mut frequency = Frequency::new(needs.len());
            for (block, &need) in needs.iter().enumerate() {
                let both = random.below(3) as f64;
                frequency.of_mut(Kind::Insert)[block] = both + f64::from(need.max(0));
                frequency.of_mut(Kind::Delete)[block] = both + f64::from((-need).max(0));
            }
            let found: f64 = Ghosted::flow(&frequency).iter().sum();
            assert_eq!(found, f64::from(least(&needs, 0, 18)), "{needs:?}");
        }
    }

    /// Without changes of rows it is the paper's model.
    #[test]
    fn reads_cost_the_same_as_in_a_dense_column() {
        let mut random = Random::new(6);
        let mut frequency = Frequency::new(12);
        for kind in [Kind::PointQuery, Kind::RangeStart, Kind::Scan, Kind::RangeEnd] {
            frequency.of_mut(kind).iter_mut().for_each(|bin| *bin = random.below(20) as f64);
        }
        let access = Access { jump: 300.0, ..Access::OF_THE_PAPER };
        let cost = |model: &dyn Model| model.terms(&frequency).cost(&Partitioning::equal(12, 5));
        assert!((cost(&Ghosted { access }) - cost(&super::super::Paper { access })).abs() < 1e-6);
    }
}
