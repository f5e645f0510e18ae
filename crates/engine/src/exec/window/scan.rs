//! Arrays with a value per position: filled, and scanned (prefix sums), by all workers.
//!
//! A scan replaces each value by the combination of all values of its partition up to it. Each worker scans
//! some ranges; the combined values of the ranges before are added to a range afterwards, up to the first
//! partition that begins in it. Ranges do not depend on the number of workers, and so neither do sums of
//! floats.

use super::section::{TASK_ROWS, task_ranges};
use crate::exec::operator::{Tasks, in_parallel};
use entasis_vector::Result;
use std::ops::Range;

/// Fills `values`, a range at a time.
///
/// # Errors
/// Those of `work` and of `tasks`.
pub fn fill<T: Send>(
    values: &mut [T],
    tasks: &dyn Tasks,
    work: impl Fn(Range<usize>, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    let parts = task_ranges(values.len()).into_iter().zip(values.chunks_mut(TASK_ROWS)).collect();
    in_parallel(tasks, parts, &|_, (range, values)| {
        tasks.check()?;
        work(range.clone(), values)
    })
}

/// Scans `values` of partitions that begin at `starts`, the first of them at 0.
///
/// # Errors
/// Those of `tasks`.
pub fn scan<T: Copy + Send + Sync>(
    values: &mut [T],
    starts: &[u32],
    combine: impl Fn(T, T) -> T + Sync,
    tasks: &dyn Tasks,
) -> Result<()> {
    fill(values, tasks, |range, values| {
        for stretch in stretches(range, starts) {
            let mut values = values[stretch].iter_mut();
            let Some(mut last) = values.next() else { continue };
            for value in values {
                *value = combine(*last, *value);
                last = value;
            }
        }
        Ok(())
    })?;
    // The values to be added to each range.
    let ranges = task_ranges(values.len());
    let mut lacking: Vec<Option<T>> = vec![None; ranges.len()];
    for i in 1..ranges.len() {
        let before = &ranges[i - 1];
        let last = values[before.end - 1];
        let is_one_stretch =
            stretches(before.clone(), starts).nth(1).is_none() && !begins(before.start, starts);
        let all = match lacking[i - 1].filter(|_| is_one_stretch) {
            Some(lacked) => combine(lacked, last),
            None => last,
        };
        lacking[i] = (!begins(ranges[i].start, starts)).then_some(all);
    }
    if lacking.iter().all(Option::is_none) {
        return Ok(());
    }
    fill(values, tasks, |range, values| {
        if let (Some(lacked), Some(first)) =
            (lacking[range.start / TASK_ROWS], stretches(range, starts).next())
        {
            values[first].iter_mut().for_each(|value| *value = combine(lacked, *value));
        }
        Ok(())
    })
}

/// True if a partition begins at `position`.
fn begins(position: usize, starts: &[u32]) -> bool {
    starts.binary_search(&(position as u32)).is_ok()
}

/// The parts of partitions in `range`, counted from its start.
fn stretches(range: Range<usize>, starts: &[u32]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut next = starts.partition_point(|&start| start as usize <= range.start);
    let mut from = range.start;
    std::iter::from_fn(move || {
        if from == range.end {
            return None;
        }
        let to = starts.get(next).map_or(range.end, |&start| range.end.min(start as usize));
        let stretch = from - range.start..to - range.start;
        (from, next) = (to, next + 1);
        Some(stretch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::testing::{Chance, TwoThreads};

    #[test]
    fn scans_begin_anew_with_each_partition() {
        let mut chance = Chance(7);
        for rows in [0, 1, 5, TASK_ROWS, TASK_ROWS + 1, 5 * TASK_ROWS + 77] {
            for share in [2, 1000, 1 << 40] {
                let values: Vec<u64> = (0..rows).map(|_| chance.below(100)).collect();
                let begins = |row: &usize| *row == 0 || *row == 3 * TASK_ROWS || chance.below(share) == 0;
                let starts: Vec<u32> = (0..rows).filter(begins).map(|row| row as u32).collect();
                let mut expected = Vec::new();
                for (row, value) in values.iter().enumerate() {
                    let before = if starts.contains(&(row as u32)) { 0 } else { expected[row - 1] };
                    expected.push(before + value);
                }
                let mut scanned = values;
                scan(&mut scanned, &starts, |a, b| a + b, &TwoThreads).unwrap();
                assert!(scanned == expected, "{rows} rows, one start in {share}");
            }
        }
    }
}
