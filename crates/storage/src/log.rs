//! Logical operations: what was done to rows, apart from where they stand. What a fork is replayed by, and what a log on
//! disk will hold.

use crate::datum::Datum;
use crate::tree::Root;
use crate::write::{RowId, Shape, datum};
use entasis_vector::Value;

/// Operations in their order.
pub(crate) type Log = Vec<Operation>;

/// One change of one row, with the row as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Where the row was, or is if it was added.
    pub row: RowId,
    /// What was done.
    pub change: Change,
}

/// What was done to a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It was added.
    Insert {
        /// Its values.
        new: Box<[Value]>,
    },
    /// It was removed.
    Delete {
        /// Its values.
        old: Box<[Value]>,
    },
    /// Some columns were changed.
    Update {
        /// Its values before.
        old: Box<[Value]>,
        /// Columns and their new values.
        new: Box<[(usize, Value)]>,
        /// Where the row went.
        to: RowId,
    },
}

impl Operation {
    pub(crate) fn insert(row: RowId, new: &[Datum<'_>], shape: &Shape) -> Operation {
        let new = new.iter().zip(&shape.schema).map(|(datum, field)| datum.value(field.ty)).collect();
        Operation { row, change: Change::Insert { new } }
    }

    pub(crate) fn delete(row: RowId, root: &Root, shape: &Shape) -> Operation {
        Operation { row, change: Change::Delete { old: values(row, root, shape) } }
    }

    pub(crate) fn update(row: RowId, root: &Root, changes: &[(usize, Datum<'_>)], shape: &Shape) -> Operation {
        let new = changes.iter().map(|&(column, datum)| (column, datum.value(shape.schema[column].ty))).collect();
        Operation { row, change: Change::Update { old: values(row, root, shape), new, to: row } }
    }

    pub(crate) fn moved_to(mut self, row: RowId) -> Operation {
        if let Change::Update { to, .. } = &mut self.change {
            *to = row;
        }
        self
    }
}

/// The values of a row.
pub(crate) fn values(row: RowId, root: &Root, shape: &Shape) -> Box<[Value]> {
    let value = |(column, field): (usize, &entasis_vector::Field)| datum(root, row, column, field.ty).value(field.ty);
    shape.schema.iter().enumerate().map(value).collect()
}
