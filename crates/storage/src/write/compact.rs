//! Frees memory of deleted rows at the end of a statement: row groups that are mostly empty are spread over
//! fewer slices, small neighbours are joined, empty ones are dropped. Not before the end, because rows move.
//!
//! Mostly means half of the slots, or three quarters if many rows of the row group were deleted at once.
//! Slices by which partitions were extended ([`super::room`]) do not count: they have memory for the rows
//! that came, and not for all of their slots. If they did, half of the slots of a row group at rest would be
//! theirs once each partition has got a row, and the next row that is deleted would have a hundred thousand
//! rows laid anew. In the order of insertion, what is left is encoded with full effort.

use super::spread::deal;
use super::{Writer, edit_group};
use crate::tree::{Branch, Node};
use entasis_vector::Result;

impl Writer<'_> {
    /// Tidies the row groups that rows were deleted from, in any order; the flag says whether many were. Some
    /// may no longer exist, because a statement undid what made them.
    pub(crate) fn tidy(&mut self, mut touched: Vec<(u32, bool)>) {
        touched.sort_unstable();
        // From the end, so that row groups before keep their index; the last flag of a row group counts.
        let mut last = u32::MAX;
        for (group, many) in touched.into_iter().rev() {
            if group != last && (group as usize) < self.branch.root.groups.len() {
                self.tidy_group(group as usize, many);
            }
            last = group;
        }
    }

    #[inline]
    fn tidy_group(&mut self, group: usize, many: bool) {
        let node = &self.branch.root.groups[group];
        let slots = self.slots_without_extensions(group);
        let full = if many { slots * 3 / 4 } else { slots / 2 };
        if node.rows < full && (node.slices.len() > 1 || node.rows == 0) {
            self.thin(group);
        }
    }

    /// The slots of a row group, where each partition has no more than it is declared to have.
    // PERF: asked for after each statement that deletes, so no slice is looked at. Where extensions have been
    // filled, and many of their rows deleted, memory is freed by upkeep, which looks at them.
    #[inline]
    fn slots_without_extensions(&self, group: usize) -> usize {
        let node = &self.branch.root.groups[group];
        match self.shape.options.layout.is_extended() {
            true => node.slots().min(node.partitions.len() * self.shape.options.partition_slots()),
            false => node.slots(),
        }
    }

    #[cold]
    fn thin(&mut self, group: usize) {
        let node = self.branch.root.groups[group];
        let groups = self.branch.root.groups.len();
        if node.rows == 0 && groups > 1 {
            return self.drop_group(group);
        }
        let width = node.block_slots;
        let ghosts = if self.shape.key.is_some() { node.rows / 8 } else { 0 };
        let needed = (node.rows + ghosts).div_ceil(width).max(1);
        if needed < node.slices.len() && self.shape.key.is_none() && node.rows > 0 {
            self.compact(group).expect("strings that are in memory fit their blocks");
        } else if needed < node.slices.len() {
            self.spread(group, 0..node.slices.len(), needed);
        } else if node.rows == 0 {
            let (node, edit) = edit_group(self.branch, group);
            node.wear.is_hot = true;
            node.slices.iter_mut().for_each(|slice| slice.edit(edit).shed(edit));
        }
        self.join_around(group);
    }

    /// Joins a row group with its neighbours, if they are small together.
    pub(super) fn join_around(&mut self, group: usize) {
        let full = self.shape.options.group_slots / self.shape.options.block_slots;
        for left in [group, group.wrapping_sub(1)] {
            let groups = &self.branch.root.groups;
            if left < groups.len()
                && left + 1 < groups.len()
                && groups[left].blocks() + groups[left + 1].blocks() <= full / 2
            {
                self.join(left);
            }
        }
    }

    /// Encodes the rows of a row group again, without gaps.
    fn compact(&mut self, group: usize) -> Result<()> {
        let mut builder = self.builder();
        let node = self.branch.root.groups[group];
        builder.append_live(&node, &self.shape.schema)?;
        let numbers = node.relaid_numbers(0..node.slots(), node.slots());
        let (node, edit) = edit_group(self.branch, group);
        node.renumber(numbers, edit);
        self.replace_slices(group, builder.finish());
        Ok(())
    }

    /// Drops a row group without rows, which must not be the only one.
    pub(super) fn drop_group(&mut self, group: usize) {
        let least = self.shape.key.as_ref().map(|key| key.least());
        let Branch { root, edit } = &mut *self.branch;
        let root = root.edit(edit);
        let dropped = root.groups.remove(group);
        edit.retire_whole_group(dropped);
        if let Some(least) = least {
            root.fences.splice(group..group + 1, Vec::new());
            if group == 0 {
                root.fences.splice(0..1, vec![least.clone()]);
                root.groups[0].edit(edit).fences.splice(0..1, vec![least]);
            }
        }
    }

    /// Joins a row group with the next one. Copies no row.
    fn join(&mut self, group: usize) {
        let Branch { root, edit } = &mut *self.branch;
        let root = root.edit(edit);
        let right = root.groups.remove(group + 1);
        let left = root.groups[group].edit(edit);
        let slots = left.slots() as u32;
        if self.shape.key.is_none() {
            let mut numbers = left.numbers.clone();
            numbers.append(left.slots(), &right.numbers);
            left.renumber(numbers, edit);
            edit.count(-(right.numbers.bytes() as isize));
        }
        left.partitions.extend(right.partitions.iter().map(|p| crate::tree::Partition {
            start: p.start + slots,
            end: p.end + slots,
            ..*p
        }));
        left.slices.extend_from_slice(&right.slices);
        left.rows += right.rows;
        left.wear.is_hot = true;
        let mut zones = left.zones.to_vec();
        zones.iter_mut().zip(right.zones.iter()).for_each(|(zone, other)| zone.merge(other));
        left.zones = zones.into();
        if self.shape.key.is_some() {
            left.fences.append(&right.fences);
            root.fences.splice(group + 1..group + 2, Vec::new());
            let counters = left.counters.take();
            deal(self.shape, &[&counters, &right.counters], [left]);
        }
        root.groups[group].renew();
        Node::retire(right, edit);
    }
}
