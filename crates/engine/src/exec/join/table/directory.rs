//! The directory of a concise table: which places are taken, and how many of those before.
//!
//! A word of 64 bits stands for 32 places: 32 bits that say which are taken, and the count of all that are taken in
//! earlier words. So one access gives a place's *rank*, two bits of memory a place (Barber et al., section 2).

use entasis_vector::prefetch::prefetch;

/// Which places are taken, and their ranks.
#[derive(Debug)]
pub(super) struct Directory {
    /// Low half: which of 32 places are taken. High half: how many are before them.
    words: Vec<u64>,
}

/// Places of a word.
pub(super) const WORD_PLACES: u64 = 32;

impl Directory {
    /// A directory whose words have their low halves as given and 0 above; counts what is before. Parts that are counted
    /// one by one come through [`count`].
    pub(super) fn counted(mut words: Vec<u64>) -> Directory {
        count(&mut words, 0);
        Directory { words }
    }

    /// A directory of words that have been counted.
    pub(super) fn of(words: Vec<u64>) -> Directory {
        Directory { words }
    }

    /// How many taken places are before `place`, if it is taken itself; else `usize::MAX`.
    #[inline(always)]
    pub(super) fn rank(&self, place: u64) -> usize {
        let (word, bit) = (self.word(place), 1u32 << (place % WORD_PLACES));
        if word as u32 & bit != 0 { rank_in(word, place) } else { usize::MAX }
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

    #[inline(always)]
    fn word(&self, place: u64) -> u64 {
        self.words.get((place / WORD_PLACES) as usize).copied().unwrap_or(0)
    }
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
                let mut low = vec![0u64; words];
                (0..taken.len()).filter(|&p| taken[p]).for_each(|p| low[p / 32] |= 1 << (p % 32));
                let directory = Directory::counted(low.clone());
                let mut before = 0;
                for (place, &taken) in taken.iter().enumerate() {
                    assert_eq!(directory.rank(place as u64), if taken { before } else { usize::MAX });
                    before += usize::from(taken);
                }
                for beyond in [taken.len() as u64, u64::MAX - 1, u64::MAX] {
                    assert_eq!(directory.rank(beyond), usize::MAX);
                }
                // The same, counted in two parts.
                let half = words / 2;
                let first = count(&mut low[..half], 0);
                assert_eq!(count(&mut low[half..], first), before);
                assert_eq!(Directory::of(low).words, directory.words);
            }
        }
    }
}
