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
pub mod marked;
#[cfg(test)]
mod tests;

use crate::exec::materialized::Materialized;
use direct::Direct;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::hash::{HashCache, hash_column};
use entasis_vector::{CHUNK_ROWS, Chunk, Encoding, Selection, Vector};
use std::sync::Arc;

/// The number of groups at which a hashed partial is put aside.
pub const MOST_GROUPS: usize = 256 << 10;
/// Not found yet, or none.
const NONE: u32 = GroupTable::NONE;
/// Slots of a new table.
const FIRST_SLOTS: usize = 4096;
/// The number of slots up to which a table is at most a quarter full; beyond, it is at most half full.
const ROOMY_SLOTS: usize = 1 << 18;

/// The radix partition of a group, of `1 << bits`.
pub fn partition_of(hash: u32, bits: u32) -> usize {
    (hash & ((1 << bits) - 1)) as usize
}

/// The groups whose tags have certain low bits.
#[derive(Debug, Clone, Copy)]
pub struct Partition {
    bits: u32,
    value: u32,
}

impl Partition {
    /// All groups.
    pub const ALL: Partition = Partition { bits: 0, value: 0 };

    /// True if it contains the group of this tag.
    pub fn has(self, tag: u32) -> bool {
        partition_of(tag, self.bits) == self.value as usize
    }
    /// The one of its `1 << bits` parts that contains the group of this tag.
    pub fn part_of(self, tag: u32, bits: u32) -> usize {
        partition_of(tag >> self.bits, bits)
    }
    /// One of its `1 << bits` parts.
    pub fn part(self, number: usize, bits: u32) -> Partition {
        Partition { bits: self.bits + bits, value: self.value | (number as u32) << self.bits }
    }
    /// Low bits of the tag that all its groups share.
    pub fn bits(self) -> u32 {
        self.bits
    }
    /// The partition of `1 << bits` that it is, or is a part of.
    pub fn within(self, bits: u32) -> usize {
        partition_of(self.value, bits)
    }
}

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
    pub const NONE: u32 = u32::MAX;

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
        let hashed = Hashed::new(slots_for(expected + CHUNK_ROWS, FIRST_SLOTS));
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
            Kind::Hashed(hashed) => hashed.slots.len() * 4 + hashed.tags.capacity() * 4,
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
        let mut hashed = Hashed::new(slots_for(self.groups, FIRST_SLOTS));
        hashed.tags = self.compute_tags();
        hashed.fill();
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

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The hashed kind.
struct Hashed {
    /// See the module; 0 is empty. `1 << bits` of them.
    slots: Vec<u32>,
    bits: u32,
    /// By group id.
    tags: Vec<u32>,
    probe_rows: Vec<u16>,
    probe_groups: Vec<u32>,
    rest: Vec<u16>,
    new_rows: Vec<u16>,
    /// By row: the slot to continue from.
    places: Vec<u32>,
}

impl Hashed {
    fn new(slots: usize) -> Hashed {
        Hashed {
            slots: vec![0; slots],
            bits: slots.trailing_zeros(),
            tags: Vec::new(),
            probe_rows: Vec::new(),
            probe_groups: Vec::new(),
            rest: Vec::new(),
            new_rows: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Grows, if there is no room for `rows` more groups.
    fn make_room(&mut self, rows: usize) {
        let slots = slots_for(self.tags.len() + rows, self.slots.len());
        if slots > self.slots.len() {
            self.slots = vec![0; slots];
            self.bits = slots.trailing_zeros();
            self.fill();
        }
    }

    /// Enters all groups into empty slots.
    fn fill(&mut self) {
        let mask = self.slots.len() - 1;
        for (group, &tag) in self.tags.iter().enumerate() {
            let mut at = home(tag, self.bits);
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = entry(tag, group as u32, self.bits);
        }
    }

    /// Finds or creates the groups of rows whose hashes are given. `groups` is all [`NONE`].
    fn find(
        &mut self,
        chunk: &Chunk,
        columns: &[usize],
        hashes: &[u64],
        keys: &mut Materialized,
        groups: &mut [u32],
    ) {
        self.make_room(hashes.len());
        self.find_at_home(chunk, columns, hashes, keys, groups);
        let (bits, mask) = (self.bits, self.slots.len() - 1);
        while !self.rest.is_empty() {
            self.probe_rows.clear();
            self.probe_groups.clear();
            self.new_rows.clear();
            for &row in &self.rest {
                let tag = tag(hashes[row as usize]);
                let mut at = self.places[row as usize] as usize;
                loop {
                    let slot = self.slots[at];
                    if slot == 0 {
                        let group = self.tags.len() as u32;
                        self.slots[at] = entry(tag, group, bits);
                        self.tags.push(tag);
                        self.new_rows.push(row);
                        groups[row as usize] = group;
                        break;
                    }
                    if is_candidate(slot, tag, bits) {
                        self.probe_rows.push(row);
                        self.probe_groups.push((slot & mask as u32) - 1);
                        self.places[row as usize] = ((at + 1) & mask) as u32;
                        break;
                    }
                    at = (at + 1) & mask;
                }
            }
            if !self.new_rows.is_empty() {
                keys.append(chunk, columns, Some(&self.new_rows));
            }
            self.settle(chunk, columns, keys, groups);
            self.rest.retain(|&row| groups[row as usize] == NONE);
        }
    }

    /// As [`Hashed::find`], but rows whose key is not found stay [`NONE`].
    fn find_known(
        &mut self,
        chunk: &Chunk,
        columns: &[usize],
        hashes: &[u64],
        keys: &Materialized,
        groups: &mut [u32],
    ) {
        self.find_at_home(chunk, columns, hashes, keys, groups);
        let (bits, mask) = (self.bits, self.slots.len() - 1);
        while !self.rest.is_empty() {
            self.probe_rows.clear();
            self.probe_groups.clear();
            let mut going_on = 0;
            for i in 0..self.rest.len() {
                let row = self.rest[i];
                let tag = tag(hashes[row as usize]);
                let mut at = self.places[row as usize] as usize;
                while self.slots[at] != 0 {
                    let slot = self.slots[at];
                    at = (at + 1) & mask;
                    if is_candidate(slot, tag, bits) {
                        self.probe_rows.push(row);
                        self.probe_groups.push((slot & mask as u32) - 1);
                        self.places[row as usize] = at as u32;
                        self.rest[going_on] = row;
                        going_on += 1;
                        break;
                    }
                }
            }
            self.rest.truncate(going_on);
            self.settle(chunk, columns, keys, groups);
            self.rest.retain(|&row| groups[row as usize] == NONE);
        }
    }

    /// The first pass: rows whose home slot has their key. The others are left in `rest`, to start from home.
    fn find_at_home(
        &mut self,
        chunk: &Chunk,
        columns: &[usize],
        hashes: &[u64],
        keys: &Materialized,
        groups: &mut [u32],
    ) {
        let rows = hashes.len();
        self.probe_rows.resize(rows, 0);
        self.probe_groups.resize(rows, 0);
        let bits = self.bits;
        self.places.clear();
        self.places.extend(hashes.iter().map(|&hash| home(tag(hash), bits) as u32));
        let mut hits = 0;
        let (slots, id_mask) = (&self.slots[..], (self.slots.len() - 1) as u32);
        let (probe_rows, probe_groups) = (&mut self.probe_rows[..rows], &mut self.probe_groups[..rows]);
        for (row, (&hash, &place)) in hashes.iter().zip(&self.places).enumerate() {
            let slot = slots[place as usize];
            probe_rows[hits] = row as u16;
            probe_groups[hits] = (slot & id_mask).wrapping_sub(1);
            hits += usize::from(is_candidate(slot, tag(hash), bits));
        }
        self.probe_rows.truncate(hits);
        self.probe_groups.truncate(hits);
        self.settle(chunk, columns, keys, groups);
        self.rest.resize(rows, 0);
        let mut left = 0;
        for (row, &group) in groups.iter().enumerate() {
            self.rest[left] = row as u16;
            left += usize::from(group == NONE);
        }
        self.rest.truncate(left);
    }

    /// Gives the probed rows their group where the keys are equal.
    fn settle(&mut self, chunk: &Chunk, columns: &[usize], keys: &Materialized, groups: &mut [u32]) {
        for (own, &column) in columns.iter().enumerate() {
            if self.probe_rows.is_empty() {
                return;
            }
            let (vector, positions) = (chunk.vector(column), chunk.positions(column));
            keys.retain_equal(own, vector, positions, true, &mut self.probe_rows, &mut self.probe_groups);
        }
        for (&row, &group) in self.probe_rows.iter().zip(&self.probe_groups) {
            groups[row as usize] = group;
        }
    }
}

/// Slots for `groups` groups, a power of two and at least `slots`.
fn slots_for(groups: usize, mut slots: usize) -> usize {
    while groups * if slots <= ROOMY_SLOTS / 2 { 4 } else { 2 } > slots {
        slots *= 2;
    }
    assert!(slots <= 1 << 31, "fewer than 2^30 groups");
    slots
}

/// The home slot of a group of this tag, of `1 << bits`.
#[inline(always)]
fn home(tag: u32, bits: u32) -> usize {
    (tag >> (32 - bits)) as usize
}

/// The slot of a group, of `1 << bits`. The tag's high bits are shifted out.
#[inline(always)]
fn entry(tag: u32, group: u32, bits: u32) -> u32 {
    tag << bits | (group + 1)
}

/// True if a slot, of `1 << bits`, is taken by a group that may have this tag.
#[inline(always)]
fn is_candidate(slot: u32, tag: u32, bits: u32) -> bool {
    slot >> bits == (tag << bits) >> bits && slot != 0
}

/// Input that is clustered by its one integer key: only the first row of each run is looked up.
#[derive(Default)]
struct Runs {
    heads: Vec<u16>,
    /// The head rows, with the key as column 0.
    narrowed: Chunk,
    spares: Vec<Arc<entasis_vector::Buffer>>,
    found: Vec<u32>,
}

impl Runs {
    /// True if runs are long enough to be worth it; then `narrowed` has their heads.
    fn detect(&mut self, chunk: &Chunk, columns: &[usize]) -> bool {
        let &[key] = columns else { return false };
        let vector = chunk.vector(key);
        if vector.encoding() != Encoding::Flat || vector.validity().is_some() {
            return false;
        }
        use entasis_vector::PhysicalType::{I32, I64, U32, U64};
        match vector.physical() {
            I32 | U32 => self.find_heads(vector.values::<u32>(), chunk.positions(key), chunk.len()),
            I64 | U64 => self.find_heads(vector.values::<u64>(), chunk.positions(key), chunk.len()),
            _ => return false,
        }
        if self.heads.len() * 2 > chunk.len() {
            return false;
        }
        let selection = chunk.groups()[chunk.column(key).group].clone();
        self.narrowed.reset(chunk.len());
        let group = self.narrowed.push_group(selection);
        self.narrowed.push_column(vector.clone(), group);
        self.narrowed.select(&self.heads, &mut self.spares);
        true
    }

    fn find_heads<T: Copy + PartialEq>(&mut self, values: &[T], positions: Option<&[u16]>, rows: usize) {
        self.heads.resize(rows, 0);
        let heads = &mut self.heads[..];
        let mut count = 1;
        let mut head_if = |row: usize, differs: bool| {
            heads[count] = row as u16;
            count += usize::from(differs);
        };
        match positions {
            None => (1..rows).for_each(|r| head_if(r, values[r] != values[r - 1])),
            Some(at) => {
                (1..rows).for_each(|r| head_if(r, values[at[r] as usize] != values[at[r - 1] as usize]))
            }
        }
        self.heads.truncate(count);
        self.heads[0] = 0;
    }

    /// Gives each row the group of its run.
    fn spread(&self, groups: &mut [u32]) {
        let ends = self.heads[1..].iter().map(|&head| head as usize).chain([groups.len()]);
        for ((&head, end), &group) in self.heads.iter().zip(ends).zip(&self.found) {
            groups[head as usize..end].fill(group);
        }
    }
}
