//! The columns of a stretch, decoded as late as possible into memory that the worker keeps.
//!
//! A column is decoded once for a stretch, by the first who reads it. Afterwards the rows may become fewer,
//! so its vector is always read through the selection of the rows that are left.

use super::candidates::Candidates;
use super::columns::Columns;
use super::kept::HeldBack;
use super::walk::Slots;
use entasis_storage::{RowGroup, RowId};
use entasis_vector::{Chunk, Selection, Vector};
use std::ops::Range;

/// See the module.
pub(super) struct DecodedColumns {
    pub(super) vectors: Vec<Vector>,
    /// For each column, whether it is decoded for the current stretch.
    decoded: Vec<bool>,
    /// The most rows of a chunk.
    chunk_rows: usize,
}

impl DecodedColumns {
    /// Memory for these columns, none of which is decoded.
    pub(super) fn new(columns: &Columns, chunk_rows: usize) -> DecodedColumns {
        let vectors = columns.metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        DecodedColumns { vectors, decoded: vec![false; columns.len()], chunk_rows }
    }

    /// Forgets what is decoded.
    pub(super) fn clear(&mut self) {
        self.decoded.fill(false);
    }

    /// True if a column is decoded for the current stretch.
    pub(super) fn has(&self, column: usize) -> bool {
        self.decoded[column]
    }

    /// Decodes a column for the candidates, unless it is decoded.
    pub(super) fn decode(
        &mut self,
        columns: &Columns,
        slots: Slots<'_>,
        candidates: &Candidates,
        column: usize,
    ) {
        if std::mem::replace(&mut self.decoded[column], true) {
            return;
        }
        let Some(index) = columns.stored(column) else {
            self.number_rows(slots, candidates, column);
            return;
        };
        let (group, runs, held) = (slots.group, slots.runs, columns.physical(column));
        let vector = &mut self.vectors[column];
        if let Some(found) = candidates.gathered() {
            group.gather_runs(index, held, runs, found, vector);
        } else if candidates.all {
            group.decode_runs(index, held, runs, vector);
        } else {
            group.decode_selected_runs(index, held, runs, &candidates.rows, vector);
        }
    }

    /// Fills a column with the row ids of the stretch.
    fn number_rows(&mut self, slots: Slots<'_>, candidates: &Candidates, column: usize) {
        let group = slots.number as u32;
        let ids = self.vectors[column].begin_flat::<u64>(self.chunk_rows);
        let mut slots = slots.runs.iter().flat_map(Range::clone);
        let to_id = |slot: usize| RowId { group, slot: slot as u32 }.to_u64();
        let Some(found) = candidates.gathered() else {
            ids.iter_mut().zip(slots).for_each(|(id, slot)| *id = to_id(slot));
            return;
        };
        let mut next = 0;
        for (id, &position) in ids.iter_mut().zip(found) {
            let slot = slots.nth(usize::from(position) - next).expect("positions are of slots");
            (*id, next) = (to_id(slot), usize::from(position) + 1);
        }
    }

    /// Decodes the columns that are output, for the candidates.
    pub(super) fn complete(&mut self, columns: &Columns, slots: Slots<'_>, candidates: &Candidates) {
        for column in 0..columns.len() {
            match columns.outputs[column] {
                true => self.decode(columns, slots, candidates, column),
                false if self.decoded[column] => {}
                false => self.blank(column),
            }
        }
    }

    /// Decodes the columns that are output, for the rows of `group` that `kept` gives now.
    pub(super) fn gather(&mut self, columns: &Columns, group: &RowGroup, kept: &HeldBack) {
        for column in 0..columns.len() {
            if !columns.outputs[column] {
                self.blank(column);
                continue;
            }
            let vector = &mut self.vectors[column];
            if let Some(index) = columns.stored(column) {
                group.gather_runs(index, columns.physical(column), &kept.runs, &kept.positions, vector);
            } else {
                let ids = vector.begin_flat::<u64>(self.chunk_rows);
                for (id, &slot) in ids.iter_mut().zip(kept.current()) {
                    *id = RowId { group: kept.number as u32, slot }.to_u64();
                }
            }
        }
    }

    /// Fills a column that nobody reads with a placeholder.
    fn blank(&mut self, column: usize) {
        let vector = &mut self.vectors[column];
        vector.begin(1);
        vector.set_null(0);
        vector.make_constant();
    }

    /// Makes the vectors the columns of a chunk of `rows` rows.
    pub(super) fn push(&self, rows: usize, selection: Selection, chunk: &mut Chunk) {
        chunk.reset(rows);
        let to = chunk.push_group(selection);
        for vector in &self.vectors {
            chunk.push_column(vector.clone(), to);
        }
    }
}
