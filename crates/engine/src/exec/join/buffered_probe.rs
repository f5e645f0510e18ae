//! A buffered probe: probe rows are held back until there are many, then looked up in the order of their
//! hashes.
//!
//! If a table is larger than the caches, a probe row costs a cache miss for the directory, one for the key
//! and one for each payload column. Rows whose hashes share their leading bits find their matches near each
//! other, so a worker [holds rows back](super::probe_buffer) by these bits. The buffered rows are then pushed
//! to the ordinary probe part by part, so that each full buffer reads the table once, from beginning to end.
//!
//! This is the pipelined partitioned probe of Barber et al., *Memory-Efficient Hash Joins*, VLDB 2014,
//! section 3.2, except that rows are not returned to their original order
//! (docs/decisions/0010-strides-without-order.md).
//!
//! Not here: tables of places, whose lookups did not become faster.

use super::buffered_columns::BufferedColumns;
use super::partitioned::route::Through;
use super::probe_buffer::{ProbeBuffer, part_of_hash};
use super::table::ProbeKeys;
use super::{Built, BuiltSlot, Computed, ComputedWorker};
use crate::context::QueryContext;
use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use crate::exec::profile::Recorder;
use crate::sync::{AtomicBool, Ordering};
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{Chunk, Error, Result};
use std::sync::Arc;

/// The operator before the probe.
pub(crate) struct BufferedProbe {
    /// The keys over the probe side's columns.
    pub keys: Computed,
    /// For each key, whether NULL equals NULL.
    pub null_equals_null: Vec<bool>,
    /// The columns of the probe side that are buffered.
    pub kept: Arc<BufferedColumns>,
    /// What is known of these columns.
    pub stored: Vec<ColumnMeta>,
    /// The build side.
    pub built: BuiltSlot,
    /// The profile has been written to.
    pub is_told: Arc<AtomicBool>,
    /// The recorder of the join.
    pub recorder: Arc<Recorder>,
    /// Settings.
    pub context: QueryContext,
}

impl OperatorFactory for BufferedProbe {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        let built =
            self.built.get().ok_or_else(|| Error::internal("a join is probed before it was built"))?;
        let Some(most) = self.most_bytes(built) else { return Ok(Box::new(Through)) };
        Ok(Box::new(Worker {
            keys: self.keys.worker(),
            probe_keys: ProbeKeys::new(self.null_equals_null.len(), self.context.settings.hash_collisions),
            null_equals_null: self.null_equals_null.clone(),
            held: ProbeBuffer::new(&self.stored, most, &self.context),
            kept: self.kept.clone(),
            chunk: Chunk::new(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        // Its programs are those of the keys, which the probe reports.
        Vec::new()
    }
}

impl BufferedProbe {
    /// The bytes that a worker buffers; `None` if it buffers nothing.
    fn most_bytes(&self, built: &Built) -> Option<usize> {
        let most = self.context.settings.join_stride;
        // Partitions that are joined in the join phase have tables of their own.
        if most == 0 || !built.table.is_by_hash() || built.rows.is_empty() {
            return None;
        }
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let table = built.table.bytes() + built.rows.bytes();
            self.recorder.note(format!(
                "{most} bytes of probe rows buffered per worker: build rows and table take {table} bytes"
            ));
        }
        Some(most)
    }
}

struct Worker {
    keys: ComputedWorker,
    probe_keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    held: ProbeBuffer,
    kept: Arc<BufferedColumns>,
    chunk: Chunk,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        if self.hold_back(chunk)? { self.give(next) } else { Ok(Flow::Continue) }
    }

    fn finish(&mut self, next: &mut dyn Push) -> Result<Flow> {
        self.give(next)
    }
}

impl Worker {
    /// Buffers the rows of a chunk. True if the buffer is full.
    fn hold_back(&mut self, chunk: &Chunk) -> Result<bool> {
        let (keys, positions) = self.keys.compute(chunk)?;
        self.probe_keys.begin(keys, positions, &self.null_equals_null);
        // Tables order rows by the leading bits of their hashes. A key with a NULL may have any hash.
        let (_, hashes) = self.probe_keys.hashes();
        self.held.parts().extend(hashes.iter().map(|&hash| part_of_hash(hash)));
        let is_full = self.held.add(chunk, &self.kept.places);
        self.probe_keys.release();
        self.keys.release();
        Ok(is_full)
    }

    /// Pushes the buffered rows.
    fn give(&mut self, next: &mut dyn Push) -> Result<Flow> {
        let (kept, chunk) = (&self.kept, &mut self.chunk);
        self.held.give(|vectors, rows| {
            kept.fill(chunk, rows, vectors.iter());
            let flow = next.push(chunk);
            chunk.reset(0);
            flow
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe_buffer::BATCH;
    use super::*;
    use crate::exec::execute::execute;
    use crate::exec::result::Collector;
    use crate::memory::MemoryBudget;
    use crate::plan::{Columns, Join, JoinKey, JoinKind, Limit, Node, Output, Plan, Values};
    use crate::settings::{Settings, TableKind};
    use entasis_vector::{ColumnId, DataType, Value};

    /// The keys of the first rows of a join, or of all, and what the profile notes.
    fn keys(first: Option<usize>, stride: usize) -> (Vec<i128>, Vec<String>) {
        keys_within(first, (9000, 9000), stride, &Arc::default()).unwrap()
    }

    fn keys_within(
        first: Option<usize>,
        (rows, keys): (i128, i128),
        stride: usize,
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
        let context =
            QueryContext { settings: Arc::new(settings), memory: memory.clone(), ..QueryContext::default() };
        let collector = Collector::new(&context, vec![DataType::Int64]);
        let profile = execute(&plan, &context, &collector)?;
        let set = collector.into_chunks();
        let key = |chunk: &Chunk, row| match chunk.value(row, 0, DataType::Int64) {
            Value::Integer(key) => key,
            other => panic!("{other:?} is no key"),
        };
        let keys =
            set.chunks.iter().flat_map(|chunk| (0..chunk.len()).map(move |row| key(chunk, row))).collect();
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
        let (without, notes) = keys(None, 0);
        assert_eq!(without, in_order);
        assert!(!notes.iter().any(|note| note.contains("buffered per worker")));
        let (mut with, notes) = keys(None, 1 << 20);
        assert_ne!(with, in_order);
        with.sort_unstable();
        assert_eq!(with, in_order);
        assert!(
            notes.iter().any(|note| note.contains("1048576 bytes of probe rows buffered per worker: ")),
            "{notes:?}"
        );
        assert_eq!(keys(Some(7), 1 << 20).0, in_order[..7]);
    }

    #[test]
    fn a_stride_ends_where_the_memory_does() {
        // This many rows are moved to the parts in several batches before they are passed on.
        let rows = 5 * BATCH as i128 + 100;
        let run = |stride: usize, memory: MemoryBudget| {
            let memory = Arc::new(memory);
            let found = keys_within(None, (rows, 3000), stride, &memory);
            assert_eq!(memory.used(), 0);
            found.map(|(keys, _)| keys)
        };
        let mut in_order: Vec<i128> = (0..rows).map(|row| row % 3000).collect();
        let all = run(usize::MAX, MemoryBudget::default()).unwrap();
        assert_ne!(all, in_order);
        in_order.sort_unstable();
        let (mut done, mut early) = (0, 0);
        for kilobytes in (100..8000).step_by(300) {
            let budget = || MemoryBudget::new(kilobytes << 10);
            if run(0, budget()).is_err() {
                continue;
            }
            // A batch needs some memory even with the largest buffer.
            let Ok(mut found) = run(usize::MAX, budget()) else {
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
