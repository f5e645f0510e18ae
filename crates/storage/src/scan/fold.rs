//! Folding: the count, the sum and the extremes of a column's rows, block after block, as they are encoded.
//!
//! Nothing is copied. A constant block takes one multiplication, and so does a run; codes are folded as
//! codes, and their base is added once: each encoding says how ([`crate::block`]). A block whose bounds
//! cannot improve an extreme is not read at all. Where there may be NULLs, runs of slots without NULLs are
//! found first. The slow twin decodes and looks at one value after the other.

use crate::block::{Block, ValidSlots};
use crate::scan::read::{BlockPart, block_parts};
use crate::tree::{RowGroup, Slices};
use entasis_vector::{PhysicalType, Value};
use std::ops::Range;

/// Folds columns of integers of up to 64 bits. All slots of `runs` are rows.
impl RowGroup {
    /// The number of rows where `column` is not NULL.
    pub fn count_runs(&self, column: usize, runs: &[Range<usize>]) -> usize {
        block_parts(self, column, runs).map(|part| part.count()).sum()
    }

    /// The sum of `column`, whose values are held as `physical`; 0 if there are none.
    pub fn sum_runs(&self, column: usize, physical: PhysicalType, runs: &[Range<usize>]) -> i128 {
        self.block_parts_ahead(column, runs, true).map(|part| part.sum(physical)).sum()
    }

    /// The largest of `best` and the values of `column`, or the smallest.
    pub fn extreme_runs(
        &self,
        column: usize,
        physical: PhysicalType,
        runs: &[Range<usize>],
        largest: bool,
        best: i128,
    ) -> i128 {
        self.block_parts_ahead(column, runs, false).fold(best, |best, part| {
            match part.block.may_better(best, largest) {
                true => part.extreme(physical, largest, best),
                false => best,
            }
        })
    }

    /// The parts of `runs`, while coming blocks are prefetched: with their values, if these are surely read.
    fn block_parts_ahead<'a>(
        &'a self,
        column: usize,
        runs: &'a [Range<usize>],
        values: bool,
    ) -> impl Iterator<Item = BlockPart<'a>> {
        let mut last = usize::MAX;
        let ahead = move |slice: usize| self.slices.get(slice).into_iter();
        block_parts(self, column, runs).inspect(move |part| {
            if std::mem::replace(&mut last, part.slice) != last {
                ahead(last + 6).for_each(|slice| slice.prefetch_with(std::iter::once(column)));
                match values {
                    true => self.prefetch_behind(last, column),
                    false => ahead(last + 3).for_each(|slice| slice.prefetch_stream(column, false)),
                }
            }
        })
    }
}

impl Block {
    /// False if it has no value that is larger than `best`, or smaller if the smallest is wanted.
    fn may_better(&self, best: i128, largest: bool) -> bool {
        let bound = if largest { &self.zone.max } else { &self.zone.min };
        match bound {
            Value::Integer(bound) if largest => *bound > best,
            Value::Integer(bound) => *bound < best,
            Value::Null => false,
            _ => true,
        }
    }
}

impl<'a> BlockPart<'a> {
    /// Its slots that are not NULL.
    fn valid_slots(&self) -> ValidSlots<'a> {
        ValidSlots { block: self.block, from: self.from, rows: self.rows }
    }

    fn count(&self) -> usize {
        self.valid_slots().count()
    }

    fn sum(&self, physical: PhysicalType) -> i128 {
        self.block.values.fixed().map_or(0, |values| values.sum(&self.valid_slots(), physical))
    }

    fn extreme(&self, physical: PhysicalType, largest: bool, best: i128) -> i128 {
        let values = self.block.values.fixed();
        values.map_or(best, |values| values.extreme(&self.valid_slots(), physical, largest, best))
    }
}
