//! What an ordered table is built from.

use crate::bounds::Lookup;
use crate::exec::join::ProbeOutput;
use crate::exec::operator::Tasks;
use crate::memory::MemoryBudget;
use std::sync::Arc;

/// What such a table is built from.
pub(crate) struct Ingredients<'a> {
    /// How rows are found.
    pub lookup: Lookup,
    /// For each key, whether NULL equals NULL; expressions are the columns after the keys.
    pub null_equals_null: &'a [bool],
    /// What the join outputs for a probe row.
    pub probe: ProbeOutput,
    /// Every hash is the same.
    pub hash_collisions: bool,
    /// The budget that memory of parts is reserved from.
    pub memory: &'a Arc<MemoryBudget>,
    /// Runs work on all workers.
    pub tasks: &'a dyn Tasks,
}
