//! What a statement works on: the names and the rows of one moment, and what it and its transaction did to them.
//!
//! | | a [`Work`] begins with | and ends with |
//! |---|---|---|
//! | a statement by itself that writes rows of a table | the table's turn, so that nobody can be first | [`Work::commit`], which cannot conflict |
//! | any other statement by itself | tables as they are when they are first named | [`Work::commit`] |
//! | a transaction | all tables of one moment | [`Work::commit`]; the first to commit wins |
//!
//! Dropped without a commit, it leaves nothing behind. A statement within a transaction that fails goes back to a
//! [`Mark`], so the transaction goes on without it.
//!
//! Commits that publish more than one table and those who take snapshots of several tables exclude each other
//! ([`Shared::commits`]), so nobody sees a part of a commit.

use crate::change::foreign::Claims;
use crate::database::Shared;
use entasis_engine::exec::Reservation;
use entasis_storage::{Catalog, CatalogVersion, RowId, Table, TableEntry, TableSnapshot, TableWriter, Transaction};
use entasis_vector::{Error, ErrorKind, Result};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

/// See the module.
pub(crate) struct Work {
    shared: Arc<Shared>,
    /// The names that it began with.
    base: CatalogVersion,
    /// The names as it sees and changes them.
    pub(crate) names: CatalogVersion,
    rows: Transaction,
    /// Tables with names that it wrote rows of, or relies on.
    used: Vec<Arc<TableEntry>>,
    /// What it found in tables that it relies on.
    claims: Claims,
    /// Tables that must be as they were seen.
    fixed: usize,
    savepoints: Vec<(String, Mark)>,
    /// What it takes of the memory budget.
    memory: Reservation,
}

/// A place to come back to.
#[derive(Clone)]
pub(crate) struct Mark {
    names: CatalogVersion,
    /// Number of the savepoint of the rows.
    number: usize,
    used: usize,
    claims: (usize, usize),
    fixed: usize,
}

impl Work {
    /// For a transaction.
    pub(crate) fn transaction(shared: &Arc<Shared>) -> Work {
        let _moment = shared.commits.read().unwrap_or_else(PoisonError::into_inner);
        let names = shared.catalog.version();
        let tables: Vec<Arc<Table>> = names.tables().flat_map(|entry| all_tables(entry)).collect();
        Work::new(shared, names, Transaction::begin(&tables))
    }

    /// For a statement by itself, which changes rows of the table `target` if it names one.
    pub(crate) fn statement(shared: &Arc<Shared>, target: Option<&str>) -> Work {
        loop {
            let names = shared.catalog.version();
            let Some(entry) = target.and_then(|name| names.table(name)).cloned() else {
                return Work::new(shared, names, Transaction::begin(&[]));
            };
            let rows = Transaction::alone(&all_tables(&entry).collect::<Vec<_>>());
            // Now that nobody else can: is it still the table of that name?
            if shared.catalog.version().table(&entry.name).is_some_and(|now| Arc::ptr_eq(now, &entry)) {
                return Work::new(shared, shared.catalog.version(), rows);
            }
        }
    }

    fn new(shared: &Arc<Shared>, names: CatalogVersion, rows: Transaction) -> Work {
        Work {
            shared: shared.clone(),
            base: names.clone(),
            names,
            rows,
            used: Vec::new(),
            claims: Claims::default(),
            fixed: 0,
            savepoints: Vec::new(),
            memory: Reservation::new(&shared.memory),
        }
    }

    /// True if it sees the names of the catalog as they are now.
    pub(crate) fn has_names_of(&self, catalog: &Catalog) -> bool {
        self.names.is(&catalog.version())
    }

    /// What it sees of a table.
    pub(crate) fn snapshot(&mut self, table: &Arc<Table>) -> TableSnapshot {
        self.rows.snapshot(table)
    }

    /// Writes rows of a table, or of an index of it.
    pub(crate) fn write(&mut self, entry: &Arc<TableEntry>, table: &Arc<Table>) -> TableWriter<'_> {
        self.uses(entry);
        self.rows.write(table)
    }

    /// Adds rows in bulk.
    pub(crate) fn append(
        &mut self,
        entry: &Arc<TableEntry>,
        table: &Arc<Table>,
        rows: Vec<entasis_storage::AppendedRows>,
    ) -> Result<u64> {
        self.uses(entry);
        self.rows.append(table, rows)
    }

    /// Removes all rows of a table and of its indexes. Returns how many they were.
    pub(crate) fn clear(&mut self, entry: &Arc<TableEntry>) -> u64 {
        self.uses(entry);
        for index in entry.indexes.iter().flatten() {
            self.rows.clear(index);
        }
        self.rows.clear(&entry.table)
    }

    /// The outcome relies on the rows of a table as they are seen, so a commit fails if they have changed.
    pub(crate) fn relies_on(&mut self, entry: &Arc<TableEntry>) {
        self.fixed += 1;
        self.claim(entry, |_| ());
    }

    /// The outcome relies on what `add` claims of a table, which is judged once more if the table has changed until the commit.
    pub(crate) fn claim(&mut self, entry: &Arc<TableEntry>, add: impl FnOnce(&mut Claims)) {
        self.uses(entry);
        all_tables(entry).for_each(|table| self.rows.depend_on(&table));
        add(&mut self.claims);
    }

    fn uses(&mut self, entry: &Arc<TableEntry>) {
        if !self.used.iter().any(|used| Arc::ptr_eq(used, entry)) {
            self.used.push(entry.clone());
        }
    }

    /// Marks the place.
    pub(crate) fn mark(&mut self) -> Mark {
        let (used, claims, fixed) = (self.used.len(), self.claims.mark(), self.fixed);
        Mark { names: self.names.clone(), number: self.rows.savepoint(), used, claims, fixed }
    }

    /// Undoes what was done since a mark, which can be gone back to again.
    pub(crate) fn roll_back(&mut self, to: &Mark) {
        self.names = to.names.clone();
        self.used.truncate(to.used);
        self.claims.roll_back(to.claims);
        self.fixed = to.fixed;
        self.rows.roll_back_to(to.number);
    }

    /// Forgets a mark and those behind it.
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

    /// Charges the memory budget with what tables have become larger by, and with tables that are new.
    ///
    /// # Errors
    /// Resource, if the limit does not allow it; what was done last must be undone then.
    pub(crate) fn charge(&mut self) -> Result<()> {
        if self.used.is_empty() && self.base.is(&self.names) {
            return Ok(());
        }
        // A table that is there may have got a new entry.
        let known: HashSet<*const Table> = match self.base.is(&self.names) {
            true => HashSet::new(),
            false => self.base.tables().flat_map(|entry| all_tables(entry)).map(|table| Arc::as_ptr(&table)).collect(),
        };
        let is_new =
            |entry: &&Arc<TableEntry>| !self.base.table(&entry.name).is_some_and(|old| Arc::ptr_eq(old, entry));
        let new = self.names.tables().filter(is_new).flat_map(|entry| all_tables(entry));
        let new = new.filter(|table| !known.contains(&Arc::as_ptr(table)));
        let bytes = new.map(|table| table.bytes()).sum::<usize>() + self.rows.growth();
        self.memory.resize(bytes)
    }

    /// Publishes everything, or nothing.
    ///
    /// # Errors
    /// Conflict, if another transaction was first; resource, if the memory limit does not allow it.
    pub(crate) fn commit(mut self) -> Result<()> {
        self.charge()?;
        let Work { shared, base, names, rows, used, claims, fixed, memory, .. } = self;
        if used.is_empty() && base.is(&names) {
            return Ok(());
        }
        let several = used.len() > 1 || used.iter().any(|entry| entry.indexes.iter().any(Option::is_some));
        let _moment = several.then(|| shared.commits.write().unwrap_or_else(PoisonError::into_inner));
        shared.catalog.publish(&base, &names, &used, || {
            rows.commit(|rows| match fixed {
                0 => match claims.judge(rows) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(moved("rows that this one relied on")),
                    Err(error) => Err(moved(&format!("what this one relied on: {}", error.message()))),
                },
                _ => Err(moved("a table that this one relied on")),
            })
        })?;
        // What it takes was reserved, and is the tables' from now on.
        drop(memory);
        let _ = shared.charge_tables();
        shared.upkeep.wake(&shared);
        Ok(())
    }
}

/// What a transaction relied on is not what it was.
fn moved(what: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("another transaction has changed {what}"))
        .with_hint("roll back and try the transaction again")
}

/// A table and its indexes.
fn all_tables(entry: &TableEntry) -> impl Iterator<Item = Arc<Table>> {
    std::iter::once(&entry.table).chain(entry.indexes.iter().flatten()).cloned().collect::<Vec<_>>().into_iter()
}

/// The rows of a writer's table with a key. For the judgement of keys.
pub(crate) fn rows_with(writer: &TableWriter<'_>, key: &[entasis_storage::Datum<'_>], limit: usize) -> Vec<RowId> {
    let mut found = Vec::new();
    writer.find_each(key, |row| {
        found.push(row);
        found.len() < limit
    });
    found
}
