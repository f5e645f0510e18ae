//! How much memory the partitions of one join leave to others, and which of them go to temporary files: the
//! arguments for [`strategy::files`](files).

use crate::context::QueryContext;
use crate::exec::join::strategy::files;
use crate::exec::materialized::SEGMENT_ROWS;
use crate::memory::{MemoryBudget, Reservation};
use crate::settings::JoinSpill;
use crate::sync::OnceLock;
use std::sync::Arc;

/// See the module.
pub(super) struct SpillPolicy {
    setting: JoinSpill,
    /// The most rows of a table.
    most_rows: usize,
    /// Bytes left to others.
    left: OnceLock<usize>,
    memory: Arc<MemoryBudget>,
}

impl SpillPolicy {
    /// The policy of a statement's settings. Partitions are never written unless `may_write`.
    pub(super) fn new(may_write: bool, context: &QueryContext) -> SpillPolicy {
        let setting = if may_write { context.settings.join_spill } else { JoinSpill::Auto };
        let most_rows = context.settings.most_segments.saturating_mul(SEGMENT_ROWS);
        SpillPolicy { setting, most_rows, left: OnceLock::new(), memory: context.memory.clone() }
    }

    /// Measures the free memory and sets a share of it aside for others. Must be called before the first row
    /// is kept.
    pub(super) fn set_aside(&self) {
        self.left();
    }

    /// Bytes of memory that are left to others.
    pub(super) fn left(&self) -> usize {
        *self.left.get_or_init(|| files::left(self.memory.free()))
    }

    /// Bytes that a worker's build rows may have, whatever is left to others.
    pub(super) fn least(&self) -> usize {
        files::least(self.left())
    }

    /// True if `bytes` of rows, whose reservation is `memory`, are too much for one worker.
    pub(super) fn is_short(&self, bytes: usize, memory: &Reservation) -> bool {
        files::is_short(bytes, memory.free(), self.left())
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
