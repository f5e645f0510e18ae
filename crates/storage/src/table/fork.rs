//! Forks: versions of a table that are written apart from the head, and become the newest version at once, or
//! leave nothing.
//!
//! | | writes to | ends |
//! |---|---|---|
//! | [`TableWriter`] | the head, or a fork | when it is dropped |
//! | [`Statement`] | a fork whose table nobody else can write | with [`Statement::commit`], or without a trace when it is dropped |
//! | [`TableFork`] | a fork of a transaction; beside others, with a log of what was done | with the transaction's commit, or when it is dropped |

use super::appender::AppendedRows;
use super::change_list::{Log, Trace};
use super::head::{Head, Table};
use super::logged::{Appended, Framed, Recorded};
use super::reader::TableReader;
use super::snapshot::TableSnapshot;
use super::write_guard::OwnedWriteGuard;
use super::write_lock::Waiter;
use super::writer::{ForkState, TableWriter};
use crate::scan::lookup;
use crate::tree::RowId;
use crate::tree::branch::Savepoint;
use crate::value::{Datum, Sketch};
use entasis_vector::Result;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The greatest number of operations of a small fork.
const SMALL_OPERATIONS: usize = 1000;
/// How many bytes a small fork takes, or logs, at most.
const SMALL_BYTES: usize = 1 << 20;

impl Table {
    /// A statement that writes many rows, all or nothing. Other writers wait, readers do not.
    pub(crate) fn statement(self: &Arc<Table>) -> Statement {
        let write_lock = OwnedWriteGuard::take(self, &Waiter::default()).expect("nobody interrupts it");
        Statement::new(write_lock, TableFork::at(&self.snapshot(), false))
    }

    /// Adds the rows that the appenders of one statement took, all of them or none, and returns their number.
    /// Without a layout key they come after the rows of the table, in the order of their morsels.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB; I/O, if the table is logged.
    pub fn commit(self: &Arc<Table>, appended: Vec<AppendedRows>) -> Result<u64> {
        let rows = appended.iter().map(AppendedRows::rows).sum();
        if rows == 0 {
            return Ok(0);
        }
        let added = self.join(appended)?;
        let few = rows <= 64;
        if few {
            let mut writer = self.write_as(&Waiter::default())?;
            writer.hang(added)?;
            writer.commit()?;
        } else {
            let mut statement = self.statement();
            statement.write().hang(added)?;
            statement.commit()?;
        }
        Ok(rows)
    }
}

/// A version of a table that is written apart from the head. If it is dropped, it leaves nothing.
pub(crate) struct TableFork {
    table: Arc<Table>,
    /// Taken out when the fork ends.
    open: Option<(ForkState, Savepoint)>,
}

impl TableFork {
    /// A fork of the version of a snapshot. If others can commit before it (`can_be_overtaken`), it keeps a
    /// log by which it can be replayed.
    pub(crate) fn at(snapshot: &TableSnapshot, can_be_overtaken: bool) -> TableFork {
        let (table, (root, stamp)) = (snapshot.table(), snapshot.pinned());
        let head = table.head();
        let (branch, base) = head.branch.fork_at(root, stamp);
        drop(head);
        let sketches = vec![Sketch::default(); table.schema().len()];
        let trace = if can_be_overtaken { Trace::Operations(Log::default()) } else { table.new_trace() };
        TableFork {
            table: table.clone(),
            open: Some((ForkState { base: snapshot.clone(), branch, sketches, trace }, base)),
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

    /// Bytes of memory that it takes beside the version that it began with, which is held as long as the
    /// fork: its nodes, and what was logged for its end.
    pub(crate) fn growth(&self) -> usize {
        self.state().branch.grown() + self.state().trace.bytes()
    }

    /// True if it has only so few changes, in number and in bytes, that its end takes negligible time.
    pub(crate) fn is_small(&self) -> bool {
        self.is_small_since(None)
    }

    /// The same for its changes since a savepoint; with none, for all.
    pub(crate) fn is_small_since(&self, savepoint: Option<&ForkSavepoint>) -> bool {
        let few = if self.log().is_some() { SMALL_OPERATIONS } else { SMALL_BYTES };
        let (logged, grown) = savepoint.map_or((0, 0), |it| (it.logged, it.grown));
        self.state().trace.len() - logged <= few && self.growth().saturating_sub(grown) <= SMALL_BYTES
    }

    /// A writer of the fork.
    pub(crate) fn write(&mut self) -> TableWriter<'_> {
        let (state, _) = self.open.as_mut().expect("the fork is open");
        TableWriter::of_fork(&self.table, state)
    }

    /// Reads single rows of the present version of the fork. Unlike a snapshot, this makes no writer copy
    /// anything.
    pub(crate) fn reader(&self) -> TableReader<'_> {
        TableReader::new(&self.table, &self.state().branch.root)
    }

    /// The present version of the fork.
    pub(crate) fn snapshot(&mut self) -> TableSnapshot {
        self.state_mut().snapshot()
    }

    /// True if something was written, and not undone.
    pub(crate) fn is_changed(&self) -> bool {
        self.open.as_ref().is_some_and(|(state, base)| !state.branch.is_at(base))
    }

    /// The log by which it is replayed.
    pub(crate) fn log(&self) -> Option<&Log> {
        match &self.state().trace {
            Trace::Operations(log) => Some(log),
            _ => None,
        }
    }

    /// Appends its redo records, if the table is logged.
    pub(crate) fn record(&self, out: &mut Recorded) {
        let Some(logged) = self.table.logged() else { return };
        match &self.state().trace {
            Trace::Nothing => {}
            Trace::Records(records) => out.extend(records),
            Trace::Operations(log) => {
                let shape = &self.table.shape;
                for operation in log.iter() {
                    operation.load().into_iter().for_each(|load| out.refer_to(load));
                    operation.record(shape, &mut logged.recorder(shape, out.bytes()));
                }
            }
        }
    }

    /// What its commit appends to the write-ahead log, if the table is logged.
    fn framed(&self) -> Result<Option<Framed>> {
        let Some(logged) = self.table.logged() else { return Ok(None) };
        let mut records = Recorded::default();
        self.record(&mut records);
        Framed::of(&records, &logged.log)
    }

    /// The version that it began with.
    pub(crate) fn base(&self) -> &TableSnapshot {
        &self.state().base
    }

    /// A row whose layout key is `key`, in the present version of the fork.
    pub(crate) fn find(&self, key: &[Datum<'_>]) -> Option<RowId> {
        lookup::first(&self.state().branch.root, &self.table.shape, key)
    }

    /// A state of the fork that it can go back to.
    pub(crate) fn savepoint(&mut self) -> ForkSavepoint {
        let grown = self.growth();
        let state = self.state_mut();
        ForkSavepoint { savepoint: state.branch.savepoint(), logged: state.trace.len(), grown }
    }

    pub(crate) fn roll_back(&mut self, to: ForkSavepoint) {
        let state = self.state_mut();
        state.branch.roll_back(to.savepoint);
        state.trace.truncate(to.logged);
    }

    pub(crate) fn release(&mut self, savepoint: ForkSavepoint) {
        self.state_mut().branch.release(savepoint.savepoint);
    }

    /// True if the head has the rows that it had when the fork began, in the same places or others.
    pub(crate) fn is_current(&self, head: &Head) -> bool {
        self.state().base.is_of(head)
    }

    /// True if the head has not changed since the fork began.
    pub(crate) fn can_fast_forward(&self, head: &Head) -> bool {
        self.open.as_ref().is_some_and(|(_, base)| head.branch.is_at(base))
    }

    /// Makes this the version of the head, which has not changed since the fork began.
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

/// A state of a fork that it can go back to.
pub(crate) struct ForkSavepoint {
    savepoint: Savepoint,
    /// The length of the trace.
    logged: usize,
    /// The growth.
    grown: usize,
}

/// A statement outside any transaction that writes many rows.
pub(crate) struct Statement {
    fork: TableFork,
    write_lock: OwnedWriteGuard,
}

impl Statement {
    pub(crate) fn new(write_lock: OwnedWriteGuard, fork: TableFork) -> Statement {
        Statement { fork, write_lock }
    }

    /// Makes what was written the newest version.
    ///
    /// # Errors
    /// I/O, if the table is logged.
    pub(crate) fn commit(self) -> Result<()> {
        let Statement { fork, write_lock } = self;
        let framed = fork.framed()?;
        let table = fork.table.clone();
        let mut head = table.head();
        let appended = framed.as_ref().map(Framed::append).transpose()?;
        fork.fast_forward(&mut head);
        drop(head);
        drop(write_lock);
        appended.map_or(Ok(()), Appended::wait)
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
