//! A file of the operating system.
//!
//! The lock is that of the open file (`flock`): it ends with whoever has it open, and so with its process,
//! however that ends. A file that is to be there whole or not at all is made under another name first
//! ([`create_file`]).

use super::{Backend, Lock};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug)]
pub struct FileBackend {
    file: File,
    name: String,
}

impl FileBackend {
    /// Opens a file, and makes an empty one if there is none and it is to be written.
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub fn open(path: &Path, write: bool) -> io::Result<FileBackend> {
        let file = OpenOptions::new().read(true).write(write).create(write).truncate(false).open(path)?;
        Ok(FileBackend { file, name: path.display().to_string() })
    }
}

/// Makes a file that appears under its name once `fill` has returned and all that it wrote will stay. `None`
/// if the name is taken.
///
/// Of several that try at once one makes it; to others the file under its other name is locked.
///
/// # Errors
/// Whatever the operating system or `fill` says; `ResourceBusy` if another is at it. The name is free then,
/// as before.
pub fn create_file<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&FileBackend) -> Result<(), E>,
) -> Result<Option<FileBackend>, E> {
    let mut other = path.as_os_str().to_owned();
    other.push(".new");
    let other = PathBuf::from(other);
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
    sync_directory(path)?;
    Ok(Some(backend))
}

/// Returns when the name of a file that was made will stay, which it does once its directory does.
///
/// # Errors
/// Whatever the operating system says.
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
        // What is not synced, times of the file, nobody looks at.
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
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }
}
