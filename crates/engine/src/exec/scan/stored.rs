//! Stored rows: rows of one row group that stay in their blocks, for a consumer that only folds columns.

use super::columns::Columns;
use entasis_storage::{RowGroup, TableSnapshot};
use entasis_vector::{PhysicalType, Stored};
use std::ops::Range;

/// See the module.
#[derive(Debug)]
pub(super) struct StoredRuns {
    snapshot: TableSnapshot,
    pub(super) group: usize,
    pub(super) runs: Vec<Range<usize>>,
    /// For each column of the chunk: its index in the table, and its default physical type.
    columns: Vec<(usize, PhysicalType)>,
}

impl StoredRuns {
    /// No rows yet, of a table with these columns.
    pub(super) fn new(snapshot: &TableSnapshot, columns: &Columns) -> StoredRuns {
        let column = |column: usize| (columns.indexes[column], columns.physical(column));
        let columns = (0..columns.len()).map(column).collect();
        StoredRuns { snapshot: snapshot.clone(), group: 0, runs: Vec::new(), columns }
    }

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
