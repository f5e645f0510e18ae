//! The columns of a scan, in the order in which it outputs them.
//!
//! The index after the table's last column denotes the row id ([`entasis_storage::RowId`]), which is not
//! stored: it has no bounds and no encoding.

use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, PhysicalType};

/// See the module.
#[derive(Clone)]
pub(super) struct Columns {
    /// For each column, its index in the table.
    pub(super) indexes: Vec<usize>,
    /// For each column, whether it is read after the filters.
    pub(super) outputs: Vec<bool>,
    pub(super) metas: Vec<ColumnMeta>,
    /// The index that denotes the row id.
    row_id: usize,
}

impl Columns {
    /// `columns` (id, index in the table), described by `metas`; those not in `outputs` are only for the
    /// filters.
    pub(super) fn new(
        columns: &[(ColumnId, usize)],
        outputs: &[bool],
        metas: &[ColumnMeta],
        row_id: usize,
    ) -> Columns {
        let indexes = columns.iter().map(|(_, index)| *index).collect();
        Columns { indexes, outputs: outputs.to_vec(), metas: metas.to_vec(), row_id }
    }

    /// The number of columns.
    pub(super) fn len(&self) -> usize {
        self.indexes.len()
    }

    /// The index of a column in the table; `None` for the row id.
    pub(super) fn stored(&self, column: usize) -> Option<usize> {
        Some(self.indexes[column]).filter(|&index| index != self.row_id)
    }

    /// The type in which the values of a column are given if nothing is known about them.
    pub(super) fn physical(&self, column: usize) -> PhysicalType {
        self.metas[column].ty.physical()
    }
}
