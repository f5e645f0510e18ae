//! Stored rows: rows of one row group that stay in their blocks, for a consumer that only folds columns.

use entasis_storage::{RowGroup, TableSnapshot};
use entasis_vector::{PhysicalType, Stored};
use std::ops::Range;

/// See the module.
#[derive(Debug)]
pub(super) struct StoredRuns {
    pub(super) snapshot: TableSnapshot,
    pub(super) group: usize,
    pub(super) runs: Vec<Range<usize>>,
    /// For each column of the chunk: its index in the table, and its default physical type.
    pub(super) columns: Vec<(usize, PhysicalType)>,
}

impl StoredRuns {
    fn group(&self) -> &RowGroup {
        self.snapshot.row_group(self.group).expect("the row group was open")
    }
}

impl Stored for StoredRuns {
    fn count(&self, column: usize) -> usize {
        self.group().count_runs(self.columns[column].0, &self.runs)
    }

    fn sum(&self, column: usize) -> i128 {
        let (column, physical) = self.columns[column];
        self.group().sum_runs(column, physical, &self.runs)
    }

    fn extreme(&self, column: usize, largest: bool, best: i128) -> i128 {
        let (column, physical) = self.columns[column];
        self.group().extreme_runs(column, physical, &self.runs, largest, best)
    }
}
