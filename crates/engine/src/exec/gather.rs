//! Fetching: values that stand here and there in memory are [asked for ahead](super::prefetch) and read, by a
//! loop that does nothing else. What computes with them is another loop over a
//! [`BLOCK`](super::prefetch::BLOCK) of rows, which is vector code.
//!
//! ```text
//! places → fetch → words on the stack → vector code → ranks
//! ```

use super::prefetch::visit;

/// Writes to `out` the value of `from` at the index of each of `at`, which is the last one for what is
/// beyond; nothing if there are no values.
// PERF: a function of its own, so that vector code around it does not make gathers of it, which take longer.
#[inline(never)]
pub(crate) fn gather<T: Copy + Into<O>, A: Copy, O>(
    from: &[T],
    at: &[A],
    index: impl Fn(A) -> usize,
    out: &mut [O],
) {
    let Some(last) = from.len().checked_sub(1) else { return };
    // The minimum spares a test of the index.
    visit(from, at, &index, out, |at, to| *to = from[index(at).min(last)].into());
}

/// The same of values whose lines are near.
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
