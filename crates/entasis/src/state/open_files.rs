//! The database files that this process has open: one [`Shared`] for each, however often it is opened, and
//! under whatever name. The lock of a file only excludes other processes; opening a file twice in one process
//! would make two copies in memory.
//!
//! A file is identified by device and inode ([`FileId`]). The table holds weak references: a database is
//! closed with the last of its [users](super::users). Opening a file meanwhile waits until it is closed. A
//! database keeps the configuration of its first opening, except that it is an error to open it for writing
//! here while it is open read-only, or the other way round.
//!
//! A forked process has a table of its own, which is empty: what its parent has open it may open only as any
//! other process might, and the parent's table may be locked for ever.
//!
//! **What is not overwritten** ([`refuse_database`]): statements that write files ask here, since a path may
//! lead to a database by any name. Refused are the files of databases that are open here or elsewhere, and
//! any file that begins as a database or a log does: what has been committed is never replaced by an export.

use super::{Shared, User};
use crate::state::config::Config;
use entasis_storage::backend::{Backend, FileBackend, FileId, Lock, Process};
use entasis_storage::file::header::is_database;
use entasis_storage::wal::LogOwner;
use entasis_vector::{Error, ErrorKind, Result};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How long a file may be in use here by a thread that is opening it.
const OPENING: Duration = Duration::from_secs(2);
/// How long a database may take to be closed.
const CLOSING: Duration = Duration::from_secs(60);
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(5);
/// Forks that lead from one process with open files to another, at the most, without one of them sharing a
/// table with an ancestor.
const FORKS: usize = 64;

static OPEN: [Mutex<Vec<Weak<Shared>>>; FORKS] = [const { Mutex::new(Vec::new()) }; FORKS];

/// The database in a file: the open one, or else a newly opened one.
///
/// # Errors
/// Those of [`Shared::open`].
pub(super) fn open(path: &Path, config: &Config) -> Result<User> {
    let began = Instant::now();
    loop {
        let open = upgraded(&table());
        let id = FileId::of(path).ok().flatten();
        let found = find(&open, id);
        let is_closing = open.iter().any(|shared| has(shared, id));
        // The thread that drops the last reference closes the database, which takes time.
        drop(open);
        if let Some(user) = found {
            return agreed(user, path, config);
        }
        let patience = if is_closing { CLOSING } else { OPENING };
        match Shared::open_anew(path, config.clone()) {
            Ok(shared) => return add(&Arc::new(shared), path, config),
            Err(error) if is_in_use_here(&error) && began.elapsed() < patience => thread::sleep(PAUSE),
            Err(error) if is_in_use_here(&error) => {
                return Err(error.with_hint("it is being closed, or opened, in this process: try again"));
            }
            Err(error) => return Err(error),
        }
    }
}

fn table() -> MutexGuard<'static, Vec<Weak<Shared>>> {
    OPEN[Process::generation() % FORKS].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Those that still exist.
fn upgraded(open: &[Weak<Shared>]) -> Vec<Arc<Shared>> {
    open.iter().filter_map(Weak::upgrade).collect()
}

fn has(shared: &Shared, id: Option<FileId>) -> bool {
    id.is_some() && shared.file_id() == id
}

/// A user of the database that has a file open, if it has users.
fn find(open: &[Arc<Shared>], id: Option<FileId>) -> Option<User> {
    open.iter().filter(|shared| has(shared, id)).find_map(User::join)
}

/// Adds a newly opened database, unless another thread has opened the file for reading at the same time.
fn add(shared: &Arc<Shared>, path: &Path, config: &Config) -> Result<User> {
    let user = User::new(shared);
    let mut table = table();
    table.retain(|shared| shared.strong_count() > 0);
    let open = upgraded(&table);
    let other = find(&open, shared.file_id());
    if other.is_none() {
        table.push(Arc::downgrade(shared));
    }
    drop(table);
    drop(open);
    other.map_or(Ok(user), |other| agreed(other, path, config))
}

/// The open database, provided that it was opened in the requested mode: for writing, or read-only.
fn agreed(user: User, path: &Path, config: &Config) -> Result<User> {
    if user.is_read_only() == config.read_only {
        return Ok(user);
    }
    let (path, is, other) = match config.read_only {
        true => (path.display(), "written to", "read-only"),
        false => (path.display(), "only read", "to be written"),
    };
    let error =
        Error::input(format!("{path} is open in this process and {is}: it cannot be opened {other} as well"));
    Err(error.with_hint("open it in the same way, or close it first"))
}

/// True if a file is the data file or the log of a database that this process has open.
pub(super) fn is_open(id: FileId) -> bool {
    // Dropped when the table is free: dropping the last reference closes the database.
    let open = upgraded(&table());
    open.iter().any(|shared| has(shared, Some(id)) || shared.has_log(id))
}

/// Refuses a path that a statement is to write to, if a database or a log is there, under whatever name.
///
/// # Errors
/// I/O.
pub fn refuse_database(path: &Path) -> Result<()> {
    let failed = |error| Error::io(format!("'{}'", path.display()), &error);
    let refused = |what: &str| {
        Err(Error::new(ErrorKind::Io, format!("'{}' {what}", path.display()))
            .with_hint("it is not overwritten: name another file"))
    };
    let metadata = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed)?,
    };
    // Reading from anything else would wait, or take something away.
    if !metadata.is_file() {
        return Ok(());
    }
    let id = FileId::from(&metadata);
    if is_open(id) {
        return refused("belongs to a database that is open");
    }
    let file = match FileBackend::open(path, false) {
        // What cannot be read is not known to be a database.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        opened => opened.map_err(failed)?,
    };
    if is_database(&file).map_err(failed)? {
        return refused("is a database");
    }
    let owner = LogOwner::of(&file).map_err(failed)?;
    if matches!(owner, LogOwner::Database(_) | LogOwner::Unreadable) {
        return refused("is the log of a database");
    }
    // An empty file may be a log, too, or a database that is being created.
    match file.lock(Lock::Shared) {
        Ok(false) => refused("is in use by another process"),
        // Some file systems have no locks, and so no databases.
        Ok(true) | Err(_) => Ok(()),
    }
}

/// True for the error that this process has the file open.
fn is_in_use_here(error: &Error) -> bool {
    error.message().ends_with(&format!("is in use by process {}", std::process::id()))
}
