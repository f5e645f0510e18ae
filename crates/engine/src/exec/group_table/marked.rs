//! Few groups: each position of a chunk has the *mark* of its group, and each group has a pass of its own
//! over them.
//!
//! A pass adds where the mark matches, which vectorizes, while adding each row to its group's sum waits for
//! the previous row's addition. Marks are bytes by position, so that arguments are read in place, whatever
//! rows a filter has left among them: positions that are no row have [`NO_GROUP`]. Two rows must not share a
//! position.
//!
//! Values of 32 bits are summed in lanes of 32 bits, as many per lane as cannot overflow, then the lanes in
//! 64 bits.
//!
//! The slow twin is a loop over the rows ([`crate::exec::aggregate::rows::accumulate`]).

use entasis_vector::Native;
use entasis_vector::simd::{Kernel, widest, widest_of};

/// The most groups for which each may have a pass of its own over a chunk.
// PERF: a pass is a vector loop of 0.1 ns per row; adding a row to its group's sum takes 1.5 ns.
pub const MASKED_GROUPS: usize = 8;

/// The mark of a position that is no row.
pub const NO_GROUP: u8 = u8::MAX;

/// The lanes of a pass.
const LANES: usize = 64;
/// How many ascending positions are compared with their places at a time.
// PERF: most steps have no gap, and are one comparison.
const STEP: usize = 8;

/// Clears the marks of all positions that are no rows. `rows` ascend, and no position beyond is marked.
pub fn unmark_others(rows: &[u16], marks: &mut [u8]) {
    let mut next = 0;
    for step in rows.chunks(STEP) {
        let (first, last) = (usize::from(step[0]), usize::from(step[step.len() - 1]));
        if first == next && last - first < step.len() {
            next = last + 1;
            continue;
        }
        for &row in step {
            marks[next..usize::from(row)].fill(NO_GROUP);
            next = usize::from(row) + 1;
        }
    }
    marks[next..].fill(NO_GROUP);
}

/// True if each position is greater than the one before.
pub fn ascend(positions: &[u16]) -> bool {
    let after = positions.get(1..).unwrap_or(&[]);
    widest(|| positions.iter().zip(after).fold(true, |ascend, (a, b)| ascend & (a < b)))
}

/// Positions with `mark`.
pub fn count(marks: &[u8], mark: u8) -> usize {
    // As many as a byte can count.
    let in_block = |block: &[u8]| block.iter().fold(0u8, |count, &other| count + u8::from(other == mark));
    widest(|| {
        marks.chunks(usize::from(u8::MAX) & !(LANES - 1)).map(|block| usize::from(in_block(block))).sum()
    })
}

/// Adds the values of each group to its sum.
#[inline(always)]
pub fn add<T: Native>(values: &[T], marks: &[u8], sums: &mut [i64], widen: impl Fn(T) -> i64 + Copy) {
    for (group, sum) in sums.iter_mut().enumerate() {
        let group = group as u8;
        *sum += widest(|| {
            let marked = marks.iter().zip(values);
            marked.fold(0i64, |sum, (&mark, &v)| sum.wrapping_add(if mark == group { widen(v) } else { 0 }))
        });
    }
}

/// As [`add`], for values of which `most`, at least one, have a sum within 32 bits.
// PERF: sixteen sums per vector instead of eight.
pub fn add_narrow(values: &[i32], marks: &[u8], sums: &mut [i64], most: usize) {
    let (values, last) = values[..marks.len()].as_chunks::<LANES>();
    let (marks, last_marks) = marks.as_chunks::<LANES>();
    for (group, sum) in sums.iter_mut().enumerate() {
        *sum += widest_of(NarrowSum { values, marks, group: group as u8, most });
    }
    accumulate(last, last_marks, sums, |sum, v| sum + i64::from(v));
}

/// The sum of the values of one group.
struct NarrowSum<'a> {
    values: &'a [[i32; LANES]],
    marks: &'a [[u8; LANES]],
    group: u8,
    most: usize,
}

impl Kernel for NarrowSum<'_> {
    type Output = i64;

    #[inline(always)]
    fn run(self) -> i64 {
        let mut sums = [0i64; LANES];
        for (marks, values) in self.marks.chunks(self.most).zip(self.values.chunks(self.most)) {
            let mut lanes = [0i32; LANES];
            for (marks, values) in marks.iter().zip(values) {
                for lane in 0..LANES {
                    let value = if marks[lane] == self.group { values[lane] } else { 0 };
                    lanes[lane] = lanes[lane].wrapping_add(value);
                }
            }
            for lane in 0..LANES {
                sums[lane] += i64::from(lanes[lane]);
            }
        }
        sums.iter().sum()
    }
}

/// Folds each value into the state of its group, in sequence.
#[inline(always)]
pub fn accumulate<T: Native, A: Copy>(
    values: &[T],
    marks: &[u8],
    states: &mut [A],
    step: impl Fn(A, T) -> A,
) {
    for (&mark, &v) in marks.iter().zip(values) {
        if let Some(state) = states.get_mut(usize::from(mark)) {
            *state = step(*state, v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::testing::Chance;

    #[test]
    fn passes_agree_with_a_loop() {
        let mut chance = Chance(3);
        for (length, groups, largest) in
            [(0, 1, 5), (1, 2, i32::MAX), (63, 8, 7), (700, 3, i32::MAX / 2), (2048, 5, 1 << 24)]
        {
            let rows: Vec<u16> = (0..length).filter(|_| chance.below(60) > 0).collect();
            let limit = rows.last().map_or(0, |&last| usize::from(last) + 1);
            assert!(ascend(&rows));
            let mut marks: Vec<u8> = (0..limit).map(|_| chance.below(groups) as u8).collect();
            let given = marks.clone();
            unmark_others(&rows, &mut marks);
            for (position, (&mark, given)) in marks.iter().zip(given).enumerate() {
                assert_eq!(mark, if rows.contains(&(position as u16)) { given } else { NO_GROUP });
            }
            // Mostly the extremes, so that sums are as large as possible, and beyond the marks values that
            // must not be read.
            let value = |chance: &mut Chance| if chance.below(3) == 0 { -largest } else { largest };
            let values: Vec<i32> = (0..limit + 5).map(|_| value(&mut chance)).collect();
            let mut expected = vec![(0i64, 0usize); groups as usize];
            for &row in &rows {
                let state = &mut expected[usize::from(marks[usize::from(row)])];
                *state = (state.0 + i64::from(values[usize::from(row)]), state.1 + 1);
            }
            let (expected, counts): (Vec<i64>, Vec<usize>) = expected.into_iter().unzip();
            let found: Vec<usize> = (0..groups as u8).map(|group| count(&marks, group)).collect();
            assert_eq!(found, counts);
            assert_eq!(count(&marks, NO_GROUP), limit - rows.len());
            let mut sums = vec![vec![0i64; groups as usize]; 3];
            add(&values, &marks, &mut sums[0], i64::from);
            add_narrow(&values, &marks, &mut sums[1], (i32::MAX / largest) as usize);
            accumulate(&values, &marks, &mut sums[2], |sum, v| sum + i64::from(v));
            sums.iter().for_each(|found| assert_eq!(*found, expected, "{length} positions up to {largest}"));
        }
        assert!(ascend(&[]) && !ascend(&[1, 1]) && !ascend(&[0, 2, 1]));
    }
}
