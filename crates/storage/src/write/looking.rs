//! A sort of very many rows, by several threads, that may be ended while it goes on.

use crate::parallel::{Look, share};
use entasis_vector::Result;
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

/// So many rows are sorted without a look: they take some milliseconds.
const AT_ONCE: usize = 1 << 16;

/// Sorts rows, and calls `look` now and then. More rows than a few are split at their median first, as a
/// quicksort would split them, and several workers sort a part each.
///
/// # Errors
/// Those of `look`.
pub(super) fn sort<T: Send>(
    rows: &mut [T],
    order: &(impl Fn(&T, &T) -> Ordering + Sync),
    (workers, look): (usize, Look<'_>),
) -> Result<()> {
    if workers < 2 || rows.len() <= AT_ONCE {
        return sort_alone(rows, order, look);
    }
    let mut parts = vec![rows];
    while parts.len() < workers {
        look()?;
        parts = parts.into_iter().flat_map(|part| <[&mut [T]; 2]>::from(halves(part, order))).collect();
    }
    let parts: Vec<Mutex<&mut [T]>> = parts.into_iter().map(Mutex::new).collect();
    let sorted = |(): &mut (), part: usize, look: Look<'_>| {
        sort_alone(&mut parts[part].lock().unwrap_or_else(PoisonError::into_inner), order, look)
    };
    share((workers, look), parts.len(), || (), sorted)?;
    Ok(())
}

fn sort_alone<T>(rows: &mut [T], order: &impl Fn(&T, &T) -> Ordering, look: Look<'_>) -> Result<()> {
    look()?;
    if rows.len() <= AT_ONCE {
        rows.sort_unstable_by(order);
        return Ok(());
    }
    let (lesser, greater) = halves(rows, order);
    sort_alone(lesser, order, look)?;
    sort_alone(greater, order, look)
}

/// The rows in two parts: none of the first is greater than any of the second.
fn halves<'r, T>(rows: &'r mut [T], order: &impl Fn(&T, &T) -> Ordering) -> (&'r mut [T], &'r mut [T]) {
    let middle = rows.len() / 2;
    if !rows.is_empty() {
        rows.select_nth_unstable_by(middle, order);
    }
    rows.split_at_mut(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::Error;
    use std::cell::Cell;

    #[test]
    fn many_rows_are_sorted_with_looks_in_between() {
        for rows in [0, 1, AT_ONCE, AT_ONCE + 1, 5 * AT_ONCE + 3] {
            for workers in [1, 2, 3, 8] {
                let looks = Cell::new(0);
                let look = || {
                    looks.set(looks.get() + 1);
                    Ok(())
                };
                let mut sorted: Vec<u64> =
                    (0..rows as u64).map(|row| row.wrapping_mul(0x9E37_79B9_7F4A) % 1009).collect();
                let mut expected = sorted.clone();
                expected.sort_unstable();
                sort(&mut sorted, &u64::cmp, (workers, &look)).unwrap();
                assert!(sorted == expected, "{rows} rows, {workers} workers");
                if workers == 1 {
                    assert!(looks.get() >= rows.div_ceil(AT_ONCE), "{} looks for {rows} rows", looks.get());
                }
            }
        }
    }

    #[test]
    fn an_error_ends_a_sort_of_one_or_several_workers() {
        for workers in [1, 3] {
            let look = || Err(Error::input("enough"));
            let mut rows: Vec<usize> = (0..2 * AT_ONCE).rev().collect();
            let error = sort(&mut rows, &usize::cmp, (workers, &look)).unwrap_err();
            assert!(error.to_string().contains("enough"), "{error}");
        }
    }
}
