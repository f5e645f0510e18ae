//! Summaries: what is known of the columns of a version, found out once.

use crate::value::ColumnSummary;
use std::sync::OnceLock;

/// What is known of the columns of a version, found out when first asked for.
pub(crate) struct Summaries(Box<[OnceLock<ColumnSummary>]>);

impl Summaries {
    pub(crate) fn new(columns: usize) -> Summaries {
        Summaries((0..columns).map(|_| OnceLock::new()).collect())
    }

    /// That of a column, which `find` finds out.
    pub(super) fn of(&self, column: usize, find: impl FnOnce() -> ColumnSummary) -> ColumnSummary {
        self.0[column].get_or_init(find).clone()
    }
}
