//! The file of a database and its log, and when commits and checkpoints reach them.
//!
//! ```text
//! commit ──▶ appended to the log, as it becomes visible ──▶ waits until the log is on the disk
//! upkeep ──▶ has the log grown? ──▶ checkpoint: what has changed, to the data file ──▶ the log is cut
//! ```
//! A commit appends what it did to rows and names, in one frame, under the locks that make it visible
//! ([`entasis_storage::wal`]), and waits for the disk when it has given them back. Commits that come while
//! the disk is busy are written together (group commit).
//!
//! | [`Synchronous`] | a commit returns | after a crash of the process | of the machine |
//! |---|---|---|---|
//! | `full` | when the log is on the disk | all that was answered is there | the same |
//! | `normal` | when the operating system has the log; upkeep syncs it within a second or so | the same | the last second is missing |
//! | `off` | when it is published; synced at [`LAZY`], `CHECKPOINT` and the end | up to a mebibyte of the log is missing | all since then is missing |
//!
//! In any case what is there is a prefix of what was committed, whole. A checkpoint is made by upkeep when
//! the log has grown, on `CHECKPOINT`, and when the database is closed; then the log's file is removed. Who
//! asks for one while one is under way waits for the next, which many may share. No lock is held while the
//! disk is waited for but [`Durable::written`], which only checkpoints take.
//!
//! An error of the files ends all writing until the database is opened again: what was published and is not
//! on the disk cannot be taken back, as others have seen it.

mod backup;
mod compact;
mod verify;

pub(crate) use self::backup::Watch;
pub(super) use self::backup::backup;

use super::opening;
use super::watched::Bytes;
use crate::config::format_bytes;
use entasis_engine::exec::Progress;
use entasis_storage::backend::{Backend, FileId};
use entasis_storage::checkpoint::{
    self, Checkpointed, Images, Loads, MachineCosts, Moment, NameChanges, Recovered,
};
use entasis_storage::file::{Contents, DataFile, State};
use entasis_storage::wal::{Log, LogReader, SegmentBytes, Synchronous};
use entasis_storage::{Catalog, CatalogVersion, Table, TableSnapshot};
use entasis_vector::{Error, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the log waits for its sync under `normal`.
const SOON: Duration = Duration::from_secs(1);
/// How long it does under `off`.
const LAZY: Duration = Duration::from_secs(30);
/// Bytes of log, and of loads, from which on a checkpoint comes by itself, at least.
const LEAST_LOG: u64 = 16 << 20;
/// The same at most, however large the file is: replaying them takes seconds.
const MOST_LOG: u64 = 512 << 20;
/// The part of the file that the log may grow to in between.
const LOG_SHARE: u64 = 4;

/// When a checkpoint comes by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AutoCheckpoint {
    /// When the log has grown to a quarter of the file, at least 16 MiB and at most 512 MiB.
    #[default]
    Auto,
    /// When the log has grown by so many bytes.
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

/// See the module.
pub(super) struct Durable {
    /// The data file.
    file: Arc<DataFile>,
    /// The log beside it.
    log: Arc<Log>,
    /// The log's file, to be removed at the end; `None` in tests.
    log_path: Option<PathBuf>,
    /// Which file the data file is; `None` in tests.
    id: Option<FileId>,
    /// What the next checkpoint is to know of tables that are new, and of loads.
    images: Arc<Images>,
    /// Where large loads are written.
    loads: Loads,
    /// When a checkpoint comes by itself.
    auto: Mutex<AutoCheckpoint>,
    /// The position of the log that the last checkpoint was of.
    checkpointed: AtomicU64,
    /// When the log was last synced by upkeep.
    synced: Mutex<Instant>,
    /// How far checkpoints are.
    rounds: Mutex<Rounds>,
    /// A checkpoint has ended.
    ended: Condvar,
    /// What the last checkpoint wrote.
    written: Mutex<Checkpointed>,
    /// Costs that were measured since.
    costs: Mutex<Option<Arc<MachineCosts>>>,
}

/// How far checkpoints are.
#[derive(Default)]
struct Rounds {
    /// Checkpoints that were asked for.
    asked: u64,
    /// As many of them are done.
    done: u64,
    /// True while a checkpoint is under way that somebody will end.
    is_running: bool,
    /// Why nothing is written any more.
    failed: Option<Error>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Durable {
    /// The database in a file, which is made if there is none or it is empty, and its catalog. `progress` is
    /// told of how much has been read.
    ///
    /// # Errors
    /// I/O; input, if it is no database, or another process has it open; corruption, with the place.
    pub(super) fn open(path: &Path, progress: Option<Arc<Progress>>) -> Result<(Durable, Catalog)> {
        let read = progress.map(|progress| Arc::new(Bytes::new(progress, 0)));
        let (file, id) = opening::open_file(path, read.as_ref())?;
        let log_path = opening::log_path(path);
        let log = opening::open_log(&log_path, read.as_ref())?;
        let (mut durable, catalog) = Durable::on(file, log)?;
        durable.log_path = Some(log_path);
        durable.id = Some(id);
        Ok((durable, catalog))
    }

    /// The database in files that are open.
    pub(super) fn on(file: DataFile, log: Arc<dyn Backend>) -> Result<(Durable, Catalog)> {
        let header = file.header();
        let bytes = SegmentBytes::new(header.segment_bytes)
            .ok_or_else(|| Error::internal("a header was read whose segments have no length"))?;
        let reader = LogReader::open(log.clone(), file.id(), bytes, header.log_position, header.state)?;
        let Recovered { catalog, written, tail, .. } = checkpoint::recover(&file, reader, &mut |_| Ok(()))?;
        let log = Arc::new(Log::resume(log, tail)?);
        if header.state == State::Closed {
            // From now on the log must be there.
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
            log_path: None,
            id: None,
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

    /// Which file the data file is.
    pub(super) fn id(&self) -> Option<FileId> {
        self.id
    }

    /// What commits wait for.
    pub(super) fn synchronous(&self) -> Synchronous {
        self.log.synchronous()
    }

    /// Says what commits wait for, from now on.
    pub(super) fn set_synchronous(&self, synchronous: Synchronous) {
        self.log.set_synchronous(synchronous);
    }

    /// When checkpoints come by themselves.
    pub(super) fn auto_checkpoint(&self) -> AutoCheckpoint {
        *lock(&self.auto)
    }

    /// Says when checkpoints come by themselves.
    pub(super) fn set_auto_checkpoint(&self, auto: AutoCheckpoint) {
        *lock(&self.auto) = auto;
    }

    /// An error if nothing is written any more.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn check(&self) -> Result<()> {
        lock(&self.rounds).check()?;
        self.log.look().map_err(refused)
    }

    /// What a commit changes of names, for the log: see [`NameChanges::record`].
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

    /// Says, under the lock of the names, that such changes are in the log.
    pub(super) fn publish(&self, changes: NameChanges) {
        changes.publish(&self.images);
    }

    /// True if there is something for upkeep to do.
    pub(super) fn is_waiting(&self) -> bool {
        !self.log.is_durable() || self.is_due()
    }

    /// True if the log has grown so far that a checkpoint is to come. The rows of loads count as if they were
    /// in it, because they are read as it is when the file is opened.
    fn is_due(&self) -> bool {
        let most = match self.auto_checkpoint() {
            AutoCheckpoint::Off => return false,
            AutoCheckpoint::Bytes(bytes) => bytes,
            AutoCheckpoint::Auto => (self.file.bytes() / LOG_SHARE).clamp(LEAST_LOG, MOST_LOG),
        };
        let grown = self.log.position() - self.checkpointed.load(Ordering::Relaxed);
        grown + self.images.load_bytes() >= most
    }

    /// Syncs what has waited long enough, and makes a checkpoint if the log has grown. True if nothing is
    /// left that waits.
    pub(super) fn upkeep(&self, catalog: &Catalog) -> bool {
        // Who commits next, or asks, is told of an error.
        if self.check().is_err() {
            return true;
        }
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

    /// Costs that were measured, as the file has them.
    pub(super) fn costs(&self) -> Option<Arc<MachineCosts>> {
        lock(&self.written).costs().cloned()
    }

    /// Keeps costs in the file; returns when they are there.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn keep_costs(&self, catalog: &Catalog, costs: MachineCosts) -> Result<()> {
        *lock(&self.costs) = Some(Arc::new(costs));
        self.checkpoint_anyway(catalog)
    }

    /// Returns when all that was published before is in the data file.
    ///
    /// # Errors
    /// I/O: what was answered is in the log or the file.
    pub(super) fn checkpoint(&self, catalog: &Catalog) -> Result<()> {
        self.ask(catalog, false)
    }

    /// The same, also if nothing has changed since the last one.
    fn checkpoint_anyway(&self, catalog: &Catalog) -> Result<()> {
        self.ask(catalog, true)
    }

    fn ask(&self, catalog: &Catalog, anyway: bool) -> Result<()> {
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
            running.result = Some(self.write(catalog, State::Open, anyway));
            drop(running);
            rounds = lock(&self.rounds);
        }
    }

    /// Makes the newest state that of the file, unless it is already, and cuts the log.
    fn write(&self, catalog: &Catalog, state: State, anyway: bool) -> Result<()> {
        let mut written = lock(&self.written);
        let costs = lock(&self.costs).clone();
        let moment = Moment::take(catalog, &self.images, || self.log.position()).with_costs(costs);
        let position = moment.log_position();
        self.log.wait(position, Synchronous::Full)?;
        if anyway || position > self.checkpointed.load(Ordering::Relaxed) {
            *written = checkpoint::checkpoint(&self.file, &moment, &written, state)?;
            self.checkpointed.store(position, Ordering::Relaxed);
        } else if state == State::Closed {
            self.file.commit(Contents { roots: self.file.header().roots, log_position: position, state })?;
        }
        self.log.cut(position)
    }

    /// Makes the last checkpoint, of a database that nobody uses any more, and removes the log.
    ///
    /// # Errors
    /// I/O: what was answered is in the log or the file.
    pub(super) fn close(&self, catalog: &Catalog) -> Result<()> {
        self.check()?;
        self.write(catalog, State::Closed, false)?;
        // What it had is in the file, and another process may make the next one as soon as this ends.
        self.log_path.as_ref().map_or(Ok(()), |path| {
            std::fs::remove_file(path).map_err(|error| Error::io("cannot remove the log", &error))
        })
    }
}

/// The error of who would write, when something has failed before.
fn refused(error: Error) -> Error {
    let error = Error::new(error.kind(), format!("the database cannot be written: {}", error.message()));
    error.with_hint("open it again when the cause is gone: what was answered before is there")
}

impl Rounds {
    fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), |error| Err(refused(error)))
    }
}

/// A checkpoint that is under way. Dropped, it is over, also by a panic.
struct Running<'a> {
    /// Whose checkpoint it is.
    durable: &'a Durable,
    /// What was asked for before it began.
    upto: u64,
    /// How it went, if it has ended.
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

    /// What a commit does: makes an object, and waits as `synchronous` says.
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
            // Nobody was told of the second: it may be in the log.
            let found = names(&catalog);
            assert!(["first", "second"].starts_with(&found.iter().map(String::as_str).collect::<Vec<_>>()));
            assert!(!found.is_empty());
            commit(&durable, &catalog, "fourth").unwrap();
        }
    }
}
