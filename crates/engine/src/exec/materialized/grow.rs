//! Appending rows, and what else changes how many there are.

use super::column::{Picks, all_valid, copy_strings, copy_values, widen};
use super::rows::Materialized;
use crate::exec::row_id::SEGMENT_ROWS;
use crate::exec::tuple::Tuples;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Buffer, CHUNK_ROWS, Chunk, PhysicalType, StringHeap, StringView, Vector};
use std::sync::Arc;

/// Rows that later segments have room for initially.
const LATER_ROOM: usize = 16 << 10;

impl Materialized {
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
        self.growth.room = other.growth.room;
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
    pub(super) fn make_room(&mut self, rows: usize) -> (usize, usize) {
        let most = if self.growth.in_pages && self.growth.room > 0 { self.growth.room } else { SEGMENT_ROWS };
        let is_finished = |(&filled, tuples): (&usize, &Option<Tuples>)| filled == most || tuples.is_some();
        if self.segments.last().zip(self.tuples.last()).is_none_or(is_finished) {
            assert!(self.segments.len() + 1 < SEGMENT_ROWS, "row ids have room for 65,535 segments");
            self.growth.room = match self.growth.expected.saturating_sub(self.rows) {
                0 if self.segments.is_empty() => Materialized::FIRST_ROOM,
                0 if self.growth.in_pages => (2 * self.growth.room).min(SEGMENT_ROWS),
                0 => LATER_ROOM,
                expected => expected.min(SEGMENT_ROWS),
            };
            self.segments.push(0);
            self.tuples.push(None);
            for column in &mut self.columns {
                let buffer = Buffer::zeroed(self.growth.room * column.physical.width());
                self.bytes += buffer.capacity();
                column.values.push(buffer);
                column.validity.push(None);
            }
        }
        let offset = *self.segments.last().expect("just pushed or just tested");
        let most = if self.growth.in_pages { self.growth.room } else { SEGMENT_ROWS };
        let needed = (offset + rows).min(most);
        if needed > self.growth.room {
            self.growth.room = needed.next_power_of_two();
            for column in &mut self.columns {
                let width = column.physical.width();
                let old = column.values.last_mut().expect("one buffer a segment");
                let mut new = Buffer::zeroed(self.growth.room * width);
                new.as_mut_slice::<u8>()[..offset * width]
                    .copy_from_slice(&old.as_slice::<u8>()[..offset * width]);
                self.bytes += new.capacity() - old.capacity();
                *old = new;
                let validity = column.validity.last_mut().expect("one for each segment").as_mut();
                if let Some(old) = validity.filter(|old| old.capacity() * 8 < self.growth.room) {
                    let mut new = all_valid(self.growth.room);
                    let words = old.as_slice::<u64>();
                    new.as_mut_slice::<u64>()[..words.len()].copy_from_slice(words);
                    self.bytes += new.capacity() - old.capacity();
                    *old = new;
                }
            }
        }
        (offset, needed - offset)
    }

    /// Counts rows that have been written.
    pub(super) fn advance(&mut self, rows: usize) {
        *self.segments.last_mut().expect("room was made") += rows;
        self.rows += rows;
    }

    /// Writes `rows` values of `vector` to the last segment, from `offset`.
    pub(super) fn write(
        &mut self,
        column: usize,
        vector: &Vector,
        picks: Picks<'_>,
        offset: usize,
        rows: usize,
    ) {
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
            column.write_validity(vector, picks, offset, rows, (self.growth.room, &mut self.bytes));
        }
    }
}

fn heap_mut(heap: &mut Arc<StringHeap>) -> &mut StringHeap {
    Arc::get_mut(heap).expect("rows are appended before, not while, vectors are read")
}
