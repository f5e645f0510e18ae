//! Sorting, and the first rows of an order.
//!
//! Without a limit, workers keep all rows as they come, together with the keys that are not plain columns; the end
//! computes an order of row ids ([`order`]) and the source gathers columns by it, so a row's payload is never moved; it
//! may become [tuples](super::tuple) while it waits.
//! With a limit of up to [`MOST_TOP_ROWS`] rows, each worker keeps a bounded buffer instead ([`top`]).
//!
//! Rows with equal keys come out in the order in which the source has them: morsel by morsel, whichever workers had
//! the morsels. The source gives its chunks to a single worker, in order.

pub mod order;
#[cfg(test)]
mod tests;
pub mod ties;
pub mod top;

pub use order::order_rows;

use crate::exec::materialized::Materialized;
use crate::exec::operator::{Blocking, Flow, Sink, SinkWorker, Tasks};
use crate::exec::profile::Recorder;
use crate::exec::tuple::Choice;
use crate::exec::{QueryContext, Reservation};
use crate::plan::SortKey;
use crate::relation::{Source, SourceWorker};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, OnceLock, Ordering, PoisonError};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Chunk, ColumnId, Error, Result, Selection, Vector};
use order::OrderKey;
use std::sync::Arc;

/// Up to this limit, only the first rows are kept while rows come in.
pub const MOST_TOP_ROWS: usize = 32 << 10;

/// The operator that puts the rows of `input` in the order of `keys`, and keeps the first `limit` of them. All columns
/// pass through.
///
/// # Errors
/// Those of compiling the keys.
pub(crate) fn sort(
    input: &[ColumnMeta],
    keys: &[SortKey],
    limit: Option<usize>,
    context: &QueryContext,
    recorder: &Arc<Recorder>,
) -> Result<Blocking> {
    let shared = Arc::new(Shared::new(input, keys, limit, context, recorder)?);
    let sink: Arc<dyn Sink> = match limit {
        Some(limit) if limit <= MOST_TOP_ROWS => Arc::new(top::TopSink { shared: shared.clone(), limit }),
        _ => Arc::new(SortSink { shared: shared.clone() }),
    };
    Ok(Blocking { sink, source: Arc::new(SortSource { shared }), output: input.to_vec() })
}

/// What all workers of a sort share.
pub struct Shared {
    context: QueryContext,
    limit: Option<usize>,
    /// The input's columns.
    columns: usize,
    /// Columns that rows are kept with: the input's, then computed keys.
    stored: Vec<ColumnMeta>,
    /// The keys, as columns of `stored`.
    keys: Vec<OrderKey>,
    /// Computes the keys that are not plain columns; `None` if all are.
    program: Option<Arc<Program>>,
    /// Whether the columns that are no keys become tuples.
    choice: Choice,
    recorder: Arc<Recorder>,
    runs: Mutex<Vec<Run>>,
    sorted: OnceLock<Sorted>,
}

/// One worker's rows.
struct Run {
    rows: Materialized,
    /// Morsel and first row, ascending.
    morsels: Vec<(u64, u32)>,
    reservation: Reservation,
}

struct Sorted {
    rows: Materialized,
    order: Vec<u32>,
    /// Rows that have been handed out.
    done: AtomicUsize,
    /// Whether a worker has begun to read.
    taken: AtomicBool,
    _reservation: Reservation,
}

impl Shared {
    fn new(
        input: &[ColumnMeta],
        keys: &[SortKey],
        limit: Option<usize>,
        context: &QueryContext,
        recorder: &Arc<Recorder>,
    ) -> Result<Shared> {
        let mut stored = input.to_vec();
        let mut computed: Vec<Expr> = Vec::new();
        let mut order = Vec::new();
        for key in keys {
            let plain = match &key.expr {
                Expr::Column { id, .. } => input.iter().position(|meta| meta.id == *id),
                _ => None,
            };
            let column = plain.unwrap_or_else(|| {
                computed.push(key.expr.clone());
                input.len() + computed.len() - 1
            });
            order.push(OrderKey { column, descending: key.descending, nulls_first: key.nulls_first });
        }
        let program = if computed.is_empty() { None } else { Some(Program::compile(&computed, input)?) };
        if let Some(program) = &program {
            // Numbered from the end of the ids, so that they are nobody's.
            let metas = program.outputs().iter().enumerate();
            stored.extend(metas.map(|(i, meta)| ColumnMeta { id: ColumnId(u32::MAX - i as u32), ..meta.clone() }));
        }
        let is_key = (0..stored.len()).map(|column| order.iter().any(|key| key.column == column)).collect();
        Ok(Shared {
            choice: Choice::new(&stored, is_key, context),
            recorder: recorder.clone(),
            context: context.clone(),
            limit,
            columns: input.len(),
            stored,
            keys: order,
            program,
            runs: Mutex::default(),
            sorted: OnceLock::new(),
        })
    }

    fn finish(&self, sorted: Sorted) -> Result<()> {
        self.sorted.set(sorted).map_err(|_| Error::internal("a sort was finished twice"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a chunk's columns and its computed keys side by side.
struct Stager {
    machine: Option<Machine>,
    staged: Chunk,
}

impl Stager {
    fn new(shared: &Shared) -> Stager {
        Stager { machine: shared.program.clone().map(Machine::new), staged: Chunk::new() }
    }

    /// The chunk's columns, then the keys. To be cleared after use, so that the vectors are free again.
    fn stage(&mut self, chunk: &Chunk) -> Result<&mut Chunk> {
        self.staged.reset(chunk.len());
        chunk.groups().iter().for_each(|selection| {
            self.staged.push_group(selection.clone());
        });
        chunk.columns().iter().for_each(|column| self.staged.push_column(column.vector.clone(), column.group));
        if let Some(machine) = &mut self.machine {
            machine.project(chunk, &mut self.staged)?;
        }
        Ok(&mut self.staged)
    }
}

struct SortSink {
    shared: Arc<Shared>,
}

impl Sink for SortSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(SortWorker {
            stager: Stager::new(&self.shared),
            columns: (0..self.shared.stored.len()).collect(),
            run: Run {
                rows: Materialized::new(&self.shared.stored),
                morsels: vec![(0, 0)],
                reservation: Reservation::new(&self.shared.context.memory),
            },
            shared: self.shared.clone(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.shared.program.as_deref().into_iter().collect()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        let shared = &self.shared;
        let mut rows = Materialized::new(&shared.stored);
        let mut reservation = Reservation::new(&shared.context.memory);
        // Stretches of row ids, morsel by morsel.
        let mut stretches: Vec<(u64, u32, u32)> = Vec::new();
        for run in std::mem::take(&mut *lock(&shared.runs)) {
            let ends = run.morsels[1..].iter().map(|&(_, first)| first).chain([end_of(&run.rows)]);
            let moved = rows.segments() as u32;
            let moved = |id: u32| id + (moved << 16);
            stretches.extend(run.morsels.iter().zip(ends).map(|(&(m, first), end)| (m, moved(first), moved(end))));
            drop(run.reservation);
            rows.absorb(run.rows);
        }
        shared.choice.report(&rows).into_iter().for_each(|report| shared.recorder.note(report));
        // Per row: the order, and while it is made an entry and a place.
        reservation.resize(rows.bytes() + rows.rows() * (4 + 16 + 4))?;
        stretches.sort_unstable();
        let mut arrival = Vec::with_capacity(rows.rows());
        stretches.iter().for_each(|&(_, first, end)| arrival.extend(first..end));
        debug_assert_eq!(arrival.len(), rows.rows());
        let mut order = order::order(&rows, &shared.keys, arrival, Some(tasks))?;
        order.truncate(shared.limit.unwrap_or(usize::MAX));
        reservation.resize(rows.bytes() + order.capacity() * 4)?;
        shared.finish(Sorted {
            rows,
            order,
            done: AtomicUsize::new(0),
            taken: AtomicBool::new(false),
            _reservation: reservation,
        })
    }
}

/// The id after the last row, in rows that only came by appending.
fn end_of(rows: &Materialized) -> u32 {
    u32::try_from(rows.rows()).expect("row ids have 32 bits")
}

struct SortWorker {
    shared: Arc<Shared>,
    stager: Stager,
    /// 0, 1, 2, …
    columns: Vec<usize>,
    run: Run,
}

impl SinkWorker for SortWorker {
    fn start_morsel(&mut self, morsel: u64) {
        self.run.morsels.push((morsel, end_of(&self.run.rows)));
    }

    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let staged = self.stager.stage(chunk)?;
        self.run.rows.append(staged, &self.columns, None);
        staged.reset(0);
        self.shared.choice.grown(&mut self.run.rows, chunk.len());
        self.run.reservation.resize(self.run.rows.bytes())?;
        Ok(Flow::Continue)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.shared.choice.complete(&mut self.run.rows);
        self.run.reservation.resize(self.run.rows.bytes())?;
        lock(&self.shared.runs).push(self.run);
        Ok(())
    }
}

struct SortSource {
    shared: Arc<Shared>,
}

impl Source for SortSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let metas = &self.shared.stored[..self.shared.columns];
        let vectors = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        let columns = (0..metas.len()).collect();
        Ok(Box::new(SortReader { shared: self.shared.clone(), columns, vectors, owns: false, next: 0 }))
    }

    fn progress(&self) -> Option<f64> {
        let sorted = self.shared.sorted.get()?;
        Some(sorted.done.load(Ordering::Relaxed) as f64 / sorted.order.len().max(1) as f64)
    }
}

struct SortReader {
    shared: Arc<Shared>,
    /// 0, 1, 2, …
    columns: Vec<usize>,
    vectors: Vec<Vector>,
    /// Whether this is the worker that reads.
    owns: bool,
    next: usize,
}

impl SourceWorker for SortReader {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let sorted = self.shared.sorted.get().ok_or_else(|| Error::internal("a sort is not finished"))?;
        self.owns = self.owns || !sorted.taken.swap(true, Ordering::Relaxed);
        if !self.owns || self.next == sorted.order.len() {
            return Ok(false);
        }
        let rows = (sorted.order.len() - self.next).min(self.shared.context.settings.chunk_rows);
        let ids = &sorted.order[self.next..self.next + rows];
        self.next += rows;
        sorted.done.store(self.next, Ordering::Relaxed);
        chunk.reset(rows);
        let dense = chunk.push_group(Selection::ALL);
        sorted.rows.gather_all(&self.columns, ids, &mut self.vectors);
        self.vectors.iter().for_each(|vector| chunk.push_column(vector.clone(), dense));
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.next as u64
    }
}
