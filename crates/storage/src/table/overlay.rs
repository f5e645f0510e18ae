//! New values of a few rows of a version, beside it.

use crate::tree::RowId;
use crate::value::Datum;
use entasis_vector::{Schema, Value};

/// New values of some rows of a version, none of which is in the layout key.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    rows: Vec<NewValues>,
    bytes: usize,
}

/// The new values of a row.
#[derive(Debug)]
pub(super) struct NewValues {
    pub(super) row: RowId,
    /// Columns, each once, and their values.
    pub(super) values: Vec<(usize, Value)>,
}

impl NewValues {
    /// The columns and their values.
    pub(super) fn datums<'a>(&'a self, schema: &Schema) -> Vec<(usize, Datum<'a>)> {
        let datum =
            |(column, value): &'a (usize, Value)| (*column, Datum::of_value(value, schema[*column].ty));
        self.values.iter().map(datum).collect()
    }

    fn get(&self, column: usize) -> Option<&Value> {
        self.values.iter().find(|(changed, _)| *changed == column).map(|(_, value)| value)
    }
}

impl Overlay {
    /// All rows, each once.
    pub(super) fn rows(&self) -> &[NewValues] {
        &self.rows
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn of(&self, row: RowId) -> Option<&NewValues> {
        self.rows.iter().find(|new| new.row == row)
    }

    /// The new value of a column of a row, if it has one.
    pub(super) fn datum(&self, row: RowId, column: usize, schema: &Schema) -> Option<Datum<'_>> {
        Some(Datum::of_value(self.of(row)?.get(column)?, schema[column].ty))
    }

    /// Puts new values of a row in the place of those that were read, which are of `columns`.
    pub(super) fn lay<'a>(&'a self, row: RowId, columns: &[usize], schema: &Schema, read: &mut [Datum<'a>]) {
        let Some(new) = self.of(row) else { return };
        for (&column, datum) in columns.iter().zip(read) {
            if let Some(value) = new.get(column) {
                *datum = Datum::of_value(value, schema[column].ty);
            }
        }
    }

    /// Gives columns of a row new values. If a column is given twice, the last value counts.
    pub(super) fn set(&mut self, row: RowId, changes: &[(usize, Datum<'_>)], schema: &Schema) {
        let at = self.rows.iter().position(|new| new.row == row).unwrap_or_else(|| {
            self.bytes += size_of::<NewValues>();
            self.rows.push(NewValues { row, values: Vec::with_capacity(changes.len()) });
            self.rows.len() - 1
        });
        let values = &mut self.rows[at].values;
        for &(column, datum) in changes {
            let value = datum.value(schema[column].ty);
            self.bytes += match datum {
                Datum::Bytes(bytes) => size_of::<(usize, Value)>() + bytes.len(),
                _ => size_of::<(usize, Value)>(),
            };
            match values.iter_mut().find(|(changed, _)| *changed == column) {
                Some((_, old)) => *old = value,
                None => values.push((column, value)),
            }
        }
    }
}
