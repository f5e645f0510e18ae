//! What all connections of a database share: the catalog, the memory budget, workers, and the memory of their
//! tables.

pub mod config;
pub(crate) mod database;
pub(crate) mod foreign_files;
pub(crate) mod interrupt;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod retry_lock;
pub(crate) mod workload_stats;

mod costs;
mod durable;
mod file;
mod names;
mod open_files;
mod opening;
mod reading;
mod upkeep;
mod users;
mod watched;

pub(crate) use self::durable::{AutoCheckpoint, Watch};
pub use self::open_files::refuse_database;
pub(crate) use self::users::User;

use self::costs::CurrentCosts;
use self::durable::Durable;
use self::reading::Reading;
use self::upkeep::Upkeep;
use crate::state::config::{Config, format_bytes};
use crate::state::retry_lock::RetryLock;
use crate::state::workload_stats::{Record, Records};
use entasis_engine::exec::{Learned, MemoryBudget, Reservation, TempSpace, WorkerPool};
use entasis_storage::backend::{Backend, FileId, Process};
use entasis_storage::checkpoint::NameChanges;
use entasis_storage::file::DataFile;
use entasis_storage::wal::Synchronous;
use entasis_storage::{Catalog, CatalogVersion, Table, TableEntry, Transaction, Waiter};
use entasis_vector::{Error, Result};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes of single rows that may be written before tables are charged with their memory.
pub(crate) const UNCHARGED: usize = 1 << 20;

/// The part of the budget that tables have, as errors call it.
const TABLES: &str = "tables";
/// The part that statements have for changes of tables.
const CHANGES: &str = "changes that are not committed";

/// Older versions are worth mentioning if they take at least this fraction of the newest ones' memory.
const OLD_SHARE: usize = 8;

/// See the module.
pub(crate) struct Shared {
    /// The configuration with which the database was opened.
    pub(crate) config: Config,
    /// The path of its file, as the program named it.
    pub(crate) path: Option<PathBuf>,
    /// The process that opened it, which alone may use it.
    process: Process,
    /// Number of its users; without any it is closed.
    users: AtomicUsize,
    /// Its names, and the objects to which they refer.
    pub(crate) catalog: Catalog,
    /// The limit of what tables, statements and results may take together.
    pub(crate) memory: Arc<MemoryBudget>,
    /// The part of it that statements take for changes of tables, until they are committed.
    pub(crate) changes: Arc<MemoryBudget>,
    /// The file that commits are written to; `None` if the database is only in memory or read-only.
    durable: Option<Durable>,
    /// The file of a database opened read-only.
    reading: Option<Reading>,
    /// Temporary files.
    pub(crate) temp: Arc<TempSpace>,
    /// What executions of plans have learnt, for later ones.
    pub(crate) learned: Arc<Learned>,
    /// Threads that run statements.
    pub(crate) workers: WorkerPool,
    /// What was asked of tables that follow their workload.
    pub(crate) records: Records,
    /// The costs of reading on this machine.
    costs: CurrentCosts,
    /// Number of connections so far.
    connections: AtomicU64,
    /// Held by a transaction that is tried again.
    pub(crate) retry_lock: Arc<RetryLock>,
    /// Does upkeep of tables after writes.
    upkeep: Upkeep,
    /// Bytes of single rows that were written since the tables were charged.
    uncharged: AtomicUsize,
    /// True if the tables could not be charged with what they hold.
    is_full: AtomicBool,
    /// The tables' reservation from the memory budget.
    tables: Mutex<Reservation>,
    /// Tables that no longer have a name. Snapshots may hold them.
    nameless: Mutex<Vec<Weak<Table>>>,
}

impl Shared {
    /// The shared state of a database in memory, without tables.
    pub(crate) fn new(config: Config) -> Shared {
        Shared::with(config, Catalog::default(), None)
    }

    /// The shared state of the database in a file, which is created if it does not exist and is opened for
    /// writing. If this process has the file open already, that database's state.
    ///
    /// # Errors
    /// I/O, also if another process has the file open for writing and this one opens it for writing too;
    /// input, if the file is not a database, or this process has it open in the other mode (read-only or for
    /// writing); corruption, with the place; resource, if the tables do not fit into memory.
    pub(crate) fn open(path: &Path, config: &Config) -> Result<User> {
        open_files::open(path, config).map_err(|error| foreign_files::explained(error, path))
    }

    /// The same, for a file that is not open.
    fn open_anew(path: &Path, config: Config) -> Result<Shared> {
        let mut shared = if config.read_only {
            let (reading, catalog) = Reading::open(path, &config)?;
            let mut shared = Shared::with(config, catalog, None);
            shared.reading = Some(reading);
            shared
        } else {
            let (durable, catalog) = Durable::open(path, &config)?;
            Shared::with(config, catalog, Some(durable))
        };
        shared.path = Some(path.to_owned());
        shared.charge_tables()?;
        shared.take_costs();
        Ok(shared)
    }

    /// The shared state of the database in an open file and log.
    ///
    /// # Errors
    /// Those of [`Shared::open`].
    pub(crate) fn on(file: DataFile, log: Arc<dyn Backend>, config: Config) -> Result<Shared> {
        Shared::keeping(Durable::on(file.with_threads(config.threads), log)?, config)
    }

    fn keeping((durable, catalog): (Durable, Catalog), config: Config) -> Result<Shared> {
        let shared = Shared::with(config, catalog, Some(durable));
        shared.charge_tables()?;
        shared.take_costs();
        Ok(shared)
    }

    fn with(config: Config, catalog: Catalog, durable: Option<Durable>) -> Shared {
        let memory = Arc::new(MemoryBudget::new(config.memory_limit));
        let tables = Mutex::new(Reservation::new(&MemoryBudget::part_of(&memory, TABLES)));
        let changes = MemoryBudget::part_of(&memory, CHANGES);
        let workers = WorkerPool::default();
        Shared {
            config,
            path: None,
            process: Process::current(),
            users: AtomicUsize::new(0),
            catalog,
            durable,
            reading: None,
            memory,
            changes,
            workers,
            temp: Arc::default(),
            learned: Arc::default(),
            records: Records::default(),
            costs: CurrentCosts::default(),
            connections: AtomicU64::new(0),
            retry_lock: Arc::default(),
            upkeep: Upkeep::default(),
            uncharged: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            tables,
            nameless: Mutex::default(),
        }
    }

    /// Refuses whatever a forked process wants of a database that its parent has opened.
    ///
    /// # Errors
    /// Input, with the number of the process that opened it.
    #[inline]
    pub(crate) fn refuse_elsewhere(&self) -> Result<()> {
        if self.process.is_current() { Ok(()) } else { Err(self.elsewhere()) }
    }

    #[cold]
    fn elsewhere(&self) -> Error {
        let own = self.process.id();
        let what = match self.path.as_deref().and_then(Path::file_name) {
            Some(name) => format!("the database {}", name.display()),
            None => "the database in memory".to_owned(),
        };
        Error::input(format!(
            "{what} belongs to process {own}: this process was forked from it, and cannot use the connections \
             that it has inherited"
        ))
        .with_hint("open the database anew in this process, or start it by other means than a fork")
    }

    /// True in the process that opened it, and false in those that are forked from it.
    pub(crate) fn is_here(&self) -> bool {
        self.process.is_current()
    }

    /// True if a file is its log.
    fn has_log(&self, id: FileId) -> bool {
        self.durable.as_ref().and_then(Durable::names).is_some_and(|names| names.log.id == id)
    }

    /// The path of the file that is written to, whatever the current directory is.
    pub(crate) fn written_path(&self) -> Option<&Path> {
        Some(self.durable.as_ref()?.names()?.path())
    }

    /// Checked before something is published that outlives its connection: an error if it could not be made
    /// durable.
    ///
    /// # Errors
    /// I/O, if writing the file has failed before; input, if the database is read-only.
    pub(crate) fn can_commit(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.durable.as_ref().map_or(Ok(()), Durable::check)
    }

    /// Publishes the rows of a transaction and the names that it has changed from `base` to `names`, all or
    /// nothing. Returns when they are as durable as `synchronous` says. `used` and `validate` are those of
    /// [`Catalog::publish`] and [`Transaction::commit_as`].
    ///
    /// # Errors
    /// Those of these two; I/O: what was published is then seen by all, and may be in the file or not.
    pub(crate) fn publish(
        self: &Arc<Shared>,
        rows: Transaction,
        (base, names): (&CatalogVersion, &CatalogVersion),
        used: &[Arc<TableEntry>],
        waiter: &Waiter<'_>,
        validate: impl FnMut(&mut Transaction) -> Result<()>,
    ) -> Result<()> {
        let durable = self.durable.as_ref();
        let changes = Cell::new(None::<NameChanges>);
        rows.commit_as(
            waiter,
            |rows| {
                let Some(durable) = durable.filter(|_| !base.is(names)) else { return Ok(None) };
                let new = durable.name_changes(base, names, &mut |table| rows.outcome(table))?;
                let prologue = new.as_ref().map(NameChanges::prologue);
                changes.set(new);
                Ok(prologue)
            },
            |rows| {
                self.catalog.publish(base, names, used, &mut || {
                    let is_published = rows();
                    if is_published && let (Some(durable), Some(changes)) = (durable, changes.take()) {
                        durable.publish(changes);
                    }
                    is_published
                })
            },
            validate,
        )?;
        self.committed();
        Ok(())
    }

    /// Called after something was published and is durable: wakes the upkeep thread.
    pub(crate) fn committed(self: &Arc<Shared>) {
        if self.durable.as_ref().is_some_and(Durable::is_waiting) {
            self.wake_upkeep();
        }
    }

    /// Writes everything committed to the file.
    ///
    /// # Errors
    /// I/O: what was acknowledged is in the log or the file. Input, if the database is read-only.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.durable.as_ref().map_or(Ok(()), |durable| durable.checkpoint_and_shorten(&self.catalog))
    }

    /// When commits return; `Off` in a database without a file.
    pub(crate) fn synchronous(&self) -> Synchronous {
        self.durable.as_ref().map_or(Synchronous::Off, Durable::synchronous)
    }

    /// Sets when commits return.
    pub(crate) fn set_synchronous(&self, synchronous: Synchronous) {
        if let Some(durable) = &self.durable {
            durable.set_synchronous(synchronous);
        }
    }

    /// When automatic checkpoints are made; never in a database without a file.
    pub(crate) fn auto_checkpoint(&self) -> AutoCheckpoint {
        self.durable.as_ref().map_or(AutoCheckpoint::Off, Durable::auto_checkpoint)
    }

    /// Sets when automatic checkpoints are made.
    pub(crate) fn set_auto_checkpoint(&self, auto: AutoCheckpoint) {
        if let Some(durable) = &self.durable {
            durable.set_auto_checkpoint(auto);
        }
    }

    /// The number of a new connection; the first is 1.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Charges the tables if much was written since they were last charged, or if that failed. Called before
    /// a single row is written.
    ///
    /// # Errors
    /// Those of [`Shared::charge_tables`].
    pub(crate) fn may_write(self: &Arc<Shared>) -> Result<()> {
        self.upkeep.wake(self);
        if self.uncharged.load(Ordering::Relaxed) < UNCHARGED && !self.is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.uncharged.store(0, Ordering::Relaxed);
        self.charge_tables()
    }

    /// The record of a table, if it follows its workload.
    pub(crate) fn record_of(&self, entry: &TableEntry) -> Option<Arc<Record>> {
        self.records.of(entry).filter(|_| !self.is_read_only())
    }

    /// Makes upkeep call this after a round that leaves nothing to do. Only the first call has an effect.
    pub(crate) fn at_rest(&self, call: fn(&Arc<Shared>)) {
        self.upkeep.at_rest(call);
    }

    /// Wakes upkeep, because rows were written, or much memory was used and freed.
    pub(crate) fn wake_upkeep(self: &Arc<Shared>) {
        self.upkeep.wake(self);
    }

    /// Records that a single row of this many bytes was written.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.uncharged.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records that tables no longer have a name.
    pub(crate) fn left(&self, tables: impl Iterator<Item = Arc<Table>>) {
        let mut nameless = self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        nameless.retain(|table| table.strong_count() > 0);
        nameless.extend(tables.map(|table| Arc::downgrade(&table)));
    }

    /// All tables with their indexes, including tables without a name that are still in use.
    fn all_tables(&self) -> Vec<Arc<Table>> {
        let names = self.catalog.version();
        let named = names
            .tables()
            .flat_map(|entry| std::iter::once(&entry.table).chain(entry.indexes.iter().flatten()));
        let mut tables: Vec<Arc<Table>> = named.cloned().collect();
        let nameless = self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        tables.extend(nameless.iter().filter_map(Weak::upgrade));
        tables
    }

    /// Charges the memory budget with the present memory of the tables: their newest versions, and older ones
    /// that are still visible to somebody.
    ///
    /// # Errors
    /// Resource, if the limit does not allow it.
    pub(crate) fn charge_tables(&self) -> Result<()> {
        let tables = self.all_tables();
        let result = self.charge_with(&tables).or_else(|_| {
            tables.iter().for_each(|table| table.free_old());
            self.charge_with(&tables)
        });
        self.is_full.store(result.is_err(), Ordering::Relaxed);
        result
    }

    /// Charges new tables of this many bytes, without looking at all others.
    ///
    /// # Errors
    /// As of [`Shared::charge_tables`].
    pub(crate) fn charge_new(&self, bytes: usize) -> Result<()> {
        let charged = {
            let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
            let all = tables.bytes() + bytes;
            tables.resize(all)
        };
        charged.or_else(|_| self.charge_tables())
    }

    fn charge_with(&self, tables: &[Arc<Table>]) -> Result<()> {
        let (mut newest, mut old) = (0, 0);
        for (own, others) in tables.iter().map(|table| table.held_bytes()) {
            newest += own;
            old += others;
        }
        let charged = self.tables.lock().unwrap_or_else(PoisonError::into_inner).resize(newest + old);
        charged.map_err(|error| match old * OLD_SHARE > newest {
            false => error,
            true => {
                let (newest, old) = (format_bytes(newest), format_bytes(old));
                error.with_hint(format!(
                    "tables take {newest}, and {old} more for older versions of rows that open transactions, cursors and \
                     running statements still see: end those that are not needed"
                ))
            }
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return;
        }
        // Nobody is left to receive an error. What was acknowledged is in the log.
        let _ = self.durable.as_ref().map_or(Ok(()), |durable| durable.close(&self.catalog));
    }
}

/// A table and its indexes.
pub(crate) fn all_tables(entry: &TableEntry) -> impl Iterator<Item = Arc<Table>> {
    std::iter::once(&entry.table).chain(entry.indexes.iter().flatten()).cloned()
}
