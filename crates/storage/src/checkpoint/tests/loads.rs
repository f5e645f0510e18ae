//! Loads: rows that go to the file before their commit. Their slow twin is the log, through which they go if
//! no load is large enough.

use super::ID;
use super::logged::{Logged, add, contents, table_of};
use crate::backend::{Backend, FaultyDisk};
use crate::catalog::Catalog;
use crate::checkpoint::{Images, Loads, Moment, checkpoint, log_all, recover};
use crate::file::{Access, Damage, DataFile, State};
use crate::table::Table;
use crate::table::tests::rows::{self, column_chunk, random_rows};
use crate::tests::random::Random;
use crate::wal::{Log, LogReader, SegmentBytes, Synchronous};
use crate::{AppendedRows, Layout, RowId, TableOptions, TableSnapshot, Transaction};
use entasis_vector::{Error, Result, Value};
use std::sync::Arc;

type Rows = Vec<Vec<Value>>;

/// Everything goes to the file, or nothing.
const LEASTS: [u64; 2] = [0, u64::MAX];

/// A table that is logged, of a database whose loads go to the file from so many bytes on.
fn database(layout: Layout, first: usize, least: u64, random: &mut Random) -> Logged {
    let logged = Logged::new();
    logged.loads.set_least(least);
    let table = table_of("t", layout, first, random);
    logged.rename(|names| add(names, &table), false).unwrap();
    logged
}

fn table(logged: &Logged) -> Arc<Table> {
    logged.catalog.version().table("t").expect("it is there").table.clone()
}

fn appended(table: &Arc<Table>, rows: &[Vec<Value>], workers: u64) -> Vec<AppendedRows> {
    let mut appenders: Vec<_> = (0..workers).map(|_| table.appender()).collect();
    for (number, part) in rows.chunks(500).enumerate() {
        let own = number % workers as usize;
        appenders[own].append(&column_chunk(part, table.schema(), false), number as u64).unwrap();
    }
    appenders.into_iter().map(|appender| appender.finish()).collect()
}

/// A row, with its number if there is no layout key.
fn shown(snapshot: &TableSnapshot, row: RowId) -> String {
    let keyed = snapshot.table().options().layout.is_keyed();
    let datums = (0..snapshot.schema().len()).map(|column| snapshot.datum(row, column));
    format!("{} {:?}", if keyed { 0 } else { snapshot.number_of(row) }, datums.collect::<Vec<_>>())
}

fn numbered(catalog: &Catalog) -> Vec<String> {
    let snapshot = catalog.version().table("t").expect("it is there").table.snapshot();
    snapshot.check();
    let mut rows: Vec<String> = snapshot.row_ids().map(|row| shown(&snapshot, row)).collect();
    rows.sort_unstable();
    rows
}

fn damage(logged: &Logged) -> Vec<Damage> {
    logged.file.damage(&logged.file.header(), &logged.last.reached(), &mut |_| Ok(())).unwrap()
}

/// Rows that are told by what they are, as twins may have them in other places.
fn some(snapshot: &TableSnapshot, one_in: u64, random: &mut Random) -> Vec<RowId> {
    let chosen = random.next();
    let rows = snapshot.row_ids().map(|row| (shown(snapshot, row), row));
    let is_chosen = |text: &str| {
        let hash =
            text.bytes().fold(chosen, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
        (hash >> 32) % one_in == 0
    };
    let mut rows: Vec<(String, RowId)> = rows.filter(|(text, _)| is_chosen(text)).collect();
    rows.sort_unstable();
    rows.into_iter().map(|(_, row)| row).collect()
}

/// One of the things that somebody does to a table. The rows come from outside, as twins must have the same.
fn step(logged: &mut Logged, rows: &[Rows; 2], random: &mut Random) {
    let table = table(logged);
    let one = std::slice::from_ref(&table);
    let append = |to: &mut Transaction, rows: &Rows| {
        let workers = 1 + rows.len() as u64 % 3;
        to.append(&table, appended(&table, rows, workers)).unwrap();
    };
    match random.below(10) {
        0 | 1 => {
            let done = table.commit(appended(&table, &rows[0], 2)).unwrap();
            assert_eq!(done, rows[0].len() as u64);
        }
        2 => {
            // A statement that is changed its mind of, in part and as a whole.
            let mut alone = Transaction::alone(one);
            append(&mut alone, &rows[0]);
            let undone = alone.atomically(|alone| {
                append(alone, &rows[1]);
                Err::<(), _>(Error::input("undo"))
            });
            undone.unwrap_err();
            let gone = some(&alone.snapshot(&table), 9, random);
            alone.write(&table).delete_many(&gone);
            if random.below(3) > 0 {
                alone.commit(|_| Ok(())).unwrap();
            }
        }
        3 | 4 => {
            // Two at once: the second one is replayed behind the first, with what it did to its own rows.
            let mut both = [Transaction::begin(one), Transaction::begin(one)];
            append(&mut both[0], &rows[0]);
            append(&mut both[1], &rows[1]);
            both[1].savepoint();
            append(&mut both[1], &rows[0]);
            if random.below(2) == 0 {
                both[1].roll_back_to(1);
            }
            let gone = some(&both[1].snapshot(&table), 50, random);
            both[1].write(&table).delete_many(&gone);
            for transaction in both {
                transaction.commit(|_| Ok(())).unwrap();
            }
        }
        5 => {
            let mut alone = Transaction::alone(one);
            let gone = some(&alone.snapshot(&table), 9, random);
            alone.write(&table).delete_many(&gone);
            alone.commit(|_| Ok(())).unwrap();
        }
        6 => {
            let mut alone = Transaction::alone(one);
            let changed = some(&alone.snapshot(&table), 9, random);
            for ids in changed.chunks(1000) {
                let new = column_chunk(&rows[0][..ids.len().min(rows[0].len())], table.schema(), false);
                alone.write(&table).update_chunk(&ids[..new.len()], &[(5, 5), (14, 14)], &new);
            }
            alone.commit(|_| Ok(())).unwrap();
        }
        7 => drop(table.upkeep(std::time::Duration::from_secs(60))),
        8 => logged.checkpoint(),
        _ => {
            *logged = {
                let least = if logged.loads.least() == 0 { 0 } else { u64::MAX };
                let again = logged.reopened();
                again.loads.set_least(least);
                again
            }
        }
    }
}

#[test]
fn loads_are_what_the_log_would_have_made() {
    for (number, layout) in [Layout::Insertion, Layout::EquiGhost, Layout::Sorted].into_iter().enumerate() {
        let seed = number as u64 + 1;
        let mut twins = LEASTS.map(|least| database(layout, 700, least, &mut Random(seed)));
        let random = &mut Random(seed + 1000);
        for turn in 0..20 {
            let rows = [random_rows(1 + random.below(900) as usize, random), random_rows(300, random)];
            let at = random.next();
            twins.iter_mut().for_each(|twin| step(twin, &rows, &mut Random(at)));
            let [one, other] = &twins;
            let shown = numbered(&one.catalog);
            assert!(shown == numbered(&other.catalog), "{layout:?}, seed {seed}, turn {turn}");
            // What a crash leaves, and a checkpoint behind that.
            if random.below(3) == 0 {
                let mut again = one.reopened();
                assert!(shown == numbered(&again.catalog), "{layout:?}, seed {seed}, turn {turn}");
                assert_eq!(damage(&again), []);
                again.checkpoint();
                assert_eq!(damage(&again), []);
                again.assert_nothing_is_lost();
                let again = again.reopened();
                assert!(shown == numbered(&again.catalog), "{layout:?}, seed {seed}, turn {turn}");
                assert_eq!(again.last.loads.len(), 0);
            }
        }
        let [one, other] = &mut twins;
        one.checkpoint();
        one.assert_nothing_is_lost();
        assert_eq!(contents(&one.catalog.version()), contents(&other.recovered().catalog.version()));
    }
}

#[test]
fn the_log_only_says_where_they_are() {
    let random = &mut Random(5);
    let mut taken = LEASTS.map(|least| {
        let logged = database(Layout::Insertion, 0, least, random);
        let before = logged.log.position();
        let table = table(&logged);
        table.commit(appended(&table, &random_rows(20_000, random), 2)).unwrap();
        assert_eq!(logged.images.load_bytes() > 0, least == 0);
        logged.check();
        logged.log.position() - before
    });
    taken.sort_unstable();
    assert!(taken[0] < 200 && taken[1] > 500_000, "{taken:?}");
}

/// The blocks of a load stay where they are, also behind a crash.
#[test]
fn a_checkpoint_takes_blocks_over() {
    for (layout, crashes) in [(Layout::Insertion, false), (Layout::Insertion, true)] {
        for beside in [false, true] {
            let random = &mut Random(6);
            let mut logged = database(layout, 0, 0, random);
            logged.checkpoint();
            let table = table(&logged);
            let rows = random_rows(20_000, random);
            let before = logged.file.bytes();
            if beside {
                let mut own = Transaction::begin(std::slice::from_ref(&table));
                own.append(&table, appended(&table, &rows, 1)).unwrap();
                own.commit(|_| Ok(())).unwrap();
            } else {
                table.commit(appended(&table, &rows, 1)).unwrap();
            }
            drop(table);
            let loaded = logged.file.bytes();
            assert!(loaded > before + 500_000);
            if crashes {
                logged = logged.reopened();
                assert_eq!(logged.file.bytes(), loaded);
                assert!(logged.images.load_bytes() > 500_000);
            }
            logged.checkpoint();
            let taken = logged.file.bytes() - before;
            // Indexes of row groups, of which there are 20, each to the page.
            assert!(taken < (loaded - before) + 60 * 4096, "{taken} of {}", loaded - before);
            assert_eq!(logged.images.load_bytes(), 0);
            logged.check();
            logged.assert_nothing_is_lost();
            assert_eq!(logged.recovered().commits, 0);
        }
    }
}

/// By key, behind all rows: they become slices as they are, and are taken over.
#[test]
fn rows_that_come_in_the_order_of_the_key_are_taken_over() {
    let random = &mut Random(7);
    let mut logged = Logged::new();
    logged.loads.set_least(0);
    let sizes =
        TableOptions { block_slots: 256, group_slots: 1024, partitions: 2, ..TableOptions::keyed(vec![4]) };
    let table = Table::with_options("t", rows::schema(), sizes);
    logged.rename(|names| add(names, &table), false).unwrap();
    logged.checkpoint();
    let before = logged.file.bytes();
    let mut rows = random_rows(10_000, random);
    rows.iter_mut().enumerate().for_each(|(number, row)| row[4] = Value::Integer(number as i128));
    table.commit(appended(&table, &rows, 1)).unwrap();
    let loaded = logged.file.bytes();
    logged.checkpoint();
    let written = logged.file.bytes() - loaded;
    assert!(written * 4 < loaded - before, "{written} behind {}", loaded - before);
    logged.check();
    logged.assert_nothing_is_lost();
    // Rows that come between them go to ghost slots, of blocks that are in the file; these are written.
    let middle = table.snapshot();
    let mut row = rows[17].clone();
    row[4] = Value::Integer(5_000);
    rows::insert(&table, &[row], false);
    drop(middle);
    logged.checkpoint();
    logged.check();
    logged.assert_nothing_is_lost();
}

#[test]
fn what_is_not_committed_is_free_at_once() {
    let random = &mut Random(8);
    let mut logged = database(Layout::Insertion, 1000, 0, random);
    logged.checkpoint();
    let table = table(&logged);
    let one = std::slice::from_ref(&table);
    let free = |logged: &Logged| {
        let (pages, free) = logged.file.size();
        pages - free
    };
    let before = free(&logged);
    for beside in [false, true] {
        let mut own = if beside { Transaction::begin(one) } else { Transaction::alone(one) };
        own.append(&table, appended(&table, &random_rows(3000, random), 2)).unwrap();
        let first = free(&logged);
        assert!(first > before);
        own.savepoint();
        own.append(&table, appended(&table, &random_rows(3000, random), 2)).unwrap();
        assert!(free(&logged) > first);
        own.roll_back_to(1);
        assert_eq!(free(&logged), first);
        drop(own);
        assert_eq!(free(&logged), before);
    }
    // A load that is under way while a checkpoint is made is nobody's in the map, and is there all the same.
    let mut own = Transaction::begin(one);
    let rows = random_rows(3000, random);
    own.append(&table, appended(&table, &rows, 1)).unwrap();
    rows::insert(&table, &random_rows(10, random), false);
    logged.checkpoint();
    assert_eq!(damage(&logged), []);
    let count = table.rows();
    own.commit(|_| Ok(())).unwrap();
    assert_eq!(table.rows(), count + 3000);
    logged.check();
    logged.checkpoint();
    assert_eq!(damage(&logged), []);
    logged.check();
    logged.assert_nothing_is_lost();
}

#[test]
fn loads_of_a_table_that_is_dropped_are_given_back() {
    let random = &mut Random(9);
    let mut logged = database(Layout::Insertion, 10, 0, random);
    let table = table(&logged);
    table.commit(appended(&table, &random_rows(5000, random), 1)).unwrap();
    let other = table_of("u", Layout::Insertion, 0, random);
    logged.rename(|names| add(names, &other), false).unwrap();
    other.commit(appended(&other, &random_rows(2000, random), 1)).unwrap();
    logged.rename(|names| assert!(names.take("t")), false).unwrap();
    logged.check();
    let mut again = logged.reopened();
    for logged in [&mut logged, &mut again] {
        logged.checkpoint();
        logged.check();
        logged.assert_nothing_is_lost();
    }
}

/// Bytes of loads that rot are found, with the place, when the log is replayed.
#[test]
fn rot_is_found() {
    let random = &mut Random(10);
    let mut logged = database(Layout::Insertion, 10, 0, random);
    logged.checkpoint();
    let start = logged.file.bytes() as usize;
    let table = table(&logged);
    table.commit(appended(&table, &random_rows(2000, random), 1)).unwrap();
    let bytes = logged.file_bytes();
    let right = numbered(&logged.catalog);
    let (mut found, mut harmless) = (0, 0);
    for _ in 0..60 {
        let at = start + random.below((bytes.len() - start) as u64) as usize;
        let mut rotten = bytes.clone();
        rotten[at] ^= 1 << random.below(8);
        match logged.recovered_from(rotten) {
            Ok(recovered) => {
                assert_eq!(numbered(&recovered.catalog), right);
                harmless += 1;
            }
            Err(error) => {
                assert!(error.message().contains("is damaged at byte"), "{error}");
                found += 1;
            }
        }
    }
    assert!(found > 30, "{found} found, {harmless} where no extent is");
}

/// What a process has open of files on a disk.
struct Opened {
    file: Arc<DataFile>,
    log: Arc<Log>,
    images: Arc<Images>,
    last: crate::checkpoint::Checkpointed,
    catalog: Catalog,
}

fn open(disk: &FaultyDisk) -> Result<Opened> {
    let bytes = SegmentBytes::new(4096).expect("some sectors");
    let medium: Arc<dyn Backend> = Arc::new(disk.file("log"));
    let file = DataFile::open(Arc::new(disk.file("data")), Access::Write)?.with_threads(2);
    let header = file.header();
    let reader = LogReader::open(medium.clone(), ID, bytes, header.log_position, header.state)?;
    let found = recover(&file, reader, &mut |_| Ok(()))?;
    file.assert_each_page_is_of_one(&found.written.reached());
    let log = Arc::new(Log::resume(medium, found.tail)?);
    let (file, images) = (Arc::new(file), Arc::new(Images::behind(&found.written)));
    let loads = Loads::new(&file, &images);
    loads.set_least(0);
    log_all(&found.catalog.version(), &log, &loads);
    Ok(Opened { file, log, images, last: found.written, catalog: found.catalog })
}

/// Loads, small changes and checkpoints until something fails. The states after each commit.
fn work(opened: &mut Opened, states: &mut Vec<Vec<String>>, random: &mut Random) -> Result<()> {
    let table = opened.catalog.version().table("t").expect("it is there").table.clone();
    loop {
        let mut own = match random.below(2) {
            0 => Transaction::alone(std::slice::from_ref(&table)),
            _ => Transaction::begin(std::slice::from_ref(&table)),
        };
        let count = if random.below(3) == 0 { 5 } else { 300 };
        own.append(&table, appended(&table, &random_rows(count, random), 1))?;
        if random.below(3) == 0 {
            let gone: Vec<RowId> = own.snapshot(&table).row_ids().filter(|_| random.below(5) == 0).collect();
            own.write(&table).delete_many(&gone);
        }
        if random.below(4) == 0 {
            continue;
        }
        let done = own.commit(|_| Ok(()));
        states.push(numbered(&opened.catalog));
        done?;
        if random.below(3) == 0 {
            let moment = Moment::take(&opened.catalog, &opened.images, || opened.log.position());
            opened.log.wait(moment.log_position(), Synchronous::Full)?;
            opened.last = checkpoint(&opened.file, &moment, &opened.last, State::Open)?;
            opened.log.cut(moment.log_position())?;
        }
    }
}

#[test]
fn whatever_a_disk_stops_at_what_was_acknowledged_is_there() {
    let (mut survived, mut more) = (0, 0);
    for seed in 1..60 {
        let random = &mut Random(seed * 0x9E37_79B9);
        let disk = FaultyDisk::new(seed);
        let layout = if seed % 2 == 0 { Layout::Insertion } else { Layout::EquiGhost };
        // A database with an empty table.
        let file = DataFile::create(Arc::new(disk.file("data")), ID, 4096).unwrap();
        Log::create(Arc::new(disk.file("log")), ID, SegmentBytes::new(4096).unwrap()).unwrap();
        let names = super::catalog_of(&table_of("t", layout, 0, random));
        super::save(&file, &names, &Default::default()).unwrap();
        drop(file);
        let mut states = vec![Vec::new()];
        for _ in 0..3 {
            let mut opened = open(&disk).unwrap();
            let found = numbered(&opened.catalog);
            let last = states.len() - 1;
            let is_last = found == states[last];
            assert!(is_last || last > 0 && found == states[last - 1], "seed {seed}: it is not all there");
            survived += usize::from(!is_last);
            more += usize::from(is_last);
            states = vec![found];
            disk.stop_at(disk.operations() + 1 + random.below(80));
            let error = work(&mut opened, &mut states, random).unwrap_err();
            assert_eq!(error.kind(), entasis_vector::ErrorKind::Io, "{error}");
            drop(opened);
            if random.below(2) == 0 {
                disk.restart();
            } else {
                disk.crash();
            }
        }
    }
    assert!(survived > 10 && more > 10, "{survived} without the last commit, {more} with it");
}
