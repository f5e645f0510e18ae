//! The cost of a workload, as a number for each block that is multiplied by a factor that depends on the
//! partitioning (section 4.4 of *Optimal Column Layout for Hybrid Workloads*, equations 16 and 17).
//!
//! ```text
//! cost = Σ_i fixed_i + back_i · before(i) + forward_i · behind(i) + trailing_i · boundaries(i)   (16)
//!      + Σ_i boundary_i · p_i
//!
//! before(i)      blocks of i's partition before i         bck_read     (2)
//! behind(i)      blocks of i's partition after i          fwd_read     (4)
//! boundaries(i)  partitions that end at i or later        trail_parts  (8)
//! p_i            1 if a partition ends with block i
//! ```
//! The second line is not in the paper: a price of each boundary by its position, for the memory that a
//! partition takes and for the transition from one layout to another ([`Terms::moving`]).
//!
//! A [`Model`] derives such terms from the frequency model: [`Paper`] by the paper's equations, [`Ghosted`]
//! by what they become where holes stay as ghosts, [`Engine`] by the behaviour of our storage. The solver
//! sees only terms, so it works for every model of this form.
//!
//! Costs are in nanoseconds.

mod boxes;
mod engine;
mod ghosted;
mod paper;
mod sla_bounds;

pub use boxes::blocks_of_box;
pub use engine::{Engine, Machine, Stored};
pub use ghosted::Ghosted;
pub use paper::{Access, Paper};
pub use sla_bounds::SlaBounds;

use crate::frequency::Frequency;
use crate::partitioning::Partitioning;

/// A cost model.
pub trait Model {
    /// The terms of a workload.
    fn terms(&self, frequency: &Frequency) -> Terms;
}

/// The terms for each block. See the module.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// The cost that is independent of the partitioning.
    pub fixed: Vec<f64>,
    /// For each block of the partition before this one (`bck_term`).
    pub back: Vec<f64>,
    /// For each block of the partition after this one (`fwd_term`).
    pub forward: Vec<f64>,
    /// For each partition that ends here or later (`parts_term`). May be negative.
    pub trailing: Vec<f64>,
    /// If a partition ends here. May be negative.
    pub boundary: Vec<f64>,
}

impl Terms {
    /// Terms over this many blocks, all 0.
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

    /// Adds other terms over the same blocks, multiplied by `weight`.
    ///
    /// # Panics
    /// If the numbers of blocks differ.
    pub fn add(&mut self, other: &Terms, weight: f64) {
        assert_eq!(self.blocks(), other.blocks(), "terms over different blocks");
        let others = [&other.fixed, &other.back, &other.forward, &other.trailing, &other.boundary];
        for (own, other) in self.all_mut().into_iter().zip(others) {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += weight * other);
        }
    }

    /// Adds the one-time cost of changing from the present partitioning to another one: a partition that ends
    /// where none ended costs `cut[block]`, one that no longer ends costs `merge[block]`.
    ///
    /// Each boundary is priced separately. So cutting a partition in three costs two cuts, although its rows
    /// might be moved only once; [`crate::solver::Rewrites`] charges a partition once.
    ///
    /// # Panics
    /// If the numbers of blocks differ.
    pub fn moving(&mut self, present: &Partitioning, cut: &[f64], merge: &[f64]) {
        assert_eq!(self.blocks(), present.blocks(), "a partitioning of other blocks");
        let last = self.blocks() - 1;
        for block in 0..last {
            if present.ends_at(block) {
                // A merge is charged as fixed cost, and refunded if there still is a boundary.
                self.fixed[block] += merge[block];
                self.boundary[block] -= merge[block];
            } else {
                self.boundary[block] += cut[block];
            }
        }
    }

    /// The cost of a partitioning.
    ///
    /// # Panics
    /// If it has another number of blocks.
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
        // Ends at 2 and 5: two boundaries are removed and one is new.
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
