//! Splits rows of one side of a join by partition: in memory while there is any, then in a file.
//!
//! A few bits derived from the hash of a row's keys give its partition. Tables look rows up by the same hash,
//! so these bits are taken from a hash of the hash: within a partition the hashes are as varied as before.
//! Each depth takes other bits.
//!
//! A chunk's rows are ordered by partition first ([`Scatter`]); radix joins have a *software write-combining
//! buffer* for each partition to the same end (Bandle et al., section 3.3).

use crate::exec::join::table::ProbeKeys;
use crate::exec::join::tuning::LITTLE;
use crate::exec::key_filter::Seen;
use crate::exec::materialized::Materialized;
use crate::exec::scatter::Scatter;
use crate::exec::spill::store::{Medium, Store};
use crate::memory::{MemoryBudget, Reservation};
use crate::sync::{AtomicBool, Ordering};
use entasis_vector::hash::hash_u64;
use entasis_vector::{CHUNK_ROWS, Chunk, Error, Result, Selection, Vector};
use std::sync::Arc;

/// The number of partitions of rows with keys.
pub(crate) const PARTITIONS: usize = 64;

/// The bits of a hash that choose the partition at this depth, the highest first.
#[inline(always)]
fn bits_of(hash: u64, depth: u32) -> u64 {
    hash_u64(hash.rotate_left(7 * depth + 1))
}

/// Markers in place of a partition: the row is not taken, or it is dropped.
const STAYS: u8 = PARTITIONS as u8;
const DROPPED: u8 = STAYS + 1;
const PLACES: usize = DROPPED as usize + 1;

/// Which partitions are in the file, or will be; shared by all workers.
pub(crate) type Marks = Arc<[AtomicBool]>;

/// Marks of `partitions` partitions: all of them, or none.
pub(crate) fn marks(partitions: usize, all: bool) -> Marks {
    (0..partitions).map(|_| AtomicBool::new(all)).collect()
}

/// How much memory the rows of one worker may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// The most bytes that the rows may have.
    pub most: usize,
    /// Bytes of the budget to be left to others, unless the rows are below `least`.
    pub left: usize,
    /// Bytes that the rows may have whatever is left to others, so that pieces of a file are large.
    pub least: usize,
    /// The most segments of a partition's rows.
    pub segments: usize,
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
    /// Collects the keys.
    seen: Option<Arc<Seen>>,
    spread: Scatter<PLACES>,
}

/// The error of more rows than row ids are for.
pub(crate) fn no_ids() -> Error {
    Error::resource("a join keeps more rows than it has numbers for, 3.9 thousand million")
}

/// Which rows of a chunk [`Split::take`] takes.
#[derive(Default)]
pub(crate) struct Taken<'a> {
    /// Takes also rows that can match nothing.
    pub all: bool,
    /// Rows whose partition is not marked are not taken but listed here, ascending.
    pub stays: Option<&'a mut Vec<u16>>,
    /// Only these rows, ascending, may match. Of the others, all are listed in `stays`, or none.
    pub among: Option<&'a [u16]>,
}

impl Split {
    /// No rows yet. Partitions that are marked, or for which memory is short, go to `store`.
    pub(crate) fn new(
        store: &Arc<Store>,
        marks: &Marks,
        depth: u32,
        room: Room,
        budget: &Arc<MemoryBudget>,
    ) -> Split {
        Split {
            store: store.clone(),
            marks: marks.clone(),
            depth,
            parts: (0..store.partitions()).map(|_| store.no_rows()).collect(),
            bytes: 0,
            beside: 0,
            room,
            memory: Reservation::new(budget),
            seen: None,
            spread: Scatter::default(),
        }
    }

    /// Like [`Split::new`], with a collector of keys.
    pub(crate) fn telling(self, seen: Option<Arc<Seen>>) -> Split {
        Split { seen, ..self }
    }

    /// Takes rows of `chunk`: column i is the chunk's column `columns[i]`. `keys` are the keys of the same
    /// rows.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take(
        &mut self,
        keys: &mut ProbeKeys,
        chunk: &Chunk,
        columns: &[usize],
        taken: Taken<'_>,
    ) -> Result<()> {
        self.choose(keys, chunk.len(), &taken);
        self.spread.arrange();
        for (partition, part) in self.parts.iter_mut().enumerate() {
            let rows = self.spread.rows(partition);
            if !rows.is_empty() {
                let before = part.bytes();
                part.append(chunk, columns, Some(rows));
                self.bytes = self.bytes - before + part.bytes();
            }
        }
        if let Some(stays) = taken.stays {
            stays.extend_from_slice(self.spread.rows(STAYS.into()));
        }
        self.keep_within()
    }

    /// Decides where each row goes.
    fn choose(&mut self, keys: &mut ProbeKeys, count: usize, taken: &Taken<'_>) {
        let to = self.spread.begin();
        let bits = self.parts.len().ilog2();
        if bits == 0 {
            return to.resize(count, 0);
        }
        let is_taken = |p: usize| taken.stays.is_none() || self.marks[p].load(Ordering::Relaxed);
        let goes: [u8; PARTITIONS] = std::array::from_fn(|p| {
            let is_there = p < self.parts.len();
            if is_there && is_taken(p) { p as u8 } else { STAYS }
        });
        let (matchable, hashes) = keys.hashes();
        let (depth, shift) = (self.depth, 64 - bits);
        let place = |hash: u64| goes[(bits_of(hash, depth) >> shift) as usize % PARTITIONS];
        match taken.among.or(matchable.filter(|_| !taken.all)) {
            None => to.extend(hashes.iter().map(|&hash| place(hash))),
            Some(rows) => {
                to.resize(count, if taken.all { STAYS } else { DROPPED });
                rows.iter().for_each(|&row| to[usize::from(row)] = place(hashes[usize::from(row)]));
            }
        }
    }

    /// Takes all rows of `rows`, whose reservation is `memory`, and frees them segment by segment.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take_all(
        &mut self,
        mut rows: Materialized,
        memory: Reservation,
        keys: &mut Keys<'_>,
    ) -> Result<()> {
        drop(memory);
        for segment in 0..rows.segments() {
            self.beside = rows.bytes();
            self.take_segment(&rows, segment, keys)?;
            rows.forget(segment);
        }
        drop(rows);
        self.beside = 0;
        self.keep_within()
    }

    /// Takes all rows of a segment.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take_segment(
        &mut self,
        rows: &Materialized,
        segment: usize,
        keys: &mut Keys<'_>,
    ) -> Result<()> {
        for_each_chunk_of(rows, segment, &mut |chunk, columns| {
            keys.begin(chunk);
            let taken = self.take(keys.keys, chunk, columns, Taken { all: keys.all, ..Taken::default() });
            keys.keys.release();
            taken
        })
    }

    /// Reserves the memory of the rows; writes some of them while it is too much.
    fn keep_within(&mut self) -> Result<()> {
        if self.bytes + self.beside == self.memory.bytes() {
            return Ok(());
        }
        if !self.store.may_write() {
            return match self.has_ids() {
                true => self.memory.resize(self.bytes + self.beside),
                false => Err(no_ids()),
            };
        }
        while !self.is_within() {
            let Some(partition) = self.victim() else {
                // Nothing is left to write, and `beside` will be freed soon.
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
            && self.has_ids()
            && self.memory.resize(self.bytes + self.beside).is_ok()
            && (self.bytes <= self.room.least || self.memory.free() >= self.room.left)
    }

    /// True if each partition has few enough rows for row ids.
    fn has_ids(&self) -> bool {
        self.parts.iter().all(|part| part.segments() <= self.room.segments)
    }

    /// The partition to write next: the largest of those that are written anyway, if it is large enough;
    /// otherwise the largest.
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
        let part = std::mem::replace(part, self.store.no_rows());
        if let Some(seen) = &self.seen {
            seen.add(&part);
        }
        self.store.write(partition, &part)
    }

    /// Writes the remaining rows of all marked partitions.
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

    /// Passes the remaining rows to the store: rows of marked partitions go to the file. If the store keeps
    /// rows in memory, all stay there, unless some had to be written: joining the partitions later needs
    /// memory too.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn put_down(&mut self) -> Result<()> {
        if self.store.medium() == Medium::File || self.store.has_written() {
            return self.write_marked();
        }
        for (partition, part) in self.parts.iter_mut().enumerate().filter(|(_, part)| !part.is_empty()) {
            let part = std::mem::replace(part, self.store.no_rows());
            self.bytes -= part.bytes();
            let (memory, segments) = (self.memory.split_off(part.bytes()), part.segments());
            self.store.keep(part, memory, [(partition, 0..segments)]);
        }
        self.shrink();
        Ok(())
    }

    /// Returns the memory of written rows. No other partition is written, since the other workers would not
    /// know.
    fn shrink(&mut self) {
        let bytes = self.bytes + self.beside;
        if bytes < self.memory.bytes() {
            self.memory.resize(bytes).expect("less memory is always to be had");
        }
    }

    /// Segments of all partitions in memory.
    pub(crate) fn segments(&self) -> usize {
        self.parts.iter().map(Materialized::segments).sum()
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

    /// The rows in memory, by partition, and their reservation. `tells`: the collector receives their keys.
    pub(crate) fn into_parts(self, tells: bool) -> (Vec<Materialized>, Reservation) {
        if let Some(seen) = self.seen.as_ref().filter(|_| tells) {
            self.parts.iter().for_each(|part| seen.add(part));
        }
        (self.parts, self.memory)
    }
}

/// Calls `f` with all rows of a segment and their columns, a chunk at a time.
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

/// How to find the keys of rows in which they precede the payload.
pub(crate) struct Keys<'a> {
    /// Where the keys go.
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
    use crate::context::QueryContext;
    use crate::exec::materialized::column_of;
    use crate::exec::testing::{Chance, chunk_of};
    use entasis_vector::{DataType, Value};

    /// Rows go where a row-by-row loop would put them, in their order.
    #[test]
    fn rows_go_to_the_partition_of_their_hash() {
        go_to_the_partition_of_their_hash(DataType::Varchar, |i| {
            Value::Text(format!("row {i} of some length").into())
        });
        go_to_the_partition_of_their_hash(DataType::Int32, Value::Integer);
        go_to_the_partition_of_their_hash(DataType::UInt8, |i| Value::Integer(i % 251));
        go_to_the_partition_of_their_hash(DataType::Float64, |i| Value::Float(i as f64 / 3.0));
    }

    fn go_to_the_partition_of_their_hash(ty: DataType, payload: impl Fn(i128) -> Value) {
        let context = QueryContext::default();
        let metas = [column_of(DataType::Int64), column_of(ty)];
        let mut chance = Chance(11);
        for (partitions, all, asks_stay, filters) in [
            (64, false, false, false),
            (64, true, true, false),
            (64, false, true, true),
            (64, true, true, true),
            (8, true, false, false),
            (2, false, true, true),
            (1, true, false, false),
        ] {
            let store = Store::new(&metas, partitions, Medium::Memory, &context);
            let marks = marks(partitions, false);
            (0..partitions).step_by(3).for_each(|p| marks[p].store(true, Ordering::Relaxed));
            let room = Room { most: usize::MAX, left: 0, least: 0, segments: usize::MAX };
            let mut split = Split::new(&store, &marks, 1, room, &context.memory);
            let mut expected: Vec<Vec<Vec<Value>>> = vec![Vec::new(); partitions];
            for turn in 0..9 {
                // Some chunks have NULLs; some have rows of one partition only.
                let row = |i: i128| {
                    let keys = if turn % 4 == 3 { 1 } else { 500 };
                    let key =
                        if turn % 2 == 1 && i % 7 == 2 { Value::Null } else { Value::Integer(i * 31 % keys) };
                    vec![key, payload(i)]
                };
                let first = chance.below(1000) as i128;
                let rows: Vec<Vec<Value>> = (first..first + 1500).map(row).collect();
                let chunk = chunk_of(&metas, &rows, &mut chance);
                let mut keys = ProbeKeys::new(1, false);
                keys.begin(&chunk, &[0], &[false]);
                let hashes = keys.hashes().1.to_vec();
                let matchable = |row: usize| !rows[row][0].is_null();
                let among: Vec<u16> =
                    (0..1500).filter(|&row| matchable(row.into()) && row % 4 != 1).collect();
                let (mut stays, mut wanted_stays) = (Vec::new(), Vec::new());
                for row in 0..1500 {
                    let passes = if filters { among.contains(&(row as u16)) } else { all || matchable(row) };
                    let partition = match partitions {
                        1 => 0,
                        _ => bits_of(hashes[row], 1) as usize >> (64 - partitions.ilog2()),
                    };
                    match passes {
                        true if asks_stay && partition % 3 != 0 => wanted_stays.push(row as u16),
                        true => expected[partition].push(rows[row].clone()),
                        false if all => wanted_stays.push(row as u16),
                        false => {}
                    }
                }
                let taken = Taken {
                    all,
                    stays: asks_stay.then_some(&mut stays),
                    among: filters.then_some(&among[..]),
                };
                split.take(&mut keys, &chunk, &[0, 1], taken).unwrap();
                keys.release();
                assert_eq!(stays, wanted_stays);
            }
            assert_eq!(context.memory.used(), split.bytes);
            split.put_down().unwrap();
            let mut chunk = Chunk::new();
            for (partition, expected) in expected.iter().enumerate() {
                let stored = store.take(partition);
                let mut reader = store.reader(&stored);
                let mut rows = Vec::new();
                while reader.next(&mut chunk).unwrap() {
                    let value = |row, column: usize| chunk.value(row, column, metas[column].ty);
                    rows.extend((0..chunk.len()).map(|row| vec![value(row, 0), value(row, 1)]));
                }
                assert!(rows == *expected, "partition {partition} of {partitions}");
            }
            chunk.reset(0);
            assert_eq!(context.memory.used(), 0);
        }
    }

    /// When the build side is completed, a worker writes only the partition that it was told to, however
    /// short memory has become: the other workers would keep their rows of any other.
    #[test]
    fn what_is_not_asked_for_is_not_written() {
        let context =
            QueryContext { memory: Arc::new(MemoryBudget::new(1 << 20)), ..QueryContext::default() };
        let metas = [column_of(DataType::Int64)];
        let store = Store::new(&metas, PARTITIONS, Medium::File, &context);
        let marks = marks(PARTITIONS, false);
        let room = Room { most: usize::MAX, left: 1 << 17, least: 0, segments: usize::MAX };
        let mut split = Split::new(&store, &marks, 0, room, &context.memory);
        let rows: Vec<Vec<Value>> = (0..2000).map(|i| vec![Value::Integer(i)]).collect();
        let chunk = chunk_of(&metas, &rows, &mut Chance(7));
        let mut keys = ProbeKeys::new(1, false);
        keys.begin(&chunk, &[0], &[false]);
        split.take(&mut keys, &chunk, &[0], Taken { all: true, ..Taken::default() }).unwrap();
        keys.release();
        let sizes = |split: &Split| (0..PARTITIONS).map(|p| split.size(p).1).collect::<Vec<usize>>();
        let before = sizes(&split);
        assert_eq!(before.iter().sum::<usize>(), 2000);

        // Another statement takes all remaining memory.
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
