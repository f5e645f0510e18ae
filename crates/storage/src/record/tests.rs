//! Records come back as they were, and bytes that are none are refused.

use super::row::Wording;
use super::*;
use crate::file::Extent;
use crate::table::tests::rows::{insert, random_rows, schema};
use crate::tests::random::Random;
use crate::tree::{Piece, RowId, Shape};
use crate::value::Datum;
use crate::{Table, TableOptions, TableSnapshot};
use entasis_vector::{DataType, Field, Interval, Value};
use std::sync::Arc;

const TABLE: u64 = 300;
const LOAD: Extent = Extent { offset: 4096, bytes: 5, checksum: 0x0807_0605_0403_0201 };
/// The column of the layout key, of type BIGINT.
const KEY: usize = 5;

/// A table of all types whose rows are called by numbers, by a key, by all their values.
fn tables() -> [Arc<Table>; 3] {
    let mut schema = schema();
    schema[KEY].nullable = false;
    let small = TableOptions { block_slots: 16, group_slots: 128, ..TableOptions::default() };
    let keyed = TableOptions { block_slots: 16, group_slots: 128, ..TableOptions::keyed(vec![KEY]) };
    let unique = TableOptions { unique: true, ..keyed.clone() };
    [small, unique, keyed].map(|options| Table::with_options("t", schema.clone(), options))
}

fn extremes(ty: DataType) -> Vec<Value> {
    let mut values: Vec<Value> = match ty {
        DataType::Null => Vec::new(),
        DataType::Boolean => vec![Value::Boolean(false), Value::Boolean(true)],
        DataType::Float32 => {
            [f32::NAN, -0.0, f32::MAX, f32::NEG_INFINITY].map(|v| Value::Float(v.into())).to_vec()
        }
        DataType::Float64 => {
            let payload = f64::from_bits(0x7FF8_0000_0000_0001);
            [f64::NAN, payload, -0.0, f64::MIN_POSITIVE, f64::INFINITY].map(Value::Float).to_vec()
        }
        DataType::Varchar | DataType::Json => {
            vec![Value::Text("".into()), Value::Text("é".repeat(300).into())]
        }
        DataType::Blob => vec![Value::Bytes([].into()), Value::Bytes([0xFF; 200].into())],
        DataType::Interval => {
            let span = |months, days, micros| Value::Interval(Interval { months, days, micros });
            vec![span(i32::MIN, i32::MAX, i64::MIN), span(0, 0, 0), span(-1, 1, i64::MAX)]
        }
        DataType::Uuid => [i128::MIN, i128::MAX, 0, -1].map(Value::Integer).to_vec(),
        _ => {
            let (min, max) = ty.integer_range().expect("an integer inside");
            [min, max, 0, 1].map(Value::Integer).to_vec()
        }
    };
    values.push(Value::Null);
    values
}

fn rows(random: &mut Random) -> Vec<Vec<Value>> {
    let mut rows = random_rows(40, random);
    let extremes: Vec<Vec<Value>> = schema().iter().map(|field| extremes(field.ty)).collect();
    rows.extend((0..12).map(|at| extremes.iter().map(|values| values[at % values.len()].clone()).collect()));
    for row in rows.iter_mut().filter(|row| row[KEY].is_null()) {
        row[KEY] = Value::Integer((random.next() as i64).into());
    }
    rows
}

fn datums<'a>(row: &'a [Value], shape: &Shape) -> Vec<Datum<'a>> {
    row.iter().zip(&shape.schema).map(|(value, field)| Datum::of_value(value, field.ty)).collect()
}

fn assert_same(a: &[Datum<'_>], b: &[Datum<'_>]) {
    assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(*b)), "{a:?} and {b:?}");
}

/// The changes of some records.
fn changes<'a>(bytes: &'a [u8], shape: &Shape) -> Vec<Change<'a>> {
    let reader = RecordReader::of(shape);
    let change = |record: entasis_vector::Result<Record<'a>>| {
        let mut record = record.expect("a record");
        assert_eq!(record.table().unwrap(), TABLE);
        record.change(&reader).expect("a record of the table")
    };
    Records::new(bytes).map(change).collect()
}

fn assert_named(name: &RowName<'_>, number: u64, row: &[Datum<'_>], wording: &Wording) {
    match (name, wording) {
        (RowName::Number(named), Wording::Numbers) => assert_eq!(*named, number),
        (RowName::Key(values), Wording::Key(key)) => {
            assert_same(values, &key.iter().map(|&column| row[column]).collect::<Vec<_>>());
        }
        (RowName::Row(values), Wording::Rows(_)) => assert_same(values, row),
        (name, wording) => panic!("{name:?} for {wording:?}"),
    }
}

#[test]
fn single_rows_come_back() {
    let random = &mut Random(0x9E37_79B9);
    for table in tables() {
        let (shape, wording) = (&table.shape, &Wording::of(&table.shape));
        for (at, row) in rows(random).iter().enumerate() {
            let (row, number) = (datums(row, shape), (at as u64) << (at % 50));
            let new = rows(random).swap_remove(at);
            let new: Vec<(usize, Datum<'_>)> =
                datums(&new, shape).into_iter().enumerate().filter(|_| random.below(3) == 0).collect();
            let name = wording.name(number, |column| row[column]);
            let mut bytes = Vec::new();
            let mut recorder = Recorder::new(TABLE, shape, wording, &mut bytes);
            recorder.insert(number, &row);
            recorder.delete(&name);
            recorder.update(&name, &new);
            recorder.clear();
            let found = changes(&bytes, shape);
            let [
                Change::Insert { number: named, row: inserted },
                Change::Delete(gone),
                Change::Update(old, changed),
                Change::Clear,
            ] = &found[..]
            else {
                panic!("{found:?}")
            };
            assert!(*named == number || shape.key.is_some());
            assert_same(inserted, &row);
            assert_named(gone, number, &row, wording);
            assert_named(old, number, &row, wording);
            assert_eq!(changed.len(), new.len());
            for (found, new) in changed.iter().zip(&new) {
                assert_eq!(found.0, new.0);
                assert_same(&[found.1], &[new.1]);
            }
        }
    }
}

/// All values of a piece that has some columns.
fn values(piece: &Piece, columns: &[usize], shape: &Shape) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for slice in &piece.slices {
        for slot in 0..slice.rows {
            let value = |(block, &column): (&crate::block::Block, &usize)| {
                let ty = shape.schema[column].ty;
                block.datum(slot, ty.physical()).value(ty)
            };
            rows.push(slice.blocks.iter().zip(columns).map(value).collect());
        }
    }
    rows
}

fn shown(rows: &[Vec<Value>]) -> Vec<String> {
    rows.iter().map(|row| format!("{row:?}")).collect()
}

fn values_at(snapshot: &TableSnapshot, rows: &[RowId], columns: &[usize]) -> Vec<Vec<Value>> {
    let value = |row: RowId, column: usize| snapshot.datum(row, column).value(snapshot.schema()[column].ty);
    rows.iter().map(|&row| columns.iter().map(|&column| value(row, column)).collect()).collect()
}

#[test]
fn many_rows_come_back() {
    let random = &mut Random(0x1234_5678);
    for table in tables() {
        let (shape, wording) = (&table.shape, &Wording::of(&table.shape));
        let rows: Vec<Vec<Value>> = (0..8).flat_map(|_| rows(random)).collect();
        insert(&table, &rows, false);
        let snapshot = table.snapshot();
        let (root, _) = snapshot.pinned();
        let some: Vec<RowId> = snapshot.row_ids().filter(|_| random.below(3) > 0).collect();
        let columns: Vec<usize> = (0..shape.schema.len()).filter(|_| random.below(2) == 0).collect();
        let all: Vec<usize> = (0..shape.schema.len()).collect();
        let mut appender = table.appender();
        let chunk = crate::table::tests::rows::column_chunk(&rows, &shape.schema, false);
        appender.append(&chunk, 0).expect("rows of the table");
        let pieces = appender.finish().pieces;
        let mut bytes = Vec::new();
        let mut recorder = Recorder::new(TABLE, shape, wording, &mut bytes);
        pieces.iter().for_each(|(_, piece)| recorder.insert_many(9, piece));
        let names = names_of(&root, &some, shape);
        recorder.update_many(&names, &columns, &gather(&root, &some, &columns, shape));
        recorder.delete_many(&names);
        let mut inserted = Vec::new();
        let check_names = |names: &Names| match names {
            Names::Numbers(runs) => {
                let numbers: Vec<u64> = runs.iter().flat_map(|&(first, rows)| first..first + rows).collect();
                assert_eq!(numbers, some.iter().map(|&row| snapshot.number_of(row)).collect::<Vec<_>>());
            }
            Names::Columns(piece) => {
                let columns = wording.columns();
                assert_eq!(
                    shown(&values(piece, &columns, shape)),
                    shown(&values_at(&snapshot, &some, &columns))
                );
            }
        };
        let mut kinds = [0; 3];
        for change in changes(&bytes, shape) {
            match change {
                Change::InsertMany { first, piece } => {
                    assert!(first == 9 || shape.key.is_some());
                    inserted.extend(values(&piece, &all, shape));
                    kinds[0] += 1;
                }
                Change::UpdateMany { names, columns: changed, values: new } => {
                    check_names(&names);
                    assert_eq!(changed, columns);
                    let expected = values_at(&snapshot, &some, &columns);
                    assert_eq!(shown(&values(&new, &columns, shape)), shown(&expected));
                    kinds[1] += 1;
                }
                Change::DeleteMany(names) => {
                    check_names(&names);
                    kinds[2] += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        let expected: Vec<Vec<Value>> =
            pieces.iter().flat_map(|(_, piece)| values(piece, &all, shape)).collect();
        assert_eq!(shown(&inserted), shown(&expected));
        assert!(kinds[0] > 1 && kinds[1] == 1 && kinds[2] == 1);
    }
}

/// Reads all that can be read of bytes, whatever they are. How many records they are.
fn read_all(bytes: &[u8], shape: &Shape) -> usize {
    let all: Vec<usize> = (0..shape.schema.len()).collect();
    let (reader, mut read) = (RecordReader::of(shape), 0);
    for record in Records::new(bytes) {
        let change = record.and_then(|mut record| {
            record.table()?;
            record.change(&reader)
        });
        let Ok(change) = change else { continue };
        read += 1;
        let of_names = |names: &Names| {
            if let Names::Columns(piece) = names {
                values(piece, &Wording::of(shape).columns(), shape);
            }
        };
        match change {
            Change::InsertMany { piece, .. } => drop(values(&piece, &all, shape)),
            Change::UpdateMany { names, columns, values: new } => {
                of_names(&names);
                values(&new, &columns, shape);
            }
            Change::DeleteMany(names) => of_names(&names),
            Change::Insert { .. }
            | Change::Load { .. }
            | Change::Delete(_)
            | Change::Update(..)
            | Change::Clear => {}
        }
    }
    read
}

#[test]
fn damage_is_refused() {
    let random = &mut Random(0xABCD_EF01);
    for table in tables() {
        let (shape, wording) = (&table.shape, &Wording::of(&table.shape));
        let rows = rows(random);
        insert(&table, &rows, false);
        let snapshot = table.snapshot();
        let (root, _) = snapshot.pinned();
        let some: Vec<RowId> = snapshot.row_ids().take(20).collect();
        let all: Vec<usize> = (0..shape.schema.len()).collect();
        let mut bytes = Vec::new();
        let mut recorder = Recorder::new(TABLE, shape, wording, &mut bytes);
        let row = datums(&rows[3], shape);
        let name = wording.name(3, |column| row[column]);
        recorder.insert(3, &row);
        recorder.delete(&name);
        recorder.update(&name, &[(5, row[5]), (14, row[14])]);
        recorder.insert_many(3, &gather(&root, &some, &all, shape));
        recorder.update_many(
            &names_of(&root, &some, shape),
            &[5, 14],
            &gather(&root, &some, &[5, 14], shape),
        );
        recorder.delete_many(&names_of(&root, &some, shape));
        recorder.load(3, 20, LOAD);
        assert_eq!(read_all(&bytes, shape), 7);
        (0..bytes.len()).for_each(|end| assert!(read_all(&bytes[..end], shape) < 7));
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(damaged.len() as u64) as usize;
                damaged[at] = random.next() as u8;
            }
            read_all(&damaged, shape);
        }
        for _ in 0..20_000 {
            let body: Vec<u8> = (0..random.below(100)).map(|_| random.next() as u8 & 0x8F).collect();
            let bytes = [&[1 + random.below(9) as u8, body.len() as u8], &body[..]].concat();
            read_all(&bytes, shape);
        }
    }
}

/// Logs are to be read for ever.
#[test]
fn the_bytes_are_those_of_the_page() {
    let schema = vec![Field::new("a", DataType::Int64), Field::new("b", DataType::Varchar)];
    let shape = Shape::new("t".into(), schema.clone(), TableOptions::default());
    let row = [Datum::Integer(-3), Datum::Bytes(b"xy")];
    let mut bytes = Vec::new();
    let mut recorder = Recorder::new(200, &shape, &Wording::Numbers, &mut bytes);
    recorder.insert(7, &row);
    recorder.delete(&RowName::Number(7));
    recorder.update(&RowName::Number(7), &[(1, Datum::Null), (0, row[0]), (1, row[1])]);
    recorder.delete_many(&Names::Numbers(vec![(7, 2), (20, 1)]));
    recorder.clear();
    recorder.load(7, 300, LOAD);
    let index = [&[0, 16, 0, 0, 0, 0, 0, 0][..], &[5, 0, 0, 0, 0, 0, 0, 0], &[1, 2, 3, 4, 5, 6, 7, 8]];
    let index = index.concat();
    let expected = [
        &[1, 8, 0xC8, 1, 7, 0, 5, 2, b'x', b'y'][..],
        &[2, 3, 0xC8, 1, 7],
        &[3, 9, 0xC8, 1, 7, 3, 0, 5, 2, b'x', b'y'],
        &[6, 7, 0xC8, 1, 2, 7, 2, 11, 1],
        &[8, 2, 0xC8, 1],
        &[7, 29, 0xC8, 1, 7, 0xAC, 2],
        &index,
    ];
    assert_eq!(bytes, expected.concat());
    let keyed = TableOptions { unique: true, ..TableOptions::keyed(vec![0]) };
    let key = Field { nullable: false, ..schema[0].clone() };
    let shape = Shape::new("t".into(), vec![key, schema[1].clone()], keyed);
    let mut bytes = Vec::new();
    let wording = Wording::Key(vec![0]);
    let mut recorder = Recorder::new(1, &shape, &wording, &mut bytes);
    recorder.insert(7, &[row[0], Datum::Null]);
    recorder.delete(&RowName::Key(vec![row[0]]));
    assert_eq!(bytes, [1, 3, 1, 2, 5, 2, 3, 1, 0, 5]);
    let mut bytes = Vec::new();
    Recorder::new(1, &shape, &wording, &mut bytes).load(7, 300, LOAD);
    assert_eq!(bytes, [&[7, 27, 1, 0xAC, 2][..], &index].concat(), "no number with a layout key");
}

#[test]
fn what_is_claimed_is_there() {
    let shape = Shape::new("t".into(), vec![Field::new("a", DataType::Int64)], TableOptions::default());
    let most = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
    // So many rows, runs of numbers, bytes.
    let many = [&[1, 0][..], &most, &[1]].concat();
    for (kind, body) in [(4, many), (6, [&[1][..], &most].concat()), (5, [&[1][..], &most].concat())] {
        let bytes = [&[kind, body.len() as u8], &body[..]].concat();
        assert_eq!(read_all(&bytes, &shape), 0);
    }
    assert!(Records::new(&[&[1][..], &most].concat()).next().is_some_and(|record| record.is_err()));
}
