//! Counts rows by ranges of their numbers, which are places or buckets, and combines ranges into parts.
//!
//! Ranges are narrow, and a part takes as many neighbouring ranges as it needs: so parts have about equally
//! many rows, however the numbers are distributed.

use super::ProbeKeys;
use crate::exec::join::table::chained::Chained;
use crate::exec::join::table::cht::Buckets;
use crate::exec::join::table::directory::Directory;
use crate::exec::join::tuning::OVERFLOW_PART;
use crate::exec::key_filter::Packing;
use crate::sync::PART_ROWS;
use std::ops::Range;

/// The binary logarithm of the number of ranges of places.
const RANGE_BITS: u32 = 12;
/// The binary logarithm of the least numbers in a range: whole words of a directory.
const MIN_SHIFT: u32 = 6;
/// The most parts.
pub(super) const PARTS: usize = 1 << u8::BITS;
/// The most parts that are closed because they are full. The rest of `PARTS` is headroom for parts closed by
/// their range of numbers, plus the last part.
const FULL_PARTS: usize = 190;
/// The most numbers, and the numbers at which a part is closed: within a part, numbers have 32 bits.
const MOST_NUMBERS: u64 = 1 << 37;
const PART_NUMBERS: u64 = 1 << 31;

const _: () = assert!(FULL_PARTS + (MOST_NUMBERS / PART_NUMBERS) as usize + 1 < PARTS);

/// Buckets per row below which they are too few: with 3, one row in 20 overflows; with 8, one in 140.
const CROWDED: u64 = 3;
/// The approximate size of a sample, and the size at which sampling stops, in rows.
const SAMPLED: f64 = 2048.0;
const MOST_SAMPLED: usize = 1 << 16;

/// What rows are numbered by.
#[derive(Debug, Clone)]
pub(crate) enum Numbering {
    /// The places of their keys: those of a CAT.
    Places(Packing),
    /// The buckets of their hashes: those of a CHT.
    Buckets(Buckets),
}

impl Numbering {
    /// Buckets of a CHT for about this many rows.
    pub(crate) fn buckets(rows: usize) -> Numbering {
        Numbering::Buckets(Buckets::for_rows(rows))
    }

    /// How many numbers there are.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Numbering::Places(packing) => packing.places(),
            Numbering::Buckets(buckets) => buckets.count(),
        }
    }

    /// Bytes of the table of this many rows, of which few overflow.
    pub(crate) fn bytes_of_table(&self, rows: usize) -> usize {
        let overflow = match self {
            Numbering::Places(_) => 0,
            Numbering::Buckets(_) => Chained::bytes_for(rows / OVERFLOW_PART),
        };
        Directory::bytes_for(self.count()) + overflow
    }

    /// True if the numbers are few enough to form parts.
    pub(crate) fn is_possible(&self) -> bool {
        self.count() <= MOST_NUMBERS
    }

    /// The binary logarithm of the numbers in a range. A partition of a CHT is within one range.
    fn shift(&self) -> u32 {
        match self {
            Numbering::Places(packing) => {
                let bits = u64::BITS - (packing.places() - 1).leading_zeros();
                bits.saturating_sub(RANGE_BITS).max(MIN_SHIFT)
            }
            Numbering::Buckets(buckets) => buckets.shift(),
        }
    }

    /// The rows of a chunk with their numbers, for which `room` is memory.
    #[inline(always)]
    pub(super) fn of<'k>(&self, keys: &'k mut ProbeKeys, room: &'k mut Vec<u64>) -> Numbered<'k> {
        match self {
            Numbering::Places(packing) => {
                let (rows, places) = keys.places(packing);
                Numbered { rows, numbers: places, keys: places }
            }
            Numbering::Buckets(buckets) => {
                let (rows, hashes) = keys.hashes();
                room.resize(hashes.len(), 0);
                buckets.write(hashes, room);
                Numbered { rows, numbers: room, keys: hashes }
            }
        }
    }
}

/// The rows of a chunk and their numbers.
pub(super) struct Numbered<'k> {
    /// Rows that can match (`None`: all).
    pub rows: Option<&'k [u16]>,
    /// The number of each row of the chunk.
    pub numbers: &'k [u64],
    /// What distinguishes the key of each row from others: its place or its hash.
    keys: &'k [u64],
}

/// Rows counted by one worker.
pub(crate) struct RangeCount {
    numbering: Numbering,
    shift: u32,
    counts: Vec<u32>,
    room: Vec<u64>,
    sample: Sample,
}

/// A sample to learn whether keys are repeated: all rows of a few keys, which a hash chooses.
struct Sample {
    /// The hash of a key that is chosen has none of these bits.
    mask: u64,
    drawn: Vec<u64>,
}

impl Sample {
    /// A sample of about this many rows.
    fn of(rows: f64) -> Sample {
        Sample { mask: ((rows / SAMPLED) as u64 + 1).next_power_of_two() - 1, drawn: Vec::new() }
    }

    /// Samples the rows of these keys.
    #[inline(always)]
    fn add(&mut self, keys: impl Iterator<Item = u64>) {
        // Some of the repeated keys are enough.
        if self.drawn.len() < MOST_SAMPLED {
            let is_chosen = |key: &u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & self.mask == 0;
            self.drawn.extend(keys.filter(is_chosen));
        }
    }
}

impl RangeCount {
    /// Bytes of the counters.
    pub(crate) fn bytes_for(numbering: &Numbering) -> usize {
        4 * (numbering.count() >> numbering.shift()) as usize
    }

    /// No rows yet, of about `rows` expected ones.
    pub(crate) fn new(numbering: Numbering, rows: f64) -> RangeCount {
        let shift = numbering.shift();
        let ranges = numbering.count().div_ceil(1 << shift) as usize;
        RangeCount { shift, counts: vec![0; ranges], numbering, room: Vec::new(), sample: Sample::of(rows) }
    }

    /// Counts the rows of a chunk, except those that equal nothing. False if counting is of no use because a
    /// key has no place.
    pub(crate) fn add(&mut self, keys: &mut ProbeKeys) -> bool {
        let RangeCount { numbering, shift, counts, room, sample } = self;
        let Numbered { rows, numbers, keys } = numbering.of(keys, room);
        let mut are_inside = true;
        let mut count = |number: u64| match counts.get_mut((number >> *shift) as usize) {
            Some(count) => *count += 1,
            None => are_inside = false,
        };
        match rows {
            None => {
                numbers.iter().for_each(|&number| count(number));
                sample.add(keys.iter().copied());
            }
            Some(rows) => {
                rows.iter().for_each(|&row| count(numbers[usize::from(row)]));
                sample.add(rows.iter().map(|&row| keys[usize::from(row)]));
            }
        }
        are_inside
    }

    /// Average rows per key, from a sample; 0 without rows.
    pub(crate) fn rows_per_key(&self) -> f64 {
        let mut keys = self.sample.drawn.clone();
        keys.sort_unstable();
        keys.dedup();
        self.sample.drawn.len() as f64 / keys.len().max(1) as f64
    }

    /// Adds what another worker has counted.
    pub(crate) fn absorb(&mut self, other: &RangeCount) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, more)| *own += more);
        self.sample.drawn.extend_from_slice(&other.sample.drawn);
    }

    /// The parts of the rows that all workers have counted. Places may be renumbered, since the plan may have
    /// expected keys that do not occur.
    pub(crate) fn finish(self) -> Parts {
        let RangeCount { mut numbering, shift, mut counts, .. } = self;
        let ends = counts.iter().position(|&rows| rows > 0).zip(counts.iter().rposition(|&rows| rows > 0));
        if let (Numbering::Places(packing), Some((first, last))) = (&numbering, ends) {
            let end = ((last as u64 + 1) << shift).min(packing.places());
            if let Some(cut) = packing.cut((first as u64) << shift, end - 1) {
                numbering = Numbering::Places(cut);
                counts.truncate(last + 1);
                counts.drain(..first);
            }
        }
        let rows: usize = counts.iter().map(|&rows| rows as usize).sum();
        let full = PART_ROWS.max(rows.div_ceil(FULL_PARTS));
        let mut parts = Parts {
            of_range: Vec::with_capacity(counts.len()),
            firsts: vec![0],
            starts: vec![0],
            numbering,
            shift,
        };
        let (mut counted, mut own) = (0, 0);
        for (range, &rows) in counts.iter().enumerate() {
            parts.of_range.push((parts.firsts.len() - 1) as u8);
            counted += rows as usize;
            own += rows as usize;
            let end = (range as u64 + 1) << shift;
            let numbers = end - parts.firsts.last().copied().unwrap_or(0);
            if (own >= full || numbers >= PART_NUMBERS) && range + 1 < counts.len() {
                parts.firsts.push(end);
                parts.starts.push(counted);
                own = 0;
            }
        }
        parts.firsts.push(parts.numbering.count());
        parts.starts.push(counted);
        parts
    }
}

/// Which numbers and rows are in which part. The rows of a part have consecutive places, after those of
/// earlier parts.
pub(crate) struct Parts {
    numbering: Numbering,
    /// The part of each range.
    of_range: Vec<u8>,
    shift: u32,
    /// The first number of each part, and the end.
    firsts: Vec<u64>,
    /// The first row of each part, and the end.
    starts: Vec<usize>,
}

impl Parts {
    /// What rows are numbered by.
    pub(crate) fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// True if there are so many rows per bucket that many would overflow.
    pub(crate) fn is_crowded(&self) -> bool {
        matches!(self.numbering, Numbering::Buckets(_))
            && self.all_rows() as u64 * CROWDED > self.numbering.count()
    }

    /// The number of parts.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Rows of all parts.
    pub(crate) fn all_rows(&self) -> usize {
        self.starts[self.count()]
    }

    /// The ids of a part's rows.
    pub(super) fn rows(&self, part: usize) -> Range<usize> {
        self.starts[part]..self.starts[part + 1]
    }

    /// Rows of the largest part.
    pub(super) fn most_rows(&self) -> usize {
        (0..self.count()).map(|part| self.rows(part).len()).max().unwrap_or(0)
    }

    /// The words of the directory in each part.
    pub(super) fn words(&self) -> impl Iterator<Item = usize> + '_ {
        self.firsts.windows(2).map(|pair| (pair[1] - pair[0]).div_ceil(u64::from(u32::BITS)) as usize)
    }

    /// The part of a number, and the number within it; `None` if it is in no part.
    #[inline(always)]
    pub(super) fn find(&self, number: u64) -> Option<(u8, u32)> {
        let part = *self.of_range.get((number >> self.shift) as usize)?;
        Some((part, (number - self.firsts[usize::from(part)]) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::testing::Chance;

    /// The parts of rows with these places.
    fn parts_of(places: u64, rows: &[u64]) -> Parts {
        let mut count =
            RangeCount::new(Numbering::Places(Packing::of(&[(0, places as i64 - 1)]).unwrap()), 1e4);
        rows.iter().for_each(|&place| count.counts[(place >> count.shift) as usize] += 1);
        count.finish()
    }

    #[test]
    fn parts_have_about_as_many_rows_wherever_their_numbers_are() {
        let mut chance = Chance(3);
        for places in [1, 63, 64, 1000, 1 << 20, MOST_NUMBERS] {
            for narrow in [places, places.div_ceil(3), places.div_ceil(1000)] {
                let first = chance.below(places - narrow + 1);
                let rows: Vec<u64> = (0..20_000).map(|_| first + chance.below(narrow)).collect();
                let parts = parts_of(places, &rows);
                let cut = rows.iter().min().unwrap() >> parts.shift << parts.shift;
                assert_eq!(parts.all_rows(), rows.len());
                assert!(parts.count() <= PARTS && parts.numbering.count() <= places - cut);
                let mut counted = vec![0; parts.count()];
                for row in &rows {
                    let (part, number) = parts.find(row - cut).unwrap();
                    assert_eq!(parts.firsts[usize::from(part)] + u64::from(number), row - cut);
                    counted[usize::from(part)] += 1;
                }
                assert!((0..parts.count()).all(|part| parts.rows(part).len() == counted[part]));
                assert_eq!(parts.words().sum::<usize>(), parts.numbering.count().div_ceil(32) as usize);
                // No range has more rows than a part should have, unless all keys are in a few ranges.
                if narrow >> parts.shift >= 200 {
                    assert!(parts.most_rows() < PART_ROWS + 300, "{places}, {narrow}: {}", parts.most_rows());
                }
                let outside = parts.numbering.count().next_multiple_of(1 << parts.shift);
                assert!([outside, u64::MAX - 1, u64::MAX].iter().all(|&number| parts.find(number).is_none()));
            }
        }
        let none = parts_of(1000, &[]);
        assert_eq!((none.count(), none.all_rows(), none.words().sum::<usize>()), (1, 0, 32));
    }
}
