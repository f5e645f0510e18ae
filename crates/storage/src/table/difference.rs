//! The difference of two versions of a table: the rows that only one of them has.
//!
//! Versions share the slices that nobody has changed in between, so only slices that one of them lacks are
//! looked at: the work is proportional to what has changed, whatever the table's size. A slice that changed
//! in its place is compared with its older state row by row, except for blocks that both share. Rows that
//! have moved count as removed and added, and so do equal ones with other row numbers in a table without a
//! layout key: what identifies a row there is its number.

use super::snapshot::TableSnapshot;
use crate::tree::{RowId, Slice};
use std::collections::HashSet;

/// Rows that only an older version has, and rows that only a newer one has.
#[derive(Debug, Default)]
pub struct Difference {
    /// Rows that only the older version has, in the order of their places.
    pub gone: Vec<RowId>,
    /// Rows that only the newer version has, in the order of their places.
    pub came: Vec<RowId>,
}

impl TableSnapshot {
    /// What has changed from this version to a newer one of the same table.
    pub fn difference(&self, newer: &TableSnapshot) -> Difference {
        let (old, new) = (slices(self), slices(newer));
        let mut difference = Difference::default();
        self.only_here(&new, newer, &mut difference.gone);
        newer.only_here(&old, self, &mut difference.came);
        difference
    }

    /// The rows of slices that are not among `others`, but for those that `other` has at the same place.
    fn only_here(&self, others: &HashSet<*const Slice>, other: &TableSnapshot, rows: &mut Vec<RowId>) {
        for (number, group) in self.row_groups().enumerate() {
            for (at, slice) in group.slices.iter().enumerate() {
                if others.contains(&std::ptr::from_ref(&**slice)) {
                    continue;
                }
                let beside = other.row_group(number);
                let twin = beside.and_then(|beside| Some((beside, beside.slices.get(at)?)));
                let first = at * group.block_slots;
                let is_numbered = self.table().shape.key.is_none();
                let has_same = |slot: usize| {
                    twin.is_some_and(|(beside, twin)| {
                        let numbers = [group, beside].map(|group| group.numbers.of(first + slot));
                        (!is_numbered || numbers[0] == numbers[1]) && self.is_same_row(slice, twin, slot)
                    })
                };
                let live = (0..group.block_slots).filter(|&slot| slice.is_live(slot));
                let changed = live.filter(|&slot| !has_same(slot));
                rows.extend(changed.map(|slot| RowId { group: number as u32, slot: (first + slot) as u32 }));
            }
        }
    }

    fn is_same_row(&self, slice: &Slice, twin: &Slice, slot: usize) -> bool {
        twin.is_live(slot)
            && self.schema().iter().enumerate().all(|(column, field)| {
                let (own, others) = (slice.blocks()[column], twin.blocks()[column]);
                let physical = field.ty.physical();
                own.is(others) || own.datum(slot, physical).is_same(others.datum(slot, physical))
            })
    }
}

fn slices(version: &TableSnapshot) -> HashSet<*const Slice> {
    version.row_groups().flat_map(|group| &group.slices).map(|slice| std::ptr::from_ref(&**slice)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;
    use crate::{Datum, Table, TableOptions};
    use entasis_vector::{DataType, Field};
    use std::sync::Arc;

    fn rows(version: &TableSnapshot, ids: impl Iterator<Item = RowId>) -> Vec<(i128, i128)> {
        let integer = |id, column| match version.datum(id, column) {
            Datum::Integer(value) => value,
            other => panic!("{other:?}"),
        };
        let mut rows: Vec<_> = ids.map(|id| (integer(id, 0), integer(id, 1))).collect();
        rows.sort_unstable();
        rows
    }

    fn change(table: &Arc<Table>, random: &mut Random) {
        for _ in 0..random.below(20) {
            let row = [Datum::Integer(random.below(100).into()), Datum::Integer(random.below(4).into())];
            let mut writer = table.write();
            let nth = random.below(8);
            let mut seen = 0;
            let found = writer.find_slowly(|_, _| {
                seen += 1;
                seen > nth
            });
            match (random.below(4), found) {
                (0, Some(found)) => writer.delete(found),
                (1, Some(found)) => drop(writer.update(found, &[(1, row[1])])),
                (2, Some(found)) => drop(writer.update(found, &[(0, row[0])])),
                _ => drop(writer.insert(&row)),
            }
        }
    }

    #[test]
    fn what_is_gone_and_what_came_make_the_newer_version() {
        for seed in 0..200 {
            let random = &mut Random(seed + 1);
            let keyed = seed % 2 == 0;
            let sizes =
                TableOptions { block_slots: 4, group_slots: 16, partitions: 4, ..TableOptions::default() };
            let options = if keyed {
                TableOptions { layout: crate::Layout::EquiGhost, layout_key: vec![0], ..sizes }
            } else {
                sizes
            };
            let schema = vec![Field::new("k", DataType::Int64), Field::new("v", DataType::Int64)];
            let table = Table::with_options("t", schema, options);
            change(&table, random);
            let old = table.snapshot();
            change(&table, random);
            let new = table.snapshot();
            let difference = old.difference(&new);
            if !keyed {
                let numbers = |version: &TableSnapshot, ids: &[RowId]| -> Vec<u64> {
                    ids.iter().map(|&id| version.number_of(id)).collect()
                };
                let all = |version: &TableSnapshot| numbers(version, &version.row_ids().collect::<Vec<_>>());
                let gone = numbers(&old, &difference.gone);
                let mut left = all(&old);
                left.retain(|number| !gone.contains(number));
                left.extend(numbers(&new, &difference.came));
                left.sort_unstable();
                assert_eq!(left, all(&new), "seed {seed}");
            }
            let mut expected = rows(&new, new.row_ids());
            let mut patched = rows(&old, old.row_ids());
            for row in rows(&old, difference.gone.into_iter()) {
                let at = patched.iter().position(|other| *other == row).expect("what is gone was there");
                patched.remove(at);
            }
            patched.extend(rows(&new, difference.came.into_iter()));
            patched.sort_unstable();
            expected.sort_unstable();
            assert_eq!(patched, expected, "seed {seed}");
            let nothing = new.difference(&new.clone());
            assert!(nothing.gone.is_empty() && nothing.came.is_empty());
        }
    }
}
