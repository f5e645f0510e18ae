//! Makes room in a full partition: ghost slots come from neighbouring partitions by ripple, or it gets a
//! slice more, or the rows around it are spread out again.
//!
//! **Ripple** (figure 4 of the paper that [`super`] names): a ghost slot of partition d travels to partition
//! t. In each partition on the way, one row moves from one end to the ghost slot, so that the ghost is then
//! at the border and changes sides. Several ghosts travel at once, up to half of what the donor has, so that
//! the next inserts find them there. They stay even if the transaction that wanted one rolls back, as far as
//! its fork lives on, since nothing depends on them.
//!
//! **Which**: a donor within [`TableOptions::reach`] partitions whose blocks are written in place. If there
//! is none, the partition is *extended*: it gets a slice more behind its own, which is *short*, since its
//! blocks have memory for the rows that come and no more. No row moves, and no block is converted, so the
//! first insert into a slice at rest costs the blocks of a row, and not a thousand rows. For the same reason
//! a partition is extended though it has ghosts, if more than one block would have to be converted to take a
//! row there ([`Slice::is_ready`]). A partition of one slice is extended to two, one of W to the 2 W - 1 that
//! others may have as well: then its slices are spread over one more ([`super::spread`]), which costs two
//! moves for each insert to come, however large the row group is. Upkeep lays short slices and the others
//! together when the row group rests.
//!
//! The layout `equi` has its ghosts at the end of the row group, and ripples from there at any distance; when
//! they are used up, it adds a slice. `sorted` and `delta` never ripple, which would put rows out of order;
//! and `sorted` is not extended, since its partitions are kept in order.
//!
//! [`TableOptions::reach`]: crate::definition::TableOptions::reach

use super::owned_row::OwnedRow;
use super::{Writer, edit_group};
use crate::definition::Layout;
use crate::node::Link;
use crate::tree::{Branch, RowId, Slice};

/// The most ghost slots that travel together.
const FETCH_MAX: usize = 8;

impl Writer<'_> {
    /// Gives a full partition a ghost slot. Afterwards the row may belong to another partition. A `donor`, if
    /// given, surely has a ghost slot.
    pub(super) fn make_room(&mut self, group: usize, partition: usize, donor: Option<usize>) {
        let options = &self.shape.options;
        let is_equi = options.layout == Layout::Equi;
        let ripples = !matches!(options.layout, Layout::Sorted | Layout::Delta);
        let border = self.border_to_extend(group, partition);
        let reach = match options.layout {
            _ if !ripples => 0,
            Layout::Equi => usize::MAX,
            _ => options.reach,
        };
        let (node, edit) = (&self.branch.root.groups[group], &self.branch.edit);
        let donor = donor.filter(|donor| donor.abs_diff(partition) <= reach.max(1) && ripples);
        let donor = donor.or_else(|| node.nearest_ghost(partition, reach));
        let donor = donor.filter(|&donor| is_equi || border.is_none() || node.is_ready(donor, edit));
        match donor {
            Some(donor) => {
                let ghosts = self.branch.root.groups[group].partitions[donor].ghosts();
                let count = if is_equi { 1 } else { ghosts.div_ceil(2).min(FETCH_MAX) };
                (0..count).for_each(|_| self.ripple(group, donor, partition));
            }
            None if is_equi => self.expand(group),
            None => match border {
                Some(border) => self.extend(group, partition, border),
                None => self.spread_around(group, partition),
            },
        }
    }

    /// The slice before which a partition can be given one more: `None` if it has been extended, if it does
    /// not end a slice, or if the layout has its ghosts elsewhere.
    pub(super) fn border_to_extend(&self, group: usize, partition: usize) -> Option<usize> {
        let options = &self.shape.options;
        if !options.layout.is_extended() {
            return None;
        }
        let node = &self.branch.root.groups[group];
        let width = node.block_slots;
        let slices = |slots: usize| ((slots + width / 2) / width).max(1);
        let most = (2 * slices(options.partition_slots()) - 1).max(2);
        let is_narrow = slices(node.partitions[partition].slots().len()) < most;
        node.inner_border(partition).filter(|_| is_narrow)
    }

    /// Gives a partition a slice without rows before slice `border`. If the row group has no room for it, it
    /// is split instead.
    pub(super) fn extend(&mut self, group: usize, partition: usize, border: usize) {
        if self.branch.root.groups[group].slots() + self.shape.options.block_slots
            > self.shape.options.group_slots
        {
            return self.split(group);
        }
        let columns = self.shape.schema.len();
        let (node, edit) = edit_group(self.branch, group);
        node.slices.insert(border, Link::new(Slice::empty(columns, edit)));
        let width = node.block_slots as u32;
        node.partitions[partition].end += width;
        for behind in &mut node.partitions[partition + 1..] {
            (behind.start, behind.end) = (behind.start + width, behind.end + width);
        }
        let Branch { root, edit } = &mut *self.branch;
        root.edit(edit).groups[group].renew();
        self.refine(group);
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
