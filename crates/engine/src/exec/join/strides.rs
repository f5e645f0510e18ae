//! Strides: probe rows that are held back until there are many, and then come to the table in the order of their hashes.
//!
//! A table that no cache holds costs a probe row a miss for the directory, one for the key and one for each payload column. Rows
//! whose hashes begin alike find theirs near each other, so a worker keeps its probe rows in 256 parts by the first bits of their
//! hashes. When they are as many as a *stride* may have, or there is no memory for more, part after part goes on to the probe,
//! which is the same as ever: of the table it touches a 256th at a time, which a cache holds, more or less. The table is read once
//! a stride, from its beginning to its end.
//!
//! This is the pipelined partitioned probe of Barber et al., *Memory-Efficient Hash Joins*, VLDB 2014, section 3.2, but for one
//! thing: rows are not put back into the order in which they came (docs/decisions/0010-strides-without-order.md).
//!
//! Not here: tables of places, whose accesses were found not to get faster; and the build side, which is as it is.

use super::filter::Expected;
use super::kept::KeptColumns;
use super::partitioned::choice::{NARROW, width};
use super::partitioned::route::Through;
use super::table::ProbeKeys;
use super::{Built, BuiltSlot, Computed, ComputedWorker};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use crate::exec::profile::Recorder;
use crate::exec::spread::Spread;
use crate::exec::{QueryContext, Reservation};
use crate::sync::{AtomicBool, Ordering};
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{CHUNK_ROWS, Chunk, Error, Result, Vector};
use std::sync::Arc;

/// Parts of a stride.
const PARTS: usize = 256;
/// The bits of a hash that say which.
const BITS: u32 = PARTS.ilog2();
/// Rows that go to their parts at once.
// PERF: some 64 to each, since each run of rows has its price.
const BATCH: usize = 8 * CHUNK_ROWS;
/// Share of the probe rows, as a filter leaves them, that are to match: the others meet nothing but the directory.
const MATCHING: f64 = 0.75;
/// Partitions of full size that the rows and their table must have: fewer are in the caches, more or less.
const FAR: usize = 16;
/// The most bytes of a stride.
const MOST: usize = 64 << 20;
/// The part of the free memory that all strides may have.
const MEMORY_PART: usize = 8;

/// How large strides are. The setting `join_stride`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stride {
    /// As large as pays, where it does.
    #[default]
    Auto,
    /// So many bytes for each worker, whatever the table has; 0: nothing is held back.
    Bytes(usize),
}

/// The operator before the probe.
pub(crate) struct Strides {
    /// The keys over the probe side's columns.
    pub keys: Computed,
    /// For each key, whether NULL equals NULL.
    pub null_equals_null: Vec<bool>,
    /// Which columns of the probe side are held back.
    pub kept: Arc<KeptColumns>,
    /// What they are.
    pub stored: Vec<ColumnMeta>,
    /// Where the build side is.
    pub built: BuiltSlot,
    /// What is expected of the probe side.
    pub expected: Expected,
    /// The profile knows.
    pub is_told: Arc<AtomicBool>,
    /// The join's.
    pub recorder: Arc<Recorder>,
    /// Settings.
    pub context: QueryContext,
}

impl OperatorFactory for Strides {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        let built = self.built.get().ok_or_else(|| Error::internal("a join is probed before it was built"))?;
        let Some(most) = self.most_bytes(built) else { return Ok(Box::new(Through)) };
        Ok(Box::new(Worker {
            keys: self.keys.worker(),
            probe_keys: ProbeKeys::new(self.null_equals_null.len(), self.context.settings.hash_collisions),
            null_equals_null: self.null_equals_null.clone(),
            parts: (0..PARTS).map(|_| Materialized::in_pages(&self.stored)).collect(),
            waiting: Materialized::expecting(&self.stored, BATCH),
            row: self.row_bytes(),
            batch: self.stored.iter().map(|meta| Vector::new(meta.physical)).collect(),
            vectors: self.stored.iter().map(|meta| Vector::new(meta.physical)).collect(),
            stored: self.stored.clone(),
            kept: self.kept.clone(),
            bytes: 0,
            most,
            memory: Reservation::new(&self.context.memory),
            spread: Spread::default(),
            chunk: Chunk::new(),
            context: self.context.clone(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        // Those of the keys, which the probe shows.
        Vec::new()
    }

    fn is_for_order(&self) -> bool {
        true
    }
}

impl Strides {
    /// Bytes of a worker's stride; `None` if there is none.
    fn most_bytes(&self, built: &Built) -> Option<usize> {
        // Partitions that are joined later have tables of their own.
        if !built.table.is_by_hash() || built.rows.is_empty() {
            return None;
        }
        let table = built.table.bytes() + built.rows.bytes();
        let (most, why) = match self.context.settings.join_stride {
            Stride::Bytes(0) => return None,
            Stride::Bytes(bytes) => (bytes, "join_stride"),
            Stride::Auto => (self.auto(built, table)?, "auto"),
        };
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let note = format!("probe rows in strides of {most} bytes a worker ({why}): rows and table have {table}");
            self.recorder.note(note);
        }
        Some(most)
    }

    fn row_bytes(&self) -> usize {
        self.stored.iter().map(|meta| width(meta.physical)).sum()
    }

    fn auto(&self, built: &Built, table: usize) -> Option<usize> {
        let settings = &self.context.settings;
        Gates {
            table,
            row: self.row_bytes(),
            expected: self.expected.given(built.rows.rows()).looked_up(),
            partition: settings.join_partition_size,
            workers: settings.threads.max(1),
            free: self.context.memory.free(),
        }
        .stride()
    }
}

/// What `auto` goes by, in the manner of Bandle et al., table 4.
#[derive(Clone, Copy)]
struct Gates {
    /// Bytes of the rows and their table.
    table: usize,
    /// Bytes of a row that is held back.
    row: usize,
    /// Rows that are looked up, and the share of them that match.
    expected: (f64, f64),
    /// Bytes that a cache holds.
    partition: usize,
    workers: usize,
    /// Bytes of memory.
    free: usize,
}

impl Gates {
    /// As many bytes as rows and table have, if that pays: the table is read once for every stride.
    // PERF: for 1, 2 and 4 million rows of 16 bytes 14, 18 and 16 ns a probe row instead of 21, 31 and 44. Half the bytes cost a fifth more.
    fn stride(self) -> Option<usize> {
        let most = self.table.min(MOST);
        let pays = self.table / FAR >= self.partition
            && self.row <= NARROW
            && self.expected.1 >= MATCHING
            && self.expected.0 * self.row as f64 >= (most * self.workers) as f64
            && most * self.workers <= self.free / MEMORY_PART;
        pays.then_some(most)
    }
}

struct Worker {
    keys: ComputedWorker,
    probe_keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    kept: Arc<KeptColumns>,
    stored: Vec<ColumnMeta>,
    /// The stride, by part.
    parts: Vec<Materialized>,
    /// Rows that have not gone to their parts yet; where they go is in `spread`.
    waiting: Materialized,
    batch: Vec<Vector>,
    /// Bytes of a row.
    row: usize,
    bytes: usize,
    most: usize,
    memory: Reservation,
    spread: Spread<PARTS>,
    vectors: Vec<Vector>,
    chunk: Chunk,
    context: QueryContext,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        self.hold_back(chunk)?;
        let (rows, heap) = (self.waiting.rows(), self.waiting.heap_bytes());
        if rows + CHUNK_ROWS <= BATCH && rows * self.row + heap < self.most {
            return Ok(Flow::Continue);
        }
        self.hand_out();
        // Without memory the stride ends here; as much is left to those behind it.
        let held = self.held_bytes();
        let is_full = self.bytes >= self.most || self.memory.resize(held).is_err() || self.memory.free() < held;
        if is_full { self.give(next) } else { Ok(Flow::Continue) }
    }

    fn finish(&mut self, next: &mut dyn Push) -> Result<Flow> {
        self.hand_out();
        self.give(next)
    }
}

impl Worker {
    fn hold_back(&mut self, chunk: &Chunk) -> Result<()> {
        let (keys, positions) = self.keys.compute(chunk)?;
        self.probe_keys.begin(keys, positions, &self.null_equals_null);
        // Tables have rows in the order of the first bits. A key with a NULL has some hash.
        let (_, hashes) = self.probe_keys.hashes();
        self.spread.more().extend(hashes.iter().map(|hash| (hash >> (u64::BITS - BITS)) as u8));
        self.probe_keys.release();
        self.keys.release();
        self.waiting.append(chunk, &self.kept.places, None);
        Ok(())
    }

    /// Bytes of the stride, and of two times the rows of a batch: as they wait and as they are handed out.
    fn held_bytes(&self) -> usize {
        self.bytes + 2 * self.waiting.bytes()
    }

    /// Brings the rows that wait to their parts.
    fn hand_out(&mut self) {
        let rows = self.waiting.rows();
        if rows == 0 {
            return;
        }
        for (column, vector) in self.batch.iter_mut().enumerate() {
            self.waiting.read(column, 0, 0, rows, vector);
        }
        self.spread.arrange();
        for (number, part) in self.parts.iter_mut().enumerate() {
            let rows = self.spread.rows(number);
            if !rows.is_empty() {
                let before = part.bytes();
                let vectors: Vec<(&Vector, Option<&[u16]>)> =
                    self.batch.iter().map(|vector| (vector, Some(rows))).collect();
                part.append_vectors(&vectors, rows.len());
                self.bytes = self.bytes - before + part.bytes();
            }
        }
        self.spread.begin();
        // Strings have been copied to the parts, and the next ones are to have a heap of their own.
        self.batch.iter_mut().for_each(|vector| vector.begin(0));
        match self.waiting.heap_bytes() {
            0 => self.waiting.restart(),
            _ => self.waiting = Materialized::expecting(self.waiting.columns(), BATCH),
        }
    }

    /// Pushes the stride, part by part.
    fn give(&mut self, next: &mut dyn Push) -> Result<Flow> {
        for number in 0..PARTS {
            let part = std::mem::replace(&mut self.parts[number], Materialized::in_pages(&self.stored));
            self.bytes -= part.bytes();
            for segment in 0..part.segments() {
                for first in (0..part.segment_rows(segment)).step_by(CHUNK_ROWS) {
                    let rows = CHUNK_ROWS.min(part.segment_rows(segment) - first);
                    for (column, vector) in self.vectors.iter_mut().enumerate() {
                        part.read(column, segment, first, rows, vector);
                    }
                    self.kept.fill(&mut self.chunk, rows, self.vectors.iter());
                    let flow = self.context.check().and_then(|()| next.push(&mut self.chunk));
                    self.chunk.reset(0);
                    if flow? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
            }
            drop(part);
            // For whoever comes behind. What was not to be had is not asked for again.
            self.memory.resize(self.held_bytes().min(self.memory.bytes()))?;
        }
        Ok(Flow::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Collector, MemoryBudget, Settings, TableKind, execute};
    use crate::plan::{Columns, Join, JoinKey, JoinKind, Limit, Node, Output, Plan, Values};
    use entasis_vector::{ColumnId, DataType, Value};

    #[test]
    fn strides_are_where_a_table_is_large_and_probe_rows_are_many_and_narrow() {
        let facts =
            Gates { table: 180 << 20, row: 16, expected: (1e8, 1.0), partition: 1 << 20, workers: 2, free: 8 << 30 };
        assert_eq!(facts.stride(), Some(MOST));
        assert_eq!(Gates { table: 20 << 20, ..facts }.stride(), Some(20 << 20));
        let others = [
            Gates { table: 15 << 20, ..facts },
            Gates { row: 24, ..facts },
            Gates { expected: (1e8, 0.5), ..facts },
            Gates { expected: (7e6, 1.0), ..facts },
            Gates { free: 512 << 20, ..facts },
        ];
        assert!(others.into_iter().all(|facts| facts.stride().is_none()));
    }

    /// The keys of the first rows of a join, or of all, and what the profile notes.
    fn keys(first: Option<usize>, stride: Stride) -> (Vec<i128>, Vec<String>) {
        keys_within(first, (9000, 9000), stride, &Arc::default()).unwrap()
    }

    fn keys_within(
        first: Option<usize>,
        (rows, keys): (i128, i128),
        stride: Stride,
        memory: &Arc<MemoryBudget>,
    ) -> Result<(Vec<i128>, Vec<String>)> {
        let mut columns = Columns::default();
        let mut side = |name: &str, rows: i128| {
            let column: ColumnId = columns.add(name.to_string(), DataType::Int64, true);
            let rows = (0..rows).map(|row| vec![Value::Integer(row % keys)]).collect();
            (Box::new(Node::Values(Values { columns: vec![column], rows })), column)
        };
        let ((left, l), (right, r)) = (side("l", rows), side("r", 3000));
        let on = vec![JoinKey { left: columns.expr(l), right: columns.expr(r), null_equals_null: false }];
        let join = Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() });
        let root = match first {
            Some(count) => Node::Limit(Limit { input: Box::new(join), offset: 0, count: Some(count) }),
            None => join,
        };
        let output = vec![Output { name: "l".into(), column: l }];
        let plan = Plan { root, columns, output };
        let settings = Settings {
            join_table: TableKind::Cht,
            threads: 1,
            join_stride: stride,
            profile: true,
            temp_directory: "".into(),
            ..Settings::default()
        };
        let context = QueryContext { settings: Arc::new(settings), memory: memory.clone(), ..QueryContext::default() };
        let collector = Collector::new(&context, vec![DataType::Int64]);
        let profile = execute(&plan, &context, &collector)?;
        let set = collector.into_chunks();
        let key = |chunk: &Chunk, row| match chunk.value(row, 0, DataType::Int64) {
            Value::Integer(key) => key,
            other => panic!("{other:?} is no key"),
        };
        let keys = set.chunks.iter().flat_map(|chunk| (0..chunk.len()).map(move |row| key(chunk, row))).collect();
        let mut notes = Vec::new();
        let mut operators = vec![profile.root.unwrap()];
        while let Some(operator) = operators.pop() {
            notes.extend(operator.details);
            operators.extend(operator.children);
        }
        Ok((keys, notes))
    }

    #[test]
    fn rows_come_in_the_order_of_hashes_but_not_below_a_limit() {
        let in_order: Vec<i128> = (0..3000).collect();
        let (without, notes) = keys(None, Stride::Bytes(0));
        assert_eq!(without, in_order);
        assert!(!notes.iter().any(|note| note.contains("strides")));
        let (mut with, notes) = keys(None, Stride::Bytes(1 << 20));
        assert_ne!(with, in_order);
        with.sort_unstable();
        assert_eq!(with, in_order);
        assert!(notes.iter().any(|note| note.contains("strides of 1048576 bytes a worker (join_stride)")), "{notes:?}");
        assert_eq!(keys(Some(7), Stride::Bytes(1 << 20)).0, in_order[..7]);
    }

    #[test]
    fn a_stride_ends_where_the_memory_does() {
        // Of so many rows several batches go to the parts before they are given.
        let rows = 5 * BATCH as i128 + 100;
        let run = |stride: Stride, memory: MemoryBudget| {
            let memory = Arc::new(memory);
            let found = keys_within(None, (rows, 3000), stride, &memory);
            assert_eq!(memory.used(), 0);
            found.map(|(keys, _)| keys)
        };
        let mut in_order: Vec<i128> = (0..rows).map(|row| row % 3000).collect();
        let all = run(Stride::Bytes(usize::MAX), MemoryBudget::default()).unwrap();
        assert_ne!(all, in_order);
        in_order.sort_unstable();
        let (mut done, mut early) = (0, 0);
        for kilobytes in (100..8000).step_by(300) {
            let budget = || MemoryBudget::new(kilobytes << 10);
            if run(Stride::Bytes(0), budget()).is_err() {
                continue;
            }
            // A batch needs some memory, too, of a stride that is asked for.
            let Ok(mut found) = run(Stride::Bytes(usize::MAX), budget()) else {
                assert!(kilobytes < 1300, "{kilobytes} KB");
                continue;
            };
            early += usize::from(found != all);
            found.sort_unstable();
            assert_eq!(found, in_order, "{kilobytes} KB");
            done += 1;
        }
        assert!(0 < early && early < done, "{early} of {done}");
    }
}
