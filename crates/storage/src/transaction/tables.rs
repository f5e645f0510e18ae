//! How a transaction sees tables, and writes to them.

use super::touched::{Saved, Touched, in_order, lock_all};
use crate::record::{Record, RecordReader};
use crate::table::{
    AppendedRows, HeadGuard, Interrupt, OwnedWriteGuard, PendingUpdates, ReadLoad, SingleRows, Table,
    TableFork, TableReader, TableSnapshot, TableWriter, Waiter,
};
use entasis_vector::Result;
use std::sync::Arc;

/// A transaction. If it is dropped, nothing of it remains.
#[derive(Default)]
pub struct Transaction {
    // Declared before the write locks, so that forks end first.
    pub(super) tables: Vec<Touched>,
    pub(super) write_locks: Vec<OwnedWriteGuard>,
    pub(super) is_alone: bool,
    pub(super) savepoints: Vec<Saved>,
    /// How often tables were pinned.
    pub(super) moments: u64,
    pub(super) interrupt: Option<Interrupt>,
}

impl Transaction {
    /// A transaction beside others, which sees the newest versions of `tables`. It may use other tables as
    /// well, such as those created since, and sees them as they are when it first uses them.
    pub fn begin(tables: &[Arc<Table>]) -> Transaction {
        let mut transaction = Transaction::default();
        transaction.pin(tables);
        transaction
    }

    /// A transaction of one statement, which waits for the write locks of `written`. Its changes of these
    /// are not logged for a replay, and cannot conflict. Other tables are seen as they are when they are
    /// first used, or are pinned together.
    pub fn alone(written: &[Arc<Table>]) -> Transaction {
        Transaction::alone_as(written, &Waiter::default()).expect("nobody interrupts it")
    }

    /// The same as [`Transaction::alone`] for a waiter that can be interrupted or has a time limit.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up.
    pub fn alone_as(written: &[Arc<Table>], waiter: &Waiter<'_>) -> Result<Transaction> {
        let mut transaction = Transaction::default();
        transaction.is_alone = true;
        for table in in_order(written) {
            transaction.write_locks.push(OwnedWriteGuard::take(table, waiter)?);
        }
        transaction.pin(written);
        Ok(transaction)
    }

    /// Sets what interrupts changes of many rows.
    pub fn interrupted_by(&mut self, interrupt: Interrupt) {
        self.interrupt = Some(interrupt);
    }

    /// Pins the newest versions of those of `tables` that the transaction has not seen yet, all at one
    /// moment.
    pub fn pin(&mut self, tables: &[Arc<Table>]) {
        let mut new = in_order(tables);
        if !self.tables.is_empty() {
            new.retain(|table| self.known(table).is_none());
        }
        self.moments += 1;
        self.tables.reserve(new.len());
        let mut heads = lock_all(&new);
        for (table, head) in new.iter().zip(&mut heads) {
            let touched = self.touched(table, head);
            self.tables.push(touched);
        }
    }

    /// A table in its present version, whose head is locked.
    pub(super) fn touched(&self, table: &Arc<Table>, head: &mut HeadGuard<'_>) -> Touched {
        Touched {
            table: table.clone(),
            pinned: Some(table.pin(head)),
            moment: self.moments,
            fork: None,
            kept: None,
            is_relied_on: false,
            is_overtaken: false,
            needs_write_lock: false,
            refers_to: None,
        }
    }

    /// True if there was a moment at which all tables that it sees, and did not write to, had the versions
    /// that it sees. If not, it pins their present versions, and the caller must read them again. Then they
    /// are of one moment, unless new tables come in.
    pub fn sees_one_moment(&mut self) -> bool {
        let mut seen: Vec<usize> = (0..self.tables.len())
            // Tables whose write locks it holds have not changed: their versions are those of any moment
            // since.
            .filter(|&index| {
                let Touched { table, fork, kept, .. } = &self.tables[index];
                fork.is_none() && kept.is_none() && !self.holds_write_lock(table)
            })
            .collect();
        if seen.windows(2).all(|pair| self.tables[pair[0]].moment == self.tables[pair[1]].moment) {
            return true;
        }
        seen.sort_by_key(|&index| self.tables[index].table().id());
        let tables: Vec<Arc<Table>> = seen.iter().map(|&index| self.tables[index].table().clone()).collect();
        let mut heads = lock_all(&tables.iter().collect::<Vec<_>>());
        let is_current =
            seen.iter().zip(&heads).all(|(&index, head)| self.tables[index].pinned().is_of(head));
        self.moments += 1;
        for ((&index, table), head) in seen.iter().zip(&tables).zip(&mut heads) {
            if is_current {
                self.tables[index].moment = self.moments;
            } else {
                self.tables[index] = self.touched(table, head);
            }
        }
        is_current
    }

    /// The tables that the transaction has changed.
    pub fn changed_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.iter().filter(|touched| touched.is_changed()).map(Touched::table)
    }

    /// True if the transaction changed a table.
    pub fn is_changed(&self, table: &Arc<Table>) -> bool {
        self.known(table).is_some_and(|index| self.tables[index].is_changed())
    }

    /// True if the commit has found that others have changed rows of the table since the transaction saw it,
    /// and not only moved them.
    pub fn is_overtaken(&self, table: &Arc<Table>) -> bool {
        self.known(table).is_some_and(|index| self.tables[index].is_overtaken)
    }

    pub(super) fn known(&self, table: &Arc<Table>) -> Option<usize> {
        self.tables.iter().position(|touched| Arc::ptr_eq(touched.table(), table))
    }

    pub(super) fn index_of(&mut self, table: &Arc<Table>) -> usize {
        self.known(table).unwrap_or_else(|| {
            self.pin(std::slice::from_ref(table));
            self.tables.len() - 1
        })
    }

    pub(super) fn holds_write_lock(&self, table: &Arc<Table>) -> bool {
        self.write_locks.iter().any(|write_lock| Arc::ptr_eq(write_lock.table(), table))
    }

    /// The version of a table that the transaction sees.
    pub fn snapshot(&mut self, table: &Arc<Table>) -> TableSnapshot {
        let index = self.index_of(table);
        let touched = &mut self.tables[index];
        touched.settle();
        match &mut touched.fork {
            Some(fork) => fork.snapshot(),
            None => touched.pinned().clone(),
        }
    }

    /// Reads single rows of the version of a table that the transaction sees.
    pub fn read<R>(&mut self, table: &Arc<Table>, look: impl Fn(&TableReader<'_>) -> R) -> R {
        let index = self.index_of(table);
        let touched = &self.tables[index];
        match (&touched.kept, &touched.fork) {
            (Some(kept), _) => look(&kept.reader(touched.pinned())),
            (None, Some(fork)) => look(&fork.reader()),
            (None, None) => look(&touched.pinned().reader()),
        }
    }

    /// A writer of new values of single rows, in columns outside the layout key. They are kept until the
    /// commit, which need not copy what it writes to then. `None` if they must be written in another way
    /// ([`Transaction::write`]): if the layout key is not unique, much has been written, or a savepoint is
    /// set.
    pub fn keep(&mut self, table: &Arc<Table>) -> Option<SingleRows<'_>> {
        if self.is_alone || !self.savepoints.is_empty() || !table.options().is_distinct() {
            return None;
        }
        let index = self.index_of(table);
        let touched = &mut self.tables[index];
        if touched.fork.is_some() || touched.refers_to.is_some() {
            return None;
        }
        SingleRows::new(touched.pinned.as_ref()?, &mut touched.kept)
    }

    /// Writes all new values that were kept to forks.
    pub fn settle(&mut self) {
        self.tables.iter_mut().for_each(Touched::settle);
    }

    /// A writer of a table. What it writes can be undone ([`Transaction::savepoint`],
    /// [`TableWriter::atomically`]).
    pub fn write(&mut self, table: &Arc<Table>) -> TableWriter<'_> {
        let index = self.index_of(table);
        self.tables[index].settle();
        self.save(index);
        let is_held = self.holds_write_lock(table);
        let Touched { pinned, fork, .. } = &mut self.tables[index];
        let pinned = pinned.as_ref().expect("it is pinned until rows are published");
        let fork = fork.get_or_insert_with(|| TableFork::at(pinned, !is_held));
        fork.write().interrupted_by(self.interrupt.as_ref())
    }

    /// Says that the last column of an index, which is going to be written, has row numbers of a table
    /// without a layout key: when those of new rows change at the commit, they change with them.
    pub fn refers_by_number(&mut self, index: &Arc<Table>, table: &Arc<Table>) {
        let at = self.index_of(index);
        self.tables[at].refers_to = Some(table.id());
    }

    /// Does what a record of the log says of the rows of a table, of which [`Record::table`] was asked.
    /// `load` reads those that are in the data file.
    ///
    /// # Errors
    /// Corruption, if it is no record of such a table, or does not apply; those of `load`.
    pub(crate) fn redo(
        &mut self,
        table: &Arc<Table>,
        record: Record<'_>,
        load: &mut ReadLoad<'_>,
    ) -> Result<()> {
        let change = record.change(&RecordReader::of(&table.shape))?;
        self.write(table).redo(&change, load)
    }

    /// Adds the rows that appenders took, as [`Table::commit`] does. Returns how many they are.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB. Then some may have been added.
    pub fn append(&mut self, table: &Arc<Table>, appended: Vec<AppendedRows>) -> Result<u64> {
        self.write(table).append(appended)
    }

    /// Deletes all rows of a table, and returns how many there were.
    pub fn clear(&mut self, table: &Arc<Table>) -> u64 {
        self.write(table).clear()
    }

    /// Says that the outcome depends on what the transaction sees of a table, whether it writes to it or not:
    /// see [`Transaction::commit`].
    pub fn depend_on(&mut self, table: &Arc<Table>) {
        let index = self.index_of(table);
        self.tables[index].is_relied_on = true;
    }

    /// The same as [`Transaction::depend_on`] for a table whose writers should not conflict with this commit:
    /// the commit waits for its write lock.
    pub fn commit_with_write_lock(&mut self, table: &Arc<Table>) {
        self.depend_on(table);
        let index = self.index_of(table);
        self.tables[index].needs_write_lock = true;
    }

    /// About how many bytes more the tables will take.
    pub fn growth(&self) -> usize {
        let growth = |touched: &Touched| {
            let kept = touched.kept.as_ref().map_or(0, PendingUpdates::bytes);
            kept + touched.fork.as_ref().map_or(0, TableFork::growth)
        };
        self.tables.iter().map(growth).sum()
    }

    /// True if it has written only so little that its end takes negligible time.
    pub fn is_small(&self) -> bool {
        self.tables.iter().filter_map(|touched| touched.fork.as_ref()).all(TableFork::is_small)
    }
}
