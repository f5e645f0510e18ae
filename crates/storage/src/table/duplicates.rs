//! Finds rows with equal layout keys where keys are unique, after rows were added in bulk.
//!
//! Rows with equal keys are in one partition, unless their key is a fence: then they may be on both sides of
//! it, and in every partition between equal fences. So each partition is searched on its own, with its keys
//! in order, and a row whose key is the next fence is carried over. What the partitions before a row group
//! carry over is found by searching seldom more than one partition; so row groups can be searched
//! independently, by several threads.
//!
//! On a space-filling curve different keys may be at one position, so rows there are compared by all columns
//! of the key.
//!
//! A key with a NULL equals no other.

use super::appender::AppendedRows;
use crate::scan::lookup;
use crate::tree::key::Key;
use crate::tree::{Root, RowGroup, RowId, Shape};
use crate::value::Datum;
use std::collections::HashSet;
use std::ops::Range;

/// Where rows with equal keys are searched for.
#[derive(Debug, Clone)]
pub enum Among<'a> {
    /// In some row groups: rows whose key equals that of another row there or before.
    Groups(Range<usize>),
    /// Among rows that were appended.
    Appended(&'a [AppendedRows]),
}

/// A row of `among` whose layout key another row has too.
pub(crate) fn first(root: &Root, shape: &Shape, among: &Among<'_>) -> Option<RowId> {
    match among {
        Among::Groups(groups) => groups.clone().find_map(|group| in_group(root, shape, group)),
        Among::Appended(rows) => {
            let many = rows.iter().map(AppendedRows::rows).sum::<u64>() > root.rows / 16;
            if many {
                first(root, shape, &Among::Groups(0..root.groups.len()))
            } else {
                of_rows(root, shape, rows)
            }
        }
    }
}

/// The same for a few rows, one by one.
fn of_rows(root: &Root, shape: &Shape, rows: &[AppendedRows]) -> Option<RowId> {
    let mut key: Vec<Datum<'_>> = Vec::new();
    for slice in rows.iter().flat_map(|rows| &rows.pieces).flat_map(|(_, piece)| &piece.slices) {
        for slot in 0..slice.rows {
            let columns = shape.options.layout_key.iter();
            key.clear();
            key.extend(
                columns.map(|&column| slice.blocks[column].datum(slot, shape.schema[column].ty.physical())),
            );
            if key.iter().any(|datum| datum.is_null()) {
                continue;
            }
            let mut found = 0;
            let mut last = None;
            lookup::look_for_each(root, shape, &key, |row| {
                (found, last) = (found + 1, Some(row));
                found < 2
            });
            if found > 1 {
                return last;
            }
        }
    }
    None
}

/// A row of a row group whose key another row has, in this row group or before it.
pub(crate) fn in_group(root: &Root, shape: &Shape, number: usize) -> Option<RowId> {
    let key = shape.key.as_ref()?;
    if key.curve.is_some() {
        return Search { root, shape, key: word_of }.by_columns(number);
    }
    match key.least() {
        Key::Word(_) => Search { root, shape, key: word_of }.run(number),
        Key::Bytes(_) => Search { root, shape, key: |key| key }.run(number),
    }
}

fn word_of(key: Key) -> u64 {
    if let Key::Word(word) = key { word } else { 0 }
}

/// Searches with keys of type `K`.
struct Search<'a, K> {
    root: &'a Root,
    shape: &'a Shape,
    key: fn(Key) -> K,
}

impl<K: Ord> Search<'_, K> {
    fn run(&self, number: usize) -> Option<RowId> {
        let group = &*self.root.groups[number];
        let mut has_low = number > 0 && self.is_before(number);
        let mut keys = Vec::new();
        for partition in 0..group.partitions.len() {
            let low = (self.key)(group.fences.get(partition));
            self.keys_of(group, partition, &mut keys);
            if keys.windows(2).any(|pair: &[(K, u32)]| pair[0].0 >= pair[1].0) {
                keys.sort_unstable();
            }
            let twin = keys.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1);
            let carried = keys.first().filter(|(key, _)| has_low && *key == low).map(|(_, slot)| *slot);
            if let Some(slot) = twin.or(carried) {
                return Some(RowId { group: number as u32, slot });
            }
            if partition + 1 < group.partitions.len() {
                let high = (self.key)(group.fences.get(partition + 1));
                has_low = keys.last().is_some_and(|(key, _)| *key == high) || (has_low && low == high);
            }
        }
        None
    }

    /// The same for keys that do not say all: rows at one position are compared by all columns of the key.
    /// Positions ascend from partition to partition, so only the rows of one are remembered.
    fn by_columns(&self, number: usize) -> Option<RowId> {
        let (root, group) = (self.root, &*self.root.groups[number]);
        let fence = |partition: usize| match partition < group.fences.len() {
            true => Some((self.key)(group.fences.get(partition))),
            false => (number + 1 < root.groups.len()).then(|| (self.key)(root.fences.get(number + 1))),
        };
        let mut at = fence(0);
        let mut seen = if number > 0 { self.all_before(number) } else { HashSet::new() };
        let mut keys = Vec::new();
        for partition in 0..group.partitions.len() {
            self.keys_of(group, partition, &mut keys);
            keys.sort_unstable();
            let next = fence(partition + 1);
            let mut keys = keys.drain(..).peekable();
            while let Some((key, slot)) = keys.next() {
                let is_alone =
                    keys.peek().is_none_or(|(other, _)| *other != key) && next.as_ref() != Some(&key);
                if at.as_ref() != Some(&key) {
                    seen.clear();
                    at = Some(key);
                }
                if (!is_alone || !seen.is_empty()) && !seen.insert(self.columns_of(group, slot)) {
                    return Some(RowId { group: number as u32, slot });
                }
            }
        }
        None
    }

    /// The columns of the key, for each row before a row group at the position that is its fence.
    fn all_before(&self, number: usize) -> HashSet<Vec<u8>> {
        let fence = (self.key)(self.root.fences.get(number));
        let (mut all, mut keys) = (HashSet::new(), Vec::new());
        for group in self.root.groups[..number].iter().rev() {
            for partition in (0..group.partitions.len()).rev() {
                self.keys_of(group, partition, &mut keys);
                let own = keys.iter().filter(|(key, _)| *key == fence);
                all.extend(own.map(|(_, slot)| self.columns_of(group, *slot)));
                if (self.key)(group.fences.get(partition)) != fence {
                    return all;
                }
            }
        }
        all
    }

    /// The columns of the key of a row, as bytes.
    fn columns_of(&self, group: &RowGroup, slot: u32) -> Vec<u8> {
        let (schema, width, slot) = (&self.shape.schema, group.block_slots, slot as usize);
        let slice = &*group.slices[slot / width];
        let mut bytes = Vec::new();
        let key = self.shape.key.as_ref().expect("the table has a layout key");
        key.push_row(
            |column| slice.block(column).datum(slot % width, schema[column].ty.physical()),
            &mut bytes,
        );
        bytes
    }

    /// True if a row before a row group has the key that is the row group's fence.
    fn is_before(&self, number: usize) -> bool {
        let fence = (self.key)(self.root.fences.get(number));
        let mut keys = Vec::new();
        for group in self.root.groups[..number].iter().rev() {
            for partition in (0..group.partitions.len()).rev() {
                self.keys_of(group, partition, &mut keys);
                if keys.iter().any(|(key, _)| *key == fence) {
                    return true;
                }
                if (self.key)(group.fences.get(partition)) != fence {
                    return false;
                }
            }
        }
        false
    }

    /// The keys of a partition but those with a NULL, with their slots, in the order of slots.
    fn keys_of(&self, group: &RowGroup, partition: usize, keys: &mut Vec<(K, u32)>) {
        let (shape, width) = (self.shape, group.block_slots);
        let layout_key = shape.key.as_ref().expect("the table has a layout key");
        let slots = group.partitions[partition].slots();
        let start = slots.start;
        keys.clear();
        group.each_live(slots, |position| {
            let slot = start + position;
            let slice = &*group.slices[slot / width];
            let datum =
                |column: usize| slice.block(column).datum(slot % width, shape.schema[column].ty.physical());
            if !layout_key.columns.iter().any(|&column| datum(column).is_null()) {
                keys.push(((self.key)(layout_key.of_row(datum)), slot as u32));
            }
        });
    }
}
