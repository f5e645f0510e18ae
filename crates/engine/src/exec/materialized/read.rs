//! Reading rows, whether they are columns or tuples, and comparing their keys.

use super::column::Column;
use super::rows::Materialized;
use crate::exec::tuple::{BATCH_ROWS, Batch};
use entasis_vector::bitmap;
use entasis_vector::value::cmp_float;
use entasis_vector::{CHUNK_ROWS, Interval, Native, PhysicalType, StringView, Value, Vector};
use std::cmp::Ordering;
use std::ops::Range;

impl Materialized {
    /// The values of a key `column` in `segment`, of the column's physical type; arbitrary where NULL. For
    /// rows that were put in place, use [`Materialized::values_in`].
    pub fn values<T: Native>(&self, column: usize, segment: usize) -> &[T] {
        let column = &self.columns[column];
        debug_assert!(size_of::<T>() == column.physical.width() && column.packed.is_none());
        &column.values[segment].as_slice::<T>()[..self.segments[segment]]
    }
    /// Calls `see` with the values of a key `column` in `segment` that are not NULL.
    pub fn for_each_valid<T: Native>(&self, column: usize, segment: usize, mut see: impl FnMut(T)) {
        let values = self.values::<T>(column, segment);
        match self.validity(column, segment) {
            None => values.iter().for_each(|&v| see(v)),
            Some(words) => {
                let valid = values.iter().enumerate().filter(|(row, _)| bitmap::get(words, *row));
                valid.for_each(|(_, &v)| see(v));
            }
        }
    }
    /// The values of a key `column` at some offsets of `segment`, like [`Materialized::values`]; values that
    /// are not stored in this form are written to `vector`.
    pub fn values_in<'a, T: Native>(
        &'a self,
        column: usize,
        segment: usize,
        offsets: Range<usize>,
        vector: &'a mut Vector,
    ) -> &'a [T] {
        if self.columns[column].packed.is_none() {
            return &self.values(column, segment)[offsets];
        }
        let rows = offsets.len();
        self.begin(column, rows, vector).read_values(segment, offsets.start, rows, vector);
        &vector.values::<T>()[..rows]
    }
    /// Validity words of a key `column` in `segment`, or `None` if all are valid.
    pub fn validity(&self, column: usize, segment: usize) -> Option<&[u64]> {
        debug_assert!(self.field_of(column).is_none());
        self.columns[column].validity[segment].as_ref().map(|buffer| buffer.as_slice::<u64>())
    }

    /// Writes the values of `column` in the given rows to `out`, flat; [`Materialized::NO_ROW`] gives NULL.
    pub fn gather(&self, column: usize, rows: &[u32], out: &mut Vector) {
        self.gather_all(&[column], rows, std::slice::from_mut(out));
    }

    /// Like [`Materialized::gather`], for several columns, each to its vector: tuples are located once.
    pub fn gather_all(&self, columns: &[usize], rows: &[u32], out: &mut [Vector]) {
        debug_assert_eq!(columns.len(), out.len());
        let missing = rows.contains(&Materialized::NO_ROW);
        for (&column, out) in columns.iter().zip(&mut *out) {
            let is_tuples = self.field_of(column).is_some();
            let column = self.begin(column, rows.len(), out);
            if !is_tuples {
                column.gather(rows, missing, out);
            }
        }
        let Some(layout) = &self.layout else { return };
        let fields = || {
            columns.iter().enumerate().filter_map(|(i, &c)| Some((i, layout.field_of(c)?, &self.columns[c])))
        };
        if fields().next().is_none() {
            return;
        }
        // If some segments are tuples and others columns, runs of rows of one kind are read together.
        let all = self.compressed.segments == self.segments.len();
        let is_tuple =
            |row: u32| all || row != Materialized::NO_ROW && self.tuples[(row >> 16) as usize].is_some();
        let mut batch = Batch::new(layout, &self.tuples);
        let mut done = 0;
        for run in
            rows.chunk_by(|&a, &b| all || is_tuple(a) == is_tuple(b)).flat_map(|run| run.chunks(BATCH_ROWS))
        {
            if is_tuple(run[0]) {
                batch.begin(run.iter().copied());
                fields()
                    .for_each(|(i, field, column)| batch.read(field, &mut out[i], done, column.has_nulls));
            } else {
                fields().for_each(|(i, _, column)| column.gather_values(run, missing, &mut out[i], done));
                for (i, _, column) in fields().filter(|(_, _, column)| column.has_nulls) {
                    let words = out[i].validity_mut(rows.len());
                    run.iter()
                        .enumerate()
                        .for_each(|(at, &row)| bitmap::set(words, done + at, column.is_valid(row)));
                }
            }
            done += run.len();
        }
        if missing {
            for (i, ..) in fields() {
                let words = out[i].validity_mut(rows.len());
                let missing = rows.iter().enumerate().filter(|(_, row)| **row == Materialized::NO_ROW);
                missing.for_each(|(at, _)| bitmap::set(words, at, false));
            }
        }
    }

    /// The string in a key `column` of a row; `None` if it is NULL.
    pub fn string(&self, row: u32, column: usize) -> Option<StringView> {
        debug_assert!(self.field_of(column).is_none());
        let column = &self.columns[column];
        debug_assert_eq!(column.physical, PhysicalType::Str);
        column.is_valid(row).then(|| column.get::<StringView>(row))
    }

    /// Writes `rows` values of `column`, from offset `first` of `segment`, to `out`, flat.
    pub fn read(&self, column: usize, segment: usize, first: usize, rows: usize, out: &mut Vector) {
        if let (Some(layout), Some(_)) = (&self.layout, &self.tuples[segment])
            && let Some(field) = layout.field_of(column)
        {
            let column = self.begin(column, rows, out);
            let start = (segment << 16) + first;
            let ids = start as u32..(start + rows) as u32;
            let mut batch = Batch::new(layout, &self.tuples);
            for done in (0..rows).step_by(BATCH_ROWS) {
                batch.begin(ids.clone().skip(done).take(BATCH_ROWS));
                batch.read(field, out, done, column.has_nulls);
            }
            return;
        }
        let column = self.begin(column, rows, out);
        column.read_values(segment, first, rows, out);
        if let Some(validity) = &column.validity[segment] {
            let validity = validity.as_slice::<u64>();
            let words = &mut out.validity_mut(rows)[..bitmap::words_for(rows)];
            for (i, word) in words.iter_mut().enumerate() {
                let at = first + i * 64;
                let low = validity[at / 64] >> (at % 64);
                let high = validity.get(at / 64 + 1).copied().unwrap_or(0);
                *word = if at.is_multiple_of(64) { low } else { low | high << (64 - at % 64) };
            }
        }
    }

    /// Starts `out` as a flat vector of `column` and gives it the strings' owner.
    pub(super) fn begin(&self, column: usize, rows: usize, out: &mut Vector) -> &Column {
        let column = &self.columns[column];
        if out.physical() != column.physical {
            *out = Vector::new(column.physical);
        }
        out.begin(rows.max(CHUNK_ROWS));
        if column.physical == PhysicalType::Str {
            out.set_strings_stable(column.strings_are_stable);
            if !column.strings_are_stable {
                out.share_heap(&self.heap);
            }
        }
        column
    }

    /// The value of `column` in `row`.
    pub fn value(&self, row: u32, column: usize) -> Value {
        let mut out = Vector::new(self.columns[column].physical);
        self.gather(column, &[row], &mut out);
        out.value(0, self.metas[column].ty)
    }

    /// The order of two rows by a key `column`.
    pub fn compare(&self, column: usize, a: u32, b: u32, descending: bool, nulls_first: bool) -> Ordering {
        self.compare_with(column, a, self, b, descending, nulls_first)
    }

    /// Like [`Materialized::compare`], with a second row from `other`, which has the same columns.
    pub fn compare_with(
        &self,
        column: usize,
        a: u32,
        other: &Materialized,
        b: u32,
        descending: bool,
        nulls_first: bool,
    ) -> Ordering {
        debug_assert!(self.field_of(column).is_none() && other.field_of(column).is_none());
        let (column, other) = (&self.columns[column], &other.columns[column]);
        if column.has_nulls || other.has_nulls {
            let null_order = if nulls_first { Ordering::Less } else { Ordering::Greater };
            match (column.is_valid(a), other.is_valid(b)) {
                (true, true) => {}
                (false, false) => return Ordering::Equal,
                (false, true) => return null_order,
                (true, false) => return null_order.reverse(),
            }
        }
        macro_rules! by {
            ($t:ty) => {
                column.get::<$t>(a).cmp(&other.get::<$t>(b))
            };
        }
        let order = match column.physical {
            PhysicalType::Bool | PhysicalType::U8 => by!(u8),
            PhysicalType::I8 => by!(i8),
            PhysicalType::I16 => by!(i16),
            PhysicalType::I32 => by!(i32),
            PhysicalType::I64 => by!(i64),
            PhysicalType::I128 => by!(i128),
            PhysicalType::U16 => by!(u16),
            PhysicalType::U32 => by!(u32),
            PhysicalType::U64 => by!(u64),
            PhysicalType::F32 => cmp_float(column.get::<f32>(a).into(), other.get::<f32>(b).into()),
            PhysicalType::F64 => cmp_float(column.get(a), other.get(b)),
            PhysicalType::Str => by!(StringView),
            PhysicalType::Interval => by!(Interval),
        };
        if descending { order.reverse() } else { order }
    }
}
