//! What a scan outputs: the columns of the rows that are left, decoded into memory that the worker keeps, or
//! a description of where they are stored.
//!
//! A column is decoded once for a stretch, by the first who reads it. Afterwards the rows may become fewer,
//! so its vector is always read through the selection of the rows that are left.

use super::Reading;
use super::stored::StoredRuns;
use entasis_storage::{RowGroup, RowId, TableSnapshot};
use entasis_vector::buffer::unique;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, Selection};
use std::ops::Range;
use std::sync::Arc;

impl Reading {
    /// Decodes the remaining rows of `count` positions.
    pub(super) fn give(&mut self, snapshot: &TableSnapshot, count: usize, chunk: &mut Chunk) {
        let group = snapshot.row_group(self.walk.number).expect("the row group is open");
        for column in 0..self.decoded.len() {
            match self.scan.outputs[column] {
                true => self.decode(group, column),
                false if self.decoded[column] => {}
                false => self.blank(column),
            }
        }
        let selection = self.selection();
        self.push_columns(if self.all { count } else { self.rows.len() }, selection, chunk);
    }

    /// Decodes rows that were held back. False if there are none.
    pub(super) fn give_kept(&mut self, snapshot: &TableSnapshot, chunk: &mut Chunk) -> bool {
        if self.kept.len() == 0 {
            return false;
        }
        self.number = self.kept.number;
        let group = snapshot.row_group(self.number).expect("it is a row group");
        let rows = self.kept.take(self.scan.chunk_rows, group.block_slots(), group.slots());
        for column in 0..self.vectors.len() {
            if !self.scan.outputs[column] {
                self.blank(column);
                continue;
            }
            let (index, vector) = (self.scan.columns[column], &mut self.vectors[column]);
            if index == self.scan.row_id {
                let ids = vector.begin_flat::<u64>(self.scan.chunk_rows);
                for (id, &slot) in ids.iter_mut().zip(self.kept.current()) {
                    *id = RowId { group: self.number as u32, slot }.to_u64();
                }
            } else {
                let held = self.scan.metas[column].ty.physical();
                group.gather_runs(index, held, &self.kept.runs, &self.kept.positions, vector);
            }
        }
        self.kept.forget();
        // The waiting rows are decoded into the same memory.
        self.decoded.fill(false);
        self.push_columns(rows, Selection::ALL, chunk);
        true
    }

    /// Makes the vectors the chunk's columns.
    fn push_columns(&mut self, rows: usize, selection: Selection, chunk: &mut Chunk) {
        chunk.reset(rows);
        let to = chunk.push_group(selection);
        for vector in &self.vectors {
            chunk.push_column(vector.clone(), to);
        }
    }

    /// Fills a column that nobody reads with a placeholder.
    fn blank(&mut self, column: usize) {
        let vector = &mut self.vectors[column];
        vector.begin(1);
        vector.set_null(0);
        vector.make_constant();
    }

    /// Decodes a column for the remaining rows.
    pub(super) fn decode(&mut self, group: &RowGroup, column: usize) {
        if std::mem::replace(&mut self.decoded[column], true) {
            return;
        }
        let (index, vector) = (self.scan.columns[column], &mut self.vectors[column]);
        let held = self.scan.metas[column].ty.physical();
        if index == self.scan.row_id {
            let group = self.walk.number as u32;
            let ids = vector.begin_flat::<u64>(self.scan.chunk_rows);
            let mut slots = self.walk.runs.iter().flat_map(Range::clone);
            let to_id = |slot: usize| RowId { group, slot: slot as u32 }.to_u64();
            if self.gathered.is_empty() {
                ids.iter_mut().zip(slots).for_each(|(id, slot)| *id = to_id(slot));
            } else {
                let mut next = 0;
                for (id, &position) in ids.iter_mut().zip(&self.found[self.gathered.clone()]) {
                    let slot = slots.nth(usize::from(position) - next).expect("positions are of slots");
                    (*id, next) = (to_id(slot), usize::from(position) + 1);
                }
            }
        } else if !self.gathered.is_empty() {
            group.gather_runs(index, held, &self.walk.runs, &self.found[self.gathered.clone()], vector);
        } else if self.all {
            group.decode_runs(index, held, &self.walk.runs, vector);
        } else {
            group.decode_selected_runs(index, held, &self.walk.runs, &self.rows, vector);
        }
    }

    /// The current stretch, in reused memory.
    pub(super) fn stored(&mut self) -> Arc<StoredRuns> {
        let scan = &self.scan;
        let stored = self.stored.get_or_insert_with(|| {
            let held = |(&index, meta): (&usize, &ColumnMeta)| (index, meta.ty.physical());
            let columns = scan.columns.iter().zip(&scan.metas).map(held).collect();
            Arc::new(StoredRuns { snapshot: scan.snapshot.clone(), group: 0, runs: Vec::new(), columns })
        });
        let told = Arc::get_mut(stored).expect("each chunk is reset before the next is asked for");
        told.group = self.walk.number;
        std::mem::swap(&mut told.runs, &mut self.walk.runs);
        stored.clone()
    }

    /// The remaining rows, as a selection in this worker's memory.
    pub(super) fn selection(&mut self) -> Selection {
        if self.all {
            return Selection::ALL;
        }
        let buffer = unique(&mut self.selection, self.scan.chunk_rows * 2);
        buffer.as_mut_slice::<u16>()[..self.rows.len()].copy_from_slice(&self.rows);
        Selection::from_buffer(self.selection.clone())
    }
}
