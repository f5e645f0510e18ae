//! New values of a few rows that a transaction keeps until its commit, beside the version that it sees.
//!
//! A fork copies the nodes above each row that it changes, though they may become the newest version a moment
//! later. A transaction that changes a few single rows does without: it keeps the new values ([`Overlay`]),
//! and its readers of single rows lay them over what they read. The commit
//!
//! 1. takes the write lock of the table, and finds the rows in the newest version: where they were, or
//!    wherever others have moved them. A row that is not there as it was makes a conflict;
//! 2. gives up its snapshot, so that nothing has to be copied that only this snapshot showed;
//! 3. writes the values to the head, under its lock.
//!
//! The slow twin is a fork with a log, to which the values are written when something else is to be done with
//! the table, such as a query with a plan, an added row or a savepoint.

use super::head::{Head, Table};
use super::logged::Recorded;
use super::overlay::Overlay;
use super::reader::TableReader;
use super::snapshot::TableSnapshot;
use super::writer::TableWriter;
use crate::scan::lookup;
use crate::scan::row::{self, datum};
use crate::tree::{Root, RowId, Shape};
use crate::value::Datum;
use crate::write::Writer;

/// How many rows are kept at most. All of them are looked at for each that is read or changed.
const MOST_ROWS: usize = 128;
/// About how many bytes are kept at most.
const MOST_BYTES: usize = 1 << 16;
/// About how many bytes the commit copies for a row, if a snapshot shows it.
const COPIED: usize = 4096;

/// New values of rows of a version.
#[derive(Debug, Default)]
pub(crate) struct PendingUpdates {
    overlay: Overlay,
    /// Where the rows are in the newest version, once they have been found.
    places: Vec<RowId>,
}

/// Single rows of a table as a transaction sees them, whose changes are kept until it is committed.
pub struct SingleRows<'a> {
    pinned: &'a TableSnapshot,
    kept: &'a mut Option<PendingUpdates>,
}

impl<'a> SingleRows<'a> {
    /// Rows of a version, and those of which new values are kept; `None` if they are too many.
    pub(crate) fn new(
        pinned: &'a TableSnapshot,
        kept: &'a mut Option<PendingUpdates>,
    ) -> Option<SingleRows<'a>> {
        let is_full = |kept: &PendingUpdates| {
            kept.overlay.rows().len() >= MOST_ROWS || kept.overlay.bytes() >= MOST_BYTES
        };
        if kept.as_ref().is_some_and(is_full) {
            return None;
        }
        Some(SingleRows { pinned, kept })
    }

    /// The row whose layout key is `key`: a datum for each of its columns. None, if one of them is NULL.
    pub fn find(&self, key: &[Datum<'_>]) -> Option<RowId> {
        let is_whole = !key.iter().any(|datum| datum.is_null());
        is_whole.then(|| self.pinned.reader().find(key)).flatten()
    }

    /// One value of a row.
    pub fn datum(&self, row: RowId, column: usize) -> Datum<'_> {
        let new = self.kept.as_ref().and_then(|kept| kept.overlay.datum(row, column, self.pinned.schema()));
        new.unwrap_or_else(|| self.pinned.datum(row, column))
    }

    /// Appends some values of a row to `out`, in the order of `columns`.
    pub fn read<'r>(&'r self, row: RowId, columns: &[usize], out: &mut Vec<Datum<'r>>) {
        let from = out.len();
        self.pinned.read(row, columns, out);
        if let Some(kept) = &*self.kept {
            kept.overlay.lay(row, columns, self.pinned.schema(), &mut out[from..]);
        }
    }

    /// Changes columns of a row that was found.
    ///
    /// # Panics
    /// If a column is part of the layout key.
    pub fn update(&mut self, row: RowId, changes: &[(usize, Datum<'_>)]) {
        let table = self.pinned.table();
        assert!(!changes.iter().any(|(column, _)| table.options().layout_key.contains(column)));
        if !changes.is_empty() {
            self.kept.get_or_insert_default().overlay.set(row, changes, table.schema());
        }
    }
}

impl PendingUpdates {
    /// About how much memory it takes, with what the commit may copy.
    pub(crate) fn bytes(&self) -> usize {
        self.overlay.bytes() + self.overlay.rows().len() * COPIED
    }

    /// Reads single rows of the version with their new values.
    pub(crate) fn reader<'a>(&'a self, pinned: &'a TableSnapshot) -> TableReader<'a> {
        pinned.reader().beneath(&self.overlay)
    }

    /// Writes the new values to a fork that begins at the version.
    pub(crate) fn write(&self, fork: &mut TableWriter<'_>) {
        for new in self.overlay.rows() {
            let changes = new.datums(fork.schema());
            fork.update(new.row, &changes);
        }
    }

    /// Finds the rows of the version in the newest one. The write lock must be held, so that they stay there.
    /// Returns a row that others have changed or removed, if there is one.
    pub(crate) fn find(&mut self, pinned: &TableSnapshot) -> Option<RowId> {
        let table = pinned.table();
        let head = table.shared_head();
        let (old, newest) = (&*pinned.pinned().0, &*head.branch.root);
        self.places.clear();
        for new in self.overlay.rows() {
            match place(old, newest, new.row, &table.shape) {
                Some(place) => self.places.push(place),
                None => return Some(new.row),
            }
        }
        None
    }

    /// Appends the redo records, if the table is logged. The names of the rows are those in the version.
    pub(crate) fn record(&self, pinned: &TableSnapshot, out: &mut Recorded) {
        let (table, root) = (pinned.table(), pinned.pinned().0);
        let Some(logged) = table.logged() else { return };
        let mut recorder = logged.recorder(&table.shape, out.bytes());
        for new in self.overlay.rows() {
            let name = recorder.wording().name_of(new.row, &root, &table.shape);
            recorder.update(&name, &new.datums(table.schema()));
        }
    }

    /// Writes the new values to the head, in which the rows have been found.
    pub(crate) fn publish(&self, table: &Table, head: &mut Head) {
        let shape = &table.shape;
        head.change();
        for (new, &place) in self.overlay.rows().iter().zip(&self.places) {
            let changes = new.datums(&shape.schema);
            Writer { shape, branch: &mut head.branch }.update(place, &changes);
            for &(column, datum) in changes.iter().filter(|(_, datum)| !datum.is_null()) {
                head.sketches[column].add(datum.hash());
            }
        }
        head.branch.sweep();
    }
}

/// Where a row of an older version is in the newest one, if it has the same values there.
fn place(old: &Root, newest: &Root, row: RowId, shape: &Shape) -> Option<RowId> {
    let slice = |root: &Root| {
        let group = root.groups.get(row.group as usize)?;
        group.slices.get(row.slot as usize / group.block_slots).copied()
    };
    if slice(old).zip(slice(newest)).is_some_and(|(old, newest)| old.is(newest)) {
        return Some(row);
    }
    let of = |root, row, column: usize| datum(root, row, column, shape.schema[column].ty);
    let is_it =
        |place| (0..shape.schema.len()).all(|column| of(old, row, column).is_same(of(newest, place, column)));
    let mut key = Vec::with_capacity(shape.options.layout_key.len());
    row::read(old, row, &shape.options.layout_key, &shape.schema, &mut key);
    let mut found = None;
    lookup::find_each(newest, shape, &key, |place| {
        found = is_it(place).then_some(place);
        found.is_none()
    });
    found
}
