//! Writers of rows, to the head one by one, or to a fork of the table ([`super::fork`]). A writer ends when
//! it is dropped.
//!
//! Constraints are not checked here. The caller looks before it writes ([`TableWriter::find`]), or looks at
//! the result and undoes it ([`TableWriter::atomically`]).

use super::appender::{Added, AppendedRows};
use super::change_list::{Log, Operation, Trace, record_delete, record_pieces};
use super::duplicates::{self, Among};
use super::head::{HeadGuard, Table};
use super::index;
use super::loads::{Pieces, StoredLoad};
use super::logged::{Appended, Framed, Recorded};
use super::snapshot::{Origin, TableSnapshot};
use super::summaries::Summaries;
use super::write_lock::{Interrupt, Waiter, WriteGuard};
use crate::block::Fixed;
use crate::builder::Effort;
use crate::record::{Recorder, gather, names_of};
use crate::scan::lookup;
use crate::scan::row::{self, datum};
use crate::scan::rows;
use crate::tree::branch::Savepoint;
use crate::tree::key::Key;
use crate::tree::{Branch, Root, RowId, Shape, runs_of};
use crate::value::{Datum, Sketch};
use crate::write::Writer;
use entasis_vector::{Chunk, DataType, Encoding, Error, Result, Schema, statement};
use std::sync::Arc;

/// Writes rows.
pub struct TableWriter<'a> {
    table: &'a Table,
    target: Target<'a>,
    /// Row groups from which rows were deleted, and whether these were many.
    thinned: Vec<(u32, bool)>,
    interrupt: Option<&'a Interrupt>,
}

enum Target<'a> {
    Head {
        head: HeadGuard<'a>,
        _guard: Option<WriteGuard<'a>>,
        trace: Trace,
        /// The head knows that rows change: not before the first does, as a writer may find nothing to do.
        is_noted: bool,
    },
    Fork(&'a mut ForkState),
}

/// The parts of a fork that is open.
pub(super) struct ForkState {
    pub(super) base: TableSnapshot,
    pub(super) branch: Branch,
    pub(super) sketches: Vec<Sketch>,
    pub(super) trace: Trace,
}

impl ForkState {
    /// The present version of the fork.
    pub(super) fn snapshot(&mut self) -> TableSnapshot {
        let (root, stamp) = self.branch.pin();
        let table = self.base.table().clone();
        let summaries = Arc::new(Summaries::new(table.schema().len()));
        TableSnapshot::new(table, root, stamp, summaries, Origin::Fork { _base: self.base.clone() })
    }
}

impl Table {
    /// Writes single rows to the newest version. Nobody can take a snapshot meanwhile, so this should be
    /// short.
    pub fn write(&self) -> TableWriter<'_> {
        let write_lock = self.write_lock.take(self.name(), &Waiter::default()).expect("nobody interrupts it");
        TableWriter::of_head(self, Some(write_lock), self.head())
    }

    /// The same for a table that nobody else knows yet, so that there is no write lock to wait for.
    pub fn write_unknown(&self) -> TableWriter<'_> {
        TableWriter::of_head(self, None, self.head())
    }

    /// The same as [`Table::write`], for a waiter that can be interrupted or has a time limit.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up; I/O, if the table is logged and the log refuses everything.
    pub fn write_as(&self, waiter: &Waiter<'_>) -> Result<TableWriter<'_>> {
        let write_lock = self.write_lock(waiter)?;
        Ok(TableWriter::of_head(self, Some(write_lock), self.head()))
    }

    /// A write lock for a writer of the head.
    ///
    /// # Errors
    /// As of [`Table::write_as`].
    pub(super) fn write_lock(&self, waiter: &Waiter<'_>) -> Result<WriteGuard<'_>> {
        if let Some(logged) = self.logged() {
            logged.log.look()?;
        }
        self.write_lock.take(self.name(), waiter)
    }

    /// A writer for what the log says, which is not logged again.
    pub(super) fn write_unlogged(&self) -> TableWriter<'_> {
        let mut writer = self.write();
        *writer.trace() = Trace::Nothing;
        writer
    }

    /// What is kept of changes before which nobody else can commit.
    pub(super) fn new_trace(&self) -> Trace {
        if self.logged().is_some() { Trace::Records(Recorded::default()) } else { Trace::Nothing }
    }
}

impl<'a> TableWriter<'a> {
    pub(crate) fn of_head(table: &'a Table, write_lock: Option<WriteGuard<'a>>, head: HeadGuard<'a>) -> Self {
        let target = Target::Head { head, _guard: write_lock, trace: table.new_trace(), is_noted: false };
        TableWriter { table, target, thinned: Vec::new(), interrupt: None }
    }

    /// A writer of a fork.
    pub(super) fn of_fork(table: &'a Table, fork: &'a mut ForkState) -> Self {
        TableWriter { table, target: Target::Fork(fork), thinned: Vec::new(), interrupt: None }
    }

    /// The same writer, which `interrupt` may interrupt.
    pub(crate) fn interrupted_by(mut self, interrupt: Option<&'a Interrupt>) -> Self {
        self.interrupt = interrupt;
        self
    }

    pub(crate) fn root(&self) -> &Root {
        match &self.target {
            Target::Head { head, .. } => &head.branch.root,
            Target::Fork(fork) => &fork.branch.root,
        }
    }

    fn branch(&mut self) -> &mut Branch {
        match &mut self.target {
            Target::Head { head, is_noted, .. } => {
                if !*is_noted {
                    head.change();
                    *is_noted = true;
                }
                &mut head.branch
            }
            Target::Fork(fork) => &mut fork.branch,
        }
    }

    fn sketches(&mut self) -> &mut [Sketch] {
        match &mut self.target {
            Target::Head { head, .. } => &mut head.sketches,
            Target::Fork(fork) => &mut fork.sketches,
        }
    }

    fn trace(&mut self) -> &mut Trace {
        match &mut self.target {
            Target::Head { trace, .. } => trace,
            Target::Fork(fork) => &mut fork.trace,
        }
    }

    fn log(&mut self) -> Option<&mut Log> {
        self.trace().operations()
    }

    /// Appends redo records, if these are kept.
    #[inline]
    fn record(&mut self, write: impl FnOnce(&Self, &mut Recorder<'_>)) {
        if let Some(logged) = self.table.logged()
            && let Trace::Records(_) = self.trace()
        {
            let mut new = Vec::new();
            write(self, &mut logged.recorder(&self.table.shape, &mut new));
            self.trace().records().into_iter().for_each(|records| records.bytes().append(&mut new));
        }
    }

    /// What never changes about the table.
    pub(super) fn shape(&self) -> &'a Shape {
        &self.table.shape
    }

    /// How builders encode rows of the table, and count them.
    pub(super) fn effort(&self) -> Effort {
        self.table.effort(true)
    }

    /// The columns of the table.
    pub fn schema(&self) -> &Schema {
        self.table.schema()
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.root().rows
    }

    /// A row whose layout key is `key`: a datum for each of its columns.
    pub fn find(&self, key: &[Datum<'_>]) -> Option<RowId> {
        lookup::first(self.root(), &self.table.shape, key)
    }

    /// Calls `each` with every row whose layout key is `key`, until it returns false.
    pub fn find_each(&self, key: &[Datum<'_>], each: impl FnMut(RowId) -> bool) {
        lookup::find_each(self.root(), &self.table.shape, key, each);
    }

    /// A row of `among` whose layout key another row has too. For rows that were added in bulk to a table
    /// whose key is unique. A key with a NULL equals no other.
    pub fn first_duplicate(&self, among: Among<'_>) -> Option<RowId> {
        duplicates::first(self.root(), &self.table.shape, &among)
    }

    /// The number of row groups.
    pub fn row_groups(&self) -> usize {
        self.root().groups.len()
    }

    /// The row number of a row, in a table without a layout key.
    pub fn number_of(&self, row: RowId) -> u64 {
        self.root().number_of(row)
    }

    /// Bytes by which the fork that it writes to has grown; 0 for a head.
    pub fn growth(&self) -> usize {
        match &self.target {
            Target::Head { .. } => 0,
            Target::Fork(fork) => fork.branch.grown() + fork.trace.bytes(),
        }
    }

    /// The row number that the next row gets, in a table without a layout key.
    pub fn next_number(&self) -> u64 {
        self.root().next_number
    }

    /// The row with a row number, in a table without a layout key.
    pub(crate) fn find_number(&self, number: u64) -> Option<RowId> {
        lookup::by_number(self.root(), number)
    }

    /// Appends some values of a row to `out`, in the order of `columns`. Faster than reading them one by one.
    pub fn read<'r>(&'r self, row: RowId, columns: &[usize], out: &mut Vec<Datum<'r>>) {
        row::read(self.root(), row, columns, self.table.schema(), out);
    }

    /// The same for columns of an index of the table ([`index::index_columns`]).
    pub fn read_indexed<'r>(&'r self, row: RowId, columns: &[usize], out: &mut Vec<Datum<'r>>) {
        index::read(self.root(), row, columns, self.table.schema(), out);
    }

    /// Calls `each` with the id of every row and its values of `columns`, in the order of their places.
    ///
    /// # Errors
    /// The first of `each`.
    pub fn each_row(
        &self,
        columns: &[usize],
        each: impl FnMut(RowId, &[Datum<'_>]) -> Result<()>,
    ) -> Result<()> {
        rows::each(self.root(), columns, self.table.schema(), each)
    }

    /// One value of a row.
    pub fn datum(&self, row: RowId, column: usize) -> Datum<'_> {
        datum(self.root(), row, column, self.table.schema()[column].ty)
    }

    /// Inserts a row, with a datum for each column. Other rows of its row group may move; see [`RowId`].
    pub fn insert(&mut self, row: &[Datum<'_>]) -> RowId {
        let shape = &self.table.shape;
        let number = self.next_number();
        let id = Writer { shape, branch: self.branch() }.insert(row);
        for (sketch, datum) in self.sketches().iter_mut().zip(row).filter(|(_, datum)| !datum.is_null()) {
            sketch.add(datum.hash());
        }
        match self.trace() {
            Trace::Nothing => {}
            Trace::Operations(log) => log.push(Operation::insert(number, row, shape)),
            Trace::Records(_) => self.record(|_, recorder| recorder.insert(number, row)),
        }
        id
    }

    /// Adds the rows that appenders took, as [`Table::commit`] does, and returns their number.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB; interrupted. Then some may have been added.
    pub fn append(&mut self, appended: Vec<AppendedRows>) -> Result<u64> {
        let rows = appended.iter().map(AppendedRows::rows).sum();
        if rows > 0 {
            let added = self.table.join(appended)?;
            self.hang(added)?;
        }
        Ok(rows)
    }

    /// Adds rows that are ready to be added.
    pub(crate) fn hang(&mut self, added: Added) -> Result<()> {
        let (shape, first) = (&self.table.shape, self.next_number());
        let interrupt = self.interrupt;
        let look = || match interrupt {
            Some(is_interrupted) if is_interrupted() => Err(Error::interrupted()),
            _ => statement::check(),
        };
        let stored = self.store(&added, &look)?;
        let Added { pieces, sketches, .. } = added;
        let logged = match &stored {
            _ if self.log().is_none() => None,
            Some(stored) => Some(Pieces::Stored(stored.clone())),
            None => Some(Pieces::Kept(pieces.clone())),
        };
        match &stored {
            None => self.record(|_, recorder| record_pieces(&pieces, first, recorder)),
            Some(stored) => {
                self.trace().records().into_iter().for_each(|records| records.refer_to(stored));
                self.record(|_, recorder| recorder.load(first, stored.rows(), stored.index()));
            }
        }
        Writer { shape, branch: self.branch() }.hang(pieces, sketches.len(), &look)?;
        for sketches in &sketches {
            self.sketches().iter_mut().zip(sketches).for_each(|(all, added)| all.merge(added));
        }
        if let (Some(log), Some(pieces)) = (self.log(), logged) {
            log.push(Operation::Append { pieces, sketches, first });
        }
        Ok(())
    }

    /// True if it pays to encode rows for [`TableWriter::hang`], so many, of which the first and least has
    /// the key `first`; without a layout key any.
    pub(super) fn takes_pieces(&mut self, rows: usize, first: &Key) -> bool {
        let shape = &self.table.shape;
        Writer { shape, branch: self.branch() }.takes_pieces(rows as u64, first)
    }

    /// Counts a value that a row had, though it was never written.
    pub(super) fn count(&mut self, column: usize, datum: Datum<'_>) {
        if !datum.is_null() {
            self.sketches()[column].add(datum.hash());
        }
    }

    /// Where the data file has rows that are to be added: they are written there if they are many, the table
    /// is logged, and no head is locked.
    fn store(&self, added: &Added, look: &dyn Fn() -> Result<()>) -> Result<Option<Arc<dyn StoredLoad>>> {
        let Target::Fork(fork) = &self.target else { return Ok(None) };
        if added.stored.is_some() || matches!(fork.trace, Trace::Nothing) {
            return Ok(added.stored.clone());
        }
        let loads = self.table.logged().and_then(|logged| logged.loads.as_ref());
        let table = (self.table.object(), &self.table.shape);
        loads.map_or(Ok(None), |loads| loads.store(table, (&added.pieces, &added.sketches), look))
    }

    /// Deletes a row. No other row moves before the writer is dropped.
    pub fn delete(&mut self, row: RowId) {
        let shape = &self.table.shape;
        if self.log().is_some() {
            let operation = Operation::delete(row, self.root(), shape);
            self.log().expect("just tested").push(operation);
        }
        self.record(|writer, recorder| {
            recorder.delete(&recorder.wording().name_of(row, writer.root(), shape))
        });
        if self.thinned.last().is_none_or(|(group, _)| *group != row.group) {
            self.thinned.push((row.group, false));
        }
        Writer { shape, branch: self.branch() }.delete(row);
    }

    /// Changes columns of many rows, none of the layout key. `columns` pairs a column of the table with the
    /// column of the chunk that has its new values; row r of the chunk is for `ids[r]`. No row moves. Fast if
    /// the ids ascend.
    ///
    /// # Panics
    /// If a column is part of the layout key.
    pub fn update_chunk(&mut self, ids: &[RowId], columns: &[(usize, usize)], chunk: &Chunk) {
        let shape = &self.table.shape;
        let is_key = |column: usize| shape.key.is_some() && shape.options.layout_key.contains(&column);
        assert!(ids.len() == chunk.len() && !columns.iter().any(|(column, _)| is_key(*column)));
        if ids.is_empty() || columns.is_empty() {
            return;
        }
        let mut rows: Vec<u16> = (0..ids.len() as u16).collect();
        let mut sorted = Vec::new();
        let ids = if ids.is_sorted() {
            ids
        } else {
            rows.sort_by_key(|&row| ids[row as usize]);
            sorted.extend(rows.iter().map(|&row| ids[row as usize]));
            &sorted
        };
        let before = self.logged_snapshot();
        let mut names = None;
        self.record(|writer, _| names = Some(names_of(writer.root(), ids, shape)));
        Writer { shape, branch: self.branch() }.overwrite_many(ids, columns, chunk, &rows);
        if let Some(names) = names {
            let mut columns: Vec<usize> = columns.iter().map(|(column, _)| *column).collect();
            columns.sort_unstable();
            columns.dedup();
            self.record(|writer, recorder| {
                recorder.update_many(&names, &columns, &gather(writer.root(), ids, &columns, shape));
            });
        }
        for &(column, source) in columns {
            let sketch = &mut self.sketches()[column];
            count(sketch, chunk, source, shape.schema[column].ty);
        }
        if let Some(before) = before
            && let Some(after) = self.logged_snapshot()
        {
            let (rows, columns) = (runs_of(ids), columns.iter().map(|(column, _)| *column).collect());
            self.log().expect("it is logged").push(Operation::UpdateMany { rows, columns, before, after });
        }
    }

    /// Deletes many different rows. No other row moves before the writer is dropped. Fast if the ids ascend.
    pub fn delete_many(&mut self, ids: &[RowId]) {
        let shape = &self.table.shape;
        let mut sorted = Vec::new();
        let ids = if ids.is_sorted() {
            ids
        } else {
            sorted.extend_from_slice(ids);
            sorted.sort_unstable();
            &sorted
        };
        let before = self.logged_snapshot();
        self.record(|writer, recorder| record_delete(writer.root(), ids, shape, recorder));
        let counts = Writer { shape, branch: self.branch() }.delete_many(ids);
        let many = |count: usize| count * 8 >= shape.options.group_slots;
        self.thinned.extend(counts.iter().map(|&(group, count)| (group, many(count))));
        if let (Some(before), Some(log)) = (before, self.log()) {
            log.push(Operation::DeleteMany { rows: runs_of(ids), before });
        }
    }

    /// The present version of the fork, if it keeps operations.
    fn logged_snapshot(&mut self) -> Option<TableSnapshot> {
        match &mut self.target {
            Target::Fork(fork) if matches!(fork.trace, Trace::Operations(_)) => Some(fork.snapshot()),
            _ => None,
        }
    }

    /// Deletes all rows, and returns how many there were. In a transaction beside others, this conflicts with
    /// every concurrent change of the table.
    pub fn clear(&mut self) -> u64 {
        let (shape, rows) = (&self.table.shape, self.root().rows);
        if let Some(log) = self.log() {
            log.push(Operation::Clear);
        }
        self.record(|_, recorder| recorder.clear());
        self.thinned.clear();
        Writer { shape, branch: self.branch() }.clear();
        rows
    }

    /// Changes columns of a row, and returns where it is then. If its layout key changes, it and other rows
    /// of the row group may move.
    pub fn update(&mut self, row: RowId, changes: &[(usize, Datum<'_>)]) -> RowId {
        let shape = &self.table.shape;
        let operation = self.log().is_some().then(|| Operation::update(row, self.root(), changes, shape));
        self.record(|writer, recorder| {
            recorder.update(&recorder.wording().name_of(row, writer.root(), shape), changes);
        });
        let to = Writer { shape, branch: self.branch() }.update(row, changes);
        for &(column, datum) in changes.iter().filter(|(_, datum)| !datum.is_null()) {
            self.sketches()[column].add(datum.hash());
        }
        if let (Some(log), Some(operation)) = (self.log(), operation) {
            log.push(operation);
        }
        to
    }

    /// Does some work and, if that fails or panics, undoes it.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn atomically<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let saved = Some(self.branch().savepoint());
        let logged = self.trace().len();
        let mut undo = Undo { writer: self, saved, logged };
        let result = work(undo.writer);
        if result.is_ok()
            && let Some(savepoint) = undo.saved.take()
        {
            undo.writer.branch().release(savepoint);
        }
        result
    }

    /// Checks the invariants of the version. For tests.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        crate::tree::check::check(self.root(), &self.table.shape);
    }
}

#[cfg(test)]
impl TableWriter<'_> {
    /// The first row for which `is_it` is true, searched for one by one.
    pub(crate) fn find_slowly(&self, mut is_it: impl FnMut(RowId, &Schema) -> bool) -> Option<RowId> {
        let schema = self.table.schema();
        let rows = self.root().groups.iter().enumerate().flat_map(|(group, node)| {
            let slots = (0..node.slots()).filter(|&slot| node.is_live(slot));
            slots.map(move |slot| RowId { group: group as u32, slot: slot as u32 })
        });
        { rows }.find(|&id| is_it(id, schema))
    }

    /// The rows that are chosen, each by a call that does not look at it.
    pub(crate) fn rows_where(&self, mut is_chosen: impl FnMut() -> bool) -> Vec<RowId> {
        let mut chosen = Vec::new();
        self.find_slowly(|row, _| {
            if is_chosen() {
                chosen.push(row);
            }
            false
        });
        chosen
    }
}

impl TableWriter<'_> {
    /// Ends. If the table is logged, returns when the changes are as durable as the log's settings ask for;
    /// to drop the writer does not wait for that.
    ///
    /// # Errors
    /// I/O. Then the changes are visible, and may or may not be in the log's file; everything after them is
    /// refused.
    pub fn commit(mut self) -> Result<()> {
        let appended = self.end();
        drop(self);
        appended?.map_or(Ok(()), Appended::wait)
    }

    /// Tidies the row groups from which rows were deleted.
    pub(super) fn tidy_up(&mut self) {
        let shape = &self.table.shape;
        // Replay is faster if rows have not moved, so a fork with a log is not tidied; the head will be.
        if !self.thinned.is_empty() && self.log().is_none() {
            let thinned = std::mem::take(&mut self.thinned);
            Writer { shape, branch: self.branch() }.tidy(thinned);
        }
        match &mut self.target {
            // A writer that has changed nothing leaves the head as it is.
            Target::Head { head, .. } => head.branch.sweep(),
            Target::Fork(fork) => fork.branch.sweep(),
        }
    }

    /// The redo records of what was written to the head, which are forgotten here.
    pub(super) fn take_records(&mut self) -> Option<Recorded> {
        match &mut self.target {
            Target::Head { trace: Trace::Records(records), .. } => Some(std::mem::take(records)),
            _ => None,
        }
    }

    /// Tidies up, and appends the changes to the log before anybody can see them.
    fn end(&mut self) -> Result<Option<Appended>> {
        self.tidy_up();
        let Some(records) = self.take_records() else { return Ok(None) };
        let Some(logged) = self.table.logged() else { return Ok(None) };
        Framed::of(&records, &logged.log)?.map(|framed| framed.append()).transpose()
    }
}

impl Drop for TableWriter<'_> {
    fn drop(&mut self) {
        // If the log refuses this, it refuses everything after it too, and the next writer gets the error.
        drop(self.end());
    }
}

/// Goes back to a savepoint when dropped, if it is still there.
struct Undo<'w, 'a> {
    writer: &'w mut TableWriter<'a>,
    saved: Option<Savepoint>,
    logged: usize,
}

impl Drop for Undo<'_, '_> {
    fn drop(&mut self) {
        let Some(savepoint) = self.saved.take() else { return };
        self.writer.branch().roll_back(savepoint);
        self.writer.trace().truncate(self.logged);
    }
}

/// Counts the values of a column of a chunk.
fn count(sketch: &mut Sketch, chunk: &Chunk, column: usize, ty: DataType) {
    let (vector, positions) = (chunk.vector(column), chunk.positions(column));
    let rows = if vector.is_constant() { chunk.len().min(1) } else { chunk.len() };
    let plain = vector.encoding() == Encoding::Flat && vector.validity().is_none();
    let position = |row: usize| positions.map_or(row, |positions| positions[row] as usize);
    crate::block::with_fixed!(
        ty.physical(),
        T => if plain && vector.physical() == ty.physical() {
            let values = vector.values::<T>();
            return match positions {
                None => sketch.add_all(&values[..rows], T::hash),
                Some(positions) => sketch.add_all(&positions[..rows], |p| values[p as usize].hash()),
            };
        },
        ()
    );
    let datums = (0..rows).map(|row| Datum::of_vector(vector, position(row)));
    datums.filter(|datum| !datum.is_null()).for_each(|datum| sketch.add(datum.hash()));
}
