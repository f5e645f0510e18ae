//! A turn together with the table that it is of; see [`super::turns`]. Nobody changes rows of the table in
//! place meanwhile ([`super::in_place`]).

use super::head::Table;
use super::turns::Waiter;
use crate::sync::lock_order::{Held, Lock};
use entasis_vector::Result;
use std::sync::Arc;
use std::time::Duration;

/// A turn that ends when this is dropped, and the table that it is of.
pub(crate) struct WriterTurn {
    table: Arc<Table>,
    _held: Held,
}

impl WriterTurn {
    /// Waits for a turn.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up.
    pub(crate) fn take(table: &Arc<Table>, waiter: &Waiter<'_>) -> Result<WriterTurn> {
        WriterTurn::wait(table, waiter, Held::ordered(Lock::Turn(table.id())))
    }

    /// Waits for a turn out of the order, but not for longer than `most`.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up.
    pub(crate) fn take_within(table: &Arc<Table>, waiter: &Waiter<'_>, most: Duration) -> Result<WriterTurn> {
        let limit = Some(waiter.limit.map_or(most, |limit| limit.min(most)));
        WriterTurn::wait(table, &Waiter { limit, ..waiter.clone() }, Held::limited(Lock::Turn(table.id())))
    }

    fn wait(table: &Arc<Table>, waiter: &Waiter<'_>, held: Held) -> Result<WriterTurn> {
        table.turns.wait(table.name(), waiter)?;
        table.turns.close();
        // Changes in place that are under way share the head.
        drop(table.head());
        Ok(WriterTurn { table: table.clone(), _held: held })
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Drop for WriterTurn {
    fn drop(&mut self) {
        self.table.turns.end_closed();
    }
}
