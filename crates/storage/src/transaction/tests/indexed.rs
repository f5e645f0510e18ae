//! An index of a table without a layout key refers to the rows of its table, whichever session commits first.

use crate::definition::{Key, KeyKind};
use crate::index::{index_columns, index_table};
use crate::table::tests::rows::column_chunk;
use crate::tests::random::Random;
use crate::{AppendedRows, Datum, RowId, Table, TableOptions, TableSnapshot, Transaction};
use entasis_vector::{DataType, ErrorKind, Field, Schema, Value};
use std::sync::Arc;
use std::time::Duration;

/// A table with one column of values, of which it has an index.
struct Indexed {
    table: Arc<Table>,
    index: Arc<Table>,
}

fn integer(datum: Datum<'_>) -> i64 {
    match datum {
        Datum::Integer(value) => value as i64,
        other => panic!("{other:?}"),
    }
}

fn rows_of(snapshot: &TableSnapshot, mut row: impl FnMut(RowId) -> (i64, i64)) -> Vec<(i64, i64)> {
    snapshot.check();
    let mut rows: Vec<(i64, i64)> = snapshot.row_ids().map(&mut row).collect();
    rows.sort_unstable();
    rows
}

impl Indexed {
    fn new() -> Indexed {
        let options = TableOptions { block_slots: 8, group_slots: 64, ..TableOptions::default() };
        let schema: Schema = vec![Field::new("v", DataType::Int64)];
        let key = Key { name: "i".into(), columns: vec![0], kind: KeyKind::Index };
        assert_eq!(index_columns(&key, &options).len(), 2);
        let index = index_table(&key, &schema, &options).expect("the table is not laid out by it");
        Indexed { table: Table::with_options("t", schema, options), index }
    }

    fn appended(table: &Arc<Table>, rows: &[Vec<i64>]) -> Vec<AppendedRows> {
        let row = |row: &Vec<i64>| row.iter().map(|&value| Value::Integer(value.into())).collect::<Vec<_>>();
        let rows: Vec<Vec<Value>> = rows.iter().map(row).collect();
        let mut appender = table.appender();
        appender.append(&column_chunk(&rows, table.schema(), false), 0).unwrap();
        vec![appender.finish()]
    }

    /// A random change of the table and its index, as a transaction sees them.
    fn step(&self, transaction: &mut Transaction, random: &mut Random) {
        let Indexed { table, index } = self;
        transaction.refers_by_number(index, table);
        let value = random.below(6) as i64;
        let snapshot = transaction.snapshot(table);
        let nth = random.below(snapshot.rows().max(1)) as usize;
        let some = snapshot.row_ids().nth(nth);
        let datum = |value: i64| Datum::Integer(value.into());
        let first = transaction.write(table).next_number() as i64;
        match (random.below(5), some) {
            (0, _) => {
                let rows: Vec<Vec<i64>> =
                    (0..random.below(30) as i64).map(|row| vec![value + row % 3]).collect();
                transaction.append(table, Indexed::appended(table, &rows)).unwrap();
                let rows: Vec<Vec<i64>> =
                    rows.iter().zip(first..).map(|(row, number)| vec![row[0], number]).collect();
                transaction.append(index, Indexed::appended(index, &rows)).unwrap();
            }
            (1..=3, Some(row)) => {
                let (old, number) = (integer(snapshot.datum(row, 0)), snapshot.number_of(row) as i64);
                let is_update = random.below(2) == 0;
                drop(snapshot);
                let mut writer = transaction.write(table);
                match is_update {
                    true => drop(writer.update(row, &[(0, datum(value))])),
                    false => writer.delete(row),
                }
                drop(writer);
                let mut writer = transaction.write(index);
                let mut found = None;
                writer.find_each(&[datum(old)], |row| {
                    found = (integer(writer.datum(row, 1)) == number).then_some(row);
                    found.is_none()
                });
                writer.delete(found.expect("each row is in the index"));
                if is_update {
                    writer.insert(&[datum(value), datum(number)]);
                }
            }
            _ => {
                transaction.write(table).insert(&[datum(value)]);
                transaction.write(index).insert(&[datum(value), datum(first)]);
            }
        }
    }

    fn check(&self, table: &TableSnapshot, index: &TableSnapshot) {
        let own = rows_of(table, |row| (integer(table.datum(row, 0)), table.number_of(row) as i64));
        let found = rows_of(index, |row| (integer(index.datum(row, 0)), integer(index.datum(row, 1))));
        assert_eq!(own, found);
        for (value, number) in found {
            let row = table.find_number(number as u64).expect("it refers to a row");
            assert_eq!(integer(table.datum(row, 0)), value);
        }
    }
}

#[test]
fn an_index_has_the_numbers_of_the_rows_of_its_table() {
    let random = &mut Random(7_046_029_254_386_353_131);
    let own = Indexed::new();
    let both = [own.table.clone(), own.index.clone()];
    let mut sessions: Vec<Transaction> = Vec::new();
    let (mut won, mut lost) = (0, 0);
    for _ in 0..3000 {
        while sessions.len() < 3 {
            sessions.push(Transaction::begin(&both));
        }
        let number = random.below(3) as usize;
        match random.below(10) {
            0..=5 => own.step(&mut sessions[number], random),
            6 => match sessions.swap_remove(number).commit(|_| Ok(())) {
                Ok(()) => won += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Conflict);
                    lost += 1;
                }
            },
            7 => {
                let session = &mut sessions[number];
                let point = session.savepoint();
                own.step(session, random);
                session.roll_back_to(point);
                session.release(point);
            }
            8 => {
                let mut alone = Transaction::alone(&both);
                own.step(&mut alone, random);
                alone.commit(|_| Ok(())).unwrap();
            }
            _ => both.iter().for_each(|table| _ = table.upkeep(Duration::from_secs(60))),
        }
        if let Some(session) = sessions.get_mut(number) {
            let [table, index] = [&own.table, &own.index].map(|table| session.snapshot(table));
            own.check(&table, &index);
        }
        own.check(&own.table.snapshot(), &own.index.snapshot());
    }
    assert!(won > 50 && lost > 0, "{won} won, {lost} lost");
}
