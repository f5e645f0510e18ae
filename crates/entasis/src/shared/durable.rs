//! The file of a database, and when commits reach it.
//!
//! The file has one state of the whole database at a time; a checkpoint makes the newest one its next
//! ([`entasis_storage::checkpoint`]). A commit is durable when a checkpoint has ended that began after it was
//! published:
//!
//! ```text
//! published ──▶ asked ──▶ is a checkpoint under way? ── no ──▶ make one, for all that have asked by now
//!                                      └─ yes: wait until it ends, and look again
//! ```
//! So commits that come while one is under way share the next one, however many they are (group commit). No
//! lock is held while the disk is waited for but [`Durable::written`], which only checkpoints take.
//!
//! | [`Synchronous`] | a commit returns | after a crash of the machine or the process |
//! |---|---|---|
//! | `full` | when it is durable | all that was answered is there |
//! | `normal` | when it is published; upkeep makes it durable within a second or so | the last second is missing |
//! | `off` | when it is published; durable at [`LAZY`], `CHECKPOINT` and the end | all since then is missing |
//!
//! In any case what is there is the state of one moment, whole. An error of the file ends all writing until
//! the database is opened again: what was published and is not in the file cannot be taken back, as others
//! have seen it.
//!
//! What is not here: a log, with which a commit would write what it changed, and not the blocks that it
//! changed and their row groups' indexes.

mod backup;
mod compact;
mod verify;

pub(crate) use self::backup::Watch;
pub(super) use self::backup::backup;

use entasis_storage::Catalog;
use entasis_storage::backend::{Backend, FileBackend, MemoryBackend, create_file};
use entasis_storage::checkpoint::{self, Checkpointed, Moment};
use entasis_storage::file::{Access, DataFile, DatabaseId, State};
use entasis_vector::{Error, ErrorKind, Result};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a segment of the log, which a new file says though there is none yet.
const SEGMENT_BYTES: u32 = 4 << 20;
/// How long commits wait for their checkpoint under `normal`.
const SOON: Duration = Duration::from_secs(1);
/// How long a database that was just closed may have its file open still: until upkeep lets go of it.
const CLOSING: Duration = Duration::from_secs(2);
/// How long commits wait under `off`.
const LAZY: Duration = Duration::from_secs(30);

/// When a commit returns: see the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Synchronous {
    /// When it is durable.
    #[default]
    Full,
    /// When it is published; it is durable soon.
    Normal,
    /// When it is published; it is durable at some time.
    Off,
}

impl Synchronous {
    /// All of them, by the names that `SET synchronous` knows.
    pub(crate) const NAMES: [(Synchronous, &str); 3] =
        [(Synchronous::Full, "full"), (Synchronous::Normal, "normal"), (Synchronous::Off, "off")];
}

impl fmt::Display for Synchronous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Synchronous::NAMES.iter().find(|(own, _)| own == self);
        f.write_str(named.map_or("", |(_, name)| name))
    }
}

/// See the module.
pub(super) struct Durable {
    /// The file.
    file: DataFile,
    /// A [`Synchronous`], as a number.
    synchronous: AtomicU8,
    /// How far commits and checkpoints are.
    rounds: Mutex<Rounds>,
    /// A checkpoint has ended.
    ended: Condvar,
    /// What the last checkpoint wrote.
    written: Mutex<Checkpointed>,
}

/// How far commits and checkpoints are.
struct Rounds {
    /// Commits that were published.
    asked: u64,
    /// As many of them are in the file.
    done: u64,
    /// True while a checkpoint is under way that somebody will end.
    is_running: bool,
    /// When the last one ended.
    ended: Instant,
    /// Why nothing is written any more.
    failed: Option<Error>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Durable {
    /// The database in a file, which is made if there is none or it is empty, and its catalog.
    ///
    /// # Errors
    /// I/O; input, if it is no database, or another process has it open; corruption, with the place.
    pub(super) fn open(path: &Path) -> Result<(Durable, Catalog)> {
        Durable::on(open_file(path)?)
    }

    /// The database in a file that is open.
    fn on(file: DataFile) -> Result<(Durable, Catalog)> {
        let (catalog, written) = checkpoint::open(&file)?;
        let rounds = Rounds { asked: 0, done: 0, is_running: false, ended: Instant::now(), failed: None };
        let durable = Durable {
            file,
            synchronous: AtomicU8::new(Synchronous::default() as u8),
            rounds: Mutex::new(rounds),
            ended: Condvar::new(),
            written: Mutex::new(written),
        };
        Ok((durable, catalog))
    }

    /// When commits return.
    pub(super) fn synchronous(&self) -> Synchronous {
        let code = self.synchronous.load(Ordering::Relaxed);
        let named = Synchronous::NAMES.iter().find(|(own, _)| *own as u8 == code);
        named.map_or_else(Synchronous::default, |(own, _)| *own)
    }

    /// Says when commits return, from now on.
    pub(super) fn set_synchronous(&self, synchronous: Synchronous) {
        self.synchronous.store(synchronous as u8, Ordering::Relaxed);
    }

    /// An error if nothing is written any more.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn check(&self) -> Result<()> {
        lock(&self.rounds).check()
    }

    /// A commit was published: makes it durable, or leaves that to upkeep. Which of them is what it returns.
    ///
    /// # Errors
    /// I/O: it is in the file or not.
    pub(super) fn committed(&self, catalog: &Catalog) -> Result<Synchronous> {
        let synchronous = self.synchronous();
        let own = {
            let mut rounds = lock(&self.rounds);
            rounds.asked += 1;
            rounds.asked
        };
        if synchronous == Synchronous::Full {
            self.reach(own, catalog)?;
        }
        Ok(synchronous)
    }

    /// Returns when all that was published before is durable.
    ///
    /// # Errors
    /// As [`Durable::committed`].
    pub(super) fn checkpoint(&self, catalog: &Catalog) -> Result<()> {
        let own = {
            let mut rounds = lock(&self.rounds);
            // Also of what asks for none: numbers that were taken from a sequence.
            rounds.asked += 1;
            rounds.asked
        };
        self.reach(own, catalog)
    }

    /// Makes commits durable that have waited long enough. True if none is left that waits.
    pub(super) fn upkeep(&self, catalog: &Catalog) -> bool {
        let (asked, is_due) = {
            let rounds = lock(&self.rounds);
            if rounds.asked == rounds.done || rounds.failed.is_some() {
                return true;
            }
            let patience = match self.synchronous() {
                Synchronous::Full => Duration::ZERO,
                Synchronous::Normal => SOON,
                Synchronous::Off => LAZY,
            };
            (rounds.asked, rounds.ended.elapsed() >= patience)
        };
        // Who commits next, or checks, is told of an error.
        if is_due {
            let _ = self.reach(asked, catalog);
        }
        is_due
    }

    /// Returns when as many commits are in the file.
    fn reach(&self, own: u64, catalog: &Catalog) -> Result<()> {
        let mut rounds = lock(&self.rounds);
        loop {
            if rounds.done >= own {
                return Ok(());
            }
            rounds.check()?;
            if rounds.is_running {
                rounds = self.ended.wait(rounds).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            rounds.is_running = true;
            let upto = rounds.asked;
            drop(rounds);
            let mut running = Running { durable: self, upto, result: None };
            running.result = Some(self.write(catalog));
            drop(running);
            rounds = lock(&self.rounds);
        }
    }

    /// Makes the newest state that of the file, unless it is already.
    fn write(&self, catalog: &Catalog) -> Result<()> {
        let moment = Moment::take(catalog, || 0);
        let mut written = lock(&self.written);
        if !written.is_of(&self.file, &moment)? {
            // There is no log that would have to be there.
            *written = checkpoint::checkpoint(&self.file, &moment, &written, State::Closed)?;
        }
        Ok(())
    }
}

impl Rounds {
    fn check(&self) -> Result<()> {
        let Some(error) = &self.failed else { return Ok(()) };
        let error = Error::new(error.kind(), format!("the database cannot be written: {}", error.message()));
        Err(error.with_hint("open it again when the cause is gone: what was answered before is there"))
    }
}

/// A checkpoint that is under way. Dropped, it is over, also by a panic.
struct Running<'a> {
    /// Whose checkpoint it is.
    durable: &'a Durable,
    /// The commits that had asked before it began.
    upto: u64,
    /// How it went, if it has ended.
    result: Option<Result<()>>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut rounds = lock(&self.durable.rounds);
        rounds.is_running = false;
        rounds.ended = Instant::now();
        match self.result.take() {
            Some(Ok(())) => rounds.done = self.upto,
            Some(Err(error)) => rounds.failed = Some(error),
            None => rounds.failed = Some(Error::internal("a checkpoint did not end")),
        }
        self.durable.ended.notify_all();
    }
}

// ---- the file ---------------------------------------------------------------------------------------------

/// Opens a database file for writing, or makes it.
fn open_file(path: &Path) -> Result<DataFile> {
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
fn new_id() -> DatabaseId {
    // Each state has keys of its own, from the operating system's randomness.
    let random = || RandomState::new().hash_one(std::process::id());
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random().to_le_bytes());
    id[8..].copy_from_slice(&random().to_le_bytes());
    DatabaseId(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_storage::backend::{FaultyDisk, Operation};
    use entasis_storage::{Entry, IfExists, View};

    fn on(disk: &FaultyDisk) -> Result<(Durable, Catalog)> {
        let backend = Arc::new(disk.file("my.db"));
        Durable::on(match backend.length().unwrap() {
            0 => DataFile::create(backend, new_id(), SEGMENT_BYTES)?,
            _ => DataFile::open(backend, Access::Write)?,
        })
    }

    /// What a commit does: makes an object, and waits as `synchronous` says.
    fn commit(durable: &Durable, catalog: &Catalog, name: &str) -> Result<Synchronous> {
        let base = catalog.version();
        let mut names = base.clone();
        let (name, sql) = (name.to_owned(), "SELECT 1".to_owned());
        let view = View { name, sql, schema: Vec::new(), needs: Vec::new() };
        names.add(Entry::View(Arc::new(view)), IfExists::Fail)?;
        catalog.publish(&base, &names, &[], &mut || true)?;
        durable.committed(catalog)
    }

    fn names(catalog: &Catalog) -> Vec<String> {
        catalog.version().entries().map(|entry| entry.name().to_owned()).collect()
    }

    #[test]
    fn commits_that_come_meanwhile_share_a_checkpoint() {
        const COMMITS: u64 = 16;
        let disk = FaultyDisk::new(36);
        let (durable, catalog) = on(&disk).unwrap();
        let before = durable.file.header().number;
        // No checkpoint ends while this is held.
        let held = lock(&durable.written);
        thread::scope(|scope| {
            for number in 0..COMMITS {
                let (durable, catalog) = (&durable, &catalog);
                scope.spawn(move || commit(durable, catalog, &format!("v{number}")).unwrap());
            }
            while lock(&durable.rounds).asked < COMMITS {
                thread::yield_now();
            }
            drop(held);
        });
        let made = durable.file.header().number - before;
        assert!((1..=2).contains(&made), "{made} checkpoints for {COMMITS} commits");
        drop(durable);
        assert_eq!(names(&on(&disk).unwrap().1).len() as u64, COMMITS);
    }

    #[test]
    fn what_was_answered_is_there_after_a_crash_of_the_machine() {
        for synchronous in Synchronous::NAMES.map(|(own, _)| own) {
            let disk = FaultyDisk::new(37);
            let (durable, catalog) = on(&disk).unwrap();
            commit(&durable, &catalog, "first").unwrap();
            durable.set_synchronous(synchronous);
            assert_eq!(commit(&durable, &catalog, "second").unwrap(), synchronous);
            disk.crash();
            drop(durable);
            let found = names(&on(&disk).unwrap().1);
            // The others leave it to upkeep, which does not run here.
            let expected: &[&str] =
                if synchronous == Synchronous::Full { &["first", "second"] } else { &["first"] };
            assert_eq!(found, expected, "{synchronous}");
        }
    }

    #[test]
    fn upkeep_makes_durable_what_has_waited() {
        let disk = FaultyDisk::new(38);
        let (durable, catalog) = on(&disk).unwrap();
        durable.set_synchronous(Synchronous::Normal);
        commit(&durable, &catalog, "v").unwrap();
        lock(&durable.rounds).ended = Instant::now() - SOON;
        assert!(durable.upkeep(&catalog));
        disk.crash();
        drop(durable);
        assert_eq!(names(&on(&disk).unwrap().1), ["v"]);
    }

    #[test]
    fn nothing_changed_is_nothing_written() {
        let disk = FaultyDisk::new(39);
        let (durable, catalog) = on(&disk).unwrap();
        commit(&durable, &catalog, "v").unwrap();
        let before = disk.operations();
        durable.checkpoint(&catalog).unwrap();
        assert_eq!(disk.operations(), before);
    }

    #[test]
    fn an_error_of_the_file_ends_writing_until_it_is_opened_again() {
        for operation in [Operation::Write, Operation::Sync] {
            let disk = FaultyDisk::new(40);
            let (durable, catalog) = on(&disk).unwrap();
            commit(&durable, &catalog, "first").unwrap();
            disk.refuse(operation, 1, std::io::ErrorKind::StorageFull);
            let error = commit(&durable, &catalog, "second").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            let refused = durable.check().unwrap_err();
            assert!(refused.message().starts_with("the database cannot be written"), "{refused}");
            assert!(commit(&durable, &catalog, "third").is_err());
            disk.restart();
            drop(durable);
            let (durable, catalog) = on(&disk).unwrap();
            assert_eq!(names(&catalog), ["first"]);
            commit(&durable, &catalog, "fourth").unwrap();
        }
    }
}
