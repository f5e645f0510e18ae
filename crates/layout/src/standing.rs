//! When to change to another layout: the work-function algorithm, for layouts that all cost the same to
//! change to (a *uniform metrical task system*; Borodin, Linial, Saks, *An Optimal On-Line Algorithm for
//! Metrical Task System*, JACM 39(4), 1992; used for layouts by OReO, Rong et al.,
//! ICDE 2024).
//!
//! Questions come one after the other, and each costs something under each of N layouts. To lay the data anew
//! costs as much as some `price`. The **standing** of a layout is the least that somebody could have paid who
//! knew everything beforehand and has that layout now. A question adds its cost to each standing; none is
//! above the least by more than the price, since whoever stands elsewhere could change. The present layout is
//! left when its standing has reached that bound, for the layout with the least.
//!
//! ```text
//! paid  ≤  (2 N − 1) · best in hindsight + what one change costs                  for any questions
//! ```
//! and no rule without chance has a lesser factor for all sequences. With two layouts it is 3.
//!
//! *Rent or buy* (decision 34) differs in its memory: it leaves a layout once another one would have saved
//! the price since the last change, and then forgets. With three layouts or more its cost has no bound:
//! questions that are always dear under the present one drive it between two of them, while a third would
//! have cost nothing. And the longer a layout has been the best one, the longer it stays when it no longer
//! is, since what it has saved is not capped ([decision 61](../../../docs/decisions/0061-standings.md)).
//!
//! Not done: chance, by which the factor would be about 2 ln N; prices that differ; layouts that come and go.

/// The standings of some layouts.
#[derive(Debug, Clone, PartialEq)]
pub struct Standings {
    /// By layout, what it is above the least; at most the price.
    above: Vec<f64>,
    present: usize,
    price: f64,
}

impl Standings {
    /// `count` layouts, of which the data has the one of index `present`; `price` is what a change costs, in
    /// the unit of the questions' costs.
    ///
    /// # Panics
    /// If there is no such layout, or the price is not positive.
    pub fn new(count: usize, present: usize, price: f64) -> Standings {
        assert!(
            present < count && price > 0.0,
            "the present layout is one of some, and a change costs something"
        );
        let above = (0..count).map(|layout| if layout == present { 0.0 } else { price });
        Standings { above: above.collect(), present, price }
    }

    /// The layout that the data has.
    pub fn present(&self) -> usize {
        self.present
    }

    /// Counts a question, or several together: what it costs under each layout. Returns the layout to change
    /// to. Several together are judged as one, so a change may come later by what they cost.
    ///
    /// # Panics
    /// If there is not a cost for each layout.
    pub fn ask(&mut self, costs: &[f64]) -> Option<usize> {
        assert_eq!(costs.len(), self.above.len(), "a cost for each layout");
        self.above.iter_mut().zip(costs).for_each(|(above, cost)| *above += cost);
        let least = self.above.iter().copied().fold(f64::INFINITY, f64::min);
        self.above.iter_mut().for_each(|above| *above = (*above - least).min(self.price));
        if self.above[self.present] < self.price {
            return None;
        }
        self.present = self.above.iter().position(|above| *above == 0.0)?;
        Some(self.present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const PRICE: f64 = 100.0;

    /// What is paid for questions by a rule that says, after each, where to change to.
    fn paid(questions: &[Vec<f64>], mut rule: impl FnMut(&[f64]) -> Option<usize>) -> (f64, usize) {
        let (mut present, mut sum, mut changes) = (0, 0.0, 0);
        for costs in questions {
            sum += costs[present];
            if let Some(to) = rule(costs) {
                assert_ne!(to, present);
                (present, sum, changes) = (to, sum + PRICE, changes + 1);
            }
        }
        (sum, changes)
    }

    fn by_standings(questions: &[Vec<f64>]) -> (f64, usize) {
        let mut standings = Standings::new(questions[0].len(), 0, PRICE);
        paid(questions, |costs| standings.ask(costs))
    }

    /// Decision 34: the sums since the last change.
    struct RentOrBuy {
        sums: Vec<f64>,
        present: usize,
    }

    impl RentOrBuy {
        fn new(count: usize) -> RentOrBuy {
            RentOrBuy { sums: vec![0.0; count], present: 0 }
        }

        fn ask(&mut self, costs: &[f64]) -> Option<usize> {
            self.sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
            let least = |a: &usize, b: &usize| self.sums[*a].total_cmp(&self.sums[*b]);
            let best = (0..self.sums.len()).min_by(least)?;
            if self.sums[self.present] - self.sums[best] < PRICE {
                return None;
            }
            self.sums.fill(0.0);
            self.present = best;
            Some(best)
        }
    }

    fn by_rent(questions: &[Vec<f64>]) -> (f64, usize) {
        let mut rule = RentOrBuy::new(questions[0].len());
        paid(questions, |costs| rule.ask(costs))
    }

    /// The least that could have been paid, by the plain recurrence: for each layout the least with it at the
    /// end.
    fn in_hindsight(questions: &[Vec<f64>]) -> f64 {
        let mut least: Vec<f64> = vec![PRICE; questions[0].len()];
        least[0] = 0.0;
        for costs in questions {
            let with = |layout: usize| {
                let from = |own: usize| least[own] + if own == layout { 0.0 } else { PRICE };
                (0..least.len()).map(from).fold(f64::INFINITY, f64::min) + costs[layout]
            };
            least = (0..least.len()).map(with).collect();
        }
        least.into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Standings are what the recurrence has, less the least.
    #[test]
    fn standings_are_those_of_the_recurrence() {
        let mut random = Random::new(5);
        for count in 2..6 {
            let mut standings = Standings::new(count, 0, PRICE);
            let mut questions: Vec<Vec<f64>> = Vec::new();
            for _ in 0..60 {
                questions.push((0..count).map(|_| random.below(50) as f64).collect());
                standings.ask(questions.last().expect("one was added"));
                let ends = (0..count).map(|layout| {
                    // Whoever has to have a layout at the end: all others cost too much then.
                    let last: Vec<f64> =
                        (0..count).map(|own| if own == layout { 0.0 } else { 1e9 }).collect();
                    in_hindsight(&[&questions[..], &[last]].concat())
                });
                let ends: Vec<f64> = ends.collect();
                let least = ends.iter().copied().fold(f64::INFINITY, f64::min);
                let above: Vec<f64> = ends.iter().map(|end| end - least).collect();
                assert_eq!(standings.above, above);
            }
        }
    }

    /// Each question is dear under the layout that the rule has then.
    fn against(count: usize, mut rule: impl FnMut(&[f64]) -> Option<usize>) -> Vec<Vec<f64>> {
        let mut present = 0;
        let questions = (0..4000).map(|_| {
            let costs: Vec<f64> = (0..count).map(|own| if own == present { 10.0 } else { 0.0 }).collect();
            present = rule(&costs).unwrap_or(present);
            costs
        });
        questions.collect()
    }

    #[test]
    fn an_adversary_finds_a_bound() {
        for count in 2..8 {
            let mut standings = Standings::new(count, 0, PRICE);
            let questions = against(count, |costs| standings.ask(costs));
            let (own, best) = (by_standings(&questions).0, in_hindsight(&questions));
            let bound = (2 * count - 1) as f64;
            assert!(own <= bound * best + PRICE, "{count} layouts: {own} and {best}");
            assert!(own > 0.8 * bound * best, "the adversary is as bad as can be: {own} and {best}");
            let mut rent = RentOrBuy::new(count);
            let questions = against(count, |costs| rent.ask(costs));
            let (forgetful, best) = (by_rent(&questions).0, in_hindsight(&questions));
            match count {
                2 => assert!(forgetful < 5.0 * best),
                _ => assert!(forgetful > 100.0 * best, "{forgetful} and {best}"),
            }
            let remembered = by_standings(&questions).0;
            assert!(remembered <= bound * best + PRICE, "{count} layouts: {remembered} and {best}");
        }
    }

    /// A workload as tables see it: each question suits one of the layouts, most of them the favourite of the
    /// time, the others any; the favourite changes every so many questions.
    fn drifting(random: &mut Random, count: usize, lasts: usize, share: f64) -> Vec<Vec<f64>> {
        let mut favourite = 0;
        let questions = (0..6000).map(|number| {
            if number % lasts == 0 {
                favourite = random.below(count);
            }
            let own = if random.unit() < share { favourite } else { random.below(count) };
            (0..count).map(|layout| if layout == own { 1.0 } else { 10.0 }).collect()
        });
        questions.collect()
    }

    /// What both rules pay beside the best in hindsight, over lengths of favour and shares of it. Memory
    /// without end is what rent or buy pays for. With `--nocapture` the figures of decision 61 are printed.
    #[test]
    fn workloads_that_drift() {
        println!(
            "layouts, questions of a favourite, its share: rent or buy, standings, of the best in hindsight"
        );
        let mut sums = [0.0; 2];
        let mut cells = 0.0;
        for count in [2, 4, 8] {
            for lasts in [20, 60, 200, 1000, 6000] {
                for share in [0.0, 0.6, 0.9, 1.0] {
                    let mut ratios = [0.0; 2];
                    for seed in 0..5 {
                        let questions = drifting(&mut Random::new(seed), count, lasts, share);
                        let best = in_hindsight(&questions);
                        let own = [by_rent(&questions).0 / best, by_standings(&questions).0 / best];
                        assert!(own[1] <= (2 * count - 1) as f64 + PRICE / best);
                        assert!(own[1] <= 1.2 * own[0], "{count} {lasts} {share}: {own:?}");
                        ratios.iter_mut().zip(own).for_each(|(sum, own)| *sum += own / 5.0);
                    }
                    println!("{count} {lasts:>5} {share:.1}: {:.3} {:.3}", ratios[0], ratios[1]);
                    sums.iter_mut().zip(ratios).for_each(|(sum, own)| *sum += own.ln());
                    cells += 1.0;
                }
            }
        }
        let means = sums.map(|sum: f64| (sum / cells).exp());
        println!("geometric means: {:.3} {:.3}", means[0], means[1]);
        assert!(means[1] < 0.8 * means[0], "{means:?}");
    }
}
