//! Disks that stop while a checkpoint is written, and bytes that rot behind it.

use super::{Access, DataFile, MemoryBackend, Store, catalog, create, open, save};
use crate::backend::{Backend, FaultyDisk, Operation};
use crate::catalog::{Catalog, CatalogVersion, Entry, TableEntry};
use crate::checkpoint::Checkpointed;
use crate::definition::{Counting, Sequence};
use crate::node::living;
use crate::tests::random::Random;
use crate::{Compression, Datum, Layout, Table, TableOptions};
use entasis_vector::{DataType, ErrorKind, Field};
use std::sync::Arc;

const PAGE: usize = 4096;

/// Three tables: one by key, one in the order of insertion, one without rows.
fn small() -> Catalog {
    let schema = vec![
        Field { nullable: false, ..Field::new("k", DataType::Int64) },
        Field::new("v", DataType::Varchar),
        Field::new("d", DataType::Float64),
    ];
    let sizes = |options| TableOptions { block_slots: 16, group_slots: 64, ghost: 0.2, ..options };
    let keyed = Table::with_options("keyed", schema.clone(), sizes(TableOptions::keyed(vec![1, 0])));
    let options = TableOptions { layout: Layout::Insertion, ..TableOptions::default() };
    let loose = Table::with_options("loose", schema.clone(), sizes(options));
    let empty = Table::with_options(
        "empty",
        schema,
        TableOptions { compression: Compression::Packed, ..TableOptions::default() },
    );
    for key in 0..70 {
        change(&keyed, key);
        change(&loose, key);
    }
    let counting = Counting { start: 1, increment: 1, min: 1, max: 9, cycle: true };
    let tables = [keyed, loose, empty].map(|table| Entry::Table(Arc::new(TableEntry::plain(table))));
    catalog(tables.into_iter().chain([Entry::Sequence(Arc::new(Sequence::new("s", counting)))]))
}

fn change(table: &Arc<Table>, key: u64) {
    let text = format!("text {}", key % 5);
    let text = if key.is_multiple_of(11) { Datum::Null } else { Datum::Bytes(text.as_bytes()) };
    table.write().insert(&[Datum::Integer(key.into()), text, Datum::Float(key as f64 / 2.0)]);
}

/// All that is to be seen of a catalog.
fn state(names: &CatalogVersion) -> Vec<String> {
    let mut seen = Vec::new();
    for entry in names.entries() {
        seen.push(format!("{} {}", entry.kind(), entry.name()));
        match entry {
            Entry::Table(entry) => {
                let snapshot = entry.table.snapshot();
                snapshot.check();
                for id in snapshot.row_ids() {
                    let datums = (0..snapshot.schema().len()).map(|column| snapshot.datum(id, column));
                    seen.push(format!("{id:?} {:?}", datums.collect::<Vec<_>>()));
                }
            }
            Entry::Sequence(sequence) => seen.push(format!("{:?}", sequence.next())),
            Entry::Type(named) => seen.push(named.ty.to_string()),
            Entry::View(_) | Entry::Schema(_) => {}
        }
    }
    seen
}

fn table(names: &Catalog, name: &str) -> Arc<Table> {
    names.version().table(name).expect("it is there").table.clone()
}

/// What an opened file holds, or what is wrong with it.
fn state_of(backend: Arc<dyn Backend>) -> entasis_vector::Result<Vec<String>> {
    state_by(1, backend)
}

/// The same, opened by so many threads.
fn state_by(threads: usize, backend: Arc<dyn Backend>) -> entasis_vector::Result<Vec<String>> {
    let file = DataFile::open(backend, Access::Read)?.with_threads(threads);
    Ok(state(&open(&file)?.0.version()))
}

#[test]
fn inverted_bytes_are_found_or_do_not_matter() {
    let names = small();
    let mut store = Store::new();
    store.check(&names);
    let before = state(&names.version());
    change(&table(&names, "keyed"), 100);
    store.check(&names);
    let (right, bytes) = (state(&names.version()), store.backend.bytes());
    let newest = (1 + store.file.header().number as usize % 2) * PAGE;
    let (mut found, mut harmless) = (0, 0);
    for at in 0..bytes.len() {
        // What fills the pages up is not looked at; now and then it is tried.
        if bytes[at] == 0 && bytes[at..].iter().take(64).all(|byte| *byte == 0) && at % 61 > 0 {
            continue;
        }
        let mut rotten = bytes.clone();
        rotten[at] ^= 1 << (at % 8);
        let nodes = living();
        let opened = state_of(Arc::new(MemoryBackend::of("rotten", rotten.clone())));
        assert_eq!(living(), nodes, "nodes that are left of what could not be opened, byte {at}");
        if at.is_multiple_of(37) {
            let together = state_by(3, Arc::new(MemoryBackend::of("rotten", rotten)));
            let [alone, together] = [&opened, &together].map(|opened| opened.as_ref().map_err(|e| e.kind()));
            assert_eq!(alone, together, "byte {at}, by several threads");
        }
        match opened {
            Ok(state) if state == right => harmless += 1,
            // The log says that there was a newer one.
            Ok(state) => assert!(state == before && (newest..newest + PAGE).contains(&at), "byte {at}"),
            Err(error) => {
                let kinds = [ErrorKind::Corruption, ErrorKind::Input, ErrorKind::NotSupported];
                assert!(kinds.contains(&error.kind()), "byte {at}: {error}");
                if error.kind() == ErrorKind::Corruption {
                    assert!(error.message().starts_with("rotten is damaged at byte "), "{error}");
                }
                found += 1;
            }
        }
    }
    assert!(found > 5_000 && harmless > 100, "{found} found, {harmless} harmless");
}

/// Bytes under right checksums, as a program with a defect would write them, are refused or can be read.
#[test]
fn senseless_bytes_under_right_checksums_do_no_harm() {
    let names = small();
    let mut store = Store::new();
    store.check(&names);
    let mut random = Random(77);
    let (mut refused, mut read) = (0, 0);
    for round in 0..6_000 {
        let file =
            DataFile::open(Arc::new(MemoryBackend::of("senseless", store.backend.bytes())), Access::Write)
                .expect("it is whole");
        let roots = file.header().roots;
        // The catalog, the list of tables, a manifest, an index: each is changed and written once more, and
        // so is what refers to it.
        let last = &store.last;
        let record = last.tables.values().nth(random.below(3) as usize).expect("there are three");
        let mut extent = roots[round % 2];
        let mut chain = vec![roots[round % 2]];
        if round % 2 == 1 && random.below(4) > 0 {
            extent = record.manifest;
            chain.push(extent);
            if let Some(group) = record.groups.first().filter(|_| random.below(3) > 0) {
                extent = group.index;
                chain.push(extent);
            }
        }
        let mut bytes = file.read(extent).expect("it is whole");
        for _ in 0..=random.below(2) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = [0, 1, 255, bytes[at] ^ (1 << random.below(8)), random.next() as u8]
                [random.below(5) as usize];
        }
        let mut new = file.write(&bytes).expect("memory does not fail");
        while let Some(old) = chain.pop() {
            let Some(&outer) = chain.last() else { break };
            let mut bytes = file.read(outer).expect("it is whole");
            let pattern = old.to_bytes();
            let at = bytes.windows(pattern.len()).position(|window| window == pattern);
            let at = at.expect("it is referred to");
            bytes[at..at + pattern.len()].copy_from_slice(&new.to_bytes());
            new = file.write(&bytes).expect("memory does not fail");
        }
        let mut roots = roots;
        roots[round % 2] = new;
        let contents = crate::file::Contents { roots, log_position: 0, state: super::State::Open };
        file.commit(contents).expect("memory does not fail");
        match open(&file) {
            Ok((names, _)) => {
                read += 1;
                // Whatever the rows are, they can be read.
                for entry in names.version().tables() {
                    let snapshot = entry.table.snapshot();
                    for id in snapshot.row_ids() {
                        (0..snapshot.schema().len()).for_each(|column| _ = snapshot.datum(id, column));
                    }
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 1_000 && read > 100, "{refused} refused, {read} read");
}

/// A disk stops at each write and each sync of a checkpoint: what is there then is the state before or this
/// one, whether it is the process that is gone or the machine; and the next checkpoint is as good as any.
#[test]
fn a_disk_that_stops_has_the_old_state_or_the_new_one() {
    let (mut old_states, mut new_states) = (0, 0);
    for seed in 1..4u64 {
        for is_machine in [false, true] {
            for stop in 1.. {
                let disk = FaultyDisk::new(seed * 1000 + stop);
                let names = small();
                let backend = disk.file("data");
                let file = create(&backend);
                let last = save(&file, &names, &Checkpointed::default()).expect("no faults");
                let old = state(&names.version());
                change(&table(&names, "keyed"), 100 + seed);
                change(&table(&names, "loose"), 100 + seed);
                let new = state(&names.version());

                disk.stop_at(disk.operations() + stop);
                let saved = save(&file, &names, &last);
                drop(file);
                if is_machine {
                    disk.crash()
                } else {
                    disk.restart()
                }
                let file = DataFile::open(Arc::new(backend.clone()), Access::Write).expect("it is whole");
                let (opened, last) = open(&file).expect("one of both states is whole");
                file.assert_each_page_is_of_one(&last.reached());
                let found = state(&opened.version());
                assert!(found == new || (found == old && saved.is_err()), "stopped at {stop}");
                if found == new {
                    new_states += 1
                } else {
                    old_states += 1
                }

                change(&table(&opened, "keyed"), 200);
                save(&file, &opened, &last).expect("no faults");
                disk.crash();
                let again = state_of(Arc::new(backend)).expect("it is whole");
                assert_eq!(again, state(&opened.version()));
                if saved.is_ok() {
                    break;
                }
            }
        }
    }
    assert!(old_states > 20 && new_states > 6, "{old_states} old, {new_states} new");
}

#[test]
fn a_disk_that_refuses_says_so_and_keeps_the_state() {
    for operation in [Operation::Write, Operation::Sync] {
        for number in 1..8 {
            let disk = FaultyDisk::new(3);
            let names = small();
            let backend = disk.file("data");
            let file = create(&backend);
            let last = save(&file, &names, &Checkpointed::default()).expect("no faults");
            let old = state(&names.version());
            change(&table(&names, "keyed"), 100);
            disk.refuse(operation, number, std::io::ErrorKind::StorageFull);
            let Err(error) = save(&file, &names, &last) else { continue };
            assert_eq!(error.kind(), ErrorKind::Io);
            let reason = error.message().split_once(": ").expect("the file is named first").1;
            let again = save(&file, &names, &last).expect_err("the file is not written any more");
            assert!(again.message().ends_with(reason), "{again} does not say why: {error}");
            drop(file);
            disk.crash();
            let found = state_of(Arc::new(backend)).expect("it is whole");
            assert!(found == old || found == state(&names.version()));
        }
    }
}
