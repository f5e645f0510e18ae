//! Rows kept in memory, column by column: the build side of a join, the groups of an aggregation, the input
//! of a sort.
//!
//! Rows are in segments of at most 65,536. A *row id* is `segment << 16 | offset`, four bytes, and changes
//! only if a table reorders all rows; as long as rows only arrive by [`Materialized::append`], ids are the
//! numbers 0, 1, 2, … in the order of arrival. Each worker fills a `Materialized` of its own, and
//! [`Materialized::absorb`] puts them together without copying a value.
//!
//! A column holds the physical type that its [`ColumnMeta`] names; narrower integers are widened on arrival.
//! A segment keeps a validity only if it has a NULL. Short strings and stable ones are kept as their views;
//! the bytes of others are copied to a heap that belongs to the `Materialized`. Vectors that are read from it
//! share that heap, so rows must not be appended while such a vector is alive.
//!
//! [`Materialized::compress`] turns the columns of a finished segment that are not keys into
//! [tuples](super::tuple) and frees them. [`Materialized::gather`] and the like still read such rows;
//! functions that return slices or compare ([`Materialized::values`], [`Materialized::compare`] and others
//! that say so) are for keys, which stay columns.
//!
//! Rows that are [put in place](Placing) may have several columns in one [word](words); the same functions
//! read them.
//!
//! All loops run over one column of many rows: no dispatch per row. Nothing here counts against the memory
//! budget; the owner charges [`Materialized::bytes`].

mod column;
mod equal;
mod placing;
mod segments;
mod words;

pub use crate::exec::row_id::SEGMENT_ROWS;
pub use placing::Placing;

use crate::exec::operator::{Tasks, in_parallel};
use crate::exec::row_id;
use crate::exec::tuple::{BATCH_ROWS, Batch, Source, TupleLayout, Tuples};
use column::{Column, Picks, all_valid, copy_strings, copy_values, widen};
use entasis_vector::bitmap;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::value::cmp_float;
use entasis_vector::{
    Buffer, Buffers, CHUNK_ROWS, Chunk, DataType, Native, PhysicalType, StringHeap, StringView,
};
use entasis_vector::{Interval, Result, Value, Vector};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use words::Words;

/// Rows that later segments have room for initially.
const LATER_ROOM: usize = 16 << 10;

/// Rows in memory. See the module.
pub struct Materialized {
    metas: Vec<ColumnMeta>,
    columns: Vec<Column>,
    /// Rows of each segment.
    segments: Vec<usize>,
    /// The columns of each segment that are not keys, if they have become tuples.
    tuples: Vec<Option<Tuples>>,
    /// The layout of all tuples; absent if there are none.
    layout: Option<Arc<TupleLayout>>,
    /// Rows that are tuples, and their bytes as columns and as tuples.
    compressed: Compressed,
    /// Rows that fit into the last segment.
    room: usize,
    rows: usize,
    /// The expected number of rows; 0 if unknown.
    expected: usize,
    /// A full segment is followed by a larger one, rather than copied to become larger.
    in_pages: bool,
    heap: Arc<StringHeap>,
    /// Bytes of all segments, without the heap.
    bytes: usize,
    /// Positions of a chunk's rows that pass through two selections.
    composed: Vec<u16>,
}

/// Statistics of compression.
#[derive(Clone, Copy, Default)]
struct Compressed {
    segments: usize,
    rows: usize,
    columns: usize,
    tuples: usize,
}

impl Materialized {
    /// The row id that means no row: gathering it gives NULL.
    pub const NO_ROW: u32 = row_id::NO_ROW;

    /// Rows that the first segment has room for initially.
    pub const FIRST_ROOM: usize = 256;

    /// No rows yet.
    pub fn new(columns: &[ColumnMeta]) -> Materialized {
        let column = |meta: &ColumnMeta| Column {
            physical: meta.physical,
            values: Buffers::default(),
            packed: None,
            validity: Vec::new(),
            has_nulls: false,
            strings_are_stable: true,
        };
        Materialized {
            metas: columns.to_vec(),
            columns: columns.iter().map(column).collect(),
            segments: Vec::new(),
            tuples: Vec::new(),
            layout: None,
            compressed: Compressed::default(),
            room: 0,
            rows: 0,
            expected: 0,
            in_pages: false,
            heap: Arc::default(),
            bytes: 0,
            composed: Vec::new(),
        }
    }

    /// No rows yet, with room for exactly `rows` rows.
    pub fn expecting(columns: &[ColumnMeta], rows: usize) -> Materialized {
        Materialized { expected: rows, ..Materialized::new(columns) }
    }

    /// No rows yet. They will be read by segments, so ids need not be dense: a value stays where it was first
    /// written. The first segment will have room for `first` rows.
    pub fn in_pages(columns: &[ColumnMeta], first: usize) -> Materialized {
        Materialized { in_pages: true, ..Materialized::expecting(columns, first) }
    }

    /// What is known of the columns.
    pub fn columns(&self) -> &[ColumnMeta] {
        &self.metas
    }
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
    /// The number of segments.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }
    /// Rows of `segment`; its row ids are `segment << 16` and those that follow.
    pub fn segment_rows(&self, segment: usize) -> usize {
        self.segments[segment]
    }
    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.bytes + self.heap.bytes()
    }
    /// Bytes of long strings among these.
    pub fn heap_bytes(&self) -> usize {
        self.heap.bytes()
    }
    /// All row ids, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.segments.iter().enumerate().flat_map(|(s, &rows)| (0..rows).map(move |r| (s << 16 | r) as u32))
    }
    /// The largest row id plus one, or more: ids have gaps between the rows of one worker and the next.
    pub fn id_space(&self) -> usize {
        self.segments.last().map_or(0, |last| (self.segments.len() - 1) * SEGMENT_ROWS + last)
    }
    /// True if some value of `column` is NULL.
    pub fn has_nulls(&self, column: usize) -> bool {
        self.columns[column].has_nulls
    }
    /// Rows that are tuples, and their bytes as columns and as tuples.
    pub fn compressed(&self) -> (usize, usize, usize) {
        (self.compressed.rows, self.compressed.columns, self.compressed.tuples)
    }
    /// Columns that share words, and the bytes of a row's words; `None` if there are no words.
    pub fn words(&self) -> Option<(usize, usize)> {
        let packed = || self.columns.iter().filter_map(|column| column.packed.as_ref());
        let widths: BTreeMap<*const Words, usize> =
            packed().map(|p| (Arc::as_ptr(&p.words), p.words.width)).collect();
        (!widths.is_empty()).then(|| (packed().count(), widths.values().sum()))
    }
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

    /// Removes all rows and keeps their memory, for a segment that is refilled repeatedly. There must be no
    /// strings.
    pub fn restart(&mut self) {
        debug_assert!(self.layout.is_none() && self.heap.bytes() == 0 && self.segments.len() <= 1);
        self.segments.iter_mut().for_each(|rows| *rows = 0);
        self.rows = 0;
        for column in &mut self.columns {
            column.has_nulls = false;
            for words in column.validity.iter_mut().filter_map(Option::take) {
                self.bytes -= words.capacity();
            }
        }
    }

    // ---- growing ------------------------------------------------------------------------------------------

    /// Appends rows of `chunk`: all, or those in `rows`, in that order. Own column i takes the chunk's column
    /// `columns[i]`.
    pub fn append(&mut self, chunk: &Chunk, columns: &[usize], rows: Option<&[u16]>) {
        debug_assert_eq!(columns.len(), self.columns.len());
        let count = rows.map_or(chunk.len(), <[u16]>::len);
        let mut composed = std::mem::take(&mut self.composed);
        let mut done = 0;
        while done < count {
            let (offset, part) = self.make_room(count - done);
            for (i, &from) in columns.iter().enumerate() {
                let picks = match (chunk.positions(from), rows) {
                    (None, None) => Picks::From(done),
                    (Some(positions), None) => Picks::At(&positions[done..done + part]),
                    (None, Some(rows)) => Picks::At(&rows[done..done + part]),
                    (Some(positions), Some(rows)) => {
                        composed.clear();
                        composed.extend(rows[done..done + part].iter().map(|&row| positions[row as usize]));
                        Picks::At(&composed)
                    }
                };
                self.write(i, chunk.vector(from), picks, offset, part);
            }
            self.advance(part);
            done += part;
        }
        self.composed = composed;
    }

    /// Appends `rows` rows: own column i takes `vectors[i]` at the given positions (`None`: the first ones).
    pub fn append_vectors(&mut self, vectors: &[(&Vector, Option<&[u16]>)], rows: usize) {
        debug_assert_eq!(vectors.len(), self.columns.len());
        let mut done = 0;
        while done < rows {
            let (offset, part) = self.make_room(rows - done);
            for (i, (vector, positions)) in vectors.iter().enumerate() {
                let picks = positions.map_or(Picks::From(done), |at| Picks::At(&at[done..done + part]));
                self.write(i, vector, picks, offset, part);
            }
            self.advance(part);
            done += part;
        }
    }

    /// Takes over all rows of `other`, which has the same columns. Returns the offset of its segments: the
    /// old row id `r` is now `r + (moved << 16)`.
    pub fn absorb(&mut self, other: Materialized) -> u32 {
        let moved = self.segments.len() as u32;
        debug_assert_eq!(self.columns.len(), other.columns.len());
        if other.rows == 0 {
            return moved;
        }
        self.segments.extend(&other.segments);
        self.tuples.extend(other.tuples);
        self.compressed.segments += other.compressed.segments;
        self.compressed.rows += other.compressed.rows;
        self.compressed.columns += other.compressed.columns;
        self.compressed.tuples += other.compressed.tuples;
        if let (Some(own), Some(theirs)) = (&self.layout, &other.layout) {
            assert!(Arc::ptr_eq(own, theirs), "rows of one operator have one layout");
        }
        self.layout = self.layout.take().or(other.layout);
        assert!(self.segments.len() < SEGMENT_ROWS, "row ids have room for 65,535 segments");
        self.room = other.room;
        self.rows += other.rows;
        self.bytes += other.bytes;
        for (own, theirs) in self.columns.iter_mut().zip(other.columns) {
            debug_assert_eq!(own.physical, theirs.physical);
            debug_assert!(own.packed.is_none() && theirs.packed.is_none());
            own.values.extend(theirs.values);
            own.validity.extend(theirs.validity);
            own.has_nulls |= theirs.has_nulls;
            own.strings_are_stable &= theirs.strings_are_stable;
        }
        if other.heap.bytes() > 0 {
            let heap = Arc::into_inner(other.heap).expect("nobody reads rows that are being absorbed");
            heap_mut(&mut self.heap).absorb(heap);
        }
        moved
    }

    /// All rows of `parts`, concatenated, with the ids 0, 1, 2, … There is room for exactly these, and each
    /// part is freed when it has been taken, so that they need hardly more memory than before. Long strings
    /// are not copied: their bytes are handed over. No row may be a tuple.
    pub fn dense(columns: &[ColumnMeta], parts: Vec<Materialized>) -> Materialized {
        let mut out = Materialized::expecting(columns, parts.iter().map(Materialized::rows).sum());
        for mut part in parts {
            debug_assert!(part.layout.is_none());
            let mut scratch: Vec<Vector> = columns.iter().map(|meta| Vector::new(meta.physical)).collect();
            for segment in 0..part.segments() {
                let count = part.segment_rows(segment);
                for first in (0..count).step_by(CHUNK_ROWS) {
                    let rows = CHUNK_ROWS.min(count - first);
                    for (column, vector) in scratch.iter_mut().enumerate() {
                        part.read(column, segment, first, rows, vector);
                        vector.set_strings_stable(true);
                    }
                    let vectors: Vec<(&Vector, Option<&[u16]>)> =
                        scratch.iter().map(|vector| (vector, None)).collect();
                    out.append_vectors(&vectors, rows);
                }
            }
            for (own, old) in out.columns.iter_mut().zip(&part.columns) {
                own.strings_are_stable &= old.strings_are_stable;
            }
            drop(scratch);
            if part.heap.bytes() > 0 {
                let heap =
                    Arc::into_inner(std::mem::take(&mut part.heap)).expect("nobody else reads these rows");
                heap_mut(&mut out.heap).absorb(heap);
            }
        }
        out
    }

    /// The rows `ids`, in that order. Long strings are not copied: their bytes are handed over.
    pub fn reordered(mut self, ids: &[u32]) -> Materialized {
        let mut out = Materialized::new(&self.metas);
        let mut scratch: Vec<Vector> = self.metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        for ids in ids.chunks(CHUNK_ROWS) {
            for (column, vector) in scratch.iter_mut().enumerate() {
                self.gather(column, ids, vector);
                vector.set_strings_stable(true);
            }
            let mut done = 0;
            while done < ids.len() {
                let (offset, part) = out.make_room(ids.len() - done);
                for (column, vector) in scratch.iter().enumerate() {
                    out.write(column, vector, Picks::From(done), offset, part);
                }
                out.advance(part);
                done += part;
            }
        }
        for (own, old) in out.columns.iter_mut().zip(&self.columns) {
            own.strings_are_stable = old.strings_are_stable;
        }
        drop(scratch);
        out.heap = std::mem::take(&mut self.heap);
        out
    }

    /// The rows `ids`, in that order, with new ids from 0: gathered by all workers, column by column. Columns
    /// that are not `kept` lose their values and must not be read any more. No row may be a tuple, now or
    /// later.
    ///
    /// # Errors
    /// Those of the tasks.
    pub fn rearranged(mut self, ids: &[u32], kept: &[bool], tasks: &dyn Tasks) -> Result<Materialized> {
        debug_assert!(self.layout.is_none() && kept.len() == self.columns.len());
        let stays = ids.len() == self.rows && ids.iter().enumerate().all(|(i, &id)| i == id as usize);
        let mut bytes = 0;
        for (column, &kept) in self.columns.iter_mut().zip(kept) {
            let segments = ids.chunks(SEGMENT_ROWS).map(|ids| (ids, Buffer::zeroed(0), None));
            let mut segments: Vec<(&[u32], Buffer, Option<Buffer>)> = segments.collect();
            if kept && stays {
                let buffers =
                    std::mem::take(&mut column.values).into_iter().zip(std::mem::take(&mut column.validity));
                segments
                    .iter_mut()
                    .zip(buffers)
                    .for_each(|(to, (values, words))| (to.1, to.2) = (values, words));
            } else if kept {
                in_parallel(tasks, segments.iter_mut().collect(), &|_, (ids, values, validity)| {
                    // Allocated segment by segment, to reuse memory that has just been freed.
                    *values = Buffer::zeroed(ids.len() * column.physical.width());
                    *validity = column.pick(ids, values);
                    Ok(())
                })?;
            }
            (column.values, column.validity) =
                segments.into_iter().map(|(_, values, words)| (values, words)).unzip();
            let buffers = column.values.iter().chain(column.validity.iter().flatten());
            bytes += buffers.map(Buffer::capacity).sum::<usize>();
        }
        self.segments = ids.chunks(SEGMENT_ROWS).map(<[u32]>::len).collect();
        self.tuples = self.segments.iter().map(|_| None).collect();
        (self.rows, self.room, self.bytes) = (ids.len(), 0, bytes);
        Ok(self)
    }

    /// Takes out the first `count` columns, which must not be read here any more; those of each segment
    /// separately, so that each can be freed alone. They are keys, and not strings.
    pub fn take_columns(&mut self, count: usize) -> Vec<Materialized> {
        debug_assert!(self.columns[..count].iter().all(|column| column.physical != PhysicalType::Str));
        let mut parts = Vec::with_capacity(self.segments());
        for segment in 0..self.segments() {
            let mut part = Materialized::new(&self.metas[..count]);
            (part.segments, part.tuples) = (vec![self.segments[segment]], vec![None]);
            part.rows = self.segments[segment];
            for (to, from) in part.columns.iter_mut().zip(&mut self.columns) {
                let values = std::mem::replace(&mut from.values[segment], Buffer::zeroed(0));
                let validity = from.validity[segment].take();
                part.bytes += values.capacity() + validity.as_ref().map_or(0, Buffer::capacity);
                self.bytes += from.values[segment].capacity();
                to.values.push(values);
                to.validity.push(validity);
                to.has_nulls = from.has_nulls;
            }
            self.bytes -= part.bytes;
            parts.push(part);
        }
        parts
    }

    /// Frees the values of `segment`, whose rows must not be read any more. The heap keeps the bytes of its
    /// strings.
    pub fn forget(&mut self, segment: usize) {
        if let Some(tuples) = self.tuples[segment].take() {
            self.bytes -= tuples.bytes();
            self.compressed.segments -= 1;
        }
        for column in &mut self.columns {
            let values = std::mem::replace(&mut column.values[segment], Buffer::zeroed(0));
            self.bytes = self.bytes - values.capacity() + column.values[segment].capacity();
            if let Some(words) = column.validity[segment].take() {
                self.bytes -= words.capacity();
            }
        }
    }

    /// Makes room in the last segment for up to `rows` rows. Returns the offset of the first, and how many
    /// fit.
    fn make_room(&mut self, rows: usize) -> (usize, usize) {
        let most = if self.in_pages && self.room > 0 { self.room } else { SEGMENT_ROWS };
        let is_finished = |(&filled, tuples): (&usize, &Option<Tuples>)| filled == most || tuples.is_some();
        if self.segments.last().zip(self.tuples.last()).is_none_or(is_finished) {
            assert!(self.segments.len() + 1 < SEGMENT_ROWS, "row ids have room for 65,535 segments");
            self.room = match self.expected.saturating_sub(self.rows) {
                0 if self.segments.is_empty() => Materialized::FIRST_ROOM,
                0 if self.in_pages => (2 * self.room).min(SEGMENT_ROWS),
                0 => LATER_ROOM,
                expected => expected.min(SEGMENT_ROWS),
            };
            self.segments.push(0);
            self.tuples.push(None);
            for column in &mut self.columns {
                let buffer = Buffer::zeroed(self.room * column.physical.width());
                self.bytes += buffer.capacity();
                column.values.push(buffer);
                column.validity.push(None);
            }
        }
        let offset = *self.segments.last().expect("just pushed or just tested");
        let most = if self.in_pages { self.room } else { SEGMENT_ROWS };
        let needed = (offset + rows).min(most);
        if needed > self.room {
            self.room = needed.next_power_of_two();
            for column in &mut self.columns {
                let width = column.physical.width();
                let old = column.values.last_mut().expect("one buffer a segment");
                let mut new = Buffer::zeroed(self.room * width);
                new.as_mut_slice::<u8>()[..offset * width]
                    .copy_from_slice(&old.as_slice::<u8>()[..offset * width]);
                self.bytes += new.capacity() - old.capacity();
                *old = new;
                let validity = column.validity.last_mut().expect("one for each segment").as_mut();
                if let Some(old) = validity.filter(|old| old.capacity() * 8 < self.room) {
                    let mut new = all_valid(self.room);
                    let words = old.as_slice::<u64>();
                    new.as_mut_slice::<u64>()[..words.len()].copy_from_slice(words);
                    self.bytes += new.capacity() - old.capacity();
                    *old = new;
                }
            }
        }
        (offset, needed - offset)
    }

    fn advance(&mut self, rows: usize) {
        *self.segments.last_mut().expect("room was made") += rows;
        self.rows += rows;
    }

    // ---- compressing --------------------------------------------------------------------------------------

    /// Turns a segment that no longer grows into tuples, and frees its columns that are not keys. All
    /// segments get the same `layout`, that of these columns. Does nothing to a segment that is tuples
    /// already, or that has a NULL which the layout does not expect.
    pub fn compress(&mut self, segment: usize, layout: &Arc<TupleLayout>) {
        let Some(sources) = self.sources(segment, layout) else { return };
        let rows = self.segments[segment];
        let tuples = Tuples::encode(layout, &sources, rows);
        let columns = self.column_bytes(segment, layout);
        self.compressed.segments += 1;
        self.compressed.rows += rows;
        self.compressed.columns += columns;
        self.compressed.tuples += tuples.bytes();
        self.bytes = self.bytes - columns + tuples.bytes();
        self.tuples[segment] = Some(tuples);
        for column in layout.columns() {
            let column = &mut self.columns[column];
            column.values[segment] = Buffer::zeroed(0);
            self.bytes += column.values[segment].capacity();
            column.validity[segment] = None;
        }
        self.layout = Some(layout.clone());
    }

    /// The bytes of a segment's columns that [`Materialized::compress`] would free, and those that it would
    /// take instead; `None` if it would do nothing.
    pub fn measure(&self, segment: usize, layout: &TupleLayout) -> Option<(usize, usize)> {
        let sources = self.sources(segment, layout)?;
        Some((self.column_bytes(segment, layout), Tuples::measure(layout, &sources, self.segments[segment])))
    }

    /// The columns of a segment that would become tuples; `None` if they cannot.
    fn sources(&self, segment: usize, layout: &TupleLayout) -> Option<Vec<Source<'_>>> {
        if self.tuples[segment].is_some() {
            return None;
        }
        let columns = layout.columns().zip(layout.nullable()).map(|(column, nullable)| {
            let values = &self.columns[column].values[segment];
            let validity =
                self.columns[column].validity[segment].as_ref().map(|words| words.as_slice::<u64>());
            debug_assert!(
                nullable || validity.is_none(),
                "a column has a NULL which its description rules out"
            );
            (nullable || validity.is_none()).then_some(Source { values, validity })
        });
        columns.collect()
    }

    /// Bytes of a segment's columns that are in the layout.
    fn column_bytes(&self, segment: usize, layout: &TupleLayout) -> usize {
        let of = |column: usize| {
            let Column { values, validity, .. } = &self.columns[column];
            values[segment].capacity() + validity[segment].as_ref().map_or(0, Buffer::capacity)
        };
        layout.columns().map(of).sum()
    }

    /// The tuples' field that holds `column`; `None` if there are no tuples, or if the column is a key.
    fn field_of(&self, column: usize) -> Option<usize> {
        self.layout.as_ref()?.field_of(column)
    }

    /// Writes `rows` values of `vector` to the last segment, from `offset`.
    fn write(&mut self, column: usize, vector: &Vector, picks: Picks<'_>, offset: usize, rows: usize) {
        let column = &mut self.columns[column];
        let values = column.values.last_mut().expect("room was made");
        let own = column.physical;
        if own == PhysicalType::Str && !vector.strings_are_stable() {
            column.strings_are_stable = false;
            let out = &mut values.as_mut_slice::<StringView>()[offset..offset + rows];
            copy_strings(vector, picks, heap_mut(&mut self.heap), out);
        } else if own == vector.physical() {
            macro_rules! copy {
                ($t:ty) => {
                    copy_values(
                        vector,
                        picks,
                        &mut values.as_mut_slice::<$t>()[offset..offset + rows],
                        |v: $t| v,
                    )
                };
            }
            match own.width() {
                1 => copy!(u8),
                2 => copy!(u16),
                4 => copy!(u32),
                8 => copy!(u64),
                _ => copy!(i128),
            }
        } else {
            widen(vector, picks, own, values, offset, rows);
        }
        if vector.validity().is_some() {
            column.write_validity(vector, picks, offset, rows, (self.room, &mut self.bytes));
        }
    }

    // ---- reading ------------------------------------------------------------------------------------------

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
    fn begin(&self, column: usize, rows: usize, out: &mut Vector) -> &Column {
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

fn heap_mut(heap: &mut Arc<StringHeap>) -> &mut StringHeap {
    Arc::get_mut(heap).expect("rows are appended before, not while, vectors are read")
}

/// A column for the values of `ty`, with an arbitrary id: for tests and for state columns of operators.
pub fn column_of(ty: DataType) -> ColumnMeta {
    ColumnMeta::new(entasis_vector::ColumnId(u32::MAX), ty)
}

#[cfg(test)]
mod tests;
