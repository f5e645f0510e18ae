//! Who writes rows: to the head one by one, or to a fork of the table.
//!
//! | | on | ends with |
//! |---|---|---|
//! | [`TableWriter`] | the head, or a fork | being dropped |
//! | `Statement` | a fork that nobody can overtake | `Statement::commit`; dropped, it leaves nothing |
//! | `TableFork` | a fork of a transaction; beside others, with a log of what was done | the transaction's commit or its drop |
//!
//! Constraints are not judged here. Whoever writes looks first ([`TableWriter::find`]), or looks at what came of it and
//! undoes it ([`TableWriter::atomically`]).

use crate::appender::AppendedRows;
use crate::block::Fixed;
use crate::duplicates::Among;
use crate::log::{Log, Operation};
use crate::scan::lookup;
use crate::scan::row::datum;
use crate::snapshot::{Origin, Summaries, TableSnapshot};
use crate::table::{Added, Head, HeadGuard, Steady, Table};
use crate::transaction::Interrupt;
use crate::tree::branch::Savepoint;
use crate::tree::{Branch, Root, RowId, Run, runs_of};
use crate::turn::{Turn, WriterTurn};
use crate::value::{Datum, Sketch};
use crate::write::Writer;
use entasis_vector::{Chunk, DataType, Encoding, Error, Result, Schema};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Writes rows. See the module.
pub struct TableWriter<'a> {
    table: &'a Table,
    target: Target<'a>,
    /// Row groups that rows were deleted from, and whether these were many.
    thinned: Vec<(u32, bool)>,
    interrupt: Option<&'a Interrupt>,
}

enum Target<'a> {
    Head { head: HeadGuard<'a>, _turn: Option<Turn<'a>> },
    Fork(&'a mut ForkState),
}

/// What a fork consists of while it is open.
struct ForkState {
    base: TableSnapshot,
    branch: Branch,
    sketches: Vec<Sketch>,
    log: Option<Log>,
}

impl ForkState {
    /// What the fork holds now.
    fn snapshot(&mut self) -> TableSnapshot {
        let (root, stamp) = self.branch.pin();
        let table = self.base.table().clone();
        let summaries = Arc::new(Summaries::new(table.schema().len()));
        TableSnapshot::new(table, root, stamp, summaries, Origin::Fork { _base: self.base.clone() })
    }
}

impl<'a> TableWriter<'a> {
    pub(crate) fn of_head(table: &'a Table, turn: Option<Turn<'a>>, mut head: HeadGuard<'a>) -> Self {
        head.change();
        TableWriter { table, target: Target::Head { head, _turn: turn }, thinned: Vec::new(), interrupt: None }
    }

    /// The same, to be interrupted by something.
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
            Target::Head { head, .. } => &mut head.branch,
            Target::Fork(fork) => &mut fork.branch,
        }
    }

    fn sketches(&mut self) -> &mut [Sketch] {
        match &mut self.target {
            Target::Head { head, .. } => &mut head.sketches,
            Target::Fork(fork) => &mut fork.sketches,
        }
    }

    fn log(&mut self) -> Option<&mut Log> {
        match &mut self.target {
            Target::Head { .. } => None,
            Target::Fork(fork) => fork.log.as_mut(),
        }
    }

    /// The columns of the table.
    pub fn schema(&self) -> &Schema {
        self.table.schema()
    }

    /// Rows.
    pub fn rows(&self) -> u64 {
        self.root().rows
    }

    /// A row whose layout key is `key`: a datum for each of its columns.
    pub fn find(&self, key: &[Datum<'_>]) -> Option<RowId> {
        lookup::first(self.root(), &self.table.shape, key)
    }

    /// Calls `each` with every row whose layout key is `key`, until it says no.
    pub fn find_each(&self, key: &[Datum<'_>], each: impl FnMut(RowId) -> bool) {
        lookup::find_each(self.root(), &self.table.shape, key, each);
    }

    /// A row whose layout key another row has too, if one of `among` is such a row. For rows that came in bulk into a table
    /// whose key is unique. Rows with a NULL in their key do not count.
    pub fn first_duplicate(&self, among: Among<'_>) -> Option<RowId> {
        crate::duplicates::first(self.root(), &self.table.shape, &among)
    }

    /// Row groups.
    pub fn row_groups(&self) -> usize {
        self.root().groups.len()
    }

    /// True if there is a row at a place.
    pub(crate) fn is_row(&self, row: RowId) -> bool {
        let group = self.root().groups.get(row.group as usize);
        group.is_some_and(|group| (row.slot as usize) < group.slots() && group.is_live(row.slot as usize))
    }

    /// Some values of a row, in the order of `columns`, at the end of `out`. Faster than one by one.
    pub fn read<'r>(&'r self, row: RowId, columns: &[usize], out: &mut Vec<Datum<'r>>) {
        crate::scan::row::read(self.root(), row, columns, self.table.schema(), out);
    }

    /// One value of a row.
    pub fn datum(&self, row: RowId, column: usize) -> Datum<'_> {
        datum(self.root(), row, column, self.table.schema()[column].ty)
    }

    /// Adds a row: a datum for each column. Other rows of its row group may move; see [`RowId`].
    pub fn insert(&mut self, row: &[Datum<'_>]) -> RowId {
        let shape = &self.table.shape;
        let id = Writer { shape, branch: self.branch() }.insert(row);
        for (sketch, datum) in self.sketches().iter_mut().zip(row).filter(|(_, datum)| !datum.is_null()) {
            sketch.add(datum.hash());
        }
        if let Some(log) = self.log() {
            log.push(Operation::insert(id, row, shape));
        }
        id
    }

    /// Adds the rows that appenders took, as [`Table::commit`] does. Returns how many they are.
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

    /// Adds rows, and says where they are if the table has no layout key.
    pub(crate) fn hang(&mut self, added: Added) -> Result<Vec<Run>> {
        let shape = &self.table.shape;
        let Added { pieces, sketches } = added;
        let logged = self.log().is_some().then(|| pieces.clone());
        let interrupt = self.interrupt;
        let look = || match interrupt {
            Some(is_interrupted) if is_interrupted() => Err(Error::interrupted()),
            _ => Ok(()),
        };
        let places = Writer { shape, branch: self.branch() }.hang(pieces, sketches.len(), &look)?;
        for sketches in &sketches {
            self.sketches().iter_mut().zip(sketches).for_each(|(all, added)| all.merge(added));
        }
        if let (Some(log), Some(pieces)) = (self.log(), logged) {
            log.push(Operation::Append { pieces, sketches, places: places.clone() });
        }
        Ok(places)
    }

    /// Removes a row. No other row moves before the writer is dropped.
    pub fn delete(&mut self, row: RowId) {
        let shape = &self.table.shape;
        if self.log().is_some() {
            let operation = Operation::delete(row, self.root(), shape);
            self.log().expect("just tested").push(operation);
        }
        if self.thinned.last().is_none_or(|(group, _)| *group != row.group) {
            self.thinned.push((row.group, false));
        }
        Writer { shape, branch: self.branch() }.delete(row);
    }

    /// Changes columns of many rows, none of the layout key: `columns` of the table, and those of the chunk that hold their
    /// new values. Row r of the chunk is for `ids[r]`. No row moves. Fast if the ids ascend.
    ///
    /// # Panics
    /// If a column is of the layout key.
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
        Writer { shape, branch: self.branch() }.overwrite_many(ids, columns, chunk, &rows);
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

    /// Removes many rows, each once. No other row moves before the writer is dropped. Fast if the ids ascend.
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
        let counts = Writer { shape, branch: self.branch() }.delete_many(ids);
        let many = |count: usize| count * 8 >= shape.options.group_slots;
        self.thinned.extend(counts.iter().map(|&(group, count)| (group, many(count))));
        if let (Some(before), Some(log)) = (before, self.log()) {
            log.push(Operation::DeleteMany { rows: runs_of(ids), before });
        }
    }

    /// What the fork is now, if it has a log.
    fn logged_snapshot(&mut self) -> Option<TableSnapshot> {
        match &mut self.target {
            Target::Fork(fork) if fork.log.is_some() => Some(fork.snapshot()),
            _ => None,
        }
    }

    /// Removes all rows. Returns how many they were. In a transaction beside others, one that changes rows of the table
    /// meanwhile is in conflict with this one.
    pub fn clear(&mut self) -> u64 {
        let (shape, rows) = (&self.table.shape, self.root().rows);
        if let Some(log) = self.log() {
            log.push(Operation::Clear);
        }
        self.thinned.clear();
        Writer { shape, branch: self.branch() }.clear();
        rows
    }

    /// Changes columns of a row. If its layout key changes, it and others of the row group may move. Where it is then.
    pub fn update(&mut self, row: RowId, changes: &[(usize, Datum<'_>)]) -> RowId {
        let shape = &self.table.shape;
        let operation = self.log().is_some().then(|| Operation::update(row, self.root(), changes, shape));
        let to = Writer { shape, branch: self.branch() }.update(row, changes);
        for &(column, datum) in changes.iter().filter(|(_, datum)| !datum.is_null()) {
            self.sketches()[column].add(datum.hash());
        }
        if let (Some(log), Some(operation)) = (self.log(), operation) {
            log.push(operation.moved_to(to));
        }
        to
    }

    /// Does some work and, if that fails or panics, undoes it.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn atomically<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let saved = Some(self.branch().savepoint());
        let logged = self.log().map(|log| log.len());
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
    /// The first row that `is_it` says yes to, looked for one by one.
    pub(crate) fn find_slowly(&self, mut is_it: impl FnMut(RowId, &Schema) -> bool) -> Option<RowId> {
        let schema = self.table.schema();
        let rows = self.root().groups.iter().enumerate().flat_map(|(group, node)| {
            let slots = (0..node.slots()).filter(|&slot| node.is_live(slot));
            slots.map(move |slot| RowId { group: group as u32, slot: slot as u32 })
        });
        { rows }.find(|&id| is_it(id, schema))
    }
}

impl Drop for TableWriter<'_> {
    fn drop(&mut self) {
        let shape = &self.table.shape;
        // A transaction's log names rows by their place, so its fork is tidied by no one; the head is, in time.
        if !self.thinned.is_empty() && self.log().is_none() {
            let thinned = std::mem::take(&mut self.thinned);
            // A transaction may begin before a fork is published, so only upkeep moves rows for it that are told by their places.
            let may_renumber = matches!(self.target, Target::Head { .. }) && self.table.may_move_rows();
            Writer { shape, branch: self.branch() }.tidy(thinned, may_renumber);
        }
        self.branch().sweep();
    }
}

/// A version of a table that is written aside. Dropped, it leaves nothing behind.
pub(crate) struct TableFork {
    table: Arc<Table>,
    /// Taken out when the fork ends.
    open: Option<(ForkState, Savepoint)>,
    /// Of a fork with a log: where rows stay where they are, it is replayed faster.
    _steady: Option<Steady>,
}

impl TableFork {
    /// A fork of the version of a snapshot. With a `log`, it can be replayed on a later one.
    pub(crate) fn at(snapshot: &TableSnapshot, log: Option<Log>) -> TableFork {
        let (table, (root, stamp)) = (snapshot.table(), snapshot.pinned());
        let head = table.head();
        let (branch, base) = head.branch.fork_at(root, stamp);
        let steady = log.is_some().then(|| Steady::new(table));
        drop(head);
        let sketches = vec![Sketch::default(); table.schema().len()];
        TableFork {
            table: table.clone(),
            open: Some((ForkState { base: snapshot.clone(), branch, sketches, log }, base)),
            _steady: steady,
        }
    }

    /// The table.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn state(&self) -> &ForkState {
        &self.open.as_ref().expect("the fork is open").0
    }

    fn state_mut(&mut self) -> &mut ForkState {
        &mut self.open.as_mut().expect("the fork is open").0
    }

    /// Bytes of memory that it takes beside the version that it began with, which is there for as long as the fork is.
    pub(crate) fn growth(&self) -> usize {
        self.state().branch.grown()
    }

    /// Writes to the fork.
    pub(crate) fn write(&mut self) -> TableWriter<'_> {
        let (state, _) = self.open.as_mut().expect("the fork is open");
        TableWriter { table: &self.table, target: Target::Fork(state), thinned: Vec::new(), interrupt: None }
    }

    /// What the fork holds now.
    pub(crate) fn snapshot(&mut self) -> TableSnapshot {
        self.state_mut().snapshot()
    }

    /// True if something was written, and not undone.
    pub(crate) fn is_changed(&self) -> bool {
        self.open.as_ref().is_some_and(|(state, base)| !state.branch.is_at(base))
    }

    pub(crate) fn log(&self) -> Option<&Log> {
        self.state().log.as_ref()
    }

    /// The version that it began with.
    pub(crate) fn base(&self) -> &TableSnapshot {
        &self.state().base
    }

    /// A row whose layout key is `key`, as the fork is now.
    pub(crate) fn find(&self, key: &[Datum<'_>]) -> Option<RowId> {
        lookup::first(&self.state().branch.root, &self.table.shape, key)
    }

    /// A place to come back to.
    pub(crate) fn savepoint(&mut self) -> ForkSavepoint {
        let state = self.state_mut();
        ForkSavepoint { savepoint: state.branch.savepoint(), logged: state.log.as_ref().map_or(0, Log::len) }
    }

    pub(crate) fn roll_back(&mut self, to: ForkSavepoint) {
        let state = self.state_mut();
        state.branch.roll_back(to.savepoint);
        if let Some(log) = &mut state.log {
            log.truncate(to.logged);
        }
    }

    pub(crate) fn release(&mut self, savepoint: ForkSavepoint) {
        self.state_mut().branch.release(savepoint.savepoint);
    }

    /// True if the head holds the rows that it held when the fork began, wherever they stand.
    pub(crate) fn is_current(&self, head: &Head) -> bool {
        self.state().base.is_of(head)
    }

    /// True if the head is as it was when the fork began.
    pub(crate) fn can_fast_forward(&self, head: &Head) -> bool {
        self.open.as_ref().is_some_and(|(_, base)| head.branch.is_at(base))
    }

    /// Makes this the head's version, which is as it was when the fork began.
    pub(crate) fn fast_forward(mut self, head: &mut Head) {
        let (state, base) = self.open.take().expect("the fork is open");
        head.change();
        head.count(&state.sketches);
        head.branch.fast_forward(state.branch, base);
        head.branch.sweep();
    }
}

impl Drop for TableFork {
    fn drop(&mut self) {
        if let Some((state, base)) = self.open.take() {
            let mut head = self.table.head();
            head.branch.abandon(state.branch, base);
            head.branch.sweep();
        }
    }
}

/// Goes back to a savepoint when dropped, if it is still there.
struct Undo<'w, 'a> {
    writer: &'w mut TableWriter<'a>,
    saved: Option<Savepoint>,
    logged: Option<usize>,
}

impl Drop for Undo<'_, '_> {
    fn drop(&mut self) {
        let Some(savepoint) = self.saved.take() else { return };
        self.writer.branch().roll_back(savepoint);
        if let (Some(log), Some(logged)) = (self.writer.log(), self.logged) {
            log.truncate(logged);
        }
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

/// A place in a fork to come back to.
pub(crate) struct ForkSavepoint {
    savepoint: Savepoint,
    logged: usize,
}

/// A statement of its own, that writes many rows. See the module.
pub(crate) struct Statement {
    fork: TableFork,
    _turn: WriterTurn,
}

impl Statement {
    pub(crate) fn new(turn: WriterTurn, fork: TableFork) -> Statement {
        Statement { fork, _turn: turn }
    }

    /// Makes what was written the newest version.
    pub(crate) fn commit(self) {
        let table = self.fork.table.clone();
        let mut head = table.head();
        self.fork.fast_forward(&mut head);
    }
}

impl Deref for Statement {
    type Target = TableFork;
    fn deref(&self) -> &TableFork {
        &self.fork
    }
}

impl DerefMut for Statement {
    fn deref_mut(&mut self) -> &mut TableFork {
        &mut self.fork
    }
}
