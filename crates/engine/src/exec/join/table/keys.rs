//! Keys of both sides, in the forms that tables ask for: as integers or as hashes.

use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use entasis_vector::hash::{HashCache, hash_column};
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Encoding, PhysicalType, Result, Selection, Vector, bitmap};
use std::sync::{Mutex, PoisonError};

/// Smallest and largest key of a build side, if [`super::Facts::span`] has them.
///
/// # Errors
/// Those of the tasks.
pub(crate) fn key_span(
    rows: &Materialized,
    null_equals_null: &[bool],
    tasks: &dyn Tasks,
) -> Result<Option<(i64, i64)>> {
    let ([meta, ..], [false]) = (rows.columns(), null_equals_null) else { return Ok(None) };
    if !is_integer(meta.physical) || meta.ty == DataType::Boolean {
        return Ok(None);
    }
    let spans = Mutex::new(Vec::new());
    tasks.run(rows.segments(), &|segment| {
        let mut span = (i64::MAX, i64::MIN);
        let validity = rows.validity(0, segment);
        for_each_key(rows, segment, |offset, key| {
            if validity.is_none_or(|words| bitmap::get(words, offset)) {
                span = (span.0.min(key), span.1.max(key));
            }
        });
        spans.lock().unwrap_or_else(PoisonError::into_inner).push(span);
        Ok(())
    })?;
    let spans = spans.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (min, max) = spans.into_iter().fold((i64::MAX, i64::MIN), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    // Unsigned keys beyond the signed range look negative.
    let wrapped = meta.physical == PhysicalType::U64 && min < 0;
    Ok((min <= max && !wrapped).then_some((min, max)))
}

/// True for the physical types whose values 64 bits hold as an integer.
pub(crate) fn is_integer(physical: PhysicalType) -> bool {
    use PhysicalType::*;
    matches!(physical, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
}

/// Calls `f` with offset and key of every row of `segment`; NULL rows have an arbitrary key.
#[inline(always)]
pub(crate) fn for_each_key(rows: &Materialized, segment: usize, mut f: impl FnMut(usize, i64)) {
    macro_rules! keys {
        ($($p:ident => $t:ty),*) => {
            match rows.columns()[0].physical {
                $(PhysicalType::$p => {
                    for (offset, &key) in rows.values::<$t>(0, segment).iter().enumerate() {
                        f(offset, key as i64);
                    }
                })*
                _ => unreachable!("only integers are asked for"),
            }
        };
    }
    keys!(I8 => i8, I16 => i16, I32 => i32, I64 => i64, U8 => u8, U16 => u16, U32 => u32, U64 => u64);
}

/// The keys of a probe chunk, in the forms that tables ask for.
#[derive(Default)]
pub(crate) struct ProbeKeys {
    /// Rows of the chunk.
    count: usize,
    /// Rows that can match, or all.
    rows: Vec<u16>,
    all_rows: bool,
    integers: Vec<i64>,
    hashes: Vec<u64>,
    caches: Vec<HashCache>,
    flat: Option<Vector>,
    hash_collisions: bool,
    /// The key columns: clones, released after each chunk.
    columns: Vec<(Vector, usize)>,
    groups: Vec<Selection>,
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

    /// Lets go of the chunk.
    pub(crate) fn release(&mut self) {
        self.columns.clear();
        self.groups.clear();
    }

    /// Rows that can match, or `None` for all.
    fn rows(&self) -> Option<&[u16]> {
        (!self.all_rows).then_some(&self.rows[..])
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
    pub(super) fn hashes(&mut self) -> (Option<&[u16]>, &[u64]) {
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

    /// The rows that can match (`None`: all), and each row's one key as an integer.
    pub(super) fn integers(&mut self) -> (Option<&[u16]>, &[i64]) {
        let (vector, group) = &self.columns[0];
        let mut positions = self.groups[*group].indices(self.count);
        let mut vector = vector;
        if vector.encoding() != Encoding::Flat {
            let flat = self.flat.get_or_insert_with(|| Vector::new(vector.physical()));
            vector.flatten_into(positions, self.count, flat);
            (vector, positions) = (flat, None);
        }
        self.integers.resize(CHUNK_ROWS.max(self.count), 0);
        let integers = &mut self.integers[..self.count];
        macro_rules! widen {
            ($($p:ident => $t:ty),*) => {
                match vector.physical() {
                    $(PhysicalType::$p => {
                        let values = vector.values::<$t>();
                        match positions {
                            None => integers.iter_mut().zip(values).for_each(|(to, &v)| *to = v as i64),
                            Some(at) => integers.iter_mut().zip(at).for_each(|(to, &p)| *to = values[p as usize] as i64),
                        }
                    })*
                    other => unreachable!("an integer key has no {other:?} on the other side"),
                }
            };
        }
        widen!(I8 => i8, I16 => i16, I32 => i32, I64 => i64, U8 => u8, U16 => u16, U32 => u32, U64 => u64);
        (self.rows(), &self.integers[..self.count])
    }
}
