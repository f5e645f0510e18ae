//! Reading single rows of the newest version: [`Table::read`].

use super::head::Table;
use crate::scan::lookup;
use crate::tree::{Root, RowId};
use crate::value::Datum;

/// The newest version of a table, while nobody can change it.
pub struct TableReader<'a> {
    table: &'a Table,
    root: &'a Root,
}

impl Table {
    /// Reads single rows of the newest version. Nobody can change it meanwhile, so this is for short work;
    /// unlike a snapshot it makes no writer copy anything.
    pub fn read<R>(&self, look: impl FnOnce(TableReader<'_>) -> R) -> R {
        look(TableReader::new(self, &self.head().branch.root))
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

    /// Some values of a row, in the order of `columns`, at the end of `out`.
    pub fn read(&self, row: RowId, columns: &[usize], out: &mut Vec<Datum<'a>>) {
        crate::scan::row::read(self.root, row, columns, self.table.schema(), out);
    }
}
