//! A wavelet matrix (Claude, Navarro and Ordóñez, *The Wavelet Matrix*, Information Systems 2015): a sequence
//! of numbers. For any stretch of them it tells how many are below a bound, and which is the nth smallest, in
//! time proportional to the bits of a number.
//!
//! Level by level, from the highest bit, the numbers with a zero there are put before those with a one, both
//! in their order. For each level only the bits are kept, with the count of zeros before each word: less than
//! two bits per number and level. The numbers of a stretch that share their bits so far stay a stretch.

use super::section::{TASK_ROWS, task_ranges};
use crate::exec::operator::{Tasks, in_parallel};
use entasis_vector::Result;
use std::ops::Range;

/// See the module.
pub struct Wavelet {
    /// The levels, from the highest bit.
    levels: Vec<Level>,
    len: usize,
}

struct Level {
    /// 64 bits, and the number of zeros before them.
    words: Vec<(u64, u32)>,
    zeros: u32,
}

impl Level {
    /// The number of zeros before `position`.
    #[inline]
    fn zeros_before(&self, position: usize) -> usize {
        let (word, zeros) = self.words[position / 64];
        let below = (1u64 << (position % 64)) - 1;
        zeros as usize + (!word & below).count_ones() as usize
    }

    /// Where a stretch continues in the next level: its zeros, and its ones.
    #[inline]
    fn split(&self, range: &Range<usize>) -> (Range<usize>, Range<usize>) {
        let zeros = self.zeros_before(range.start)..self.zeros_before(range.end);
        let ones = self.zeros as usize;
        let (start, end) = (ones + range.start - zeros.start, ones + range.end - zeros.end);
        (zeros, start..end)
    }
}

impl Wavelet {
    /// The most bytes that making the matrix of `len` items takes, each of `width` bytes, with the matrix.
    pub fn bytes_for(len: usize, width: usize) -> usize {
        let levels = (usize::BITS - len.leading_zeros()) as usize + 1;
        2 * len * width + levels * (len / 64 + 1) * size_of::<(u64, u32)>()
    }

    /// The matrix of `numbers`.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(numbers: Vec<u32>, tasks: &dyn Tasks) -> Result<Wavelet> {
        Wavelet::of_items(numbers, |number| *number, |_| {}, tasks)
    }

    /// The matrix of the numbers of `items`. Level by level, `zeros` gets the items whose number has a zero
    /// there, in their new order.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn of_items<T: Copy + Default + Send + Sync>(
        mut items: Vec<T>,
        number: impl Fn(&T) -> u32 + Sync,
        mut zeros_of: impl FnMut(&[T]),
        tasks: &dyn Tasks,
    ) -> Result<Wavelet> {
        let len = items.len();
        let bits = u32::BITS - items.iter().map(&number).max().unwrap_or(0).leading_zeros();
        let mut levels = Vec::with_capacity(bits as usize);
        let mut next = vec![T::default(); len];
        for bit in (0..bits).rev() {
            let is_zero = |item: &T| number(item) >> bit & 1 == 0;
            // Bits and zeros of each range, then where its zeros and its ones go.
            let mut words = vec![(0u64, 0u32); len / 64 + 1];
            let parts: Vec<_> = items.chunks(TASK_ROWS).zip(words.chunks_mut(TASK_ROWS / 64)).collect();
            in_parallel(tasks, parts, &|_, (items, words)| {
                let mut zeros = 0;
                for (items, word) in items.chunks(64).zip(words.iter_mut()) {
                    let ones: u64 =
                        items.iter().enumerate().map(|(i, item)| u64::from(!is_zero(item)) << i).sum();
                    *word = (ones, zeros);
                    zeros += (items.len() as u32) - ones.count_ones();
                }
                tasks.check()
            })?;
            let ranges = task_ranges(len);
            let mut zeros = 0;
            let mut counts = Vec::with_capacity(ranges.len());
            for range in &ranges {
                let own = &mut words[range.start / 64..range.end.div_ceil(64)];
                let (last, before) = own[own.len() - 1];
                let rest = range.end - (range.end - 1) / 64 * 64;
                let count = before + rest as u32 - last.count_ones();
                own.iter_mut().for_each(|(_, before)| *before += zeros);
                counts.push(count as usize);
                zeros += count;
            }
            if len.is_multiple_of(64) {
                words[len / 64] = (0, zeros);
            }
            let (mut to_zeros, mut to_ones) = next.split_at_mut(zeros as usize);
            let mut parts = Vec::with_capacity(ranges.len());
            for (range, count) in ranges.into_iter().zip(counts) {
                let (zeros, rest) = to_zeros.split_at_mut(count);
                let (ones, other_rest) = to_ones.split_at_mut(range.len() - count);
                (to_zeros, to_ones) = (rest, other_rest);
                parts.push((&items[range], zeros, ones));
            }
            in_parallel(tasks, parts, &|_, (items, zeros, ones)| {
                let (mut zeros, mut ones) = (zeros.iter_mut(), ones.iter_mut());
                for item in items.iter() {
                    let place = if is_zero(item) { zeros.next() } else { ones.next() };
                    place.into_iter().for_each(|place| *place = *item);
                }
                tasks.check()
            })?;
            zeros_of(&next[..zeros as usize]);
            std::mem::swap(&mut items, &mut next);
            levels.push(Level { words, zeros });
        }
        Ok(Wavelet { levels, len })
    }

    /// How many of the numbers in `range` are below `bound`.
    pub fn below(&self, range: Range<usize>, bound: u32) -> usize {
        self.each_below(range, bound, |_, _| {})
    }

    /// The same. Calls `take` with the stretches of these numbers: a level, and places among those with a
    /// zero there; or the number of levels, and places among all.
    pub fn each_below(
        &self,
        mut range: Range<usize>,
        bound: u32,
        mut take: impl FnMut(usize, Range<usize>),
    ) -> usize {
        debug_assert!(range.end <= self.len);
        let bits = self.levels.len();
        if bits < 32 && bound >> bits != 0 {
            take(bits, range.clone());
            return range.len();
        }
        let mut count = 0;
        for (i, level) in self.levels.iter().enumerate() {
            if range.is_empty() {
                break;
            }
            let (zeros, ones) = level.split(&range);
            if bound >> (bits - 1 - i) & 1 == 1 {
                count += zeros.len();
                take(i, zeros);
                range = ones;
            } else {
                range = zeros;
            }
        }
        count
    }

    /// The `n`th smallest of the numbers in all of `ranges`, from 0, of which there are more.
    pub fn nth<const N: usize>(&self, mut ranges: [Range<usize>; N], mut n: usize) -> u32 {
        debug_assert!(n < ranges.iter().map(ExactSizeIterator::len).sum::<usize>());
        let mut number = 0;
        for level in &self.levels {
            let parts =
                ranges.clone().map(|range| if range.is_empty() { (0..0, 0..0) } else { level.split(&range) });
            let zeros: usize = parts.iter().map(|(zeros, _)| zeros.len()).sum();
            let is_one = n >= zeros;
            number = number << 1 | u32::from(is_one);
            if is_one {
                n -= zeros;
            }
            ranges = parts.map(|(zeros, ones)| if is_one { ones } else { zeros });
        }
        number
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.words.capacity() * size_of::<(u64, u32)>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::testing::{Chance, TwoThreads};

    #[test]
    fn stretches_are_counted_and_picked_from() {
        let mut chance = Chance(99);
        for len in [0, 1, 2, 63, 64, 65, 128, 500, TASK_ROWS + 70, 2 * TASK_ROWS] {
            for most in [1, 2, 40, 1 << 31] {
                let numbers: Vec<u32> = (0..len).map(|_| chance.below(most) as u32).collect();
                let wavelet = Wavelet::new(numbers.clone(), &TwoThreads).unwrap();
                for _ in 0..30 {
                    let start = chance.below(len as u64 + 1) as usize;
                    let range = start..start + chance.below((len - start) as u64 + 1) as usize;
                    let mut sorted = numbers[range.clone()].to_vec();
                    sorted.sort_unstable();
                    for bound in [0, 1, chance.below(most + 1) as u32, u32::MAX] {
                        let expected = sorted.partition_point(|&number| number < bound);
                        assert_eq!(
                            wavelet.below(range.clone(), bound),
                            expected,
                            "{range:?} of {len}, below {bound}"
                        );
                    }
                    if let Some(n) = (!sorted.is_empty()).then(|| chance.below(sorted.len() as u64) as usize)
                    {
                        assert_eq!(wavelet.nth([range.clone()], n), sorted[n], "{range:?} of {len}");
                        let middle = range.start.midpoint(range.end);
                        let halves = [range.start..middle, middle..range.end];
                        assert_eq!(wavelet.nth(halves, n), sorted[n], "{range:?} of {len}, in halves");
                    }
                }
            }
        }
    }
}
