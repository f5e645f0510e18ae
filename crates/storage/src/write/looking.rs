//! Work on very many rows that is shared out to threads, and may be ended while it goes on.
//!
//! Only the thread that was given the work may look whether it should end ([`Look`]). The others end with it:
//! each asks whether some part of the work has failed.

use entasis_vector::statement::{current, within};
use entasis_vector::{Error, Result};
use std::cmp::Ordering;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// What is called now and then, and may end the work.
pub(crate) type Look<'a> = &'a dyn Fn() -> Result<()>;

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

/// The results of `work` for the numbers below `tasks`, in order, computed by several workers for the
/// statement of this thread. Each worker has a state. `work` gets what it is to call now and then if a task
/// takes long.
///
/// # Errors
/// Those of `look` and of `work`; the first one ends the work of all.
pub(crate) fn share<S, R: Send>(
    (workers, look): (usize, Look<'_>),
    tasks: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize, Look<'_>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let failed: OnceLock<Error> = OnceLock::new();
    let run = |look: Look<'_>| {
        let mut state = state();
        let mut done = Vec::new();
        loop {
            let task = next.fetch_add(1, Relaxed);
            if task >= tasks {
                return done;
            }
            match look().and_then(|()| work(&mut state, task, look)) {
                Ok(result) => done.push((task, result)),
                Err(error) => {
                    next.store(tasks, Relaxed);
                    // If another one was first, this may be no more than its consequence.
                    _ = failed.set(error);
                    return done;
                }
            }
        }
    };
    let is_on = || if failed.get().is_some() { Err(Error::interrupted()) } else { Ok(()) };
    let statement = current();
    let follow = || match statement.clone() {
        Some(statement) => within(statement, || run(&is_on)),
        None => run(&is_on),
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        // If a thread cannot be started, the others do its work.
        let start = |_| thread::Builder::new().name("entasis-load".into()).spawn_scoped(scope, follow).ok();
        let others: Vec<_> = (1..workers.min(tasks)).filter_map(start).collect();
        let mut done = run(&|| is_on().and_then(|()| look()));
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    done.sort_unstable_by_key(|(task, _)| *task);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn the_first_error_ends_the_work_of_all_and_is_the_one_that_is_seen() {
        let begun = AtomicUsize::new(0);
        let work = |(): &mut (), task: usize, look: Look<'_>| {
            begun.fetch_add(1, Relaxed);
            if task == 5 {
                return Err(Error::input("task 5"));
            }
            // Others go on until they see that.
            if task < 5 {
                return Ok(task);
            }
            loop {
                look()?;
            }
        };
        let error = share((4, &|| Ok(())), 1000, || (), work).unwrap_err();
        assert!(error.to_string().contains("task 5"), "{error}");
        assert!(begun.into_inner() < 1000);
        assert_eq!(share((4, &|| Ok(())), 9, || (), |(), task, _| Ok(task)).unwrap(), Vec::from_iter(0..9));
    }
}
