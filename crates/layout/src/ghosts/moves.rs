//! Chooses which rows to spread again, so that ghosts come to be where they are wanted and no more slices are
//! used than the budget allows: exactly.
//!
//! A column is a sequence of *stretches*: neighbouring slices that can be spread by themselves, since no
//! partition crosses their ends. Spreading a run of stretches moves all its rows, once, to any number of
//! slices that can hold them. Its value is determined by the shortages: inserts that are expected to find no
//! ghost, before and after. The choice with the least cost,
//!
//! ```text
//! Σ over runs   row · rows of the run  −  room · (shortage as it is − shortage afterwards)
//! ```
//! is sought among all sets of disjoint runs after which there are at most `most` slices. The empty set is
//! allowed, if there are few enough slices, so rows are only moved if that pays, or if the budget requires
//! it. The caller includes a margin in `row`.
//!
//! The recurrence runs over the stretches from the left and the slices used so far: D(i, t) is the least of
//! D(i − 1, t − slices of i) and, over runs a..i and their slices s, D(a, t − s) plus the cost of the run.
//! Runs of more than [`LONG`] stretches have only one number of slices, that with all the wanted ghosts.
//!
//! A run that gets fewer ghosts than its stretches want gives each the same share of them. The shortage is
//! then calculated as if inserts arrived uniformly, without variance.

use std::ops::Range;

/// Longer runs are not spread with fewer ghosts than they want.
const LONG: usize = 8;

/// Slices that can be spread by themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Number of its rows.
    pub rows: u64,
    /// Its present number of slices.
    pub slices: u64,
    /// Expected number of inserts.
    pub inserts: f64,
    /// Number of ghosts that it should have.
    pub wanted: u64,
    /// Inserts that are expected to find no ghost at present.
    pub short: f64,
    /// The same with the wanted ghosts.
    pub then: f64,
}

/// The costs and benefits of moving.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoveTerms {
    /// Slots of a slice.
    pub slice: u64,
    /// The most slices afterwards. Must be enough for all rows and all wanted ghosts, or for the present
    /// slices.
    pub most: u64,
    /// The additional cost of an insert that finds no ghost.
    pub room: f64,
    /// The cost of moving a row.
    pub row: f64,
}

/// A run of stretches to spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The stretches.
    pub stretches: Range<usize>,
    /// Number of their slices afterwards.
    pub slices: u64,
}

/// The chosen moves.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Moves {
    /// The runs, in order.
    pub runs: Vec<Move>,
    /// Number of moved rows.
    pub rows: u64,
    /// Their cost.
    pub cost: f64,
    /// Their saving.
    pub saving: f64,
}

/// A run that may be spread.
#[derive(Clone, Copy)]
struct Offer {
    first: usize,
    slices: u64,
    rows: u64,
    saving: f64,
    net: f64,
}

/// The best choice. See the module.
pub fn moves(stretches: &[Stretch], terms: &MoveTerms) -> Moves {
    let present: u64 = stretches.iter().map(|stretch| stretch.slices).sum();
    let fits = present <= terms.most;
    // Grouped by the end of the run.
    let mut offers: Vec<Vec<Offer>> = vec![Vec::new(); stretches.len() + 1];
    let mut is_empty = true;
    for first in 0..stretches.len() {
        for end in first + 1..=stretches.len() {
            let run = &stretches[first..end];
            let now: u64 = run.iter().map(|stretch| stretch.slices).sum();
            each_choice(run, terms, |slices, saving| {
                let rows = run.iter().map(|stretch| stretch.rows).sum();
                let net = terms.row * rows as f64 - terms.room * saving;
                // If neither the number of slices nor the cost falls, doing nothing is as good.
                if net < 0.0 || slices < now {
                    is_empty &= fits && net >= 0.0;
                    offers[end].push(Offer { first, slices, rows, saving: terms.room * saving, net });
                }
            });
        }
    }
    if is_empty {
        return Moves::default();
    }
    chosen(stretches, terms.most as usize, &offers)
}

/// Calls `each` with each number of slices over which a run may be spread, and the shortage that this saves.
fn each_choice(run: &[Stretch], terms: &MoveTerms, mut each: impl FnMut(u64, f64)) {
    let rows: u64 = run.iter().map(|stretch| stretch.rows).sum();
    let wanted: u64 = run.iter().map(|stretch| stretch.wanted).sum();
    let short: f64 = run.iter().map(|stretch| stretch.short).sum();
    let most = (rows + wanted).div_ceil(terms.slice).max(1);
    each(most, short - run.iter().map(|stretch| stretch.then).sum::<f64>());
    if run.len() > LONG {
        return;
    }
    for slices in rows.div_ceil(terms.slice).max(1)..most {
        let share = (slices * terms.slice - rows) as f64 / wanted as f64;
        let left = run.iter().map(|stretch| (stretch.inserts - share * stretch.wanted as f64).max(0.0));
        each(slices, short - left.sum::<f64>());
    }
}

/// The set of disjoint offers with the least cost, with at most `most` slices afterwards.
fn chosen(stretches: &[Stretch], most: usize, offers: &[Vec<Offer>]) -> Moves {
    let width = most + 1;
    let mut least = vec![f64::INFINITY; width * (stretches.len() + 1)];
    // The index of the offer that ends here; `None` if the stretch is not moved.
    let mut by: Vec<Option<usize>> = vec![None; least.len()];
    least[0] = 0.0;
    for end in 1..=stretches.len() {
        let stays = stretches[end - 1].slices as usize;
        for slices in stays..width {
            least[end * width + slices] = least[(end - 1) * width + slices - stays];
        }
        for (number, offer) in offers[end].iter().enumerate() {
            for slices in offer.slices as usize..width {
                let cost = least[offer.first * width + slices - offer.slices as usize] + offer.net;
                if cost < least[end * width + slices] {
                    least[end * width + slices] = cost;
                    by[end * width + slices] = Some(number);
                }
            }
        }
    }
    let last = stretches.len() * width;
    let best = (0..width).min_by(|&a, &b| least[last + a].total_cmp(&least[last + b])).unwrap_or(0);
    let mut moves = Moves::default();
    if least[last + best].is_infinite() {
        return moves;
    }
    let (mut end, mut slices) = (stretches.len(), best);
    while end > 0 {
        match by[end * width + slices] {
            None => {
                slices -= stretches[end - 1].slices as usize;
                end -= 1;
            }
            Some(number) => {
                let offer = offers[end][number];
                moves.runs.push(Move { stretches: offer.first..end, slices: offer.slices });
                moves.rows += offer.rows;
                moves.saving += offer.saving;
                moves.cost += offer.net + offer.saving;
                slices -= offer.slices as usize;
                end = offer.first;
            }
        }
    }
    moves.runs.reverse();
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The twin: all sets of runs, stretch by stretch. Returns the least cost.
    fn twin(stretches: &[Stretch], used: u64, terms: &MoveTerms) -> f64 {
        if stretches.is_empty() {
            return if used <= terms.most { 0.0 } else { f64::INFINITY };
        }
        let mut least = twin(&stretches[1..], used + stretches[0].slices, terms);
        for end in 1..=stretches.len() {
            let run = &stretches[..end];
            let rows: u64 = run.iter().map(|stretch| stretch.rows).sum();
            each_choice(run, terms, |slices, saving| {
                let cost = terms.row * rows as f64 - terms.room * saving;
                least = least.min(cost + twin(&stretches[end..], used + slices, terms));
            });
        }
        least
    }

    fn random_stretches(random: &mut Random, slice: u64) -> Vec<Stretch> {
        let count = 1 + random.below(5);
        let stretch = |random: &mut Random| {
            let slices = 1 + random.below(3) as u64;
            let rows = random.below((slices * slice + 1) as usize) as u64;
            let inserts = random.below(20) as f64;
            let wanted = random.below(1 + slice as usize) as u64;
            let short = (inserts - (slices * slice - rows) as f64).max(0.0);
            Stretch { rows, slices, inserts, wanted, short, then: (inserts - wanted as f64).max(0.0) }
        };
        (0..count).map(|_| stretch(random)).collect()
    }

    #[test]
    fn the_choice_equals_its_twin() {
        let mut random = Random::new(61);
        let (mut moved, mut forced) = (0, 0);
        for round in 0..600 {
            let slice = 4 + random.below(5) as u64;
            let stretches = random_stretches(&mut random, slice);
            let needed: u64 = stretches.iter().map(|stretch| stretch.rows + stretch.wanted).sum();
            let present: u64 = stretches.iter().map(|stretch| stretch.slices).sum();
            let most = needed.div_ceil(slice).max(1) + random.below(3) as u64;
            let row = [0.1, 1.0, 3.0][random.below(3)];
            let terms = MoveTerms { slice, most, room: 2.0, row };
            let found = moves(&stretches, &terms);
            let least = twin(&stretches, 0, &terms);
            let net = found.cost - found.saving;
            assert!((net - least).abs() < 1e-9, "round {round}: {found:?} {least} {stretches:?} {terms:?}");
            let mut after = present;
            let mut end = 0;
            for run in &found.runs {
                assert!(run.stretches.start >= end, "runs are disjoint and in order");
                end = run.stretches.end;
                let own = &stretches[run.stretches.clone()];
                assert!(own.iter().map(|stretch| stretch.rows).sum::<u64>() <= run.slices * slice);
                after = after + run.slices - own.iter().map(|stretch| stretch.slices).sum::<u64>();
            }
            assert!(after <= most, "{after} {most}");
            moved += usize::from(!found.runs.is_empty());
            forced += usize::from(present > most);
        }
        assert!(moved > 100 && forced > 50, "{moved} {forced}");
    }

    #[test]
    fn what_does_not_pay_stays() {
        let even = Stretch { rows: 1000, slices: 1, inserts: 20.0, wanted: 10, short: 10.0, then: 10.0 };
        let terms = MoveTerms { slice: 1024, most: 8, room: 80.0, row: 48.0 };
        assert_eq!(moves(&[even; 8], &terms), Moves::default());
        // A thousand inserts are worth moving the thousand rows of one slice.
        let hot = Stretch { inserts: 1000.0, wanted: 1000, short: 976.0, then: 0.0, ..even };
        let stretches = [even, even, hot, even];
        let found = moves(&stretches, &terms);
        assert_eq!(found.runs, [Move { stretches: 2..3, slices: 2 }]);
        // If there are too many slices, those with the fewest rows per slice are merged.
        let thin = Stretch { rows: 300, ..even };
        let found = moves(&[even, thin, thin, even], &MoveTerms { most: 3, ..terms });
        assert_eq!(found.runs, [Move { stretches: 1..3, slices: 1 }]);
        assert_eq!(found.rows, 600);
        assert_eq!(moves(&[], &terms), Moves::default());
    }
}
