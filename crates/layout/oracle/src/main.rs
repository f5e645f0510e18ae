//! Compares the solver with the optimum of the paper's integer program, as found by a solver for such
//! programs.

#[path = "../../tests/integer_program/formulation.rs"]
#[allow(dead_code)]
mod formulation;

use entasis_layout::random::Random;
use entasis_layout::solver::{Limits, Prices, solve};
use formulation::{Reading, Terms, program};
use microlp::{ComparisonOp, OptimizationDirection, Problem};
use std::time::{Duration, Instant};

fn by_program(terms: &Terms, limits: &Limits) -> Option<f64> {
    let program = program(terms, limits.width, limits.partitions, Reading::AsMeant);
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let variables: Vec<_> =
        program.objective.iter().map(|price| problem.add_integer_var(*price, (0, 1))).collect();
    for row in &program.rows {
        let sum: Vec<_> = row.sum.iter().map(|&(variable, factor)| (variables[variable], factor)).collect();
        let comparison = if row.at_least { ComparisonOp::Ge } else { ComparisonOp::Le };
        problem.add_constraint(&sum, comparison, row.bound);
    }
    let solution = problem.solve().ok()?.into_solution().ok()?;
    Some(solution.objective())
}

fn by_recurrence(terms: &Terms, limits: &Limits) -> Option<f64> {
    let integers = |list: &[f64]| list.iter().map(|term| *term as i64).collect::<Vec<i64>>();
    let none = vec![0; terms.back.len()];
    let prices =
        Prices::new(&integers(&terms.back), &integers(&terms.forward), &integers(&terms.trailing), &none);
    solve(&prices.ok()?, limits).ok().map(|solution| solution.cost as f64)
}

fn main() {
    let mut random = Random::new(41);
    let (mut compared, mut impossible, mut wrong) = (0, 0, 0);
    let (mut program_time, mut recurrence_time) = (Duration::ZERO, Duration::ZERO);
    for round in 0..600 {
        let blocks = if round % 10 == 0 { 12 + random.below(13) } else { 1 + random.below(11) };
        let mut list = |most: usize, less: f64| -> Vec<f64> {
            (0..blocks).map(|_| random.below(most) as f64 - less).collect()
        };
        let terms = Terms { back: list(9, 0.0), forward: list(9, 0.0), trailing: list(61, 20.0) };
        let width = (round % 3 == 0).then(|| 1 + random.below(blocks));
        let partitions = (round % 4 == 0).then(|| 1 + random.below(blocks));
        let limits = Limits { width, partitions, ..Limits::default() };
        let start = Instant::now();
        let program = by_program(&terms, &limits);
        program_time += start.elapsed();
        let start = Instant::now();
        let recurrence = by_recurrence(&terms, &limits);
        recurrence_time += start.elapsed();
        match (program, recurrence) {
            (Some(program), Some(recurrence)) if (program - recurrence).abs() < 1e-6 => compared += 1,
            (None, None) => impossible += 1,
            (program, recurrence) => {
                wrong += 1;
                println!("{program:?} for {recurrence:?}: {terms:?} {limits:?}");
            }
        }
    }
    println!("{compared} equal, {impossible} impossible by both, {wrong} different");
    println!("integer program {program_time:.1?}, recurrence {recurrence_time:.1?}");
    std::process::exit(i32::from(wrong > 0));
}
