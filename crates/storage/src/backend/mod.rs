//! The only interface to disks: all bytes of a database are read and written through a [`Backend`].
//!
//! | backend | |
//! |---|---|
//! | [`FileBackend`] | a file of the operating system, read and written by position |
//! | [`MemoryBackend`] | bytes in memory: a database without a file, and tests |
//! | [`FaultyDisk`] | a disk for tests that stops, forgets, reorders, tears and refuses, the same way for the same seed |
//!
//! Only this may be relied on (docs/design/file-format.md, "What is assumed of the disk"): once
//! [`Backend::sync`] has returned without an error, what was written before it is durable; until then,
//! sectors of [`SECTOR`] bytes reach the disk in any order or never, and so does a change of the length.
//! After a `sync` that failed, the file must not be written again.
//!
//! Bytes from several places are asked for by one call, [`Backend::read_many`], so that a disk has several
//! reads at once: `reads` says what becomes of the requests, and `io_threads` who makes the reads of a file.
//!
//! Files are not memory-mapped: a disk error must become an error of a statement, not a signal, and bytes are
//! checked when they are read. Not here: caching, checksums, retries, ordering of writes.

pub(crate) mod bytes;
mod faulty;
mod file;
mod io_threads;
mod memory;
mod process;
mod reads;

pub use faulty::{FaultyBackend, FaultyDisk, Operation, ReadFaults};
pub use file::{
    FileBackend, FileId, FileStamp, Put, Scratch, canonical, create_file, fill_empty, put_file, remove_own,
    sync_directory,
};
pub use io_threads::READS_AT_ONCE;
pub use memory::MemoryBackend;
pub use process::Process;
pub use reads::ReadRequest;

use entasis_vector::{Error, ErrorKind};
use reads::read_in_order;
use std::fmt::Debug;
use std::io;

/// Bytes that a disk writes atomically.
pub const SECTOR: usize = 512;

/// What a lock prevents others from doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Opening the file at all.
    Exclusive,
    /// Writing: others may read the file as well.
    Shared,
}

/// Bytes on some medium, by position. All methods may be called from several threads at once.
pub trait Backend: Debug + Send + Sync {
    /// Its name in errors: a path.
    fn name(&self) -> &str;

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if there are fewer bytes; those of the medium.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Fills the buffers of all requests of a batch, which may be in any order and overlap: as [`Self::read`]
    /// does for one after the other, but several may be read at once. A request for no bytes is not read.
    ///
    /// # Errors
    /// That of the first request, by offset, that cannot be read, with its offset and length. What the
    /// buffers of the batch contain is undefined then.
    fn read_many(&self, reads: &mut [ReadRequest]) -> io::Result<()> {
        read_in_order(reads, |offset, out| self.read(offset, out))
    }

    /// Writes bytes from `offset` on. What lies between the end and `offset` is zero.
    ///
    /// # Errors
    /// Those of the medium. Some of the bytes may have been written then.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Its length.
    ///
    /// # Errors
    /// Those of the medium.
    fn length(&self) -> io::Result<u64>;

    /// Truncates it, or extends it with zeros.
    ///
    /// # Errors
    /// Those of the medium.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns when everything that was written, and the length, is durable.
    ///
    /// # Errors
    /// Those of the medium. Then the fate of everything written since the last sync is unknown.
    fn sync(&self) -> io::Result<()>;

    /// Locks it against others while this object, or its process, lives. False if another holds a conflicting
    /// lock.
    ///
    /// # Errors
    /// Those of the medium.
    fn lock(&self, lock: Lock) -> io::Result<bool>;
}

/// The error for bytes that differ from those that were written.
pub(crate) fn damaged(backend: &dyn Backend, offset: u64, what: &str) -> Error {
    let message = format!("{} is damaged at byte {offset}: {what}", backend.name());
    Error::new(ErrorKind::Corruption, message)
}

/// The error of a medium that refuses.
pub(crate) fn refused(backend: &dyn Backend, error: &io::Error) -> Error {
    Error::io(backend.name(), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;

    /// Any sequence of operations has the same effect on a backend as on a vector.
    fn behaves(backend: &dyn Backend, seed: u64) {
        let (mut random, mut model) = (Random(seed), Vec::<u8>::new());
        for _ in 0..300 {
            let offset = random.below(3000);
            match random.below(7) {
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
                4 => {
                    let request = |_| ReadRequest::new(random.below(3000), random.below(900) as usize);
                    let mut reads: Vec<ReadRequest> = (0..4).map(request).collect();
                    reads.truncate(random.below(5) as usize);
                    let ends = |read: &ReadRequest| read.offset as usize + read.bytes.len();
                    let is_there = |read: &ReadRequest| read.bytes.is_empty() || ends(read) <= model.len();
                    match backend.read_many(&mut reads) {
                        Ok(()) => {
                            assert!(reads.iter().all(is_there));
                            for read in reads.iter().filter(|read| !read.bytes.is_empty()) {
                                assert_eq!(read.bytes, model[read.offset as usize..ends(read)]);
                            }
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                            let missing = reads.iter().filter(|read| !is_there(read));
                            let first = missing.min_by_key(|read| read.offset).expect("one is not there");
                            assert!(error.to_string().contains(&format!("at byte {}:", first.offset)));
                        }
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
            behaves(&FileBackend::create(&path).expect("a file for the test"), seed);
        }
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }
}
