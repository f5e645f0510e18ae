//! Makes room in a full partition: ghost slots come from neighbouring partitions by ripple, or the rows
//! around it are spread out again.
//!
//! **Ripple** (figure 4 of the paper that [`super`] names): a ghost slot of partition d travels to partition
//! t. In each partition on the way, one row moves from one end to the ghost slot, so that the ghost is then
//! at the border and changes sides. Several ghosts travel at once, up to half of what the donor has, so that
//! the next inserts find them there. They stay even if the transaction that wanted one rolls back, as far as
//! its fork lives on, since nothing depends on them.
//!
//! **Which**: a donor within [`TableOptions::reach`] partitions. If there is none, the slices of the
//! partition are spread over one slice more ([`super::spread`]), which costs two moves for each insert to
//! come, however large the row group is. The layout `equi` has its ghosts at the end of the row group, and
//! ripples from there at any distance; when they are used up, it adds a slice. `sorted` and `delta` never
//! ripple, which would put rows out of order.
//!
//! [`TableOptions::reach`]: crate::definition::TableOptions::reach

use super::owned_row::OwnedRow;
use super::{Writer, edit_group};
use crate::definition::Layout;
use crate::node::Link;
use crate::tree::{RowId, Slice};

/// The most ghost slots that travel together.
const FETCH_MAX: usize = 8;

impl Writer<'_> {
    /// Gives a full partition a ghost slot. Afterwards the row may belong to another partition. A `donor`, if
    /// given, surely has a ghost slot.
    pub(super) fn make_room(&mut self, group: usize, partition: usize, donor: Option<usize>) {
        let options = &self.shape.options;
        let is_equi = options.layout == Layout::Equi;
        if matches!(options.layout, Layout::Sorted | Layout::Delta) {
            return self.spread_around(group, partition);
        }
        let reach = if is_equi { usize::MAX } else { options.reach };
        let near = |donor: &usize| donor.abs_diff(partition) <= reach.max(1);
        let donor =
            donor.filter(near).or_else(|| self.branch.root.groups[group].nearest_ghost(partition, reach));
        match donor {
            Some(donor) => {
                let ghosts = self.branch.root.groups[group].partitions[donor].ghosts();
                let count = if is_equi { 1 } else { ghosts.div_ceil(2).min(FETCH_MAX) };
                (0..count).for_each(|_| self.ripple(group, donor, partition));
            }
            None if is_equi => self.expand(group),
            None => self.spread_around(group, partition),
        }
    }

    /// Adds a slice of ghosts to the last partition of a row group; a row group that has no room for it is
    /// split.
    fn expand(&mut self, group: usize) {
        if self.branch.root.groups[group].slots() + self.shape.options.block_slots
            > self.shape.options.group_slots
        {
            return self.split(group);
        }
        let columns = self.shape.schema.len();
        let (group, edit) = edit_group(self.branch, group);
        group.slices.push(Link::new(Slice::empty(columns, edit)));
        group.partitions.last_mut().expect("a row group has partitions").end += group.block_slots as u32;
    }

    /// Moves one ghost slot from `donor` to `target`.
    fn ripple(&mut self, group: usize, donor: usize, target: usize) {
        if donor > target {
            for partition in (target + 1..=donor).rev() {
                let first = self.branch.root.groups[group].partitions[partition].start as usize;
                self.vacate(group, partition, first);
                let (group, _) = edit_group(self.branch, group);
                group.partitions[partition].start += 1;
                group.partitions[partition - 1].end += 1;
            }
        } else {
            for partition in donor..target {
                let last = self.branch.root.groups[group].partitions[partition].end as usize - 1;
                self.vacate(group, partition, last);
                let (group, _) = edit_group(self.branch, group);
                group.partitions[partition].end -= 1;
                group.partitions[partition + 1].start -= 1;
            }
        }
    }

    /// Makes `slot` a ghost: its row moves to another ghost slot of the partition.
    fn vacate(&mut self, group: usize, partition: usize, slot: usize) {
        let node = &self.branch.root.groups[group];
        if !node.is_live(slot) {
            return;
        }
        let to = node.ghost_slot(partition).expect("a ghost travels through the partition");
        self.move_row(group, slot, to);
    }

    /// Moves a row within a row group, to a slot that is not live.
    fn move_row(&mut self, group: usize, from: usize, to: usize) {
        let schema = &self.shape.schema;
        let mut row = OwnedRow::default();
        row.take(&self.branch.root, RowId { group: group as u32, slot: from as u32 }, schema);
        let (group, edit) = edit_group(self.branch, group);
        group.touch();
        let width = group.block_slots;
        let target = group.slices[to / width].edit(edit);
        row.with(|row| {
            row.iter()
                .enumerate()
                .for_each(|(column, &datum)| target.write(column, to % width, datum, schema, edit));
        });
        target.revive(to % width);
        group.slices[from / width].edit(edit).bury(from % width);
    }
}
