//! Does what was acknowledged survive? A store of keys and values, a few lines over the data file and the
//! log, is stopped at every write and every sync, opened again, and compared with a map in memory.
//!
//! The store does with twelve keys what a database does with tables: commits of several changes are logged; a
//! checkpoint writes the blocks that are dirty, and flips the header; a bulk load goes to an extent that the
//! log refers to; closing says that all is in the file. After a stop it is the process that is gone, and all
//! that it wrote is there, or it is the machine, and what was not synced is there in part. What must be there
//! is what was acknowledged, and the change that was under way whole or not at all.

use entasis_storage::backend::{Backend, FaultyBackend, FaultyDisk, MemoryBackend, Operation};
use entasis_storage::file::{Access, Contents, DataFile, DatabaseId, Extent, ROOTS, Root, State};
use entasis_storage::wal::{Kind, Log, LogReader, SegmentBytes, Synchronous};
use entasis_vector::{ErrorKind, Result};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

const ID: DatabaseId = DatabaseId(*b"0123456789abcdef");
const KEYS: u64 = 12;
/// Keys of a block.
const BLOCK: u8 = 4;

type Map = BTreeMap<u8, Vec<u8>>;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 9) % bound
    }
}

/// What is done to a store.
#[derive(Debug, Clone)]
enum Step {
    /// Some keys get values, or none any more; all at once.
    Change(Vec<(u8, Option<Vec<u8>>)>),
    /// The same, by parts of a large transaction.
    Parts(Vec<(u8, Option<Vec<u8>>)>),
    /// Keys get values by an extent.
    Load(Map),
    Checkpoint,
    Reopen,
    Close,
}

impl Step {
    fn random(random: &mut Random) -> Step {
        let value = |random: &mut Random| -> Vec<u8> {
            let most = if random.below(5) == 0 { 1500 } else { 60 };
            (0..random.below(most)).map(|_| random.below(256) as u8).collect()
        };
        let some = |random: &mut Random| -> Vec<(u8, Option<Vec<u8>>)> {
            let each = |_| (random.below(KEYS) as u8, (random.below(4) > 0).then(|| value(random)));
            (0..3).map(each).collect()
        };
        match random.below(12) {
            0..6 => {
                let mut all = some(random);
                all.truncate(1 + random.below(3) as usize);
                Step::Change(all)
            }
            6 => Step::Parts(some(random)),
            7 => {
                Step::Load(some(random).into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
            }
            8 | 9 => Step::Checkpoint,
            10 => Step::Reopen,
            _ => Step::Close,
        }
    }

    /// The slow twin of the store.
    fn apply(&self, map: &mut Map) {
        match self {
            Step::Change(changes) | Step::Parts(changes) => {
                changes.iter().for_each(|(key, value)| change(map, *key, value.as_deref()));
            }
            Step::Load(values) => map.extend(values.clone()),
            Step::Checkpoint | Step::Reopen | Step::Close => {}
        }
    }
}

fn change(map: &mut Map, key: u8, value: Option<&[u8]>) {
    match value {
        Some(value) => _ = map.insert(key, value.to_vec()),
        None => _ = map.remove(&key),
    }
}

/// Keys and values end to end: 1, the key, the length, the value; or 0 and the key of one that is gone.
fn record(key: u8, value: Option<&[u8]>) -> Vec<u8> {
    match value {
        Some(value) => [&[1, key][..], &(value.len() as u16).to_le_bytes()[..], value].concat(),
        None => vec![0, key],
    }
}

/// The disk of a store.
trait Medium {
    fn file(&self, name: &str) -> Arc<dyn Backend>;
}

impl Medium for FaultyDisk {
    fn file(&self, name: &str) -> Arc<dyn Backend> {
        Arc::new(FaultyDisk::file(self, name))
    }
}

impl Medium for (MemoryBackend, MemoryBackend) {
    fn file(&self, name: &str) -> Arc<dyn Backend> {
        Arc::new(if name == "data" { self.0.clone() } else { self.1.clone() })
    }
}

struct Store {
    file: DataFile,
    log: Log,
    map: Map,
    /// Where blocks are, and the list of them; which of them are dirty.
    blocks: Vec<Extent>,
    list: Extent,
    dirty: Vec<bool>,
    /// Extents that the log refers to.
    loads: Vec<Extent>,
}

impl Store {
    fn create(medium: &impl Medium) -> Result<Store> {
        let bytes = SegmentBytes::new(2048).expect("some sectors");
        let log = Log::create(medium.file("log"), ID, bytes)?;
        let file = DataFile::create(medium.file("data"), ID, bytes.get())?;
        let count = KEYS as usize / BLOCK as usize;
        let (blocks, dirty) = (vec![Extent::default(); count], vec![false; count]);
        Ok(Store { file, log, map: Map::new(), blocks, list: Extent::default(), dirty, loads: Vec::new() })
    }

    fn open(medium: &impl Medium) -> Result<Store> {
        let file = DataFile::open(medium.file("data"), Access::Write)?;
        let header = file.header();
        let (mut map, mut dirty, mut loads) =
            (Map::new(), vec![false; KEYS as usize / BLOCK as usize], Vec::new());
        let mut blocks = vec![Extent::default(); dirty.len()];
        let list = header.roots[Root::Tables as usize];
        for (block, reference) in blocks.iter_mut().zip(file.read(list)?.chunks_exact(Extent::SIZE)) {
            *block = Extent::from_bytes(reference.try_into().expect("it is so long"));
            replay(&file.read(*block)?, &mut map, |_| {}, |_, _| Ok(()))?;
        }
        let bytes = SegmentBytes::new(header.segment_bytes).expect("some sectors");
        let mut reader = LogReader::open(medium.file("log"), ID, bytes, header.log_position, header.state)?;
        while let Some(commit) = reader.next_commit()? {
            let touch = |key: u8| dirty[usize::from(key / BLOCK)] = true;
            replay(&commit.records, &mut map, touch, |extent, map| {
                file.claim(extent)?;
                loads.push(extent);
                replay(&file.read(extent)?, map, |_| {}, |_, _| Ok(()))
            })?;
        }
        if !loads.is_empty() {
            dirty.fill(true);
        }
        let log = Log::resume(medium.file("log"), reader.end()?)?;
        if header.state == State::Closed {
            // From now on the log is needed.
            let (roots, log_position) = (header.roots, header.log_position);
            file.commit(Contents { roots, log_position, state: State::Open })?;
        }
        Ok(Store { file, log, map, blocks, list, dirty, loads })
    }

    fn commit(&mut self, records: &[u8], transaction: u64) -> Result<()> {
        let end = self.log.append(&self.log.frame(Kind::Commit, transaction, records)?)?;
        self.log.wait(end, Synchronous::Full)
    }

    fn checkpoint(&mut self, state: State) -> Result<()> {
        let position = self.log.position();
        for (number, block) in self.blocks.iter_mut().enumerate().filter(|(number, _)| self.dirty[*number]) {
            let first = number as u8 * BLOCK;
            let rows = self.map.range(first..first + BLOCK);
            let new = self
                .file
                .write(&rows.flat_map(|(key, value)| record(*key, Some(value))).collect::<Vec<u8>>())?;
            self.file.give_up(std::mem::replace(block, new));
        }
        self.loads.drain(..).for_each(|extent| self.file.give_up(extent));
        let references: Vec<u8> = self.blocks.iter().flat_map(|block| block.to_bytes()).collect();
        let list = self.file.write(&references)?;
        self.file.give_up(std::mem::replace(&mut self.list, list));
        self.log.wait(position, Synchronous::Full)?;
        let mut roots = [Extent::default(); ROOTS];
        roots[Root::Tables as usize] = list;
        self.file.commit(Contents { roots, log_position: position, state })?;
        self.dirty.fill(false);
        self.log.cut(position)
    }

    fn apply(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Change(changes) => {
                let records: Vec<u8> =
                    changes.iter().flat_map(|(key, value)| record(*key, value.as_deref())).collect();
                self.commit(&records, 0)?;
            }
            Step::Parts(changes) => {
                let transaction = self.log.transaction();
                for (key, value) in changes {
                    let end = self.log.append(&self.log.frame(
                        Kind::Part,
                        transaction,
                        &record(*key, value.as_deref()),
                    )?)?;
                    self.log.wait(end, Synchronous::Normal)?;
                }
                self.commit(&[], transaction)?;
            }
            Step::Load(values) if values.is_empty() => {}
            Step::Load(values) => {
                let rows: Vec<u8> =
                    values.iter().flat_map(|(key, value)| record(*key, Some(value))).collect();
                let extent = self.file.write(&rows)?;
                self.file.sync()?;
                self.commit(&[&[2][..], &extent.to_bytes()].concat(), 0)?;
                self.loads.push(extent);
            }
            Step::Checkpoint => self.checkpoint(State::Open)?,
            Step::Reopen => {}
            Step::Close => {
                self.log.close()?;
                self.checkpoint(State::Closed)?;
            }
        }
        step.apply(&mut self.map);
        match step {
            Step::Change(changes) | Step::Parts(changes) => {
                changes.iter().for_each(|(key, _)| self.dirty[usize::from(key / BLOCK)] = true);
            }
            Step::Load(values) => values.keys().for_each(|key| self.dirty[usize::from(key / BLOCK)] = true),
            _ => {}
        }
        Ok(())
    }
}

/// Applies records to a map.
fn replay(
    mut bytes: &[u8],
    map: &mut Map,
    mut touch: impl FnMut(u8),
    mut load: impl FnMut(Extent, &mut Map) -> Result<()>,
) -> Result<()> {
    // Bytes whose checksum was right: they are as they were written.
    loop {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut take = |count: usize| {
            let (taken, rest) = bytes.split_at(count);
            bytes = rest;
            taken
        };
        match take(1)[0] {
            2 => load(Extent::from_bytes(take(Extent::SIZE).try_into().expect("it is so long")), map)?,
            kind => {
                let key = take(1)[0];
                touch(key);
                if kind == 0 {
                    map.remove(&key);
                } else {
                    let length = u16::from_le_bytes(take(2).try_into().expect("it is so long"));
                    map.insert(key, take(length.into()).to_vec());
                }
            }
        }
    }
}

/// Does steps until one fails. How many were acknowledged.
fn run(disk: &FaultyDisk, mut store: Store, steps: &[Step]) -> usize {
    for (number, step) in steps.iter().enumerate() {
        let done = store.apply(step);
        if done.is_err() {
            return number;
        }
        if matches!(step, Step::Reopen | Step::Close) {
            drop(store);
            match Store::open(disk) {
                Ok(opened) => store = opened,
                Err(_) => return number + 1,
            }
        }
    }
    steps.len()
}

/// The map after each number of steps.
fn states(steps: &[Step]) -> Vec<Map> {
    let mut states = vec![Map::new()];
    for step in steps {
        let mut next = states[states.len() - 1].clone();
        step.apply(&mut next);
        states.push(next);
    }
    states
}

/// Opens what is left, which has the state after `acknowledged` steps, or one more. After which it is.
fn check(disk: &FaultyDisk, states: &[Map], acknowledged: usize, what: &str) -> (Store, usize) {
    let store = Store::open(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let after =
        [acknowledged, acknowledged + 1].into_iter().find(|after| states.get(*after) == Some(&store.map));
    let Some(after) = after else {
        panic!("{what}: {acknowledged} steps were acknowledged, and {:?} is there", store.map)
    };
    (store, after)
}

/// The process or the machine stops.
fn stop(disk: &FaultyDisk, random: &mut Random) {
    match random.below(3) {
        0 => disk.restart(),
        _ => disk.crash(),
    }
}

#[test]
fn what_was_acknowledged_is_there_wherever_it_stops() {
    let mut points = 0;
    for seed in 1..=12 {
        let mut random = Random(seed * 7919);
        let steps: Vec<Step> = (0..16).map(|_| Step::random(&mut random)).collect();
        let states = states(&steps);
        let disk = FaultyDisk::new(seed);
        let store = Store::create(&disk).expect("no faults");
        let before = disk.operations();
        assert_eq!(run(&disk, store, &steps), steps.len());
        let (store, _) = check(&disk, &states, steps.len(), "no faults");
        drop(store);
        for point in 1..=disk.operations() - before {
            let what = format!("seed {seed}, stopped at {point}");
            let disk = FaultyDisk::new(seed * 1000 + point);
            let store = Store::create(&disk).expect("no faults");
            disk.stop_at(disk.operations() + point);
            let mut done = run(&disk, store, &steps);
            points += 1;
            stop(&disk, &mut random);
            // It stops while it is opened, too, and later once more, where it goes on.
            for _ in 0..2 {
                disk.stop_at(disk.operations() + 1 + random.below(12));
                let opened = Store::open(&disk);
                if let Ok(store) = opened {
                    assert!(
                        [done, done + 1].iter().any(|done| states.get(*done) == Some(&store.map)),
                        "{what}"
                    );
                    done = if states[done] == store.map { done } else { done + 1 };
                    done += run(&disk, store, &steps[done..]);
                }
                points += 1;
                stop(&disk, &mut random);
            }
            let (store, done) = check(&disk, &states, done, &what);
            assert_eq!(run(&disk, store, &steps[done..]), steps.len() - done, "{what}");
            disk.crash();
            check(&disk, &states, steps.len(), &what);
        }
    }
    assert!(points > 2_000, "{points} points");
}

#[test]
fn an_error_of_the_disk_loses_nothing() {
    for (operation, kind) in [
        (Operation::Read, io::ErrorKind::Other),
        (Operation::Write, io::ErrorKind::StorageFull),
        (Operation::Sync, io::ErrorKind::Other),
    ] {
        for seed in 1..=6 {
            let mut random = Random(seed * 104_729);
            let steps: Vec<Step> = (0..12).map(|_| Step::random(&mut random)).collect();
            let states = states(&steps);
            for number in 1.. {
                let what = format!("seed {seed}, {operation:?} {number}");
                let disk = FaultyDisk::new(seed * 1000 + number);
                let store = Store::create(&disk).expect("no faults");
                disk.refuse(operation, number, kind);
                let done = run(&disk, store, &steps);
                let is_last = done == steps.len();
                stop(&disk, &mut random);
                // It goes on where it stopped. What a failed sync has not written is in the cache still, and
                // what is acknowledged from now on relies on it: so the machine stops afterwards, soon or
                // late.
                let (store, done) = check(&disk, &states, done, &what);
                disk.stop_at(disk.operations() + 1 + random.below(40));
                let done = done + run(&disk, store, &steps[done..]);
                disk.crash();
                let (store, done) = check(&disk, &states, done, &what);
                assert_eq!(run(&disk, store, &steps[done..]), steps.len() - done, "{what}");
                disk.crash();
                check(&disk, &states, steps.len(), &what);
                if is_last {
                    break;
                }
            }
        }
    }
}

/// A store after some steps: its files.
fn example(seed: u64, last: &[Step]) -> (Vec<Step>, MemoryBackend, MemoryBackend) {
    let mut random = Random(seed);
    let mut steps: Vec<Step> = (0..14).map(|_| Step::random(&mut random)).collect();
    steps.extend_from_slice(last);
    let disk = FaultyDisk::new(seed);
    let mut store = Some(Store::create(&disk).expect("no faults"));
    for (number, step) in steps.iter().enumerate() {
        store.as_mut().expect("it is open").apply(step).expect("no faults");
        if matches!(step, Step::Reopen | Step::Close) {
            store = None;
            if number + 1 < steps.len() {
                store = Some(Store::open(&disk).expect("no faults"));
            }
        }
    }
    let bytes = |file: FaultyBackend| file.bytes();
    let (data, log) = (bytes(disk.file("data")), bytes(disk.file("log")));
    (steps, MemoryBackend::of("data", data), MemoryBackend::of("log", log))
}

#[test]
fn every_byte_of_both_files_is_watched_or_harmless() {
    let change = |key| Step::Change(vec![(key, Some(vec![key; 30]))]);
    for seed in 1..=4 {
        // Closed; with some commits behind a checkpoint; with a load, too.
        let load = Step::Load([(1, vec![1; 100]), (9, vec![2; 100])].into());
        let endings = [
            vec![change(3), Step::Close],
            vec![Step::Checkpoint, change(1), change(2), change(7)],
            vec![Step::Checkpoint, load, change(2), Step::Checkpoint, change(5), change(6)],
        ];
        for ending in endings {
            let (steps, data, log) = example(seed, &ending);
            let states = states(&steps);
            let last = &states[steps.len()];
            // What was not closed may lose its last group, because nothing says that it was synced.
            let may_lose = !matches!(ending.last(), Some(Step::Close));
            let (data, log) = (data.bytes(), log.bytes());
            let mut found = 0;
            for at in 0..data.len() + log.len() {
                let (mut data, mut log) = (data.clone(), log.clone());
                let bit = 1 << (at % 8);
                match at.checked_sub(data.len()) {
                    None => data[at] ^= bit,
                    Some(at) => log[at] ^= bit,
                }
                let is_log = at >= data.len();
                match Store::open(&(MemoryBackend::of("data", data), MemoryBackend::of("log", log))) {
                    Ok(store) if store.map == *last => {}
                    Ok(store) if may_lose && is_log => {
                        assert_eq!(store.map, states[steps.len() - 1], "byte {at}")
                    }
                    Ok(_) => panic!("seed {seed}: byte {at} was damaged, and nobody says so"),
                    Err(error) => {
                        assert_ne!(error.kind(), ErrorKind::Io, "byte {at}: {error}");
                        assert_ne!(error.kind(), ErrorKind::Internal, "byte {at}: {error}");
                        found += 1;
                    }
                }
            }
            assert!(found > 100, "{found}");
        }
    }
}
