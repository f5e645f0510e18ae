//! Writing rows: the five operations of *Optimal Column Layout for Hybrid Workloads*, section 3, on a branch
//! of the tree.
//!
//! | operation | here |
//! |---|---|
//! | point query, range query | [`crate::scan::lookup`], for readers as well |
//! | insert | [`Writer::insert`]: into a ghost slot of the key's partition; [`room`] makes one if there is none |
//! | delete | [`Writer::delete`]: the slot becomes a ghost where it is |
//! | update | [`Writer::update`]: in place; a row whose partition changes moves there, and the slot that it leaves is the first that ripples towards its new partition |
//!
//! An operation identifies rows by [`RowId`], which changes may invalidate: `insert` may move rows of its row
//! group (ripple, spread) and renumber row groups; `delete`, and `update` in place, move nothing. So a
//! statement deletes first, inserts last, and calls [`Writer::tidy`] at its end.
//!
//! Nothing here fails: a statement validates first, and then writes.
//!
//! ```text
//! one row      mod ──▶ owned_row ◀── room    the operations; a row on its way; ghosts by ripple
//!              spread ──▶ kept               rows laid out again; a check that none is lost
//! many rows    bulk                          changed and deleted
//!              pieces ──▶ spread ◀── load    added as slices, or laid out again; through buckets if many
//!                          ranks              words for keys of bytes, by which they go there
//!              looking                       a sort by several threads that may be ended
//! by workload  demand                        where ghosts are wanted, and whether to move rows for it
//! afterwards   tidy                          frees memory of deleted rows, at the end of a statement
//!              upkeep ──▶ spread, kept       slices laid out or encoded again, in the background
//! ```

mod bulk;
mod compact;
mod demand;
mod load;
mod looking;
mod owned_row;
mod pieces;
mod ranks;
mod room;
mod row_check;
mod spread;
mod upkeep;

pub(crate) use upkeep::has_small;

use self::owned_row::OwnedRow;
use crate::scan::row::datum;
use crate::tree::counters::is_counted;
use crate::tree::key::Key;
use crate::tree::{Branch, Edit, LiveCounters, RowGroup, RowId, Shape};
use crate::value::{Datum, Zone};
use entasis_layout::frequency::{Kind, Operation};
use entasis_vector::DataType;
use std::sync::Arc;

/// Writes to a branch.
pub(crate) struct Writer<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) branch: &'a mut Branch,
}

impl Writer<'_> {
    /// Adds a row: a datum for each column.
    pub(crate) fn insert(&mut self, row: &[Datum<'_>]) -> RowId {
        debug_assert_eq!(row.len(), self.shape.schema.len());
        let id = match &self.shape.key {
            None => self.tail_slot(),
            Some(key) => {
                let key = key.of_row(|column| row[column]);
                let id = self.slot_for(&key, None);
                self.count(id, |own| Operation::Insert(own.bin_of(&key)));
                id
            }
        };
        self.fill(id, row);
        self.in_order(id)
    }

    /// Deletes a row.
    pub(crate) fn delete(&mut self, id: RowId) {
        self.count(id, |own| Operation::Delete(own.bin_of(&self.key_at(id))));
        self.bury(id);
    }

    /// Makes the slot of a row a ghost.
    fn bury(&mut self, id: RowId) {
        let Branch { root, edit } = &mut *self.branch;
        let root = root.edit(edit);
        root.rows -= 1;
        let group = root.groups[id.group as usize].edit(edit);
        group.rows -= 1;
        group.touch();
        let slot = id.slot as usize;
        if let Some(partition) = group.partition_of(slot) {
            group.partitions[partition].rows -= 1;
        }
        group.slices[slot / group.block_slots].edit(edit).bury(slot % group.block_slots);
    }

    /// Counts an operation on the row group of a row, if it is one of those that are counted.
    #[inline]
    fn count(&self, id: RowId, operation: impl FnOnce(&LiveCounters) -> Operation<usize>) {
        if self.counts()
            && let Some(own) = &self.branch.root.groups[id.group as usize].counters
        {
            own.count(operation(own));
        }
    }

    /// Counts an update that gives a row a new key, which belongs into row group `to`.
    fn count_update(&self, id: RowId, new_key: &Key, to: usize) {
        if !self.counts() {
            return;
        }
        let (from, groups) = (id.group as usize, &self.branch.root.groups);
        let (Some(old), Some(new)) = (&groups[from].counters, &groups[to].counters) else { return };
        let (old_bin, new_bin) = (old.bin_of(&self.key_at(id)), new.bin_of(new_key));
        if from == to {
            return old.count(Operation::Update { from: old_bin, to: new_bin });
        }
        let (leave, arrive) = if from < to {
            (Kind::UpdateFromForward, Kind::UpdateToForward)
        } else {
            (Kind::UpdateFromBackward, Kind::UpdateToBackward)
        };
        old.add(leave, old_bin);
        new.add(arrive, new_bin);
        old.note();
    }

    /// True if the next operation is to be counted.
    #[inline]
    fn counts(&self) -> bool {
        let options = &self.shape.options;
        options.are_counted() && is_counted(options.counters.every)
    }

    /// The layout key of a row.
    fn key_at(&self, id: RowId) -> Key {
        let node = &self.branch.root.groups[id.group as usize];
        let (slice, slot) = (id.slot as usize / node.block_slots, id.slot as usize % node.block_slots);
        self.shape.key_of(node, slice as u32, slot as u32)
    }

    /// Deletes all rows, and frees their memory.
    pub(crate) fn clear(&mut self) {
        let Branch { root, edit } = &mut *self.branch;
        let root = root.edit(edit);
        for group in std::mem::take(&mut root.groups) {
            edit.retire_whole_group(group);
        }
        root.rows = 0;
        root.fences = self.shape.no_fences();
    }

    /// Changes columns of a row. Returns where the row is afterwards.
    pub(crate) fn update(&mut self, id: RowId, changes: &[(usize, Datum<'_>)]) -> RowId {
        let changed =
            |column: usize| changes.iter().rev().find(|(c, _)| *c == column).map(|(_, datum)| *datum);
        if let Some(key) = &self.shape.key
            && key.columns.iter().any(|&column| changed(column).is_some())
        {
            let old = |column| self.datum(id, column);
            let new_key = key.of_row(|column| changed(column).unwrap_or_else(|| old(column)));
            let (group, partition) = self.place_of(&new_key);
            self.count_update(id, &new_key, group);
            let stays = group == id.group as usize
                && self.branch.root.groups[group].partition_of(id.slot as usize) == Some(partition);
            if !stays {
                return self.transfer(id, &new_key, changes);
            }
            self.overwrite(id, changes);
            return self.in_order(id);
        }
        self.overwrite(id, changes);
        id
    }

    /// Changes columns of a row that stays where it is.
    fn overwrite(&mut self, id: RowId, changes: &[(usize, Datum<'_>)]) {
        let Shape { schema, .. } = self.shape;
        let Branch { root, edit } = &mut *self.branch;
        let group = root.edit(edit).groups[id.group as usize].edit(edit);
        group.touch();
        let (slice, slot) = (id.slot as usize / group.block_slots, id.slot as usize % group.block_slots);
        let slice = group.slices[slice].edit(edit);
        changes.iter().for_each(|&(column, _)| slice.prefetch_write(column, slot));
        for &(column, datum) in changes {
            slice.write(column, slot, datum, schema, edit);
            widen_zone(&mut group.zones, column, datum, schema[column].ty);
        }
    }

    /// Moves a row to the partition of its new key.
    fn transfer(&mut self, id: RowId, key: &Key, changes: &[(usize, Datum<'_>)]) -> RowId {
        let mut row = OwnedRow::default();
        row.take(&self.branch.root, id, &self.shape.schema);
        self.bury(id);
        let to = self.slot_for(key, Some(id));
        row.with(|old| {
            let mut new = old.to_vec();
            changes.iter().for_each(|&(column, datum)| new[column] = datum);
            self.fill(to, &new);
        });
        self.in_order(to)
    }

    /// One value of a row.
    pub(crate) fn datum(&self, id: RowId, column: usize) -> Datum<'_> {
        datum(&self.branch.root, id, column, self.shape.schema[column].ty)
    }

    /// Writes a row into a slot that is not live.
    fn fill(&mut self, id: RowId, row: &[Datum<'_>]) {
        let Shape { schema, .. } = self.shape;
        let Branch { root, edit } = &mut *self.branch;
        let root = root.edit(edit);
        root.rows += 1;
        let group = root.groups[id.group as usize].edit(edit);
        group.rows += 1;
        group.touch();
        let slot = id.slot as usize;
        if let Some(partition) = group.partition_of(slot) {
            group.partitions[partition].rows += 1;
        }
        let (number, slot) = (slot / group.block_slots, slot % group.block_slots);
        let slice = group.slices[number].edit(edit);
        (0..row.len()).for_each(|column| slice.prefetch_write(column, slot));
        for (column, &datum) in row.iter().enumerate() {
            slice.write(column, slot, datum, schema, edit);
            widen_zone(&mut group.zones, column, datum, schema[column].ty);
        }
        slice.revive(slot);
        group.slices[number].renew();
        if self.shape.key.is_none() {
            group.number(id.slot as usize, root.next_number, edit);
            root.next_number += 1;
        }
    }

    /// The row group and partition of a new row with `key`.
    fn place_of(&self, key: &Key) -> (usize, usize) {
        let root = &*self.branch.root;
        let group = root.fences.part_for(key);
        let guess = root.groups[group].prefetch_part(key);
        (group, root.groups[group].fences.part_near(key, guess))
    }

    /// A slot for a new row with `key`. If the row moves, `from` is the slot that it has left, from which
    /// room is taken first.
    fn slot_for(&mut self, key: &Key, mut from: Option<RowId>) -> RowId {
        if self.branch.root.groups.is_empty() {
            self.add_group();
        }
        loop {
            let (group, partition) = self.place_of(key);
            let (node, edit) = (&self.branch.root.groups[group], &self.branch.edit);
            if let Some(slot) = node.ready_ghost_slot(partition, edit) {
                return RowId { group: group as u32, slot: slot as u32 };
            }
            if let Some(slot) = node.ghost_slot(partition) {
                // Its blocks would have to be converted. They stay as they are if there is another way.
                match self.border_to_extend(group, partition) {
                    Some(border) => self.extend(group, partition, border),
                    None => return RowId { group: group as u32, slot: slot as u32 },
                }
                continue;
            }
            let donor = from.take().filter(|id| id.group as usize == group);
            let donor = donor.and_then(|id| self.branch.root.groups[group].partition_of(id.slot as usize));
            self.make_room(group, partition, donor);
        }
    }
}

/// Widens the zone of a column by a value.
#[inline]
pub(crate) fn widen_zone(zones: &mut Arc<[Zone]>, column: usize, datum: Datum<'_>, ty: DataType) {
    if !zones[column].holds(datum) {
        let zone = &mut Arc::make_mut(zones)[column];
        match datum {
            Datum::Null => zone.nulls = 1,
            datum => crate::block::widen(zone, datum, ty),
        }
    }
}

/// The row group for writing, and the edit.
pub(crate) fn edit_group(branch: &mut Branch, group: usize) -> (&mut RowGroup, &mut Edit) {
    let Branch { root, edit } = branch;
    let group = root.edit(edit).groups[group].edit(edit);
    (group, edit)
}
