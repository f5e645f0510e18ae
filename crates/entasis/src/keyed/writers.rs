//! The tables that a keyed statement with indexes writes to: their heads, or their versions in a work.

use crate::work::Work;
use entasis_storage::{HeadWriters, Table, TableEntry, TableWriter};
use std::sync::Arc;

/// Writers of a table and its indexes.
pub(super) trait Writers {
    /// Calls `work` with the writer of one of them.
    fn with<R>(&mut self, table: &Arc<Table>, work: impl FnOnce(&mut TableWriter<'_>) -> R) -> R;
}

/// The versions that a work sees.
pub(super) struct InWork<'a> {
    pub(super) work: &'a mut Work,
    pub(super) entry: &'a Arc<TableEntry>,
}

impl Writers for InWork<'_> {
    fn with<R>(&mut self, table: &Arc<Table>, work: impl FnOnce(&mut TableWriter<'_>) -> R) -> R {
        work(&mut self.work.write(self.entry, table))
    }
}

impl Writers for HeadWriters<'_> {
    fn with<R>(&mut self, table: &Arc<Table>, work: impl FnOnce(&mut TableWriter<'_>) -> R) -> R {
        work(self.of(table))
    }
}
