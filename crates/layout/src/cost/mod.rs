//! What a workload costs, as a number for each block that is multiplied with something that depends on the
//! partitioning (section 4.4 of *Optimal Column Layout for Hybrid Workloads*, equations 16 and 17).
//!
//! ```text
//! cost = Σ_i fixed_i + back_i · before(i) + forward_i · behind(i) + trailing_i · boundaries(i)   (16)
//!      + Σ_i boundary_i · p_i
//!
//! before(i)      blocks of i's partition before i         bck_read     (2)
//! behind(i)      blocks of i's partition behind i         fwd_read     (4)
//! boundaries(i)  partitions that end at i or behind       trail_parts  (8)
//! p_i            1 if a partition ends with block i
//! ```
//! The second line is not in the paper: a price of a boundary by its place, for what a partition takes in
//! memory and for the way from one layout to another ([`Terms::moving`]).
//!
//! [`Model`] makes such terms of the frequency model: [`Paper`] by the paper's equations, [`Engine`] by what
//! our storage does. The solver sees terms only, so it serves every model of this form.
//!
//! Costs are in nanoseconds.

mod engine;
mod paper;

pub use engine::Engine;
pub use paper::{Access, Paper};

use crate::frequency::Frequency;
use crate::partitioning::Partitioning;

/// Something that knows what operations cost.
pub trait Model {
    /// The terms of a workload.
    fn terms(&self, frequency: &Frequency) -> Terms;
}

/// Numbers for each block. See the module.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// What no partitioning changes.
    pub fixed: Vec<f64>,
    /// For each block of the partition before this one (`bck_term`).
    pub back: Vec<f64>,
    /// For each block of the partition behind this one (`fwd_term`).
    pub forward: Vec<f64>,
    /// For each partition that ends here or behind (`parts_term`). May be negative.
    pub trailing: Vec<f64>,
    /// If a partition ends here. May be negative.
    pub boundary: Vec<f64>,
}

impl Terms {
    /// Terms over so many blocks, all 0.
    pub fn new(blocks: usize) -> Terms {
        let zeros = || vec![0.0; blocks];
        Terms { fixed: zeros(), back: zeros(), forward: zeros(), trailing: zeros(), boundary: zeros() }
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.fixed.len()
    }

    fn all_mut(&mut self) -> [&mut Vec<f64>; 5] {
        [&mut self.fixed, &mut self.back, &mut self.forward, &mut self.trailing, &mut self.boundary]
    }

    /// Adds other terms over the same blocks, `weight` times.
    ///
    /// # Panics
    /// If there are not as many blocks.
    pub fn add(&mut self, other: &Terms, weight: f64) {
        assert_eq!(self.blocks(), other.blocks(), "terms over different blocks");
        let others = [&other.fixed, &other.back, &other.forward, &other.trailing, &other.boundary];
        for (own, other) in self.all_mut().into_iter().zip(others) {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += weight * other);
        }
    }

    /// Adds what it costs to come from the present partitioning to another one, once: a partition that ends
    /// where none ended costs `cut[block]`, one that no longer ends costs `merge[block]`.
    ///
    /// Each boundary has its price by itself. So cutting a partition in three costs two cuts, although its
    /// rows might be moved once; [`crate::solver::Rewrites`] charges a partition once.
    ///
    /// # Panics
    /// If there are not as many blocks.
    pub fn moving(&mut self, present: &Partitioning, cut: &[f64], merge: &[f64]) {
        assert_eq!(self.blocks(), present.blocks(), "a partitioning of other blocks");
        let last = self.blocks() - 1;
        for block in 0..last {
            if present.ends_at(block) {
                // To merge costs what it costs, unless there still is a boundary.
                self.fixed[block] += merge[block];
                self.boundary[block] -= merge[block];
            } else {
                self.boundary[block] += cut[block];
            }
        }
    }

    /// What a partitioning costs.
    ///
    /// # Panics
    /// If it is one of other blocks.
    pub fn cost(&self, partitioning: &Partitioning) -> f64 {
        assert_eq!(self.blocks(), partitioning.blocks(), "a partitioning of other blocks");
        let mut cost = 0.0;
        let partitions = partitioning.partitions();
        for (number, blocks) in partitioning.iter().enumerate() {
            let (first, last) = (*blocks.start(), *blocks.end());
            let boundaries = (partitions - number) as f64;
            for block in blocks {
                cost += self.fixed[block]
                    + self.back[block] * (block - first) as f64
                    + self.forward[block] * (last - block) as f64
                    + self.trailing[block] * boundaries;
            }
            cost += self.boundary[last];
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_has_its_price() {
        let (present, cut, merge) = (Partitioning::equal(6, 2), [5.0; 6], [3.0; 6]);
        let mut terms = Terms::new(6);
        terms.moving(&present, &cut, &merge);
        assert_eq!(terms.cost(&present), 0.0);
        assert_eq!(terms.cost(&Partitioning::equal(6, 6)), 6.0);
        assert_eq!(terms.cost(&Partitioning::equal(6, 1)), 15.0);
        // Ends at 2 and 5: two boundaries are gone and one is new.
        assert_eq!(terms.cost(&Partitioning::equal(6, 3)), 11.0);
    }

    #[test]
    fn terms_are_linear() {
        let mut terms = Terms { back: vec![1.0, 2.0, 3.0], ..Terms::new(3) };
        let other = Terms { forward: vec![1.0; 3], trailing: vec![-1.0; 3], ..Terms::new(3) };
        let whole = Partitioning::equal(3, 3);
        let (a, b) = (terms.cost(&whole), other.cost(&whole));
        assert_eq!((a, b), (8.0, 0.0));
        terms.add(&other, 2.0);
        assert_eq!(terms.cost(&whole), a + 2.0 * b);
    }
}
