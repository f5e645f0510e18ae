//! Software prefetch: where values are scattered over much memory, a loop over rows prefetches the cache line
//! of a later row, then reads or writes the value of its own.
//!
//! A value that is in no cache takes hundreds of cycles to arrive. A processor overlaps the misses of those
//! loads that are within the few hundred instructions of its out-of-order window: these are few if the loop
//! computes with what it reads. A prefetch costs one instruction that nothing waits for, so that as many
//! requests are in flight as the memory can serve.
// PERF: how far ahead to prefetch: `docs/decisions/0017-requests-in-the-loop.md`.

use entasis_vector::prefetch::prefetch;

/// Rows that vector code processes at a time: their values stay in the first-level cache.
pub(crate) const BLOCK: usize = 256;
/// Values are prefetched if they take this many bytes or more; fewer are in the nearer caches.
pub(crate) const FAR_BYTES: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };
/// The distance, in rows, between the row that is visited and the one that is prefetched.
pub(crate) const AHEAD: usize = 64;

/// True if the nearer caches cannot hold these values.
#[inline(always)]
pub(crate) fn are_far<T>(values: &[T]) -> bool {
    size_of_val(values) > FAR_BYTES
}

/// Visits each of `at` with its item. If `values` [are far](are_far), the value at the index of each has been
/// prefetched before, unless there are fewer than [`AHEAD`] rows, which the processor overlaps by itself. An
/// index may be out of bounds.
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

/// Like [`visit`], where `ask` prefetches the values, if they `are_far`.
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
