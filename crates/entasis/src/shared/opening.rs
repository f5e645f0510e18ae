//! Opens or creates the data file of a database and its log.

use super::watched::{Bytes, Watched, WatchedFile};
use entasis_storage::backend::{Backend, FileBackend, FileId, MemoryBackend, create_file, sync_directory};
use entasis_storage::checkpoint::{FilePart, Files};
use entasis_storage::file::{Access, DataFile, DatabaseId};
use entasis_vector::{Error, ErrorKind, Result};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a segment of the log.
pub(super) const SEGMENT_BYTES: u32 = 4 << 20;

/// The path of a database's log.
pub(super) fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".wal");
    PathBuf::from(name)
}

/// A file whose reads are counted if `read` is given.
fn watched(file: FileBackend, read: Option<&Arc<Bytes>>) -> Arc<dyn Backend> {
    let Some(read) = read.cloned() else { return Arc::new(file) };
    read.expect(file.length().unwrap_or(0));
    let tell = Box::new(move |bytes| {
        read.add(bytes);
        Ok(())
    });
    Arc::new(WatchedFile { file: Arc::new(file), watched: Watched::Reads, tell })
}

/// Opens the file of a log, or creates an empty one whose name is durable.
pub(super) fn open_log(path: &Path, read: Option<&Arc<Bytes>>) -> Result<Arc<dyn Backend>> {
    let failed = |error| Error::io(format!("cannot open the log {}", path.display()), &error);
    let is_new = !path.try_exists().map_err(failed)?;
    let file = FileBackend::open(path, true).map_err(failed)?;
    if is_new {
        sync_directory(path).map_err(failed)?;
    }
    Ok(watched(file, read))
}

/// The files of a database opened read-only, by name.
#[derive(Debug)]
pub(super) struct FilesByName {
    data: PathBuf,
    log: PathBuf,
}

impl FilesByName {
    /// The files of a database, which must exist.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn of(path: &Path) -> Result<FilesByName> {
        refuse_directory(path)?;
        let shown = path.display();
        let failed = |error| Error::io(format!("cannot open the database {shown}"), &error);
        if !path.try_exists().map_err(failed)? {
            let text = format!("cannot open the database {shown}: the file does not exist");
            let error = Error::new(ErrorKind::Io, text);
            return Err(error.with_hint("a database opened read-only is not created"));
        }
        Ok(FilesByName { data: path.to_owned(), log: log_path(path) })
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
}

fn refuse_directory(path: &Path) -> Result<()> {
    let text = || format!("cannot open the database {}: it is a directory", path.display());
    if path.is_dir() { Err(Error::new(ErrorKind::Io, text())) } else { Ok(()) }
}

/// Opens a database file for writing, or creates it, and returns it with its id. Reads are counted in `read`.
pub(super) fn open_file(path: &Path, read: Option<&Arc<Bytes>>) -> Result<(DataFile, FileId)> {
    let shown = path.display();
    let failed = |error| Error::io(format!("cannot open the database {shown}"), &error);
    refuse_directory(path)?;
    let made = match path.try_exists().map_err(failed)? {
        true => None,
        false => create_file(path, |file| new_database(file).map_err(io::Error::other)).map_err(failed)?,
    };
    let file = match made {
        Some(file) => file,
        None => FileBackend::open(path, true).map_err(failed)?,
    };
    let id = file.id().map_err(failed)?;
    let file = watched(file, read);
    let opened = match file.length().map_err(failed)? {
        0 => DataFile::create(file.clone(), new_id(), SEGMENT_BYTES),
        _ => DataFile::open(file.clone(), Access::Write),
    };
    Ok((opened?, id))
}

/// Writes the bytes of an empty database, which is built in memory.
fn new_database(file: &FileBackend) -> Result<()> {
    let memory = Arc::new(MemoryBackend::new("a new database"));
    drop(DataFile::create(memory.clone(), new_id(), SEGMENT_BYTES)?);
    let failed = |error| Error::io("cannot write", &error);
    let mut bytes = vec![0; usize::try_from(memory.length().map_err(failed)?).unwrap_or_default()];
    memory.read(0, &mut bytes).map_err(failed)?;
    file.write(0, &bytes).map_err(failed)
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
