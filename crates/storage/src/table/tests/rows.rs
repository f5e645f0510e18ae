//! A table against its obvious twin: a list of rows of single values.

use crate::tests::random::Random;
use crate::{BLOCK_ROWS, Condition, ROW_GROUP_ROWS, RowId, Table, TableSnapshot, ValueRange};
use entasis_vector::{
    Chunk, DataType, Dictionary, Encoding, ErrorKind, Field, Interval, PhysicalType, Schema, Selection,
    Value, Vector,
};
use std::ops::Range;
use std::sync::Arc;

type Rows = Vec<Vec<Value>>;

const TYPES: [DataType; 25] = [
    DataType::Null,
    DataType::Boolean,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float32,
    DataType::Float64,
    DataType::Decimal { precision: 15, scale: 2 },
    DataType::Decimal { precision: 38, scale: 5 },
    DataType::Varchar,
    DataType::Json,
    DataType::Blob,
    DataType::Date,
    DataType::Time,
    DataType::TimeTz,
    DataType::Timestamp,
    DataType::TimestampNs,
    DataType::TimestampTz,
    DataType::Interval,
    DataType::Uuid,
];

/// A value of `ty`: of a few, of a narrow or of the full range, as `spread` says (0, 1, 2).
fn value(ty: DataType, spread: u64, random: &mut Random) -> Value {
    let range = [7, 5000, u64::MAX][spread as usize];
    let raw = random.below(range);
    match ty {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Boolean(raw.is_multiple_of(3)),
        DataType::Float32 => Value::Float((raw as f32 / 3.0).into()),
        DataType::Float64 => Value::Float(if raw.is_multiple_of(11) { f64::NAN } else { raw as f64 / 3.0 }),
        DataType::Varchar if spread == 2 => Value::Text(format!("text number {raw}").into()),
        DataType::Json => Value::Text(raw.to_string().into()),
        DataType::Varchar => Value::Text("é".repeat(raw as usize % 40).into()),
        DataType::Blob => Value::Bytes(raw.to_le_bytes()[..raw as usize % 8].into()),
        DataType::Interval => {
            Value::Interval(Interval { months: raw as i32 % 100, days: 30, micros: raw as i64 })
        }
        DataType::Uuid => Value::Integer((i128::from(raw) << 64) ^ i128::from(random.below(3)) ^ i128::MIN),
        DataType::Decimal { precision: 38, .. } => {
            Value::Integer(i128::from(raw) * i128::from(raw >> 2) / 1000 - 5)
        }
        DataType::UInt64 => Value::Integer(raw.into()),
        _ => {
            let (min, max) = ty.integer_range().expect("an integer inside");
            let span = (max - min + 1).min(1 << 62);
            Value::Integer((min / 3 + i128::from(raw) % span).clamp(min, max))
        }
    }
}

pub(crate) fn schema() -> Schema {
    TYPES.iter().enumerate().map(|(i, &ty)| Field::new(format!("c{i}"), ty)).collect()
}

pub(crate) fn random_rows(count: usize, random: &mut Random) -> Rows {
    let spreads: Vec<u64> = TYPES.iter().map(|_| random.below(3)).collect();
    let null_every: Vec<u64> = TYPES.iter().map(|_| [0, 1, 3, 50][random.below(4) as usize]).collect();
    let row =
        |random: &mut Random| {
            let columns = TYPES.iter().zip(&spreads).zip(&null_every);
            columns
                .map(|((&ty, &spread), &null)| {
                    if null > 0 && random.below(null) == 0 { Value::Null } else { value(ty, spread, random) }
                })
                .collect()
        };
    (0..count).map(|_| row(random)).collect()
}

/// A vector whose positions hold `rows` in reverse, and the selection that turns them round again; or flat.
pub(crate) fn column_chunk(rows: &[Vec<Value>], schema: &Schema, selected: bool) -> Chunk {
    let mut chunk = Chunk::new();
    chunk.reset(rows.len());
    let positions: Vec<u16> = (0..rows.len() as u16).rev().collect();
    let group = chunk.push_group(if selected { Selection::from_indices(&positions) } else { Selection::ALL });
    for (column, field) in schema.iter().enumerate() {
        let mut values: Vec<Value> = rows.iter().map(|row| row[column].clone()).collect();
        if selected {
            values.reverse();
        }
        let physical = field.ty.physical();
        let mut vector = Vector::new(physical);
        vector.begin(values.len());
        for (i, value) in values.iter().enumerate() {
            let value = match value {
                Value::Integer(v) if field.ty == DataType::Uuid => Value::Integer(v ^ i128::MIN),
                value => value.clone(),
            };
            vector.write_value(i, &value).unwrap();
        }
        chunk.push_column(vector, group);
    }
    chunk
}

pub(crate) fn insert(table: &Arc<Table>, rows: &[Vec<Value>], selected: bool) {
    let mut appender = table.appender();
    for part in rows.chunks(2048) {
        appender.append(&column_chunk(part, table.schema(), selected), 0).unwrap();
    }
    assert_eq!(table.commit(vec![appender.finish()]).unwrap(), rows.len() as u64);
}

fn same(a: &Value, b: &Value) -> bool {
    // The zeros of floats and intervals of one length are equal but must come back as they were.
    format!("{a:?}") == format!("{b:?}")
}

fn check(snapshot: &TableSnapshot, rows: &[Vec<Value>], random: &mut Random) {
    assert_eq!(snapshot.rows(), rows.len() as u64);
    let schema = snapshot.schema();
    let mut start = 0;
    snapshot.check();
    for group in snapshot.row_groups() {
        assert_eq!(group.live_rows(0..group.slots()), group.rows());
        assert!(group.rows() > 0 && group.slots() <= ROW_GROUP_ROWS);
        let mut live = Vec::new();
        group.each_live(0..group.slots(), |slot| live.push(slot));
        let mut in_runs = Vec::new();
        group.each_run(0..group.slots(), |run| in_runs.extend(run));
        let (mut at, mut one_by_one) = (0, Vec::new());
        while let Some(run) = group.next_run(at..group.slots()) {
            at = run.end;
            one_by_one.extend(run);
        }
        assert_eq!(one_by_one, in_runs);
        assert_eq!(in_runs, live);
        let number = |slot: usize| start + live.partition_point(|&other| other < slot);
        // Rows folded where they are: runs, cut at random, some of them left out.
        let mut runs = Vec::new();
        let mut random_runs = Random(live.len() as u64);
        group.each_run(0..group.slots(), |run| {
            let cut = run.start + random_runs.below(run.len() as u64 + 1) as usize;
            runs.extend(
                [run.start..cut, cut..run.end]
                    .into_iter()
                    .filter(|run| !run.is_empty() && random_runs.below(4) > 0),
            );
        });
        for (column, field) in schema.iter().enumerate().filter(|(_, field)| field.ty.physical().is_integer())
        {
            let physical = field.ty.physical();
            let values = runs.iter().flat_map(Range::clone).map(|slot| match &rows[number(slot)][column] {
                Value::Boolean(v) => Some(i128::from(*v)),
                Value::Integer(v) => Some(*v),
                _ => None,
            });
            let values: Vec<i128> = values.flatten().collect();
            assert_eq!(group.count_runs(column, &runs), values.len(), "{}", field.ty);
            assert_eq!(group.sum_runs(column, physical, &runs), values.iter().sum::<i128>(), "{}", field.ty);
            let start = i128::from(random_runs.below(100));
            let (least, most) =
                values.iter().fold((start, start), |(least, most), &v| (least.min(v), most.max(v)));
            assert_eq!(group.extreme_runs(column, physical, &runs, false, start), least, "{}", field.ty);
            assert_eq!(group.extreme_runs(column, physical, &runs, true, start), most, "{}", field.ty);
            if field.ty == DataType::Boolean {
                continue;
            }
            // Chunks of them, narrowed to a range around one of the values, or beside all.
            for chunk in runs.chunks(3).filter(|chunk| chunk.iter().map(Range::len).sum::<usize>() < 4096) {
                let low = values.get(random_runs.below(50) as usize).copied().unwrap_or(0) - 2;
                let (low, high) =
                    [(low, low + 3), (i128::MIN, low), (low, i128::MAX)][random_runs.below(3) as usize];
                let mut selected = vec![7];
                let range = ValueRange { column, physical, low, high };
                group.select_runs(&[Condition::Range(range), Condition::Range(range)], chunk, &mut selected);
                let slots = chunk.iter().flat_map(Range::clone).enumerate();
                let twin = slots.filter(|&(_, slot)| match &rows[number(slot)][column] {
                    Value::Integer(v) => (low..=high).contains(v),
                    _ => false,
                });
                let twin: Vec<u16> =
                    [7].into_iter().chain(twin.map(|(position, _)| position as u16)).collect();
                assert_eq!(selected, twin, "{} from {low} to {high}", field.ty);
            }
        }
        for (column, field) in schema.iter().enumerate() {
            let mut out = Vector::new(field.ty.physical());
            let mut first = 0;
            while first < group.slots() {
                let wanted = if random.below(2) == 0 { 2048 } else { 1 + random.below(2048) as usize };
                let window = wanted.min(group.slots() - first);
                group.decode(column, first, window, &mut out);
                for position in (0..window).filter(|position| group.is_live(first + position)) {
                    let expected = &rows[number(first + position)][column];
                    let got = out.value(position, field.ty);
                    assert!(
                        same(&got, expected),
                        "{} slot {position}: {got:?} is not {expected:?}",
                        field.ty
                    );
                }
                let positions =
                    (0..window as u16).filter(|&position| group.is_live(first + position as usize));
                let positions: Vec<u16> = positions.filter(|_| random.below(5) == 0).collect();
                group.decode_selected(column, first, &positions, window, &mut out);
                for &position in &positions {
                    let expected = &rows[number(first + position as usize)][column];
                    assert!(same(&out.value(position as usize, field.ty), expected), "{} selected", field.ty);
                }
                first += window;
            }
            for block in 0..group.blocks() {
                let slots = block * BLOCK_ROWS..group.slots().min((block + 1) * BLOCK_ROWS);
                let values = rows[number(slots.start)..number(slots.end)].iter().map(|row| &row[column]);
                let zone = group.zone(column, block);
                let nulls = values.clone().filter(|v| v.is_null()).count();
                // Bounds of what has been written may be wider than the values.
                let exact = !group.wear.is_hot;
                assert!(if exact { zone.nulls as usize == nulls } else { zone.nulls > 0 || nulls == 0 });
                let mut present: Vec<&Value> = values.filter(|v| !v.is_null()).collect();
                present.sort_by(|a, b| a.total_cmp(b));
                match (present.first(), present.last()) {
                    (Some(&min), Some(&max)) if field.ty != DataType::Uuid && exact => {
                        assert_eq!((&zone.min, &zone.max), (min, max), "{}", field.ty);
                    }
                    (Some(&min), Some(&max)) => {
                        assert!(zone.min.total_cmp(min).is_le() && zone.max.total_cmp(max).is_ge());
                    }
                    _ => assert!(!exact || (zone.min.is_null() && zone.max.is_null())),
                }
            }
        }
        start += group.rows();
    }
    for (column, field) in schema.iter().enumerate() {
        let summary = snapshot.column_statistics(column);
        let mut values: Vec<&Value> = rows.iter().map(|row| &row[column]).filter(|v| !v.is_null()).collect();
        values.sort_by(|a, b| a.total_cmp(b));
        assert_eq!(summary.nulls as usize, rows.len() - values.len());
        if field.ty != DataType::Uuid {
            assert_eq!(summary.min.as_ref(), values.first().copied());
            assert_eq!(summary.max.as_ref(), values.last().copied());
        }
        // The estimate is that of the newest version.
        if snapshot.rows() < snapshot.table().rows() {
            continue;
        }
        values.dedup();
        let error = summary.distinct.abs_diff(values.len() as u64) as f64;
        assert!(
            error <= values.len() as f64 * 0.08,
            "{}: {} of {}",
            field.ty,
            summary.distinct,
            values.len()
        );
    }
}

#[test]
fn rows_come_back_as_they_were_added() {
    let mut random = Random(17);
    for round in 0..12 {
        let table = Table::new("t", schema());
        let mut rows = Rows::new();
        for _ in 0..5 {
            let count = [1, 3, 700, 1024, 5000][random.below(5) as usize];
            let more = random_rows(count, &mut random);
            insert(&table, &more, round % 2 == 0);
            rows.extend(more);
        }
        check(&table.snapshot(), &rows, &mut random);
    }
}

#[test]
fn a_snapshot_stays_as_it_is_while_rows_are_added_one_by_one() {
    let mut random = Random(3);
    let table = Table::new("t", schema());
    let rows = random_rows(2500, &mut random);
    let mut snapshots = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        insert(&table, std::slice::from_ref(row), false);
        if i % 331 == 0 || i == rows.len() - 1 {
            snapshots.push((table.snapshot(), i + 1));
        }
    }
    for (snapshot, count) in snapshots {
        check(&snapshot, &rows[..count], &mut random);
    }
}

#[test]
fn rows_of_several_workers_stand_in_the_order_of_their_morsels() {
    for morsel_rows in [10, 2000, 40_000] {
        let schema = vec![Field::new("n", DataType::Int64), Field::new("s", DataType::Varchar)];
        let table = Table::new("t", schema);
        let mut workers = [table.appender(), table.appender(), table.appender()];
        let mut expected: Rows = Vec::new();
        for morsel in 0..12u64 {
            let rows: Rows = (0..morsel_rows)
                .map(|i| {
                    vec![
                        Value::Integer((morsel * 1_000_000 + i) as i128),
                        Value::Text(format!("s{}", i % 9).into()),
                    ]
                })
                .collect();
            let worker = &mut workers[(morsel * morsel % 3) as usize];
            for part in rows.chunks(2048) {
                worker.append(&column_chunk(part, table.schema(), false), morsel).unwrap();
            }
            expected.extend(rows);
        }
        table.commit(workers.into_iter().rev().map(|worker| worker.finish()).collect()).unwrap();
        let snapshot = table.snapshot();
        check(&snapshot, &expected, &mut Random(1));
        assert!(snapshot.column_statistics(0).unique && !snapshot.column_statistics(1).unique);
        assert_eq!(
            snapshot.column_statistics(0).distinct,
            expected.len() as u64,
            "ascending columns are counted exactly"
        );
        let groups = snapshot.row_groups().len();
        assert!(groups <= expected.len().div_ceil(ROW_GROUP_ROWS / 4), "{groups} groups");
    }
}

#[test]
fn a_million_single_rows_are_a_million_small_steps() {
    // A hundredth of it; what grows with the table would show up as quadratic work and a slow test.
    let table = Table::new("t", vec![Field::new("n", DataType::Int64), Field::new("s", DataType::Varchar)]);
    for i in 0..10_000i128 {
        insert(&table, &[vec![Value::Integer(i), Value::Text(format!("{}", i % 5).into())]], false);
    }
    let snapshot = table.snapshot();
    assert_eq!((snapshot.rows(), snapshot.row_groups().len()), (10_000, 1));
    assert!(snapshot.bytes() < 400_000, "{} bytes", snapshot.bytes());
}

#[test]
fn encodings_follow_the_values() {
    let schema = vec![
        Field::new("key", DataType::Int64),
        Field::new("constant", DataType::Date),
        Field::new("flag", DataType::Varchar),
        Field::new("text", DataType::Varchar),
    ];
    let table = Table::new("t", schema);
    let rows: Rows = (0..ROW_GROUP_ROWS as i128 + 10)
        .map(|i| {
            let flag = ["a flag of some length", "b", "c"][i as usize % 3];
            let text = format!("comment {i} on something");
            vec![Value::Integer(i), Value::Integer(7), Value::Text(flag.into()), Value::Text(text.into())]
        })
        .collect();
    insert(&table, &rows, false);
    let snapshot = table.snapshot();
    assert_eq!(snapshot.row_groups().len(), 2);
    let group = snapshot.row_group(0).unwrap();
    let mut out = Vector::new(PhysicalType::I32);
    group.decode(1, 2048, 2048, &mut out);
    assert_eq!(out.encoding(), Encoding::Constant);
    let mut out = Vector::new(PhysicalType::Str);
    group.decode(2, 500, 2048, &mut out);
    assert_eq!(out.encoding(), Encoding::Dictionary);
    let first = out.dictionary().unwrap().id();
    group.decode(2, 100_000, 2048, &mut out);
    assert_eq!(out.dictionary().unwrap().id(), first, "one dictionary a row group");
    group.decode(3, 0, 2048, &mut out);
    assert!(out.encoding() == Encoding::Flat && out.strings_are_stable());
    // 2 bytes of key, 1 of flag, 2 and the text itself.
    let per_row = snapshot.bytes() as f64 / rows.len() as f64;
    assert!(per_row < 36.0, "{per_row} bytes a row");
}

#[test]
fn dictionary_constant_and_wide_vectors_are_taken() {
    let schema = vec![
        Field::new("d", DataType::Varchar),
        Field::new("c", DataType::Int16),
        Field::new("w", DataType::Decimal { precision: 30, scale: 2 }),
    ];
    let table = Table::new("t", schema);
    let texts = [Value::Text("alpha".into()), Value::Text("a text beyond twelve bytes".into())];
    let dictionary = Dictionary::new(Vector::from_values(PhysicalType::Str, &texts).unwrap(), 2);
    let mut coded = Vector::new(PhysicalType::Str);
    coded.begin_codes(&dictionary, 4)[..4].copy_from_slice(&[1, 0, 1, 1]);
    coded.set_null(3);
    let mut chunk = Chunk::new();
    chunk.reset(4);
    let group = chunk.push_group(Selection::ALL);
    chunk.push_column(coded, group);
    chunk.push_column(Vector::constant(PhysicalType::I16, &Value::Integer(-3)).unwrap(), group);
    chunk.push_column(Vector::from_slice(&[5i64, -6, 7, 8]), group);
    let mut appender = table.appender();
    for _ in 0..1000 {
        appender.append(&chunk, 0).unwrap();
    }
    table.commit(vec![appender.finish()]).unwrap();
    let row = |d: Value, w: i128| vec![d, Value::Integer(-3), Value::Integer(w)];
    let four =
        [row(texts[1].clone(), 5), row(texts[0].clone(), -6), row(texts[1].clone(), 7), row(Value::Null, 8)];
    let rows: Rows = (0..1000).flat_map(|_| four.clone()).collect();
    check(&table.snapshot(), &rows, &mut Random(9));
}

#[test]
fn a_null_in_a_not_null_column_is_refused() {
    let field = Field { nullable: false, ..Field::new("a", DataType::Int32) };
    let table = Table::new("trips", vec![field]);
    let mut appender = table.appender();
    let error = appender.append(&column_chunk(&[vec![Value::Null]], table.schema(), false), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Constraint);
    assert!(error.message().contains("trips.a"));
}

#[test]
fn sparse_windows_in_the_order_of_insertion_are_laid_anew() {
    let table = Table::new("t", vec![Field::new("a", DataType::Int64)]);
    let rows: Vec<Vec<Value>> = (0..16 * 1024).map(|i| vec![Value::Integer(i)]).collect();
    insert(&table, &rows, false);
    // Most of the first half, but less than half of all: a statement leaves the slots as they are.
    let is_left = |slot: u32| slot >= 8 * 1024 || slot.is_multiple_of(8);
    {
        let mut writer = table.write();
        (0..16 * 1024)
            .filter(|&slot| !is_left(slot))
            .for_each(|slot| writer.delete(RowId { group: 0, slot }));
    }
    let spread: usize = (0..4).map(|_| table.upkeep(std::time::Duration::from_secs(60)).spread).sum();
    assert!(spread > 0, "the window is laid anew");
    let snapshot = table.snapshot();
    let group = snapshot.row_group(0).expect("it has rows");
    assert!(group.slots() < 16 * 1024, "{} slots are left", group.slots());
    let mut out = Vector::new(PhysicalType::I64);
    let mut left = Vec::new();
    for first in (0..group.slots()).step_by(1024) {
        let count = 1024.min(group.slots() - first);
        group.decode(0, first, count, &mut out);
        group.each_live(first..first + count, |position| left.push(out.values::<i64>()[position]));
    }
    let expected: Vec<i64> = (0..16 * 1024).filter(|&slot| is_left(slot)).map(i64::from).collect();
    assert_eq!(left, expected);
}
