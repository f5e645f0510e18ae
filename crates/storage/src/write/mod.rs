//! Writing rows: the five operations of *Optimal Column Layout for Hybrid Workloads*, section 3, on a branch of the tree.
//!
//! | operation | here |
//! |---|---|
//! | point query, range query | [`crate::lookup`], for readers as well |
//! | insert | [`Writer::insert`]: into a ghost slot of the key's partition; [`room`] makes one if there is none |
//! | delete | [`Writer::delete`]: the slot becomes a ghost where it is |
//! | update | [`Writer::update`]: in place; a row whose partition changes goes from slot to slot, and the slot that it leaves is the first to be rippled towards where it goes |
//!
//! An operation names rows by [`RowId`], which a change may make stale: `insert` moves rows of the row group (ripple,
//! spread) or renumbers all; `delete` and `update` in place move nothing. So a statement deletes first, inserts last, and
//! calls [`Writer::tidy`] at its end.
//!
//! Nothing here fails, so a statement validates first and then writes.

mod bulk;
mod kept;
mod load;
mod pieces;
mod room;
mod spread;
mod tidy;
mod upkeep;

pub(crate) use bulk::runs_of;
pub(crate) use spread::zones_of;
pub(crate) use upkeep::has_small;

use crate::block::Form;
use crate::block::masks::bits_inside;
use crate::definition::{Compression, TableOptions};
use crate::key::{Fences, Key, LayoutKey};
use crate::row_group::RowGroup;
use crate::tree::{Branch, Edit, Root};
use crate::value::{Datum, Zone};
use entasis_vector::{DataType, Schema, StringHeap, StringView};
use std::cmp::Ordering;
use std::sync::Arc;

/// Where a row stands in one version of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowId {
    /// Index of the row group.
    pub group: u32,
    /// Slot in it.
    pub slot: u32,
}

impl RowId {
    /// Both numbers in one, in the same order.
    #[inline]
    pub fn to_u64(self) -> u64 {
        u64::from(self.group) << 32 | u64::from(self.slot)
    }
    /// What [`RowId::to_u64`] was made of.
    #[inline]
    pub fn from_u64(id: u64) -> RowId {
        RowId { group: (id >> 32) as u32, slot: id as u32 }
    }
}

// PERF: one comparison, where a derived order has two and a branch.
impl Ord for RowId {
    #[inline]
    fn cmp(&self, other: &RowId) -> Ordering {
        self.to_u64().cmp(&other.to_u64())
    }
}

impl PartialOrd for RowId {
    #[inline]
    fn partial_cmp(&self, other: &RowId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Rows that stand one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: RowId,
    pub(crate) rows: u32,
}

impl Run {
    /// The number of a row among these.
    pub(crate) fn number_of(&self, row: RowId) -> Option<u32> {
        let number = row.slot.checked_sub(self.first.slot).filter(|&number| number < self.rows);
        number.filter(|_| row.group == self.first.group)
    }

    /// Adds a row to the last of some runs, or as a new one.
    fn push(runs: &mut Vec<Run>, row: RowId) {
        match runs.last_mut() {
            Some(run) if run.first.group == row.group && run.first.slot + run.rows == row.slot => run.rows += 1,
            _ => runs.push(Run { first: row, rows: 1 }),
        }
    }
}

/// What never changes about a table.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    pub(crate) options: TableOptions,
    /// None for tables in the order of insertion.
    pub(crate) key: Option<LayoutKey>,
}

impl Shape {
    pub(crate) fn new(name: String, schema: Schema, options: TableOptions) -> Shape {
        let keyed = options.layout.is_keyed() && !options.layout_key.is_empty();
        let key = keyed.then(|| LayoutKey::new(&options.layout_key, &schema));
        Shape { name, schema, options, key }
    }

    /// What builders make blocks of a column for.
    pub(crate) fn form(&self, column: usize) -> Form {
        match self.options.compression_of(column) {
            // Symbols are not for single rows.
            compression @ (Compression::Auto | Compression::Fsst | Compression::Strings) if self.key.is_some() => {
                Form::Writable { dictionaries: compression.has_dictionaries() }
            }
            compression => Form::Cold(compression),
        }
    }

    /// The fences of a table without rows.
    pub(crate) fn no_fences(&self) -> Fences {
        self.key.as_ref().map_or(Fences::Words(Vec::new()), LayoutKey::no_fences)
    }
}

/// Writes to a branch. See the module.
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
                self.slot_for(&key, None)
            }
        };
        self.fill(id, row);
        self.in_order(id)
    }

    /// Removes a row.
    pub(crate) fn delete(&mut self, id: RowId) {
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

    /// Removes all rows, and the memory that they had.
    pub(crate) fn clear(&mut self) {
        let Branch { root, edit } = &mut *self.branch;
        let root = root.edit(edit);
        for group in std::mem::take(&mut root.groups) {
            edit.retire_whole_group(group);
        }
        root.rows = 0;
        root.fences = self.shape.no_fences();
    }

    /// Changes columns of a row. Where the row is afterwards.
    pub(crate) fn update(&mut self, id: RowId, changes: &[(usize, Datum<'_>)]) -> RowId {
        let changed = |column: usize| changes.iter().rev().find(|(c, _)| *c == column).map(|(_, datum)| *datum);
        if let Some(key) = &self.shape.key
            && key.columns.iter().any(|&column| changed(column).is_some())
        {
            let old = |column| self.datum(id, column);
            let new_key = key.of_row(|column| changed(column).unwrap_or_else(|| old(column)));
            let (group, partition) = self.place_of(&new_key);
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
            widen(&mut group.zones, column, datum, schema[column].ty);
        }
    }

    /// Moves a row to the partition of its new key.
    fn transfer(&mut self, id: RowId, key: &Key, changes: &[(usize, Datum<'_>)]) -> RowId {
        let mut row = OwnedRow::default();
        row.take(&self.branch.root, id, &self.shape.schema);
        self.delete(id);
        let to = self.slot_for(key, Some(id));
        row.with(|old| {
            let mut new = old.to_vec();
            changes.iter().for_each(|&(column, datum)| new[column] = datum);
            self.fill(to, &new);
        });
        self.in_order(to)
    }

    /// One value.
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
            widen(&mut group.zones, column, datum, schema[column].ty);
        }
        slice.revive(slot);
        group.slices[number].renew();
    }

    /// Row group and partition of a new row with `key`.
    fn place_of(&self, key: &Key) -> (usize, usize) {
        let root = &*self.branch.root;
        let group = root.fences.part_for(key);
        let guess = root.groups[group].prefetch_part(key);
        (group, root.groups[group].fences.part_near(key, guess))
    }

    /// A slot for a new row with `key`. If that row comes from a slot that it has left, `from` is where room is looked for
    /// first.
    fn slot_for(&mut self, key: &Key, mut from: Option<RowId>) -> RowId {
        if self.branch.root.groups.is_empty() {
            self.add_group();
        }
        loop {
            let (group, partition) = self.place_of(key);
            if let Some(slot) = self.branch.root.groups[group].ghost_slot(partition) {
                return RowId { group: group as u32, slot: slot as u32 };
            }
            let donor = from.take().filter(|id| id.group as usize == group);
            let donor = donor.and_then(|id| self.branch.root.groups[group].partition_of(id.slot as usize));
            self.make_room(group, partition, donor);
        }
    }
}

impl RowGroup {
    /// The partition of a slot; none in a table without a layout key.
    #[inline]
    pub(crate) fn partition_of(&self, slot: usize) -> Option<usize> {
        // PERF: where partitions are about as long as each other, one entry is read and not seven.
        let guess = slot * self.partitions.len() / self.slots().max(1);
        if self.partitions.get(guess).is_some_and(|partition| partition.slots().contains(&slot)) {
            return Some(guess);
        }
        self.partitions.partition_point(|partition| partition.start as usize <= slot).checked_sub(1)
    }

    /// A slot of a partition that is not live, if there is one: rather one that no version shows.
    pub(crate) fn ghost_slot(&self, partition: usize) -> Option<usize> {
        let partition = &self.partitions[partition];
        if partition.ghosts() == 0 {
            return None;
        }
        let (width, slots) = (self.block_slots, partition.slots());
        let mut dead = None;
        for number in slots.start / width..slots.end.div_ceil(width) {
            let slice = &*self.slices[number];
            if slice.rows() == width {
                continue;
            }
            let start = number * width;
            let inside = slots.start.max(start) - start..slots.end.min(start + width) - start;
            for word in inside.start / 64..inside.end.div_ceil(64) {
                let ghosts = !slice.live()[word] & bits_inside(word * 64, &inside);
                let unseen = ghosts & !slice.visible()[word];
                if unseen != 0 {
                    return Some(start + word * 64 + unseen.trailing_zeros() as usize);
                }
                if ghosts != 0 {
                    dead.get_or_insert(start + word * 64 + ghosts.trailing_zeros() as usize);
                }
            }
        }
        dead
    }
}

/// One value of a version.
pub(crate) fn datum(root: &Root, id: RowId, column: usize, ty: DataType) -> Datum<'_> {
    let group = &*root.groups[id.group as usize];
    let slot = id.slot as usize;
    group.slices[slot / group.block_slots].block(column).datum(slot % group.block_slots, ty.physical())
}

/// Some values of a row, in the order of `columns`, at the end of `out`.
pub(crate) fn read<'a>(root: &'a Root, id: RowId, columns: &[usize], schema: &Schema, out: &mut Vec<Datum<'a>>) {
    let group = &*root.groups[id.group as usize];
    let (slice, slot) = (&*group.slices[id.slot as usize / group.block_slots], id.slot as usize % group.block_slots);
    columns.iter().for_each(|&column| slice.prefetch(column, slot));
    out.extend(columns.iter().map(|&column| slice.block(column).datum(slot, schema[column].ty.physical())));
}

/// Widens the zone of a column by a value.
#[inline]
pub(crate) fn widen(zones: &mut Arc<[Zone]>, column: usize, datum: Datum<'_>, ty: DataType) {
    let zone = &zones[column];
    let holds = match datum {
        Datum::Null => zone.nulls > 0,
        datum => !zone.min.is_null() && datum.cmp_bound(&zone.min).is_ge() && datum.cmp_bound(&zone.max).is_le(),
    };
    if !holds {
        let zone = &mut Arc::make_mut(zones)[column];
        match datum {
            Datum::Null => zone.nulls = 1,
            datum => crate::block::widen(zone, datum, ty),
        }
    }
}

/// A row on its own, that is on its way.
#[derive(Default)]
pub(crate) struct OwnedRow {
    values: Vec<OwnedDatum>,
    heap: StringHeap,
}

enum OwnedDatum {
    Plain(Datum<'static>),
    Bytes(StringView),
}

impl OwnedRow {
    /// Takes a copy of a row.
    pub(crate) fn take(&mut self, root: &Root, id: RowId, schema: &Schema) {
        self.values.clear();
        self.heap.clear();
        let (group, slot) = (&*root.groups[id.group as usize], id.slot as usize);
        let slice = &*group.slices[slot / group.block_slots];
        (0..schema.len()).for_each(|column| slice.prefetch(column, slot % group.block_slots));
        for (column, field) in schema.iter().enumerate() {
            self.values.push(match datum(root, id, column, field.ty) {
                Datum::Bytes(bytes) => OwnedDatum::Bytes(self.heap.push(bytes)),
                Datum::Null => OwnedDatum::Plain(Datum::Null),
                Datum::Integer(v) => OwnedDatum::Plain(Datum::Integer(v)),
                Datum::Float(v) => OwnedDatum::Plain(Datum::Float(v)),
                Datum::Interval(v) => OwnedDatum::Plain(Datum::Interval(v)),
            });
        }
    }

    /// Calls `with` with the row.
    pub(crate) fn with<R>(&self, with: impl FnOnce(&[Datum<'_>]) -> R) -> R {
        let datums: Vec<Datum<'_>> = self
            .values
            .iter()
            .map(|value| match value {
                OwnedDatum::Plain(datum) => *datum,
                OwnedDatum::Bytes(view) => Datum::Bytes(view.as_bytes()),
            })
            .collect();
        with(&datums)
    }
}

/// The edit and the row group, both to be written.
pub(crate) fn edit_group(branch: &mut Branch, group: usize) -> (&mut RowGroup, &mut Edit) {
    let Branch { root, edit } = branch;
    let group = root.edit(edit).groups[group].edit(edit);
    (group, edit)
}
