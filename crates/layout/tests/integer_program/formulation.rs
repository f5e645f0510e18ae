//! The binary linear program of equations 19 to 21 of *Optimal Column Layout for Hybrid Workloads*, as the
//! paper passes it to its solver: a bit p_i for each block and a bit y_ij for each product (1 - p_i) … (1 -
//! p_j), i ≤ j.
//!
//! **Misprints.** The intended meaning follows from equations 2 and 4.
//! - 19: the product of `fwd_term` runs from k = j to N - i - 1; it has to run from i to N - j - 1, as in
//!   equation 4. Equation 20 has it right: y_{i,N-j-1}.
//! - 20: y_ij ≥ 1 - Σ_{k=i}^{N-1} p_k; the sum has to end at j. As printed it includes p_{N-1} = 1 and has no
//!   effect, so y_ij is 0 in an optimum for i < j, and reading beyond the next block costs nothing.
//! - 20: y_ij ≤ 1 - p_j alone allows y_ij to be 1 where p_i is. The least cost needs no upper bound if terms
//!   are not negative; here y_ij ≤ 1 - p_k for all of i..=j, which makes y the product whatever the terms
//!   are.
//! - 21: MPS is given twice and differs by one; and a partition has one more block than either (the first is
//!   read at random). Here the width is given.

/// A linear constraint: a sum of variables with coefficients, and its bound.
#[derive(Debug, Clone)]
pub struct Row {
    pub sum: Vec<(usize, f64)>,
    /// If true, the sum must be no less than the bound; otherwise no greater.
    pub at_least: bool,
    pub bound: f64,
}

/// A program over binary variables, the first of which are the p.
#[derive(Debug, Clone)]
pub struct Program {
    pub objective: Vec<f64>,
    pub rows: Vec<Row>,
}

/// The terms of equation 17, without fixed costs.
#[derive(Debug, Clone)]
pub struct Terms {
    pub back: Vec<f64>,
    pub forward: Vec<f64>,
    pub trailing: Vec<f64>,
}

/// The version of the constraint on y.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    AsMeant,
    AsPrinted,
}

/// Equation 20 with the bounds of equation 21.
pub fn program(terms: &Terms, width: Option<usize>, partitions: Option<usize>, reading: Reading) -> Program {
    let n = terms.back.len();
    // The y_ij follow the p, in rows of i.
    let y = |i: usize, j: usize| n + i * n - i * i.saturating_sub(1) / 2 + (j - i);
    let mut objective = vec![0.0; n + n * (n + 1) / 2];
    for i in 0..n {
        (0..i).for_each(|j| objective[y(j, i - 1)] += terms.back[i]);
        (0..n - i).for_each(|j| objective[y(i, n - j - 1)] += terms.forward[i]);
        (i..n).for_each(|j| objective[j] += terms.trailing[i]);
    }
    let mut rows = Vec::new();
    let mut row =
        |sum: Vec<(usize, f64)>, at_least: bool, bound: f64| rows.push(Row { sum, at_least, bound });
    row(vec![(n - 1, 1.0)], true, 1.0);
    for i in 0..n {
        // y_ii = 1 - p_i
        row(vec![(y(i, i), 1.0), (i, 1.0)], true, 1.0);
        row(vec![(y(i, i), 1.0), (i, 1.0)], false, 1.0);
        for j in i + 1..n {
            let below = if reading == Reading::AsMeant { i..j + 1 } else { j..j + 1 };
            below.for_each(|k| row(vec![(y(i, j), 1.0), (k, 1.0)], false, 1.0));
            let end = if reading == Reading::AsMeant { j + 1 } else { n };
            let all = (i..end).map(|k| (k, 1.0));
            row(all.chain([(y(i, j), 1.0)]).collect(), true, 1.0);
        }
    }
    if let Some(width) = width {
        // Of this many neighbours, at least one ends a partition.
        for first in 0..(n + 1).saturating_sub(width) {
            row((first..first + width).map(|block| (block, 1.0)).collect(), true, 1.0);
        }
    }
    if let Some(partitions) = partitions {
        row((0..n).map(|block| (block, 1.0)).collect(), false, partitions as f64);
    }
    Program { objective, rows }
}
