//! A file of the operating system.
//!
//! The lock belongs to the open file (`flock`): it ends when the file is closed, and so with its process,
//! however that ends. A [`FileId`] identifies a file, whatever becomes of its name. A file that must appear
//! as a whole or not at all is made under another name first ([`create_file`], [`put_file`]).

use super::{Backend, Lock};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct FileBackend {
    file: File,
    name: String,
}

/// Identifies a file: no other file has the same id while this one is open, whatever happens to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// An id from its numbers.
    pub fn new(device: u64, inode: u64) -> FileId {
        FileId { device, inode }
    }

    /// The id of the file that now has a name, if there is one.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn of(path: &Path) -> io::Result<Option<FileId>> {
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(Some(FileId::new(metadata.dev(), metadata.ino()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl FileBackend {
    /// The id of the file.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn id(&self) -> io::Result<FileId> {
        let metadata = self.file.metadata()?;
        Ok(FileId::new(metadata.dev(), metadata.ino()))
    }

    /// Opens a file, and creates an empty one if there is none and it is opened for writing.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn open(path: &Path, write: bool) -> io::Result<FileBackend> {
        let file = OpenOptions::new().read(true).write(write).create(write).truncate(false).open(path)?;
        Ok(FileBackend { file, name: path.display().to_string() })
    }
}

/// Creates a file that appears under its name once `fill` has returned and everything that it wrote is
/// durable. `None` if the name is taken.
///
/// If several try at once, one creates it; the others find the temporary file locked.
///
/// # Errors
/// Those of the operating system and of `fill`; `ResourceBusy` if another process is creating it. The name is
/// free then, as before.
pub fn create_file<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&FileBackend) -> Result<(), E>,
) -> Result<Option<FileBackend>, E> {
    let other = beside(path);
    let backend = FileBackend { name: path.display().to_string(), ..FileBackend::open(&other, true)? };
    if !backend.lock(Lock::Exclusive)? {
        return Err(io::Error::from(io::ErrorKind::ResourceBusy).into());
    }
    if path.try_exists()? {
        std::fs::remove_file(&other)?;
        return Ok(None);
    }
    backend.set_len(0)?;
    fill(&backend)?;
    backend.file.sync_all()?;
    std::fs::rename(&other, path)?;
    // The name is durable once its directory is.
    sync_directory(path)?;
    Ok(Some(backend))
}

/// Creates a file that takes a name once `fill` has returned and everything that it wrote is durable; if
/// `replaces`, also the name of another file, which stays open where it is open. False, and nothing is done,
/// if the name is taken otherwise.
///
/// # Errors
/// Those of the operating system and of `fill`; `ResourceBusy` if another process is creating it. The name is
/// what it was then.
pub fn put_file<E: From<io::Error>>(
    path: &Path,
    replaces: bool,
    fill: impl FnOnce(Arc<FileBackend>) -> Result<(), E>,
) -> Result<bool, E> {
    let other = beside(path);
    let opened = FileBackend::open(&other, true)?;
    let backend = Arc::new(FileBackend { name: path.display().to_string(), ..opened });
    if !backend.lock(Lock::Exclusive)? {
        return Err(io::Error::from(io::ErrorKind::ResourceBusy).into());
    }
    let is_taken = || Ok::<bool, io::Error>(!replaces && path.try_exists()?);
    let put = || {
        if is_taken()? {
            return Ok(false);
        }
        backend.set_len(0)?;
        fill(backend.clone())?;
        backend.file.sync_all()?;
        if is_taken()? {
            return Ok(false);
        }
        std::fs::rename(&other, path)?;
        sync_directory(path)?;
        Ok(true)
    };
    let put: Result<bool, E> = put();
    if !matches!(put, Ok(true)) {
        // Nobody uses the file; nothing better can be done about a failure here.
        let _ = std::fs::remove_file(&other);
    }
    put
}

/// The name that a file has before it takes its own.
fn beside(path: &Path) -> PathBuf {
    let mut other = path.as_os_str().to_owned();
    other.push(".new");
    PathBuf::from(other)
}

/// Returns when the name of a new file is durable, which takes a sync of its directory.
///
/// # Errors
/// Those of the operating system.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

impl Backend for FileBackend {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        // What this does not sync, the file's times, nobody looks at.
        self.file.sync_data()
    }

    fn lock(&self, lock: Lock) -> io::Result<bool> {
        let taken = match lock {
            Lock::Exclusive => self.file.try_lock(),
            Lock::Shared => self.file.try_lock_shared(),
        };
        match taken {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("entasis-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        directory
    }

    #[test]
    fn locks_keep_others_out() {
        let path = directory("locks").join("data");
        let open = || FileBackend::open(&path, true).expect("a file for the test");
        let (first, second, third) = (open(), open(), open());
        assert!(first.lock(Lock::Exclusive).expect("locks work"));
        assert!(!second.lock(Lock::Exclusive).expect("locks work"));
        assert!(!second.lock(Lock::Shared).expect("locks work"));
        drop(first);
        assert!(second.lock(Lock::Shared).expect("locks work"));
        assert!(third.lock(Lock::Shared).expect("locks work"));
        assert!(!third.lock(Lock::Exclusive).expect("locks work"));
        std::fs::remove_dir_all(path.parent().expect("it has one")).expect("the test's directory");
    }

    #[test]
    fn a_file_appears_whole() {
        let directory = directory("whole");
        let path = directory.join("data");
        let fails = create_file(&path, |file| {
            file.write(0, b"half of it")?;
            Err(io::Error::other("the machine stops"))
        });
        assert!(fails.is_err());
        assert!(!path.exists());
        let made = create_file(&path, |file| file.write(0, b"all"))
            .expect("nothing fails")
            .expect("the name is free");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"all");
        assert!(
            !FileBackend::open(&path, true).expect("it is there").lock(Lock::Exclusive).expect("locks work")
        );
        drop(made);
        assert!(create_file(&path, |_| Ok::<(), io::Error>(())).expect("nothing fails").is_none());
        assert_eq!(std::fs::read_dir(&directory).expect("it is there").count(), 1);
        let put = |replaces, text: &'static [u8]| put_file(&path, replaces, |file| file.write(0, text));
        assert!(!put(false, b"other").expect("nothing fails"));
        let fails = put_file(&path, true, |file| {
            file.write(0, b"half of it")?;
            Err(io::Error::other("the machine stops"))
        });
        assert!(fails.is_err());
        assert_eq!(std::fs::read(&path).expect("it is there"), b"all");
        assert!(put(true, b"new").expect("nothing fails"));
        assert_eq!(std::fs::read(&path).expect("it is there"), b"new");
        assert_eq!(std::fs::read_dir(&directory).expect("it is there").count(), 1);
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }
}
