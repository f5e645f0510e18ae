//! Backups: the newest state of a database as another database file, while writers go on.
//!
//! A backup is the first checkpoint of a new file, from a [`Moment`]. The file has an id of its own, so that
//! no log or file of another database is mistaken for a part of it. It gets its name when all of it is on the
//! disk.
//!
//! A file that it replaces must be as it was when the backup began, and nobody may have it open: it is locked
//! when that is looked at, and until the new file has its name. Whoever opens it meanwhile, and whoever has
//! opened and closed it, keeps what was committed there, and the backup fails. The log of a database that is
//! replaced goes with it; any other file of the log's name is left alone, and the backup is refused, since
//! it could not be opened beside that.

use crate::state::open_files::is_open;
use crate::state::opening::{SEGMENT_BYTES, log_path, new_id};
use crate::state::watched::{Bytes, Watched, WatchedFile};
use entasis_engine::exec::{CancelFlag, Progress};
use entasis_storage::Catalog;
use entasis_storage::backend::{
    Backend, FileBackend, FileStamp, Lock, Put, canonical, put_file, remove_own, sync_directory,
};
use entasis_storage::checkpoint::{self, Checkpointed, Images, Moment};
use entasis_storage::file::{DataFile, State, header};
use entasis_storage::wal::LogOwner;
use entasis_vector::{Error, ErrorKind, Result};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are written between two syncs: waiting for the disk cannot be interrupted, so it is done often.
const SYNC_BYTES: u64 = 16 << 20;

/// Progress and interruption of a backup.
pub(crate) struct Watch {
    /// Stops the backup.
    pub(crate) cancel: CancelFlag,
    /// Progress of the backup.
    pub(crate) progress: Arc<Progress>,
}

/// Writes the newest state to a file, which must not exist unless the backup `replaces` it.
///
/// # Errors
/// I/O; also if a database has the file open. Interrupted.
pub(in crate::state) fn backup(catalog: &Catalog, path: &Path, replaces: bool, watch: Watch) -> Result<()> {
    let target = Target::of(path, replaces)?;
    let moment = Moment::take(catalog, &Images::default(), || 0);
    let bytes = moment.tables().map(|table| table.bytes() as u64).sum::<u64>().max(1);
    let cancel = watch.cancel.clone();
    let fill = |file: Arc<FileBackend>| {
        let written = Bytes::new(watch.progress, bytes);
        let cancel = watch.cancel;
        let (disk, unsynced) = (file.clone(), AtomicU64::new(0));
        let look = move || if cancel.is_raised() { Err(io::Error::other("interrupted")) } else { Ok(()) };
        let tell = Box::new(move |bytes| {
            look()?;
            written.add(bytes);
            if unsynced.fetch_add(bytes, Ordering::Relaxed) + bytes > SYNC_BYTES {
                unsynced.store(0, Ordering::Relaxed);
                disk.sync()?;
                look()?;
            }
            Ok(())
        });
        let file = Arc::new(WatchedFile { file, watched: Watched::Writes, tell });
        let file = DataFile::create(file, new_id(), SEGMENT_BYTES)?;
        checkpoint::checkpoint(&file, &moment, &Checkpointed::default(), State::Closed)?;
        Ok(())
    };
    match put_file(&target.path, target.replaced, fill, || target.remove_log()) {
        Ok(Put::Done) => Ok(()),
        Ok(Put::Taken) => Err(target.taken()),
        Ok(Put::Locked | Put::Changed) => {
            let hint = "what was committed there is kept; name another file, or try again";
            Err(target.refused("it was opened or changed meanwhile").with_hint(hint))
        }
        Err(_) if cancel.is_raised() => Err(Error::interrupted()),
        Err(Failed::System(error)) => Err(target.failed(&error)),
        Err(Failed::Other(error)) => Err(error.with_context("BACKUP")),
    }
}

/// Where a backup goes.
struct Target {
    /// As the statement names it.
    shown: String,
    /// Absolute, and without symbolic links.
    path: PathBuf,
    /// The file that is there, and is replaced.
    replaced: Option<FileStamp>,
    /// The log of the database that is replaced.
    log: Option<(PathBuf, FileBackend)>,
}

impl Target {
    fn of(path: &Path, replaces: bool) -> Result<Target> {
        let shown = path.display().to_string();
        let mut target = Target { shown, path: PathBuf::new(), replaced: None, log: None };
        target.look(path, replaces).map_err(|failed| match failed {
            Failed::System(error) => target.failed(&error),
            Failed::Other(error) => error,
        })?;
        Ok(target)
    }

    fn look(&mut self, path: &Path, replaces: bool) -> std::result::Result<(), Failed> {
        self.path = canonical(path)?;
        let log = log_path(&self.path);
        let mut id = None;
        match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
            Ok(metadata) if metadata.is_dir() => {
                return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
            }
            Ok(metadata) if !metadata.is_file() => {
                return Err(self.refused("it is not a regular file").into());
            }
            Ok(_) if !replaces => return Err(self.taken().into()),
            Ok(_) => {
                let file = FileBackend::open(&self.path, false)?;
                if is_open(file.id()?) || !file.lock(Lock::Exclusive)? {
                    return Err(self.refused("it is a database that is open").into());
                }
                if matches!(LogOwner::of(&file)?, LogOwner::Database(_) | LogOwner::Unreadable) {
                    return Err(self.refused("it is the log of a database").into());
                }
                id = header::id(&file).ok();
                self.replaced = Some(file.stamp()?);
            }
        }
        if std::fs::symlink_metadata(&log).is_err() {
            return Ok(());
        }
        let is_own = |file: &FileBackend| {
            let is_free = !is_open(file.id()?) && file.lock(Lock::Exclusive)?;
            Ok::<bool, io::Error>(match LogOwner::of(file)? {
                LogOwner::Database(owner) => is_free && Some(owner) == id,
                LogOwner::Nobody => is_free && id.is_some(),
                LogOwner::Unreadable | LogOwner::Other => false,
            })
        };
        let is_file = std::fs::metadata(&log).is_ok_and(|metadata| metadata.is_file());
        let file = if is_file { Some(FileBackend::open(&log, false)?) } else { None };
        match file {
            Some(file) if is_own(&file)? => self.log = Some((log, file)),
            _ => {
                let text = format!("{} is there, and is not its log", log.display());
                return Err(self.refused(&text).into());
            }
        }
        Ok(())
    }

    /// Removes the log of the database that was replaced.
    fn remove_log(&self) -> std::result::Result<(), Failed> {
        if let Some((path, log)) = &self.log {
            remove_own(path, log)?;
            sync_directory(path)?;
        }
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::io(format!("cannot back up to '{}'", self.shown), error)
    }

    fn refused(&self, why: &str) -> Error {
        let text = format!("cannot back up to '{}': {why}", self.shown);
        Error::new(ErrorKind::Io, text).with_hint("name another file")
    }

    fn taken(&self) -> Error {
        let hint = format!("BACKUP TO '{}' (OVERWRITE) overwrites it", self.shown);
        self.refused("the file exists already").with_hint(hint)
    }
}

/// Why a backup failed.
enum Failed {
    System(io::Error),
    Other(Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::System(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Other(error)
    }
}
