//! Names in the log: tables that a commit makes are written to the file, and are there behind a crash, with
//! what was done to them since.

use super::{ID, create};
use crate::backend::MemoryBackend;
use crate::catalog::{Catalog, CatalogVersion, Entry, IfExists, TableEntry};
use crate::checkpoint::batches::Batching;
use crate::checkpoint::recover::recover_by;
use crate::checkpoint::{
    Checkpointed, Images, Loads, Moment, NameChanges, Recovered, checkpoint, log_all, recover,
};
use crate::definition::{Counting, Sequence};
use crate::file::{Access, DataFile, Root, State};
use crate::table::tests::rows;
use crate::table::{Table, Waiter};
use crate::tests::random::Random;
use crate::wal::{Log, LogReader, SegmentBytes, Synchronous};
use crate::{Curve, Layout, TableOptions, Transaction};
use entasis_vector::Result;
use std::cell::RefCell;
use std::sync::Arc;

/// A file and its log, both in memory, and what is open of them.
pub(super) struct Logged {
    backends: [MemoryBackend; 2],
    pub(super) file: Arc<DataFile>,
    pub(super) log: Arc<Log>,
    pub(super) images: Arc<Images>,
    pub(super) loads: Loads,
    pub(super) last: Checkpointed,
    pub(super) catalog: Catalog,
}

impl Logged {
    pub(super) fn new() -> Logged {
        let backends = [MemoryBackend::new("my.db"), MemoryBackend::new("my.db.wal")];
        let file = Arc::new(create(&backends[0]));
        let log = Log::create(Arc::new(backends[1].clone()), ID, segment()).expect("memory does not fail");
        let (images, last, catalog) = Default::default();
        let loads = Loads::new(&file, &images);
        Logged { backends, file, log: Arc::new(log), images, loads, last, catalog }
    }

    /// The same, opened from what a copy of both files is, which takes their place.
    pub(super) fn reopened(&self) -> Logged {
        self.log.wait(self.log.position(), Synchronous::Full).expect("memory does not fail");
        let [file, log] = self.backends.each_ref().map(|own| MemoryBackend::of("copy", own.bytes()));
        let backends = [file, log];
        let file = DataFile::open(Arc::new(backends[0].clone()), Access::Write)
            .expect("it is a database")
            .with_threads(2);
        let (header, medium) = (file.header(), Arc::new(backends[1].clone()));
        let log = LogReader::open(medium.clone(), ID, segment(), header.log_position, header.state);
        let found = recover(&file, log.expect("it is its log"), &mut |_| Ok(())).expect("they fit");
        file.assert_each_page_is_of_one(&found.written.reached());
        let log = Arc::new(Log::resume(medium, found.tail).expect("memory does not fail"));
        let (file, images) = (Arc::new(file), Arc::new(Images::behind(&found.written)));
        let loads = Loads::new(&file, &images);
        log_all(&found.catalog.version(), &log, &loads);
        Logged { backends, file, log, images, loads, last: found.written, catalog: found.catalog }
    }

    /// Publishes other names, unless `fails`.
    pub(super) fn rename(&self, change: impl FnOnce(&mut CatalogVersion), fails: bool) -> Result<()> {
        let base = self.catalog.version();
        let mut now = base.clone();
        change(&mut now);
        let changes = RefCell::new(None::<NameChanges>);
        Transaction::default().commit_as(
            &Waiter::default(),
            |rows| {
                let files = (&self.file, &self.log, &self.loads);
                let new = NameChanges::record(files, &base, &now, &mut |table| rows.outcome(table))?;
                let prologue = new.as_ref().map(NameChanges::prologue);
                changes.replace(new);
                Ok(prologue)
            },
            |rows| {
                if fails {
                    return Err(entasis_vector::Error::input("it is refused"));
                }
                let published = self.catalog.publish(&base, &now, &[], rows)?;
                changes.take().expect("there are some").publish(&self.images);
                Ok(published)
            },
            |_| Ok(()),
        )
    }

    pub(super) fn checkpoint(&mut self) {
        let moment = Moment::take(&self.catalog, &self.images, || self.log.position());
        self.log.wait(moment.log_position(), Synchronous::Full).expect("memory does not fail");
        let written = checkpoint(&self.file, &moment, &self.last, State::Open);
        self.last = written.expect("memory does not fail");
        self.log.cut(self.file.header().log_position).expect("memory does not fail");
    }

    /// What a copy of both files is opened as.
    pub(super) fn recovered(&self) -> Recovered {
        self.recovered_from(self.file_bytes()).expect("they belong together")
    }

    /// The bytes of the data file.
    pub(super) fn file_bytes(&self) -> Vec<u8> {
        self.backends[0].bytes()
    }

    /// The bytes of the log.
    pub(super) fn log_bytes(&self) -> Vec<u8> {
        self.log.wait(self.log.position(), Synchronous::Full).expect("memory does not fail");
        self.backends[1].bytes()
    }

    /// What a data file of these bytes is opened as, with a copy of the log.
    pub(super) fn recovered_from(&self, bytes: Vec<u8>) -> Result<Recovered> {
        recovered([bytes, self.log_bytes()], Batching::by(2))
    }

    pub(super) fn check(&self) {
        let recovered = self.recovered().catalog.version();
        assert_eq!(contents(&self.catalog.version()), contents(&recovered));
    }

    /// Every page is free, or of an extent that the last checkpoint reaches.
    pub(super) fn assert_nothing_is_lost(&self) {
        let pages = |bytes: u64| bytes.div_ceil(4096);
        let map = self.file.header().roots[Root::FreeSpace as usize];
        let taken: u64 = self.last.extents().values().map(|extent| pages(extent.bytes)).sum();
        let (all, free) = self.file.size();
        assert_eq!(taken + pages(map.bytes) + 3 + free, all, "pages that nobody has");
        self.file.assert_each_page_is_of_one(&self.last.reached());
    }
}

/// What a data file and a log of these bytes are opened as.
pub(super) fn recovered(bytes: [Vec<u8>; 2], batching: Batching) -> Result<Recovered> {
    let [file, log] = bytes.map(|bytes| Arc::new(MemoryBackend::of("copy", bytes)));
    let file = DataFile::open(file, Access::Write)?.with_threads(2);
    let header = file.header();
    let log = LogReader::open(log, ID, segment(), header.log_position, header.state)?;
    recover_by(batching, &file, log, &mut |_| Ok(()))
}

/// The tables of a version, with all rows. Blocks may differ: what is done once more is encoded once more.
pub(super) fn contents(names: &CatalogVersion) -> Vec<(String, Vec<String>)> {
    let rows = |table: &Arc<Table>| {
        let snapshot = table.snapshot();
        snapshot.check();
        let columns = 0..snapshot.schema().len();
        let row = |id| {
            format!("{:?}", columns.clone().map(|column| snapshot.datum(id, column)).collect::<Vec<_>>())
        };
        let mut rows: Vec<String> = snapshot.row_ids().map(row).collect();
        rows.sort_unstable();
        rows
    };
    names.tables().map(|entry| (entry.name.clone(), rows(&entry.table))).collect()
}

fn segment() -> SegmentBytes {
    SegmentBytes::new(4096).expect("some sectors")
}

pub(super) fn table_of(name: &str, layout: Layout, count: usize, random: &mut Random) -> Arc<Table> {
    let layout_key = if layout == Layout::Insertion { Vec::new() } else { vec![4] };
    let sizes = TableOptions { block_slots: 256, group_slots: 1024, ..TableOptions::default() };
    let table = Table::with_options(name, rows::schema(), TableOptions { layout, layout_key, ..sizes });
    if count > 0 {
        rows::insert(&table, &rows::random_rows(count, random), false);
    }
    table
}

pub(super) fn add(names: &mut CatalogVersion, table: &Arc<Table>) {
    let entry = Entry::Table(Arc::new(TableEntry::plain(table.clone())));
    names.add(entry, IfExists::Fail).expect("the name is new");
}

/// Grids are made again of the rows in the log, or come from the manifest.
#[test]
fn tables_by_curves_are_there_behind_a_crash() {
    for curve in [Curve::ZOrder, Curve::Hilbert] {
        let (logged, random) = (Logged::new(), &mut Random(5));
        let sizes =
            TableOptions { block_slots: 256, group_slots: 1024, ..TableOptions::keyed(vec![4, 14, 21]) };
        let tables = ["full", "empty"].map(|name| {
            Table::with_options(name, rows::schema(), TableOptions { curve: Some(curve), ..sizes.clone() })
        });
        rows::insert(&tables[0], &rows::random_rows(3000, random), false);
        logged.rename(|names| tables.iter().for_each(|table| add(names, table)), false).unwrap();
        logged.check();
        for count in [300, 1, 2000] {
            for table in &tables {
                rows::insert(table, &rows::random_rows(count, random), false);
            }
            logged.check();
        }
    }
}

#[test]
fn tables_that_a_commit_makes_are_there_with_what_was_done_since() {
    for layout in [Layout::Insertion, Layout::EquiGhost] {
        let (mut logged, random) = (Logged::new(), &mut Random(11));
        let (full, empty) = (table_of("full", layout, 3000, random), table_of("empty", layout, 0, random));
        logged.rename(|names| [&full, &empty].iter().for_each(|table| add(names, table)), false).unwrap();
        logged.check();
        for table in [&full, &empty] {
            rows::insert(table, &rows::random_rows(300, random), false);
        }
        logged.check();
        // An old name with another table, and a table with another name.
        let other = table_of("full", layout, 700, random);
        let renamed = TableEntry { name: "renamed".into(), ..TableEntry::plain(full.clone()) };
        let change = |names: &mut CatalogVersion| {
            assert!(names.take("full"));
            add(names, &other);
            names.put(Entry::Table(Arc::new(renamed)));
        };
        logged.rename(change, false).unwrap();
        rows::insert(&other, &rows::random_rows(10, random), false);
        rows::insert(&full, &rows::random_rows(10, random), false);
        logged.check();
        logged.checkpoint();
        logged.check();
        logged.assert_nothing_is_lost();
        assert_eq!(logged.recovered().commits, 0, "all of it is in the file");
        // What was made and is gone before the next checkpoint gives its pages back.
        let gone = table_of("gone", layout, 2000, random);
        logged.rename(|names| add(names, &gone), false).unwrap();
        logged.rename(|names| assert!(names.take("gone")), false).unwrap();
        logged.check();
        logged.checkpoint();
        logged.assert_nothing_is_lost();
    }
}

#[test]
fn a_table_whose_rows_are_gone_when_it_gets_its_name_goes_on_with_its_row_numbers() {
    let (mut logged, random) = (Logged::new(), &mut Random(13));
    let table = table_of("t", Layout::Insertion, 20, random);
    table.write().clear();
    logged.rename(|names| add(names, &table), false).unwrap();
    logged.check();
    rows::insert(&table, &rows::random_rows(5, random), false);
    logged.check();
    logged.checkpoint();
    logged.check();
    logged.assert_nothing_is_lost();
}

#[test]
fn an_image_is_not_written_again() {
    let (mut logged, random) = (Logged::new(), &mut Random(12));
    let table = table_of("t", Layout::EquiGhost, 20_000, random);
    logged.rename(|names| add(names, &table), false).unwrap();
    let image = logged.file.bytes();
    logged.checkpoint();
    assert!(logged.file.bytes() < image + 16 * 4096, "{} behind {image}", logged.file.bytes());
    // Rows that are stored in its ghosts since are written, though their blocks are the same nodes.
    rows::insert(&table, &rows::random_rows(50, random), false);
    logged.checkpoint();
    logged.check();
    logged.assert_nothing_is_lost();
}

#[test]
fn a_commit_that_fails_gives_its_pages_back() {
    let (mut logged, random) = (Logged::new(), &mut Random(13));
    let table = table_of("t", Layout::Insertion, 3000, random);
    logged.rename(|names| add(names, &table), true).unwrap_err();
    assert_eq!(logged.recovered().commits, 0);
    let other = table_of("u", Layout::Insertion, 10, random);
    logged.rename(|names| add(names, &other), false).unwrap();
    logged.check();
    logged.checkpoint();
    logged.assert_nothing_is_lost();
}

#[test]
fn numbers_of_a_sequence_do_not_come_twice() {
    let mut logged = Logged::new();
    let counting = Counting { start: 1, increment: 1, min: 1, max: i64::MAX, cycle: false };
    let sequence = Arc::new(Sequence::new("s", counting));
    let entry = Entry::Sequence(sequence.clone());
    logged.rename(|names| _ = names.add(entry, IfExists::Fail).unwrap(), false).unwrap();
    for number in 1..=100 {
        assert_eq!(sequence.take().unwrap().value, number);
        let names = logged.recovered().catalog.version();
        let next = names.sequence("s").expect("it is there").next().expect("it has not ended");
        assert!((number + 1..=number + 32).contains(&next), "{next} behind {number}");
        if number % 17 == 0 {
            logged.checkpoint();
        }
    }
}
