//! Samples of the values of a column, which tell how often two columns have equal values.
//!
//! A sample is of up to 16,384 rows, each at a random place of an equal part of the table. Of each value 16
//! bits of its hash are kept. Two samples are joined by counting: of so many pairs of rows so many have equal
//! bits, of which those are subtracted that different values give by chance. So it is seen that two tables
//! have their rows with the same few values, as all tables of a catalog of films are about the popular ones
//! most: a join has then many times as many rows as the numbers of distinct values say.
//!
//! A sample is taken when it is first asked for, in about a millisecond, and kept with the table. It is taken
//! again when the table has an eighth more or fewer rows.

use crate::sync::{Mutex, PoisonError};
use crate::tree::{Root, RowGroup};
use crate::value::Datum;
use entasis_vector::{PhysicalType, StringHeap};
use std::sync::Arc;

/// The most rows of a sample.
const ROWS: usize = 1 << 14;
/// The number of different values of the bits that are kept of a hash.
const BUCKETS: usize = 1 << 16;
/// The least pairs of equal values that say something, beside what chance may make of the others.
const LEAST_PAIRS: f64 = 48.0;
/// How many standard deviations of the pairs by chance there must be beside.
const DEVIATIONS: f64 = 3.0;
/// A sample is taken again if the number of rows has changed by this part of it.
const CHANGED: u64 = 8;

/// Values of some rows of a column.
#[derive(Debug)]
pub struct KeySample {
    /// Bits of the hashes of values that are not NULL.
    buckets: Vec<u16>,
    /// The rows of the sample.
    rows: usize,
    /// The rows that the table had.
    of_rows: u64,
}

/// The samples of a table that have been taken, by column.
#[derive(Debug, Default)]
pub(super) struct KeySamples(Mutex<Vec<Option<Arc<KeySample>>>>);

impl KeySamples {
    /// A sample of a column: of this version, or of one with about as many rows.
    pub(super) fn of(&self, root: &Root, column: usize, physical: PhysicalType) -> Arc<KeySample> {
        let known = |samples: &[Option<Arc<KeySample>>]| {
            let sample = samples.get(column)?.as_ref()?;
            (sample.of_rows.abs_diff(root.rows) <= root.rows / CHANGED).then(|| sample.clone())
        };
        let samples = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sample) = known(&samples()) {
            return sample;
        }
        let sample = Arc::new(KeySample::of(root, column, physical));
        let mut samples = samples();
        if samples.len() <= column {
            samples.resize(column + 1, None);
        }
        samples[column] = Some(sample.clone());
        sample
    }
}

impl KeySample {
    fn of(root: &Root, column: usize, physical: PhysicalType) -> KeySample {
        let mut sample = KeySample { buckets: Vec::new(), rows: 0, of_rows: root.rows };
        let slots: usize = root.groups.iter().map(|group| group.slots()).sum();
        let part = slots.div_ceil(ROWS).max(1);
        let (mut before, mut heap) = (0, StringHeap::new());
        for group in &root.groups {
            let end = before + group.slots();
            for number in before.div_ceil(part).saturating_sub(1)..end.div_ceil(part) {
                let place = number * part + scattered(number) % part;
                if (before..end).contains(&place) && group.is_live(place - before) {
                    heap.clear();
                    sample.add(group, place - before, (column, physical), &mut heap);
                }
            }
            before = end;
        }
        sample
    }

    fn add(
        &mut self,
        group: &RowGroup,
        slot: usize,
        (column, physical): (usize, PhysicalType),
        heap: &mut StringHeap,
    ) {
        let (slice, slot) = (&group.slices[slot / group.block_slots], slot % group.block_slots);
        let block = slice.block(column);
        self.rows += 1;
        if block.is_valid(slot) {
            let hash = match physical {
                // A compressed string alone, rather than all of its block.
                PhysicalType::Str => Datum::Bytes(block.view(slot, heap).as_bytes()).hash(),
                _ => block.datum(slot, physical).hash(),
            };
            self.buckets.push((hash >> 48) as u16);
        }
    }

    /// For each of `others`, which are of columns of the same type: the share of all pairs of a row here and
    /// a row there that have equal values, if there are enough such pairs in the samples to tell. This sample
    /// itself is taken for one of another scan of its table.
    pub fn shares<'a>(&self, others: impl Iterator<Item = &'a Arc<KeySample>>) -> Vec<Option<f64>> {
        let mut counts = vec![0_u16; BUCKETS];
        self.buckets.iter().for_each(|&bucket| counts[usize::from(bucket)] += 1);
        others.map(|other| self.share(&counts, other)).collect()
    }

    fn share(&self, counts: &[u16], other: &KeySample) -> Option<f64> {
        // In the sample no row is to meet itself; in the table it does.
        let is_same = std::ptr::eq(self, other);
        let own = if is_same { self.buckets.len() as f64 } else { 0.0 };
        let equal: u64 = other.buckets.iter().map(|&bucket| u64::from(counts[usize::from(bucket)])).sum();
        let pairs = self.buckets.len() as f64 * other.buckets.len() as f64 - own;
        let chance = pairs / BUCKETS as f64;
        let found = (equal as f64 - own - chance) / (1.0 - 1.0 / BUCKETS as f64);
        if found < LEAST_PAIRS + DEVIATIONS * chance.sqrt() {
            return None;
        }
        let itself = if is_same { own / (self.rows as f64 * self.of_rows as f64) } else { 0.0 };
        Some(found / (self.rows as f64 * other.rows as f64) + itself)
    }
}

/// A number that looks random and is always the same.
fn scattered(number: usize) -> usize {
    ((number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use crate::tests::random::Random;
    use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Field, Selection, Value, Vector};

    /// A table of one column, with these values.
    fn table(values: impl Iterator<Item = Option<i128>>) -> Arc<Table> {
        let table = Table::new("t", vec![Field::new("k", DataType::Int64)]);
        let mut appender = table.appender();
        let values: Vec<Value> = values.map(|v| v.map_or(Value::Null, Value::Integer)).collect();
        for values in values.chunks(CHUNK_ROWS) {
            let mut chunk = Chunk::new();
            chunk.reset(values.len());
            let group = chunk.push_group(Selection::ALL);
            chunk.push_column(Vector::from_values(DataType::Int64.physical(), values).unwrap(), group);
            appender.append(&chunk, 0).unwrap();
        }
        table.commit(vec![appender.finish()]).unwrap();
        table
    }

    /// The share, counted.
    fn true_share(one: &[Option<i128>], other: &[Option<i128>]) -> f64 {
        let mut counts = std::collections::HashMap::new();
        one.iter().flatten().for_each(|v| *counts.entry(*v).or_insert(0_u64) += 1);
        let pairs: u64 = other.iter().flatten().map(|v| counts.get(v).copied().unwrap_or(0)).sum();
        pairs as f64 / (one.len() as f64 * other.len() as f64)
    }

    #[test]
    fn shares_are_those_that_counting_gives() {
        let mut random = Random(5);
        // Films from 0 to 99,999, of which the first are popular, with NULLs.
        let mut films = |rows: usize, power: i32| -> Vec<Option<i128>> {
            let film = |random: &mut Random| {
                let part = (random.below(1 << 20) as f64 / f64::from(1 << 20)).powi(power);
                (random.below(10) > 0).then_some((part * 100_000.0) as i128)
            };
            (0..rows).map(|_| film(&mut random)).collect()
        };
        let columns = [films(300_000, 2), films(150_000, 3), films(10_000, 2), films(400_000, 1)];
        let snapshots = columns.each_ref().map(|values| table(values.iter().copied()).snapshot());
        let samples = snapshots.each_ref().map(|snapshot| snapshot.key_sample(0));
        for (first, sample) in samples.iter().enumerate() {
            let shares = sample.shares(samples.iter());
            for (second, share) in shares.iter().enumerate() {
                let expected = true_share(&columns[first], &columns[second]);
                let ratio = share.expect("there are enough pairs") / expected;
                assert!((0.75..1.33).contains(&ratio), "{first} and {second}: {share:?} for {expected}");
            }
        }
        assert!(Arc::ptr_eq(&samples[0], &snapshots[0].key_sample(0)), "it is kept");
    }

    #[test]
    fn texts_are_sampled() {
        let text = |i: usize| Value::Text(format!("a street of the town number {}", i * i % 977).into());
        let table = Table::new("t", vec![Field::new("k", DataType::Varchar)]);
        let mut appender = table.appender();
        for chunk_of in 0..40 {
            let values: Vec<Value> = (0..CHUNK_ROWS).map(|row| text(chunk_of * CHUNK_ROWS + row)).collect();
            let mut chunk = Chunk::new();
            chunk.reset(values.len());
            let group = chunk.push_group(Selection::ALL);
            chunk.push_column(Vector::from_values(PhysicalType::Str, &values).unwrap(), group);
            appender.append(&chunk, chunk_of as u64).unwrap();
        }
        table.commit(vec![appender.finish()]).unwrap();
        let sample = table.snapshot().key_sample(0);
        let share = sample.shares([&sample].into_iter())[0].unwrap();
        assert!((0.8..1.6).contains(&(share * 489.0)), "{share}: 489 squares modulo 977");
    }

    #[test]
    fn what_samples_cannot_tell_is_not_said() {
        let distinct = |first: i128| table((first..first + 1_000_000).map(Some)).snapshot().key_sample(0);
        let (one, other) = (distinct(0), distinct(5_000_000));
        assert_eq!(one.shares([&other, &one].into_iter()), [None, None]);
        let empty = table(std::iter::empty()).snapshot().key_sample(0);
        let nulls = table((0..5000).map(|_| None)).snapshot().key_sample(0);
        assert_eq!(empty.shares([&one, &empty, &nulls].into_iter()), [None, None, None]);
        assert_eq!(nulls.shares([&one, &nulls].into_iter()), [None, None]);
    }

    #[test]
    fn a_table_of_another_size_is_sampled_again() {
        let table = table((0..8000).map(|i| Some(i % 3)));
        let first = table.snapshot().key_sample(0);
        let add = |rows| {
            for _ in 0..rows {
                table.write().insert(&[Datum::Integer(1)]);
            }
        };
        add(900);
        assert!(Arc::ptr_eq(&first, &table.snapshot().key_sample(0)), "about as many rows");
        add(400);
        assert!(!Arc::ptr_eq(&first, &table.snapshot().key_sample(0)));
    }
}
