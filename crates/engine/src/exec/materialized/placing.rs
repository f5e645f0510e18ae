//! Rows that are written to their final places: how many there will be is known, and each comes with its id.
//!
//! All workers write at once, a worker's few rows column by column. Where the rows are put in the order of a join table, they are
//! never there twice.

use super::{Materialized, SEGMENT_ROWS};
use crate::exec::ahead::{AHEAD, FAR_BYTES};
use crate::exec::tuple::Tuples;
use entasis_vector::bitmap;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Buffer, Native, PhysicalType, Slots};

/// Room for rows; see the module.
pub struct Placing {
    metas: Vec<ColumnMeta>,
    /// Absent: nobody will read it.
    columns: Vec<Option<PlacedColumn>>,
    rows: usize,
}

/// One column, segment by segment.
struct PlacedColumn {
    values: Vec<Slots>,
    /// Ones where no NULL has come; absent if none can.
    validity: Option<Vec<Slots>>,
}

/// Rows of each segment of so many rows.
fn segments(rows: usize) -> impl Iterator<Item = usize> {
    (0..rows).step_by(SEGMENT_ROWS).map(move |first| SEGMENT_ROWS.min(rows - first))
}

/// Words of validity of a segment, by their bytes.
const VALIDITY_BYTES: usize = SEGMENT_ROWS / 8;

impl Placing {
    /// Room for `rows` rows of the columns that are `kept`: no strings, whose bytes would have to be kept as well.
    pub fn new(metas: &[ColumnMeta], kept: &[bool], rows: usize) -> Placing {
        let column = |(meta, &kept): (&ColumnMeta, &bool)| {
            debug_assert!(!kept || meta.physical != PhysicalType::Str);
            let width = meta.physical.width();
            let words = |_| {
                let slots = Slots::zeroed(VALIDITY_BYTES / 8, 8);
                (0..VALIDITY_BYTES / 8).for_each(|word| slots.put(word, u64::MAX));
                slots
            };
            kept.then(|| PlacedColumn {
                values: Slots::side_by_side(&segments(rows).collect::<Vec<_>>(), width),
                validity: meta.nullable.then(|| segments(rows).map(words).collect()),
            })
        };
        Placing { metas: metas.to_vec(), columns: metas.iter().zip(kept).map(column).collect(), rows }
    }

    /// The bytes of [`Placing::new`].
    pub fn bytes_for(metas: &[ColumnMeta], kept: &[bool], rows: usize) -> usize {
        let count = segments(rows).count();
        let of = |meta: &ColumnMeta| {
            let validity = if meta.nullable { count * VALIDITY_BYTES } else { 0 };
            segments(rows).map(|rows| Buffer::bytes_for(rows * meta.physical.width())).sum::<usize>() + validity
        };
        let kept_bytes: usize = metas.iter().zip(kept).filter(|(_, kept)| **kept).map(|(meta, _)| of(meta)).sum();
        kept_bytes + kept.iter().filter(|kept| !**kept).count() * count * Buffer::bytes_for(0)
    }

    /// Writes rows, which have the kept columns and stand in one segment, to the places `ids`; [`Materialized::NO_ROW`]: nowhere. No two
    /// calls have a place in common.
    pub fn put(&self, rows: &Materialized, ids: &[u32]) {
        debug_assert_eq!((rows.segments(), rows.rows()), (1, ids.len()));
        for (column, to) in self.columns.iter().flatten().enumerate() {
            match rows.columns()[column].physical.width() {
                1 => scatter::<u8>(rows.values(column, 0), ids, &to.values),
                2 => scatter::<u16>(rows.values(column, 0), ids, &to.values),
                4 => scatter::<u32>(rows.values(column, 0), ids, &to.values),
                8 => scatter::<u64>(rows.values(column, 0), ids, &to.values),
                _ => scatter::<i128>(rows.values(column, 0), ids, &to.values),
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
        for (to, placed) in out.columns.iter_mut().zip(self.columns) {
            let (values, validity) = match placed {
                None => (Vec::new(), None),
                Some(column) => (column.values, column.validity),
            };
            to.values = values.into_iter().map(Slots::into_buffer).collect();
            // Nothing, for columns that are not there.
            to.values.resize_with(out.segments.len(), || Buffer::zeroed(0));
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

/// Writes each value to the place of its id.
// PERF: stores wait for each other's lines, so lines are asked for before.
#[inline(always)]
fn scatter<T: Native>(values: &[T], ids: &[u32], to: &[Slots]) {
    let is_far = to.first().is_some_and(|first| to.len() * first.capacity() > FAR_BYTES);
    let offset = |id: u32| ((id >> 16) as usize, (id & 0xffff) as usize);
    for (i, (&value, &id)) in values.iter().zip(ids).enumerate() {
        if is_far {
            // No row is in no segment.
            let (segment, offset) = offset(ids[(i + AHEAD).min(ids.len() - 1)]);
            to.get(segment).into_iter().for_each(|slots| slots.prefetch::<T>(offset));
        }
        if id != Materialized::NO_ROW {
            let (segment, offset) = offset(id);
            to[segment].put(offset, value);
        }
    }
}
