//! Ghost slots: how many each partition gets (section 4.6 of *Optimal Column Layout for Hybrid Workloads*).
//!
//! A partition with g ghosts that will take X inserts until ghosts are allocated again pays for each insert
//! beyond g: the cost `room` of making room, for E[(X − g)⁺] of them. The budget is a number of slots,
//! commonly a share of the rows ([`budget`]).
//!
//! | | result | method |
//! |---|---|---|
//! | [`proportional`] | the paper's equation 18: in proportion to the data movement that a partition's inserts and incoming updates cause | largest remainders |
//! | [`allocate`] | the least expected cost for a given partitioning | separable and convex: greedy, each ghost where it saves most; exact |
//! | [`joint`] | boundaries and ghosts together | a price for a ghost turns a partition's inserts into a cost; the recurrence for any costs; a search for the price |
//! | [`moves`] | which rows are worth moving, to bring ghosts from where they are to where they should be | a recurrence over neighbouring stretches, exact |
//! | [`account`] | the same, with a bound on what is spent on moving, whatever the workload does | rent or buy |
//!
//! **Joint is not exact.** Ghosts that are pooled in a wide partition serve more inserts, so the cost of a
//! partition is concave in its inserts and not Monge: [`crate::solver::general`] is used, O(N · width) for
//! each price. And with a price instead of a budget, no partitioning may meet the budget exactly; the least
//! cost for the price is a lower bound nevertheless, which is reported.
//!
//! **The cost of room** is given by the caller: in the paper's engine a ripple from neighbouring partitions,
//! which we take for the nearest ghost; its distance depends on the other partitions' ghosts, so that
//! [`allocate`] is repeated two or three times with the resulting distances; in ours about two moves,
//! wherever it is.
//!
//! **Equation 18 is ambiguous**: `dm_part(i)` is "the data movement per block as a result of inserts and
//! updates". It is taken as each insert and incoming update of a block, times the partitions through which
//! its ripple passes (equation 9), "in the worst case", as the text says.

pub mod account;
pub mod moves;
mod poisson;

use crate::frequency::{Frequency, Kind};
use crate::partitioning::Partitioning;
use crate::solver::{Costs, Limits, Prices, Unsolvable, general};
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Number of steps in the search for a price of ghosts.
const STEPS: usize = 24;

/// The number of slots for a share of the rows.
pub fn budget(rows: usize, share: f64) -> u64 {
    (rows as f64 * share.max(0.0)) as u64
}

/// The number of values inserted into each block, by inserts and by updates.
fn added(frequency: &Frequency) -> Vec<f64> {
    let of = |kind: Kind| frequency.of(kind).iter();
    let updates = of(Kind::UpdateToForward).zip(of(Kind::UpdateToBackward));
    of(Kind::Insert).zip(updates).map(|(insert, (forward, backward))| insert + forward + backward).collect()
}

/// Equation 18, for each partition. The whole budget is allocated, if anything moves.
///
/// # Panics
/// If the partitioning has another number of blocks.
pub fn proportional(frequency: &Frequency, partitioning: &Partitioning, budget: u64) -> Vec<u64> {
    assert_eq!(frequency.blocks(), partitioning.blocks(), "a partitioning of other blocks");
    let (added, partitions) = (added(frequency), partitioning.partitions());
    let movement: Vec<f64> = partitioning
        .iter()
        .enumerate()
        .map(|(number, blocks)| {
            let through = (1 + partitions - number) as f64;
            blocks.map(|block| added[block] * through).sum()
        })
        .collect();
    let total: f64 = movement.iter().sum();
    if total <= 0.0 {
        return vec![0; partitions];
    }
    let shares: Vec<f64> = movement.iter().map(|movement| movement / total * budget as f64).collect();
    let mut ghosts: Vec<u64> = shares.iter().map(|share| *share as u64).collect();
    let left = budget.saturating_sub(ghosts.iter().sum());
    let mut order: Vec<usize> = (0..partitions).collect();
    order.sort_by(|&a, &b| shares[b].fract().total_cmp(&shares[a].fract()));
    order.into_iter().take(left as usize).for_each(|partition| ghosts[partition] += 1);
    ghosts
}

/// The inserts expected in a partition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Need {
    /// Average number of inserts until ghosts are allocated again.
    pub inserts: f64,
    /// The additional cost of an insert that finds no ghost.
    pub room: f64,
}

impl Need {
    /// The expected cost with this many ghosts.
    pub fn cost(&self, ghosts: u64) -> f64 {
        self.room * poisson::shortage(self.inserts, ghosts)
    }

    /// The saving of one more ghost.
    fn saving(&self, ghosts: u64) -> f64 {
        self.room * poisson::at_least(self.inserts, ghosts + 1)
    }

    /// The number of ghosts that save more than they cost, and the total cost. It is sought from `near` on,
    /// in steps that double.
    fn priced(&self, price: f64, near: u64) -> (u64, f64) {
        let saves = |ghosts: u64| self.saving(ghosts) > price;
        let (mut low, mut high, mut step) = (near, near, 1);
        if saves(near) {
            high += step;
            while saves(high) {
                step *= 2;
                (low, high) = (high, high + step);
            }
        } else {
            while high > 0 {
                low = high.saturating_sub(step);
                if saves(low) {
                    break;
                }
                (high, step) = (low, step * 2);
            }
        }
        while high > low + 1 {
            let middle = low + (high - low) / 2;
            *(if saves(middle) { &mut low } else { &mut high }) = middle;
        }
        (high, self.cost(high) + price * high as f64)
    }
}

/// The needs of the partitions of a partitioning, if the cost of room is the same everywhere.
pub fn needs(frequency: &Frequency, partitioning: &Partitioning, room: f64) -> Vec<Need> {
    let added = added(frequency);
    let sum = |blocks: std::ops::RangeInclusive<usize>| blocks.map(|block| added[block]).sum();
    partitioning.iter().map(|blocks| Need { inserts: sum(blocks), room }).collect()
}

/// A partition that may get a ghost, ordered by the saving.
struct Offer {
    saving: f64,
    partition: usize,
}

impl Ord for Offer {
    fn cmp(&self, other: &Offer) -> Ordering {
        self.saving.total_cmp(&other.saving).then(other.partition.cmp(&self.partition))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Offer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Offer {
    fn eq(&self, other: &Offer) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Offer {}

/// The ghosts of each partition with the least total expected cost. Part of the budget is left if no further
/// ghost saves anything.
pub fn allocate(needs: &[Need], budget: u64) -> Vec<u64> {
    let mut ghosts = vec![0; needs.len()];
    let offer = |partition: usize, ghosts: u64| Offer { saving: needs[partition].saving(ghosts), partition };
    let mut offers: BinaryHeap<Offer> = (0..needs.len()).map(|partition| offer(partition, 0)).collect();
    for _ in 0..budget {
        let Some(mut best) = offers.peek_mut().filter(|best| best.saving > 0.0) else { break };
        let partition = best.partition;
        ghosts[partition] += 1;
        *best = offer(partition, ghosts[partition]);
    }
    ghosts
}

/// A partitioning with ghosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Joint {
    /// The partitioning.
    pub partitioning: Partitioning,
    /// The ghosts of each partition.
    pub ghosts: Vec<u64>,
    /// The cost of the partitioning, without fixed costs, and of inserts without ghosts; in the unit of the
    /// terms from which the prices were made.
    pub cost: f64,
    /// A lower bound: no choice of boundaries and ghosts costs less.
    pub bound: f64,
}

/// Prices of partitions that include the cost of their inserts and ghosts.
struct Pooled<'a> {
    prices: &'a Prices,
    /// For each block, the inserts into the blocks before it.
    before: &'a [f64],
    room: f64,
    ghost: f64,
    /// The ghosts of the partition that was looked at last: those of the next one are near.
    near: Cell<u64>,
}

impl Pooled<'_> {
    fn need(&self, first: usize, last: usize) -> Need {
        Need { inserts: self.before[last + 1] - self.before[first], room: self.room }
    }
}

impl Costs for Pooled<'_> {
    fn blocks(&self) -> usize {
        self.prices.blocks()
    }

    fn cost(&self, first: usize, last: usize) -> i64 {
        let (ghosts, pooled) = self.need(first, last).priced(self.ghost, self.near.get());
        self.near.set(ghosts);
        self.prices.cost(first, last).saturating_add((pooled / self.prices.unit()).round() as i64)
    }
}

/// Boundaries within limits on width and on where partitions end, and at most `budget` ghosts, for terms that
/// do not charge inserts for room; an insert without a ghost costs `room` in addition, wherever it is.
///
/// # Errors
/// The limit that no partitioning satisfies.
pub fn joint(
    prices: &Prices,
    frequency: &Frequency,
    room: f64,
    budget: u64,
    limits: &Limits,
) -> Result<Joint, Unsolvable> {
    if frequency.blocks() != prices.blocks() {
        let (found, blocks) = (frequency.blocks(), prices.blocks());
        return Err(Unsolvable::Lengths { what: "frequency", found, blocks });
    }
    let mut before = vec![0.0];
    let mut sum = 0.0;
    before.extend(added(frequency).into_iter().map(|added| {
        sum += added;
        sum
    }));
    let mut best: Option<Joint> = None;
    let mut bound = f64::NEG_INFINITY;
    let (mut low, mut high) = (0.0, room);
    for step in 0..STEPS {
        // First with ghosts as expensive as room, then nearly free, then in between.
        let ghost = match step {
            0 => room,
            1 => room * 1e-9,
            _ => (low + high) / 2.0,
        };
        let pooled = Pooled { prices, before: &before, room, ghost, near: Cell::new(0) };
        let solution = general(&pooled, limits)?;
        let partitioning = solution.partitioning;
        let needs: Vec<Need> =
            partitioning.iter().map(|blocks| pooled.need(*blocks.start(), *blocks.end())).collect();
        let wanted: u64 = needs.iter().map(|need| need.priced(ghost, 0).0).sum();
        // Each partition's cost was rounded by up to half a unit.
        let rounding = prices.blocks() as f64 * prices.unit();
        let least = solution.cost as f64 * prices.unit() - ghost * budget as f64 - rounding;
        bound = bound.max(least);
        let ghosts = allocate(&needs, budget);
        let short: f64 = needs.iter().zip(&ghosts).map(|(need, &ghosts)| need.cost(ghosts)).sum();
        let cost = prices.cost_of(&partitioning) as f64 * prices.unit() + short;
        if best.as_ref().is_none_or(|best| cost < best.cost) {
            best = Some(Joint { partitioning, ghosts, cost, bound });
        }
        *(if wanted > budget { &mut low } else { &mut high }) = ghost;
        if step == 1 && wanted <= budget {
            // The budget is enough for all.
            break;
        }
        if step == 1 {
            (low, high) = (0.0, room);
        }
    }
    best.map(|best| Joint { bound, ..best }).ok_or(Unsolvable::Together)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Terms;
    use crate::random::Random;

    #[test]
    fn equation_18_is_proportional() {
        let mut frequency = Frequency::new(4);
        frequency.of_mut(Kind::Insert).copy_from_slice(&[1.0, 2.0, 0.0, 3.0]);
        frequency.of_mut(Kind::UpdateToBackward)[0] = 1.0;
        frequency.of_mut(Kind::PointQuery)[2] = 100.0;
        // Movement: (1 + 1 + 2) through three, none, 3 through one and the last again.
        let partitioning = Partitioning::of_ends(vec![1, 2, 3]).expect("blocks");
        assert_eq!(proportional(&frequency, &partitioning, 22), [16, 0, 6]);
        assert_eq!(proportional(&frequency, &partitioning, 1), [1, 0, 0]);
        assert_eq!(proportional(&frequency, &partitioning, 0), [0, 0, 0]);
        assert_eq!(proportional(&Frequency::new(4), &partitioning, 9), [0, 0, 0]);
        assert_eq!(proportional(&frequency, &partitioning, 1000).iter().sum::<u64>(), 1000);
        assert_eq!(budget(1_000_000, 0.001), 1000);
    }

    fn random_needs(random: &mut Random) -> Vec<Need> {
        let mut need = || Need { inserts: random.below(12) as f64 / 2.0, room: (1 + random.below(9)) as f64 };
        (0..1 + need().room as usize % 5).map(|_| need()).collect()
    }

    /// The twin: all ways to distribute a budget.
    fn least(needs: &[Need], budget: u64) -> f64 {
        let Some((first, rest)) = needs.split_first() else { return 0.0 };
        let with = |ghosts: u64| first.cost(ghosts) + least(rest, budget - ghosts);
        (0..=budget).map(with).fold(f64::INFINITY, f64::min)
    }

    fn expected(needs: &[Need], ghosts: &[u64]) -> f64 {
        needs.iter().zip(ghosts).map(|(need, &ghosts)| need.cost(ghosts)).sum()
    }

    #[test]
    fn ghosts_go_where_they_save_most() {
        let mut random = Random::new(51);
        for _ in 0..300 {
            let needs = random_needs(&mut random);
            let budget = random.below(9) as u64;
            let ghosts = allocate(&needs, budget);
            assert!(ghosts.iter().sum::<u64>() <= budget);
            assert!((expected(&needs, &ghosts) - least(&needs, budget)).abs() < 1e-9, "{needs:?} {budget}");
        }
    }

    #[test]
    fn a_price_takes_the_best_number() {
        let mut random = Random::new(52);
        for _ in 0..300 {
            for need in random_needs(&mut random) {
                let price = random.unit() * 2.0 * need.room;
                let (ghosts, cost) = need.priced(price, random.below(20) as u64);
                let with = |ghosts: u64| need.cost(ghosts) + price * ghosts as f64;
                let twin = (0..60).map(with).fold(f64::INFINITY, f64::min);
                assert!((cost - twin).abs() < 1e-9 && (with(ghosts) - twin).abs() < 1e-9, "{need:?} {price}");
            }
        }
    }

    /// The twin: all partitionings, each with the best ghosts.
    #[test]
    fn joint_is_between_its_bound_and_a_little_more_than_the_least() {
        let mut random = Random::new(53);
        let (mut exact, rounds) = (0, 120);
        for _ in 0..rounds {
            let blocks = 2 + random.below(5);
            let mut list = |most: usize| (0..blocks).map(|_| random.below(most) as f64).collect::<Vec<f64>>();
            let reads = list(6);
            let terms =
                Terms { back: reads.clone(), forward: reads, boundary: list(9), ..Terms::new(blocks) };
            let mut frequency = Frequency::new(blocks);
            frequency.of_mut(Kind::Insert).copy_from_slice(&list(8));
            let (room, budget) = ((2 + random.below(12)) as f64, random.below(20) as u64);
            let prices = Prices::of(&terms).expect("finite terms");
            let limits = Limits { width: Some(4), ..Limits::default() };
            let found = joint(&prices, &frequency, room, budget, &limits).expect("limits can be kept");
            let cost = |partitioning: &Partitioning| {
                let needs = needs(&frequency, partitioning, room);
                terms.cost(partitioning) + expected(&needs, &allocate(&needs, budget))
            };
            let all = (0..1u32 << (blocks - 1)).filter_map(|word| {
                let bits: Vec<bool> = (0..blocks).map(|block| word >> block & 1 == 1).collect();
                Partitioning::of_bits(&bits).filter(|partitioning| partitioning.widest() <= 4)
            });
            let least = all.map(|partitioning| cost(&partitioning)).fold(f64::INFINITY, f64::min);
            assert!((cost(&found.partitioning) - found.cost).abs() < 1e-6);
            assert!(found.ghosts.iter().sum::<u64>() <= budget);
            assert!(found.bound <= least + 1e-6 && least <= found.cost + 1e-6, "{found:?} {least}");
            assert!(found.cost <= least * 1.1 + 1e-6, "{} for {least}", found.cost);
            exact += u32::from(found.cost <= least + 1e-6);
        }
        assert!(exact * 10 >= rounds * 8, "{exact} of {rounds}");
    }

    /// With hardly any budget, inserts favour wide partitions, which pool them.
    #[test]
    fn pools_are_wide() {
        let mut frequency = Frequency::new(16);
        frequency.of_mut(Kind::Insert).fill(2.0);
        let terms = Terms { back: vec![0.1; 16], forward: vec![0.1; 16], ..Terms::new(16) };
        let prices = Prices::of(&terms).expect("finite terms");
        let joint = |room: f64| joint(&prices, &frequency, room, 40, &Limits::default()).expect("no limits");
        assert!(joint(0.1).partitioning.partitions() > joint(100.0).partitioning.partitions());
    }
}
