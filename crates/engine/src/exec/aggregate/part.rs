//! Groups with their final states, and ranges of them for the readers of the result.

use super::partial::Partial;
use super::state::State;
use crate::exec::materialized::{Materialized, SEGMENT_ROWS};
use crate::memory::Reservation;
use entasis_vector::Result;
use std::ops::Range;
use std::sync::Arc;

/// Groups with their final states.
pub struct FinishedGroups {
    /// The keys; row ids are 0, 1, 2, …
    pub keys: Materialized,
    /// The states, ready to be read.
    pub states: Vec<State>,
    /// Groups.
    pub groups: usize,
    _reservation: Reservation,
}

impl FinishedGroups {
    /// The groups of a completed partial, without its hash table.
    pub fn new(partial: Partial) -> Result<FinishedGroups> {
        let (groups, states, mut reservation) = (partial.table.groups(), partial.states, partial.reservation);
        let keys = partial.table.into_keys();
        reservation.resize(keys.bytes() + states.iter().map(State::bytes).sum::<usize>())?;
        Ok(FinishedGroups { keys, states, groups, _reservation: reservation })
    }
}

/// A range of groups.
pub struct Morsel {
    /// Its unique number.
    pub number: u64,
    /// The part that holds the groups.
    pub part: Arc<FinishedGroups>,
    /// The groups that are still to be returned.
    pub groups: Range<usize>,
}

impl Morsel {
    /// The next groups, at most `rows`, all in one segment of the keys.
    pub fn next(&mut self, rows: usize) -> Range<usize> {
        let start = self.groups.start;
        let end = self.groups.end.min(start + rows).min((start / SEGMENT_ROWS + 1) * SEGMENT_ROWS);
        self.groups.start = end;
        start..end
    }
}
