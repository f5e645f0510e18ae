//! The order of conjuncts, from measurements.
//!
//! A conjunct that passes a share `s` of the rows and costs `c` per row has the rank `(1 - s) / c`: the rows
//! that it rules out per nanosecond. If conjuncts are independent, descending ranks are the cheapest order
//! (Hellerstein and Stonebraker, *Predicate Migration*).
//!
//! 1. Occasionally ([`EVERY`]) a stretch is a sample: one conjunct, each in turn, runs before all others and
//!    is measured. So all figures are of comparable rows; an expensive conjunct is not judged by the few rows
//!    that others leave.
//! 2. A conjunct with a far lower rank is measured in few rounds only: running it first costs more than it
//!    can gain.
//! 3. The figures of older samples are halved with each new one, and ranks are compared after each sample.
//!    Conjuncts that were never measured come last, in the given order.
//!
//! Only the first few conjuncts may move; the caller puts those that may fail, and all after them, at the
//! end. The caller runs the conjuncts and has the clock: here are only numbers, so that tests need no time.

/// One in this many stretches is a sample, after the first turns.
const EVERY: usize = 64;
/// The number of turns that each conjunct has at the start.
const FIRST_TURNS: usize = 2;
/// The factor below the best rank at which a conjunct is far behind.
const FAR_BEHIND: f64 = 8.0;
/// A conjunct that is far behind has its turn in one of this many rounds.
const PATIENCE: usize = 8;

/// See the module.
#[derive(Debug)]
pub(crate) struct Order {
    figures: Vec<Figures>,
    /// Conjuncts in the decided order; in a sample, the measured one comes first.
    order: Vec<usize>,
    /// The number of conjuncts, from the first, that may move.
    free: usize,
    /// The conjunct that runs first in the current sample.
    sampled: Option<usize>,
    stretches: usize,
    turn: usize,
}

/// What a conjunct did when it ran first.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    samples: usize,
    seen: f64,
    passed: f64,
    nanoseconds: f64,
}

impl Figures {
    /// Rows ruled out per nanosecond; without a sample, below all others.
    fn rank(&self) -> f64 {
        match self.samples {
            0 => -1.0,
            _ => (self.seen - self.passed) / self.nanoseconds.max(1.0),
        }
    }
}

impl Order {
    /// An order of `count` conjuncts, of which the first `free` may move.
    pub(crate) fn new(count: usize, free: usize) -> Order {
        let order = (0..count).collect();
        Order { figures: vec![Figures::default(); free], order, free, sampled: None, stretches: 0, turn: 0 }
    }

    /// Begins a stretch. If it is a sample, returns the conjunct that runs first and must be measured.
    pub(crate) fn begin(&mut self) -> Option<usize> {
        if self.free < 2 {
            return None;
        }
        if self.sampled.take().is_some() {
            self.decide();
        }
        let stretch = self.stretches;
        self.stretches += 1;
        if stretch >= self.free * FIRST_TURNS && !stretch.is_multiple_of(EVERY) {
            return None;
        }
        let (round, conjunct) = (self.turn / self.free, self.turn % self.free);
        self.turn += 1;
        let best = self.figures[self.order[0]].rank();
        let own = self.figures[conjunct];
        let is_behind = own.samples > 0 && own.rank() * FAR_BEHIND < best;
        if is_behind && round >= FIRST_TURNS && !round.is_multiple_of(PATIENCE) {
            return None;
        }
        let place = self.order.iter().position(|&other| other == conjunct).expect("each has a place");
        self.order[..=place].rotate_right(1);
        self.sampled = Some(conjunct);
        self.sampled
    }

    /// The conjuncts, in the order in which they run.
    pub(crate) fn conjuncts(&self) -> &[usize] {
        &self.order
    }

    /// Records the result of the sampled conjunct: how many of the rows that it saw passed, and how long that
    /// took.
    pub(crate) fn measured(&mut self, seen: usize, passed: usize, nanoseconds: u128) {
        let Some(conjunct) = self.sampled.filter(|_| seen > 0) else { return };
        let old = self.figures[conjunct];
        self.figures[conjunct] = Figures {
            samples: old.samples + 1,
            seen: old.seen / 2.0 + seen as f64,
            passed: old.passed / 2.0 + passed as f64,
            nanoseconds: old.nanoseconds / 2.0 + nanoseconds as f64,
        };
    }

    fn decide(&mut self) {
        let rank = |conjunct: usize| self.figures[conjunct].rank();
        self.order[..self.free].sort_unstable_by(|&a, &b| rank(b).total_cmp(&rank(a)).then(a.cmp(&b)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs conjuncts with these pass rates, in percent, and costs, in nanoseconds per row, over some
    /// stretches of 1000 rows. Returns how often each ran first.
    fn run(order: &mut Order, conjuncts: &[(usize, u128)], stretches: usize) -> Vec<usize> {
        let mut first = vec![0; conjuncts.len()];
        for _ in 0..stretches {
            let sampled = order.begin();
            first[order.conjuncts()[0]] += 1;
            if let Some(conjunct) = sampled {
                assert_eq!(order.conjuncts()[0], conjunct, "what is measured runs first");
                let (percent, cost) = conjuncts[conjunct];
                order.measured(1000, percent * 10, cost * 1000);
            }
        }
        order.begin();
        first
    }

    #[test]
    fn what_rules_out_most_for_its_cost_comes_first() {
        // Ranks: 0.01, 0.05, 0.9, 0.0.
        let conjuncts = [(50, 50), (90, 2), (10, 1), (100, 1)];
        let mut order = Order::new(4, 4);
        run(&mut order, &conjuncts, 9);
        assert_eq!(order.conjuncts(), [2, 1, 0, 3]);
    }

    #[test]
    fn what_may_not_move_stays() {
        let conjuncts = [(90, 9), (10, 1), (1, 1), (50, 1)];
        for (free, expected) in [(0, [0, 1, 2, 3]), (1, [0, 1, 2, 3]), (2, [1, 0, 2, 3]), (3, [2, 1, 0, 3])] {
            let mut order = Order::new(4, free);
            run(&mut order, &conjuncts, 1000);
            assert_eq!(order.conjuncts(), expected);
        }
    }

    #[test]
    fn a_dear_conjunct_is_seldom_first() {
        let mut order = Order::new(2, 2);
        let first = run(&mut order, &[(1, 40), (50, 1)], 100 * EVERY);
        assert!(first[0] <= FIRST_TURNS + 100 / PATIENCE, "it was first {} times", first[0]);
        assert!(first[0] > FIRST_TURNS, "it is not forgotten");
    }

    #[test]
    fn the_order_follows_the_data() {
        let mut order = Order::new(2, 2);
        run(&mut order, &[(10, 1), (90, 1)], 100);
        assert_eq!(order.conjuncts(), [0, 1]);
        run(&mut order, &[(90, 1), (10, 1)], 40 * EVERY);
        assert_eq!(order.conjuncts(), [1, 0]);
    }

    #[test]
    fn what_was_not_measured_stays_as_it_was_given() {
        let mut order = Order::new(3, 3);
        for _ in 0..=3 * EVERY + 1 {
            // The second finds no rows; the third is never reached.
            match order.begin() {
                Some(0) => order.measured(1000, 999, 1000),
                Some(1) => order.measured(0, 0, 0),
                _ => {}
            }
        }
        assert_eq!((order.sampled, order.conjuncts()), (None, &[0, 1, 2][..]));
    }
}
