//! Tables of groups beside a list of the keys seen so far, under all kinds, types and hashes.

use super::*;
use crate::exec::testing::{Chance, chunk_of, column};
use entasis_vector::{DataType, Value};

/// Keys of one or two columns, of which some repeat within a chunk, some in later ones, and some are NULL.
fn rows(types: &[DataType], count: usize, distinct: u64, chance: &mut Chance) -> Vec<Vec<Value>> {
    let value = |ty: &DataType, chance: &mut Chance| {
        let number = chance.below(distinct);
        match ty {
            _ if chance.below(40) == 0 => Value::Null,
            DataType::Varchar => Value::Text(format!("a text that is {number} long").into()),
            DataType::UInt8 => Value::Integer(i128::from(number % 7)),
            // Spread far, so that they are no indexes.
            _ => Value::Integer(i128::from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64)),
        }
    };
    (0..count).map(|_| types.iter().map(|ty| value(ty, chance)).collect()).collect()
}

#[test]
fn groups_are_those_of_a_list_whatever_the_hashes() {
    let types: [&[DataType]; 4] = [
        &[DataType::Int64],
        &[DataType::Varchar],
        &[DataType::Int64, DataType::Varchar],
        &[DataType::UInt8, DataType::Int64],
    ];
    let mut out_of_order = 0;
    for case in 0..48u64 {
        let mut chance = Chance(entasis_vector::hash::hash_u64(case + 1) | 1);
        let types = types[case as usize % types.len()];
        let (collide, distinct) = (case % 3 > 0, [3, 50, 400, 20_000][(case / 12) as usize]);
        let types: Vec<DataType> = types.to_vec();
        let metas: Vec<ColumnMeta> = types.iter().enumerate().map(|(i, ty)| column(i as u32, *ty)).collect();
        let columns: Vec<usize> = (0..types.len()).collect();
        let mut table = match case % 2 {
            0 => GroupTable::new(&metas, 0, collide),
            _ => GroupTable::hashed(&metas, 0, collide),
        };
        let (mut groups, mut firsts) = (Vec::new(), Vec::new());
        // By number of a group, its key.
        let mut known: Vec<Vec<Value>> = Vec::new();
        for _ in 0..4 {
            let rows = rows(&types, 1 + chance.below(500) as usize, distinct, &mut chance);
            let mut new: Vec<(Vec<Value>, u16)> = Vec::new();
            for (at, row) in rows.iter().enumerate() {
                if !known.contains(row) && !new.iter().any(|(key, _)| key == row) {
                    new.push((row.clone(), at as u16));
                }
            }
            table.find_new(&chunk_of(&metas, &rows, &mut chance), &columns, &mut groups, &mut firsts);
            assert_eq!(firsts, new.iter().map(|(_, at)| *at).collect::<Vec<_>>(), "case {case}");
            let before = known.len();
            known.resize(before + new.len(), Vec::new());
            assert_eq!(table.groups(), known.len(), "case {case}");
            for (key, at) in new {
                let group = groups[at as usize] as usize;
                assert!(group >= before && known[group].is_empty(), "case {case}: {group} is given twice");
                known[group] = key;
            }
            let starts: Vec<u32> = firsts.iter().map(|&row| groups[row as usize]).collect();
            out_of_order += usize::from(!starts.is_sorted());
            for (row, &group) in rows.iter().zip(&groups) {
                assert_eq!(*row, known[group as usize], "case {case}");
            }
        }
        for (group, key) in known.iter().enumerate() {
            let kept: Vec<Value> = columns.iter().map(|&at| table.keys().value(group as u32, at)).collect();
            assert_eq!(kept, *key, "case {case}");
        }
    }
    assert!(out_of_order > 20, "what relies on the order of ids is found out: {out_of_order}");
}
