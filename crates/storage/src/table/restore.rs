//! Tables made of row groups that were read from a file: their encoded slices become part of the tree as they
//! are.
//!
//! A row group is *hung* into the table by the thread that has read it, while others are read: its nodes are
//! made, with zones, digests and counters. When all are there, the table shows them ([`Table::restore`]),
//! which takes a few instructions for each.

use super::head::Table;
use super::snapshot::TableSnapshot;
use crate::node::Link;
use crate::sync::AtomicU32;
use crate::tree::key::Fences;
use crate::tree::{
    Counted, Edit, EncodedSlice, LiveCounters, Numbers, Partition, RowGroup, Slice, Wear, zones_of,
};
use crate::value::Sketch;
use std::sync::Arc;

/// A row group that is not part of a table yet.
pub(crate) struct RestoredGroup {
    /// Its slices, at least one.
    pub(crate) slices: Vec<EncodedSlice>,
    /// For each slice, whether it has been written since it was encoded.
    pub(crate) are_hot: Vec<bool>,
    /// Partitions that cover the slots; none without a layout key.
    pub(crate) partitions: Vec<Partition>,
    /// The fences of the partitions.
    pub(crate) fences: Fences,
    /// The row numbers, if there is no layout key.
    pub(crate) numbers: Numbers,
    /// What was counted of it, if anything was.
    pub(crate) counted: Option<Counted>,
}

/// A row group whose nodes bear the stamp of a table that does not show them yet. Unless that ever does, they
/// are freed with this.
pub(crate) struct HungGroup {
    node: Link<RowGroup>,
    /// Its bytes of memory, as [`RowGroup::bytes`] counts them.
    bytes: usize,
    is_shown: bool,
}

impl HungGroup {
    /// The row group.
    pub(crate) fn node(&self) -> Link<RowGroup> {
        self.node
    }

    /// The row group for a table that shows it from now on.
    fn show(mut self) -> Link<RowGroup> {
        self.is_shown = true;
        self.node
    }
}

impl Drop for HungGroup {
    fn drop(&mut self) {
        if !self.is_shown {
            for slice in &self.node.slices {
                slice.blocks().iter().for_each(|block| block.free());
                slice.free();
            }
            self.node.free();
        }
    }
}

impl Table {
    /// Makes nodes of this table, which is empty, of a row group of it.
    // PERF: here are all passes over the blocks of a row group that opening takes, since its headers are in
    // the cache now: once all row groups have been read, each pass would wait for memory.
    pub(crate) fn hang(&self, group: RestoredGroup) -> HungGroup {
        let node = group.nodes(self, &self.shared_head().branch.edit);
        HungGroup { bytes: node.bytes(), node: Link::new(node), is_shown: false }
    }

    /// Shows in this table, which is empty, row groups that were hung into it, in their order. `next_number`
    /// is that of its next row. What is returned is its first version with rows and the round of checkpoints
    /// that ends with it: no writer changes a node of it in place.
    pub(crate) fn restore(
        self: &Arc<Table>,
        sketches: Vec<Sketch>,
        (groups, next_number): (Vec<HungGroup>, u64),
    ) -> (TableSnapshot, u32) {
        let mut head = self.head();
        head.sketches = sketches;
        let branch = &mut head.branch;
        let mut fences = self.shape.no_fences();
        if self.shape.key.is_some() {
            fences.splice(0..0, groups.iter().map(|group| group.node.fences.get(0)).collect());
        }
        let bytes: usize = groups.iter().map(|group| group.bytes).sum();
        let groups: Vec<Link<RowGroup>> = groups.into_iter().map(HungGroup::show).collect();
        let root = branch.root.edit(&mut branch.edit);
        root.rows = groups.iter().map(|group| group.rows as u64).sum();
        (root.groups, root.fences, root.next_number) = (groups, fences, next_number);
        branch.set_bytes(bytes);
        self.pin_round(&mut head)
    }
}

impl RestoredGroup {
    /// Its nodes, which bear the stamp of the edit.
    fn nodes(self, table: &Table, edit: &Edit) -> RowGroup {
        let schema = table.schema();
        let mut slices = Slice::side_by_side(self.slices, edit);
        for (slice, &is_hot) in slices.iter_mut().zip(&self.are_hot) {
            match is_hot {
                true => slice.heat(),
                // What was at rest stays as the file has it.
                false if table.shape.key.is_some() => slice.settle(),
                false => {}
            }
        }
        let slices: Vec<Link<Slice>> = slices.into_iter().map(Link::new).collect();
        let is_hot = slices.iter().any(|slice| slice.is_hot());
        let slots = slices.len() * table.options().block_slots;
        let counters = self.counted.and_then(|counted| LiveCounters::of(&table.shape, counted));
        let mut group = RowGroup {
            stamp: edit.stamp,
            block_slots: table.options().block_slots,
            rows: slices.iter().map(|slice| slice.rows()).sum(),
            zones: zones_of(&slices, schema.len()),
            counters: counters.or_else(|| LiveCounters::new(&table.shape, &self.fences, slots)),
            slices,
            partitions: self.partitions,
            fences: self.fences,
            numbers: self.numbers,
            digests: None,
            // If there is something to do, upkeep has to find it.
            wear: Wear {
                looks: AtomicU32::new(u32::from(!is_hot)),
                is_settled: !is_hot,
                ..Wear::new(is_hot)
            },
        };
        if group.partitions.is_empty() {
            group.digest(schema, edit);
        }
        group
    }
}
