//! Rows that are written to their final places: how many there will be is known, and each comes with its id.
//!
//! All workers write at once, a worker's few rows column by column. Where the rows are put in the order of a join table, they are
//! never there twice. If they are more than the nearer caches hold, narrow columns share [words](super::words).

use super::words::{Field, Number, Pack, Packed, Plan, Words, by_width, segments};
use super::{Materialized, SEGMENT_ROWS};
use crate::exec::ahead::{BLOCK, FAR_BYTES};
use crate::exec::tuple::Tuples;
use entasis_vector::bitmap;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::simd::widest_of;
use entasis_vector::{Buffer, Buffers, Native, PhysicalType, Slots};
use std::sync::Arc;

/// Room for rows; see the module.
pub struct Placing {
    metas: Vec<ColumnMeta>,
    /// Absent: nobody will read it.
    columns: Vec<Option<PlacedColumn>>,
    words: Vec<PlacedWord>,
    rows: usize,
}

/// One column, segment by segment.
struct PlacedColumn {
    values: PlacedValues,
    /// Ones where no NULL has come; absent if none can.
    validity: Option<Vec<Slots>>,
}

enum PlacedValues {
    Own(Slots),
    /// The values are a field of this word.
    In(usize, Field),
}

/// One word of all rows, segment by segment.
struct PlacedWord {
    width: usize,
    values: Slots,
    /// Of the columns that are kept, those that are in it.
    fields: Vec<(usize, Field)>,
}

/// Words of validity of a segment, by their bytes.
const VALIDITY_BYTES: usize = SEGMENT_ROWS / 8;

impl Placing {
    /// Room for `rows` rows of the columns that are `kept`: no strings, whose bytes would have to be kept as well. `shares`: columns may
    /// share words.
    pub fn new(metas: &[ColumnMeta], kept: &[bool], rows: usize, shares: bool) -> Placing {
        let plan = plan(metas, kept, rows, shares);
        let slots = |width: usize| Slots::in_parts(&segments(rows).collect::<Vec<_>>(), width);
        let column = |(i, meta): (usize, &ColumnMeta)| {
            debug_assert!(!kept[i] || meta.physical != PhysicalType::Str);
            let words = |_| {
                let slots = Slots::zeroed(VALIDITY_BYTES / 8, 8);
                (0..VALIDITY_BYTES / 8).for_each(|word| slots.put(word, u64::MAX));
                slots
            };
            kept[i].then(|| PlacedColumn {
                values: match plan.places[i] {
                    None => PlacedValues::Own(slots(meta.physical.width())),
                    Some((word, field)) => PlacedValues::In(word, field),
                },
                validity: meta.nullable.then(|| segments(rows).map(words).collect()),
            })
        };
        let word = |(word, &width): (usize, &usize)| {
            let kept = plan.places.iter().zip(kept).filter(|(_, kept)| **kept).map(|(place, _)| place);
            let own =
                kept.enumerate().filter_map(|(i, place)| place.filter(|at| at.0 == word).map(|(_, field)| (i, field)));
            PlacedWord { width, values: slots(width), fields: own.collect() }
        };
        Placing {
            columns: metas.iter().enumerate().map(column).collect(),
            words: plan.widths.iter().enumerate().map(word).collect(),
            metas: metas.to_vec(),
            rows,
        }
    }

    /// The bytes of [`Placing::new`].
    pub fn bytes_for(metas: &[ColumnMeta], kept: &[bool], rows: usize, shares: bool) -> usize {
        let (plan, count) = (plan(metas, kept, rows, shares), segments(rows).count());
        let none = count * Buffer::bytes_for(0);
        let of_width = |width: usize| segments(rows).map(|rows| Buffer::bytes_for(rows * width)).sum::<usize>();
        let of = |(i, meta): (usize, &ColumnMeta)| {
            let validity = if kept[i] && meta.nullable { count * VALIDITY_BYTES } else { 0 };
            let is_own = kept[i] && plan.places[i].is_none();
            validity + if is_own { of_width(meta.physical.width()) } else { none }
        };
        let columns: usize = metas.iter().enumerate().map(of).sum();
        columns + plan.widths.iter().map(|&width| of_width(width)).sum::<usize>()
    }

    /// Writes rows, which have the kept columns and stand in one segment, to the places `ids`; [`Materialized::NO_ROW`]: nowhere. No two
    /// calls have a place in common.
    pub fn put(&self, rows: &Materialized, ids: &[u32]) {
        debug_assert_eq!((rows.segments(), rows.rows()), (1, ids.len()));
        for word in &self.words {
            by_width!(word.width, |W| word.put::<W>(rows, ids));
        }
        for (column, to) in self.columns.iter().flatten().enumerate() {
            if let PlacedValues::Own(to) = &to.values {
                match rows.columns()[column].physical.width() {
                    1 => scatter(rows.values::<u8>(column, 0).iter().copied(), ids, to),
                    2 => scatter(rows.values::<u16>(column, 0).iter().copied(), ids, to),
                    4 => scatter(rows.values::<u32>(column, 0).iter().copied(), ids, to),
                    8 => scatter(rows.values::<u64>(column, 0).iter().copied(), ids, to),
                    _ => scatter(rows.values::<i128>(column, 0).iter().copied(), ids, to),
                }
            }
            let Some(words) = rows.validity(column, 0) else { continue };
            let validity = to.validity.as_ref().expect("a column without NULLs has none");
            for (_, &id) in
                ids.iter().enumerate().filter(|&(i, &id)| id != Materialized::NO_ROW && !bitmap::get(words, i))
            {
                validity[(id >> 16) as usize].clear_bit((id & 0xffff) as usize);
            }
        }
    }

    /// The rows, with the ids 0, 1, 2, …, when all have been put.
    pub fn into_rows(self) -> Materialized {
        let mut out = Materialized::new(&self.metas);
        out.segments = segments(self.rows).collect();
        out.tuples = out.segments.iter().map(|_| None::<Tuples>).collect();
        out.rows = self.rows;
        out.bytes += self.words.iter().map(|word| word.values.capacity()).sum::<usize>();
        let words = self.words.into_iter();
        let words: Vec<Arc<Words>> =
            words.map(|w| Arc::new(Words { values: w.values.into_buffers(), width: w.width })).collect();
        for (to, placed) in out.columns.iter_mut().zip(self.columns) {
            let (values, validity) = match placed {
                None => (Buffers::default(), None),
                Some(PlacedColumn { values: PlacedValues::Own(values), validity }) => (values.into_buffers(), validity),
                Some(PlacedColumn { values: PlacedValues::In(word, field), validity }) => {
                    to.packed = Some(Packed { words: words[word].clone(), field });
                    (Buffers::default(), validity)
                }
            };
            to.values = values;
            if to.values.is_empty() {
                // Nothing, for columns that are not there.
                to.values.resize_with(out.segments.len(), || Buffer::zeroed(0));
            }
            let words = validity.into_iter().flatten().map(Slots::into_buffer);
            to.validity = words
                .map(|words| words.as_slice::<u64>().iter().any(|&word| word != u64::MAX).then_some(words))
                .collect();
            to.validity.resize_with(out.segments.len(), || None);
            to.has_nulls = to.validity.iter().any(Option::is_some);
            let buffers = to.values.iter().chain(to.validity.iter().flatten());
            out.bytes += buffers.map(Buffer::capacity).sum::<usize>();
        }
        out
    }
}

/// The words of so many rows.
fn plan(metas: &[ColumnMeta], kept: &[bool], rows: usize, shares: bool) -> Plan {
    let width: usize = metas.iter().zip(kept).filter(|(_, kept)| **kept).map(|(meta, _)| meta.physical.width()).sum();
    // PERF: what the nearer caches hold is there as soon, and as it is.
    if shares && rows * width > FAR_BYTES { Plan::new(metas, kept) } else { Plan::none(metas.len()) }
}

impl PlacedWord {
    /// Writes the words of rows to the places `ids`.
    fn put<W: Number>(&self, rows: &Materialized, ids: &[u32]) {
        for (number, ids) in ids.chunks(BLOCK).enumerate() {
            let mut words = [0u64; BLOCK];
            let (words, first) = (&mut words[..ids.len()], number * BLOCK);
            for &(column, field) in &self.fields {
                by_width!(rows.columns()[column].physical.width(), |T| {
                    let values = &rows.values::<T>(column, 0)[first..first + ids.len()];
                    widest_of(Pack { field, values, words });
                });
            }
            scatter(words.iter().map(|&word| W::cut(word)), ids, &self.values);
        }
    }
}

/// Writes each value to the place of its id.
// PERF: stores wait for each other's lines, so lines are asked for before.
#[inline(always)]
fn scatter<T: Native>(mut values: impl Iterator<Item = T>, ids: &[u32], to: &Slots) {
    let is_far = to.capacity() > FAR_BYTES;
    for ids in ids.chunks(BLOCK) {
        if is_far {
            ids.iter().for_each(|&id| to.prefetch::<T>(id as usize));
        }
        for (&id, value) in ids.iter().zip(&mut values) {
            if id != Materialized::NO_ROW {
                to.put(id as usize, value);
            }
        }
    }
}
