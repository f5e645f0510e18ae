//! Keeps only the first rows of each group, for a window that needs no others.
//!
//! Rows that agree in the first keys of the order are a group. A worker that has kept some rows sorts them,
//! keeps those that are among the first of their groups, in order of arrival, and continues. The rows that
//! all workers keep are a superset of those needed: the reader of the sorted rows takes the first ones.
//!
//! From then on the worker knows a *limit* for each group: the first key of the order in the last row that
//! was kept. Rows beyond it are not kept; rows of groups without a limit are. Only numeric keys have limits.
//!
//! The worker repeats this when its rows have doubled. If that has dropped hardly any rows, groups are many
//! and small, or rows come in the order of the groups, and it is not repeated.

use super::order;
use crate::exec::group_table::GroupTable;
use crate::exec::materialized::Materialized;
use crate::exec::sort::codes::OrderKey;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::value::float_ordinal;
use entasis_vector::{CHUNK_ROWS, Chunk, PhysicalType, Result, Selection, Vector};

/// Rows at which a worker does this for the first time.
const FIRST_ROWS: usize = 32 << 10;

/// Which rows are needed.
#[derive(Debug, Clone, Copy)]
pub struct Firsts {
    /// The number of keys in which rows of a group agree.
    pub keys: usize,
    /// The number of rows of a group.
    pub rows: usize,
    /// True: also the rows that equal the last of them in all keys.
    pub with_peers: bool,
}

/// When a worker drops rows.
pub struct Asking {
    /// The number of rows at which it does.
    at: usize,
}

impl Asking {
    /// The state before there are rows, which come in chunks of `chunk_rows`.
    pub fn new(chunk_rows: usize) -> Asking {
        Asking { at: FIRST_ROWS.min(16 * chunk_rows) }
    }

    /// True if it is time to drop rows, at this many.
    pub fn is_due(&self, rows: usize) -> bool {
        rows >= self.at
    }

    /// Records how many of how many rows were kept.
    pub fn answered(&mut self, rows: usize, kept: usize) {
        self.at = if kept > rows / 4 * 3 { usize::MAX } else { self.at.max(2 * kept) };
    }
}

impl Firsts {
    /// The ids of the first rows of each group of `rows`, ascending: among equal rows the earlier ones come
    /// first. Then those of rows that make groups complete: others follow them only if they are peers.
    ///
    /// # Errors
    /// Those of ordering.
    pub fn of(&self, rows: &Materialized, keys: &[OrderKey]) -> Result<(Vec<u32>, Vec<u32>)> {
        let order = order::order(rows, keys, rows.ids().collect(), None)?;
        let agree = |keys: &[OrderKey], a: u32, b: u32| {
            keys.iter().all(|key| rows.compare(key.column, a, b, key.descending, key.nulls_first).is_eq())
        };
        let (mut kept, mut last) = (Vec::new(), Vec::new());
        // The group so far: its rows, and those before the first peer.
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
            if count == self.rows {
                last.push(id);
            }
        }
        kept.sort_unstable();
        Ok((kept, last))
    }
}

/// The most groups for which limits are known.
const MOST_GROUPS: usize = 64 << 10;

/// What is known about groups whose first rows have been found.
pub struct Limits {
    table: GroupTable,
    /// The columns that the rows of a group agree in.
    columns: Vec<usize>,
    /// The first key of the order.
    key: OrderKey,
    /// By group, the ordinal of the key up to which rows are kept.
    limits: Vec<i64>,
    /// Memory: the groups of a chunk's rows, its keys, the rows that are kept.
    groups: Vec<u32>,
    keys: Vector,
    picks: Vec<u16>,
}

impl Limits {
    /// Limits that are not known yet, over rows that `metas` describe; `None` if such keys have no limits.
    pub fn new(firsts: &Firsts, keys: &[OrderKey], metas: &[ColumnMeta], collide: bool) -> Option<Limits> {
        let key = *keys.get(firsts.keys)?;
        let physical = metas[key.column].physical;
        if !physical.is_integer() && !matches!(physical, PhysicalType::F32 | PhysicalType::F64) {
            return None;
        }
        let columns: Vec<usize> = keys[..firsts.keys].iter().map(|key| key.column).collect();
        let of_groups: Vec<ColumnMeta> = columns.iter().map(|&column| metas[column].clone()).collect();
        let table = GroupTable::new(&of_groups, 1, collide);
        let (limits, groups, picks, keys) = (Vec::new(), Vec::new(), Vec::new(), Vector::new(physical));
        Some(Limits { table, columns, key, limits, groups, keys, picks })
    }

    /// Learns the limits of groups from the rows that make them complete. False if groups are too many.
    pub fn learn(&mut self, rows: &Materialized, last: &[u32]) -> bool {
        let columns: Vec<usize> = (0..rows.columns().len()).collect();
        let mut vectors: Vec<Vector> = rows.columns().iter().map(|meta| Vector::new(meta.physical)).collect();
        let mut chunk = Chunk::new();
        for ids in last.chunks(CHUNK_ROWS) {
            rows.gather_all(&columns, ids, &mut vectors);
            chunk.reset(ids.len());
            let dense = chunk.push_group(Selection::ALL);
            vectors.iter().for_each(|vector| chunk.push_column(vector.clone(), dense));
            self.find(&chunk);
            for (row, &group) in self.groups.iter().enumerate() {
                self.limits[group as usize] = ordinal(&self.keys, row, &self.key);
            }
            chunk.reset(0);
        }
        self.table.groups() <= MOST_GROUPS
    }

    /// The rows of `chunk` that may be among the first of their groups; `None` if all may.
    pub fn pick(&mut self, chunk: &Chunk) -> Option<&[u16]> {
        self.find(chunk);
        self.picks.clear();
        for (row, &group) in self.groups.iter().enumerate() {
            if ordinal(&self.keys, row, &self.key) <= self.limits[group as usize] {
                self.picks.push(row as u16);
            }
        }
        (self.picks.len() < chunk.len()).then_some(&self.picks)
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.limits.capacity() * size_of::<i64>()
    }

    /// Finds groups and keys of a chunk's rows.
    fn find(&mut self, chunk: &Chunk) {
        self.table.find(chunk, &self.columns, &mut self.groups);
        self.limits.resize(self.table.groups(), i64::MAX);
        chunk.flatten_column(self.key.column, &mut self.keys);
    }
}

/// A number with the order of the rows, from a flat vector of keys; NULL has the least or the largest.
fn ordinal(keys: &Vector, row: usize, key: &OrderKey) -> i64 {
    if !keys.is_valid(row) {
        return if key.nulls_first { i64::MIN } else { i64::MAX };
    }
    let ordinal = match keys.physical() {
        PhysicalType::Bool | PhysicalType::U8 => keys.values::<u8>()[row].into(),
        PhysicalType::I8 => keys.values::<i8>()[row].into(),
        PhysicalType::I16 => keys.values::<i16>()[row].into(),
        PhysicalType::I32 => keys.values::<i32>()[row].into(),
        PhysicalType::U16 => keys.values::<u16>()[row].into(),
        PhysicalType::U32 => keys.values::<u32>()[row].into(),
        PhysicalType::U64 => (keys.values::<u64>()[row] ^ 1 << 63) as i64,
        PhysicalType::F32 => float_ordinal(keys.values::<f32>()[row].into()),
        PhysicalType::F64 => float_ordinal(keys.values::<f64>()[row]),
        _ => keys.values::<i64>()[row],
    };
    if key.descending { !ordinal } else { ordinal }
}

/// Only the rows `ids`, in that order.
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
