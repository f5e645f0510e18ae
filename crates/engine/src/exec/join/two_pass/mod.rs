//! Build sides that are read twice: once for the keys, which are counted, and once for all columns; the
//! second reading writes rows to their final places in the table.
//!
//! Rows that are kept first and moved later exist twice for a while, and are written three times. If a join's
//! input is the scan of a table, perhaps with a few stateless operators, it can be read again instead, since
//! a snapshot does not change. So (Barber et al., section 2.2.1):
//!
//! ```text
//! first reading, keys only:  rows → [KeysSink] → finish: the counts → room for the rows, in parts
//! second reading:            rows → [BuildSink] → the part of each row, then its place in it → table
//! ```
//!
//! For what is counted, and how rows find their places, see [`table::precounted`](super::table).
//!
//! The first reading may find that such a table is impossible: a key is outside the bounds that the plan
//! expected, or memory is short. Then the second reading keeps rows as a single reading does. If a join needs
//! no rows ([`LookupKind`](super::table::LookupKind)), the second reading ends at the first chunk.
//!
//! Invariants: both readings yield the same rows, in any order. So an input is not read twice if it has join
//! filters, since an adaptive filter may stop testing at any time, or a volatile function. Each place is
//! assigned once.
//!
//! Not done: strings, whose bytes would have to be counted as well; rows that become tuples; rows with a NULL
//! in a key, if the join needs them.

mod input;
#[cfg(test)]
mod tests;
mod workers;

pub(crate) use input::{Input, counted_bytes};
pub(crate) use workers::KeysSink;

use super::partitioned::Partitioning;
use super::table::{
    BitCount, Chained, CountedBits, FinalCat, FinalCht, JoinTable, Numbering, PrecountedRows, ProbeKeys,
    RangeCount,
};
use super::{Built, Computed};
use crate::context::QueryContext;
use crate::exec::join::build_spec::BuildSpec;
use crate::exec::join::strategy::passes::{CountedKeys, Once, once, once_beside_counters, once_counted};
use crate::exec::key_filter::{Bits, BuildInput, FilterSlot, KeyFilter, Packing};
use crate::exec::materialized::{Materialized, Placing};
use crate::exec::operator::{SinkWorker, Tasks};
use crate::exec::profile::Recorder;
use crate::exec::spill::policy::left_of;
use crate::exec::temp_compression::expected_bytes;
use crate::memory::Reservation;
use crate::settings::{Readings, TableKind};
use crate::sync::{AtomicU64, Mutex, MutexGuard, lock};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Error, Result};
use input::{CountedBy, MOST_ROWS, is_possible, is_repeatable, reading, shares_words};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use workers::PlacingWorker;

/// What both readings of a build side share.
pub(crate) struct TwoPass {
    by: CountedBy,
    /// The expected number of rows.
    expected: f64,
    kept: Vec<ColumnMeta>,
    /// For each column, whether rows keep it, because it is read or compared.
    stays: Vec<bool>,
    spec: BuildSpec,
    filter: Option<Arc<FilterSlot>>,
    partitioning: Option<Arc<Partitioning>>,
    recorder: Arc<Recorder>,
    context: QueryContext,
    state: Mutex<State>,
}

/// How a build side is read twice, as it is planned.
#[derive(Debug)]
pub(crate) struct TwoReadings {
    by: CountedBy,
    /// For each column, whether rows keep it, because it is read or compared.
    stays: Vec<bool>,
}

/// The progress of the build side.
enum State {
    Counting {
        /// What each finished worker has counted; `None` once one has given up or found no memory.
        counted: Option<Vec<(Counting, Reservation)>>,
        /// When the first worker began.
        start: Option<Instant>,
    },
    /// Rows are put in place; `None` if they are kept as in a single reading.
    Counted(Option<Arc<Second>>),
}

/// What one worker has counted.
enum Counting {
    Bits(BitCount),
    Ranges(RangeCount),
}

impl Counting {
    /// Adds the keys of a chunk. False if counting should end because it is of no use.
    fn add(&mut self, keys: &mut ProbeKeys) -> bool {
        match self {
            Counting::Bits(count) => count.add(keys),
            Counting::Ranges(count) => count.add(keys),
        }
    }

    /// Adds what another worker has counted.
    fn absorb(&mut self, other: &Counting, tasks: &dyn Tasks) -> Result<()> {
        match (self, other) {
            (Counting::Bits(own), Counting::Bits(other)) => return own.absorb(other, tasks),
            (Counting::Ranges(own), Counting::Ranges(other)) => own.absorb(other),
            _ => unreachable!("the workers of one build side count alike"),
        }
        Ok(())
    }
}

/// What the second reading needs of the first.
struct Second {
    found: Found,
    memory: Reservation,
    /// Milliseconds that counting has taken.
    counting: f64,
}

enum Found {
    /// The join needs no row.
    Bits(CountedBits),
    Rows(PrecountedRows),
}

impl TwoReadings {
    /// For a build side that can be read twice and is expected to gain by it. Otherwise, if it could be read
    /// twice, the reason why it is not, unless that goes without saying.
    pub(crate) fn of(
        input: &Input<'_>,
        spec: &BuildSpec,
        context: &QueryContext,
    ) -> std::result::Result<TwoReadings, Option<Once>> {
        let settings = &spec.settings;
        if input.is_filtered || !is_repeatable(input.node, input.keys) {
            return Err(None);
        }
        let reading = reading(input.node, input.keys, (input.rows, spec.expected.per_key));
        let planned = once(settings.join_build, &reading);
        if planned.is_some_and(|once| !once.is_noted()) {
            return Err(None);
        }
        let by = CountedBy::of(input, spec).filter(CountedBy::is_possible).ok_or(None)?;
        let compares = matches!(by, CountedBy::Numbers(Numbering::Buckets(_)));
        let keys = spec.null_equals_null.len();
        let stays: Vec<bool> =
            spec.read.iter().enumerate().map(|(i, read)| *read || compares && i < keys).collect();
        let kept = || input.kept.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(meta, _)| meta);
        let width: usize = kept().map(|meta| meta.physical.width()).sum();
        let become_tuples = expected_bytes(input.kept, (input.rows, width as f64), context).is_some();
        if !is_possible(settings, kept(), become_tuples) {
            return Err(None);
        }
        let counters = by.bytes() as f64 * settings.threads as f64;
        let beside_counters = || once_beside_counters(settings.join_build, input.rows, counters);
        match planned.or_else(beside_counters) {
            Some(once) => Err(once.is_noted().then_some(once)),
            None => Ok(TwoReadings { by, stays }),
        }
    }
}

impl TwoPass {
    /// For a build side of about `expected` rows with the columns `kept`.
    pub(crate) fn new(
        TwoReadings { by, stays }: TwoReadings,
        (expected, kept): (f64, &[ColumnMeta]),
        spec: &BuildSpec,
        (filter, partitioning): (Option<&Arc<FilterSlot>>, Option<&Arc<Partitioning>>),
        recorder: &Arc<Recorder>,
        context: &QueryContext,
    ) -> Arc<TwoPass> {
        Arc::new(TwoPass {
            by,
            expected,
            kept: kept.to_vec(),
            stays,
            spec: spec.clone(),
            filter: filter.cloned(),
            partitioning: partitioning.cloned(),
            recorder: recorder.clone(),
            context: context.clone(),
            state: Mutex::new(State::Counting { counted: Some(Vec::new()), start: None }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The counters of one worker; `None` if there is no memory for them.
    fn counting(&self) -> Option<(Counting, Reservation)> {
        if let State::Counting { start, .. } = &mut *self.state() {
            start.get_or_insert_with(Instant::now);
        }
        let mut memory = Reservation::new(&self.context.memory);
        memory.resize(self.by.bytes()).ok()?;
        let counting = match &self.by {
            CountedBy::Bits(packing) => Counting::Bits(BitCount::new(packing.clone(), self.spec.asked)),
            CountedBy::Numbers(numbering) => {
                Counting::Ranges(RangeCount::new(numbering.clone(), self.expected))
            }
        };
        Some((counting, memory))
    }

    /// Takes what a worker has counted; `None` if it gave up.
    fn end_counting(&self, counting: Option<(Counting, Reservation)>) {
        if let State::Counting { counted, .. } = &mut *self.state() {
            *counted = counted.take().zip(counting).map(|(mut all, own)| {
                all.push(own);
                all
            });
        }
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
            Counting::Bits(count) => self.with_bits(count, memory)?,
            Counting::Ranges(count) => self.with_parts(count, memory),
        };
        let counting = start.elapsed().as_secs_f64() * 1e3;
        *self.state() =
            State::Counted(second.map(|(found, memory)| Arc::new(Second { found, memory, counting })));
        Ok(())
    }

    /// Bytes of this many rows, and of their match marks.
    fn bytes_of(&self, rows: usize) -> usize {
        let marks = if self.spec.marks { rows.div_ceil(64) * 8 } else { 0 };
        Placing::bytes_for(&self.kept, &self.stays, rows, shares_words(&self.spec.settings)) + marks
    }

    /// Reserves `bytes` in addition to those of `memory`, if that leaves enough to others.
    fn reserve(&self, memory: &mut Reservation, bytes: usize) -> bool {
        let others = left_of(memory.free());
        bytes <= memory.free() - others && memory.resize(memory.bytes() + bytes).is_ok()
    }

    /// The result of counting by bits; `None` if there is no memory for it, or if keys are repeated and their
    /// number is needed.
    fn with_bits(&self, count: BitCount, mut memory: Reservation) -> Result<Option<(Found, Reservation)>> {
        // If bounds are narrower than the plan knew, the bits exist twice for a short time.
        if memory.resize(2 * memory.bytes()).is_err() {
            return Ok(None);
        }
        let Some(counted) = count.finish() else { return Ok(None) };
        memory.resize(counted.bytes())?;
        // The filter may have a copy of the bits.
        let is_possible = self.reserve(&mut memory, counted.bytes());
        Ok(is_possible.then_some((Found::Bits(counted), memory)))
    }

    /// True if a join of this many rows should be partitioned in memory instead.
    fn gains_by_partitions(&self, rows: usize, memory: &Reservation) -> bool {
        let is_forced = self.spec.settings.join_build == Readings::Twice;
        !is_forced
            && self
                .partitioning
                .as_ref()
                .is_some_and(|partitioning| partitioning.may_pay(rows, memory.free()))
    }

    /// The result of counting by ranges; `None` if memory is short, keys are repeated, far more rows arrived
    /// than expected, or partitions in memory are better.
    fn with_parts(&self, count: RangeCount, mut memory: Reservation) -> Option<(Found, Reservation)> {
        let per_key = count.rows_per_key();
        let parts = count.finish();
        let rows = parts.all_rows();
        let overflow = match (parts.numbering(), self.spec.table) {
            // Any number of rows may overflow.
            (Numbering::Buckets(_), TableKind::Cht) => Chained::bytes_for(rows),
            (numbering, _) => {
                let by_hash = matches!(numbering, Numbering::Buckets(_));
                let partitions_pay = by_hash && self.gains_by_partitions(rows, &memory);
                let counted = CountedKeys { per_key, is_crowded: parts.is_crowded(), partitions_pay };
                if let Some(once) = once_counted(&counted) {
                    if once.is_noted() {
                        self.recorder.note(once.to_string());
                    }
                    return None;
                }
                0
            }
        };
        let metas = || self.kept.iter().zip(&self.stays).filter(|(_, stays)| **stays).map(|(meta, _)| meta);
        let width = metas().map(|meta| meta.physical.width()).sum();
        let settings = &self.spec.settings;
        let own = parts.numbering().bytes_of_table(rows)
            + PrecountedRows::bytes_for(&parts, width, settings.threads).max(overflow)
            + self.bytes_of(rows);
        if rows > MOST_ROWS || !self.reserve(&mut memory, own) {
            return None;
        }
        let placing = Placing::new(&self.kept, &self.stays, rows, shares_words(settings));
        Some((Found::Rows(PrecountedRows::new(parts, placing)), memory))
    }

    /// A worker of the second reading that puts rows in place; `None` if they are kept as in a single
    /// reading.
    pub(crate) fn worker(&self, columns: &Computed) -> Option<Box<dyn SinkWorker>> {
        let State::Counted(Some(second)) = &*self.state() else { return None };
        Some(Box::new(PlacingWorker::new(self, second, columns)))
    }

    /// The finished build side, after the second reading; `None` if rows were kept as in a single reading.
    ///
    /// # Errors
    /// Those of the tasks; resource.
    pub(crate) fn finish(&self, recorder: &Recorder, tasks: &dyn Tasks) -> Result<Option<Built>> {
        let State::Counted(Some(second)) = std::mem::replace(&mut *self.state(), State::Counted(None)) else {
            return Ok(None);
        };
        let second = Arc::into_inner(second).ok_or_else(|| Error::internal("a worker still puts rows"))?;
        let Second { found, mut memory, counting } = second;
        let Made { rows, table, count, reason, filter } = match found {
            Found::Bits(counted) => self.bitmap(counted),
            Found::Rows(precounted) => match precounted.numbering() {
                Numbering::Places(_) => self.cat(precounted, &mut memory, tasks)?,
                Numbering::Buckets(_) => self.cht(precounted, &mut memory, recorder, tasks)?,
            },
        };
        if let (Some((packing, bits)), Some(slot)) = (filter, &self.filter) {
            let bytes = bits.bytes();
            let filter = KeyFilter::of_bits(packing, bits, memory.split_off(bytes));
            recorder.note(format!("join filter: {filter}"));
            slot.publish(filter);
        }
        let words = if self.spec.marks { rows.id_space().div_ceil(64) } else { 0 };
        let matched = (0..words).map(|_| AtomicU64::new(0)).collect();
        memory.resize(rows.bytes() + table.bytes() + words * 8)?;
        let shared = match rows.words() {
            Some((columns, bytes)) => format!(", {columns} columns of which are in words of {bytes} bytes"),
            None => String::new(),
        };
        let (table_bytes, bytes) = (table.bytes(), rows.bytes());
        recorder.note(format!(
            "{reason}; read twice, rows counted in {counting:.3} ms; table of {table_bytes} bytes, rows of {bytes} bytes{shared}"
        ));
        let (null_keys, has_null_keys) = (Vec::new(), false);
        Ok(Some(Built { rows, any: count > 0, table, null_keys, has_null_keys, matched, _memory: memory }))
    }

    fn bitmap(&self, counted: CountedBits) -> Made {
        let is_wanted = self.filter.as_ref().is_some_and(|slot| slot.is_wanted());
        let (count, keys) = (counted.rows(), counted.keys());
        let (packing, bits) = counted.bits();
        let found = keys_found(&packing, count, keys);
        Made {
            rows: Materialized::new(&self.kept),
            table: counted.bitmap(),
            count,
            reason: format!("bitmap: {found}"),
            filter: is_wanted.then_some((packing, bits)),
        }
    }

    fn cat(&self, precounted: PrecountedRows, memory: &mut Reservation, tasks: &dyn Tasks) -> Result<Made> {
        let is_wanted = self.filter.as_ref().is_some_and(|slot| slot.is_wanted());
        let places = precounted.numbering().count();
        let wants_bits = is_wanted && memory.resize(memory.bytes() + BitCount::bytes_for(places)).is_ok();
        let FinalCat { table, rows, bits } = precounted.finalize_cat(wants_bits, memory, tasks)?;
        let (count, packing) = (rows.rows(), table.packing().clone());
        let found = keys_found(&packing, count, table.keys());
        let reason = format!("concise array table: {found}");
        Ok(Made { rows, table: Box::new(table), count, reason, filter: bits.map(|bits| (packing, bits)) })
    }

    fn cht(
        &self,
        precounted: PrecountedRows,
        memory: &mut Reservation,
        recorder: &Recorder,
        tasks: &dyn Tasks,
    ) -> Result<Made> {
        let FinalCht { mut table, rows, overflow } = precounted.finalize_cht(tasks)?;
        let BuildSpec { null_equals_null, settings, .. } = &self.spec;
        let hash_collisions = settings.hash_collisions;
        let input = BuildInput { rows: &rows, null_equals_null, hash_collisions, tasks };
        table.add_overflow(&input, &overflow)?;
        memory.resize(memory.bytes().max(rows.bytes() + table.bytes()))?;
        if let Some(slot) = &self.filter {
            let bounds = self.spec.facts(&rows, tasks)?.bounds;
            let memory = &self.context.memory;
            let filled = slot.fill(&input, bounds.as_deref(), settings.join_filter, memory, 0)?;
            filled.into_iter().for_each(|(_, reason)| recorder.note(reason));
        }
        let (count, overflow) = (rows.rows(), overflow.iter().map(Range::len).sum::<usize>());
        let share = 100.0 * overflow as f64 / count.max(1) as f64;
        let reason = format!("concise hash table: {count} rows, {share:.1} % overflow");
        Ok(Made { rows, table: Box::new(table), count, reason, filter: None })
    }
}

/// The result of both readings.
struct Made {
    rows: Materialized,
    table: Box<dyn JoinTable>,
    /// The number of rows.
    count: usize,
    reason: String,
    /// The keys for the join filter.
    filter: Option<(Packing, Arc<Bits>)>,
}

/// Describes the keys: the numbers of rows and of distinct keys.
fn keys_found(packing: &Packing, rows: usize, keys: usize) -> String {
    let bounds = match packing.bounds()[..] {
        [(min, max)] => format!("keys from {min} to {max}"),
        ref bounds => format!("keys of {} integers", bounds.len()),
    };
    let every = if keys as u64 == packing.places() { ", every value" } else { "" };
    match rows == keys {
        true => format!("{rows} rows, unique {bounds}{every}"),
        false => format!("{rows} rows, {keys} distinct {bounds}{every}"),
    }
}
