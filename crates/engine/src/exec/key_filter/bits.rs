//! A bitmap of keys: one bit per place tells whether the key exists. It is a filter for the probe side's
//! scans ([`super::filter`]), and the table of joins that need no more (`bitmap` in
//! [`crate::exec::join::table`]).

use super::build_keys::for_each_batch;
use super::places::{NOWHERE, Packing};
use crate::exec::gather::gather;
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Tasks, in_parallel};
use crate::exec::prefetch::{BLOCK, visit};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use entasis_vector::simd::{Kernel, widest_of};
use entasis_vector::{Array, Result, Slots};
use std::cell::Cell;
use std::iter::repeat;

/// Words of bits that one task works on.
pub(crate) const TASK_WORDS: usize = if cfg!(test) { 1 << 4 } else { 1 << 15 };
/// The most words that are read for a range of places.
const RANGE_WORDS: u64 = 1024;

/// A bit for each place: whether it is taken.
#[derive(Debug)]
pub(crate) struct Bits {
    words: Array<u64>,
    /// Rows that have a place.
    rows: usize,
    /// Places that are taken.
    keys: usize,
}

impl Bits {
    /// The places of the keys of `rows`, all of which have a place in `packing` or are nowhere.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn of(rows: &Materialized, packing: &Packing, tasks: &dyn Tasks) -> Result<Bits> {
        let words = Slots::zeroed(packing.places().div_ceil(64) as usize, 8);
        let (placed, keys) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let shared = rows.segments() > 1;
        tasks.run(rows.segments(), &|segment| {
            let (mut own_placed, mut own_keys) = (0, 0);
            for_each_batch(rows, segment, packing, &mut |_, places| {
                for &place in places.iter().filter(|&&place| place != NOWHERE) {
                    own_placed += 1;
                    own_keys += usize::from(words.set_bit(place as usize, shared));
                }
            });
            placed.fetch_add(own_placed, Ordering::Relaxed);
            keys.fetch_add(own_keys, Ordering::Relaxed);
            Ok(())
        })?;
        let words = Array::of(words.into_buffer(), packing.places().div_ceil(64) as usize);
        Ok(Bits { words, rows: placed.into_inner(), keys: keys.into_inner() })
    }

    /// Bytes of the bits of this many places.
    pub(crate) fn bytes_for(places: u64) -> usize {
        Array::<u64>::bytes_for(places.div_ceil(64) as usize)
    }

    /// Bits that are set already, if no caller needs to know how often keys occur.
    pub(crate) fn of_words(words: &[AtomicU64]) -> Bits {
        let mut all = Array::zeroed(words.len());
        all.iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Ordering::Relaxed));
        Bits { words: all, rows: usize::MAX, keys: 0 }
    }

    /// The bits in the low halves of `words` of a directory, with the number of rows and keys.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn of_directory(
        words: &[u64],
        (rows, keys): (usize, usize),
        tasks: &dyn Tasks,
    ) -> Result<Bits> {
        let mut all = Array::zeroed(words.len().div_ceil(2));
        let parts = all.chunks_mut(TASK_WORDS).zip(words.chunks(2 * TASK_WORDS)).collect();
        in_parallel(tasks, parts, &|_, (all, words)| {
            let low = |words: &[u64]| {
                words.iter().rev().fold(0, |bits, word| bits << 32 | word & u64::from(u32::MAX))
            };
            all.iter_mut().zip(words.chunks(2)).for_each(|(to, words)| *to = low(words));
            Ok(())
        })?;
        Ok(Bits { words: all, rows, keys })
    }

    /// These bits without the places before `first`, a multiple of 64, and from `end` on, none of which is
    /// taken. Meanwhile the bits may exist twice.
    pub(crate) fn cut(self, first: u64, end: u64) -> Bits {
        let kept = &self.words[(first / 64) as usize..end.div_ceil(64) as usize];
        if kept.len() == self.words.len() {
            return self;
        }
        let mut words = Array::zeroed(kept.len());
        words.copy_from_slice(kept);
        Bits { words, ..self }
    }

    /// The first and the last place that is taken.
    pub(crate) fn ends(&self) -> Option<(u64, u64)> {
        let first = self.words.iter().position(|&word| word != 0)?;
        let last = self.words.iter().rposition(|&word| word != 0)?;
        let within = |word: u64, zeros: u32| word * 64 + u64::from(zeros);
        let first = within(first as u64, self.words[first].trailing_zeros());
        Some((first, within(last as u64, 63 - self.words[last].leading_zeros())))
    }

    /// True if `place` is taken: the slow twin of the kernel below.
    #[cfg(test)]
    pub(crate) fn is_taken(&self, place: u64) -> bool {
        let word = self.words.get(word_of(place)).map_or(0, |word| *word);
        word >> (place % 64) & 1 != 0
    }
    /// Writes for each place whether it is taken.
    pub(crate) fn look_up(&self, places: &[u64], is_taken: &mut [bool]) {
        self.write(places, is_taken, (true, false));
    }
    /// False if none of the places from `first` to `last` is taken; true if finding out would take long.
    pub(crate) fn may_have_between(&self, first: u64, last: u64) -> bool {
        let (from, to) = (first / 64, (last / 64).min(self.words.len().saturating_sub(1) as u64));
        if to.saturating_sub(from) >= RANGE_WORDS {
            return true;
        }
        let inside = |at: u64| {
            let after = if at == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
            let before = if at == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            after & before
        };
        (from..=to).any(|at| self.words.get(at as usize).is_some_and(|word| word & inside(at) != 0))
    }

    /// Writes one of two values for each place: the first if it is taken, the second if not.
    pub(crate) fn write<T: Copy>(&self, places: &[u64], out: &mut [T], (taken, free): (T, T)) {
        let (mut words, end) = ([0; BLOCK], self.words.len() as u64 * 64);
        for (places, out) in places.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            gather(&self.words, places, word_of, &mut words);
            widest_of(LookUp { words: &words, end, places, out, taken, free });
        }
    }
    /// The number of taken places, counted again.
    pub(crate) fn taken(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
    /// Average rows per key, if they were counted.
    pub(crate) fn rows_per_key(&self) -> Option<f64> {
        (self.keys > 0).then(|| self.rows as f64 / self.keys as f64)
    }
    /// True if no key occurs twice.
    pub(crate) fn is_unique(&self) -> bool {
        self.rows == self.keys
    }
    /// Rows that have a place.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }
    /// Distinct keys.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }
    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.words.bytes()
    }
}

impl AsRef<[u64]> for Bits {
    fn as_ref(&self) -> &[u64] {
        &self.words
    }
}

/// The index of the word that has a place.
#[inline(always)]
fn word_of(place: u64) -> usize {
    (place / 64) as usize
}

/// The bits that one worker sets while keys arrive.
pub(crate) struct BitsCount {
    words: Array<u64>,
    rows: usize,
    keys: usize,
}

impl BitsCount {
    /// No place is taken yet.
    pub(crate) fn new(places: u64) -> BitsCount {
        BitsCount { words: Array::zeroed(places.div_ceil(64) as usize), rows: 0, keys: 0 }
    }

    /// Takes the places of a chunk's `rows` (`None`: all). Returns whether all of them were below the number
    /// of places, and whether all were free.
    #[inline(always)]
    pub(crate) fn add(&mut self, places: &[u64], rows: Option<&[u16]>) -> (bool, bool) {
        let count = rows.map_or(places.len(), <[u16]>::len);
        // Cells allow one word to be prefetched while another is written.
        let words = Cell::from_mut(&mut *self.words).as_slice_of_cells();
        let (mut inside, mut new, mut block) = (0, 0, [0; BLOCK]);
        for first in (0..count).step_by(BLOCK) {
            let block = &mut block[..(count - first).min(BLOCK)];
            match rows {
                None => block.copy_from_slice(&places[first..first + block.len()]),
                Some(rows) => {
                    block.iter_mut().zip(&rows[first..]).for_each(|(to, &row)| *to = places[usize::from(row)])
                }
            }
            visit(words, block, word_of, repeat(()), |place, ()| {
                let Some(word) = words.get(word_of(place)) else { return };
                let (old, bit) = (word.get(), 1 << (place % 64));
                inside += 1;
                new += usize::from(old & bit == 0);
                word.set(old | bit);
            });
        }
        self.rows += inside;
        self.keys += new;
        (inside == count, new == inside)
    }

    /// Adds what another worker has counted.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn absorb(&mut self, other: &BitsCount, tasks: &dyn Tasks) -> Result<()> {
        let repeated = AtomicUsize::new(0);
        let parts = self.words.chunks_mut(TASK_WORDS).zip(other.words.chunks(TASK_WORDS)).collect();
        in_parallel(tasks, parts, &|_, (own, more)| {
            repeated.fetch_add(widest_of(Union { own, more }), Ordering::Relaxed);
            Ok(())
        })?;
        self.rows += other.rows;
        self.keys += other.keys - repeated.into_inner();
        Ok(())
    }

    pub(crate) fn finish(self) -> Bits {
        Bits { words: self.words, rows: self.rows, keys: self.keys }
    }
}

/// Adds `more` to `own`, and counts the bits that both have.
struct Union<'a> {
    own: &'a mut [u64],
    more: &'a [u64],
}

impl Kernel for Union<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let add = |(own, &more): (&mut u64, &u64)| {
            let both = *own & more;
            *own |= more;
            both.count_ones() as usize
        };
        self.own.iter_mut().zip(self.more).map(add).sum()
    }
}

/// A branch-free loop, for vector code.
struct LookUp<'a, T> {
    /// The word of each place.
    words: &'a [u64],
    /// The number of places.
    end: u64,
    places: &'a [u64],
    out: &'a mut [T],
    /// The values for a place that is taken, and for one that is not.
    taken: T,
    free: T,
}

impl<T: Copy> Kernel for LookUp<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let LookUp { words, end, places, out, taken, free } = self;
        let count = out.len().min(places.len()).min(words.len());
        let (words, places, out) = (&words[..count], &places[..count], &mut out[..count]);
        // PERF: a loop, since a fold over zipped iterators is not compiled for the vectors that there are.
        for i in 0..count {
            let is_taken = (words[i] >> (places[i] % 64) & 1 != 0) & (places[i] < end);
            out[i] = if is_taken { taken } else { free };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::materialized::column_of;
    use crate::exec::testing::{Chance, TwoThreads};
    use entasis_vector::{CHUNK_ROWS, DataType, Vector};

    #[test]
    fn bits_say_of_places_and_ranges_what_a_list_of_keys_says() {
        let mut chance = Chance(7);
        for (count, width) in [(0, 1), (1, 1), (3, 700), (300, 300), (2000, 500_000)] {
            let mut keys: Vec<i64> = (0..count).map(|_| chance.below(width) as i64).collect();
            let mut rows = Materialized::new(&[column_of(DataType::Int64)]);
            keys.chunks(CHUNK_ROWS)
                .for_each(|keys| rows.append_vectors(&[(&Vector::from_slice(keys), None)], keys.len()));
            let packing = Packing::of(&[(0, width as i64 - 1)]).unwrap();
            let bits = Bits::of(&rows, &packing, &TwoThreads).unwrap();
            assert_eq!(bits.bytes(), Bits::bytes_for(width));
            keys.sort_unstable();
            let has = |from: u64, to: u64| keys.iter().any(|&key| (from..=to).contains(&(key as u64)));
            let places: Vec<u64> = (0..2000).chain([width - 1, width, u64::MAX, NOWHERE]).collect();
            let mut taken = vec![true; places.len()];
            bits.look_up(&places, &mut taken);
            for (&place, taken) in places.iter().zip(taken) {
                assert_eq!(
                    (bits.is_taken(place), taken),
                    (has(place, place), has(place, place)),
                    "{place} of {width}"
                );
            }
            let mut ruled_out = 0;
            for _ in 0..500 {
                let first = chance.below(width);
                let last = first + chance.below(200);
                assert!(
                    bits.may_have_between(first, last) == has(first, last),
                    "{first} to {last} of {width}"
                );
                ruled_out += usize::from(!has(first, last));
            }
            assert!(ruled_out > 0 || count >= 300 || width == 1 && count == 1);
            // Large ranges are not searched.
            assert!(bits.may_have_between(0, width - 1) || count == 0);
        }
    }
}
