//! Spreads rows over slots again: when ghosts run out, when a row group is split, when most slots are empty,
//! and when many rows come at once.
//!
//! Rows are sorted by key, cut into partitions of equal width, and copied column by column to new hot blocks,
//! with ghost slots where the layout wants them. The window of slots is as small as possible: the slices of
//! one partition.

use super::demand::{Wanted, cuts};
use super::row_check::Kept;
use super::{Writer, edit_group};
use crate::block::masks::WORDS;
use crate::block::{Block, Form};
use crate::definition::Layout;
use crate::node::Link;
use crate::tree::key::{Fences, Key};
use crate::tree::{
    Branch, Edit, EncodedSlice, LiveCounters, Numbers, Partition, RowGroup, RowId, Shape, Slice, Wear,
    zones_of,
};
use entasis_vector::bitmap;
use std::ops::Range;
use std::sync::Arc;

/// A row to be laid out: its sort key, its part, and its slot there.
pub(super) type Source<K> = (K, u32, u32);

/// A slice whose rows are laid out.
pub(super) struct SourceSlice<'a> {
    pub(super) live: &'a [u64; WORDS],
    pub(super) blocks: Vec<&'a Block>,
}

impl SourceSlice<'_> {
    /// The number of its rows.
    pub(super) fn rows(&self) -> usize {
        self.live.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Calls `each` with the slots of its rows, in order.
    pub(super) fn each_live(&self, mut each: impl FnMut(usize)) {
        for (word, &bits) in self.live.iter().enumerate() {
            let mut left = bits;
            while left != 0 {
                each(word * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}

/// New slices, with partitions that begin at slot 0.
pub(crate) struct Laid {
    pub(super) slices: Vec<EncodedSlice>,
    pub(super) partitions: Vec<Partition>,
    pub(super) fences: Vec<Key>,
}

impl Writer<'_> {
    /// Spreads the slices of a full partition over one slice more.
    pub(super) fn spread_around(&mut self, group: usize, partition: usize) {
        let node = &self.branch.root.groups[group];
        let window = node.aligned_slices(partition..partition + 1);
        if node.slots() + node.block_slots > self.shape.options.group_slots {
            return self.split(group);
        }
        let slices = window.len() + 1;
        self.spread(group, window, slices);
        self.refine(group);
    }

    /// Moves a row that was just written to its place, if the table keeps partitions sorted. Returns where it
    /// is then.
    #[inline]
    pub(super) fn in_order(&mut self, id: RowId) -> RowId {
        if self.shape.options.layout == Layout::Sorted { self.shift(id) } else { id }
    }

    fn shift(&mut self, id: RowId) -> RowId {
        let (group, slot) = (id.group as usize, id.slot as usize);
        let node = self.branch.root.groups[group];
        let Some(partition) = node.partition_of(slot) else { return id };
        let width = node.block_slots;
        let key = |slot: usize| self.shape.key_of(&node, (slot / width) as u32, (slot % width) as u32);
        let slots = node.partitions[partition].slots();
        let before = slots.clone().take(slot - slots.start).rev().find(|&slot| node.is_live(slot));
        let after = (slot + 1..slots.end).find(|&slot| node.is_live(slot));
        let own = key(slot);
        if before.is_none_or(|before| key(before) <= own) && after.is_none_or(|after| own <= key(after)) {
            return id;
        }
        // Rows are laid out in the order of their keys and places, partition by partition.
        let window = node.aligned_slices(partition..partition + 1);
        let slots = window.start * width..window.end * width;
        let mut rank = 0;
        node.each_live(slots.clone(), |position| {
            let other = slots.start + position;
            rank += usize::from((key(other), other) < (own.clone(), slot));
        });
        let slices = window.len();
        self.spread(group, window, slices);
        let mut live = Vec::new();
        self.branch.root.groups[group].each_live(slots.clone(), |position| live.push(slots.start + position));
        RowId { slot: live[rank] as u32, ..id }
    }

    /// Spreads the rows of some slices over `slices` slices. No partition may cross the ends of the window.
    pub(super) fn spread(&mut self, group: usize, window: Range<usize>, slices: usize) {
        let node = self.branch.root.groups[group];
        let laid = self.shape.relay(&node, &window, slices, &[]);
        self.put(group, window, laid);
    }

    /// Replaces some slices by their rows, laid out again.
    pub(super) fn put(&mut self, group: usize, window: Range<usize>, laid: Laid) {
        let (width, columns, slices) =
            (self.shape.options.block_slots, self.shape.schema.len(), laid.slices.len());
        let (node, edit) = edit_group(self.branch, group);
        let slots = window.start * width..window.end * width;
        let first = node.partitions.partition_point(|p| (p.start as usize) < slots.start);
        let last = node.partitions.partition_point(|p| (p.start as usize) < slots.end);
        let shift = |slot: u32, by: usize| slot + by as u32;
        let new = laid.partitions.into_iter().map(|p| Partition {
            start: shift(p.start, slots.start),
            end: shift(p.end, slots.start),
            ..p
        });
        if !node.partitions.is_empty() {
            let new: Vec<Partition> = new.collect();
            let behind = first + new.len();
            node.partitions.splice(first..last, new);
            node.fences.splice(first..last, laid.fences);
            for partition in &mut node.partitions[behind..] {
                let moved = |slot: u32| slot - (window.len() * width) as u32 + (slices * width) as u32;
                (partition.start, partition.end) = (moved(partition.start), moved(partition.end));
            }
        }
        let is_all = window.len() == node.slices.len();
        if node.partitions.is_empty() {
            let numbers = node.relaid_numbers(slots, slices * width);
            node.renumber(numbers, edit);
        }
        let new = links(laid.slices, self.shape, edit);
        Kept::of(&node.slices[window.clone()], self.shape).assert_same_rows(&new, self.shape);
        let old: Vec<Link<Slice>> = node.slices.splice(window, new).collect();
        if is_all {
            node.zones = zones_of(&node.slices, columns);
        }
        node.wear.is_hot = true;
        old.into_iter().for_each(|slice| edit.retire_whole_slice(slice));
        let Branch { root, edit } = &mut *self.branch;
        root.edit(edit).groups[group].renew();
    }

    /// Splits a row group in two, at a border of partitions and slices if there is one near the middle.
    pub(super) fn split(&mut self, group: usize) {
        match self.branch.root.groups[group].middle() {
            Some(slot) => self.split_at(group, slot),
            None => self.halve(group),
        }
    }

    /// Splits a row group in two, if that copies no row.
    pub(super) fn split_at_border(&mut self, group: usize) {
        if let Some(slot) = self.branch.root.groups[group].middle() {
            self.split_at(group, slot);
        }
    }

    /// Replaces a row group by two, with half of the rows each.
    fn halve(&mut self, group: usize) {
        let node = self.branch.root.groups[group];
        let window = 0..node.slices.len();
        let half = (node.slices.len() / 2).max(node.rows.div_ceil(2) / node.block_slots + 1);
        let block = |part: u32, column: usize| node.slices[part as usize].block(column);
        let (shape, least) = (self.shape, node.fences.get(0));
        let mut rows = rows_of(&node, &window, |part, slot| shape.key_of(&node, part, slot));
        rows.sort_unstable();
        let (left, right) = rows.split_at(rows.len() / 2);
        let middle = right[0].0.clone();
        let left = lay(left, (half, &[]), shape, least, &Key::clone, &block);
        let right = lay(right, (half, &[]), shape, middle.clone(), &Key::clone, &block);
        let [mut left, mut right] = [left, right].map(|laid| self.group_of(laid));
        deal(shape, &[&node.counters], [&mut left, &mut right]);
        let [left, right] = [left, right].map(Link::new);
        Kept::of(&node.slices, shape)
            .assert_same_rows(&[&left.slices[..], &right.slices[..]].concat(), shape);
        let Branch { root, edit } = &mut *self.branch;
        let root = root.edit(edit);
        root.groups.splice(group..group + 1, [left, right]);
        root.fences.splice(group + 1..group + 1, vec![middle]);
        edit.retire_whole_group(node);
    }

    /// Makes the bins of counters finer, if the row group has twice as many partitions by now.
    pub(super) fn refine(&mut self, group: usize) {
        let node = &self.branch.root.groups[group];
        let options = self.shape.options.counters;
        let is_coarse = |own: &Arc<LiveCounters>| own.is_coarse(options, node.partitions.len(), node.slots());
        if node.counters.as_ref().is_some_and(is_coarse) {
            let (node, _) = edit_group(self.branch, group);
            deal(self.shape, &[&node.counters.take()], [node]);
        }
    }

    /// A row group of slices and partitions.
    pub(super) fn group_of(&self, laid: Laid) -> RowGroup {
        let mut fences = match &self.shape.key {
            Some(key) => key.no_fences(),
            None => Fences::Words(Vec::new()),
        };
        let has_key = self.shape.key.is_some();
        if has_key {
            fences.splice(0..0, laid.fences);
        }
        let slices = links(laid.slices, self.shape, &self.branch.edit);
        let slots = slices.len() * self.shape.options.block_slots;
        let mut group = RowGroup {
            stamp: self.branch.edit.stamp,
            block_slots: self.shape.options.block_slots,
            rows: slices.iter().map(|slice| slice.rows()).sum(),
            zones: zones_of(&slices, self.shape.schema.len()),
            wear: Wear::new(slices.iter().any(|slice| slice.is_hot() || self.shape.is_loose(slice))),
            slices,
            partitions: if has_key { laid.partitions } else { Vec::new() },
            counters: LiveCounters::new(self.shape, &fences, slots),
            fences,
            numbers: Numbers::from(self.branch.root.next_number),
            digests: None,
        };
        if !has_key {
            group.digest(&self.shape.schema, &self.branch.edit);
        }
        group
    }

    /// Splits a row group at a slot where a partition and a slice begin. Copies no row. Both have the zones
    /// of the old one, which are as wide as theirs or wider.
    fn split_at(&mut self, group: usize, slot: usize) {
        let Branch { root, edit } = &mut *self.branch;
        let root = root.edit(edit);
        let node = root.groups[group].edit(edit);
        let at = node.partition_of(slot).expect("a row group has partitions");
        let slices = node.slices.split_off(slot / node.block_slots);
        let mut partitions = node.partitions.split_off(at);
        for partition in &mut partitions {
            (partition.start, partition.end) = (partition.start - slot as u32, partition.end - slot as u32);
        }
        let fences = node.fences.split_off(at);
        let rows = partitions.iter().map(|partition| partition.rows as usize).sum();
        node.rows -= rows;
        // PERF: no slice is read, as a writer waits for it. Upkeep makes the zones of both exact.
        node.wear.is_hot = true;
        let fence = fences.get(0);
        let mut new = RowGroup {
            stamp: edit.stamp,
            block_slots: node.block_slots,
            zones: node.zones.clone(),
            slices,
            rows,
            partitions,
            fences,
            counters: None,
            numbers: node.numbers.clone(),
            digests: None,
            wear: Wear { settled: node.wear.settled, upkept: node.wear.upkept, ..Wear::new(true) },
        };
        deal(self.shape, &[&node.counters.take()], [&mut *node, &mut new]);
        root.groups[group].renew();
        root.groups.insert(group + 1, Link::new(new));
        root.fences.splice(group + 1..group + 1, vec![fence]);
    }
}

impl Shape {
    /// True if some blocks of a slice, whose bounds are exact, would be packed if they were encoded again.
    pub(crate) fn is_loose(&self, slice: &Slice) -> bool {
        let is_writable = |column: &usize| matches!(self.form(*column), Form::Writable { .. });
        let mut columns = (0..self.schema.len()).filter(is_writable);
        slice.rows() > 0 && columns.any(|c| slice.block(c).is_loose(self.schema[c].ty.physical()))
    }

    /// The rows of some slices of a row group, laid out over new ones with ghosts where they are wanted, or
    /// equally.
    pub(super) fn relay(
        &self,
        node: &RowGroup,
        window: &Range<usize>,
        slices: usize,
        wanted: &[Wanted],
    ) -> Laid {
        let slices = (slices, wanted);
        let first = node.partitions.partition_point(|p| (p.start as usize) < window.start * node.block_slots);
        let block = |part: u32, column: usize| node.slices[part as usize].block(column);
        let Some(layout_key) = &self.key else {
            let rows = rows_of(node, window, |_, _| ());
            return lay(&rows, slices, self, Key::Word(0), &|()| Key::Word(0), &block);
        };
        let key = |part: u32, slot: u32| self.key_of(node, part, slot);
        let least = node.fences.get(first);
        match layout_key.least() {
            Key::Word(_) => {
                let mut rows = rows_of(node, window, |part, slot| word_of(key(part, slot)));
                rows.sort_unstable();
                lay(&rows, slices, self, least, &|&word| Key::Word(word), &block)
            }
            Key::Bytes(_) => {
                let mut rows = rows_of(node, window, key);
                rows.sort_unstable();
                lay(&rows, slices, self, least, &Key::clone, &block)
            }
        }
    }

    pub(super) fn key_of(&self, node: &RowGroup, part: u32, slot: u32) -> Key {
        let (key, schema) = (self.key.as_ref().expect("the table has a layout key"), &self.schema);
        let slice = &*node.slices[part as usize];
        key.of_row(|column| slice.block(column).datum(slot as usize, schema[column].ty.physical()))
    }
}

/// Gives new row groups what was counted for the old ones that had their keys.
pub(super) fn deal<'g>(
    shape: &Shape,
    old: &[&Option<Arc<LiveCounters>>],
    new: impl IntoIterator<Item = &'g mut RowGroup>,
) {
    if !shape.options.are_counted() {
        return;
    }
    let old: Vec<&LiveCounters> = old.iter().filter_map(|own| own.as_deref()).collect();
    let mut new: Vec<&mut RowGroup> = new.into_iter().collect();
    let fences: Vec<(&Fences, usize)> = new.iter().map(|group| (&group.fences, group.slots())).collect();
    let dealt = LiveCounters::dealt(shape, &old, &fences);
    new.iter_mut().zip(dealt).for_each(|(group, own)| group.counters = own);
}

fn rows_of<K>(node: &RowGroup, window: &Range<usize>, key: impl Fn(u32, u32) -> K) -> Vec<Source<K>> {
    let mut rows = Vec::new();
    for part in window.clone() {
        for (first, mut live) in node.live_words(part * node.block_slots..(part + 1) * node.block_slots) {
            while live != 0 {
                let slot = (first % node.block_slots) as u32 + live.trailing_zeros();
                live &= live - 1;
                rows.push((key(part as u32, slot), part as u32, slot));
            }
        }
    }
    rows
}

fn word_of(key: Key) -> u64 {
    match key {
        Key::Word(word) => word,
        Key::Bytes(_) => unreachable!("keys of a table are of one kind"),
    }
}

/// The partitions of so many rows over some slices: the rows and the slots of each. Ghosts are where they are
/// wanted, or equally everywhere.
pub(super) fn plan(
    rows: usize,
    (slices, wanted): (usize, &[Wanted]),
    shape: &Shape,
) -> Vec<(Range<usize>, Range<usize>)> {
    let options = &shape.options;
    let slots = slices * options.block_slots;
    debug_assert!(rows <= slots);
    let mut count =
        if shape.key.is_some() { (slots / options.partition_slots()).clamp(1, rows.max(1)) } else { 1 };
    while count > 1 && rows.div_ceil(count) > slots / count {
        count -= 1;
    }
    let dense = shape.key.is_none() || options.layout == Layout::Equi;
    let by_workload = count > 1 && wanted.iter().any(|(_, ghosts)| *ghosts > 0);
    if by_workload && !dense {
        debug_assert_eq!(wanted.iter().map(|(rows, _)| rows).sum::<usize>(), rows);
        let mut starts: Vec<usize> = (0..count).map(|part| part * slots / count).collect();
        let cuts = cuts(rows, &starts, slots, wanted);
        starts.push(slots);
        let ranges = |ends: &[usize]| ends.windows(2).map(|pair| pair[0]..pair[1]).collect::<Vec<_>>();
        return ranges(&cuts).into_iter().zip(ranges(&starts)).collect();
    }
    let partition = |part: usize| {
        let own = part * rows / count..(part + 1) * rows / count;
        let start = if dense { own.start } else { part * slots / count };
        let end = match dense {
            _ if part + 1 == count => slots,
            true => start + own.len(),
            false => (part + 1) * slots / count,
        };
        (own, start..end)
    };
    (0..count).map(partition).collect()
}

/// Lays out rows, which come in order, over `slices` new slices, with ghosts where they are wanted. `least`
/// is the first fence; `key` gives the others.
pub(super) fn lay<'b, K>(
    rows: &[Source<K>],
    (slices, wanted): (usize, &[Wanted]),
    shape: &Shape,
    least: Key,
    key: &dyn Fn(&K) -> Key,
    block: &dyn Fn(u32, usize) -> &'b Block,
) -> Laid {
    let width = shape.options.block_slots;
    let mut partitions = Vec::new();
    let mut fences = Vec::new();
    let mut sources: Vec<Option<(u32, u32)>> = vec![None; slices * width];
    for (own, slots) in plan(rows.len(), (slices, wanted), shape) {
        let (start, end, count) = (slots.start as u32, slots.end as u32, own.len() as u32);
        partitions.push(Partition { start, end, rows: count });
        fences.push(if start == 0 { least.clone() } else { key(&rows[own.start].0) });
        rows[own]
            .iter()
            .zip(&mut sources[slots])
            .for_each(|((_, part, slot), to)| *to = Some((*part, *slot)));
    }
    let new_slice = |sources: &[Option<(u32, u32)>]| {
        let mut live = [0; WORDS];
        (0..width)
            .filter(|&slot| sources[slot].is_some())
            .for_each(|slot| bitmap::set(&mut live, slot, true));
        let mut from = Vec::with_capacity(width);
        let blocks = shape.schema.iter().enumerate().map(|(column, field)| {
            from.clear();
            from.extend(
                sources.iter().map(|source| source.map(|(part, slot)| (block(part, column), slot as usize))),
            );
            Block::gather(&from, field.ty)
        });
        EncodedSlice::of(live, blocks.collect())
    };
    Laid { slices: sources.chunks(width).map(new_slice).collect(), partitions, fences }
}

/// Makes slices part of the tree. The blocks of a column are allocated side by side in a table whose rows are
/// read one after the other, and the blocks of a slice in one whose rows are found by key.
// PERF: by key, an insert takes a tenth longer with columns side by side, and an update a seventh.
pub(super) fn links(slices: Vec<EncodedSlice>, shape: &Shape, edit: &Edit) -> Vec<Link<Slice>> {
    match shape.key {
        None => Slice::side_by_side(slices, edit).into_iter().map(Link::new).collect(),
        Some(_) => {
            slices.into_iter().map(|slice| Link::new(Slice::new(slice.live, slice.blocks, edit))).collect()
        }
    }
}
