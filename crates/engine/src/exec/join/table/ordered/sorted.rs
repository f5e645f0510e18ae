//! Binary search in ordered values.
//!
//! Every 64th value is also in a separate list, as a *fence*: the first steps of a search touch memory that
//! stays in a cache, the others a few adjacent cache lines.

use std::ops::Range;

/// Values between two fences.
const STEP: usize = 64;

/// The fences of `values`.
pub(super) fn fences<T: Copy>(values: &[T]) -> Vec<T> {
    values.iter().step_by(STEP).copied().collect()
}

/// The first place in `range` whose value is not `before`, or its end if there is none. Values for which
/// `before` holds come first.
#[inline(always)]
pub(super) fn first_after<T>(
    values: &[T],
    fences: &[T],
    range: Range<usize>,
    before: impl Fn(&T) -> bool,
) -> usize {
    let (first, last) = (range.start.div_ceil(STEP), range.end.div_ceil(STEP));
    if first >= last {
        return range.start + values[range].partition_point(before);
    }
    let fence = first + fences[first..last].partition_point(&before);
    let start = if fence == first { range.start } else { (fence - 1) * STEP + 1 };
    let end = if fence == last { range.end } else { fence * STEP };
    start + values[start..end].partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_by_fences_is_a_search() {
        let values: Vec<i64> = (0..700).map(|i| i / 3 * 2).collect();
        let fences = fences(&values);
        for (start, end) in
            [(0, 700), (0, 0), (64, 128), (1, 64), (63, 65), (130, 131), (200, 699), (640, 700)]
        {
            for bound in -1..470 {
                let expected = start + values[start..end].partition_point(|&v| v < bound);
                assert_eq!(
                    first_after(&values, &fences, start..end, |&v| v < bound),
                    expected,
                    "{start}, {end}, {bound}"
                );
            }
        }
    }
}
