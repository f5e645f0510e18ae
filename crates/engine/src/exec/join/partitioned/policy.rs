//! Which partitions of one join go to temporary files: by the memory that is left, by a setting, and because
//! row ids have room for so many rows of a table only.

use crate::context::QueryContext;
use crate::exec::join::strategy::files;
use crate::exec::materialized::SEGMENT_ROWS;
use crate::exec::spill::policy::SpillPolicy;
use crate::settings::JoinSpill;

/// See the module.
pub(super) struct PartitionPolicy {
    setting: JoinSpill,
    /// The most rows of a table.
    most_rows: usize,
    /// When memory is short.
    memory: SpillPolicy,
}

impl PartitionPolicy {
    /// The policy of a statement's settings. Partitions are never written unless `may_write`.
    pub(super) fn new(may_write: bool, context: &QueryContext) -> PartitionPolicy {
        let setting = if may_write { context.settings.join_spill } else { JoinSpill::Auto };
        let most_rows = context.settings.most_segments.saturating_mul(SEGMENT_ROWS);
        PartitionPolicy { setting, most_rows, memory: SpillPolicy::new(&context.memory) }
    }

    /// When memory is short.
    pub(super) fn memory(&self) -> &SpillPolicy {
        &self.memory
    }

    /// True if the setting names partitions, so that rows are split from the first one on.
    pub(super) fn is_forced(&self) -> bool {
        self.setting != JoinSpill::Auto
    }

    /// True if the setting forces `partition`, of `count` partitions, to be written.
    pub(super) fn wants(&self, partition: usize, count: usize) -> bool {
        files::wants(self.setting, partition, count)
    }

    /// The most build rows of a table: row ids have room for as many.
    pub(super) fn most_rows(&self) -> usize {
        self.most_rows
    }

    /// True if a block should get no more than this many build rows, because of the setting or of row ids.
    pub(super) fn is_full(&self, rows: usize) -> bool {
        rows >= self.most_rows || files::is_full(self.setting, rows)
    }

    /// True if this many build rows are too many for a table, because of the setting or of row ids.
    pub(super) fn is_overfull(&self, rows: usize) -> bool {
        rows > self.most_rows || files::is_overfull(self.setting, rows)
    }

    /// Why partitions are written.
    pub(super) fn why(&self) -> files::SpillReason {
        files::SpillReason(self.setting)
    }
}
