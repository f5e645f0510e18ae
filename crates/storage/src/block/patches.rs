//! Patches: the few values of a block that do not fit its encoding, by slot.

use crate::BLOCK_ROWS;

/// Values stored beside a block, in the order of their slots.
#[derive(Debug, Clone)]
pub(crate) struct Patches<V> {
    slots: Box<[u16]>,
    values: Box<[V]>,
}

impl<V: Copy> Patches<V> {
    /// Values by slot, ascending.
    pub(crate) fn new(patches: &[(u16, V)]) -> Patches<V> {
        debug_assert!(patches.is_sorted_by_key(|(slot, _)| *slot));
        let (slots, values): (Vec<u16>, Vec<V>) = patches.iter().copied().unzip();
        Patches { slots: slots.into(), values: values.into() }
    }

    /// Bytes of one.
    pub(crate) const SIZE: usize = size_of::<u16>() + size_of::<V>();

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * Self::SIZE
    }

    /// The patch of a slot, if it has one.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<V> {
        self.slots.binary_search(&(slot as u16)).ok().map(|at| self.values[at])
    }

    /// Narrows `masks` to slots that satisfy a condition: slots of patches by `holds`, which gets
    /// them with their patches, the others by `others`, whose answers for slots of patches are ignored.
    pub(crate) fn narrow(
        &self,
        masks: &mut [u64],
        holds: impl Fn(usize, V) -> bool,
        others: impl FnOnce(&mut [u64]),
    ) {
        let (mut own, mut kept) = ([0; BLOCK_ROWS / 64], [0; BLOCK_ROWS / 64]);
        for (slot, value) in self.within(0, masks.len() * 64) {
            let (word, bit) = (slot / 64, 1 << (slot % 64));
            own[word] |= bit;
            kept[word] |= if holds(slot, value) { masks[word] & bit } else { 0 };
        }
        others(masks);
        masks
            .iter_mut()
            .zip(own.iter().zip(&kept))
            .for_each(|(mask, (own, kept))| *mask = *mask & !own | kept);
    }

    /// The patches of slots from `from` on, before `end`, each with its distance from `from`.
    pub(crate) fn within(&self, from: usize, end: usize) -> impl Iterator<Item = (usize, V)> {
        let first = self.slots.partition_point(|&slot| usize::from(slot) < from);
        let patches = self.slots[first..].iter().zip(&self.values[first..]);
        patches
            .take_while(move |(slot, _)| usize::from(**slot) < end)
            .map(move |(&slot, &v)| (usize::from(slot) - from, v))
    }
}
