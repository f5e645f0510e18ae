//! The file of a database and its log, and when commits and checkpoints reach them.
//!
//! ```text
//! commit ──▶ appended to the log, as it becomes visible ──▶ waits until the log is on the disk
//! upkeep ──▶ has the log grown? ──▶ checkpoint: changes go to the data file ──▶ the log is truncated
//! ```
//! A commit appends its changes of rows and names to the log, in one frame, under the locks that make it
//! visible ([`entasis_storage::wal`]), and waits for the disk after releasing them. Commits that arrive while
//! the disk is busy are written together (group commit).
//!
//! | [`Synchronous`] | a commit returns | lost in a crash of the process | of the machine |
//! |---|---|---|---|
//! | `full` | when the log is on the disk | nothing | nothing |
//! | `normal` | when the operating system has the log, synced within about a second | nothing | that second |
//! | `off` | at once; the log is synced after [`LAZY`], or by a checkpoint | up to 1 MiB of it | all since |
//!
//! In any case the surviving state is a prefix of the committed transactions, each of them whole. A
//! checkpoint is made by upkeep when the log has grown, on `CHECKPOINT`, and when the database is closed;
//! then the log's file is removed. A request for a checkpoint while one is running waits for the next, which
//! serves all such requests. No lock is held while waiting for the disk except [`Durable::written`], which
//! only checkpoints take.
//!
//! A database whose files have lost their names to others is not written ([`super::names`]).
//!
//! An error of the files ends all writing until the database is opened again: what was published but is not
//! on the disk cannot be undone, because others have seen it.

mod backup;
mod compact;
mod verify;

pub(crate) use self::backup::Watch;
pub(super) use self::backup::backup;

use self::compact::Free;
use super::Config;
use super::names::FileNames;
use super::opening::{self, Made};
use super::watched::Bytes;
use crate::state::config::format_bytes;
use entasis_storage::backend::{Backend, MemoryBackend, sync_directory};
use entasis_storage::checkpoint::{
    self, Checkpointed, Images, Loads, MachineCosts, Moment, NameChanges, Recovered,
};
use entasis_storage::file::{Contents, DataFile, Length, State};
use entasis_storage::wal::{Log, LogReader, SegmentBytes, Synchronous};
use entasis_storage::{Catalog, CatalogVersion, Table, TableSnapshot};
use entasis_vector::{Error, Result};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest that the log waits for its sync under `normal`.
const SOON: Duration = Duration::from_secs(1);
/// The longest that it waits under `off`.
const LAZY: Duration = Duration::from_secs(30);
/// Least number of bytes of log and loads after which an automatic checkpoint is made.
const LEAST_LOG: u64 = 16 << 20;
/// The most such bytes, however large the file is: replaying them takes seconds.
const MOST_LOG: u64 = 512 << 20;
/// Between these limits, a checkpoint is made when the log has grown to this fraction of the file.
const LOG_SHARE: u64 = 4;

/// When automatic checkpoints are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AutoCheckpoint {
    /// When the log has grown to a quarter of the file, at least 16 MiB and at most 512 MiB.
    #[default]
    Auto,
    /// When the log has grown by this many bytes.
    Bytes(u64),
    /// Never.
    Off,
}

impl fmt::Display for AutoCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AutoCheckpoint::Auto => f.write_str("auto"),
            AutoCheckpoint::Bytes(bytes) => f.write_str(&format_bytes(*bytes as usize)),
            AutoCheckpoint::Off => f.write_str("off"),
        }
    }
}

/// For what a checkpoint is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To write what has changed; nothing is done if nothing has.
    Changes,
    /// To write what is not a change of rows or names.
    Costs,
    /// To make the file shorter.
    Shortening,
}

/// See the module.
pub(super) struct Durable {
    /// The data file.
    file: Arc<DataFile>,
    /// The log beside it.
    log: Arc<Log>,
    /// The names of the two files; `None` in tests.
    names: Option<FileNames>,
    /// Upkeep has found that another file has one of these names.
    is_out_of_place: AtomicBool,
    /// What the next checkpoint must know about new tables and about loads.
    images: Arc<Images>,
    /// Where large loads are written.
    loads: Loads,
    /// When automatic checkpoints are made.
    auto: Mutex<AutoCheckpoint>,
    /// The log position of the last checkpoint.
    checkpointed: AtomicU64,
    /// When the log was last synced by upkeep.
    synced: Mutex<Instant>,
    /// Progress of the requested checkpoints.
    rounds: Mutex<Rounds>,
    /// Signals that a checkpoint has ended.
    ended: Condvar,
    /// What the last checkpoint wrote.
    written: Mutex<Checkpointed>,
    /// Costs measured since the last checkpoint.
    costs: Mutex<Option<Arc<MachineCosts>>>,
}

/// Progress of the requested checkpoints.
#[derive(Default)]
struct Rounds {
    /// Number of checkpoints requested.
    asked: u64,
    /// How many of these requests are done.
    done: u64,
    /// True while a thread is making a checkpoint.
    is_running: bool,
    /// The error because of which nothing is written any more.
    failed: Option<Error>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Durable {
    /// Opens the database in a file, which is created if it does not exist or is empty, and its catalog.
    /// Reports to the progress of the configuration how much has been read. If the log is lost and the
    /// configuration allows that, the state is that of the last checkpoint.
    ///
    /// # Errors
    /// I/O; input, if the file is not a database, or another process has it open; corruption, with the place.
    pub(super) fn open(path: &Path, config: &Config) -> Result<(Durable, Catalog)> {
        let read = config.opening.clone().map(|progress| Arc::new(Bytes::new(progress, 0)));
        let mut made = Made::default();
        let (file, data) = opening::open_file(path, read.as_ref(), &mut made)?;
        let file = file.with_threads(config.threads);
        let log_path = opening::log_path(&data.path);
        let found = opening::find_log(&log_path)?;
        let header = file.header();
        let is_lost = found.is_none() && header.state == State::Open;
        let shown = log_path.display().to_string();
        if is_lost && !config.allow_missing_log {
            return Err(checkpoint::lost_log(&path.display().to_string(), &shown));
        }
        let reading: Arc<dyn Backend> = match &found {
            Some(log) => opening::watched(log.file.clone(), read.as_ref()),
            None => Arc::new(MemoryBackend::new(&shown)),
        };
        let state = if is_lost { State::Closed } else { header.state };
        let mut recovered = recovered(&file, reading, state)?;
        if is_lost {
            recovered.tail = recovered.tail.beyond_what_is_lost();
            // Before there is a log again, which does not have the position of the last checkpoint.
            let log_position = recovered.tail.position();
            file.commit(Contents { roots: header.roots, log_position, state: State::Open })?;
        }
        // Not before: what cannot be opened is left as it was.
        let log = match found {
            Some(log) => log,
            None => opening::create_log(&log_path, &data, &mut made)?,
        };
        // Whoever has made the files may have been killed before their names were durable.
        let failed = |error| Error::io(format!("cannot sync the directory of {}", path.display()), &error);
        sync_directory(&data.path).map_err(failed)?;
        let (mut durable, catalog) = Durable::resumed(file, log.file.clone(), recovered)?;
        durable.names = Some(FileNames { data, log });
        made.keep();
        Ok((durable, catalog))
    }

    /// Opens the database in open files, with so many threads.
    pub(super) fn on(file: DataFile, log: Arc<dyn Backend>) -> Result<(Durable, Catalog)> {
        let recovered = recovered(&file, log.clone(), file.header().state)?;
        Durable::resumed(file, log, recovered)
    }

    /// Goes on where a recovery has ended, with a log that is there.
    fn resumed(
        file: DataFile,
        log: Arc<dyn Backend>,
        Recovered { catalog, written, tail, .. }: Recovered,
    ) -> Result<(Durable, Catalog)> {
        let header = file.header();
        let log = Arc::new(Log::resume(log, tail)?);
        if header.state == State::Closed {
            // From now on the log must exist.
            file.commit(Contents {
                roots: header.roots,
                log_position: header.log_position,
                state: State::Open,
            })?;
        }
        let (file, images) = (Arc::new(file), Arc::new(Images::behind(&written)));
        let loads = Loads::new(&file, &images);
        checkpoint::log_all(&catalog.version(), &log, &loads);
        let durable = Durable {
            file,
            log,
            names: None,
            is_out_of_place: AtomicBool::new(false),
            images,
            loads,
            auto: Mutex::default(),
            checkpointed: AtomicU64::new(header.log_position),
            synced: Mutex::new(Instant::now()),
            rounds: Mutex::default(),
            ended: Condvar::new(),
            written: Mutex::new(written),
            costs: Mutex::default(),
        };
        Ok((durable, catalog))
    }

    /// The names of its files; `None` in tests.
    pub(super) fn names(&self) -> Option<&FileNames> {
        self.names.as_ref()
    }

    /// What commits wait for.
    pub(super) fn synchronous(&self) -> Synchronous {
        self.log.synchronous()
    }

    /// Sets what commits wait for.
    pub(super) fn set_synchronous(&self, synchronous: Synchronous) {
        self.log.set_synchronous(synchronous);
    }

    /// When automatic checkpoints are made.
    pub(super) fn auto_checkpoint(&self) -> AutoCheckpoint {
        *lock(&self.auto)
    }

    /// Sets when automatic checkpoints are made.
    pub(super) fn set_auto_checkpoint(&self, auto: AutoCheckpoint) {
        *lock(&self.auto) = auto;
    }

    /// An error if writing has failed before, or if what is written now would not be found when the database
    /// is opened again.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn check(&self) -> Result<()> {
        self.check_failures()?;
        // PERF: a look at the names takes two microseconds, which count only where nothing waits for a disk.
        match self.synchronous() == Synchronous::Full || self.is_out_of_place.load(Ordering::Relaxed) {
            true => self.check_names(),
            false => Ok(()),
        }
    }

    fn check_failures(&self) -> Result<()> {
        lock(&self.rounds).check()?;
        self.log.look().map_err(refused)
    }

    fn check_names(&self) -> Result<()> {
        let checked = self.names.as_ref().map_or(Ok(()), FileNames::check);
        self.is_out_of_place.store(checked.is_err(), Ordering::Relaxed);
        checked
    }

    /// A commit's changes of names, for the log: see [`NameChanges::record`].
    ///
    /// # Errors
    /// I/O.
    pub(super) fn name_changes(
        &self,
        base: &CatalogVersion,
        now: &CatalogVersion,
        outcome: &mut dyn FnMut(&Arc<Table>) -> TableSnapshot,
    ) -> Result<Option<NameChanges>> {
        NameChanges::record((&self.file, &self.log, &self.loads), base, now, outcome)
    }

    /// Records, under the lock of the names, that such changes are in the log.
    pub(super) fn publish(&self, changes: NameChanges) {
        changes.publish(&self.images);
    }

    /// True if there is something for upkeep to do.
    pub(super) fn is_waiting(&self) -> bool {
        !self.log.is_durable() || self.is_due()
    }

    /// True if the log has grown enough for a checkpoint. The rows of loads count as if they were in the log,
    /// because they are read like it when the file is opened.
    fn is_due(&self) -> bool {
        let most = match self.auto_checkpoint() {
            AutoCheckpoint::Off => return false,
            AutoCheckpoint::Bytes(bytes) => bytes,
            AutoCheckpoint::Auto => (self.file.bytes() / LOG_SHARE).clamp(LEAST_LOG, MOST_LOG),
        };
        let grown = self.log.position() - self.checkpointed.load(Ordering::Relaxed);
        grown + self.images.load_bytes() >= most
    }

    /// Syncs the log if it has waited long enough, and makes a checkpoint if it has grown. True if nothing
    /// remains to be synced or written.
    pub(super) fn upkeep(&self, catalog: &Catalog) -> bool {
        // The next commit or request reports the error.
        if self.check_failures().is_err() {
            return true;
        }
        let _ = self.check_names();
        if self.is_due() {
            let _ = self.checkpoint(catalog);
        }
        let patience = match self.synchronous() {
            Synchronous::Full => Duration::ZERO,
            Synchronous::Normal => SOON,
            Synchronous::Off => LAZY,
        };
        let mut synced = lock(&self.synced);
        if !self.log.is_durable() && synced.elapsed() >= patience {
            let _ = self.log.wait(self.log.position(), Synchronous::Full);
            *synced = Instant::now();
        }
        self.log.is_durable()
    }

    /// Bytes of the data file.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Measured costs, as the file stores them.
    pub(super) fn costs(&self) -> Option<Arc<MachineCosts>> {
        lock(&self.written).costs().cloned()
    }

    /// Stores costs in the file; returns when they are there.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn keep_costs(&self, catalog: &Catalog, costs: MachineCosts) -> Result<()> {
        *lock(&self.costs) = Some(Arc::new(costs));
        self.ask(catalog, Purpose::Costs)
    }

    /// Returns when everything published before is in the data file.
    ///
    /// # Errors
    /// I/O: what was acknowledged is in the log or the file.
    pub(super) fn checkpoint(&self, catalog: &Catalog) -> Result<()> {
        self.ask(catalog, Purpose::Changes)
    }

    fn ask(&self, catalog: &Catalog, purpose: Purpose) -> Result<()> {
        self.names.as_ref().map_or(Ok(()), FileNames::check_data)?;
        let mut rounds = lock(&self.rounds);
        rounds.asked += 1;
        let own = rounds.asked;
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
            running.result = Some(self.write(catalog, State::Open, purpose));
            drop(running);
            rounds = lock(&self.rounds);
        }
    }

    /// Writes the newest state to the file, unless it is there already, and truncates the log.
    fn write(&self, catalog: &Catalog, state: State, purpose: Purpose) -> Result<()> {
        let mut written = lock(&self.written);
        let costs = lock(&self.costs).clone();
        let length = if purpose == Purpose::Shortening { Length::Least } else { Length::default() };
        let moment = Moment::take(catalog, &self.images, || self.log.position());
        let moment = moment.with_costs(costs).with_length(length);
        let position = moment.log_position();
        self.log.wait(position, Synchronous::Full)?;
        if purpose != Purpose::Changes || position > self.checkpointed.load(Ordering::Relaxed) {
            *written = checkpoint::checkpoint(&self.file, &moment, &written, state)?;
            self.checkpointed.store(position, Ordering::Relaxed);
        } else if state == State::Closed {
            self.file.commit(Contents { roots: self.file.header().roots, log_position: position, state })?;
        }
        self.log.cut(position)
    }

    /// Makes the last checkpoint of a database that nobody uses any more, removes the log, and gives up the
    /// locks. If the data file was moved, it is complete where it is now.
    ///
    /// # Errors
    /// I/O: what was acknowledged is in the log or the file.
    pub(super) fn close(&self, catalog: &Catalog) -> Result<()> {
        let closed = self.finish(catalog);
        self.names.iter().for_each(FileNames::release);
        closed
    }

    fn finish(&self, catalog: &Catalog) -> Result<()> {
        self.check_failures()?;
        // A data file that was removed is gone with its last user; so is the use of its log.
        if !self.names.as_ref().is_some_and(FileNames::is_removed) {
            self.write(catalog, State::Closed, Purpose::Changes)?;
            self.shorten(Free::Half, || self.write(catalog, State::Closed, Purpose::Shortening))?;
        }
        // The log's content is in the file, and another process may create the next log as soon as this ends.
        self.names.as_ref().map_or(Ok(()), FileNames::remove_log)
    }
}

/// Reads the database in a file and its log, whose `state` says whether it must be there.
fn recovered(file: &DataFile, log: Arc<dyn Backend>, state: State) -> Result<Recovered> {
    let header = file.header();
    let bytes = SegmentBytes::new(header.segment_bytes)
        .ok_or_else(|| Error::internal("a header was read whose segments have no length"))?;
    let reader = LogReader::open(log, file.id(), bytes, header.log_position, state)?;
    checkpoint::recover(file, reader, &mut |_| Ok(()))
}

/// The error of writing after an earlier failure.
fn refused(error: Error) -> Error {
    let error = Error::new(error.kind(), format!("the database cannot be written: {}", error.message()));
    error.with_hint("reopen it when the cause is fixed: all acknowledged commits are kept")
}

impl Rounds {
    fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), |error| Err(refused(error)))
    }
}

/// A running checkpoint. It ends when this is dropped, also by a panic.
struct Running<'a> {
    /// The database that is written.
    durable: &'a Durable,
    /// The number of requests before it began.
    upto: u64,
    /// Its result, once it has ended.
    result: Option<Result<()>>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut rounds = lock(&self.durable.rounds);
        rounds.is_running = false;
        match self.result.take() {
            Some(Ok(())) => rounds.done = self.upto,
            Some(Err(error)) => rounds.failed = Some(error),
            None => rounds.failed = Some(Error::internal("a checkpoint did not end")),
        }
        self.durable.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_storage::backend::{FaultyDisk, Operation};
    use entasis_storage::file::Access;
    use entasis_storage::{Entry, IfExists, Transaction, View, Waiter};
    use entasis_vector::ErrorKind;
    use std::cell::RefCell;
    use std::thread;

    fn on(disk: &FaultyDisk) -> Result<(Durable, Catalog)> {
        let backend = Arc::new(disk.file("my.db"));
        let file = match backend.length().unwrap() {
            0 => DataFile::create(backend, opening::new_id(), opening::SEGMENT_BYTES)?,
            _ => DataFile::open(backend, Access::Write)?,
        };
        Durable::on(file, Arc::new(disk.file("my.db.wal")))
    }

    /// Does what a commit does: creates an object, and waits as `synchronous` says.
    fn commit(durable: &Durable, catalog: &Catalog, name: &str) -> Result<()> {
        let base = catalog.version();
        let mut names = base.clone();
        let (name, sql) = (name.to_owned(), "SELECT 1".to_owned());
        let view = View { name, sql, schema: Vec::new(), needs: Vec::new() };
        names.add(Entry::View(Arc::new(view)), IfExists::Fail)?;
        let changes =
            durable.name_changes(&base, &names, &mut |table| table.snapshot())?.expect("a new name");
        let changes = RefCell::new(Some(changes));
        Transaction::default().commit_as(
            &Waiter::default(),
            |_| Ok(changes.borrow().as_ref().map(NameChanges::prologue)),
            |rows| {
                let published = catalog.publish(&base, &names, &[], rows)?;
                durable.publish(changes.take().expect("it is published once"));
                Ok(published)
            },
            |_| Ok(()),
        )
    }

    fn names(catalog: &Catalog) -> Vec<String> {
        catalog.version().entries().map(|entry| entry.name().to_owned()).collect()
    }

    #[test]
    fn who_asks_for_a_checkpoint_meanwhile_shares_one() {
        const ASK: u64 = 16;
        let disk = FaultyDisk::new(36);
        let (durable, catalog) = on(&disk).unwrap();
        let before = durable.file.header().number;
        commit(&durable, &catalog, "v").unwrap();
        // No checkpoint ends while this is held.
        let held = lock(&durable.written);
        thread::scope(|scope| {
            for _ in 0..ASK {
                scope.spawn(|| durable.checkpoint(&catalog).unwrap());
            }
            while lock(&durable.rounds).asked < ASK {
                thread::yield_now();
            }
            drop(held);
        });
        assert_eq!(durable.file.header().number - before, 1, "the others find nothing to write");
        drop(durable);
        assert_eq!(names(&on(&disk).unwrap().1), ["v"]);
    }

    #[test]
    fn what_was_answered_is_there_after_a_crash_of_the_machine() {
        for synchronous in Synchronous::ALL {
            let disk = FaultyDisk::new(37);
            let (durable, catalog) = on(&disk).unwrap();
            commit(&durable, &catalog, "first").unwrap();
            durable.set_synchronous(synchronous);
            commit(&durable, &catalog, "second").unwrap();
            disk.crash();
            drop(durable);
            let found = names(&on(&disk).unwrap().1);
            let is_sure = synchronous == Synchronous::Full;
            assert!(found.len() == 2 || !is_sure, "{synchronous}: {found:?}");
            assert!(["first", "second"].starts_with(&found.iter().map(String::as_str).collect::<Vec<_>>()));
            assert!(!found.is_empty(), "the first has waited");
        }
    }

    #[test]
    fn upkeep_makes_durable_what_has_waited() {
        let disk = FaultyDisk::new(38);
        let (durable, catalog) = on(&disk).unwrap();
        durable.set_synchronous(Synchronous::Off);
        commit(&durable, &catalog, "v").unwrap();
        assert!(durable.is_waiting() && !durable.upkeep(&catalog), "it waits for more");
        *lock(&durable.synced) = Instant::now() - LAZY;
        assert!(durable.upkeep(&catalog) && !durable.is_waiting());
        disk.crash();
        drop(durable);
        assert_eq!(names(&on(&disk).unwrap().1), ["v"]);
    }

    #[test]
    fn the_log_stays_short() {
        let disk = FaultyDisk::new(41);
        let (durable, catalog) = on(&disk).unwrap();
        durable.set_auto_checkpoint(AutoCheckpoint::Bytes(4096));
        for number in 0..500 {
            commit(&durable, &catalog, &format!("v{number}")).unwrap();
            durable.upkeep(&catalog);
        }
        assert!(durable.log.size() <= 3 * u64::from(opening::SEGMENT_BYTES));
        assert!(durable.log.position() - durable.file.header().log_position < 8192);
        durable.close(&catalog).unwrap();
        drop(durable);
        let (durable, catalog) = on(&disk).unwrap();
        assert_eq!(names(&catalog).len(), 500);
        durable.check().unwrap();
    }

    #[test]
    fn nothing_changed_is_nothing_written() {
        let disk = FaultyDisk::new(39);
        let (durable, catalog) = on(&disk).unwrap();
        commit(&durable, &catalog, "v").unwrap();
        durable.checkpoint(&catalog).unwrap();
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
            assert!(durable.checkpoint(&catalog).is_err());
            disk.restart();
            drop(durable);
            let (durable, catalog) = on(&disk).unwrap();
            // The second was not acknowledged: it may be in the log.
            let found = names(&catalog);
            assert!(["first", "second"].starts_with(&found.iter().map(String::as_str).collect::<Vec<_>>()));
            assert!(!found.is_empty());
            commit(&durable, &catalog, "fourth").unwrap();
        }
    }
}
