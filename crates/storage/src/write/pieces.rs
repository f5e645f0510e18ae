//! Adds many rows at once: pieces that appenders have encoded become part of the tree. Also the tail of
//! tables in the order of insertion.
//!
//! - *In the order of insertion*: the rows of a small piece are written one by one to the slots at the tail;
//!   a larger piece becomes slices or a row group as it is. A row group that has filled up at the tail is
//!   encoded again as a whole.
//! - *By key*: many rows that come in order, and after all rows of the table, become slices as they are,
//!   since appenders leave the ghost slots free. Other rows are sorted together with those of the table and
//!   laid out again, if they are many compared with these; otherwise they are inserted one by one.

use super::demand::among;
use super::looking::sort;
use super::ranks::Ranks;
use super::row_check::Kept;
use super::spread::{Laid, Source, SourceSlice, deal, lay, links};
use super::{Writer, edit_group};
use crate::block::Block;
use crate::builder::{Effort, GroupBuilder};
use crate::node::Link;
use crate::parallel::Look;
use crate::tree::key::{GRID_ROWS, GRID_SAMPLE, Key};
use crate::tree::{Branch, EncodedSlice, Partition, Piece, RowGroup, RowId, Slice, zones_of};
use crate::value::Datum;
use entasis_vector::Result;
use entasis_vector::statement::{Growth, reserve};
use std::sync::Arc;

/// By key: rows are laid out again if the table has fewer than so many times their number.
const FEW: u64 = 2;
/// In the order of insertion: rows that fill fewer slices are not worth encoding for [`Writer::hang`], since
/// the slice before them stays as full as it was.
const SLICES_MIN: u64 = 4;
/// Rows whose keys are words are distributed to buckets before they are sorted if there are so many row
/// groups, or more.
const BUCKETS_MIN: usize = 3;
/// Rows whose keys are bytes are sorted by ranks if there are so many, or more.
// PERF: a key of bytes for each row is an allocation, and sorting those takes three times as long.
const RANKED_MIN: usize = 4096;

impl Writer<'_> {
    /// Adds the rows of some pieces, in their order; without a layout key, they get consecutive row numbers.
    /// Pieces that somebody else holds are copied. If very many rows are laid out, `workers` threads do it.
    /// `look` is called now and then and may end it.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB; the errors of `look`.
    pub(crate) fn hang(&mut self, pieces: Vec<Arc<Piece>>, workers: usize, look: Look<'_>) -> Result<()> {
        look()?;
        if self.shape.key.is_none() {
            return pieces.into_iter().try_for_each(|piece| {
                look()?;
                self.append(piece)
            });
        }
        let rows: u64 = pieces.iter().map(|piece| piece.rows as u64).sum();
        self.settle_grid(&pieces, rows as usize);
        if self.may_be_behind(rows) && self.is_behind(&pieces) {
            self.hang_behind(pieces);
        } else if self.are_many(rows) {
            self.lay_all(&pieces, workers, look)?;
        } else {
            pieces.iter().try_for_each(|piece| self.insert_piece(piece, look))?;
        }
        Ok(())
    }

    /// True if it pays to encode rows for [`Writer::hang`], so many, of which the first and least has the
    /// key `first`: they will not be inserted one by one.
    pub(crate) fn takes_pieces(&self, rows: u64, first: &Key) -> bool {
        let slices = rows / self.shape.options.block_slots as u64;
        if self.shape.key.is_none() {
            return slices >= SLICES_MIN;
        }
        let is_behind = || self.last_key().is_none_or(|last| last <= *first);
        slices > 0 && (self.are_many(rows) || (self.may_be_behind(rows) && is_behind()))
    }

    /// By key: true if so many rows are laid out together with those of the table.
    fn are_many(&self, rows: u64) -> bool {
        rows * FEW > self.branch.root.rows
    }

    /// By key: true if so many rows become row groups of their own, should they come in order behind those of
    /// the table.
    fn may_be_behind(&self, rows: u64) -> bool {
        self.are_many(rows) || rows >= self.shape.options.group_slots as u64 / 4
    }

    /// Makes the grid of a curve of a sample of the first rows, if they are enough.
    fn settle_grid(&self, pieces: &[Arc<Piece>], rows: usize) {
        let (Some(key), schema) = (&self.shape.key, &self.shape.schema) else { return };
        if rows < GRID_ROWS {
            return;
        }
        let step = rows.div_ceil(GRID_SAMPLE);
        key.settle(|| {
            let mut sample: Vec<Vec<Datum<'_>>> = vec![Vec::new(); key.columns.len()];
            let mut next = 0;
            for slice in pieces.iter().flat_map(|piece| &piece.slices) {
                while next < slice.rows {
                    for (values, &column) in sample.iter_mut().zip(&key.columns) {
                        values.push(slice.blocks[column].datum(next, schema[column].ty.physical()));
                    }
                    next += step;
                }
                next -= slice.rows;
            }
            sample
        });
    }

    fn insert_piece(&mut self, piece: &Piece, look: Look<'_>) -> Result<()> {
        let schema = &self.shape.schema;
        for slice in &piece.slices {
            look()?;
            for slot in 0..slice.rows {
                let blocks = slice.blocks.iter().zip(schema);
                let row: Vec<Datum<'_>> =
                    blocks.map(|(block, field)| block.datum(slot, field.ty.physical())).collect();
                self.insert(&row);
            }
        }
        Ok(())
    }

    // ---- in the order of insertion ------------------------------------------------------------------------

    fn append(&mut self, piece: Arc<Piece>) -> Result<()> {
        let options = &self.shape.options;
        if piece.rows < options.block_slots / 2 {
            return self.insert_piece(&piece, &|| Ok(()));
        }
        let piece = Arc::try_unwrap(piece).unwrap_or_else(|shared| shared.twin(&self.shape.schema));
        let full = &piece.slices[..piece.slices.len() - 1];
        debug_assert!(
            full.iter().all(|slice| slice.rows == options.block_slots),
            "only the last slice has room"
        );
        let room = self.branch.root.groups.last().map_or(0, |last| options.group_slots - last.slots());
        let rows = piece.rows;
        self.branch.edit.count(piece.dictionary_bytes() as isize);
        if rows < options.group_slots / 4 && rows.next_multiple_of(options.block_slots) <= room {
            let Branch { root, edit } = &mut *self.branch;
            let root = root.edit(edit);
            let group = root.groups.last_mut().expect("there is room in one").edit(edit);
            let slices = links(piece.slices, self.shape, edit);
            group.number(group.slots(), root.next_number, edit);
            group.rows += rows;
            group.touch();
            let added = zones_of(&slices, group.zones.len());
            let mut zones = group.zones.to_vec();
            zones.iter_mut().zip(added.iter()).for_each(|(zone, added)| zone.merge(added));
            group.zones = zones.into();
            group.slices.extend(slices);
        } else {
            self.settle()?;
            let laid = Laid { slices: piece.slices, partitions: Vec::new(), fences: Vec::new() };
            let group = self.group_of(laid);
            self.branch.root.edit(&mut self.branch.edit).groups.push(Link::new(group));
        }
        let root = self.branch.root.edit(&mut self.branch.edit);
        root.rows += rows as u64;
        root.next_number += rows as u64;
        Ok(())
    }

    /// The slot after all others.
    pub(super) fn tail_slot(&mut self) -> RowId {
        if self.branch.root.groups.is_empty() {
            self.add_group();
        }
        loop {
            let last = self.branch.root.groups.len() - 1;
            let group = &self.branch.root.groups[last];
            let slice = group.slices.last().expect("a row group has slices");
            let used = slice.live().iter().zip(slice.visible()).enumerate().rev();
            let used =
                used.map(|(word, (live, visible))| (word, live | visible)).find(|(_, bits)| *bits != 0);
            let next = used.map_or(0, |(word, bits)| word * 64 + 64 - bits.leading_zeros() as usize);
            if next < group.block_slots {
                let slot = (group.slices.len() - 1) * group.block_slots + next;
                return RowId { group: last as u32, slot: slot as u32 };
            }
            if group.slots() < self.shape.options.group_slots {
                let columns = self.shape.schema.len();
                let (group, edit) = edit_group(self.branch, last);
                group.slices.push(Link::new(Slice::empty(columns, edit)));
            } else {
                self.settle().expect("strings that are in memory fit their blocks");
                self.add_group();
            }
        }
    }

    /// Encodes the last row group with full effort, if it has been written since that was done and has no
    /// empty slot.
    fn settle(&mut self) -> Result<()> {
        let Some((last, group)) = self.branch.root.groups.iter().enumerate().next_back() else {
            return Ok(());
        };
        if !group.wear.is_hot || group.rows < group.slots() {
            return Ok(());
        }
        let mut builder = self.builder();
        builder.append_slots(&**group, 0..group.rows, &self.shape.schema)?;
        self.replace_slices(last, builder.finish());
        Ok(())
    }

    /// A builder that encodes idle rows.
    pub(super) fn builder(&self) -> GroupBuilder {
        let options = &self.shape.options;
        let effort = Effort {
            sketch: false,
            block_rows: options.block_slots,
            capacity: 0,
            group_rows: options.group_slots,
        };
        GroupBuilder::new(self.shape, effort)
    }

    /// Replaces the slices of a row group without partitions by a piece with the same rows.
    pub(super) fn replace_slices(&mut self, group: usize, piece: Piece) {
        let columns = self.shape.schema.len();
        let (group, edit) = edit_group(self.branch, group);
        edit.count(piece.dictionary_bytes() as isize);
        let new = links(piece.slices, self.shape, edit);
        Kept::of(&group.slices, self.shape).assert_same_rows(&new, self.shape);
        let old = std::mem::replace(&mut group.slices, new);
        group.zones = zones_of(&group.slices, columns);
        group.wear.is_hot = false;
        group.digest(&self.shape.schema, edit);
        old.into_iter().for_each(|slice| edit.retire_whole_slice(slice));
    }

    /// Adds a row group of one empty slice. In a table with a key it is the first.
    pub(super) fn add_group(&mut self) {
        let slices = vec![EncodedSlice::empty(self.shape.schema.len())];
        let least = self.shape.key.as_ref().map(|key| key.least());
        let slots = self.shape.options.block_slots as u32;
        let partitions = vec![Partition { start: 0, end: slots, rows: 0 }];
        let fences: Vec<Key> = least.into_iter().collect();
        let group = self.group_of(Laid { slices, partitions, fences: fences.clone() });
        let root = self.branch.root.edit(&mut self.branch.edit);
        root.groups.push(Link::new(group));
        let end = root.fences.len();
        root.fences.splice(end..end, fences);
    }

    // ---- by key -------------------------------------------------------------------------------------------

    /// True if the rows of some pieces are in order, come after all rows of the table, and fill slices that
    /// make whole partitions.
    fn is_behind(&self, pieces: &[Arc<Piece>]) -> bool {
        let (shape, key) = (self.shape, self.shape.key.as_ref().expect("the table has a layout key"));
        let options = &shape.options;
        if !options.partition_slots().is_multiple_of(options.block_slots) {
            return false;
        }
        let mut last = self.last_key();
        let mut follows = |slice: &EncodedSlice, slot: usize| {
            let next =
                key.of_row(|column| slice.blocks[column].datum(slot, shape.schema[column].ty.physical()));
            let follows = last.as_ref().is_none_or(|last| *last <= next);
            last = Some(next);
            follows
        };
        pieces.iter().flat_map(|piece| &piece.slices).all(|slice| match &key.columns[..] {
            // The block knows whether it ascends strictly.
            &[column] if slice.blocks[column].ascending => {
                follows(slice, 0) && follows(slice, slice.rows - 1)
            }
            _ => (0..slice.rows).all(|slot| follows(slice, slot)),
        })
    }

    /// The greatest key of a row, or where the last partition begins if it has none.
    fn last_key(&self) -> Option<Key> {
        self.branch.root.groups.last().map(|group| {
            let partition = group.partitions.len() - 1;
            let (slots, least) = (group.partitions[partition].slots(), group.fences.get(partition));
            let mut last = least;
            group.each_live(slots.clone(), |position| {
                let (slice, slot) = (
                    (slots.start + position) / group.block_slots,
                    (slots.start + position) % group.block_slots,
                );
                last = last.clone().max(self.shape.key_of(group, slice as u32, slot as u32));
            });
            last
        })
    }

    /// Adds pieces after all rows of the table, with a partition for each slice or for several.
    fn hang_behind(&mut self, pieces: Vec<Arc<Piece>>) {
        let (shape, options) = (self.shape, &self.shape.options);
        let width = options.block_slots;
        if self.branch.root.rows == 0 {
            self.clear();
        }
        let mut slices: Vec<EncodedSlice> = Vec::new();
        for piece in pieces {
            self.branch.edit.count(piece.dictionary_bytes() as isize);
            let piece = Arc::try_unwrap(piece).unwrap_or_else(|shared| shared.twin(&shape.schema));
            slices.extend(piece.slices);
        }
        let key = shape.key.as_ref().expect("the table has a layout key");
        let wide = options.partition_slots() / width;
        let mut slices = slices.into_iter().peekable();
        while slices.peek().is_some() {
            let mut laid = Laid { slices: Vec::new(), partitions: Vec::new(), fences: Vec::new() };
            for number in 0..options.group_slots / width {
                let Some(mut slice) = slices.next() else { break };
                let slots = (number * width) as u32..((number + 1) * width) as u32;
                let first =
                    key.of_row(|column| slice.blocks[column].datum(0, shape.schema[column].ty.physical()));
                match laid.partitions.last_mut() {
                    Some(partition) if number % wide > 0 => {
                        partition.end = slots.end;
                        partition.rows += slice.rows as u32;
                    }
                    _ => {
                        let rows = slice.rows as u32;
                        laid.partitions.push(Partition { start: slots.start, end: slots.end, rows });
                        let is_first = number == 0 && self.branch.root.groups.is_empty();
                        laid.fences.push(if is_first { key.least() } else { first });
                    }
                }
                // Rows will be inserted between these, and no ghost slot of a block is written while the
                // block is known to ascend.
                slice.blocks.iter_mut().for_each(|block| block.ascending = false);
                laid.slices.push(slice);
            }
            let group = self.group_of(laid);
            let root = self.branch.root.edit(&mut self.branch.edit);
            root.rows += group.rows as u64;
            let (end, fence) = (root.fences.len(), group.fences.get(0));
            root.fences.splice(end..end, vec![fence]);
            root.groups.push(Link::new(group));
        }
    }

    /// Lays out all rows again: those of the table and those of the pieces.
    ///
    /// # Errors
    /// Those of `look`; resource, if the statement has no memory for it.
    fn lay_all(&mut self, pieces: &[Arc<Piece>], workers: usize, look: Look<'_>) -> Result<()> {
        let (shape, old) = (self.shape, self.branch.root.groups.clone());
        let key = shape.key.as_ref().expect("the table has a layout key");
        // The parts are the slices of the table, then those of the pieces.
        let mut parts: Vec<SourceSlice<'_>> = Vec::new();
        for slice in old.iter().flat_map(|group| &group.slices) {
            parts.push(SourceSlice {
                live: slice.live(),
                blocks: slice.blocks().iter().map(|block| &**block).collect(),
            });
        }
        for slice in pieces.iter().flat_map(|piece| &piece.slices) {
            parts.push(SourceSlice { live: &slice.live, blocks: slice.blocks.iter().collect() });
        }
        let rows = parts.iter().map(SourceSlice::rows).sum::<usize>();
        // The new blocks are there beside the old ones before anybody counts them.
        let bytes: usize = parts.iter().flat_map(|part| &part.blocks).map(|block| block.bytes()).sum();
        let _memory = reserve(bytes)?;
        let many = match key.least() {
            Key::Word(_) => BUCKETS_MIN * shape.options.group_slots,
            Key::Bytes(_) => RANKED_MIN,
        };
        let groups = match (many..u32::MAX as usize).contains(&rows) {
            true => self.lay_many(&parts, workers, look)?,
            false => {
                let key_of = |part: &SourceSlice<'_>, slot: usize| {
                    key.of_row(|column| part.blocks[column].datum(slot, shape.schema[column].ty.physical()))
                };
                match key.least() {
                    // PERF: words are sorted faster.
                    Key::Word(_) => {
                        let word = |part: &SourceSlice<'_>, slot: usize| match key_of(part, slot) {
                            Key::Word(word) => word,
                            Key::Bytes(_) => unreachable!("keys of a table are of one kind"),
                        };
                        self.lay_parts(&parts, &word, &|&word| Key::Word(word), look)?
                    }
                    Key::Bytes(_) => self.lay_parts(&parts, &key_of, &Key::clone, look)?,
                }
            }
        };
        self.replace_groups(groups);
        Ok(())
    }

    /// Lays out very many rows.
    ///
    /// # Errors
    /// Those of `look`; resource, if the statement has no memory for it.
    pub(super) fn lay_many(
        &self,
        parts: &[SourceSlice<'_>],
        workers: usize,
        look: Look<'_>,
    ) -> Result<Vec<RowGroup>> {
        let (shape, key) = (self.shape, self.shape.key.as_ref().expect("the table has a layout key"));
        match key.least() {
            Key::Word(_) => {
                let mut words = Vec::with_capacity(parts.iter().map(SourceSlice::rows).sum());
                for part in parts {
                    look()?;
                    part.each_live(|slot| {
                        let datum = |column: usize| {
                            part.blocks[column].datum(slot, shape.schema[column].ty.physical())
                        };
                        if let Key::Word(word) = key.of_row(datum) {
                            words.push(word);
                        }
                    });
                }
                self.lay_buckets(parts, words, &Key::Word, (workers, look))
            }
            Key::Bytes(_) => {
                let mut ranks = Ranks::of(parts, key, &shape.schema, (workers, look))?;
                let words = std::mem::take(&mut ranks.of_rows);
                self.lay_buckets(parts, words, &|rank| ranks.key(rank), (workers, look))
            }
        }
    }

    /// Replaces all row groups by new ones.
    pub(super) fn replace_groups(&mut self, mut groups: Vec<RowGroup>) {
        let Branch { root, edit } = &mut *self.branch;
        let root = root.edit(edit);
        let old: Vec<_> = root.groups.iter().map(|group| &group.counters).collect();
        deal(self.shape, &old, &mut groups);
        root.rows = groups.iter().map(|group| group.rows as u64).sum();
        let fences = groups.iter().map(|group| group.fences.get(0)).collect();
        root.fences.splice(0..root.fences.len(), fences);
        let old = std::mem::replace(&mut root.groups, groups.into_iter().map(Link::new).collect());
        old.into_iter().for_each(|group| edit.retire_whole_group(group));
    }

    /// Lays out the rows of some parts, of each of which `key_of` gives the key in a form that sorts fast.
    ///
    /// # Errors
    /// Those of `look`; resource, if the statement has no memory for the keys.
    pub(super) fn lay_parts<K: Ord + Send>(
        &self,
        parts: &[SourceSlice<'_>],
        key_of: &dyn Fn(&SourceSlice<'_>, usize) -> K,
        key: &dyn Fn(&K) -> Key,
        look: Look<'_>,
    ) -> Result<Vec<RowGroup>> {
        let options = &self.shape.options;
        let mut growth = Growth::default();
        let count = parts.iter().map(SourceSlice::rows).sum();
        growth.add(count * size_of::<Source<K>>())?;
        let mut rows: Vec<Source<K>> = Vec::with_capacity(count);
        for (number, part) in parts.iter().enumerate() {
            look()?;
            let from = rows.len();
            part.each_live(|slot| rows.push((key_of(part, slot), number as u32, slot as u32)));
            growth.add(rows[from..].iter().map(|row| key(&row.0).bytes()).sum())?;
        }
        sort(&mut rows, &Ord::cmp, (1, look))?;
        let filled = |slots: usize| options.filled_slots(slots);
        let block = |part: u32, column: usize| -> &Block { parts[part as usize].blocks[column] };
        let groups = rows.len().div_ceil(filled(options.group_slots)).max(1);
        let mut least = self.shape.key.as_ref().expect("the table has a layout key").least();
        let expected = self.expected();
        let mut laid = Vec::with_capacity(groups);
        for group in 0..groups {
            look()?;
            let own = &rows[group * rows.len() / groups..(group + 1) * rows.len() / groups];
            if group > 0 {
                least = key(&own[0].0);
            }
            let slices = own
                .len()
                .div_ceil(filled(options.block_slots))
                .clamp(1, options.group_slots / options.block_slots);
            let free = (slices * options.block_slots).saturating_sub(own.len()) as u64;
            let wanted = among(own, |row| key(&row.0), &expected, free);
            laid.push(self.group_of(lay(own, (slices, &wanted), self.shape, least.clone(), key, &block)));
        }
        Ok(laid)
    }
}
