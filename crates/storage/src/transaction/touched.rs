//! Tables as a transaction sees them.

use crate::table::{ForkSavepoint, HeadGuard, PendingUpdates, Table, TableFork, TableSnapshot};
use std::sync::Arc;

/// A table as the transaction first saw it, and what the transaction did to it.
pub(super) struct Touched {
    pub(super) table: Arc<Table>,
    /// `None` once the commit has found the rows whose new values were kept.
    pub(super) pinned: Option<TableSnapshot>,
    /// Tables that were pinned at the same moment have the same number.
    pub(super) moment: u64,
    pub(super) fork: Option<TableFork>,
    /// New values of rows of the pinned version, as long as there is neither a fork nor a savepoint.
    pub(super) kept: Option<PendingUpdates>,
    pub(super) is_relied_on: bool,
    /// The commit has found that others have changed its rows.
    pub(super) is_overtaken: bool,
    /// The commit takes its write lock, even if the transaction did not write to it.
    pub(super) needs_write_lock: bool,
    /// The id of the table whose row numbers are in its last column.
    pub(super) refers_to: Option<u64>,
}

/// A savepoint: the tables that were written since, by index, with their forks at that time; `None` for a
/// table that had no fork.
pub(super) type Saved = Vec<(usize, Option<ForkSavepoint>)>;

impl Touched {
    pub(super) fn is_changed(&self) -> bool {
        self.kept.is_some() || self.fork.as_ref().is_some_and(TableFork::is_changed)
    }

    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(super) fn pinned(&self) -> &TableSnapshot {
        self.pinned.as_ref().expect("it is pinned until rows are published")
    }

    /// Writes new values that were kept to a fork.
    pub(super) fn settle(&mut self) {
        if let Some(kept) = &self.kept {
            let mut fork = TableFork::at(self.pinned(), true);
            kept.write(&mut fork.write());
            (self.fork, self.kept) = (Some(fork), None);
        }
    }
}

/// The tables in the order of their ids, each once.
pub(super) fn in_order(tables: &[Arc<Table>]) -> Vec<&Arc<Table>> {
    let mut tables: Vec<&Arc<Table>> = tables.iter().collect();
    tables.sort_by_key(|table| table.id());
    tables.dedup_by_key(|table| table.id());
    tables
}

/// Locks the heads of tables, which must be in order. No commit falls in between.
pub(super) fn lock_all<'a>(tables: &[&'a Arc<Table>]) -> Vec<HeadGuard<'a>> {
    tables.iter().map(|table| table.head()).collect()
}
