//! Values of rows in several segments: as one slice if they are in one piece of memory, otherwise row by row.

use crate::exec::prefetch::{FAR_BYTES, visit_prefetching};
use crate::exec::row_id::SEGMENT_ROWS;
use entasis_vector::prefetch::prefetch;
use entasis_vector::simd::{Kernel, widest_of};
use entasis_vector::{Buffer, Buffers, Native};

/// Visits the given rows with an item of `out` each; prefetches their values if all together exceed the
/// nearer caches.
#[inline(always)]
pub(super) fn visit_segments<T: Native, O>(
    segments: &[Buffer],
    rows: &[u32],
    out: &mut [O],
    visitor: impl FnMut(u32, &mut O),
) {
    let are_far = segments.first().is_some_and(|first| segments.len() * first.capacity() > FAR_BYTES);
    // `NO_ROW` is in no segment.
    let segment = |row: u32| segments.get((row >> 16) as usize);
    let ask =
        |row| segment(row).into_iter().for_each(|s| prefetch(s.as_slice::<T>(), (row & 0xffff) as usize));
    visit_prefetching(are_far, rows, ask, out, visitor);
}

/// The segment that has all `rows`, as one slice, or all segments if they are one piece of memory; and its
/// first row.
// PERF: rows that have been put in place are one piece. For others, keys in order, or by hash, lead to rows
// near each other.
#[inline(always)]
pub(super) fn joined<'a, T: Native>(segments: &'a Buffers, rows: &[u32]) -> Option<(u32, &'a [T])> {
    if let Some(values) = segments.joined(SEGMENT_ROWS) {
        return Some((0, values));
    }
    let (first, last) = widest_of(Ends(rows));
    let segment = segments.get((first >> 16) as usize).filter(|_| first >> 16 == last >> 16)?;
    Some((first & !0xffff, segment.as_slice()))
}

/// The least and the greatest of the given rows.
struct Ends<'a>(&'a [u32]);

impl Kernel for Ends<'_> {
    type Output = (u32, u32);

    #[inline(always)]
    fn run(self) -> (u32, u32) {
        self.0.iter().fold((u32::MAX, 0), |(first, last), &row| (first.min(row), last.max(row)))
    }
}
