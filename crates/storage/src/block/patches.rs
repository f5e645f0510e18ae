//! Patches: the few values of a block that do not fit its encoding, by slot.

/// Values that stand beside a block, in the order of their slots.
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

    /// The patches of slots from `from` on, before `end`, each with its distance from `from`.
    pub(crate) fn within(&self, from: usize, end: usize) -> impl Iterator<Item = (usize, V)> {
        let first = self.slots.partition_point(|&slot| usize::from(slot) < from);
        let patches = self.slots[first..].iter().zip(&self.values[first..]);
        patches
            .take_while(move |(slot, _)| usize::from(**slot) < end)
            .map(move |(&slot, &v)| (usize::from(slot) - from, v))
    }
}
