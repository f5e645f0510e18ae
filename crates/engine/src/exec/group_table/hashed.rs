//! The hashed kind of group table: hash → slot → tag → compare with the stored key. See the
//! [module](super).

use crate::exec::materialized::Materialized;
use entasis_vector::Chunk;

/// Not found yet, or none.
pub(super) const NONE: u32 = u32::MAX;
/// Slots of a new table.
const FIRST_SLOTS: usize = 4096;
/// The number of slots up to which a table is at most a quarter full; beyond, it is at most half full.
const ROOMY_SLOTS: usize = 1 << 18;

/// The tag of a group whose key has this hash.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The hashed kind.
pub(super) struct Hashed {
    /// See the module; 0 is empty. `1 << bits` of them.
    slots: Vec<u32>,
    bits: u32,
    /// By group id.
    pub(super) tags: Vec<u32>,
    probe_rows: Vec<u16>,
    probe_groups: Vec<u32>,
    rest: Vec<u16>,
    new_rows: Vec<u16>,
    /// By row: the slot to continue from.
    places: Vec<u32>,
}

impl Hashed {
    /// No groups, with room for so many.
    pub(super) fn expecting(groups: usize) -> Hashed {
        Hashed::new(slots_for(groups, FIRST_SLOTS))
    }

    /// The groups with these tags, in their order.
    pub(super) fn of_tags(tags: Vec<u32>) -> Hashed {
        let mut hashed = Hashed::expecting(tags.len());
        hashed.tags = tags;
        hashed.fill();
        hashed
    }

    /// Bytes of memory in use by slots and tags.
    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * 4 + self.tags.capacity() * 4
    }

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
    pub(super) fn find(
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
    pub(super) fn find_known(
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
