//! The invariants of the version tree, for debug builds and tests.

use super::{Node, Root};
use crate::tree::key::Key;
use crate::tree::{RowGroup, Shape};

/// Panics if a version is not as it should be: counts, ranges, fences, zones, stamps.
pub(crate) fn check(root: &Root, shape: &Shape) {
    let rows: usize = root.groups.iter().map(|group| group.rows).sum();
    assert_eq!(root.rows, rows as u64, "rows of the table");
    if let Some(key) = &shape.key {
        assert_eq!(root.fences.len(), root.groups.len());
        for i in 0..root.groups.len() {
            assert_eq!(root.groups[i].fences.get(0), root.fences.get(i), "a row group begins at its fence");
        }
        if !root.groups.is_empty() {
            assert_eq!(root.fences.get(0), key.least());
        }
    }
    let mut last_number = 0;
    for (number, group) in root.groups.iter().enumerate() {
        assert!(group.stamp <= root.stamp);
        check_slices(group, shape);
        if shape.key.is_none() {
            last_number = check_numbers(group, last_number);
            assert!(last_number < root.next_number, "numbers were given");
        }
        if shape.key.is_some() {
            let next = (number + 1 < root.groups.len()).then(|| root.fences.get(number + 1));
            check_partitions(group, shape, next);
        }
    }
}

fn check_slices(group: &RowGroup, shape: &Shape) {
    let width = group.block_slots;
    assert!(!group.slices.is_empty() && group.slots() <= shape.options.group_slots, "slots of a row group");
    assert_eq!(
        group.rows,
        group.slices.iter().map(|slice| slice.rows()).sum::<usize>(),
        "rows of a row group"
    );
    assert!(
        group.digests.as_ref().is_none_or(|digests| *digests == group.new_digests(&shape.schema)),
        "digests"
    );
    for slice in &group.slices {
        assert!(slice.stamp() <= group.stamp);
        let live = |slot: &usize| slice.is_live(*slot);
        assert_eq!(slice.rows(), (0..crate::BLOCK_ROWS).filter(live).count(), "rows of a slice");
        for (column, block) in slice.blocks().iter().enumerate() {
            assert!(block.stamp <= slice.stamp());
            let (physical, zone) = (shape.schema[column].ty.physical(), &group.zones[column]);
            let mut last = None;
            for slot in (0..width).filter(live) {
                assert!(slot < block.slots(), "a live slot has memory");
                let datum = block.datum(slot, physical);
                if datum.is_null() {
                    assert!(block.zone.nulls > 0 && zone.nulls > 0 && !block.ascending);
                    continue;
                }
                for zone in [&block.zone, zone] {
                    assert!(datum.cmp_bound(&zone.min).is_ge() && datum.cmp_bound(&zone.max).is_le(), "zone");
                }
                assert!(
                    !block.ascending || last.is_none_or(|last| datum.total_cmp(last).is_gt()),
                    "ascending"
                );
                last = Some(datum);
            }
        }
    }
}

/// The number of the last row, if those before end with `last`.
fn check_numbers(group: &RowGroup, mut last: u64) -> u64 {
    assert!(last < group.numbers.first(), "row groups are found by their first numbers");
    group.each_live(0..group.slots(), |slot| {
        let number = group.numbers.of(slot);
        assert!(last < number && group.numbers.slot_of(number) == Some(slot), "numbers ascend");
        last = number;
    });
    last
}

fn check_partitions(group: &RowGroup, shape: &Shape, next_group: Option<Key>) {
    let key = shape.key.as_ref().expect("the table has a layout key");
    assert_eq!(group.partitions.len(), group.fences.len());
    let mut start = 0;
    for (number, partition) in group.partitions.iter().enumerate() {
        assert!(partition.start == start && partition.end >= start, "partitions cover the slots");
        start = partition.end;
        assert_eq!(partition.rows as usize, group.live_rows(partition.slots()), "rows of a partition");
        let low = group.fences.get(number);
        let high = if number + 1 < group.fences.len() {
            Some(group.fences.get(number + 1))
        } else {
            next_group.clone()
        };
        let mut last: Option<Key> = None;
        group.each_live(partition.slots(), |position| {
            let slot = partition.start as usize + position;
            let slice = &group.slices[slot / group.block_slots];
            let key = key.of_row(|column| {
                slice.block(column).datum(slot % group.block_slots, shape.schema[column].ty.physical())
            });
            if shape.options.layout == crate::Layout::Sorted {
                assert!(last.as_ref().is_none_or(|last| *last <= key), "rows are in order");
                last = Some(key.clone());
            }
            assert!(
                low <= key && high.as_ref().is_none_or(|high| key <= *high),
                "a key is between its fences"
            );
        });
    }
    assert_eq!(start as usize, group.slots(), "partitions cover the slots");
}
