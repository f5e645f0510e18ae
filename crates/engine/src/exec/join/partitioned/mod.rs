//! Joins that there is not enough memory for: partitions of both sides go to temporary files.
//!
//! ```text
//! build side → [build::BuildSink] ── rows by partition: [Split] ──→ those that there is no memory for → [Store]
//!                    ↓ partitions in memory: one table, as ever
//! probe side → [route::Route] ── rows of partitions in files ─────────────────────────────────────────→ [Store]
//!                    ↓ the others
//!              [super::probe::Probe] → …                 later: [late::Late], partition after partition → …
//! ```
//! This is a hybrid hash join (DeWitt et al., *Implementation Techniques for Main Memory Database Systems*, SIGMOD 1984), with the
//! bits of a hash as in radix joins (Bandle et al., *To Partition, or Not to Partition*, SIGMOD 2021), written as
//! [tuples](crate::exec::spill::rows).
//!
//! 1. *Build.* A worker whose rows do not fit splits them by the hash of their keys and writes the largest partition, until
//!    they fit. A quarter of the memory that was free is left to others.
//! 2. *Table.* When all rows have come, more partitions are written if there is no memory for the table. The rest gets
//!    the table that it would get alone.
//! 3. *Probe.* Rows whose partition is in the file go to another file, as they are. Others are joined at once.
//! 4. *Late.* A part of the join's stream takes partitions, one each worker: its build rows are loaded and get their own
//!    table, its probe rows are pushed through the same probe, then the build rows that are left come.
//! 5. A partition that does not fit is split again, by other bits. One that gets hardly smaller so has one key that is
//!    very frequent: its build rows are taken in *blocks* that fit, and for each block all its probe rows are read. What
//!    earlier blocks found is remembered, a byte for each probe row ([`states`]).
//!
//! Without keys there is one partition. So it is where a NULL may equal every key and other conditions decide (null-aware joins with
//! several keys or with conditions): each probe row must see all build rows. With one key and no conditions it is enough
//! to know whether there is a NULL anywhere.
//!
//! The keys of all build rows are still told to the probe side's scans ([`Seen`](super::table::Seen)).
//!
//! Invariants: a row of the build side is in exactly one table; a row of the probe side meets exactly one partition, and
//! in it all build rows that may match. Partitions that were not written are probed at once, so a partition in the file
//! has build rows.
//!
//! Not here: writing while others read, and partitions that stay in memory (a radix join is that).

pub(crate) mod late;
pub(crate) mod route;
mod split;
mod states;
mod store;
#[cfg(test)]
mod tests;

use super::Rest;
use super::build::Making;
use super::filter::KeyFilter;
use super::table::{ProbeKeys, Seen, bytes_at_most};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Tasks, in_parallel};
use crate::exec::profile::Recorder;
use crate::exec::{QueryContext, Reservation};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, OnceLock, Ordering};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, PhysicalType, Result};
use split::{Keys, Marks, PARTITIONS, Room, Split, marks};
use std::fmt;
use std::sync::Arc;
use store::Store;

/// Which partitions of joins go to temporary files. The setting `join_spill`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JoinSpill {
    /// Those that there is no memory for.
    #[default]
    Auto,
    /// Every second one. For tests.
    Half,
    /// All. For tests.
    All,
    /// All, and only a few rows are taken to fit into memory then. For tests.
    Deep,
}

impl JoinSpill {
    /// All, with their names in SQL.
    pub const NAMES: [(JoinSpill, &str); 4] =
        [(JoinSpill::Auto, "auto"), (JoinSpill::Half, "half"), (JoinSpill::All, "all"), (JoinSpill::Deep, "deep")];

    /// The one of this name; `None` if there is none.
    pub fn parse(name: &str) -> Option<JoinSpill> {
        JoinSpill::NAMES.iter().find(|(_, own)| *own == name).map(|(value, _)| *value)
    }
}

impl fmt::Display for JoinSpill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = JoinSpill::NAMES.iter().find(|(value, _)| value == self).expect("all have a name");
        f.write_str(name)
    }
}

/// The part of the memory that a build side found free that it leaves to others.
const LEFT_PART: usize = 4;
/// Rows that fit into memory where partitions are to be deep.
const FEW_ROWS: usize = 8;
/// Build rows of a worker may have so much memory, whatever is left to others: the most, and as a part of what is left.
const MOST_LEAST: usize = 4 << 20;
const LEAST_PART: usize = 4;
/// The part of the free memory that probe rows of all workers may have before they are written, and the most of one.
const PROBE_PART: usize = 4;
const MOST_PROBE: usize = 32 << 20;

/// What the parts of one join share that may write partitions.
pub(crate) struct Spill {
    setting: JoinSpill,
    /// How the build side becomes what is probed.
    making: Making,
    build: Arc<Store>,
    /// Known when the probe side is planned.
    probe: OnceLock<ProbeSide>,
    /// Partitions that are in files.
    marks: Marks,
    /// Some are.
    is_active: AtomicBool,
    /// Some build row has a NULL in a key that NULL does not equal.
    has_null_keys: AtomicBool,
    /// Bytes to be left to others.
    left: OnceLock<usize>,
    /// The keys of build rows that were split, if somebody is to be told.
    seen: Option<Arc<Seen>>,
    turns: late::Turns,
    /// What became of it, for the profile.
    deepest: AtomicU32,
    blocks: AtomicUsize,
    again: [AtomicU64; 2],
    recorder: Arc<Recorder>,
    context: QueryContext,
}

impl Spill {
    /// For a join whose build side has these columns, keys first; `None` if nothing may be written. `filtered`: the keys are
    /// to be told to scans. `apart`: rows with different keys need not meet.
    pub(crate) fn new(
        columns: &[ColumnMeta],
        making: Making,
        (filtered, apart): (bool, bool),
        recorder: &Arc<Recorder>,
        context: &QueryContext,
    ) -> Option<Arc<Spill>> {
        if context.settings.temp_directory.is_empty() {
            return None;
        }
        let count = if apart && !making.null_equals_null.is_empty() { PARTITIONS } else { 1 };
        let is_single = filtered && making.null_equals_null.len() == 1;
        let seen = columns.first().filter(|_| is_single).and_then(Seen::of).map(Arc::new);
        Some(Arc::new(Spill {
            setting: context.settings.join_spill,
            making,
            build: Store::new(columns, count, context),
            probe: OnceLock::new(),
            marks: marks(count, false),
            is_active: AtomicBool::new(false),
            has_null_keys: AtomicBool::new(false),
            left: OnceLock::new(),
            seen,
            turns: late::Turns::default(),
            deepest: AtomicU32::new(0),
            blocks: AtomicUsize::new(0),
            again: Default::default(),
            recorder: recorder.clone(),
            context: context.clone(),
        }))
    }

    /// Says what columns chunks of the probe side have, and which of them are read here or above. The others need not
    /// have been filled.
    pub(crate) fn set_probe(&self, columns: &[ColumnMeta], is_read: impl Fn(&ColumnMeta) -> bool) {
        let places: Vec<usize> = (0..columns.len()).filter(|&i| is_read(&columns[i])).collect();
        let stored: Vec<ColumnMeta> = places.iter().map(|&i| columns[i].clone()).collect();
        let store = Store::new(&stored, self.build.partitions(), &self.context);
        let types = columns.iter().map(|meta| meta.physical).collect();
        let _ = self.probe.set(ProbeSide { store, places, types });
    }

    fn probe(&self) -> &ProbeSide {
        self.probe.get().expect("the probe side is planned before it runs")
    }

    /// True if rows are split from the first one on.
    pub(crate) fn is_forced(&self) -> bool {
        self.setting != JoinSpill::Auto
    }

    /// True once partitions are in files. Known when the build side is complete.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Bytes of memory that are left to others. To be asked before the first row is kept.
    pub(crate) fn left(&self) -> usize {
        *self.left.get_or_init(|| self.context.memory.free() / LEFT_PART)
    }

    /// True if rows of so many bytes are too many for one worker, `memory` being theirs.
    pub(crate) fn is_short(&self, bytes: usize, memory: &Reservation) -> bool {
        bytes > self.least() && memory.free() < self.left()
    }

    fn least(&self) -> usize {
        (self.left() / LEAST_PART).min(MOST_LEAST)
    }

    fn is_marked(&self, partition: usize) -> bool {
        self.marks[partition].load(Ordering::Relaxed)
    }

    // ---- the build side ----------------------------------------------------------------------------------------

    /// One worker's build rows, by partition.
    pub(crate) fn build_rows(self: &Arc<Spill>) -> SplitRows {
        let room = Room { most: usize::MAX, left: self.left(), least: self.least() };
        let split = Split::new(&self.build, &self.marks, 0, room, &self.context.memory).telling(self.seen.clone());
        SplitRows { split, keys: self.making.keys(), spill: self.clone() }
    }

    /// Completes the build side: writes what must be, and gives the rest, and its memory.
    ///
    /// # Errors
    /// Those of writing; resource.
    pub(crate) fn complete(&self, parts: Vec<SplitRows>, tasks: &dyn Tasks) -> Result<(Materialized, Reservation)> {
        let mut splits: Vec<Split> = parts.into_iter().map(|part| part.split).collect();
        let count = self.marks.len();
        let is_wanted = |partition: usize| match self.setting {
            JoinSpill::Auto => false,
            JoinSpill::Half => partition % 2 == 1 || count == 1,
            JoinSpill::All | JoinSpill::Deep => true,
        };
        (0..count).filter(|&p| is_wanted(p)).for_each(|p| self.marks[p].store(true, Ordering::Relaxed));
        in_parallel(tasks, splits.iter_mut().collect(), &|_, split: &mut &mut Split| split.write_marked())?;
        loop {
            let size = |p: usize| {
                let sizes = splits.iter().map(|split| split.size(p));
                sizes.fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1))
            };
            let sizes: Vec<(usize, usize)> = (0..count).map(size).collect();
            let rows: usize = sizes.iter().map(|(_, rows)| rows).sum();
            let largest = (0..count).max_by_key(|&p| sizes[p]).expect("there is a partition");
            if rows == 0 || self.table_bytes(rows) + self.left() / 2 <= self.context.memory.free() {
                break;
            }
            tasks.check()?;
            self.marks[largest].store(true, Ordering::Relaxed);
            splits.iter_mut().try_for_each(|split| split.write_one(largest))?;
        }
        // A partition that has rows in the file has none in memory.
        for partition in (0..count).filter(|&p| self.build.rows(p) > 0) {
            splits.iter_mut().filter(|split| split.size(partition).1 > 0).try_for_each(|s| s.write_one(partition))?;
        }
        (0..count).for_each(|p| self.marks[p].store(self.build.rows(p) > 0, Ordering::Relaxed));
        self.is_active.store((0..count).any(|p| self.is_marked(p)), Ordering::Relaxed);
        let (parts, reservations): (Vec<_>, Vec<_>) = splits.into_iter().map(Split::into_parts).unzip();
        // Tables may have an entry for each id, so ids are dense whoever had the rows.
        let rows = Materialized::dense(self.build.columns(), parts.into_iter().flatten().collect());
        drop(reservations);
        let mut memory = Reservation::new(&self.context.memory);
        memory.resize(rows.bytes())?;
        Ok((rows, memory))
    }

    /// A filter of the keys of all build rows, if somebody is to be told.
    pub(crate) fn filter(&self) -> Option<KeyFilter> {
        self.seen.as_ref().map(|seen| seen.filter(Reservation::new(&self.context.memory)))
    }

    /// Some build row has a NULL in a key that NULL does not equal.
    pub(crate) fn has_null_keys(&self) -> bool {
        self.has_null_keys.load(Ordering::Relaxed)
    }

    /// Bytes that a table of so many rows may need, and their marks.
    fn table_bytes(&self, rows: usize) -> usize {
        bytes_at_most(self.context.settings.join_table, rows) + rows / 8
    }

    // ---- what becomes of it ------------------------------------------------------------------------------------

    /// Notes how deep partitions were split.
    fn note_depth(&self, depth: u32) {
        self.deepest.fetch_max(depth, Ordering::Relaxed);
    }

    /// Notes bytes of files that are gone.
    fn note_traffic(&self, store: &Store) {
        let (written, read) = store.traffic();
        self.again[0].fetch_add(written, Ordering::Relaxed);
        self.again[1].fetch_add(read, Ordering::Relaxed);
    }

    /// What was written and why, once all is done.
    fn report(&self) -> String {
        let count = self.marks.len();
        let written = (0..count).filter(|&p| self.is_marked(p)).count();
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (build, probe) = (self.build.traffic(), self.probe.get().map_or((0, 0), |probe| probe.store.traffic()));
        let again = self.again.each_ref().map(|bytes| bytes.load(Ordering::Relaxed));
        let why = match self.setting {
            JoinSpill::Auto => "there was no memory for them".to_string(),
            forced => format!("join_spill = {forced}"),
        };
        let mut text = format!(
            "{written} of {count} partitions in temporary files, {why}: {:.1} MB of build rows and {:.1} MB of probe rows written, {:.1} MB read; depth {}",
            megabytes(build.0),
            megabytes(probe.0),
            megabytes(build.1 + probe.1 + again[1]),
            self.deepest.load(Ordering::Relaxed),
        );
        if again[0] > 0 {
            text += &format!(", {:.1} MB written again", megabytes(again[0]));
        }
        let blocks = self.blocks.load(Ordering::Relaxed);
        if blocks > 0 {
            text += &format!(", {blocks} blocks of rows with frequent keys");
        }
        text
    }
}

/// Rows of the probe side in files.
struct ProbeSide {
    store: Arc<Store>,
    /// Where their columns stand in chunks of the probe side.
    places: Vec<usize>,
    /// Of all columns of such a chunk.
    types: Vec<PhysicalType>,
}

impl Drop for Spill {
    fn drop(&mut self) {
        if self.is_active() {
            self.recorder.note(self.report());
        }
    }
}

/// One worker's build rows, by partition.
pub(crate) struct SplitRows {
    split: Split,
    keys: ProbeKeys,
    spill: Arc<Spill>,
}

impl SplitRows {
    /// Takes all rows of `chunk`: column i is the chunk's column `columns[i]`, keys first.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take(&mut self, chunk: &Chunk, columns: &[usize]) -> Result<()> {
        let making = &self.spill.making;
        let nulls = &making.null_equals_null;
        self.keys.begin(chunk, &columns[..nulls.len()], nulls);
        if self.keys.has_unmatchable() {
            self.spill.has_null_keys.store(true, Ordering::Relaxed);
        }
        let taken = self.split.take(&mut self.keys, chunk, columns, making.keeps_unmatchable(), None);
        self.keys.release();
        taken
    }

    /// Takes all rows of `rows`, whose memory `memory` is.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take_all(&mut self, rows: Materialized, memory: Reservation) -> Result<()> {
        let making = &self.spill.making;
        let nulls = &making.null_equals_null;
        if (0..nulls.len()).any(|key| !nulls[key] && rows.has_nulls(key)) {
            self.spill.has_null_keys.store(true, Ordering::Relaxed);
        }
        let all = making.keeps_unmatchable();
        self.split.take_all(rows, memory, &mut Keys { keys: &mut self.keys, null_equals_null: nulls, all })
    }
}

impl Making {
    fn keys(&self) -> ProbeKeys {
        ProbeKeys::new(self.null_equals_null.len(), self.context.settings.hash_collisions)
    }

    /// True if build rows that can match nothing are asked for later.
    fn keeps_unmatchable(&self) -> bool {
        self.shape.rest == Rest::Unmatched || self.null_aware
    }
}
