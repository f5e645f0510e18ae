//! Later checkpoints write what has changed, all of it and little else.

use super::{Moment, State, Store, assert_same_rows, catalog, catalog_of, checkpoint};
use crate::checkpoint::Images;
use crate::checkpoint::extents::ExtentWriter;
use crate::file::Tail;
use crate::table::tests::model::run_beside;
use crate::table::tests::rows;
use crate::tests::random::Random;
use crate::{Compression, Datum, Layout, Table, TableOptions, TableSnapshot};
use entasis_vector::{DataType, Field, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

fn field(name: &str, ty: DataType) -> Field {
    Field { nullable: false, ..Field::new(name, ty) }
}

/// A table by key, of integers from `0` to `rows - 1` and what they are squared.
fn squares(rows: i64, options: TableOptions) -> Arc<Table> {
    let schema = vec![field("k", DataType::Int64), field("v", DataType::Int64)];
    let table = Table::with_options("t", schema, options);
    let of = |key: i64| vec![Value::Integer(key.into()), Value::Integer((key * key % 1000).into())];
    rows::insert(&table, &(0..rows).map(of).collect::<Vec<_>>(), false);
    table
}

/// The same with plain codes, whose ghost slots are stored to while others have the block.
fn plain_squares(rows: i64, ghost: f64) -> Arc<Table> {
    squares(rows, TableOptions { ghost, compression: Compression::Plain, ..TableOptions::keyed(vec![0]) })
}

fn find(table: &Arc<Table>, key: i64) -> Option<crate::RowId> {
    table.snapshot().find(&[Datum::Integer(key.into())])
}

fn integer(snapshot: &TableSnapshot, key: i64) -> Option<i128> {
    let id = snapshot.find(&[Datum::Integer(key.into())])?;
    match snapshot.datum(id, 1) {
        Datum::Integer(value) => Some(value),
        other => panic!("{other:?}"),
    }
}

/// Deletes a row, makes a checkpoint, and puts another row into its slot while a snapshot is held: the block
/// keeps its stamp and its live bits.
fn store_a_ghost(store: &mut Store, table: &Arc<Table>) -> i64 {
    let names = catalog_of(table);
    // Full partitions, so that there is one ghost only.
    store.checkpoint(&names);
    let id = find(table, 500).expect("it is there");
    let held = table.snapshot();
    drop(held);
    table.write().delete(id);
    let held = table.snapshot();
    let to = table.write().insert(&[Datum::Integer(500), Datum::Integer(777)]);
    assert_eq!(to, id, "it takes the slot of the row that is gone");
    drop(held);
    500
}

fn block_stamps(table: &Arc<Table>) -> Vec<u64> {
    let snapshot = table.snapshot();
    let blocks = snapshot.row_groups().flat_map(|group| &group.slices).flat_map(|slice| slice.blocks());
    blocks.map(|block| block.stamp).collect()
}

#[test]
fn a_row_in_a_ghost_slot_of_a_block_that_others_have_is_written() {
    let table = plain_squares(4000, 0.0);
    let mut store = Store::new();
    let before = block_stamps(&table);
    let key = store_a_ghost(&mut store, &table);
    assert_eq!(block_stamps(&table), before, "no block was copied: the ghost was stored in place");
    store.check(&catalog_of(&table));
    let (opened, _) = store.opened();
    assert_eq!(integer(&opened.version().table("t").unwrap().table.snapshot(), key), Some(777));
}

/// The same without the note that the store leaves: the row is lost, and debug builds find it out.
#[test]
fn a_ghost_without_a_note_is_lost() {
    let table = plain_squares(4000, 0.0);
    let mut store = Store::new();
    let key = store_a_ghost(&mut store, &table);
    let snapshot = table.snapshot();
    let slices = snapshot.row_groups().flat_map(|group| &group.slices);
    slices.flat_map(|slice| slice.blocks()).for_each(|block| block.forget_stores());
    let saved = catch_unwind(AssertUnwindSafe(|| store.checkpoint(&catalog_of(&table))));
    if cfg!(debug_assertions) {
        let message = saved.expect_err("a block is compared with the file");
        let message = message.downcast_ref::<String>().expect("it says which");
        assert!(message.contains("taken for unchanged"), "{message}");
    } else {
        let (opened, _) = store.opened();
        let found = integer(&opened.version().table("t").unwrap().table.snapshot(), key);
        assert_eq!(found, Some(500 * 500 % 1000), "the row that was there before");
    }
}

/// A ghost that is stored after a checkpoint has pinned the table, and before it reads the block.
#[test]
fn a_row_that_comes_while_a_checkpoint_runs_is_in_the_next_one() {
    let table = plain_squares(4000, 0.1);
    let names = catalog_of(&table);
    let mut store = Store::new();
    store.checkpoint(&names);
    // One of both blocks is written by the checkpoint, the other one is taken over.
    let id = find(&table, 8).expect("it is there");
    table.write().update(id, &[(1, Datum::Integer(555))]);
    let moment = Moment::take(&names, &Images::default(), || 0);
    let before = block_stamps(&table);
    let id = find(&table, 7).expect("it is there");
    table.write().delete(id);
    table.write().insert(&[Datum::Integer(7), Datum::Integer(888)]);
    let held = table.snapshot();
    let stored = block_stamps(&table).iter().zip(&before).filter(|(a, b)| a == b).count();
    assert_eq!(stored, before.len(), "the ghost was stored in place");
    let pinned = moment.tables[0].0.clone();
    store.last = checkpoint(&store.file, &moment, &store.last, State::Open).unwrap();
    let (opened, _) = store.opened();
    assert_same_rows(&pinned, &opened.version().table("t").unwrap().table.snapshot());
    drop((moment, held, pinned));
    store.check(&names);
    assert_eq!(integer(&store.opened().0.version().table("t").unwrap().table.snapshot(), 7), Some(888));
}

/// Rows of a table with a layout key that rest are encoded for reading; so are they in the file, and upkeep
/// of the opened table leaves them alone.
#[test]
fn rows_that_rest_are_stored_as_they_are() {
    let schema = vec![field("k", DataType::Int64), field("v", DataType::Int64)];
    let table = Table::with_options("t", schema, TableOptions::keyed(vec![0]));
    let of = |key: i128| vec![Value::Integer(key), Value::Integer(key * 100)];
    rows::insert(&table, &(0..3000).map(of).collect::<Vec<_>>(), false);
    let rest = |table: &Arc<Table>| {
        (0..20).map(|_| table.upkeep(std::time::Duration::from_secs(60)).encoded).sum::<usize>()
    };
    assert_eq!(rest(&table), 3);
    let encodings = |table: &Arc<Table>| -> Vec<&'static str> {
        let snapshot = table.snapshot();
        let blocks = snapshot.row_groups().flat_map(|group| &group.slices).flat_map(|slice| slice.blocks());
        blocks.map(|block| block.values.name()).collect()
    };
    assert_eq!(encodings(&table), ["packed", "multiples"].repeat(3));
    let mut store = Store::new();
    store.check(&catalog_of(&table));
    let (opened, _) = store.opened();
    let opened = opened.version().table("t").unwrap().table.clone();
    assert_eq!(encodings(&opened), encodings(&table));
    assert_eq!(rest(&opened), 0);
    let id = find(&opened, 500).expect("it is there");
    opened.write().update(id, &[(1, Datum::Integer(7))]);
    assert_eq!(rest(&opened), 1, "the slice that was written");
}

/// A table at rest of which some partitions have been extended: short slices beside those at rest, in a
/// checkpoint, in the file that is opened again, while a snapshot is held, and when all rests again.
#[test]
fn short_slices_are_stored_beside_those_at_rest() {
    let schema = vec![
        field("k", DataType::Int64),
        field("hundreds", DataType::Int64),
        field("price", DataType::Float64),
        Field::new("text", DataType::Varchar),
    ];
    let row = |key: i64| {
        let text = if key % 7 == 0 { Value::Null } else { Value::Text(format!("the text of {key}").into()) };
        let hundreds = i128::from(key * 7919 % 1000) * 100;
        vec![Value::Integer(key.into()), Value::Integer(hundreds), Value::Float(key as f64 / 4.0), text]
    };
    let rows_of = |table: &Arc<Table>| {
        let snapshot = table.snapshot();
        let value = |id, column: usize| snapshot.datum(id, column).value(snapshot.schema()[column].ty);
        let mut rows: Vec<Vec<Value>> =
            snapshot.row_ids().map(|id| (0..4).map(|column| value(id, column)).collect()).collect();
        rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
        rows
    };
    let rest = |table: &Arc<Table>| {
        for round in 0.. {
            assert!(round < 2000, "upkeep comes to an end");
            let done = table.upkeep(std::time::Duration::from_secs(60));
            if done.is_done && done.warm + done.spread + done.encoded + done.overtaken == 0 {
                break;
            }
        }
    };
    let short = |table: &Arc<Table>| {
        let snapshot = table.snapshot();
        let slices = snapshot.row_groups().flat_map(|group| &group.slices);
        slices.filter(|slice| slice.rows() > 0 && slice.is_short(crate::BLOCK_ROWS)).count()
    };
    for layout in [Layout::Delta, Layout::EquiGhost, Layout::Casper] {
        let options = TableOptions { layout, ghost: 0.0, unique: true, ..TableOptions::keyed(vec![0]) };
        let mut table = Table::with_options("t", schema.clone(), options);
        let mut model: Vec<Vec<Value>> = (0..9000).map(|number| row(number * 2)).collect();
        rows::insert(&table, &model, false);
        rest(&table);
        let random = &mut Random(21);
        let mut store = Store::new();
        store.check(&catalog_of(&table));
        let mut most = 0;
        for turn in 0..12 {
            let before = rows_of(&table);
            let held = table.snapshot();
            for _ in 0..1 + random.below(40) {
                let key = random.number(9000) * 2 + 1;
                let datum = Datum::Integer(key.into());
                match table.snapshot().find(&[datum]) {
                    Some(id) if random.below(3) == 0 => {
                        table.write().delete(id);
                        model.retain(|row| row[0] != Value::Integer(key.into()));
                    }
                    Some(_) => {}
                    None => {
                        let new = row(key);
                        let datums = new.iter().zip(&schema).map(|(v, field)| Datum::of_value(v, field.ty));
                        table.write().insert(&datums.collect::<Vec<_>>());
                        model.push(new);
                    }
                }
            }
            model.sort_by(|a, b| a[0].total_cmp(&b[0]));
            most = most.max(short(&table));
            // What a reader sees from before, beside the slices that were added.
            assert_eq!(held.rows() as usize, before.len());
            held.check();
            drop(held);
            store.check(&catalog_of(&table));
            let (opened, _) = store.opened();
            let opened = opened.version().table("t").expect("it is there").table.clone();
            assert_eq!((rows_of(&opened), short(&opened)), (model.clone(), short(&table)), "{layout:?}");
            match turn % 4 {
                0 => {
                    (table, store) = (opened, Store::new());
                    store.check(&catalog_of(&table));
                }
                1 => (0..3).for_each(|_| _ = table.upkeep(std::time::Duration::from_secs(60))),
                3 => {
                    rest(&table);
                    assert!(short(&table) <= 2, "{layout:?}: {} short slices at rest", short(&table));
                }
                _ => {}
            }
            store.check(&catalog_of(&table));
            assert_eq!(rows_of(&table), model, "{layout:?}, turn {turn}");
        }
        assert!(most >= 3, "{layout:?}: partitions were extended");
    }
}

/// A fork that began before a checkpoint, and ends behind it, brings nodes with stamps from before.
#[test]
fn a_fork_from_before_a_checkpoint_is_in_the_next_one() {
    for layout in [Layout::Insertion, Layout::EquiGhost] {
        let layout_key = if layout == Layout::Insertion { Vec::new() } else { vec![0] };
        let table = squares(3000, TableOptions { layout, layout_key, ..TableOptions::default() });
        let names = catalog_of(&table);
        let mut store = Store::new();
        store.checkpoint(&names);
        let mut statement = table.statement();
        let id = crate::RowId { group: 0, slot: 5 };
        statement.write().update(id, &[(1, Datum::Integer(99))]);
        store.check(&names);
        statement.commit().expect("it is not logged");
        store.check(&names);
    }
}

/// Bytes that are written by a checkpoint.
fn written(store: &mut Store, table: &Arc<Table>) -> u64 {
    let before = store.last.extents();
    store.checkpoint(&catalog_of(table));
    let new = store.last.extents();
    new.into_iter().filter(|(at, extent)| before.get(at) != Some(extent)).map(|(_, e)| e.bytes).sum()
}

#[test]
fn one_row_of_a_million_is_a_little_to_write() {
    for layout in [Layout::Insertion, Layout::EquiGhost] {
        let layout_key = if layout == Layout::Insertion { Vec::new() } else { vec![0] };
        let table = squares(1_000_000, TableOptions { layout, layout_key, ..TableOptions::default() });
        let mut store = Store::new();
        let all = written(&mut store, &table);
        assert!(all > 1_000_000, "{all}");
        let nothing = written(&mut store, &table);
        assert!(nothing < 300, "{nothing} bytes for no change");
        table.write().update(crate::RowId { group: 3, slot: 5000 }, &[(1, Datum::Integer(12))]);
        let little = written(&mut store, &table);
        // A block of a column, the index of its row group, the manifest with two sketches.
        assert!((1000..60_000).contains(&little), "{little} of {all} bytes");
        store.check(&catalog_of(&table));
    }
}

#[test]
fn files_shrink_when_rows_go() {
    let table = squares(200_000, TableOptions { group_slots: 8192, ..TableOptions::keyed(vec![0]) });
    let names = catalog_of(&table);
    let mut store = Store::new();
    store.check(&names);
    let full = store.file.size().0;
    for step in 1..=20 {
        let gone: Vec<i64> = ((step - 1) * 9_500..step * 9_500).collect();
        let snapshot = table.snapshot();
        let ids: Vec<_> = gone
            .iter()
            .map(|key| snapshot.find(&[Datum::Integer((*key).into())]).expect("it is there"))
            .collect();
        drop(snapshot);
        let mut statement = table.statement();
        statement.write().delete_many(&ids);
        statement.commit().expect("it is not logged");
        store.checkpoint(&names);
    }
    store.check(&names);
    store.check(&names);
    let left = store.file.size();
    assert_eq!(table.rows(), 10_000);
    assert!(left.0 * 4 < full, "{left:?} pages, and {full} before");
}

/// Blocks of one extent are written again and again until little of it is needed.
#[test]
fn extents_that_are_mostly_unused_are_given_up() {
    let table = squares(64 * 1024, TableOptions::keyed(vec![0]));
    let names = catalog_of(&table);
    let mut store = Store::new();
    store.check(&names);
    let full = store.file.size().0;
    let mut random = Random(4);
    for _ in 0..60 {
        for _ in 0..4 {
            let id = find(&table, random.below(64 * 1024) as i64).expect("it is there");
            table.write().update(id, &[(1, Datum::Integer(random.below(1000).into()))]);
        }
        store.checkpoint(&names);
        let (pages, _) = store.file.size();
        assert!(pages < full * 3, "{pages} pages, and {full} with all rows");
    }
    store.check(&names);
}

/// The model test, with checkpoints between its steps: forks, savepoints, upkeep, many rows at once.
#[test]
fn whatever_is_done_to_a_table_is_in_the_next_checkpoint() {
    let seed = std::env::var("ENTASIS_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let keys: [(Layout, (DataType, bool), &[usize]); 6] = [
        (Layout::Insertion, (DataType::Int64, true), &[]),
        (Layout::EquiGhost, (DataType::Int64, false), &[0]),
        (Layout::EquiGhost, (DataType::Varchar, true), &[0, 1]),
        (Layout::Sorted, (DataType::Int64, true), &[0]),
        (Layout::Delta, (DataType::Float64, true), &[0]),
        (Layout::Casper, (DataType::Int64, false), &[0]),
    ];
    for own in seed.map_or(1..4, |seed| seed..seed + 1) {
        for (layout, key_type, key) in keys {
            let mut store: Option<Store> = None;
            let mut random = Random(own);
            run_beside(own, layout, key_type, key, 700, &mut |table| match random.below(4) {
                0 => store.get_or_insert_with(Store::new).check(&catalog_of(table)),
                1 => store.get_or_insert_with(Store::new).checkpoint(&catalog_of(table)),
                _ => {}
            });
        }
    }
}

/// Writers go on while checkpoints run. Each that is read back is the version that it pinned.
#[test]
fn checkpoints_run_beside_writers() {
    let options =
        TableOptions { block_slots: 64, group_slots: 512, ghost: 0.3, ..TableOptions::keyed(vec![0]) };
    let table = squares(3000, options);
    let names = catalog_of(&table);
    let mut store = Store::new();
    store.checkpoint(&names);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (table, is_over) = (&table, &is_over);
        for seed in 1..3u64 {
            scope.spawn(move || {
                let mut random = Random(seed);
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let key = Datum::Integer(random.below(4000).into());
                    let value = Datum::Integer(random.below(1000).into());
                    let mut writer = table.write();
                    match writer.find(&[key]) {
                        Some(id) => writer.delete(id),
                        None => _ = writer.insert(&[key, value]),
                    }
                }
            });
        }
        for _ in 0..40 {
            let moment = Moment::take(&names, &Images::default(), || 0);
            let pinned = moment.tables[0].0.clone();
            store.last = checkpoint(&store.file, &moment, &store.last, State::Open).unwrap();
            drop(moment);
            let (opened, _) = store.opened();
            assert_same_rows(&pinned, &opened.version().table("t").unwrap().table.snapshot());
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    store.check(&names);
}

#[test]
fn a_table_that_takes_the_place_of_another_is_written() {
    let old = squares(2000, TableOptions::keyed(vec![0]));
    let mut store = Store::new();
    store.check(&catalog_of(&old));
    let new = old.snapshot().relaid(TableOptions::default()).expect("small strings");
    store.check(&catalog_of(&new));
    store.check(&catalog([]));
    assert!(store.file.size().0 < 8, "{:?}", store.file.size());
}

#[test]
fn a_checkpoint_that_fails_takes_nothing() {
    let table = squares(2000, TableOptions::keyed(vec![0]));
    let (names, mut store) = (catalog_of(&table), Store::new());
    store.check(&names);
    let mut writer = ExtentWriter::new(&store.file, Tail::default());
    writer.put(&[7; 9000]).expect("memory does not fail");
    writer.abandon();
    store.check(&names);
}
