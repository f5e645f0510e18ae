//! A disk for tests that fails as disks do, the same way each time for the same seed.
//!
//! - It **keeps** what was synced. After a crash, each sector written since is on the disk in any version
//!   that it has had since then, independently of the others, as is the length: so writes are lost, reordered
//!   and torn ([`FaultyDisk::crash`]).
//! - It **stops** at an operation of a given number ([`FaultyDisk::stop_at`]): that one and all later ones
//!   fail. Operations are the writes, changes of length and syncs of all its files, in order.
//! - It **shows**, before each operation, what would be on it if it stopped ([`FaultyDisk::at_each`]): one
//!   run of a workload tests as many crashes as it has operations.
//! - It **excludes**, if told so ([`FaultyDisk::exclude`]), as a system does: a file that was opened again
//!   cannot be locked until those who have locked it have closed it.
//! - It **refuses** the n-th read, write or sync ([`FaultyDisk::refuse`]), once. A refused sync forgets: on
//!   the disk, what was not synced is as after a crash; in memory it is as written; and later syncs do not
//!   write it.
//! - It **disturbs** reads, if told so ([`FaultyDisk::disturb_reads`]): they take their time, give fewer
//!   bytes than were asked for, and fail, now and then or always at the same places ([`ReadFaults`]).
//! - It **reads by threads**, if told so ([`FaultyDisk::read_by_threads`]): batches are read as those of a
//!   file are. Otherwise they are read in order, so that the n-th read is the same each time.
//!
//! What it does not do: tear a sector, forget what was synced, return wrong bytes. For rot there is
//! [`FaultyBackend::flip`].

use super::io_threads::IoThreads;
use super::memory::{read_from, write_to};
use super::reads::{ReadAt, ReadRequest, read_in_order, read_whole};
use super::{Backend, Lock, SECTOR};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// [`Backend::read`], and each read of [`Backend::read_many`]. If reads are made to give fewer bytes than
    /// were asked for, the read of the others is one more.
    Read,
    /// [`Backend::write`] and [`Backend::set_len`].
    Write,
    /// [`Backend::sync`].
    Sync,
}

/// What may happen to reads of a [`FaultyDisk`]: to one of so many, by a seed. 0 stands for none of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadFaults {
    /// Which ones.
    pub seed: u64,
    /// One of so many sectors cannot be read, however often that is tried. Which ones does not depend on who
    /// reads, and in which order.
    pub bad_sectors: u64,
    /// One of so many reads fails. The same bytes may be read by the next one.
    pub failing: u64,
    /// One of so many reads gives fewer bytes than were asked for, as systems do; the others are asked for
    /// again then.
    pub short: u64,
    /// The longest time that a read takes.
    pub delay: Duration,
}

impl ReadFaults {
    /// A number that looks random, of one of several kinds (splitmix64).
    fn draw(&self, kind: u64, number: u64) -> u64 {
        let mut z = self.seed.wrapping_mul(4).wrapping_add(kind).wrapping_mul(0xD134_2543_DE82_EF95);
        z = (z ^ number).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// How long the read of a number takes.
    fn delay_of(&self, read: u64) -> Duration {
        let longest = self.delay.as_nanos() as u64;
        Duration::from_nanos(if longest == 0 { 0 } else { self.draw(0, read) % (longest + 1) })
    }

    /// How many bytes the read of a number gives, or why it fails.
    fn judge(&self, read: u64, offset: u64, bytes: usize) -> io::Result<usize> {
        let hits = |kind, number, one_of: u64| one_of > 0 && self.draw(kind, number).is_multiple_of(one_of);
        if hits(1, read, self.failing) {
            return Err(io::Error::other("this read fails"));
        }
        let bytes = match hits(2, read, self.short) && bytes > 1 {
            true => 1 + (self.draw(3, read) % (bytes as u64 - 1)) as usize,
            false => bytes,
        };
        let (sector, end) = (SECTOR as u64, offset.saturating_add(bytes as u64));
        let mut sectors = offset / sector..end.div_ceil(sector);
        match sectors.find(|&sector| hits(4, sector, self.bad_sectors)) {
            Some(sector) => Err(io::Error::other(format!("sector {sector} cannot be read"))),
            None => Ok(bytes),
        }
    }
}

/// See the module. Copies are the same disk.
#[derive(Debug, Clone)]
pub struct FaultyDisk(Arc<Mutex<Disk>>);

/// A file of a [`FaultyDisk`]. Copies are one opening of it.
#[derive(Debug, Clone)]
pub struct FaultyBackend {
    disk: FaultyDisk,
    name: String,
    opening: Arc<Opening>,
}

/// An opening of a file, which has its lock until it is dropped.
#[derive(Debug)]
struct Opening {
    disk: FaultyDisk,
    number: u64,
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.disk.lock().locks.retain(|_, holder| *holder != self.number);
    }
}

/// Receives what would be on the disk.
type Observer = Box<dyn FnMut(FaultyDisk) + Send>;

struct Disk {
    random: u64,
    files: BTreeMap<String, Image>,
    /// Writes, changes of length and syncs so far.
    operations: u64,
    /// Bytes given to writes so far.
    written: u64,
    stop_at: Option<u64>,
    /// For each operation, how often it was done and which one is refused.
    done: [u64; 3],
    refusals: Vec<(Operation, u64, io::ErrorKind)>,
    read_faults: ReadFaults,
    /// The threads that make batches of reads.
    threads: Option<Arc<IoThreads>>,
    observer: Option<Observer>,
    /// Openings of files so far; the one that holds the lock of a file, by its name; whether locks count.
    openings: u64,
    locks: BTreeMap<String, u64>,
    excludes: bool,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Disk({} files, {} operations)", self.files.len(), self.operations)
    }
}

/// A file as it is in memory and on the disk.
#[derive(Debug, Clone, Default)]
struct Image {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Versions of sectors since the last sync, and of the length.
    sectors: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    lengths: Vec<usize>,
}

impl Image {
    /// Records the current contents of the sectors of a range.
    fn note(&mut self, start: usize, end: usize) {
        for sector in start / SECTOR..end.div_ceil(SECTOR) {
            let mut version = [0; SECTOR];
            let from = (sector * SECTOR).min(self.now.len());
            let bytes = &self.now[from..self.now.len().min(from + SECTOR)];
            version[..bytes.len()].copy_from_slice(bytes);
            self.sectors.entry(sector).or_default().push(version);
        }
        self.lengths.push(self.now.len());
    }

    /// All that was written since the last sync is on the disk.
    fn keep(&mut self) {
        for (sector, versions) in std::mem::take(&mut self.sectors) {
            versions
                .last()
                .iter()
                .for_each(|last| write_to(&mut self.synced, (sector * SECTOR) as u64, &last[..]));
        }
        self.synced.resize(self.now.len(), 0);
        self.lengths.clear();
    }

    /// What is on the disk when it stops.
    fn settle(&mut self, random: &mut impl FnMut(u64) -> u64) {
        // Often all of it is there, or nothing, so that both extremes are tried.
        let share = [0, 1, 1, 2][random(4) as usize];
        let mut pick = |versions: usize| match share {
            0 => 0,
            2 => versions as u64,
            _ => random(versions as u64 + 1),
        };
        let length = match pick(self.lengths.len()) {
            0 => self.synced.len(),
            version => self.lengths[version as usize - 1],
        };
        for (&sector, versions) in &self.sectors {
            match pick(versions.len()) {
                0 => {}
                version => {
                    write_to(&mut self.synced, (sector * SECTOR) as u64, &versions[version as usize - 1])
                }
            }
        }
        self.synced.resize(length, 0);
        self.sectors.clear();
        self.lengths.clear();
    }
}

impl Disk {
    fn new(random: u64) -> Disk {
        Disk {
            random,
            files: BTreeMap::new(),
            operations: 0,
            written: 0,
            stop_at: None,
            done: [0; 3],
            refusals: Vec::new(),
            read_faults: ReadFaults::default(),
            threads: None,
            observer: None,
            openings: 0,
            locks: BTreeMap::new(),
            excludes: false,
        }
    }

    /// The same files on a disk of its own, without faults.
    fn copy(&mut self) -> Disk {
        let random = Disk::below(&mut self.random, u64::MAX) | 1;
        Disk { files: self.files.clone(), ..Disk::new(random) }
    }

    fn crash(&mut self) {
        for image in self.files.values_mut() {
            image.settle(&mut |bound| Disk::below(&mut self.random, bound));
            image.now.clone_from(&image.synced);
        }
        self.begin_anew();
    }

    /// Without faults and locks, as nobody is left who could have some.
    fn begin_anew(&mut self) {
        (self.stop_at, self.operations) = (None, 0);
        self.refusals.clear();
        self.read_faults = ReadFaults::default();
        self.locks.clear();
    }

    fn below(random: &mut u64, bound: u64) -> u64 {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        (*random >> 8) % bound
    }

    /// Counts an operation, which may be the one that fails.
    fn begin(&mut self, operation: Operation) -> io::Result<()> {
        if operation != Operation::Read {
            self.operations += 1;
            if let Some(mut observer) = self.observer.take() {
                let mut stopped = self.copy();
                stopped.crash();
                observer(FaultyDisk(Arc::new(Mutex::new(stopped))));
                self.observer = Some(observer);
            }
        }
        let stops = self.stop_at.is_some_and(|stop| self.operations >= stop);
        if stops {
            return Err(io::Error::other("the disk has stopped"));
        }
        let number = &mut self.done[operation as usize];
        *number += 1;
        match self.refusals.iter().find(|(of, at, _)| (*of, *at) == (operation, *number)) {
            Some(&(_, _, kind)) => Err(kind.into()),
            None => Ok(()),
        }
    }
}

impl FaultyDisk {
    /// A disk without files, and so far without faults. The seed is not 0.
    pub fn new(seed: u64) -> FaultyDisk {
        FaultyDisk(Arc::new(Mutex::new(Disk::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).max(1)))))
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file, which is empty if it is not there.
    pub fn file(&self, name: &str) -> FaultyBackend {
        let mut disk = self.lock();
        disk.files.entry(name.to_owned()).or_default();
        disk.openings += 1;
        let opening = Arc::new(Opening { disk: self.clone(), number: disk.openings });
        FaultyBackend { disk: self.clone(), name: name.to_owned(), opening }
    }

    /// From now on locks of its files count.
    pub fn exclude(&self) {
        self.lock().excludes = true;
    }

    /// Writes, changes of length and syncs so far.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Bytes that were given to writes so far.
    pub fn written(&self) -> u64 {
        self.lock().written
    }

    /// Stops at the operation of this number, from 1 on.
    pub fn stop_at(&self, operation: u64) {
        self.lock().stop_at = Some(operation);
    }

    /// Refuses the operation that is the `number`-th of its kind from now on, from 1 on.
    pub fn refuse(&self, operation: Operation, number: u64, kind: io::ErrorKind) {
        let mut disk = self.lock();
        let at = disk.done[operation as usize] + number;
        disk.refusals.push((operation, at, kind));
    }

    /// From now on these faults happen to reads.
    pub fn disturb_reads(&self, faults: ReadFaults) {
        self.lock().read_faults = faults;
    }

    /// From now on the reads of a batch are made by several threads, in no certain order.
    pub fn read_by_threads(&self) {
        self.lock().threads = Some(IoThreads::of_this_process());
    }

    /// The process stops and starts again: everything that was written is there, and may still be lost. All
    /// faults are cleared.
    pub fn restart(&self) {
        self.lock().begin_anew();
    }

    /// The machine stops and starts again: what was not synced is there, or not. All faults are cleared.
    pub fn crash(&self) {
        self.lock().crash();
    }

    /// A copy of it as another process would find it if those that use it were killed now: they may go on,
    /// and change nothing there.
    pub fn copy(&self) -> FaultyDisk {
        FaultyDisk(Arc::new(Mutex::new(self.lock().copy())))
    }

    /// From now on, before each operation, calls `observe` with what would be on the disk if it stopped.
    /// `observe` must not use this disk.
    pub fn at_each(&self, observe: impl FnMut(FaultyDisk) + Send + 'static) {
        self.lock().observer = Some(Box::new(observe));
    }
}

impl FaultyBackend {
    fn image<'a>(&self, disk: &'a mut Disk) -> &'a mut Image {
        disk.files.entry(self.name.clone()).or_default()
    }

    /// A copy of all bytes, as they are in memory.
    pub fn bytes(&self) -> Vec<u8> {
        self.image(&mut self.disk.lock()).now.clone()
    }

    /// Inverts bits of a byte, on the disk and in memory.
    pub fn flip(&self, offset: usize, bits: u8) {
        let mut disk = self.disk.lock();
        let image = self.image(&mut disk);
        [&mut image.now, &mut image.synced]
            .into_iter()
            .filter_map(|bytes| bytes.get_mut(offset))
            .for_each(|byte| *byte ^= bits);
    }
}

impl ReadAt for FaultyBackend {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut disk = self.disk.lock();
        disk.begin(Operation::Read)?;
        let (faults, number) = (disk.read_faults, disk.done[Operation::Read as usize]);
        let delay = faults.delay_of(number);
        if !delay.is_zero() {
            // Others read and write meanwhile.
            drop(disk);
            thread::sleep(delay);
            disk = self.disk.lock();
        }
        let now = &self.image(&mut disk).now;
        // First, so that the error does not depend on where short reads end.
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > now.len() as u64) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let bytes = faults.judge(number, offset, out.len())?;
        read_from(now, offset, &mut out[..bytes])?;
        Ok(bytes)
    }
}

impl Backend for FaultyBackend {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_whole(self, offset, out)
    }

    fn read_many(&self, reads: &mut [ReadRequest]) -> io::Result<()> {
        let threads = self.disk.lock().threads.clone();
        match threads {
            Some(threads) => threads.read_many(Arc::new(self.clone()), reads),
            None => read_in_order(reads, |offset, out| self.read(offset, out)),
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let begun = disk.begin(Operation::Write);
        disk.written += bytes.len() as u64;
        let image = self.image(&mut disk);
        if begun.is_ok() {
            write_to(&mut image.now, offset, bytes);
            image.note(offset as usize, offset as usize + bytes.len());
        } else {
            // An operation that is refused, or cut short by the stop, may have been done in part.
            let half = &bytes[..bytes.len() / 2 / SECTOR * SECTOR];
            write_to(&mut image.now, offset, half);
            image.note(offset as usize, offset as usize + half.len());
        }
        begun
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.image(&mut self.disk.lock()).now.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.begin(Operation::Write)?;
        let image = self.image(&mut disk);
        let old = image.now.len();
        image.now.resize(len as usize, 0);
        image.note(old.min(len as usize), old.max(len as usize));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let begun = disk.begin(Operation::Sync);
        let disk = &mut *disk;
        let image = disk.files.entry(self.name.clone()).or_default();
        match begun {
            Ok(()) => {
                image.keep();
            }
            // The crash settles what was on the disk if it had stopped before.
            Err(_) if disk.stop_at.is_some_and(|stop| disk.operations >= stop) => {}
            Err(_) => image.settle(&mut |bound| Disk::below(&mut disk.random, bound)),
        }
        begun
    }

    fn lock(&self, lock: Lock) -> io::Result<bool> {
        let mut disk = self.disk.lock();
        let holder = disk.locks.get(&self.name).copied();
        let is_free = !disk.excludes || holder.is_none_or(|holder| holder == self.opening.number);
        if is_free && lock == Lock::Exclusive {
            disk.locks.insert(self.name.clone(), self.opening.number);
        }
        Ok(is_free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_locked_by_one_opening() {
        let disk = FaultyDisk::new(1);
        let (one, other) = (disk.file("data"), disk.file("data"));
        assert!([&one, &other].into_iter().all(|file| file.lock(Lock::Exclusive).expect("no faults")));
        disk.restart();
        disk.exclude();
        assert!(
            one.lock(Lock::Exclusive).expect("no faults") && one.lock(Lock::Exclusive).expect("no faults")
        );
        assert!(
            !other.lock(Lock::Exclusive).expect("no faults") && !other.lock(Lock::Shared).expect("no faults")
        );
        assert!(disk.file("log").lock(Lock::Exclusive).expect("no faults"));
        let copy = one.clone();
        drop(one);
        assert!(!other.lock(Lock::Exclusive).expect("no faults"));
        drop(copy);
        assert!(other.lock(Lock::Exclusive).expect("no faults"));
    }

    #[test]
    fn what_was_synced_stays_and_the_rest_is_torn() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 1..200 {
            let disk = FaultyDisk::new(seed);
            let file = disk.file("data");
            file.write(0, &[1; 2 * SECTOR]).expect("no faults");
            file.sync().expect("no faults");
            file.write(0, &[2; 2 * SECTOR]).expect("no faults");
            file.write(SECTOR as u64, &[3; 2 * SECTOR]).expect("no faults");
            disk.crash();
            let bytes = file.bytes();
            let sectors: Vec<u8> = bytes.chunks(SECTOR).map(|sector| sector[0]).collect();
            assert!(bytes.chunks(SECTOR).all(|sector| sector.iter().all(|&byte| byte == sector[0])));
            assert!(sectors.len() >= 2 && [1, 2].contains(&sectors[0]) && (1..=3).contains(&sectors[1]));
            seen.insert(sectors);
        }
        // All possible outcomes occurred: two versions, three, and none, zeros or three.
        assert_eq!(seen.len(), 2 * 3 * 3, "{seen:?}");
    }

    #[test]
    fn it_stops_and_refuses_where_it_was_told_to() {
        let disk = FaultyDisk::new(1);
        let (one, other) = (disk.file("one"), disk.file("other"));
        disk.refuse(Operation::Write, 2, io::ErrorKind::StorageFull);
        one.write(0, b"a").expect("the first");
        assert_eq!(other.write(0, b"b").expect_err("the second").kind(), io::ErrorKind::StorageFull);
        other.write(0, b"b").expect("the third");
        disk.stop_at(disk.operations() + 2);
        one.sync().expect("one more");
        assert!(one.sync().is_err() && other.write(1, b"c").is_err());
        disk.crash();
        assert_eq!(one.bytes(), b"a");
    }

    #[test]
    fn reads_are_disturbed_by_seed() {
        let content: Vec<u8> = (0..64 * SECTOR).map(|at| (at % 251) as u8).collect();
        let disk = |seed: u64, faults: ReadFaults| {
            let disk = FaultyDisk::new(seed);
            disk.file("data").write(0, &content).expect("no faults");
            disk.disturb_reads(faults);
            disk
        };
        // The sectors that can be read, and whether all that was read is right.
        let sectors = |disk: &FaultyDisk| -> Vec<bool> {
            let (file, mut out) = (disk.file("data"), [0; SECTOR]);
            let read = |sector: usize| {
                let can = file.read((sector * SECTOR) as u64, &mut out).is_ok();
                assert!(!can || out[..] == content[sector * SECTOR..][..SECTOR]);
                can
            };
            (0..64).map(read).collect()
        };
        let mut seen = std::collections::BTreeSet::new();
        for seed in 1..20 {
            let bad = ReadFaults { seed, bad_sectors: 8, ..ReadFaults::default() };
            let found = sectors(&disk(seed, bad));
            assert!((1..24).contains(&found.iter().filter(|&&can| !can).count()), "{found:?}");
            // It does not matter how often they were read, or with which other faults.
            let shaken = ReadFaults { short: 2, delay: Duration::from_nanos(10), ..bad };
            let other = disk(seed + 1, shaken);
            let (first, second) = (sectors(&other), sectors(&other));
            assert!(first == found && second == found);
            seen.insert(found);
            // Failures that pass are others the next time, and the same on a disk of the same history.
            let failing = ReadFaults { seed, failing: 4, ..ReadFaults::default() };
            let (one, other) = (disk(seed, failing), disk(seed, failing));
            let (first, second) = (sectors(&one), sectors(&one));
            assert!(first != second && first == sectors(&other) && second == sectors(&other));
            one.restart();
            assert!(sectors(&one).iter().all(|&can| can), "faults are cleared");
        }
        assert!(seen.len() > 10, "{} kinds of disks", seen.len());
        let short = ReadFaults { seed: 1, short: 1, ..ReadFaults::default() };
        let file = disk(1, short).file("data");
        let mut out = [0; 3 * SECTOR];
        let count = file.read_at(7, &mut out).expect("no faults");
        assert!((1..out.len()).contains(&count), "{count}");
        file.read(7, &mut out).expect("the others are asked for");
        assert_eq!(out[..], content[7..7 + out.len()]);
    }

    #[test]
    fn batches_are_read_in_order_or_by_threads() {
        let disk = FaultyDisk::new(1);
        let file = disk.file("data");
        file.write(0, &[9; 4000]).expect("no faults");
        let mut reads: Vec<ReadRequest> = (0..4).rev().map(|at| ReadRequest::new(at * 1000, 1000)).collect();
        disk.refuse(Operation::Read, 3, io::ErrorKind::TimedOut);
        let error = file.read_many(&mut reads).expect_err("the third by offset");
        assert_eq!(error.to_string(), "cannot read 1000 bytes at byte 2000: timed out");
        disk.read_by_threads();
        disk.refuse(Operation::Read, 2, io::ErrorKind::TimedOut);
        file.read_many(&mut reads).expect("all at once, by the first read");
        assert!(reads.iter().all(|read| read.bytes == [9; 1000]));
    }

    #[test]
    fn a_sync_that_failed_is_not_made_good_by_the_next() {
        let mut lost = 0;
        for seed in 1..50 {
            let disk = FaultyDisk::new(seed);
            let file = disk.file("data");
            file.write(0, b"a").expect("no faults");
            disk.refuse(Operation::Sync, 1, io::ErrorKind::Other);
            assert!(file.sync().is_err());
            let mut now = [0];
            file.read(0, &mut now).expect("no faults");
            assert_eq!(&now, b"a");
            file.sync().expect("the second");
            disk.crash();
            lost += usize::from(file.bytes() != b"a");
        }
        assert!((10..49).contains(&lost), "{lost}");
    }
}
