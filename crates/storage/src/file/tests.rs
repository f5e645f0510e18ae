//! Checkpoints of a data file by itself: committed states are kept, pages given up are reused, damage is
//! found.

use super::*;
use crate::backend::{FaultyDisk, MemoryBackend, Operation};
use crate::tests::random::Random;
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

const ID: DatabaseId = DatabaseId(*b"0123456789abcdef");

fn contents(tables: Extent, log_position: u64) -> Contents {
    let mut roots = [Extent::default(); ROOTS];
    roots[Root::Tables as usize] = tables;
    Contents { roots, log_position, state: State::Open }
}

fn tables(file: &DataFile) -> Extent {
    file.header().roots[Root::Tables as usize]
}

fn open(backend: &MemoryBackend) -> Result<DataFile> {
    DataFile::open(Arc::new(backend.clone()), Access::Write)
}

/// A file with one payload.
fn example(payload: &[u8]) -> MemoryBackend {
    let backend = MemoryBackend::new("example.entasis");
    let file = DataFile::create(Arc::new(backend.clone()), ID, 4096).expect("no faults");
    let extent = file.write(payload).expect("no faults");
    file.commit(contents(extent, 7)).expect("no faults");
    backend
}

#[test]
fn what_was_committed_is_there_when_it_is_opened() {
    let backend = example(b"rows");
    let file = open(&backend).expect("it is whole");
    assert_eq!(file.read(tables(&file)).expect("it is whole"), b"rows");
    let header = file.header();
    assert_eq!((header.number, header.log_position, header.segment_bytes, file.id()), (3, 7, 4096, ID));
    // It was never committed.
    file.write(b"lost").expect("no faults");
    drop(file);
    assert_eq!(open(&backend).expect("it is whole").header(), header);
}

#[test]
fn pages_are_used_again_and_a_free_tail_is_cut() {
    let backend = MemoryBackend::new("example.entasis");
    let file = DataFile::create(Arc::new(backend.clone()), ID, 4096).expect("no faults");
    let (mut random, mut live, mut most) = (Random(5), Vec::<(Extent, Vec<u8>)>::new(), 0);
    for round in 0..300 {
        for _ in 0..random.below(4) {
            let payload: Vec<u8> = (0..random.below(20_000)).map(|_| random.next() as u8).collect();
            live.push((file.write(&payload).expect("no faults"), payload));
        }
        while live.len() > if round % 50 == 49 { 0 } else { 6 } {
            file.give_up(live.swap_remove(random.below(live.len() as u64) as usize).0);
        }
        file.commit(contents(Extent::default(), round)).expect("no faults");
        let file = open(&backend).expect("it is whole");
        for (extent, payload) in &live {
            assert_eq!(&file.read(*extent).expect("it is whole"), payload);
        }
        let (pages, free) = file.size();
        assert_eq!(pages * PAGE, backend.length().expect("no faults"));
        // Each page is free, or belongs to an extent or to the map.
        let used: u64 = live.iter().map(|(extent, _)| Run::of(*extent).pages).sum();
        let map = Run::of(file.header().roots[Root::FreeSpace as usize]).pages;
        assert_eq!(header::FIRST_PAGE + used + free + map, pages, "round {round}");
        most = most.max(pages);
    }
    assert!(most < 80, "{most} pages");
}

#[test]
fn what_is_given_up_stays_until_the_next_state_is_there() {
    let backend = example(b"old");
    let file = open(&backend).expect("it is whole");
    let old = tables(&file);
    file.give_up(old);
    let new = file.write(b"new").expect("no faults");
    assert_ne!(old.offset, new.offset);
    assert_eq!(file.read(old).expect("it is still there"), b"old");
    file.commit(contents(new, 8)).expect("no faults");
    // Its pages, or those of its map, are the first ones now.
    let next = file.write(b"next").expect("no faults");
    assert!(next.offset <= old.offset);
}

#[test]
fn extents_of_the_log_are_claimed() {
    let backend = example(b"rows");
    let file = open(&backend).expect("it is whole");
    let loaded = file.write(b"loaded").expect("no faults");
    file.sync().expect("no faults");
    drop(file);
    let file = open(&backend).expect("it is whole");
    file.claim(loaded).expect("it is free");
    file.claim(loaded).expect("it is taken already");
    let half_free = Extent { bytes: loaded.bytes + PAGE, ..loaded };
    file.claim(half_free).expect_err("its second page is behind the end, and free");
    assert_ne!(file.write(b"other").expect("no faults").offset, loaded.offset);
    assert_eq!(file.read(loaded).expect("it is whole"), b"loaded");
}

#[test]
fn what_is_written_ahead_is_free_in_the_map_of_others() {
    let backend = example(b"rows");
    let file = open(&backend).expect("it is whole");
    let all = |file: &DataFile, extents: &[Extent]| {
        let found = file.damage(&file.header(), extents, &mut |_| Ok(())).expect("it goes on");
        assert!(found.is_empty(), "{found:?}");
    };
    let rows = tables(&file);
    let ahead = [b"first", b"other"].map(|bytes| file.write_ahead(bytes).expect("no faults"));
    file.commit(contents(rows, 8)).expect("no faults");
    all(&file, &[rows]);
    let next = file.write(b"next").expect("no faults");
    assert!(ahead.iter().all(|own| own.offset != next.offset), "they are taken all the same");
    // One is reached by the next state, the other one by nobody.
    file.take_back(ahead[1]);
    file.reach([ahead[0]].into_iter());
    file.give_up(rows);
    file.give_up(next);
    file.commit(contents(ahead[0], 9)).expect("no faults");
    all(&file, &[ahead[0]]);
    assert!(file.has(ahead[0].offset, b"first").expect("no faults"));
    assert!(!file.has(ahead[0].offset, b"fisrt").expect("no faults"));
    assert_eq!(
        file.write(b"last").expect("no faults").offset.min(ahead[1].offset),
        ahead[1].offset.min(rows.offset)
    );
}

impl DataFile {
    /// The slow twin of the trust in the map: each page is of one extent, or of the map, or free. `reached`
    /// are the extents of the state and of the log behind it.
    pub(crate) fn assert_each_page_is_of_one(&self, reached: &[Extent]) {
        assert_eq!(self.misused(reached), []);
        let map = self.header().roots[Root::FreeSpace as usize];
        let pages = lock(&self.pages);
        let mut owners = vec![0_u32; pages.space.end() as usize];
        let mut own = |run: Run| (run.start..run.end()).for_each(|page| owners[page as usize] += 1);
        reached.iter().chain([&map]).for_each(|extent| own(Run::of(*extent)));
        let is_reached = |start: u64| reached.iter().any(|extent| Run::of(*extent).start == start);
        let ahead = pages.ahead.iter().filter(|(start, _)| !is_reached(**start));
        ahead.for_each(|(&start, &pages)| own(Run { start, pages }));
        pages.given_up.iter().for_each(|run| own(*run));
        pages.space.free_runs().for_each(own);
        let wrong = owners.iter().skip(header::FIRST_PAGE as usize).position(|count| *count != 1);
        assert!(wrong.is_none(), "page {wrong:?} behind the headers is not of one");
    }
}

/// Writes ahead, states and crashes at random: what the log names is claimed at each opening, and then the
/// map that was read is what a walk over all extents would make.
#[test]
fn the_map_that_was_read_is_what_a_walk_would_make() {
    let (mut openings, mut claims) = (0, 0);
    for seed in 1..120 {
        let (disk, random) = (FaultyDisk::new(seed), &mut Random(seed * 0x9E37_79B9));
        drop(DataFile::create(Arc::new(disk.file("data")), ID, 4096).expect("no faults"));
        // For each state that may be the newest one: its number, its extents, and those of the log behind it.
        let mut states: Vec<(u64, Vec<Extent>, Vec<Extent>)> = vec![(2, Vec::new(), Vec::new())];
        for _ in 0..6 {
            let file = DataFile::open(Arc::new(disk.file("data")), Access::Write).expect("it is whole");
            let number = file.header().number;
            let found = states.iter().find(|state| state.0 == number);
            let (_, mut state, mut logged) = found.expect("it is one of both").clone();
            for extent in &logged {
                file.claim(*extent).expect("they are free");
            }
            file.assert_each_page_is_of_one(&[&state[..], &logged[..]].concat());
            (openings, claims) = (openings + 1, claims + logged.len());
            states = vec![(number, state.clone(), logged.clone())];
            disk.stop_at(disk.operations() + 1 + random.below(40));
            // Ahead of a commit that has not happened.
            let mut waiting: Vec<Extent> = Vec::new();
            let mut step = || -> Result<()> {
                let payload = vec![random.next() as u8; 1 + random.below(20_000) as usize];
                match random.below(8) {
                    0..3 => waiting.push(file.write_ahead(&payload)?),
                    3 if !waiting.is_empty() => {
                        file.take_back(waiting.swap_remove(random.below(waiting.len() as u64) as usize));
                    }
                    4 if !waiting.is_empty() => {
                        // A commit syncs what its record names.
                        file.sync()?;
                        logged.push(waiting.swap_remove(0));
                        states.last_mut().expect("one").2.clone_from(&logged);
                    }
                    5 => {
                        // A checkpoint that fails before it ends.
                        let extent = file.write(&payload)?;
                        file.give_up(extent);
                    }
                    6 => {
                        let mut next = vec![file.write(&payload)?];
                        let mut gone = Vec::new();
                        for extent in state.drain(..).chain(logged.drain(..)) {
                            if random.below(3) > 0 { next.push(extent) } else { gone.push(extent) }
                        }
                        file.reach(next.iter().copied());
                        gone.into_iter().for_each(|extent| file.give_up(extent));
                        state = next;
                        let number = states.last().expect("one").0 + 1;
                        states.push((number, state.clone(), Vec::new()));
                        file.commit(contents(Extent::default(), number))?;
                        states.remove(0);
                    }
                    _ => {}
                }
                file.assert_each_page_is_of_one(&[&state[..], &logged[..]].concat());
                Ok(())
            };
            // A disk that stops does so at the next operation, if there is one.
            (0..400).try_for_each(|_| step()).expect_err("the disk stops");
            drop(file);
            if random.below(2) == 0 { disk.restart() } else { disk.crash() }
        }
    }
    assert!(openings > 500 && claims > 100, "{openings} openings, {claims} claims");
}

/// What is wrong by the file itself, and by what is in memory of it.
fn told(file: &DataFile, reached: &[Extent]) -> Vec<String> {
    let found = file.damage(&file.header(), reached, &mut |_| Ok(())).expect("it goes on");
    assert_eq!(found, file.misused(reached));
    found.into_iter().map(|damage| damage.what).collect()
}

#[test]
fn a_map_that_misses_an_extent_is_told() {
    let backend = example(&[7; 5000]);
    let file = open(&backend).expect("it is whole");
    let rows = tables(&file);
    assert_eq!(told(&file, &[rows]), [""; 0]);
    let more = file.write(b"so that the rows are not the end of the file").expect("no faults");
    // The next state reaches it all the same.
    file.give_up(rows);
    file.commit(contents(rows, 8)).expect("no faults");
    drop(file);
    let file = open(&backend).expect("opening trusts the map");
    assert_eq!(told(&file, &[rows, more]), ["2 pages are of an extent, and free"]);
    assert_eq!(file.reclaim(&[rows, more]), 0);
}

#[test]
fn pages_that_nobody_has_are_told_and_reclaimed() {
    let backend = example(&[7; 5000]);
    let file = open(&backend).expect("it is whole");
    let rows = tables(&file);
    file.write(&[1; 9000]).expect("no faults");
    file.commit(contents(rows, 8)).expect("no faults");
    drop(file);
    let file = open(&backend).expect("opening trusts the map");
    assert_eq!(told(&file, &[rows]), ["3 pages are neither in use nor free"]);
    // What a commit is going to name is somebody's.
    let ahead = file.write_ahead(&[2; 5000]).expect("no faults");
    assert_eq!((file.reclaim(&[rows]), file.reclaim(&[rows])), (3, 0));
    file.assert_each_page_is_of_one(&[rows]);
    file.take_back(ahead);
    file.commit(contents(rows, 9)).expect("no faults");
    assert_eq!(told(&file, &[rows]), [""; 0]);
    file.assert_each_page_is_of_one(&[rows]);
    assert_eq!(file.size(), (6, 0));
}

#[test]
fn what_is_given_up_twice_is_a_bug_and_not_a_damaged_file() {
    let backend = example(b"rows");
    let file = open(&backend).expect("it is whole");
    let extent = tables(&file);
    file.give_up(extent);
    file.give_up(extent);
    assert_eq!(file.commit(contents(Extent::default(), 8)).expect_err("twice").kind(), ErrorKind::Internal);
    assert_eq!(open(&backend).expect("it is whole").header().log_position, 7);
}

#[test]
fn every_byte_that_means_something_is_watched() {
    let backend = example(&[7; 5000]);
    let bytes = backend.bytes();
    let file = open(&backend).expect("it is whole");
    let (newest, extent) = (file.header(), tables(&file));
    let is_old = |file: &DataFile| file.header().number == newest.number - 1;
    for at in 0..bytes.len() {
        for bit in [1, 0x80] {
            let mut bytes = bytes.clone();
            bytes[at] ^= bit;
            let result = open(&MemoryBackend::of("flipped", bytes)).and_then(|file| match is_old(&file) {
                // The older state; the caller will find that the log begins too late for it.
                true => Err(Error::internal("old")),
                false => Ok((file.header(), file.read(extent)?)),
            });
            match result {
                Ok((header, payload)) => assert!(header == newest && payload == [7; 5000], "byte {at}"),
                Err(error) => assert_ne!(error.kind(), ErrorKind::Io, "byte {at}: {error}"),
            }
        }
    }
}

#[test]
fn damage_says_where() {
    let backend = example(b"rows");
    let mut bytes = backend.bytes();
    let extent = tables(&open(&backend).expect("it is whole"));
    bytes[extent.offset as usize + 2] ^= 4;
    let file = open(&MemoryBackend::of("damaged.entasis", bytes.clone())).expect("its headers are whole");
    let error = file.read(extent).expect_err("it is damaged");
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let message = "damaged.entasis is damaged at byte 12288: the checksum of an extent of 4 bytes is wrong";
    assert_eq!(error.message(), message);
    let huge = Extent { bytes: u64::MAX / 2, ..extent };
    assert_eq!(file.read(huge).expect_err("it is too long").kind(), ErrorKind::Corruption);
    bytes.truncate(bytes.len() - 1);
    let error = open(&MemoryBackend::of("short.entasis", bytes)).expect_err("it is cut");
    assert_eq!(error.message(), "short.entasis is damaged at byte 8192: the file is shorter than it says");
}

#[test]
fn other_files_and_newer_ones_are_refused() {
    let refusal =
        |bytes: Vec<u8>| open(&MemoryBackend::of("f", bytes)).expect_err("it is none").message().to_owned();
    assert_eq!(refusal(Vec::new()), "f is not an Entasis database");
    assert_eq!(refusal(b"PAR1".repeat(5000)), "f is not an Entasis database");
    let mut bytes = example(b"rows").bytes();
    bytes[8] = 9;
    assert_eq!(
        refusal(bytes),
        "f was written by a newer version of Entasis (format 9; this one reads up to 1)"
    );
    // An unknown bit of each kind.
    for (is_required, message) in [(true, "cannot read (bits 0x4)"), (false, "cannot write (bits 0x4)")] {
        let backend = example(b"rows");
        let header = open(&backend).expect("it is whole").header();
        let (required, optional) = if is_required { (4, 0) } else { (0, 4) };
        let header = Header { required, optional, ..header };
        backend.write(header.offset(), &header.bytes(ID)).expect("no faults");
        let message = format!("f has features that this version of Entasis {message}");
        assert_eq!(refusal(backend.bytes()), message);
        assert_eq!(DataFile::open(Arc::new(backend), Access::Read).is_ok(), !is_required);
    }
}

#[test]
fn who_only_reads_writes_nothing() {
    let backend = example(b"rows");
    let bytes = backend.bytes();
    let file = DataFile::open(Arc::new(backend.clone()), Access::Read).expect("it is whole");
    assert!(file.write(b"more").is_err() && file.sync().is_err());
    assert!(file.commit(contents(Extent::default(), 9)).is_err());
    assert_eq!(backend.bytes(), bytes);
}

#[test]
fn after_an_error_nothing_is_written() {
    for operation in [Operation::Write, Operation::Sync] {
        for number in 1.. {
            let disk = FaultyDisk::new(number);
            let file = DataFile::create(Arc::new(disk.file("data")), ID, 4096).expect("no faults");
            disk.refuse(operation, number, io::ErrorKind::StorageFull);
            let done = file.write(b"rows").and_then(|extent| file.commit(contents(extent, 7)));
            if done.is_ok() {
                assert!(number > 2);
                break;
            }
            assert_eq!(done.expect_err("it is refused").kind(), ErrorKind::Io);
            let operations = disk.operations();
            assert!(file.write(b"more").is_err() && file.sync().is_err());
            assert!(file.commit(contents(Extent::default(), 8)).is_err());
            assert_eq!(disk.operations(), operations);
            disk.crash();
            // Each of the two states is whole.
            let file =
                DataFile::open(Arc::new(disk.file("data")), Access::Write).expect("one state is whole");
            match file.header().number {
                2 => {}
                _ => assert_eq!(file.read(tables(&file)).expect("it was synced before the header"), b"rows"),
            }
        }
    }
}

/// The example of `another_process_is_named`: holds the file until its input ends.
#[test]
fn holds_a_file_if_asked_to() {
    let Ok(path) = std::env::var("ENTASIS_TEST_HOLDS") else { return };
    let backend = crate::backend::FileBackend::open(path.as_ref(), true).expect("a file for the test");
    let _file = DataFile::open(Arc::new(backend), Access::Write).expect("nobody has it");
    println!("holds");
    _ = io::Read::read(&mut io::stdin(), &mut [0]);
}

#[test]
fn another_process_is_named_and_its_lock_ends_with_it() {
    use std::io::BufRead;
    use std::process::{Command, Stdio};
    let directory = std::env::temp_dir().join(format!("entasis-owner-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for the test");
    let path = directory.join("data.entasis");
    let made = crate::backend::create_file(&path, |backend| backend.write(0, &example(b"rows").bytes()));
    drop(made.expect("nothing fails"));
    let mut other = Command::new(std::env::current_exe().expect("a test has one"))
        .args(["file::tests::holds_a_file_if_asked_to", "--exact", "--nocapture"])
        .env("ENTASIS_TEST_HOLDS", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test once more");
    let lines = io::BufReader::new(other.stdout.take().expect("it is piped")).lines();
    assert!(lines.map_while(|line| line.ok()).any(|line| line.contains("holds")));
    let open = |access| {
        let backend = crate::backend::FileBackend::open(&path, access == Access::Write).expect("it is there");
        DataFile::open(Arc::new(backend), access)
    };
    let error = open(Access::Write).expect_err("the other one has it");
    assert_eq!(error.message(), format!("{} is in use by process {}", path.display(), other.id()));
    open(Access::Read).expect("who only reads keeps nobody waiting, and waits for nobody");
    other.kill().expect("it is a process of this test");
    other.wait().expect("it is a process of this test");
    let (one, another) =
        (open(Access::Read).expect("it is free"), open(Access::Read).expect("readers share it"));
    drop((one, another));
    open(Access::Write).expect("it is free");
    std::fs::remove_dir_all(&directory).expect("the test's directory");
}

/// The sync behind a header fails, or that of the creation: the next opening finds in the cache what is not
/// on the disk, and uses pages of the state before.
#[test]
fn a_header_that_is_in_the_cache_only_is_on_the_disk_before_anything_else_is_written() {
    for seed in 1..80 {
        let disk = FaultyDisk::new(seed);
        let open = || DataFile::open(Arc::new(disk.file("data")), Access::Write);
        let mut random = Random(seed);
        let payload = |random: &mut Random| -> Vec<u8> {
            (0..1 + random.below(20_000)).map(|_| random.next() as u8).collect()
        };
        // The first sync is that of the creation, two follow for each state.
        let states = random.below(4);
        disk.refuse(Operation::Sync, 1 + 2 * states, io::ErrorKind::Other);
        let created = DataFile::create(Arc::new(disk.file("data")), ID, 4096);
        let mut newest = Vec::new();
        assert_eq!(created.is_err(), states == 0);
        if let Ok(file) = created {
            for state in 1..=states {
                newest = payload(&mut random);
                file.give_up(tables(&file));
                let extent = file.write(&newest).expect("no faults");
                assert_eq!(file.commit(contents(extent, state)).is_err(), state == states, "seed {seed}");
            }
        }
        disk.restart();
        let file = open().expect("the cache has it");
        assert_eq!(file.read(tables(&file)).expect("the cache has it"), newest, "seed {seed}");
        // The machine stops somewhere in the next states.
        disk.stop_at(disk.operations() + 1 + random.below(14));
        let mut expected = vec![newest];
        for state in 5..8 {
            expected.push(payload(&mut random));
            file.give_up(tables(&file));
            let written = file.write(expected.last().expect("one"));
            if written.and_then(|extent| file.commit(contents(extent, state))).is_err() {
                break;
            }
            expected.remove(0);
        }
        disk.crash();
        let file = open().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let found = file.read(tables(&file)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(expected.contains(&found), "seed {seed}");
    }
}

/// A disk that tells only the first of two threads that a sync has failed.
#[derive(Debug)]
struct TellsOnce {
    file: MemoryBackend,
    syncs: AtomicU64,
    /// The first sync has begun; it fails once it may go on.
    has_begun: Barrier,
    may_go_on: Barrier,
}

impl Backend for TellsOnce {
    fn name(&self) -> &str {
        self.file.name()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write(offset, bytes)
    }
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn sync(&self) -> io::Result<()> {
        // The creation syncs once, too.
        if self.syncs.fetch_add(1, Ordering::SeqCst) == 1 {
            self.has_begun.wait();
            self.may_go_on.wait();
            return Err(io::ErrorKind::Other.into());
        }
        Ok(())
    }
    fn lock(&self, lock: Lock) -> io::Result<bool> {
        self.file.lock(lock)
    }
}

#[test]
fn a_sync_that_failed_for_one_thread_has_failed_for_all() {
    let disk = Arc::new(TellsOnce {
        file: MemoryBackend::new("example.entasis"),
        syncs: AtomicU64::new(0),
        has_begun: Barrier::new(2),
        may_go_on: Barrier::new(2),
    });
    let file = DataFile::create(disk.clone(), ID, 4096).expect("no faults");
    thread::scope(|scope| {
        let first = scope.spawn(|| file.sync());
        disk.has_begun.wait();
        // What this thread has written may have been lost by the sync of the other.
        file.write(b"rows").expect("no faults");
        let second = scope.spawn(|| file.sync());
        // Time for it to succeed, if it does not wait.
        (0..1000).for_each(|_| thread::yield_now());
        disk.may_go_on.wait();
        assert!(first.join().expect("no panic").is_err());
        assert!(second.join().expect("no panic").is_err());
    });
    assert_eq!(disk.syncs.load(Ordering::SeqCst), 2);
}
