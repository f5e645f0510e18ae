//! Samples of the values of a column, which tell how often several columns have equal values.
//!
//! A sample is of up to 16,384 rows, each at a random place of an equal part of the table. Of each value
//! 32 bits of its hash are kept. Samples are joined by counting: of so many combinations of a row of each
//! so many have equal bits. So it is seen that tables have their rows with the same few values, as all
//! tables of a catalog of films are about the popular ones most: a join has then many times as many rows
//! as the numbers of distinct values say, and the more tables are joined, the more so. Of four billion
//! pairs of different values one has equal bits, and two samples have a quarter of a billion pairs.
//!
//! A sample may miss values that are frequent in other tables alone. What is said of four tables may then
//! be a tenth of what there is.
//!
//! A sample is taken when it is first asked for, in about a millisecond, and kept with the table. It is taken
//! again when the table has an eighth more or fewer rows.

use crate::sync::{Mutex, PoisonError};
use crate::tree::{Root, RowGroup};
use crate::value::Datum;
use entasis_vector::{PhysicalType, StringHeap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most rows of a sample.
const ROWS: usize = 1 << 14;
/// The most samples that are joined.
pub const KEY_SAMPLES_MAX: usize = 8;
/// The most of them that are joined to one another.
const TOGETHER: u32 = 4;
/// The least combinations of rows with equal values that say something, and of how many values they must be.
const LEAST: f64 = 48.0;
const LEAST_VALUES: u32 = 8;
/// The most lists of samples of which the shares are kept with the first of each.
const KEPT: usize = 16;
/// The number of samples that this process has taken.
static SAMPLES: AtomicU64 = AtomicU64::new(0);
/// A sample is taken again if the number of rows has changed by this part of it.
const CHANGED: u64 = 8;

/// Values of some rows of a column.
#[derive(Debug)]
pub struct KeySample {
    /// Bits of the hashes of values that are not NULL, ascending.
    hashes: Vec<u32>,
    /// The rows of the sample.
    rows: usize,
    /// The rows that the table had.
    of_rows: u64,
    /// A number that no other sample has.
    id: u64,
    /// What was last found of this one and others.
    found: Mutex<Vec<(Vec<u64>, Shares)>>,
}

/// For sets of samples, a bit each, the share of all combinations of a row of each that have equal values.
pub type Shares = Arc<[(u32, f64)]>;

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
        let id = SAMPLES.fetch_add(1, Ordering::Relaxed);
        let (hashes, found) = (Vec::new(), Mutex::default());
        let mut sample = KeySample { hashes, rows: 0, of_rows: root.rows, id, found };
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
        sample.hashes.sort_unstable();
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
            self.hashes.push((hash >> 32) as u32);
        }
    }

    /// For each set of two to four of `samples`, a bit each, the share of all combinations of a row of each
    /// table that have equal values, if there are enough such combinations in the samples to tell. The
    /// columns are of the same type, and at most [`KEY_SAMPLES_MAX`]. A sample that is there twice is taken
    /// for one of another scan of its table, which is told of such pairs alone. Sets of fewer samples come
    /// first. The result is kept with the first sample, as the same tables are joined again and again.
    pub fn shares(samples: &[&KeySample]) -> Shares {
        let Some(first) = samples.first() else { return Shares::default() };
        let ids: Vec<u64> = samples.iter().map(|sample| sample.id).collect();
        let kept = || first.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shares)) = kept().iter().find(|(of, _)| *of == ids) {
            return shares.clone();
        }
        let shares: Shares = KeySample::count(samples).into();
        let mut kept = kept();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((ids, shares.clone()));
        shares
    }

    fn count(samples: &[&KeySample]) -> Vec<(u32, f64)> {
        assert!(samples.len() <= KEY_SAMPLES_MAX);
        let mut found = vec![(0.0, 0); 1 << samples.len()];
        let mut rest: Vec<&[u32]> = samples.iter().map(|sample| &sample.hashes[..]).collect();
        let mut counts = [0.0; KEY_SAMPLES_MAX];
        while let Some(least) = rest.iter().filter_map(|hashes| hashes.first().copied()).min() {
            let mut present = 0_u32;
            for (at, hashes) in rest.iter_mut().enumerate() {
                let equal = hashes.iter().take_while(|hash| **hash == least).count();
                *hashes = &hashes[equal..];
                counts[at] = equal as f64;
                present |= u32::from(equal > 0) << at;
            }
            each_set(present, |set| {
                let first = set.trailing_zeros() as usize;
                // No row of a sample meets itself.
                let own = f64::from(u8::from(is_pair_of_one(samples, set)));
                let others = set & (set - 1);
                let (sum, values) = &mut found[set as usize];
                *sum += members(others).map(|at| counts[at] - own).product::<f64>() * counts[first];
                *values += 1;
            });
        }
        let mut shares = Vec::new();
        for (set, &(sum, values)) in (0_u32..).zip(&found) {
            let has_twice = set.count_ones() > 2
                && members(set).any(|a| members(set).any(|b| a < b && std::ptr::eq(samples[a], samples[b])));
            if sum >= LEAST && values >= LEAST_VALUES && !has_twice {
                let all: f64 = members(set).map(|at| samples[at].rows as f64).product();
                let one = samples[set.trailing_zeros() as usize];
                // In the table each row does meet itself.
                let itself = one.hashes.len() as f64 / (one.rows as f64 * one.of_rows as f64);
                let itself = if is_pair_of_one(samples, set) { itself } else { 0.0 };
                shares.push((set, sum / all + itself));
            }
        }
        shares.sort_by_key(|(set, _)| set.count_ones());
        shares
    }
}

/// True of two samples that are the same.
fn is_pair_of_one(samples: &[&KeySample], set: u32) -> bool {
    let (first, last) = (set.trailing_zeros() as usize, 31 - set.leading_zeros() as usize);
    set.count_ones() == 2 && std::ptr::eq(samples[first], samples[last])
}

/// The numbers of the bits of a set, ascending.
fn members(set: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |at| set >> at & 1 == 1)
}

/// The subsets of two to [`TOGETHER`] members.
fn each_set(of: u32, mut each: impl FnMut(u32)) {
    let mut set = of;
    while set > 0 {
        if (2..=TOGETHER).contains(&set.count_ones()) {
            each(set);
        }
        set = (set - 1) & of;
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

    /// The share of combinations of a row of each that are equal, counted.
    fn true_share(columns: &[&Vec<Option<i128>>]) -> f64 {
        let mut counts = std::collections::HashMap::new();
        for (at, column) in columns.iter().enumerate() {
            for value in column.iter().flatten() {
                counts.entry(*value).or_insert([0.0; KEY_SAMPLES_MAX])[at] += 1.0;
            }
        }
        let products = counts.values().map(|counts| counts[..columns.len()].iter().product::<f64>());
        products.sum::<f64>() / columns.iter().map(|column| column.len() as f64).product::<f64>()
    }

    fn shares(samples: &[Arc<KeySample>]) -> Vec<(u32, f64)> {
        let samples: Vec<&KeySample> = samples.iter().map(|sample| &**sample).collect();
        let shares = KeySample::shares(&samples);
        assert!(Arc::ptr_eq(&shares, &KeySample::shares(&samples)), "they are kept");
        shares.to_vec()
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
        let found = shares(&samples);
        assert_eq!(found.len(), 6 + 4 + 1, "each two, each three, and all");
        for (set, share) in found {
            let of: Vec<&Vec<Option<i128>>> = members(set).map(|at| &columns[at]).collect();
            let ratio = share / true_share(&of);
            // The more samples, the more a few frequent values weigh, and a sample of a column in which they
            // are no more frequent than others may not have them.
            let bounds = match (of.len(), set >> 3 & 1) {
                (2, _) => 0.75..1.33,
                (_, 0) => 0.5..2.0,
                _ => 0.0..2.0,
            };
            assert!(bounds.contains(&ratio), "{set:b}: {ratio}");
        }
        for (sample, column) in samples.iter().zip(&columns) {
            let found = shares(&[sample.clone(), sample.clone()]);
            let ratio = found[0].1 / true_share(&[column, column]);
            assert!((0.75..1.33).contains(&ratio), "{ratio}");
        }
        let twice = [samples[0].clone(), samples[1].clone(), samples[0].clone()];
        assert_eq!(shares(&twice).len(), 3, "pairs alone");
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
        let share = shares(&[sample.clone(), sample])[0].1;
        assert!((0.8..1.6).contains(&(share * 489.0)), "{share}: 489 squares modulo 977");
    }

    #[test]
    fn what_samples_cannot_tell_is_not_said() {
        let distinct = |first: i128| table((first..first + 1_000_000).map(Some)).snapshot().key_sample(0);
        let (one, other) = (distinct(0), distinct(5_000_000));
        assert_eq!(shares(&[one.clone(), other, one.clone()]), []);
        let empty = table(std::iter::empty()).snapshot().key_sample(0);
        let nulls = table((0..5000).map(|_| None)).snapshot().key_sample(0);
        assert_eq!(shares(&[empty.clone(), one, empty, nulls.clone(), nulls]), []);
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
