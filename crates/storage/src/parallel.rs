//! Work that is shared out to threads, and may be ended while it goes on.
//!
//! Only the thread that was given the work may look whether it should end ([`Look`]). The others end with it:
//! each asks whether some part of the work has failed.

use entasis_vector::statement::{current, within};
use entasis_vector::{Error, Result};
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// What is called now and then, and may end the work.
pub(crate) type Look<'a> = &'a dyn Fn() -> Result<()>;

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
        let start = |_| thread::Builder::new().name("entasis-share".into()).spawn_scoped(scope, follow).ok();
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
