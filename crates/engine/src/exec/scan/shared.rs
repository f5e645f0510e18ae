//! The part of a scan that its workers share: it is made once, and does not change while they read.

use super::ahead::Prefetched;
use super::columns::Columns;
use super::filters::Filters;
use super::morsels::Morsels;
use crate::access_path::{Found, Reach};
use crate::context::QueryContext;
use crate::exec::key_filter::PlacedFilter;
use crate::exec::profile::Recorder;
use crate::plan::Scan;
use crate::settings::Compaction;
use entasis_storage::TableSnapshot;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, Result};
use std::sync::Arc;

/// The scan of a stored table.
#[derive(Clone)]
pub(crate) struct TableScan {
    pub(super) snapshot: TableSnapshot,
    pub(super) columns: Columns,
    pub(super) filters: Filters,
    pub(super) morsels: Morsels,
    pub(super) prefetched: Prefetched,
    pub(super) chunk_rows: usize,
    /// Rows may be held back.
    pub(super) may_keep: bool,
    /// Rows that no filter reads stay in their blocks.
    pub(super) leaves_stored: bool,
    pub(super) recorder: Arc<Recorder>,
}

impl TableScan {
    /// A scan of `columns` (id, index in the table), described by `metas`, for rows that satisfy the filters
    /// of `scan`. Columns not in `outputs` are only for the filters.
    ///
    /// # Errors
    /// Those of compiling the filters.
    pub(crate) fn new(
        snapshot: TableSnapshot,
        scan: &Scan,
        columns: &[(ColumnId, usize)],
        outputs: &[bool],
        metas: &[ColumnMeta],
        join_filters: Vec<PlacedFilter>,
        recorder: &Arc<Recorder>,
        context: &QueryContext,
    ) -> Result<TableScan> {
        // Row ids have no bounds.
        let row_id = snapshot.schema().len();
        let place =
            |id: ColumnId| columns.iter().find(|(c, index)| *c == id && *index != row_id).map(|(_, i)| *i);
        let mut conjuncts = Vec::new();
        scan.filters.iter().for_each(|filter| filter.clone().split_conjunction(&mut conjuncts));
        let settings = &context.settings;
        let Found { reach, implied, .. } = match settings.optimize {
            true => Found::of(&*scan.relation, &snapshot, &conjuncts, &place, true),
            false => Found::everywhere(&conjuncts),
        };
        let (mut is_implied, mut others) = (Vec::new(), Vec::new());
        for (conjunct, is) in conjuncts.into_iter().zip(implied) {
            if is { is_implied.push(conjunct) } else { others.push(conjunct) }
        }
        // Rows that an index names are tested one at a time, and output at once.
        let are_rows = matches!(reach, Reach::Rows(_));
        let on_codes = settings.optimize && !are_rows;
        let columns = Columns::new(columns, outputs, metas, row_id);
        let filters = Filters::new((is_implied, others), join_filters, &columns, &place, on_codes, settings)?;
        Ok(TableScan {
            morsels: Morsels::new(reach, &snapshot, &columns, &filters.joins),
            prefetched: Prefetched::new(&columns, &filters),
            chunk_rows: settings.chunk_rows,
            may_keep: settings.compaction == Compaction::Auto && !are_rows,
            leaves_stored: false,
            recorder: recorder.clone(),
            columns,
            filters,
            snapshot,
        })
    }

    /// The most rows that the scan can output.
    pub(crate) fn rows(&self) -> u64 {
        self.morsels.reach.rows(self.snapshot.rows())
    }
}
