//! Bounds what is spent on moving, whatever the workload does: rent or buy.
//!
//! [`moves`] relies on the past: inserts are expected where they came. A workload that turns away as soon as
//! ghosts are there makes every move vain, and inserts that are remembered for long justify one move after
//! the other. So there is an **account**: an insert earns the moves that it costs if it finds no ghost
//! ([`MOVES`]), and nothing is moved beyond what has been earned and not been spent ([`moves_within`]):
//!
//! ```text
//! rows moved  ≤  MOVES · inserts            at any moment, for any workload                        (1)
//! ```
//!
//! **Regret.** An insert costs at least `base` in any layout, even in one that was chosen in hindsight, and
//! `room` = MOVES moves more if it finds no ghost. After n inserts and the moves that (1) allows,
//!
//! ```text
//! online ≤ n (base + room) + n room,   best ≥ n base,   online / best ≤ 1 + 2 room / base          (2)
//! ```
//! which is 1.209 for the costs of [`Engine::default`](crate::cost::Engine): 80 ns of room, and 768 ns for
//! the look-up and the write. If there are two point queries for each insert, it is less than 1.14. As in
//! every problem of rent or buy, what has been paid as rent is at most the price by the time when one buys; a
//! guess of the future, however wrong, cannot cost more than that.
//!
//! **Not bounded**: moves that the budget of ghosts demands. Memory that somebody wants back has a price of
//! its own. They are not charged, and each of them leaves fewer slices behind.
//!
//! With more offers than the account can pay for, the choice is not exact: the price of a row is raised until
//! the best choice can be paid. That is the best choice for the rows that it moves.

use super::moves::{MoveTerms, Moves, Stretch, moves};

/// An insert that finds no ghost costs so many moves, or fewer: a partition of 2 W - 1 full slices is spread
/// over 2 W, for half as many inserts.
pub const MOVES: f64 = 2.0;
/// The price of a row is raised by a factor of up to two to the power of this.
const RAISES: f64 = 12.0;
/// Steps of the search for the price.
const STEPS: usize = 8;

/// The best choice of moves that can be paid.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Afforded {
    /// The moves.
    pub moves: Moves,
    /// The rows that the account is charged for: those that the number of slices did not demand.
    pub charged: u64,
    /// There were moves that would have been worth their cost, and that the account could not pay.
    pub is_short: bool,
}

/// The rows that some inserts pay for.
pub fn rows_for(inserts: f64) -> u64 {
    (MOVES * inserts.max(0.0)) as u64
}

/// The inserts that pay for some rows.
pub fn inserts_for(rows: u64) -> f64 {
    rows as f64 / MOVES
}

/// The best choice that moves at most `most` rows more than the number of slices demands.
pub fn moves_within(stretches: &[Stretch], terms: &MoveTerms, most: u64) -> Afforded {
    let free = moves(stretches, terms);
    let present: u64 = stretches.iter().map(|stretch| stretch.slices).sum();
    let demanded = match present <= terms.most {
        true => Moves::default(),
        false => moves(stretches, &MoveTerms { room: 0.0, ..*terms }),
    };
    let charged = |moves: &Moves| moves.rows.saturating_sub(demanded.rows);
    if charged(&free) <= most {
        return Afforded { charged: charged(&free), moves: free, is_short: false };
    }
    let (mut best, mut low, mut high) = (demanded.clone(), 0.0, RAISES);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        let found = moves(stretches, &MoveTerms { row: terms.row * f64::exp2(middle), ..*terms });
        if charged(&found) <= most {
            (best, high) = (found, middle);
        } else {
            low = middle;
        }
    }
    best.cost = best.rows as f64 * terms.row;
    Afforded { charged: charged(&best), moves: best, is_short: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Engine;
    use crate::ghosts::{Need, allocate};
    use crate::random::Random;

    const MARGIN: f64 = 1.2;

    /// A column of stretches whose slices are single slots, so that there is no rounding.
    struct Column {
        rows: Vec<u64>,
        ghosts: Vec<u64>,
        /// Inserts that are remembered, by stretch.
        remembered: Vec<f64>,
        /// Inserts that have earned and not been spent; infinite for a column without an account.
        credit: f64,
        inserts: u64,
        /// Rows that were moved because it seemed to pay, and inserts that found no ghost.
        moved: u64,
        short: u64,
    }

    impl Column {
        fn new(stretches: usize, rows: u64, has_account: bool) -> Column {
            Column {
                rows: vec![rows; stretches],
                ghosts: vec![0; stretches],
                remembered: vec![0.0; stretches],
                credit: if has_account { 0.0 } else { f64::INFINITY },
                inserts: 0,
                moved: 0,
                short: 0,
            }
        }

        fn insert(&mut self, at: usize) {
            self.short += u64::from(self.ghosts[at] == 0);
            self.ghosts[at] = self.ghosts[at].saturating_sub(1);
            self.rows[at] += 1;
            self.remembered[at] += 1.0;
            self.credit += 1.0;
            self.inserts += 1;
        }

        fn delete(&mut self, at: usize) {
            if self.rows[at] > 0 {
                self.rows[at] -= 1;
                self.ghosts[at] += 1;
            }
        }

        /// Ghosts are handed out by what is remembered, within a budget.
        fn upkeep(&mut self, budget: u64) {
            let room = MOVES * Engine::default().move_row;
            let needs: Vec<Need> =
                self.remembered.iter().map(|&inserts| Need { inserts, room: 1.0 }).collect();
            let wanted = allocate(&needs, budget);
            let stretch = |at: usize| Stretch {
                rows: self.rows[at],
                slices: self.rows[at] + self.ghosts[at],
                inserts: self.remembered[at],
                wanted: wanted[at],
                short: needs[at].cost(self.ghosts[at]),
                then: needs[at].cost(wanted[at]),
            };
            let stretches: Vec<Stretch> = (0..self.rows.len()).map(stretch).collect();
            let present: u64 = stretches.iter().map(|stretch| stretch.slices).sum();
            let needed = self.rows.iter().sum::<u64>() + budget;
            let most = if present > needed { needed } else { needed.max(present) };
            let terms = MoveTerms { slice: 1, most, room, row: MARGIN * Engine::default().move_row };
            let found = moves_within(&stretches, &terms, rows_for(self.credit));
            self.credit -= inserts_for(found.charged);
            self.moved += found.charged;
            for run in &found.moves.runs {
                let rows: u64 = self.rows[run.stretches.clone()].iter().sum();
                let all: u64 = wanted[run.stretches.clone()].iter().sum();
                let mut left = run.slices - rows;
                for at in run.stretches.clone() {
                    let share = ((run.slices - rows) * wanted[at]).checked_div(all).unwrap_or(0).min(left);
                    self.ghosts[at] = share;
                    left -= share;
                }
                self.ghosts[run.stretches.start] += left;
            }
        }

        fn fewest(&self) -> usize {
            (0..self.rows.len()).min_by_key(|&at| self.ghosts[at]).expect("a column has stretches")
        }

        /// What inserts and moves cost by the model, by what they cost at least.
        fn by_the_best(&self) -> f64 {
            let engine = Engine::default();
            let base = (engine.lookup + engine.write) * self.inserts as f64;
            let room = MOVES * engine.move_row * self.short as f64;
            (base + room + engine.move_row * self.moved as f64) / base
        }

        fn assert_bounds(&self) {
            assert!(self.moved as f64 <= MOVES * self.inserts as f64, "{} {}", self.moved, self.inserts);
            assert!(self.by_the_best() <= 1.209, "{}", self.by_the_best());
        }
    }

    /// A hot spot of the past is remembered. The table rests again and again, so that its ghosts are taken
    /// away, and a single insert in between has them brought back.
    fn rests_again_and_again(has_account: bool) -> Column {
        let mut column = Column::new(6, 4, has_account);
        (0..40).for_each(|_| column.insert(2));
        for round in 0..60 {
            column.insert(round % 6);
            column.upkeep(40);
            column.upkeep(0);
        }
        column
    }

    #[test]
    fn what_is_remembered_pays_once() {
        let column = rests_again_and_again(true);
        column.assert_bounds();
        assert!(column.moved > 40, "it was worth it at first");
        let without = rests_again_and_again(false);
        assert!(without.moved > 10 * without.inserts && without.by_the_best() > 1.3, "{}", without.moved);
    }

    /// The hot spot is always where there are the fewest ghosts, and rows are deleted where there are most.
    #[test]
    fn the_bound_holds_wherever_the_hot_spot_goes() {
        let mut random = Random::new(71);
        let mut moved = 0;
        for _ in 0..60 {
            let mut column = Column::new(2 + random.below(5), 2 + random.below(30) as u64, true);
            let (batch, fades) = (1 + random.below(40), random.below(2) == 0);
            for _ in 0..40 {
                let hot = column.fewest();
                for _ in 0..batch {
                    column.insert(hot);
                    let full = (0..column.rows.len()).max_by_key(|&at| (column.ghosts[at], column.rows[at]));
                    let gone =
                        if random.below(2) == 0 { full } else { Some(random.below(column.rows.len())) };
                    column.delete(gone.expect("a stretch"));
                    column.assert_bounds();
                }
                let rows: u64 = column.rows.iter().sum();
                column.upkeep(if random.below(4) == 0 { 0 } else { rows / (2 + random.below(8) as u64) });
                column.assert_bounds();
                if fades {
                    column.remembered.iter_mut().for_each(|inserts| *inserts /= 2.0);
                }
            }
            moved += column.moved;
        }
        assert!(moved > 1000, "{moved}");
    }

    /// Where the past is a good guess, the account is never short, and inserts find ghosts as long as few
    /// rows have to be moved for them.
    #[test]
    fn a_steady_workload_is_not_held_up() {
        let [with, without] = [true, false].map(|has_account| {
            let mut column = Column::new(6, 5, has_account);
            for _ in 0..20 {
                (0..40).for_each(|_| column.insert(4));
                column.upkeep(60);
            }
            column
        });
        assert_eq!((with.moved, with.short), (without.moved, without.short));
        assert!(with.moved > 100 && with.short + 60 < with.inserts, "{} {}", with.moved, with.short);
    }

    /// What is chosen keeps to the account and to the slices, and equals the free choice if that can be paid.
    #[test]
    fn the_choice_can_be_paid() {
        let mut random = Random::new(72);
        let (mut short, mut forced) = (0, 0);
        for _ in 0..400 {
            let slice = 4 + random.below(5) as u64;
            let stretches: Vec<Stretch> = (0..1 + random.below(6))
                .map(|_| {
                    let slices = 1 + random.below(3) as u64;
                    let rows = random.below((slices * slice + 1) as usize) as u64;
                    let (inserts, wanted) =
                        (random.below(30) as f64, random.below(1 + slice as usize) as u64);
                    let lack = (inserts - (slices * slice - rows) as f64).max(0.0);
                    let then = (inserts - wanted as f64).max(0.0).min(lack);
                    Stretch { rows, slices, inserts, wanted, short: lack, then }
                })
                .collect();
            let present: u64 = stretches.iter().map(|stretch| stretch.slices).sum();
            let needed: u64 = stretches.iter().map(|stretch| stretch.rows + stretch.wanted).sum();
            let most = needed.div_ceil(slice).max(1) + random.below(3) as u64;
            let terms = MoveTerms { slice, most, room: 2.0, row: 0.5 };
            let limit = random.below(20) as u64;
            let found = moves_within(&stretches, &terms, limit);
            let free = moves(&stretches, &terms);
            assert!(found.charged <= limit);
            assert_eq!(found.is_short, found.moves != free || found.moves.rows < free.rows);
            let after: i64 = present as i64
                + found
                    .moves
                    .runs
                    .iter()
                    .map(|run| {
                        let own = stretches[run.stretches.clone()].iter().map(|stretch| stretch.slices);
                        run.slices as i64 - own.sum::<u64>() as i64
                    })
                    .sum::<i64>();
            assert!(after <= most as i64, "{after} {most}");
            assert!((found.moves.cost - found.moves.rows as f64 * terms.row).abs() < 1e-9);
            short += usize::from(found.is_short);
            forced += usize::from(present > most);
        }
        assert!(short > 30 && forced > 30, "{short} {forced}");
    }
}
