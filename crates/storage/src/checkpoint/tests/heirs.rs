//! Tables that are made of others with other columns: what the log and the file have of them, behind a crash
//! at any moment, and what they do not have again.

use super::logged::{Logged, add, contents};
use super::{Store, catalog_of};
use crate::catalog::{CatalogVersion, Entry, TableEntry};
use crate::checkpoint::NameChanges;
use crate::checkpoint::replay::{KnownObjects, Replay, redo};
use crate::table::Table;
use crate::table::tests::lineages::{altered, widened};
use crate::table::tests::model::random_row;
use crate::table::tests::rows;
use crate::tests::random::Random;
use crate::{Compression, Datum, Layout, TableOptions, TableSnapshot};
use entasis_vector::{DataType, ErrorKind, Field, Schema, Value};
use std::sync::Arc;

fn schema() -> Schema {
    vec![
        Field { nullable: false, ..Field::new("k", DataType::Int64) },
        Field::new("text", DataType::Varchar),
        Field::new("float", DataType::Float64),
        Field::new("id", DataType::Uuid),
    ]
}

/// A table whose name is published.
fn database(layout: Layout, count: usize, random: &mut Random) -> Logged {
    let layout_key = if layout.is_keyed() { vec![0] } else { Vec::new() };
    let sizes = TableOptions { block_slots: 64, group_slots: 1024, ghost: 0.2, ..TableOptions::default() };
    let table = Table::with_options("t", schema(), TableOptions { layout, layout_key, ..sizes });
    grow(&table, count, random);
    let logged = Logged::new();
    logged.rename(|names| add(names, &table), false).expect("memory does not fail");
    logged
}

fn grow(table: &Arc<Table>, count: usize, random: &mut Random) {
    let rows: Vec<_> = (0..count).map(|_| random_row(table.schema(), random)).collect();
    rows::insert(table, &rows, false);
}

fn table(names: &CatalogVersion) -> Arc<Table> {
    names.table("t").expect("it is there").table.clone()
}

/// Some rows come, change and go.
fn change(table: &Arc<Table>, random: &mut Random) {
    for _ in 0..random.below(8) {
        let ids: Vec<_> = table.snapshot().row_ids().collect();
        let row = random_row(table.schema(), random);
        let datums: Vec<Datum<'_>> =
            row.iter().zip(table.schema()).map(|(value, field)| Datum::of_value(value, field.ty)).collect();
        let mut writer = table.write();
        match ids.get(random.below(ids.len() as u64 * 3 + 1) as usize) {
            Some(id) if random.below(2) == 0 => writer.delete(*id),
            Some(id) => _ = writer.update(*id, &[(row.len() - 1, datums[row.len() - 1])]),
            None => _ = writer.insert(&datums),
        }
    }
}

/// The table with other columns.
fn heir(of: &TableSnapshot, random: &mut Random) -> Arc<Table> {
    let (schema, sources, options) = altered((of.schema(), of.table().options()), random);
    of.with_columns(schema, &sources, options).expect("it is a version of the head")
}

fn publish(logged: &Logged, new: &Arc<Table>, fails: bool) {
    let entry = Entry::Table(Arc::new(TableEntry::plain(new.clone())));
    let done = logged.rename(|names| names.put(entry), fails);
    assert_eq!(done.is_err(), fails);
}

#[test]
fn what_was_altered_is_there_behind_a_crash() {
    for layout in [Layout::Insertion, Layout::EquiGhost, Layout::Sorted] {
        for seed in 1..6 {
            let random = &mut Random(seed * 977);
            let mut logged = database(layout, 900, random);
            let mut held: Vec<(TableSnapshot, usize)> = Vec::new();
            for _ in 0..60 {
                let now = table(&logged.catalog.version());
                match random.below(10) {
                    0..4 => publish(&logged, &heir(&now.snapshot(), random), random.below(6) == 0),
                    4 => {
                        // Rows that change between the two: the log has all of them.
                        let new = heir(&now.snapshot(), random);
                        change(&new, random);
                        publish(&logged, &new, false);
                    }
                    5 => {
                        // Two in one commit.
                        let new = heir(&now.snapshot(), random);
                        publish(&logged, &heir(&new.snapshot(), random), false);
                    }
                    6 => logged.checkpoint(),
                    7 if held.is_empty() => logged = logged.reopened(),
                    8 => held.push((now.snapshot(), now.rows() as usize)),
                    _ => {
                        grow(&now, random.below(200) as usize, random);
                        change(&now, random);
                    }
                }
                logged.check();
                while held.len() > 2 {
                    let (snapshot, rows) = held.remove(0);
                    assert_eq!(snapshot.row_ids().count(), rows);
                }
            }
            held.clear();
            logged.checkpoint();
            logged.check();
            logged.assert_nothing_is_lost();
            assert_eq!(logged.recovered().commits, 0, "all of it is in the file");
        }
    }
}

/// A count, not a time: neither the log nor the file grows with the rows.
#[test]
fn a_table_that_is_altered_is_not_written_again() {
    let mut logs = Vec::new();
    for count in [2000, 40_000] {
        let random = &mut Random(5);
        let mut logged = database(Layout::EquiGhost, count, random);
        logged.checkpoint();
        let (log, file) = (logged.log.position(), logged.file.bytes());
        publish(&logged, &widened(&table(&logged.catalog.version())), false);
        assert_eq!(logged.file.bytes(), file, "pages of the file");
        logs.push(logged.log.position() - log);
        logged.check();
        let before = logged.last.extents();
        let all: u64 = before.values().map(|extent| extent.bytes).sum();
        logged.checkpoint();
        let new = logged.last.extents();
        let new = new.into_iter().filter(|(at, extent)| before.get(at) != Some(extent));
        let written: u64 = new.map(|(_, extent)| extent.bytes).sum();
        // An index has some 20 bytes for a block, of 64 slots here.
        assert!(written < all / 3, "{written} of {all} bytes");
        logged.check();
        logged.assert_nothing_is_lost();
    }
    assert!(logs[0] == logs[1] && logs[0] < 1000, "{logs:?} bytes of log");
}

/// Whatever the bytes of the record are, it is refused, or makes some table that can be read.
#[test]
fn senseless_records_do_no_harm() {
    let random = &mut Random(9);
    let logged = database(Layout::EquiGhost, 300, random);
    let base = logged.catalog.version();
    let mut now = base.clone();
    now.put(Entry::Table(Arc::new(TableEntry::plain(widened(&table(&base))))));
    let files = (&logged.file, &logged.log, &logged.loads);
    let changes = NameChanges::record(files, &base, &now, &mut |table| table.snapshot());
    let records = changes.expect("nothing is written").expect("a table is new").prologue().records;
    let replayed = |records: &[u8]| {
        let known = KnownObjects::of(&base);
        let mut replay = Replay::knowing(&logged.file, base.clone(), known);
        replay.commit(records, &mut redo).map(|()| replay.names)
    };
    assert_eq!(contents(&replayed(&records).expect("it is whole")), contents(&now));
    let (mut refused, mut read) = (0, 0);
    for at in 0..records.len() {
        for _ in 0..40 {
            let mut senseless = records.clone();
            senseless[at] = random.next() as u8;
            match replayed(&senseless) {
                Ok(names) => read += contents(&names).len(),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption);
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 1000 && read > 100, "{refused} refused, {read} read");
    // Not the table that it is made of, and not twice.
    assert!(replayed(&[&records[..], &records[..]].concat()).is_err());
}

/// Loads that no checkpoint has taken over are left where they are as well.
#[test]
fn loads_of_a_table_that_is_altered_are_taken_over() {
    let random = &mut Random(6);
    let mut logged = database(Layout::Insertion, 0, random);
    logged.loads.set_least(0);
    grow(&table(&logged.catalog.version()), 20_000, random);
    assert!(logged.images.load_bytes() > 100_000);
    publish(&logged, &widened(&table(&logged.catalog.version())), false);
    logged.check();
    let before = logged.file.bytes();
    logged.checkpoint();
    let grown = logged.file.bytes() - before;
    assert!(grown < logged.file.bytes() / 3, "{grown} bytes behind {before}");
    logged.check();
    logged.assert_nothing_is_lost();
    // And behind a crash between the two.
    grow(&table(&logged.catalog.version()), 5000, random);
    publish(&logged, &widened(&table(&logged.catalog.version())), false);
    let mut again = logged.reopened();
    let before = again.file.bytes();
    again.checkpoint();
    assert!(again.file.bytes() - before < again.file.bytes() / 3);
    again.check();
    again.assert_nothing_is_lost();
    assert_eq!(contents(&again.catalog.version()), contents(&logged.catalog.version()));
}

fn squares(rows: i64, options: TableOptions) -> Arc<Table> {
    let fields = ["k", "v"].map(|name| Field { nullable: false, ..Field::new(name, DataType::Int64) });
    let table = Table::with_options("t", fields.to_vec(), options);
    let row = |key: i64| vec![Value::Integer(key.into()), Value::Integer((key * key % 1000).into())];
    rows::insert(&table, &(0..rows).map(row).collect::<Vec<_>>(), false);
    table
}

#[test]
fn blocks_stay_where_they_are_in_the_file() {
    for options in [TableOptions::default(), TableOptions::keyed(vec![0])] {
        let table = squares(1_000_000, TableOptions { compression: Compression::Plain, ..options });
        let mut store = Store::new();
        store.checkpoint(&catalog_of(&table));
        let all: u64 = store.last.extents().values().map(|extent| extent.bytes).sum();
        let mut now = table;
        for _ in 0..3 {
            let new = widened(&now);
            assert!(new.succeed());
            now = new;
            let before = store.last.extents();
            store.check(&catalog_of(&now));
            let new = store.last.extents();
            let new = new.into_iter().filter(|(at, extent)| before.get(at) != Some(extent));
            let written: u64 = new.map(|(_, extent)| extent.bytes).sum();
            assert!(written < 400_000 && written < all / 4, "{written} of {all} bytes");
        }
    }
}

/// Rows in ghost slots of blocks that the table took over, while the other one shows these blocks.
#[test]
fn ghosts_in_blocks_that_were_taken_over_are_written() {
    let options =
        TableOptions { ghost: 0.1, compression: Compression::Plain, ..TableOptions::keyed(vec![0]) };
    let table = squares(4000, options);
    let mut store = Store::new();
    store.checkpoint(&catalog_of(&table));
    // A checkpoint ends its round between the time when a table is made and when it succeeds.
    let new = widened(&table);
    store.checkpoint(&catalog_of(&table));
    assert!(new.succeed());
    let blocks = |table: &Arc<Table>| -> Vec<(usize, u64)> {
        let snapshot = table.snapshot();
        let slices = snapshot.row_groups().flat_map(|group| &group.slices);
        slices.flat_map(|slice| slice.blocks()).map(|block| (block.address(), block.stamp)).collect()
    };
    let before = blocks(&new);
    let row = [Datum::Integer(2), Datum::Integer(77), Datum::Integer(7)];
    new.write().insert(&row);
    let stored = blocks(&new).iter().filter(|block| before.contains(block)).count();
    assert!(stored >= before.len() - 1, "blocks of the old table are stored to in place: {stored}");
    store.check(&catalog_of(&new));
    let (opened, _) = store.opened();
    assert_eq!(opened.version().table("t").expect("it is there").table.rows(), 4001);
    new.write().insert(&row);
    drop(table);
    store.check(&catalog_of(&new));
}
