//! The candidates of a stretch: the positions whose rows no condition has ruled out yet.
//!
//! They are either all positions, or those listed. A condition that rules out none leaves that as it is, so
//! that columns are still decoded entirely.
//!
//! The positions are those of the stretch's slots. In a stretch that is longer than a chunk they are those
//! that have passed conditions on codes, which are *gathered*, a chunk at a time.

use super::walk::Stretch;
use entasis_vector::buffer::unique;
use entasis_vector::{Buffer, Selection};
use std::ops::Range;
use std::sync::Arc;

/// See the module.
pub(super) struct Candidates {
    /// The number of positions.
    count: usize,
    /// True if all positions are left.
    pub(super) all: bool,
    /// The positions that are left, unless all are.
    pub(super) rows: Vec<u16>,
    /// What has passed conditions on codes in a stretch that is longer than a chunk, for several chunks.
    found: Vec<u16>,
    /// Those of them that are the positions of the current chunk; empty if nothing is gathered.
    gathered: Range<usize>,
    /// True if conditions that are implied within the layout key's range hold for all positions.
    pub(super) is_implied: bool,
    selection: Arc<Buffer>,
    /// The most rows of a chunk.
    chunk_rows: usize,
}

impl Candidates {
    /// No candidates, before the first stretch.
    pub(super) fn new(chunk_rows: usize) -> Candidates {
        Candidates {
            count: 0,
            all: true,
            rows: Vec::with_capacity(chunk_rows),
            found: Vec::new(),
            gathered: 0..0,
            is_implied: false,
            selection: Arc::new(Buffer::zeroed(chunk_rows * 2)),
            chunk_rows,
        }
    }

    /// Begins with all slots of a stretch if they are live, and with none otherwise.
    pub(super) fn begin(&mut self, stretch: &Stretch) {
        self.rows.clear();
        self.found.clear();
        self.gathered = 0..0;
        self.all = stretch.is_dense;
        self.count = stretch.count;
        self.is_implied = stretch.is_implied;
    }

    /// The number of candidates.
    #[inline]
    pub(super) fn len(&self) -> usize {
        if self.all { self.count } else { self.rows.len() }
    }

    /// Where positions found in a stretch longer than a chunk go, to be gathered.
    pub(super) fn found(&mut self) -> &mut Vec<u16> {
        &mut self.found
    }

    /// True if more positions have been found than were gathered.
    pub(super) fn has_more(&self) -> bool {
        self.gathered.end < self.found.len()
    }

    /// Continues with the next positions found, as many as fit into a chunk; all are candidates.
    pub(super) fn gather_next(&mut self) {
        self.rows.clear();
        let start = self.gathered.end;
        self.gathered = start..self.found.len().min(start + self.chunk_rows);
        self.all = !self.gathered.is_empty();
        self.count = self.gathered.len();
    }

    /// The positions of the stretch that were gathered; `None` if the candidates are where they were.
    #[inline]
    pub(super) fn gathered(&self) -> Option<&[u16]> {
        Some(&self.found[self.gathered.clone()]).filter(|found| !found.is_empty())
    }

    /// Lists the positions if all are left, so that some can be removed.
    pub(super) fn list(&mut self) {
        if self.all {
            self.rows.extend(0..self.count as u16);
            self.all = false;
        }
    }

    /// Ends the narrowing of a list, which may have all positions.
    pub(super) fn listed(&mut self) {
        self.all = self.rows.len() == self.count;
        if self.all {
            self.rows.clear();
        }
    }

    /// Keeps the candidates with these numbers, which ascend.
    pub(super) fn pick(&mut self, picks: &[u16]) {
        if picks.len() == self.len() {
            return;
        }
        if self.all {
            self.rows.extend_from_slice(picks);
            self.all = false;
            return;
        }
        // Picks ascend, so an element is read before it is overwritten.
        for (to, &pick) in picks.iter().enumerate() {
            self.rows[to] = self.rows[pick as usize];
        }
        self.rows.truncate(picks.len());
    }

    /// The positions of the candidates in the stretch, in order.
    #[inline]
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> {
        let (all, rows) =
            (0..if self.all { self.count } else { 0 }, self.rows.iter().map(|&row| usize::from(row)));
        let gathered = self.gathered();
        all.chain(rows).map(move |row| gathered.map_or(row, |found| usize::from(found[row])))
    }

    /// The candidates, as a selection in this worker's memory.
    pub(super) fn selection(&mut self) -> Selection {
        if self.all {
            return Selection::ALL;
        }
        let buffer = unique(&mut self.selection, self.chunk_rows * 2);
        buffer.as_mut_slice::<u16>()[..self.rows.len()].copy_from_slice(&self.rows);
        Selection::from_buffer(self.selection.clone())
    }
}
