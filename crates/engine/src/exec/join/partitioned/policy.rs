//! How much memory the partitions of one join leave to others, and which of them go to temporary files: the
//! numbers that [`strategy::files`](files) is asked with.

use crate::context::QueryContext;
use crate::exec::join::strategy::files;
use crate::memory::{MemoryBudget, Reservation};
use crate::settings::JoinSpill;
use crate::sync::OnceLock;
use std::sync::Arc;

/// See the module.
pub(super) struct SpillPolicy {
    setting: JoinSpill,
    /// Bytes to be left to others.
    left: OnceLock<usize>,
    memory: Arc<MemoryBudget>,
}

impl SpillPolicy {
    /// By the settings of a statement, whose partitions are never written unless `may_write`.
    pub(super) fn new(may_write: bool, context: &QueryContext) -> SpillPolicy {
        let setting = if may_write { context.settings.join_spill } else { JoinSpill::Auto };
        SpillPolicy { setting, left: OnceLock::new(), memory: context.memory.clone() }
    }

    /// Measures what is free and sets a part of it aside for others. To be called before the first row is
    /// kept.
    pub(super) fn set_aside(&self) {
        self.left();
    }

    /// Bytes of memory that are left to others.
    pub(super) fn left(&self) -> usize {
        *self.left.get_or_init(|| files::left(self.memory.free()))
    }

    /// Bytes that the build rows of a worker may have, whatever is left to others.
    pub(super) fn least(&self) -> usize {
        files::least(self.left())
    }

    /// True if rows of so many bytes are too many for one worker, `memory` being theirs.
    pub(super) fn is_short(&self, bytes: usize, memory: &Reservation) -> bool {
        files::is_short(bytes, memory.free(), self.left())
    }

    /// True if the setting names partitions, so that rows are split from the first one on.
    pub(super) fn is_forced(&self) -> bool {
        self.setting != JoinSpill::Auto
    }

    /// True if the setting wants `partition` of so many to be written.
    pub(super) fn wants(&self, partition: usize, count: usize) -> bool {
        files::wants(self.setting, partition, count)
    }

    /// True if so many build rows are taken to fill the memory, though they may not.
    pub(super) fn is_full(&self, rows: usize) -> bool {
        files::is_full(self.setting, rows)
    }

    /// True if so many are taken to be more than fit.
    pub(super) fn is_overfull(&self, rows: usize) -> bool {
        files::is_overfull(self.setting, rows)
    }

    /// Why partitions are written.
    pub(super) fn why(&self) -> files::SpillReason {
        files::SpillReason(self.setting)
    }
}
