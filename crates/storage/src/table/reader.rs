//! Reads single rows of the newest version: [`Table::read`].
//!
//! The head is shared with other readers, and with those who change rows in place ([`super::in_place`]). So a
//! reader notes the versions of the slices that it reads values of ([`crate::tree::Latch`]). If all are the
//! same at the end, all values are of one moment: that at which the last of the slices was first looked at.
//! Otherwise everything is read again, at last with nobody beside it. Layout keys do not change in place.

use super::head::Table;
use super::overlay::Overlay;
use crate::scan::{KeyRange, lookup, ordered, row};
use crate::tree::{Latch, Root, RowId};
use crate::value::Datum;
use std::cell::{Cell, RefCell};

/// How often rows are read beside changes in place, before these are excluded.
const TRIES: usize = 3;

/// The newest version of a table, in which nobody adds, moves or removes rows meanwhile.
pub struct TableReader<'a> {
    table: &'a Table,
    root: &'a Root,
    /// New values of some rows.
    overlay: Option<&'a Overlay>,
    looked: Looked<'a>,
}

/// Latches of slices, each with the version that it had before values of the slice were read.
#[derive(Default)]
struct Looked<'a> {
    /// PERF: most readers read one row, and so allocate nothing.
    first: Cell<Option<(&'a Latch, u32)>>,
    others: RefCell<Vec<(&'a Latch, u32)>>,
    /// Somebody was writing a slice.
    is_torn: Cell<bool>,
}

impl Table {
    /// Reads single rows of the newest version: all that `look` returns is of one moment. It may be called
    /// several times, and what it reads may be of several moments unless it is the last time. Writers wait
    /// for it, so it should be short. Unlike a snapshot, this makes no writer copy anything.
    pub fn read<R>(&self, look: impl Fn(&TableReader<'_>) -> R) -> R {
        for _ in 0..TRIES {
            let head = self.shared_head();
            let reader = TableReader::new(self, &head.branch.root);
            let result = look(&reader);
            if reader.looked.are_whole() {
                return result;
            }
        }
        look(&TableReader::new(self, &self.head().branch.root))
    }
}

impl<'a> TableReader<'a> {
    pub(crate) fn new(table: &'a Table, root: &'a Root) -> TableReader<'a> {
        TableReader { table, root, overlay: None, looked: Looked::default() }
    }

    /// The same reader, which reads new values of some rows.
    pub(super) fn beneath(self, overlay: &'a Overlay) -> TableReader<'a> {
        TableReader { overlay: Some(overlay), ..self }
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
        let group = &*self.root.groups[row.group as usize];
        self.looked.at((*group.slices[row.slot as usize / group.block_slots]).latch());
        let from = out.len();
        row::read(self.root, row, columns, self.table.schema(), out);
        if let Some(overlay) = self.overlay {
            overlay.lay(row, columns, self.table.schema(), &mut out[from..]);
        }
    }
}

impl<'a> Looked<'a> {
    /// Notes the version of a latch, before values are read.
    #[inline]
    fn at(&self, latch: &'a Latch) {
        match latch.version() {
            None => self.is_torn.set(true),
            Some(version) if self.first.get().is_none() => self.first.set(Some((latch, version))),
            Some(version) => self.others.borrow_mut().push((latch, version)),
        }
    }

    /// True if nothing has been written to the slices since they were looked at.
    #[inline]
    fn are_whole(&self) -> bool {
        let is_at = |(latch, version): &(&Latch, u32)| latch.is_at(*version);
        !self.is_torn.get() && self.first.get().iter().all(is_at) && self.others.borrow().iter().all(is_at)
    }
}
