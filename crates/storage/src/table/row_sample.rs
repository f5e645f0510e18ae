//! Samples of rows that are kept with the row groups of a table, decoded, so that predicates can be tested on
//! them when a query is planned.
//!
//! A sample has up to 1024 runs of 16 slots, one at a random place of each equal stretch of the table; a
//! table of 16,384 slots or fewer is its own sample. Rows of a run stand next to each other, so that a sample
//! reads 1024 blocks of a column and not 16,384.
//!
//! 1. The first query that asks says where the runs are: nothing is decoded yet.
//! 2. A column is decoded when a predicate reads it, and kept.
//! 3. Later, row groups are looked at: if an eighth of the slices of one has been written since, or it has
//!    another number of slots, its part of the sample is taken again. All parts are if the table has grown by
//!    an eighth, or has another number of row groups.
//!
//! So a sample may be a little older than the snapshot that asks for it, which an estimate can bear. It takes
//! at most 128 KB for a column of 8-byte numbers. Texts are copied; those of a part that are long
//! ([`LONGEST`]) are decoded each time.

use crate::node::Stamp;
use crate::sync::{Mutex, PoisonError};
use crate::tree::{Node, Root, RowGroup};
use entasis_vector::vector::StringsMut;
use entasis_vector::{Buffer, CHUNK_ROWS, PhysicalType, Vector, bitmap};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The most runs of a sample.
const RUNS: usize = 1 << 10;
/// The slots of a run.
const RUN_SLOTS: usize = 16;
/// Distances from run to run are rounded to so many steps up to a power of two, so that a table that grows is
/// not sampled again at each row.
const STEPS: usize = 8;
/// The most runs of a part.
const PART_RUNS: usize = CHUNK_ROWS / RUN_SLOTS;
/// A row group's part is taken again if one in so many of its slices has been written.
const CHANGED: usize = 8;
/// The most bytes of the texts of a part that are kept, for each of its slots.
const LONGEST: usize = 128;

/// The sample of a table, if one has been taken.
#[derive(Debug, Default)]
pub(super) struct RowSamples(Mutex<Option<Arc<Taken>>>);

/// A sample that has been taken.
#[derive(Debug)]
struct Taken {
    /// The distance from run to run, in slots.
    distance: usize,
    groups: Vec<Arc<GroupSample>>,
}

/// What is kept of a row group.
#[derive(Debug)]
struct GroupSample {
    /// That of the row group when it was taken.
    stamp: Stamp,
    /// The slots that the row group had.
    slots: usize,
    parts: Vec<Part>,
}

/// Some runs of a row group, at most [`PART_RUNS`].
#[derive(Debug)]
struct Part {
    runs: Vec<Range<usize>>,
    /// Positions of rows among the slots of the runs.
    rows: Vec<u16>,
    /// The decoded columns.
    columns: Vec<OnceLock<Vector>>,
}

/// A sample of the rows of a snapshot.
pub struct RowSample<'a> {
    root: &'a Root,
    taken: Arc<Taken>,
}

/// Up to [`CHUNK_ROWS`] slots of a sample, next to each other in vectors.
pub struct SampledSlots<'a> {
    group: &'a RowGroup,
    part: &'a Part,
}

impl RowSamples {
    /// A sample of this version, or of a similar one. `group_slots` is the most slots of a row group.
    pub(super) fn of<'a>(&self, root: &'a Root, columns: usize, group_slots: usize) -> RowSample<'a> {
        let slots: usize = root.groups.iter().map(|group| group.slots()).sum();
        let least = slots.div_ceil(RUNS).max(RUN_SLOTS);
        let distance = least.next_multiple_of(least.next_power_of_two() / STEPS);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let similar =
            known.as_ref().filter(|t| t.distance == distance && t.groups.len() == root.groups.len()).cloned();
        let group_sample = |number: usize| {
            let group = &*root.groups[number];
            let old = similar.as_ref().map(|taken| &taken.groups[number]).filter(|old| old.is_of(group));
            let places = || places(number, group_slots, distance);
            old.cloned().unwrap_or_else(|| Arc::new(GroupSample::of(group, columns, places())))
        };
        let groups: Vec<Arc<GroupSample>> = (0..root.groups.len()).map(group_sample).collect();
        let is_same = |taken: &&Arc<Taken>| taken.groups.iter().zip(&groups).all(|(a, b)| Arc::ptr_eq(a, b));
        let taken = match similar.as_ref().filter(is_same) {
            Some(taken) => taken.clone(),
            None => Arc::new(Taken { distance, groups }),
        };
        *known = Some(taken.clone());
        RowSample { root, taken }
    }
}

/// Where the runs of the row group with a number start, if it is large enough: one in each stretch of
/// `distance` slots of a table of full row groups.
fn places(number: usize, group_slots: usize, distance: usize) -> impl Iterator<Item = usize> {
    let first = number * group_slots;
    let place = move |run: usize| run * distance + scattered(run) % (distance - RUN_SLOTS + 1);
    let runs = (first / distance)..(first + group_slots).div_ceil(distance);
    runs.map(place).filter(move |place| (first..first + group_slots).contains(place)).map(move |p| p - first)
}

impl GroupSample {
    fn of(group: &RowGroup, columns: usize, places: impl Iterator<Item = usize>) -> GroupSample {
        let slots = group.slots();
        let runs: Vec<Range<usize>> = places
            .take_while(|place| *place < slots)
            .map(|place| place..(place + RUN_SLOTS).min(slots))
            .collect();
        let parts = runs.chunks(PART_RUNS).map(|runs| Part::of(group, columns, runs.to_vec())).collect();
        GroupSample { stamp: group.stamp, slots, parts }
    }

    /// True if the row group is much like it was.
    fn is_of(&self, group: &RowGroup) -> bool {
        let written = || group.slices.iter().filter(|slice| slice.stamp() > self.stamp).count();
        self.slots == group.slots() && (self.stamp == group.stamp || written() * CHANGED < group.slices.len())
    }
}

impl Part {
    fn of(group: &RowGroup, columns: usize, runs: Vec<Range<usize>>) -> Part {
        let slots = runs.iter().flat_map(Range::clone);
        let rows = slots.enumerate().filter(|(_, slot)| group.is_live(*slot)).map(|(at, _)| at as u16);
        Part { rows: rows.collect(), runs, columns: (0..columns).map(|_| OnceLock::new()).collect() }
    }

    fn slots(&self) -> usize {
        self.runs.iter().map(Range::len).sum()
    }

    /// Decodes a column to a vector of its own, no larger than it must be.
    fn decode(&self, group: &RowGroup, column: usize, held: PhysicalType) -> Vector {
        let (slots, mut decoded, mut flat) = (self.slots(), Vector::new(held), Vector::new(held));
        group.decode_runs(column, held, &self.runs, &mut decoded);
        decoded.flatten_into(None, slots, &mut flat);
        let values = Buffer::from_slice(&flat.values_buffer().as_slice::<u8>()[..slots * held.width()]);
        let validity = flat.validity().map(|words| Buffer::from_slice(&words[..bitmap::words_for(slots)]));
        let mut own = Vector::from_buffer(held, Arc::new(values), validity.map(Arc::new));
        if held == PhysicalType::Str {
            let StringsMut { views, heap } = own.strings_mut();
            for view in views[..slots].iter_mut().filter(|view| !view.is_inline()) {
                *view = heap.push(view.as_bytes());
            }
        }
        own
    }
}

impl<'a> RowSample<'a> {
    /// The number of its rows.
    pub fn rows(&self) -> usize {
        self.parts().map(|part| part.rows().len()).sum()
    }

    /// The sample, in parts.
    pub fn parts(&self) -> impl Iterator<Item = SampledSlots<'_>> {
        let groups = self.root.groups.iter().zip(&self.taken.groups);
        groups.flat_map(|(group, sample)| sample.parts.iter().map(|part| SampledSlots { group, part }))
    }
}

impl SampledSlots<'_> {
    /// The number of slots.
    pub fn slots(&self) -> usize {
        self.part.slots()
    }

    /// Positions of the slots that are rows, ascending.
    pub fn rows(&self) -> &[u16] {
        &self.part.rows
    }

    /// The values of a column, which has the default physical type `held`, one for each slot. Those of slots
    /// that are no rows are arbitrary.
    pub fn column(&self, column: usize, held: PhysicalType) -> Cow<'_, Vector> {
        let kept = &self.part.columns[column];
        if let Some(vector) = kept.get() {
            return Cow::Borrowed(vector);
        }
        let vector = self.part.decode(self.group, column, held);
        let bytes = vector.heap().map_or(0, |heap| heap.bytes());
        if bytes > LONGEST * self.slots() {
            return Cow::Owned(vector);
        }
        Cow::Borrowed(kept.get_or_init(|| vector))
    }
}

/// A number that looks random and is always the same.
fn scattered(number: usize) -> usize {
    ((number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datum, Table, TableOptions};
    use entasis_vector::{DataType, Field, Value};

    const GROUP_SLOTS: usize = 4096;

    /// A table of numbers and texts: row i has i and a text of it.
    fn table(rows: usize) -> Arc<Table> {
        let fields = vec![Field::new("n", DataType::Int64), Field::new("t", DataType::Varchar)];
        let options = TableOptions { block_slots: 128, group_slots: GROUP_SLOTS, ..TableOptions::default() };
        let table = Table::with_options("t", fields, options);
        insert(&table, 0..rows);
        table
    }

    fn text(row: usize) -> String {
        if row.is_multiple_of(3) { row.to_string() } else { format!("a text of {row} that is no inline one") }
    }

    fn insert(table: &Arc<Table>, rows: Range<usize>) {
        let mut writer = table.write();
        for row in rows {
            writer.insert(&[Datum::Integer(row as i128), Datum::Bytes(text(row).as_bytes())]);
        }
    }

    /// The numbers of the sample; each row must have its text.
    fn numbers(sample: &RowSample<'_>) -> Vec<usize> {
        let mut found = Vec::new();
        for part in sample.parts() {
            let numbers = part.column(0, DataType::Int64.physical()).into_owned();
            let texts = part.column(1, PhysicalType::Str).into_owned();
            for &row in part.rows() {
                let value = numbers.value(usize::from(row), DataType::Int64);
                let Value::Integer(number) = value else { panic!("{value:?} is no number") };
                let expected = Value::Text(text(number as usize).into());
                assert_eq!(texts.value(usize::from(row), DataType::Varchar), expected);
                found.push(number as usize);
            }
        }
        assert_eq!(found.len(), sample.rows());
        found
    }

    #[test]
    fn a_small_table_is_its_own_sample() {
        let table = table(10_000);
        assert_eq!(numbers(&table.snapshot().row_sample()), (0..10_000).collect::<Vec<_>>());
        let empty = Table::new("e", vec![Field::new("n", DataType::Int64)]);
        assert_eq!(empty.snapshot().row_sample().parts().count(), 0);
    }

    #[test]
    fn a_sample_is_spread_evenly_and_outlives_its_snapshot() {
        let table = table(100_000);
        // Whose texts would be gone if they were not copied.
        let first = numbers(&table.snapshot().row_sample());
        insert(&table, 100_000..100_100);
        let snapshot = table.snapshot();
        assert_eq!(numbers(&snapshot.row_sample())[..first.len()], first, "it is the same for the same rows");
        assert!((12_000..=16_384).contains(&first.len()), "{}", first.len());
        assert!(first.is_sorted());
        for tenth in 0..10 {
            let within = first.iter().filter(|number| **number / 10_000 == tenth).count();
            assert!((first.len() / 15..first.len() / 7).contains(&within), "{within} of tenth {tenth}");
        }
    }

    #[test]
    fn a_row_group_that_is_written_is_sampled_again_and_others_are_not() {
        let table = table(4 * GROUP_SLOTS);
        let groups = |table: &Arc<Table>| {
            let snapshot = table.snapshot();
            let sample = snapshot.row_sample();
            numbers(&sample);
            sample.taken.groups.clone()
        };
        let same = |a: &[Arc<GroupSample>], b: &[Arc<GroupSample>]| -> Vec<bool> {
            a.iter().zip(b).map(|(a, b)| Arc::ptr_eq(a, b)).collect()
        };
        let first = groups(&table);
        assert_eq!(same(&first, &groups(&table)), [true; 4]);
        let delete = |rows: Range<usize>| {
            let snapshot = table.snapshot();
            let group = snapshot.row_group(1).expect("there are four");
            let ids: Vec<_> = rows.map(|slot| crate::RowId { group: 1, slot: slot as u32 }).collect();
            assert!(ids.iter().all(|id| group.is_live(id.slot as usize)));
            drop(snapshot);
            let mut writer = table.write();
            ids.into_iter().for_each(|id| writer.delete(id));
        };
        delete(0..100);
        assert_eq!(same(&first, &groups(&table)), [true; 4], "one slice of 32");
        delete(1_000..2_000);
        let second = groups(&table);
        assert_eq!(same(&first, &second), [true, false, true, true]);
        insert(&table, 0..100);
        let third = groups(&table);
        assert_eq!(third.len(), 5, "one more row group: all are sampled again");
        assert_eq!(same(&second, &third), [false; 4]);
    }

    #[test]
    fn long_texts_are_not_kept() {
        let table = Table::new("t", vec![Field::new("t", DataType::Varchar)]);
        let long = "long ".repeat(100);
        (0..500).for_each(|_| {
            table.write().insert(&[Datum::Bytes(long.as_bytes())]);
        });
        let snapshot = table.snapshot();
        let sample = snapshot.row_sample();
        let part = sample.parts().next().expect("there are rows");
        for _ in 0..2 {
            assert!(matches!(part.column(0, PhysicalType::Str), Cow::Owned(_)));
        }
        let value = part.column(0, PhysicalType::Str).value(499, DataType::Varchar);
        assert_eq!(value, Value::Text(long.into()));
    }
}
