//! Logical operations: what was done to rows, apart from where they stand. What a fork is replayed by.
//!
//! A row that was there before is told by its values, and by its number in a table without a layout key
//! ([`OldRow`]): it may have moved by then, and must be as it was.

use super::snapshot::TableSnapshot;
use crate::scan::row::datum;
use crate::tree::{Piece, Root, RowId, Run, Shape};
use crate::value::{Datum, Sketch};
use entasis_vector::{Field, Value};
use std::sync::Arc;

/// Operations in their order.
pub(crate) type Log = Vec<Operation>;

/// One change of a table.
#[derive(Debug)]
pub(crate) enum Operation {
    /// A row was added.
    Insert {
        /// Its number, in a table without a layout key.
        number: u64,
        /// Its values.
        new: Box<[Value]>,
    },
    /// A row was removed.
    Delete(OldRow),
    /// Some columns of a row were changed.
    Update {
        /// The row before.
        old: OldRow,
        /// Columns and their new values.
        new: Box<[(usize, Value)]>,
    },
    /// Many rows were added, as appenders encoded them.
    Append {
        /// The rows.
        pieces: Vec<Arc<Piece>>,
        /// What there is to be known of their distinct values.
        sketches: Vec<Vec<Sketch>>,
        /// The number of the first one, in a table without a layout key. The others follow.
        first: u64,
    },
    /// Columns of many rows were changed, none of the layout key. What the fork was before and after says
    /// how.
    UpdateMany {
        /// Where the rows stood.
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
        /// Where the rows stood.
        rows: Vec<Run>,
        /// The fork before.
        before: TableSnapshot,
    },
    /// All rows were removed.
    Clear,
}

/// A row as it was before it was changed or removed.
#[derive(Debug)]
pub(crate) struct OldRow {
    /// Its number, in a table without a layout key.
    pub(crate) number: u64,
    /// Its values.
    pub(crate) values: Box<[Value]>,
}

impl OldRow {
    fn of(row: RowId, root: &Root, shape: &Shape) -> OldRow {
        let columns = shape.schema.iter().enumerate();
        let value = |(column, field): (usize, &Field)| datum(root, row, column, field.ty).value(field.ty);
        OldRow { number: root.number_of(row), values: columns.map(value).collect() }
    }
}

impl Operation {
    pub(crate) fn insert(number: u64, new: &[Datum<'_>], shape: &Shape) -> Operation {
        let new = new.iter().zip(&shape.schema).map(|(datum, field)| datum.value(field.ty)).collect();
        Operation::Insert { number, new }
    }

    pub(crate) fn delete(row: RowId, root: &Root, shape: &Shape) -> Operation {
        Operation::Delete(OldRow::of(row, root, shape))
    }

    pub(crate) fn update(
        row: RowId,
        root: &Root,
        changes: &[(usize, Datum<'_>)],
        shape: &Shape,
    ) -> Operation {
        let value = |&(column, datum): &(usize, Datum<'_>)| (column, datum.value(shape.schema[column].ty));
        let new = changes.iter().map(value).collect();
        Operation::Update { old: OldRow::of(row, root, shape), new }
    }
}
