//! Keys of a probe chunk, as places or as hashes.

use crate::exec::key_filter::{Packing, for_each_integer};
use entasis_vector::hash::{HashCache, hash_column};
use entasis_vector::{CHUNK_ROWS, Chunk, Encoding, PhysicalType, Selection, Vector};

/// The keys of a probe chunk, in the forms that tables need.
#[derive(Default)]
pub(crate) struct ProbeKeys {
    /// Rows of the chunk.
    count: usize,
    /// Rows that can match, unless all can.
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

    /// Takes the keys of a chunk: key i is its column `positions[i]`. Rows with a NULL in a key that NULL
    /// does not equal cannot match.
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
                self.rows.extend(
                    (0..self.count as u16).filter(|&r| vector.is_valid(selection.position(r as usize))),
                );
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

    /// Releases the chunk.
    pub(crate) fn release(&mut self) {
        let texts = self.bounds.iter_mut().filter(|bound| bound.physical() == PhysicalType::Str);
        texts.for_each(|bound| *bound = Vector::new(PhysicalType::Str));
        self.columns.clear();
        self.groups.clear();
    }

    /// Rows that can match, or `None` for all.
    pub(crate) fn rows(&self) -> Option<&[u16]> {
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
    pub(crate) fn count(&self) -> usize {
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
