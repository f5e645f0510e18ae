//! Checks, in debug builds, that rows are kept: whatever moves rows or encodes them again is compared with
//! what it was made of.
//!
//! Every row of the slices is read in two ways, as a scan reads it (run by run of live slots, column by
//! column) and value by value, and must be the same both times. A hash of each row is kept with its slot. The
//! new slices are then read in the same way. Rows that may move must be the same rows in any order; rows that
//! were encoded again must be the same at the same slots. Only slices that change are read, so the comparison
//! costs about as much as the change itself.
//!
//! Release builds read and compare nothing.

use crate::block::Block;
use crate::block::masks::WORDS;
use crate::node::Link;
use crate::scan::read;
use crate::tree::{Shape, Slice, Slices};
use crate::value::Datum;
use entasis_vector::{CHUNK_ROWS, Vector};
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::ops::Range;

/// The rows of some slices: the slot of each, counted through all slices, and a hash of all its values. Empty
/// in release builds.
pub(super) struct Kept(Vec<(usize, u64)>);

/// Consecutive slices, in a tree or not.
struct SideBySide<'a> {
    block_slots: usize,
    slices: &'a [Link<Slice>],
}

impl Slices for SideBySide<'_> {
    fn block_slots(&self) -> usize {
        self.block_slots
    }
    fn block(&self, slice: usize, column: usize) -> (&Block, &[u64; WORDS]) {
        let slice = &*self.slices[slice];
        (slice.block(column), slice.live())
    }
}

impl Kept {
    /// The rows of some slices before they are replaced.
    pub(super) fn of(slices: &[Link<Slice>], shape: &Shape) -> Kept {
        Kept(if cfg!(debug_assertions) { rows_of(slices, shape) } else { Vec::new() })
    }

    /// Panics unless the slices hold the same rows, in any order.
    pub(super) fn assert_same_rows(self, slices: &[Link<Slice>], shape: &Shape) {
        if !cfg!(debug_assertions) {
            return;
        }
        let now = rows_of(slices, shape);
        let hashes = |rows: &[(usize, u64)]| {
            let mut hashes: Vec<u64> = rows.iter().map(|(_, hash)| *hash).collect();
            hashes.sort_unstable();
            hashes
        };
        let (old, new) = (hashes(&self.0), hashes(&now));
        if old != new {
            let old: BTreeSet<u64> = old.into_iter().collect();
            let changed = now.iter().find(|(_, hash)| !old.contains(hash));
            fail(slices, shape, (self.0.len(), now.len()), changed.map(|(slot, _)| *slot));
        }
    }

    /// Panics unless the slices hold the same rows at the same slots.
    pub(super) fn assert_same_places(self, slices: &[Link<Slice>], shape: &Shape) {
        if !cfg!(debug_assertions) {
            return;
        }
        let now = rows_of(slices, shape);
        if self.0 != now {
            let old: BTreeSet<(usize, u64)> = self.0.iter().copied().collect();
            let changed = now.iter().find(|row| !old.contains(row));
            fail(slices, shape, (self.0.len(), now.len()), changed.map(|(slot, _)| *slot));
        }
    }
}

/// Panics with the row that was not there before.
fn fail(slices: &[Link<Slice>], shape: &Shape, (before, after): (usize, usize), slot: Option<usize>) -> ! {
    let width = shape.options.block_slots;
    let row = slot.map(|slot| {
        let datum = |column: usize| {
            let ty = shape.schema[column].ty;
            slices[slot / width].block(column).datum(slot % width, ty.physical()).value(ty)
        };
        (0..shape.schema.len()).map(datum).collect::<Vec<_>>()
    });
    let name = &shape.name;
    panic!(
        "table {name} has other rows after they were laid anew: {before} before, {after} now; new in slot {slot:?}: {row:?}"
    );
}

/// All rows of some slices.
fn rows_of(slices: &[Link<Slice>], shape: &Shape) -> Vec<(usize, u64)> {
    let width = shape.options.block_slots;
    let sides = SideBySide { block_slots: width, slices };
    let live = |slot: &usize| slices[slot / width].is_live(slot % width);
    let slots: Vec<usize> = (0..slices.len() * width).filter(live).collect();
    let mut rows = Vec::with_capacity(slots.len());
    let mut vectors: Vec<Vector> =
        shape.schema.iter().map(|field| Vector::new(field.ty.physical())).collect();
    for slots in slots.chunks(CHUNK_ROWS) {
        let runs: Vec<Range<usize>> =
            slots.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[run.len() - 1] + 1).collect();
        for (column, vector) in vectors.iter_mut().enumerate() {
            read::decode(&sides, column, vector.physical(), &runs, CHUNK_ROWS, vector);
        }
        for (position, &slot) in slots.iter().enumerate() {
            let mut hasher = DefaultHasher::new();
            for (column, vector) in vectors.iter().enumerate() {
                let scanned = Datum::of_vector(vector, position);
                let block = slices[slot / width].block(column);
                let single = block.datum(slot % width, shape.schema[column].ty.physical());
                let column = &shape.schema[column].name;
                assert!(
                    scanned.is_same(single),
                    "column {column} of table {}, slot {slot}: a scan reads {scanned:?} and a single look {single:?}",
                    shape.name
                );
                add(scanned, &mut hasher);
            }
            rows.push((slot, hasher.finish()));
        }
    }
    rows
}

/// Adds a value to a hash: values that can be told apart count as different.
fn add(datum: Datum<'_>, hasher: &mut DefaultHasher) {
    match datum {
        Datum::Null => hasher.write_u8(0),
        Datum::Integer(value) => hasher.write_i128(value),
        Datum::Float(value) => hasher.write_u64(value.to_bits()),
        Datum::Interval(value) => {
            hasher.write_i32(value.months);
            hasher.write_i32(value.days);
            hasher.write_i64(value.micros);
        }
        Datum::Bytes(bytes) => {
            hasher.write_usize(bytes.len());
            hasher.write(bytes);
        }
    }
}
