//! Asking ahead: where values stand here and there in much memory, a loop over rows asks for the line of a
//! later row, then reads or writes the one of its own.
//!
//! What no cache holds takes hundreds of cycles to come. A processor asks for as many lines at once as there
//! are loads among the few hundred instructions that it looks ahead: for few of them, if the loop computes
//! with what it reads. A request for a line that nobody waits for costs an instruction, so that as many are
//! under way as the memory can serve.
// PERF: how far ahead: `docs/decisions/0017-requests-in-the-loop.md`.

use entasis_vector::prefetch::prefetch;

/// Rows of a block, for which vector code computes at once: their values stay in the nearest cache.
pub(crate) const BLOCK: usize = 256;
/// Bytes from which on lines are asked for: what the nearer caches hold is there as soon.
pub(crate) const FAR_BYTES: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };
/// Rows between the one that is visited and the one that is asked for.
pub(crate) const AHEAD: usize = 64;

/// True if these values are more than the nearer caches hold.
#[inline(always)]
pub(crate) fn are_far<T>(values: &[T]) -> bool {
    size_of_val(values) > FAR_BYTES
}

/// Visits each of `at` with its item. If `values` [are far](are_far), the one at the index of each has been
/// asked for before, unless there are fewer than [`AHEAD`] rows, which the processor sees at once; there need
/// be none at an index.
#[inline(always)]
pub(crate) fn visit<T, A: Copy, I>(
    values: &[T],
    at: &[A],
    index: impl Fn(A) -> usize,
    items: impl IntoIterator<Item = I>,
    visitor: impl FnMut(A, I),
) {
    visit_prefetching(are_far(values), at, |at| prefetch(values, index(at)), items, visitor);
}

/// The same of values that `ask` asks for, if they `are_far`.
#[inline(always)]
pub(crate) fn visit_prefetching<A: Copy, I>(
    are_far: bool,
    at: &[A],
    ask: impl Fn(A),
    items: impl IntoIterator<Item = I>,
    mut visitor: impl FnMut(A, I),
) {
    let mut rows = at.iter().zip(items);
    if let (true, Some((first, later))) = (are_far, at.split_at_checked(AHEAD)) {
        first.iter().for_each(|&at| ask(at));
        for (&later, (&at, item)) in later.iter().zip(&mut rows) {
            ask(later);
            visitor(at, item);
        }
    }
    rows.for_each(|(&at, item)| visitor(at, item));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn each_row_is_visited_once_after_its_line_was_asked_for() {
        for rows in [0, 1, AHEAD - 1, AHEAD, AHEAD + 1, 3 * AHEAD] {
            let at: Vec<usize> = (0..rows).map(|row| row * 7 % 64).collect();
            for are_far in [false, true] {
                let (asked, mut visited) = (RefCell::new(Vec::new()), Vec::new());
                visit_prefetching(
                    are_far,
                    &at,
                    |at| asked.borrow_mut().push(at),
                    100..,
                    |at, item| {
                        if are_far && rows >= AHEAD {
                            assert!(asked.borrow().len() > visited.len());
                        }
                        visited.push((at, item));
                    },
                );
                assert_eq!(visited, at.iter().copied().zip(100..).collect::<Vec<_>>());
                assert_eq!(asked.into_inner(), if are_far && rows >= AHEAD { &at[..] } else { &[] });
            }
        }
    }
}
