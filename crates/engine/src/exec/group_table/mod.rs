//! Group tables: key rows to *group ids*, the numbers 0, 1, 2, …
//!
//! Groups of a later chunk have greater ids, but **within a chunk the order of ids means nothing**: a hashed
//! table numbers new groups in rounds. Whoever wants the rows with which groups begin asks for them
//! ([`GroupTable::find_new`]).
//!
//! | kind | how a row finds its group | when |
//! |---|---|---|
//! | one | there is one | no keys |
//! | direct | the keys' values form an index into an array of group ids | few-valued keys ([`direct`]) |
//! | hashed | hash → slot → tag → compare with the stored key | everything else |
//!
//! Whatever the kind, the keys themselves are in a [`Materialized`] whose row ids are the group ids, so a
//! table can change its kind and continue: direct to hashed when a value without an index turns up.
//!
//! A hashed table works on a chunk at a time: one branch-free pass compares the tags of all rows' home slots,
//! one pass per key column compares the keys of the rows that hit. Only the rest probes linearly, in rounds:
//! in each round a row claims an empty slot as a new group or finds the next equal tag; keys of new groups
//! are appended, candidates compared, and rows without a match continue after their slot.
//!
//! Of each group 32 bits of hash are kept, its *tag*. A slot is four bytes: with 2^b slots, the tag's high b
//! bits are the home slot's index, and the slot holds the other bits of the tag and, in b bits, the group id
//! plus one. So in its home slot no bit of the tag is lost, and growing needs no keys. Radix partitions use
//! the low bits ([`partition_of`]).

pub mod direct;
mod hashed;
pub mod marked;
mod partition;
mod runs;
#[cfg(test)]
mod tests;

pub use partition::{Partition, partition_of};

use crate::exec::materialized::Materialized;
use direct::Direct;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::hash::{HashCache, hash_column};
use entasis_vector::{CHUNK_ROWS, Chunk, Selection, Vector};
use hashed::{Hashed, NONE, tag};
use runs::Runs;

/// The number of groups at which a hashed partial is put aside.
pub const MOST_GROUPS: usize = 256 << 10;

/// Maps the rows of a chunk to group ids. See the module.
pub struct GroupTable {
    keys: Materialized,
    kind: Kind,
    groups: usize,
    /// True: hashes have few values, so that most keys collide ([`few_valued`]).
    collide: bool,
    caches: Vec<HashCache>,
    hashes: Vec<u64>,
    runs: Runs,
}

enum Kind {
    One,
    Direct(Direct),
    Hashed(Box<Hashed>),
}

impl GroupTable {
    /// The value for no group.
    pub const NONE: u32 = NONE;

    /// A table for keys like `keys`, about `expected` groups. With `collide`, which is for tests, there are
    /// but two hashes for all keys.
    pub fn new(keys: &[ColumnMeta], expected: usize, collide: bool) -> GroupTable {
        match Direct::new(keys, expected) {
            _ if keys.is_empty() => GroupTable::of_kind(keys, Kind::One, collide),
            Some(direct) => GroupTable::of_kind(keys, Kind::Direct(direct), collide),
            None => GroupTable::hashed(keys, expected.min(MOST_GROUPS), collide),
        }
    }

    /// A hashed table with room for `expected` groups.
    pub fn hashed(keys: &[ColumnMeta], expected: usize, collide: bool) -> GroupTable {
        let hashed = Hashed::expecting(expected + CHUNK_ROWS);
        GroupTable::of_kind(keys, Kind::Hashed(Box::new(hashed)), collide)
    }

    fn of_kind(keys: &[ColumnMeta], kind: Kind, collide: bool) -> GroupTable {
        GroupTable {
            groups: usize::from(matches!(kind, Kind::One)),
            keys: Materialized::new(keys),
            kind,
            collide,
            caches: keys.iter().map(|_| HashCache::default()).collect(),
            hashes: Vec::new(),
            runs: Runs::default(),
        }
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }
    /// The keys; a group's id is its row id.
    pub fn keys(&self) -> &Materialized {
        &self.keys
    }
    /// How groups are found, for `EXPLAIN ANALYZE`.
    pub fn kind(&self) -> &'static str {
        match self.kind {
            Kind::One => "of one group",
            Kind::Direct(_) => "indexed by key",
            Kind::Hashed(_) => "hashed",
        }
    }
    /// True if groups are found by hash, so that a look-up without a result is wasted.
    pub fn is_hashed(&self) -> bool {
        matches!(self.kind, Kind::Hashed(_))
    }
    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let kind = match &self.kind {
            Kind::One => 0,
            Kind::Direct(direct) => direct.bytes(),
            Kind::Hashed(hashed) => hashed.bytes(),
        };
        self.keys.bytes() + kind
    }

    /// Of these, bytes that are allocated at the beginning and do not grow.
    pub fn fixed_bytes(&self) -> usize {
        match &self.kind {
            Kind::Direct(direct) => direct.bytes(),
            Kind::One | Kind::Hashed(_) => 0,
        }
    }

    /// Writes to `groups` the group of each row of `chunk`, whose columns `columns` are the keys. Creates
    /// groups for new keys.
    pub fn find(&mut self, chunk: &Chunk, columns: &[usize], groups: &mut Vec<u32>) {
        groups.clear();
        groups.resize(chunk.len(), NONE);
        if let Kind::Direct(direct) = &mut self.kind {
            if direct.find(chunk, columns, &mut self.keys, groups) {
                self.groups = self.keys.rows();
                return;
            }
            self.hash_from_now();
        }
        match &mut self.kind {
            Kind::One => groups.fill(0),
            Kind::Direct(_) => unreachable!("tried first"),
            Kind::Hashed(hashed) => {
                if self.runs.detect(chunk, columns) {
                    let heads = &self.runs.narrowed;
                    hash_rows(heads, &[0], self.collide, &mut self.caches, &mut self.hashes);
                    let found = &mut self.runs.found;
                    found.clear();
                    found.resize(heads.len(), NONE);
                    hashed.find(heads, &[0], &self.hashes, &mut self.keys, found);
                    self.runs.spread(groups);
                } else {
                    hash_rows(chunk, columns, self.collide, &mut self.caches, &mut self.hashes);
                    hashed.find(chunk, columns, &self.hashes, &mut self.keys, groups);
                }
                self.groups = self.keys.rows();
            }
        }
    }

    /// Writes to `marks` the group of each position of `chunk`, if groups are few and indexed by keys that
    /// are all at the same positions, ascending ([`marked`]). False, and nothing is done, if not, or if a
    /// row's group is new.
    pub fn mark(&mut self, chunk: &Chunk, columns: &[usize], marks: &mut Vec<u8>) -> bool {
        match &mut self.kind {
            Kind::Direct(direct) => direct.mark(chunk, columns, marks),
            Kind::One | Kind::Hashed(_) => false,
        }
    }

    /// As [`GroupTable::find`]; `firsts` gets, for each group that is new, the first of its rows in the
    /// chunk, ascending.
    pub fn find_new(
        &mut self,
        chunk: &Chunk,
        columns: &[usize],
        groups: &mut Vec<u32>,
        firsts: &mut Vec<u16>,
    ) {
        let known = self.groups;
        self.find(chunk, columns, groups);
        firsts.clear();
        let mut is_due = vec![true; self.groups - known];
        for (row, &group) in groups.iter().enumerate() {
            let new = (group as usize).checked_sub(known).and_then(|new| is_due.get_mut(new));
            if new.is_some_and(std::mem::take) {
                firsts.push(row as u16);
            }
        }
    }

    /// As [`GroupTable::find`] in a hashed table, for keys whose tags are known from another table.
    pub fn find_tagged(&mut self, chunk: &Chunk, columns: &[usize], tags: &[u32], groups: &mut Vec<u32>) {
        let Kind::Hashed(hashed) = &mut self.kind else { unreachable!("only hashed tables have tags") };
        groups.clear();
        groups.resize(chunk.len(), NONE);
        self.hashes.clear();
        self.hashes.extend(tags.iter().map(|&tag| u64::from(tag) << 32));
        hashed.find(chunk, columns, &self.hashes, &mut self.keys, groups);
        self.groups = self.keys.rows();
    }

    /// Looks the keys up without creating groups: `u32::MAX` for keys that are not found. Hashed tables only.
    pub fn look_up(&mut self, chunk: &Chunk, columns: &[usize], groups: &mut Vec<u32>) {
        let Kind::Hashed(hashed) = &mut self.kind else { unreachable!("only hashed tables are looked up") };
        groups.clear();
        groups.resize(chunk.len(), NONE);
        hash_rows(chunk, columns, self.collide, &mut self.caches, &mut self.hashes);
        hashed.find_known(chunk, columns, &self.hashes, &self.keys, groups);
    }

    /// Hashes the keys, for [`GroupTable::tags`].
    pub fn hash(&mut self, chunk: &Chunk, columns: &[usize]) {
        hash_rows(chunk, columns, self.collide, &mut self.caches, &mut self.hashes);
    }

    /// The tags of the rows that were last looked up, or hashed.
    pub fn tags(&self) -> impl Iterator<Item = u32> + '_ {
        self.hashes.iter().map(|&hash| tag(hash))
    }

    /// Makes the table hashed; ids stay. Only for groups with keys.
    pub fn hash_from_now(&mut self) {
        if self.is_hashed() {
            return;
        }
        let hashed = Hashed::of_tags(self.compute_tags());
        self.kind = Kind::Hashed(Box::new(hashed));
    }

    /// True if groups are found by an array over all possible keys.
    pub fn is_direct(&self) -> bool {
        matches!(self.kind, Kind::Direct(_))
    }

    /// Drops everything but the keys.
    pub fn into_keys(self) -> Materialized {
        self.keys
    }

    /// Drops everything but keys and tags: nothing can be found any more. The tags, by group id, determine
    /// the partitions.
    pub fn seal(mut self) -> (Materialized, Vec<u32>) {
        let tags = match &mut self.kind {
            Kind::Hashed(hashed) => std::mem::take(&mut hashed.tags),
            Kind::One | Kind::Direct(_) => self.compute_tags(),
        };
        (self.keys, tags)
    }

    fn compute_tags(&mut self) -> Vec<u32> {
        let columns: Vec<usize> = (0..self.keys.columns().len()).collect();
        let mut vectors: Vec<Vector> =
            self.keys.columns().iter().map(|meta| Vector::new(meta.physical)).collect();
        let mut tags = Vec::with_capacity(self.groups);
        let mut chunk = Chunk::new();
        for segment in 0..self.keys.segments() {
            let rows = self.keys.segment_rows(segment);
            for first in (0..rows).step_by(CHUNK_ROWS) {
                read_keys(&self.keys, segment, first, CHUNK_ROWS.min(rows - first), &mut vectors, &mut chunk);
                hash_rows(&chunk, &columns, self.collide, &mut self.caches, &mut self.hashes);
                tags.extend(self.hashes.iter().map(|&h| tag(h)));
            }
        }
        tags
    }
}

/// Makes `chunk` the `rows` key rows from offset `first` of `segment`; `vectors` is memory to reuse.
fn read_keys(
    keys: &Materialized,
    segment: usize,
    first: usize,
    rows: usize,
    vectors: &mut [Vector],
    chunk: &mut Chunk,
) {
    chunk.reset(rows);
    let group = chunk.push_group(Selection::ALL);
    for (column, vector) in vectors.iter_mut().enumerate() {
        keys.read(column, segment, first, rows, vector);
        chunk.push_column(vector.clone(), group);
    }
}

/// The hashes of all rows of `chunk` over `columns`.
fn hash_rows(
    chunk: &Chunk,
    columns: &[usize],
    collide: bool,
    caches: &mut [HashCache],
    hashes: &mut Vec<u64>,
) {
    hashes.clear();
    hashes.resize(chunk.len(), 0);
    for (i, (&column, cache)) in columns.iter().zip(caches).enumerate() {
        hash_column(chunk.vector(column), chunk.positions(column), chunk.len(), i > 0, cache, hashes);
    }
    if collide {
        hashes.iter_mut().for_each(|hash| *hash = few_valued(*hash));
    }
}

/// One of two hashes for all keys, whose home slots are far apart and whose partition is the same. If all
/// keys had one hash, each round of a look-up would make the next row's group, and ids would be in the order
/// of rows, which nobody may rely on.
fn few_valued(hash: u64) -> u64 {
    (hash & 1) << 63
}
