//! Checkpoints are opened again, and everything is compared with what is in memory: objects, rows slot by
//! slot, blocks byte by byte.
//!
//! ```text
//! whole      all types, layouts, encodings, objects: there and back
//! changes    what a later checkpoint writes, and what it must not leave out
//! logged     names in the log: recovery of file and log
//! batches    many commits of the log at once, and one by one
//! heirs      tables that are made of others with other columns
//! loads      many rows in the file before their commit, and what becomes of them
//! damage     disks that stop, bytes that rot
//! beside     followers, while a writer does anything
//! ```

mod batches;
mod beside;
mod changes;
mod damage;
mod heirs;
mod loads;
mod logged;
mod whole;

use super::objects::tables_of;
use super::{Checkpointed, Images, Moment, checkpoint, open};
use crate::TableOptions;
use crate::backend::{Backend, MemoryBackend};
use crate::block::serialized::{self, Column};
use crate::catalog::{Catalog, CatalogVersion, Entry, IfExists, TableEntry, is_temporary};
use crate::file::{Access, DataFile, DatabaseId, State};
use crate::table::{Table, TableSnapshot};
use entasis_vector::Result;
use std::sync::Arc;

const ID: DatabaseId = DatabaseId(*b"0123456789abcdef");

/// A file in memory, and what the last checkpoint says.
struct Store {
    backend: MemoryBackend,
    file: DataFile,
    last: Checkpointed,
}

impl Store {
    fn new() -> Store {
        let backend = MemoryBackend::new("memory");
        let file = create(&backend);
        Store { backend, file, last: Checkpointed::default() }
    }

    fn checkpoint(&mut self, catalog: &Catalog) {
        self.last = save(&self.file, catalog, &self.last).expect("memory does not fail");
    }

    /// What is in the file, opened as a copy: by several threads, as by one.
    fn opened(&self) -> (Catalog, Checkpointed) {
        let [alone, together] = [1, 3].map(|readers| {
            let copy = Arc::new(MemoryBackend::of("copy", self.backend.bytes()));
            let file = DataFile::open(copy, Access::Write).expect("it is a database");
            open(&file.with_threads(readers)).expect("it is whole")
        });
        assert_read_alike(&alone, &together);
        together
    }

    /// Makes a checkpoint, and compares what is read back.
    fn check(&mut self, catalog: &Catalog) {
        self.checkpoint(catalog);
        assert_same(&catalog.version(), &self.opened().0.version());
        self.assert_nothing_is_lost();
    }

    /// Every page is free, or of an extent that the state reaches.
    fn assert_nothing_is_lost(&self) {
        let pages = |bytes: u64| bytes.div_ceil(4096);
        let map = self.file.header().roots[crate::file::Root::FreeSpace as usize];
        let taken: u64 = self.last.extents().values().map(|extent| pages(extent.bytes)).sum();
        let (all, free) = self.file.size();
        assert_eq!(taken + pages(map.bytes) + 3 + free, all, "pages that nobody has");
        self.file.assert_each_page_is_of_one(&self.last.reached());
    }
}

fn create(backend: &(impl Backend + Clone + 'static)) -> DataFile {
    DataFile::create(Arc::new(backend.clone()), ID, 4096).expect("an empty file")
}

fn save(file: &DataFile, catalog: &Catalog, last: &Checkpointed) -> Result<Checkpointed> {
    checkpoint(file, &Moment::take(catalog, &Images::default(), || 0), last, State::Open)
}

/// Panics unless a file was opened to the same twice: also what is not in it, but made of it. The bytes of
/// the first one's tables are counted again.
fn assert_read_alike((one, of_one): &(Catalog, Checkpointed), (other, of_other): &(Catalog, Checkpointed)) {
    assert_same(&one.version(), &other.version());
    assert_eq!(of_one.extents(), of_other.extents());
    assert!(of_one.tables.keys().eq(of_other.tables.keys()));
    for (a, b) in of_one.tables.values().zip(of_other.tables.values()) {
        assert_eq!((a.manifest, a.round, a.groups.len()), (b.manifest, b.round, b.groups.len()));
        for (a, b) in a.groups.iter().zip(&b.groups) {
            assert_eq!(a.index, b.index);
            assert!(a.places().eq(b.places()), "places of blocks");
        }
    }
    let tables = |catalog: &Catalog| -> Vec<Arc<Table>> {
        let names = catalog.version();
        names.tables().flat_map(|entry| tables_of(entry)).cloned().collect()
    };
    for (a, b) in tables(one).into_iter().zip(tables(other)) {
        let bytes = a.bytes();
        assert_eq!(bytes, b.bytes());
        a.sweep();
        assert_eq!(bytes, a.bytes(), "bytes of {} counted again", a.name());
        for (a, b) in a.snapshot().row_groups().zip(b.snapshot().row_groups()) {
            assert_eq!(a.zones, b.zones);
            assert_eq!(a.bytes(), b.bytes());
            assert_eq!((a.wear.is_hot, a.wear.is_settled), (b.wear.is_hot, b.wear.is_settled));
            assert_eq!(a.counters.is_some(), b.counters.is_some());
            for block in 0..a.blocks() {
                assert_eq!(a.slices[block].is_settled(), b.slices[block].is_settled());
                for column in 0..a.zones.len() {
                    let digest = |group: &crate::RowGroup| {
                        group.digest_of(column, block).map(|digest| (digest.is_known(), digest.bounds()))
                    };
                    assert_eq!(digest(a), digest(b), "digests");
                }
            }
        }
    }
}

/// A catalog of some objects.
fn catalog(entries: impl IntoIterator<Item = Entry>) -> Catalog {
    let mut names = CatalogVersion::default();
    entries.into_iter().for_each(|entry| _ = names.add(entry, IfExists::Fail).expect("names are new"));
    Catalog::of(names)
}

fn catalog_of(table: &Arc<Table>) -> Catalog {
    catalog([Entry::Table(Arc::new(TableEntry::plain(table.clone())))])
}

/// Panics unless both have the same objects, but for temporary ones of the first.
fn assert_same(one: &CatalogVersion, other: &CatalogVersion) {
    let lasting: Vec<&Entry> = one.entries().filter(|entry| !is_temporary(entry.name())).collect();
    let read: Vec<&Entry> = other.entries().collect();
    assert_eq!(lasting.len(), read.len());
    for (a, b) in lasting.into_iter().zip(read) {
        assert_eq!((a.name(), a.kind()), (b.name(), b.kind()));
        match (a, b) {
            (Entry::Table(a), Entry::Table(b)) => {
                assert_eq!(a.definition, b.definition);
                let indexes =
                    |entry: &TableEntry| -> Vec<bool> { entry.indexes.iter().map(Option::is_some).collect() };
                assert_eq!(indexes(a), indexes(b));
                tables_of(a).zip(tables_of(b)).for_each(|(a, b)| assert_same_table(a, b));
            }
            (Entry::View(a), Entry::View(b)) => assert_eq!(format!("{a:?}"), format!("{b:?}")),
            (Entry::Sequence(a), Entry::Sequence(b)) => {
                assert_eq!(
                    (a.id(), a.counting(), a.next()),
                    (b.id(), b.counting(), b.next()),
                    "sequence {}",
                    a.name
                );
            }
            (Entry::Type(a), Entry::Type(b)) => assert_eq!(a.ty, b.ty),
            (Entry::Schema(a), Entry::Schema(b)) => assert_eq!(a, b),
            _ => unreachable!("they are of one kind"),
        }
    }
}

fn assert_same_table(one: &Arc<Table>, other: &Arc<Table>) {
    assert_eq!((one.object(), one.name()), (other.object(), other.name()));
    // A file does not say how operations are counted, nor when rows rest.
    let TableOptions { counters, rest, .. } = *one.options();
    let options = TableOptions { counters, rest, ..other.options().clone() };
    assert_eq!((one.schema(), one.options()), (other.schema(), &options));
    assert_same_rows(&one.snapshot(), &other.snapshot());
}

/// Panics unless both have the same row groups, slice by slice and block by block.
fn assert_same_rows(one: &TableSnapshot, other: &TableSnapshot) {
    other.check();
    assert_eq!(one.rows(), other.rows());
    let ((a, _), (b, _)) = (one.pinned(), other.pinned());
    assert_eq!(format!("{:?}", a.fences), format!("{:?}", b.fences));
    assert_eq!((a.groups.len(), a.next_number), (b.groups.len(), b.next_number));
    for (a, b) in a.groups.iter().zip(&b.groups) {
        assert_eq!(a.numbers, b.numbers, "row numbers");
        assert_eq!((a.rows, a.block_slots, &a.partitions), (b.rows, b.block_slots, &b.partitions));
        assert_eq!(format!("{:?}", a.fences), format!("{:?}", b.fences));
        assert_eq!(a.slices.len(), b.slices.len());
        for (a, b) in a.slices.iter().zip(&b.slices) {
            assert_eq!((a.live(), a.is_hot()), (b.live(), b.is_hot()));
            for (column, field) in one.schema().iter().enumerate() {
                let (a, b) = (a.block(column), b.block(column));
                assert_eq!((a.values.name(), a.slots()), (b.values.name(), b.slots()), "{}", field.name);
            }
            let blocks = |slice: &crate::tree::Slice| -> Vec<Vec<u8>> {
                let blocks = slice.blocks().iter().zip(one.schema());
                blocks.map(|(block, field)| bytes(block, Column::of(field.ty), slice.live())).collect()
            };
            assert_eq!(blocks(a), blocks(b));
        }
        for column in 0..one.schema().len() {
            let shared = |group: &crate::RowGroup| -> Vec<(usize, usize)> {
                let infos = group.dictionary_infos(column).into_iter();
                infos.map(|info| (info.entries, info.blocks)).collect()
            };
            assert_eq!(shared(a), shared(b), "dictionaries");
        }
    }
}

fn bytes(block: &crate::block::Block, column: Column, live: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    serialized::write(block, column, live, &mut out);
    out
}
