//! The join phase: joins partitions in files or in memory after the probe side has ended.
//!
//! [`PartitionSource`] is a source of partition numbers, one per chunk; [`JoinPhase`] is the operator that
//! pushes the joined rows of each. One worker joins a partition from its first build row to its last output
//! row, unless no more rows are wanted or another worker has failed. Workers wait for each other's memory: a
//! partition is split again, or taken in blocks, only if it does not fit alone.

use super::shared::{Partitioning, ProbeSide};
use super::split::{PARTITIONS, Room, Split, Taken, marks};
use super::states::States;
use super::turns::Turn;
use crate::exec::join::buffered_columns::BufferedColumns;
use crate::exec::join::probe::Probe;
use crate::exec::join::tuning::{DEEPEST, HARDLY_SMALLER};
use crate::exec::join::unmatched::BuildRows;
use crate::exec::join::{BuildTail, Built, BuiltSlot, Computed, ProbeOutput};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Alone, Flow, Operator, OperatorFactory, Push};
use crate::exec::spill::store::{Medium, Reader, Store, Stored};
use crate::memory::Reservation;
use crate::relation::{Source, SourceWorker};
use crate::sync::{AtomicUsize, Ordering};
use entasis_vector::{Chunk, Error, Result, Selection, Vector};
use std::sync::Arc;

/// Rows by which blocks grow.
const STEP_ROWS: usize = 256;

/// The source: numbers of partitions.
pub(crate) struct PartitionSource {
    /// The partitions of the join.
    pub partitioning: Arc<Partitioning>,
    /// The next number.
    pub next: Arc<AtomicUsize>,
}

impl Source for PartitionSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(Numbers { partitioning: self.partitioning.clone(), next: self.next.clone(), last: 0 }))
    }

    fn progress(&self) -> Option<f64> {
        Some(self.next.load(Ordering::Relaxed) as f64 / self.partitioning.marks.len() as f64)
    }

    fn pieces(&self) -> Option<usize> {
        let is_active = self.partitioning.is_active();
        Some(if is_active {
            (0..self.partitioning.marks.len()).filter(|&p| self.partitioning.is_marked(p)).count()
        } else {
            0
        })
    }
}

struct Numbers {
    partitioning: Arc<Partitioning>,
    next: Arc<AtomicUsize>,
    last: usize,
}

impl SourceWorker for Numbers {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        loop {
            let partition = self.next.fetch_add(1, Ordering::Relaxed);
            if partition >= self.partitioning.marks.len() {
                return Ok(false);
            }
            if self.partitioning.is_marked(partition) {
                self.last = partition;
                chunk.reset(1);
                let group = chunk.push_group(Selection::ALL);
                chunk.push_column(Vector::from_slice(&[partition as u64]), group);
                return Ok(true);
            }
        }
    }

    fn morsel(&self) -> u64 {
        self.last as u64
    }
}

/// The operator that joins partitions.
#[derive(Clone)]
pub(crate) struct JoinPhase {
    /// The partitions.
    pub partitioning: Arc<Partitioning>,
    /// How rows are probed; its build side is not used.
    pub probe: Probe,
    /// The build tail; its build side is not used either. `None` if the join has no build tail.
    pub rest: Option<BuildRows>,
}

impl OperatorFactory for JoinPhase {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Worker { late: self.clone(), states: Vec::new() }))
    }

    fn end(&self) {
        self.partitioning.note_end();
    }
}

/// The rows of both sides of a partition.
struct Piece<'a> {
    build: (&'a Store, Stored),
    probe: (&'a Store, Stored),
    depth: u32,
    /// The partition must not be split again.
    is_last: bool,
}

/// Reads probe rows as chunks with all columns of the probe side. Columns that are not read are NULL.
struct ProbeReader<'a> {
    reader: Reader<'a>,
    kept: Arc<BufferedColumns>,
    stored: Chunk,
}

impl<'a> Piece<'a> {
    fn probe_reader(&self, side: &ProbeSide) -> ProbeReader<'a> {
        let (store, stored) = &self.probe;
        ProbeReader { reader: store.reader(stored), kept: side.kept.clone(), stored: Chunk::new() }
    }
}

impl ProbeReader<'_> {
    /// See [`Reader::next`].
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.reset(0);
        if !self.reader.next(&mut self.stored)? {
            return Ok(false);
        }
        let columns = self.stored.columns().iter().map(|column| &column.vector);
        self.kept.fill(chunk, self.stored.len(), columns);
        Ok(true)
    }
}

struct Worker {
    late: JoinPhase,
    /// The states of the probe rows of a partition that is joined in blocks.
    states: Vec<u8>,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        let partition = chunk.vector(0).values::<u64>()[0] as usize;
        let partitioning = self.late.partitioning.clone();
        let (build, probe) = (&partitioning.build, &partitioning.probe().store);
        let mut piece = Piece {
            build: (build, build.take(partition)),
            probe: (probe, probe.take(partition)),
            depth: 0,
            is_last: build.partitions() == 1,
        };
        self.join(&mut piece, next)
    }
}

impl Worker {
    /// Joins a partition.
    fn join(&mut self, piece: &mut Piece<'_>, next: &mut dyn Push) -> Result<Flow> {
        if next.is_over() {
            return Ok(Flow::Stop);
        }
        let partitioning = self.late.partitioning.clone();
        let (build, probe) = (&piece.build.1, &piece.probe.1);
        let shape = partitioning.spec.shape;
        let gives_rest = shape.tail == BuildTail::Unmatched && build.rows > 0;
        let gives_probe = probe.rows > 0 && (build.rows > 0 || !shape.drops_unmatched_probe_rows());
        if !gives_rest && !gives_probe {
            return Ok(Flow::Continue);
        }
        let parts = partitioning.second_pass(build, probe);
        if parts > 1 && piece.depth == 0 && !piece.is_last {
            partitioning.statistics.note_second_pass(parts);
            return self.split(piece, (parts, Medium::Memory), next);
        }
        // Rows that are appended chunk by chunk have spare room.
        let fits = !partitioning.policy.is_overfull(build.rows);
        if fits
            && let Some(turn) = partitioning
                .turns
                .take(build.bytes * 3 / 2 + partitioning.table_bytes(build.rows), &partitioning.context)?
        {
            return self.join_whole(piece, turn, next);
        }
        let is_last = piece.is_last || !partitioning.build.may_write();
        if is_last {
            return self.join_blocks(piece, next);
        }
        self.split(piece, (PARTITIONS, Medium::File), next)
    }

    /// Joins a partition with all build rows in memory at once.
    fn join_whole(&mut self, piece: &Piece<'_>, mut turn: Turn<'_>, next: &mut dyn Push) -> Result<Flow> {
        let (store, stored) = &piece.build;
        let mut rows = Materialized::expecting(store.columns(), stored.rows);
        let columns: Vec<usize> = (0..store.columns().len()).collect();
        let mut reader = store.reader(stored);
        let mut chunk = Chunk::new();
        while reader.next(&mut chunk)? {
            if next.is_over() {
                return Ok(Flow::Stop);
            }
            rows.append(&chunk, &columns, None);
        }
        let slot = self.build(rows, std::mem::take(&mut turn.memory))?;
        let mut worker = Probe { built: slot.clone(), ..self.late.probe.clone() }.block_worker()?;
        let mut reader = piece.probe_reader(self.late.partitioning.probe());
        while reader.next(&mut chunk)? {
            self.states.clear();
            self.states.resize(chunk.len(), 0);
            if next.is_over() || worker.push_block(&mut chunk, &mut self.states, true, next)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        drop(worker);
        self.give_rest(slot, next)
    }

    /// Joins a partition in blocks: as many build rows as fit are in memory at once, and all probe rows are
    /// read for each block.
    fn join_blocks(&mut self, piece: &Piece<'_>, next: &mut dyn Push) -> Result<Flow> {
        let partitioning = self.late.partitioning.clone();
        let (store, stored) = &piece.build;
        let columns: Vec<usize> = (0..store.columns().len()).collect();
        let keeps_states =
            !matches!(partitioning.spec.shape.probe, ProbeOutput::Pairs | ProbeOutput::Nothing);
        let mut kept =
            if keeps_states { Some(States::new(piece.probe.1.rows, &partitioning.context)?) } else { None };
        let most = stored.bytes * 2 + partitioning.table_bytes(stored.rows);
        let mut reader = store.reader_of_few(stored, STEP_ROWS);
        let mut chunk = Chunk::new();
        let mut taken = 0;
        loop {
            let mut turn = partitioning.turns.take_half(most, &partitioning.context)?;
            let mut rows = Materialized::new(store.columns());
            while taken < stored.rows && reader.next(&mut chunk)? {
                rows.append(&chunk, &columns, None);
                taken += chunk.len();
                // Buffers double when they grow.
                let is_full =
                    rows.bytes() * 3 / 2 + partitioning.table_bytes(rows.rows()) > turn.memory.bytes();
                if is_full || partitioning.policy.is_full(rows.rows()) {
                    break;
                }
            }
            let is_last = taken == stored.rows;
            partitioning.statistics.note_block();
            let slot = self.build(rows, std::mem::take(&mut turn.memory))?;
            let mut worker = Probe { built: slot.clone(), ..self.late.probe.clone() }.block_worker()?;
            let mut probe_reader = piece.probe_reader(partitioning.probe());
            while probe_reader.next(&mut chunk)? {
                let states = match &mut kept {
                    Some(states) => states.take(chunk.len())?,
                    None => {
                        self.states.clear();
                        self.states.resize(chunk.len(), 0);
                        &mut self.states[..]
                    }
                };
                if next.is_over() || worker.push_block(&mut chunk, states, is_last, next)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            drop(worker);
            if self.give_rest(slot, next)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            if is_last {
                return Ok(Flow::Continue);
            }
            kept.as_mut().map_or(Ok(()), States::begin_again)?;
        }
    }

    /// The table over build rows of a partition, with `memory` reserved for them.
    fn build(&self, rows: Materialized, memory: Reservation) -> Result<BuiltSlot> {
        let partitioning = &self.late.partitioning;
        let spec = &partitioning.spec;
        let tasks = Alone(&partitioning.context);
        let facts = spec.facts(&rows, &tasks)?;
        let (built, _) = spec.make(rows, &facts, memory, &partitioning.context.memory, &tasks)?;
        let built = Built { any: true, has_null_keys: partitioning.has_null_keys(), ..built };
        let slot = BuiltSlot::default();
        slot.set(built).map_err(|_| Error::internal("a partition was built twice"))?;
        Ok(slot)
    }

    /// Pushes the build tail.
    fn give_rest(&self, slot: BuiltSlot, next: &mut dyn Push) -> Result<Flow> {
        let Some(rest) = &self.late.rest else { return Ok(Flow::Continue) };
        let source = BuildRows { built: slot, next: Arc::default(), ..rest.clone() };
        let mut worker = source.worker()?;
        let mut chunk = Chunk::new();
        while worker.next(&mut chunk)? {
            self.late.partitioning.context.check()?;
            let flow = next.push(&mut chunk)?;
            chunk.reset(0);
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    /// Splits a partition into `parts` by other bits, and joins these. They stay in `medium` unless memory is
    /// short.
    fn split(
        &mut self,
        piece: &Piece<'_>,
        (parts, medium): (usize, Medium),
        next: &mut dyn Push,
    ) -> Result<Flow> {
        let partitioning = self.late.partitioning.clone();
        let spec = &partitioning.spec;
        let depth = piece.depth + 1;
        partitioning.statistics.note_depth(depth);
        let keys: Vec<usize> = (0..spec.null_equals_null.len()).collect();
        let keys = Computed::of_columns(&keys, piece.build.0.columns());
        let columns: Vec<usize> = (0..piece.build.0.columns().len()).collect();
        let mut reader = piece.build.0.reader(&piece.build.1);
        // A split that ended early must not be joined: `join` tests for that first.
        let mut rows = |chunk: &mut Chunk| Ok(!next.is_over() && reader.next(chunk)?);
        let to = piece.build.0.like(parts, medium);
        let build = self.split_side(to, &mut rows, &columns, (&keys, spec.keeps_unmatchable()), depth)?;
        let all = !spec.shape.drops_unmatched_probe_rows();
        let side = partitioning.probe();
        let mut reader = piece.probe_reader(side);
        let mut rows = |chunk: &mut Chunk| Ok(!next.is_over() && reader.next(chunk)?);
        let keys = &self.late.probe.keys;
        let to = piece.probe.0.like(parts, medium);
        let probe = self.split_side(to, &mut rows, &side.kept.places, (keys, all), depth)?;
        let mut flow = Flow::Continue;
        for partition in 0..parts {
            let own = build.take(partition);
            let is_large = own.rows > piece.build.1.rows / HARDLY_SMALLER.1 * HARDLY_SMALLER.0;
            let mut part = Piece {
                build: (&build, own),
                probe: (&probe, probe.take(partition)),
                depth,
                is_last: is_large || depth == DEEPEST,
            };
            flow = self.join(&mut part, next)?;
            if flow == Flow::Stop {
                break;
            }
        }
        partitioning.statistics.note_traffic(&build);
        partitioning.statistics.note_traffic(&probe);
        Ok(flow)
    }

    /// Splits the rows of one side of a partition, keeping `columns`, into the partitions of the next depth.
    fn split_side(
        &self,
        to: Arc<Store>,
        rows: &mut dyn FnMut(&mut Chunk) -> Result<bool>,
        columns: &[usize],
        (keys, all): (&Computed, bool),
        depth: u32,
    ) -> Result<Arc<Store>> {
        let partitioning = &self.late.partitioning;
        let marks = marks(to.partitions(), true);
        let room = match to.medium() {
            Medium::File => partitioning.probe_room(),
            Medium::Memory => {
                let segments = partitioning.context.settings.most_segments;
                Room { most: usize::MAX, left: 0, least: 0, segments }
            }
        };
        let mut split = Split::new(&to, &marks, depth, room, &partitioning.context.memory);
        let (mut keys, mut found) = (keys.worker(), partitioning.spec.keys());
        let mut chunk = Chunk::new();
        while rows(&mut chunk)? {
            partitioning.context.check()?;
            let (values, positions) = keys.compute(&chunk)?;
            found.begin(values, positions, &partitioning.spec.null_equals_null);
            let taken = split.take(&mut found, &chunk, columns, Taken { all, ..Taken::default() });
            found.release();
            keys.release();
            taken?;
        }
        split.put_down()?;
        Ok(to)
    }
}
