//! The database: what all connections of a process share.

use crate::config::Config;
use crate::connection::Connection;
use crate::upkeep::Upkeep;
use entasis_engine::cost::Costs;
use entasis_engine::exec::{MemoryBudget, Reservation, TempSpace, WorkerPool};
use entasis_storage::Catalog;
use entasis_vector::{Error, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// Single rows that may be written before tables are charged with their memory.
const UNCHARGED: u64 = 4096;

/// A database in this process. Cheap to clone; it lives as long as one clone or connection does.
#[derive(Clone)]
pub struct Database {
    pub(crate) shared: Arc<Shared>,
}

/// What connections share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) catalog: Catalog,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) temp: Arc<TempSpace>,
    pub(crate) workers: WorkerPool,
    /// What reading costs here.
    pub(crate) costs: Mutex<Arc<Costs>>,
    /// Held to publish several tables in one commit, and, shared, to take snapshots of several.
    pub(crate) commits: RwLock<()>,
    /// Puts tables in order behind their writers.
    pub(crate) upkeep: Upkeep,
    /// Single rows that were written since the tables were charged.
    written: AtomicU64,
    /// What the tables hold of the memory budget.
    tables: Mutex<Reservation>,
}

impl Database {
    /// An empty database that lives in memory and is gone with its last connection.
    ///
    /// # Errors
    /// None today; opening may fail once databases have files.
    pub fn in_memory(config: Config) -> Result<Database> {
        let memory = Arc::new(MemoryBudget::new(config.memory_limit));
        let tables = Mutex::new(Reservation::new(&memory));
        let workers = WorkerPool::default();
        Ok(Database {
            shared: Arc::new(Shared {
                config,
                catalog: Catalog::default(),
                memory,
                workers,
                temp: Arc::default(),
                costs: Mutex::default(),
                commits: RwLock::default(),
                upkeep: Upkeep::default(),
                written: AtomicU64::new(0),
                tables,
            }),
        })
    }

    /// Opens the database file at `path`. `:memory:` and the empty path are [`Database::in_memory`].
    ///
    /// # Errors
    /// Not supported, for every file: databases do not have files yet.
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Database> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() || path == Path::new(":memory:") {
            return Database::in_memory(config);
        }
        Err(Error::not_supported(format!("database files ('{}')", path.display()))
            .with_hint("without a file name the database lives in memory; keep tables with COPY … TO 'file.parquet'"))
    }

    /// A new connection, with settings of its own.
    pub fn connect(&self) -> Connection {
        Connection::new(self.shared.clone())
    }
}

impl Shared {
    /// What reading costs here.
    pub(crate) fn costs(&self) -> Arc<Costs> {
        self.costs.lock().expect("no panic while locked").clone()
    }

    /// Takes other figures, for statements that are bound from now on.
    pub(crate) fn set_costs(&self, costs: Arc<Costs>) {
        *self.costs.lock().expect("no panic while locked") = costs;
    }

    /// Before a single row is written: [`Shared::charge_tables`] for one in [`UNCHARGED`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn charge_tables_now_and_then(self: &Arc<Shared>) -> Result<()> {
        self.upkeep.wake(self);
        match self.written.fetch_add(1, Ordering::Relaxed) % UNCHARGED {
            0 => self.charge_tables(),
            _ => Ok(()),
        }
    }

    /// Charges the memory budget with what the tables hold now.
    ///
    /// # Errors
    /// Resource, if the limit does not allow it.
    pub(crate) fn charge_tables(&self) -> Result<()> {
        let bytes = {
            let names = self.catalog.version();
            let tables =
                names.tables().flat_map(|entry| std::iter::once(&entry.table).chain(entry.indexes.iter().flatten()));
            tables.map(|table| table.bytes()).sum()
        };
        self.tables.lock().expect("no panic while locked").resize(bytes)
    }
}
