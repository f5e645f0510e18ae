//! Joins partition by partition, because memory does not suffice for all rows at once, or because the table
//! of a partition fits into a cache.
//!
//! ```text
//! build side → [build::BuildSink] ── rows by partition: [Split] ──→ those that do not fit into memory → [Store]
//!                    ↓ partitions in memory: one shared table
//! probe side → [route::Route] ── rows of partitions in files ─────────────────────────────────────────→ [Store]
//!                    ↓ the others
//!              [super::probe::Probe] → …                 later: [join_phase::JoinPhase], partition by partition → …
//! ```
//! This is a hybrid hash join (DeWitt et al., *Implementation Techniques for Main Memory Database Systems*,
//! SIGMOD 1984) that partitions by bits of a hash like radix joins (Bandle et al., *To Partition, or Not to
//! Partition*, SIGMOD 2021). Rows are written as [tuples](crate::exec::spill::rows).
//!
//! 1. *Build.* A worker whose rows do not fit splits them by the hash of their keys and writes the largest
//!    partitions until the others fit. A quarter of the memory that was free is left to others.
//! 2. *Table.* When all rows have arrived, more partitions are written if there is no memory for the table.
//!    The partitions in memory share one table, chosen as if there were no others.
//! 3. *Probe.* Rows of written partitions go to another file, unchanged. The others are joined at once.
//! 4. *Join phase.* At the end of the join's stream, each worker takes one partition at a time: it loads the
//!    build rows, builds their own table, pushes the probe rows through the same probe, and then the build
//!    tail.
//! 5. A partition that does not fit is split again, by other bits. If that makes it hardly smaller, one key
//!    has most of the rows: then the build rows are taken in *blocks* that fit, and all probe rows are read
//!    for each block. A byte per probe row remembers what earlier blocks found ([`states`]).
//!
//! Without keys there is one partition. So there is if a NULL may match every key and other conditions decide
//! (null-aware joins with several keys or with conditions), since each probe row must see all build rows.
//! With one key and no conditions it is enough to know whether there is a NULL anywhere.
//!
//! The scans of the probe side still receive the keys of all build rows ([`Seen`](super::table::Seen)).
//!
//! # In memory
//!
//! A *radix join* differs only in where partitions wait: rows of both sides stay in memory, as columns, and
//! all partitions are joined in the join phase. Memory is the second medium of a [`Store`]. A radix join is
//! forced, or chosen when all build rows have arrived, which are then split ([`strategy`](super::strategy)).
//!
//! 1. *First pass.* Each worker splits rows as they arrive into partitions of its own: nothing is shared or
//!    locked. When the build side has ended, the workers' partitions are put together, without copying, and
//!    the filter for the probe side is made from all of them.
//! 2. *Second pass.* If the build rows of a partition and their table are too large for a cache, the worker
//!    that takes the partition splits both sides again, into enough parts to make them small.
//! 3. If memory is short, partitions of a side go to the file; one partition may be partly in memory.
//!
//! With `bloom_radix`, a Bloom filter of all build keys is tested before a probe row is kept, unless a scan
//! tests the same keys anyway, and only while it rules out enough rows ([`FilterWorker`]). If the join
//! outputs rows without a match, a row that does not pass goes to the probe at once, whose table is empty.
//! This is Bandle, Giceva and Neumann's radix join with these differences: rows are columns, not tuples;
//! hashes are computed again and not kept; the number of partitions in the second pass is known from the
//! first, so there is no exact histogram; stores are ordinary ones (decision 13).
//!
//! Invariants: a build row is in exactly one table; a probe row meets exactly one partition, and in it all
//! build rows that may match. Partitions that are not in the store are probed at once, so a partition there
//! has build rows.
//!
//! Not here: writing and reading at the same time.

pub(crate) mod join_phase;
mod policy;
pub(crate) mod route;
pub(crate) mod skew;
mod split;
mod states;
mod statistics;
#[cfg(test)]
mod tests;

use super::BuildTail;
use super::buffered_columns::BufferedColumns;
use super::table::{BuildStats, ProbeKeys};
use crate::context::QueryContext;
use crate::exec::join::build_spec::BuildSpec;
use crate::exec::join::strategy::partitions;
use crate::exec::key_filter::{BuildInput, Expected, FilterSlot, FilterWorker, Seen};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Tasks, in_parallel};
use crate::exec::profile::{PassRate, Recorder};
use crate::exec::spill::store::{MOST_SEGMENTS, Medium, Store, Stored};
use crate::memory::Reservation;
use crate::settings::{FilterKind, TableKind};
use crate::sync::{AtomicBool, Mutex, OnceLock, Ordering, PoisonError};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, Result};
use policy::SpillPolicy;
use skew::StoredKeys;
pub(crate) use split::no_ids;
use split::{Keys, Marks, PARTITIONS, Room, Split, Taken, marks};
use statistics::PartitionStatistics;
use std::sync::Arc;

/// The partitions of one join, shared by its operators.
pub(crate) struct Partitioning {
    policy: SpillPolicy,
    /// The reason why partitions stay in memory and are all joined in the join phase; set only if they do.
    radix: OnceLock<String>,
    expected: Expected,
    /// A filter of all build keys, tested before probe rows go to the partitions.
    bloom: Option<(Arc<FilterSlot>, Arc<PassRate>)>,
    /// How the build rows become a table.
    spec: BuildSpec,
    build: Arc<Store>,
    /// Set when the probe side is planned.
    probe: OnceLock<ProbeSide>,
    /// The partitions of the join phase: they are in files, or will be, or all stay in memory until then.
    marks: Marks,
    /// There are such partitions.
    is_active: AtomicBool,
    /// Some build row has a NULL in a key that NULL does not equal.
    has_null_keys: AtomicBool,
    /// The keys of split build rows, if a filter is wanted.
    seen: Option<Arc<Seen>>,
    turns: join_phase::Turns,
    statistics: PartitionStatistics,
    recorder: Arc<Recorder>,
    context: QueryContext,
}

impl Partitioning {
    /// For a join whose build side has these columns, keys first; `None` if nothing may be written or
    /// partitioned in memory. `filtered`: a filter of the keys is wanted. `apart`: rows with different keys
    /// need not meet.
    pub(crate) fn new(
        columns: &[ColumnMeta],
        mut spec: BuildSpec,
        (filtered, apart): (bool, bool),
        expected: Expected,
        recorder: &Arc<Recorder>,
        context: &QueryContext,
    ) -> Option<Arc<Partitioning>> {
        let count = if apart && !spec.null_equals_null.is_empty() { PARTITIONS } else { 1 };
        let asked = spec.table;
        let is_radix = asked.is_partitioned() && count > 1;
        let may_write = !context.settings.temp_directory.is_empty();
        if !may_write && !is_radix {
            return None;
        }
        // A filter's keys are never NULL.
        let has_bloom =
            is_radix && spec.table == TableKind::BloomRadix && !spec.null_equals_null.contains(&true);
        let bloom = has_bloom.then(|| {
            let rate = recorder.pass_rate("join filter", "the keys, before rows are kept");
            (Arc::new(FilterSlot::new(expected)), rate)
        });
        if is_radix {
            // Each partition chooses its own table.
            spec.table = TableKind::Auto;
        }
        let medium = if is_radix { Medium::Memory } else { Medium::File };
        let radix = OnceLock::new();
        if is_radix {
            let _ = radix.set(format!("join_table = {}", asked));
        }
        let is_single = filtered && spec.null_equals_null.len() == 1;
        let seen = columns.first().filter(|_| is_single).and_then(Seen::of).map(Arc::new);
        Some(Arc::new(Partitioning {
            policy: SpillPolicy::new(may_write, context),
            radix,
            expected,
            bloom,
            spec,
            build: Store::new(columns, count, medium, context),
            probe: OnceLock::new(),
            marks: marks(count, false),
            is_active: AtomicBool::new(false),
            has_null_keys: AtomicBool::new(false),
            seen,
            turns: join_phase::Turns::default(),
            statistics: PartitionStatistics::default(),
            recorder: recorder.clone(),
            context: context.clone(),
        }))
    }

    /// Sets the columns of the probe side's chunks, and which of them are kept; the others need not have been
    /// filled. `stored` is the table that the keys come from.
    pub(crate) fn set_probe(
        &self,
        columns: &[ColumnMeta],
        kept: &Arc<BufferedColumns>,
        stored: Option<StoredKeys>,
    ) {
        let store =
            Store::new(&kept.of(columns), self.build.partitions(), self.build.medium(), &self.context);
        let _ = self.probe.set(ProbeSide { store, kept: kept.clone(), stored });
    }

    fn probe(&self) -> &ProbeSide {
        self.probe.get().expect("the probe side is planned before it runs")
    }

    /// True if rows are split from the first one on.
    pub(crate) fn is_forced(&self) -> bool {
        self.policy.is_forced() || self.is_radix()
    }

    /// True if partitions stay in memory and are all joined in the join phase.
    pub(crate) fn is_radix(&self) -> bool {
        self.radix.get().is_some()
    }

    /// Decides whether the join of `rows`, all build rows, which could have one table, is partitioned in
    /// memory.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn choose(
        &self,
        facts: &mut BuildStats,
        rows: &Materialized,
        memory: &mut Reservation,
        tasks: &dyn Tasks,
    ) -> Result<bool> {
        let Some(sides) = self.sides((rows.rows(), rows.bytes()), memory.free()) else { return Ok(false) };
        if !partitions::may_pay(&sides) {
            return Ok(false);
        }
        facts.repetition = self.spec.repetition_by_hash(facts, rows, memory, tasks)?;
        let workers = self.context.settings.threads;
        let Some(repetition) = facts.repetition else { return Ok(false) };
        let Some(why) = partitions::reason(&sides, repetition, workers) else { return Ok(false) };
        let mut reason = why.to_string();
        if let Some(keys) = &self.probe().stored {
            let spec = &self.spec;
            let nulls_count =
                !spec.shape.drops_unmatched_probe_rows() || spec.null_equals_null.contains(&true);
            let distinct = rows.rows() as f64 / repetition.per_key.max(1.0);
            let skew = keys.skew(distinct as usize, nulls_count);
            if partitions::is_skewed(skew.exponent, skew.most, workers) {
                self.recorder.note(format!("no radix join: {skew}"));
                return Ok(false);
            }
            reason += &format!(", {skew}");
        }
        [&self.build, &self.probe().store].iter().for_each(|store| store.stay_in_memory());
        Ok(self.radix.set(reason).is_ok())
    }

    /// True if partitions in memory, with `free` bytes free, are expected to be faster for this many rows
    /// with distinct keys that could be read twice.
    pub(crate) fn may_pay(&self, rows: usize, free: usize) -> bool {
        let width: usize = self.build.columns().iter().map(|meta| meta.physical.width()).sum();
        let sides = self.sides((rows, rows * width), free);
        sides.is_some_and(|sides| partitions::pays_beside_two_readings(&sides))
    }

    /// The numbers of both sides, with this many build rows and bytes; `None` if the join must not be
    /// partitioned in memory.
    fn sides(&self, (rows, bytes): (usize, usize), free: usize) -> Option<partitions::Sides> {
        let width =
            |columns: &[ColumnMeta]| columns.iter().map(|meta| partitions::width(meta.physical)).sum();
        (self.spec.table == TableKind::Auto && self.marks.len() > 1).then(|| partitions::Sides {
            build: (rows, width(self.build.columns()), bytes + self.table_bytes(rows)),
            probe: (self.expected.rows, width(self.probe().store.columns())),
            matching: self.expected.given(rows).matching,
            partition: self.context.settings.join_partition_size,
            free,
        })
    }

    /// Splits `rows`, all build rows, whose reservation is `memory`, by partition; one part for each worker.
    ///
    /// # Errors
    /// Those of the tasks; resource.
    pub(crate) fn split_all(
        self: &Arc<Partitioning>,
        rows: Materialized,
        memory: Reservation,
        tasks: &dyn Tasks,
    ) -> Result<Vec<SplitRows>> {
        let splits = Mutex::new(Vec::new());
        let lock = || splits.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.run(rows.segments(), &|segment| {
            let free = lock().pop();
            let mut own = free.unwrap_or_else(|| self.build_rows());
            own.take_segment(&rows, segment)?;
            lock().push(own);
            Ok(())
        })?;
        drop((rows, memory));
        Ok(splits.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if there are partitions for the join phase. Known when the build side is complete.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Sets memory aside for others. Must be called before the first row is kept.
    pub(crate) fn set_memory_aside(&self) {
        self.policy.set_aside();
    }

    /// True if `bytes` of rows, whose reservation is `memory`, are too much for one worker.
    pub(crate) fn is_short(&self, bytes: usize, memory: &Reservation) -> bool {
        self.policy.is_short(bytes, memory)
    }

    fn is_marked(&self, partition: usize) -> bool {
        self.marks[partition].load(Ordering::Relaxed)
    }

    // ---- the build side -----------------------------------------------------------------------------------

    /// One worker's build rows, by partition.
    pub(crate) fn build_rows(self: &Arc<Partitioning>) -> SplitRows {
        let room = Room {
            most: usize::MAX,
            left: self.policy.left(),
            least: self.policy.least(),
            segments: self.context.settings.most_segments,
        };
        let split =
            Split::new(&self.build, &self.marks, 0, room, &self.context.memory).telling(self.seen.clone());
        SplitRows { split, keys: Box::new(self.spec.keys()), partitioning: self.clone() }
    }

    /// Completes the build side: writes what must be written, and returns the other rows and their
    /// reservation. Publishes a filter of all keys in `slot`.
    ///
    /// # Errors
    /// Those of writing; resource.
    pub(crate) fn complete(
        &self,
        parts: Vec<SplitRows>,
        slot: Option<&FilterSlot>,
        tasks: &dyn Tasks,
    ) -> Result<(Materialized, Reservation)> {
        let mut splits: Vec<Split> = parts.into_iter().map(|part| part.split).collect();
        let count = self.marks.len();
        (0..count)
            .filter(|&p| self.policy.wants(p, count))
            .for_each(|p| self.marks[p].store(true, Ordering::Relaxed));
        in_parallel(tasks, splits.iter_mut().collect(), &|_, split: &mut &mut Split| split.write_marked())?;
        while !self.is_radix() {
            let size = |p: usize| {
                let sizes = splits.iter().map(|split| split.size(p));
                sizes.fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1))
            };
            let sizes: Vec<(usize, usize)> = (0..count).map(size).collect();
            let rows: usize = sizes.iter().map(|(_, rows)| rows).sum();
            let largest = (0..count).max_by_key(|&p| sizes[p]).expect("there is a partition");
            let has_memory = self.table_bytes(rows) + self.policy.left() / 2 <= self.context.memory.free();
            if rows == 0 || has_memory && rows <= self.policy.most_rows() {
                break;
            }
            tasks.check()?;
            self.marks[largest].store(true, Ordering::Relaxed);
            splits.iter_mut().try_for_each(|split| split.write_one(largest))?;
        }
        if self.is_radix() {
            self.keep_build(splits, slot, tasks)?;
            return Ok((Materialized::new(self.build.columns()), Reservation::new(&self.context.memory)));
        }
        // A partition with rows in the file has none in memory.
        for partition in (0..count).filter(|&p| self.build.rows(p) > 0) {
            splits
                .iter_mut()
                .filter(|split| split.size(partition).1 > 0)
                .try_for_each(|s| s.write_one(partition))?;
        }
        self.mark_stored();
        let (parts, reservations): (Vec<_>, Vec<_>) =
            splits.into_iter().map(|split| split.into_parts(true)).unzip();
        self.publish_seen(slot);
        // Tables may have an entry for each id, so ids must be dense.
        let rows = Materialized::dense(self.build.columns(), parts.into_iter().flatten().collect());
        drop(reservations);
        let mut memory = Reservation::new(&self.context.memory);
        memory.resize(rows.bytes())?;
        Ok((rows, memory))
    }

    /// Leaves partitions with rows in the store to the join phase.
    fn mark_stored(&self) {
        let count = self.marks.len();
        (0..count).for_each(|p| self.marks[p].store(self.build.rows(p) > 0, Ordering::Relaxed));
        self.is_active.store((0..count).any(|p| self.is_marked(p)), Ordering::Relaxed);
    }

    /// Publishes a filter of the seen keys in `slot`.
    fn publish_seen(&self, slot: Option<&FilterSlot>) {
        if let (Some(slot), Some(seen)) = (slot, &self.seen) {
            slot.publish(seen.filter(Reservation::new(&self.context.memory)));
        }
    }

    /// Keeps all build rows in memory, by partition, and makes filters of their keys; if some had to be
    /// written, writes the others too.
    fn keep_build(&self, mut splits: Vec<Split>, slot: Option<&FilterSlot>, tasks: &dyn Tasks) -> Result<()> {
        if self.build.has_written() {
            self.marks.iter().for_each(|mark| mark.store(true, Ordering::Relaxed));
            in_parallel(tasks, splits.iter_mut().collect(), &|_, split: &mut &mut Split| {
                split.write_marked()
            })?;
            self.publish_seen(slot);
            self.mark_stored();
            return Ok(());
        }
        let segments: usize = splits.iter().map(Split::segments).sum();
        let is_whole = segments < MOST_SEGMENTS;
        let mut rows = Materialized::new(self.build.columns());
        let mut memory = Reservation::new(&self.context.memory);
        let mut workers = Vec::new();
        for split in splits {
            let (parts, own) = split.into_parts(!is_whole);
            memory.merge(own);
            workers.push(parts.into_iter());
        }
        let mut partitions = Vec::new();
        for partition in 0..self.marks.len() {
            let first = rows.segments();
            for part in workers.iter_mut().filter_map(Iterator::next) {
                if is_whole {
                    rows.absorb(part);
                } else {
                    let (own, segments) = (memory.split_off(part.bytes()), part.segments());
                    self.build.keep(part, own, [(partition, 0..segments)]);
                }
            }
            partitions.push((partition, first..rows.segments()));
        }
        if is_whole {
            self.fill(&rows, slot, tasks)?;
        } else {
            self.publish_seen(slot);
        }
        self.build.keep(rows, memory, partitions);
        self.mark_stored();
        Ok(())
    }

    /// Makes filters of the keys of `rows`, all build rows: for the probe side's scans and, if none of these
    /// tests them, for probe rows before they go to the partitions.
    fn fill(&self, rows: &Materialized, slot: Option<&FilterSlot>, tasks: &dyn Tasks) -> Result<()> {
        let null_equals_null = &self.spec.null_equals_null;
        let hash_collisions = self.context.settings.hash_collisions;
        let input = BuildInput { rows, null_equals_null, hash_collisions, tasks };
        let memory = &self.context.memory;
        let mut is_tested = false;
        if let Some(slot) = slot {
            let bounds = self.spec.facts(rows, tasks)?.bounds;
            let spared = self.table_bytes(rows.rows()) / self.marks.len();
            let kind = self.context.settings.join_filter;
            if let Some((filter, reason)) = slot.fill(&input, bounds.as_deref(), kind, memory, spared)? {
                is_tested = filter.is_tested();
                self.recorder.note(reason);
            }
        }
        if let Some((bloom, _)) = self.bloom.as_ref().filter(|_| !is_tested) {
            bloom.want();
            if let Some((_, reason)) = bloom.fill(&input, None, FilterKind::Bloom, memory, 0)? {
                self.recorder.note(format!("{reason}, tested before probe rows are partitioned"));
            }
        }
        Ok(())
    }

    /// One worker's test of probe rows before they go to the partitions.
    fn bloom_worker(&self) -> Option<FilterWorker> {
        let (slot, rate) = self.bloom.as_ref()?;
        slot.get()?;
        Some(FilterWorker::new(slot, rate, self.spec.null_equals_null.len(), &self.context.settings))
    }

    /// The number of partitions into which a partition is split again, so that each fits into a cache with
    /// its table; 1 if it fits already, or if there is no memory for both sides twice.
    fn second_pass(&self, build: &Stored, probe: &Stored) -> usize {
        if !self.is_radix() {
            return 1;
        }
        let bytes = build.bytes + self.table_bytes(build.rows);
        let size = self.context.settings.join_partition_size.max(1);
        let parts = bytes.div_ceil(size).next_power_of_two().min(PARTITIONS);
        let needed = |side: &Stored| {
            2 * side.bytes + parts * Materialized::FIRST_ROOM * (side.bytes / side.rows.max(1))
        };
        let free = self.context.memory.free() / (2 * self.context.settings.threads.max(1));
        if needed(build).saturating_add(needed(probe)) <= free { parts } else { 1 }
    }

    /// Some build row has a NULL in a key that NULL does not equal.
    pub(crate) fn has_null_keys(&self) -> bool {
        self.has_null_keys.load(Ordering::Relaxed)
    }

    /// Bytes that a table of this many rows may need, with their marks.
    fn table_bytes(&self, rows: usize) -> usize {
        self.spec.table_bytes(rows, self.build.columns()) + rows / 8
    }

    // ---- profile ------------------------------------------------------------------------------------------

    /// Called when all partitions have been joined: records what was written and why.
    fn note_end(&self) {
        if self.is_active() {
            self.recorder.note(self.report());
        }
    }

    /// What was written and why.
    fn report(&self) -> String {
        let count = self.marks.len();
        let late = (0..count).filter(|&p| self.is_marked(p)).count();
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (build, probe) =
            (self.build.traffic(), self.probe.get().map_or((0, 0), |probe| probe.store.traffic()));
        let again = self.statistics.again();
        let why = self.policy.why();
        let mut text = format!("{late} of {count} partitions in temporary files, {why}");
        if self.is_radix() {
            text = self.report_radix(late);
            if build.0 + probe.0 + again[0] == 0 {
                return text;
            }
            text += &format!("; some rows in temporary files, {why}");
        }
        text += &format!(
            ": {:.1} MB of build rows and {:.1} MB of probe rows written, {:.1} MB read; depth {}",
            megabytes(build.0),
            megabytes(probe.0),
            megabytes(build.1 + probe.1 + again[1]),
            self.statistics.deepest(),
        );
        if again[0] > 0 {
            text += &format!(", {:.1} MB written again", megabytes(again[0]));
        }
        let blocks = self.statistics.blocks();
        if blocks > 0 {
            text += &format!(", {blocks} blocks of rows with frequent keys");
        }
        text
    }

    /// The report of partitions in memory.
    fn report_radix(&self, late: usize) -> String {
        let probe = self.probe.get().map_or(0, |probe| probe.store.kept_bytes());
        let [build, probe] = [self.build.kept_bytes(), probe].map(|bytes| bytes as f64 / 1e6);
        let [split, made] = self.statistics.second_pass();
        let passes = match split {
            0 => "1 pass".to_string(),
            _ => format!(
                "2 passes: {split} partitions were split into {made}, join_partition_size = {} bytes",
                self.context.settings.join_partition_size
            ),
        };
        let (count, why) = (self.marks.len(), self.radix.get().map_or("", String::as_str));
        format!(
            "radix join, {why}: {late} of {count} partitions have build rows, {passes}; {build:.1} MB of build rows and {probe:.1} MB of probe rows in memory"
        )
    }
}

/// Probe rows that wait for the join phase.
struct ProbeSide {
    store: Arc<Store>,
    kept: Arc<BufferedColumns>,
    /// The table that their keys come from, if any.
    stored: Option<StoredKeys>,
}

/// One worker's build rows, by partition.
pub(crate) struct SplitRows {
    split: Split,
    keys: Box<ProbeKeys>,
    partitioning: Arc<Partitioning>,
}

impl SplitRows {
    /// Takes all rows of `chunk`: column i is the chunk's column `columns[i]`, keys first.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take(&mut self, chunk: &Chunk, columns: &[usize]) -> Result<()> {
        let spec = &self.partitioning.spec;
        let nulls = &spec.null_equals_null;
        self.keys.begin(chunk, &columns[..nulls.len()], nulls);
        if self.keys.has_unmatchable() {
            self.partitioning.has_null_keys.store(true, Ordering::Relaxed);
        }
        let rows = Taken { all: spec.keeps_unmatchable(), ..Taken::default() };
        let taken = self.split.take(&mut self.keys, chunk, columns, rows);
        self.keys.release();
        taken
    }

    /// Takes all rows of `rows`, whose reservation is `memory`.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take_all(&mut self, rows: Materialized, memory: Reservation) -> Result<()> {
        self.note_nulls(&rows);
        let spec = &self.partitioning.spec;
        let (null_equals_null, all) = (&spec.null_equals_null[..], spec.keeps_unmatchable());
        self.split.take_all(rows, memory, &mut Keys { keys: &mut self.keys, null_equals_null, all })
    }

    /// Takes all rows of a segment.
    ///
    /// # Errors
    /// Those of writing.
    fn take_segment(&mut self, rows: &Materialized, segment: usize) -> Result<()> {
        self.note_nulls(rows);
        let spec = &self.partitioning.spec;
        let (null_equals_null, all) = (&spec.null_equals_null[..], spec.keeps_unmatchable());
        self.split.take_segment(rows, segment, &mut Keys { keys: &mut self.keys, null_equals_null, all })
    }

    fn note_nulls(&self, rows: &Materialized) {
        let nulls = &self.partitioning.spec.null_equals_null;
        if (0..nulls.len()).any(|key| !nulls[key] && rows.has_nulls(key)) {
            self.partitioning.has_null_keys.store(true, Ordering::Relaxed);
        }
    }
}

impl BuildSpec {
    fn keys(&self) -> ProbeKeys {
        ProbeKeys::new(self.null_equals_null.len(), self.context.settings.hash_collisions)
    }

    /// True if build rows that can match nothing are needed later.
    fn keeps_unmatchable(&self) -> bool {
        self.shape.tail == BuildTail::Unmatched || self.null_aware
    }
}
