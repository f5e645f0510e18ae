//! Slices: up to 1024 slots of all columns, and which of them are live.

use super::{Edit, Latch, Latched, Node};
use crate::BLOCK_ROWS;
use crate::block::masks::WORDS;
use crate::block::{Block, Scattered};
use crate::node::{Ahead, Link, Linked, Stamp, prefetch};
use crate::tree::EncodedSlice;
use crate::value::{Datum, Zone};
use entasis_vector::{Schema, bitmap};
use std::sync::Arc;

/// The most links that a point query prefetches.
const MOST_LINKS: usize = 32;

/// If so many slots of a block are written, or more, it is encoded as a whole rather than written slot by
/// slot.
const SCATTERED_MIN: usize = 24;

/// Blocks with memory for so few slots are converted in little time.
const FEW_SLOTS: usize = 64;

/// A node of the tree: a block for each column, and the live bits.
pub(crate) struct Slice {
    stamp: Stamp,
    /// Taken by who changes values of live slots in place, while others may read and change other slices.
    latch: Latch,
    /// The slots that are rows, as bits.
    live: [u64; WORDS],
    /// Slots that older versions may show: the live bits of those that can still be reached.
    visible: [u64; WORDS],
    /// The number of rows.
    rows: usize,
    /// It has been written since it was encoded, so that zones may be wider than the values, and encodings
    /// than necessary.
    is_hot: bool,
    /// It was encoded for reading; blocks that were written since are not.
    is_settled: bool,
    /// The first column of the layout key.
    key: usize,
    /// How many blocks a new row would have converted.
    unready: Unready,
    /// A block for each column.
    blocks: Box<[Link<Block>]>,
}

/// Blocks that cannot take a row as they are, by why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Unready {
    /// Those in an encoding that is never written in place.
    cold: u32,
    /// Those with packed codes, which are written in place unless somebody else may read them.
    packed: u32,
}

impl Unready {
    fn of(block: &Block) -> Unready {
        let is_cold = !block.values.are_writable();
        Unready { cold: is_cold.into(), packed: (!is_cold && block.has_packed_codes()).into() }
    }

    fn of_all(blocks: &[Link<Block>]) -> Unready {
        let mut all = Unready::default();
        blocks.iter().for_each(|block| all.add(Unready::of(block)));
        all
    }

    fn add(&mut self, other: Unready) {
        (self.cold, self.packed) = (self.cold + other.cold, self.packed + other.packed);
    }

    fn remove(&mut self, other: Unready) {
        (self.cold, self.packed) = (self.cold - other.cold, self.packed - other.packed);
    }
}

/// A block of a slice that is made of another one.
pub(super) enum ColumnBlock {
    /// The same block as the other's in a column.
    Kept(usize),
    /// A new one.
    New(Block),
}

/// What readers of a slice read next, to be prefetched.
#[derive(Clone, Copy)]
pub(crate) struct SliceAhead {
    links: Ahead,
    /// The block of the first column of the layout key, and its slots.
    key: (Ahead, Ahead),
}

impl Linked for Slice {
    type Ahead = SliceAhead;
    fn ahead(&self) -> SliceAhead {
        let key =
            self.blocks.get(self.key).map_or((Ahead::NONE, Ahead::NONE), |key| (key.place(), key.ahead()));
        SliceAhead { links: Ahead::to(self.blocks.as_ptr()), key }
    }
}

impl Node for Slice {
    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn stamp_mut(&mut self) -> &mut Stamp {
        &mut self.stamp
    }

    fn copy(&self, edit: &Edit) -> Slice {
        self.with_blocks(self.blocks.clone(), edit)
    }

    fn retire(link: Link<Slice>, edit: &mut Edit) {
        edit.retire_slice(link);
    }
}

impl Link<Slice> {
    /// Prefetches the slice and its links to `columns`.
    #[inline]
    pub(crate) fn prefetch_with(self, columns: impl Iterator<Item = usize>) {
        self.prefetch();
        let links = self.ahead().links.start();
        columns.for_each(|column| prefetch::prefetch(links.wrapping_add(column * size_of::<Link<Block>>())));
    }

    /// Prefetches all that a point query reads to find a row, and the links to the blocks of `columns`.
    #[inline]
    pub(crate) fn prefetch_key(self, columns: usize) {
        let SliceAhead { links, key: (block, slots) } = self.ahead();
        self.prefetch();
        prefetch::prefetch_all(block.start(), size_of::<Block>());
        prefetch::prefetch_stream(slots.start());
        prefetch::prefetch_all(links.start(), columns.min(MOST_LINKS) * size_of::<Link<Block>>());
    }
}

/// Gives a block, which is in no tree yet, the stamp of an edit.
fn hung(block: Block, edit: &Edit) -> Link<Block> {
    Link::new(Block { stamp: edit.stamp, ..block })
}

impl Slice {
    /// A slice whose live slots are `live`. The blocks are its own: no other slice has them.
    pub(crate) fn new(live: [u64; WORDS], blocks: Vec<Block>, edit: &Edit) -> Slice {
        Slice::of_links(live, blocks.into_iter().map(|block| hung(block, edit)).collect(), edit)
    }

    /// Slices of the same columns that follow one another.
    // PERF: the blocks of a column are allocated one after the other, so that the allocator puts them side by
    // side. A scan that jumps from header to header defeats the processor's prefetcher: 8 GB/s instead of 13.
    pub(crate) fn side_by_side(slices: Vec<EncodedSlice>, edit: &Edit) -> Vec<Slice> {
        let columns = slices.first().map_or(0, |slice| slice.blocks.len());
        debug_assert!(slices.iter().all(|slice| slice.blocks.len() == columns));
        let (lives, mut blocks): (Vec<_>, Vec<_>) =
            slices.into_iter().map(|slice| (slice.live, slice.blocks.into_iter())).unzip();
        let mut links: Vec<Vec<Link<Block>>> = lives.iter().map(|_| Vec::with_capacity(columns)).collect();
        for _ in 0..columns {
            let of_slices = links.iter_mut().zip(&mut blocks);
            of_slices.for_each(|(links, blocks)| links.extend(blocks.next().map(|block| hung(block, edit))));
        }
        lives.into_iter().zip(links).map(|(live, links)| Slice::of_links(live, links, edit)).collect()
    }

    /// A slice with the same slots and other columns, for a table that is made of this one's. The edit counts
    /// the difference. Blocks that both have are not looked at.
    pub(super) fn with_columns(
        &self,
        columns: impl Iterator<Item = ColumnBlock>,
        dropped: &[usize],
        edit: &Edit,
    ) -> Slice {
        let (mut bytes, mut unready) = (0, self.unready);
        let mut block = |source: ColumnBlock| match source {
            ColumnBlock::Kept(column) => self.blocks[column],
            ColumnBlock::New(block) => {
                bytes += block.bytes() as isize;
                unready.add(Unready::of(&block));
                hung(block, edit)
            }
        };
        let blocks: Box<[Link<Block>]> = columns.map(&mut block).collect();
        for &column in dropped {
            bytes -= (self.blocks[column].bytes() + self.blocks[column].dictionary_share()) as isize;
            unready.remove(Unready::of(&self.blocks[column]));
        }
        let links = (blocks.len() as isize - self.blocks.len() as isize) * size_of::<Link<Block>>() as isize;
        edit.count(bytes + links);
        Slice { key: edit.key, unready, ..self.with_blocks(blocks, edit) }
    }

    /// A copy for the owner of the edit with these blocks.
    fn with_blocks(&self, blocks: Box<[Link<Block>]>, edit: &Edit) -> Slice {
        // Visible bits are of versions before this one, and may go if no snapshot is so old.
        let mut visible = if edit.forgets(self.stamp) { [0; WORDS] } else { self.visible };
        visible.iter_mut().zip(&self.live).for_each(|(visible, live)| *visible |= live);
        Slice { stamp: edit.stamp, latch: Latch::default(), visible, blocks, ..*self }
    }

    fn of_links(live: [u64; WORDS], blocks: Vec<Link<Block>>, edit: &Edit) -> Slice {
        // Only blocks that are written have views.
        let is_hot = blocks.iter().any(|block| block.has_views());
        let blocks = blocks.into_boxed_slice();
        let rows = bitmap::count_ones(&live, BLOCK_ROWS);
        let (stamp, key) = (edit.stamp, edit.key);
        let (latch, visible, unready) = (Latch::default(), [0; WORDS], Unready::of_all(&blocks));
        let is_settled = false;
        let slice = Slice { stamp, latch, live, visible, rows, is_hot, is_settled, key, unready, blocks };
        edit.count(slice.bytes() as isize);
        slice
    }

    /// Bytes of memory, without dictionaries.
    pub(crate) fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.bytes()).sum();
        blocks + size_of::<Slice>() + self.blocks.len() * size_of::<Link<Block>>()
    }

    /// The share of its blocks in the memory of their dictionaries, which other blocks may have as well.
    pub(crate) fn dictionary_share(&self) -> usize {
        self.blocks.iter().map(|block| block.dictionary_share()).sum()
    }

    /// A slice without rows, and without memory for any.
    pub(crate) fn empty(columns: usize, edit: &Edit) -> Slice {
        Slice::new([0; WORDS], EncodedSlice::empty(columns).blocks, edit)
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn is_hot(&self) -> bool {
        self.is_hot
    }

    /// True if it was encoded for reading, even if it has been written since.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// True if a new row can be written without the conversion of more than one block: because the blocks
    /// are written in place, or because they are small.
    #[inline]
    pub(crate) fn is_ready(&self, edit: &Edit) -> bool {
        let Unready { cold, packed } = self.unready;
        let is_shared = || self.stamp != edit.stamp && !edit.alone_has(self.stamp);
        let converted = if packed > 0 && is_shared() { cold + packed } else { cold };
        converted <= 1 || self.memory_slots() <= FEW_SLOTS
    }

    /// True if what it knows of its blocks for [`Slice::is_ready`] is right.
    pub(super) fn counts_unready(&self) -> bool {
        self.unready == Unready::of_all(&self.blocks)
    }

    /// True if its blocks have memory for less than `width` slots: it has been added for new rows, which are
    /// few. Columns that were added since have memory for all.
    #[inline]
    pub(crate) fn is_short(&self, width: usize) -> bool {
        self.memory_slots() < width
    }

    /// Slots that it has memory for.
    #[inline]
    pub(crate) fn memory_slots(&self) -> usize {
        self.blocks.get(self.key).map_or(0, |block| block.slots())
    }

    pub(crate) fn live(&self) -> &[u64; WORDS] {
        &self.live
    }

    pub(crate) fn is_live(&self, slot: usize) -> bool {
        bitmap::get(&self.live, slot)
    }

    pub(crate) fn visible(&self) -> &[u64; WORDS] {
        &self.visible
    }

    #[inline]
    pub(crate) fn block(&self, column: usize) -> &Block {
        &self.blocks[column]
    }

    pub(crate) fn blocks(&self) -> &[Link<Block>] {
        &self.blocks
    }

    /// Prefetches what reading `slot` of a column takes.
    #[inline]
    pub(crate) fn prefetch(&self, column: usize, slot: usize) {
        self.blocks[column].prefetch_slot(slot);
    }

    /// Prefetches what writing `slot` of a column takes.
    #[inline]
    pub(crate) fn prefetch_write(&self, column: usize, slot: usize) {
        self.blocks[column].prefetch();
        self.blocks[column].ahead().prefetch_slot(slot);
    }

    /// Prefetches a block; if `slots`, with its slots, which are going to be read from the first on.
    #[inline]
    pub(crate) fn prefetch_stream(&self, column: usize, slots: bool) {
        self.blocks[column].prefetch();
        if slots {
            prefetch::prefetch_stream(self.blocks[column].ahead().start());
        }
    }

    /// Prefetches a block and the first `bytes` of its slots, if it is known where they are.
    #[inline]
    pub(crate) fn prefetch_slots(&self, column: usize, bytes: usize) {
        self.blocks[column].prefetch();
        let slots = self.blocks[column].ahead().start();
        if !slots.is_null() {
            prefetch::prefetch_all(slots, bytes);
        }
    }

    /// Its latch.
    #[inline]
    pub(crate) fn latch(&self) -> &Latch {
        &self.latch
    }

    /// Takes the latch, if the slice bears the stamp and is known to be written.
    #[inline]
    pub(crate) fn latched(&self, stamp: Stamp) -> Option<Latched<'_>> {
        (self.stamp == stamp && self.is_hot).then(|| self.latch.take()).flatten()
    }

    // ---- writing: the slice bears the stamp of the edit ---------------------------------------------------

    /// Writes one value to `slot`. If the slot is live, readers of older versions must not see the change.
    #[inline]
    pub(crate) fn write(
        &mut self,
        column: usize,
        slot: usize,
        datum: Datum<'_>,
        schema: &Schema,
        edit: &mut Edit,
    ) {
        debug_assert!(self.stamp == edit.stamp);
        self.is_hot = true;
        let ty = schema[column].ty;
        let link = &mut self.blocks[column];
        let unready = (self.unready != Unready::default()).then(|| Unready::of(link));
        if link.stamp != edit.stamp && edit.alone_has(link.stamp) {
            link.adopt(edit.stamp, |block| &mut block.stamp);
        }
        if link.stamp != edit.stamp {
            let is_ghost = !bitmap::get(&self.live, slot) && !bitmap::get(&self.visible, slot);
            if edit.writes_ghosts && is_ghost && link.admits(slot, datum) {
                return link.store_ghost(slot, datum, ty.physical(), edit.round);
            }
            let copy = match is_ghost && edit.writes_ghosts {
                // The next one to come can be stored beside readers.
                true => link.unpacked_copy(edit.stamp, &self.live, ty.physical()),
                false => link.copy(edit.stamp, &self.live, ty.physical()),
            };
            let copy = Link::new(copy);
            edit.count(copy.bytes() as isize - link.bytes() as isize);
            edit.retire_block(std::mem::replace(link, copy));
        }
        let limit = edit.block_slots;
        let block = link.own(edit.stamp, |block| block.stamp);
        let (bytes, share) = (block.bytes(), block.dictionary_share());
        block.put(slot, datum, &self.live, ty, limit);
        edit.count(
            block.bytes() as isize - bytes as isize - if block.has_dictionary() { 0 } else { share as isize },
        );
        link.renew();
        if let Some(unready) = unready {
            self.unready.remove(unready);
            self.unready.add(Unready::of(link));
        }
    }

    /// Writes a column of many live slots.
    pub(crate) fn scatter(&mut self, column: usize, new: Scattered<'_>, schema: &Schema, edit: &mut Edit) {
        debug_assert!(self.stamp == edit.stamp);
        if new.slots.len() < SCATTERED_MIN {
            return new.each(|slot, datum| self.write(column, slot, datum, schema, edit));
        }
        self.is_hot = true;
        let link = &mut self.blocks[column];
        let block = Block { stamp: edit.stamp, ..link.scatter(new, &self.live, schema[column].ty) };
        edit.count(block.bytes() as isize - (link.bytes() + link.dictionary_share()) as isize);
        self.unready.remove(Unready::of(link));
        self.unready.add(Unready::of(&block));
        if edit.alone_has(link.stamp) {
            link.adopt(edit.stamp, |block| &mut block.stamp);
        }
        if link.stamp == edit.stamp {
            *link.own(edit.stamp, |block| block.stamp) = block;
            link.renew();
        } else {
            edit.retire_block(std::mem::replace(link, Link::new(block)));
        }
    }

    /// Marks the slice as encoded for reading.
    pub(crate) fn settle(&mut self) {
        self.is_settled = true;
    }

    /// Marks the slice as written since it was encoded.
    pub(crate) fn heat(&mut self) {
        self.is_hot = true;
    }

    /// Makes the rows of `mask`, which are live, ghosts.
    pub(crate) fn bury_many(&mut self, mask: &[u64; WORDS]) {
        self.is_hot = true;
        self.live.iter_mut().zip(mask).for_each(|(live, mask)| *live &= !mask);
        self.rows = bitmap::count_ones(&self.live, BLOCK_ROWS);
    }

    /// Makes a slot a row; all of its values have been written.
    pub(crate) fn revive(&mut self, slot: usize) {
        debug_assert!(!self.is_live(slot));
        bitmap::set(&mut self.live, slot, true);
        self.rows += 1;
    }

    /// Makes a row a ghost. Its values stay.
    pub(crate) fn bury(&mut self, slot: usize) {
        debug_assert!(self.is_live(slot));
        self.is_hot = true;
        bitmap::set(&mut self.live, slot, false);
        self.rows -= 1;
    }

    /// Frees the memory of the values, if there is no row.
    pub(crate) fn shed(&mut self, edit: &mut Edit) {
        debug_assert!(self.rows == 0);
        self.unready = Unready::default();
        for link in &mut self.blocks {
            if link.slots() > 0 {
                let empty = Block { stamp: edit.stamp, ..Block::without_slots() };
                edit.count(empty.bytes() as isize - (link.bytes() + link.dictionary_share()) as isize);
                edit.retire_block(std::mem::replace(link, Link::new(empty)));
            }
        }
    }
}

/// The zones of several slices together.
pub(crate) fn zones_of(slices: &[Link<Slice>], columns: usize) -> Arc<[Zone]> {
    let mut zones = vec![Zone::EMPTY; columns];
    for slice in slices.iter().filter(|slice| slice.rows() > 0) {
        zones.iter_mut().zip(slice.blocks()).for_each(|(zone, block)| zone.merge(&block.zone));
    }
    zones.into()
}
