//! A file of the operating system.
//!
//! The lock belongs to the open file (`flock`): it ends when the file is closed, and so with its process,
//! however that ends; children that the process has forked do not have it ([`super::process`]). Nor may they
//! use the open file: everything is refused there.
//!
//! A [`FileId`] identifies a file, whatever becomes of its name.
//!
//! A batch of reads is made by the calling thread and [I/O threads](super::io_threads), merged.
//!
//! **Nothing of others is written over.** A name is taken by creating a file that was not there (`O_EXCL`),
//! or by renaming a file over one that is known to be one's own, or to be meant ([`Put`]). A file that must
//! appear as a whole or not at all is written under another name first ([`Scratch`]), which nobody has.

use super::io_threads::IoThreads;
use super::process::{HeldFile, Process};
use super::reads::{ReadRequest, read_whole};
use super::{Backend, Lock};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Symbolic links that lead to one file at the most.
const LINKS: usize = 40;
/// Names that are tried for a file beside another.
const NAMES: usize = 100;

/// See the module.
#[derive(Debug)]
pub struct FileBackend {
    /// Present if the file is locked. Dropped before the file is closed.
    held: Mutex<Option<HeldFile>>,
    /// I/O threads have it only while a batch is read, and so while this exists.
    file: Arc<File>,
    name: String,
    /// Known once a batch was read.
    threads: OnceLock<Arc<IoThreads>>,
    /// The process that opened it.
    process: Process,
    /// It is not used any more, and its lock is free.
    is_released: AtomicBool,
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
            Ok(metadata) => Ok(Some(FileId::from(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> FileId {
        FileId::new(metadata.dev(), metadata.ino())
    }
}

/// A file and when it was last written: equal as long as nobody writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    id: FileId,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileBackend {
    /// Opens a file that exists.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn open(path: &Path, write: bool) -> io::Result<FileBackend> {
        FileBackend::with(path, OpenOptions::new().read(true).write(write))
    }

    /// Creates a file that does not exist.
    ///
    /// # Errors
    /// Those of the operating system: `AlreadyExists`, if the name is taken.
    pub fn create(path: &Path) -> io::Result<FileBackend> {
        FileBackend::with(path, OpenOptions::new().read(true).write(true).create_new(true))
    }

    fn with(path: &Path, options: &OpenOptions) -> io::Result<FileBackend> {
        Ok(FileBackend {
            held: Mutex::default(),
            file: Arc::new(options.open(path)?),
            name: path.display().to_string(),
            threads: OnceLock::new(),
            process: Process::current(),
            is_released: AtomicBool::new(false),
        })
    }

    /// The same file under the name that errors are to call it by.
    #[must_use]
    pub fn called(mut self, path: &Path) -> FileBackend {
        self.name = path.display().to_string();
        self
    }

    /// The id of the file.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn id(&self) -> io::Result<FileId> {
        Ok(FileId::from(&self.file.metadata()?))
    }

    /// The file as it is now.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn stamp(&self) -> io::Result<FileStamp> {
        let metadata = self.file.metadata()?;
        Ok(FileStamp {
            id: FileId::from(&metadata),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// The number of names that the file has: none, if it was removed.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn names(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.nlink())
    }

    /// Gives up the lock, though the file may stay open. It cannot be read or written any more.
    pub fn release(&self) {
        // In a forked process the lock is its parent's.
        if !self.is_released.swap(true, Ordering::AcqRel) && self.process.is_current() {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
            if held.is_some() {
                // Nothing better can be done about a failure than to close the file, which ends the lock too.
                let _ = self.file.unlock();
            }
        }
    }

    /// An error, if the file must not be used: in a forked process, or when it was released.
    fn may_be_used(&self) -> io::Result<()> {
        if !self.process.is_current() {
            let what = format!("it was opened by process {}, which has forked this one", self.process.id());
            return Err(io::Error::other(what));
        }
        match self.is_released.load(Ordering::Acquire) {
            true => Err(io::Error::other("it was closed")),
            false => Ok(()),
        }
    }
}

impl Drop for FileBackend {
    fn drop(&mut self) {
        self.release();
    }
}

/// The absolute path of a file without symbolic links. The file itself may be missing.
///
/// # Errors
/// Those of the operating system.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match std::fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let directory = directory(&path);
        match (std::fs::read_link(&path), path.file_name()) {
            // A link to a file that is missing.
            (Ok(target), _) => path = directory.join(target),
            (Err(_), Some(name)) => return Ok(std::fs::canonicalize(directory)?.join(name)),
            (Err(error), None) => return Err(error),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file beside another one, which is to take that one's name. Removed if it does not.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    file: Arc<FileBackend>,
    has_moved: bool,
}

impl Scratch {
    /// A new file beside a path, under a name that was free: `x.new`, or `x.new-` and a random number.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn beside(path: &Path) -> io::Result<Scratch> {
        for attempt in 0..NAMES {
            let mut name = path.as_os_str().to_owned();
            name.push(".new");
            if attempt > 0 {
                let random = RandomState::new().hash_one(std::process::id());
                name.push(format!("-{random:016x}"));
            }
            let own = PathBuf::from(name);
            match FileBackend::create(&own) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    let file = Arc::new(made?.called(path));
                    return Ok(Scratch { path: own, file, has_moved: false });
                }
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no name is free for a file beside it"))
    }

    /// The file.
    pub fn file(&self) -> &Arc<FileBackend> {
        &self.file
    }

    /// Renames the file over another one, when everything that was written is durable. Its new name is
    /// durable with its directory.
    fn take_name(&mut self, path: &Path) -> io::Result<()> {
        self.file.file.sync_all()?;
        std::fs::rename(&self.path, path)?;
        self.has_moved = true;
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.has_moved && self.file.process.is_current() {
            let _ = remove_own(&self.path, &self.file);
        }
    }
}

/// Removes the name of a file, if the name is still that file's. False if it is not.
///
/// # Errors
/// Those of the operating system.
pub fn remove_own(path: &Path, file: &FileBackend) -> io::Result<bool> {
    // A symbolic link of this name is not the file.
    let is_own = match std::fs::symlink_metadata(path) {
        Ok(metadata) => FileId::from(&metadata) == file.id()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    if is_own {
        std::fs::remove_file(path)?;
    }
    Ok(is_own)
}

/// Creates a file that has its contents from the beginning on, and locks it: what `fill` has written is
/// durable when this returns, and so is the name. `None` if the name is taken.
///
/// The name is taken by an empty file, which the one that `fill` has written then replaces. If the machine
/// stops in between, an empty file is there.
///
/// # Errors
/// Those of the operating system and of `fill`. The name is free then, as before.
pub fn create_file<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&FileBackend) -> Result<(), E>,
) -> Result<Option<Arc<FileBackend>>, E> {
    let empty = match FileBackend::create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        made => made?,
    };
    // Another process may have found it before it is locked, and fills it.
    if !empty.lock(Lock::Exclusive)? {
        return Ok(None);
    }
    fill_empty(path, &empty, fill).map(Some).inspect_err(|_| _ = remove_own(path, &empty))
}

/// Replaces an empty file, which is locked, by one that has contents, and locks that.
///
/// # Errors
/// Those of the operating system and of `fill`. The file is empty then, as before.
pub fn fill_empty<E: From<io::Error>>(
    path: &Path,
    empty: &FileBackend,
    fill: impl FnOnce(&FileBackend) -> Result<(), E>,
) -> Result<Arc<FileBackend>, E> {
    let mut scratch = Scratch::beside(path)?;
    let file = scratch.file.clone();
    file.file.set_permissions(empty.file.metadata()?.permissions())?;
    if !file.lock(Lock::Exclusive)? {
        return Err(io::Error::from(io::ErrorKind::ResourceBusy).into());
    }
    fill(&file)?;
    if FileId::of(path)? != Some(empty.id()?) || empty.length()? > 0 {
        return Err(io::Error::other("another file has taken its name").into());
    }
    scratch.take_name(path)?;
    sync_directory(path)?;
    Ok(file)
}

/// What became of a file that was to take a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It has the name.
    Done,
    /// The name is another file's.
    Taken,
    /// The file that was to be replaced is locked.
    Locked,
    /// The file that was to be replaced has changed meanwhile, or is not there any more.
    Changed,
}

/// Creates a file that takes a name once `fill` has returned and everything that it wrote is durable: a free
/// name, or that of the file that is to be replaced, if it is as it was when its stamp was taken, and nobody
/// has locked it. It is locked from then on until `afterwards` has returned, and the new file is in its
/// place. If the outcome is not [`Put::Done`], the name is what it was.
///
/// # Errors
/// Those of the operating system, of `fill` and of `afterwards`.
pub fn put_file<E: From<io::Error>>(
    path: &Path,
    replaced: Option<FileStamp>,
    fill: impl FnOnce(Arc<FileBackend>) -> Result<(), E>,
    afterwards: impl FnOnce() -> Result<(), E>,
) -> Result<Put, E> {
    let mut scratch = Scratch::beside(path)?;
    if !scratch.file.lock(Lock::Exclusive)? {
        return Err(io::Error::from(io::ErrorKind::ResourceBusy).into());
    }
    fill(scratch.file.clone())?;
    // Held to the end.
    let _before = match replaced {
        Some(stamp) => {
            let before = match FileBackend::open(path, false) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Put::Changed),
                opened => opened?,
            };
            if !before.lock(Lock::Exclusive)? {
                return Ok(Put::Locked);
            }
            if before.stamp()? != stamp || FileId::of(path)? != Some(stamp.id) {
                return Ok(Put::Changed);
            }
            scratch.take_name(path)?;
            before
        }
        None => {
            let empty = match FileBackend::create(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Put::Taken),
                made => made?,
            };
            // Whoever has found it already makes a database of it.
            if !empty.lock(Lock::Exclusive)? || FileId::of(path)? != Some(empty.id()?) {
                return Ok(Put::Taken);
            }
            let taken = scratch.take_name(path);
            taken.inspect_err(|_| _ = remove_own(path, &empty))?;
            empty
        }
    };
    sync_directory(path)?;
    afterwards()?;
    Ok(Put::Done)
}

/// Returns when the names in the directory of a file are durable.
///
/// # Errors
/// Those of the operating system.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

impl Backend for FileBackend {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.may_be_used()?;
        read_whole(&*self.file, offset, out)
    }

    fn read_many(&self, reads: &mut [ReadRequest]) -> io::Result<()> {
        self.may_be_used()?;
        self.threads.get_or_init(IoThreads::of_this_process).read_many(self.file.clone(), reads)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.may_be_used()?;
        self.file.write_all_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.may_be_used()?;
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.may_be_used()?;
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.may_be_used()?;
        // What this does not sync, the file's times, nobody looks at.
        self.file.sync_data()
    }

    fn lock(&self, lock: Lock) -> io::Result<bool> {
        self.may_be_used()?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let own = held.take().unwrap_or_else(|| HeldFile::new(&self.file));
        let taken = match lock {
            Lock::Exclusive => self.file.try_lock(),
            Lock::Shared => self.file.try_lock_shared(),
        };
        match taken {
            Ok(()) => {
                *held = Some(own);
                Ok(true)
            }
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::process::holds_in_a_child;
    use super::super::reads::tests::{batch, compare};
    use super::*;
    use crate::tests::random::Random;
    use std::thread;

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("entasis-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        directory
    }

    #[test]
    fn locks_keep_others_out() {
        let path = directory("locks").join("data");
        drop(FileBackend::create(&path).expect("a file for the test"));
        let open = || FileBackend::open(&path, true).expect("a file for the test");
        let (first, second, third) = (open(), open(), open());
        assert!(first.lock(Lock::Exclusive).expect("locks work"));
        assert!(!second.lock(Lock::Exclusive).expect("locks work"));
        assert!(!second.lock(Lock::Shared).expect("locks work"));
        drop(first);
        assert!(second.lock(Lock::Shared).expect("locks work"));
        assert!(third.lock(Lock::Shared).expect("locks work"));
        assert!(!third.lock(Lock::Exclusive).expect("locks work"));
        second.release();
        assert!(third.lock(Lock::Exclusive).expect("locks work"), "a released file may stay open");
        assert!(second.write(0, b"x").is_err() && second.lock(Lock::Shared).is_err());
        std::fs::remove_dir_all(path.parent().expect("it has one")).expect("the test's directory");
    }

    /// Names and contents of a directory.
    fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
        let entries = std::fs::read_dir(directory).expect("it is there").map(|entry| {
            let entry = entry.expect("it is there");
            let bytes = std::fs::read(entry.path()).expect("a file");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        });
        let mut all: Vec<_> = entries.collect();
        all.sort();
        all
    }

    /// A file of so many random bytes, and the bytes.
    fn random_file(path: &Path, bytes: usize) -> (FileBackend, Vec<u8>) {
        let mut random = Random(bytes as u64);
        let content: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect();
        let file = FileBackend::create(path).expect("a file for the test");
        file.write(0, &content[..bytes]).expect("there is room");
        (file, content[..bytes].to_vec())
    }

    /// Compares random batches with reads in order. Returns how many failed, as they reach behind the end.
    fn compare_batches(file: &FileBackend, seed: u64, count: usize) -> usize {
        let (mut random, length) = (Random(seed), file.length().expect("no faults"));
        let fails = |_: &usize| {
            let reads = batch(&mut random, length);
            let read = |offset: u64, out: &mut [u8]| file.read(offset, out);
            let error = compare(&reads, read, |reads| file.read_many(reads));
            error.is_some_and(|error| {
                assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                true
            })
        };
        (0..count).filter(fails).count()
    }

    #[test]
    fn batches_are_read_as_in_order() {
        let directory = directory("batches");
        for (seed, bytes) in [(1, 9_000_001), (2, 300_000), (3, 1)] {
            let (file, _) = random_file(&directory.join(format!("{bytes}")), bytes);
            let failed = compare_batches(&file, seed, 60);
            assert!((1..60).contains(&failed), "{failed} batches of a file of {bytes} bytes failed");
        }
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }

    #[test]
    fn a_batch_tells_what_it_cannot_read() {
        let directory = directory("batch-errors");
        let (file, content) = random_file(&directory.join("data"), 10_000_000);
        let read = |requests: &[(u64, usize)]| {
            let mut reads: Vec<ReadRequest> =
                requests.iter().map(|&(offset, bytes)| ReadRequest::new(offset, bytes)).collect();
            let outcome = file.read_many(&mut reads).map_err(|error| error.to_string());
            outcome.map(|()| reads.into_iter().map(|read| read.bytes).collect::<Vec<_>>())
        };
        let end = content.len() as u64;
        assert_eq!(read(&[]), Ok(vec![]));
        let (first, last) = (content[..2].to_vec(), content[content.len() - 3..].to_vec());
        assert_eq!(read(&[(end - 3, 3), (0, 2)]), Ok(vec![last, first.clone()]));
        assert_eq!(read(&[(end + 9, 0), (0, 2)]), Ok(vec![vec![], first]));
        let missing = |offset: u64, bytes: usize| {
            Err(format!("cannot read {bytes} bytes at byte {offset}: unexpected end of file"))
        };
        // One alone, merged with others, and apart from them; the first by offset is told.
        assert_eq!(read(&[(end, 1)]), missing(end, 1));
        assert_eq!(read(&[(end - 20, 10), (end - 9, 10), (end - 10, 10)]), missing(end - 9, 10));
        assert_eq!(read(&[(end + 90_000_000, 8), (0, 5), (end - 1, 2), (5_000_000, 1)]), missing(end - 1, 2));
        // No system reads there.
        let nowhere = u64::MAX - 5;
        let error = read(&[(nowhere, 10), (0, 5)]).expect_err("it is no offset");
        assert!(error.starts_with(&format!("cannot read 10 bytes at byte {nowhere}: ")), "{error}");
        file.release();
        assert_eq!(read(&[(0, 1), (5_000_000, 1)]), Err("it was closed".to_owned()));
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }

    #[test]
    fn several_threads_read_batches_at_once() {
        let directory = directory("batches-at-once");
        let (one, _) = random_file(&directory.join("one"), 3_000_000);
        let (other, _) = random_file(&directory.join("other"), 2_000_000);
        thread::scope(|scope| {
            for (file, seed) in [(&one, 4), (&one, 5), (&other, 6)] {
                scope.spawn(move || compare_batches(file, seed, 40));
            }
        });
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }

    #[test]
    fn a_forked_process_reads_batches_of_files_that_it_has_opened() {
        let directory = directory("batches-forked");
        let path = directory.join("data");
        let (file, _) = random_file(&path, 6_000_000);
        compare_batches(&file, 7, 10);
        let holds = holds_in_a_child(|| {
            let mut reads = [0, 5_000_000].map(|offset| ReadRequest::new(offset, 10));
            let refused = file.read_many(&mut reads).is_err_and(|error| error.to_string().contains("forked"));
            let own = FileBackend::open(&path, false).expect("it is there");
            compare_batches(&own, 8, 10);
            refused
        });
        assert!(holds);
        compare_batches(&file, 9, 10);
        std::fs::remove_dir_all(&directory).expect("the test's directory");
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
        let put = |replaced, text: &'static [u8]| {
            put_file(&path, replaced, |file| file.write(0, text), || Ok::<(), io::Error>(()))
        };
        let stamp = || FileBackend::open(&path, false).and_then(|file| file.stamp()).expect("it is there");
        assert_eq!(put(None, b"other").expect("nothing fails"), Put::Taken);
        let fails = put_file(
            &path,
            Some(stamp()),
            |file| {
                file.write(0, b"half of it")?;
                Err(io::Error::other("the machine stops"))
            },
            || Ok(()),
        );
        assert!(fails.is_err());
        assert_eq!(contents(&directory), [("data".to_owned(), b"all".to_vec())]);
        assert_eq!(put(Some(stamp()), b"new").expect("nothing fails"), Put::Done);
        assert_eq!(contents(&directory), [("data".to_owned(), b"new".to_vec())]);
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }

    #[test]
    fn what_changes_meanwhile_is_not_replaced() {
        let directory = directory("meanwhile");
        let path = directory.join("data");
        let write = |text: &str| std::fs::write(&path, text).expect("a file for the test");
        write("old");
        let stamp = FileBackend::open(&path, false).and_then(|file| file.stamp()).expect("it is there");
        let put = |meanwhile: &dyn Fn()| {
            let fill = |file: Arc<FileBackend>| {
                meanwhile();
                file.write(0, b"new")
            };
            put_file(&path, Some(stamp), fill, || Ok::<(), io::Error>(())).expect("nothing fails")
        };
        let holder = FileBackend::open(&path, true).expect("it is there");
        let lock = || assert!(holder.lock(Lock::Exclusive).expect("locks work"));
        assert_eq!(put(&lock), Put::Locked);
        drop(holder);
        assert_eq!(put(&|| write("longer")), Put::Changed);
        let other = directory.join("other");
        let replace = || {
            std::fs::write(&other, "another").expect("a file for the test");
            std::fs::rename(&other, &path).expect("a file for the test");
        };
        assert_eq!(put(&replace), Put::Changed);
        assert_eq!(contents(&directory), [("data".to_owned(), b"another".to_vec())]);
        assert_eq!(put(&|| std::fs::remove_file(&path).expect("it is there")), Put::Changed);
        assert_eq!(contents(&directory), []);
        let take = |_| {
            write("taken");
            Ok::<(), io::Error>(())
        };
        let put = put_file(&path, None, take, || Ok(())).expect("nothing fails");
        assert_eq!((put, contents(&directory)), (Put::Taken, vec![("data".to_owned(), b"taken".to_vec())]));
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }

    #[test]
    fn files_of_others_stay() {
        let directory = directory("others");
        let path = directory.join("data");
        let others = ["data.new", "data.new-1", "data.wal"].map(|name| directory.join(name));
        others.iter().for_each(|other| std::fs::write(other, "precious").expect("a file for the test"));
        let made = create_file(&path, |file| file.write(0, b"all")).expect("nothing fails");
        assert!(made.is_some());
        drop(made);
        let empty = directory.join("empty");
        std::fs::write(&empty, "").expect("a file for the test");
        let file = FileBackend::open(&empty, true).expect("it is there");
        assert!(file.lock(Lock::Exclusive).expect("locks work"));
        drop(fill_empty(&empty, &file, |file| file.write(0, b"all")).expect("nothing fails"));
        let file = FileBackend::open(&others[2], true).expect("it is there");
        assert!(!remove_own(&path, &file).expect("nothing fails"));
        assert!(!remove_own(&directory.join("none"), &file).expect("nothing fails"));
        let expected = |name: &str| if name.starts_with("data.") { "precious" } else { "all" };
        for (name, bytes) in contents(&directory) {
            assert_eq!(bytes, expected(&name).as_bytes(), "{name}");
        }
        assert_eq!(contents(&directory).len(), 5);
        assert!(remove_own(&others[2], &file).expect("nothing fails"));
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }

    #[test]
    fn links_lead_to_one_path() {
        use std::os::unix::fs::symlink;
        let directory = directory("links").canonicalize().expect("it is there");
        let data = directory.join("data");
        for (link, target) in [("relative", "data"), ("second", "relative"), ("absolute", "/no/such")] {
            symlink(target, directory.join(link)).expect("a link for the test");
        }
        symlink("loop", directory.join("loop")).expect("a link for the test");
        for exists in [false, true] {
            if exists {
                std::fs::write(&data, "x").expect("a file for the test");
            }
            for name in ["data", "relative", "second", "./second", "../links-"] {
                let path = match name.starts_with("..") {
                    true => directory.join(format!("../{}/data", directory.file_name().unwrap().display())),
                    false => directory.join(name),
                };
                assert_eq!(canonical(&path).expect("it has a path"), data);
            }
            assert!(canonical(&directory.join("absolute")).is_err(), "its directory is missing");
            assert!(canonical(&directory.join("loop")).is_err());
        }
        std::fs::remove_dir_all(&directory).expect("the test's directory");
    }
}
