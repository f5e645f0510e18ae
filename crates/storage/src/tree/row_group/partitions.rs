//! Partitions of a row group: which slots hold which part of the layout key, and where their ghosts are.

use super::RowGroup;
use crate::block::masks::bits_inside;
use crate::tree::{Edit, Slice};
use std::ops::Range;

/// A contiguous range of slots that holds one range of the layout key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The number of live slots.
    pub(crate) rows: u32,
}

impl Partition {
    pub(crate) fn slots(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The number of slots that are not live.
    pub(crate) fn ghosts(&self) -> usize {
        (self.end - self.start - self.rows) as usize
    }
}

impl RowGroup {
    /// The partition of a slot; `None` in a table without a layout key.
    #[inline]
    pub(crate) fn partition_of(&self, slot: usize) -> Option<usize> {
        // PERF: where partitions have about the same length, one entry is read instead of seven.
        let guess = slot * self.partitions.len() / self.slots().max(1);
        if self.partitions.get(guess).is_some_and(|partition| partition.slots().contains(&slot)) {
            return Some(guess);
        }
        self.partitions.partition_point(|partition| partition.start as usize <= slot).checked_sub(1)
    }

    /// A ghost slot of a partition, if there is one: preferably one that no version shows.
    pub(crate) fn ghost_slot(&self, partition: usize) -> Option<usize> {
        self.ghost_slot_of(partition, |_| true)
    }

    /// A ghost slot of a partition whose slice takes a row without the conversion of many blocks
    /// ([`Slice::is_ready`]), if there is one.
    #[inline]
    pub(crate) fn ready_ghost_slot(&self, partition: usize, edit: &Edit) -> Option<usize> {
        self.ghost_slot_of(partition, |slice| slice.is_ready(edit))
    }

    /// A ghost slot of a partition in one of the slices that are chosen.
    #[inline]
    fn ghost_slot_of(&self, partition: usize, is_chosen: impl Fn(&Slice) -> bool) -> Option<usize> {
        let partition = &self.partitions[partition];
        if partition.ghosts() == 0 {
            return None;
        }
        let (width, slots) = (self.block_slots, partition.slots());
        let mut dead = None;
        for number in slots.start / width..slots.end.div_ceil(width) {
            let slice = &*self.slices[number];
            if slice.rows() == width || !is_chosen(slice) {
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

    /// True if all slices of a partition take rows without the conversion of many blocks.
    pub(crate) fn is_ready(&self, partition: usize, edit: &Edit) -> bool {
        let (width, slots) = (self.block_slots, self.partitions[partition].slots());
        self.slices[slots.start / width..slots.end.div_ceil(width)].iter().all(|slice| slice.is_ready(edit))
    }

    /// The last slice that begins within a partition or at its end, but not at its start: between that and
    /// the slice before it the partition can be given a slice more. `None` if it lies within one slice.
    pub(crate) fn inner_border(&self, partition: usize) -> Option<usize> {
        let (width, slots) = (self.block_slots, self.partitions[partition].slots());
        let border = slots.end / width;
        (border * width > slots.start).then_some(border)
    }

    /// The partition with a ghost slot that is nearest to `partition`, if there is one within `reach`.
    pub(crate) fn nearest_ghost(&self, partition: usize, reach: usize) -> Option<usize> {
        let last = self.partitions.len() - 1;
        (1..=reach.min(last)).find_map(|distance| {
            let right = partition.checked_add(distance).filter(|&right| right <= last);
            let left = partition.checked_sub(distance);
            let ghosts = |&other: &usize| self.partitions[other].ghosts();
            right.into_iter().chain(left).filter(|other| ghosts(other) > 0).max_by_key(ghosts)
        })
    }

    /// A slot near the middle where a partition and a slice begin.
    pub(crate) fn middle(&self) -> Option<usize> {
        let width = self.block_slots;
        let slices = self.slices.len();
        let border =
            |partition: &Partition| (partition.start as usize).is_multiple_of(width) && partition.start > 0;
        let middle = (slices / 2 * width) as u32;
        let at =
            self.partitions.iter().filter(|p| border(p)).min_by_key(|p| p.start.abs_diff(middle)).copied();
        at.filter(|p| p.start.abs_diff(middle) as usize <= slices * width / 4).map(|p| p.start as usize)
    }

    /// The slices of some partitions, widened until no partition crosses their ends.
    pub(crate) fn aligned_slices(&self, mut partitions: Range<usize>) -> Range<usize> {
        let width = self.block_slots;
        let crosses = |slot: u32| !(slot as usize).is_multiple_of(width);
        while crosses(self.partitions[partitions.start].start) {
            partitions.start -= 1;
        }
        while crosses(self.partitions[partitions.end - 1].end) {
            partitions.end += 1;
        }
        self.partitions[partitions.start].start as usize / width
            ..self.partitions[partitions.end - 1].end as usize / width
    }
}
