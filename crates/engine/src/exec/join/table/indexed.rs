//! Tables over integer keys whose rows stay in place: a place leads to the head of a chain of rows.
//!
//! With [`Offsets`] there is a head for each place; with a [`Directory`], one for each taken place: sparse
//! keys cost two bits per place instead of a head. Candidates are matches; nothing is hashed or compared.
//! Successors are in a separate array, which is absent if no key occurs twice.

use super::directory::{Directory, count};
use super::{Cursor, JoinTable, NO_ROW, Pairs, ProbeKeys, empty_chains};
use crate::exec::gather::gather;
use crate::exec::key_filter::{BuildInput, NOWHERE, Packing, for_each_batch};
use crate::exec::prefetch::BLOCK;
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use entasis_vector::Result;

/// The slot of a place.
pub(super) trait Slots: Send + Sync {
    /// The slot, or any number beyond the slots if there is none, so that the loop over a chunk has no
    /// branch.
    fn slot(&self, place: u64) -> usize;
    /// Writes the heads of the slots of `places`.
    fn look_up(&self, heads: &[u32], places: &[u64], out: &mut [u32]);
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
    fn look_up(&self, heads: &[u32], places: &[u64], out: &mut [u32]) {
        gather(heads, places, |place| place as usize, out);
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
    fn look_up(&self, heads: &[u32], places: &[u64], out: &mut [u32]) {
        let mut ranks = [0; BLOCK];
        for (places, out) in places.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            let ranks = &mut ranks[..places.len()];
            self.ranks(places, ranks);
            gather(heads, ranks, |rank| rank as usize, out);
        }
    }
    fn bytes(&self) -> usize {
        Directory::bytes(self)
    }
}

/// Heads of chains by slot.
pub(super) struct Indexed<S> {
    packing: Packing,
    slots: S,
    /// By slot; the last one has no row and stands for all slots beyond.
    heads: Vec<u32>,
    /// By row id; empty if no key occurs twice.
    next: Vec<u32>,
}

impl Indexed<Offsets> {
    /// A head for each place.
    pub(super) fn direct(input: &BuildInput<'_>, packing: Packing) -> Result<Indexed<Offsets>> {
        let places = packing.places() as usize;
        Indexed::fill(input, packing, Offsets, places, true)
    }
}

impl Indexed<Directory> {
    /// A head for each taken place.
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
        // With as many keys as rows, none occurs twice.
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
        let mut heads = empty_chains(count + 1);
        let mut next = Vec::new();
        if !perhaps_unique || !insert_all(input, &packing, &slots, &heads, &next)? {
            heads.iter_mut().for_each(|head| *head.get_mut() = NO_ROW);
            next = empty_chains(input.rows.id_space());
            insert_all(input, &packing, &slots, &heads, &next)?;
        }
        let [heads, next] = [heads, next].map(|rows| rows.into_iter().map(AtomicU32::into_inner).collect());
        Ok(Indexed { packing, slots, heads, next })
    }

    /// True if no key occurs twice.
    pub(super) fn is_unique(&self) -> bool {
        self.next.is_empty()
    }
}

/// Inserts all rows. False, with unusable heads, if a key occurs twice and there is no room for successors.
fn insert_all(
    input: &BuildInput<'_>,
    packing: &Packing,
    slots: &impl Slots,
    heads: &[AtomicU32],
    next: &[AtomicU32],
) -> Result<bool> {
    let rows = input.rows;
    let shared = rows.segments() > 1;
    let repeated = AtomicBool::new(false);
    input.tasks.run(rows.segments(), &|segment| {
        if repeated.load(Ordering::Relaxed) && next.is_empty() {
            return Ok(());
        }
        let mut collided = false;
        for_each_batch(rows, segment, packing, &mut |first, places| {
            for (i, &place) in places.iter().enumerate().filter(|(_, place)| **place != NOWHERE) {
                let id = (segment << 16 | (first + i)) as u32;
                let old = exchange(&heads[slots.slot(place)], id, shared);
                match next.get(id as usize) {
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
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        let (rows, places) = keys.places(&self.packing);
        let heads = cursor.heads(places.len());
        self.slots.look_up(&self.heads, places, heads);
        pairs.take(rows, heads);
    }
    fn next(&self, _: &mut ProbeKeys, pairs: &mut Pairs, _: &mut Cursor) {
        if self.is_unique() {
            pairs.clear();
        } else {
            pairs.advance(&self.next, |id| id as usize, |&next| next);
        }
    }
    fn is_exact(&self, _: &Cursor) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        self.slots.bytes() + (self.heads.len() + self.next.len()) * 4
    }
}
