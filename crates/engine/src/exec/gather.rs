//! Gathering: values that are scattered over memory are [prefetched](super::prefetch) and read by a loop that
//! does nothing else. Another loop, over a [`BLOCK`](super::prefetch::BLOCK) of rows, computes with them in
//! vector code.
//!
//! ```text
//! places → gather → words on the stack → vector code → ranks
//! ```

use super::prefetch::visit;

/// Writes to `out` the value of `from` at the index of each of `at`; an index beyond the end gives the last
/// value. Writes nothing if there are no values.
// PERF: not inlined, so that vector code around it does not make gather instructions of it, which are slower.
#[inline(never)]
pub(crate) fn gather<T: Copy + Into<O>, A: Copy, O>(
    from: &[T],
    at: &[A],
    index: impl Fn(A) -> usize,
    out: &mut [O],
) {
    let Some(last) = from.len().checked_sub(1) else { return };
    // The minimum saves the bounds check.
    visit(from, at, &index, out, |at, to| *to = from[index(at).min(last)].into());
}

/// Like [`gather`], for values in the nearer caches, without prefetching.
#[inline(never)]
pub(crate) fn read<T: Copy + Into<O>, A: Copy, O>(
    from: &[T],
    at: &[A],
    index: impl Fn(A) -> usize,
    out: &mut [O],
) {
    let Some(last) = from.len().checked_sub(1) else { return };
    out.iter_mut().zip(at).for_each(|(to, &at)| *to = from[index(at).min(last)].into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_at_the_indexes_and_the_last_one_beyond() {
        let (from, mut out) = ([10, 11, 12], [0; 4]);
        gather(&from, &[2u8, 0, 3, 255], usize::from, &mut out);
        assert_eq!(out, [12, 10, 12, 12]);
        gather::<i32, _, _>(&[], &[0u8, 1], usize::from, &mut out);
        assert_eq!(out, [12, 10, 12, 12]);
        gather(&from, &[1u8], usize::from, &mut out);
        assert_eq!(out, [11, 10, 12, 12]);
    }
}
