//! Value sets against the value of one slot after the other.

use crate::scan::ValueSet;
use crate::table::tests::rows::insert;
use crate::{Compression, Condition, RowId, Table, TableOptions};
use entasis_vector::{DataType, Field, PhysicalType, Value};
use std::sync::Arc;

/// 5000 numbers: in runs of several lengths, all different, and one block of each of a constant and NULLs.
fn rows(length: usize) -> Vec<Value> {
    let row = |i: usize| match i {
        1024..2048 => Value::Integer(40),
        2048..3072 => Value::Null,
        i if i % 11 == 5 && i > 3072 => Value::Null,
        i => Value::Integer((i / length * 7919 % 100) as i128 - 20),
    };
    (0..5000).map(row).collect()
}

#[test]
fn rows_of_a_set_are_those_whose_values_are_in_it() {
    let mut were_runs = false;
    for (length, ty) in
        [(1, DataType::Int64), (9, DataType::Int64), (70, DataType::Int32), (333, DataType::UInt8)]
    {
        for compression in [Compression::Auto, Compression::None, Compression::Packed] {
            let is_signed = ty != DataType::UInt8;
            let own = |value: Value| match value {
                Value::Integer(v) if !is_signed => Value::Integer(v.abs()),
                value => value,
            };
            let rows: Vec<Value> = rows(length).into_iter().map(own).collect();
            let options = TableOptions { compression, ..TableOptions::default() };
            let table = Table::with_options("t", vec![Field::new("a", ty)], options);
            let lines: Vec<Vec<Value>> = rows.iter().map(|value| vec![value.clone()]).collect();
            insert(&table, &lines, false);
            let snapshot = table.snapshot();
            let group = snapshot.row_group(0).expect("it has rows");
            let everything = vec![0..1, 1..group.slots()];
            let few = vec![3..900, 1000..1100, 2000..3500.min(group.slots())];
            were_runs |= group.is_in_runs(0, &everything[..1]) && length > 1;
            let sets: [(i64, i64, Vec<u64>); 5] = [
                (-20, 79, vec![u64::MAX, u64::MAX]),
                (-20, 79, vec![0, 0]),
                (-10, 60, vec![0x5555_5555_5555_5555, 0x5555_5555_5555_5555]),
                (40, 40, vec![1]),
                (-7, 9, vec![0x8001]),
            ];
            for (low, high, words) in sets {
                let has = |v: i128| {
                    let at = (v - i128::from(low)) as usize;
                    v >= low.into() && v <= high.into() && words[at / 64] >> (at % 64) & 1 != 0
                };
                let set = ValueSet::new((low, high), Arc::new(words.clone()));
                let physical: PhysicalType = ty.physical();
                for runs in [&everything, &few] {
                    let slots: Vec<usize> = runs.iter().flat_map(|run| run.clone()).collect();
                    let value = |slot: usize| {
                        let mut datums = Vec::new();
                        snapshot.read(RowId { group: 0, slot: slot as u32 }, &[0], &mut datums);
                        datums[0].value(ty)
                    };
                    let is_live = |at: usize| group.is_live(slots[at]);
                    let passes =
                        |at: &usize| is_live(*at) && matches!(value(slots[*at]), Value::Integer(v) if has(v));
                    let twin: Vec<u16> = (0..slots.len()).filter(passes).map(|at| at as u16).collect();
                    let mut found = Vec::new();
                    let condition = [Condition::Values(0, physical, set.clone())];
                    group.select_runs(&condition, runs, &mut found);
                    assert_eq!(found, twin, "{low} to {high}, runs of {length}, {compression:?}");
                    // Of some of the rows.
                    let some = |row: &u16| row % 3 != 1 && is_live((*row).into());
                    let mut kept: Vec<u16> = (0..slots.len() as u16).filter(some).collect();
                    group.retain_in_set(0, &set, physical, runs, &mut kept);
                    let twin: Vec<u16> = twin.into_iter().filter(some).collect();
                    assert_eq!(kept, twin, "{low} to {high}, runs of {length}, {compression:?}");
                }
            }
        }
    }
    assert!(were_runs, "some blocks are runs");
}
