//! The walk of a scan over the slots of the table: which slots are processed together.
//!
//! A morsel is a row group, or the part of it in reach ([`crate::access_path`]). When a morsel is opened, the
//! bounds of its blocks are tested, and blocks that cannot have a matching row are skipped. The others are
//! divided into stretches, each of one row group:
//!
//! 1. Without a reach, or with one by the layout key: slots of blocks that are not skipped, up to the rows of
//!    a chunk. If rows are in long runs, these are the stretch; otherwise it is all slots of a window, and
//!    the reader leaves out dead ones. If few rows will remain, the slots of several chunks are taken at
//!    once.
//! 2. Rows that an index names: those that are near each other in one block.
//! 3. Rows that may stay in their blocks: all up to the end of the reach, or up to a skipped block.
//!
//! The walk ends when all parts, which the workers share, have been taken. It does not read values.

use super::shared::TableScan;
use crate::access_path::Reach;
use entasis_storage::{RowGroup, RowId, TableSnapshot, ValueRange};
use std::ops::Range;

/// The most runs of rows that are read together.
const MOST_RUNS: usize = 8;
/// The average number of rows from which runs are read together.
const LONG_RUN: usize = 64;

/// Slots of the open row group that are processed together: those of the worker's runs.
pub(super) struct Stretch {
    /// The number of slots.
    pub(super) count: usize,
    /// True if all are live.
    pub(super) is_dense: bool,
    /// True if the first stages hold for all rows.
    pub(super) is_implied: bool,
    /// The range of rows in reach; empty if it is all live slots.
    pub(super) rows: Range<usize>,
    /// True if the rows stay in their blocks.
    pub(super) is_stored: bool,
    /// True if it is longer than a chunk, since few of its rows will remain.
    pub(super) is_long: bool,
}

impl Stretch {
    /// A stretch of `count` slots, about which nothing else is known.
    fn of(count: usize) -> Stretch {
        Stretch { count, is_dense: false, is_implied: false, rows: 0..0, is_stored: false, is_long: false }
    }
}

/// The slots of a stretch, with the row group that they belong to.
#[derive(Clone, Copy)]
pub(super) struct Slots<'a> {
    pub(super) group: &'a RowGroup,
    /// The number of the row group.
    pub(super) number: usize,
    pub(super) runs: &'a [Range<usize>],
}

/// One worker's position in the walk.
pub(super) struct Walk {
    /// False if the next row group must be opened.
    is_open: bool,
    /// The number of the row group.
    pub(super) number: usize,
    /// The rest of its reach: ranges or rows; empty if the reach is everything.
    left: Range<usize>,
    /// The next slot of the row group.
    pub(super) slot: usize,
    /// Before this slot, runs are too short for rows to stay in their blocks.
    scattered: usize,
    /// The slots of the current stretch.
    pub(super) runs: Vec<Range<usize>>,
    /// For each block of the row group, whether it may have a row that passes.
    pub(super) wanted: Vec<bool>,
}

impl Walk {
    /// Before the first row group.
    pub(super) fn new() -> Walk {
        let runs = Vec::with_capacity(MOST_RUNS);
        Walk { is_open: false, number: 0, left: 0..0, slot: 0, scattered: 0, runs, wanted: Vec::new() }
    }

    /// The slots of the current stretch; the open row group is in `snapshot`.
    pub(super) fn slots<'a>(&'a self, snapshot: &'a TableSnapshot) -> Slots<'a> {
        let group = snapshot.row_group(self.number).expect("the row group is open");
        Slots { group, number: self.number, runs: &self.runs }
    }

    /// The next slots to process, in the row group that is then open. If conditions on codes leave few rows,
    /// they are the slots of up to `chunks` chunks.
    pub(super) fn next(&mut self, scan: &TableScan, chunks: usize) -> Option<Stretch> {
        loop {
            if !self.is_open {
                let (number, part) = scan.morsels.take()?;
                let group = scan.snapshot.row_group(number)?;
                (self.number, self.left, self.slot, self.scattered) = (number, part, 0, 0);
                self.is_open = self.find_wanted(scan, group);
                continue;
            }
            let group = scan.snapshot.row_group(self.number)?;
            let stretch = match &*scan.morsels.reach {
                Reach::Everywhere => self.next_within(scan, chunks, group, group.slots(), false),
                Reach::Slots(ranges) => match ranges.get(self.left.start).filter(|_| !self.left.is_empty()) {
                    None => None,
                    Some(range) => {
                        self.slot = self.slot.max(range.slots.start);
                        let stretch = self.next_within(scan, chunks, group, range.slots.end, range.is_whole);
                        if stretch.is_none() {
                            self.left.start += 1;
                            continue;
                        }
                        stretch
                    }
                },
                Reach::Rows(rows) => self.next_of(scan, &rows[..self.left.end], group),
            };
            if stretch.is_some() {
                return stretch;
            }
            self.is_open = false;
        }
    }

    /// The next slots before `end` whose blocks are wanted, if there are rows among them.
    fn next_within(
        &mut self,
        scan: &TableScan,
        chunks: usize,
        group: &RowGroup,
        end: usize,
        is_implied: bool,
    ) -> Option<Stretch> {
        if scan.leaves_stored && self.slot >= self.scattered && scan.filters.is_unfiltered(is_implied) {
            let from = self.slot;
            let stretch = self.next_runs(group, end, is_implied, group.slots(), usize::MAX)?;
            if stretch.count >= self.runs.len() * LONG_RUN {
                return Some(Stretch { is_stored: true, ..stretch });
            }
            // Runs are short: these slots are read as vectors.
            (self.scattered, self.slot) = (self.slot, from);
        }
        let chunks = if scan.filters.may_use_codes(is_implied) { chunks } else { 1 };
        let stretch = self.next_runs(group, end, is_implied, scan.chunk_rows * chunks, MOST_RUNS)?;
        Some(Stretch { is_long: chunks > 1, ..stretch })
    }

    /// The next slots of at most `most` rows, in `most_runs` runs.
    fn next_runs(
        &mut self,
        group: &RowGroup,
        end: usize,
        is_implied: bool,
        most: usize,
        most_runs: usize,
    ) -> Option<Stretch> {
        let width = group.block_slots();
        self.runs.clear();
        loop {
            while self.slot < end && !self.wanted[self.slot / width] {
                self.slot = (self.slot / width + 1) * width;
            }
            if self.slot >= end {
                return None;
            }
            let first = self.slot;
            // More slots than rows, as some are empty.
            let mut last = end.min(first + 2 * most);
            let mut blocks = first / width + 1..last.div_ceil(width);
            // Whole blocks, as many as fit, so that no block is visited twice.
            let mut fits = group.block_rows(first / width);
            let past = blocks.find(|&block| {
                fits += group.block_rows(block);
                fits > most || !self.wanted[block]
            });
            if let Some(past) = past {
                last = past * width;
            }
            let mut rows = 0;
            // Behind the last slot, a full block would give empty runs for ever.
            while rows < most && self.runs.len() < most_runs && self.slot < last {
                let Some(run) = group.next_run(self.slot..last) else {
                    self.slot = last;
                    break;
                };
                let taken = run.start..run.end.min(run.start + most - rows);
                (self.slot, rows) = (taken.end, rows + taken.len());
                self.runs.push(taken);
            }
            if self.runs.is_empty() {
                continue;
            }
            let is_dense = rows == most || self.slot == last || rows >= self.runs.len() * LONG_RUN;
            if is_dense {
                return Some(Stretch { is_dense, is_implied, ..Stretch::of(rows) });
            }
            let first = self.runs[0].start;
            self.slot = last.min(first + most);
            self.runs.clear();
            self.runs.push(first..self.slot);
            return Some(Stretch { is_implied, ..Stretch::of(self.slot - first) });
        }
    }

    /// The next single rows, which are near each other.
    fn next_of(&mut self, scan: &TableScan, rows: &[RowId], group: &RowGroup) -> Option<Stretch> {
        let slot = |row: &RowId| row.slot as usize;
        let width = group.block_slots();
        while self.left.start < rows.len() && !self.wanted[slot(&rows[self.left.start]) / width] {
            self.left.start += 1;
        }
        let first = slot(rows.get(self.left.start)?);
        let end = ((first / width + 1) * width).min(first + scan.chunk_rows).min(group.slots());
        let near = rows[self.left.start..].iter().take_while(|row| slot(row) < end).count();
        let own = self.left.start..self.left.start + near;
        self.left.start = own.end;
        let count = slot(&rows[own.end - 1]) + 1 - first;
        self.runs.clear();
        self.runs.push(first..first + count);
        Some(Stretch { is_dense: near == count, rows: own, ..Stretch::of(count) })
    }

    /// Tests the bounds; false if no block in reach of the row group may have a row.
    fn find_wanted(&mut self, scan: &TableScan, group: &RowGroup) -> bool {
        let width = group.block_slots();
        self.wanted.clear();
        self.wanted.resize(group.blocks(), *scan.morsels.reach == Reach::Everywhere);
        match &*scan.morsels.reach {
            Reach::Everywhere => {}
            Reach::Slots(ranges) => {
                let slots = ranges[self.left.clone()].iter().map(|range| &range.slots);
                slots
                    .for_each(|slots| self.wanted[slots.start / width..slots.end.div_ceil(width)].fill(true));
            }
            Reach::Rows(rows) => {
                rows[self.left.clone()].iter().for_each(|row| self.wanted[row.slot as usize / width] = true);
            }
        }
        let of_group = |range: &ValueRange| range.meets(group.column_zone(range.column));
        let (columns, filters) = (&scan.columns, &scan.filters);
        if !filters.may_have_rows(columns, &|column| group.column_zone(column), &of_group) {
            self.wanted.fill(false);
        }
        let looks_ahead = !filters.bounded.is_empty() && *scan.morsels.reach == Reach::Everywhere;
        for (block, wanted) in self.wanted.iter_mut().enumerate().filter(|(_, wanted)| **wanted) {
            if looks_ahead {
                group.prefetch_zones(block, &filters.bounded);
            }
            *wanted = filters.may_have_rows(columns, &|column| group.zone(column, block), &|range| {
                group.may_be_within(block, range)
            });
        }
        let wanted = self.wanted.iter().filter(|&&wanted| wanted).count();
        scan.recorder.add_blocks(group.blocks() as u64, (group.blocks() - wanted) as u64);
        wanted > 0
    }
}
