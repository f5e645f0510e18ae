//! The paper's integer program as an oracle: its optimum must be the solver's.
//!
//! Here it is solved by a search of one page, for few blocks; `oracle/` passes the same programs to a real
//! solver.

mod formulation;

use entasis_layout::random::Random;
use entasis_layout::solver::{Limits, Prices, solve};
use formulation::{Program, Reading, Terms, program};

/// The least value of the objective, found by setting one variable after another as far as no row forbids it.
struct Search<'a> {
    program: &'a Program,
    values: Vec<Option<f64>>,
    best: Option<f64>,
}

impl Search<'_> {
    fn run(program: &Program) -> Option<f64> {
        let values = vec![None; program.objective.len()];
        let mut search = Search { program, values, best: None };
        search.set(0);
        search.best
    }

    /// True if each row, by itself, can still be satisfied.
    fn may_be_kept(&self) -> bool {
        self.program.rows.iter().all(|row| {
            let extreme: f64 = row
                .sum
                .iter()
                .map(|&(variable, factor)| {
                    let best = if row.at_least { factor.max(0.0) } else { factor.min(0.0) };
                    self.values[variable].map_or(best, |value| value * factor)
                })
                .sum();
            if row.at_least { extreme >= row.bound } else { extreme <= row.bound }
        })
    }

    fn set(&mut self, variable: usize) {
        let values = self.values.iter().zip(&self.program.objective);
        let bound: f64 = values.map(|(value, price)| value.map_or(price.min(0.0), |v| v * price)).sum();
        if self.best.is_some_and(|best| bound >= best) || !self.may_be_kept() {
            return;
        }
        if variable == self.values.len() {
            self.best = Some(bound);
            return;
        }
        for value in [0.0, 1.0] {
            self.values[variable] = Some(value);
            self.set(variable + 1);
        }
        self.values[variable] = None;
    }
}

fn random_terms(blocks: usize, random: &mut Random) -> Terms {
    let mut list =
        |most: usize, less: f64| (0..blocks).map(|_| random.below(most) as f64 - less).collect::<Vec<f64>>();
    Terms { back: list(9, 0.0), forward: list(9, 0.0), trailing: list(21, 8.0) }
}

fn solved(terms: &Terms, limits: &Limits) -> Option<f64> {
    let integers = |list: &[f64]| list.iter().map(|term| *term as i64).collect::<Vec<i64>>();
    let none = vec![0; terms.back.len()];
    let (back, forward, trailing) =
        (integers(&terms.back), integers(&terms.forward), integers(&terms.trailing));
    let prices = Prices::new(&back, &forward, &trailing, &none).expect("small prices");
    solve(&prices, limits).ok().map(|solution| solution.cost as f64)
}

#[test]
fn the_integer_program_has_the_same_optimum() {
    let mut random = Random::new(31);
    for round in 0..400 {
        let blocks = 1 + random.below(6);
        let terms = random_terms(blocks, &mut random);
        let width = (round % 3 == 0).then(|| 1 + random.below(blocks));
        let partitions = (round % 4 == 0).then(|| 1 + random.below(blocks));
        let program = program(&terms, width, partitions, Reading::AsMeant);
        let limits = Limits { width, partitions, ..Limits::default() };
        assert_eq!(solved(&terms, &limits), Search::run(&program), "{terms:?} {limits:?}");
    }
}

/// As printed, equation 20 charges only for the next block: reading further is free.
#[test]
fn as_printed_reading_far_costs_nothing() {
    let terms = Terms { back: vec![5.0; 4], forward: vec![5.0; 4], trailing: vec![12.0; 4] };
    let optimum = |reading: Reading| Search::run(&program(&terms, None, None, reading));
    // One partition: three times two neighbours, and four blocks before one boundary.
    assert_eq!(optimum(Reading::AsPrinted), Some(3.0 * 10.0 + 4.0 * 12.0));
    assert_eq!(optimum(Reading::AsMeant), solved(&terms, &Limits::default()));
    assert!(optimum(Reading::AsMeant) > optimum(Reading::AsPrinted));
}
