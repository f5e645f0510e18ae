//! Rows of all types and encodings, as columns and as tuples.

use super::*;
use crate::exec::testing::{Chance, TwoThreads};
use crate::exec::tuple::tests as tuples;
use entasis_vector::{
    Buffer, CHUNK_ROWS, Chunk, Dictionary, PhysicalType, Selection, StringHeap, Value, Vector,
};
use std::sync::Arc;

fn text(i: usize) -> Value {
    match i % 5 {
        0 => Value::Null,
        1 => Value::Text(format!("short {i}").into()),
        _ => Value::Text(format!("a text that is not short: {i}").into()),
    }
}

fn chunk(first: usize, rows: usize) -> Chunk {
    let mut chunk = Chunk::new();
    chunk.reset(rows);
    let dense = chunk.push_group(Selection::ALL);
    let backwards: Vec<u16> = (0..rows as u16).rev().collect();
    let reversed = chunk.push_group(Selection::from_indices(&backwards));
    let numbers: Vec<i64> = (first..first + rows).map(|v| v as i64).collect();
    let texts: Vec<Value> = (first..first + rows).rev().map(text).collect();
    chunk.push_column(Vector::from_slice(&numbers), dense);
    chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).unwrap(), reversed);
    chunk.push_column(Vector::constant(PhysicalType::Str, &text(2)).unwrap(), reversed);
    chunk
}

fn columns() -> Vec<ColumnMeta> {
    let wide = DataType::Decimal { precision: 38, scale: 0 };
    [wide, DataType::Varchar, DataType::Varchar].map(column_of).to_vec()
}

#[test]
fn rows_come_back_as_they_went_in() {
    let mut rows = Materialized::new(&columns());
    let mut other = Materialized::new(&columns());
    let total = 70_000;
    for first in (0..total).step_by(1000) {
        rows.append(&chunk(first, 1000), &[0, 1, 2], None);
    }
    for first in (total..total + 4000).step_by(1000) {
        let odd: Vec<u16> = (0..1000).filter(|r| r % 2 == 1).collect();
        other.append(&chunk(first, 1000), &[0, 1, 2], Some(&odd));
    }
    assert_eq!((rows.rows(), rows.segments(), rows.segment_rows(1)), (total, 2, total - SEGMENT_ROWS));
    assert_eq!(rows.absorb(other), 2);
    let expected: Vec<usize> = (0..total).chain((total..total + 4000).filter(|r| r % 2 == 1)).collect();
    let ids: Vec<u32> = rows.ids().collect();
    assert_eq!(ids.len(), expected.len());
    for (&id, &n) in ids.iter().zip(&expected).filter(|(_, n)| **n % 97 < 3) {
        assert_eq!(rows.value(id, 0), Value::Integer(n as i128));
        assert_eq!(rows.value(id, 1), text(n));
        assert_eq!(rows.value(id, 2), text(2));
    }
    let mut out = Vector::new(PhysicalType::Str);
    rows.gather(1, &[7, Materialized::NO_ROW, 70_000 & 0xffff | 1 << 16], &mut out);
    let values: Vec<Value> = (0..3).map(|i| out.value(i, DataType::Varchar)).collect();
    assert_eq!(values, [text(7), Value::Null, rows.value(70_000 & 0xffff | 1 << 16, 1)]);
    rows.read(1, 0, 131, 200, &mut out);
    for i in 0..200 {
        assert_eq!(out.value(i, DataType::Varchar), text(131 + i));
    }
}

#[test]
fn rows_in_pages_stay_where_they_were_written() {
    let mut pages = Materialized::in_pages(&columns(), Materialized::FIRST_ROOM);
    let mut other = Materialized::new(&columns());
    let picked: Vec<u16> = (0..1000).filter(|r| r % 3 != 1).collect();
    for first in (0..200_000).step_by(1000) {
        for rows in [&mut pages, &mut other] {
            rows.append(&chunk(first, 1000), &[0, 1, 2], Some(&picked));
        }
    }
    let sizes: Vec<usize> = (0..pages.segments()).map(|segment| pages.segment_rows(segment)).collect();
    let full: Vec<usize> = (8..16).map(|bits| 1 << bits).chain([SEGMENT_ROWS]).collect();
    assert!(sizes.starts_with(&full), "{sizes:?}");
    assert_eq!((pages.rows(), sizes.iter().sum()), (other.rows(), other.rows()));
    assert!(pages.bytes() < 3 * other.bytes() / 2, "{} and {}", pages.bytes(), other.bytes());
    for (n, (own, theirs)) in pages.ids().zip(other.ids()).enumerate().filter(|(n, _)| n % 97 < 3) {
        for column in 0..3 {
            assert_eq!(pages.value(own, column), other.value(theirs, column), "row {n}");
        }
    }
}

#[test]
fn the_id_space_ends_behind_the_last_row() {
    let mut rows = Materialized::new(&columns());
    assert_eq!(rows.id_space(), 0);
    for first in (0..2 * SEGMENT_ROWS).step_by(1024) {
        rows.append(&chunk(first, 1024), &[0, 1, 2], None);
        assert_eq!(rows.id_space(), rows.ids().last().unwrap() as usize + 1);
    }
}

#[test]
fn equal_pairs_are_kept_over_encodings_and_nulls() {
    let mut rows = Materialized::new(&[column_of(DataType::Varchar)]);
    let values: Vec<Value> = (0..50).map(|i| text(i % 10)).collect();
    let flat = Vector::from_values(PhysicalType::Str, &values).unwrap();
    rows.append_vectors(&[(&flat, None)], 50);
    let entries: Vec<Value> = [1, 2, 3].map(text).to_vec();
    let dictionary = Dictionary::new(Vector::from_values(PhysicalType::Str, &entries).unwrap(), 3);
    let mut coded = Vector::new(PhysicalType::Str);
    let codes = coded.begin_codes(&dictionary, 50);
    codes[..50].iter_mut().enumerate().for_each(|(i, c)| *c = i as u32 % 3);
    coded.set_null(10);
    let constant = Vector::constant(PhysicalType::Str, &text(3)).unwrap();
    let shifted: Vec<u16> = (0..50).map(|p| (p + 1) % 50).collect();
    for vector in [&flat, &coded, &constant] {
        for positions in [None, Some(&shifted[..])] {
            for null_equals_null in [false, true] {
                let (mut probes, mut builds) = (Vec::new(), Vec::new());
                let mut expected = Vec::new();
                for p in 0..50u16 {
                    for b in 0..50u32 {
                        probes.push(p);
                        builds.push(b);
                        let at = positions.map_or(p, |at| at[p as usize]) as usize;
                        let value = vector.value(at, DataType::Varchar);
                        if value == values[b as usize] && (null_equals_null || !value.is_null()) {
                            expected.push((p, b));
                        }
                    }
                }
                rows.retain_equal(0, vector, positions, null_equals_null, &mut probes, &mut builds);
                let kept: Vec<(u16, u32)> = probes.into_iter().zip(builds).collect();
                assert_eq!(kept, expected);
            }
        }
    }
}

#[test]
fn rows_that_were_put_in_place_are_those_that_came() {
    let (count, meta) = (2 * SEGMENT_ROWS + 700, [column_of(DataType::Int64)]);
    let keys: Vec<i64> = (0..count as i64).map(|i| i * 7 - 90).collect();
    let (placing, mut kept) = (Placing::new(&meta, &[true], count, false), Materialized::new(&meta));
    for (number, keys) in keys.chunks(CHUNK_ROWS).enumerate() {
        let vector = Vector::from_slice(keys);
        let mut few = Materialized::new(&meta);
        for rows in [&mut few, &mut kept] {
            rows.append_vectors(&[(&vector, None)], keys.len());
        }
        let numbers: Vec<u16> = (0..keys.len() as u16).collect();
        placing.put(&few, [(&numbers[..], number * CHUNK_ROWS)].into_iter(), &mut Vec::new());
    }
    let placed = placing.into_rows();
    // Segment 1 alone, its end and what follows, all segments.
    let near =
        |from: usize, rows: usize| (0..rows).map(|i| (from + i * 577 % rows) as u32).collect::<Vec<_>>();
    let segment = SEGMENT_ROWS;
    let places = [near(segment + 5, 900), near(2 * segment - 300, 900), near(0, count)];
    for ids in places.iter().flat_map(|ids| ids.chunks(CHUNK_ROWS)) {
        // One key in three differs, or none, or all.
        for other in [3, ids.len() + 1, 1] {
            let value = |i: usize, id: u32| keys[id as usize] + i64::from((i + 1).is_multiple_of(other));
            let probe: Vec<i64> = ids.iter().enumerate().map(|(i, &id)| value(i, id)).collect();
            let expected: Vec<u16> =
                (0..ids.len() as u16).filter(|&i| !(usize::from(i) + 1).is_multiple_of(other)).collect();
            for rows in [&placed, &kept] {
                let (mut probes, mut builds): (Vec<u16>, Vec<u32>) =
                    ((0..ids.len() as u16).collect(), ids.to_vec());
                rows.retain_equal(0, &Vector::from_slice(&probe), None, false, &mut probes, &mut builds);
                assert_eq!(probes, expected);
                assert!(probes.iter().zip(&builds).all(|(&p, &id)| ids[usize::from(p)] == id));
                let mut out = Vector::new(PhysicalType::I64);
                rows.gather(0, ids, &mut out);
                assert!(ids.iter().zip(out.values::<i64>()).all(|(&id, &value)| value == keys[id as usize]));
            }
        }
    }
}

/// Columns of all fixed types and known ranges: words, placed in any order and read in all ways, compared
/// with columns.
#[test]
fn rows_in_words_are_those_in_columns() {
    let (mut chance, mut with_words, mut heap) = (Chance(33), 0, StringHeap::default());
    for round in 0..60 {
        let fixed = |meta: &ColumnMeta| meta.physical != PhysicalType::Str;
        let count = 1 + chance.below(7) as usize;
        let metas: Vec<ColumnMeta> =
            std::iter::repeat_with(|| tuples::column(&mut chance)).filter(fixed).take(count).collect();
        let kept: Vec<bool> = metas.iter().map(|_| chance.below(6) != 0).collect();
        let rows = if round % 20 == 0 { SEGMENT_ROWS + 3000 } else { 1 + chance.below(5000) as usize };
        let mut columns = Materialized::new(&metas);
        let placing = Placing::new(&metas, &kept, rows, true);
        let own: Vec<ColumnMeta> =
            metas.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(meta, _)| meta.clone()).collect();
        let (mut few, mut words) = (Materialized::new(&own), Vec::new());
        for first in (0..rows).step_by(CHUNK_ROWS) {
            let count = CHUNK_ROWS.min(rows - first);
            let mut vector = |meta: &ColumnMeta, chance: &mut Chance| {
                let values: Vec<_> = (0..count).map(|_| tuples::value(meta, chance, &mut heap)).collect();
                let values_of = tuples::buffer_of(meta.physical.width(), &values);
                let mut vector = Vector::from_buffer(meta.physical, Arc::new(values_of), None);
                (0..count).filter(|&i| values[i].is_none()).for_each(|i| vector.set_null(i));
                vector
            };
            let vectors: Vec<Vector> = metas.iter().map(|meta| vector(meta, &mut chance)).collect();
            let all: Vec<(&Vector, Option<&[u16]>)> = vectors.iter().map(|vector| (vector, None)).collect();
            columns.append_vectors(&all, count);
            let some: Vec<_> =
                all.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(vector, _)| *vector).collect();
            few.restart();
            few.append_vectors(&some, count);
            // From the end to the beginning: in two runs, or in one that is finalized afterwards.
            let (start, half) = (rows - first - count, count / 3);
            let mut numbers: Vec<u16> = (0..count as u16).collect();
            if round % 2 == 0 {
                numbers.reverse();
                let runs = [(&numbers[half..], start + half), (&numbers[..half], start)];
                placing.put(&few, runs.into_iter(), &mut words);
            } else {
                placing.put(&few, [(&numbers[..], start)].into_iter(), &mut words);
                placing.finalize(start..start + count, &(0..count as u32).rev().collect::<Vec<_>>());
            }
        }
        let bytes = Placing::bytes_for(&metas, &kept, rows, true);
        let placed = placing.into_rows();
        with_words += usize::from(placed.words().is_some());
        assert!(placed.bytes() <= bytes, "{} of {bytes}", placed.bytes());
        let mirror = |id: u32| if id == Materialized::NO_ROW { id } else { rows as u32 - 1 - id };
        let missing = chance.below(2) == 0;
        let any = |_: usize| match chance.below(9) {
            0 if missing => Materialized::NO_ROW,
            _ => chance.below(rows as u64) as u32,
        };
        let ids: Vec<u32> = (0..1000).map(any).collect();
        let mirrored: Vec<u32> = ids.iter().map(|&id| mirror(id)).collect();
        for column in (0..metas.len()).filter(|&column| kept[column]) {
            let [mut a, mut b] = [(); 2].map(|()| Vector::new(metas[column].physical));
            let same = |a: &Vector, b: &Vector, rows: usize| {
                (0..rows).all(|i| a.value(i, metas[column].ty) == b.value(i, metas[column].ty))
            };
            placed.gather(column, &ids, &mut a);
            columns.gather(column, &mirrored, &mut b);
            assert!(same(&a, &b, ids.len()), "{:?}", metas[column]);
            let last = placed.segments() - 1;
            let first = chance.below(placed.segment_rows(last) as u64) as usize;
            let count = (placed.segment_rows(last) - first).min(CHUNK_ROWS);
            placed.read(column, last, first, count, &mut a);
            let read: Vec<u32> = (0..count).map(|i| mirror((last << 16 | (first + i)) as u32)).collect();
            columns.gather(column, &read, &mut b);
            assert!(same(&a, &b, count), "{:?}", metas[column]);
            // Pairs, half of which are equal.
            let there: Vec<u32> = ids.iter().copied().filter(|&id| id != Materialized::NO_ROW).collect();
            let others = |i: usize| if i.is_multiple_of(2) { mirror(there[i]) } else { mirror(there[0]) };
            columns.gather(column, &(0..there.len()).map(others).collect::<Vec<_>>(), &mut b);
            let find = |rows: &Materialized, ids: Vec<u32>| {
                let (mut probes, mut builds): (Vec<u16>, Vec<u32>) = ((0..ids.len() as u16).collect(), ids);
                rows.retain_equal(column, &b, None, missing, &mut probes, &mut builds);
                probes
            };
            assert_eq!(
                find(&placed, there.clone()),
                find(&columns, there.iter().map(|&id| mirror(id)).collect())
            );
        }
    }
    assert!(with_words > 20, "{with_words} of 60");
}

#[test]
fn floats_and_narrow_integers_compare_as_sql_does() {
    let mut rows = Materialized::new(&[
        column_of(DataType::Float64),
        column_of(DataType::Decimal { precision: 30, scale: 2 }),
    ]);
    let floats = Vector::from_slice(&[f64::NAN, 0.0, 1.0]);
    let numbers = Vector::from_slice(&[5i64, -5, 7]);
    rows.append_vectors(&[(&floats, None), (&numbers, None)], 3);
    let probe = Vector::from_slice(&[-f64::NAN, -0.0, 2.0]);
    let (mut p, mut b) = (vec![0, 1, 2], vec![0, 1, 2]);
    rows.retain_equal(0, &probe, None, false, &mut p, &mut b);
    assert_eq!((p, b), (vec![0, 1], vec![0, 1]));
    let (mut p, mut b) = (vec![0, 1, 2], vec![0, 1, 1]);
    rows.retain_equal(1, &numbers, None, false, &mut p, &mut b);
    assert_eq!((p, b), (vec![0, 1], vec![0, 1]));
}

#[test]
fn rearranged_rows_are_reordered_ones() {
    let make = || {
        let [mut rows, mut other] = [Materialized::new(&columns()), Materialized::new(&columns())];
        (0..140).for_each(|i| rows.append(&chunk(i * 1000, 1000), &[0, 1, 2], None));
        (140..150).for_each(|i| other.append(&chunk(i * 1000, 1000), &[0, 1, 2], None));
        rows.absorb(other);
        rows
    };
    let mut ids: Vec<u32> = make().ids().collect();
    let count = ids.len();
    (0..count).for_each(|i| ids.swap(i, i * 7919 % count));
    let twin = make().reordered(&ids);
    let rows = make().rearranged(&ids, &[true, true, false], &TwoThreads).unwrap();
    assert_eq!((rows.rows(), rows.segments(), rows.id_space()), (count, twin.segments(), count));
    assert!(rows.bytes() < twin.bytes());
    for id in (0..count as u32).filter(|id| id % 61 < 3) {
        for column in 0..2 {
            assert_eq!(rows.value(id, column), twin.value(id, column));
        }
    }
    let none = make().rearranged(&[], &[true; 3], &TwoThreads).unwrap();
    assert_eq!((none.rows(), none.segments()), (0, 0));
}

#[test]
fn columns_that_are_taken_out_lie_segment_by_segment() {
    let mut rows = Materialized::new(&columns());
    (0..140).for_each(|i| rows.append(&chunk(i * 1000, 1000), &[0, 1, 2], None));
    let values =
        |rows: &Materialized, column: usize| rows.ids().map(|id| rows.value(id, column)).collect::<Vec<_>>();
    let (before, bytes) = ([0, 1, 2].map(|column| values(&rows, column)), rows.bytes());
    let parts = rows.take_columns(1);
    assert_eq!(parts.iter().map(|part| part.rows()).sum::<usize>(), rows.rows());
    assert_eq!(parts.len(), rows.segments());
    let empty = Buffer::zeroed(0).capacity() * parts.len();
    assert_eq!(parts.iter().map(|part| part.bytes()).sum::<usize>() + rows.bytes(), bytes + empty);
    assert!(parts.iter().flat_map(|part| values(part, 0)).eq(before[0].iter().cloned()));
    assert_eq!([1, 2].map(|column| values(&rows, column)), before[1..]);
}

/// Parts with nearly full buffers; together they have few rows more than buffers that double have room for.
#[test]
fn dense_rows_need_no_more_memory_than_their_parts() {
    for (parts, count) in [(17, 1960), (33, 4000), (3, 0)] {
        let rows: Vec<Materialized> = (0..parts)
            .map(|part| {
                let mut rows = Materialized::new(&columns());
                (0..count)
                    .step_by(40)
                    .for_each(|i| rows.append(&chunk(part * count + i, 40), &[0, 1, 2], None));
                rows
            })
            .collect();
        let before: usize = rows.iter().map(Materialized::bytes).sum();
        let dense = Materialized::dense(&columns(), rows);
        let all = parts * count;
        assert_eq!((dense.rows(), dense.id_space()), (all, all));
        assert!(dense.bytes() <= before, "{} {before}", dense.bytes());
        for n in (0..all).filter(|n| n % 7 == 3) {
            let id = (n >> 16 << 16 | n & 0xffff) as u32;
            assert_eq!((dense.value(id, 0), dense.value(id, 1)), (Value::Integer(n as i128), text(n)));
        }
    }
}
