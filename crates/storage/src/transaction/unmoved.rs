//! Finds, slice by slice, many rows of a version that a newer version still has unchanged.
//!
//! Changes of many rows are replayed in bulk where the newer version has these rows as the transaction saw
//! them. That is so nearly everywhere if another transaction has changed a few rows. A slice of the old
//! version is compared with the slice of the newer one that holds its first row; nothing is compared where
//! both have the same block. Rows with row numbers are found by these if they have moved. The rest is located
//! one by one by [`super::replay`].

use super::renumbered::Renumbered;
use crate::block::masks::WORDS;
use crate::table::{TableSnapshot, TableWriter};
use crate::tree::{RowGroup, RowId, Run, Shape};
use crate::value::Datum;
use entasis_vector::bitmap;

/// Some rows of one slice.
pub(super) struct OfSlice {
    pub(super) group: u32,
    /// The number of the slice in its row group.
    slice: usize,
    /// The first slot of the slice.
    first: u32,
    /// Their slots in the slice, as bits.
    mask: [u64; WORDS],
}

impl OfSlice {
    /// The first slot of the slice in its row group.
    pub(super) fn first_slot(&self) -> usize {
        self.first as usize
    }

    /// The old row ids.
    pub(super) fn rows(&self) -> impl Iterator<Item = RowId> + '_ {
        self.slots().map(|slot| RowId { group: self.group, slot: self.first + u32::from(slot) })
    }

    /// Their slots in the slice.
    pub(super) fn slots(&self) -> impl Iterator<Item = u16> + '_ {
        self.mask.iter().enumerate().flat_map(|(word, &bits)| {
            let mut left = bits;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some((word * 64) as u16 + bit as u16)
            })
        })
    }

    /// Where the rows are in the version that is written, if all of them are there unchanged: side by side as
    /// in `before`, or, if they have row numbers, anywhere.
    pub(super) fn find(
        &self,
        before: &TableSnapshot,
        writer: &TableWriter<'_>,
        shape: &Shape,
        numbers: &Renumbered,
    ) -> Option<Vec<RowId>> {
        let side_by_side = self.side_by_side(before, writer, shape, numbers);
        if side_by_side.is_some() || shape.key.is_some() {
            return side_by_side;
        }
        let is_same = |old: RowId, new: RowId| {
            (0..shape.schema.len()).all(|column| before.datum(old, column).is_same(writer.datum(new, column)))
        };
        let find = |old: RowId| {
            let new = writer.find_number(numbers.of(before.number_of(old)))?;
            is_same(old, new).then_some(new)
        };
        self.rows().map(find).collect()
    }

    fn side_by_side(
        &self,
        before: &TableSnapshot,
        writer: &TableWriter<'_>,
        shape: &Shape,
        numbers: &Renumbered,
    ) -> Option<Vec<RowId>> {
        let width = shape.options.block_slots;
        let old = before.row_group(self.group as usize)?;
        let first = self.rows().next()?;
        let is_aligned = |row: RowId| row.slot as usize % width == first.slot as usize % width;
        let mut place = None;
        match shape.key {
            None => {
                place = writer.find_number(numbers.of(before.number_of(first))).filter(|&row| is_aligned(row))
            }
            Some(_) => {
                let key: Vec<Datum<'_>> =
                    shape.options.layout_key.iter().map(|&column| before.datum(first, column)).collect();
                writer.find_each(&key, |row| {
                    place = is_aligned(row).then_some(row);
                    place.is_none()
                });
            }
        }
        let place = place?;
        let new = writer.root().groups.get(place.group as usize)?;
        let number = place.slot as usize / width;
        if !self.has_same(old, new, number, shape) {
            return None;
        }
        let start = (number * width) as u32;
        let rows = || self.slots().map(|slot| RowId { slot: start + u32::from(slot), ..place });
        let is_same = |(old, row): (RowId, RowId)| {
            numbers.of(before.number_of(old)) == new.numbers.of(row.slot as usize)
        };
        let are_same = shape.key.is_some() || self.rows().zip(rows()).all(is_same);
        are_same.then(|| rows().collect())
    }

    /// True if slice `number` of `new` has all the rows as `old` has them.
    fn has_same(&self, old: &RowGroup, new: &RowGroup, number: usize, shape: &Shape) -> bool {
        let (Some(old), Some(new)) = (old.slices.get(self.slice), new.slices.get(number)) else {
            return false;
        };
        let are_live = self.mask.iter().zip(new.live()).all(|(mask, live)| mask & !live == 0);
        are_live
            && shape.schema.iter().enumerate().all(|(column, field)| {
                let (old, new) = (old.blocks()[column], new.blocks()[column]);
                old.is(new) || old.has_same(&new, &self.mask, field.ty.physical())
            })
    }
}

/// The rows of some ascending runs, by slices of `width` slots.
pub(super) fn by_slice(runs: &[Run], width: usize) -> Vec<OfSlice> {
    let mut slices: Vec<OfSlice> = Vec::new();
    for run in runs {
        let (group, mut slot, end) =
            (run.first.group, run.first.slot as usize, (run.first.slot + run.rows) as usize);
        while slot < end {
            let (slice, first) = (slot / width, slot / width * width);
            if slices.last().is_none_or(|last| last.group != group || last.slice != slice) {
                slices.push(OfSlice { group, slice, first: first as u32, mask: [0; WORDS] });
            }
            let mask = &mut slices.last_mut().expect("just pushed").mask;
            let until = end.min(first + width);
            (slot..until).for_each(|slot| bitmap::set(mask, slot - first, true));
            slot = until;
        }
    }
    slices
}
