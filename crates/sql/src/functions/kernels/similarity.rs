//! Similarity of texts.

use crate::functions::definition::{Definition, Kernel, Row, define, takes};
use entasis_vector::statement;
use entasis_vector::{DataType, Error, Result};
use std::collections::HashSet;

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;
const DOUBLE: DataType = DataType::Float64;

pub(crate) const FUNCTIONS: &[Definition] = &[
    define(
        &["levenshtein", "editdist3"],
        "a, b",
        "BIGINT",
        "characters to insert, remove or change",
        &[takes(&[TEXT, TEXT], BIGINT, Kernel::Whole(|row| edits(row, false)))],
        &[("levenshtein('duck', 'db')", "3")],
    ),
    define(
        &["damerau_levenshtein"],
        "a, b",
        "BIGINT",
        "as levenshtein, where neighbours may change places",
        &[takes(&[TEXT, TEXT], BIGINT, Kernel::Whole(|row| edits(row, true)))],
        &[("damerau_levenshtein('duckdb', 'udckbd')", "2")],
    ),
    define(
        &["hamming", "mismatches"],
        "a, b",
        "BIGINT",
        "places in which texts of one length differ",
        &[takes(
            &[TEXT, TEXT],
            BIGINT,
            Kernel::Whole(|row| {
                let (a, b) = (row.text(0), row.text(1));
                if a.chars().count() != b.chars().count() || a.is_empty() {
                    return Err(Error::input("hamming takes two texts of one length above zero"));
                }
                Ok(Some(a.chars().zip(b.chars()).filter(|(a, b)| a != b).count() as i64))
            }),
        )],
        &[("hamming('duck', 'luck')", "1")],
    ),
    define(
        &["jaccard"],
        "a, b",
        "DOUBLE",
        "characters that both have, of all that one has",
        &[takes(
            &[TEXT, TEXT],
            DOUBLE,
            Kernel::Float(|row| {
                let (a, b): (HashSet<char>, HashSet<char>) =
                    (row.text(0).chars().collect(), row.text(1).chars().collect());
                if a.is_empty() || b.is_empty() {
                    return Err(Error::input("jaccard takes two texts that are not empty"));
                }
                Ok(Some(a.intersection(&b).count() as f64 / a.union(&b).count() as f64))
            }),
        )],
        &[("jaccard('duck', 'luck')", "0.6")],
    ),
    define(
        &["jaro_similarity"],
        "a, b",
        "DOUBLE",
        "Jaro's measure, 0 to 1",
        &[takes(&[TEXT, TEXT], DOUBLE, Kernel::Float(|row| jaro(row).map(Some)))],
        &[("round(jaro_similarity('duck', 'duckdb'), 4)", "0.8889")],
    ),
    define(
        &["jaro_winkler_similarity"],
        "a, b",
        "DOUBLE",
        "Jaro's measure, with more for a common start",
        &[takes(
            &[TEXT, TEXT],
            DOUBLE,
            Kernel::Float(|row| {
                let jaro = jaro(row)?;
                let start =
                    row.text(0).chars().zip(row.text(1).chars()).take(4).take_while(|(a, b)| a == b).count();
                Ok(Some(if jaro > 0.7 { jaro + start as f64 * 0.1 * (1.0 - jaro) } else { jaro }))
            }),
        )],
        &[("round(jaro_winkler_similarity('duck', 'duckdb'), 4)", "0.9333")],
    ),
];

/// The edit distance of two texts, row by row of the matrix; with `swaps`, transpositions of neighbours count
/// as one edit if they are not edited again.
fn edits(row: &Row<'_>, swaps: bool) -> Result<Option<i64>> {
    let (a, b): (Vec<char>, Vec<char>) = (row.text(0).chars().collect(), row.text(1).chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        if i % 64 == 0 {
            statement::check()?;
        }
        let mut line = Vec::with_capacity(b.len() + 1);
        line.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = last[j] + usize::from(x != y);
            let mut least = change.min(last[j + 1] + 1).min(line[j] + 1);
            if swaps && i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut last, line);
    }
    Ok(Some(last[b.len()] as i64))
}

fn jaro(row: &Row<'_>) -> Result<f64> {
    let (a, b): (Vec<char>, Vec<char>) = (row.text(0).chars().collect(), row.text(1).chars().collect());
    if a.is_empty() || b.is_empty() {
        return Ok(if a.len() == b.len() { 1.0 } else { 0.0 });
    }
    let reach = (a.len().max(b.len()) / 2).saturating_sub(1);
    let mut taken = vec![false; b.len()];
    let mut matched = Vec::new();
    for (i, x) in a.iter().enumerate() {
        if i % 64 == 0 {
            statement::check()?;
        }
        let range = i.saturating_sub(reach)..(i + reach + 1).min(b.len());
        if let Some(j) = range.clone().find(|&j| !taken[j] && b[j] == *x) {
            taken[j] = true;
            matched.push(*x);
        }
    }
    if matched.is_empty() {
        return Ok(0.0);
    }
    let others = b.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(c, _)| c);
    let swapped = matched.iter().zip(others).filter(|(a, b)| a != b).count() as f64 / 2.0;
    let count = matched.len() as f64;
    Ok((count / a.len() as f64 + count / b.len() as f64 + (count - swapped) / count) / 3.0)
}
