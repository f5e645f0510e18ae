//! Changes of single rows in place, by several threads at once.
//!
//! A writer of the head excludes everybody else ([`super::writer`]). A row whose new values fit where the old
//! ones are needs less: the head is shared, and the row's slice is latched ([`crate::tree::Latch`]). So two
//! threads that change rows of different slices do not wait for each other, nor for readers of single rows
//! ([`super::reader`]), which look at the latches as well.
//!
//! 1. The head is shared, so that nobody can take a snapshot, fast-forward a fork, or write otherwise.
//! 2. No statement or commit has a write lock ([`WriteLock::is_closed`]). Those that take one close the write
//!    locks and then lock the head once, after which no change in place is under way, and none begins.
//! 3. The row's root, row group, slice and blocks bear the stamp of the head, and the head was written since
//!    the last snapshot: nobody but the head leads to these nodes, and whoever compares versions knows that
//!    this one has changed.
//! 4. The new values fit the encodings and the zones, and the sketches count them already; neither NULL nor
//!    the layout key is involved. So nothing but slots changes ([`Block::overwrites`]).
//! 5. The change is appended to the log, and then the slots are stored, both under the latch: changes of one
//!    row have the same order in the log and in memory, and what a thread has read is in the log.
//!
//! Otherwise nothing is done, and the caller writes as it would without this module, which is the slow twin.
//! The first change after a snapshot copies the nodes, and so is never in place. While snapshots follow one
//! another, most changes are such, and so is each that widens a zone, as times of day do. So after some
//! failures the next attempts are left out ([`super::attempts`]).
//!
//! [`WriteLock::is_closed`]: super::write_lock::WriteLock::is_closed
//! [`Block::overwrites`]: crate::block::Block::overwrites

use super::head::{Head, Table};
use super::logged::{Appended, Framed, Recorded};
use crate::scan::{lookup, row};
use crate::tree::{Latched, RowId, Slice};
use crate::value::Datum;
use entasis_vector::Result;

/// A row of the newest version that nobody else changes or reads meanwhile.
pub struct LatchedRow<'a> {
    table: &'a Table,
    head: &'a Head,
    id: RowId,
    slice: &'a Slice,
    slot: usize,
    /// The change, once it is in the log.
    appended: Option<Appended>,
    _latched: Latched<'a>,
}

impl Table {
    /// Calls `work` with the row whose layout key is `key`, to change it in place while others change other
    /// rows. Returns when the change is as durable as the log's settings ask for. `None` if the row must be
    /// changed by a writer ([`Table::write_as`]), which is also the answer if there is none, or if `work`
    /// returns `None`; then nothing has been changed.
    ///
    /// # Errors
    /// Those of `work`, after which nothing is changed; I/O, if the table is logged and the log refuses the
    /// change. If it fails later, the change is visible and may be in the log's file or not.
    pub fn change_in_place<R>(
        &self,
        key: &[Datum<'_>],
        work: impl FnOnce(&mut LatchedRow<'_>) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        if !self.attempts.are_worthwhile() {
            return Ok(None);
        }
        let head = self.shared_head();
        let Some(mut row) = self.latched_row(&head, key) else {
            self.attempts.count(false);
            return Ok(None);
        };
        let result = work(&mut row);
        self.attempts.count(matches!(result, Ok(Some(_))));
        let appended = row.appended.take();
        drop(row);
        drop(head);
        if let Some(appended) = appended {
            appended.wait()?;
        }
        result
    }

    fn latched_row<'a>(&'a self, head: &'a Head, key: &[Datum<'_>]) -> Option<LatchedRow<'a>> {
        let (root, stamp) = (&*head.branch.root, head.branch.edit.stamp);
        if self.write_lock.is_closed() || root.stamp != stamp || head.changed_at != stamp {
            return None;
        }
        let id = lookup::first(root, &self.shape, key)?;
        let group = &*root.groups[id.group as usize];
        if group.stamp != stamp || !group.is_open() {
            return None;
        }
        let slice = &*group.slices[id.slot as usize / group.block_slots];
        let latched = slice.latched(stamp)?;
        group.touch_shared();
        let slot = id.slot as usize % group.block_slots;
        Some(LatchedRow { table: self, head, id, slice, slot, appended: None, _latched: latched })
    }
}

impl LatchedRow<'_> {
    /// One value.
    pub fn datum(&self, column: usize) -> Datum<'_> {
        self.slice.block(column).datum(self.slot, self.table.schema()[column].ty.physical())
    }

    /// Appends some values to `out`, in the order of `columns`.
    pub fn read<'r>(&'r self, columns: &[usize], out: &mut Vec<Datum<'r>>) {
        row::read(&self.head.branch.root, self.id, columns, self.table.schema(), out);
    }

    /// Changes columns. False if that cannot be done in place; then none has been changed. To be called once,
    /// and nothing may fail afterwards.
    ///
    /// # Errors
    /// I/O, if the table is logged and the log refuses the change; then nothing has been changed.
    pub fn change(&mut self, changes: &[(usize, Datum<'_>)]) -> Result<bool> {
        if !changes.iter().all(|&(column, datum)| self.fits(column, datum)) {
            return Ok(false);
        }
        let (shape, root) = (&self.table.shape, &self.head.branch.root);
        if let Some(logged) = self.table.logged() {
            let mut records = Vec::new();
            let mut recorder = logged.recorder(shape, &mut records);
            recorder.update(&recorder.wording().name_of(self.id, root, shape), changes);
            let framed = Framed::of(&Recorded::of(records), &logged.log)?;
            self.appended = framed.map(|framed| framed.append()).transpose()?;
        }
        for &(column, datum) in changes {
            self.slice.block(column).overwrite(self.slot, datum, shape.schema[column].ty.physical());
        }
        Ok(true)
    }

    /// True if a value can be stored where the present one is, and nothing else has to change.
    fn fits(&self, column: usize, datum: Datum<'_>) -> bool {
        let Head { branch, sketches, .. } = self.head;
        let block = self.slice.block(column);
        block.stamp == branch.edit.stamp
            && block.overwrites(self.slot, datum)
            && branch.root.groups[self.id.group as usize].column_zone(column).holds(datum)
            && sketches[column].counts(datum.hash())
            && !self.table.shape.options.layout_key.contains(&column)
    }
}
