//! Build sides that are read twice: once for the keys, which are counted, and once for all columns, of which each row is put where
//! its table wants it at once.
//!
//! What is kept while it comes and then moved is there twice, and has been written three times. Where the input of a join is the scan of
//! a table, or what a few stateless operators make of one, it can as well be read again: the rows of a snapshot do not change.
//! So (Barber et al., section 2.3):
//!
//! ```text
//! first reading, keys only:  rows → [KeysSink] → finish: what has been counted → table, room for so many rows
//! second reading:            rows → [super::build::BuildSink] → the id of each row → its place
//! ```
//!
//! The first reading may find that there can be no such table: a key is repeated, or there is no memory. Then the second one keeps
//! rows as ever. Where a join asks for no rows ([`Asked`]), it ends at the first chunk.
//!
//! Invariants: both readings give the same rows, in any order. No input with join filters is read twice, since whoever tests one may
//! cease to at any time, nor one with a function that gives something else each time. Each id is given once.
//!
//! Not done: strings, whose bytes would have to be counted as well; rows that become tuples; rows with a NULL in a key, if these
//! are asked for.

use super::build::Making;
use super::filter::{FilterKind, FilterSlot, KeyFilter};
use super::partitioned::JoinSpill;
use super::table::{Asked, BucketCount, BuildInput, CountedPlaces, JoinTable, OVERFLOW_PART, Packing, PlaceCount};
use super::table::{Placer, ProbeKeys, TableKind, countable_places, is_integer};
use super::{Built, Computed, ComputedWorker, Rest};
use crate::exec::Reservation;
use crate::exec::materialized::{Materialized, Placing};
use crate::exec::operator::{Flow, Sink, SinkWorker, Tasks};
use crate::exec::profile::Recorder;
use crate::exec::tuple::expected_bytes;
use crate::plan::Node;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError};
use entasis_vector::expr::{ColumnMeta, Expr, Program};
use entasis_vector::{Chunk, DataType, Error, PhysicalType, Result};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// How often the input of a build side is read. The setting `join_build`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Readings {
    /// Twice where it is taken to pay.
    #[default]
    Auto,
    /// Once.
    Once,
    /// Twice where it is possible.
    Twice,
}

impl Readings {
    /// All, with their names in SQL.
    pub const NAMES: [(Readings, &str); 3] =
        [(Readings::Auto, "auto"), (Readings::Once, "once"), (Readings::Twice, "twice")];
}

impl fmt::Display for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Readings::NAMES.iter().find(|(value, _)| value == self).expect("all have a name");
        f.write_str(name)
    }
}

/// Rows from which on an input is read twice: fewer are soon moved.
const MANY_ROWS: f64 = 262_144.0;
/// Rows that may be looked at for each that is kept.
const LOOKED_AT: f64 = 4.0;
/// Rows of a key, by estimate, up to which none is taken to be repeated.
const DISTINCT: f64 = 1.05;
/// Bytes of the bits of all workers together, for each row and in all, up to which they are few.
const COUNTED_BYTES: f64 = 8.0;
const FEW_BYTES: f64 = 4194304.0;
/// The part of the free memory that is left to others.
const LEFT_PART: usize = 4;

/// What both readings of a build side share.
pub(crate) struct Twice {
    by: By,
    kept: Vec<ColumnMeta>,
    /// By column, whether the rows have it: it is read, or compared.
    stays: Vec<bool>,
    making: Making,
    filter: Option<Arc<FilterSlot>>,
    state: Mutex<State>,
}

/// What keys are counted by.
enum By {
    Places(Packing),
    /// Buckets of a CHT for about so many rows.
    Buckets(usize),
}

/// How far the build side is.
enum State {
    Counting {
        /// By worker that has ended, what it has counted; absent once one has found that it is of no use, or has no memory.
        counted: Option<Vec<(Counting, Reservation)>>,
        /// When the first worker began.
        start: Option<Instant>,
    },
    /// Rows are put where they belong; absent: they are kept as ever.
    Counted(Option<Arc<Second>>),
}

/// What one worker has counted.
enum Counting {
    Places(PlaceCount),
    Buckets(BucketCount),
}

impl Counting {
    /// Adds the keys of a chunk. False: it is of no use to go on.
    fn add(&mut self, keys: &mut ProbeKeys) -> bool {
        match self {
            Counting::Places(count) => return count.add(keys),
            Counting::Buckets(count) => count.add(keys),
        }
        true
    }

    /// Adds what another worker has counted.
    fn absorb(&mut self, other: &Counting) {
        match (self, other) {
            (Counting::Places(own), Counting::Places(other)) => own.absorb(other),
            (Counting::Buckets(own), Counting::Buckets(other)) => own.absorb(other),
            _ => unreachable!("the workers of one build side count alike"),
        }
    }
}

/// What the first reading has left to the second one.
struct Second {
    found: Found,
    rows: usize,
    /// For the probe side, if it is known already.
    filter: Option<KeyFilter>,
    memory: Reservation,
    /// What was done, and how long it took.
    reason: String,
}

enum Found {
    /// No row is asked for.
    Bitmap(Box<dyn JoinTable>),
    Rows {
        placer: Box<dyn Placer>,
        placing: Placing,
        /// Rows that have been put.
        placed: AtomicUsize,
    },
}

/// A build side, as the plan knows it.
pub(crate) struct Input<'a> {
    /// Where its rows come from.
    pub node: &'a Node,
    /// Rows that are expected.
    pub rows: f64,
    /// Join filters go into it.
    pub is_filtered: bool,
    /// Its columns as they come, keys first.
    pub columns: &'a Computed,
    /// The same as they are kept.
    pub kept: &'a [ColumnMeta],
}

impl Twice {
    /// For a build side that may be read twice and is taken to gain by it; else `None`.
    pub(crate) fn of(input: &Input<'_>, making: &Making, filter: Option<&Arc<FilterSlot>>) -> Option<Arc<Twice>> {
        let settings = &making.context.settings;
        let is_forced = match settings.join_build {
            Readings::Auto => false,
            Readings::Once => return None,
            Readings::Twice => true,
        };
        let pays =
            || input.rows >= MANY_ROWS && making.expected.per_key <= DISTINCT && is_cheap(input.node, input.rows);
        if input.is_filtered || !is_repeatable(input.node) || !(is_forced || pays()) {
            return None;
        }
        let by = By::of(input, making)?;
        let counted = by.bytes() as f64 * settings.threads as f64;
        if !is_forced && counted > (input.rows * COUNTED_BYTES).max(FEW_BYTES) {
            return None;
        }
        let compares = matches!(by, By::Buckets(_));
        let keys = making.null_equals_null.len();
        let stays: Vec<bool> = making.read.iter().enumerate().map(|(i, read)| *read || compares && i < keys).collect();
        let kept = || input.kept.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(meta, _)| meta);
        let width: usize = kept().map(|meta| meta.physical.width()).sum();
        let become_tuples = expected_bytes(input.kept, (input.rows, width as f64), &making.context).is_some();
        let is_plain = settings.join_filter != FilterKind::Bloom
            && settings.join_spill == JoinSpill::Auto
            && !become_tuples
            && kept().all(|meta| meta.physical != PhysicalType::Str);
        is_plain.then(|| {
            Arc::new(Twice {
                by,
                kept: input.kept.to_vec(),
                stays,
                making: making.clone(),
                filter: filter.cloned(),
                state: Mutex::new(State::Counting { counted: Some(Vec::new()), start: None }),
            })
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What one worker counts by; `None` if there is no memory for it.
    fn counting(&self) -> Option<(Counting, Reservation)> {
        if let State::Counting { start, .. } = &mut *self.state() {
            start.get_or_insert_with(Instant::now);
        }
        let mut memory = Reservation::new(&self.making.context.memory);
        memory.resize(self.by.bytes()).ok()?;
        let counting = match &self.by {
            By::Places(packing) => Counting::Places(PlaceCount::new(packing.clone(), self.asked())),
            By::Buckets(rows) => Counting::Buckets(BucketCount::new(*rows)),
        };
        Some((counting, memory))
    }

    /// Takes what a worker has counted; `None` if that is of no use.
    fn end_counting(&self, counting: Option<(Counting, Reservation)>) {
        if let State::Counting { counted, .. } = &mut *self.state() {
            *counted = counted.take().zip(counting).map(|(mut all, own)| {
                all.push(own);
                all
            });
        }
    }

    /// What the table is asked: a CAT that is forced is asked for rows.
    fn asked(&self) -> Asked {
        if self.making.table == TableKind::Cat { Asked::Rows } else { self.making.asked }
    }

    /// Ends the first reading.
    fn finish_counting(&self, tasks: &dyn Tasks) -> Result<()> {
        let state = std::mem::replace(&mut *self.state(), State::Counted(None));
        let State::Counting { counted: Some(mut all), start: Some(start) } = state else { return Ok(()) };
        let Some((mut counting, memory)) = all.pop() else { return Ok(()) };
        all.drain(..).for_each(|(other, _)| counting.absorb(&other));
        let second = match counting {
            Counting::Places(count) => self.by_places(count, memory, tasks)?,
            Counting::Buckets(count) => self.by_buckets(count, memory, tasks)?,
        };
        let second = second.map(|second| {
            let milliseconds = start.elapsed().as_secs_f64() * 1e3;
            let reason = format!("{}; read twice, keys counted in {milliseconds:.3} ms", second.reason);
            Arc::new(Second { reason, ..second })
        });
        *self.state() = State::Counted(second);
        Ok(())
    }

    /// Reserves `bytes` beside what `memory` has, if enough is left to others then.
    fn reserve(&self, memory: &mut Reservation, bytes: usize) -> bool {
        let others = memory.free() / LEFT_PART;
        bytes <= memory.free() - others && memory.resize(memory.bytes() + bytes).is_ok()
    }

    /// What the second reading does with keys that have places; `None` if there is no memory for it, or keys are repeated.
    fn by_places(&self, count: PlaceCount, mut memory: Reservation, tasks: &dyn Tasks) -> Result<Option<Second>> {
        let Some(counted) = count.finish() else { return Ok(None) };
        let (rows, asks_for_rows) = (counted.keys(), self.asked() == Asked::Rows);
        let (bits, directory) = counted.bytes();
        memory.resize(bits)?;
        let own = match asks_for_rows {
            true => directory + Placing::bytes_for(&self.kept, &self.stays, rows),
            // The filter may have the same bits.
            false => bits,
        };
        if !self.reserve(&mut memory, own) {
            return Ok(None);
        }
        let is_filter = self.filter.as_ref().is_some_and(|slot| slot.is_wanted());
        let filter = is_filter.then(|| {
            let (packing, words) = counted.bits();
            KeyFilter::of_bits(packing, words, memory.split_off(bits))
        });
        let keys = describe(&counted);
        let (kind, found) = match asks_for_rows {
            true => ("concise array table", self.placed(counted.cat(tasks)?, rows)),
            false => ("bitmap", Found::Bitmap(counted.bitmap())),
        };
        memory.resize(own)?;
        Ok(Some(Second { found, rows, filter, memory, reason: format!("{kind}: {keys}") }))
    }

    /// What the second reading does with keys that have buckets; `None` if there is no memory for it, or too many overflow.
    fn by_buckets(&self, count: BucketCount, mut memory: Reservation, tasks: &dyn Tasks) -> Result<Option<Second>> {
        let counted = count.finish();
        let (rows, overflow) = (counted.rows(), counted.overflow());
        let own = counted.bytes() + Placing::bytes_for(&self.kept, &self.stays, rows);
        let overflows = self.making.table != TableKind::Cht && overflow > rows / OVERFLOW_PART;
        if overflows || !self.reserve(&mut memory, own) {
            return Ok(None);
        }
        let share = 100.0 * overflow as f64 / rows.max(1) as f64;
        let reason = format!("concise hash table: {rows} rows, {share:.1} % overflow");
        let found = self.placed(counted.placer(tasks)?, rows);
        memory.resize(own)?;
        Ok(Some(Second { found, rows, filter: None, memory, reason }))
    }

    fn placed(&self, placer: Box<dyn Placer>, rows: usize) -> Found {
        let placing = Placing::new(&self.kept, &self.stays, rows);
        Found::Rows { placer, placing, placed: AtomicUsize::new(0) }
    }

    /// What the second reading does with rows; `None` if they are kept as ever.
    pub(crate) fn worker(&self, columns: &Computed) -> Option<Box<dyn SinkWorker>> {
        let State::Counted(Some(second)) = &*self.state() else { return None };
        let nulls = &self.making.null_equals_null;
        let metas = self.kept.iter().zip(&self.stays).filter(|(_, stays)| **stays).map(|(meta, _)| meta.clone());
        let metas: Vec<ColumnMeta> = metas.collect();
        Some(Box::new(PlacingWorker {
            columns: columns.worker(),
            keys: ProbeKeys::new(nulls.len(), self.making.context.settings.hash_collisions),
            null_equals_null: nulls.clone(),
            stays: self.stays.clone(),
            positions: Vec::new(),
            few: Materialized::new(&metas),
            ids: Vec::new(),
            placed: 0,
            second: second.clone(),
        }))
    }

    /// What is probed, after the second reading; `None` if rows were kept as ever.
    ///
    /// # Errors
    /// Those of the tasks; resource.
    pub(crate) fn finish(&self, recorder: &Recorder, tasks: &dyn Tasks) -> Result<Option<Built>> {
        let State::Counted(Some(second)) = std::mem::replace(&mut *self.state(), State::Counted(None)) else {
            return Ok(None);
        };
        let second = Arc::into_inner(second).ok_or_else(|| Error::internal("a worker still puts rows"))?;
        let Second { found, rows: count, filter, mut memory, reason } = second;
        if let (Some(filter), Some(slot)) = (filter, &self.filter) {
            recorder.note(format!("join filter: {filter}"));
            slot.publish(filter);
        }
        let (rows, table) = match found {
            Found::Bitmap(table) => (Materialized::new(&self.kept), table),
            Found::Rows { placer, placing, placed } => {
                if placed.into_inner() != count {
                    return Err(Error::internal("the input of a join had other rows when it was read again"));
                }
                let rows = placing.into_rows();
                let null_equals_null = &self.making.null_equals_null;
                let hash_collisions = self.making.context.settings.hash_collisions;
                let input = BuildInput { rows: &rows, null_equals_null, hash_collisions, tasks };
                let table = placer.finish(&input)?;
                if let (By::Buckets(_), Some(slot)) = (&self.by, &self.filter) {
                    // Its keys are there only now.
                    let bounds = self.making.facts(&rows, tasks)?.bounds;
                    let context = &self.making.context;
                    let filled =
                        slot.fill(&input, bounds.as_deref(), context.settings.join_filter, &context.memory, 0)?;
                    filled.into_iter().for_each(|(_, reason)| recorder.note(reason));
                }
                (rows, table)
            }
        };
        let words = if self.making.marks { rows.id_space().div_ceil(64) } else { 0 };
        let matched = (0..words).map(|_| AtomicU64::new(0)).collect();
        memory.resize(rows.bytes() + table.bytes() + words * 8)?;
        recorder.note(format!("{reason}; table of {} bytes, rows of {} bytes", table.bytes(), rows.bytes()));
        let (null_keys, has_null_keys) = (Vec::new(), false);
        Ok(Some(Built { rows, any: count > 0, table, null_keys, has_null_keys, matched, _memory: memory }))
    }
}

/// What keys have been counted.
fn describe(counted: &CountedPlaces) -> String {
    let bounds = counted.bits().0.bounds();
    let keys = match bounds[..] {
        [(min, max)] => format!("keys from {min} to {max}"),
        _ => format!("keys of {} integers", bounds.len()),
    };
    let every = if counted.is_full() { ", every value" } else { "" };
    match counted.rows() == counted.keys() {
        true => format!("{} rows, unique {keys}{every}", counted.rows()),
        false => format!("{} rows, {} distinct {keys}{every}", counted.rows(), counted.keys()),
    }
}

impl By {
    /// What the keys are counted by; `None` if the join wants a table that is not made so, or rows whose keys nothing equals.
    fn of(input: &Input<'_>, making: &Making) -> Option<By> {
        let keys = making.null_equals_null.len();
        let metas = &input.columns.metas()[..keys];
        let drops_nulls = making.shape.rest == Rest::Nothing && !making.null_aware;
        let is_matchable = |(meta, equal): (&ColumnMeta, &bool)| drops_nulls || *equal || !meta.nullable;
        if keys == 0 || !metas.iter().zip(&making.null_equals_null).all(is_matchable) {
            return None;
        }
        let places = countable_places(making.table, making.asked, input.rows);
        let packing = known_bounds(metas).and_then(|bounds| Packing::of(&bounds));
        if let (Some(packing), false) = (packing, making.null_equals_null.contains(&true))
            && places.is_some_and(|places| packing.places() <= places)
        {
            return Some(By::Places(packing));
        }
        // Values are hashed as they come.
        let as_kept = metas.iter().zip(input.kept).all(|(meta, kept)| meta.physical == kept.physical);
        let is_wanted = match making.table {
            TableKind::Cht => true,
            TableKind::Auto => making.asked == Asked::Rows,
            _ => false,
        };
        (as_kept && is_wanted).then(|| By::Buckets(input.rows as usize))
    }

    /// The bytes in which a worker counts.
    fn bytes(&self) -> usize {
        match self {
            By::Places(packing) => PlaceCount::bytes_for(packing),
            By::Buckets(rows) => BucketCount::bytes_for(*rows),
        }
    }
}

/// Bounds of keys that are integers of 64 bits with a sign, if the plan knows them.
fn known_bounds(keys: &[ColumnMeta]) -> Option<Vec<(i64, i64)>> {
    let bounds = keys.iter().map(|meta| {
        let is_integer =
            is_integer(meta.physical) && meta.physical != PhysicalType::U64 && meta.ty != DataType::Boolean;
        let (min, max) = meta.range.filter(|_| is_integer)?;
        let bounds = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
        (bounds.0 <= bounds.1).then_some(bounds)
    });
    bounds.collect()
}

/// True if the rows of `node` are the same each time, and no sink is part of it.
fn is_repeatable(node: &Node) -> bool {
    let are_stable = |exprs: &[Expr]| !exprs.iter().any(Expr::is_volatile);
    match node {
        Node::Scan(scan) => scan.relation.table().is_some() && are_stable(&scan.filters),
        Node::Values(_) => true,
        Node::Filter(filter) => are_stable(&filter.predicates) && is_repeatable(&filter.input),
        Node::Project(project) => {
            !project.exprs.iter().any(|(_, expr)| expr.is_volatile()) && is_repeatable(&project.input)
        }
        _ => false,
    }
}

/// True if it takes little to find the rows of `node`, of which there are about `rows`, once more.
fn is_cheap(node: &Node, rows: f64) -> bool {
    let are_cheap = |exprs: &[Expr]| {
        exprs.iter().all(|expr| {
            let mut is_cheap = true;
            expr.visit(&mut |e| {
                is_cheap &= !matches!(e, Expr::External { .. }) && e.ty().physical() != PhysicalType::Str
            });
            is_cheap
        })
    };
    match node {
        Node::Scan(scan) => {
            let looked_at = scan.relation.statistics().rows.map_or(f64::INFINITY, |rows| rows as f64);
            looked_at <= LOOKED_AT * rows && are_cheap(&scan.filters)
        }
        Node::Filter(filter) => are_cheap(&filter.predicates) && is_cheap(&filter.input, rows),
        Node::Project(project) => is_cheap(&project.input, rows),
        _ => true,
    }
}

/// The end of the first reading.
pub(crate) struct KeysSink {
    /// The keys.
    pub keys: Computed,
    /// Where they are counted.
    pub twice: Arc<Twice>,
}

impl Sink for KeysSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let nulls = &self.twice.making.null_equals_null;
        Ok(Box::new(KeysWorker {
            columns: self.keys.worker(),
            keys: ProbeKeys::new(nulls.len(), self.twice.making.context.settings.hash_collisions),
            null_equals_null: nulls.clone(),
            counting: self.twice.counting(),
            twice: self.twice.clone(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.keys.program().into_iter().collect()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        self.twice.finish_counting(tasks)
    }
}

/// Counts keys.
struct KeysWorker {
    columns: ComputedWorker,
    keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    /// Absent: it is of no use.
    counting: Option<(Counting, Reservation)>,
    twice: Arc<Twice>,
}

impl SinkWorker for KeysWorker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let Some((counting, _)) = &mut self.counting else { return Ok(Flow::Stop) };
        let (columns, positions) = self.columns.compute(chunk)?;
        self.keys.begin(columns, positions, &self.null_equals_null);
        let goes_on = counting.add(&mut self.keys);
        self.keys.release();
        self.columns.release();
        if goes_on {
            return Ok(Flow::Continue);
        }
        self.counting = None;
        Ok(Flow::Stop)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.twice.end_counting(self.counting);
        Ok(())
    }
}

/// Puts rows where they belong.
struct PlacingWorker {
    columns: ComputedWorker,
    keys: ProbeKeys,
    null_equals_null: Vec<bool>,
    /// See [`Twice::stays`].
    stays: Vec<bool>,
    positions: Vec<usize>,
    /// The rows of a chunk, in the types in which they are kept.
    few: Materialized,
    ids: Vec<u32>,
    /// Rows that were put.
    placed: usize,
    second: Arc<Second>,
}

impl SinkWorker for PlacingWorker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let Found::Rows { placer, placing, .. } = &self.second.found else { return Ok(Flow::Stop) };
        let (columns, positions) = self.columns.compute(chunk)?;
        self.keys.begin(columns, &positions[..self.null_equals_null.len()], &self.null_equals_null);
        placer.ids(&mut self.keys, &mut self.ids);
        self.keys.release();
        self.positions.clear();
        self.positions
            .extend(positions.iter().zip(&self.stays).filter(|(_, stays)| **stays).map(|(position, _)| *position));
        self.few.append(columns, &self.positions, None);
        placing.put(&self.few, &self.ids);
        self.few.restart();
        self.columns.release();
        self.placed += self.ids.iter().filter(|&&id| id != Materialized::NO_ROW).count();
        Ok(Flow::Continue)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        if let Found::Rows { placed, .. } = &self.second.found {
            placed.fetch_add(self.placed, Ordering::Relaxed);
        }
        Ok(())
    }
}
