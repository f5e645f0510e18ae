//! The first rows of a range of keys, in the order of the key, for queries of a few rows.
//!
//! Partitions are in the order of their keys, and rows within one are in no order. So partitions are visited
//! one after the other, forwards or backwards, until there are enough rows; the rows of each that are in the
//! range are found in the encoded key ([`crate::block::narrow`]) and sorted. If more than are wanted are in
//! the range, it is cut shorter first ([`keep_nearest`]). The slow twin, which reads and
//! sorts all rows, is in the model test.
//!
//! Only for a layout key of one column. Rows whose key is NULL are in no range.

use super::lookup::{self, SlotRange};
use crate::block::Block;
use crate::block::masks::{WORDS, bits_inside};
use crate::tree::key::{Fences, Key};
use crate::tree::{Root, RowGroup, RowId, Shape};
use crate::value::Datum;
use entasis_vector::{DataType, PhysicalType};
use std::ops::{Bound, Range, RangeInclusive};

/// So many rows are sorted at once.
const FEW: usize = if cfg!(test) { 0 } else { 32 };

/// Rows by a range of the only column of the layout key.
#[derive(Debug, Clone, Copy)]
pub struct KeyRange<'a> {
    /// The lower bound.
    pub low: Bound<Datum<'a>>,
    /// The upper bound.
    pub high: Bound<Datum<'a>>,
    /// The greatest come first.
    pub descends: bool,
}

/// At most `most` rows of a range, the first in its order.
///
/// # Panics
/// If the layout key has more than one column.
pub(crate) fn first_rows(root: &Root, shape: &Shape, range: &KeyRange<'_>, most: usize) -> Vec<RowId> {
    let mut rows = Vec::new();
    let Some(key) = &shape.key else { return rows };
    assert!(key.columns.len() == 1, "a range is of one column");
    if root.groups.is_empty() || most == 0 {
        return rows;
    }
    let normal = |bound: Bound<Datum<'_>>| bound.map(|datum| key.of_datums(&[datum]));
    let (low, high) = (normal(range.low), normal(range.high));
    lookup::count_range(root, shape, low.as_ref(), high.as_ref());
    let ty = shape.schema[key.columns[0]].ty;
    let mut found = Vec::new();
    for number in visited(parts(&root.fences, &low, &high), range.descends) {
        let group = &*root.groups[number];
        for part in visited(parts(&group.fences, &low, &high), range.descends) {
            let slots = SlotRange { group: number, slots: group.partitions[part].slots(), is_whole: false };
            let missing = most - rows.len();
            group.collect(key.columns[0], ty, &slots, range, missing, &mut found);
            sort_first(&mut found, range.descends, missing);
            rows.extend(found.drain(..).take(missing).map(|(_, row)| row));
            if rows.len() == most {
                return rows;
            }
        }
    }
    rows
}

/// The parts that may hold keys within bounds.
fn parts(fences: &Fences, low: &Bound<Key>, high: &Bound<Key>) -> RangeInclusive<usize> {
    let first = match low {
        Bound::Unbounded => 0,
        Bound::Included(key) | Bound::Excluded(key) => fences.first_part_of(key),
    };
    let last = match high {
        Bound::Unbounded => fences.len() - 1,
        Bound::Included(key) | Bound::Excluded(key) => fences.part_for(key),
    };
    first..=last
}

/// The numbers of a range, in the order in which they are visited.
fn visited(parts: RangeInclusive<usize>, descends: bool) -> impl Iterator<Item = usize> {
    let (first, last) = (*parts.start(), *parts.end());
    parts.map(move |part| if descends { last - (part - first) } else { part })
}

/// Moves the first `most` rows to the front and sorts them. The others are in no order.
fn sort_first(found: &mut Vec<(Datum<'_>, RowId)>, descends: bool, most: usize) {
    let order = |(a, _): &(Datum<'_>, RowId), (b, _): &(Datum<'_>, RowId)| match descends {
        true => b.total_cmp(*a),
        false => a.total_cmp(*b),
    };
    if found.len() > most {
        found.select_nth_unstable_by(most - 1, order);
        found.truncate(most);
    }
    found.sort_unstable_by(order);
}

impl RowGroup {
    /// Appends the rows among some slots whose key, a column of type `ty`, is in a range, in no order: at
    /// least the first `most`.
    fn collect<'a>(
        &'a self,
        column: usize,
        ty: DataType,
        at: &SlotRange,
        range: &KeyRange<'_>,
        most: usize,
        found: &mut Vec<(Datum<'a>, RowId)>,
    ) {
        let (width, physical) = (self.block_slots, ty.physical());
        let is_within = |datum: Datum<'_>| {
            let above = match range.low {
                Bound::Unbounded => true,
                Bound::Included(low) => datum.total_cmp(low).is_ge(),
                Bound::Excluded(low) => datum.total_cmp(low).is_gt(),
            };
            let below = match range.high {
                Bound::Unbounded => true,
                Bound::Included(high) => datum.total_cmp(high).is_le(),
                Bound::Excluded(high) => datum.total_cmp(high).is_lt(),
            };
            !datum.is_null() && above && below
        };
        for number in at.slots.start / width..at.slots.end.div_ceil(width) {
            let (slice, start) = (&*self.slices[number], number * width);
            let block = slice.block(column);
            let mut masks = *slice.live();
            let inside = at.slots.start.max(start) - start..at.slots.end.min(start + width) - start;
            keep_inside(&mut masks, &inside);
            let words = block.slots().div_ceil(64);
            let is_narrowed = match ordinals(range).filter(|_| is_small(physical)) {
                Some((low, high)) => {
                    let masks = &mut masks[..words];
                    block.narrow_within(low, high, masks, physical);
                    keep_nearest(block, (low, high), range.descends, most, masks, physical);
                    true
                }
                None => false,
            };
            for (word, mut bits) in masks[..words].iter().copied().enumerate() {
                while bits != 0 {
                    let slot = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let datum = block.datum(slot, physical);
                    if is_narrowed || is_within(datum) {
                        found.push((datum, RowId { group: at.group as u32, slot: (start + slot) as u32 }));
                    }
                }
            }
        }
    }
}

/// Clears bits of slots in a range of integers, but for at least `most` of those with the least values or, if
/// it `descends`, the greatest. A part of the range is asked for that has twice as many values if they are
/// evenly spread, then one four times as long, and so on.
fn keep_nearest(
    block: &Block,
    (low, high): (i128, i128),
    descends: bool,
    most: usize,
    masks: &mut [u64],
    physical: PhysicalType,
) {
    let count = |masks: &[u64]| masks.iter().map(|mask| mask.count_ones() as usize).sum::<usize>();
    let (there, enough) = (count(masks), most.saturating_mul(2));
    let zone = block.zone();
    let (Some(min), Some(max)) = (zone.min.ordinal(), zone.max.ordinal()) else { return };
    if there <= enough.saturating_add(FEW) {
        return;
    }
    let (low, high) = (low.max(min), high.min(max));
    let mut length = (high - low) * enough as i128 / there as i128 + 1;
    while length < high - low {
        let mut nearest = [0; WORDS];
        let nearest = &mut nearest[..masks.len()];
        nearest.copy_from_slice(masks);
        let part = if descends { (high - length, high) } else { (low, low + length) };
        block.narrow_within(part.0, part.1, nearest, physical);
        if count(nearest) >= most {
            return masks.copy_from_slice(nearest);
        }
        length *= 4;
    }
}

/// Clears the bits outside `inside`.
fn keep_inside(masks: &mut [u64; WORDS], inside: &Range<usize>) {
    masks.iter_mut().enumerate().for_each(|(word, mask)| *mask &= bits_inside(word * 64, inside));
}

/// The least and the greatest integer of a range; `None` if a bound is no integer.
fn ordinals(range: &KeyRange<'_>) -> Option<(i128, i128)> {
    let low = match range.low {
        Bound::Unbounded => i128::MIN,
        Bound::Included(Datum::Integer(low)) => low,
        Bound::Excluded(Datum::Integer(low)) => low.saturating_add(1),
        _ => return None,
    };
    let high = match range.high {
        Bound::Unbounded => i128::MAX,
        Bound::Included(Datum::Integer(high)) => high,
        Bound::Excluded(Datum::Integer(high)) => high.saturating_sub(1),
        _ => return None,
    };
    Some((low, high))
}

/// True for integers of up to 64 bits, but not for booleans, whose bounds are no integers.
fn is_small(physical: PhysicalType) -> bool {
    !matches!(
        physical,
        PhysicalType::Bool
            | PhysicalType::I128
            | PhysicalType::F32
            | PhysicalType::F64
            | PhysicalType::Interval
            | PhysicalType::Str
    )
}
