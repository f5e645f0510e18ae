//! The pairs of a connected set of relations and a connected complement next to it, each once.
//!
//! **DPccp**: G. Moerkotte and T. Neumann, "Analysis of Two Existing and One New Dynamic Programming
//! Algorithm for the Generation of Optimal Bushy Join Trees without Cross Products", VLDB 2006. Every pair
//! comes after all pairs inside its two halves, so that both halves have their best plan when they meet. For
//! the chain `0 - 1 - 2 - 3`:
//!
//! ```text
//! {3}
//! {2}          {2}-{3}
//! {2,3}
//! {1}          {1}-{2}  {1}-{2,3}
//! {1,2}        {1,2}-{3}
//! {1,2,3}
//! {0}          {0}-{1}  {0}-{1,2}  {0}-{1,2,3}
//! {0,1}        {0,1}-{2}  {0,1}-{2,3}
//! {0,1,2}      {0,1,2}-{3}
//! ```

use super::{Set, members};
use std::ops::ControlFlow;

/// True if there are at most `most` pairs. Takes no longer than as many visits.
pub(super) fn are_at_most(most: usize, neighbours: &[Set]) -> bool {
    let mut left = most;
    let visited = each(neighbours, &mut |_, _| match left {
        0 => ControlFlow::Break(()),
        _ => {
            left -= 1;
            ControlFlow::Continue(())
        }
    });
    visited.is_continue()
}

/// Visits the pairs of a graph in which each relation has these neighbours, until `visit` breaks off.
pub(super) fn each(
    neighbours: &[Set],
    visit: &mut dyn FnMut(Set, Set) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut pairs = Pairs { neighbours, visit };
    for i in (0..neighbours.len()).rev() {
        let start: Set = 1 << i;
        pairs.complements(start)?;
        pairs.grow(start, start | (start - 1))?;
    }
    ControlFlow::Continue(())
}

/// The relations next to those in `set`.
pub(super) fn around(neighbours: &[Set], set: Set) -> Set {
    members(set).fold(0, |found, i| found | neighbours[i]) & !set
}

struct Pairs<'a> {
    neighbours: &'a [Set],
    visit: &'a mut dyn FnMut(Set, Set) -> ControlFlow<()>,
}

impl Pairs<'_> {
    /// Every connected set that contains `set` and nothing of `without`, each with its complements.
    fn grow(&mut self, set: Set, without: Set) -> ControlFlow<()> {
        let around = around(self.neighbours, set) & !without;
        for part in subsets(around) {
            self.complements(set | part)?;
        }
        for part in subsets(around) {
            self.grow(set | part, without | around)?;
        }
        ControlFlow::Continue(())
    }

    /// Every connected set next to `set` whose smallest relation is above `set`'s smallest.
    fn complements(&mut self, set: Set) -> ControlFlow<()> {
        let lowest = set & set.wrapping_neg();
        let without = set | (lowest - 1) | lowest;
        let around = around(self.neighbours, set) & !without;
        let mut rest = around;
        while rest != 0 {
            let i = 63 - rest.leading_zeros();
            let start: Set = 1 << i;
            rest &= !start;
            (self.visit)(set, start)?;
            // Relations of `around` below this one start complements of their own.
            self.grow_complement(set, start, without | (around & (start | (start - 1))))?;
        }
        ControlFlow::Continue(())
    }

    fn grow_complement(&mut self, set: Set, complement: Set, without: Set) -> ControlFlow<()> {
        let around = around(self.neighbours, complement) & !without & !set;
        for part in subsets(around) {
            (self.visit)(set, complement | part)?;
        }
        for part in subsets(around) {
            self.grow_complement(set, complement | part, without | around)?;
        }
        ControlFlow::Continue(())
    }
}

/// All subsets of `set` but the empty one, smaller ones before those that contain them.
pub(super) fn subsets(set: Set) -> impl Iterator<Item = Set> {
    let mut part: Set = 0;
    std::iter::from_fn(move || {
        part = part.wrapping_sub(set) & set;
        (part != 0).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The neighbours in the chain of so many relations.
    fn chain(relations: u32) -> Vec<Set> {
        let all: Set = (1 << relations) - 1;
        (0..relations).map(|i| (1u64 << i << 1 | 1u64 << i >> 1) & all).collect()
    }

    #[test]
    fn a_chain_has_its_pairs_and_no_more() {
        let mut found = Vec::new();
        let _ = each(&chain(8), &mut |a, b| {
            found.push((a, b));
            ControlFlow::Continue(())
        });
        // A chain of n has (n^3 - n) / 6 pairs.
        assert_eq!(found.len(), (512 - 8) / 6);
        for (at, &(a, b)) in found.iter().enumerate() {
            assert_eq!(a & b, 0);
            let is_half = |set: Set| set.count_ones() == 1 || found[..at].iter().any(|(c, d)| c | d == set);
            assert!(is_half(a) && is_half(b), "{a:b} and {b:b} before their halves");
        }
        assert!(are_at_most(84, &chain(8)) && !are_at_most(83, &chain(8)));
    }

    #[test]
    fn counting_pairs_ends_early() {
        // A clique of 40 relations has more pairs than could be counted.
        let clique: Vec<Set> = (0..40).map(|i| ((1 << 40) - 1) & !(1 << i)).collect();
        assert!(!are_at_most(1000, &clique));
    }

    #[test]
    fn subsets_come_in_order() {
        assert_eq!(subsets(0b1011).collect::<Vec<_>>(), [1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(subsets(0).count(), 0);
    }
}
