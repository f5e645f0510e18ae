//! The directory of a concise table: which places are taken, and how many taken ones are before each.
//!
//! A word of 64 bits covers 32 places: 32 bits tell which are taken, and the other half counts all taken
//! places in earlier words. So one access gives a place's *rank*, for two bits of memory per place (Barber et
//! al., section 2).

use crate::exec::gather::{gather, read};
use crate::exec::prefetch::BLOCK;
use entasis_vector::Array;
use entasis_vector::simd::{Kernel, widest_of};

/// Places in a word.
const WORD_PLACES: u64 = 32;
/// The rank of a place that is not taken.
pub(super) const NO_RANK: u32 = u32::MAX;

/// Which places are taken, and their ranks.
#[derive(Debug)]
pub(super) struct Directory {
    /// Low half: which of 32 places are taken. High half: how many are taken before them. In the last word
    /// none is taken; it stands for all places beyond.
    words: Array<u64>,
}

impl Directory {
    /// Words for this many places, none of which is taken, and one more.
    pub(super) fn room(places: u64) -> Array<u64> {
        Array::zeroed(Directory::words_for(places))
    }

    fn words_for(places: u64) -> usize {
        places.div_ceil(WORD_PLACES) as usize + 1
    }

    /// The directory of counted words, of which the last is the extra one.
    pub(super) fn of(words: Array<u64>) -> Directory {
        assert_eq!(words.last().map(|&word| word as u32), Some(0), "the last word stands for places beyond");
        Directory { words }
    }

    /// The bytes of a directory of this many places.
    pub(super) fn bytes_for(places: u64) -> usize {
        Array::<u64>::bytes_for(Directory::words_for(places))
    }

    /// How many taken places are before `place`, if it is taken itself; else [`NO_RANK`].
    #[inline(always)]
    pub(super) fn rank(&self, place: u64) -> u32 {
        rank(self.words[word_of(place).min(self.words.len() - 1)], place)
    }

    /// Writes the ranks of `places`.
    pub(super) fn ranks(&self, places: &[u64], out: &mut [u32]) {
        write_ranks(&self.words, places, out);
    }

    /// Writes the words of `places`.
    pub(super) fn gather(&self, places: &[u64], words: &mut [u64]) {
        gather(&self.words, places, word_of, words);
    }

    /// Writes the words of `places`, the neighbours of places whose words have just been written.
    // PERF: 31 of 32 are in the same word, nearly all others in the same cache line.
    pub(super) fn fetch_neighbours(&self, places: &[u64], words: &mut [u64]) {
        read(&self.words, places, word_of, words);
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }
}

/// Writes the ranks of `places` in counted words; places beyond the last word share its rank.
pub(super) fn write_ranks(all: &[u64], places: &[u64], out: &mut [u32]) {
    let mut words = [0; BLOCK];
    for (places, out) in places.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let words = &mut words[..places.len()];
        gather(all, places, word_of, words);
        widest_of(Ranks { words, places, out });
    }
}

/// The ranks of places whose words are known.
struct Ranks<'a> {
    words: &'a [u64],
    places: &'a [u64],
    out: &'a mut [u32],
}

impl Kernel for Ranks<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let words = self.words.iter().zip(self.places);
        self.out.iter_mut().zip(words).for_each(|(to, (&word, &place))| *to = rank(word, place));
    }
}

/// The index of the word that has a place.
#[inline(always)]
fn word_of(place: u64) -> usize {
    (place / WORD_PLACES) as usize
}

/// How many taken places are before `place`, which is in `word`, if it is taken itself; otherwise
/// [`NO_RANK`].
// PERF: a branch, which is hard to predict if half of the rows match, took 4 ns per row.
#[inline(always)]
pub(super) fn rank(word: u64, place: u64) -> u32 {
    rank_in(word, place) as u32 | free(word, place)
}

/// The rank of a place whose neighbour's rank is known: the neighbour is the place before it, which is taken,
/// or the last place of a partition that this place begins.
// PERF: counting bits again took a fifth of a lookup.
#[inline(always)]
pub(super) fn rank_after((before, rank): (u64, u32), word: u64, place: u64) -> u32 {
    let own = if place > before { rank.wrapping_add(1) } else { (word >> 32) as u32 };
    own | free(word, place)
}

/// All bits if `place`, which is in `word`, is not taken; otherwise none.
#[inline(always)]
fn free(word: u64, place: u64) -> u32 {
    ((word >> (place % WORD_PLACES) & 1) as u32).wrapping_sub(1)
}

/// How many taken places are before `place`, which is in `word`.
#[inline(always)]
pub(super) fn rank_in(word: u64, place: u64) -> usize {
    (word >> 32) as usize + (word as u32 & ((1 << (place % WORD_PLACES)) - 1)).count_ones() as usize
}

/// Writes the counts of `words`, before which `before` places are taken; returns how many are taken including
/// these.
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
        for words in [1, 2, 77, 4 * BLOCK + 3] {
            for density in [1, 3, 100] {
                let taken: Vec<bool> = (0..words * 32).map(|_| chance.below(density) == 0).collect();
                let mut room = Directory::room(words as u64 * 32);
                (0..taken.len()).filter(|&p| taken[p]).for_each(|p| room[p / 32] |= 1 << (p % 32));
                // Counted in two parts, and in one.
                let mut parts = room.to_vec();
                let first = count(&mut parts[..words / 2], 0);
                let all = count(&mut parts[words / 2..], first);
                assert_eq!(count(&mut room, 0), all);
                assert_eq!(room[..], parts);
                let directory = Directory::of(room);
                assert_eq!(directory.bytes(), Directory::bytes_for(words as u64 * 32));
                let beyond = taken.len() as u64;
                let places: Vec<u64> =
                    (0..beyond).chain([beyond, beyond + 31, u64::MAX - 1, u64::MAX]).collect();
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
