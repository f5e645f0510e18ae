//! Changes or deletes many rows at once, block by block.
//!
//! Row ids come in ascending order, so that those of one slice are consecutive. For each column of a slice
//! that changes, the block is decoded once, the new values are put in, and it is encoded again with exact
//! bounds. Rows are deleted by mask.

use super::Writer;
use crate::block::Scattered;
use crate::block::masks::WORDS;
use crate::tree::counters::chance;
use crate::tree::{Branch, RowId};
use crate::value::Zone;
use entasis_layout::frequency::Operation;
use entasis_vector::{Chunk, bitmap};
use std::sync::Arc;

impl Writer<'_> {
    /// Changes columns of rows that stay where they are. `columns` pairs a column of the table with the
    /// column of the chunk that has its new values; row `rows[i]` of the chunk is for `ids[i]`. The ids
    /// ascend.
    pub(crate) fn overwrite_many(
        &mut self,
        ids: &[RowId],
        columns: &[(usize, usize)],
        chunk: &Chunk,
        rows: &[u16],
    ) {
        debug_assert!(ids.is_sorted() && ids.len() == rows.len());
        let schema = &self.shape.schema;
        let width = self.shape.options.block_slots;
        let Branch { root, edit } = &mut *self.branch;
        let mut slots: Vec<u16> = Vec::with_capacity(ids.len());
        let mut at: Vec<u16> = Vec::with_capacity(ids.len());
        let mut left = ids;
        while let Some(&first) = left.first() {
            let number = first.slot as usize / width;
            let start = (number * width) as u32;
            let (group, end) = (first.group, start + width as u32);
            // PERF: without a division for each row.
            let count = left.iter().take_while(|id| id.group == group && id.slot < end).count();
            let (own, rest) = left.split_at(count);
            let rows = &rows[ids.len() - left.len()..][..count];
            left = rest;
            slots.clear();
            slots.extend(own.iter().map(|id| (id.slot - start) as u16));
            let group = root.edit(edit).groups[group as usize].edit(edit);
            group.touch();
            let slice = group.slices[number].edit(edit);
            for &(column, source) in columns {
                let at: &[u16] = match chunk.positions(source) {
                    None => rows,
                    Some(positions) => {
                        at.clear();
                        at.extend(rows.iter().map(|&row| positions[row as usize]));
                        &at
                    }
                };
                let new = Scattered { slots: &slots, at, vector: chunk.vector(source) };
                slice.scatter(column, new, schema, edit);
                widen_by(&mut group.zones, column, &slice.block(column).zone);
            }
        }
    }

    /// Counts one in so many of some rows that are deleted.
    fn count_deletes(&self, ids: &[RowId]) {
        let options = &self.shape.options;
        if !options.are_counted() {
            return;
        }
        let every = options.counters.every;
        for &id in ids.iter().skip(chance(every) as usize).step_by(every as usize) {
            if let Some(own) = &self.branch.root.groups[id.group as usize].counters {
                own.count(Operation::Delete(own.bin_of(&self.key_at(id))));
            }
        }
    }

    /// Deletes rows, whose ids ascend. Returns the row groups that had them, with the number of rows deleted
    /// from each.
    pub(crate) fn delete_many(&mut self, ids: &[RowId]) -> Vec<(u32, usize)> {
        debug_assert!(ids.is_sorted());
        let width = self.shape.options.block_slots;
        self.count_deletes(ids);
        let mut counts = Vec::new();
        let Branch { root, edit } = &mut *self.branch;
        for ids in ids.chunk_by(|a, b| a.group == b.group) {
            let root = root.edit(edit);
            let group = root.groups[ids[0].group as usize].edit(edit);
            group.touch();
            let mut removed = 0;
            for ids in ids.chunk_by(|a, b| a.slot as usize / width == b.slot as usize / width) {
                let mut mask = [0; WORDS];
                ids.iter().for_each(|id| bitmap::set(&mut mask, id.slot as usize % width, true));
                let slice = group.slices[ids[0].slot as usize / width].edit(edit);
                let rows = slice.rows();
                slice.bury_many(&mask);
                removed += rows - slice.rows();
            }
            group.rows -= removed;
            if !group.partitions.is_empty() {
                let first = group.partition_of(ids[0].slot as usize).expect("a slot has a partition");
                let last =
                    group.partition_of(ids[ids.len() - 1].slot as usize).expect("a slot has a partition");
                for number in first..=last {
                    let rows = group.live_rows(group.partitions[number].slots());
                    group.partitions[number].rows = rows as u32;
                }
            }
            root.rows -= removed as u64;
            counts.push((ids[0].group, removed));
        }
        counts
    }
}

/// Widens the zone of a column by that of a block.
fn widen_by(zones: &mut Arc<[Zone]>, column: usize, new: &Zone) {
    let zone = &zones[column];
    let within = new.min.is_null()
        || (!zone.min.is_null()
            && zone.min.total_cmp(&new.min).is_le()
            && zone.max.total_cmp(&new.max).is_ge());
    if !within || (new.nulls > 0 && zone.nulls == 0) {
        let zone = &mut Arc::make_mut(zones)[column];
        zone.merge(&Zone { nulls: zone.nulls.max(new.nulls) - zone.nulls, ..new.clone() });
    }
}
