//! Row groups: up to 131072 slots of all columns.
//!
//! ```text
//! row group   slices of 1024 slots       [1024] [1024] [1024] … [1024]
//! partitions  contiguous slots           |  0  |   1   |  2 |  …  | n |    each holds one range of the layout key,
//!             their fences, ascending    k0    k1      k2               unordered inside, ghosts among its slots
//! ```
//! A slot is a row iff it is live. A table without a layout key has no partitions. A row group is a node of
//! the version tree: what a snapshot shows of it never changes.
//!
//! Zones only widen, so older versions may share them.
//!
//! ```text
//! mod          the node, and what is known of it
//! live         which slots are rows
//! partitions   which slots hold which part of the layout key
//! ahead        prefetches what readers read next
//! columns      the same rows with other columns
//! inspect      describes its blocks, for users
//! ```
//! How it is read is in [`crate::scan`].

mod ahead;
mod columns;
pub mod inspect;
mod live;
mod partitions;

pub use columns::ColumnSource;
pub(crate) use partitions::Partition;

use super::digest::{Digest, Digests};
use super::key::Fences;
use super::{Edit, LiveCounters, Node, Numbers, Slice, Slices, Upkept};
use crate::block::Block;
use crate::block::masks::WORDS;
use crate::node::{Link, Stamp};
use crate::sync::{AtomicU32, Ordering};
use crate::value::Zone;
use entasis_vector::Schema;
use std::sync::Arc;

/// The most bytes of the next block's slots that a reader prefetches: those of a block of 8-byte numbers.
const BEHIND_BYTES: usize = 8192;

/// Up to 131,072 slots of all columns, in slices.
pub struct RowGroup {
    pub(crate) stamp: Stamp,
    pub(crate) block_slots: usize,
    pub(crate) slices: Vec<Link<Slice>>,
    /// Live slots.
    pub(crate) rows: usize,
    /// A zone for each column.
    pub(crate) zones: Arc<[Zone]>,
    /// The partitions, in the order of slots, all of which they cover.
    pub(crate) partitions: Vec<Partition>,
    /// The fences of the partitions.
    pub(crate) fences: Fences,
    /// How often its ranges of keys are touched, if that is counted. Shared with other versions.
    pub(crate) counters: Option<Arc<LiveCounters>>,
    /// The row numbers, in a table without a layout key.
    pub(crate) numbers: Numbers,
    /// What scans read instead of block headers, while nobody writes.
    pub(crate) digests: Option<Digests>,
    pub(crate) wear: Wear,
}

/// How a row group has been written, and what upkeep did to it.
pub(crate) struct Wear {
    /// Some of it has been written since it was encoded.
    pub(crate) is_hot: bool,
    /// How often upkeep has looked since it was last written.
    pub(crate) looks: AtomicU32,
    /// All of it was encoded for reading, in a table with a layout key, unless it is hot.
    pub(crate) is_settled: bool,
    /// How often that was done.
    pub(crate) settled: u8,
    /// What upkeep did last to it.
    pub(crate) upkept: Option<Upkept>,
}

impl Wear {
    /// That of a new row group, which upkeep has looked at once.
    pub(crate) fn new(is_hot: bool) -> Wear {
        Wear { is_hot, looks: AtomicU32::new(1), is_settled: false, settled: 0, upkept: None }
    }

    /// That of a copy.
    pub(super) fn copy(&self) -> Wear {
        Wear { looks: AtomicU32::new(self.looks.load(Ordering::Relaxed)), ..*self }
    }
}

impl Node for RowGroup {
    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn stamp_mut(&mut self) -> &mut Stamp {
        &mut self.stamp
    }

    fn copy(&self, edit: &Edit) -> RowGroup {
        RowGroup {
            stamp: edit.stamp,
            slices: self.slices.clone(),
            zones: self.zones.clone(),
            partitions: self.partitions.clone(),
            fences: self.fences.clone(),
            counters: self.counters.clone(),
            numbers: self.numbers.clone(),
            wear: self.wear.copy(),
            digests: None,
            ..*self
        }
    }

    fn open(&mut self, edit: &Edit) {
        if let Some(digests) = self.digests.take() {
            edit.count(-(digests.bytes() as isize));
        }
    }

    fn retire(link: Link<RowGroup>, edit: &mut Edit) {
        edit.count(-(link.digest_bytes() as isize));
        edit.retire_group(link);
    }
}

impl Slices for RowGroup {
    fn block_slots(&self) -> usize {
        self.block_slots
    }
    fn block(&self, slice: usize, column: usize) -> (&Block, &[u64; WORDS]) {
        let slice = &*self.slices[slice];
        (slice.block(column), slice.live())
    }
    // PERF: the values of the next block, and the nodes that lead to those of a later one. If values further
    // on are requested, the processor's own prefetcher stops.
    fn prefetch_behind(&self, slice: usize, column: usize) {
        let ahead = |steps: usize| self.slices.get(slice + steps).into_iter();
        let bytes = self.slices[slice].block(column).values.bytes().min(BEHIND_BYTES);
        ahead(3).for_each(|slice| slice.prefetch_stream(column, false));
        ahead(1).for_each(|slice| slice.prefetch_slots(column, bytes));
    }
}

impl RowGroup {
    /// Makes the digests of its blocks, which nobody writes until the row group is opened again.
    pub(crate) fn digest(&mut self, schema: &Schema, edit: &Edit) {
        self.open(edit);
        let digests = self.new_digests(schema);
        edit.count(digests.bytes() as isize);
        self.digests = Some(digests);
    }

    /// Bytes of the digests.
    pub(crate) fn digest_bytes(&self) -> usize {
        self.digests.as_ref().map_or(0, Digests::bytes)
    }

    pub(crate) fn new_digests(&self, schema: &Schema) -> Digests {
        let columns = schema.iter().enumerate();
        let blocks = |column: usize| self.slices.iter().map(move |slice| slice.block(column));
        Digests::new(columns.map(|(column, field)| (field.ty.physical(), blocks(column))))
    }

    /// Gives the row that is written to a slot its number. There are no rows beyond the slot.
    #[inline]
    pub(crate) fn number(&mut self, slot: usize, number: u64, edit: &Edit) {
        let bytes = self.numbers.bytes();
        self.numbers.put(slot, number);
        if self.numbers.bytes() != bytes {
            edit.count(self.numbers.bytes() as isize - bytes as isize);
        }
    }

    /// Gives rows that were moved together their numbers.
    pub(crate) fn renumber(&mut self, numbers: Numbers, edit: &Edit) {
        edit.count(numbers.bytes() as isize - self.numbers.bytes() as isize);
        self.numbers = numbers;
    }

    /// True if it is known to be written, so that nothing is kept of it that a write makes wrong.
    pub(crate) fn is_open(&self) -> bool {
        self.wear.is_hot && self.digests.is_none()
    }

    /// Marks it, which is open, as written again.
    pub(crate) fn touch_shared(&self) {
        if self.wear.looks.load(Ordering::Relaxed) != 0 {
            self.wear.looks.store(0, Ordering::Relaxed);
        }
    }

    /// Marks it as written.
    pub(crate) fn touch(&mut self) {
        self.wear.is_hot = true;
        *self.wear.looks.get_mut() = 0;
    }

    /// The number of rows, which are the live slots.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of slots, live or not.
    pub fn slots(&self) -> usize {
        self.slices.len() * self.block_slots
    }

    /// The number of blocks of each column.
    pub fn blocks(&self) -> usize {
        self.slices.len()
    }

    /// Slots of each block.
    pub fn block_slots(&self) -> usize {
        self.block_slots
    }

    /// Live slots of a block.
    pub fn block_rows(&self, block: usize) -> usize {
        self.slices[block].rows()
    }

    /// Bounds of a column within a block.
    pub fn zone(&self, column: usize, block: usize) -> &Zone {
        &self.slices[block].block(column).zone
    }

    /// The digest of a block, if the row group has digests.
    #[inline]
    pub(crate) fn digest_of(&self, column: usize, block: usize) -> Option<&Digest> {
        self.digests.as_ref()?.of(column, block)
    }

    /// Bounds of a column within the whole row group.
    pub fn column_zone(&self, column: usize) -> &Zone {
        &self.zones[column]
    }

    /// Bytes of memory. A dictionary is counted once for consecutive slices that share it.
    pub fn bytes(&self) -> usize {
        let columns = self.zones.len();
        let of_block = |slice: usize, column: usize| {
            let block = self.slices[slice].block(column);
            let shared = slice > 0 && self.slices[slice - 1].block(column).shares_dictionary(block);
            if shared { 0 } else { block.dictionary_bytes() }
        };
        let dictionaries = |c| (0..self.blocks()).map(|s| of_block(s, c)).sum::<usize>();
        let slices: usize = self.slices.iter().map(|slice| slice.bytes()).sum();
        slices + self.digest_bytes() + self.numbers.bytes() + (0..columns).map(dictionaries).sum::<usize>()
    }

    /// True if each live value of the column is greater than the one before, and none is NULL.
    pub(crate) fn ascends(&self, column: usize) -> bool {
        let mut last: Option<&Zone> = None;
        self.slices.iter().filter(|slice| slice.rows() > 0).map(|slice| slice.block(column)).all(|block| {
            let after = last.is_none_or(|zone| zone.max.total_cmp(&block.zone.min).is_lt());
            last = Some(&block.zone);
            after && block.ascending
        })
    }

    /// The number of rows that are NULL in a column.
    pub(crate) fn nulls(&self, column: usize) -> u64 {
        if self.zones[column].nulls == 0 {
            return 0;
        }
        let of_slice = |slice: &Link<Slice>| -> u64 {
            let block = slice.block(column);
            if block.zone.nulls == 0 {
                return 0;
            }
            let words = slice.live().iter().enumerate();
            words.map(|(word, live)| u64::from((live & !block.valid_word(word)).count_ones())).sum()
        };
        self.slices.iter().map(of_slice).sum()
    }
}

impl std::fmt::Debug for RowGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowGroup({} rows, {} bytes)", self.rows, self.bytes())
    }
}
