//! Decoding: columns of a row group as vectors, by [`super::read`], or by digests where these say enough.

use super::read;
use crate::block::with_integer;
use crate::tree::RowGroup;
use entasis_vector::{CHUNK_ROWS, PhysicalType, Vector};
use std::ops::Range;

impl RowGroup {
    /// Decodes `rows` slots of a column, from slot `first` on, to positions 0 to `rows` - 1 of `out`, which
    /// has the column's default physical type. At most 2048 slots; the window may start anywhere. Positions
    /// of slots that are not live are arbitrary.
    pub fn decode(&self, column: usize, first: usize, rows: usize, out: &mut Vector) {
        self.decode_runs(column, out.physical(), std::slice::from_ref(&(first..first + rows)), out);
    }

    /// Decodes several runs of slots, at most [`CHUNK_ROWS`] in all, to consecutive positions. `held` is the
    /// column's default physical type; `out` has that, or a narrower integer type that holds every value.
    pub fn decode_runs(&self, column: usize, held: PhysicalType, runs: &[Range<usize>], out: &mut Vector) {
        let slots: usize = runs.iter().map(Range::len).sum();
        read::decode(self, column, held, runs, slots.max(CHUNK_ROWS), out);
    }

    /// Like [`RowGroup::decode`], but only the given positions of `out`, of live slots, need be defined.
    pub fn decode_selected(
        &self,
        column: usize,
        first: usize,
        positions: &[u16],
        rows: usize,
        out: &mut Vector,
    ) {
        self.decode_selected_runs(
            column,
            out.physical(),
            std::slice::from_ref(&(first..first + rows)),
            positions,
            out,
        );
    }

    /// Like [`RowGroup::decode_runs`], but only the given positions of `out`, of live slots, need be defined.
    pub fn decode_selected_runs(
        &self,
        column: usize,
        held: PhysicalType,
        runs: &[Range<usize>],
        positions: &[u16],
        out: &mut Vector,
    ) {
        let slots: usize = runs.iter().map(Range::len).sum();
        read::decode_selected(self, column, held, runs, positions, slots.max(CHUNK_ROWS), out);
    }

    /// Decodes the given positions of runs, which ascend and are of live slots, one behind the other. `held`
    /// and `out` as in [`RowGroup::decode_runs`].
    // PERF: later steps take less time for few rows, and the cache misses on the way to their blocks overlap.
    pub fn gather_runs(
        &self,
        column: usize,
        held: PhysicalType,
        runs: &[Range<usize>],
        positions: &[u16],
        out: &mut Vector,
    ) {
        if self.gather_by_digests(column, runs, positions, out) {
            return;
        }
        let width = self.block_slots;
        let slices = runs.iter().flat_map(|run| run.start / width..run.end.div_ceil(width));
        slices.for_each(|slice| self.slices[slice].prefetch_stream(column, true));
        read::gather(self, column, held, runs, positions, positions.len().max(CHUNK_ROWS), out);
    }

    /// [`RowGroup::gather_runs`] by digests alone; false if that is not possible.
    fn gather_by_digests(
        &self,
        column: usize,
        runs: &[Range<usize>],
        positions: &[u16],
        out: &mut Vector,
    ) -> bool {
        let parts = || read::parts(self.block_slots, runs);
        if !parts().all(|part| self.digest_of(column, part.slice).is_some_and(|digest| digest.is_known())) {
            return false;
        }
        with_integer!(out.physical(), T => {
            let target = out.begin_flat::<T>(positions.len().max(CHUNK_ROWS));
            let mut end = 0;
            for part in parts() {
                let own = part.positions(end, positions);
                end = own.end;
                let next = self.digest_of(column, part.slice + 1);
                if let Some(digest) = self.digest_of(column, part.slice).filter(|_| !own.is_empty()) {
                    digest.gather::<T>(part.slots(&positions[own.clone()]), &mut target[own], next);
                }
            }
        });
        true
    }
}
