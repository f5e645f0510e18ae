//! The paper's cost model: equations 2 to 17 of *Optimal Column Layout for Hybrid Workloads*.
//!
//! A column is dense; an insert or a delete moves one value for each partition through all later partitions
//! (ripple). An access to a block costs RR or RW if it is random, SR if it is sequential.
//!
//! | equation | content | here |
//! |---|---|---|
//! | 1 | the least cost is sought | [`crate::solver`] |
//! | 2, 4, 8 | `bck_read`, `fwd_read`, `trail_parts` | [`super::Terms::cost`] counts them; the tests use the formulas |
//! | 3, 5, 6 | ranges: rs · (RR + SR · bck), re · (SR + SR · fwd), sc · SR | fixed, back; fixed, forward; fixed |
//! | 7 | point queries: pq · (RR + SR · (fwd + bck)) | fixed, back, forward |
//! | 9 | inserts: in · (RR + RW) · (1 + trail) | fixed, trailing |
//! | 10, 11 | deletes: a point query, de · RW + de · (RR + RW) · trail | fixed, back, forward, trailing |
//! | 12, 13 | forward: a point query, udf · (RR + 2 RW) + udf · (RR + RW) · trail; − utf · (RR + RW) · trail | the same |
//! | 14, 15 | backward: a point query, udb · (RR + 2 RW) − udb · (RR + RW) · trail; + utb · (RR + RW) · trail | the same |
//! | 16, 17 | the sum, and the terms by block | [`Paper::terms`] |
//!
//! **Where the text is wrong or ambiguous.**
//! - SW is introduced but used by no equation; nor is it used here.
//! - Equation 8 counts the partition of block i itself, so `trail_parts` is k − m + 1 for the m-th of k
//!   partitions, though the text speaks of partitions "trailing". Equation 9 then charges k − m + 2 moves,
//!   section 3 only k − m. The equations are implemented, as they agree with "two blocks in the last
//!   partition and one in each other".
//! - Equation 10 charges a delete no random read of its own, as the point query has just read the block, but
//!   in the text it touches two blocks in its partition. The equation is implemented.
//! - "Consider the fifth block … If neither p4 nor p5 is set": equations count blocks from 0, so the fifth is
//!   block 4; this is consistent.
//! - Equation 7 has RR for the block that a query finds, and equation 9 for one through which a row ripples;
//!   measured, the first takes several times as long. So [`Access::jump`] is by itself; where it equals RR,
//!   the equations are as printed.
//! - Equations 19 and 20 have misprints, see `tests/integer_program/formulation.rs`.

use super::{Model, Terms};
use crate::frequency::{Frequency, Kind};

/// The costs of accessing a block, in nanoseconds.
///
/// **They hold for a column of one size**, since they are those of the caches in which it is found: they have
/// to be measured with as many rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Access {
    /// RR of a point query or a range: find a block anywhere in the column, and compare all of its keys. The
    /// paper has one RR for this and for ripples; but these touch a row at the borders of partitions, again
    /// and again, which a near cache has, and a query any block.
    pub jump: f64,
    /// RR of a ripple: read a row at the border of a partition.
    pub random_read: f64,
    /// RW: write a row at the border of a partition.
    pub random_write: f64,
    /// SR: read the next block.
    pub sequential_read: f64,
    /// SW: write the next block. No equation uses it.
    pub sequential_write: f64,
}

impl Access {
    /// The figures of section 4.5: 100 ns for random accesses, a fourteenth of that for the next block. It
    /// gives none for sequential writes.
    pub const OF_THE_PAPER: Access = Access {
        jump: 100.0,
        random_read: 100.0,
        random_write: 100.0,
        sequential_read: 100.0 / 14.0,
        sequential_write: 100.0 / 14.0,
    };
}

/// The paper's model. See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paper {
    /// The costs of accesses.
    pub access: Access,
}

impl Model for Paper {
    /// Equation 17, with a jump in place of the RR of whatever is a point query first.
    fn terms(&self, frequency: &Frequency) -> Terms {
        let Access { jump, random_read: rr, random_write: rw, sequential_read: sr, .. } = self.access;
        let of = |kind: Kind| frequency.of(kind);
        let mut terms = Terms::new(frequency.blocks());
        for i in 0..frequency.blocks() {
            let (pq, rs, sc, re) =
                (of(Kind::PointQuery)[i], of(Kind::RangeStart)[i], of(Kind::Scan)[i], of(Kind::RangeEnd)[i]);
            let (ins, de) = (of(Kind::Insert)[i], of(Kind::Delete)[i]);
            let (udf, utf) = (of(Kind::UpdateFromForward)[i], of(Kind::UpdateToForward)[i]);
            let (udb, utb) = (of(Kind::UpdateFromBackward)[i], of(Kind::UpdateToBackward)[i]);
            terms.fixed[i] = jump * (rs + pq + de + udf + udb)
                + rr * (ins + udf + udb)
                + sr * (re + sc)
                + rw * (ins + de + 2.0 * udf + 2.0 * udb);
            terms.back[i] = sr * (rs + pq + de + udf + udb);
            terms.forward[i] = sr * (re + pq + de + udf + udb);
            terms.trailing[i] = (rr + rw) * (ins + de + udf - utf - udb + utb);
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitioning::Partitioning;
    use crate::random::Random;

    /// The twin: the equations as they are printed, operation by operation, with p as bits.
    struct Printed<'a> {
        p: Vec<f64>,
        access: Access,
        frequency: &'a Frequency,
    }

    impl Printed<'_> {
        fn n(&self) -> usize {
            self.p.len()
        }

        /// Equation 2.
        fn bck_read(&self, i: usize) -> f64 {
            (0..i).map(|j| (j..i).map(|k| 1.0 - self.p[k]).product::<f64>()).sum()
        }

        /// Equation 4.
        fn fwd_read(&self, i: usize) -> f64 {
            let n = self.n();
            (0..n - i).map(|j| (i..n - j).map(|k| 1.0 - self.p[k]).product::<f64>()).sum()
        }

        /// Equation 8.
        fn trail_parts(&self, i: usize) -> f64 {
            (i..self.n()).map(|j| self.p[j]).sum()
        }

        /// Equation 3.
        fn cost_rs(&self, i: usize, rs: f64) -> f64 {
            rs * self.access.random_read + rs * self.access.sequential_read * self.bck_read(i)
        }

        /// Equation 5.
        fn cost_re(&self, i: usize, re: f64) -> f64 {
            re * self.access.sequential_read + re * self.access.sequential_read * self.fwd_read(i)
        }

        /// Equation 6.
        fn cost_sc(&self, sc: f64) -> f64 {
            sc * self.access.sequential_read
        }

        /// Equation 7.
        fn cost_pq(&self, i: usize, pq: f64) -> f64 {
            pq * self.access.random_read
                + pq * self.access.sequential_read * (self.fwd_read(i) + self.bck_read(i))
        }

        fn move_one(&self) -> f64 {
            self.access.random_read + self.access.random_write
        }

        /// Equation 9.
        fn cost_in(&self, i: usize, ins: f64) -> f64 {
            ins * self.move_one() * (1.0 + self.trail_parts(i))
        }

        /// Equations 10 and 11.
        fn cost_de(&self, i: usize, de: f64) -> f64 {
            let cost_rd = de * self.access.random_write + de * self.move_one() * self.trail_parts(i);
            self.cost_pq(i, de) + cost_rd
        }

        fn leave(&self, i: usize, count: f64) -> f64 {
            self.cost_pq(i, count) + count * (self.access.random_read + 2.0 * self.access.random_write)
        }

        /// Equation 12.
        fn cost_udf(&self, i: usize, udf: f64) -> f64 {
            self.leave(i, udf) + udf * self.move_one() * self.trail_parts(i)
        }

        /// Equation 13.
        fn cost_utf(&self, i: usize, utf: f64) -> f64 {
            -utf * self.move_one() * self.trail_parts(i)
        }

        /// Equation 14.
        fn cost_udb(&self, i: usize, udb: f64) -> f64 {
            self.leave(i, udb) - udb * self.move_one() * self.trail_parts(i)
        }

        /// Equation 15.
        fn cost_utb(&self, i: usize, utb: f64) -> f64 {
            utb * self.move_one() * self.trail_parts(i)
        }

        fn cost(&self) -> f64 {
            let of = |kind: Kind, i: usize| self.frequency.of(kind)[i];
            let block = |i: usize| {
                self.cost_rs(i, of(Kind::RangeStart, i))
                    + self.cost_sc(of(Kind::Scan, i))
                    + self.cost_re(i, of(Kind::RangeEnd, i))
                    + self.cost_pq(i, of(Kind::PointQuery, i))
                    + self.cost_in(i, of(Kind::Insert, i))
                    + self.cost_de(i, of(Kind::Delete, i))
                    + self.cost_udf(i, of(Kind::UpdateFromForward, i))
                    + self.cost_utf(i, of(Kind::UpdateToForward, i))
                    + self.cost_udb(i, of(Kind::UpdateFromBackward, i))
                    + self.cost_utb(i, of(Kind::UpdateToBackward, i))
            };
            (0..self.n()).map(block).sum()
        }
    }

    fn printed<'a>(partitioning: &Partitioning, access: Access, frequency: &'a Frequency) -> Printed<'a> {
        let p = partitioning.bits().into_iter().map(|bit| f64::from(u8::from(bit))).collect();
        Printed { p, access, frequency }
    }

    #[test]
    fn terms_equal_the_printed_equations() {
        let mut random = Random::new(2);
        for _ in 0..2000 {
            let blocks = 1 + random.below(12);
            let mut frequency = Frequency::new(blocks);
            for kind in Kind::ALL {
                frequency.of_mut(kind).iter_mut().for_each(|bin| *bin = random.below(20) as f64);
            }
            let mut price = || random.below(50) as f64 / 2.0;
            let read = price();
            let access = Access {
                jump: read,
                random_read: read,
                random_write: price(),
                sequential_read: price(),
                sequential_write: price(),
            };
            let bits: Vec<bool> = (0..blocks).map(|_| random.below(3) == 0).collect();
            let partitioning = Partitioning::of_bits(&bits).expect("blocks");
            let terms = Paper { access }.terms(&frequency);
            let (cost, twin) = (terms.cost(&partitioning), printed(&partitioning, access, &frequency).cost());
            assert!((cost - twin).abs() <= 1e-9 * twin.abs().max(1.0), "{cost} for {twin}");
        }
    }

    /// Section 4.4 on figure 7c: a range that begins in the third block reads (1 - p1) + (1 - p1)(1 - p0)
    /// unnecessary blocks; and on figure 6: a point query for 7, in the third block, reads one block if p1
    /// and p2 are set, and four if only p3 is.
    #[test]
    fn the_paper_counts_blocks() {
        let access = Access {
            jump: 0.0,
            random_read: 0.0,
            random_write: 0.0,
            sequential_read: 1.0,
            sequential_write: 0.0,
        };
        let cost = |kind: Kind, bits: &[bool]| {
            let mut frequency = Frequency::new(bits.len());
            frequency.of_mut(kind)[2] = 1.0;
            let partitioning = Partitioning::of_bits(bits).expect("blocks");
            Paper { access }.terms(&frequency).cost(&partitioning)
        };
        for (p0, p1, blocks) in
            [(true, true, 0.0), (false, true, 0.0), (true, false, 1.0), (false, false, 2.0)]
        {
            assert_eq!(cost(Kind::RangeStart, &[p0, p1, true, false]), blocks);
        }
        let beyond_the_first = |bits: &[bool]| cost(Kind::PointQuery, bits);
        assert_eq!(beyond_the_first(&[false, true, true, false, false, false, false, true]), 0.0);
        assert_eq!(beyond_the_first(&[false, false, false, true, false, false, false, true]), 3.0);
    }

    /// Section 4.4: an update costs what its ripple crosses, by whichever pair of equations it is counted.
    #[test]
    fn an_update_within_a_block_costs_the_same_either_way() {
        let access = Access::OF_THE_PAPER;
        for bits in [[false; 4], [true; 4], [false, true, false, true]] {
            let partitioning = Partitioning::of_bits(&bits).expect("blocks");
            let cost = |from: Kind, to: Kind| {
                let mut frequency = Frequency::new(4);
                frequency.of_mut(from)[1] = 1.0;
                frequency.of_mut(to)[1] = 1.0;
                Paper { access }.terms(&frequency).cost(&partitioning)
            };
            let forward = cost(Kind::UpdateFromForward, Kind::UpdateToForward);
            let backward = cost(Kind::UpdateFromBackward, Kind::UpdateToBackward);
            assert!((forward - backward).abs() < 1e-9);
        }
    }

    #[test]
    fn section_4_5() {
        // A chunk of 100 partitions: an insert into the first one moves 101 times.
        let mut frequency = Frequency::new(100);
        frequency.of_mut(Kind::Insert)[0] = 1.0;
        let cost = Paper { access: Access::OF_THE_PAPER }.terms(&frequency);
        assert!((cost.cost(&Partitioning::equal(100, 1)) - 20_200.0).abs() < 1e-6);
        assert!((cost.cost(&Partitioning::equal(100, 100)) - 400.0).abs() < 1e-6);
    }
}
