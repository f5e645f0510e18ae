//! What users are told of upkeep: what it did last to a row group and what comes next, in every layout; and
//! how wide columns are encoded.

use super::counters::{key, loaded, options, row};
use super::rows::insert;
use crate::value::Datum;
use crate::{Layout, Standing, Table, TableOptions, UpkeepReason, Upkept};
use entasis_vector::{DataType, Field, Value};
use std::sync::Arc;
use std::time::Duration;

const WIDTH: usize = 64;

fn table(layout: Layout, rest: u32) -> Arc<Table> {
    loaded(1600, TableOptions { layout, ghost: 0.05, rest, ..options(WIDTH, 64, 1) })
}

fn reason(table: &Arc<Table>) -> UpkeepReason {
    table.snapshot().upkeep_reason(0).expect("there is a row group")
}

fn round(table: &Arc<Table>) -> UpkeepReason {
    assert!(table.upkeep(Duration::from_secs(60)).is_done);
    reason(table)
}

/// Whatever upkeep does in a round, it was due before; and what it leaves alone was not.
fn assert_told_before(table: &Arc<Table>) -> UpkeepReason {
    let before = reason(table);
    let done = table.upkeep(Duration::from_secs(60));
    let after = reason(table);
    let did = done.spread + done.encoded > 0;
    assert!(!did || before.next == Standing::Due, "{before}, and {done:?} was done");
    assert!(did || before.last == after.last, "{before}, then {after}");
    after
}

#[test]
fn a_table_that_is_written_and_rests_is_explained() {
    for layout in [Layout::Equi, Layout::EquiGhost, Layout::Sorted, Layout::Delta, Layout::Casper] {
        let table = table(layout, 4);
        (0..40).for_each(|_| {
            assert_told_before(&table);
        });
        let rested = reason(&table);
        assert_eq!(rested.next, Standing::Idle, "{layout:?}");
        table.write().insert(&row(5001));
        assert_eq!(reason(&table).next, Standing::Written);
        let last = reason(&table).last;
        assert_eq!(round(&table).next, Standing::Due, "{layout:?}");
        assert_eq!(reason(&table).last, last, "it was left alone");
        // What was encoded for reading waits for the next rest, but for what an insert has laid anew.
        (0..3).for_each(|_| {
            assert_told_before(&table);
        });
        let last = reason(&table).last;
        assert!(last == rested.last || last == Some(Upkept::Encoded), "{layout:?}: {last:?}");
        let waits = reason(&table).next;
        assert!(matches!(waits, Standing::Waits { rounds, of } if 0 < rounds && rounds <= of), "{waits}");
        (0..40).for_each(|_| {
            assert_told_before(&table);
        });
        let rested = reason(&table);
        assert_eq!((rested.last, rested.next), (Some(Upkept::ForReading), Standing::Idle), "{layout:?}");
    }
}

#[test]
fn reasons_to_lay_rows_anew_differ() {
    // Each partition has about three ghosts, and gets about four rows.
    let hot = |layout: Layout| {
        let table = table(layout, crate::NEVER);
        (0..70).for_each(|i| {
            table.write().insert(&row(2001 + i * 150));
        });
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.extend(assert_told_before(&table).last);
        }
        seen.dedup();
        seen
    };
    assert_eq!(hot(Layout::EquiGhost).first(), Some(&Upkept::LowOnGhosts));
    assert_eq!(hot(Layout::Equi), [Upkept::Encoded]);
    // Half of the rows of some slices are gone.
    let table = table(Layout::EquiGhost, crate::NEVER);
    let mut writer = table.write();
    for i in (1..700).step_by(2) {
        let id = writer.find(&key(i * 10)).unwrap();
        writer.delete(id);
    }
    drop(writer);
    round(&table);
    assert_eq!(round(&table).last, Some(Upkept::Sparse));
    // A row group with the ghosts of writers rests.
    let table = self::table(Layout::EquiGhost, 2);
    let more: Vec<i64> = (0..400).map(|i| i * 30 + 1).collect();
    more.into_iter().for_each(|value| {
        table.write().insert(&row(value));
    });
    let mut seen: Vec<Upkept> = (0..12).filter_map(|_| assert_told_before(&table).last).collect();
    seen.dedup();
    assert!(seen.contains(&Upkept::Together) && seen.last() == Some(&Upkept::ForReading), "{seen:?}");
    assert!(table.snapshot().upkeep_reason(99).is_none());
}

#[test]
fn reasons_are_sentences() {
    let reason = UpkeepReason { last: Some(Upkept::Sparse), next: Standing::Waits { rounds: 2, of: 8 } };
    assert_eq!(
        reason.to_string(),
        "laid over fewer slices: most slots were empty; left alone: has rested for 2 of 8 rounds"
    );
    let reason = UpkeepReason { last: None, next: Standing::Idle };
    assert_eq!(reason.to_string(), "left alone: not written since it was encoded");
}

#[test]
fn encoded_bits_are_those_of_blocks() {
    let table = table(Layout::EquiGhost, crate::NEVER);
    let snapshot = table.snapshot();
    // Each slice has some sixty keys that are ten apart, and one value.
    let (keys, values) = (snapshot.encoded_bits(&[0]), snapshot.encoded_bits(&[1]));
    assert!((8.0..=16.0).contains(&keys) && values == 0.0, "{keys} {values}");
    assert_eq!(snapshot.encoded_bits(&[0, 1]), keys + values);
    assert_eq!(snapshot.encoded_bits(&[]), 0.0);
    let mut writer = table.write();
    let id = writer.find(&key(10)).unwrap();
    writer.update(id, &[(1, Datum::Integer(1_000_000))]);
    drop(writer);
    assert!(table.snapshot().encoded_bits(&[1]) > 0.0, "one block is wider now");
}

/// Full partitions get short slices, whose numbers are not encoded.
#[test]
fn short_slices_count_by_their_slots() {
    let width = crate::BLOCK_ROWS;
    let options = TableOptions { layout: Layout::EquiGhost, ghost: 0.0, ..TableOptions::keyed(vec![0]) };
    let schema: Vec<Field> =
        ["k", "hundreds", "multiples"].map(|name| Field::new(name, DataType::Int64)).into();
    let table = Table::with_options("t", schema, options);
    let row = |key: i128| [key, key * 7919 % 1000 * 100, key * 13 % 997 * 1000].map(Value::Integer);
    insert(&table, &(0..9000).map(|number| row(number * 2).into()).collect::<Vec<_>>(), false);
    for round in 0.. {
        assert!(round < 2000, "upkeep comes to an end");
        let done = table.upkeep(Duration::from_secs(60));
        if done.is_done && done.warm + done.spread + done.encoded + done.overtaken == 0 {
            break;
        }
    }
    let before = table.snapshot().encoded_bits(&[0]);
    for i in 0..40 {
        let new = row(i * 442 + 1);
        table.write().insert(&new.each_ref().map(|value| Datum::of_value(value, DataType::Int64)));
    }
    let snapshot = table.snapshot();
    let (mut short, mut bits) = (Vec::new(), Vec::new());
    for group in snapshot.row_groups() {
        for block in 0..group.blocks() {
            let info = group.block_info(0, block);
            bits.push(info.bits_per_value);
            short.extend((info.slots < width).then_some((info.slots, info.bits_per_value)));
        }
    }
    // The partition that was loaded last is short as well, and encoded.
    assert!(short.iter().filter(|(slots, bits)| *slots < 100 && *bits == 64.0).count() >= 8, "{short:?}");
    let whole = bits.iter().sum::<f64>() / bits.len() as f64;
    let own = snapshot.encoded_bits(&[0]);
    assert!(
        before <= own && own < 1.2 * before && whole > 1.5 * before,
        "{before}, {own}, not {whole}: {bits:?}"
    );
}
