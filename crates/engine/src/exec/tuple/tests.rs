//! Tuples compared with the twin: all types, with and without NULLs, ranges of every width, random columns.

use super::layout::FieldForm;
use super::*;
use crate::exec::materialized::{Materialized, SEGMENT_ROWS};
use crate::exec::testing::Chance;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Buffer, ColumnId, DataType, PhysicalType, StringHeap, Value, Vector, bitmap};
use std::collections::BTreeSet;

/// A random column, and for integers its range of values.
pub(in crate::exec) fn column(chance: &mut Chance) -> ColumnMeta {
    let ty = DataType::ALL[chance.below(DataType::ALL.len() as u64) as usize];
    let mut meta = ColumnMeta::new(ColumnId(0), ty);
    meta.nullable = chance.below(2) == 0;
    if let (Some((least, most)), true) = (meta.range, chance.below(3) > 0 && ty != DataType::Uuid) {
        let width = 1i128.checked_shl(chance.below(128) as u32).unwrap_or(1).max(1) - chance.below(2) as i128;
        meta.range = Some(match chance.below(4) {
            0 => (least, most),
            1 => (width.wrapping_neg().clamp(least, 0), width.clamp(0, most)),
            2 => (least, least.saturating_add(width).min(most)),
            _ => {
                let from = (chance.below(1000) as i128 - 500).clamp(least, most);
                (from, from.saturating_add(width).clamp(from, most))
            }
        });
    }
    if ty == DataType::Null {
        meta.nullable = true;
    }
    meta
}

/// The bits of a random value.
pub(in crate::exec) fn value(meta: &ColumnMeta, chance: &mut Chance, heap: &mut StringHeap) -> Option<u128> {
    if meta.nullable && chance.below(4) == 0 || meta.ty == DataType::Null {
        return None;
    }
    let width = meta.physical.width();
    let random =
        (u128::from(chance.below(u64::MAX)) << 64 | u128::from(chance.below(u64::MAX))) >> chance.below(128);
    let cut = |bits: u128| bits & (u128::MAX >> (128 - 8 * width));
    Some(match (meta.physical, meta.range) {
        (PhysicalType::Str, _) => {
            let length = [0, 1, 5, 11, 12, 13, 40, 255, 256][chance.below(9) as usize];
            let length = if chance.below(500) == 0 { 70_000 } else { length };
            let text: Vec<u8> =
                (0..length).map(|i| b'a' + (random as usize).wrapping_add(i) as u8 % 26).collect();
            let buffer = Buffer::from_slice(&[heap.push(&text)]);
            buffer.as_slice::<i128>()[0] as u128
        }
        (PhysicalType::F64, _) => match chance.below(8) {
            0 => f64::NAN.to_bits().into(),
            // A NaN with bits of its own, a signalling one, and one with bits that a float has.
            1 => 0xfff8_0000_dead_beef,
            2 => 0x7ff0_0000_0000_0001,
            3 => 0x7ff8_0000_2000_0000,
            4 => (-0.0f64).to_bits().into(),
            5 => (random as f64).to_bits().into(),
            6 => f64::from(chance.below(1000) as f32 / 8.0).to_bits().into(),
            _ => cut(random),
        },
        (_, Some((min, max))) => {
            let distance = match chance.below(4) {
                0 => 0,
                1 => max.wrapping_sub(min) as u128,
                _ => match (max.wrapping_sub(min) as u128).checked_add(1) {
                    Some(count) => random % count,
                    None => random,
                },
            };
            cut(min.wrapping_add(distance as i128) as u128)
        }
        _ => cut(random),
    })
}

/// A column's values in memory; arbitrary where NULL.
pub(in crate::exec) fn buffer_of(width: usize, values: &[Option<u128>]) -> Buffer {
    let mut buffer = Buffer::zeroed(values.len() * width);
    for (value, bytes) in values.iter().zip(buffer.as_mut_slice::<u8>().chunks_exact_mut(width)) {
        bytes.copy_from_slice(&value.unwrap_or(0x5a5a_5a5a_5a5a_5a5a).to_le_bytes()[..width]);
    }
    buffer
}

pub(in crate::exec) fn validity_of(values: &[Option<u128>]) -> Option<Vec<u64>> {
    let mut words = vec![u64::MAX; bitmap::words_for(values.len())];
    values.iter().enumerate().for_each(|(i, value)| bitmap::set(&mut words, i, value.is_some()));
    values.iter().any(Option::is_none).then_some(words)
}

fn bits_of(vector: &Vector, at: usize) -> Option<u128> {
    let bits = match vector.physical().width() {
        1 => vector.values::<u8>()[at].into(),
        2 => vector.values::<u16>()[at].into(),
        4 => vector.values::<u32>()[at].into(),
        8 => vector.values::<u64>()[at].into(),
        _ => vector.values::<i128>()[at] as u128,
    };
    vector.is_valid(at).then_some(bits)
}

/// Each tuple's bytes.
fn split(tuples: &Tuples, rows: usize) -> Vec<&[u8]> {
    let end = tuples.bytes.len() - SLACK;
    let start = |row: usize| match &tuples.starts {
        Starts::Every(length) => row * *length as usize,
        Starts::Near { shift, bases, distances } => bases[row >> shift] as usize + distances[row] as usize,
    };
    (0..rows)
        .map(|row| &tuples.bytes[start(row)..if row + 1 < rows { start(row + 1) } else { end }])
        .collect()
}

#[test]
fn tuples_agree_with_the_twin() {
    let mut chance = Chance(0x5eed_0001);
    let mut forms = BTreeSet::new();
    for round in 0..300 {
        let count = 1 + chance.below(if round % 10 == 0 { 40 } else { 12 }) as usize;
        let metas: Vec<ColumnMeta> = (0..count).map(|_| column(&mut chance)).collect();
        let is_key: Vec<bool> = (0..count).map(|i| i > 0 && chance.below(6) == 0).collect();
        let layout = TupleLayout::new(&metas, &is_key).unwrap();
        let metas: Vec<&ColumnMeta> =
            metas.iter().zip(&is_key).filter(|(_, key)| !**key).map(|(meta, _)| meta).collect();
        let segments = 1 + usize::from(round % 3 == 0);
        let mut heap = StringHeap::new();
        let mut all = Vec::new();
        for _ in 0..segments {
            let rows = [1, 3, 64, 200, 2048, 2051][chance.below(6) as usize];
            let columns: Vec<Vec<Option<u128>>> = metas
                .iter()
                .map(|meta| (0..rows).map(|_| value(meta, &mut chance, &mut heap)).collect())
                .collect();
            all.push((rows, columns));
        }
        let tuples: Vec<Option<Tuples>> = all
            .iter()
            .map(|(rows, columns)| {
                let width = |i: usize| metas[i].physical.width();
                let buffers: Vec<Buffer> =
                    columns.iter().enumerate().map(|(i, c)| buffer_of(width(i), c)).collect();
                let validity: Vec<Option<Vec<u64>>> =
                    columns.iter().map(|column| validity_of(column)).collect();
                let pairs = buffers.iter().zip(&validity);
                let sources: Vec<Source<'_>> =
                    pairs.map(|(values, words)| Source { values, validity: words.as_deref() }).collect();
                let tuples = Tuples::encode(&layout, &sources, *rows);
                assert!(tuples.bytes() >= Tuples::measure(&layout, &sources, *rows));
                assert!(
                    tuples.bytes() <= Tuples::measure(&layout, &sources, *rows) + 64,
                    "little more than measured"
                );
                for (row, tuple) in split(&tuples, *rows).into_iter().enumerate() {
                    let values: Vec<Option<u128>> = columns.iter().map(|column| column[row]).collect();
                    assert_eq!(tuple, twin::encode(&layout, &values), "{values:x?} of {metas:?}");
                    for (field, value) in values.iter().enumerate() {
                        assert_eq!(
                            twin::decode(&layout, tuple, field),
                            *value,
                            "{:?}",
                            layout.fields[field].form
                        );
                    }
                }
                Some(tuples)
            })
            .collect();
        // Some rows out of order, some repeated, and some ids of no row.
        let ids: Vec<u32> = (0..2500)
            .map(|_| {
                let segment = chance.below(segments as u64) as usize;
                let id = (segment << 16) as u32 | chance.below(all[segment].0 as u64) as u32;
                if chance.below(20) == 0 { Materialized::NO_ROW } else { id }
            })
            .collect();
        for (i, field) in layout.fields.iter().enumerate() {
            let mut out = Vector::new(field.physical);
            let first = chance.below(70) as usize;
            out.begin(first + ids.len());
            for (at, ids) in ids.chunks(BATCH_ROWS).enumerate() {
                let mut alone = Batch::new(&layout, &tuples);
                alone.begin(ids.iter().copied());
                alone.read(i, &mut out, first + at * BATCH_ROWS, true);
            }
            for (at, &id) in ids.iter().enumerate().filter(|(_, id)| **id != Materialized::NO_ROW) {
                let expected = all[id as usize >> 16].1[i][id as usize & 0xffff];
                assert_eq!(bits_of(&out, first + at), expected, "{:?}", field.form);
            }
            let name = match field.form {
                FieldForm::Fixed { .. } => "fixed",
                FieldForm::Plain { .. } => "plain",
                FieldForm::Short { .. } => "short",
                FieldForm::Double { .. } => "double",
                FieldForm::Text { .. } => "text",
            };
            let codes = if layout.codes.is_universal() {
                "universal".into()
            } else {
                layout.codes.bytes().min(3).to_string()
            };
            forms.insert((name, field.nullable, codes));
        }
    }
    // Every form with and without NULLs, in tuples without codes, with one byte, a universal table, two
    // bytes, and more.
    for form in ["fixed", "plain", "short", "double", "text"] {
        for nullable in [false, true] {
            for codes in ["1", "2", "3", "universal"] {
                assert!(
                    forms.contains(&(form, nullable, codes.to_string())),
                    "{form} {nullable} {codes} was not met"
                );
            }
        }
    }
    assert!(forms.contains(&("fixed", true, "0".to_string())));
}

#[test]
fn ranges_say_which_part_a_column_goes_to() {
    let of = |ty: DataType, nullable: bool, range: Option<(i128, i128)>| {
        let meta = ColumnMeta { nullable, range, ..ColumnMeta::new(ColumnId(0), ty) };
        let layout = TupleLayout::new(&[meta], &[false]).unwrap();
        let lengths = match layout.fields[0].form {
            FieldForm::Fixed { width, .. } => return (format!("fixed {width}"), layout.longest),
            FieldForm::Plain { .. } => return ("plain".to_string(), layout.longest),
            FieldForm::Short { code, frame } => format!("{frame:?} {:?}", layout.codes.code(code).lengths),
            FieldForm::Double { code } | FieldForm::Text { code } => {
                format!("{:?}", layout.codes.code(code).lengths)
            }
        };
        (lengths, layout.longest)
    };
    let with = |form: &str, longest: usize| (form.to_string(), longest);
    use DataType::*;
    assert_eq!(of(Boolean, true, Some((0, 1))), with("fixed 1", 1));
    assert_eq!(of(Int64, false, Some((7, 7))), with("fixed 0", 0));
    assert_eq!(of(Int64, true, Some((7, 7))), with("fixed 1", 1));
    assert_eq!(of(Date, false, Some((8036, 10561))), with("fixed 2", 2));
    assert_eq!(of(Int32, false, Some((1, 1 << 16))), with("fixed 2", 2));
    assert_eq!(of(Int32, true, Some((1, 1 << 16))), with("From(1) [0, 1, 2]", 3));
    assert_eq!(of(Int8, true, Int8.integer_range()), with("plain", 2));
    assert_eq!(of(Int16, false, Int16.integer_range()), with("fixed 2", 2));
    assert_eq!(of(Int32, false, Int32.integer_range()), with("ZigZag [1, 2, 3, 4]", 5));
    assert_eq!(of(Int64, true, Int64.integer_range()), with("ZigZag [0, 1, 2, 4, 8]", 9));
    assert_eq!(of(UInt64, false, UInt64.integer_range()), with("From(0) [1, 2, 4, 8]", 9));
    assert_eq!(of(Int64, false, Some((1, 6_000_000))), with("From(1) [1, 2, 3]", 4));
    let money = Decimal { precision: 15, scale: 2 };
    assert_eq!(of(money, false, money.integer_range()), with("ZigZag [1, 2, 4, 7]", 8));
    let wide = Decimal { precision: 38, scale: 2 };
    assert_eq!(of(wide, true, wide.integer_range()), with("ZigZag [0, 4, 6, 8, 16]", 17));
    assert_eq!(of(wide, true, None), with("ZigZag [0, 4, 6, 8, 16]", 17));
    assert_eq!(of(Uuid, false, None), with("plain", 16));
    assert_eq!(of(Float32, true, None), with("plain", 5));
    assert_eq!(of(Float64, true, None), with("[0, 4, 8]", 9));
    assert_eq!(of(Varchar, false, None), with("[1, 2, 3, 4]", 17));
    assert!(TupleLayout::new(&[], &[]).is_none());
    let many = vec![ColumnMeta::new(ColumnId(0), Varchar); 4000];
    assert!(TupleLayout::new(&many, &vec![false; 4000]).is_none(), "too long for a tuple");
    assert!(TupleLayout::new(&many, &vec![true; 4000]).is_none(), "all are keys");
}

/// Rows of the key 1, a number and a text, with random NULLs.
fn chunk(first: usize, rows: usize) -> Vec<Vector> {
    let number = |i: usize| (i % 7 != 3).then_some(i as u128 * 31);
    let text = |i: usize| {
        format!("a text that is {} long: {i}", if i.is_multiple_of(3) { "very long indeed" } else { "not" })
    };
    let mut strings = Vector::new(PhysicalType::Str);
    let parts = strings.begin_strings(rows);
    for (i, view) in parts.views[..rows].iter_mut().enumerate() {
        let text = text(first + i);
        *view = parts.heap.push(&text.as_bytes()[..if i.is_multiple_of(2) { 10 } else { text.len() }]);
    }
    let keys: Vec<i64> = (first..first + rows).map(|i| i as i64).collect();
    let numbers: Vec<Option<u128>> = (first..first + rows).map(number).collect();
    let words: Option<std::sync::Arc<Buffer>> =
        validity_of(&numbers).map(|words| Buffer::from_slice(&words).into());
    let numbers = Vector::from_buffer(PhysicalType::I64, buffer_of(8, &numbers).into(), words);
    vec![Vector::from_slice(&keys), numbers, strings]
}

/// Segments that are tuples and segments that are not, put together, are read like columns.
#[test]
fn compressed_rows_read_as_columns_do() {
    let metas = [DataType::Int64, DataType::Int64, DataType::Varchar]
        .map(|ty| ColumnMeta::new(ColumnId(0), ty))
        .to_vec();
    let layout = std::sync::Arc::new(TupleLayout::new(&metas, &[true, false, false]).unwrap());
    let fill = |rows: &mut Materialized, first: usize, count: usize| {
        for at in (first..first + count).step_by(2048) {
            let part = (first + count - at).min(2048);
            let vectors = chunk(at, part);
            rows.append_vectors(&vectors.iter().map(|vector| (vector, None)).collect::<Vec<_>>(), part);
        }
    };
    // Which of three segments become tuples, the last one short.
    for compressed in [&[][..], &[0], &[1], &[0, 1], &[2], &[0, 1, 2]] {
        let build = |compressed: &[usize]| {
            let mut rows = Materialized::new(&metas);
            let mut other = Materialized::new(&metas);
            fill(&mut rows, 0, SEGMENT_ROWS);
            fill(&mut other, SEGMENT_ROWS, SEGMENT_ROWS + 3000);
            for &segment in compressed {
                let (to, segment) = if segment == 0 { (&mut rows, 0) } else { (&mut other, segment - 1) };
                let bytes = to.bytes();
                let (columns, tuples) = to.measure(segment, &layout).unwrap();
                to.compress(segment, &layout);
                assert!(to.measure(segment, &layout).is_none());
                let saved = columns - tuples;
                assert!(to.bytes() <= bytes - saved + 256, "{} is not {bytes} less {saved}", to.bytes());
            }
            assert_eq!(rows.absorb(other), 1);
            rows
        };
        let (columns, tuples) = (build(&[]), build(compressed));
        let (rows, _, _) = tuples.compressed();
        assert_eq!(rows, compressed.iter().map(|&s| tuples.segment_rows(s)).sum::<usize>());
        let ids: Vec<u32> = columns.ids().collect();
        let mut chance = Chance(7);
        let mut some: Vec<u32> = (0..1500).map(|_| ids[chance.below(ids.len() as u64) as usize]).collect();
        let without = some.clone();
        some[3] = Materialized::NO_ROW;
        some[1400] = Materialized::NO_ROW;
        for (column, meta) in metas.iter().enumerate() {
            let values = |vector: &Vector, count: usize| -> Vec<Value> {
                (0..count).map(|i| vector.value(i, meta.ty)).collect()
            };
            let [mut a, mut b] = [0; 2].map(|_| Vector::new(meta.physical));
            for ids in [&some[..], &without, &[Materialized::NO_ROW], &[]] {
                columns.gather(column, ids, &mut a);
                tuples.gather(column, ids, &mut b);
                assert_eq!(values(&a, ids.len()), values(&b, ids.len()), "column {column}, {compressed:?}");
            }
            for (segment, first, rows) in
                [(0, 0, 2048), (0, 777, 100), (1, 65_000, 536), (2, 1, 2999), (2, 0, 0)]
            {
                columns.read(column, segment, first, rows, &mut a);
                tuples.read(column, segment, first, rows, &mut b);
                assert_eq!(values(&a, rows), values(&b, rows), "column {column}, {compressed:?}");
            }
            assert_eq!(columns.value(70_000, column), tuples.value(70_000, column));
        }
        // Vectors keep strings alive, whatever happens to the rows.
        let mut strings = Vector::new(PhysicalType::Str);
        tuples.gather(2, &without, &mut strings);
        let expected: Vec<Value> = without.iter().map(|&id| columns.value(id, 2)).collect();
        let mut reordered = tuples.reordered(&ids);
        assert_eq!((0..without.len()).map(|i| strings.value(i, metas[2].ty)).collect::<Vec<_>>(), expected);
        drop(strings);
        fill(&mut reordered, 0, 10);
        assert_eq!(reordered.value(4711, 1), columns.value(ids[4711], 1));
    }
}
