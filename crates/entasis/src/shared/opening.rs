//! The data file of a database and its log: opened, or made.

use entasis_storage::backend::{Backend, FileBackend, MemoryBackend, create_file, sync_directory};
use entasis_storage::file::{Access, DataFile, DatabaseId};
use entasis_vector::{Error, ErrorKind, Result};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a segment of the log.
pub(super) const SEGMENT_BYTES: u32 = 4 << 20;
/// How long a database that was just closed may have its file open still: until upkeep lets go of it.
const CLOSING: Duration = Duration::from_secs(2);

/// The name of a database's log.
pub(super) fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".wal");
    PathBuf::from(name)
}

/// Opens the file of a log, or makes an empty one, whose name stays.
pub(super) fn open_log(path: &Path) -> Result<FileBackend> {
    let failed = |error| Error::io(format!("cannot open the log {}", path.display()), &error);
    let is_new = !path.try_exists().map_err(failed)?;
    let file = FileBackend::open(path, true).map_err(failed)?;
    if is_new {
        sync_directory(path).map_err(failed)?;
    }
    Ok(file)
}

/// Opens a database file for writing, or makes it.
pub(super) fn open_file(path: &Path) -> Result<DataFile> {
    let shown = path.display();
    let failed = |error| Error::io(format!("cannot open the database {shown}"), &error);
    if path.is_dir() {
        return Err(Error::new(
            ErrorKind::Io,
            format!("cannot open the database {shown}: it is a directory"),
        ));
    }
    let made = match path.try_exists().map_err(failed)? {
        true => None,
        false => {
            create_file(path, |file| new_database(file).map_err(std::io::Error::other)).map_err(failed)?
        }
    };
    let file = match made {
        Some(file) => file,
        None => FileBackend::open(path, true).map_err(failed)?,
    };
    let file: Arc<dyn Backend> = Arc::new(file);
    let patience = Instant::now() + CLOSING;
    loop {
        let opened = match file.length().map_err(failed)? {
            0 => DataFile::create(file.clone(), new_id(), SEGMENT_BYTES),
            _ => DataFile::open(file.clone(), Access::Write),
        };
        match opened {
            Err(error) if is_in_use_here(&error) && Instant::now() < patience => thread::sleep(CLOSING / 400),
            Err(error) if is_in_use_here(&error) => {
                return Err(error.with_hint("it is open in this process: connections share one database"));
            }
            opened => return opened,
        }
    }
}

/// True for the error that this process has the file open.
fn is_in_use_here(error: &Error) -> bool {
    error.message().ends_with(&format!("is in use by process {}", std::process::id()))
}

/// Writes the bytes of an empty database, which are made in memory.
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
    // Each state has keys of its own, from the operating system's randomness.
    let random = || RandomState::new().hash_one(std::process::id());
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random().to_le_bytes());
    id[8..].copy_from_slice(&random().to_le_bytes());
    DatabaseId(id)
}
