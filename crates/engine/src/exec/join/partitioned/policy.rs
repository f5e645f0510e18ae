//! When partitions of a join go to temporary files, and how much memory is left to others.

use crate::context::QueryContext;
use crate::exec::join::tuning::{DEEP_ROWS, LEAST_PART, LEFT_PART, MOST_LEAST};
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
        *self.left.get_or_init(|| self.memory.free() / LEFT_PART)
    }

    /// Bytes that the build rows of a worker may have, whatever is left to others.
    pub(super) fn least(&self) -> usize {
        (self.left() / LEAST_PART).min(MOST_LEAST)
    }

    /// True if rows of so many bytes are too many for one worker, `memory` being theirs.
    pub(super) fn is_short(&self, bytes: usize, memory: &Reservation) -> bool {
        bytes > self.least() && memory.free() < self.left()
    }

    /// True if the setting names partitions, so that rows are split from the first one on.
    pub(super) fn is_forced(&self) -> bool {
        self.setting != JoinSpill::Auto
    }

    /// True if the setting wants `partition` of so many to be written.
    pub(super) fn wants(&self, partition: usize, count: usize) -> bool {
        match self.setting {
            JoinSpill::Auto => false,
            JoinSpill::Half => partition % 2 == 1 || count == 1,
            JoinSpill::All | JoinSpill::Deep => true,
        }
    }

    /// True if so many build rows are taken to fill the memory, though they may not.
    pub(super) fn is_full(&self, rows: usize) -> bool {
        self.setting == JoinSpill::Deep && rows >= DEEP_ROWS
    }

    /// True if so many are taken to be more than fit.
    pub(super) fn is_overfull(&self, rows: usize) -> bool {
        self.setting == JoinSpill::Deep && rows > DEEP_ROWS
    }

    /// Why partitions are written.
    pub(super) fn why(&self) -> String {
        match self.setting {
            JoinSpill::Auto => "there was no memory for them".to_string(),
            forced => format!("join_spill = {forced}"),
        }
    }
}
