//! Tables over integer keys whose rows stay where they are: places lead to the head of a chain of rows.
//!
//! With [`Offsets`] there is a head for each place, with a [`Directory`] one for each place that is taken: sparse keys
//! cost two bits a place instead of a head. Candidates are matches; nothing is hashed or compared. Successors stand in
//! an array of their own; where no key occurs twice there is none.

use super::directory::{Directory, count};
use super::places::{NOWHERE, Packing};
use super::{BuildInput, Cursor, JoinTable, NO_ROW, Pairs, ProbeKeys, empty_chains, for_each_batch};
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use entasis_vector::Result;

/// The slot of a place.
pub(super) trait Slots: Send + Sync {
    /// The slot, or any number beyond the slots if there is none.
    fn slot(&self, place: u64) -> usize;
    /// Bytes of memory in use.
    fn bytes(&self) -> usize;
}

/// A slot for each place.
pub(super) struct Offsets;

impl Slots for Offsets {
    #[inline(always)]
    fn slot(&self, place: u64) -> usize {
        place as usize
    }
    fn bytes(&self) -> usize {
        0
    }
}

impl Slots for Directory {
    #[inline(always)]
    fn slot(&self, place: u64) -> usize {
        self.rank(place) as usize
    }
    fn bytes(&self) -> usize {
        Directory::bytes(self)
    }
}

/// Heads of chains by slot.
pub(super) struct Indexed<S> {
    packing: Packing,
    slots: S,
    heads: Vec<AtomicU32>,
    /// By row id; empty if no key occurs twice.
    next: Vec<AtomicU32>,
}

impl Indexed<Offsets> {
    /// A head for each place.
    pub(super) fn direct(input: &BuildInput<'_>, packing: Packing) -> Result<Indexed<Offsets>> {
        let places = packing.places() as usize;
        Indexed::fill(input, packing, Offsets, places, true)
    }
}

impl Indexed<Directory> {
    /// A head for each place that is taken.
    pub(super) fn ranked(input: &BuildInput<'_>, packing: Packing) -> Result<Indexed<Directory>> {
        let rows = input.rows;
        let taken: Vec<AtomicU32> = (0..packing.places().div_ceil(32)).map(|_| AtomicU32::new(0)).collect();
        input.tasks.run(rows.segments(), &|segment| {
            for_each_batch(rows, segment, &packing, &mut |_, places| {
                for &place in places.iter().filter(|&&place| place != NOWHERE) {
                    taken[(place / 32) as usize].fetch_or(1 << (place % 32), Ordering::Relaxed);
                }
            });
            Ok(())
        })?;
        let mut words = Directory::room(packing.places());
        words.iter_mut().zip(taken).for_each(|(word, bits)| *word = bits.into_inner().into());
        let keys = count(&mut words, 0);
        // As many keys as rows: none occurs twice.
        Indexed::fill(input, packing, Directory::of(words), keys, keys == rows.rows())
    }
}

impl<S: Slots> Indexed<S> {
    /// Inserts all rows; tries without successors first if the keys are `perhaps_unique`.
    fn fill(
        input: &BuildInput<'_>,
        packing: Packing,
        slots: S,
        count: usize,
        perhaps_unique: bool,
    ) -> Result<Indexed<S>> {
        let mut table = Indexed { packing, slots, heads: empty_chains(count), next: Vec::new() };
        if perhaps_unique && table.insert_all(input)? {
            return Ok(table);
        }
        table.heads.iter_mut().for_each(|head| *head.get_mut() = NO_ROW);
        table.next = empty_chains(input.rows.id_space());
        table.insert_all(input)?;
        Ok(table)
    }

    /// True if no key occurs twice.
    pub(super) fn is_unique(&self) -> bool {
        self.next.is_empty()
    }

    /// Inserts all rows; false, and the table is unusable, if a key occurs twice and there is no room for successors.
    fn insert_all(&self, input: &BuildInput<'_>) -> Result<bool> {
        let rows = input.rows;
        let shared = rows.segments() > 1;
        let repeated = AtomicBool::new(false);
        input.tasks.run(rows.segments(), &|segment| {
            if repeated.load(Ordering::Relaxed) && self.next.is_empty() {
                return Ok(());
            }
            let mut collided = false;
            for_each_batch(rows, segment, &self.packing, &mut |first, places| {
                for (i, &place) in places.iter().enumerate().filter(|(_, place)| **place != NOWHERE) {
                    let id = (segment << 16 | (first + i)) as u32;
                    let old = exchange(&self.heads[self.slots.slot(place)], id, shared);
                    match self.next.get(id as usize) {
                        Some(next) => next.store(old, Ordering::Relaxed),
                        None => collided |= old != NO_ROW,
                    }
                }
            });
            repeated.fetch_or(collided, Ordering::Relaxed);
            Ok(())
        })?;
        Ok(!repeated.into_inner())
    }
}

/// Makes `row` the value of `slot` and returns the old one. `shared`: other workers may write the slot.
#[inline(always)]
fn exchange(slot: &AtomicU32, row: u32, shared: bool) -> u32 {
    if shared {
        return slot.swap(row, Ordering::Relaxed);
    }
    let old = slot.load(Ordering::Relaxed);
    slot.store(row, Ordering::Relaxed);
    old
}

impl<S: Slots> JoinTable for Indexed<S> {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, _: &mut Cursor) {
        let (rows, places) = keys.places(&self.packing);
        pairs.fill(rows, places.len(), |row| {
            self.heads.get(self.slots.slot(places[row])).map_or(NO_ROW, |head| head.load(Ordering::Relaxed))
        });
    }
    fn next(&self, _: &mut ProbeKeys, pairs: &mut Pairs, _: &mut Cursor) {
        if self.is_unique() {
            pairs.clear();
        } else {
            pairs.advance(|id| self.next[id as usize].load(Ordering::Relaxed));
        }
    }
    fn is_exact(&self, _: &Cursor) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        self.slots.bytes() + (self.heads.len() + self.next.len()) * 4
    }
}
