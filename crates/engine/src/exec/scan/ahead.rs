//! The columns whose blocks a worker requests while it still processes earlier ones.

use super::columns::Columns;
use super::filters::Filters;
use super::trial::Trial;
use entasis_storage::RowGroup;

/// Columns to prefetch, by their indexes in the table.
#[derive(Clone)]
pub(super) struct Prefetched {
    /// Those that are read first; all, if there are no filters.
    first: Vec<usize>,
    /// Those that are also read if conditions on codes are the only filters and leave many rows.
    next: Vec<usize>,
    /// True if ranges are compared with codes.
    has_ranges: bool,
}

impl Prefetched {
    /// The columns of a scan with these filters.
    pub(super) fn new(columns: &Columns, filters: &Filters) -> Prefetched {
        let outputs = || (0..columns.len()).filter(|&column| columns.outputs[column]);
        let stored = |column: usize| columns.stored(column);
        let first: Vec<usize> = match (filters.ranges.first(), filters.stages.first(), filters.joins.first())
        {
            (Some(range), ..) => vec![range.column],
            (None, Some(stage), _) => stage.columns.iter().copied().filter_map(stored).collect(),
            (None, None, Some(filter)) => filter.columns.iter().copied().filter_map(stored).collect(),
            (None, None, None) => outputs().filter_map(stored).collect(),
        };
        let next = match filters.are_ranges() {
            true => outputs().filter_map(stored).filter(|index| !first.contains(index)).collect(),
            false => Vec::new(),
        };
        Prefetched { first, next, has_ranges: !filters.ranges.all.is_empty() }
    }

    /// Requests the blocks after `slot` that are `wanted`; `passed` says how many rows conditions on codes
    /// leave.
    pub(super) fn request(&self, group: &RowGroup, slot: usize, wanted: &[bool], passed: &Trial) {
        // Comparing by digests already prefetches what comes next.
        if !self.has_ranges || !self.first.iter().all(|&column| group.is_digested(column)) {
            group.prefetch(slot, &self.first, wanted);
        }
        if passed.are_many() {
            group.prefetch(slot, &self.next, wanted);
        }
    }
}
