//! Opens or creates the data file of a database and its log.
//!
//! The files have the names that they are given here as long as they are open ([`super::names`]). What is
//! under these names and is no database, or is another one's log, is refused and left alone. An opening that
//! fails, such as on a full disk, leaves what it found ([`Made`]).

use super::Config;
use super::names::NamedFile;
use super::watched::{Bytes, Watched, WatchedFile};
use entasis_storage::backend::{
    Backend, FileBackend, FileId, Lock, MemoryBackend, canonical, create_file, fill_empty, remove_own,
};
use entasis_storage::checkpoint::{FilePart, Files};
use entasis_storage::file::{Access, DataFile, DatabaseId, State};
use entasis_vector::{Error, ErrorKind, Result};
use std::fs::{self, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Bytes of a segment of the log.
pub(super) const SEGMENT_BYTES: u32 = 4 << 20;
/// How often a file is opened that others create or replace meanwhile.
const TRIES: usize = 400;
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// The path of a database's log.
pub(super) fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".wal");
    PathBuf::from(name)
}

/// A file whose reads are counted if `read` is given.
pub(super) fn watched(file: Arc<FileBackend>, read: Option<&Arc<Bytes>>) -> Arc<dyn Backend> {
    let Some(read) = read.cloned() else { return file };
    read.expect(file.length().unwrap_or(0));
    let tell = Box::new(move |bytes| {
        read.add(bytes);
        Ok(())
    });
    Arc::new(WatchedFile { file, watched: Watched::Reads, tell })
}

/// What is under a name, if anything is; a symbolic link is followed.
fn found(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The absolute path of a data file, by which its log is found as well. A file that has several names (hard
/// links) in its directory has its log beside the one under which it was opened when the log was made.
fn name_of(shown: &Path) -> Result<PathBuf> {
    let failed = |error| Error::io(format!("cannot open the database {}", shown.display()), &error);
    let path = canonical(shown).map_err(failed)?;
    let Some(own) = found(&path).map_err(failed)? else { return Ok(path) };
    let has_log = |path: &Path| fs::symlink_metadata(log_path(path)).is_ok();
    if own.nlink() < 2 || has_log(&path) {
        return Ok(path);
    }
    let names = path.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten();
    let is_same = |other: &PathBuf| {
        fs::symlink_metadata(other).is_ok_and(|other| FileId::from(&other) == FileId::from(&own))
    };
    let other = names.map(|entry| entry.path()).find(|other| has_log(other) && is_same(other));
    Ok(other.unwrap_or(path))
}

fn refuse_what_is_no_file(shown: &Path) -> Result<()> {
    let what = match found(shown) {
        Ok(Some(metadata)) if metadata.is_dir() => "it is a directory",
        Ok(Some(metadata)) if !metadata.is_file() => "it is not a regular file",
        _ => return Ok(()),
    };
    let text = format!("cannot open the database {}: {what}", shown.display());
    Err(Error::new(ErrorKind::Io, text))
}

/// What was under the name of a data file before this opening has put a new one there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// An empty file.
    Empty,
}

/// The files that an opening has made. Unless it succeeds ([`Made::keep`]), they are removed while they are
/// still locked; what was there before is left.
#[derive(Default)]
pub(super) struct Made {
    data: Option<(PathBuf, Arc<FileBackend>, Before)>,
    /// The log, and the data file that it belongs to.
    log: Option<(PathBuf, Arc<FileBackend>, Arc<FileBackend>)>,
}

impl Made {
    /// Keeps them.
    pub(super) fn keep(mut self) {
        (self.data, self.log) = (None, None);
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some((path, log, data)) = self.log.take() {
            // A data file that was there before needs the log, if the opening has got as far as to say so.
            let is_closed =
                || DataFile::open(data, Access::Read).is_ok_and(|it| it.header().state == State::Closed);
            if self.data.is_some() || is_closed() {
                let _ = remove_own(&path, &log);
            }
        }
        match self.data.take() {
            Some((path, file, Before::Nothing)) => _ = remove_own(&path, &file),
            Some((_, file, Before::Empty)) => _ = file.set_len(0),
            None => {}
        }
    }
}

/// Opens a database file for writing, or creates it. It is locked, and has its name. Reads are counted in
/// `read`, and what is created in `made`.
pub(super) fn open_file(
    shown: &Path,
    read: Option<&Arc<Bytes>>,
    made: &mut Made,
) -> Result<(DataFile, NamedFile)> {
    let failed = |error| Error::io(format!("cannot open the database {}", shown.display()), &error);
    for _ in 0..TRIES {
        refuse_what_is_no_file(shown)?;
        let path = name_of(shown)?;
        let mut file = match FileBackend::open(&path, true) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                refuse_log_of_nobody(&path)?;
                // `None` if another process creates it.
                let Some(file) = create_file(&path, new_database).map_err(failed)? else { continue };
                made.data = Some((path.clone(), file.clone(), Before::Nothing));
                file
            }
            opened => Arc::new(opened.map_err(failed)?.called(shown)),
        };
        let mut id = file.id().map_err(failed)?;
        let has_its_name = |id: FileId| Ok::<bool, Error>(FileId::of(&path).map_err(failed)? == Some(id));
        if file.length().map_err(failed)? == 0 {
            // Another process creates it, or it was empty before, as if it were not there.
            if !file.lock(Lock::Exclusive).map_err(failed)? {
                thread::sleep(PAUSE);
                continue;
            }
            if !has_its_name(id)? || file.length().map_err(failed)? > 0 {
                continue;
            }
            refuse_log_of_nobody(&path)?;
            file = fill_empty(&path, &file, new_database).map_err(failed)?;
            made.data = Some((path.clone(), file.clone(), Before::Empty));
            id = file.id().map_err(failed)?;
        }
        let opened = DataFile::open(watched(file.clone(), read), Access::Write)?;
        // Before it was locked, another file may have been put in its place.
        if has_its_name(id)? {
            return Ok((opened, NamedFile { path, id, file }));
        }
    }
    let text = format!("{} is in use by another process, which creates or replaces it", shown.display());
    Err(Error::new(ErrorKind::Io, text))
}

/// Refuses to create a database whose log would have the name of something that is there.
fn refuse_log_of_nobody(path: &Path) -> Result<()> {
    let log = log_path(path);
    if fs::symlink_metadata(&log).is_err() {
        return Ok(());
    }
    let (log, shown) = (log.display(), path.display());
    let text = format!("cannot create the database {shown}: {log} is there, and is not its log");
    Err(Error::input(text).with_hint("it was not touched: move it away, or give the database another name"))
}

/// Opens the log of a database, if there is one, and locks it.
pub(super) fn find_log(path: &Path) -> Result<Option<NamedFile>> {
    let failed = |error| Error::io(format!("cannot open the log {}", path.display()), &error);
    match found(path).map_err(failed)? {
        None => return Ok(None),
        Some(metadata) if metadata.is_file() => {}
        Some(_) => {
            let text = format!("cannot open the log {}: it is not a regular file", path.display());
            return Err(Error::new(ErrorKind::Io, text));
        }
    }
    own_log(path, FileBackend::open(path, true).map_err(failed)?).map(Some)
}

/// Creates the log of the database in `data`, which is empty, and locks it.
pub(super) fn create_log(path: &Path, data: &NamedFile, made: &mut Made) -> Result<NamedFile> {
    let failed = |error| Error::io(format!("cannot create the log {}", path.display()), &error);
    let log = own_log(path, FileBackend::create(path).map_err(failed)?)?;
    made.log = Some((path.to_owned(), log.file.clone(), data.file.clone()));
    Ok(log)
}

fn own_log(path: &Path, file: FileBackend) -> Result<NamedFile> {
    let failed = |error| Error::io(format!("cannot open the log {}", path.display()), &error);
    if !file.lock(Lock::Exclusive).map_err(failed)? {
        let text = format!("the log {} is in use by another process", path.display());
        let hint = "it has opened a database of this name, in whose place there is another file now";
        return Err(Error::new(ErrorKind::Io, text).with_hint(hint));
    }
    let id = file.id().map_err(failed)?;
    Ok(NamedFile { path: path.to_owned(), id, file: Arc::new(file) })
}

/// The files of a database opened read-only, by name.
#[derive(Debug)]
pub(super) struct FilesByName {
    data: PathBuf,
    log: PathBuf,
    may_lack_log: bool,
    threads: usize,
}

impl FilesByName {
    /// The files of a database, which must exist; its log need not if the configuration allows that.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn of(shown: &Path, config: &Config) -> Result<FilesByName> {
        refuse_what_is_no_file(shown)?;
        let failed = |error| Error::io(format!("cannot open the database {}", shown.display()), &error);
        if found(shown).map_err(failed)?.is_none() {
            let text = format!("cannot open the database {}: the file does not exist", shown.display());
            let error = Error::new(ErrorKind::Io, text);
            return Err(error.with_hint("a database opened read-only is not created"));
        }
        let data = name_of(shown)?;
        let log = log_path(&data);
        let Config { allow_missing_log: may_lack_log, threads, .. } = *config;
        Ok(FilesByName { data, log, may_lack_log, threads })
    }

    fn path(&self, part: FilePart) -> &Path {
        match part {
            FilePart::Data => &self.data,
            FilePart::Log => &self.log,
        }
    }
}

impl Files for FilesByName {
    fn name(&self, part: FilePart) -> String {
        self.path(part).display().to_string()
    }

    fn id(&self, part: FilePart) -> io::Result<Option<FileId>> {
        FileId::of(self.path(part))
    }

    fn open(&self, part: FilePart) -> io::Result<Option<(FileId, Arc<dyn Backend>)>> {
        match FileBackend::open(self.path(part), false) {
            Ok(file) => Ok(Some((file.id()?, Arc::new(file)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn may_lack_log(&self) -> bool {
        self.may_lack_log
    }

    fn threads(&self) -> usize {
        self.threads
    }
}

/// Writes the bytes of an empty database, which is built in memory.
fn new_database(file: &FileBackend) -> io::Result<()> {
    let memory = Arc::new(MemoryBackend::new("a new database"));
    drop(DataFile::create(memory.clone(), new_id(), SEGMENT_BYTES).map_err(io::Error::other)?);
    file.write(0, &memory.bytes())
}

/// An id that no other database has.
pub(super) fn new_id() -> DatabaseId {
    // Each state has random keys of its own, from the operating system.
    let random = || RandomState::new().hash_one(std::process::id());
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random().to_le_bytes());
    id[8..].copy_from_slice(&random().to_le_bytes());
    DatabaseId(id)
}
