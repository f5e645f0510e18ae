//! Backups: the newest state of a database as another database file, while writers go on.
//!
//! A backup is the first checkpoint of a new file, from a [`Moment`]. The file has an id of its own, so that
//! no log or file of another database is mistaken for a part of it. It gets its name when all of it is on the
//! disk.

use crate::shared::opening::{SEGMENT_BYTES, new_id};
use crate::shared::watched::{Bytes, Watched, WatchedFile};
use entasis_engine::exec::{CancelFlag, Progress};
use entasis_storage::Catalog;
use entasis_storage::backend::{Backend, FileBackend, Lock, put_file};
use entasis_storage::checkpoint::{self, Checkpointed, Images, Moment};
use entasis_storage::file::{DataFile, State};
use entasis_vector::{Error, ErrorKind, Result};
use std::io;
use std::path::Path;
use std::sync::Arc;

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
pub(in crate::shared) fn backup(catalog: &Catalog, path: &Path, replaces: bool, watch: Watch) -> Result<()> {
    let shown = path.display();
    let failed = |error| Error::io(format!("cannot back up to '{shown}'"), &error);
    let taken = || {
        Error::new(ErrorKind::Io, format!("cannot back up to '{shown}': the file exists already"))
            .with_hint(format!("BACKUP TO '{shown}' (OVERWRITE) overwrites it"))
    };
    if path.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    if path.try_exists().map_err(failed)? {
        if !replaces {
            return Err(taken());
        }
        let is_free = FileBackend::open(path, false).and_then(|file| file.lock(Lock::Exclusive));
        if !is_free.map_err(failed)? {
            let text = format!("cannot back up to '{shown}': it is a database that is open");
            return Err(Error::new(ErrorKind::Io, text).with_hint("name another file"));
        }
    }
    let moment = Moment::take(catalog, &Images::default(), || 0);
    let bytes = moment.tables().map(|table| table.bytes() as u64).sum::<u64>().max(1);
    let cancel = watch.cancel.clone();
    let put = put_file(path, replaces, |file| {
        let written = Bytes::new(watch.progress, bytes);
        let cancel = watch.cancel;
        let tell = Box::new(move |bytes| match cancel.is_raised() {
            true => Err(io::Error::other("interrupted")),
            false => {
                written.add(bytes);
                Ok(())
            }
        });
        let file = Arc::new(WatchedFile { file, watched: Watched::Writes, tell });
        let file = DataFile::create(file, new_id(), SEGMENT_BYTES)?;
        checkpoint::checkpoint(&file, &moment, &Checkpointed::default(), State::Closed)?;
        Ok(())
    });
    match put {
        Ok(true) => Ok(()),
        Ok(false) => Err(taken()),
        Err(_) if cancel.is_raised() => Err(Error::interrupted()),
        Err(Failed::System(error)) => Err(failed(error)),
        Err(Failed::Other(error)) => Err(error.with_context("BACKUP")),
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
