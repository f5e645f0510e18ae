//! Tables made of row groups that were read from a file: their encoded slices become part of the tree as they
//! are.

use super::head::Table;
use super::snapshot::TableSnapshot;
use crate::definition::ObjectId;
use crate::node::Link;
use crate::sync::AtomicU32;
use crate::tree::key::Fences;
use crate::tree::{
    Counted, Edit, EncodedSlice, LiveCounters, Numbers, Partition, RowGroup, Shape, Slice, Wear, zones_of,
};
use crate::value::Sketch;

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

impl Table {
    /// A table of this shape of row groups, in their order, and the number of its next row. What is returned
    /// is its first version and the round of checkpoints that ends with it: no writer changes a node of it in
    /// place.
    pub(crate) fn restored(
        object: ObjectId,
        (shape, sketches): (Shape, Vec<Sketch>),
        (groups, next_number): (Vec<RestoredGroup>, u64),
    ) -> (TableSnapshot, u32) {
        let Shape { name, schema, options, key } = shape;
        let table = Table::with_id(object, &name, schema, options);
        if let (Some(own), Some(key)) = (&table.shape.key, &key) {
            own.adopt(key);
        }
        let mut head = table.head();
        head.sketches = sketches;
        let branch = &mut head.branch;
        let mut fences = table.shape.no_fences();
        if table.shape.key.is_some() {
            fences.splice(0..0, groups.iter().map(|group| group.fences.get(0)).collect());
        }
        let groups: Vec<Link<RowGroup>> =
            groups.into_iter().map(|group| Link::new(group.hang(&table, &branch.edit))).collect();
        let root = branch.root.edit(&mut branch.edit);
        root.rows = groups.iter().map(|group| group.rows as u64).sum();
        (root.groups, root.fences, root.next_number) = (groups, fences, next_number);
        branch.recount();
        table.pin_round(&mut head)
    }
}

impl RestoredGroup {
    fn hang(self, table: &Table, edit: &Edit) -> RowGroup {
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
