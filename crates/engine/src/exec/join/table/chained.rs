//! The chained table: heads of chains by hash.
//!
//! A head is one word: the row, and a Bloom filter of 32 bits, one for each key in the chain, so that most probes
//! without match are turned away without touching a row (Leis et al., *Morsel-Driven Parallelism*, SIGMOD 2014, section
//! 4.2; here in bits of their own instead of a pointer's spare ones). There are at least as many heads as rows, so
//! chains of distinct keys are short.

use super::{BuildInput, Cursor, JoinTable, NO_ROW, Pairs, ProbeKeys, empty_chains};
use entasis_vector::hash::{HashCache, hash_column};
use entasis_vector::{CHUNK_ROWS, Result, Vector};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Heads by hash.
pub(crate) struct Chained {
    /// Low half: the row; high half: the filter. A power of two of them, at least as many as rows.
    heads: Vec<AtomicU64>,
    /// The slot is the hash shifted by so much.
    shift: u32,
    next: Vec<AtomicU32>,
}

impl Chained {
    pub(super) fn build(input: &BuildInput<'_>) -> Result<Chained> {
        let slots = input.rows.rows().next_power_of_two().max(2);
        let table = Chained {
            heads: (0..slots).map(|_| AtomicU64::new(u64::from(NO_ROW))).collect(),
            shift: 64 - slots.trailing_zeros(),
            next: empty_chains(input.rows.id_space()),
        };
        let shared = input.rows.segments() > 1;
        input.tasks.run(input.rows.segments(), &|segment| {
            table.insert(input, segment, shared);
            Ok(())
        })?;
        Ok(table)
    }

    fn insert(&self, input: &BuildInput<'_>, segment: usize, shared: bool) {
        let rows = input.rows;
        let metas = &rows.columns()[..input.null_equals_null.len()];
        let mut columns: Vec<Vector> = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        let mut cache = HashCache::default();
        let mut hashes = [0u64; CHUNK_ROWS];
        for first in (0..rows.segment_rows(segment)).step_by(CHUNK_ROWS) {
            let count = CHUNK_ROWS.min(rows.segment_rows(segment) - first);
            for (i, column) in columns.iter_mut().enumerate() {
                rows.read(i, segment, first, count, column);
                hash_column(column, None, count, i > 0, &mut cache, &mut hashes[..count]);
            }
            if input.hash_collisions {
                hashes[..count].fill(0);
            }
            let keys = || columns.iter().zip(input.null_equals_null);
            let nulls = keys().any(|(column, &equal)| !equal && column.validity().is_some());
            for (i, &hash) in hashes[..count].iter().enumerate() {
                if nulls && keys().any(|(column, &equal)| !equal && !column.is_valid(i)) {
                    continue;
                }
                let id = (segment << 16 | (first + i)) as u32;
                let old = self.push(hash, id, shared);
                self.next[id as usize].store(old, Ordering::Relaxed);
            }
        }
    }

    /// Makes `id` the head of its chain and returns the old head.
    #[inline(always)]
    fn push(&self, hash: u64, id: u32, shared: bool) -> u32 {
        let slot = &self.heads[(hash >> self.shift) as usize];
        let mut old = slot.load(Ordering::Relaxed);
        let new = |old: u64| (old >> 32 | filter_bit(hash)) << 32 | u64::from(id);
        if !shared {
            slot.store(new(old), Ordering::Relaxed);
        } else {
            while let Err(now) = slot.compare_exchange_weak(old, new(old), Ordering::Relaxed, Ordering::Relaxed) {
                old = now;
            }
        }
        old as u32
    }
}

/// The filter's bit of a hash, from bits that do not choose the slot.
#[inline(always)]
fn filter_bit(hash: u64) -> u64 {
    1 << (hash & 31)
}

impl JoinTable for Chained {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, _: &mut Cursor) {
        let (rows, hashes) = keys.hashes();
        let mask = self.heads.len() - 1;
        pairs.fill(rows, hashes.len(), |row| {
            let hash = hashes[row];
            let head = self.heads[(hash >> self.shift) as usize & mask].load(Ordering::Relaxed);
            let maybe = head >> 32 & filter_bit(hash) != 0;
            if maybe { head as u32 } else { NO_ROW }
        });
    }
    fn next(&self, pairs: &mut Pairs, _: &mut Cursor) {
        pairs.advance(&self.next);
    }
    fn is_exact(&self) -> bool {
        false
    }
    fn bytes(&self) -> usize {
        self.heads.len() * 8 + self.next.len() * 4
    }
}
