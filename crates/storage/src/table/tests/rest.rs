//! Row groups of tables with a layout key that rest: how they are encoded, how many ghosts they have, what
//! writes change, and that nothing is encoded again and again. Slices are counted, time is not.

use super::rows::insert;
use crate::tests::random::Random;
use crate::value::Datum;
use crate::{BLOCK_ROWS, Layout, NEVER, Table, TableOptions, Upkeep};
use entasis_vector::{DataType, Field, Schema, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const COLUMNS: usize = 5;

fn schema() -> Schema {
    vec![
        Field { nullable: false, ..Field::new("k", DataType::Int64) },
        Field::new("narrow", DataType::Int32),
        Field::new("hundreds", DataType::Int64),
        Field::new("price", DataType::Float64),
        Field::new("text", DataType::Varchar),
    ]
}

/// Even keys below twice `rows`; other values of a narrow range.
fn row(key: i128) -> Vec<Value> {
    let mixed = (key * 7919 + 13) % 100_003;
    vec![
        Value::Integer(key),
        Value::Integer(mixed % 5000),
        Value::Integer(mixed * 100),
        Value::Float((mixed % 900) as f64 / 4.0),
        Value::Text(format!("text {}", mixed % 7).into()),
    ]
}

fn loaded(rows: i128, in_order: bool, options: TableOptions) -> Arc<Table> {
    let table = Table::with_options("t", schema(), options);
    let mut keys: Vec<i128> = (0..rows).map(|number| number * 2).collect();
    if !in_order {
        Random(11).shuffle(&mut keys);
    }
    insert(&table, &keys.into_iter().map(row).collect::<Vec<_>>(), false);
    table
}

fn keyed() -> TableOptions {
    TableOptions { unique: true, ..TableOptions::keyed(vec![0]) }
}

/// Rounds of upkeep until nothing is left to do. What all of them did.
fn rest(table: &Arc<Table>) -> Upkeep {
    let mut sum = Upkeep::default();
    for round in 0.. {
        assert!(round < 1000, "upkeep comes to an end");
        let done = table.upkeep(Duration::from_secs(60));
        (sum.spread, sum.encoded) = (sum.spread + done.spread, sum.encoded + done.encoded);
        if done.is_done && done.warm + done.spread + done.encoded + done.overtaken == 0 {
            break;
        }
    }
    table.snapshot().check();
    table.sweep();
    sum
}

/// The encodings of a column.
fn encodings(table: &Arc<Table>, column: usize) -> BTreeSet<&'static str> {
    let snapshot = table.snapshot();
    let slices = snapshot.row_groups().flat_map(|group| &group.slices);
    slices.map(|slice| slice.block(column).values.name()).collect()
}

fn set(table: &Arc<Table>, key: i64, column: usize, value: Datum<'_>) {
    let mut writer = table.write();
    let id = writer.find(&[Datum::Integer(key.into())]).expect("the key is there");
    writer.update(id, &[(column, value)]);
}

#[test]
fn a_table_that_rests_takes_as_much_memory_as_one_without_a_key() {
    for in_order in [true, false] {
        let rows = 20_000;
        let with_key = loaded(rows, in_order, keyed());
        rest(&with_key);
        let without = loaded(rows, in_order, TableOptions::default());
        without.sweep();
        let (with_key_bytes, without_bytes) = (with_key.bytes(), without.bytes());
        assert!(with_key_bytes * 10 < without_bytes * 12, "{with_key_bytes} bytes, {without_bytes} without");
        let of = |column| encodings(&with_key, column).into_iter().collect::<Vec<_>>();
        assert_eq!((of(1), of(2), of(3)), (vec!["packed"], vec!["multiples"], vec!["scaled doubles"]));
        assert_eq!(of(4), ["dictionary"]);
        assert_eq!(of(0), ["packed"], "keys are written by every insert");
        let snapshot = with_key.snapshot();
        for key in (0..rows).step_by(77) {
            let id = snapshot.find(&[Datum::Integer(key * 2)]).expect("the key is there");
            let mut found = Vec::new();
            snapshot.read(id, &[0, 1, 2, 3, 4], &mut found);
            let found: Vec<Value> =
                found.iter().zip(&schema()).map(|(datum, field)| datum.value(field.ty)).collect();
            assert_eq!(found, row(key * 2));
        }
    }
}

#[test]
fn a_write_converts_only_the_blocks_that_it_does_not_fit() {
    let table = loaded(3000, true, keyed());
    rest(&table);
    let plain = |table: &Arc<Table>| {
        let is_plain = |name: &&str| matches!(*name, "frame of reference" | "flat");
        (0..COLUMNS).filter(|&column| encodings(table, column).iter().any(is_plain)).count()
    };
    assert_eq!(plain(&table), 0);
    set(&table, 500, 1, Datum::Integer(17));
    let id = table.snapshot().find(&[Datum::Integer(502)]).expect("it is there");
    table.write().delete(id);
    assert_eq!(plain(&table), 0, "packed codes are written in place, and a deleted row changes none");
    set(&table, 504, 2, Datum::Integer(1700));
    assert_eq!(plain(&table), 1, "multiples");
    // A ghost takes a row if only one more block has another encoding.
    let new = row(501);
    table.write().insert(&super::model::datums(&new, table.schema()));
    assert_eq!(plain(&table), 2, "multiples and decimals");
    assert_eq!(short(&table), 0);
    set(&table, 600, 1, Datum::Integer(1 << 30));
    assert_eq!(plain(&table), 3, "it does not fit");
    table.snapshot().check();
    rest(&table);
    assert_eq!(plain(&table), 0);
    let row = |key: i64| table.snapshot().find(&[Datum::Integer(key.into())]);
    assert!(row(501).is_some() && row(502).is_none());
    assert!(table.snapshot().datum(row(600).expect("it is there"), 1).is_same(Datum::Integer(1 << 30)));
}

/// The slices that were added for new rows and are short.
fn short(table: &Arc<Table>) -> usize {
    let snapshot = table.snapshot();
    let slices = snapshot.row_groups().flat_map(|group| &group.slices);
    slices.filter(|slice| slice.rows() > 0 && slice.is_short(BLOCK_ROWS)).count()
}

/// The blocks of all slices but the short ones, by address.
fn blocks(table: &Arc<Table>) -> Vec<Vec<usize>> {
    let snapshot = table.snapshot();
    let slices = snapshot.row_groups().flat_map(|group| &group.slices);
    let whole = slices.filter(|slice| !slice.is_short(BLOCK_ROWS));
    whole.map(|slice| slice.blocks().iter().map(|block| block.address()).collect()).collect()
}

/// All rows, in order.
fn rows(table: &Arc<Table>) -> Vec<Vec<Value>> {
    let snapshot = table.snapshot();
    let value = |id, column: usize| snapshot.datum(id, column).value(snapshot.schema()[column].ty);
    let row = |id| (0..COLUMNS).map(|column| value(id, column)).collect();
    let mut rows: Vec<Vec<Value>> = snapshot.row_ids().map(row).collect();
    rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
    rows
}

/// Full slices.
const ROWS: i64 = 20 * BLOCK_ROWS as i64;

#[test]
fn a_row_for_a_slice_at_rest_leaves_its_blocks_alone() {
    for (layout, ghost) in [(Layout::Delta, 0.1), (Layout::EquiGhost, 0.0), (Layout::Casper, 0.01)] {
        for is_beside in [false, true] {
            let options = TableOptions { layout, ghost, ..keyed() };
            let table = loaded(i128::from(ROWS), true, options);
            rest(&table);
            let (at_rest, bytes) = (blocks(&table), table.bytes());
            let held = is_beside.then(|| table.snapshot());
            // A row for every other slice, and then more for each of these.
            let mut random = Random(5);
            let mut keys: BTreeSet<i64> = (0..ROWS).step_by(2 * BLOCK_ROWS).map(|at| at * 2 + 1).collect();
            let first: Vec<i64> = keys.iter().copied().collect();
            for _ in 0..30 {
                for key in &first {
                    keys.insert(key + 2 * random.number(500));
                }
            }
            let mut model: Vec<Vec<Value>> = (0..i128::from(ROWS)).map(|number| row(number * 2)).collect();
            for &key in &keys {
                let new = row(key.into());
                table.write().insert(&super::model::datums(&new, table.schema()));
                model.push(new);
            }
            model.sort_by(|a, b| a[0].total_cmp(&b[0]));
            assert_eq!(blocks(&table), at_rest, "{layout:?}: no block at rest was written or replaced");
            let extended = short(&table);
            assert!(extended >= first.len(), "{extended} of {}", first.len());
            table.snapshot().check();
            assert_eq!(rows(&table), model);
            if let Some(held) = held {
                assert_eq!(held.rows(), ROWS as u64);
                assert!(held.find(&[Datum::Integer(first[3].into())]).is_none());
                held.check();
            }
            table.sweep();
            let grown = table.bytes() - bytes;
            assert!(grown < keys.len() * 600 + extended * 4000, "{grown} bytes for {} rows", keys.len());
            // A short slice that is encoded again has no more memory than before.
            (0..3).for_each(|_| _ = table.upkeep(Duration::from_secs(60)));
            if layout == Layout::Delta {
                assert_eq!(short(&table), extended, "they wait until the row group rests");
                table.sweep();
                assert!(table.bytes() - bytes <= grown, "{} bytes, {grown}", table.bytes() - bytes);
            }
            rest(&table);
            // Few slices more than the rows need may stay as they are.
            assert!(short(&table) <= 2, "{layout:?}: {} short slices", short(&table));
            let of = |column| encodings(&table, column).into_iter().collect::<Vec<_>>();
            assert!(of(2) == ["multiples"] && of(3) == ["scaled doubles"], "{:?} {:?}", of(2), of(3));
            assert_eq!(rows(&table), model);
        }
    }
}

#[test]
fn a_partition_is_extended_once() {
    let table = loaded(3000, true, TableOptions { ghost: 0.0, ..keyed() });
    rest(&table);
    let slots = || table.snapshot().row_groups().map(crate::RowGroup::slots).sum::<usize>();
    let before = slots();
    for key in 0..900 {
        table.write().insert(&super::model::datums(&row(key * 2 + 1), table.schema()));
        assert_eq!(slots(), before + BLOCK_ROWS);
    }
    // What is full is spread over one slice more.
    for key in 900..1700 {
        table.write().insert(&super::model::datums(&row(key * 2 + 1), table.schema()));
    }
    table.snapshot().check();
    let partitions = table.snapshot().partitions(0);
    assert!(partitions.iter().all(|own| own.rows + own.ghosts <= 2 * BLOCK_ROWS + BLOCK_ROWS / 2));
    assert_eq!(table.rows(), 4700);
}

/// Once each partition has got a slice for one new row, more than half of the slots are empty. They have no
/// memory, so a row that is deleted is no reason to lay the others anew; many rows that are deleted are.
#[test]
fn a_row_that_is_deleted_leaves_extended_partitions_alone() {
    for (layout, ghost) in [(Layout::Delta, 0.2), (Layout::EquiGhost, 0.2), (Layout::Casper, 0.01)] {
        let table = loaded(i128::from(ROWS), true, TableOptions { layout, ghost, ..keyed() });
        rest(&table);
        // Somebody may read the slices at rest, so their blocks are not written in place.
        let held = table.snapshot();
        for key in (0..ROWS).step_by(BLOCK_ROWS / 4).map(|at| at * 2 + 1) {
            table.write().insert(&super::model::datums(&row(key.into()), table.schema()));
        }
        let slots = || table.snapshot().row_groups().map(crate::RowGroup::slots).sum::<usize>();
        let extended = slots();
        assert!(extended > 2 * table.rows() as usize, "{layout:?}: {extended} slots");
        let (before, extensions) = (blocks(&table), short(&table));
        let delete = |keys: std::ops::Range<i64>| {
            let mut writer = table.write();
            for key in keys {
                // Some are gone already when many are deleted.
                if let Some(id) = writer.find(&[Datum::Integer((key * 2).into())]) {
                    writer.delete(id);
                }
            }
        };
        (0..40).for_each(|key| delete(key * 500..key * 500 + 1));
        assert_eq!(table.rows() as i64, ROWS + ROWS / (BLOCK_ROWS as i64 / 4) - 40);
        assert_eq!((slots(), short(&table)), (extended, extensions), "{layout:?}: nothing is laid anew");
        assert!(blocks(&table) == before, "{layout:?}: no block is replaced");
        drop(held);
        delete(ROWS / 10..ROWS / 10 * 9 - 500);
        assert!(slots() < extended / 2, "{layout:?}: memory of deleted rows is freed: {} slots", slots());
        table.snapshot().check();
    }
}

#[test]
fn ghosts_of_a_table_that_rests_are_its_share() {
    for ghost in [0.0, 0.01, 0.1] {
        let table = loaded(40_000, false, TableOptions { ghost, ..keyed() });
        let mut random = Random(3);
        let mut keys = BTreeSet::new();
        for _ in 0..4000 {
            let key = random.number(40_000) * 2 + 1;
            if keys.insert(key) {
                table.write().insert(&super::model::datums(&row(key.into()), table.schema()));
            }
        }
        let slots = || table.snapshot().row_groups().map(crate::RowGroup::slots).sum::<usize>();
        (0..4).for_each(|_| _ = table.upkeep(Duration::from_secs(60)));
        let in_use = slots();
        rest(&table);
        let rows = table.rows() as usize;
        assert_eq!(rows, 40_000 + keys.len());
        let share = (rows as f64 / (1.0 - ghost)) as usize;
        assert!(in_use * 100 > rows * 105, "an eighth where it is in use: {in_use} slots, {rows} rows");
        assert!(slots() <= share + 3 * BLOCK_ROWS, "{} slots, {share} with its share", slots());
    }
}

#[test]
fn what_is_written_again_and_again_is_not_encoded_again_and_again() {
    let table = loaded(3000, true, keyed());
    let first = rest(&table);
    let (mut encoded, mut rounds) = (0, 0);
    for round in 0..1000 {
        // Each time just after it has been encoded: this is the worst that a writer can do.
        let is_settled =
            table.snapshot().row_groups().all(|group| group.wear.is_settled && !group.wear.is_hot);
        if is_settled {
            set(&table, 500, 2, Datum::Integer(round));
            rounds += 1;
        }
        encoded += table.upkeep(Duration::from_secs(60)).encoded;
    }
    assert!(first.encoded >= 3);
    // 16, 32, 64, … rounds, and from 512 on no more than that.
    assert!(rounds <= 8, "{rounds} times in 1000 rounds");
    assert!(encoded <= 3 * rounds, "{encoded} slices were encoded {rounds} times");
}

#[test]
fn a_table_that_never_rests_stays_writable() {
    let table = loaded(3000, true, TableOptions { rest: NEVER, ..keyed() });
    for _ in 0..100 {
        assert_eq!(table.upkeep(Duration::from_secs(60)).warm, 0);
    }
    let of = |column| encodings(&table, column).into_iter().collect::<Vec<_>>();
    assert_eq!((of(1), of(2), of(3)), (vec!["packed"], vec!["packed"], vec!["flat"]));
    // The paper's layouts for comparison keep their ghosts where they are.
    let dense = loaded(3000, false, TableOptions { layout: Layout::Equi, ..keyed() });
    rest(&dense);
    assert!(encodings(&dense, 3).contains("scaled doubles"));
}
