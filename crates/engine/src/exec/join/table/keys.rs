//! Keys of both sides, in the forms that tables ask for: as places or as hashes.

use super::BuildInput;
use super::places::Packing;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::sync::{Mutex, PoisonError};
use entasis_vector::hash::{HashCache, hash_column, hash_u64};
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Encoding, PhysicalType, Result, Selection, Vector, bitmap};
use std::ops::Range;

/// Rows whose hashes are drawn, about, to learn how often keys are repeated.
const HASH_SAMPLE: usize = 2 << 10;

/// Runs an expression with `$t` as the type of an integer physical type.
macro_rules! for_each_integer {
    ($physical:expr, |$t:ident| $body:expr) => {{
        use entasis_vector::PhysicalType::*;
        for_each_integer!(@ $physical, $t, $body; I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    }};
    (@ $physical:expr, $t:ident, $body:expr; $($p:ident $native:ty),*) => {
        match $physical {
            $(#[allow(clippy::unnecessary_cast)] // One of the types is the one that all become.
            $p => {
                type $t = $native;
                $body
            })*
            other => unreachable!("a key of {other:?} is no integer"),
        }
    };
}
pub(crate) use for_each_integer;

/// Smallest and largest value of each key of a build side, if [`super::Facts::bounds`] has them.
///
/// # Errors
/// Those of the tasks.
pub(crate) fn key_bounds(
    rows: &Materialized,
    null_equals_null: &[bool],
    tasks: &dyn Tasks,
) -> Result<Option<Vec<(i64, i64)>>> {
    let metas = &rows.columns()[..null_equals_null.len()];
    let is_place = |meta: &entasis_vector::expr::ColumnMeta| is_integer(meta.physical) && meta.ty != DataType::Boolean;
    if !metas.iter().all(is_place) || null_equals_null.contains(&true) || metas.is_empty() {
        return Ok(None);
    }
    let all = Mutex::new(vec![(i64::MAX, i64::MIN); metas.len()]);
    tasks.run(rows.segments(), &|segment| {
        let bounds: Vec<(i64, i64)> = (0..metas.len()).map(|key| segment_bounds(rows, key, segment)).collect();
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
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
pub(super) fn segment_bounds(rows: &Materialized, key: usize, segment: usize) -> (i64, i64) {
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

/// True for the physical types whose values 64 bits hold as an integer.
pub(crate) fn is_integer(physical: PhysicalType) -> bool {
    use PhysicalType::*;
    matches!(physical, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
}

/// Up to `count` values of the first key of a build side, evenly drawn, in any order.
pub(super) fn sample(rows: &Materialized, count: usize) -> Vec<i64> {
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

/// Calls `f` with the offset of a first row and the places of that row and those that follow, for all rows of `segment`.
pub(super) fn for_each_batch(rows: &Materialized, segment: usize, packing: &Packing, f: &mut dyn FnMut(usize, &[u64])) {
    let mut places = [0u64; CHUNK_ROWS];
    let count = rows.segment_rows(segment);
    for first in (0..count).step_by(CHUNK_ROWS) {
        let places = &mut places[..CHUNK_ROWS.min(count - first)];
        packing.of_rows(rows, segment, first, places);
        f(first, places);
    }
}

/// Hashes of build rows.
pub(super) struct KeyHashes {
    columns: Vec<Vector>,
    cache: HashCache,
    /// Rows of a batch with a NULL in a key that NULL does not equal.
    nulls: Vec<u16>,
}

impl KeyHashes {
    pub(super) fn new(input: &BuildInput<'_>) -> KeyHashes {
        let metas = &input.rows.columns()[..input.null_equals_null.len()];
        let columns = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        KeyHashes { columns, cache: HashCache::default(), nulls: Vec::new() }
    }

    /// Calls `f` with the offset of a first row, the hashes of that row and those that follow, and which of these cannot
    /// match, ascending; for the rows of `segment` at the given offsets.
    pub(super) fn for_each(
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

/// How often keys are repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Repetition {
    /// Rows of a key, on average, by those keys whose hashes fall into a small part of all hashes. Rows that cannot match count for
    /// nothing; without any others it is 0.
    pub per_key: f64,
    /// The share of the rows that the most frequent key has, of one row drawn from every chunk.
    pub most: f64,
}

/// How often the keys of these rows are repeated.
///
/// # Errors
/// Those of the tasks.
pub(super) fn repetition(input: &BuildInput<'_>) -> Result<Repetition> {
    let part = (input.rows.rows() / HASH_SAMPLE).max(1).next_power_of_two() as u64;
    let all = Mutex::new((0, Vec::new(), Vec::new()));
    input.tasks.run(input.rows.segments(), &|segment| {
        let (mut drawn, mut picked) = (Vec::new(), Vec::new());
        let rows = input.rows.segment_rows(segment);
        KeyHashes::new(input).for_each(input, segment, 0..rows, |first, hashes, nulls| {
            // By chance, so that keys that come in turns do not all meet themselves.
            let chance = hash_u64(((segment as u64) << 32) + first as u64);
            picked.push(hashes[(chance % hashes.len() as u64) as usize]);
            let mut nulls = nulls.iter().peekable();
            for (i, &hash) in hashes.iter().enumerate() {
                let is_null = nulls.next_if(|&&null| null as usize == i).is_some();
                if hash >> 16 & (part - 1) == 0 && !is_null {
                    drawn.push(hash);
                }
            }
        });
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 += drawn.len();
        // Of a key that most rows have, one a segment is kept.
        drawn.sort_unstable();
        drawn.dedup();
        all.1.append(&mut drawn);
        all.2.append(&mut picked);
        Ok(())
    })?;
    let (rows, mut keys, mut picked) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    keys.sort_unstable();
    keys.dedup();
    picked.sort_unstable();
    let most = picked.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0);
    let per_key = rows as f64 / keys.len().max(1) as f64;
    Ok(Repetition { per_key, most: most as f64 / picked.len().max(1) as f64 })
}

/// The keys of a probe chunk, in the forms that tables ask for.
#[derive(Default)]
pub(crate) struct ProbeKeys {
    /// Rows of the chunk.
    count: usize,
    /// Rows that can match, or all.
    rows: Vec<u16>,
    all_rows: bool,
    places: Vec<u64>,
    hashes: Vec<u64>,
    caches: Vec<HashCache>,
    flat: Option<Vector>,
    hash_collisions: bool,
    /// The key columns: clones, released after each chunk.
    columns: Vec<(Vector, usize)>,
    groups: Vec<Selection>,
    /// Bounds beside the keys, flat.
    bounds: Vec<Vector>,
}

impl ProbeKeys {
    /// For keys of this many columns.
    pub(crate) fn new(keys: usize, hash_collisions: bool) -> ProbeKeys {
        let caches = (0..keys).map(|_| HashCache::default()).collect();
        ProbeKeys { caches, hash_collisions, ..ProbeKeys::default() }
    }

    /// Takes the keys of a chunk: key i is its column `positions[i]`. Rows with a NULL in a key that NULL does not equal
    /// cannot match.
    pub(crate) fn begin(&mut self, chunk: &Chunk, positions: &[usize], null_equals_null: &[bool]) {
        self.count = chunk.len();
        self.groups.extend(chunk.groups().iter().cloned());
        self.columns.extend(positions.iter().map(|&p| (chunk.vector(p).clone(), chunk.column(p).group)));
        self.all_rows = true;
        for (i, &equal) in null_equals_null.iter().enumerate() {
            let (vector, group) = &self.columns[i];
            if equal || vector.validity().is_none() {
                continue;
            }
            let selection = &self.groups[*group];
            if self.all_rows {
                self.rows.clear();
                self.rows.extend((0..self.count as u16).filter(|&r| vector.is_valid(selection.position(r as usize))));
                self.all_rows = false;
            } else {
                self.rows.retain(|&r| vector.is_valid(selection.position(r as usize)));
            }
        }
    }

    /// Takes the bounds of the same rows: bound i is column `positions[i]` of `chunk`.
    pub(crate) fn take_bounds(&mut self, chunk: &Chunk, positions: &[usize]) {
        self.bounds.resize_with(positions.len(), || Vector::new(PhysicalType::I64));
        for (bound, &position) in self.bounds.iter_mut().zip(positions) {
            let selection = &chunk.groups()[chunk.column(position).group];
            chunk.vector(position).flatten_into(selection.indices(self.count), self.count, bound);
        }
    }

    /// Bound `i` of each row, flat.
    pub(super) fn bound(&self, i: usize) -> &Vector {
        &self.bounds[i]
    }

    /// Lets go of the chunk.
    pub(crate) fn release(&mut self) {
        let texts = self.bounds.iter_mut().filter(|bound| bound.physical() == PhysicalType::Str);
        texts.for_each(|bound| *bound = Vector::new(PhysicalType::Str));
        self.columns.clear();
        self.groups.clear();
    }

    /// Rows that can match, or `None` for all.
    fn rows(&self) -> Option<&[u16]> {
        (!self.all_rows).then_some(&self.rows[..])
    }

    /// True if some row cannot match.
    pub(crate) fn has_unmatchable(&self) -> bool {
        !self.all_rows && self.rows.len() < self.count
    }

    /// True if row `row` has a NULL in some key that NULL does not equal.
    pub(crate) fn has_null(&self, row: usize, null_equals_null: &[bool]) -> bool {
        let mut keys = self.columns.iter().zip(null_equals_null);
        keys.any(|((vector, group), &equal)| !equal && !vector.is_valid(self.groups[*group].position(row)))
    }

    /// Key column `i`, and the positions of the rows in it.
    pub(crate) fn column(&self, i: usize) -> (&Vector, Option<&[u16]>) {
        let (vector, group) = &self.columns[i];
        (vector, self.groups[*group].indices(self.count))
    }

    /// Rows of the chunk.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The rows that can match (`None`: all), and the hash of each row's keys.
    pub(crate) fn hashes(&mut self) -> (Option<&[u16]>, &[u64]) {
        self.hashes.resize(CHUNK_ROWS.max(self.count), 0);
        let hashes = &mut self.hashes[..self.count];
        for (i, (vector, group)) in self.columns.iter().enumerate() {
            let positions = self.groups[*group].indices(self.count);
            hash_column(vector, positions, self.count, i > 0, &mut self.caches[i], hashes);
        }
        if self.hash_collisions {
            hashes.fill(0);
        }
        (self.rows(), &self.hashes[..self.count])
    }

    /// The hashes that [`ProbeKeys::hashes`] has computed for this chunk.
    pub(super) fn known_hashes(&self) -> &[u64] {
        &self.hashes[..self.count]
    }

    /// The rows that can match (`None`: all), and the place of each row's keys.
    pub(super) fn places(&mut self, packing: &Packing) -> (Option<&[u16]>, &[u64]) {
        self.places.resize(CHUNK_ROWS.max(self.count), 0);
        let places = &mut self.places[..self.count];
        for (part, (vector, group)) in self.columns.iter().enumerate() {
            let mut positions = self.groups[*group].indices(self.count);
            let mut vector = vector;
            if vector.encoding() != Encoding::Flat {
                let flat = self.flat.get_or_insert_with(|| Vector::new(vector.physical()));
                vector.flatten_into(positions, self.count, flat);
                (vector, positions) = (flat, None);
            }
            for_each_integer!(vector.physical(), |T| {
                let values = vector.values::<T>();
                match positions {
                    None => packing.add(part, values.iter().map(|&v| v as i64), places),
                    Some(at) => packing.add(part, at.iter().map(|&p| values[p as usize] as i64), places),
                }
            });
        }
        (self.rows(), &self.places[..self.count])
    }
}
