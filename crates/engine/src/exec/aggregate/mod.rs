//! Aggregation and `DISTINCT`: rows in, one row per group out.
//!
//! ```text
//! chunk → program (keys, arguments, filters) → table (group ids) → feeds (rows that count) → states
//! ```
//! 1. [`layout`] decomposes the calls, once.
//! 2. Each worker folds its chunks into a [`partial`]: a [`table`](crate::exec::group_table) finds the rows'
//!    group ids, or where groups are few the marks of their positions
//!    ([`marked`](crate::exec::group_table::marked)), then each [`state`] takes the whole chunk in one loop.
//!    Without keys there are no ids at all and the loops are plain sums; counts, sums and extremes of integer
//!    columns are then taken from the blocks of the table itself ([`Stored`]).
//! 3. A hashed partial that reaches [`MOST_GROUPS`] groups is put aside, so that its table stays in the
//!    cache, and a new one begins. Where groups do not repeat, looking them up is wasted: after the first
//!    [`TRIAL_ROWS`] rows, and again whenever a partial is put aside, a worker that has merged hardly any
//!    rows lets [`BYPASS_ROWS`] rows wait as they are, by radix partition ([`spill`]).
//! 4. Where memory is short, rows of groups that are not known yet wait in temporary files.
//! 5. [`finish`] merges all partials into one. If there are many groups, they are merged partition by
//!    partition, in parallel, when they are read ([`late`]).
//! 6. The source reads keys and [`result`]s from the parts.
//!
//! Sums of integers and decimals are exact, whatever the order. Sums of floats depend on it in their last
//! bits. Not here: groups that are known to come sorted.

pub mod deferred;
pub mod extreme;
pub mod feed;
pub mod finish;
pub mod late;
pub mod layout;
pub mod part;
pub mod partial;
pub mod result;
pub mod rows;
pub mod spill;
pub mod state;
#[cfg(test)]
mod tests;
pub mod writer;

use crate::context::QueryContext;
use crate::exec::group_table::{GroupTable, MOST_GROUPS, Partition};
use crate::exec::operator::{Blocking, Flow, Sink, SinkWorker, Tasks};
use crate::exec::profile::Recorder;
use crate::memory::Reservation;
use crate::relation::{Source, SourceWorker};
use crate::sync::{Mutex, OnceLock, lock};
#[cfg(doc)]
use entasis_vector::Stored;
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, Error, Result, Selection, Vector};
use finish::Merged;
use layout::AggregateLayout;
use part::Morsel;
use partial::Partial;
use spill::{Known, Spill};
use std::sync::Arc;
use writer::Writer;

/// Rows after which a worker first asks whether groups repeat at all.
pub const TRIAL_ROWS: usize = 32 << 10;
/// Bytes that a chunk of results may have before memory is reserved for it.
const WIDE: usize = 1 << 20;
/// Rows that are not looked up after looking up has not paid.
pub const BYPASS_ROWS: usize = 1 << 20;

/// The operator for an aggregation that works like this.
pub(crate) fn aggregate(
    layout: AggregateLayout,
    expected_groups: f64,
    context: &QueryContext,
    recorder: &Arc<Recorder>,
) -> Blocking {
    let shared = Arc::new(Shared {
        spill: Spill::new(&layout, context).map(Arc::new),
        layout,
        context: context.clone(),
        recorder: recorder.clone(),
        expected_groups: expected_groups.clamp(0.0, u32::MAX as f64) as usize,
        partials: Mutex::default(),
        merged: OnceLock::new(),
    });
    Blocking {
        sink: Arc::new(AggregateSink { shared: shared.clone() }),
        source: Arc::new(AggregateSource { shared }),
    }
}

/// What returns the rows of `input` without duplicates in `keys`, and only these columns.
///
/// # Errors
/// Internal, if a key is not a column of `input`.
pub(crate) fn distinct(input: &[ColumnMeta], keys: &[ColumnId]) -> Result<AggregateLayout> {
    let group = |&id: &ColumnId| {
        let meta = input.iter().find(|meta| meta.id == id);
        let meta = meta.ok_or_else(|| Error::internal(format!("no column {id} to be distinct in")))?;
        Ok((id, Expr::column(id, meta.ty)))
    };
    let groups = keys.iter().map(group).collect::<Result<Vec<_>>>()?;
    AggregateLayout::new(input, &groups, &[])
}

struct Shared {
    layout: AggregateLayout,
    context: QueryContext,
    /// Receives how groups were found.
    recorder: Arc<Recorder>,
    /// An estimate of the groups.
    expected_groups: usize,
    partials: Mutex<Vec<Partial>>,
    /// Takes rows for which there is no memory, if they may wait.
    spill: Option<Arc<Spill>>,
    /// All groups, once the input has ended.
    merged: OnceLock<Merged>,
}

impl Shared {
    fn new_partial(&self) -> Result<Partial> {
        let settings = &self.context.settings;
        // An empty table takes a small part of the free memory; one with many groups grows.
        let most = self.context.memory.free() / settings.threads.max(1) / late::ROOM_OF_GROUP;
        let table =
            GroupTable::new(&self.layout.keys, self.expected_groups.min(most), settings.hash_collisions);
        Partial::new(&self.layout, table, &self.context)
    }
}

struct AggregateSink {
    shared: Arc<Shared>,
}

impl Sink for AggregateSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        // Before any worker has taken groups.
        if let Some(spill) = &self.shared.spill {
            spill.set_memory_aside();
        }
        Ok(Box::new(AggregateWorker {
            shared: self.shared.clone(),
            machine: self.shared.layout.program.clone().map(Machine::new),
            computed: Chunk::new(),
            partial: self.shared.new_partial()?,
            morsel: 0,
            aside: 0,
            waiting: None,
            known: None,
            bypass: 0,
            tried: false,
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.shared.layout.program.as_deref().into_iter().collect()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        let mut partials = std::mem::take(&mut *lock(&self.shared.partials));
        if partials.is_empty() {
            partials.push(self.shared.new_partial()?);
        }
        let shared = &self.shared;
        let found = describe(&partials);
        let merged = Merged::new(&shared.layout, &shared.context, partials, shared.spill.as_ref(), tasks)?;
        shared.recorder.note(found);
        shared.merged.set(merged).map_err(|_| Error::internal("an aggregation was finished twice"))
    }
}

/// How the groups of `partials` were found.
fn describe(partials: &[Partial]) -> String {
    let mut kinds: Vec<(&str, usize, usize)> = Vec::new();
    for partial in partials {
        let kind = partial.table.kind();
        match kinds.iter_mut().find(|(name, ..)| *name == kind) {
            Some((_, tables, groups)) => (*tables, *groups) = (*tables + 1, *groups + partial.table.groups()),
            None => kinds.push((kind, 1, partial.table.groups())),
        }
    }
    let text = |(kind, tables, groups): &(&str, usize, usize)| {
        format!("{} {kind} with {}", count(*tables, "table"), count(*groups, "group"))
    };
    kinds.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

struct AggregateWorker {
    shared: Arc<Shared>,
    machine: Option<Machine>,
    /// Keys, arguments, filters.
    computed: Chunk,
    partial: Partial,
    /// The morsel of the rows that come.
    morsel: u64,
    /// Bytes of partials that were put aside.
    aside: usize,
    /// Rows that wait.
    waiting: Option<Writer>,
    /// Memory is short: from now on rows of unknown groups wait.
    known: Option<Known>,
    /// Rows that are still to pass without looking groups up.
    bypass: usize,
    /// Whether the first trial is over.
    tried: bool,
}

impl AggregateWorker {
    /// Puts the partial aside if it is large, and decides how the next one works.
    fn rotate(&mut self) -> Result<()> {
        let layout = &self.shared.layout;
        let (rows, groups) = (self.partial.rows, self.partial.table.groups());
        if layout.merges_whole() || !self.partial.table.is_hashed() {
            return Ok(());
        }
        let trial = !self.tried && rows >= TRIAL_ROWS;
        self.tried |= trial;
        // This many draws repeat so rarely only if there are at least sixteen times as many groups.
        let hopeless = trial && groups >= rows / 32 * 31;
        if groups < MOST_GROUPS && !hopeless {
            return Ok(());
        }
        if rows < groups + groups / 4 && self.shared.spill.is_some() {
            self.bypass = BYPASS_ROWS;
        }
        let full = std::mem::replace(&mut self.partial, self.shared.new_partial()?);
        self.aside += full.reservation.bytes();
        lock(&self.shared.partials).push(full);
        Ok(())
    }

    /// Folds in the computed rows, or lets them wait.
    fn take(&mut self) -> Result<()> {
        if self.partial.rows == 0 {
            self.partial.first_morsel = self.morsel;
        }
        let shared = &self.shared;
        let (layout, rows) = (&shared.layout, self.computed.len());
        let reserved = if let Some(known) = &mut self.known {
            let waiting = self.waiting.as_mut().expect("made when memory ran short");
            return known.take(layout, &mut self.partial, &mut self.computed, waiting);
        } else if self.bypass > 0 {
            self.bypass = self.bypass.saturating_sub(rows);
            let spill = shared.spill.as_ref().expect("rows may wait");
            let waiting = self.waiting.get_or_insert_with(|| spill.writer(&spill.store, Partition::ALL));
            self.partial.take_none(&self.computed, waiting)?;
            waiting.reserve()
        } else {
            match (self.partial.make_room(rows), shared.spill.as_ref().filter(|spill| spill.may_write())) {
                (Err(_), Some(spill)) => return self.take_known(&spill.clone()),
                (room, _) => room?,
            }
            self.partial.take(layout, &self.computed)?;
            self.partial.reserve()
        };
        let Some(spill) = shared.spill.as_ref().filter(|spill| spill.may_write()) else { return reserved };
        let waiting = self.waiting.as_ref().map_or(0, Writer::bytes);
        let bytes = self.aside + waiting + self.partial.reservation.bytes();
        if reserved.is_err() || spill.is_short(&self.partial, bytes) {
            self.know(&spill.clone())?;
        }
        Ok(())
    }

    /// Creates no more groups from now on: rows of others wait.
    fn know(&mut self, spill: &Arc<Spill>) -> Result<()> {
        self.known = Some(Known::new(&self.shared.layout, &mut self.partial));
        let waiting = self.waiting.get_or_insert_with(|| spill.writer(&spill.store, Partition::ALL));
        waiting.write_from_now()
    }

    /// Folds in those of the computed rows whose groups are known, and from now on only such.
    fn take_known(&mut self, spill: &Arc<Spill>) -> Result<()> {
        self.know(spill)?;
        let (known, waiting) = (self.known.as_mut(), self.waiting.as_mut());
        let (known, waiting) = known.zip(waiting).expect("just made");
        known.take(&self.shared.layout, &mut self.partial, &mut self.computed, waiting)
    }
}

impl SinkWorker for AggregateWorker {
    fn start_morsel(&mut self, morsel: u64) {
        self.morsel = morsel;
    }

    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        if let (Some(stored), Some(columns)) = (chunk.stored(), &self.shared.layout.stored) {
            self.partial.fold(&self.shared.layout, stored, columns, chunk.len())?;
            return Ok(Flow::Continue);
        }
        self.computed.reset(chunk.len());
        if let Some(machine) = &mut self.machine {
            machine.project(chunk, &mut self.computed)?;
        }
        self.take()?;
        self.computed.reset(0);
        if self.known.is_none() && self.bypass == 0 {
            self.rotate()?;
        }
        Ok(Flow::Continue)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        if let Some(waiting) = self.waiting {
            waiting.finish()?;
        }
        if self.partial.rows > 0 {
            lock(&self.shared.partials).push(self.partial);
        }
        Ok(())
    }
}

struct AggregateSource {
    shared: Arc<Shared>,
}

impl Source for AggregateSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let layout = &self.shared.layout;
        let width: usize = layout.output.iter().map(|meta| meta.physical.width()).sum();
        let mut memory = Reservation::new(&self.shared.context.memory);
        if width * CHUNK_ROWS >= WIDE {
            memory.resize(width * CHUNK_ROWS)?;
        }
        Ok(Box::new(AggregateReader {
            _memory: memory,
            vectors: layout.output.iter().map(|meta| Vector::new(meta.physical)).collect(),
            shared: self.shared.clone(),
            morsel: None,
            number: 0,
        }))
    }

    fn progress(&self) -> Option<f64> {
        self.shared.merged.get().map(Merged::progress)
    }

    fn pieces(&self) -> Option<usize> {
        self.shared.merged.get().and_then(Merged::pieces)
    }

    fn has_order(&self) -> bool {
        self.shared.merged.get().is_some_and(Merged::has_order)
    }

    fn end(&self) {
        if let Some(merged) = self.shared.merged.get() {
            self.shared.recorder.note(merged.report());
        }
    }
}

struct AggregateReader {
    shared: Arc<Shared>,
    vectors: Vec<Vector>,
    /// The memory of many columns.
    _memory: Reservation,
    /// What is left of the morsel.
    morsel: Option<Morsel>,
    number: u64,
}

impl SourceWorker for AggregateReader {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let merged =
            self.shared.merged.get().ok_or_else(|| Error::internal("an aggregation is not finished"))?;
        let layout = &self.shared.layout;
        if self.morsel.as_ref().is_none_or(|morsel| morsel.groups.is_empty()) {
            // Its memory first, then the next one's.
            self.morsel = None;
            self.vectors.iter_mut().for_each(|vector| *vector = Vector::new(vector.physical()));
            self.morsel = merged.next(layout)?;
        }
        let Some(morsel) = &mut self.morsel else { return Ok(false) };
        self.number = morsel.number;
        let groups = morsel.next(self.shared.context.settings.chunk_rows);
        let (part, start, rows) = (&morsel.part, groups.start, groups.len());
        chunk.reset(rows);
        let dense = chunk.push_group(Selection::ALL);
        let (keys, results) = self.vectors.split_at_mut(layout.keys.len());
        for (column, vector) in keys.iter_mut().enumerate() {
            part.keys.read(column, start >> 16, start & 0xffff, rows, vector);
            chunk.push_column(vector.clone(), dense);
        }
        for (spec, vector) in layout.results.iter().zip(results) {
            result::write_result(spec, &part.states, start, rows, vector)?;
            chunk.push_column(vector.clone(), dense);
        }
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.number
    }
}
