//! The commit of a transaction: see the [module](super).

use super::renumbered::Renumbered;
use super::replay;
use super::tables::Transaction;
use super::touched::{Touched, in_order, lock_all};
use crate::table::{Appended, Framed, HeadGuard, OwnedWriteGuard, Recorded, Table, TableSnapshot, Waiter};
use crate::wal::Log;
use entasis_vector::Result;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How often tables that others go on writing are checked before their write locks are taken.
const ROUNDS: usize = 3;
/// How long a write lock is waited for against the order of write locks.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a commit logs in front of its changes of rows.
pub struct Prologue {
    /// The log.
    pub log: Arc<Log>,
    /// Redo records.
    pub records: Vec<u8>,
}

impl Transaction {
    /// Publishes all changes, or none.
    ///
    /// `validate` is called if others have changed rows of a table that the transaction wrote to, or of one
    /// that it depends on; perhaps more than once. It sees the newest version of these tables, and may write.
    /// Upkeep, which only moves rows, changes none.
    ///
    /// # Errors
    /// Conflict, if another transaction was first; the errors of `validate`.
    pub fn commit(self, validate: impl FnMut(&mut Transaction) -> Result<()>) -> Result<()> {
        self.commit_as(&Waiter::default(), |_| Ok(None), |rows| Ok(rows()), validate)
    }

    /// The same as [`Transaction::commit`], for a waiter that can be interrupted or has a time limit, and for
    /// commits that publish more than rows. `prepare` is called when all rows are final, perhaps more than
    /// once, and returns what the log is to say of the rest. `publish` is called with a function that
    /// publishes the rows. That function returns whether it did so; it does unless a table that the
    /// transaction depends on has changed since it was checked. All write locks are held by then, so
    /// `publish` must only take locks that come after them in the lock order.
    ///
    /// # Errors
    /// As of [`Transaction::commit`]; interrupted; conflict, if the time is up; the errors of `publish`.
    pub fn commit_as(
        mut self,
        waiter: &Waiter<'_>,
        mut prepare: impl FnMut(&mut Transaction) -> Result<Option<Prologue>>,
        mut publish: impl FnMut(&mut dyn FnMut() -> bool) -> Result<bool>,
        mut validate: impl FnMut(&mut Transaction) -> Result<()>,
    ) -> Result<()> {
        self.release(1);
        if self.tables.iter().any(|touched| touched.is_relied_on) {
            // What is kept is found once, and rows may be found again and again here.
            self.settle();
        }
        let mut must_judge = false;
        for round in 0.. {
            let changed = self.changed();
            self.take_write_locks(&self.needed_write_locks(), waiter)?;
            must_judge |= self.move_to_newest(&changed, waiter)?;
            let relied: Vec<usize> = (0..self.tables.len())
                .filter(|&index| self.tables[index].is_relied_on && !changed.contains(&index))
                .collect();
            if !must_judge {
                let prologue = prepare(&mut self)?;
                let framed = self.framed(prologue, &changed)?;
                let mut appended = Ok(None);
                let mut publish_rows = || match self.publish(&changed, &relied, framed.as_ref()) {
                    Ok(Some(done)) => {
                        appended = Ok(done);
                        true
                    }
                    Ok(None) => false,
                    Err(error) => {
                        appended = Err(error);
                        false
                    }
                };
                if publish(&mut publish_rows)? {
                    drop(self);
                    return appended?.map_or(Ok(()), Appended::wait);
                }
                appended?;
            }
            waiter.look()?;
            if round >= ROUNDS {
                self.take_write_locks(&relied, waiter)?;
            }
            self.see_newest(&relied);
            must_judge = false;
            validate(&mut self)?;
            self.release(1);
        }
        unreachable!("rounds go on until one returns")
    }

    /// Makes the forks of `changed` tables, whose write locks are held, forks of the newest versions. True if
    /// the caller must judge the outcome, since others have changed rows meanwhile.
    fn move_to_newest(&mut self, changed: &[usize], waiter: &Waiter<'_>) -> Result<bool> {
        let mut must_judge = false;
        let mut renumbered: HashMap<u64, Renumbered> = HashMap::new();
        for &index in &self.referred_first(changed) {
            let Touched { pinned, kept, fork, refers_to, .. } = &mut self.tables[index];
            if let (Some(kept), Some(pinned)) = (kept, pinned) {
                if let Some(row) = kept.find(pinned) {
                    return Err(replay::changed(pinned, row));
                }
                continue;
            }
            let fork = fork.as_mut().expect("it is changed");
            let (is_in_place, has_same_rows) = {
                let head = fork.table().head();
                (fork.can_fast_forward(&head), fork.is_current(&head))
            };
            let referred = refers_to.and_then(|table| renumbered.get(&table));
            if !is_in_place || referred.is_some_and(Renumbered::changes) {
                let (new, numbers) = replay::replay(fork, referred, waiter)?;
                renumbered.insert(fork.table().id(), numbers);
                *fork = new;
            }
            // Upkeep moves rows, but nothing depends on where they are.
            self.tables[index].is_overtaken |= !has_same_rows;
            must_judge |= !has_same_rows && self.tables.iter().any(|touched| touched.is_relied_on);
        }
        Ok(must_judge)
    }

    /// Takes the write locks that the commit needs, or none, before it. Nothing may be written between the
    /// two.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up.
    pub fn take_write_locks_to_commit(&mut self, waiter: &Waiter<'_>) -> Result<()> {
        let had = self.write_locks.len();
        let taken = self.take_write_locks(&self.needed_write_locks(), waiter);
        if taken.is_err() {
            self.write_locks.truncate(had);
        }
        taken
    }

    /// The tables whose write locks the commit takes.
    fn needed_write_locks(&self) -> Vec<usize> {
        let needs = |touched: &Touched| touched.is_changed() || touched.needs_write_lock;
        (0..self.tables.len()).filter(|&index| needs(&self.tables[index])).collect()
    }

    /// The tables whose forks have changes, in the order of their ids.
    fn changed(&self) -> Vec<usize> {
        let mut changed: Vec<usize> =
            (0..self.tables.len()).filter(|&i| self.tables[i].is_changed()).collect();
        changed.sort_by_key(|&index| self.tables[index].table().id());
        changed
    }

    /// The same tables, those first to whose rows others refer.
    fn referred_first(&self, tables: &[usize]) -> Vec<usize> {
        let mut tables = tables.to_vec();
        tables.sort_by_key(|&index| self.tables[index].refers_to.is_some());
        tables
    }

    /// Takes the write locks of tables that are not held yet, in order as far as possible.
    fn take_write_locks(&mut self, tables: &[usize], waiter: &Waiter<'_>) -> Result<()> {
        let tables: Vec<Arc<Table>> =
            tables.iter().map(|&index| self.tables[index].table().clone()).collect();
        for table in in_order(&tables) {
            if self.holds_write_lock(table) {
                continue;
            }
            let is_last = self.write_locks.iter().all(|write_lock| write_lock.table().id() < table.id());
            let write_lock = match is_last {
                true => OwnedWriteGuard::take(table, waiter)?,
                false => OwnedWriteGuard::take_within(table, waiter, PATIENCE)?,
            };
            self.write_locks.push(write_lock);
        }
        Ok(())
    }

    /// What is appended to the log, if there is a prologue or some of the `changed` tables are logged.
    fn framed(&self, prologue: Option<Prologue>, changed: &[usize]) -> Result<Option<Framed>> {
        let (mut log, mut records) = match prologue {
            Some(prologue) => (Some(prologue.log), Recorded::of(prologue.records)),
            None => (None, Recorded::default()),
        };
        for touched in changed.iter().map(|&index| &self.tables[index]) {
            match (&touched.kept, &touched.fork) {
                (Some(kept), _) => kept.record(touched.pinned(), &mut records),
                (None, Some(fork)) => fork.record(&mut records),
                (None, None) => {}
            }
            log = log.or_else(|| touched.table.logged().map(|logged| logged.log.clone()));
        }
        log.map_or(Ok(None), |log| Framed::of(&records, &log))
    }

    /// What will be the newest version of a table after the commit, as far as this transaction knows.
    pub fn outcome(&mut self, table: &Arc<Table>) -> TableSnapshot {
        let known = self.known(table).map(|index| &mut self.tables[index]);
        debug_assert!(known.as_ref().is_none_or(|touched| touched.kept.is_none()));
        match known.and_then(|touched| touched.fork.as_mut()) {
            Some(fork) => fork.snapshot(),
            None => table.snapshot(),
        }
    }

    /// Makes the forks of `changed`, whose write locks are held, the heads of their tables, and appends the
    /// changes to the log. `None` if a table of `relied` has a newer version than was seen.
    fn publish(
        &mut self,
        changed: &[usize],
        relied: &[usize],
        framed: Option<&Framed>,
    ) -> Result<Option<Option<Appended>>> {
        let mut all: Vec<usize> = [changed, relied].concat();
        all.sort_by_key(|&index| self.tables[index].table().id());
        let tables: Vec<Arc<Table>> = all.iter().map(|&index| self.tables[index].table().clone()).collect();
        for touched in self.tables.iter_mut().filter(|touched| touched.kept.is_some()) {
            // Its rows have been found, and what only this snapshot shows need not be copied.
            touched.pinned = None;
        }
        let mut heads = lock_all(&tables.iter().collect::<Vec<_>>());
        let is_seen = |(index, head): (&usize, &HeadGuard<'_>)| {
            !relied.contains(index) || self.tables[*index].pinned().is_of(head)
        };
        if !all.iter().zip(&heads).all(is_seen) {
            return Ok(None);
        }
        let appended = framed.map(Framed::append).transpose()?;
        for (index, head) in all.iter().zip(&mut heads).filter(|(index, _)| !relied.contains(index)) {
            let Touched { table, kept, fork, .. } = &mut self.tables[*index];
            match (kept.take(), fork.take()) {
                (Some(kept), _) => kept.publish(table, head),
                (None, fork) => fork.expect("it is changed").fast_forward(head),
            }
        }
        Ok(Some(appended))
    }

    /// Pins the newest versions of some tables that it did not change, at one moment.
    fn see_newest(&mut self, tables: &[usize]) {
        let mut indices = tables.to_vec();
        indices.sort_by_key(|&index| self.tables[index].table().id());
        let tables: Vec<Arc<Table>> =
            indices.iter().map(|&index| self.tables[index].table().clone()).collect();
        self.moments += 1;
        let mut heads = lock_all(&tables.iter().collect::<Vec<_>>());
        let touched = tables.iter().zip(&mut heads).map(|(table, head)| self.touched(table, head));
        let touched: Vec<Touched> = touched.collect();
        let is_overtaken: Vec<bool> = indices
            .iter()
            .zip(&heads)
            .map(|(&index, head)| !self.tables[index].pinned().is_of(head))
            .collect();
        // A fork without changes locks the head of its table when it ends.
        drop(heads);
        for ((index, touched), is_overtaken) in indices.into_iter().zip(touched).zip(is_overtaken) {
            let Touched { needs_write_lock, is_overtaken: was, .. } = self.tables[index];
            let is_overtaken = is_overtaken || was;
            self.tables[index] = Touched { is_relied_on: true, needs_write_lock, is_overtaken, ..touched };
        }
    }
}
