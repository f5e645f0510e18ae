//! Build sides that are read twice: once for the keys, which are counted, and once for all columns, of which each row is put where
//! its table wants it at once.
//!
//! What is kept while it comes and then moved is there twice, and has been written three times. Where the input of a join is the scan of
//! a table, or what a few stateless operators make of one, it can as well be read again: the rows of a snapshot do not change.
//! So (Barber et al., section 2.3):
//!
//! ```text
//! first reading, keys only:  rows → [KeysSink] → finish: what has been counted → table, room for so many rows
//! second reading:            rows → [BuildSink] → the id of each row → its place
//! ```
//!
//! A worker may [hold rows back](super::held_back) before it asks for their ids, so that those of neighbours come together.
//!
//! The first reading may find that there can be no such table: a key is repeated, or there is no memory. Then the second one keeps
//! rows as ever. Where a join asks for no rows ([`Asked`]), it ends at the first chunk.
//!
//! Invariants: both readings give the same rows, in any order. No input with join filters is read twice, since whoever tests one may
//! cease to at any time, nor one with a function that gives something else each time. Each id is given once.
//!
//! Not done: strings, whose bytes would have to be counted as well; rows that become tuples; rows with a NULL in a key, if these
//! are asked for.

mod input;
#[cfg(test)]
mod tests;
mod workers;

pub(crate) use input::{Input, counted_bytes};
pub(crate) use workers::KeysSink;

use super::build::Making;
use super::filter::{FilterSlot, KeyFilter};
use super::table::{Asked, BucketCount, BuildInput, CountedPlaces, JoinTable, OVERFLOW_PART, Packing, PlaceCount};
use super::table::{Placer, ProbeKeys, TableKind};
use super::{Built, Computed};
use crate::exec::Reservation;
use crate::exec::materialized::{Materialized, Placing, SEGMENT_ROWS};
use crate::exec::named::named;
use crate::exec::operator::{SinkWorker, Tasks};
use crate::exec::profile::Recorder;
use crate::exec::tuple::expected_bytes;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, PoisonError};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Error, Result};
use input::{is_possible, is_repeatable, pays, shares_words};
use std::sync::Arc;
use std::time::Instant;
use workers::PlacingWorker;

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

named!(Readings: Auto = "auto", Once = "once", Twice = "twice");

/// Bytes of the bits of all workers together, for each row and in all, up to which they are few.
const COUNTED_BYTES: f64 = 8.0;
const FEW_BYTES: f64 = 4194304.0;
/// The most rows: their ids are segments and offsets in 32 bits.
const MOST_ROWS: usize = (SEGMENT_ROWS - 1) * SEGMENT_ROWS;
/// The part of the free memory that is left to others.
const LEFT_PART: usize = 4;

/// What both readings of a build side share.
pub(crate) struct Twice {
    by: By,
    kept: Vec<ColumnMeta>,
    /// By column, whether the rows have it: it is read, or compared.
    stays: Vec<bool>,
    /// Of a row that is [held back](super::held_back), the columns and what they are: keys as they come, then others that stay.
    held: Vec<(usize, ColumnMeta)>,
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
    fn absorb(&mut self, other: &Counting, tasks: &dyn Tasks) -> Result<()> {
        match (self, other) {
            (Counting::Places(own), Counting::Places(other)) => own.absorb(other, tasks),
            (Counting::Buckets(own), Counting::Buckets(other)) => own.absorb(other, tasks),
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
    /// Bytes of a worker's rows that are held back before they are put; 0: none are.
    stride: usize,
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

impl Twice {
    /// For a build side that may be read twice and is taken to gain by it; else `None`.
    pub(crate) fn of(input: &Input<'_>, making: &Making, filter: Option<&Arc<FilterSlot>>) -> Option<Arc<Twice>> {
        let settings = &making.context.settings;
        let is_forced = match settings.join_build {
            Readings::Auto => false,
            Readings::Once => return None,
            Readings::Twice => true,
        };
        let pays = || pays(input.node, input.keys, (input.rows, making.expected.per_key));
        if input.is_filtered || !is_repeatable(input.node, input.keys) || !(is_forced || pays()) {
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
        let is_possible = is_possible(settings, kept(), become_tuples);
        // What is looked up is what has been counted.
        let as_held = |column: usize| match column < keys {
            true => (column, input.columns.metas()[column].clone()),
            false => (column, input.kept[column].clone()),
        };
        let held = (0..stays.len()).filter(|&column| column < keys || stays[column]).map(as_held).collect();
        is_possible.then(|| {
            Arc::new(Twice {
                by,
                kept: input.kept.to_vec(),
                stays,
                held,
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
        for (other, _) in all {
            tasks.check()?;
            counting.absorb(&other, tasks)?;
        }
        let second = match counting {
            Counting::Places(count) => self.by_places(count, memory, tasks)?,
            Counting::Buckets(count) => self.by_buckets(count, memory, tasks)?,
        };
        let second = second.map(|second| {
            let milliseconds = start.elapsed().as_secs_f64() * 1e3;
            let stride = match second.found {
                Found::Bitmap(_) => 0,
                Found::Rows { .. } => self.making.context.settings.join_stride,
            };
            let put = match stride {
                0 => String::new(),
                most => format!(", rows put in strides of {most} bytes a worker"),
            };
            let reason = format!("{}; read twice, keys counted in {milliseconds:.3} ms{put}", second.reason);
            Arc::new(Second { reason, stride, ..second })
        });
        *self.state() = State::Counted(second);
        Ok(())
    }

    /// What a row has that is held back.
    fn held_metas(&self) -> Vec<ColumnMeta> {
        self.held.iter().map(|(_, meta)| meta.clone()).collect()
    }

    /// Bytes of so many rows, and of the marks of those that have matched.
    fn bytes_of(&self, rows: usize) -> usize {
        let marks = if self.making.marks { rows.div_ceil(64) * 8 } else { 0 };
        Placing::bytes_for(&self.kept, &self.stays, rows, shares_words(&self.making.context.settings)) + marks
    }

    /// Reserves `bytes` beside what `memory` has, if enough is left to others then.
    fn reserve(&self, memory: &mut Reservation, bytes: usize) -> bool {
        let others = memory.free() / LEFT_PART;
        bytes <= memory.free() - others && memory.resize(memory.bytes() + bytes).is_ok()
    }

    /// What the second reading does with keys that have places; `None` if there is no memory for it, or keys are repeated.
    fn by_places(&self, count: PlaceCount, mut memory: Reservation, tasks: &dyn Tasks) -> Result<Option<Second>> {
        // Where bounds are narrower than the plan knew, the bits are there twice for a moment.
        if memory.resize(2 * memory.bytes()).is_err() {
            return Ok(None);
        }
        let Some(counted) = count.finish() else { return Ok(None) };
        let (rows, asks_for_rows) = (counted.keys(), self.asked() == Asked::Rows);
        let (bits, directory) = counted.bytes();
        memory.resize(bits)?;
        let own = match asks_for_rows {
            true => directory + self.bytes_of(rows),
            // The filter may have the same bits.
            false => bits,
        };
        if rows > MOST_ROWS || !self.reserve(&mut memory, own) {
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
        Ok(Some(Second { found, rows, filter, memory, stride: 0, reason: format!("{kind}: {keys}") }))
    }

    /// What the second reading does with keys that have buckets; `None` if there is no memory for it, or too many overflow.
    fn by_buckets(&self, count: BucketCount, mut memory: Reservation, tasks: &dyn Tasks) -> Result<Option<Second>> {
        let counted = count.finish(tasks)?;
        let (rows, overflow) = (counted.rows(), counted.overflow());
        let own = counted.bytes() + self.bytes_of(rows);
        let overflows = self.making.table != TableKind::Cht && overflow > rows / OVERFLOW_PART;
        if overflows || rows > MOST_ROWS || !self.reserve(&mut memory, own) {
            return Ok(None);
        }
        let share = 100.0 * overflow as f64 / rows.max(1) as f64;
        let reason = format!("concise hash table: {rows} rows, {share:.1} % overflow");
        let found = self.placed(counted.placer(tasks)?, rows);
        memory.resize(own)?;
        Ok(Some(Second { found, rows, filter: None, memory, stride: 0, reason }))
    }

    fn placed(&self, placer: Box<dyn Placer>, rows: usize) -> Found {
        let placing = Placing::new(&self.kept, &self.stays, rows, shares_words(&self.making.context.settings));
        Found::Rows { placer, placing, placed: AtomicUsize::new(0) }
    }

    /// What the second reading does with rows; `None` if they are kept as ever.
    pub(crate) fn worker(&self, columns: &Computed) -> Option<Box<dyn SinkWorker>> {
        let State::Counted(Some(second)) = &*self.state() else { return None };
        Some(Box::new(PlacingWorker::new(self, second, columns)))
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
        let Second { found, rows: count, filter, mut memory, reason, stride: _ } = second;
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
        let shared = match rows.words() {
            Some((columns, bytes)) => format!(", {columns} columns of which are in words of {bytes} bytes"),
            None => String::new(),
        };
        recorder.note(format!("{reason}; table of {} bytes, rows of {} bytes{shared}", table.bytes(), rows.bytes()));
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
