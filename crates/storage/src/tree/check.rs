//! Checks the invariants of the version tree, in debug builds, in tests, and for those who check a database:
//! which of them do not hold, and where.
//!
//! It looks at every value of a version, one row group after the other, so that it can be interrupted. It
//! goes on after a flaw as far as that makes sense: if the slots of a row group are wrong, its values are not
//! looked at.

use super::{Node, Root};
use crate::tree::key::Key;
use crate::tree::{RowGroup, Shape};

/// The most flaws that are reported for a row group.
const MOST: usize = 100;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The invariant.
    pub what: String,
    /// Where it does not hold: row group, slice, column, as far as known.
    pub place: String,
}

/// Panics if a version violates an invariant of counts, ranges, fences, zones or stamps.
pub(crate) fn check(root: &Root, shape: &Shape) {
    let groups = (0..root.groups.len()).flat_map(|number| of_group(root, shape, number));
    if let Some(Flaw { what, place }) = of_root(root, shape).into_iter().chain(groups).next() {
        panic!("{}: {what} ({place})", shape.name);
    }
}

/// What is wrong with a root: counts and fences.
pub(crate) fn of_root(root: &Root, shape: &Shape) -> Vec<Flaw> {
    let mut flaws = Flaws::default();
    let rows: usize = root.groups.iter().map(|group| group.rows).sum();
    flaws.expect(root.rows == rows as u64, "rows of the table", || "the root".into());
    if let Some(key) = &shape.key {
        let has_fences = root.fences.len() == root.groups.len();
        flaws.expect(has_fences, "a fence for each row group", || "the root".into());
        for i in 0..root.groups.len().min(root.fences.len()) {
            let begins =
                root.groups[i].fences.len() > 0 && root.groups[i].fences.get(0) == root.fences.get(i);
            flaws.expect(begins, "a row group begins at its fence", || format!("row group {i}"));
        }
        if !root.groups.is_empty() && has_fences {
            let is_least = root.fences.get(0) == key.least();
            flaws.expect(is_least, "the first row group begins below all keys", || "row group 0".into());
        }
    } else {
        let groups = root.groups.iter().enumerate();
        let last = groups.fold(0, |last, (number, group)| numbers(&mut flaws, group, number, last));
        flaws.expect(last < root.next_number, "the next number is no row's", || "the root".into());
    }
    flaws.found
}

/// What is wrong with a row group.
pub(crate) fn of_group(root: &Root, shape: &Shape, number: usize) -> Vec<Flaw> {
    let Some(group) = root.groups.get(number) else { return Vec::new() };
    let mut flaws = Flaws::default();
    flaws.expect(group.stamp <= root.stamp, "no stamp is younger than the root's", || here(number));
    slices(&mut flaws, group, shape, number);
    // Keys can only be read if the slots are right.
    if shape.key.is_some() && flaws.found.is_empty() {
        let next = (number + 1 < root.fences.len()).then(|| root.fences.get(number + 1));
        partitions(&mut flaws, group, shape, number, next);
    }
    flaws.found
}

/// NULLs of a row group in NOT NULL columns, which the tree itself does not check.
pub(crate) fn unwanted_nulls(root: &Root, shape: &Shape, number: usize) -> Vec<Flaw> {
    let Some(group) = root.groups.get(number) else { return Vec::new() };
    let mut flaws = Flaws::default();
    for (column, field) in shape.schema.iter().enumerate().filter(|(_, field)| !field.nullable) {
        let is_null = |slot: usize, slice: &crate::tree::Slice| {
            slice.is_live(slot) && slice.block(column).datum(slot, field.ty.physical()).is_null()
        };
        let of_slice =
            |slice: &crate::tree::Slice| (0..group.block_slots).filter(|slot| is_null(*slot, slice)).count();
        let nulls: usize = group.slices.iter().map(|slice| of_slice(slice)).sum();
        let what = format!("NOT NULL: {nulls} rows have NULL in column {}", field.name);
        flaws.expect(nulls == 0, &what, || here(number));
    }
    flaws.found
}

/// The flaws found so far.
#[derive(Default)]
struct Flaws {
    found: Vec<Flaw>,
}

impl Flaws {
    /// Notes a flaw unless `holds`.
    fn expect(&mut self, holds: bool, what: &str, place: impl FnOnce() -> String) {
        if !holds && self.found.len() < MOST {
            self.found.push(Flaw { what: what.to_owned(), place: place() });
        }
    }
}

fn here(group: usize) -> String {
    format!("row group {group}")
}

fn slices(flaws: &mut Flaws, group: &RowGroup, shape: &Shape, number: usize) {
    let width = group.block_slots;
    let has_slots = !group.slices.is_empty() && group.slots() <= shape.options.group_slots;
    flaws.expect(has_slots, "slots of a row group", || here(number));
    let rows: usize = group.slices.iter().map(|slice| slice.rows()).sum();
    flaws.expect(group.rows == rows, "rows of a row group", || here(number));
    let digests = group.digests.as_ref();
    let are_right = digests.is_none_or(|digests| *digests == group.new_digests(&shape.schema));
    flaws.expect(are_right, "digests", || here(number));
    for (at, slice) in group.slices.iter().enumerate() {
        let in_slice = || format!("row group {number}, slice {at}");
        flaws.expect(slice.stamp() <= group.stamp, "no stamp is younger than the row group's", in_slice);
        let live = |slot: &usize| slice.is_live(*slot);
        let count = (0..crate::BLOCK_ROWS).filter(live).count();
        flaws.expect(slice.rows() == count, "rows of a slice", in_slice);
        flaws.expect(slice.counts_unready(), "blocks of a slice that take no row as they are", in_slice);
        for (column, block) in slice.blocks().iter().enumerate() {
            let in_block = || format!("row group {number}, slice {at}, column {}", shape.schema[column].name);
            flaws.expect(block.stamp <= slice.stamp(), "no stamp is younger than the slice's", in_block);
            let (physical, zone) = (shape.schema[column].ty.physical(), &group.zones[column]);
            let mut last = None;
            for slot in (0..width).filter(live) {
                if slot >= block.slots() {
                    flaws.expect(false, "a live slot has memory", in_block);
                    break;
                }
                let datum = block.datum(slot, physical);
                if datum.is_null() {
                    let is_known = block.zone.nulls > 0 && zone.nulls > 0 && !block.ascending;
                    flaws.expect(is_known, "a NULL that is known", in_block);
                    continue;
                }
                for zone in [&block.zone, zone] {
                    let is_inside = !zone.min.is_null()
                        && datum.cmp_bound(&zone.min).is_ge()
                        && datum.cmp_bound(&zone.max).is_le();
                    flaws.expect(is_inside, "a value within its zone", in_block);
                }
                let follows = !block.ascending || last.is_none_or(|last| datum.total_cmp(last).is_gt());
                flaws.expect(follows, "values that ascend", in_block);
                last = Some(datum);
            }
        }
    }
}

/// Checks the row numbers of a row group, where those before end with `last`. Returns the last one.
fn numbers(flaws: &mut Flaws, group: &RowGroup, number: usize, mut last: u64) -> u64 {
    let begins_behind = last < group.numbers.first();
    flaws.expect(begins_behind, "row groups are found by their first numbers", || here(number));
    let mut ascend = true;
    group.each_live(0..group.slots(), |slot| {
        let own = group.numbers.of(slot);
        ascend &= last < own && group.numbers.slot_of(own) == Some(slot);
        last = own;
    });
    flaws.expect(ascend, "numbers ascend", || here(number));
    last
}

fn partitions(flaws: &mut Flaws, group: &RowGroup, shape: &Shape, number: usize, next_group: Option<Key>) {
    let Some(key) = &shape.key else { return };
    if group.partitions.len() != group.fences.len() {
        return flaws.expect(false, "a fence for each partition", || here(number));
    }
    let mut start = 0;
    for (at, partition) in group.partitions.iter().enumerate() {
        let in_partition = || format!("row group {number}, partition {at}");
        let covers =
            partition.start == start && partition.end >= start && partition.end as usize <= group.slots();
        if !covers {
            return flaws.expect(false, "partitions cover the slots", in_partition);
        }
        start = partition.end;
        let is_counted = partition.rows as usize == group.live_rows(partition.slots());
        flaws.expect(is_counted, "rows of a partition", in_partition);
        let low = group.fences.get(at);
        let high =
            if at + 1 < group.fences.len() { Some(group.fences.get(at + 1)) } else { next_group.clone() };
        let mut last: Option<Key> = None;
        group.each_live(partition.slots(), |position| {
            let slot = partition.start as usize + position;
            let slice = &group.slices[slot / group.block_slots];
            let key = key.of_row(|column| {
                slice.block(column).datum(slot % group.block_slots, shape.schema[column].ty.physical())
            });
            if shape.options.layout == crate::Layout::Sorted {
                let is_ordered = last.as_ref().is_none_or(|last| *last <= key);
                flaws.expect(is_ordered, "rows are in order", in_partition);
                last = Some(key.clone());
            }
            let is_between = low <= key && high.as_ref().is_none_or(|high| key <= *high);
            flaws.expect(is_between, "a key is between its fences", in_partition);
        });
    }
    flaws.expect(start as usize == group.slots(), "partitions cover the slots", || here(number));
}
