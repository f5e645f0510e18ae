//! The database files that this process has open: one [`Shared`] for each, however often it is opened, and
//! under whatever name. The lock of a file only excludes other processes; opening a file twice in one process
//! would make two copies in memory.
//!
//! A file is identified by device and inode ([`FileId`]). The table holds weak references: a database is
//! closed with the last of its users. Upkeep does not count as one, though it briefly holds the database
//! while it works; opening the file meanwhile waits until it is closed. A database keeps the configuration of
//! its first opening, except that it is an error to open it for writing here while it is open read-only, or
//! the other way round.

use super::Shared;
use crate::config::Config;
use entasis_storage::backend::FileId;
use entasis_vector::{Error, Result};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How long a database that was just closed may still have its file open, until upkeep releases it.
const CLOSING: Duration = Duration::from_secs(2);
/// How long a closed database may still seem to be in use, because upkeep holds it.
const SEEMING: Duration = Duration::from_millis(50);
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(5);

static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// The database in a file: the open one, or else a newly opened one.
///
/// # Errors
/// Those of [`Shared::open`].
pub(super) fn open(path: &Path, config: &Config) -> Result<Arc<Shared>> {
    let began = Instant::now();
    loop {
        let id = FileId::of(path).ok().flatten();
        let open = upgraded(&table());
        let found = find(&open, id);
        // The thread that drops the last reference closes the database, which takes time.
        drop(open);
        match found.map(|shared| agreed(shared, path, config)) {
            Some(Err(_)) if began.elapsed() < SEEMING => {
                thread::sleep(PAUSE);
                continue;
            }
            Some(agreed) => return agreed,
            None => {}
        }
        match Shared::open_anew(path, config.clone()) {
            Ok(shared) => return add(Arc::new(shared), path, config),
            Err(error) if is_in_use_here(&error) && began.elapsed() < CLOSING => thread::sleep(PAUSE),
            Err(error) if is_in_use_here(&error) => {
                return Err(error.with_hint("it is being closed, or opened, in this process: try again"));
            }
            Err(error) => return Err(error),
        }
    }
}

fn table() -> MutexGuard<'static, Vec<Weak<Shared>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Those that still exist.
fn upgraded(open: &[Weak<Shared>]) -> Vec<Arc<Shared>> {
    open.iter().filter_map(Weak::upgrade).collect()
}

/// The database that has a file open, if it has users besides upkeep and the callers of this function.
fn find(open: &[Arc<Shared>], id: Option<FileId>) -> Option<Arc<Shared>> {
    let is_used =
        |shared: &Arc<Shared>| Arc::strong_count(shared) > 1 + usize::from(shared.upkeep.is_looking());
    open.iter().find(|shared| id.is_some() && shared.file_id() == id && is_used(shared)).cloned()
}

/// Adds a newly opened database, unless another thread has opened the file for reading at the same time.
fn add(shared: Arc<Shared>, path: &Path, config: &Config) -> Result<Arc<Shared>> {
    let mut table = table();
    table.retain(|shared| shared.strong_count() > 0);
    let open = upgraded(&table);
    let other = find(&open, shared.file_id());
    if other.is_none() {
        table.push(Arc::downgrade(&shared));
    }
    drop(table);
    drop(open);
    other.map_or(Ok(shared), |other| agreed(other, path, config))
}

/// The open database, provided that it was opened in the requested mode: for writing, or read-only.
fn agreed(shared: Arc<Shared>, path: &Path, config: &Config) -> Result<Arc<Shared>> {
    if shared.is_read_only() == config.read_only {
        return Ok(shared);
    }
    let (path, is, other) = match config.read_only {
        true => (path.display(), "written to", "read-only"),
        false => (path.display(), "only read", "to be written"),
    };
    let error =
        Error::input(format!("{path} is open in this process and {is}: it cannot be opened {other} as well"));
    Err(error.with_hint("open it in the same way, or close it first"))
}

/// True for the error that this process has the file open.
fn is_in_use_here(error: &Error) -> bool {
    error.message().ends_with(&format!("is in use by process {}", std::process::id()))
}
