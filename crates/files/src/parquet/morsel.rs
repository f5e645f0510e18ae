//! Morsels of a scan of Parquet files: row groups, and parts of them.

use std::ops::Range;
use std::sync::Arc;

/// Rows of one row group that a worker reads.
#[derive(Clone)]
pub(super) struct Morsel {
    /// The number of the row group among all.
    pub(super) index: usize,
    pub(super) file: usize,
    pub(super) group: usize,
    pub(super) rows: Range<u64>,
    /// If given, the only rows of the row group that are read, ascending.
    pub(super) picked: Option<Arc<[u64]>>,
}

impl Morsel {
    /// The morsel, cut into parts of `length` rows.
    pub(super) fn parts(&self, length: u64) -> impl Iterator<Item = Morsel> {
        let (whole, Range { start, end }) = (self.clone(), self.rows.clone());
        let part =
            move |from: u64| Morsel { rows: from..end.min(from.saturating_add(length)), ..whole.clone() };
        (start..end).step_by(length as usize).map(part)
    }
}
