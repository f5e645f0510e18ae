//! Reads single rows of the newest version: [`Table::read`].

use super::head::Table;
use crate::scan::{KeyRange, lookup, ordered};
use crate::tree::{Root, RowId};
use crate::value::Datum;

/// The newest version of a table, which nobody can change meanwhile.
pub struct TableReader<'a> {
    table: &'a Table,
    root: &'a Root,
}

impl Table {
    /// Reads single rows of the newest version. Nobody can change it meanwhile, so `look` should be short.
    /// Unlike a snapshot, this makes no writer copy anything.
    pub fn read<R>(&self, look: impl FnOnce(TableReader<'_>) -> R) -> R {
        look(TableReader::new(self, &self.shared_head().branch.root))
    }
}

impl<'a> TableReader<'a> {
    pub(crate) fn new(table: &'a Table, root: &'a Root) -> TableReader<'a> {
        TableReader { table, root }
    }

    /// A row whose layout key is `key`: a datum for each of its columns.
    pub fn find(&self, key: &[Datum<'_>]) -> Option<RowId> {
        lookup::first(self.root, &self.table.shape, key)
    }

    /// At most `most` rows of a range of the layout key, the first in its order. Counts as a range query.
    ///
    /// # Panics
    /// If the layout key has more than one column.
    pub fn first_rows(&self, range: &KeyRange<'_>, most: usize) -> Vec<RowId> {
        ordered::first_rows(self.root, &self.table.shape, range, most)
    }

    /// Appends some values of a row to `out`, in the order of `columns`.
    pub fn read(&self, row: RowId, columns: &[usize], out: &mut Vec<Datum<'a>>) {
        crate::scan::row::read(self.root, row, columns, self.table.schema(), out);
    }
}
