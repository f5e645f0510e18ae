//! Sorting, and the first rows of an order.
//!
//! Without a limit, workers keep all rows in order of arrival, together with the keys that are not plain
//! columns; the end computes an order of row ids ([`order`]) and the source gathers columns by it, so a row's
//! payload is never moved; it may become [tuples](super::tuple) while it waits. With a limit of up to
//! [`MOST_TOP_ROWS`] rows, each worker keeps a bounded buffer instead ([`top`]).
//!
//! If memory is short, sorted runs go to temporary files and are merged while they are read ([`runs`]).
//!
//! Rows with equal keys come out in the order of the source: morsel by morsel, whichever workers had the
//! morsels. The source passes its chunks to a single worker, in order.

mod codes;
pub mod firsts;
mod merge;
pub mod order;
mod ranks;
mod run;
mod run_spec;
mod runs;
#[cfg(test)]
mod spill_tests;
#[cfg(test)]
mod tests;
pub mod ties;
pub mod top;

pub(crate) use merge::Merge;

use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Alone, Blocking, Flow, Sink, SinkWorker, Tasks, in_parallel};
use crate::exec::profile::Recorder;
use crate::exec::temp_compression::Choice;
use crate::memory::Reservation;
use crate::plan::SortKey;
use crate::relation::{Source, SourceWorker};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, OnceLock, Ordering, lock};
use crate::threshold::Threshold;
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Chunk, ColumnId, Error, Result, Selection, Vector};
use firsts::{Asking, Firsts, Limits};
use order::OrderKey;
pub use order::Ordered;
use runs::{LEAST_RUN, SortedRuns};
use std::sync::Arc;

/// Up to this limit, only the first rows are kept while rows arrive.
pub const MOST_TOP_ROWS: usize = 32 << 10;

/// True if a sort with this limit keeps only the first rows while they arrive, and publishes a threshold.
pub(crate) fn keeps_first_rows(limit: Option<usize>) -> bool {
    limit.is_some_and(|limit| limit <= MOST_TOP_ROWS)
}

/// The operator that puts the rows of `input` in the order of `keys`, and keeps the first `limit` of them.
/// All columns pass through. The first key of the last of these is published as `threshold`, if only the
/// first rows are kept.
///
/// # Errors
/// Those of compiling the keys.
pub(crate) fn sort(
    input: &[ColumnMeta],
    keys: &[SortKey],
    limit: Option<usize>,
    threshold: Option<Arc<Threshold>>,
    context: &QueryContext,
    recorder: &Arc<Recorder>,
) -> Result<Blocking> {
    let shared = Arc::new(SortShared::new(input, keys, limit, context, recorder)?);
    let sink: Arc<dyn Sink> = match limit {
        Some(limit) if keeps_first_rows(Some(limit)) => {
            Arc::new(top::TopSink { shared: shared.clone(), limit, threshold })
        }
        _ => Arc::new(SortSink { shared: shared.clone() }),
    };
    Ok(Blocking { sink, source: Arc::new(SortSource { shared }) })
}

/// What all workers of a sort share.
pub struct SortShared {
    context: QueryContext,
    limit: Option<usize>,
    /// Only the first rows of groups are needed.
    firsts: Option<Firsts>,
    /// The input's columns.
    columns: usize,
    /// Columns kept with the rows: the input's, then computed keys.
    stored: Vec<ColumnMeta>,
    /// The keys, as columns of `stored`.
    keys: Vec<OrderKey>,
    /// Memory that ordering takes for a row.
    order_bytes: usize,
    /// Computes the keys that are not plain columns; `None` if all are.
    program: Option<Arc<Program>>,
    /// Whether the columns that are not keys become tuples.
    choice: Choice,
    recorder: Arc<Recorder>,
    runs: Mutex<Vec<Run>>,
    /// Rows in files; absent if nothing may be written.
    spill: Option<SortedRuns>,
    sorted: OnceLock<Sorted>,
}

/// One worker's rows.
struct Run {
    rows: Materialized,
    /// Morsel and first row, in the order in which they came.
    morsels: Vec<(u64, u32)>,
    reservation: Reservation,
}

impl Run {
    /// Stretches of row ids, each with its morsel; ids are `moved` from where they were.
    fn stretches(&self, moved: u32) -> impl Iterator<Item = (u64, u32, u32)> {
        let ends = self.morsels[1..].iter().map(|&(_, first)| first).chain([end_of(&self.rows)]);
        self.morsels.iter().zip(ends).map(move |(&(morsel, first), end)| (morsel, moved + first, moved + end))
    }

    /// The morsel of a row.
    fn morsel_of(&self, id: u32) -> u64 {
        let after = self.morsels.partition_point(|&(_, first)| first <= id);
        self.morsels[after - 1].0
    }
}

/// Row ids in the order of arrival: morsel by morsel.
fn arrival(mut stretches: Vec<(u64, u32, u32)>, rows: usize) -> Vec<u32> {
    stretches.sort_unstable();
    let mut arrival = Vec::with_capacity(rows);
    stretches.iter().for_each(|&(_, first, end)| arrival.extend(first..end));
    debug_assert_eq!(arrival.len(), rows);
    arrival
}

/// The result of a sort.
struct Sorted {
    /// Rows that come out.
    rows: usize,
    /// Of these, rows that have been output.
    done: AtomicUsize,
    /// Whether a worker has begun to read.
    taken: AtomicBool,
    /// All of them, or none if they are in files.
    ordered: Ordered,
    _reservation: Reservation,
    /// Merges the rows in files, until a worker begins to read.
    merge: Mutex<Option<Merge>>,
}

/// The form of sorted rows.
pub(crate) enum Outcome {
    /// All rows are in memory, which is reserved.
    InMemory(Box<Ordered>, Reservation),
    /// Some rows are in files: this returns all in order.
    InFiles(Box<Merge>),
}

impl SortShared {
    /// A sort of the rows of `input` by `keys`, for the first `limit` of them.
    ///
    /// # Errors
    /// Those of compiling the keys.
    pub(crate) fn new(
        input: &[ColumnMeta],
        keys: &[SortKey],
        limit: Option<usize>,
        context: &QueryContext,
        recorder: &Arc<Recorder>,
    ) -> Result<SortShared> {
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
            // Numbered from the end of the ids, so that they are unique.
            let metas = program.outputs().iter().enumerate();
            stored.extend(
                metas.map(|(i, meta)| ColumnMeta { id: ColumnId(u32::MAX - i as u32), ..meta.clone() }),
            );
        }
        let is_key = (0..stored.len()).map(|column| order.iter().any(|key| key.column == column)).collect();
        Ok(SortShared {
            choice: Choice::new(&stored, is_key, context),
            spill: SortedRuns::new(&stored, &order, limit, context),
            recorder: recorder.clone(),
            context: context.clone(),
            limit,
            firsts: None,
            columns: input.len(),
            order_bytes: order::bytes_for_row(&stored, &order),
            stored,
            keys: order,
            program,
            runs: Mutex::default(),
            sorted: OnceLock::new(),
        })
    }

    /// The same, if only the first rows of groups are needed: the output is a superset of these.
    pub(crate) fn with_firsts(self, firsts: Option<Firsts>) -> SortShared {
        SortShared { firsts, ..self }
    }

    /// Sets the result of the sort.
    fn finish(&self, outcome: Outcome) -> Result<()> {
        let (rows, ordered, reservation, merge) = match outcome {
            Outcome::InMemory(ordered, reservation) => (ordered.order.len(), *ordered, reservation, None),
            Outcome::InFiles(merge) => {
                let none = Ordered { rows: Materialized::new(&[]), order: Vec::new() };
                (merge.rows(), none, Reservation::default(), Some(*merge))
            }
        };
        let (done, taken, merge) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(merge));
        let sorted = Sorted { rows, done, taken, ordered, _reservation: reservation, merge };
        self.sorted.set(sorted).map_err(|_| Error::internal("a sort was finished twice"))
    }
}

/// Combines a chunk's columns and its computed keys.
struct Stager {
    machine: Option<Machine>,
    staged: Chunk,
}

impl Stager {
    fn new(shared: &SortShared) -> Stager {
        Stager { machine: shared.program.clone().map(Machine::new), staged: Chunk::new() }
    }

    /// The chunk's columns, then the keys. To be cleared after use, so that the vectors are free again.
    fn stage(&mut self, chunk: &Chunk) -> Result<&mut Chunk> {
        self.staged.reset(chunk.len());
        chunk.groups().iter().for_each(|selection| {
            self.staged.push_group(selection.clone());
        });
        chunk
            .columns()
            .iter()
            .for_each(|column| self.staged.push_column(column.vector.clone(), column.group));
        if let Some(machine) = &mut self.machine {
            machine.project(chunk, &mut self.staged)?;
        }
        Ok(&mut self.staged)
    }
}

/// The sink of a sort.
pub struct SortSink {
    /// The shared state of its workers.
    pub shared: Arc<SortShared>,
}

impl Sink for SortSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        // Checked before there is a row.
        if let Some(spill) = &self.shared.spill {
            spill.spec().policy().set_memory_aside();
        }
        Ok(Box::new(SortWorker {
            stager: Stager::new(&self.shared),
            columns: (0..self.shared.stored.len()).collect(),
            run: self.shared.no_rows(0),
            written: 0,
            asking: Asking::new(self.shared.context.settings.chunk_rows),
            limits: None,
            shared: self.shared.clone(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.shared.program.as_deref().into_iter().collect()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        self.shared.finish(self.shared.order(tasks)?)
    }
}

impl SortShared {
    /// A worker without rows.
    fn no_rows(&self, morsel: u64) -> Run {
        Run {
            rows: Materialized::new(&self.stored),
            morsels: vec![(morsel, 0)],
            reservation: Reservation::new(&self.context.memory),
        }
    }

    /// Memory that rows need until they are in order.
    fn bytes(&self, rows: &Materialized) -> usize {
        rows.bytes() + rows.rows() * self.order_bytes
    }

    /// Sorts all rows of the workers, once.
    ///
    /// # Errors
    /// Those of writing; resource; interrupted.
    pub(crate) fn order(&self, tasks: &dyn Tasks) -> Result<Outcome> {
        let runs = std::mem::take(&mut *lock(&self.runs));
        match self.spill.as_ref().filter(|spill| spill.spec().is_forced() || spill.has_any()) {
            Some(spill) => Ok(Outcome::InFiles(Box::new(self.order_in_files(runs, spill, tasks)?))),
            None => self.order_in_memory(runs, tasks),
        }
    }

    /// Moves to the next rows of `merge`; false at the end.
    ///
    /// # Errors
    /// I/O, corruption; resource; interrupted.
    pub(crate) fn advance(&self, merge: &mut Merge) -> Result<bool> {
        let spill = self.spill.as_ref().ok_or_else(|| Error::internal("a merge without sorted runs"))?;
        merge.advance(spill.spec())
    }

    fn order_in_memory(&self, runs: Vec<Run>, tasks: &dyn Tasks) -> Result<Outcome> {
        let mut rows = Materialized::new(&self.stored);
        let mut reservation = Reservation::new(&self.context.memory);
        let mut stretches = Vec::new();
        for run in runs {
            stretches.extend(run.stretches((rows.segments() as u32) << 16));
            reservation.merge(run.reservation);
            rows.absorb(run.rows);
        }
        self.choice.report(&rows).into_iter().for_each(|report| self.recorder.note(report));
        reservation.resize(self.bytes(&rows))?;
        let mut order = order::order(&rows, &self.keys, arrival(stretches, rows.rows()), Some(tasks))?;
        order.truncate(self.limit.unwrap_or(usize::MAX));
        reservation.resize(rows.bytes() + order.capacity() * 4)?;
        Ok(Outcome::InMemory(Box::new(Ordered { rows, order }), reservation))
    }

    /// Records in the profile what was written to files, when all rows have been read.
    pub fn note_files(&self) {
        let report = self.spill.as_ref().and_then(SortedRuns::report);
        report.into_iter().for_each(|report| self.recorder.note(report));
    }

    fn order_in_files(&self, runs: Vec<Run>, spill: &SortedRuns, tasks: &dyn Tasks) -> Result<Merge> {
        in_parallel(tasks, runs, &|_, run| {
            let run = std::mem::replace(run, self.no_rows(0));
            self.write(run, spill)
        })?;
        spill.merge()
    }

    /// Writes a worker's rows as a sorted run.
    fn write(&self, run: Run, spill: &SortedRuns) -> Result<()> {
        let stretches = run.stretches(0).collect();
        let alone = Alone(&self.context);
        let order = order::order(&run.rows, &self.keys, arrival(stretches, run.rows.rows()), Some(&alone))?;
        let columns: Vec<usize> = (0..self.stored.len()).collect();
        let is_first = spill.write(&order, |ids, vectors| {
            let (morsels, stored) = vectors.split_last_mut().expect("the morsel is the last column");
            run.rows.gather_all(&columns, ids, stored);
            let morsels = morsels.begin_flat::<u64>(ids.len());
            morsels.iter_mut().zip(ids).for_each(|(morsel, &id)| *morsel = run.morsel_of(id));
        })?;
        if let Some(report) = self.choice.report(&run.rows).filter(|_| is_first) {
            self.recorder.note(format!("in the first sorted run, {report}"));
        }
        Ok(())
    }
}

/// The id after the last row, of rows that were only appended.
fn end_of(rows: &Materialized) -> u32 {
    u32::try_from(rows.rows()).expect("row ids have 32 bits")
}

struct SortWorker {
    shared: Arc<SortShared>,
    stager: Stager,
    /// 0, 1, 2, …
    columns: Vec<usize>,
    run: Run,
    /// Sorted runs that it has written.
    written: usize,
    /// When rows that are not among the first of their groups are dropped, and which are never kept.
    asking: Asking,
    limits: Option<Limits>,
}

impl SortWorker {
    /// Drops rows that are not among the first of their groups.
    fn prune(&mut self, firsts: &Firsts) -> Result<()> {
        let run = &mut self.run;
        let (kept, last) = firsts.of(&run.rows, &self.shared.keys)?;
        let shared = &self.shared;
        if self.limits.is_none() {
            let collide = shared.context.settings.hash_collisions;
            self.limits = Limits::new(firsts, &shared.keys, &shared.stored, collide);
        }
        self.limits.take_if(|limits| !limits.learn(&run.rows, &last));
        self.asking.answered(run.rows.rows(), kept.len());
        if kept.len() == run.rows.rows() {
            return Ok(());
        }
        // Each morsel now begins after the kept rows of earlier morsels.
        for (_, first) in &mut run.morsels {
            *first = kept.partition_point(|id| *id < *first) as u32;
        }
        run.rows = firsts::only(&run.rows, &kept);
        Ok(())
    }

    /// Reserves memory for the rows, and for ordering them if they may be written; or writes them. Before the
    /// end, a few rows may remain without.
    fn reserve(&mut self, at_end: bool) -> Result<()> {
        let (run, shared) = (&mut self.run, &self.shared);
        let limits = self.limits.as_ref().map_or(0, Limits::bytes);
        let Some(spill) = &shared.spill else { return run.reservation.resize(limits + run.rows.bytes()) };
        let (rows, bytes) = (run.rows.rows(), limits + shared.bytes(&run.rows));
        let reserved = run.reservation.resize(bytes);
        let lacks = reserved.is_err() && (at_end || bytes >= LEAST_RUN);
        if lacks || spill.is_due(rows, bytes, self.written) {
            let morsel = run.morsels.last().map_or(0, |&(morsel, _)| morsel);
            let full = std::mem::replace(run, shared.no_rows(morsel));
            shared.write(full, spill)?;
            self.written += 1;
        }
        Ok(())
    }
}

impl SinkWorker for SortWorker {
    fn start_morsel(&mut self, morsel: u64) {
        self.run.morsels.push((morsel, end_of(&self.run.rows)));
    }

    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let staged = self.stager.stage(chunk)?;
        let before = self.run.rows.rows();
        match self.limits.as_mut().and_then(|limits| limits.pick(staged)) {
            Some([]) => {}
            picks => self.run.rows.append(staged, &self.columns, picks),
        }
        staged.reset(0);
        let appended = self.run.rows.rows() - before;
        self.shared.choice.grown(&mut self.run.rows, appended);
        let shared = self.shared.clone();
        if let Some(firsts) = shared.firsts.as_ref().filter(|_| self.asking.is_due(self.run.rows.rows())) {
            self.prune(firsts)?;
        }
        self.reserve(false)?;
        Ok(Flow::Continue)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.written == 0 {
            self.shared.choice.complete(&mut self.run.rows);
        }
        self.reserve(true)?;
        if !self.run.rows.is_empty() {
            lock(&self.shared.runs).push(self.run);
        }
        Ok(())
    }
}

struct SortSource {
    shared: Arc<SortShared>,
}

impl Source for SortSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let metas = &self.shared.stored[..self.shared.columns];
        let vectors = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        let columns = (0..metas.len()).collect();
        Ok(Box::new(SortReader {
            shared: self.shared.clone(),
            columns,
            vectors,
            owns: false,
            next: 0,
            merge: None,
            given: 0,
        }))
    }

    fn progress(&self) -> Option<f64> {
        let sorted = self.shared.sorted.get()?;
        Some(sorted.done.load(Ordering::Relaxed) as f64 / sorted.rows.max(1) as f64)
    }

    fn end(&self) {
        self.shared.note_files();
    }
}

struct SortReader {
    shared: Arc<SortShared>,
    /// 0, 1, 2, …
    columns: Vec<usize>,
    vectors: Vec<Vector>,
    /// True if this is the worker that reads.
    owns: bool,
    /// Rows that it has output.
    next: usize,
    /// Merges the rows in files.
    merge: Option<Merge>,
    /// How many of the rows in memory have been output.
    given: usize,
}

impl SourceWorker for SortReader {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let sorted = self.shared.sorted.get().ok_or_else(|| Error::internal("a sort is not finished"))?;
        if !self.owns {
            self.owns = !sorted.taken.swap(true, Ordering::Relaxed);
            self.merge = lock(&sorted.merge).take_if(|_| self.owns);
        }
        if !self.owns || self.next == sorted.rows {
            self.merge = None;
            return Ok(false);
        }
        let ordered = match (&mut self.merge, &self.shared.spill) {
            (Some(merge), Some(spill)) => {
                if self.given == merge.ordered().order.len() {
                    if !merge.advance(spill.spec())? {
                        return Err(Error::internal("sorted runs have too few rows"));
                    }
                    self.given = 0;
                }
                merge.ordered()
            }
            _ => &sorted.ordered,
        };
        let ids = &ordered.order[self.given..];
        let ids = &ids[..ids.len().min(self.shared.context.settings.chunk_rows)];
        self.given += ids.len();
        self.next += ids.len();
        sorted.done.store(self.next, Ordering::Relaxed);
        chunk.reset(ids.len());
        let dense = chunk.push_group(Selection::ALL);
        ordered.rows.gather_all(&self.columns, ids, &mut self.vectors);
        self.vectors.iter().for_each(|vector| chunk.push_column(vector.clone(), dense));
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.next as u64
    }
}
