//! The one seam to disks: all bytes of a database come and go through a [`Backend`].
//!
//! | backend | |
//! |---|---|
//! | [`FileBackend`] | a file of the operating system, read and written by position |
//! | [`MemoryBackend`] | bytes in memory: a database without a file, and tests |
//! | [`FaultyDisk`] | a disk for tests that stops, forgets, reorders, tears and refuses, the same way for the same seed |
//!
//! What may be relied on, and nothing else (docs/design/file-format.md, "What is assumed of the disk"): after
//! [`Backend::sync`] has returned without an error, what was written before it stays; before that, sectors of
//! [`SECTOR`] bytes reach the disk in any order or never, and so does a change of the length. After a `sync`
//! that failed, the file must not be written again.
//!
//! Files are not mapped: an error of a disk is to be an error of a statement and no signal, and what is read
//! is checked first. What is not done here: no cache, no checksum, no retry, no order of writes.

pub(crate) mod bytes;
mod faulty;
mod file;
mod memory;

pub use faulty::{FaultyBackend, FaultyDisk, Operation};
pub use file::{FileBackend, FileId, create_file, put_file, sync_directory};
pub use memory::MemoryBackend;

use entasis_vector::{Error, ErrorKind};
use std::fmt::Debug;
use std::io;

/// Bytes that a disk writes whole or not at all.
pub const SECTOR: usize = 512;

/// What a lock keeps others from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Nobody else may have the file open.
    Exclusive,
    /// Others may read it as well.
    Shared,
}

/// Bytes on some medium, by position. All methods may be called from several threads at once.
pub trait Backend: Debug + Send + Sync {
    /// What errors call it: a path.
    fn name(&self) -> &str;

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if there are not so many; whatever the medium says.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes bytes from `offset` on. What lies between the end and `offset` is zero.
    ///
    /// # Errors
    /// Whatever the medium says. Some of the bytes may have been written then.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Its length.
    ///
    /// # Errors
    /// Whatever the medium says.
    fn length(&self) -> io::Result<u64>;

    /// Cuts it, or fills it up with zeros.
    ///
    /// # Errors
    /// Whatever the medium says.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns when all that was written, and the length, will stay.
    ///
    /// # Errors
    /// Whatever the medium says. Nothing is known then of what was written since the last one.
    fn sync(&self) -> io::Result<()>;

    /// Locks it against others for as long as this lives, or its process. False if another has a lock that
    /// does not go with it.
    ///
    /// # Errors
    /// Whatever the medium says.
    fn lock(&self, lock: Lock) -> io::Result<bool>;
}

/// What was found where something else had been written.
pub(crate) fn damaged(backend: &dyn Backend, offset: u64, what: &str) -> Error {
    let message = format!("{} is damaged at byte {offset}: {what}", backend.name());
    Error::new(ErrorKind::Corruption, message)
}

/// The medium refuses.
pub(crate) fn refused(backend: &dyn Backend, error: &io::Error) -> Error {
    Error::io(backend.name(), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;

    /// Whatever is done to a backend is what is done to a vector.
    fn behaves(backend: &dyn Backend, seed: u64) {
        let (mut random, mut model) = (Random(seed), Vec::<u8>::new());
        for _ in 0..300 {
            let offset = random.below(3000);
            match random.below(6) {
                0 => {
                    backend.set_len(offset).expect("no faults");
                    model.resize(offset as usize, 0);
                }
                1 => backend.sync().expect("no faults"),
                2 | 3 => {
                    let bytes: Vec<u8> = (0..random.below(900)).map(|_| random.next() as u8).collect();
                    let end = offset as usize + bytes.len();
                    backend.write(offset, &bytes).expect("no faults");
                    if !bytes.is_empty() {
                        model.resize(model.len().max(end), 0);
                        model[offset as usize..end].copy_from_slice(&bytes);
                    }
                }
                _ => {
                    let mut out = vec![1; 1 + random.below(900) as usize];
                    let end = offset as usize + out.len();
                    match backend.read(offset, &mut out) {
                        Ok(()) => assert_eq!(out, model[offset as usize..end]),
                        Err(error) => {
                            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                            assert!(end > model.len() || offset as usize > model.len());
                        }
                    }
                }
            }
            assert_eq!(backend.length().expect("no faults"), model.len() as u64);
        }
    }

    #[test]
    fn all_backends_behave_as_a_vector() {
        let directory = std::env::temp_dir().join(format!("entasis-backend-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        for seed in 1..20 {
            behaves(&MemoryBackend::new("memory"), seed);
            behaves(&FaultyDisk::new(seed).file("data"), seed);
            let path = directory.join(format!("{seed}"));
            behaves(&FileBackend::open(&path, true).expect("a file for the test"), seed);
        }
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }
}
