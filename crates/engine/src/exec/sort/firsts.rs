//! The first rows of each group: for a window that gives no others.
//!
//! Rows that agree in the first keys of the order are a group. A worker that has kept some rows puts them in order, keeps those that are
//! among the first of their groups, in the order in which they came, and goes on. What it keeps is a superset of what is
//! wanted: who reads the order takes the first ones of all workers'.
//!
//! It asks again when its rows have doubled. Where that has hardly saved any, groups are many and small, or rows come in
//! the order of the groups, and nobody asks again.

use super::order::{self, OrderKey};
use crate::exec::materialized::Materialized;
use entasis_vector::{CHUNK_ROWS, Result, Vector};

/// Rows at which a worker asks for the first time.
const FIRST_ROWS: usize = 32 << 10;

/// Which rows are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Firsts {
    /// Rows of a group agree in so many keys.
    pub keys: usize,
    /// How many of a group.
    pub rows: usize,
    /// And those that are equal to the last of them in all keys.
    pub with_peers: bool,
}

/// When a worker asks.
pub struct Asking {
    /// At so many rows.
    at: usize,
}

impl Asking {
    /// Before there are rows, which come in chunks of `chunk_rows`.
    pub fn new(chunk_rows: usize) -> Asking {
        Asking { at: FIRST_ROWS.min(16 * chunk_rows) }
    }

    /// True if it is time, at so many rows.
    pub fn is_due(&self, rows: usize) -> bool {
        rows >= self.at
    }

    /// Of so many rows, so many were kept.
    pub fn answered(&mut self, rows: usize, kept: usize) {
        self.at = if kept > rows / 4 * 3 { usize::MAX } else { self.at.max(2 * kept) };
    }
}

impl Firsts {
    /// The ids of the first rows of each group of `rows`, ascending: rows that came first come first among equal ones.
    ///
    /// # Errors
    /// Those of ordering.
    pub fn of(&self, rows: &Materialized, keys: &[OrderKey]) -> Result<Vec<u32>> {
        let order = order::order(rows, keys, rows.ids().collect(), None)?;
        let agree = |keys: &[OrderKey], a: u32, b: u32| {
            keys.iter().all(|key| rows.compare(key.column, a, b, key.descending, key.nulls_first).is_eq())
        };
        let mut kept = Vec::new();
        // Of the group so far: rows, and rows before the first peer.
        let (mut count, mut rank) = (0, 0);
        for (i, &id) in order.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| order[i]);
            let is_of_group = before.is_some_and(|before| agree(&keys[..self.keys], before, id));
            if !is_of_group {
                (count, rank) = (0, 0);
            } else if self.with_peers
                && rank < self.rows
                && before.is_some_and(|before| !agree(&keys[self.keys..], before, id))
            {
                rank = count;
            }
            if (if self.with_peers { rank } else { count }) < self.rows {
                kept.push(id);
            }
            count += 1;
        }
        kept.sort_unstable();
        Ok(kept)
    }
}

/// The rows `ids` alone, in that order.
pub fn only(rows: &Materialized, ids: &[u32]) -> Materialized {
    let columns: Vec<usize> = (0..rows.columns().len()).collect();
    let mut vectors: Vec<Vector> = rows.columns().iter().map(|meta| Vector::new(meta.physical)).collect();
    let mut kept = Materialized::new(rows.columns());
    for ids in ids.chunks(CHUNK_ROWS) {
        rows.gather_all(&columns, ids, &mut vectors);
        let all: Vec<(&Vector, Option<&[u16]>)> = vectors.iter().map(|vector| (vector, None)).collect();
        kept.append_vectors(&all, ids.len());
    }
    kept
}
