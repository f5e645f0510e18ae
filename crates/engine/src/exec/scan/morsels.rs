//! The morsels of a scan, which its workers take in turn: the row groups in reach
//! ([`crate::access_path`]), each with the part of it that is in reach.

use super::columns::Columns;
use crate::access_path::Reach;
use crate::exec::key_filter::PlacedFilter;
use crate::sync::{AtomicUsize, Ordering};
use entasis_storage::TableSnapshot;
use std::ops::Range;
use std::sync::Arc;

/// See the module.
#[derive(Clone)]
pub(super) struct Morsels {
    pub(super) reach: Arc<Reach>,
    /// The numbers of the row groups, each with its ranges or rows in reach.
    parts: Arc<[(usize, Range<usize>)]>,
    /// The next part.
    next: Arc<AtomicUsize>,
}

impl Morsels {
    /// The morsels in reach, those first with which the threshold of a sort rules out others soon.
    pub(super) fn new(
        reach: Reach,
        snapshot: &TableSnapshot,
        columns: &Columns,
        joins: &[PlacedFilter],
    ) -> Morsels {
        let mut parts = reach.parts(snapshot.row_groups().len());
        best_first(&mut parts, snapshot, columns, joins);
        Morsels { reach: Arc::new(reach), parts: parts.into(), next: Arc::default() }
    }

    /// Takes the next morsel for a worker: the number of its row group, and its part of the reach.
    pub(super) fn take(&self) -> Option<(usize, Range<usize>)> {
        Some(self.parts.get(self.next.fetch_add(1, Ordering::Relaxed))?.clone())
    }

    /// The fraction of the morsels that workers have taken.
    pub(super) fn progress(&self) -> f64 {
        self.next.load(Ordering::Relaxed) as f64 / self.parts.len().max(1) as f64
    }

    /// True if the rows in reach are named one by one.
    pub(super) fn are_rows(&self) -> bool {
        matches!(&*self.reach, Reach::Rows(_))
    }
}

/// Puts the row groups first that have the first rows of a sort with a limit, by their bounds: with these the
/// threshold soon rules out others. Rows know the number of their row group, so the sort loses nothing.
fn best_first(
    parts: &mut [(usize, Range<usize>)],
    snapshot: &TableSnapshot,
    columns: &Columns,
    filters: &[PlacedFilter],
) {
    let threshold =
        filters.iter().find_map(|filter| Some((filter.test.threshold()?, columns.stored(filter.columns[0]))));
    let Some((threshold, Some(column))) = threshold else { return };
    let zone = |number: usize| snapshot.row_group(number).map(|group| group.column_zone(column));
    parts.sort_by(|(a, _), (b, _)| match (zone(*a), zone(*b)) {
        (Some(a), Some(b)) => threshold.compare_zones(a, b),
        _ => std::cmp::Ordering::Equal,
    });
}
