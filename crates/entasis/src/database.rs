//! The database, as a program holds it. What its connections share: `shared`.

use crate::config::Config;
use crate::shared::Shared;
use entasis_storage::CatalogVersion;
use entasis_storage::backend::Backend;
use entasis_storage::file::DataFile;
use entasis_vector::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// A database in this process. Cheap to clone; it lives as long as one clone or connection does.
#[derive(Clone)]
pub struct Database {
    pub(crate) shared: Arc<Shared>,
}

impl Database {
    /// An empty database that lives in memory and is gone with its last connection.
    ///
    /// # Errors
    /// Input, if it is only to be read.
    pub fn in_memory(config: Config) -> Result<Database> {
        if config.read_only {
            return Err(Error::input("a database in memory cannot be opened read-only"));
        }
        Ok(Database { shared: Arc::new(Shared::new(config)) })
    }

    /// Brings all that is committed to the database's file, and returns when it is there: `CHECKPOINT`. In
    /// memory it does nothing.
    ///
    /// # Errors
    /// I/O.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.checkpoint()
    }

    /// Opens the database file at `path`, and makes it if there is none. What a commit has answered is in it,
    /// whatever happens to the process or the machine then (`docs/durability.md`). `:memory:` and the empty
    /// path are [`Database::in_memory`].
    ///
    /// A file that this process has open already gives the same database, with the configuration that it was
    /// opened with first. With [`Config::read_only`] the file must be there, and another process may write to
    /// it meanwhile: each transaction sees what was committed before it begins.
    ///
    /// # Errors
    /// I/O, also if another process writes to the file and this one is to; input, if it is no database, or
    /// open in this process and one is only to read it and the other not; corruption, with the place;
    /// resource, if its tables do not fit into memory.
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Database> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() || path == Path::new(":memory:") {
            return Database::in_memory(config);
        }
        Ok(Database { shared: Shared::open(path, &config)? })
    }

    /// The newest names, with their tables: for tests.
    #[doc(hidden)]
    pub fn names(&self) -> CatalogVersion {
        self.shared.catalog.version()
    }

    /// The database in a file that is open, and its log, wherever they are: for tests with disks that fail.
    ///
    /// # Errors
    /// As [`Database::open`].
    #[doc(hidden)]
    pub fn on(file: DataFile, log: Arc<dyn Backend>, config: Config) -> Result<Database> {
        Ok(Database { shared: Arc::new(Shared::on(file, log, config)?) })
    }
}
