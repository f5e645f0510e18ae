//! Row groups: up to 131072 slots of all columns, and how they are read.
//!
//! ```text
//! row group   slices of 1024 slots       [1024] [1024] [1024] … [1024]
//! partitions  contiguous slots           |  0  |   1   |  2 |  …  | n |    each holds one range of the layout key,
//!             their fences, ascending    k0    k1      k2               unordered inside, ghosts among its slots
//! ```
//! A slot is a row iff it is live. A table without a layout key has no partitions. A row group is a node of the version
//! tree: what a snapshot shows of it never changes.
//!
//! Zones only widen, so older versions may share them.

use crate::BLOCK_ROWS;
use crate::block::masks::{WORDS, bits_inside, first_slots};
use crate::block::{Block, with_integer};
use crate::code_set::Condition;
use crate::digest::{Digest, Digests};
use crate::key::{Fences, Key, NEAR};
use crate::node::{Ahead, Link, Linked, Stamp, prefetch};
use crate::positions::push_bits;
use crate::read::{self, Slices};
use crate::sync::{AtomicBool, Ordering};
use crate::tree::{Edit, Node, Slice};
use crate::value::Zone;
use entasis_vector::{CHUNK_ROWS, PhysicalType, Schema, Vector, bitmap};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the next block's slots that a reader asks for, at most: those of a block of 8-byte numbers.
const BEHIND_BYTES: usize = 8192;

/// A contiguous range of slots that holds one range of the layout key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Live slots.
    pub(crate) rows: u32,
}

impl Partition {
    pub(crate) fn slots(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Slots that are not live.
    pub(crate) fn ghosts(&self) -> usize {
        (self.end - self.start - self.rows) as usize
    }
}

/// Values from `low` to `high` of a column of integers of up to 64 bits; or floats whose ordinals these are
/// ([`entasis_vector::value::float_ordinal`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRange {
    /// Index in the table.
    pub column: usize,
    /// How its values are held.
    pub physical: PhysicalType,
    /// The least value.
    pub low: i128,
    /// The greatest.
    pub high: i128,
}

impl ValueRange {
    /// False if no value of a zone lies in it.
    pub fn meets(&self, zone: &Zone) -> bool {
        match (zone.min.ordinal(), zone.max.ordinal()) {
            (Some(min), Some(max)) => min <= self.high && max >= self.low,
            _ => !zone.min.is_null(),
        }
    }
}

/// See the module.
pub struct RowGroup {
    pub(crate) stamp: Stamp,
    pub(crate) block_slots: usize,
    pub(crate) slices: Vec<Link<Slice>>,
    /// Live slots.
    pub(crate) rows: usize,
    /// By column.
    pub(crate) zones: Arc<[Zone]>,
    /// In the order of slots, which they cover.
    pub(crate) partitions: Vec<Partition>,
    /// The fences of the partitions.
    pub(crate) fences: Fences,
    /// What scans read of its blocks, as long as nobody writes them.
    pub(crate) digests: Option<Digests>,
    /// True if some of it was written since it was encoded.
    pub(crate) is_hot: bool,
    /// True if some of it was written since upkeep last looked.
    pub(crate) is_touched: AtomicBool,
}

/// What readers of a row group that look for a key go to next.
#[derive(Clone, Copy)]
pub(crate) struct GroupAhead {
    fences: Ahead,
    partitions: Ahead,
    slices: Ahead,
    /// Partitions.
    parts: u32,
    slice_count: u32,
    /// The second fence (the first may be below all keys) and the last.
    bounds: (u64, u64),
}

impl Linked for RowGroup {
    type Ahead = GroupAhead;
    fn ahead(&self) -> GroupAhead {
        let (fences, bounds) = match &self.fences {
            Fences::Words(words) if words.len() > 2 => (Ahead::to(words.as_ptr()), (words[1], words[words.len() - 1])),
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
    /// Guesses the partition of a key, as if keys were spread evenly, and asks for what leads from there to a slice: fences,
    /// partitions and links to slices are read one after the other.
    #[inline]
    pub(crate) fn prefetch_part(self, key: &Key) -> usize {
        self.prefetch();
        let GroupAhead { fences, partitions, slices, parts, slice_count, bounds: (low, high) } = self.ahead();
        let Key::Word(key) = key else { return 0 };
        if low >= high {
            return 0;
        }
        let share = key.saturating_sub(low) as f64 / (high - low) as f64;
        // A key that is far above all fences gives the greatest number, which is cut off.
        let guess = ((share * f64::from(parts.saturating_sub(2))) as usize).saturating_add(1).min(parts as usize - 1);
        let slice = guess * slice_count as usize / parts as usize;
        let first = guess.saturating_sub(NEAR / 2);
        prefetch::prefetch_all(fences.start().wrapping_add(first * size_of::<u64>()), NEAR * size_of::<u64>());
        prefetch::prefetch_all(partitions.start().wrapping_add(guess * size_of::<Partition>()), size_of::<Partition>());
        prefetch::prefetch_all(
            slices.start().wrapping_add(slice * size_of::<Link<Slice>>()),
            2 * size_of::<Link<Slice>>(),
        );
        guess
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
            is_touched: AtomicBool::new(self.is_touched.load(Ordering::Relaxed)),
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
    // PERF: the values of the next block, and what leads to those of a later one. Asked for values further on, the processor no longer
    // goes on by itself.
    fn prefetch_behind(&self, slice: usize, column: usize) {
        let ahead = |steps: usize| self.slices.get(slice + steps).into_iter();
        let bytes = self.slices[slice].block(column).values.bytes().min(BEHIND_BYTES);
        ahead(3).for_each(|slice| slice.prefetch_stream(column, false));
        ahead(1).for_each(|slice| slice.prefetch_slots(column, bytes));
    }
}

impl RowGroup {
    /// Makes the digests of its blocks, which nobody writes until it is given out again.
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

    /// Says that it is written.
    pub(crate) fn touch(&mut self) {
        self.is_hot = true;
        *self.is_touched.get_mut() = true;
    }

    // ---- what is known of it -----------------------------------------------------------------------------------

    /// Rows: slots that are live.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Slots, live or not.
    pub fn slots(&self) -> usize {
        self.slices.len() * self.block_slots
    }

    /// Blocks of each column.
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

    /// False if no value of a block lies in a range of its column. To be asked of one block after the other.
    pub fn may_be_within(&self, block: usize, range: &ValueRange) -> bool {
        match self.digest_of(range.column, block).and_then(|digest| digest.bounds()) {
            Some((low, high)) => i128::from(low) <= range.high && range.low <= i128::from(high),
            None => {
                self.prefetch_zones(block, &[range.column]);
                range.meets(self.zone(range.column, block))
            }
        }
    }

    /// True if ranges of a column are compared without looking at most of its blocks.
    pub fn is_digested(&self, column: usize) -> bool {
        self.digest_of(column, 0).is_some()
    }

    #[inline]
    fn digest_of(&self, column: usize, block: usize) -> Option<&Digest> {
        self.digests.as_ref()?.of(column, block)
    }

    /// Bounds of a column within the whole row group.
    pub fn column_zone(&self, column: usize) -> &Zone {
        &self.zones[column]
    }

    /// Bytes of memory; those of dictionaries only where the slice before does not have the same.
    pub fn bytes(&self) -> usize {
        let columns = self.zones.len();
        let of_block = |slice: usize, column: usize| {
            let block = self.slices[slice].block(column);
            let shared = slice > 0 && self.slices[slice - 1].block(column).shares_dictionary(block);
            if shared { 0 } else { block.dictionary_bytes() }
        };
        let dictionaries = |c| (0..self.blocks()).map(|s| of_block(s, c)).sum::<usize>();
        let slices: usize = self.slices.iter().map(|slice| slice.bytes()).sum();
        slices + self.digest_bytes() + (0..columns).map(dictionaries).sum::<usize>()
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

    /// Rows that are NULL in a column.
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

    // ---- reading -----------------------------------------------------------------------------------------------

    /// Live slots within some.
    pub fn live_rows(&self, slots: Range<usize>) -> usize {
        if slots == (0..self.slots()) {
            return self.rows;
        }
        self.live_words(slots).map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// True if all of `slots` are live.
    pub fn is_full(&self, slots: Range<usize>) -> bool {
        let width = self.block_slots;
        let slices = slots.start / width..slots.end.div_ceil(width);
        self.slices[slices].iter().all(|slice| slice.rows() == width) || self.live_rows(slots.clone()) == slots.len()
    }

    /// Calls `each` with the position in the window, from its start, of every live slot.
    pub fn each_live(&self, window: Range<usize>, mut each: impl FnMut(usize)) {
        let start = window.start;
        for (first, mut word) in self.live_words(window) {
            while word != 0 {
                each(first + word.trailing_zeros() as usize - start);
                word &= word - 1;
            }
        }
    }

    /// Asks for the memory of `columns` in the blocks that a scan will come to after the one of `slot`, those that are
    /// `wanted`. What leads to a block is asked for earlier, as each step needs the memory of the one before.
    // PERF: a scan reads a block in the time of one or two misses, and comes to it by four.
    pub fn prefetch(&self, slot: usize, columns: &[usize], wanted: &[bool]) {
        const LEAD: usize = CHUNK_ROWS / BLOCK_ROWS;
        let next = slot / self.block_slots;
        let ahead = |steps: usize| {
            let from = next + steps * LEAD;
            let slices = self.slices.get(from..).unwrap_or_default().iter().take(LEAD);
            slices.zip(&wanted[from.min(wanted.len())..]).filter(|(_, wanted)| **wanted).map(|(slice, _)| slice)
        };
        ahead(3).for_each(|slice| slice.prefetch_with(columns.iter().copied()));
        ahead(1).for_each(|slice| columns.iter().for_each(|&column| slice.prefetch_stream(column, true)));
    }

    /// Asks for the bounds of `columns` in a block that is looked at soon after `block`, which was asked for before, and for what
    /// leads to those of a later one. To be called for one block after the other.
    pub fn prefetch_zones(&self, block: usize, columns: &[usize]) {
        const LEAD: usize = 4;
        let ahead = |steps: usize| self.slices.get(block + steps * LEAD).into_iter();
        ahead(2).for_each(|slice| slice.prefetch_with(columns.iter().copied()));
        ahead(1).for_each(|slice| columns.iter().for_each(|&column| slice.prefetch_stream(column, false)));
    }

    /// The first run of live slots among some, as long as may be.
    pub fn next_run(&self, slots: Range<usize>) -> Option<Range<usize>> {
        let width = self.block_slots;
        let mut run: Option<usize> = None;
        let mut at = slots.start;
        for number in slots.start / width..slots.end.div_ceil(width) {
            let (start, slice) = (number * width, &*self.slices[number]);
            let end = slots.end.min(start + width);
            if slice.rows() == width {
                run.get_or_insert(at);
                at = end;
                continue;
            }
            while at < end {
                let offset = at - start;
                // PERF: most words are full.
                if offset.is_multiple_of(64) && end - at >= 64 && slice.live()[offset / 64] == u64::MAX {
                    run.get_or_insert(at);
                    at += 64;
                    continue;
                }
                let left = (64 - offset % 64).min(end - at);
                let bits = slice.live()[offset / 64] >> (offset % 64);
                match run {
                    Some(first) => {
                        let live = (!bits).trailing_zeros() as usize;
                        if live < left {
                            return Some(first..at + live);
                        }
                        at += left;
                    }
                    None => {
                        let dead = bits.trailing_zeros() as usize;
                        at += dead.min(left);
                        run = (dead < left).then_some(at);
                    }
                }
            }
        }
        run.map(|first| first..slots.end)
    }

    /// Appends the positions of the rows among the slots of `runs` that satisfy all of `conditions`, which are tested
    /// in their order. Positions count the slots one run behind the other, which are at most 65,536.
    pub fn select_runs(&self, conditions: &[Condition], runs: &[Range<usize>], rows: &mut Vec<u16>) {
        let width = self.block_slots;
        let is_full = self.rows == self.slots();
        let mut at = 0;
        for run in runs {
            for number in run.start / width..run.end.div_ceil(width) {
                let start = number * width;
                let inside = run.start.max(start) - start..run.end.min(start + width) - start;
                let mut masks = if is_full { [u64::MAX; WORDS] } else { *self.slices[number].live() };
                if inside != (0..BLOCK_ROWS) {
                    masks.iter_mut().enumerate().for_each(|(word, mask)| *mask &= bits_inside(word * 64, &inside));
                }
                if conditions.iter().all(|condition| self.narrow(number, condition, &mut masks) != 0) {
                    let words = inside.end.div_ceil(64);
                    push_bits((at as u16).wrapping_sub(inside.start as u16), &masks[..words], rows);
                }
                at += inside.len();
            }
        }
    }

    /// Narrows `masks`, a bit a slot, to the slots of a slice that satisfy a condition. All bits that are left, or-ed.
    #[inline]
    fn narrow(&self, slice: usize, condition: &Condition, masks: &mut [u64; WORDS]) -> u64 {
        let column = condition.column();
        if let Condition::Range(range) = condition
            && let Some(digest) = self.digest_of(column, slice)
            && let Some(left) = digest.narrow(range.low, range.high, masks, self.digest_of(column, slice + 1))
        {
            return left;
        }
        if let Some(ahead) = self.slices.get(slice + 6) {
            ahead.prefetch_with(std::iter::once(column));
        }
        self.prefetch_behind(slice, column);
        let block = self.slices[slice].block(column);
        let masks = &mut masks[..block.slots().div_ceil(64)];
        match condition {
            Condition::Range(range) => block.narrow_within(range.low, range.high, masks, range.physical),
            Condition::Codes(_, set) => block.narrow_codes(set, masks),
        }
        masks.iter().fold(0, |any, mask| any | mask)
    }

    /// Calls `each` with every run of live slots that follow one another, as positions in the window from its start.
    /// Runs are as long as may be, but for the ends of blocks.
    pub fn each_run(&self, window: Range<usize>, mut each: impl FnMut(Range<usize>)) {
        let start = window.start;
        let mut run = 0..0;
        for (first, mut word) in self.live_words(window) {
            while word != 0 {
                let from = word.trailing_zeros();
                let len = (!(word >> from)).trailing_zeros();
                let at = first + from as usize - start;
                if run.end != at {
                    if !run.is_empty() {
                        each(run);
                    }
                    run = at..at;
                }
                run.end += len as usize;
                word = if from + len == 64 { 0 } else { word >> (from + len) << (from + len) };
            }
        }
        if !run.is_empty() {
            each(run);
        }
    }

    /// The live bits of a window, in words: the slot of bit 0, and the bits of those in the window.
    pub(crate) fn live_words(&self, window: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let width = self.block_slots;
        let slices = window.start / width..window.end.div_ceil(width);
        slices.flat_map(move |number| {
            let slice = &*self.slices[number];
            let start = number * width;
            let (first, last) = (window.start.max(start) - start, window.end.min(start + width) - start);
            (first / 64..last.div_ceil(64)).map(move |word| {
                let mut bits = slice.live()[word];
                if word == first / 64 {
                    bits &= u64::MAX << (first % 64);
                }
                if (word + 1) * 64 > last {
                    bits &= u64::MAX >> ((word + 1) * 64 - last);
                }
                (start + word * 64, bits)
            })
        })
    }

    /// True if `slot` is a row.
    pub fn is_live(&self, slot: usize) -> bool {
        self.slices[slot / self.block_slots].is_live(slot % self.block_slots)
    }

    /// Decodes `rows` slots of a column, from slot `first` on, to positions 0 to `rows` - 1 of `out`, which has the
    /// column's default physical type. At most 2048 slots; the window may start anywhere. Positions of slots that are
    /// not live are arbitrary.
    pub fn decode(&self, column: usize, first: usize, rows: usize, out: &mut Vector) {
        self.decode_runs(column, out.physical(), std::slice::from_ref(&(first..first + rows)), out);
    }

    /// Decodes several runs of slots, at most [`CHUNK_ROWS`] in all, whose values come one behind the other. `held` is the
    /// column's default physical type; `out` has that, or a narrower one of integers that hold every value.
    pub fn decode_runs(&self, column: usize, held: PhysicalType, runs: &[Range<usize>], out: &mut Vector) {
        let slots: usize = runs.iter().map(Range::len).sum();
        read::decode(self, column, held, runs, slots.max(CHUNK_ROWS), out);
    }

    /// Like [`RowGroup::decode_runs`], but only the given positions of `out`, of live slots, need be defined.
    pub fn decode_selected_runs(
        &self,
        column: usize,
        held: PhysicalType,
        runs: &[Range<usize>],
        positions: &[u16],
        out: &mut Vector,
    ) {
        let slots: usize = runs.iter().map(Range::len).sum();
        read::decode_selected(self, column, held, runs, positions, slots.max(CHUNK_ROWS), out);
    }

    /// Decodes the given positions of runs, which ascend and are of live slots, one behind the other. `held` and `out` as in
    /// [`RowGroup::decode_runs`].
    // PERF: what follows is as short as they are few, and what leads to their blocks is waited for together.
    pub fn gather_runs(
        &self,
        column: usize,
        held: PhysicalType,
        runs: &[Range<usize>],
        positions: &[u16],
        out: &mut Vector,
    ) {
        if self.gather_by_digests(column, runs, positions, out) {
            return;
        }
        let width = self.block_slots;
        let slices = runs.iter().flat_map(|run| run.start / width..run.end.div_ceil(width));
        slices.for_each(|slice| self.slices[slice].prefetch_stream(column, true));
        read::gather(self, column, held, runs, positions, positions.len().max(CHUNK_ROWS), out);
    }

    /// [`RowGroup::gather_runs`] without looking at blocks; false if that is not possible.
    fn gather_by_digests(&self, column: usize, runs: &[Range<usize>], positions: &[u16], out: &mut Vector) -> bool {
        let parts = || read::parts(self.block_slots, runs);
        if !parts().all(|part| self.digest_of(column, part.slice).is_some_and(|digest| digest.is_known())) {
            return false;
        }
        with_integer!(out.physical(), T => {
            let target = out.begin_flat::<T>(positions.len().max(CHUNK_ROWS));
            let mut end = 0;
            for part in parts() {
                let own = part.positions(end, positions);
                end = own.end;
                let next = self.digest_of(column, part.slice + 1);
                if let Some(digest) = self.digest_of(column, part.slice).filter(|_| !own.is_empty()) {
                    digest.gather::<T>(part.slots(&positions[own.clone()]), &mut target[own], next);
                }
            }
        });
        true
    }

    /// Like [`RowGroup::decode`], but only the given positions of `out`, of live slots, need be defined.
    pub fn decode_selected(&self, column: usize, first: usize, positions: &[u16], rows: usize, out: &mut Vector) {
        self.decode_selected_runs(column, out.physical(), std::slice::from_ref(&(first..first + rows)), positions, out);
    }
}

impl std::fmt::Debug for RowGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowGroup({} rows, {} bytes)", self.rows, self.bytes())
    }
}

/// Rows that a builder has encoded, and that hang in no table yet.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) block_slots: usize,
    pub(crate) slices: Vec<EncodedSlice>,
    pub(crate) rows: usize,
}

/// Up to 1024 slots of all columns that hang in no table yet.
#[derive(Debug)]
pub(crate) struct EncodedSlice {
    pub(crate) rows: usize,
    pub(crate) live: [u64; WORDS],
    pub(crate) blocks: Vec<Block>,
}

impl EncodedSlice {
    pub(crate) fn new(rows: usize, blocks: Vec<Block>) -> EncodedSlice {
        EncodedSlice { rows, live: first_slots(rows), blocks }
    }

    /// A slice without rows, and without memory for any.
    pub(crate) fn empty(columns: usize) -> EncodedSlice {
        let block = || Block { ascending: true, ..Block::all_null(0) };
        EncodedSlice::new(0, (0..columns).map(|_| block()).collect())
    }

    /// A slice whose live slots are `live`.
    pub(crate) fn of(live: [u64; WORDS], blocks: Vec<Block>) -> EncodedSlice {
        EncodedSlice { rows: bitmap::count_ones(&live, BLOCK_ROWS), live, blocks }
    }
}

impl Slices for Piece {
    fn block_slots(&self) -> usize {
        self.block_slots
    }
    fn block(&self, slice: usize, column: usize) -> (&Block, &[u64; WORDS]) {
        (&self.slices[slice].blocks[column], &self.slices[slice].live)
    }
}

impl Piece {
    /// Another piece with the same rows.
    pub(crate) fn twin(&self, schema: &Schema) -> Piece {
        let twin = |slice: &EncodedSlice| {
            let blocks = slice.blocks.iter().zip(schema);
            let blocks = blocks.map(|(block, field)| block.twin(&slice.live, field.ty.physical())).collect();
            EncodedSlice { rows: slice.rows, live: slice.live, blocks }
        };
        Piece { block_slots: self.block_slots, slices: self.slices.iter().map(twin).collect(), rows: self.rows }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.slices
            .iter()
            .flat_map(|slice| &slice.blocks)
            .map(|block| block.bytes() + block.dictionary_bytes() / 64)
            .sum()
    }

    /// Bytes of its dictionaries.
    pub(crate) fn dictionary_bytes(&self) -> usize {
        let columns = 0..self.slices.first().map_or(0, |slice| slice.blocks.len());
        let of_slice = |number: usize, column: usize| {
            let block = |number: usize| &self.slices[number].blocks[column];
            let shared = number > 0 && block(number - 1).shares_dictionary(block(number));
            if shared { 0 } else { block(number).dictionary_bytes() }
        };
        let of_column = |column| (0..self.slices.len()).map(|number| of_slice(number, column)).sum::<usize>();
        columns.map(of_column).sum()
    }
}
