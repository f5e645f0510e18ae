//! Rows of one side of a join, by partition: in memory as long as there is any, then in a file.
//!
//! The partition of a row is a few bits of the hash of its keys. Tables look rows up by the same hash, so the bits are
//! taken of a hash of it: within a partition the hashes are as different as before. Each depth takes others.

use super::store::Store;
use crate::exec::Reservation;
use crate::exec::context::MemoryBudget;
use crate::exec::join::table::{ProbeKeys, Seen};
use crate::exec::materialized::Materialized;
use crate::sync::{AtomicBool, Ordering};
use entasis_vector::hash::hash_u64;
use entasis_vector::{CHUNK_ROWS, Chunk, Result, Selection, Vector};
use std::sync::Arc;

/// Partitions of rows with keys.
pub(crate) const PARTITIONS: usize = 64;
/// Rows of less memory than this are written only if nothing else is left.
const LITTLE: usize = 256 << 10;

/// The partition of rows of this hash, at this depth.
#[inline(always)]
fn partition_of(hash: u64, depth: u32) -> usize {
    const { assert!(PARTITIONS == 64) };
    (hash_u64(hash.rotate_left(7 * depth + 1)) >> 58) as usize
}

/// Which partitions are, or are to be, in the file; shared by all workers.
pub(crate) type Marks = Arc<[AtomicBool]>;

/// No partition, or all of them.
pub(crate) fn marks(partitions: usize, all: bool) -> Marks {
    (0..partitions).map(|_| AtomicBool::new(all)).collect()
}

/// How much memory the rows of one worker may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// At most.
    pub most: usize,
    /// Bytes of the budget to be left to others,
    pub left: usize,
    /// as long as the rows have more than this: pieces of a file are to be large.
    pub least: usize,
}

/// One worker's rows. See the module.
pub(crate) struct Split {
    store: Arc<Store>,
    marks: Marks,
    depth: u32,
    /// By partition.
    parts: Vec<Materialized>,
    bytes: usize,
    /// Bytes of rows that are on their way to the partitions.
    beside: usize,
    room: Room,
    memory: Reservation,
    /// Told which keys there are.
    seen: Option<Arc<Seen>>,
    /// Of a chunk, the rows of each partition.
    lists: Vec<Vec<u16>>,
}

impl Split {
    /// No rows yet. Partitions that are marked, and those that there is no memory for, go to `store`.
    pub(crate) fn new(store: &Arc<Store>, marks: &Marks, depth: u32, room: Room, budget: &Arc<MemoryBudget>) -> Split {
        Split {
            store: store.clone(),
            marks: marks.clone(),
            depth,
            parts: (0..store.partitions()).map(|_| Materialized::new(store.columns())).collect(),
            bytes: 0,
            beside: 0,
            room,
            memory: Reservation::new(budget),
            seen: None,
            lists: vec![Vec::new(); store.partitions()],
        }
    }

    /// The same, with somebody to be told which keys there are.
    pub(crate) fn telling(self, seen: Option<Arc<Seen>>) -> Split {
        Split { seen, ..self }
    }

    /// Takes rows of `chunk`: column i is the chunk's column `columns[i]`. `keys` are those of the same rows. Rows that can
    /// match nothing are left out unless `all`. With `stays`, rows whose partition is not marked are not taken but named
    /// there.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take(
        &mut self,
        keys: &mut ProbeKeys,
        chunk: &Chunk,
        columns: &[usize],
        all: bool,
        mut stays: Option<&mut Vec<u16>>,
    ) -> Result<()> {
        self.lists.iter_mut().for_each(Vec::clear);
        if let [list] = &mut self.lists[..] {
            list.extend(0..chunk.len() as u16);
        } else {
            let is_marked = |p: usize| self.marks.get(p).is_some_and(|mark| mark.load(Ordering::Relaxed));
            let is_taken: [bool; PARTITIONS] = std::array::from_fn(|p| stays.is_none() || is_marked(p));
            let (matchable, hashes) = keys.hashes();
            let (lists, depth) = (&mut self.lists, self.depth);
            let mut put = |row: u16| {
                let partition = partition_of(hashes[row as usize], depth);
                match &mut stays {
                    Some(stays) if !is_taken[partition] => stays.push(row),
                    _ => lists[partition].push(row),
                }
            };
            match matchable.filter(|_| !all) {
                None => (0..chunk.len() as u16).for_each(&mut put),
                Some(rows) => rows.iter().copied().for_each(&mut put),
            }
        }
        for (partition, list) in self.lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let part = &mut self.parts[partition];
            let before = part.bytes();
            part.append(chunk, columns, Some(list));
            self.bytes = self.bytes - before + part.bytes();
        }
        self.keep_within()
    }

    /// Takes all rows of `rows`, whose memory `memory` is, and frees it segment by segment.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take_all(&mut self, mut rows: Materialized, memory: Reservation, keys: &mut Keys<'_>) -> Result<()> {
        drop(memory);
        for segment in 0..rows.segments() {
            self.beside = rows.bytes();
            for_each_chunk_of(&rows, segment, &mut |chunk, columns| {
                keys.begin(chunk);
                self.take(keys.keys, chunk, columns, keys.all, None)?;
                keys.keys.release();
                Ok(())
            })?;
            rows.forget(segment);
        }
        drop(rows);
        self.beside = 0;
        self.keep_within()
    }

    /// Reserves what the rows have; writes some of them as long as that is too much.
    fn keep_within(&mut self) -> Result<()> {
        if self.bytes + self.beside == self.memory.bytes() {
            return Ok(());
        }
        while !self.is_within() {
            let Some(partition) = self.victim() else {
                // Nothing is left to write. What is beside is freed soon.
                let _ = self.memory.resize(self.bytes + self.beside);
                break;
            };
            self.marks[partition].store(true, Ordering::Relaxed);
            self.write(partition)?;
        }
        Ok(())
    }

    fn is_within(&mut self) -> bool {
        self.bytes <= self.room.most
            && self.memory.resize(self.bytes + self.beside).is_ok()
            && (self.bytes <= self.room.least || self.memory.free() >= self.room.left)
    }

    /// The partition to write next: the largest of those that are written anyway, if that is worth it; else the largest.
    fn victim(&self) -> Option<usize> {
        let largest = |marked: bool| {
            let parts = self.parts.iter().enumerate().filter(|(_, part)| !part.is_empty());
            let parts = parts.filter(|(i, _)| !marked || self.marks[*i].load(Ordering::Relaxed));
            parts.max_by_key(|(_, part)| part.bytes()).map(|(i, part)| (i, part.bytes()))
        };
        let marked = largest(true).filter(|(_, bytes)| *bytes >= LITTLE);
        marked.or_else(|| largest(false)).map(|(partition, _)| partition)
    }

    fn write(&mut self, partition: usize) -> Result<()> {
        let part = &mut self.parts[partition];
        self.bytes -= part.bytes();
        let part = std::mem::replace(part, Materialized::new(self.store.columns()));
        if let Some(seen) = &self.seen {
            seen.add(&part);
        }
        self.store.write(partition, &part)
    }

    /// Writes what is left of all partitions that are marked.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn write_marked(&mut self) -> Result<()> {
        for partition in 0..self.parts.len() {
            if self.marks[partition].load(Ordering::Relaxed) {
                self.write(partition)?;
            }
        }
        self.shrink();
        Ok(())
    }

    /// Gives back the memory of what was written. No other partition is written: the other workers would not know.
    fn shrink(&mut self) {
        let bytes = self.bytes + self.beside;
        if bytes < self.memory.bytes() {
            self.memory.resize(bytes).expect("less memory is always to be had");
        }
    }

    /// Bytes and rows of a partition in memory.
    pub(crate) fn size(&self, partition: usize) -> (usize, usize) {
        (self.parts[partition].bytes(), self.parts[partition].rows())
    }

    /// Writes a partition.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn write_one(&mut self, partition: usize) -> Result<()> {
        self.write(partition)?;
        self.shrink();
        Ok(())
    }

    /// The rows that are in memory, by partition, and their reservation.
    pub(crate) fn into_parts(self) -> (Vec<Materialized>, Reservation) {
        if let Some(seen) = &self.seen {
            self.parts.iter().for_each(|part| seen.add(part));
        }
        (self.parts, self.memory)
    }
}

/// Calls `f` with all rows of a segment, a chunk at a time, and their columns.
fn for_each_chunk_of(
    rows: &Materialized,
    segment: usize,
    f: &mut impl FnMut(&Chunk, &[usize]) -> Result<()>,
) -> Result<()> {
    let columns: Vec<usize> = (0..rows.columns().len()).collect();
    let mut vectors: Vec<Vector> = rows.columns().iter().map(|meta| Vector::new(meta.physical)).collect();
    let mut chunk = Chunk::new();
    let count = rows.segment_rows(segment);
    for first in (0..count).step_by(CHUNK_ROWS) {
        let length = CHUNK_ROWS.min(count - first);
        chunk.reset(length);
        let group = chunk.push_group(Selection::ALL);
        for (&column, vector) in columns.iter().zip(&mut vectors) {
            rows.read(column, segment, first, length, vector);
            chunk.push_column(vector.clone(), group);
        }
        f(&chunk, &columns)?;
    }
    Ok(())
}

/// How keys of rows are found that stand before the payload.
pub(crate) struct Keys<'a> {
    /// Where they are put.
    pub keys: &'a mut ProbeKeys,
    /// For each key, whether NULL equals NULL.
    pub null_equals_null: &'a [bool],
    /// Rows that can match nothing are kept too.
    pub all: bool,
}

impl Keys<'_> {
    fn begin(&mut self, chunk: &Chunk) {
        let positions: Vec<usize> = (0..self.null_equals_null.len()).collect();
        self.keys.begin(chunk, &positions, self.null_equals_null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::QueryContext;
    use crate::exec::materialized::column_of;
    use crate::exec::testing::{Chance, chunk_of};
    use entasis_vector::{DataType, Value};

    /// When the build side is completed, a worker that writes what it is told to writes nothing else, however short memory
    /// has become: the other workers would keep their rows of that partition.
    #[test]
    fn what_is_not_asked_for_is_not_written() {
        let context = QueryContext { memory: Arc::new(MemoryBudget::new(1 << 20)), ..QueryContext::default() };
        let metas = [column_of(DataType::Int64)];
        let store = Store::new(&metas, PARTITIONS, &context);
        let marks = marks(PARTITIONS, false);
        let room = Room { most: usize::MAX, left: 1 << 17, least: 0 };
        let mut split = Split::new(&store, &marks, 0, room, &context.memory);
        let rows: Vec<Vec<Value>> = (0..2000).map(|i| vec![Value::Integer(i)]).collect();
        let chunk = chunk_of(&metas, &rows, &mut Chance(7));
        let mut keys = ProbeKeys::new(1, false);
        keys.begin(&chunk, &[0], &[false]);
        split.take(&mut keys, &chunk, &[0], true, None).unwrap();
        keys.release();
        let sizes = |split: &Split| (0..PARTITIONS).map(|p| split.size(p).1).collect::<Vec<usize>>();
        let before = sizes(&split);
        assert_eq!(before.iter().sum::<usize>(), 2000);

        // Another statement takes all memory that is left.
        let mut other = Reservation::new(&context.memory);
        other.resize(context.memory.free()).unwrap();
        marks[5].store(true, Ordering::Relaxed);
        split.write_marked().unwrap();
        split.write_one(9).unwrap();
        let expected: Vec<usize> =
            before.iter().enumerate().map(|(p, &n)| if p == 5 || p == 9 { 0 } else { n }).collect();
        assert_eq!(sizes(&split), expected);
        assert_eq!((store.rows(5), store.rows(9)), (before[5], before[9]));
        assert_eq!(marks.iter().filter(|mark| mark.load(Ordering::Relaxed)).count(), 1);
    }
}
