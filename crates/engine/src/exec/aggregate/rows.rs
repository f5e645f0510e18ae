//! The rows of a chunk that count for an aggregate, and the loops that fold values of them into arrays over
//! the groups.

use entasis_vector::Native;
use entasis_vector::simd::widest;

/// The rows of a chunk that count, as a kernel walks over them.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// The number of rows.
    pub count: usize,
    /// Their positions in the argument; `None`: 0, 1, 2, …
    pub positions: Option<&'a [u16]>,
    /// Their groups; `None`: all belong to group 0, unless there are marks.
    pub groups: Option<&'a [u32]>,
    /// If there are few groups, used instead for counts and sums: for each position the group of its row, or
    /// [`NO_GROUP`](crate::exec::group_table::marked::NO_GROUP) if it is no row. Positions beyond are no
    /// rows.
    pub marks: Option<&'a [u8]>,
}

/// Folds values into the states of their groups.
#[inline(always)]
pub fn accumulate<T: Native, A: Copy>(
    values: &[T],
    rows: &Rows<'_>,
    states: &mut [A],
    step: impl Fn(A, T) -> A,
) {
    let count = rows.count;
    match (rows.groups, rows.positions) {
        (None, None) => states[0] = widest(|| values[..count].iter().fold(states[0], |a, &v| step(a, v))),
        (None, Some(at)) => {
            states[0] = at[..count].iter().fold(states[0], |a, &p| step(a, values[p as usize]))
        }
        (Some(groups), None) => {
            for (&g, &v) in groups[..count].iter().zip(values) {
                let state = &mut states[g as usize];
                *state = step(*state, v);
            }
        }
        (Some(groups), Some(at)) => {
            for (&g, &p) in groups[..count].iter().zip(at) {
                let state = &mut states[g as usize];
                *state = step(*state, values[p as usize]);
            }
        }
    }
}

/// Combines `other[ids[i]]` into `own[map[i]]`.
#[inline(always)]
pub fn combine<T: Copy>(own: &mut [T], other: &[T], ids: &[u32], map: &[u32], step: impl Fn(T, T) -> T) {
    for (&id, &to) in ids.iter().zip(map) {
        let state = &mut own[to as usize];
        *state = step(*state, other[id as usize]);
    }
}

/// Puts `values[ids[i]]` at i.
pub fn permute<T: Copy>(values: &mut Vec<T>, ids: &[u32]) {
    *values = ids.iter().map(|&id| values[id as usize]).collect();
}
