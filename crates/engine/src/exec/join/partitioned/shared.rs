//! What the operators of a partitioned join share.

use super::policy::PartitionPolicy;
use super::skew::StoredKeys;
use super::split::{Marks, PARTITIONS, marks};
use super::statistics::PartitionStatistics;
use super::turns::Turns;
use crate::context::QueryContext;
use crate::exec::join::BuildTail;
use crate::exec::join::buffered_columns::BufferedColumns;
use crate::exec::join::build_spec::BuildSpec;
use crate::exec::join::table::ProbeKeys;
use crate::exec::key_filter::{Expected, FilterSlot, FilterWorker, Seen};
use crate::exec::materialized::Materialized;
use crate::exec::profile::{PassRate, Recorder};
use crate::exec::spill::store::{Medium, Store, Stored};
use crate::settings::TableKind;
use crate::sync::{AtomicBool, OnceLock, Ordering};
use entasis_vector::expr::ColumnMeta;
use std::sync::Arc;

/// The partitions of one join, shared by its operators.
pub(crate) struct Partitioning {
    pub(super) policy: PartitionPolicy,
    /// The reason why partitions stay in memory and are all joined in the join phase; set only if they do.
    pub(super) radix: OnceLock<String>,
    pub(super) expected: Expected,
    /// A filter of all build keys, tested before probe rows go to the partitions.
    pub(super) bloom: Option<(Arc<FilterSlot>, Arc<PassRate>)>,
    /// How the build rows become a table.
    pub(super) spec: BuildSpec,
    pub(super) build: Arc<Store>,
    /// Set when the probe side is planned.
    pub(super) probe: OnceLock<ProbeSide>,
    /// The partitions of the join phase: they are in files, or will be, or all stay in memory until then.
    pub(super) marks: Marks,
    /// There are such partitions.
    pub(super) is_active: AtomicBool,
    /// Some build row has a NULL in a key that NULL does not equal.
    pub(super) has_null_keys: AtomicBool,
    /// The keys of split build rows, if a filter is wanted.
    pub(super) seen: Option<Arc<Seen>>,
    pub(super) turns: Turns,
    pub(super) statistics: PartitionStatistics,
    pub(super) recorder: Arc<Recorder>,
    pub(super) context: QueryContext,
}

/// Probe rows that wait for the join phase.
pub(super) struct ProbeSide {
    pub(super) store: Arc<Store>,
    pub(super) kept: Arc<BufferedColumns>,
    /// The table that their keys come from, if any.
    pub(super) stored: Option<StoredKeys>,
}

/// The number of partitions. `apart`: rows with different keys need not meet.
fn count(spec: &BuildSpec, apart: bool) -> usize {
    if apart && !spec.null_equals_null.is_empty() { PARTITIONS } else { 1 }
}

/// True if the setting asks for partitions in memory.
fn is_radix(spec: &BuildSpec, apart: bool) -> bool {
    spec.table.is_partitioned() && count(spec, apart) > 1
}

impl Partitioning {
    /// True if rows of such a join may be written or partitioned in memory. `apart`: rows with different keys
    /// need not meet.
    pub(crate) fn is_possible(spec: &BuildSpec, apart: bool) -> bool {
        !spec.settings.temp_directory.is_empty() || is_radix(spec, apart)
    }

    /// For a join whose build side has these columns, keys first. `filtered`: a filter of the keys is wanted.
    /// `apart`: rows with different keys need not meet.
    pub(crate) fn new(
        columns: &[ColumnMeta],
        mut spec: BuildSpec,
        (filtered, apart): (bool, bool),
        expected: Expected,
        recorder: &Arc<Recorder>,
        context: &QueryContext,
    ) -> Arc<Partitioning> {
        let count = count(&spec, apart);
        let (asked, is_radix) = (spec.table, is_radix(&spec, apart));
        let may_write = !context.settings.temp_directory.is_empty();
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
        Arc::new(Partitioning {
            policy: PartitionPolicy::new(may_write, context),
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
            turns: Turns::default(),
            statistics: PartitionStatistics::default(),
            recorder: recorder.clone(),
            context: context.clone(),
        })
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

    pub(super) fn probe(&self) -> &ProbeSide {
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

    /// True if there are partitions for the join phase. Known when the build side is complete.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Sets memory aside for others. Must be called before the first row is kept.
    pub(crate) fn set_memory_aside(&self) {
        self.policy.memory().set_memory_aside();
    }

    /// True if `bytes` of rows are too much for one worker.
    pub(crate) fn is_short(&self, bytes: usize) -> bool {
        self.policy.memory().is_short(bytes, 0)
    }

    pub(super) fn is_marked(&self, partition: usize) -> bool {
        self.marks[partition].load(Ordering::Relaxed)
    }

    /// One worker's test of probe rows before they go to the partitions.
    pub(super) fn bloom_worker(&self) -> Option<FilterWorker> {
        let (slot, rate) = self.bloom.as_ref()?;
        slot.get()?;
        Some(FilterWorker::new(slot, rate, self.spec.null_equals_null.len(), &self.context.settings))
    }

    /// The number of partitions into which a partition is split again, so that each fits into a cache with
    /// its table; 1 if it fits already, or if there is no memory for both sides twice.
    pub(super) fn second_pass(&self, build: &Stored, probe: &Stored) -> usize {
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
    pub(super) fn table_bytes(&self, rows: usize) -> usize {
        self.spec.table_bytes(rows, self.build.columns()) + rows / 8
    }
}

impl BuildSpec {
    /// Memory for the keys of a chunk.
    pub(super) fn keys(&self) -> ProbeKeys {
        ProbeKeys::new(self.null_equals_null.len(), self.settings.hash_collisions)
    }

    /// True if build rows that can match nothing are needed later.
    pub(super) fn keeps_unmatchable(&self) -> bool {
        self.shape.tail == BuildTail::Unmatched || self.null_aware
    }
}
