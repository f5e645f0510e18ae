//! Transactions: what every statement writes through. Snapshot isolation; the first committer wins.
//!
//! | | forks | commit |
//! |---|---|---|
//! | [`Transaction::begin`]: a transaction *beside others* | hold no lock, and log what is done | replays its log where others committed first |
//! | [`Transaction::alone`]: a statement outside any transaction | hold the turns of the tables they write, no log | cannot conflict |
//!
//! 1. **Begin** pins all tables at one moment: it holds the locks of all their heads, under which a commit
//!    publishes, so no commit falls in between. A statement pins tables as it comes to name them, and asks at
//!    the end whether they were all seen at one moment ([`Transaction::sees_one_moment`]).
//! 2. **Writing.** The first write to a table opens a fork of the pinned version. The transaction reads its
//!    forks, and so its own writes. If an alone transaction writes to a table whose turn it does not hold, it
//!    does so beside others. A few new values of single rows need no fork: they are *kept* beside the pinned
//!    version ([`SingleRows`]) until something else is done with the table, or until the commit.
//! 3. **Savepoints** cost nothing until a table is written: then its fork is saved, once for each savepoint
//!    that does not have it yet.
//! 4. **Commit.** It takes the turns of the tables that it wrote, before any other lock
//!    ([`crate::sync::lock_order`]). A fork whose table has not changed is ready. Otherwise its log is
//!    replayed on a fork of the newest version. A row that was changed or deleted must still be there with
//!    the same values; a key that was added to a table whose key is unique must still be free; a table that
//!    was cleared must not have changed. If one of these does not hold, another transaction was first, and
//!    this one fails as a whole.
//! 5. **Validation.** If the outcome depends on tables that were only read ([`Transaction::depend_on`]), and
//!    one of them has a newer version, or something was replayed, the caller checks its constraints again on
//!    the newest versions.
//! 6. **Publish.** All forks become the heads of their tables at one moment, and new values that were kept
//!    are written to heads, under the locks of all heads, provided that the tables it depends on have not
//!    changed since they were checked. At that moment the redo records of logged tables are appended to the
//!    log as one commit; the disk is waited for once all locks and turns have been released. Rows of loads
//!    that the records refer to were synced before. If one of these tables has changed, step 5 is repeated;
//!    after some rounds it takes their turns too, so that this ends. Nothing is waited for here but other
//!    threads that hold these locks equally briefly.
//!
//! Rows are identified by their layout key and their values; without a layout key, by their row number and
//! their values. A row that has its old values again counts as the same row, and rows may move meanwhile.
//! Changes of different rows of one table do not conflict, so write skew is possible, as it is under snapshot
//! isolation, except in tables that the transaction depends on.
//!
//! ```text
//! mod ──▶ replay ──▶ unmoved    ──▶ renumbered   a log on a newer version; faster where rows have kept
//!                ──▶ references ──▶              their places; numbers of rows that it added, and the rows
//!                                                of indexes that have these
//! ```
//! **Indexes** of a table without a layout key have the numbers of its rows. If rows that a transaction has
//! added get other numbers, its indexes are replayed as well, after the table, whether others have written to
//! them or not ([`Transaction::refers_by_number`]).
//!
//! A thread that holds a turn, by an alone transaction or [`Table::write`], must not wait for another one.

mod references;
mod renumbered;
mod replay;
mod unmoved;

use crate::record::Record;
use crate::table::{
    Appended, AppendedRows, ForkSavepoint, Framed, HeadGuard, Interrupt, PendingUpdates, ReadLoad, Recorded,
    SingleRows, Table, TableFork, TableReader, TableSnapshot, TableWriter, Waiter, WriterTurn,
};
use crate::wal::Log;
use entasis_vector::Result;
use renumbered::Renumbered;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How often tables that others go on writing are checked before their turns are taken.
const ROUNDS: usize = 3;
/// How long a turn is waited for against the order of turns.
const PATIENCE: Duration = Duration::from_millis(200);

/// A transaction. If it is dropped, nothing of it remains.
#[derive(Default)]
pub struct Transaction {
    // Declared before the turns, so that forks end first.
    tables: Vec<Touched>,
    turns: Vec<WriterTurn>,
    is_alone: bool,
    savepoints: Vec<Saved>,
    /// How often tables were pinned.
    moments: u64,
    interrupt: Option<Interrupt>,
}

/// A table as the transaction first saw it, and what the transaction did to it.
struct Touched {
    table: Arc<Table>,
    /// `None` once the commit has found the rows whose new values were kept.
    pinned: Option<TableSnapshot>,
    /// Tables that were pinned at the same moment have the same number.
    moment: u64,
    fork: Option<TableFork>,
    /// New values of rows of the pinned version, as long as there is neither a fork nor a savepoint.
    kept: Option<PendingUpdates>,
    is_relied_on: bool,
    /// The commit has found that others have changed its rows.
    is_overtaken: bool,
    /// The commit takes its turn, even if the transaction did not write to it.
    needs_turn: bool,
    /// The id of the table whose row numbers are in its last column.
    refers_to: Option<u64>,
}

/// What a commit logs in front of its changes of rows.
pub struct Prologue {
    /// The log.
    pub log: Arc<Log>,
    /// Redo records.
    pub records: Vec<u8>,
}

/// A savepoint: the tables that were written since, by index, with their forks at that time; `None` for a
/// table that had no fork.
type Saved = Vec<(usize, Option<ForkSavepoint>)>;

impl Touched {
    fn is_changed(&self) -> bool {
        self.kept.is_some() || self.fork.as_ref().is_some_and(TableFork::is_changed)
    }

    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn pinned(&self) -> &TableSnapshot {
        self.pinned.as_ref().expect("it is pinned until rows are published")
    }

    /// Writes new values that were kept to a fork.
    fn settle(&mut self) {
        if let Some(kept) = &self.kept {
            let mut fork = TableFork::at(self.pinned(), true);
            kept.write(&mut fork.write());
            (self.fork, self.kept) = (Some(fork), None);
        }
    }
}

impl Transaction {
    /// A transaction beside others, which sees the newest versions of `tables`. It may use other tables as
    /// well, such as those created since, and sees them as they are when it first uses them.
    pub fn begin(tables: &[Arc<Table>]) -> Transaction {
        let mut transaction = Transaction::default();
        transaction.pin(tables);
        transaction
    }

    /// A transaction of one statement, which waits for its turn to write to `written`. Its changes of these
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
            transaction.turns.push(WriterTurn::take(table, waiter)?);
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
    fn touched(&self, table: &Arc<Table>, head: &mut HeadGuard<'_>) -> Touched {
        Touched {
            table: table.clone(),
            pinned: Some(table.pin(head)),
            moment: self.moments,
            fork: None,
            kept: None,
            is_relied_on: false,
            is_overtaken: false,
            needs_turn: false,
            refers_to: None,
        }
    }

    /// True if there was a moment at which all tables that it sees, and did not write to, had the versions
    /// that it sees. If not, it pins their present versions, and the caller must read them again. Then they
    /// are of one moment, unless new tables come in.
    pub fn sees_one_moment(&mut self) -> bool {
        let mut seen: Vec<usize> = (0..self.tables.len())
            // Tables whose turns it holds have not changed: their versions are those of any moment since.
            .filter(|&index| {
                let Touched { table, fork, kept, .. } = &self.tables[index];
                fork.is_none() && kept.is_none() && !self.holds_turn(table)
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
        let is_held = self.holds_turn(table);
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
        let change = record.change(&table.shape)?;
        self.write(table).redo(change, load)
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
    /// the commit waits for its turn.
    pub fn commit_with_turn(&mut self, table: &Arc<Table>) {
        self.depend_on(table);
        let index = self.index_of(table);
        self.tables[index].needs_turn = true;
    }

    // ---- savepoints ---------------------------------------------------------------------------------------

    /// Sets a savepoint, and returns its number: how many there are now.
    pub fn savepoint(&mut self) -> usize {
        // What is kept cannot be undone in part.
        self.settle();
        self.savepoints.push(Saved::new());
        self.savepoints.len()
    }

    /// Saves a table for all savepoints that do not have it, before it is written.
    fn save(&mut self, index: usize) {
        let has = |saved: &Saved| saved.iter().any(|(other, _)| *other == index);
        // If a savepoint has the table, so do all that were set before it.
        let missing = self.savepoints.iter().rev().take_while(|saved| !has(saved)).count();
        #[cfg(test)]
        SAVED.with(|saved| saved.set(saved.get() + missing));
        let from = self.savepoints.len() - missing;
        for saved in &mut self.savepoints[from..] {
            saved.push((index, self.tables[index].fork.as_mut().map(TableFork::savepoint)));
        }
    }

    /// Goes back to savepoint `number`, which is kept; those set after it are removed.
    ///
    /// # Panics
    /// If there are fewer savepoints.
    pub fn roll_back_to(&mut self, number: usize) {
        self.release(number + 1);
        assert!(number == self.savepoints.len(), "there is such a savepoint");
        // The tables stay saved, in the state in which they are again: otherwise the next write would have to
        // save them for this savepoint and all that were gone back to before.
        let saved = std::mem::take(&mut self.savepoints[number - 1]);
        let again = saved.into_iter().map(|(index, saved)| {
            let fork = &mut self.tables[index].fork;
            let saved = match (saved, fork.as_mut()) {
                (Some(saved), Some(fork)) => {
                    fork.roll_back(saved);
                    Some(fork.savepoint())
                }
                _ => {
                    *fork = None;
                    None
                }
            };
            (index, saved)
        });
        self.savepoints[number - 1] = again.collect();
    }

    /// Removes savepoint `number` and those set after it. What was written stays.
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

    /// True if going back to savepoint `number` takes negligible time.
    pub fn is_small_since(&self, number: usize) -> bool {
        let saved = self.savepoints.get(number - 1);
        saved.into_iter().flatten().all(|(index, saved)| {
            let fork = self.tables[*index].fork.as_ref();
            fork.is_none_or(|fork| fork.is_small_since(saved.as_ref()))
        })
    }

    // ---- the end ------------------------------------------------------------------------------------------

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
    /// transaction depends on has changed since it was checked. All turns are held by then, so `publish` must
    /// only take locks that come after them in the lock order.
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
            self.take_turns(&self.need_turns(), waiter)?;
            let mut renumbered: HashMap<u64, Renumbered> = HashMap::new();
            for &index in &self.referred_first(&changed) {
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

    /// Takes the turns that the commit needs, or none, before it. Nothing may be written between the two.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up.
    pub fn take_turns_to_commit(&mut self, waiter: &Waiter<'_>) -> Result<()> {
        let had = self.turns.len();
        let taken = self.take_turns(&self.need_turns(), waiter);
        if taken.is_err() {
            self.turns.truncate(had);
        }
        taken
    }

    /// The tables whose turns the commit takes.
    fn need_turns(&self) -> Vec<usize> {
        let needs = |touched: &Touched| touched.is_changed() || touched.needs_turn;
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

    /// Takes the turns of tables that are not held yet, in order as far as possible.
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

    /// Makes the forks of `changed`, whose turns are held, the heads of their tables, and appends the changes
    /// to the log. `None` if a table of `relied` has a newer version than was seen.
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
            let Touched { needs_turn, is_overtaken: was, .. } = self.tables[index];
            let is_overtaken = is_overtaken || was;
            self.tables[index] = Touched { is_relied_on: true, needs_turn, is_overtaken, ..touched };
        }
    }
}

/// Undoes work that ends without success.
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

/// The tables in the order of their ids, each once.
fn in_order(tables: &[Arc<Table>]) -> Vec<&Arc<Table>> {
    let mut tables: Vec<&Arc<Table>> = tables.iter().collect();
    tables.sort_by_key(|table| table.id());
    tables.dedup_by_key(|table| table.id());
    tables
}

/// Locks the heads of tables, which must be in order. No commit falls in between.
fn lock_all<'a>(tables: &[&'a Arc<Table>]) -> Vec<HeadGuard<'a>> {
    tables.iter().map(|table| table.head()).collect()
}

#[cfg(test)]
thread_local! {
    /// How often a table was saved for a savepoint.
    static SAVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    mod indexed;
    mod kept;
    mod numbered;
    mod redo;
    mod transactions;
}
