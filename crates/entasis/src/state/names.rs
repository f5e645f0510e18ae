//! The names of a database's two files, and whether the files that have these names are still its own.
//!
//! The names are absolute and free of symbolic links ([`canonical`]), so that they mean the same when the
//! program has changed its directory. A database goes on with the files that it has opened, whatever becomes
//! of their names; but whoever opens it next looks for them by name. So before a commit is acknowledged,
//! under `synchronous = full`, before a checkpoint, and now and then ([`FileNames::check`]):
//!
//! | the file that has the name | what follows |
//! |---|---|
//! | is the one that was opened | |
//! | there is none; the own file was moved | nothing: commits and checkpoints are where that is |
//! | there is none; the own file was removed | writing is refused: nobody could read it afterwards |
//! | is another one | writing is refused: it would be looked for in the other file |
//!
//! Only the log is ever removed, and only if its name is still its own. Both files are locked: whoever puts
//! a copy in the place of the data file, and opens that, finds the log in use.
//!
//! [`canonical`]: entasis_storage::backend::canonical

use entasis_storage::backend::{FileBackend, FileId, remove_own};
use entasis_vector::{Error, ErrorKind, Result};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file and the name under which it was opened.
pub(super) struct NamedFile {
    /// Absolute, and without symbolic links.
    pub(super) path: PathBuf,
    /// Identifies the file.
    pub(super) id: FileId,
    pub(super) file: Arc<FileBackend>,
}

/// What has become of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Own,
    Moved,
    Removed,
    Other,
}

impl NamedFile {
    fn standing(&self) -> Result<Standing> {
        let look = || {
            Ok::<Standing, io::Error>(match FileId::of(&self.path)? {
                Some(id) if id == self.id => Standing::Own,
                Some(_) => Standing::Other,
                None if self.file.names()? == 0 => Standing::Removed,
                None => Standing::Moved,
            })
        };
        look().map_err(|error| Error::io(self.path.display().to_string(), &error))
    }

    /// An error with this hint, if what is written to it could not be found afterwards.
    fn check(&self, hint: &str) -> Result<()> {
        let what = match self.standing()? {
            Standing::Own | Standing::Moved => return Ok(()),
            Standing::Removed => "was removed",
            Standing::Other => "is another file now",
        };
        let text = format!("the database cannot be written: {} {what}", self.path.display());
        Err(Error::new(ErrorKind::Io, text).with_hint(hint))
    }
}

/// See the module.
pub(super) struct FileNames {
    pub(super) data: NamedFile,
    pub(super) log: NamedFile,
}

impl FileNames {
    /// An error, if a commit could not be found by whoever opens the database next.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn check(&self) -> Result<()> {
        self.check_data()?;
        self.log.check("CHECKPOINT saves what was committed; then open the database again")
    }

    /// The same for a checkpoint.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn check_data(&self) -> Result<()> {
        self.data.check("BACKUP TO 'another file' saves what was committed")
    }

    /// True if the data file has no name any more.
    pub(super) fn is_removed(&self) -> bool {
        self.data.standing().is_ok_and(|standing| standing != Standing::Own)
            && self.data.file.names().is_ok_and(|names| names == 0)
    }

    /// The path of the data file.
    pub(super) fn path(&self) -> &Path {
        &self.data.path
    }

    /// Removes the log, which is needed no longer.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn remove_log(&self) -> Result<()> {
        remove_own(&self.log.path, &self.log.file)
            .map(drop)
            .map_err(|error| Error::io("cannot remove the log", &error))
    }

    /// Gives up both locks, when neither file is used any more.
    pub(super) fn release(&self) {
        self.log.file.release();
        self.data.file.release();
    }
}
