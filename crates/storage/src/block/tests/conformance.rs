//! What every encoding must do, over data made to break it. A new encoding is included by adding its name.
//!
//! A table of one column whose compression is forced gets rows, with and without NULLs; then all ways to read
//! it are compared with the rows: decoding whole, in part and at single positions, ranges, counts, sums and
//! extremes; and the bytes that blocks take with those that were promised. Then rows are changed while a
//! snapshot shows the old ones. Tables of every layout become idle, are changed, and become idle again.

use crate::block::{Form, choose, range_of, with_fixed};
use crate::scan::tests::reading::{check_every_way, rest};
use crate::tests::random::Random;
use crate::{
    Compression, Condition, Datum, Layout, RowGroup, RowId, Table, TableOptions, TableSnapshot, ValueRange,
};
use entasis_vector::value::float_ordinal;
use entasis_vector::{
    CHUNK_ROWS, DataType, Encoding, Field, Native, PhysicalType, StringView, Value, Vector,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rows of two blocks and a bit.
const ROWS: usize = 2500;

/// Integers of a type, named after their difficulty.
fn integers(ty: DataType) -> Vec<(String, Vec<Value>)> {
    let (least, greatest) = ty.integer_range().expect("a type of integers");
    let clamp = |v: i128| Value::Integer(v.clamp(least, greatest));
    let mut random = Random(88_172_645_463_325_252);
    let mut data: Vec<(String, Vec<Value>)> = Vec::new();
    let bits = 64usize.min((greatest.wrapping_sub(least) as u128).count_ones() as usize);
    // All widths of the widest type; of the others, those at the ends and in the middle.
    let widths = (0..=bits)
        .filter(|width| ty == DataType::Int64 || [0, 1, bits / 2 + 1, bits - 1, bits].contains(width));
    for width in widths {
        let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
        let values = (0..ROWS).map(|_| clamp(least.saturating_add(i128::from(random.next() & mask))));
        data.push((format!("{width} bits"), values.collect()));
    }
    let mut add = |name: &str, value: &mut dyn FnMut(i128) -> i128| {
        data.push((name.to_string(), (0..ROWS as i128).map(|i| clamp(value(i))).collect()));
    };
    add("ascending", &mut |i| i * 3 - 1000);
    add("descending", &mut |i| 1000 - i);
    add("around the end of the numbers", &mut |i| if i % 2 == 0 { least + i % 3 } else { greatest - i % 3 });
    add("one outlier", &mut |i| if i == 700 { greatest } else { i % 13 });
    add("an outlier below", &mut |i| if i == 700 { least } else { i % 13 });
    add("a few outliers", &mut |i| if i % 200 == 7 { greatest - i } else { i % 7 });
    add("a few outliers below", &mut |i| if i % 200 == 7 { least + i % 50 } else { 70 + i % 7 });
    add("outliers on both sides", &mut |i| match i % 150 {
        7 => greatest - i % 50,
        80 => least + i % 50,
        _ => 70 + i % 7,
    });
    add("multiples of a hundred", &mut |i| i * i % 50 * 100 - 700);
    add("multiples that are far apart", &mut |i| {
        if i % 2 == 0 { least + i * 64 } else { greatest - greatest.rem_euclid(64) - i * 64 }
    });
    add("the ends of the numbers", &mut |i| if i * i % 7 == 1 { least } else { greatest });
    add("multiples and outliers", &mut |i| {
        i * 7919 % 100 * 100 + if i % 100 == 7 { 1_000_000_000_000 } else { 0 }
    });
    add("multiples in one block", &mut |i| if i < 1100 { i * 7919 % 100 * 12 } else { i });
    add("about evenly ascending", &mut |i| i / 4 + i * i % 7 - 300);
    add("about evenly descending", &mut |i| 20_000 - i * 7 - i * i % 5);
    add("runs", &mut |i| i / 97 % 5 * 1000);
    add("runs of one and of many", &mut |i| if i < 1100 { i % 2 } else { 7 });
    data
}

/// Numbers of 128 bits that do not fit in 64.
fn wide() -> Vec<(String, Vec<Value>)> {
    let mut data: Vec<(String, Vec<Value>)> = Vec::new();
    let mut add = |name: &str, value: &mut dyn FnMut(i128) -> i128| {
        data.push((name.to_string(), (0..ROWS as i128).map(|i| Value::Integer(value(i))).collect()));
    };
    add("a step that leaves 64 bits", &mut |i| i * 10_i128.pow(17));
    add("a long step", &mut |i| i * 10_i128.pow(34));
    add("far apart", &mut |i| if i % 2 == 0 { -10_i128.pow(37) } else { 10_i128.pow(37) + i });
    add("multiples far up", &mut |i| 10_i128.pow(30) + i * i % 50 * 1000);
    add("narrow and far up", &mut |i| 10_i128.pow(30) + i % 100);
    data
}

fn doubles() -> Vec<(String, Vec<Value>)> {
    let mut random = Random(1);
    let mut data: Vec<(String, Vec<Value>)> = Vec::new();
    let mut add = |name: &str, value: &mut dyn FnMut(usize) -> f64| {
        data.push((name.to_string(), (0..ROWS).map(|i| Value::Float(value(i))).collect()));
    };
    add("prices", &mut |_| (random.next() % 1_000_000) as f64 / 100.0);
    let mut random = Random(2);
    add("any bits", &mut |_| f64::from_bits(random.next()));
    let mut random = Random(3);
    add("floats", &mut |_| f64::from(f32::from_bits(random.next() as u32 & 0x7F7F_FFFF)));
    let odd =
        [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE / 4.0, f64::MAX];
    add("what is no number", &mut |i| odd[i % odd.len()]);
    add("prices but for a few", &mut |i| {
        if i % 100 == 9 { odd[i / 100 % odd.len()] } else { i as f64 / 10.0 }
    });
    let mut random = Random(4);
    let mut uniform = move || (random.next() >> 11) as f64 / (1u64 << 53) as f64;
    add("reals", &mut |_| uniform());
    add("sines", &mut |i| (i as f64).sin() * 40.0);
    add("reals but for a few", &mut |i| {
        if i % 100 == 9 { odd[i / 100 % odd.len()] } else { 52.0 + (i as f64).sqrt().fract() }
    });
    add("runs", &mut |i| (i / 50) as f64 / 8.0);
    add("-0.0 among 0.0", &mut |i| if i == 5 { -0.0 } else { 0.0 });
    data
}

fn strings() -> Vec<(String, Vec<Value>)> {
    let text = |value: String| Value::Text(value.into());
    let mut data = vec![
        ("few".to_string(), (0..ROWS).map(|i| text(format!("value {}", i % 5))).collect::<Vec<_>>()),
        ("many".to_string(), (0..ROWS).map(|i| text(format!("{i:x} and {}", i * 7919 % 1000))).collect()),
        ("empty".to_string(), (0..ROWS).map(|i| text("x".repeat(i % 3 / 2))).collect()),
        ("not ASCII".to_string(), (0..ROWS).map(|i| text(format!("Größe {} ☃", i))).collect()),
    ];
    data.push((
        "a long one".to_string(),
        (0..40).map(|i| text("ab".repeat(if i == 7 { 5 << 20 } else { i }))).collect(),
    ));
    let carried = |i: usize| {
        text(format!("{} of the quick foxes, {} of the lazy dogs", "over many ".repeat(i % 9 + 3), i))
    };
    data.push(("long".to_string(), (0..ROWS).map(carried).collect()));
    data
}

/// With no NULL, some, runs of them, and all.
fn with_nulls(values: &[Value]) -> Vec<Vec<Value>> {
    let null = |is_null: &dyn Fn(usize) -> bool| {
        values
            .iter()
            .enumerate()
            .map(|(i, v)| if is_null(i) { Value::Null } else { v.clone() })
            .collect::<Vec<_>>()
    };
    vec![
        values.to_vec(),
        null(&|i| i % 7 == 3),
        null(&|i| i / 300 % 2 == 0),
        if values.len() > 100 { null(&|_| true) } else { Vec::new() },
    ]
}

fn table(ty: DataType, values: &[Value], compression: Compression, keyed: bool) -> Arc<Table> {
    laid_out(ty, values, compression, if keyed { Layout::EquiGhost } else { Layout::Insertion })
}

fn laid_out(ty: DataType, values: &[Value], compression: Compression, layout: Layout) -> Arc<Table> {
    let number = Field { nullable: false, ..Field::new("k", DataType::Int64) };
    let schema = vec![number, Field::new("a", ty)];
    let layout_key = if layout.is_keyed() { vec![0] } else { Vec::new() };
    let options = TableOptions { layout, layout_key, ghost: 0.05, compression, ..TableOptions::default() };
    let table = Table::with_options("t", schema, options);
    let rows: Vec<Vec<Value>> =
        values.iter().enumerate().map(|(i, v)| vec![Value::Integer(i as i128), v.clone()]).collect();
    crate::table::tests::rows::insert(&table, &rows, false);
    table
}

/// Bit for bit.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// Encodings of numbers take the bytes that were promised when they were chosen, within 5 %. Returns the
/// number of blocks checked.
fn check_promises(group: &RowGroup, ty: DataType, compression: Compression, what: &str) -> usize {
    let mut checked = 0;
    for slice in &group.slices {
        let block = slice.block(1);
        // Equal values leave no choice, and written blocks are as writing left them.
        if slice.is_hot() || block.values.value().is_some() {
            continue;
        }
        with_fixed!(
            ty.physical(),
            T => {
                // NULL slots hold what they were encoded with.
                let mut values = vec![T::default(); block.slots()];
                block.decode_fixed(T::PHYSICAL, 0, &mut values);
                let (min, max) = range_of(&values).expect("a block has slots");
                let promised = choose::promised(&values, min, max, Form::Cold(compression));
                let bytes = block.values.bytes();
                assert!(promised.abs_diff(bytes) * 20 <= bytes, "{what}: {bytes} bytes, {promised} promised");
                checked += 1;
            },
            // Strings are encoded to be compared.
            {}
        );
    }
    checked
}

/// All ways to read a row group of rows in the order of insertion.
fn check_reading(snapshot: &TableSnapshot, ty: DataType, expected: &[Value], what: &str) {
    let group = snapshot.row_group(0).expect("it has rows");
    let held = ty.physical();
    let check = |vector: &Vector, position: usize, row: usize| {
        let found = vector.value(position, ty);
        assert!(is_same(&found, &expected[row]), "{what}: row {row} is {found:?}, not {:?}", expected[row]);
    };
    // One row by itself.
    for row in (0..expected.len()).step_by(expected.len() / 50 + 1) {
        let mut datums = Vec::new();
        snapshot.read(RowId { group: 0, slot: row as u32 }, &[1], &mut datums);
        let found = datums[0].value(ty);
        assert!(
            is_same(&found, &expected[row]),
            "{what}: row {row} by itself is {found:?}, not {:?}",
            expected[row]
        );
    }
    // As the column is held, and as narrower integers that hold all its values.
    let holds_all = |physical: &PhysicalType| {
        let has_room = |value: &Value| !matches!(value, Value::Integer(v) if !physical.holds((*v, *v)));
        ty.integer_range().is_some() && physical.width() < held.width() && expected.iter().all(has_room)
    };
    let narrower = [PhysicalType::I32, PhysicalType::I64].into_iter().filter(holds_all);
    for physical in std::iter::once(held).chain(narrower) {
        check_vectors(group, held, physical, expected.len(), &check);
    }
    if ty.is_integer() && held != PhysicalType::I128 {
        check_numbers(group, ty, expected, what);
    }
    if matches!(ty, DataType::Float32 | DataType::Float64) {
        check_float_ranges(group, held, expected, what);
    }
}

/// Reads runs of a column that is held as `held` to vectors of `physical`; `check` compares a position with a
/// row.
fn check_vectors(
    group: &RowGroup,
    held: PhysicalType,
    physical: PhysicalType,
    count: usize,
    check: &impl Fn(&Vector, usize, usize),
) {
    let mut out = Vector::new(physical);
    for (first, step) in [(0, CHUNK_ROWS), (1, 1000), (1020, 7), (count.saturating_sub(3), 3)] {
        for first in (first..count).step_by(step).take(4) {
            let rows = step.min(count - first);
            let window = first..first + rows;
            let window = std::slice::from_ref(&window);
            group.decode_runs(1, held, window, &mut out);
            (0..rows).for_each(|at| check(&out, at, first + at));
            for every in [1, 3, 37, 1000] {
                let positions: Vec<u16> = (0..rows as u16).step_by(every).collect();
                group.decode_selected_runs(1, held, window, &positions, &mut out);
                positions.iter().for_each(|&at| check(&out, at as usize, first + at as usize));
                if every == 3 && physical == PhysicalType::Str && out.encoding() == Encoding::Flat {
                    // Kernels may look at the others too.
                    let is_there =
                        |at: &usize| out.is_valid(*at) && !out.values::<StringView>()[*at].is_empty();
                    (0..rows).filter(is_there).for_each(|at| check(&out, at, first + at));
                }
                group.gather_runs(1, held, window, &positions, &mut out);
                positions.iter().enumerate().for_each(|(i, &at)| check(&out, i, first + at as usize));
            }
        }
    }
    // Two runs, positions in both; of a chunk's size at most.
    let runs = [0..count / 3, count / 2..count - count / 8];
    let slots: Vec<usize> = runs.iter().flat_map(|run| run.clone()).collect();
    let positions: Vec<u16> = (0..slots.len() as u16).step_by(3).collect();
    group.gather_runs(1, held, &runs, &positions, &mut out);
    positions.iter().enumerate().for_each(|(i, &at)| check(&out, i, slots[at as usize]));
    for every in [3, 37] {
        let positions: Vec<u16> = (0..slots.len() as u16).step_by(every).collect();
        group.decode_selected_runs(1, held, &runs, &positions, &mut out);
        positions.iter().for_each(|&at| check(&out, at as usize, slots[at as usize]));
    }
}

/// Ranges of floats from and to values of the data, and to NaN.
fn check_float_ranges(group: &RowGroup, physical: PhysicalType, expected: &[Value], what: &str) {
    let some = expected.iter().step_by(expected.len() / 4 + 1).filter_map(Value::ordinal);
    let odd = [0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 50.0].map(|v| float_ordinal(v).into());
    let ends: Vec<i128> =
        some.chain(odd).flat_map(|end| [end, end - 1, end + 1]).chain([i128::MIN, i128::MAX]).collect();
    for (i, &low) in ends.iter().enumerate() {
        for &high in ends.iter().skip(i % 3).step_by(3) {
            let range = [Condition::Range(ValueRange { column: 1, physical, low, high })];
            let mut positions = Vec::new();
            group.select_runs(&range, std::slice::from_ref(&(0..expected.len())), &mut positions);
            let is_in = |row: &usize| expected[*row].ordinal().is_some_and(|v| low <= v && v <= high);
            let twin: Vec<u16> = (0..expected.len()).filter(is_in).map(|row| row as u16).collect();
            assert_eq!(positions, twin, "{what}: from {low} to {high}");
        }
    }
}

fn check_numbers(group: &RowGroup, ty: DataType, expected: &[Value], what: &str) {
    let number = |value: &Value| match value {
        Value::Integer(v) => Some(*v),
        _ => None,
    };
    let (least, greatest) = ty.integer_range().expect("a type of integers");
    let middle = expected.iter().find_map(number).unwrap_or(0);
    let all = 0..expected.len();
    // From `middle` on as well, and between it and its possible neighbours.
    let ranges = [
        (least, greatest),
        (middle, middle),
        (middle, greatest),
        (least, middle - 1),
        (middle + 1, middle + 1),
        (middle + 1, middle + 11),
        (middle - 99, middle - 1),
        (0, 1000),
        (greatest, greatest),
    ];
    for (low, high) in ranges.into_iter().filter(|(low, high)| low <= high) {
        let range = [Condition::Range(ValueRange { column: 1, physical: ty.physical(), low, high })];
        for window in all.clone().step_by(CHUNK_ROWS).map(|from| from..all.end.min(from + CHUNK_ROWS)) {
            let mut positions = Vec::new();
            group.select_runs(&range, std::slice::from_ref(&window), &mut positions);
            let is_in = |row: &usize| number(&expected[*row]).is_some_and(|v| low <= v && v <= high);
            let twin: Vec<u16> =
                window.clone().filter(is_in).map(|row| (row - window.start) as u16).collect();
            assert_eq!(positions, twin, "{what}: from {low} to {high}");
        }
    }
    for runs in [vec![all.clone()], vec![3..500.min(all.end), 900.min(all.end)..1500.min(all.end)]] {
        let rows = || runs.iter().flat_map(|run| run.clone()).filter_map(|row| number(&expected[row]));
        let physical = ty.physical();
        assert_eq!(group.count_runs(1, &runs), rows().count(), "{what}: count");
        assert_eq!(group.sum_runs(1, physical, &runs), rows().sum::<i128>(), "{what}: sum");
        for largest in [true, false] {
            let start = if largest { i128::MIN } else { i128::MAX };
            let twin = rows().fold(start, |best, v| if largest { best.max(v) } else { best.min(v) });
            assert_eq!(group.extreme_runs(1, physical, &runs, largest, start), twin, "{what}: extreme");
        }
    }
}

/// Changes rows of a table with a layout key, under a snapshot that goes on showing the old ones.
fn check_writing(table: &Arc<Table>, ty: DataType, expected: &[Value], what: &str) {
    let before = table.snapshot();
    let mut changed = expected.to_vec();
    let mut random = Random(9);
    {
        let mut writer = table.write();
        for _ in 0..40 {
            let (row, from) =
                (random.next() as usize % expected.len(), random.next() as usize % expected.len());
            changed[row] = if row % 5 == 0 { Value::Null } else { expected[from].clone() };
            let id = writer.find(&[Datum::Integer(row as i128)]).expect("the row is there");
            writer.update(id, &[(1, Datum::of_value(&changed[row], ty))]);
        }
    }
    let after = table.snapshot();
    for (snapshot, rows) in [(&before, expected), (&after, &changed[..])] {
        for (row, expected) in rows.iter().enumerate() {
            let id: RowId = snapshot.find(&[Datum::Integer(row as i128)]).expect("the row is there");
            let mut datums = Vec::new();
            snapshot.read(id, &[1], &mut datums);
            let found = datums[0].value(ty);
            assert!(is_same(&found, expected), "{what}, written: row {row} is {found:?}, not {expected:?}");
        }
    }
}

/// Tables that become idle, lose and change rows, and become idle again, each time read in every way.
fn check_resting(ty: DataType, values: &[Value], compression: Compression, what: &str) {
    const LAYOUTS: [Layout; 6] =
        [Layout::Insertion, Layout::Sorted, Layout::Delta, Layout::Equi, Layout::EquiGhost, Layout::Casper];
    for layout in LAYOUTS {
        let table = laid_out(ty, values, compression, layout);
        let mut rows: BTreeMap<i128, Value> = (0..).zip(values.iter().cloned()).collect();
        for round in 0..2 {
            rest(&table);
            let snapshot = table.snapshot();
            snapshot.check();
            let of_row = |id: RowId| match snapshot.datum(id, 0) {
                Datum::Integer(key) => (key, snapshot.datum(id, 1).value(ty)),
                other => panic!("{what}, {layout:?}: a key is {other:?}"),
            };
            let mut found: Vec<(i128, Value)> = snapshot.row_ids().map(of_row).collect();
            found.sort_by_key(|(key, _)| *key);
            assert_eq!(found.len(), rows.len(), "{what}, {layout:?}, round {round}");
            for ((key, value), (own, expected)) in found.iter().zip(&rows) {
                let is_it = key == own && is_same(value, expected);
                assert!(
                    is_it,
                    "{what}, {layout:?}, round {round}: row {key} is {value:?}, not {expected:?} of {own}"
                );
            }
            check_every_way(&snapshot, &mut Random(round + 1));
            let ids: Vec<RowId> = snapshot.row_ids().collect();
            let keys: Vec<i128> = ids.iter().map(|&id| of_row(id).0).collect();
            drop(snapshot);
            let mut writer = table.write();
            for (&id, &key) in ids.iter().zip(&keys) {
                if key % 10 == i128::from(round) {
                    writer.delete(id);
                    rows.remove(&key);
                } else if key % 50 == 7 {
                    let new = if key % 20 == 7 { Value::Null } else { values[(key / 3) as usize].clone() };
                    writer.update(id, &[(1, Datum::of_value(&new, ty))]);
                    rows.insert(key, new);
                }
            }
        }
    }
}

/// Checks an encoding over all data of a type. `name` is its name in blocks that can have it.
fn conformance(compression: Compression, name: &str) {
    let types = [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64, DataType::UInt64];
    let mut data: Vec<(DataType, String, Vec<Value>)> = Vec::new();
    for ty in types {
        data.extend(integers(ty).into_iter().map(|(what, values)| (ty, what, values)));
    }
    let decimal = DataType::Decimal { precision: 38, scale: 2 };
    let on_decimals = |(what, values): (String, Vec<Value>)| (decimal, what, values);
    data.extend(integers(DataType::Int64).into_iter().skip(60).chain(wide()).map(on_decimals));
    let high = |i: usize| Value::Integer((1 << 63) + if i % 400 == 7 { 1 << 40 } else { i as i128 % 13 });
    data.push((DataType::UInt64, "high with outliers".into(), (0..ROWS).map(high).collect()));
    let uuids = (0..ROWS as i128)
        .map(|i| Value::Integer(i.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835_u128 as i128)));
    data.push((DataType::Uuid, "UUIDs".into(), uuids.collect()));
    let single = |value: &Value| match value {
        Value::Float(v) => Value::Float(f64::from(*v as f32)),
        other => other.clone(),
    };
    let floats = doubles().into_iter().map(|(what, values)| (what, values.iter().map(single).collect()));
    data.extend(floats.map(|(what, values)| (DataType::Float32, what, values)));
    data.extend(doubles().into_iter().map(|(what, values)| (DataType::Float64, what, values)));
    data.extend(strings().into_iter().map(|(what, values)| (DataType::Varchar, what, values)));
    let booleans = (0..ROWS).map(|i| Value::Boolean(i * i % 7 < 3)).collect();
    data.push((DataType::Boolean, "booleans".into(), booleans));
    let mut seen = BTreeSet::new();
    let mut promises = 0;
    for (number, (ty, what, values)) in data.into_iter().enumerate() {
        for (nulls, values) in with_nulls(&values).into_iter().enumerate() {
            // Few rows only once, as making them takes as long.
            let counts = if nulls == 0 { vec![values.len(), 3, 1] } else { vec![values.len()] };
            for rows in counts.into_iter().filter(|&rows| rows > 0) {
                let (what, values) =
                    (format!("{name}, {ty}, {what}, NULLs {nulls}, {rows} rows"), &values[..rows]);
                let flat = table(ty, values, compression, false);
                let snapshot = flat.snapshot();
                let group = snapshot.row_group(0).expect("it has rows");
                seen.extend((0..group.blocks()).map(|block| group.block_info(1, block).encoding));
                check_reading(&snapshot, ty, values, &what);
                promises += check_promises(group, ty, compression, &what);
                if nulls == 1 || rows == 1 {
                    check_writing(&table(ty, values, compression, true), ty, values, &what);
                }
                // Only for some data, different for each encoding, as this is slow.
                if nulls == 2 && number % 11 == name.len() % 11 {
                    check_resting(ty, values, compression, &what);
                }
            }
        }
    }
    assert!(seen.contains(name), "{name} never came about, but {seen:?}");
    assert!(promises > 500, "{name}: promises of {promises} blocks only");
}

#[test]
fn packed_conforms() {
    conformance(Compression::Packed, "packed");
}

#[test]
fn plain_codes_conform() {
    conformance(Compression::Plain, "frame of reference");
}

#[test]
fn flat_conforms() {
    conformance(Compression::Flat, "flat");
}

#[test]
fn nothing_conforms() {
    conformance(Compression::None, "strings");
}

#[test]
fn sequence_conforms() {
    conformance(Compression::Sequence, "sequence");
}

#[test]
fn runs_conform() {
    conformance(Compression::Runs, "runs");
}

#[test]
fn lines_conform() {
    conformance(Compression::Line, "line");
}

#[test]
fn multiples_conform() {
    conformance(Compression::Multiples, "multiples");
}

#[test]
fn patched_conforms() {
    conformance(Compression::Patched, "patched");
}

#[test]
fn outliers_on_any_side_are_patches() {
    for ty in [DataType::Int32, DataType::Int64, DataType::UInt64] {
        let (least, greatest) = ty.integer_range().expect("a type of integers");
        let sides: [&dyn Fn(i128) -> i128; 3] =
            [&|_| greatest, &|_| least, &|i| if i % 2 == 0 { greatest } else { least }];
        for (side, far) in sides.into_iter().enumerate() {
            let value = |i: i128| if i % 100 == 9 { far(i / 100) } else { (1 << 20) + i * i % 64 };
            let values: Vec<Value> = (0..1024).map(|i| Value::Integer(value(i))).collect();
            let snapshot = table(ty, &values, Compression::Auto, false).snapshot();
            let shown = snapshot.row_group(0).expect("it has rows").block_info(1, 0);
            assert_eq!(shown.encoding, "patched", "{ty}, side {side}");
            // Six bits per value, and ten patches of ten bytes.
            assert!(shown.bits_per_value < 7.5, "{ty}, side {side}: {} bits", shown.bits_per_value);
        }
    }
}

#[test]
fn scaled_doubles_conform() {
    conformance(Compression::Scaled, "scaled doubles");
}

#[test]
fn singles_conform() {
    conformance(Compression::Singles, "singles");
}

#[test]
fn split_floats_conform() {
    conformance(Compression::Split, "split floats");
}

#[test]
fn fsst_conforms() {
    conformance(Compression::Fsst, "FSST");
}

#[test]
fn the_choice_conforms_and_is_near_the_smallest() {
    conformance(Compression::Auto, "packed");
    let size = |ty: DataType, values: &[Value], compression: Compression| {
        let table = table(ty, values, compression, false);
        let snapshot = table.snapshot();
        let group = snapshot.row_group(0).expect("it has rows");
        (0..group.blocks()).map(|block| group.block_info(1, block).bytes).sum::<usize>()
    };
    let data = integers(DataType::Int64).into_iter().map(|(what, values)| (DataType::Int64, what, values));
    let data = data.chain(doubles().into_iter().map(|(what, values)| (DataType::Float64, what, values)));
    for (ty, what, values) in data {
        let least =
            Compression::NAMES.into_iter().map(|(_, compression)| size(ty, &values, compression)).min();
        let (auto, least) = (size(ty, &values, Compression::Auto), least.expect("there are encodings"));
        // The margins by which slower encodings must be smaller.
        assert!(auto * 2 <= least * 3, "{ty}, {what}: {auto} bytes chosen, {least} are possible");
    }
}
