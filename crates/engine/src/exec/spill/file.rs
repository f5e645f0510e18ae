//! A temporary file: pieces of bytes are appended and read again, by any number of workers at once.

use crate::context::{QueryContext, TempSpace};
use crate::sync::{AtomicU64, Ordering};
use entasis_vector::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
// Not one of the atomics that the test scheduler controls: it outlives a schedule.
use std::sync::atomic::AtomicU64 as StaticCounter;

/// A piece of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    at: u64,
    length: usize,
}

/// A temporary file, which is deleted when dropped.
pub(crate) struct TempFile {
    /// Absent only during the drop.
    file: Option<File>,
    /// Its path, where the system keeps the names of open files.
    named: Option<PathBuf>,
    directory: PathBuf,
    end: AtomicU64,
    read: AtomicU64,
    space: Arc<TempSpace>,
    limit: u64,
}

impl TempFile {
    /// An empty file in the directory of the setting `temp_directory`.
    ///
    /// # Errors
    /// I/O, if it cannot be created.
    pub(crate) fn new(context: &QueryContext) -> Result<TempFile> {
        let directory = PathBuf::from(&*context.settings.temp_directory);
        let (file, path) = create(&directory).map_err(|error| {
            let what = format!("cannot create a temporary file in '{}'", directory.display());
            Error::io(what, &error).with_hint(
                "SET temp_directory = '…' to a directory that can be written, or to '' to fail when memory runs out",
            )
        })?;
        let named = std::fs::remove_file(&path).is_err().then_some(path);
        Ok(TempFile {
            file: Some(file),
            named,
            directory,
            end: AtomicU64::new(0),
            read: AtomicU64::new(0),
            space: context.temp.clone(),
            limit: context.settings.max_temp_directory_size,
        })
    }

    /// Bytes written and bytes read.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (self.end.load(Ordering::Relaxed), self.read.load(Ordering::Relaxed))
    }

    /// Appends a piece.
    ///
    /// # Errors
    /// Resource, if all files together would be too large; I/O.
    pub(crate) fn add(&self, bytes: &[u8]) -> Result<Extent> {
        let length = bytes.len() as u64;
        let used = self.space.take(length);
        // What is counted here is returned when the file is dropped, whether it was written or not.
        let at = self.end.fetch_add(length, Ordering::Relaxed);
        if used.saturating_add(length) > self.limit {
            return Err(Error::resource(format!(
                "temporary files in '{}' would exceed max_temp_directory_size ({} bytes)",
                self.directory.display(),
                self.limit
            ))
            .with_hint("raise it, or raise memory_limit, or select fewer rows or columns"));
        }
        write_at(self.file(), bytes, at).map_err(|error| {
            let what = format!("cannot write to a temporary file in '{}'", self.directory.display());
            Error::io(what, &error).with_hint("SET temp_directory = '…' to a directory with more space")
        })?;
        Ok(Extent { at, length: bytes.len() })
    }

    /// Replaces `bytes` with a piece.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn read(&self, extent: Extent, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.clear();
        bytes.resize(extent.length, 0);
        self.read.fetch_add(extent.length as u64, Ordering::Relaxed);
        read_at(self.file(), bytes, extent.at).map_err(|error| {
            let what = format!("cannot read a temporary file in '{}'", self.directory.display());
            Error::io(what, &error).with_hint("SET temp_directory = '…' to a directory on another disk")
        })
    }

    fn file(&self) -> &File {
        self.file.as_ref().expect("a file that is not being dropped")
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // Closed first: some systems cannot remove open files.
        drop(self.file.take());
        if let Some(path) = &self.named {
            let _ = std::fs::remove_file(path);
        }
        self.space.give_back(self.end.load(Ordering::Relaxed));
    }
}

/// Creates a file with a unique name.
fn create(directory: &Path) -> std::io::Result<(File, PathBuf)> {
    static NUMBER: StaticCounter = StaticCounter::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("entasis-{}-{number}.tmp", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        // No one else may read it before its name is removed.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&path) {
            // Another process has used this number.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (file, path)),
        }
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Files have one shared position here, so one worker works at a time.
#[cfg(not(unix))]
static POSITION: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    let _turn = POSITION.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    let _turn = POSITION.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(bytes)
}
