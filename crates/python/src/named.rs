//! Databases in memory that have a name: `:memory:name` is the same one for all connections of the process,
//! as long as one of them is open.

use crate::errors::raised;
use entasis::{Config, Database};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// What stands before a name.
const PREFIX: &str = ":memory:";

static KNOWN: LazyLock<Mutex<HashMap<String, Weak<Database>>>> = LazyLock::new(Mutex::default);

/// The name of the database in memory that `path` stands for; `None` for files, and if it has no name.
pub fn name(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX).filter(|name| !name.is_empty())
}

/// The database of this name, opened with `options` if there is none yet.
///
/// # Errors
/// Those of opening.
pub fn open(name: &str, options: Config) -> PyResult<Arc<Database>> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|_, database| database.strong_count() > 0);
    if let Some(database) = known.get(name).and_then(Weak::upgrade) {
        let connection = database.connect();
        if !connection.is_elsewhere() {
            return Ok(database);
        }
        // It was inherited by a fork, and is never freed here.
        std::mem::forget((connection, database));
    }
    let database = Arc::new(Database::in_memory(options).map_err(|error| raised(&error))?);
    known.insert(name.to_owned(), Arc::downgrade(&database));
    Ok(database)
}
