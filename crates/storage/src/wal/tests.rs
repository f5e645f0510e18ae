//! The log by itself: frames of all lengths come back, groups form, torn tails are cut, damage is found.

use super::frame::HEADER_BYTES;
use super::segments::Segments;
use super::*;
use crate::backend::{Backend, FaultyDisk, Lock, MemoryBackend, Operation};
use crate::file::{DatabaseId, State};
use crate::tests::random::Random;
use entasis_vector::{ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ID: DatabaseId = DatabaseId(*b"0123456789abcdef");

fn segment() -> SegmentBytes {
    SegmentBytes::new(1024).expect("two sectors")
}

fn commit(log: &Log, records: &[u8]) -> Result<u64> {
    let end = log.append(&log.frame(Kind::Commit, 0, records)?)?;
    log.wait(end, Synchronous::Full)?;
    Ok(end)
}

fn reader(backend: &(impl Backend + Clone + 'static), position: u64) -> Result<LogReader> {
    LogReader::open(Arc::new(backend.clone()), ID, segment(), position, State::Open)
}

/// All records from a position on, and the end.
fn replay(backend: &(impl Backend + Clone + 'static), position: u64) -> Result<(Vec<Vec<u8>>, Tail)> {
    let (mut reader, mut all) = (reader(backend, position)?, Vec::new());
    while let Some(commit) = reader.next_commit()? {
        all.push(commit.records);
    }
    Ok((all, reader.end()?))
}

fn records(random: &mut Random) -> Vec<u8> {
    let most = if random.below(8) == 0 { 3000 } else { 90 };
    (0..random.below(most)).map(|_| random.next() as u8).collect()
}

#[test]
fn records_of_all_lengths_come_back_over_many_openings() {
    for seed in 1..10 {
        let (mut random, backend) = (Random(seed), MemoryBackend::new("log"));
        let mut log = Log::create(Arc::new(backend.clone()), ID, segment()).expect("no faults");
        // Commits with the position after each, and where a checkpoint was.
        let (mut all, mut cut) = (Vec::<(u64, Vec<u8>)>::new(), 0);
        for _ in 0..300 {
            match random.below(20) {
                0 => {
                    let (_, tail) = replay(&backend, cut).expect("it is whole");
                    assert_eq!(tail.position(), log.position());
                    log = Log::resume(Arc::new(backend.clone()), tail).expect("no faults");
                }
                1 => {
                    cut = log.position();
                    log.cut(cut).expect("no faults");
                    all.clear();
                }
                _ => {
                    let records = records(&mut random);
                    all.push((commit(&log, &records).expect("no faults"), records));
                }
            }
            let (found, tail) = replay(&backend, cut).expect("it is whole");
            assert!(found.iter().eq(all.iter().map(|(_, records)| records)));
            assert_eq!(tail.position(), log.position());
        }
        assert!(log.position() > 20_000);
        assert!(log.size() < 60_000, "{}", log.size());
    }
}

/// Pieces that are read ahead end where segments end, and frames do not.
#[test]
fn a_log_that_is_read_ahead_has_the_same_commits() {
    for seed in 1..10 {
        let (mut random, backend) = (Random(seed), MemoryBackend::new("log"));
        let log = Log::create(Arc::new(backend.clone()), ID, segment()).expect("no faults");
        let mut cut = 0;
        for _ in 0..100 {
            commit(&log, &records(&mut random)).expect("no faults");
            if random.below(30) == 0 {
                cut = log.position();
                log.cut(cut).expect("no faults");
            }
        }
        let [mut one, mut other] = [0; 2].map(|_| reader(&backend, cut).expect("it is whole"));
        other.read_ahead();
        loop {
            let next = one.next_commit().expect("no faults");
            assert_eq!(next, other.next_commit().expect("no faults"));
            if next.is_none() {
                break;
            }
        }
        assert_eq!(
            [one, other].map(|reader| reader.end().expect("it is whole").position()),
            [log.position(); 2]
        );
    }
}

#[test]
fn parts_count_with_their_commit() {
    let backend = MemoryBackend::new("log");
    let log = Log::create(Arc::new(backend.clone()), ID, segment()).expect("no faults");
    let (one, other) = (log.transaction(), log.transaction());
    let put = |kind, transaction, records: &[u8]| {
        log.append(&log.frame(kind, transaction, records).expect("it is short")).expect("no faults")
    };
    put(Kind::Part, one, b"a");
    put(Kind::Part, other, b"x");
    put(Kind::Commit, 0, b"between");
    put(Kind::Part, one, b"b");
    put(Kind::Commit, one, b"c");
    let end = put(Kind::Part, other, b"y");
    log.wait(end, Synchronous::Full).expect("no faults");
    let (found, tail) = replay(&backend, 0).expect("it is whole");
    assert_eq!(found, [&b"between"[..], b"abc"]);
    // Leftovers of a transaction are no damage, and do not claim what follows.
    let log = Log::resume(Arc::new(backend.clone()), tail).expect("no faults");
    assert!(log.transaction() > other);
    commit(&log, b"next").expect("no faults");
    assert_eq!(replay(&backend, 0).expect("it is whole").0, [&b"between"[..], b"abc", b"next"]);
    assert_eq!(
        log.frame(Kind::Commit, 0, &vec![0; MAX_FRAME]).expect_err("it is long").kind(),
        ErrorKind::Resource
    );
}

/// A disk whose syncs take a while and are counted.
#[derive(Debug, Clone)]
struct SlowBackend(MemoryBackend, Arc<AtomicU64>);

impl Backend for SlowBackend {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read(offset, out)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write(offset, bytes)
    }
    fn length(&self) -> std::io::Result<u64> {
        self.0.length()
    }
    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }
    fn sync(&self) -> std::io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_micros(300));
        Ok(())
    }
    fn lock(&self, _: Lock) -> std::io::Result<bool> {
        Ok(true)
    }
}

#[test]
fn commits_of_many_threads_share_syncs() {
    let backend = SlowBackend(MemoryBackend::new("log"), Arc::default());
    let log = Log::create(Arc::new(backend.clone()), ID, segment()).expect("no faults");
    const THREADS: u64 = 8;
    const EACH: u64 = 50;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                for number in 0..EACH {
                    commit(log, &[thread as u8, number as u8]).expect("no faults");
                }
            });
        }
    });
    let syncs = backend.1.load(Ordering::Relaxed);
    assert!(syncs < THREADS * EACH / 2, "{syncs} syncs");
    let (found, _) = replay(&backend, 0).expect("it is whole");
    assert_eq!(found.len() as u64, THREADS * EACH);
    for thread in 0..THREADS {
        let own =
            found.iter().filter(|records| records[0] == thread as u8).map(|records| u64::from(records[1]));
        assert!(own.eq(0..EACH));
    }
}

#[test]
fn what_is_waited_for_is_what_was_asked_for() {
    for (synchronous, after_kill, after_crash) in
        [(Synchronous::Full, 1, 1), (Synchronous::Normal, 1, 0), (Synchronous::Off, 0, 0)]
    {
        let mut fewest = [usize::MAX; 2];
        for seed in 1..40 {
            for crashes in [false, true] {
                let disk = FaultyDisk::new(seed);
                let log = Log::create(Arc::new(disk.file("log")), ID, segment()).expect("no faults");
                let end = log
                    .append(&log.frame(Kind::Commit, 0, b"records").expect("it is short"))
                    .expect("no faults");
                log.wait(end, synchronous).expect("no faults");
                if crashes {
                    disk.crash()
                } else {
                    disk.restart()
                }
                let (found, _) = replay(&disk.file("log"), 0).expect("a torn tail at most");
                let fewest = &mut fewest[usize::from(crashes)];
                *fewest = found.len().min(*fewest);
            }
        }
        assert_eq!(fewest, [after_kill, after_crash], "{synchronous:?}");
    }
    // Large amounts are written even if nobody waits for them.
    let backend = MemoryBackend::new("log");
    let log = Log::create(Arc::new(backend.clone()), ID, segment()).expect("no faults");
    for _ in 0..2 {
        let end =
            log.append(&log.frame(Kind::Commit, 0, &[1; 700_000]).expect("it is short")).expect("no faults");
        log.wait(end, Synchronous::Off).expect("no faults");
    }
    assert_eq!(replay(&backend, 0).expect("it is whole").0.len(), 2);
}

#[test]
fn after_a_failed_write_or_sync_all_is_refused() {
    for operation in [Operation::Write, Operation::Sync] {
        let disk = FaultyDisk::new(3);
        let log = Log::create(Arc::new(disk.file("log")), ID, segment()).expect("no faults");
        commit(&log, b"safe").expect("no faults");
        disk.refuse(operation, 1, std::io::ErrorKind::StorageFull);
        assert_eq!(commit(&log, b"refused").expect_err("it is refused").kind(), ErrorKind::Io);
        let operations = disk.operations();
        let error = commit(&log, b"more").expect_err("all is refused");
        assert!(error.message().contains("open the database again"), "{error}");
        assert!(log.close().is_err());
        assert_eq!(disk.operations(), operations);
        disk.crash();
        let (found, tail) = replay(&disk.file("log"), 0).expect("a torn tail at most");
        assert_eq!(found[0], b"safe");
        let log = Log::resume(Arc::new(disk.file("log")), tail).expect("the fault is over");
        commit(&log, b"again").expect("the fault is over");
    }
}

/// A closed log of some commits, with their ends; each was synced by itself.
fn example(close: bool) -> (MemoryBackend, Vec<Vec<u8>>, Vec<u64>) {
    let (backend, mut random) = (MemoryBackend::new("example.wal"), Random(9));
    let log = Log::create(Arc::new(backend.clone()), ID, segment()).expect("no faults");
    let all: Vec<Vec<u8>> =
        (0..12).map(|number| records(&mut random)[..].iter().copied().chain([number]).collect()).collect();
    let ends = all.iter().map(|records| commit(&log, records).expect("no faults")).collect();
    if close {
        log.close().expect("no faults");
    }
    (backend, all, ends)
}

#[test]
fn every_byte_of_a_closed_log_is_watched() {
    let (backend, all, _) = example(true);
    let bytes = backend.bytes();
    let whole = replay(&backend, 0).expect("it is whole");
    assert!(whole.0 == all && whole.1.is_closed());
    let mut found = 0;
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        match replay(&MemoryBackend::of("flipped", bytes), 0) {
            // Padding, or the frame that says that it was closed.
            Ok((found, _)) => assert_eq!(found, all, "byte {at}"),
            Err(error) => {
                found += 1;
                assert!(
                    matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotSupported),
                    "byte {at}: {error}"
                );
            }
        }
    }
    assert!(found > all.iter().map(|records| records.len() + HEADER_BYTES).sum::<usize>(), "{found}");
}

#[test]
fn a_log_that_was_not_closed_loses_its_last_group_at_most() {
    let (backend, all, ends) = example(false);
    let bytes = backend.bytes();
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        if let Ok((found, tail)) = replay(&MemoryBackend::of("flipped", bytes), 0) {
            let last = all.len() - 1;
            assert!(found == all || (found == all[..last] && tail.position() == ends[last - 1]), "byte {at}");
        }
    }
}

#[test]
fn what_is_left_of_a_log_that_was_cut_is_a_beginning_of_it() {
    let (backend, all, _) = example(false);
    let bytes = backend.bytes();
    for length in (0..bytes.len()).rev().step_by(7) {
        let cut = MemoryBackend::of("cut", bytes[..length].to_vec());
        match replay(&cut, 0) {
            Ok((found, _)) => assert!(all.starts_with(&found), "{length}"),
            // What is too short for its header cannot be told from the file of another program.
            Err(error) if error.kind() == ErrorKind::Input => {
                assert!(length < 512 && error.message().ends_with("is not a log"), "{error}");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{length}: {error}"),
        }
    }
}

#[test]
fn random_bytes_are_no_log() {
    let mut random = Random(77);
    for length in 0..300 {
        let mut bytes: Vec<u8> = (0..length * 20).map(|_| random.next() as u8).collect();
        // Half of them begin like segments.
        if length % 2 == 0 && bytes.len() > 1024 {
            let (backend, ..) = example(true);
            bytes[..200].copy_from_slice(&backend.bytes()[..200]);
        }
        let backend = MemoryBackend::of("random", bytes);
        let reader = LogReader::open(Arc::new(backend), ID, segment(), 0, State::Closed);
        match reader.and_then(LogReader::end) {
            Ok(tail) => assert_eq!(tail.position(), 0),
            Err(error) => assert!(error.message().ends_with("is not a log"), "{error}"),
        }
    }
}

#[test]
fn logs_that_do_not_fit_are_refused() {
    let (backend, ..) = example(true);
    let open = |id, position, state| {
        LogReader::open(Arc::new(backend.clone()), id, segment(), position, state)
            .map(|_| ())
            .map_err(|e| e.message().to_owned())
    };
    let other = DatabaseId(*b"fedcba9876543210");
    assert_eq!(open(other, 0, State::Open), Err("example.wal is the log of another database".to_owned()));
    let late = open(ID, 1 << 30, State::Open).expect_err("it is older");
    assert!(late.contains("does not have position 1073741824"), "{late}");
    assert_eq!(open(ID, 1 << 30, State::Closed), Ok(()));
    let missing = reader(&MemoryBackend::new("missing.wal"), 512).map(|_| ()).expect_err("it is missing");
    assert_eq!(missing.kind(), ErrorKind::Corruption);
}

#[test]
fn left_overs_of_a_crash_are_not_taken_for_news() {
    // Two frames are written, and the first one is lost. Then one of the same length is written in its place.
    let backend = MemoryBackend::new("log");
    let log = Log::create(Arc::new(backend.clone()), ID, segment()).expect("no faults");
    let end = commit(&log, b"safe").expect("no faults");
    let before = backend.bytes();
    for records in [b"lost", b"left"] {
        let end = log.append(&log.frame(Kind::Commit, 0, records).expect("it is short")).expect("no faults");
        log.wait(end, Synchronous::Normal).expect("no faults");
    }
    let (from, to) = (512 + end as usize, 512 + end as usize + 64);
    backend.write(from as u64, &before[from..to]).expect("no faults");
    let (found, tail) = replay(&backend, 0).expect("a torn tail");
    assert_eq!(found, [b"safe"]);
    let log = Log::resume(Arc::new(backend.clone()), tail).expect("no faults");
    commit(&log, b"news").expect("no faults");
    assert_eq!(replay(&backend, 0).expect("it is whole").0, [b"safe", b"news"]);
}

/// Numbers whose sums overflow are damage, though their checksums are right.
#[test]
fn positions_that_no_log_reaches_are_damage() {
    let backend = MemoryBackend::new("log");
    let mut segments = Segments::none(ID, segment());
    segments.begin(&backend, u64::MAX - 1).expect("no faults");
    let forged = reader(&backend, 0).expect_err("no log has so many segments");
    let late = reader(&MemoryBackend::new("log"), u64::MAX - 7).expect_err("no log is so long");
    assert_eq!((forged.kind(), late.kind()), (ErrorKind::Corruption, ErrorKind::Corruption));
}

#[test]
fn a_log_is_read_while_it_is_written() {
    for seed in 1..10 {
        let (mut random, backend) = (Random(seed), MemoryBackend::new("log"));
        let mut log = Log::create(Arc::new(backend.clone()), ID, segment()).expect("no faults");
        let mut beside = reader(&backend, 0).expect("it is there");
        let mut left = Vec::new();
        for _ in 0..400 {
            match random.below(12) {
                // Only segments that were read may be reused.
                0 => log.cut(beside.position()).expect("no faults"),
                1 => {
                    let (_, tail) = replay(&backend, beside.position()).expect("it is whole");
                    log = Log::resume(Arc::new(backend.clone()), tail).expect("no faults");
                }
                2..5 => {
                    for records in left.drain(..) {
                        let found = beside.next_commit_beside().expect("no faults").expect("it is there");
                        assert_eq!(found.records, records);
                    }
                    assert_eq!(beside.next_commit_beside().expect("no faults"), None);
                    assert_eq!(beside.position(), log.position());
                }
                _ => {
                    let records = records(&mut random);
                    commit(&log, &records).expect("no faults");
                    left.push(records);
                }
            }
        }
        assert!(!beside.has_lost_track());
    }
}

#[test]
fn what_a_disk_has_lost_is_not_gone_on_with() {
    let backend = MemoryBackend::new("log");
    let log = Log::create(Arc::new(backend.clone()), ID, segment()).expect("no faults");
    let end = commit(&log, b"safe").expect("no faults");
    let before = backend.bytes();
    commit(&log, b"lost").expect("no faults");
    let mut beside = reader(&backend, 0).expect("it is there");
    while beside.next_commit_beside().expect("no faults").is_some() {}
    // The second one was read, and is missing when the log is opened again.
    let (from, to) = (512 + end as usize, 512 + end as usize + 64);
    backend.write(from as u64, &before[from..to]).expect("no faults");
    let (_, tail) = replay(&backend, 0).expect("a torn tail");
    let log = Log::resume(Arc::new(backend.clone()), tail).expect("no faults");
    commit(&log, b"news").expect("no faults");
    commit(&log, b"more").expect("no faults");
    assert_eq!(beside.next_commit_beside().expect("no faults"), None);
    assert!(beside.has_lost_track());
}

/// What is written again at an opening is the tail of which nothing says that it was synced, however long the
/// log is.
#[test]
fn an_opening_writes_again_what_may_be_in_the_cache_only() {
    // A frame, headers of the segments around it, a segment that is begun, and the last sector.
    let most = (HEADER_BYTES + 112 + 3 * HEADER_BYTES + 1024 + 512) as u64;
    for commits in [1, 10, 100, 500] {
        let disk = FaultyDisk::new(commits);
        let log = Log::create(Arc::new(disk.file("log")), ID, segment()).expect("no faults");
        (0..commits).for_each(|_| _ = commit(&log, &[7; 100]).expect("no faults"));
        drop(log);
        let (found, tail) = replay(&disk.file("log"), 0).expect("no faults");
        assert_eq!(found.len() as u64, commits);
        let before = disk.written();
        Log::resume(Arc::new(disk.file("log")), tail).expect("no faults");
        let again = disk.written() - before;
        assert!((HEADER_BYTES as u64..=most).contains(&again), "{again} bytes of a log of {commits} commits");
    }
}

/// A commit whose sync failed is read from the cache by the next opening. What is acknowledged behind it
/// needs it.
#[test]
fn what_a_failed_sync_has_left_in_the_cache_is_on_the_disk_before_the_log_goes_on() {
    for seed in 1..60 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let log = Log::create(Arc::new(disk.file("log")), ID, segment()).expect("no faults");
        let mut all: Vec<Vec<u8>> = Vec::new();
        for _ in 0..random.below(12) {
            all.push(records(&mut random));
            commit(&log, all.last().expect("one")).expect("no faults");
        }
        disk.refuse(Operation::Sync, 1, std::io::ErrorKind::Other);
        all.push(records(&mut random));
        assert!(commit(&log, all.last().expect("one")).is_err());
        drop(log);
        disk.restart();
        let (found, tail) = replay(&disk.file("log"), 0).expect("the cache has it");
        assert_eq!(found, all, "seed {seed}");
        let log = Log::resume(Arc::new(disk.file("log")), tail).expect("no faults");
        for _ in 0..1 + random.below(3) {
            all.push(records(&mut random));
            commit(&log, all.last().expect("one")).expect("no faults");
        }
        disk.crash();
        let (found, _) = replay(&disk.file("log"), 0).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(found, all, "seed {seed}");
    }
}
