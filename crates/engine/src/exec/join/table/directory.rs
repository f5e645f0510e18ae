//! The directory of a concise table: which places are taken, and how many of those before.
//!
//! A word of 64 bits stands for 32 places: 32 bits that say which are taken, and the count of all that are taken in
//! earlier words. So one access gives a place's *rank*, two bits of memory a place (Barber et al., section 2).

use entasis_vector::prefetch::prefetch;
use entasis_vector::simd::widest;

/// Places of a word.
const WORD_PLACES: u64 = 32;
/// The rank of a place that is not taken.
pub(super) const NO_RANK: u32 = u32::MAX;

/// Which places are taken, and their ranks.
#[derive(Debug)]
pub(super) struct Directory {
    /// Low half: which of 32 places are taken. High half: how many are before them. The last word has none; it stands
    /// for all places beyond.
    words: Vec<u64>,
}

impl Directory {
    /// Words for so many places, none of which is taken, and one more.
    pub(super) fn room(places: u64) -> Vec<u64> {
        vec![0; places.div_ceil(WORD_PLACES) as usize + 1]
    }

    /// The directory of words with room for one more, which have been counted.
    pub(super) fn of(words: Vec<u64>) -> Directory {
        assert_eq!(words.last().map(|&word| word as u32), Some(0), "the last word stands for places beyond");
        Directory { words }
    }

    /// How many taken places are before `place`, if it is taken itself; else [`NO_RANK`].
    #[inline(always)]
    pub(super) fn rank(&self, place: u64) -> u32 {
        rank_of(&self.words, place)
    }

    /// Writes the ranks of `places`.
    pub(super) fn ranks(&self, places: &[u64], out: &mut [u32]) {
        // One loop without a branch, for vector code.
        widest(|| out.iter_mut().zip(places).for_each(|(to, &place)| *to = rank_of(&self.words, place)));
    }

    /// Asks for the word of `place`.
    #[inline(always)]
    pub(super) fn prefetch(&self, place: u64) {
        prefetch(&self.words, (place / WORD_PLACES) as usize);
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

#[inline(always)]
fn rank_of(words: &[u64], place: u64) -> u32 {
    let word = words[((place / WORD_PLACES) as usize).min(words.len() - 1)];
    let is_taken = (word >> (place % WORD_PLACES) & 1) as u32;
    // All bits where the place is not taken. PERF: a branch, which a half of matches makes hard to foresee, took 4 ns a row.
    rank_in(word, place) as u32 | is_taken.wrapping_sub(1)
}

/// How many taken places are before `place`, which stands in `word`.
#[inline(always)]
pub(super) fn rank_in(word: u64, place: u64) -> usize {
    (word >> 32) as usize + (word as u32 & ((1 << (place % WORD_PLACES)) - 1)).count_ones() as usize
}

/// Writes the counts of `words`, before which `before` places are taken; returns how many are with these.
pub(super) fn count(words: &mut [u64], before: usize) -> usize {
    let mut before = before as u64;
    for word in words {
        let bits = *word as u32;
        *word = before << 32 | u64::from(bits);
        before += u64::from(bits.count_ones());
    }
    before as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::testing::Chance;

    #[test]
    fn ranks_are_counts_of_what_is_before() {
        let mut chance = Chance(99);
        for words in [1, 2, 77] {
            for density in [1, 3, 100] {
                let taken: Vec<bool> = (0..words * 32).map(|_| chance.below(density) == 0).collect();
                let mut room = Directory::room(words as u64 * 32);
                (0..taken.len()).filter(|&p| taken[p]).for_each(|p| room[p / 32] |= 1 << (p % 32));
                // Counted in two parts, and in one.
                let mut parts = room.clone();
                let first = count(&mut parts[..words / 2], 0);
                let all = count(&mut parts[words / 2..], first);
                assert_eq!(count(&mut room, 0), all);
                assert_eq!(room, parts);
                let directory = Directory::of(room);
                let beyond = taken.len() as u64;
                let places: Vec<u64> = (0..beyond).chain([beyond, beyond + 31, u64::MAX - 1, u64::MAX]).collect();
                let mut ranks = vec![7; places.len()];
                directory.ranks(&places, &mut ranks);
                let mut before = 0;
                for (&place, rank) in places.iter().zip(ranks) {
                    let is_taken = taken.get(place as usize).copied().unwrap_or(false);
                    assert_eq!(rank, if is_taken { before } else { NO_RANK });
                    assert_eq!(directory.rank(place), rank);
                    before += u32::from(is_taken);
                }
                assert_eq!(before as usize, all);
            }
        }
    }
}
