//! Lineages: tables that are made of one another, and so show the same blocks.
//!
//! A table with other columns is made of a version of a table ([`Branch::heir`]), and until its name is
//! published it is a fork of that: it frees its own nodes only. At the publication it *succeeds* the old
//! table ([`Branch::succeed`]): it owns all nodes from then on, and the old table is a snapshot of the
//! version that the new one was made of. All of them have one clock and one list of snapshots, so that the
//! rules of [`super`] say when a node is freed, whichever table shows it.
//!
//! Invariants: at most one table of a lineage owns the nodes that others show, and each node is on the list
//! of retired nodes of one table at most. What the last owner leaves is freed with the last table of the
//! lineage: tables that were succeeded may be read for longer.
//!
//! Not here: what a successor looks like ([`crate::table`]), and when it succeeds ([`crate::catalog`]).

use super::branch::Remains;
use super::{Branch, Epochs};
use crate::definition::ObjectId;
use crate::sync::{Mutex, PoisonError};
use std::sync::Arc;

/// What tables have in common that are made of one another.
pub(crate) struct Lineage {
    /// A number that no other lineage of the process has: stamps of other lineages cannot be compared.
    id: u64,
    epochs: Arc<Epochs>,
    /// The ids of all tables that it has had, in the order in which they were made.
    members: Mutex<Vec<ObjectId>>,
    /// What the last owner has left.
    remains: Mutex<Option<Remains>>,
}

impl Lineage {
    /// The lineage of a table that is made of no other.
    pub(crate) fn new(id: u64, first: ObjectId) -> Lineage {
        Lineage { id, epochs: Arc::default(), members: Mutex::new(vec![first]), remains: Mutex::default() }
    }

    /// See [`Lineage`].
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The clock, and the snapshots that are held of any of its tables.
    pub(crate) fn epochs(&self) -> &Arc<Epochs> {
        &self.epochs
    }

    /// Adds a table.
    pub(crate) fn join(&self, object: ObjectId) {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).push(object);
    }

    /// The ids of all tables that it has had, the last one first.
    pub(crate) fn members(&self) -> Vec<ObjectId> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.iter().rev().copied().collect()
    }

    /// Keeps what an owner leaves, until all other tables are gone.
    pub(crate) fn keep(&self, owner: &mut Branch) {
        let mut remains = self.remains.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(remains.is_none(), "a lineage has one owner");
        *remains = Some(owner.leave());
    }
}

impl Drop for Lineage {
    fn drop(&mut self) {
        debug_assert!(self.epochs.active().is_empty(), "snapshots hold their tables");
        if let Some(remains) = self.remains.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            remains.free();
        }
    }
}

impl std::fmt::Debug for Lineage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lineage({})", self.id)
    }
}
