//! Ordering: from sort keys to a list of row ids.
//!
//! Each row gets a [code](super::codes) whose order is the order of the rows, as far as it goes. Rows with
//! equal codes are compared by the values themselves ([`super::ties`]). The order of arrival decides last, so
//! every order is total and equal rows keep their order.
//!
//! 1. Ranges of rows are encoded and sorted by code, in parallel.
//! 2. The sorted runs are cut at common boundaries, and each stretch is merged by a stable sort, which
//!    detects the runs in it; then its ties are resolved. Rows with one code are in one stretch.

pub use super::codes::OrderKey;

use super::codes::{Entry, SortCodes};
use super::ties::Ties;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::sync::{Mutex, lock};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{PhysicalType, Result};

/// Rows, and their ids in order.
pub struct Ordered {
    /// The rows.
    pub rows: Materialized,
    /// Their ids.
    pub order: Vec<u32>,
}

/// Rows that are worth a task of their own. Also the most rows of a task that resolves ties, which takes so
/// long that a cancelled statement would be delayed.
const TASK_ROWS: usize = 32 << 10;
/// The most rows of a task if codes decide the whole order.
const MOST_EXACT_ROWS: usize = 256 << 10;
/// Samples that a run contributes for the boundaries.
const SAMPLES: usize = 16;

/// The row ids `arrival`, put in the order of `keys`. Ties stay as they are in `arrival`. With `tasks`, in
/// parallel.
///
/// # Errors
/// Those of `tasks`.
pub fn order(
    rows: &Materialized,
    keys: &[OrderKey],
    arrival: Vec<u32>,
    tasks: Option<&dyn Tasks>,
) -> Result<Vec<u32>> {
    let codes = SortCodes::plan(rows, keys);
    match codes.bits {
        0..=32 => order_by::<u64>(&codes, &arrival, tasks),
        33..=96 => order_by::<u128>(&codes, &arrival, tasks),
        _ => order_by::<(u128, u32)>(&codes, &arrival, tasks),
    }
}

/// The same for row ids that come in a few stretches, each in the order of `keys`.
///
/// # Errors
/// Those of `check`, which fails when the statement is to stop.
pub fn merge(
    rows: &Materialized,
    keys: &[OrderKey],
    arrival: &[u32],
    check: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Vec<u32>> {
    let codes = SortCodes::plan(rows, keys);
    match codes.bits {
        0..=32 => merge_by::<u64>(&codes, arrival, check),
        33..=96 => merge_by::<u128>(&codes, arrival, check),
        _ => merge_by::<(u128, u32)>(&codes, arrival, check),
    }
}

/// The most memory that ordering takes for a row: its entry, its place in the order of arrival, its id.
pub fn bytes_for_row(columns: &[ColumnMeta], keys: &[OrderKey]) -> usize {
    let bits = |key: &OrderKey| match &columns[key.column] {
        meta if meta.physical == PhysicalType::Str => u128::BITS as usize,
        meta => meta.physical.width() * 8 + usize::from(meta.nullable),
    };
    let entry = match keys.iter().map(bits).sum() {
        0..=32 => size_of::<u64>(),
        33..=96 => size_of::<u128>(),
        _ => size_of::<(u128, u32)>(),
    };
    entry + 2 * size_of::<u32>()
}

fn merge_by<E: Entry>(
    codes: &SortCodes<'_>,
    arrival: &[u32],
    check: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Vec<u32>> {
    let row = |entry: &E| arrival[entry.place() as usize];
    let mut entries: Vec<E> = Vec::with_capacity(arrival.len());
    codes.encode(arrival, 0, arrival.len(), |place, code| entries.push(E::new(code, place)));
    // PERF: a stable sort detects the stretches and merges them; entries are distinct, so any sort gives the
    // same result.
    entries.sort();
    if !codes.is_exact() {
        Ties { codes, row: &row, check }.settle(&mut entries)?;
    }
    Ok(entries.iter().map(row).collect())
}

fn order_by<E: Entry>(codes: &SortCodes<'_>, arrival: &[u32], tasks: Option<&dyn Tasks>) -> Result<Vec<u32>> {
    let row = |entry: &E| arrival[entry.place() as usize];
    let check = || tasks.map_or(Ok(()), Tasks::check);
    let ties = Ties { codes, row: &row, check: &check };
    let sorted_run = |first: usize, rows: usize| {
        let mut run: Vec<E> = Vec::with_capacity(rows);
        codes.encode(arrival, first, rows, |place, code| run.push(E::new(code, place)));
        run.sort_unstable();
        run
    };
    let Some(tasks) = tasks.filter(|_| arrival.len() > 2 * TASK_ROWS) else {
        let mut run = sorted_run(0, arrival.len());
        if !codes.is_exact() {
            ties.settle(&mut run)?;
        }
        return Ok(run.iter().map(row).collect());
    };

    let most = if codes.is_exact() { MOST_EXACT_ROWS } else { TASK_ROWS };
    let count = (arrival.len() / TASK_ROWS).min(16).max(arrival.len().div_ceil(most));
    let size = arrival.len().div_ceil(count);
    let slots: Vec<Mutex<Vec<E>>> = (0..count).map(|_| Mutex::default()).collect();
    tasks.run(count, &|i| {
        let first = (i * size).min(arrival.len());
        *lock(&slots[i]) = sorted_run(first, size.min(arrival.len() - first));
        Ok(())
    })?;
    let runs: Vec<Vec<E>> = slots
        .into_iter()
        .map(|slot| slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
        .collect();

    // Boundaries between stretches: the quantiles of all runs, sorted, thinned so that there are as many
    // stretches as runs.
    let mut samples: Vec<E> =
        runs.iter().flat_map(|run| run.iter().step_by(size.div_ceil(SAMPLES))).copied().collect();
    samples.sort_unstable();
    let boundaries: Vec<E> = samples.iter().step_by(SAMPLES).skip(1).copied().collect();
    let stretches: Vec<Mutex<Vec<u32>>> = (0..=boundaries.len()).map(|_| Mutex::default()).collect();
    tasks.run(stretches.len(), &|i| {
        let place = |run: &[E], at: usize| match at.checked_sub(1).and_then(|at| boundaries.get(at)) {
            Some(boundary) if codes.is_exact() => run.partition_point(|entry| entry < boundary),
            Some(boundary) => run.partition_point(|entry| entry.code() < boundary.code()),
            None if at == 0 => 0,
            None => run.len(),
        };
        let parts = runs.iter().map(|run| &run[place(run, i)..place(run, i + 1)]);
        let mut stretch: Vec<E> = Vec::with_capacity(parts.clone().map(<[E]>::len).sum());
        parts.for_each(|part| stretch.extend_from_slice(part));
        stretch.sort();
        if !codes.is_exact() {
            ties.settle(&mut stretch)?;
        }
        *lock(&stretches[i]) = stretch.iter().map(row).collect();
        Ok(())
    })?;
    let mut ordered = Vec::with_capacity(arrival.len());
    for stretch in stretches {
        ordered.extend(stretch.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
    Ok(ordered)
}
