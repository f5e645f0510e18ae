//! The terms of a workload as the solver sees them: integers, as prefix sums.
//!
//! Sums are taken modulo 2^64. The cost of a partition is a sum of differences of them and is correct if it
//! fits into 64 bits, which [`Prices::check`] ensures, even if intermediate results overflow.

use super::{Costs, Unsolvable};
use crate::cost::Terms;
use crate::partitioning::Partitioning;

/// The greatest cost of a partition after rounding, as a power of two.
const GREATEST: i32 = 61;

/// Sums over the blocks before one, and the cost of its end; adjacent since they are read together.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    /// Σ back.
    back: u64,
    /// Σ forward.
    forward: u64,
    /// Σ i · (back − forward).
    moment: u64,
    /// For the previous block: boundary, and all trailing terms up to it.
    end: i64,
}

/// Prices of partitions. See the module.
#[derive(Debug, Clone)]
pub struct Prices {
    before: Vec<Before>,
    /// The greatest sum of back and forward, and the greatest price of an end.
    reads: i128,
    ends: i128,
    /// The first block with a negative term.
    negative: Option<usize>,
    /// The size of a unit in that of the terms.
    unit: f64,
}

impl Prices {
    /// Integer prices for each block: back, forward, trailing, boundary ([`Terms`]).
    ///
    /// # Errors
    /// If lists are empty or differ in length; if prices of ends do not fit into 64 bits.
    pub fn new(
        back: &[i64],
        forward: &[i64],
        trailing: &[i64],
        boundary: &[i64],
    ) -> Result<Prices, Unsolvable> {
        let blocks = back.len();
        for (what, found) in
            [("forward", forward.len()), ("trailing", trailing.len()), ("boundary", boundary.len())]
        {
            if found != blocks {
                return Err(Unsolvable::Lengths { what, found, blocks });
            }
        }
        if blocks == 0 {
            return Err(Unsolvable::Empty);
        }
        let mut before = Vec::with_capacity(blocks + 1);
        let (mut sums, mut behind, mut reads, mut ends) = (Before::default(), 0i128, 0i128, 0i128);
        before.push(sums);
        for block in 0..blocks {
            let (b, f) = (back[block] as u64, forward[block] as u64);
            sums.back = sums.back.wrapping_add(b);
            sums.forward = sums.forward.wrapping_add(f);
            sums.moment = sums.moment.wrapping_add((block as u64).wrapping_mul(b.wrapping_sub(f)));
            behind += i128::from(trailing[block]);
            let end = behind + i128::from(boundary[block]);
            sums.end = i64::try_from(end).map_err(|_| Unsolvable::TooGreat { block })?;
            before.push(sums);
            reads += i128::from(back[block]) + i128::from(forward[block]);
            ends = ends.max(end.abs());
        }
        let negative = (0..blocks).find(|&block| back[block] < 0 || forward[block] < 0);
        Ok(Prices { before, reads, ends, negative, unit: 1.0 })
    }

    /// The terms, rounded to multiples of a unit such that the worst partition costs at most 2^61 units. The
    /// unit is the finest power of two that satisfies this: with a million blocks, the mean term of a block
    /// is a million units or more.
    ///
    /// # Errors
    /// If there are no blocks, or terms are not finite.
    pub fn of(terms: &Terms) -> Result<Prices, Unsolvable> {
        Prices::of_all(&[terms], 0)?.pop().ok_or(Unsolvable::Empty)
    }

    /// The same for several terms, with a common unit that is 2^`room` as large, so that sums with weights of
    /// that total fit.
    ///
    /// # Errors
    /// If there are no blocks, or terms are not finite.
    pub fn of_all(all: &[&Terms], room: u32) -> Result<Vec<Prices>, Unsolvable> {
        let mut greatest = 0.0f64;
        for terms in all {
            let parts = [&terms.back, &terms.forward, &terms.trailing, &terms.boundary];
            if let Some(block) =
                (0..terms.blocks()).find(|&block| parts.iter().any(|part| !part[block].is_finite()))
            {
                return Err(Unsolvable::NotFinite { block });
            }
            let sum = |terms: &[f64]| terms.iter().map(|term| term.abs()).sum::<f64>();
            let reads = (sum(&terms.back) + sum(&terms.forward)) * terms.blocks() as f64;
            let most = terms.boundary.iter().fold(0.0f64, |most, price| most.max(price.abs()));
            greatest = greatest.max(reads + sum(&terms.trailing) + most);
        }
        // Rounding may add half a unit to each term of each block.
        let exponent =
            if greatest > 0.0 { greatest.log2().ceil() as i32 - GREATEST + 1 + room as i32 } else { 0 };
        let unit = f64::from(exponent.clamp(-1000, 1000)).exp2();
        let rounded = |terms: &Terms| {
            let round = |terms: &[f64]| -> Vec<i64> {
                terms.iter().map(|term| (term / unit).round() as i64).collect()
            };
            let prices = Prices::new(
                &round(&terms.back),
                &round(&terms.forward),
                &round(&terms.trailing),
                &round(&terms.boundary),
            )?;
            Ok(Prices { unit, ..prices })
        };
        all.iter().map(|terms| rounded(terms)).collect()
    }

    /// The size of a unit in that of the terms.
    pub fn unit(&self) -> f64 {
        self.unit
    }

    /// The cost of a partitioning, without fixed costs.
    ///
    /// # Panics
    /// If it has another number of blocks.
    pub fn cost_of(&self, partitioning: &Partitioning) -> i128 {
        assert_eq!(self.blocks(), partitioning.blocks(), "a partitioning of other blocks");
        partitioning.iter().map(|blocks| i128::from(self.cost(*blocks.start(), *blocks.end()))).sum()
    }

    /// Checks that the cost of partitions of at most `widest` blocks fits into 64 bits, and that w is Monge.
    pub(super) fn check(&self, widest: usize) -> Result<(), Unsolvable> {
        if let Some(block) = self.negative {
            return Err(Unsolvable::Negative { block });
        }
        let worst = self.reads * (widest as i128 - 1) + self.ends;
        if worst > i128::from(i64::MAX) {
            return Err(Unsolvable::TooGreat { block: self.blocks() - 1 });
        }
        Ok(())
    }

    /// The weighted mean of several prices, times the sum of the weights. All have the same unit.
    ///
    /// # Panics
    /// If there are none.
    pub fn mixed(all: &[Prices], weights: &[i64]) -> Prices {
        let first = &all[0];
        let mut mixed = Prices { before: vec![Before::default(); first.before.len()], ..first.clone() };
        (mixed.reads, mixed.ends, mixed.negative) = (0, 0, None);
        for (prices, &weight) in all.iter().zip(weights) {
            for (sum, own) in mixed.before.iter_mut().zip(&prices.before) {
                let times = |own: u64| own.wrapping_mul(weight as u64);
                sum.back = sum.back.wrapping_add(times(own.back));
                sum.forward = sum.forward.wrapping_add(times(own.forward));
                sum.moment = sum.moment.wrapping_add(times(own.moment));
                sum.end = sum.end.wrapping_add(own.end.wrapping_mul(weight));
            }
            mixed.reads += prices.reads * i128::from(weight);
            mixed.ends += prices.ends * i128::from(weight);
            mixed.negative = mixed.negative.or(prices.negative);
        }
        mixed
    }
}

impl Costs for Prices {
    fn blocks(&self) -> usize {
        self.before.len() - 1
    }

    #[inline]
    fn cost(&self, first: usize, last: usize) -> i64 {
        let (a, b) = (&self.before[first], &self.before[last + 1]);
        let reads = b
            .moment
            .wrapping_sub(a.moment)
            .wrapping_sub((first as u64).wrapping_mul(b.back.wrapping_sub(a.back)))
            .wrapping_add((last as u64).wrapping_mul(b.forward.wrapping_sub(a.forward)));
        (reads as i64).wrapping_add(b.end)
    }
}
