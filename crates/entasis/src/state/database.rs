//! The database, as a program holds it. For what its connections share, see `shared`.

use crate::state::config::Config;
use crate::state::{Shared, User};
use entasis_storage::CatalogVersion;
use entasis_storage::backend::Backend;
use entasis_storage::file::DataFile;
use entasis_vector::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// A database in this process. Cheap to clone; it lives until its last clone and connection are dropped.
#[derive(Clone)]
pub struct Database {
    pub(crate) shared: Arc<Shared>,
    /// Dropped last.
    _user: User,
}

impl Database {
    pub(crate) fn of(user: User) -> Database {
        Database { shared: (*user).clone(), _user: user }
    }

    /// Creates an empty database in memory, which is gone with its last connection.
    ///
    /// # Errors
    /// Input, if it is to be read-only.
    pub fn in_memory(config: Config) -> Result<Database> {
        if config.read_only {
            return Err(Error::input("a database in memory cannot be opened read-only"));
        }
        Ok(Database::of(User::new(&Arc::new(Shared::new(config)))))
    }

    /// Writes everything committed to the database's file, and returns when it is there, as `CHECKPOINT`
    /// does. In memory it does nothing.
    ///
    /// # Errors
    /// I/O.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.refuse_elsewhere()?;
        self.shared.checkpoint()
    }

    /// Opens the database file at `path`, and creates it if there is none. A commit that has returned is
    /// durable, whatever happens to the process or the machine afterwards (`docs/durability.md`). `:memory:`
    /// and the empty path stand for [`Database::in_memory`].
    ///
    /// If this process has the file open already, returns the same database, with the configuration of its
    /// first opening. With [`Config::read_only`] the file must exist, and another process may write to it
    /// meanwhile: each transaction sees what was committed before it begins.
    ///
    /// # Errors
    /// I/O, also if another process has the file open for writing and this one opens it for writing too;
    /// input, if the file is not a database, or this process has it open in the other mode (read-only or for
    /// writing); corruption, with its place; resource, if the tables do not fit into memory.
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Database> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() || path == Path::new(":memory:") {
            return Database::in_memory(config);
        }
        if path.to_str().is_some_and(|path| path.starts_with(":memory:")) {
            return Err(Error::not_supported(format!(
                "databases in memory with a name ('{}')",
                path.display()
            ))
            .with_hint("open ':memory:', and make further connections to the same database"));
        }
        Ok(Database::of(Shared::open(path, &config)?))
    }

    /// The newest names, with their tables: for tests.
    #[doc(hidden)]
    pub fn names(&self) -> CatalogVersion {
        self.shared.catalog.version()
    }

    /// Opens the database in an open file with its log, wherever these are: for tests with disks that fail.
    ///
    /// # Errors
    /// Those of [`Database::open`].
    #[doc(hidden)]
    pub fn on(file: DataFile, log: Arc<dyn Backend>, config: Config) -> Result<Database> {
        Ok(Database::of(User::new(&Arc::new(Shared::on(file, log, config)?))))
    }
}
