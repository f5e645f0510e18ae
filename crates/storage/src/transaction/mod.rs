//! Transactions: what every statement writes through. Snapshot isolation, the first committer wins.
//!
//! | | forks | commit |
//! |---|---|---|
//! | [`Transaction::begin`]: *beside others* | hold no lock, and log what is done | replays what others were faster than |
//! | [`Transaction::alone`]: a statement outside any transaction | hold the writers' turns of their tables, no log | cannot conflict |
//!
//! 1. **Begin** pins all tables at one moment: no commit falls in between, because a commit publishes under
//!    all its heads' locks, and so does this. A statement pins what it names as it goes along, and asks at
//!    the end whether that was one moment ([`Transaction::sees_one_moment`]).
//! 2. The first write to a table opens a fork of the pinned version. The transaction reads its forks: its own
//!    writes. An alone transaction that writes to a table that it does not hold does so beside others.
//! 3. **Savepoints** cost nothing until a table is written: then its fork is saved once for each of them that
//!    has it not yet.
//! 4. **Commit, with turns.** It takes the turns of the tables that it wrote, before any other lock
//!    ([`crate::sync::lock_order`]). A fork whose table is as it was is ready. Otherwise its log is replayed
//!    on a fork of the newest version: a row that was changed or removed must still be there as it was, a key
//!    that was added must still be free in a table whose key is distinct; a table that was cleared must be as
//!    it was. If not, another transaction was first, and this one fails whole.
//! 5. If the outcome relies on tables that were only read ([`Transaction::depend_on`]), and one of them has a
//!    newer version, or something was replayed, the caller judges its constraints once more on the newest
//!    versions.
//! 6. **Publish.** All forks become their heads at one moment, under the locks of all heads, at which the
//!    tables that were relied on are still as they were judged. There the redo records of logged tables are
//!    appended to the log, as one commit; the disk is waited for when all locks and turns are given back. If
//!    they are not, 5 comes again; after some rounds with their turns, so that it ends. Nothing is waited for
//!    here but other threads that hold these locks for as short a time.
//!
//! Rows are told by their layout key and their values, without a layout key by their number and their values:
//! a row that has come to hold the same values again is the same row. They may move meanwhile. What two
//! transactions did to different rows of one table goes together, so write skew is possible, as snapshot
//! isolation has it, but for what is relied on.
//!
//! ```text
//! mod ──▶ replay ──▶ unmoved ──▶ renumbered     a log on a newer version; faster where rows have kept their
//!                                                places; numbers of rows that it added
//! ```
//! Whoever holds a turn, by an alone transaction or [`Table::write`], must not wait for another one in the
//! same thread.

mod renumbered;
mod replay;
mod unmoved;

use crate::record::Record;
use crate::table::{
    Appended, AppendedRows, ForkSavepoint, Framed, HeadGuard, Interrupt, Table, TableFork, TableSnapshot,
    TableWriter, Waiter, WriterTurn,
};
use crate::wal::Log;
use entasis_vector::Result;
use std::sync::Arc;
use std::time::Duration;

/// Rounds of judging tables that others go on writing, before their turns are taken.
const ROUNDS: usize = 3;
/// How long a turn is waited for that the order of turns does not allow to wait for.
const PATIENCE: Duration = Duration::from_millis(200);

/// See the module. Dropped, it leaves nothing behind.
#[derive(Default)]
pub struct Transaction {
    // Before the turns, so that forks end first.
    tables: Vec<Touched>,
    turns: Vec<WriterTurn>,
    is_alone: bool,
    savepoints: Vec<Saved>,
    /// How often it has pinned tables.
    moments: u64,
    interrupt: Option<Interrupt>,
}

/// A table as the transaction began with it, and what it did to it.
struct Touched {
    pinned: TableSnapshot,
    /// Tables that were pinned at one moment share the number.
    moment: u64,
    fork: Option<TableFork>,
    is_relied_on: bool,
    /// Its turn is taken for the commit, even if it was not written.
    needs_turn: bool,
}

/// What a commit says in the log before it says what was done to rows.
pub struct Prologue {
    /// The log.
    pub log: Arc<Log>,
    /// Redo records.
    pub records: Vec<u8>,
}

/// A savepoint: tables that were written since, by index, with their forks as they were; `None` if there was
/// none.
type Saved = Vec<(usize, Option<ForkSavepoint>)>;

impl Touched {
    fn is_changed(&self) -> bool {
        self.fork.as_ref().is_some_and(TableFork::is_changed)
    }

    fn table(&self) -> &Arc<Table> {
        self.pinned.table()
    }
}

impl Transaction {
    /// A transaction beside others, that sees the newest versions of `tables`. Others may be used as well,
    /// and are seen as they are when first used: those that were created since.
    pub fn begin(tables: &[Arc<Table>]) -> Transaction {
        let mut transaction = Transaction::default();
        transaction.pin(tables);
        transaction
    }

    /// A transaction of one statement, which waits for its turn to write to `written`. What it does to them
    /// is not logged, and cannot conflict. Other tables are seen as they are when first used, or pinned
    /// together.
    pub fn alone(written: &[Arc<Table>]) -> Transaction {
        Transaction::alone_as(written, &Waiter::default()).expect("nobody interrupts it")
    }

    /// The same for who does not wait for ever.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up.
    pub fn alone_as(written: &[Arc<Table>], waiter: &Waiter<'_>) -> Result<Transaction> {
        let mut transaction = Transaction::default();
        transaction.is_alone = true;
        for table in in_order(written) {
            transaction.turns.push(WriterTurn::take(table, waiter)?);
        }
        transaction.pin(written);
        Ok(transaction)
    }

    /// Says what interrupts changes of many rows.
    pub fn interrupted_by(&mut self, interrupt: Interrupt) {
        self.interrupt = Some(interrupt);
    }

    /// Makes the transaction see the newest versions of those of `tables` that it has not seen yet, at one
    /// moment.
    pub fn pin(&mut self, tables: &[Arc<Table>]) {
        let mut new = in_order(tables);
        new.retain(|table| self.known(table).is_none());
        self.moments += 1;
        let mut heads = lock_all(&new);
        for (table, head) in new.iter().zip(&mut heads) {
            let touched = self.touched(table, head);
            self.tables.push(touched);
        }
    }

    /// A table as it is now: its head is locked.
    fn touched(&self, table: &Arc<Table>, head: &mut HeadGuard<'_>) -> Touched {
        Touched {
            pinned: table.pin(head),
            moment: self.moments,
            fork: None,
            is_relied_on: false,
            needs_turn: false,
        }
    }

    /// True if all tables that it sees, and did not write to, are as they were at one moment. If not, it sees
    /// them as they are now, and whoever has read any of them begins anew: then they are, unless others come
    /// to them.
    pub fn sees_one_moment(&mut self) -> bool {
        let mut seen: Vec<usize> = (0..self.tables.len())
            // Those whose turns it holds are as they were, so they are of any moment since.
            .filter(|&index| {
                self.tables[index].fork.is_none() && !self.holds_turn(self.tables[index].table())
            })
            .collect();
        if seen.windows(2).all(|pair| self.tables[pair[0]].moment == self.tables[pair[1]].moment) {
            return true;
        }
        seen.sort_by_key(|&index| self.tables[index].table().id());
        let tables: Vec<Arc<Table>> = seen.iter().map(|&index| self.tables[index].table().clone()).collect();
        let mut heads = lock_all(&tables.iter().collect::<Vec<_>>());
        let is_current = seen.iter().zip(&heads).all(|(&index, head)| self.tables[index].pinned.is_of(head));
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

    /// The tables that are not as the transaction began with them.
    pub fn changed_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.iter().filter(|touched| touched.is_changed()).map(Touched::table)
    }

    /// True if the transaction changed a table.
    pub fn is_changed(&self, table: &Arc<Table>) -> bool {
        self.known(table).is_some_and(|index| self.tables[index].is_changed())
    }

    fn known(&self, table: &Arc<Table>) -> Option<usize> {
        self.tables.iter().position(|touched| Arc::ptr_eq(touched.table(), table))
    }

    fn index_of(&mut self, table: &Arc<Table>) -> usize {
        self.known(table).unwrap_or_else(|| {
            self.pin(std::slice::from_ref(table));
            self.tables.len() - 1
        })
    }

    fn holds_turn(&self, table: &Arc<Table>) -> bool {
        self.turns.iter().any(|turn| Arc::ptr_eq(turn.table(), table))
    }

    /// What the transaction sees of a table.
    pub fn snapshot(&mut self, table: &Arc<Table>) -> TableSnapshot {
        let index = self.index_of(table);
        match &mut self.tables[index] {
            Touched { fork: Some(fork), .. } => fork.snapshot(),
            Touched { pinned, .. } => pinned.clone(),
        }
    }

    /// Writes to a table. What a statement writes can be undone ([`Transaction::savepoint`],
    /// [`TableWriter::atomically`]).
    pub fn write(&mut self, table: &Arc<Table>) -> TableWriter<'_> {
        let index = self.index_of(table);
        self.save(index);
        let is_held = self.holds_turn(table);
        let Touched { pinned, fork, .. } = &mut self.tables[index];
        let fork = fork.get_or_insert_with(|| TableFork::at(pinned, !is_held));
        fork.write().interrupted_by(self.interrupt.as_ref())
    }

    /// Does what a record of the log says of the rows of a table, of which [`Record::table`] was asked.
    ///
    /// # Errors
    /// Corruption, if it is no record of such a table, or does not apply.
    pub(crate) fn redo(&mut self, table: &Arc<Table>, record: Record<'_>) -> Result<()> {
        let change = record.change(&table.shape)?;
        self.write(table).redo(change)
    }

    /// Adds the rows that appenders took, as [`Table::commit`] does. Returns how many they are.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB. Then some may have been added.
    pub fn append(&mut self, table: &Arc<Table>, appended: Vec<AppendedRows>) -> Result<u64> {
        self.write(table).append(appended)
    }

    /// Removes all rows of a table. Returns how many they were.
    pub fn clear(&mut self, table: &Arc<Table>) -> u64 {
        self.write(table).clear()
    }

    /// Says that the outcome relies on what the transaction sees of a table, if it writes to it or not: see
    /// [`Transaction::commit`].
    pub fn depend_on(&mut self, table: &Arc<Table>) {
        let index = self.index_of(table);
        self.tables[index].is_relied_on = true;
    }

    /// The same for a table whose writers should not be in conflict with what this publishes: it waits for
    /// its turn to commit.
    pub fn commit_with_turn(&mut self, table: &Arc<Table>) {
        self.depend_on(table);
        let index = self.index_of(table);
        self.tables[index].needs_turn = true;
    }

    // ---- savepoints ---------------------------------------------------------------------------------------

    /// Sets a savepoint, and says how many there are then: its number.
    pub fn savepoint(&mut self) -> usize {
        self.savepoints.push(Saved::new());
        self.savepoints.len()
    }

    /// Saves a table for all savepoints that have it not, before it is written.
    fn save(&mut self, index: usize) {
        let has = |saved: &Saved| saved.iter().any(|(other, _)| *other == index);
        // Who has it has been there before the others, which is how they nest.
        let missing = self.savepoints.iter().rev().take_while(|saved| !has(saved)).count();
        let from = self.savepoints.len() - missing;
        for saved in &mut self.savepoints[from..] {
            saved.push((index, self.tables[index].fork.as_mut().map(TableFork::savepoint)));
        }
    }

    /// Goes back to savepoint `number`, which stays; those set after it are gone.
    ///
    /// # Panics
    /// If there are not so many savepoints.
    pub fn roll_back_to(&mut self, number: usize) {
        self.release(number + 1);
        assert!(number == self.savepoints.len(), "there is such a savepoint");
        for (index, saved) in std::mem::take(&mut self.savepoints[number - 1]) {
            let fork = &mut self.tables[index].fork;
            match (saved, fork.as_mut()) {
                (Some(saved), Some(fork)) => fork.roll_back(saved),
                _ => *fork = None,
            }
        }
    }

    /// Forgets savepoint `number` and those set after it. What was written stays.
    pub fn release(&mut self, number: usize) {
        while self.savepoints.len() >= number.max(1) {
            for (index, saved) in self.savepoints.pop().into_iter().flatten() {
                if let (Some(saved), Some(fork)) = (saved, &mut self.tables[index].fork) {
                    fork.release(saved);
                }
            }
        }
    }

    /// Does some work and, if that fails or panics, undoes it in all tables. Work may be nested.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn atomically<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let mark = self.savepoint();
        let mut undo = Undo { transaction: self, mark, is_due: true };
        let result = work(undo.transaction);
        undo.is_due = result.is_err();
        result
    }

    /// Bytes of memory that the tables will have more, about.
    pub fn growth(&self) -> usize {
        self.tables.iter().filter_map(|touched| touched.fork.as_ref()).map(TableFork::growth).sum()
    }

    // ---- the end ------------------------------------------------------------------------------------------

    /// Publishes everything, or nothing.
    ///
    /// `validate` is asked, possibly more than once, if something that was written had to be replayed on a
    /// newer version, or a table that is relied on has one. It sees the newest version of these tables, and
    /// may write.
    ///
    /// # Errors
    /// Conflict, if another transaction was first; what `validate` says.
    pub fn commit(self, validate: impl FnMut(&mut Transaction) -> Result<()>) -> Result<()> {
        self.commit_as(&Waiter::default(), |_| Ok(None), |rows| Ok(rows()), validate)
    }

    /// The same for who does not wait for ever, and has more to publish than rows. `prepare` is asked,
    /// possibly more than once, for what the log is to say of that, when all rows are as they will be.
    /// `publish` is called with what publishes the rows, and says if that did: it does, unless a table that
    /// is relied on has a newer version than was judged. All turns that are needed are held by then, so it
    /// takes only locks that come behind them.
    ///
    /// # Errors
    /// As there; interrupted; conflict, if the time is up; what `publish` says.
    pub fn commit_as(
        mut self,
        waiter: &Waiter<'_>,
        mut prepare: impl FnMut(&mut Transaction) -> Result<Option<Prologue>>,
        mut publish: impl FnMut(&mut dyn FnMut() -> bool) -> Result<bool>,
        mut validate: impl FnMut(&mut Transaction) -> Result<()>,
    ) -> Result<()> {
        self.release(1);
        let mut must_judge = false;
        for round in 0.. {
            let changed = self.changed();
            self.take_turns(&self.need_turns(), waiter)?;
            for &index in &changed {
                let fork = self.tables[index].fork.as_mut().expect("it is changed");
                let is_current = fork.can_fast_forward(&fork.table().head());
                if !is_current {
                    *fork = replay::replay(fork, waiter)?;
                    must_judge |= self.tables.iter().any(|touched| touched.is_relied_on);
                }
            }
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
                self.take_turns(&relied, waiter)?;
            }
            self.see_newest(&relied);
            must_judge = false;
            validate(&mut self)?;
            self.release(1);
        }
        unreachable!("rounds go on until one returns")
    }

    /// Tables whose turns a commit takes.
    fn need_turns(&self) -> Vec<usize> {
        let needs = |touched: &Touched| touched.is_changed() || touched.needs_turn;
        (0..self.tables.len()).filter(|&index| needs(&self.tables[index])).collect()
    }

    /// Tables with forks that are changed, in the order of their ids.
    fn changed(&self) -> Vec<usize> {
        let mut changed: Vec<usize> =
            (0..self.tables.len()).filter(|&i| self.tables[i].is_changed()).collect();
        changed.sort_by_key(|&index| self.tables[index].table().id());
        changed
    }

    /// Takes those turns of tables that are not held yet, in order as far as possible.
    fn take_turns(&mut self, tables: &[usize], waiter: &Waiter<'_>) -> Result<()> {
        let tables: Vec<Arc<Table>> =
            tables.iter().map(|&index| self.tables[index].table().clone()).collect();
        for table in in_order(&tables) {
            if self.holds_turn(table) {
                continue;
            }
            let is_last = self.turns.iter().all(|turn| turn.table().id() < table.id());
            let turn = match is_last {
                true => WriterTurn::take(table, waiter)?,
                false => WriterTurn::take_within(table, waiter, PATIENCE)?,
            };
            self.turns.push(turn);
        }
        Ok(())
    }

    /// What is appended to the log, if there is a prologue or tables of `changed` are logged.
    fn framed(&self, prologue: Option<Prologue>, changed: &[usize]) -> Result<Option<Framed>> {
        let (mut log, mut records) =
            prologue.map_or_else(Default::default, |prologue| (Some(prologue.log), prologue.records));
        for fork in changed.iter().filter_map(|&index| self.tables[index].fork.as_ref()) {
            fork.record(&mut records);
            log = log.or_else(|| fork.table().logged().map(|logged| logged.log.clone()));
        }
        log.map_or(Ok(None), |log| Framed::of(&records, &log))
    }

    /// What the commit will make the newest version of a table, as far as this transaction knows.
    pub fn outcome(&mut self, table: &Arc<Table>) -> TableSnapshot {
        let known = self.known(table).map(|index| &mut self.tables[index]);
        match known.and_then(|touched| touched.fork.as_mut()) {
            Some(fork) => fork.snapshot(),
            None => table.snapshot(),
        }
    }

    /// Makes the forks of `changed`, whose turns are held, the heads of their tables, and appends to the log
    /// that they are. `None`, if a table of `relied` has a newer version than was seen.
    fn publish(
        &mut self,
        changed: &[usize],
        relied: &[usize],
        framed: Option<&Framed>,
    ) -> Result<Option<Option<Appended>>> {
        let mut all: Vec<usize> = [changed, relied].concat();
        all.sort_by_key(|&index| self.tables[index].table().id());
        let tables: Vec<Arc<Table>> = all.iter().map(|&index| self.tables[index].table().clone()).collect();
        let mut heads = lock_all(&tables.iter().collect::<Vec<_>>());
        let is_seen = |(index, head): (&usize, &HeadGuard<'_>)| {
            !relied.contains(index) || self.tables[*index].pinned.is_of(head)
        };
        if !all.iter().zip(&heads).all(is_seen) {
            return Ok(None);
        }
        let appended = framed.map(Framed::append).transpose()?;
        for (index, head) in all.iter().zip(&mut heads).filter(|(index, _)| !relied.contains(index)) {
            self.tables[*index].fork.take().expect("it is changed").fast_forward(head);
        }
        Ok(Some(appended))
    }

    /// Sees the newest versions of some tables that it did not change, at one moment.
    fn see_newest(&mut self, tables: &[usize]) {
        let mut indices = tables.to_vec();
        indices.sort_by_key(|&index| self.tables[index].table().id());
        let tables: Vec<Arc<Table>> =
            indices.iter().map(|&index| self.tables[index].table().clone()).collect();
        self.moments += 1;
        let mut heads = lock_all(&tables.iter().collect::<Vec<_>>());
        let touched = tables.iter().zip(&mut heads).map(|(table, head)| self.touched(table, head));
        let touched: Vec<Touched> = touched.collect();
        // A fork that did nothing ends with its table's head in hand.
        drop(heads);
        for (index, touched) in indices.into_iter().zip(touched) {
            let needs_turn = self.tables[index].needs_turn;
            self.tables[index] = Touched { is_relied_on: true, needs_turn, ..touched };
        }
    }
}

/// The end of work that is done or undone as a whole.
struct Undo<'a> {
    transaction: &'a mut Transaction,
    mark: usize,
    is_due: bool,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.is_due {
            self.transaction.roll_back_to(self.mark);
        }
        self.transaction.release(self.mark);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.release(1);
    }
}

/// Each table once, in the order of their ids.
fn in_order(tables: &[Arc<Table>]) -> Vec<&Arc<Table>> {
    let mut tables: Vec<&Arc<Table>> = tables.iter().collect();
    tables.sort_by_key(|table| table.id());
    tables.dedup_by_key(|table| table.id());
    tables
}

/// The heads of tables that are in order. No commit falls in between.
fn lock_all<'a>(tables: &[&'a Arc<Table>]) -> Vec<HeadGuard<'a>> {
    tables.iter().map(|table| table.head()).collect()
}

#[cfg(test)]
mod tests {
    mod numbered;
    mod redo;
    mod transactions;
}
