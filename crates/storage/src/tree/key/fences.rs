//! Fences: for each part of an ordered sequence, the least key that may be in it. This is the partition index
//! of *Optimal Column Layout for Hybrid Workloads*.
//!
//! Part i holds keys from fence i to fence i + 1, *both included*: rows with equal keys may fill several
//! parts, whose fences are then equal. So a key may be in the parts from the last one whose fence is below it
//! to the last one whose fence is not above it. A new row goes to the latter.

use super::Key;
use super::search::{count_below, count_not_above, count_not_above_near};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Ascending fences, some of which may be equal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fences {
    Words(Vec<u64>),
    Bytes(Vec<Arc<[u8]>>),
}

impl Fences {
    pub(crate) fn len(&self) -> usize {
        match self {
            Fences::Words(words) => words.len(),
            Fences::Bytes(keys) => keys.len(),
        }
    }

    pub(crate) fn get(&self, i: usize) -> Key {
        match self {
            Fences::Words(words) => Key::Word(words[i]),
            Fences::Bytes(keys) => Key::Bytes(keys[i].clone()),
        }
    }

    /// The part that a new row with `key` goes to.
    #[inline]
    pub(crate) fn part_for(&self, key: &Key) -> usize {
        let not_above = match (self, key) {
            (Fences::Words(words), Key::Word(key)) => count_not_above(words, *key),
            (Fences::Bytes(keys), Key::Bytes(key)) => keys.partition_point(|fence| fence <= key),
            _ => unreachable!("keys of a table are of one kind"),
        };
        not_above.saturating_sub(1)
    }

    /// The same as [`Fences::part_for`], faster if the part is near `guess`.
    #[inline]
    pub(crate) fn part_near(&self, key: &Key, guess: usize) -> usize {
        match (self, key) {
            (Fences::Words(words), Key::Word(key)) => {
                count_not_above_near(words, *key, guess + 1).saturating_sub(1)
            }
            _ => self.part_for(key),
        }
    }

    /// The first part that may hold `key`.
    #[inline]
    pub(crate) fn first_part_of(&self, key: &Key) -> usize {
        let below = match (self, key) {
            (Fences::Words(words), Key::Word(key)) => count_below(words, *key),
            (Fences::Bytes(keys), Key::Bytes(key)) => keys.partition_point(|fence| fence < key),
            _ => unreachable!("keys of a table are of one kind"),
        };
        below.saturating_sub(1)
    }

    /// The parts that may hold `key`.
    #[inline]
    pub(crate) fn parts_of(&self, key: &Key) -> RangeInclusive<usize> {
        self.parts_to(key, self.part_for(key))
    }

    /// The same as [`Fences::parts_of`], faster if they are near `guess`.
    #[inline]
    pub(crate) fn parts_near(&self, key: &Key, guess: usize) -> RangeInclusive<usize> {
        self.parts_to(key, self.part_near(key, guess))
    }

    /// The parts that may hold `key`, of which `last` is the last.
    #[inline]
    fn parts_to(&self, key: &Key, last: usize) -> RangeInclusive<usize> {
        // The key may be in the part before only if the fence equals it.
        let equal = match (self, key) {
            (Fences::Words(words), Key::Word(key)) => words[last] == *key,
            (Fences::Bytes(keys), Key::Bytes(key)) => keys[last] == *key,
            _ => unreachable!("keys of a table are of one kind"),
        };
        if equal { self.first_part_of(key)..=last } else { last..=last }
    }

    /// Replaces the fences of `parts` by `new`.
    pub(crate) fn splice(&mut self, parts: Range<usize>, new: Vec<Key>) {
        match self {
            Fences::Words(words) => {
                words.splice(
                    parts,
                    new.into_iter().map(|key| match key {
                        Key::Word(word) => word,
                        Key::Bytes(_) => unreachable!("keys of a table are of one kind"),
                    }),
                );
            }
            Fences::Bytes(keys) => {
                keys.splice(
                    parts,
                    new.into_iter().map(|key| match key {
                        Key::Bytes(bytes) => bytes,
                        Key::Word(_) => unreachable!("keys of a table are of one kind"),
                    }),
                );
            }
        }
    }

    /// Removes the fences from `at` on, and returns them.
    pub(crate) fn split_off(&mut self, at: usize) -> Fences {
        match self {
            Fences::Words(words) => Fences::Words(words.split_off(at)),
            Fences::Bytes(keys) => Fences::Bytes(keys.split_off(at)),
        }
    }

    /// Appends the fences of `other`.
    pub(crate) fn append(&mut self, other: &Fences) {
        match (self, other) {
            (Fences::Words(words), Fences::Words(others)) => words.extend(others),
            (Fences::Bytes(keys), Fences::Bytes(others)) => keys.extend(others.iter().cloned()),
            _ => unreachable!("keys of a table are of one kind"),
        }
    }
}
