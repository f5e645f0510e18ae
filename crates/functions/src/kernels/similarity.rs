//! Similarity of texts.

use crate::definition::{Definition, Kernel, Row, define, takes};
use entasis_vector::statement::{Growth, Looks, STEP, pieces, reserve};
use entasis_vector::{DataType, Error, Result, characters};
use std::collections::{HashMap, HashSet};

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;
const DOUBLE: DataType = DataType::Float64;

/// Cells of the matrix of `damerau_levenshtein`, four bytes each.
const LARGEST_MATRIX: usize = 1 << 26;

pub const FUNCTIONS: &[Definition] = &[
    define(
        &["levenshtein", "editdist3"],
        "a, b",
        "BIGINT",
        "characters to insert, remove or change",
        &[takes(&[TEXT, TEXT], BIGINT, Kernel::Whole(edits))],
        &[("levenshtein('duck', 'db')", "3")],
    ),
    define(
        &["damerau_levenshtein"],
        "a, b",
        "BIGINT",
        "as levenshtein, where neighbours may change places",
        &[takes(&[TEXT, TEXT], BIGINT, Kernel::Whole(swaps))],
        &[("damerau_levenshtein('duckdb', 'udckbd')", "2"), ("damerau_levenshtein('out', 'to')", "2")],
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
                if characters::count(a)? != characters::count(b)? || a.is_empty() {
                    return Err(Error::input("hamming takes two texts of one length above zero"));
                }
                let (mut differ, mut others) = (0, b.chars());
                for piece in pieces(a) {
                    differ += piece?.chars().zip(&mut others).filter(|(a, b)| a != b).count() as i64;
                }
                Ok(Some(differ))
            }),
        )],
        &[("hamming('duck', 'luck')", "1")],
    ),
    define(
        &["jaccard"],
        "a, b",
        "DOUBLE",
        "the share of characters that both have among all that either has",
        &[takes(
            &[TEXT, TEXT],
            DOUBLE,
            Kernel::Float(|row| {
                let set = |i: usize| -> Result<HashSet<char>> {
                    let mut set = HashSet::new();
                    pieces(row.text(i)).try_for_each(|piece| piece.map(|piece| set.extend(piece.chars())))?;
                    Ok(set)
                };
                let (a, b) = (set(0)?, set(1)?);
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

/// The edit distance of two texts, row by row of the matrix.
fn edits(row: &Row<'_>) -> Result<Option<i64>> {
    let mut growth = Growth::default();
    let (a, b) = (characters_of(row.text(0), &mut growth)?, characters_of(row.text(1), &mut growth)?);
    growth.add(size_of::<u32>() * b.len())?;
    // Those of what has come of `a`, and as many characters of `b`.
    let mut distances: Vec<u32> = (1..=b.len() as u32).collect();
    let mut looks = Looks::default();
    for (i, x) in (0..).zip(&a) {
        // Of the row before in the column before, and of this row.
        let (mut before, mut left) = (i, i + 1);
        for (part, row) in b.chunks(STEP).zip(distances.chunks_mut(STEP)) {
            for (y, distance) in part.iter().zip(row) {
                left = (before + u32::from(x != y)).min(*distance + 1).min(left + 1);
                before = std::mem::replace(distance, left);
            }
            looks.after(part.len())?;
        }
    }
    Ok(Some(distances.last().map_or(a.len() as i64, |distance| i64::from(*distance))))
}

/// The characters of a text.
fn characters_of(text: &str, growth: &mut Growth) -> Result<Vec<char>> {
    let mut characters = Vec::new();
    for piece in pieces(text) {
        let piece = piece?;
        growth.add(size_of::<char>() * piece.len())?;
        characters.extend(piece.chars());
    }
    Ok(characters)
}

/// The edit distance in which neighbours may change places as one edit, also if more is edited between them
/// (Damerau and Levenshtein; Lowrance and Wagner 1975). The whole matrix is kept: a swap refers to the rows
/// and columns at which the two characters were last seen in the other text.
fn swaps(row: &Row<'_>) -> Result<Option<i64>> {
    let mut growth = Growth::default();
    let (a, b) = (characters_of(row.text(0), &mut growth)?, characters_of(row.text(1), &mut growth)?);
    let (rows, width) = (a.len() + 2, b.len() + 2);
    let cells = rows.checked_mul(width).filter(|cells| *cells <= LARGEST_MATRIX);
    let cells = cells.ok_or_else(|| Error::input("damerau_levenshtein: the texts are too long"))?;
    // With a row and a column before the first ones, which no shortest way takes.
    let never = (a.len() + b.len()) as u32;
    let _memory = reserve(cells * size_of::<u32>())?;
    let mut costs = vec![never; cells];
    (1..rows).for_each(|i| costs[i * width + 1] = i as u32 - 1);
    (1..width).for_each(|j| costs[width + j] = j as u32 - 1);
    let mut last_row: HashMap<char, usize> = HashMap::new();
    let mut looks = Looks::default();
    for (i, x) in (1..).zip(&a) {
        looks.after(8 * b.len())?;
        let mut last_column = 0;
        for (j, y) in (1..).zip(&b) {
            let (row, column) = (last_row.get(y).copied().unwrap_or(0), last_column);
            let at = |i: usize, j: usize| costs[i * width + j];
            let mut change = at(i, j) + 1;
            if x == y {
                change -= 1;
                last_column = j;
            }
            let swap = at(row, column) + (i - row - 1 + 1 + j - column - 1) as u32;
            let least = change.min(at(i + 1, j) + 1).min(at(i, j + 1) + 1).min(swap);
            costs[(i + 1) * width + j + 1] = least;
        }
        last_row.insert(*x, i);
    }
    Ok(Some(costs[cells - 1].into()))
}

fn jaro(row: &Row<'_>) -> Result<f64> {
    let mut growth = Growth::default();
    let (a, b) = (characters_of(row.text(0), &mut growth)?, characters_of(row.text(1), &mut growth)?);
    if a.is_empty() || b.is_empty() {
        return Ok(0.0);
    }
    let reach = (a.len().max(b.len()) / 2).saturating_sub(1);
    let mut taken = vec![false; b.len()];
    let mut matched = Vec::new();
    let mut looks = Looks::default();
    for (i, x) in a.iter().enumerate() {
        let range = i.saturating_sub(reach)..(i + reach + 1).min(b.len());
        let found = range.clone().find(|&j| !taken[j] && b[j] == *x);
        looks.after(1 + found.unwrap_or(range.end).saturating_sub(range.start))?;
        if let Some(j) = found {
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
