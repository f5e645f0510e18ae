//! One partitioning for several workloads. Section 7.5 of *Optimal Column Layout for Hybrid Workloads* shows
//! what happens if the workload is not the expected one, and leaves the remedy to others.
//!
//! The **regret** of a partitioning in a workload is how much more it costs there than the best one for that
//! workload. [`Scenarios::least_regret`] seeks the partitioning whose worst regret among some workloads is
//! the least.
//!
//! **Method.** Costs are linear in the terms. So for given weights of the workloads, the best partitioning
//! for the weighted mean is one exact solution; its mean regret is no more than the least worst regret of any
//! partitioning, for any weights: a *lower bound*. Weights are moved towards the workloads with the greatest
//! regret, by a factor that is exponential in it (multiplicative weights), round by round; the partitioning
//! with the least worst regret of all rounds is returned, together with the best bound. The bound is that of
//! mixtures of partitionings, which cannot be used, so a gap may remain however many rounds there are. All
//! limits of [`entasis_layout::solver::solve`] are supported.
//!
//! **Workloads.** Those near to one have operations of one kind turned into another kind ([`shifted`]), and
//! their distribution rotated over the blocks (the paper's two kinds of uncertainty). If instead the
//! distribution of drifts is known, the mean of the terms is all that is needed: one solution.

use entasis_layout::cost::Terms;
use entasis_layout::frequency::{Frequency, Kind};
use entasis_layout::partitioning::Partitioning;
use entasis_layout::solver::{Limits, Prices, Unsolvable, solve};

/// The approximate sum of the weights.
const WEIGHTS: f64 = 1024.0;
/// Number of bits that prices leave for weights; so there may be 1024 workloads.
const ROOM: u32 = 11;

/// Several workloads, one of which will occur. See the module.
#[derive(Debug, Clone)]
pub struct Scenarios {
    terms: Vec<Terms>,
    prices: Vec<Prices>,
    /// The best partitioning for each, and its cost.
    best: Vec<(Partitioning, i128)>,
    limits: Limits,
}

/// A partitioning for several workloads.
#[derive(Debug, Clone, PartialEq)]
pub struct Robust {
    /// The partitioning.
    pub partitioning: Partitioning,
    /// Its worst regret.
    pub regret: f64,
    /// A lower bound on the worst regret of any partitioning.
    pub bound: f64,
}

impl Scenarios {
    /// Workloads by their terms over the same blocks. Regret is in the unit of the terms.
    ///
    /// # Errors
    /// If there are none, or more than 1024; those of [`solve`].
    pub fn new(terms: Vec<Terms>, limits: &Limits) -> Result<Scenarios, Unsolvable> {
        let blocks = terms.first().ok_or(Unsolvable::Empty)?.blocks();
        if let Some(other) = terms.iter().find(|terms| terms.blocks() != blocks) {
            return Err(Unsolvable::Lengths { what: "a workload", found: other.blocks(), blocks });
        }
        if terms.len() > WEIGHTS as usize {
            return Err(Unsolvable::Lengths {
                what: "scenarios",
                found: terms.len(),
                blocks: WEIGHTS as usize,
            });
        }
        let prices = Prices::of_all(&terms.iter().collect::<Vec<&Terms>>(), ROOM)?;
        let best = prices.iter().map(|prices| {
            let solution = solve(prices, limits)?;
            Ok((solution.partitioning, solution.cost))
        });
        let best = best.collect::<Result<_, Unsolvable>>()?;
        Ok(Scenarios { terms, prices, best, limits: limits.clone() })
    }

    /// The same, with regrets relative to the least cost of each workload, including fixed costs.
    ///
    /// # Errors
    /// Those of [`Scenarios::new`].
    pub fn relative(mut terms: Vec<Terms>, limits: &Limits) -> Result<Scenarios, Unsolvable> {
        for terms in &mut terms {
            let best = solve(&Prices::of(terms)?, limits)?;
            let cost = terms.cost(&best.partitioning);
            let mut scaled = Terms::new(terms.blocks());
            scaled.add(terms, if cost > 0.0 { cost.recip() } else { 1.0 });
            *terms = scaled;
        }
        Scenarios::new(terms, limits)
    }

    /// The best partitioning for each workload.
    pub fn best(&self) -> impl Iterator<Item = &Partitioning> {
        self.best.iter().map(|(partitioning, _)| partitioning)
    }

    /// The regret of a partitioning in each workload.
    pub fn regrets(&self, partitioning: &Partitioning) -> Vec<f64> {
        let pairs = self.prices.iter().zip(&self.best);
        pairs
            .map(|(prices, (_, best))| (prices.cost_of(partitioning) - best) as f64 * prices.unit())
            .collect()
    }

    /// The worst regret of a partitioning.
    pub fn regret(&self, partitioning: &Partitioning) -> f64 {
        self.regrets(partitioning).into_iter().fold(0.0, f64::max)
    }

    /// The partitioning with the least worst regret of those found in this many rounds, each of which solves
    /// for one partitioning.
    ///
    /// # Errors
    /// Those of [`Scenarios::new`].
    pub fn least_regret(&self, rounds: usize) -> Result<Robust, Unsolvable> {
        let scenarios = self.terms.len();
        let mut found: Option<Robust> = None;
        let mut consider = |partitioning: &Partitioning| {
            let regret = self.regret(partitioning);
            if found.as_ref().is_none_or(|found| regret < found.regret) {
                found = Some(Robust { partitioning: partitioning.clone(), regret, bound: 0.0 });
            }
        };
        self.best().for_each(&mut consider);
        // No regret exceeds the worst one of the best partitionings.
        let worst = self.best().map(|best| self.regret(best)).fold(0.0, f64::max);
        let step = (8.0 * (scenarios as f64).ln().max(0.1) / rounds.max(1) as f64).sqrt();
        let (mut weights, mut bound) = (vec![1.0f64; scenarios], 0.0f64);
        for _ in 0..if worst > 0.0 { rounds } else { 0 } {
            let total: f64 = weights.iter().sum();
            let whole: Vec<i64> =
                weights.iter().map(|weight| (weight / total * WEIGHTS).round() as i64).collect();
            let mixed = Prices::mixed(&self.prices, &whole);
            let solution = solve(&mixed, &self.limits)?;
            let best = self.best.iter().zip(&whole).map(|((_, cost), weight)| cost * i128::from(*weight));
            let gained = solution.cost - best.sum::<i128>();
            bound = bound.max(gained as f64 * mixed.unit() / whole.iter().sum::<i64>() as f64);
            let regrets = self.regrets(&solution.partitioning);
            consider(&solution.partitioning);
            for (weight, regret) in weights.iter_mut().zip(regrets) {
                *weight *= (step * regret / worst).exp();
            }
            let greatest = weights.iter().copied().fold(0.0, f64::max);
            weights.iter_mut().for_each(|weight| *weight /= greatest);
        }
        found.map(|found| Robust { bound, ..found }).ok_or(Unsolvable::Empty)
    }
}

/// The same number of operations, with a share of those of one kind changed to another kind, distributed as
/// the latter are; or as the former were, if there are none.
pub fn shifted(frequency: &Frequency, from: Kind, to: Kind, share: f64) -> Frequency {
    let mut shifted = frequency.clone();
    let (lost, there) =
        (frequency.of(from).iter().sum::<f64>() * share, frequency.of(to).iter().sum::<f64>());
    if there > 0.0 {
        shifted.of_mut(to).iter_mut().for_each(|bin| *bin *= 1.0 + lost / there);
    } else {
        let moved = frequency.of(from).iter().map(|bin| bin * share);
        shifted.of_mut(to).iter_mut().zip(moved).for_each(|(bin, moved)| *bin += moved);
    }
    shifted.of_mut(from).iter_mut().for_each(|bin| *bin *= 1.0 - share);
    shifted
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_layout::cost::{Access, Model, Paper};
    use entasis_layout::random::Random;

    /// A workload and its neighbours: for each of `shifts`, that share of point queries becomes inserts (if
    /// negative, of inserts becomes point queries), at each of `rotations`, a share of the blocks.
    fn neighbours(frequency: &Frequency, shifts: &[f64], rotations: &[f64]) -> Vec<Frequency> {
        let blocks = frequency.blocks();
        let mut all = vec![frequency.clone()];
        for &shift in shifts {
            let kinds = (Kind::PointQuery, Kind::Insert);
            let (from, to) = if shift < 0.0 { (kinds.1, kinds.0) } else { kinds };
            let moved = shifted(frequency, from, to, shift.abs());
            for &rotation in rotations {
                let by = (rotation.rem_euclid(1.0) * blocks as f64).round() as usize;
                let neighbour = moved.rotated(by);
                if neighbour != *frequency {
                    all.push(neighbour);
                }
            }
        }
        all
    }

    /// The twin: the worst regret of each partitioning, computed from the terms.
    fn enumerated(terms: &[Terms]) -> f64 {
        let blocks = terms[0].blocks();
        let all: Vec<Partitioning> = (0..1u32 << (blocks - 1))
            .filter_map(|word| {
                Partitioning::of_bits(&(0..blocks).map(|b| word >> b & 1 == 1).collect::<Vec<bool>>())
            })
            .collect();
        let least = |terms: &Terms| all.iter().map(|p| terms.cost(p)).fold(f64::INFINITY, f64::min);
        let best: Vec<f64> = terms.iter().map(least).collect();
        let worst = |p: &Partitioning| {
            terms.iter().zip(&best).map(|(terms, best)| terms.cost(p) - best).fold(0.0, f64::max)
        };
        all.iter().map(worst).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_least_worst_regret_is_within_its_bounds() {
        let mut random = Random::new(61);
        let (mut exact, mut excess, mut rounds) = (0, 0.0, 0);
        for _ in 0..200 {
            let blocks = 2 + random.below(7);
            let terms: Vec<Terms> = (0..2 + random.below(3))
                .map(|_| {
                    let mut list = |most: usize| (0..blocks).map(|_| random.below(most) as f64).collect();
                    Terms { back: list(9), forward: list(9), trailing: list(12), ..Terms::new(blocks) }
                })
                .collect();
            let scenarios = Scenarios::new(terms.clone(), &Limits::default()).expect("finite terms");
            let robust = scenarios.least_regret(80).expect("no limits");
            let least = enumerated(&terms);
            assert!(robust.bound <= least + 1e-6, "{robust:?} {least}");
            assert!(least <= robust.regret + 1e-6, "{robust:?} {least}");
            assert!((scenarios.regret(&robust.partitioning) - robust.regret).abs() < 1e-9);
            exact += u32::from(robust.regret <= least + 1e-6);
            excess += robust.regret / least.max(1.0);
            rounds += 1;
        }
        assert!(exact * 2 > rounds && excess / f64::from(rounds) < 1.2, "{exact} of {rounds}, {excess}");
    }

    /// As in figure 16: point queries concern the later part of the keys and inserts the earlier one.
    fn figure_16(blocks: usize) -> Frequency {
        let mut frequency = Frequency::new(blocks);
        for block in 0..blocks {
            let place = block as f64 / blocks as f64;
            frequency.of_mut(Kind::PointQuery)[block] = 100.0 * place * place;
            frequency.of_mut(Kind::Insert)[block] = 100.0 * (1.0 - place) * (1.0 - place);
        }
        frequency
    }

    #[test]
    fn plans_for_one_workload_regret_more_than_plans_for_its_neighbours() {
        let model = Paper { access: Access::OF_THE_PAPER };
        let all = neighbours(&figure_16(64), &[-0.25, 0.0, 0.25], &[-0.3, 0.0, 0.3]);
        assert_eq!(all.len(), 9);
        let terms: Vec<Terms> = all.iter().map(|frequency| model.terms(frequency)).collect();
        let scenarios = Scenarios::relative(terms, &Limits::default()).expect("finite terms");
        let planned = scenarios.best().next().expect("the first").clone();
        assert!(scenarios.regrets(&planned)[0].abs() < 1e-9);
        let robust = scenarios.least_regret(100).expect("no limits");
        let gap = (robust.bound, robust.regret, scenarios.regret(&planned));
        assert!(gap.0 <= gap.1 && gap.1 < gap.2 * 0.8, "{gap:?}");
    }

    #[test]
    fn mass_is_kept() {
        let total = |frequency: &Frequency| {
            Kind::ALL.iter().flat_map(|&kind| frequency.of(kind)).copied().sum::<f64>()
        };
        let frequency = figure_16(10);
        for neighbour in neighbours(&frequency, &[-0.5, 0.1], &[0.0, 0.5]) {
            assert!((total(&neighbour) / total(&frequency) - 1.0).abs() < 1e-12);
        }
        let none = shifted(&frequency, Kind::Insert, Kind::Delete, 1.0);
        assert_eq!(none.of(Kind::Delete), frequency.of(Kind::Insert));
    }

    #[test]
    fn one_workload_is_not_regretted() {
        let terms = vec![Paper { access: Access::OF_THE_PAPER }.terms(&figure_16(20))];
        let robust = Scenarios::new(terms, &Limits::default())
            .and_then(|all| all.least_regret(10))
            .expect("no limits");
        assert_eq!((robust.regret, robust.bound), (0.0, 0.0));
        assert!(Scenarios::new(vec![], &Limits::default()).is_err());
    }
}
