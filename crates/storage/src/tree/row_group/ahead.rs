//! Prefetches what readers of a row group read next.

use super::{Partition, RowGroup};
use crate::BLOCK_ROWS;
use crate::node::{Ahead, Link, Linked, prefetch};
use crate::tree::Slice;
use crate::tree::key::{Fences, Key, NEAR};
use entasis_vector::CHUNK_ROWS;

/// What readers that look for a key need of a row group.
#[derive(Clone, Copy)]
pub(crate) struct GroupAhead {
    fences: Ahead,
    partitions: Ahead,
    slices: Ahead,
    /// The number of partitions.
    parts: u32,
    slice_count: u32,
    /// The second fence (the first may be below all keys) and the last one.
    bounds: (u64, u64),
}

impl Linked for RowGroup {
    type Ahead = GroupAhead;
    fn ahead(&self) -> GroupAhead {
        let (fences, bounds) = match &self.fences {
            Fences::Words(words) if words.len() > 2 => {
                (Ahead::to(words.as_ptr()), (words[1], words[words.len() - 1]))
            }
            _ => (Ahead::NONE, (0, 0)),
        };
        GroupAhead {
            fences,
            partitions: Ahead::to(self.partitions.as_ptr()),
            slices: Ahead::to(self.slices.as_ptr()),
            parts: self.partitions.len() as u32,
            slice_count: self.slices.len() as u32,
            bounds,
        }
    }
}

impl Link<RowGroup> {
    /// Guesses the partition of a key, as if keys were distributed evenly, and prefetches what leads from
    /// there to a slice: the fences, the partition and the link to the slice, which would be read one after
    /// the other.
    #[inline]
    pub(crate) fn prefetch_part(self, key: &Key) -> usize {
        self.prefetch();
        let GroupAhead { fences, partitions, slices, parts, slice_count, bounds: (low, high) } = self.ahead();
        let Key::Word(key) = key else { return 0 };
        if low >= high {
            return 0;
        }
        let share = key.saturating_sub(low) as f64 / (high - low) as f64;
        // For a key far above all fences the conversion saturates, and the guess is clamped.
        let guess =
            ((share * f64::from(parts.saturating_sub(2))) as usize).saturating_add(1).min(parts as usize - 1);
        let slice = guess * slice_count as usize / parts as usize;
        let first = guess.saturating_sub(NEAR / 2);
        prefetch::prefetch_all(
            fences.start().wrapping_add(first * size_of::<u64>()),
            NEAR * size_of::<u64>(),
        );
        prefetch::prefetch_all(
            partitions.start().wrapping_add(guess * size_of::<Partition>()),
            size_of::<Partition>(),
        );
        prefetch::prefetch_all(
            slices.start().wrapping_add(slice * size_of::<Link<Slice>>()),
            2 * size_of::<Link<Slice>>(),
        );
        guess
    }
}

impl RowGroup {
    /// Prefetches the blocks of those `columns` that are `wanted`, after the one of `slot`, in the order in
    /// which a scan reads them. The nodes that lead to a block are prefetched earlier, as each step needs the
    /// memory of the one before.
    // PERF: a scan reads a block in the time of one or two cache misses, and gets to it by four.
    pub fn prefetch(&self, slot: usize, columns: &[usize], wanted: &[bool]) {
        const LEAD: usize = CHUNK_ROWS / BLOCK_ROWS;
        let next = slot / self.block_slots;
        let ahead = |steps: usize| {
            let from = next + steps * LEAD;
            let slices = self.slices.get(from..).unwrap_or_default().iter().take(LEAD);
            slices
                .zip(&wanted[from.min(wanted.len())..])
                .filter(|(_, wanted)| **wanted)
                .map(|(slice, _)| slice)
        };
        ahead(3).for_each(|slice| slice.prefetch_with(columns.iter().copied()));
        ahead(1).for_each(|slice| columns.iter().for_each(|&column| slice.prefetch_stream(column, true)));
    }

    /// Prefetches the bounds of `columns` in a block that is read soon after `block`, whose header was
    /// prefetched by an earlier call, and the nodes that lead to a later one. To be called for block after
    /// block.
    pub fn prefetch_zones(&self, block: usize, columns: &[usize]) {
        const LEAD: usize = 4;
        let ahead = |steps: usize| self.slices.get(block + steps * LEAD).into_iter();
        ahead(2).for_each(|slice| slice.prefetch_with(columns.iter().copied()));
        ahead(1).for_each(|slice| columns.iter().for_each(|&column| slice.prefetch_stream(column, false)));
    }
}
