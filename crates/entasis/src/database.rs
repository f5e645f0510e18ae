//! The database, as a program holds it. What its connections share: `shared`.

use crate::config::Config;
use crate::shared::Shared;
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
    /// None today; opening may fail once databases have files.
    pub fn in_memory(config: Config) -> Result<Database> {
        Ok(Database { shared: Arc::new(Shared::new(config)) })
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
        Err(Error::not_supported(format!("database files ('{}')", path.display())).with_hint(
            "without a file name the database lives in memory; keep tables with COPY … TO 'file.parquet'",
        ))
    }
}
