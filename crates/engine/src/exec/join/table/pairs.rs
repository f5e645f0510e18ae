//! Pairs of rows, which the steps of a probe pass on.

use super::NO_ROW;
use crate::exec::prefetch::{AHEAD, are_far};
use entasis_vector::prefetch::prefetch;
use entasis_vector::simd::widest;

/// Pairs of a probe row and a build row, in two lists of equal length.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// Rows of the probe chunk.
    pub rows: Vec<u16>,
    /// Row ids of the build side.
    pub ids: Vec<u32>,
}

impl Pairs {
    /// Number of pairs.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
    /// Removes all pairs.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.ids.clear();
    }
    /// Adds copies of `other`'s pairs.
    pub(crate) fn extend(&mut self, other: &Pairs) {
        self.rows.extend_from_slice(&other.rows);
        self.ids.extend_from_slice(&other.ids);
    }
    /// Adds a pair without a build row for each probe row for which `wanted` holds.
    pub(crate) fn add_where<T>(&mut self, rows: &[T], wanted: impl Fn(&T) -> bool) {
        let mut len = self.len();
        self.rows.resize(len + rows.len(), 0);
        // Branch-free, as in `fill`.
        for (row, of) in rows.iter().enumerate() {
            self.rows[len] = row as u16;
            len += usize::from(wanted(of));
        }
        self.rows.truncate(len);
        self.ids.resize(len, NO_ROW);
    }
    /// Keeps the pairs at the given indexes, which ascend.
    pub(crate) fn keep(&mut self, places: &[u16]) {
        for (to, &from) in places.iter().enumerate() {
            self.rows[to] = self.rows[from as usize];
            self.ids[to] = self.ids[from as usize];
        }
        self.truncate(places.len());
    }
    /// Keeps the first `len` pairs.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.rows.truncate(len);
        self.ids.truncate(len);
    }
    /// Replaces the pairs with those that `head` finds for the given rows (`None`: all of `count`).
    #[inline(always)]
    pub(crate) fn fill(&mut self, rows: Option<&[u16]>, count: usize, mut head: impl FnMut(usize) -> u32) {
        let room = rows.map_or(count, <[u16]>::len);
        self.resize(room);
        let (out_rows, out_ids) = (&mut self.rows[..room], &mut self.ids[..room]);
        let mut found = 0;
        // Branch-free: every row writes, and a row with a candidate advances. PERF: one loop for both, so
        // that `head` is inlined: as a call it took a tenth of a probe by hash.
        for i in 0..room {
            let row = rows.map_or(i, |rows| usize::from(rows[i]));
            let id = head(row);
            out_rows[found] = row as u16;
            out_ids[found] = id;
            found += usize::from(id != NO_ROW);
        }
        self.truncate(found);
    }
    /// Replaces the pairs with those of `heads`, by probe row, for the given rows (`None`: all); [`NO_ROW`]
    /// means none.
    pub(super) fn take(&mut self, rows: Option<&[u16]>, heads: &[u32]) {
        // PERF: with foreign keys, all rows have a head, and none is left out.
        if rows.is_none() && widest(|| heads.iter().fold(true, |all, &id| all & (id != NO_ROW))) {
            self.rows.clear();
            self.rows.extend(0..heads.len() as u16);
            self.ids.clear();
            self.ids.extend_from_slice(heads);
        } else {
            self.fill(rows, heads.len(), |row| heads[row]);
        }
    }
    /// Replaces each pair's build row with its successor: `id` of the entry of `nexts` at the build row's
    /// `index`. Pairs whose successor is [`NO_ROW`] are removed.
    #[inline(always)]
    pub(super) fn advance<N>(&mut self, nexts: &[N], index: impl Fn(u32) -> usize, id: impl Fn(&N) -> u32) {
        let (mut found, are_far) = (0, are_far(nexts));
        for i in 0..self.len() {
            if let (true, Some(&later)) = (are_far, self.ids.get(i + AHEAD)) {
                prefetch(nexts, index(later));
            }
            let id = id(&nexts[index(self.ids[i])]);
            self.rows[found] = self.rows[i];
            self.ids[found] = id;
            found += usize::from(id != NO_ROW);
        }
        self.truncate(found);
    }
    /// Replaces each pair's build row with the next row id, if it is before the end in `ends` for the pair's
    /// probe row; removes other pairs.
    pub(super) fn step(&mut self, ends: &[u32]) {
        let mut found = 0;
        for i in 0..self.len() {
            let (row, id) = (self.rows[i], self.ids[i] + 1);
            self.rows[found] = row;
            self.ids[found] = id;
            found += usize::from(id < ends[row as usize]);
        }
        self.truncate(found);
    }
    /// Makes room for `len` pairs, which the caller writes.
    pub(super) fn resize(&mut self, len: usize) {
        self.rows.resize(len, 0);
        self.ids.resize(len, 0);
    }
}
