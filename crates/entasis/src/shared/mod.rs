//! What all connections of a database share: the catalog, the memory budget, workers, and what their tables
//! take.

mod costs;
mod durable;
mod file;
mod open_files;
mod opening;
mod reading;
mod upkeep;
mod watched;

pub(crate) use self::durable::{AutoCheckpoint, Watch};

use self::costs::CurrentCosts;
use self::durable::Durable;
use self::reading::Reading;
use self::upkeep::Upkeep;
use crate::config::{Config, format_bytes};
use entasis_engine::exec::{Learned, MemoryBudget, Reservation, TempSpace, WorkerPool};
use entasis_storage::backend::Backend;
use entasis_storage::checkpoint::NameChanges;
use entasis_storage::file::DataFile;
use entasis_storage::wal::Synchronous;
use entasis_storage::{Catalog, CatalogVersion, Table, TableEntry, Transaction, Waiter};
use entasis_vector::Result;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes of single rows that may be written before tables are charged with their memory.
pub(crate) const UNCHARGED: usize = 1 << 20;

/// Older versions are worth telling of if they take this part of what the newest ones take.
const OLD_SHARE: usize = 8;

/// See the module.
pub(crate) struct Shared {
    /// What the database was opened with.
    pub(crate) config: Config,
    /// Its file, as it was named.
    pub(crate) path: Option<PathBuf>,
    /// Its names, and what they stand for.
    pub(crate) catalog: Catalog,
    /// What tables, statements and results may take together.
    pub(crate) memory: Arc<MemoryBudget>,
    /// The file that commits go to; `None` if all is gone with the process.
    durable: Option<Durable>,
    /// The file that is only read, if it is.
    reading: Option<Reading>,
    /// Temporary files.
    pub(crate) temp: Arc<TempSpace>,
    /// What executions of plans have learnt for the next ones.
    pub(crate) learned: Arc<Learned>,
    /// Threads that run statements.
    pub(crate) workers: WorkerPool,
    /// What reading costs here.
    costs: CurrentCosts,
    /// Connections so far.
    connections: AtomicU64,
    /// Puts tables in order behind their writers.
    upkeep: Upkeep,
    /// Bytes of single rows that were written since the tables were charged.
    uncharged: AtomicUsize,
    /// True if the tables could not be charged with what they hold.
    is_full: AtomicBool,
    /// What the tables hold of the memory budget.
    tables: Mutex<Reservation>,
    /// Tables that have no name any more. Snapshots may hold them.
    nameless: Mutex<Vec<Weak<Table>>>,
}

impl Shared {
    /// Of a database in memory, without tables.
    pub(crate) fn new(config: Config) -> Shared {
        Shared::with(config, Catalog::default(), None)
    }

    /// Of the database in a file, which is made if there is none and it is to be written. If it is open in
    /// this process, what its connections share.
    ///
    /// # Errors
    /// I/O, also if another process writes to it and this one is to; input, if it is no database, or open in
    /// this process and the one is only to read it and the other not; corruption, with the place; resource,
    /// if its tables do not fit into memory.
    pub(crate) fn open(path: &Path, config: &Config) -> Result<Arc<Shared>> {
        open_files::open(path, config)
    }

    /// The same, of a file that is not open.
    fn open_anew(path: &Path, config: Config) -> Result<Shared> {
        let mut shared = if config.read_only {
            let (reading, catalog) = Reading::open(path)?;
            let mut shared = Shared::with(config, catalog, None);
            shared.reading = Some(reading);
            shared
        } else {
            let (durable, catalog) = Durable::open(path, config.opening.clone())?;
            Shared::with(config, catalog, Some(durable))
        };
        shared.path = Some(path.to_owned());
        shared.charge_tables()?;
        shared.take_costs();
        Ok(shared)
    }

    /// Of the database in a file and a log that are open.
    ///
    /// # Errors
    /// As [`Shared::open`].
    pub(crate) fn on(file: DataFile, log: Arc<dyn Backend>, config: Config) -> Result<Shared> {
        Shared::keeping(Durable::on(file, log)?, config)
    }

    fn keeping((durable, catalog): (Durable, Catalog), config: Config) -> Result<Shared> {
        let shared = Shared::with(config, catalog, Some(durable));
        shared.charge_tables()?;
        shared.take_costs();
        Ok(shared)
    }

    fn with(config: Config, catalog: Catalog, durable: Option<Durable>) -> Shared {
        let memory = Arc::new(MemoryBudget::new(config.memory_limit));
        let tables = Mutex::new(Reservation::new(&memory));
        let workers = WorkerPool::default();
        Shared {
            config,
            path: None,
            catalog,
            durable,
            reading: None,
            memory,
            workers,
            temp: Arc::default(),
            learned: Arc::default(),
            costs: CurrentCosts::default(),
            connections: AtomicU64::new(0),
            upkeep: Upkeep::default(),
            uncharged: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            tables,
            nameless: Mutex::default(),
        }
    }

    /// Before something is published that outlives its connection: an error if it could not be kept.
    ///
    /// # Errors
    /// I/O, as it was when the file was last written; input, if it is only read.
    pub(crate) fn can_commit(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.durable.as_ref().map_or(Ok(()), Durable::check)
    }

    /// Publishes the rows of a transaction and the names that it has changed from `base` to `names`, all or
    /// nothing. Returns when they are as durable as `synchronous` says. `used` and `validate` are those of
    /// [`Catalog::publish`] and [`Transaction::commit_as`].
    ///
    /// # Errors
    /// As there; I/O: what was published is seen by all then, and is in the file or not.
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

    /// Something was published, and waited for: wakes who cares for the rest.
    pub(crate) fn committed(self: &Arc<Shared>) {
        if self.durable.as_ref().is_some_and(Durable::is_waiting) {
            self.wake_upkeep();
        }
    }

    /// Brings all that is committed to the file.
    ///
    /// # Errors
    /// I/O: what was answered is in the log or the file. Input, if it is only read.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.durable.as_ref().map_or(Ok(()), |durable| durable.checkpoint(&self.catalog))
    }

    /// When commits return; `Off` in a database that has no file.
    pub(crate) fn synchronous(&self) -> Synchronous {
        self.durable.as_ref().map_or(Synchronous::Off, Durable::synchronous)
    }

    /// Says when commits return.
    pub(crate) fn set_synchronous(&self, synchronous: Synchronous) {
        if let Some(durable) = &self.durable {
            durable.set_synchronous(synchronous);
        }
    }

    /// When checkpoints come by themselves; never in a database that has no file.
    pub(crate) fn auto_checkpoint(&self) -> AutoCheckpoint {
        self.durable.as_ref().map_or(AutoCheckpoint::Off, Durable::auto_checkpoint)
    }

    /// Says when checkpoints come by themselves.
    pub(crate) fn set_auto_checkpoint(&self, auto: AutoCheckpoint) {
        if let Some(durable) = &self.durable {
            durable.set_auto_checkpoint(auto);
        }
    }

    /// The number of a new connection; the first is 1.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Before a single row is written: charges the tables, if much was written since that was done, or if it
    /// failed then.
    ///
    /// # Errors
    /// As [`Shared::charge_tables`].
    pub(crate) fn may_write(self: &Arc<Shared>) -> Result<()> {
        self.upkeep.wake(self);
        if self.uncharged.load(Ordering::Relaxed) < UNCHARGED && !self.is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.uncharged.store(0, Ordering::Relaxed);
        self.charge_tables()
    }

    /// Says that rows were written, or much memory was used and freed.
    pub(crate) fn wake_upkeep(self: &Arc<Shared>) {
        self.upkeep.wake(self);
    }

    /// Says that a single row of so many bytes was written.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.uncharged.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Says that tables have no name any more.
    pub(crate) fn left(&self, tables: impl Iterator<Item = Arc<Table>>) {
        let mut nameless = self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        nameless.retain(|table| table.strong_count() > 0);
        nameless.extend(tables.map(|table| Arc::downgrade(&table)));
    }

    /// Tables with their indexes; those without a name, too, while somebody holds them.
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

    /// Charges the memory budget with what the tables hold now: their newest versions, and older ones that
    /// somebody still sees.
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
        // Nobody is left to be told of an error. What was answered is in the log.
        let _ = self.durable.as_ref().map_or(Ok(()), |durable| durable.close(&self.catalog));
    }
}

/// A table and its indexes.
pub(crate) fn all_tables(entry: &TableEntry) -> impl Iterator<Item = Arc<Table>> {
    std::iter::once(&entry.table)
        .chain(entry.indexes.iter().flatten())
        .cloned()
        .collect::<Vec<_>>()
        .into_iter()
}
