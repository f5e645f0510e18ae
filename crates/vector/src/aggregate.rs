//! Aggregate functions that are computed elsewhere than in the engine: what the engine asks of them.
//!
//! An [`ExternalAggregate`] is a function with the types of a call. It makes [`GroupStates`], which keep one
//! state for each group of a worker; states of several workers are merged. The engine applies `DISTINCT`,
//! `FILTER` and `ORDER BY` itself, so that states see only the rows that count, in order.

use crate::{Result, Vector};
use std::any::Any;
use std::fmt;
use std::ops::RangeInclusive;

/// An aggregate function that another library computes.
pub trait ExternalAggregate: fmt::Debug + Send + Sync {
    /// The name, as SQL writes it.
    fn name(&self) -> &str;
    /// Fresh state for any number of groups. `DISTINCT`, `FILTER` and `ORDER BY` are the engine's: the state
    /// sees the rows that count, in order.
    ///
    /// # Errors
    /// Input, if the function refuses its arguments.
    fn state(&self) -> Result<Box<dyn GroupStates>>;
    /// If a few values decide the result: where they stand in the order of the first argument of `count` rows
    /// (at least one), none of which is NULL. What the function gives for these rows alone is what it gives
    /// for all. A median lies at, or between, those in the middle. `None`: all rows matter.
    fn decisive(&self, count: usize) -> Option<RangeInclusive<usize>> {
        let _ = count;
        None
    }
}

/// The states of one aggregate for all groups of one worker.
pub trait GroupStates: Send {
    /// Adds `rows` rows. `args` are flat or constant, row r at position r, and belongs to group `groups[r]`,
    /// below `group_count`. Groups that are new start empty.
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()>;
    /// Adds the states of `other`, of the same function: its group g goes to this one's group `map[g]`.
    fn merge(&mut self, other: Box<dyn GroupStates>, map: &[u32], group_count: usize) -> Result<()>;
    /// Adds copies of the states of groups `ids` of `other`, of the same function, to the own groups of
    /// `map`, which stand beside them, one after the other; `other` stays as it is. False, and nothing is
    /// added, if states cannot be copied.
    fn add_copies(
        &mut self,
        other: &dyn GroupStates,
        ids: &[u32],
        map: &[u32],
        group_count: usize,
    ) -> Result<bool> {
        let _ = (other, ids, map, group_count);
        Ok(false)
    }
    /// For `add_copies`.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
    /// Results of the groups from `start`, `rows` of them (at most a chunk's), into `out`, which this begins.
    /// Called once for each group, ascending.
    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()>;
    /// Bytes of memory in use, an estimate.
    fn bytes(&self) -> usize;
    /// For `merge`.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}
