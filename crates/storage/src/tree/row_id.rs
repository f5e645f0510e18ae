//! The places of rows.

use std::cmp::Ordering;

/// The place of a row in one version of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowId {
    /// Index of the row group.
    pub group: u32,
    /// Slot in it.
    pub slot: u32,
}

impl RowId {
    /// Both numbers in one, in the same order.
    #[inline]
    pub fn to_u64(self) -> u64 {
        u64::from(self.group) << 32 | u64::from(self.slot)
    }
    /// The row id that [`RowId::to_u64`] converted.
    #[inline]
    pub fn from_u64(id: u64) -> RowId {
        RowId { group: (id >> 32) as u32, slot: id as u32 }
    }
}

// PERF: one comparison, where a derived order has two and a branch.
impl Ord for RowId {
    #[inline]
    fn cmp(&self, other: &RowId) -> Ordering {
        self.to_u64().cmp(&other.to_u64())
    }
}

impl PartialOrd for RowId {
    #[inline]
    fn partial_cmp(&self, other: &RowId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Rows in consecutive slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: RowId,
    pub(crate) rows: u32,
}

impl Run {
    /// Adds a row to the last of some runs, or as a new run.
    pub(crate) fn push(runs: &mut Vec<Run>, row: RowId) {
        match runs.last_mut() {
            Some(run) if run.first.group == row.group && run.first.slot + run.rows == row.slot => {
                run.rows += 1
            }
            _ => runs.push(Run { first: row, rows: 1 }),
        }
    }
}

/// Rows, which ascend, as runs.
pub(crate) fn runs_of(ids: &[RowId]) -> Vec<Run> {
    let mut runs = Vec::new();
    ids.iter().for_each(|&id| Run::push(&mut runs, id));
    runs
}
