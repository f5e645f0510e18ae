//! Summaries of the columns of a version, each computed when it is first asked for.

use crate::value::ColumnSummary;
use std::sync::OnceLock;

/// A summary for each column.
pub(crate) struct Summaries(Box<[OnceLock<ColumnSummary>]>);

impl Summaries {
    pub(crate) fn new(columns: usize) -> Summaries {
        Summaries((0..columns).map(|_| OnceLock::new()).collect())
    }

    /// The summary of a column, which `find` computes.
    pub(super) fn of(&self, column: usize, find: impl FnOnce() -> ColumnSummary) -> ColumnSummary {
        self.0[column].get_or_init(find).clone()
    }
}
