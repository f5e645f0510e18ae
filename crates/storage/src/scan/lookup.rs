//! Finding rows by their layout key: point and range queries, section 3 of *Optimal Column Layout for Hybrid
//! Workloads*.
//!
//! A point query searches the partitions that may hold the key, 64 slots at a time. A range query filters the
//! first and the last partition; all rows of the partitions in between are in the range.

use crate::block::masks::bits_inside;
use crate::tree::counters::is_counted;
use crate::tree::key::{Key, LayoutKey};
use crate::tree::{Root, RowGroup, RowId, Shape};
use crate::value::Datum;
use entasis_layout::frequency::{Kind, Operation};
use std::ops::{Bound, Range};

/// Slices of a partition that are prefetched together; those of a longer partition are not.
const FEW_SLICES: usize = 4;

/// Slots that a range query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRange {
    /// Index of the row group.
    pub group: usize,
    /// The slots; only live ones are rows.
    pub slots: Range<usize>,
    /// All rows are in the range; otherwise each must be tested.
    pub is_whole: bool,
}

/// The row with a row number, in a table without a layout key.
pub(crate) fn by_number(root: &Root, number: u64) -> Option<RowId> {
    let group = root.groups.partition_point(|group| group.numbers.first() <= number).checked_sub(1)?;
    let node = &root.groups[group];
    let slot = node.numbers.slot_of(number)?;
    (slot < node.slots() && node.is_live(slot)).then_some(RowId { group: group as u32, slot: slot as u32 })
}

/// The slots of all rows with a row number and greater ones, in a table without a layout key.
pub(crate) fn from_number(root: &Root, number: u64) -> Vec<SlotRange> {
    let first = root.groups.partition_point(|group| group.numbers.first() <= number).saturating_sub(1);
    let groups = root.groups.iter().enumerate().skip(first);
    let slots = groups.map(|(group, node)| SlotRange {
        group,
        slots: node.numbers.slot_from(number).min(node.slots())..node.slots(),
        is_whole: true,
    });
    slots.filter(|range| !range.slots.is_empty()).collect()
}

/// A row whose layout key is `datums`.
pub(crate) fn first(root: &Root, shape: &Shape, datums: &[Datum<'_>]) -> Option<RowId> {
    let mut found = None;
    find_each(root, shape, datums, |row| {
        found = Some(row);
        false
    });
    found
}

/// Calls `each` with every row whose layout key is `datums`, until it returns false. A point query, which is
/// counted.
pub(crate) fn find_each(root: &Root, shape: &Shape, datums: &[Datum<'_>], each: impl FnMut(RowId) -> bool) {
    let Some(key) = &shape.key else { return };
    let normal = key.of_datums(datums);
    count_point(root, shape, &normal);
    find_key(root, shape, datums, &normal, each);
}

/// The same for checks, which are no operations of the workload.
pub(crate) fn look_for_each(
    root: &Root,
    shape: &Shape,
    datums: &[Datum<'_>],
    each: impl FnMut(RowId) -> bool,
) {
    let Some(key) = &shape.key else { return };
    find_key(root, shape, datums, &key.of_datums(datums), each);
}

#[inline]
fn find_key(
    root: &Root,
    shape: &Shape,
    datums: &[Datum<'_>],
    normal: &Key,
    mut each: impl FnMut(RowId) -> bool,
) {
    let Some(key) = &shape.key else { return };
    if root.groups.is_empty() {
        return;
    }
    for number in root.fences.parts_of(normal) {
        let guess = root.groups[number].prefetch_part(normal);
        let group = &*root.groups[number];
        for partition in group.fences.parts_near(normal, guess) {
            let slots = group.partitions[partition].slots();
            let proceed = group.find(key, shape, slots, datums, |slot| {
                each(RowId { group: number as u32, slot: slot as u32 })
            });
            if !proceed {
                return;
            }
        }
    }
}

/// Counts a query of one key.
#[inline]
pub(crate) fn count_point(root: &Root, shape: &Shape, key: &Key) {
    let options = &shape.options;
    if options.are_counted() && is_counted(options.counters.every) {
        add_point(root, key);
    }
}

#[cold]
fn add_point(root: &Root, key: &Key) {
    if !root.groups.is_empty()
        && let Some(own) = &root.groups[root.fences.part_for(key)].counters
    {
        own.count(Operation::Point(own.bin_of(key)));
    }
}

/// Counts a range of keys that is read: in the first and the last bin that it touches, and in those between.
/// One without a bound begins, or ends, with the table.
pub(crate) fn count_range(root: &Root, shape: &Shape, low: Bound<&Key>, high: Bound<&Key>) {
    let options = &shape.options;
    if root.groups.is_empty() || !options.are_counted() || !is_counted(options.counters.every) {
        return;
    }
    let last_group = root.groups.len() - 1;
    let first = match low {
        Bound::Unbounded => 0,
        Bound::Included(key) | Bound::Excluded(key) => root.fences.part_for(key),
    };
    let last = match high {
        Bound::Unbounded => last_group,
        Bound::Included(key) => root.fences.part_for(key),
        Bound::Excluded(key) => root.fences.first_part_of(key),
    };
    let last = last.max(first);
    for number in first..=last {
        let Some(own) = &root.groups[number].counters else { continue };
        let from = match low {
            Bound::Included(key) | Bound::Excluded(key) if number == first => own.bin_of(key),
            _ => 0,
        };
        let to = match high {
            Bound::Included(key) if number == last => own.bin_of(key),
            Bound::Excluded(key) if number == last => own.bin_below(key),
            _ => own.bins() - 1,
        };
        let to = to.max(from);
        let (begins, ends) = (number == first, number == last);
        if begins {
            own.add(Kind::RangeStart, from);
            own.note();
        }
        if ends {
            own.add(Kind::RangeEnd, to);
        }
        let whole = from + usize::from(begins)..(to + 1).saturating_sub(usize::from(ends));
        whole.for_each(|bin| own.add(Kind::Scan, bin));
    }
}

impl RowGroup {
    /// Calls `each` with the slots in a range whose layout key is `datums`. False if `each` returned false.
    fn find(
        &self,
        key: &LayoutKey,
        shape: &Shape,
        slots: Range<usize>,
        datums: &[Datum<'_>],
        mut each: impl FnMut(usize) -> bool,
    ) -> bool {
        let width = self.block_slots;
        let numbers = slots.start / width..slots.end.div_ceil(width);
        if numbers.len() <= FEW_SLICES {
            self.slices[numbers.clone()].iter().for_each(|slice| slice.prefetch_key(shape.schema.len()));
        }
        for number in numbers {
            let slice = &*self.slices[number];
            let start = number * width;
            let mut masks = *slice.live();
            let words = width.div_ceil(64);
            if slots.start > start || slots.end < start + width {
                let inside = slots.start.max(start) - start..slots.end.min(start + width) - start;
                let word_masks = masks.iter_mut().enumerate();
                word_masks.for_each(|(word, mask)| *mask &= bits_inside(word * 64, &inside));
            }
            for (&column, &datum) in key.columns.iter().zip(datums) {
                slice.block(column).narrow(datum, &mut masks[..words], shape.schema[column].ty.physical());
            }
            for (word, mut found) in masks[..words].iter().copied().enumerate() {
                while found != 0 {
                    if !each(start + word * 64 + found.trailing_zeros() as usize) {
                        return false;
                    }
                    found &= found - 1;
                }
            }
        }
        true
    }
}

/// The slots that may hold keys within bounds, in order.
pub(crate) fn range(root: &Root, low: Bound<&Key>, high: Bound<&Key>) -> Vec<SlotRange> {
    let mut ranges: Vec<SlotRange> = Vec::new();
    if root.groups.is_empty() {
        return ranges;
    }
    let first = |fences: &crate::tree::key::Fences| match low {
        Bound::Unbounded => 0,
        Bound::Included(key) | Bound::Excluded(key) => fences.first_part_of(key),
    };
    let last = |fences: &crate::tree::key::Fences| match high {
        Bound::Unbounded => fences.len() - 1,
        Bound::Included(key) | Bound::Excluded(key) => fences.part_for(key),
    };
    let above_low = |fence: &Key| match low {
        Bound::Unbounded => true,
        Bound::Included(key) => fence >= key,
        Bound::Excluded(key) => fence > key,
    };
    let below_high = |fence: Option<&Key>| match (high, fence) {
        (Bound::Unbounded, _) => true,
        (_, None) => false,
        (Bound::Included(key), Some(fence)) => fence <= key,
        (Bound::Excluded(key), Some(fence)) => fence < key,
    };
    for number in first(&root.fences)..=last(&root.fences) {
        let group = &*root.groups[number];
        let next_group = (number + 1 < root.groups.len()).then(|| root.fences.get(number + 1));
        let (from, to) = (first(&group.fences), last(&group.fences));
        for partition in from..=to {
            let slots = group.partitions[partition].slots();
            // Everything between two whole partitions is whole.
            let next = if partition + 1 < group.fences.len() {
                Some(group.fences.get(partition + 1))
            } else {
                next_group.clone()
            };
            let is_whole = above_low(&group.fences.get(partition)) && below_high(next.as_ref());
            match ranges.last_mut() {
                Some(range) if range.group == number && range.is_whole == is_whole => {
                    range.slots.end = slots.end
                }
                _ => ranges.push(SlotRange { group: number, slots, is_whole }),
            }
        }
    }
    ranges
}
