//! Logical operations: what was done to rows, apart from where they stand. What a fork is replayed by, and
//! what a log on disk will hold.

use super::snapshot::TableSnapshot;
use crate::scan::row::datum;
use crate::tree::{Piece, Root, RowId, Run, Shape};
use crate::value::{Datum, Sketch};
use entasis_vector::Value;
use std::sync::Arc;

/// Operations in their order.
pub(crate) type Log = Vec<Operation>;

/// One change of a table.
#[derive(Debug)]
pub(crate) enum Operation {
    /// A row was added.
    Insert {
        /// Where it is.
        row: RowId,
        /// Its values.
        new: Box<[Value]>,
    },
    /// A row was removed.
    Delete {
        /// Where it was.
        row: RowId,
        /// Its values.
        old: Box<[Value]>,
    },
    /// Some columns of a row were changed.
    Update {
        /// Where it was.
        row: RowId,
        /// Its values before.
        old: Box<[Value]>,
        /// Columns and their new values.
        new: Box<[(usize, Value)]>,
        /// Where the row went.
        to: RowId,
    },
    /// Many rows were added, as appenders encoded them.
    Append {
        /// The rows.
        pieces: Vec<Arc<Piece>>,
        /// What there is to be known of their distinct values.
        sketches: Vec<Vec<Sketch>>,
        /// Where they are, in a table without a layout key.
        places: Vec<Run>,
    },
    /// Columns of many rows were changed, none of the layout key. What the fork was before and after says
    /// how.
    UpdateMany {
        /// The rows.
        rows: Vec<Run>,
        /// The columns.
        columns: Vec<usize>,
        /// The fork before.
        before: TableSnapshot,
        /// The fork after that. The rows stand at the same places.
        after: TableSnapshot,
    },
    /// Many rows were removed.
    DeleteMany {
        /// The rows.
        rows: Vec<Run>,
        /// The fork before.
        before: TableSnapshot,
    },
    /// All rows were removed.
    Clear,
}

impl Operation {
    pub(crate) fn insert(row: RowId, new: &[Datum<'_>], shape: &Shape) -> Operation {
        let new = new.iter().zip(&shape.schema).map(|(datum, field)| datum.value(field.ty)).collect();
        Operation::Insert { row, new }
    }

    pub(crate) fn delete(row: RowId, root: &Root, shape: &Shape) -> Operation {
        Operation::Delete { row, old: values(row, root, shape) }
    }

    pub(crate) fn update(
        row: RowId,
        root: &Root,
        changes: &[(usize, Datum<'_>)],
        shape: &Shape,
    ) -> Operation {
        let new =
            changes.iter().map(|&(column, datum)| (column, datum.value(shape.schema[column].ty))).collect();
        Operation::Update { row, old: values(row, root, shape), new, to: row }
    }

    pub(crate) fn moved_to(mut self, row: RowId) -> Operation {
        if let Operation::Update { to, .. } = &mut self {
            *to = row;
        }
        self
    }
}

/// The values of a row.
pub(crate) fn values(row: RowId, root: &Root, shape: &Shape) -> Box<[Value]> {
    let value =
        |(column, field): (usize, &entasis_vector::Field)| datum(root, row, column, field.ty).value(field.ty);
    shape.schema.iter().enumerate().map(value).collect()
}
