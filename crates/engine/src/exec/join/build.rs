//! The build side of a join: a sink that keeps rows and builds the table when all have arrived.
//!
//! Rows that do not fit into memory go to temporary files ([`partitioned`](super::partitioned)).

use super::build_spec::BuildSpec;
use super::limits::JoinLimit;
use super::partitioned::{Partitioning, SplitRows, no_ids};
use super::swap::Way;
use super::table::{BuildStats, bytes_at_most};
use super::two_pass::TwoPass;
use super::{Built, BuiltSlot, Computed, ComputedWorker};
use crate::context::QueryContext;
use crate::exec::key_filter::{BuildInput, FilterSlot, KeyFilter};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::exec::profile::Recorder;
use crate::exec::temp_compression::Choice;
use crate::memory::Reservation;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use crate::threshold::Threshold;
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{Chunk, Error, ErrorKind, Result};
use std::sync::Arc;

/// The sink of a build side.
pub(crate) struct BuildSink {
    /// Keys, then payload, computed from the input's columns.
    pub columns: Computed,
    /// The columns as they are kept; widened if the probe side's keys are wider.
    pub kept: Vec<ColumnMeta>,
    /// How the table is built from the rows.
    pub spec: BuildSpec,
    /// Where the join filter for the probe side is published.
    pub filter: Option<Arc<FilterSlot>>,
    /// What else is published for it.
    pub limits: Vec<(JoinLimit, Arc<Threshold>)>,
    /// Where the finished build side goes.
    pub built: BuiltSlot,
    /// What the workers have kept.
    pub parts: Arc<Mutex<Vec<Kept>>>,
    /// Segments of all workers' rows that are not by partition.
    pub segments: Arc<AtomicUsize>,
    /// What the first reading has counted, if there was one.
    pub two_pass: Option<Arc<TwoPass>>,
    /// The partitions, if rows may be partitioned.
    pub partitioning: Option<Arc<Partitioning>>,
    /// Decides whether the rows become tuples.
    pub choice: Arc<Choice>,
    /// Which of the two ways of the join this belongs to, if its sides may be swapped.
    pub way: Option<Way>,
    /// Notes the reasons of decisions.
    pub recorder: Arc<Recorder>,
    /// Settings and memory.
    pub context: QueryContext,
}

/// What one worker has kept.
pub(crate) enum Kept {
    /// All rows together, and their memory.
    Whole(Materialized, Reservation),
    /// Rows by partition.
    Split(SplitRows),
}

impl Sink for BuildSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        if let Some(worker) = self.two_pass.as_ref().and_then(|two_pass| two_pass.worker(&self.columns)) {
            return Ok(worker);
        }
        let rows = match &self.partitioning {
            Some(partitioning) if partitioning.is_forced() => Kept::Split(partitioning.build_rows()),
            _ => Kept::Whole(Materialized::new(&self.kept), Reservation::new(&self.context.memory)),
        };
        // Free memory is measured before the first row is kept.
        if let Some(partitioning) = &self.partitioning {
            partitioning.set_memory_aside();
        }
        Ok(Box::new(Worker {
            columns: self.columns.worker(),
            rows,
            parts: self.parts.clone(),
            partitioning: self.partitioning.clone(),
            choice: self.choice.clone(),
            segments: (self.segments.clone(), 0),
            spec: self.spec.clone(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.columns.program().into_iter().collect()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        self.complete(tasks).map_err(|error| with_way_out(error, &self.spec))
    }
}

impl BuildSink {
    /// Builds the table from the rows that the workers have kept.
    fn complete(&self, tasks: &dyn Tasks) -> Result<()> {
        if let Some(Way::Swapped(swap)) = &self.way
            && !swap.switch().is_turned()
        {
            return Ok(());
        }
        if let Some(two_pass) = &self.two_pass
            && let Some(built) = two_pass.finish(&self.recorder, tasks)?
        {
            return self.built.set(built).map_err(|_| Error::internal("a join was built twice"));
        }
        let parts = std::mem::take(&mut *lock(&self.parts));
        if let Some(partitioning) = &self.partitioning
            && parts.iter().any(|part| matches!(part, Kept::Split(_)))
        {
            return self.finish_split(partitioning, parts, self.filter.as_deref(), tasks);
        }
        let (rows, mut memory) = self.put_together(parts)?;
        let tuples = self.choice.report(&rows);
        if let Some(Way::AsPlanned(swap)) = &self.way
            && let Some(reason) = swap.reason(rows.rows())
        {
            self.recorder.note(reason);
            tuples.into_iter().for_each(|report| self.recorder.note(report));
            return swap.turn(rows, memory);
        }

        let published = self.limits.iter().filter_map(|(limit, threshold)| limit.publish(&rows, threshold));
        published.for_each(|note| self.recorder.note(note));
        let expected = Way::expected(self.way.as_ref(), self.spec.expected);
        let spec = BuildSpec { expected, ..self.spec.clone() };
        let mut facts = spec.facts(&rows, tasks)?;
        self.publish_filter(&spec, &rows, &mut facts, tasks)?;
        if let Some(partitioning) = &self.partitioning
            && partitioning.choose(&mut facts, &rows, &mut memory, tasks)?
        {
            let parts = partitioning.split_all(rows, memory, tasks)?.into_iter().map(Kept::Split).collect();
            // The filter has been published already.
            return self.finish_split(partitioning, parts, None, tasks);
        }
        if let Some(partitioning) = &self.partitioning
            && !spec.fits(&facts, &rows, &mut memory, tasks)?
        {
            return self.finish_split(
                partitioning,
                vec![Kept::Whole(rows, memory)],
                self.filter.as_deref(),
                tasks,
            );
        }
        let (built, reason) = spec.make(rows, &facts, memory, &self.context.memory, tasks)?;
        self.recorder.note(reason);
        tuples.into_iter().for_each(|report| self.recorder.note(report));
        self.built.set(built).map_err(|_| Error::internal("a join was built twice"))
    }

    /// The rows of all workers, none of which has split them, and their reservation.
    fn put_together(&self, parts: Vec<Kept>) -> Result<(Materialized, Reservation)> {
        let mut rows = Materialized::new(&self.kept);
        // The workers' reservations are held until the whole has been reserved.
        let mut reservations = Vec::new();
        for part in parts {
            if let Kept::Whole(part, memory) = part {
                rows.absorb(part);
                reservations.push(memory);
            }
        }
        drop(reservations);
        let mut memory = Reservation::new(&self.context.memory);
        memory.resize(rows.bytes())?;
        Ok((rows, memory))
    }

    /// Publishes a filter of the keys of `rows`, if one is wanted, and notes its bits in `facts`.
    fn publish_filter(
        &self,
        spec: &BuildSpec,
        rows: &Materialized,
        facts: &mut BuildStats,
        tasks: &dyn Tasks,
    ) -> Result<()> {
        let Some(slot) = &self.filter else { return Ok(()) };
        let null_equals_null = &spec.null_equals_null;
        let hash_collisions = self.context.settings.hash_collisions;
        let input = BuildInput { rows, null_equals_null, hash_collisions, tasks };
        let kind = self.context.settings.join_filter;
        let spared = bytes_at_most(spec.table, rows.id_space());
        if let Some((filter, reason)) =
            slot.fill(&input, facts.bounds.as_deref(), kind, &self.context.memory, spared)?
        {
            facts.bits = KeyFilter::bits(filter);
            self.recorder.note(reason);
        }
        Ok(())
    }

    /// Like `complete`, if partitions may be in files.
    fn finish_split(
        &self,
        partitioning: &Arc<Partitioning>,
        parts: Vec<Kept>,
        slot: Option<&FilterSlot>,
        tasks: &dyn Tasks,
    ) -> Result<()> {
        let mut splits = Vec::new();
        for part in parts {
            splits.push(match part {
                Kept::Split(rows) => rows,
                Kept::Whole(whole, memory) => {
                    let mut rows = partitioning.build_rows();
                    rows.take_all(whole, memory)?;
                    rows
                }
            });
        }
        let (rows, memory) = partitioning.complete(splits, slot, tasks)?;
        let facts = self.spec.facts(&rows, tasks)?;
        let (built, reason) = self.spec.make(rows, &facts, memory, &self.context.memory, tasks)?;
        if !built.rows.is_empty() || !partitioning.is_active() {
            self.recorder.note(reason);
        }
        let any = built.any || partitioning.is_active();
        let built = Built { any, has_null_keys: partitioning.has_null_keys(), ..built };
        self.built.set(built).map_err(|_| Error::internal("a join was built twice"))
    }
}

/// `error`, with a hint if a setting keeps joins from spilling.
fn with_way_out(error: Error, spec: &BuildSpec) -> Error {
    match error.kind() {
        ErrorKind::Resource if spec.lookup.is_some_and(|lookup| lookup.nearest) => {
            error.with_context("the right input of an ASOF JOIN does not fit into memory")
        }
        ErrorKind::Resource if spec.settings.temp_directory.is_empty() => error.with_hint(
            "SET temp_directory = '…' so that the join can spill, or raise memory_limit, or select fewer rows or columns",
        ),
        _ => error,
    }
}

struct Worker {
    columns: ComputedWorker,
    rows: Kept,
    parts: Arc<Mutex<Vec<Kept>>>,
    partitioning: Option<Arc<Partitioning>>,
    choice: Arc<Choice>,
    /// Segments of all workers' rows, and own ones among them.
    segments: (Arc<AtomicUsize>, usize),
    spec: BuildSpec,
}

impl SinkWorker for Worker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let (columns, positions) = self.columns.compute(chunk)?;
        let mut is_over = false;
        match &mut self.rows {
            Kept::Split(rows) => {
                let taken = rows.take(columns, positions);
                self.columns.release();
                taken?;
            }
            Kept::Whole(rows, memory) => {
                rows.append(columns, positions, None);
                self.columns.release();
                self.choice.grown(rows, chunk.len());
                let bytes = rows.bytes();
                if bytes != memory.bytes() {
                    let reserved = memory.resize(bytes);
                    match &self.partitioning {
                        None => reserved.map_err(|error| with_way_out(error, &self.spec))?,
                        Some(partitioning) => is_over = reserved.is_err() || partitioning.is_short(bytes),
                    }
                }
                let (all, own) = (&self.segments.0, rows.segments());
                if own > self.segments.1 {
                    let more = own - std::mem::replace(&mut self.segments.1, own);
                    if all.fetch_add(more, Ordering::Relaxed) + more > self.spec.settings.most_segments {
                        is_over = true;
                    }
                }
            }
        }
        match (is_over, &self.partitioning) {
            (false, _) => Ok(Flow::Continue),
            (true, Some(_)) => self.split(),
            (true, None) => Err(with_way_out(no_ids(), &self.spec)),
        }
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if let Kept::Whole(rows, memory) = &mut self.rows {
            self.choice.complete(rows);
            // Tuples are smaller; otherwise the size is what has been reserved.
            if rows.bytes() != memory.bytes() {
                memory.resize(rows.bytes())?;
            }
        }
        lock(&self.parts).push(self.rows);
        Ok(())
    }
}

impl Worker {
    /// From now on, keeps rows by partition.
    fn split(&mut self) -> Result<Flow> {
        let Some(partitioning) = &self.partitioning else { return Ok(Flow::Continue) };
        let Kept::Whole(whole, memory) =
            std::mem::replace(&mut self.rows, Kept::Split(partitioning.build_rows()))
        else {
            return Ok(Flow::Continue);
        };
        self.segments.0.fetch_sub(self.segments.1, Ordering::Relaxed);
        if let Kept::Split(rows) = &mut self.rows {
            rows.take_all(whole, memory)?;
        }
        Ok(Flow::Continue)
    }
}
