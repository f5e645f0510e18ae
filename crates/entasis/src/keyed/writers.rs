//! The tables that a keyed statement with indexes writes to: their heads, or their versions in a transaction.

use crate::transaction::TransactionContext;
use entasis_storage::{HeadWriters, Table, TableEntry, TableWriter};
use std::sync::Arc;

/// Writers of a table and its indexes.
pub(super) trait Writers {
    /// Calls `run` with the writer of one of them.
    fn with<R>(&mut self, table: &Arc<Table>, run: impl FnOnce(&mut TableWriter<'_>) -> R) -> R;
}

/// The versions that a transaction sees.
pub(super) struct InWork<'a> {
    pub(super) transaction: &'a mut TransactionContext,
    pub(super) entry: &'a Arc<TableEntry>,
}

impl Writers for InWork<'_> {
    fn with<R>(&mut self, table: &Arc<Table>, run: impl FnOnce(&mut TableWriter<'_>) -> R) -> R {
        run(&mut self.transaction.write(self.entry, table))
    }
}

impl Writers for HeadWriters<'_> {
    fn with<R>(&mut self, table: &Arc<Table>, run: impl FnOnce(&mut TableWriter<'_>) -> R) -> R {
        run(self.of(table))
    }
}
