//! A write lock together with the table that it is of; see [`super::write_lock`]. Nobody changes rows of the
//! table in place meanwhile ([`super::in_place`]).

use super::head::Table;
use super::write_lock::Waiter;
use crate::sync::lock_order::{Held, Lock};
use entasis_vector::Result;
use std::sync::Arc;
use std::time::Duration;

/// The guard of a write lock, which is released when it is dropped, and the table that it is of.
pub(crate) struct OwnedWriteGuard {
    table: Arc<Table>,
    _held: Held,
}

impl OwnedWriteGuard {
    /// Waits for a write lock.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up.
    pub(crate) fn take(table: &Arc<Table>, waiter: &Waiter<'_>) -> Result<OwnedWriteGuard> {
        OwnedWriteGuard::wait(table, waiter, Held::ordered(Lock::Write(table.id())))
    }

    /// Waits for a write lock out of the order, but not for longer than `most`.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up.
    pub(crate) fn take_within(
        table: &Arc<Table>,
        waiter: &Waiter<'_>,
        most: Duration,
    ) -> Result<OwnedWriteGuard> {
        let limit = Some(waiter.limit.map_or(most, |limit| limit.min(most)));
        OwnedWriteGuard::wait(
            table,
            &Waiter { limit, ..waiter.clone() },
            Held::limited(Lock::Write(table.id())),
        )
    }

    fn wait(table: &Arc<Table>, waiter: &Waiter<'_>, held: Held) -> Result<OwnedWriteGuard> {
        table.write_lock.wait(table.name(), waiter)?;
        table.write_lock.close();
        // Changes in place that are under way share the head.
        drop(table.head());
        Ok(OwnedWriteGuard { table: table.clone(), _held: held })
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Drop for OwnedWriteGuard {
    fn drop(&mut self) {
        self.table.write_lock.end_closed();
    }
}
