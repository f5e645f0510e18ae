//! Row groups: up to 131072 slots of all columns, and how they are read.
//!
//! ```text
//! row group   slices of 1024 slots                runs: fewer than 1024 slots in all, sizes at least halve
//!             [1024] [1024] [1024] … [1024]       [512] [37] [16] [1]
//!             each: one block a column
//! ```
//! A row group never changes. One that has taken single rows ends in *runs*: adding a row adds a run of one row to a new
//! version of the group, and runs of similar size are merged, as in a binary counter. Each row is so copied at most
//! ten times before it stands in a full slice, whoever holds older versions; nothing is ever written in place.
//!
//! **Reading.** A window of up to 2048 slots is decoded column by column. It comes out as a constant if all its blocks
//! are the same constant, as codes if they share a dictionary, and flat otherwise. Strings are views into the blocks and
//! dictionaries, good as long as the snapshot is held.

use crate::block::{Block, Fixed, Values, constant_view, with_fixed};
use crate::builder::{Effort, GroupBuilder};
use crate::zone::Zone;
use crate::{BLOCK_ROWS, ROW_GROUP_ROWS};
use entasis_vector::{CHUNK_ROWS, Dictionary, Field, Result, StringView, Vector};
use std::ops::Range;
use std::sync::Arc;

/// Up to 1024 slots of all columns.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) rows: usize,
    pub(crate) blocks: Box<[Arc<Block>]>,
}

/// Up to 131072 rows of a table. Slots are dense from 0, and all are live.
pub struct RowGroup {
    /// Slices of exactly 1024 slots.
    slices: Vec<Arc<Slice>>,
    /// What follows them.
    runs: Vec<Arc<Slice>>,
    rows: usize,
    /// Zones by column: of all slices, of all runs, of both.
    slices_zones: Box<[Zone]>,
    runs_zones: Box<[Zone]>,
    zones: Box<[Zone]>,
    slices_bytes: usize,
    runs_bytes: usize,
    /// True if rows were added after the group was built, so that building it anew may encode it better.
    grown: bool,
}

/// The part of a window that lies in one block.
struct Piece<'a> {
    block: &'a Block,
    /// First slot in the block.
    from: usize,
    /// First position in the window.
    at: usize,
    rows: usize,
}

impl RowGroup {
    /// A row group of slices that are full but for the last one.
    pub(crate) fn new(mut slices: Vec<Arc<Slice>>, columns: usize) -> RowGroup {
        let runs = slices.pop_if(|slice| slice.rows < BLOCK_ROWS).into_iter().collect();
        let empty = RowGroup {
            slices: Vec::new(),
            runs: Vec::new(),
            rows: 0,
            slices_zones: vec![Zone::EMPTY; columns].into(),
            runs_zones: vec![Zone::EMPTY; columns].into(),
            zones: vec![Zone::EMPTY; columns].into(),
            slices_bytes: 0,
            runs_bytes: 0,
            grown: false,
        };
        RowGroup { grown: false, ..empty.with(slices, runs) }
    }

    /// This row group with more slices, and with `runs` in place of its own.
    fn with(&self, more: Vec<Arc<Slice>>, runs: Vec<Arc<Slice>>) -> RowGroup {
        debug_assert!(more.iter().all(|slice| slice.rows == BLOCK_ROWS));
        let mut slices_zones = self.slices_zones.clone();
        let mut slices_bytes = self.slices_bytes;
        let mut previous = self.slices.last();
        for slice in &more {
            merge_zones(&mut slices_zones, slice);
            slices_bytes += slice_bytes(slice, previous);
            previous = Some(slice);
        }
        let mut slices = Vec::with_capacity(self.slices.len() + more.len());
        slices.extend_from_slice(&self.slices);
        slices.extend(more);

        let mut runs_zones: Box<[Zone]> = vec![Zone::EMPTY; slices_zones.len()].into();
        runs.iter().for_each(|run| merge_zones(&mut runs_zones, run));
        let mut zones = slices_zones.clone();
        zones.iter_mut().zip(&runs_zones).for_each(|(zone, runs_zone)| zone.merge(runs_zone));
        let runs_rows = runs.iter().map(|run| run.rows).sum::<usize>();
        debug_assert!(runs_rows < BLOCK_ROWS);
        let rows = slices.len() * BLOCK_ROWS + runs_rows;
        debug_assert!(rows <= ROW_GROUP_ROWS);
        let runs_bytes = runs.iter().map(|run| slice_bytes(run, None)).sum();
        RowGroup { slices, runs, rows, slices_zones, runs_zones, zones, slices_bytes, runs_bytes, grown: true }
    }

    /// This row group with the rows of `added` after its own; together they must fit one.
    ///
    /// Costs about as much as `added` is large, whatever the size of this group.
    pub(crate) fn grow(&self, added: &RowGroup, schema: &[Field]) -> Result<RowGroup> {
        if self.runs.is_empty() {
            return Ok(self.with(added.slices.clone(), added.runs.clone()));
        }
        let runs_rows = self.rows % BLOCK_ROWS;
        let mut builder = GroupBuilder::new(schema, Effort { dictionaries: false, sketch: false });
        if runs_rows + added.rows >= BLOCK_ROWS {
            builder.append_group(self, self.rows - runs_rows..self.rows, schema)?;
            builder.append_group(added, 0..added.rows, schema)?;
            let mut slices = builder.finish_slices();
            let rest = slices.pop_if(|slice| slice.rows < BLOCK_ROWS);
            return Ok(self.with(slices, rest.into_iter().collect()));
        }
        let mut runs = self.runs.clone();
        runs.extend_from_slice(&added.runs);
        // Like a binary counter: the last runs are merged while the one before is not at least twice as large.
        let mut from = runs.len() - 1;
        let mut rows = runs[from].rows;
        while from > 0 && runs[from - 1].rows < rows * 2 {
            from -= 1;
            rows += runs[from].rows;
        }
        if from + 1 < runs.len() {
            let merged = RowGroup::new_of_runs(runs.split_off(from), schema.len());
            builder.append_group(&merged, 0..merged.rows, schema)?;
            runs.extend(builder.finish_slices());
        }
        Ok(self.with(Vec::new(), runs))
    }

    /// A group that has nothing but runs.
    fn new_of_runs(runs: Vec<Arc<Slice>>, columns: usize) -> RowGroup {
        RowGroup::new(Vec::new(), columns).with(Vec::new(), runs)
    }

    /// The same rows encoded anew with full effort, if the group has grown since that was done.
    pub(crate) fn settle(self: &Arc<RowGroup>, schema: &[Field]) -> Result<Arc<RowGroup>> {
        if !self.grown {
            return Ok(self.clone());
        }
        let mut builder = GroupBuilder::new(schema, Effort { dictionaries: true, sketch: false });
        builder.append_group(self, 0..self.rows, schema)?;
        Ok(Arc::new(builder.finish()))
    }

    // ---- what is known of it -----------------------------------------------------------------------------------

    /// Rows, 1 to 131072.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Blocks of each column: 1024 slots each, but for the last one.
    pub fn blocks(&self) -> usize {
        self.rows.div_ceil(BLOCK_ROWS)
    }

    /// Bounds of a column within slots 1024 · `block` to 1024 · `block` + 1023.
    pub fn zone(&self, column: usize, block: usize) -> &Zone {
        match self.slices.get(block) {
            Some(slice) => &slice.blocks[column].zone,
            None => &self.runs_zones[column],
        }
    }

    /// Bounds of a column within the whole row group.
    pub fn column_zone(&self, column: usize) -> &Zone {
        &self.zones[column]
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.slices_bytes + self.runs_bytes
    }

    /// True if each value of the column is greater than the one before, and none is NULL.
    pub(crate) fn ascends(&self, column: usize) -> bool {
        let mut blocks = self.slices.iter().chain(&self.runs).map(|slice| &slice.blocks[column]);
        let mut last: Option<&Zone> = None;
        blocks.all(|block| {
            let after = last.is_none_or(|zone| zone.max.total_cmp(&block.zone.min).is_lt());
            last = Some(&block.zone);
            after && block.ascending
        })
    }

    // ---- reading -----------------------------------------------------------------------------------------------

    /// The blocks of a window of slots.
    fn pieces(&self, column: usize, window: Range<usize>) -> impl Iterator<Item = Piece<'_>> {
        debug_assert!(window.end <= self.rows);
        let first_slice = window.start / BLOCK_ROWS;
        let mut start = first_slice.min(self.slices.len()) * BLOCK_ROWS;
        self.slices
            .get(first_slice..)
            .unwrap_or_default()
            .iter()
            .chain(&self.runs)
            .map_while(move |slice| {
                if start >= window.end {
                    return None;
                }
                let end = start + slice.rows;
                let (first, last) = (window.start.max(start), window.end.min(end));
                let piece = Piece {
                    block: &slice.blocks[column],
                    from: first.saturating_sub(start),
                    at: first - window.start,
                    rows: last.saturating_sub(first),
                };
                start = end;
                Some(piece)
            })
            .filter(|piece| piece.rows > 0)
    }

    /// Decodes `rows` slots of a column, from slot `first` on, to positions 0 to `rows` - 1 of `out`, which has the
    /// column's default physical type. At most 2048 rows; the window may start anywhere.
    pub fn decode(&self, column: usize, first: usize, rows: usize, out: &mut Vector) {
        self.decode_window(column, first..first + rows, rows.max(CHUNK_ROWS), out);
    }

    /// Decodes a window to a vector that has room for `capacity` values.
    pub(crate) fn decode_window(&self, column: usize, window: Range<usize>, capacity: usize, out: &mut Vector) {
        if self.decode_constant(column, window.clone(), out) {
            return;
        }
        if let Some(dictionary) = self.window_dictionary(column, window.clone()) {
            let target = out.begin_codes(dictionary, capacity);
            for piece in self.pieces(column, window.clone()) {
                if let Values::Dictionary { codes, .. } = &piece.block.values {
                    codes.widen(piece.from, &mut target[piece.at..piece.at + piece.rows]);
                }
            }
        } else {
            with_fixed!(
                out.physical(),
                T => {
                    let target = out.begin_flat::<T>(capacity);
                    for piece in self.pieces(column, window.clone()) {
                        piece.block.decode_fixed(piece.from, &mut target[piece.at..piece.at + piece.rows]);
                    }
                },
                {
                    let target = out.begin_strings(capacity).views;
                    for piece in self.pieces(column, window.clone()) {
                        piece.block.decode_views(piece.from, &mut target[piece.at..piece.at + piece.rows]);
                    }
                    out.set_strings_stable(true);
                }
            );
        }
        self.decode_validity(column, window, out);
    }

    /// Like [`RowGroup::decode`], but only the given positions of `out`, all below `rows`, need be defined.
    pub fn decode_selected(&self, column: usize, first: usize, positions: &[u16], rows: usize, out: &mut Vector) {
        let window = first..first + rows;
        if self.decode_constant(column, window.clone(), out) {
            return;
        }
        if let Some(dictionary) = self.window_dictionary(column, window.clone()) {
            let target = out.begin_codes(dictionary, rows.max(CHUNK_ROWS));
            for piece in self.pieces(column, window.clone()) {
                if let Values::Dictionary { codes, .. } = &piece.block.values {
                    piece.each_slot(positions, |position, slot| target[position] = codes.get(slot));
                }
            }
        } else {
            with_fixed!(
                out.physical(),
                T => {
                    let target = out.begin_flat::<T>(rows.max(CHUNK_ROWS));
                    for piece in self.pieces(column, window.clone()) {
                        piece.decode_fixed(positions, target);
                    }
                },
                {
                    let target = out.begin_strings(rows.max(CHUNK_ROWS)).views;
                    for piece in self.pieces(column, window.clone()) {
                        piece.each_slot(positions, |position, slot| target[position] = piece.block.view(slot));
                    }
                    out.set_strings_stable(true);
                }
            );
        }
        self.decode_validity(column, window, out);
    }

    /// Decodes a window whose blocks all are one and the same constant.
    fn decode_constant(&self, column: usize, window: Range<usize>, out: &mut Vector) -> bool {
        let mut pieces = self.pieces(column, window);
        let Some(Piece { block: head, .. }) = pieces.next() else {
            out.begin(0);
            return true;
        };
        let Values::Constant(value) = &head.values else { return false };
        if !pieces.all(|piece| matches!(&piece.block.values, Values::Constant(other) if other == value)) {
            return false;
        }
        out.begin(1);
        if value.is_null() {
            out.set_null(0);
        } else {
            with_fixed!(
                out.physical(),
                T => out.values_mut::<T>()[0] = T::of_value(value),
                {
                    out.values_mut::<StringView>()[0] = constant_view(value);
                    out.set_strings_stable(true);
                }
            );
        }
        out.make_constant();
        true
    }

    /// The dictionary that all blocks of a window share, if they do.
    fn window_dictionary(&self, column: usize, window: Range<usize>) -> Option<&Arc<Dictionary>> {
        let mut shared: Option<&Arc<Dictionary>> = None;
        for piece in self.pieces(column, window) {
            let Values::Dictionary { dictionary, .. } = &piece.block.values else { return None };
            match shared {
                None => shared = Some(dictionary),
                Some(other) if Arc::ptr_eq(other, dictionary) => {}
                Some(_) => return None,
            }
        }
        shared
    }

    fn decode_validity(&self, column: usize, window: Range<usize>, out: &mut Vector) {
        let rows = window.len();
        if self.pieces(column, window.clone()).any(|piece| piece.block.zone.nulls > 0) {
            let words = out.validity_mut(rows);
            for piece in self.pieces(column, window) {
                piece.block.clear_null_bits(piece.from, words, piece.at, piece.rows);
            }
        }
    }
}

impl Piece<'_> {
    /// Calls `each` with every position that falls into this piece, and its slot in the block.
    #[inline]
    fn each_slot(&self, positions: &[u16], mut each: impl FnMut(usize, usize)) {
        let window = self.at..self.at + self.rows;
        for &position in positions {
            let position = position as usize;
            if window.contains(&position) {
                each(position, position - self.at + self.from);
            }
        }
    }

    fn decode_fixed<T: Fixed>(&self, positions: &[u16], out: &mut [T]) {
        match &self.block.values {
            Values::Constant(value) => {
                let value = T::of_value(value);
                self.each_slot(positions, |position, _| out[position] = value);
            }
            Values::FrameOfReference { base, codes } => {
                self.each_slot(positions, |position, slot| out[position] = T::of_code(*base, codes.get(slot)));
            }
            Values::Flat(buffer) => {
                let values = buffer.as_slice::<T>();
                self.each_slot(positions, |position, slot| out[position] = values[slot]);
            }
            Values::Dictionary { .. } | Values::Strings(_) => unreachable!("strings have no fixed width"),
        }
    }
}

impl std::fmt::Debug for RowGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowGroup({} rows, {} bytes)", self.rows, self.bytes())
    }
}

fn merge_zones(zones: &mut [Zone], slice: &Slice) {
    zones.iter_mut().zip(&slice.blocks).for_each(|(zone, block)| zone.merge(&block.zone));
}

/// Bytes of a slice; those of its dictionaries only where the slice before does not have the same.
fn slice_bytes(slice: &Slice, previous: Option<&Arc<Slice>>) -> usize {
    let mut bytes = 0;
    for (column, block) in slice.blocks.iter().enumerate() {
        bytes += block.bytes();
        if let Values::Dictionary { dictionary, .. } = &block.values {
            let counted = previous.is_some_and(|slice| match &slice.blocks[column].values {
                Values::Dictionary { dictionary: other, .. } => Arc::ptr_eq(dictionary, other),
                _ => false,
            });
            if !counted {
                bytes += dictionary.len() * size_of::<StringView>();
                bytes += dictionary.values().heap().map_or(0, |heap| heap.bytes());
            }
        }
    }
    bytes
}
