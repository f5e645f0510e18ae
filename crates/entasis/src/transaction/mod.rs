//! What a statement works on: the names and the rows of one moment, and what it and its transaction did to
//! them.
//!
//! | | a [`TransactionContext`] begins with | and ends with |
//! |---|---|---|
//! | a statement by itself that writes rows | the table's write lock | [`TransactionContext::commit`], without conflict |
//! | any other statement by itself | tables as of when each is first named | [`TransactionContext::commit`] |
//! | a transaction | all tables as of one moment | [`TransactionContext::commit`]; the first to commit wins |
//!
//! If it is dropped without a commit, it leaves nothing behind. A statement that fails within a transaction
//! rolls back to a [`Mark`], and the transaction goes on without it.
//!
//! **One moment.** Tables are seen as of one moment: a transaction sees those of its beginning, a statement
//! by itself those of a moment during its binding ([`TransactionContext::sees_one_moment`]). A commit
//! publishes all of its tables and names at one moment ([`entasis_storage::Catalog::publish`]), so nobody
//! sees a part of it.
//!
//! **Several databases.** A transaction writes to one database, its *target database*, and sees others as of
//! when it first named them (docs/decisions/0026). The first statement of a transaction that writes settles
//! its target database: until then [`TransactionContext::move_to`] makes another of the databases that it
//! sees its target database.
//!
//! **Locks.** Write locks are acquired before any other lock: by a statement at its beginning, by a
//! transaction at its commit (`docs/design/locks.md`).

pub(crate) mod target_database;

use crate::constraints::catch_up::CatchUp;
use crate::constraints::validation::Predicates;
use crate::prepared::Prepared;
use crate::prepared::program::{Program, compile};
use crate::session::{Attached, Session};
use crate::state::interrupt::Interrupt;
use crate::state::workload_stats::Writing;
use crate::state::{Shared, UNCHARGED, all_tables};
use entasis_engine::exec::{CancelFlag, Reservation};
use entasis_sql::{Parsed, WrittenName};
use entasis_storage::{
    CatalogVersion, Entry, SingleRows, Table, TableEntry, TableReader, TableSnapshot, TableWriter,
    Transaction, Waiter, is_temporary,
};
use entasis_vector::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next transaction.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// See the module.
pub(crate) struct TransactionContext {
    /// The target database.
    shared: Arc<Shared>,
    /// The name of the target database.
    database: Arc<str>,
    /// The connection's number in the target database, whose temporary objects it sees.
    owner: u64,
    /// The names at its beginning.
    base: CatalogVersion,
    /// The names as it sees and changes them.
    pub(crate) names: CatalogVersion,
    rows: Transaction,
    /// When it began, in microseconds since 1970-01-01 00:00:00 UTC.
    pub(crate) began: i64,
    /// Its number among the transactions of this process, if it is one of several statements.
    number: Option<u64>,
    /// The entries of all names that the statement has looked up.
    seen: Vec<Entry>,
    /// Named tables whose rows it wrote, or on which it relies.
    used: Vec<Arc<TableEntry>>,
    /// Says of those that follow their workload that they are written to.
    writing: Vec<Writing>,
    /// Predicates about tables on which it relies.
    predicates: Predicates,
    /// Tables, with those of their indexes, whose rows others must not have changed at the commit.
    fixed: Vec<Arc<Table>>,
    /// Indexes that were built from what it sees of their tables.
    built: Vec<CatchUp>,
    savepoints: Vec<(String, Mark)>,
    /// Programs of keyed statements for its names, where these are not the newest.
    programs: OwnPrograms,
    /// What it sees of other databases.
    others: Vec<Other>,
    /// Its reservation of memory.
    memory: Reservation,
    /// Bytes of single rows written since the budget was last charged.
    uncharged: usize,
    cancel: CancelFlag,
}

/// Programs of keyed statements by their numbers, for the names that a transaction sees alone.
#[derive(Default)]
struct OwnPrograms {
    names: CatalogVersion,
    /// The session's count of changes of what names mean.
    meanings: u64,
    by_statement: HashMap<u64, Option<Arc<Program>>>,
}

/// What is seen of another database: all of it as of the moment at which it was first named.
pub(crate) struct Other {
    database: Arc<str>,
    pub(crate) names: CatalogVersion,
    rows: Transaction,
}

impl Other {
    /// The snapshot of a table.
    pub(crate) fn snapshot(&mut self, table: &Arc<Table>) -> TableSnapshot {
        self.rows.snapshot(table)
    }
}

/// A point to which the transaction can roll back.
#[derive(Clone)]
pub(crate) struct Mark {
    names: CatalogVersion,
    /// Number of the savepoint of the rows.
    number: usize,
    used: usize,
    predicates: (usize, usize),
    fixed: usize,
    built: usize,
}

impl TransactionContext {
    /// The context of a transaction.
    pub(crate) fn begin(session: &Session) -> TransactionContext {
        session.shared.catalog.at_rest(|names| {
            let names = names.clone().seen_by(session.id);
            let tables: Vec<Arc<Table>> = names.tables().flat_map(|entry| all_tables(entry)).collect();
            let rows = Transaction::begin(&tables);
            let number = Some(NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
            TransactionContext { number, ..TransactionContext::new(session, names, rows) }
        })
    }

    /// The context of a statement by itself, which is a transaction of its own, that changes `targets` and
    /// `others`: waits for the write locks of these.
    ///
    /// # Errors
    /// Interrupted; conflict, if the wait timed out.
    pub(crate) fn of_statement(
        session: &Session,
        targets: &[WrittenName],
        others: &[Arc<TableEntry>],
        waiter: &Waiter<'_>,
    ) -> Result<TransactionContext> {
        loop {
            let names = session.newest_names();
            let path = session.search_path();
            let found = targets.iter().filter_map(|target| names.table(&path.find(&names, target)).cloned());
            let others = others.iter().filter_map(|entry| names.table(&entry.name).cloned());
            let written: Vec<Arc<TableEntry>> = found.chain(others).collect();
            let tables: Vec<Arc<Table>> = written.iter().flat_map(|entry| all_tables(entry)).collect();
            let rows = Transaction::alone_as(&tables, waiter)?;
            // With the write locks in hand, nobody else can change this: do the names still refer to these
            // tables?
            let names = session.newest_names();
            let is_still =
                |entry: &Arc<TableEntry>| names.table(&entry.name).is_some_and(|now| Arc::ptr_eq(now, entry));
            if written.iter().all(is_still) {
                return Ok(TransactionContext::new(session, names, rows));
            }
        }
    }

    /// The context of a statement by itself, which is a transaction of its own, that changes no existing
    /// table.
    pub(crate) fn of_reading(session: &Session) -> TransactionContext {
        TransactionContext::new(session, session.newest_names(), Transaction::alone(&[]))
    }

    fn new(session: &Session, names: CatalogVersion, mut rows: Transaction) -> TransactionContext {
        let shared = &session.shared;
        let cancel = session.cancel.clone();
        interrupt_by(&mut rows, &cancel);
        TransactionContext {
            shared: shared.clone(),
            database: session.database.clone(),
            owner: session.id,
            base: names.clone(),
            names,
            rows,
            began: entasis_functions::clock(),
            number: None,
            seen: Vec::new(),
            used: Vec::new(),
            writing: Vec::new(),
            predicates: Predicates::default(),
            fixed: Vec::new(),
            built: Vec::new(),
            savepoints: Vec::new(),
            programs: OwnPrograms::default(),
            others: Vec::new(),
            memory: Reservation::new(&shared.changes),
            uncharged: 0,
            cancel,
        }
    }

    // ---- several databases --------------------------------------------------------------------------------

    /// The name of its target database.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// What it sees of a database other than its target database.
    pub(crate) fn other(&mut self, attached: &Attached) -> &mut Other {
        let found = self.others.iter().position(|other| other.database == attached.name);
        let at = found.unwrap_or_else(|| {
            let other = attached.shared.catalog.at_rest(|names| {
                let names = names.clone().seen_by(attached.owner);
                let tables: Vec<Arc<Table>> = names.tables().flat_map(|entry| all_tables(entry)).collect();
                Other { database: attached.name.clone(), rows: Transaction::begin(&tables), names }
            });
            self.others.push(other);
            self.others.len() - 1
        });
        &mut self.others[at]
    }

    /// The names that it sees in a database, its target database or another.
    pub(crate) fn names_of(&mut self, database: &Attached) -> CatalogVersion {
        match database.name == self.database {
            true => self.names.clone(),
            false => self.other(database).names.clone(),
        }
    }

    /// The names that it has seen in a database; `None` if it has seen nothing of it.
    pub(crate) fn names_seen_of(&self, database: &str) -> Option<CatalogVersion> {
        match *self.database == *database {
            true => Some(self.names.clone()),
            false => {
                self.others.iter().find(|other| *other.database == *database).map(|other| other.names.clone())
            }
        }
    }

    /// True if it has seen something of a database, or if that is its target database.
    pub(crate) fn has_seen(&self, database: &str) -> bool {
        self.names_seen_of(database).is_some()
    }

    /// True if it has written to its target database, or relies on what is there.
    fn has_written(&self) -> bool {
        !self.used.is_empty() || !self.base.is(&self.names)
    }

    /// Makes the session's target database its own, before a statement of a transaction. What it has seen of
    /// both databases is kept.
    ///
    /// # Errors
    /// Input, if it has written to another database already.
    pub(crate) fn move_to(&mut self, session: &Session) -> Result<()> {
        if self.database == session.database {
            return Ok(());
        }
        if self.has_written() {
            let (from, to) = (&self.database, &session.database);
            let text =
                format!("this transaction writes to database {from}; commit it before it writes to {to}");
            return Err(Error::input(text));
        }
        let Session { shared, id, database, .. } = session.clone();
        let there = Attached { name: database, shared, owner: id, is_read_only: false, _user: None };
        self.other(&there);
        let at = self.others.iter().position(|other| other.database == there.name);
        let Some(at) = at else { return Err(Error::internal("a database was seen and is not")) };
        let Attached { name, shared, owner, .. } = there;
        let Other { names, mut rows, .. } = self.others.swap_remove(at);
        interrupt_by(&mut rows, &self.cancel);
        self.memory = Reservation::new(&shared.changes);
        self.uncharged = 0;
        (self.shared, self.owner) = (shared, owner);
        self.base = names.clone();
        self.others.push(Other {
            database: std::mem::replace(&mut self.database, name),
            names: std::mem::replace(&mut self.names, names),
            rows: std::mem::replace(&mut self.rows, rows),
        });
        // Nothing was written, so the savepoints are points without written rows in the new target database
        // as well.
        self.rows.release(1);
        self.predicates = Predicates::default();
        let mut savepoints = std::mem::take(&mut self.savepoints);
        for (_, mark) in &mut savepoints {
            *mark = self.mark();
        }
        self.savepoints = savepoints;
        Ok(())
    }

    /// True if it belongs to a transaction of several statements.
    pub(crate) fn is_transaction(&self) -> bool {
        self.number.is_some()
    }

    /// The number of the transaction, which no other of this process has; `None` for a statement by itself.
    pub(crate) fn number(&self) -> Option<u64> {
        self.number
    }

    /// Pins all tables as of one moment, as a transaction does. Unless it is a transaction, nothing may have
    /// been seen or done before.
    pub(crate) fn see_all(&mut self, session: &Session) {
        if !self.is_transaction() {
            *self = TransactionContext::begin(session);
        }
    }

    /// Calls `run` with the temporary objects of another session in place of its own.
    pub(crate) fn seen_by<R>(
        &mut self,
        session: &Session,
        run: impl FnOnce(&mut TransactionContext) -> R,
    ) -> R {
        self.names = self.names.clone().seen_by(session.id);
        let result = run(self);
        self.names = self.names.clone().seen_by(self.owner);
        result
    }

    /// Records that a name was looked up and referred to this entry.
    pub(crate) fn sees(&mut self, entry: &Entry) {
        if !self.is_transaction() {
            self.seen.push(entry.clone());
        }
    }

    /// True if everything seen, names and rows, existed at one moment. If not, it pins the present state, and
    /// the statement must be bound again.
    pub(crate) fn sees_one_moment(&mut self) -> bool {
        if self.is_transaction() {
            return true;
        }
        let (shared, owner) = (self.shared.clone(), self.owner);
        shared.catalog.at_rest(|newest| {
            let newest = newest.clone().seen_by(owner);
            let is_same = |entry: &Entry| newest.get(entry.name()).is_some_and(|now| now.is(entry));
            let has_names = self.names.is(&newest) || self.seen.iter().all(is_same);
            self.seen.clear();
            if !has_names {
                self.names = newest.clone();
                self.base = newest;
            }
            self.rows.sees_one_moment() && has_names
        })
    }

    /// True if these are the names that it sees.
    pub(crate) fn has_names(&self, names: &CatalogVersion) -> bool {
        self.names.is(names)
    }

    /// The program of a keyed statement for the names that it sees, which are not the newest; `None` if the
    /// statement has none.
    pub(crate) fn program(&mut self, session: &Session, prepared: &Prepared) -> Option<Arc<Program>> {
        let keyed = prepared.keyed()?;
        let meanings = session.meanings();
        if !self.programs.names.is(&self.names) || self.programs.meanings != meanings {
            self.programs = OwnPrograms { names: self.names.clone(), meanings, by_statement: HashMap::new() };
        }
        let compiled = || compile(keyed, &self.names, &session.search_path()).ok().map(Arc::new);
        self.programs.by_statement.entry(prepared.number()).or_insert_with(compiled).clone()
    }

    /// Pins a table and its indexes as of one moment, unless it has seen them already.
    pub(crate) fn pin(&mut self, entry: &TableEntry) {
        let tables: Vec<Arc<Table>> = all_tables(entry).collect();
        self.rows.pin(&tables);
    }

    /// The snapshot of a table.
    pub(crate) fn snapshot(&mut self, table: &Arc<Table>) -> TableSnapshot {
        self.rows.snapshot(table)
    }

    /// Reads single rows of a table, without pinning them.
    pub(crate) fn read<R>(&mut self, table: &Arc<Table>, look: impl Fn(&TableReader<'_>) -> R) -> R {
        self.rows.read(table, look)
    }

    /// A writer for rows of a table, or of one of its indexes.
    pub(crate) fn write(&mut self, entry: &Arc<TableEntry>, table: &Arc<Table>) -> TableWriter<'_> {
        self.uses(entry);
        self.refers(entry, table);
        self.rows.write(table)
    }

    /// Single rows of a table, whose new values are kept until the commit. `None` if they must be written
    /// ([`TransactionContext::write`]).
    pub(crate) fn keep(&mut self, entry: &Arc<TableEntry>) -> Option<SingleRows<'_>> {
        self.uses(entry);
        self.rows.keep(&entry.table)
    }

    /// Adds rows in bulk.
    pub(crate) fn append(
        &mut self,
        entry: &Arc<TableEntry>,
        table: &Arc<Table>,
        rows: Vec<entasis_storage::AppendedRows>,
    ) -> Result<u64> {
        self.uses(entry);
        self.refers(entry, table);
        self.rows.append(table, rows)
    }

    /// Removes all rows of a table and of its indexes. Returns their number.
    pub(crate) fn clear(&mut self, entry: &Arc<TableEntry>) -> u64 {
        self.uses(entry);
        for index in entry.indexes.iter().flatten() {
            self.rows.clear(index);
        }
        self.rows.clear(&entry.table)
    }

    /// Records that the outcome relies on the rows of a table as they are seen, so that the commit fails if
    /// they have changed.
    pub(crate) fn relies_on(&mut self, entry: &Arc<TableEntry>) {
        self.fixed.extend(all_tables(entry));
        self.rely_on(entry, |_| ());
    }

    /// Records that indexes were built from what is seen of their table. They catch up with the table at the
    /// commit, which then holds the table's write lock, so that no statement has to run again because of a
    /// new index.
    pub(crate) fn built(&mut self, old: &Arc<TableEntry>, entry: &Arc<TableEntry>, new: Vec<usize>) {
        self.uses(old);
        if new.is_empty() {
            return;
        }
        self.rows.commit_with_write_lock(&entry.table);
        let seen = self.rows.snapshot(&entry.table);
        self.built.push(CatchUp { entry: entry.clone(), new, seen });
    }

    /// Records that the outcome relies on the predicates about a table that `add` adds. The commit validates
    /// them again if the table has changed since.
    pub(crate) fn rely_on(&mut self, entry: &Arc<TableEntry>, add: impl FnOnce(&mut Predicates)) {
        self.uses(entry);
        all_tables(entry).for_each(|table| self.rows.depend_on(&table));
        add(&mut self.predicates);
    }

    /// Records that an index refers to rows of its table by their numbers, unless that has a layout key.
    fn refers(&mut self, entry: &TableEntry, table: &Arc<Table>) {
        if !Arc::ptr_eq(table, &entry.table) && !entry.table.options().layout.is_keyed() {
            self.rows.refers_by_number(table, &entry.table);
        }
    }

    fn uses(&mut self, entry: &Arc<TableEntry>) {
        if !self.used.iter().any(|used| Arc::ptr_eq(used, entry)) {
            self.writing.extend(self.shared.record_of(entry).map(Writing::to));
            self.used.push(entry.clone());
        }
    }

    /// Marks the current point.
    pub(crate) fn mark(&mut self) -> Mark {
        Mark {
            names: self.names.clone(),
            number: self.rows.savepoint(),
            used: self.used.len(),
            predicates: self.predicates.mark(),
            fixed: self.fixed.len(),
            built: self.built.len(),
        }
    }

    /// Undoes what was done since a mark, which remains valid.
    pub(crate) fn roll_back(&mut self, to: &Mark) {
        self.names = to.names.clone();
        self.used.truncate(to.used);
        self.predicates.roll_back(to.predicates);
        self.fixed.truncate(to.fixed);
        self.built.truncate(to.built);
        self.rows.roll_back_to(to.number);
    }

    /// Forgets a mark and all later ones.
    pub(crate) fn forget(&mut self, mark: &Mark) {
        self.rows.release(mark.number);
    }

    /// `SAVEPOINT name`
    pub(crate) fn save(&mut self, name: String) {
        let mark = self.mark();
        self.savepoints.push((name, mark));
    }

    /// `ROLLBACK TO name`: the savepoint stays.
    pub(crate) fn roll_back_to(&mut self, name: &str) -> Result<()> {
        let index = self.savepoint(name)?;
        self.savepoints.truncate(index + 1);
        let mark = self.savepoints[index].1.clone();
        self.roll_back(&mark);
        Ok(())
    }

    /// `RELEASE name`
    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        let index = self.savepoint(name)?;
        let mark = self.savepoints[index].1.clone();
        self.forget(&mark);
        self.savepoints.truncate(index);
        Ok(())
    }

    fn savepoint(&self, name: &str) -> Result<usize> {
        let found = self.savepoints.iter().rposition(|(own, _)| own == name);
        found.ok_or_else(|| Error::input(format!("there is no savepoint {name}")))
    }

    /// Charges the memory budget, if much was written since it was last charged. Called before a single row
    /// is written.
    ///
    /// # Errors
    /// Resource, if the memory limit does not allow it.
    pub(crate) fn may_write(&mut self) -> Result<()> {
        if self.uncharged >= UNCHARGED {
            self.charge()?;
            self.uncharged = 0;
        }
        Ok(())
    }

    /// Records that a single row of this many bytes was written.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.uncharged += bytes;
    }

    /// Checks in the middle of a change of many rows, some of which are written, whether it may continue.
    ///
    /// # Errors
    /// Interrupted; resource, if the memory limit does not allow it.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        self.interrupt().look()?;
        self.charge()
    }

    /// The interrupt of the statement.
    pub(crate) fn interrupt(&self) -> Interrupt {
        Interrupt::by(self.cancel.clone())
    }

    /// Charges the memory budget with the growth of tables and with new tables.
    ///
    /// # Errors
    /// Resource, if the limit does not allow it; the last change must be undone then.
    pub(crate) fn charge(&mut self) -> Result<()> {
        if self.used.is_empty() && self.base.is(&self.names) {
            return Ok(());
        }
        self.refuse_if_read_only()?;
        let bytes = self.new_tables_bytes() + self.rows.growth();
        self.memory.resize(bytes).or_else(|_| {
            // Some of the bytes that tables are charged with may have been freed.
            self.shared.charge_tables()?;
            self.memory.resize(bytes)
        })
    }

    /// Refuses its changes if they outlive the connection and the database is read-only.
    ///
    /// # Errors
    /// Input.
    fn refuse_if_read_only(&self) -> Result<()> {
        if !self.shared.is_read_only() {
            return Ok(());
        }
        let is_changed =
            |entry: &&Arc<TableEntry>| all_tables(entry).any(|table| self.rows.is_changed(&table));
        if let Some(entry) = self.used.iter().filter(|entry| !is_temporary(&entry.name)).find(is_changed) {
            self.shared.refuse_change(&entry.name)?;
        }
        if self.base.is(&self.names) {
            return Ok(());
        }
        let changes = self.names.changes_since(&self.base);
        let mut entries = changes.flat_map(|change| [change.old, change.new]).flatten();
        entries.try_for_each(|entry| self.shared.refuse_change(entry.name()))
    }

    /// Refuses a statement that changes objects that outlive the connection, if the database is read-only.
    ///
    /// # Errors
    /// Input.
    pub(crate) fn refuse_targets(&self, session: &Session, parsed: &Parsed) -> Result<()> {
        if !self.shared.is_read_only() {
            return Ok(());
        }
        let path = session.search_path();
        let found = parsed.targets();
        let mut found = found.iter().filter_map(|target| self.names.table(&path.find(&self.names, target)));
        found.try_for_each(|entry| self.shared.refuse_change(&entry.name))
    }

    /// Bytes of the tables that it has created, beside those of tables that these were made of.
    fn new_tables_bytes(&self) -> usize {
        let (old, new) = changed_tables(&self.base, &self.names);
        let new = new.values().filter(|table| !old.contains_key(&Arc::as_ptr(table)));
        new.map(|table| table.own_bytes()).sum()
    }

    /// The tables that it wrote to or relies on.
    pub(crate) fn used(&self) -> &[Arc<TableEntry>] {
        &self.used
    }

    /// Forgets all used tables but the first few. Nothing may have been written to the others.
    pub(crate) fn forget_use(&mut self, first: usize) {
        self.used.truncate(first);
    }

    /// True if it has changed nothing but a few rows, so that its end takes negligible time.
    pub(crate) fn is_small(&self) -> bool {
        let relies = !self.fixed.is_empty() || self.predicates.mark() != (0, 0) || !self.built.is_empty();
        self.base.is(&self.names) && !relies && self.rows.is_small()
    }

    /// True if it has changed so little since a savepoint that going back takes negligible time.
    pub(crate) fn is_small_since(&self, name: &str) -> bool {
        self.savepoint(name).is_ok_and(|index| {
            let mark = &self.savepoints[index].1;
            mark.names.is(&self.names) && self.rows.is_small_since(mark.number)
        })
    }

    /// Takes the write locks that its commit needs; false if it would have to wait for long.
    pub(crate) fn takes_write_locks(&mut self, waiter: &Waiter<'_>) -> bool {
        self.rows.take_write_locks_to_commit(waiter).is_ok()
    }

    /// Publishes everything, or nothing.
    ///
    /// # Errors
    /// Conflict, if another transaction was first, or the wait timed out; interrupted; resource, if the
    /// memory limit does not allow it; I/O, if the changes cannot be written to the file.
    pub(crate) fn commit(mut self, waiter: &Waiter<'_>) -> Result<()> {
        self.charge()?;
        if !self.base.is(&self.names) {
            self.rows.settle();
        }
        let mut interrupt = self.interrupt();
        let (is_small, grown) = (self.is_small(), self.rows.growth());
        if is_small && grown > 0 {
            // It is charged with others, and nothing more is written once that has failed.
            self.shared.may_write()?;
        }
        // A commit that only makes small objects does not look at all those that there are.
        let is_new = !self.base.is(&self.names) && self.rows.is_small();
        let new = is_new.then(|| self.new_tables_bytes() + grown);
        let TransactionContext {
            shared, base, names, rows, used, predicates, fixed, mut built, memory, ..
        } = self;
        if used.is_empty() && base.is(&names) {
            return Ok(());
        }
        if !shared.is_read_only() {
            shared.can_commit()?;
        }
        shared.catalog.judge(&base, &names, &used)?;
        // Catches up while others go on writing.
        for built in built.iter_mut().filter(|built| !rows.is_changed(&built.entry.table)) {
            for _ in 0..CATCH_UPS {
                let newest = built.entry.table.snapshot();
                if catch_up(built, newest, &mut interrupt)? == 0 {
                    break;
                }
            }
        }
        shared.publish(rows, (&base, &names), &used, waiter, |rows| {
            // An index that was built beside changed rows cannot catch up with those of others.
            let changed = built.iter().map(|built| &built.entry.table).filter(|table| rows.is_changed(table));
            if fixed.iter().chain(changed).any(|table| rows.is_overtaken(table)) {
                return Err(moved("a table that this one relied on"));
            }
            for built in &mut built {
                if rows.is_changed(&built.entry.table) {
                    continue;
                }
                let newest = rows.snapshot(&built.entry.table);
                catch_up(built, newest, &mut interrupt)?;
            }
            match predicates.validate(rows) {
                Ok(true) => Ok(()),
                Ok(false) => Err(moved("rows that this one relied on")),
                Err(error) => Err(moved(&format!("what this one relied on: {}", error.message()))),
            }
        })?;
        let left = match base.is(&names) {
            true => Vec::new(),
            false => {
                let (mut old, new) = changed_tables(&base, &names);
                old.retain(|table, _| !new.contains_key(table));
                old.into_values().collect()
            }
        };
        let has_left = !left.is_empty();
        if has_left {
            shared.left(left.into_iter());
        }
        // The memory that it takes was reserved, and is now charged to the tables.
        drop(memory);
        let _ = match (is_small, new.filter(|_| !has_left)) {
            (true, _) => {
                shared.wrote(grown);
                shared.may_write()
            }
            (false, Some(bytes)) => shared.charge_new(bytes),
            (false, None) => shared.charge_tables(),
        };
        shared.wake_upkeep();
        Ok(())
    }
}

/// Makes changes of rows check whether the statement is cancelled.
fn interrupt_by(rows: &mut Transaction, cancel: &CancelFlag) {
    let cancel = cancel.clone();
    rows.interrupted_by(Arc::new(move || cancel.is_raised()));
}

/// The tables, by address and with their indexes, of names that have different entries in two versions:
/// before and now. A table whose entry or name has changed is in both.
fn changed_tables(base: &CatalogVersion, now: &CatalogVersion) -> (Addressed, Addressed) {
    let (mut old, mut new) = (Addressed::new(), Addressed::new());
    if base.is(now) {
        return (old, new);
    }
    let add = |tables: &mut Addressed, entry: Option<&Entry>| {
        if let Some(Entry::Table(entry)) = entry {
            tables.extend(all_tables(entry).map(|table| (Arc::as_ptr(&table), table)));
        }
    };
    for change in now.changes_since(base) {
        add(&mut old, change.old);
        add(&mut new, change.new);
    }
    (old, new)
}

/// Tables by their addresses.
type Addressed = HashMap<*const Table, Arc<Table>>;

/// How often an index catches up with its table before it does so while holding the write lock.
const CATCH_UPS: usize = 3;
/// Lets an index catch up. If it cannot be unique any more, another transaction was first.
fn catch_up(built: &mut CatchUp, newest: TableSnapshot, interrupt: &mut Interrupt) -> Result<usize> {
    built.catch_up(newest, interrupt).map_err(|error| match error.kind() {
        ErrorKind::Constraint => moved(&format!("what this one relied on: {}", error.message())),
        _ => error,
    })
}

/// The error of a transaction on whose premises another one has acted.
fn moved(what: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("another transaction has changed {what}"))
        .with_hint("roll back and try the transaction again")
}
