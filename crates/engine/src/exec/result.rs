//! Results: the sink at the end of a plan, and [`Collector`], which keeps the rows in memory.

use crate::context::QueryContext;
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::exec::row_copier::RowCopier;
use crate::exec::sink::{ResultSink, ResultWorker};
use crate::memory::{MemoryBudget, Reservation};
use crate::sync::{Mutex, lock};
use entasis_vector::{Chunk, DataType, PhysicalType, Result};
use std::sync::Arc;

/// The sink of the last pipeline: passes chunks to the receiver of the result.
pub(crate) struct Output<'a>(pub &'a dyn ResultSink);

impl Sink for Output<'_> {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(OutputWorker(self.0.worker()?)))
    }
    fn finish(&self, _: &dyn Tasks) -> Result<()> {
        Ok(())
    }
}

struct OutputWorker(Box<dyn ResultWorker>);

impl SinkWorker for OutputWorker {
    fn start_morsel(&mut self, morsel: u64) {
        self.0.start_morsel(morsel);
    }
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        self.0.push(chunk)?;
        Ok(Flow::Continue)
    }
    fn finish(mut self: Box<Self>) -> Result<()> {
        self.0.finish()
    }
}

/// Keeps all rows, copied, in the order of the source, within the memory budget.
pub struct Collector {
    types: Vec<DataType>,
    context: QueryContext,
    memory: Arc<MemoryBudget>,
    shared: Arc<Mutex<Collected>>,
}

#[derive(Default)]
struct Collected {
    runs: Vec<Run>,
    memory: Vec<Reservation>,
}

/// Chunks of one morsel.
struct Run {
    morsel: u64,
    chunks: Vec<Chunk>,
}

/// The rows of a statement, in memory.
#[derive(Debug)]
pub struct ResultSet {
    /// The columns' types.
    pub types: Vec<DataType>,
    /// Dense chunks of flat vectors of the types' default physical types, which own their strings.
    pub chunks: Vec<Chunk>,
    /// Rows in all.
    pub rows: usize,
    /// The memory that the chunks take of the budget, released with them.
    pub memory: Vec<Reservation>,
}

impl Collector {
    /// A collector of rows whose columns have these types.
    pub fn new(context: &QueryContext, types: Vec<DataType>) -> Collector {
        let memory = MemoryBudget::part_of(&context.memory, "a result");
        Collector { types, context: context.clone(), memory, shared: Arc::default() }
    }

    /// The rows, once the execution has returned.
    pub fn into_chunks(self) -> ResultSet {
        let mut shared = lock(&self.shared);
        let Collected { mut runs, memory } = std::mem::take(&mut *shared);
        runs.sort_by_key(|run| run.morsel);
        let chunks: Vec<Chunk> = runs.into_iter().flat_map(|run| run.chunks).collect();
        let rows = chunks.iter().map(Chunk::len).sum();
        ResultSet { types: self.types, chunks, rows, memory }
    }
}

impl ResultSink for Collector {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        let types: Vec<PhysicalType> = self.types.iter().map(|ty| ty.physical()).collect();
        Ok(Box::new(CollectorWorker {
            rows: RowCopier::owning(&types),
            context: self.context.clone(),
            morsel: 0,
            runs: Vec::new(),
            memory: Reservation::new(&self.memory),
            shared: self.shared.clone(),
        }))
    }
}

struct CollectorWorker {
    rows: RowCopier,
    context: QueryContext,
    morsel: u64,
    runs: Vec<Run>,
    memory: Reservation,
    shared: Arc<Mutex<Collected>>,
}

impl CollectorWorker {
    fn flush(&mut self) -> Result<()> {
        if self.rows.rows() > 0 {
            let (chunk, bytes) = self.rows.take();
            self.memory.resize(self.memory.bytes() + bytes)?;
            self.runs.last_mut().expect("rows come after their run").chunks.push(chunk);
        }
        Ok(())
    }
}

impl ResultWorker for CollectorWorker {
    fn start_morsel(&mut self, morsel: u64) {
        self.morsel = morsel;
    }

    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        if self.runs.last().is_none_or(|run| run.morsel != self.morsel) {
            self.flush()?;
            self.runs.push(Run { morsel: self.morsel, chunks: Vec::new() });
        }
        let mut from = 0;
        while from < chunk.len() {
            from += self.rows.append(chunk, from);
            if self.rows.is_full() {
                self.flush()?;
                self.context.check()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.flush()?;
        let mut shared = lock(&self.shared);
        shared.runs.append(&mut self.runs);
        shared.memory.push(std::mem::take(&mut self.memory));
        Ok(())
    }
}
