//! A Bloom filter over the hashes of keys, in blocks of one word.
//!
//! The high half of a key's hash chooses one word, and the low half four of the word's bits. The key may
//! exist if all four are set. So a test is one memory access, and the work on many words is vector code
//! (Lang, Neumann, Kemper and Boncz, *Performance-Optimal Filtering*, VLDB 2019; Bandle, Giceva and Neumann,
//! *To Partition, or Not to Partition*, SIGMOD 2021, section 4.7). With [`KEY_BITS`] bits per key, about one
//! absent key in a hundred passes. No existing key is ever missed.
//!
//! All workers fill the filter at once. Unlike in the second paper, where a partition owns its blocks, each
//! word is written by an atomic instruction, since the rows are not partitioned here.

use super::build_keys::{BuildInput, KeyHashes};
use crate::exec::gather::gather;
use crate::exec::prefetch::{BLOCK, visit};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use entasis_vector::Result;
use entasis_vector::simd::{Kernel, widest_of};

/// Bits of memory for each row.
const KEY_BITS: usize = 12;

/// See the module.
#[derive(Debug)]
pub(crate) struct Bloom {
    words: Vec<u64>,
    /// The number of rows whose keys were added.
    rows: usize,
}

/// Words of a filter of this many rows; at least one.
fn words_for(rows: usize) -> usize {
    (rows * KEY_BITS).div_ceil(64).max(1)
}

/// The index of a hash's word. The number of words has 32 bits.
#[inline(always)]
fn word_of(hash: u64, words: u64) -> usize {
    (((hash >> 32) * words) >> 32) as usize
}

/// The bits of a hash in its word.
#[inline(always)]
fn bits_of(hash: u64) -> u64 {
    let bit = |shift: u32| 1u64 << (hash >> shift & 63);
    bit(0) | bit(6) | bit(12) | bit(18)
}

impl Bloom {
    /// Bytes of a filter of this many rows.
    pub(crate) fn bytes_for(rows: usize) -> usize {
        words_for(rows) * 8
    }

    /// A filter of the keys of all rows that can match.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn of(input: &BuildInput<'_>) -> Result<Bloom> {
        let rows = input.rows;
        let words: Vec<AtomicU64> = (0..words_for(rows.rows())).map(|_| AtomicU64::new(0)).collect();
        let (count, shared) = (words.len() as u64, rows.segments() > 1);
        let put = AtomicUsize::new(0);
        input.tasks.run(rows.segments(), &|segment| {
            KeyHashes::new(input).for_each(
                input,
                segment,
                0..rows.segment_rows(segment),
                |_, hashes, nulls| {
                    let mut left = nulls.iter().peekable();
                    visit(
                        &words,
                        hashes,
                        |hash| word_of(hash, count),
                        0..,
                        |hash, i: usize| {
                            if left.next_if(|&&null| null as usize == i).is_some() {
                                return;
                            }
                            let (at, bits) = (word_of(hash, count), bits_of(hash));
                            let old = words[at].load(Ordering::Relaxed);
                            if old & bits == bits {
                                return;
                            }
                            // Another worker may set other bits of the word.
                            if shared {
                                words[at].fetch_or(bits, Ordering::Relaxed);
                            } else {
                                words[at].store(old | bits, Ordering::Relaxed);
                            }
                        },
                    );
                    put.fetch_add(hashes.len() - nulls.len(), Ordering::Relaxed);
                },
            );
            Ok(())
        })?;
        let words = words.into_iter().map(AtomicU64::into_inner).collect();
        Ok(Bloom { words, rows: put.into_inner() })
    }

    /// True if there is no key.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Writes for each hash whether its key may exist.
    pub(crate) fn look_up(&self, hashes: &[u64], may_be: &mut [bool]) {
        let (mut words, count) = ([0; BLOCK], self.words.len() as u64);
        for (hashes, may_be) in hashes.chunks(BLOCK).zip(may_be.chunks_mut(BLOCK)) {
            gather(&self.words, hashes, |hash| word_of(hash, count), &mut words);
            widest_of(LookUp { words: &words, hashes, may_be });
        }
    }
}

/// A branch-free loop, for vector code.
struct LookUp<'a> {
    /// The word of each hash.
    words: &'a [u64],
    hashes: &'a [u64],
    may_be: &'a mut [bool],
}

impl Kernel for LookUp<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.may_be.iter_mut().zip(self.hashes).zip(self.words).for_each(|((to, &hash), &word)| {
            let bits = bits_of(hash);
            *to = word & bits == bits;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::materialized::{Materialized, column_of};
    use crate::exec::testing::{Chance, TwoThreads};
    use entasis_vector::hash::{combine, hash_bytes, hash_u64};
    use entasis_vector::{CHUNK_ROWS, DataType, Value, Vector};
    use std::collections::BTreeSet;

    /// A filter of these values of one column, in several segments.
    fn filter_of(values: &[i64], hash_collisions: bool) -> Bloom {
        let mut rows = Materialized::new(&[column_of(DataType::Int64)]);
        for values in values.chunks(CHUNK_ROWS) {
            rows.append_vectors(&[(&Vector::from_slice(values), None)], values.len());
        }
        Bloom::of(&BuildInput {
            rows: &rows,
            null_equals_null: &[false],
            hash_collisions,
            tasks: &TwoThreads,
        })
        .unwrap()
    }

    fn look_up(bloom: &Bloom, hashes: &[u64]) -> Vec<bool> {
        let mut may_be = vec![false; hashes.len()];
        bloom.look_up(hashes, &mut may_be);
        may_be
    }

    #[test]
    fn no_key_is_missed_and_few_others_are_taken_for_one() {
        let mut chance = Chance(2021);
        // Random keys, and sequences with steps that a weak hash would not spread.
        for (count, step) in
            [(1, 1), (100, 1), (3000, 1 << 32), (70_000, 1), (200_000, 1_000_003), (150_000, 0)]
        {
            let key = |i: i64| i.wrapping_mul(step);
            let keys: BTreeSet<i64> = match step {
                0 => (0..count).map(|_| chance.below(1 << 62) as i64).collect(),
                _ => (0..count).map(key).collect(),
            };
            let values: Vec<i64> = keys.iter().copied().collect();
            let bloom = filter_of(&values, false);
            assert_eq!((bloom.bytes(), bloom.is_empty()), (Bloom::bytes_for(keys.len()), false));
            assert!(bloom.bytes() * 8 <= keys.len() * KEY_BITS + 64);
            let hashes: Vec<u64> = values.iter().map(|&v| hash_u64(v as u64)).collect();
            assert!(look_up(&bloom, &hashes).iter().all(|&may_be| may_be), "{count} keys {step} apart");
            let others: Vec<u64> = match step {
                0 => {
                    (0..100_000).map(|_| chance.below(1 << 62) as i64).filter(|v| !keys.contains(v)).collect()
                }
                _ => (count..count + 100_000).map(key).collect::<Vec<i64>>(),
            }
            .into_iter()
            .map(|v| hash_u64(v as u64))
            .collect();
            let taken = look_up(&bloom, &others).iter().filter(|&&may_be| may_be).count();
            // In a filter of one word, a few keys set all bits.
            assert!(
                taken * 100 <= others.len() * 2,
                "{taken} of {} for {count} keys {step} apart",
                others.len()
            );
        }
    }

    #[test]
    fn keys_that_are_null_are_not_there() {
        let mut rows = Materialized::new(&[column_of(DataType::Varchar), column_of(DataType::Int64)]);
        let text = |i: i64| format!("a text of some length, number {i}");
        for i in 0..4000 {
            let name = if i % 5 == 0 { Value::Null } else { Value::Text(text(i).into()) };
            let number = if i % 7 == 0 { Value::Null } else { Value::Integer(i.into()) };
            let name = Vector::from_values(DataType::Varchar.physical(), &[name]).unwrap();
            let number = Vector::from_values(DataType::Int64.physical(), &[number]).unwrap();
            rows.append_vectors(&[(&name, None), (&number, None)], 1);
        }
        let nulls = [false, false];
        let input =
            BuildInput { rows: &rows, null_equals_null: &nulls, hash_collisions: false, tasks: &TwoThreads };
        let bloom = Bloom::of(&input).unwrap();
        assert_eq!(bloom.rows, (0..4000).filter(|i| i % 5 != 0 && i % 7 != 0).count());
        let hash = |i: i64| combine(hash_bytes(text(i).as_bytes()), hash_u64(i as u64));
        let hashes: Vec<u64> = (0..4000).map(hash).collect();
        let may_be = look_up(&bloom, &hashes);
        assert!((0..4000).filter(|i| i % 5 != 0 && i % 7 != 0).all(|i| may_be[i]));
        assert!(may_be.iter().filter(|&&may_be| may_be).count() < bloom.rows + 100);
    }

    #[test]
    fn without_keys_nothing_is_there_and_under_collisions_everything() {
        let none = filter_of(&[], false);
        assert!(none.is_empty() && !look_up(&none, &[0, 1, u64::MAX]).contains(&true));
        let collided = filter_of(&[1, 2, 3], true);
        assert_eq!(look_up(&collided, &[0, 0]), [true, true]);
    }
}
