//! Keys of a build side: their bounds, their places and their hashes.

use super::integers::{for_each_integer, is_integer};
use super::places::Packing;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::sync::{Mutex, PoisonError, lock};
use entasis_vector::hash::{HashCache, hash_column};
use entasis_vector::{CHUNK_ROWS, DataType, PhysicalType, Result, Vector, bitmap};
use std::ops::Range;

/// What a table or a filter is built from.
pub(crate) struct BuildInput<'a> {
    /// The rows; keys are the first columns.
    pub rows: &'a Materialized,
    /// For each key, whether NULL equals NULL.
    pub null_equals_null: &'a [bool],
    /// Every hash is the same.
    pub hash_collisions: bool,
    /// Runs work on all workers.
    pub tasks: &'a dyn Tasks,
}

/// Smallest and largest value of each key of a build side, if all are integers that 64 bits hold and NULL
/// equals nothing.
///
/// # Errors
/// Those of the tasks.
pub(crate) fn key_bounds(
    rows: &Materialized,
    null_equals_null: &[bool],
    tasks: &dyn Tasks,
) -> Result<Option<Vec<(i64, i64)>>> {
    let metas = &rows.columns()[..null_equals_null.len()];
    let is_place =
        |meta: &entasis_vector::expr::ColumnMeta| is_integer(meta.physical) && meta.ty != DataType::Boolean;
    if !metas.iter().all(is_place) || null_equals_null.contains(&true) || metas.is_empty() {
        return Ok(None);
    }
    let all = Mutex::new(vec![(i64::MAX, i64::MIN); metas.len()]);
    tasks.run(rows.segments(), &|segment| {
        let bounds: Vec<(i64, i64)> =
            (0..metas.len()).map(|key| segment_bounds(rows, key, segment)).collect();
        let mut all = lock(&all);
        all.iter_mut().zip(bounds).for_each(|(all, own)| *all = (all.0.min(own.0), all.1.max(own.1)));
        Ok(())
    })?;
    let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let is_usable = |(meta, &(min, max)): (&entasis_vector::expr::ColumnMeta, &(i64, i64))| {
        // Unsigned keys beyond the signed range look negative.
        min <= max && !(meta.physical == PhysicalType::U64 && min < 0)
    };
    Ok(metas.iter().zip(&all).all(is_usable).then_some(all))
}

/// Smallest and largest value of a key column in `segment`.
pub(crate) fn segment_bounds(rows: &Materialized, key: usize, segment: usize) -> (i64, i64) {
    let mut bounds = (i64::MAX, i64::MIN);
    let mut add = |key: i64| bounds = (bounds.0.min(key), bounds.1.max(key));
    let (validity, count) = (rows.validity(key, segment), rows.segment_rows(segment));
    let physical = rows.columns()[key].physical;
    let mut vector = Vector::new(physical);
    for first in (0..count).step_by(CHUNK_ROWS) {
        for_each_integer!(physical, |T| {
            let values = rows.values_in::<T>(key, segment, first..count.min(first + CHUNK_ROWS), &mut vector);
            match validity {
                None => values.iter().for_each(|&v| add(v as i64)),
                Some(words) => {
                    let valid = values.iter().enumerate().filter(|(i, _)| bitmap::get(words, first + *i));
                    valid.for_each(|(_, &v)| add(v as i64));
                }
            }
        });
    }
    bounds
}

/// Up to `count` values of the first key of a build side, evenly sampled, in any order.
pub(crate) fn sample(rows: &Materialized, count: usize) -> Vec<i64> {
    let mut keys = Vec::with_capacity(count);
    let step = rows.rows().div_ceil(count).max(1);
    let mut first = 0;
    for segment in 0..rows.segments() {
        let validity = rows.validity(0, segment);
        let count = rows.segment_rows(segment);
        let drawn = (first..count).step_by(step);
        first = first + drawn.len() * step - count;
        let drawn = drawn.filter(|offset| validity.is_none_or(|words| bitmap::get(words, *offset)));
        for_each_integer!(rows.columns()[0].physical, |T| {
            let values = rows.values::<T>(0, segment);
            keys.extend(drawn.map(|offset| values[offset] as i64));
        });
    }
    keys
}

/// Calls `f` with the offset of a row and the places of that row and those that follow, for all rows of
/// `segment`.
pub(crate) fn for_each_batch(
    rows: &Materialized,
    segment: usize,
    packing: &Packing,
    f: &mut dyn FnMut(usize, &[u64]),
) {
    let mut places = [0u64; CHUNK_ROWS];
    let count = rows.segment_rows(segment);
    for first in (0..count).step_by(CHUNK_ROWS) {
        let places = &mut places[..CHUNK_ROWS.min(count - first)];
        packing.of_rows(rows, segment, first, places);
        f(first, places);
    }
}

/// Hashes of build rows.
pub(crate) struct KeyHashes {
    columns: Vec<Vector>,
    cache: HashCache,
    /// Rows of a batch with a NULL in a key that NULL does not equal.
    nulls: Vec<u16>,
}

impl KeyHashes {
    pub(crate) fn new(input: &BuildInput<'_>) -> KeyHashes {
        let metas = &input.rows.columns()[..input.null_equals_null.len()];
        let columns = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        KeyHashes { columns, cache: HashCache::default(), nulls: Vec::new() }
    }

    /// Calls `f` with the offset of a row, the hashes of that row and those that follow, and which of these
    /// cannot match, ascending; for the rows of `segment` at the given offsets.
    pub(crate) fn for_each(
        &mut self,
        input: &BuildInput<'_>,
        segment: usize,
        offsets: Range<usize>,
        mut f: impl FnMut(usize, &[u64], &[u16]),
    ) {
        let mut hashes = [0u64; CHUNK_ROWS];
        for first in offsets.clone().step_by(CHUNK_ROWS) {
            let count = CHUNK_ROWS.min(offsets.end - first);
            let hashes = &mut hashes[..count];
            self.nulls.clear();
            for (i, column) in self.columns.iter_mut().enumerate() {
                input.rows.read(i, segment, first, count, column);
                hash_column(column, None, count, i > 0, &mut self.cache, hashes);
            }
            let keys = || self.columns.iter().zip(input.null_equals_null).filter(|(_, equal)| !**equal);
            if keys().any(|(column, _)| column.validity().is_some()) {
                let is_null = |row: &u16| keys().any(|(column, _)| !column.is_valid(*row as usize));
                self.nulls.extend((0..count as u16).filter(is_null));
            }
            if input.hash_collisions {
                hashes.fill(0);
            }
            f(first, hashes, &self.nulls);
        }
    }
}
