//! Rows that are written to given places: their number is known, and there is room for exactly these.
//!
//! All workers write at the same time, each a few rows column by column, in runs of adjacent places. Then
//! each part may be [finalized](Placing::finalize), which permutes its rows. So the rows never exist twice.
//! If they are more than the nearer caches hold, narrow columns share [words](super::words).

use super::rows::Materialized;
use super::words::{Number, Pack, Packed, WordField, WordPlan, Words, by_width, segments};
use crate::exec::prefetch::{BLOCK, FAR_BYTES};
use crate::exec::row_id::SEGMENT_ROWS;
use crate::exec::tuple::Tuples;
use entasis_vector::bitmap;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::simd::widest_of;
use entasis_vector::{Buffer, Buffers, Native, PhysicalType, Slots};
use std::ops::Range;
use std::sync::Arc;

/// Room for rows; see the module.
pub struct Placing {
    metas: Vec<ColumnMeta>,
    /// Absent columns are never read.
    columns: Vec<Option<PlacedColumn>>,
    words: Vec<PlacedWord>,
    rows: usize,
}

/// One column, segment by segment.
struct PlacedColumn {
    values: PlacedValues,
    /// Bits that are set unless a NULL has been written; absent if there are no NULLs.
    validity: Option<Vec<Slots>>,
}

enum PlacedValues {
    Own(Slots),
    /// The values are a field of this word.
    In(usize, WordField),
}

/// One word of all rows, segment by segment.
struct PlacedWord {
    width: usize,
    values: Slots,
    /// The fields in this word, each with its index among the kept columns.
    fields: Vec<(usize, WordField)>,
}

/// Bytes of the validity words of a segment.
const VALIDITY_BYTES: usize = SEGMENT_ROWS / 8;

impl Placing {
    /// Room for `rows` rows of the columns that are `kept`: no strings, whose bytes would have to be kept
    /// too. `shares`: columns may share words.
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
            let own = kept
                .enumerate()
                .filter_map(|(i, place)| place.filter(|at| at.0 == word).map(|(_, field)| (i, field)));
            PlacedWord { width, values: slots(width), fields: own.collect() }
        };
        Placing {
            columns: metas.iter().enumerate().map(column).collect(),
            words: plan.widths.iter().enumerate().map(word).collect(),
            metas: metas.to_vec(),
            rows,
        }
    }

    /// The bytes that [`Placing::new`] allocates.
    pub fn bytes_for(metas: &[ColumnMeta], kept: &[bool], rows: usize, shares: bool) -> usize {
        let (plan, count) = (plan(metas, kept, rows, shares), segments(rows).count());
        let none = count * Buffer::bytes_for(0);
        let of_width =
            |width: usize| segments(rows).map(|rows| Buffer::bytes_for(rows * width)).sum::<usize>();
        let of = |(i, meta): (usize, &ColumnMeta)| {
            let validity = if kept[i] && meta.nullable { count * VALIDITY_BYTES } else { 0 };
            let is_own = kept[i] && plan.places[i].is_none();
            validity + if is_own { of_width(meta.physical.width()) } else { none }
        };
        let columns: usize = metas.iter().enumerate().map(of).sum();
        columns + plan.widths.iter().map(|&width| of_width(width)).sum::<usize>()
    }

    /// Writes rows, which have the kept columns and are in one segment: for each run, the rows with these
    /// numbers, in order, to its place and those that follow. No two runs share a place. `words` is memory
    /// for numbers.
    pub fn put<'r>(
        &self,
        rows: &Materialized,
        runs: impl Iterator<Item = (&'r [u16], usize)> + Clone,
        words: &mut Vec<u64>,
    ) {
        if rows.is_empty() {
            return;
        }
        debug_assert_eq!(rows.segments(), 1);
        for word in &self.words {
            words.resize(rows.rows(), 0);
            word.pack(rows, words);
            by_width!(word.width, |W| put_runs(&word.values, runs.clone(), |row| W::cut(words[row])));
        }
        for (column, to) in self.columns.iter().flatten().enumerate() {
            if let PlacedValues::Own(to) = &to.values {
                match rows.columns()[column].physical.width() {
                    1 => put_values::<u8>(rows, column, runs.clone(), to),
                    2 => put_values::<u16>(rows, column, runs.clone(), to),
                    4 => put_values::<u32>(rows, column, runs.clone(), to),
                    8 => put_values::<u64>(rows, column, runs.clone(), to),
                    _ => put_values::<i128>(rows, column, runs.clone(), to),
                }
            }
            let Some(words) = rows.validity(column, 0) else { continue };
            let validity = to.validity.as_ref().expect("a column without NULLs has none");
            for (numbers, first) in runs.clone() {
                let numbers = numbers.iter().enumerate();
                for (i, _) in numbers.filter(|(_, row)| !bitmap::get(words, usize::from(**row))) {
                    validity[(first + i) / SEGMENT_ROWS].clear_bit((first + i) % SEGMENT_ROWS);
                }
            }
        }
    }

    /// Permutes the rows at the places `range`: the row at `range.start + i` moves to `range.start + to[i]`.
    /// `to` has as many places, and no other thread uses them.
    // PERF: the rows should fit into the caches.
    pub fn finalize(&self, range: Range<usize>, to: &[u32]) {
        debug_assert_eq!(range.len(), to.len());
        for word in &self.words {
            by_width!(word.width, |W| move_values::<W>(&word.values, range.clone(), to));
        }
        for column in self.columns.iter().flatten() {
            if let PlacedValues::Own(values) = &column.values {
                match values.width() {
                    1 => move_values::<u8>(values, range.clone(), to),
                    2 => move_values::<u16>(values, range.clone(), to),
                    4 => move_values::<u32>(values, range.clone(), to),
                    8 => move_values::<u64>(values, range.clone(), to),
                    _ => move_values::<i128>(values, range.clone(), to),
                }
            }
            let Some(validity) = &column.validity else { continue };
            let at = |place: usize| (&validity[place / SEGMENT_ROWS], place % SEGMENT_ROWS);
            let is_null = |place: &usize| {
                let (words, bit) = at(*place);
                !words.is_set(bit)
            };
            let nulls: Vec<usize> = range.clone().filter(is_null).collect();
            // The words at both ends are shared with other parts.
            for (words, bit) in nulls.iter().map(|&place| at(place)) {
                words.set_bit(bit, true);
            }
            for (words, bit) in nulls.iter().map(|&place| at(range.start + to[place - range.start] as usize))
            {
                words.clear_bit(bit);
            }
        }
    }

    /// The rows, with the ids 0, 1, 2, …, when all have been put in place.
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
                Some(PlacedColumn { values: PlacedValues::Own(values), validity }) => {
                    (values.into_buffers(), validity)
                }
                Some(PlacedColumn { values: PlacedValues::In(word, field), validity }) => {
                    to.packed = Some(Packed { words: words[word].clone(), field });
                    (Buffers::default(), validity)
                }
            };
            to.values = values;
            if to.values.is_empty() {
                // Columns that are not kept are empty.
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

/// The words of `rows` rows.
fn plan(metas: &[ColumnMeta], kept: &[bool], rows: usize, shares: bool) -> WordPlan {
    let width: usize =
        metas.iter().zip(kept).filter(|(_, kept)| **kept).map(|(meta, _)| meta.physical.width()).sum();
    // PERF: values in the nearer caches are read as fast without words.
    if shares && rows * width > FAR_BYTES { WordPlan::new(metas, kept) } else { WordPlan::none(metas.len()) }
}

impl PlacedWord {
    /// Writes the words of rows.
    fn pack(&self, rows: &Materialized, words: &mut [u64]) {
        for (number, words) in words.chunks_mut(BLOCK).enumerate() {
            let first = number * BLOCK;
            words.fill(0);
            for &(column, field) in &self.fields {
                by_width!(rows.columns()[column].physical.width(), |T| {
                    let values = &rows.values::<T>(column, 0)[first..first + words.len()];
                    widest_of(Pack { field, values, words });
                });
            }
        }
    }
}

/// Writes the values of one column.
fn put_values<'r, T: Native>(
    rows: &Materialized,
    column: usize,
    runs: impl Iterator<Item = (&'r [u16], usize)>,
    to: &Slots,
) {
    let values = rows.values::<T>(column, 0);
    put_runs(to, runs, |row| values[row]);
}

/// Writes the values of each run, which are adjacent.
#[inline(always)]
fn put_runs<'r, T: Native>(
    to: &Slots,
    runs: impl Iterator<Item = (&'r [u16], usize)>,
    value: impl Fn(usize) -> T,
) {
    for (numbers, first) in runs {
        numbers.iter().enumerate().for_each(|(i, &row)| to.put(first + i, value(usize::from(row))));
    }
}

/// Permutes values; see [`Placing::finalize`].
fn move_values<T: Native>(slots: &Slots, range: Range<usize>, to: &[u32]) {
    let values: Vec<T> = range.clone().map(|at| slots.get(at)).collect();
    values.iter().zip(to).for_each(|(&value, &to)| slots.put(range.start + to as usize, value));
}
