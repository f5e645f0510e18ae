//! Tables without a layout key: sessions against a list of committed rows, while upkeep and others move rows
//! under their snapshots and forks.

use crate::table::tests::rows::column_chunk;
use crate::tests::random::Random;
use crate::{Datum, RowId, Table, TableOptions, TableSnapshot, TableWriter, Transaction};
use entasis_vector::{Chunk, DataType, ErrorKind, Field, Schema, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Values by the ids of rows: the first column, which nobody but the test knows to be distinct.
type Rows = BTreeMap<i64, i64>;
/// Row numbers by the ids of rows.
type Numbers = BTreeMap<i64, u64>;

fn schema() -> Schema {
    let field = |name: &str, ty| Field::new(name, ty);
    vec![field("id", DataType::Int64), field("v", DataType::Int64), field("t", DataType::Varchar)]
}

fn table() -> Arc<Table> {
    let options = TableOptions { block_slots: 8, group_slots: 64, ..TableOptions::default() };
    Table::with_options("log", schema(), options)
}

fn chunk_of(rows: &[(i64, i64)]) -> Chunk {
    let row = |&(id, value): &(i64, i64)| {
        vec![Value::Integer(id.into()), Value::Integer(value.into()), Value::Text(value.to_string().into())]
    };
    column_chunk(&rows.iter().map(row).collect::<Vec<_>>(), &schema(), false)
}

fn id_of(datum: Datum<'_>) -> i64 {
    match datum {
        Datum::Integer(id) => id as i64,
        other => panic!("{other:?}"),
    }
}

/// Where the rows with some ids stand, in the order of their places.
fn places(writer: &TableWriter<'_>, ids: &BTreeSet<i64>) -> Vec<(RowId, i64)> {
    let mut found = Vec::new();
    writer.find_slowly(|row, _| {
        let id = id_of(writer.datum(row, 0));
        if ids.contains(&id) {
            found.push((row, id));
        }
        false
    });
    assert_eq!(found.len(), ids.len());
    found
}

/// The rows of a version, and their numbers.
fn rows_of(snapshot: &TableSnapshot) -> (Rows, Numbers) {
    snapshot.check();
    let (mut rows, mut numbers) = (Rows::new(), BTreeMap::new());
    for row in snapshot.row_ids() {
        let [id, value] = [0, 1].map(|column| id_of(snapshot.datum(row, column)));
        assert!(snapshot.datum(row, 2).is_same(Datum::Bytes(value.to_string().as_bytes())));
        assert!(rows.insert(id, value).is_none(), "a row is there once");
        let number = snapshot.number_of(row);
        assert_eq!(snapshot.find_number(number), Some(row));
        numbers.insert(id, number);
    }
    (rows, numbers)
}

struct Session {
    transaction: Transaction,
    began: Rows,
    rows: Rows,
    touched: BTreeSet<i64>,
    /// Rows and what was touched, when savepoints were set.
    saved: Vec<(Rows, BTreeSet<i64>)>,
}

/// One random change of a writer's rows.
fn step(
    table: &Arc<Table>,
    writer: &mut TableWriter<'_>,
    rows: &mut Rows,
    next: &mut i64,
    random: &mut Random,
) -> BTreeSet<i64> {
    let value = *next;
    let share = [2, 2, 10, 100][random.below(4) as usize];
    let some: BTreeSet<i64> = rows.keys().copied().filter(|_| random.below(share) == 0).collect();
    let one: BTreeSet<i64> = some.iter().copied().take(1).collect();
    let text = value.to_string();
    let changes = [(1, Datum::Integer(value.into())), (2, Datum::Bytes(text.as_bytes()))];
    *next += 1;
    match random.below(9) {
        0..=1 => {
            writer.insert(&[Datum::Integer(value.into()), changes[0].1, changes[1].1]);
            rows.insert(value, value);
            BTreeSet::from([value])
        }
        2 => {
            let new: Vec<(i64, i64)> = (0..random.below(60) as i64).map(|row| (value + row, value)).collect();
            *next += new.len() as i64;
            let mut appender = table.appender();
            appender.append(&chunk_of(&new), 0).unwrap();
            writer.append(vec![appender.finish()]).unwrap();
            rows.extend(new.iter().copied());
            new.into_iter().map(|row| row.0).collect()
        }
        3..=4 => {
            for (row, id) in places(writer, &one) {
                writer.update(row, &changes);
                rows.insert(id, value);
            }
            one
        }
        5 => {
            places(writer, &one).into_iter().for_each(|(row, _)| writer.delete(row));
            rows.retain(|id, _| !one.contains(id));
            one
        }
        6..=7 => {
            let (places, ids): (Vec<RowId>, Vec<i64>) = places(writer, &some).into_iter().unzip();
            let new: Vec<(i64, i64)> = ids.into_iter().map(|id| (id, value)).collect();
            writer.update_chunk(&places, &[(1, 1), (2, 2)], &chunk_of(&new));
            rows.extend(new);
            some
        }
        _ => {
            let places: Vec<RowId> = places(writer, &some).into_iter().map(|row| row.0).collect();
            writer.delete_many(&places);
            rows.retain(|id, _| !some.contains(id));
            some
        }
    }
}

#[test]
fn rows_move_under_snapshots_and_transactions() {
    let random = &mut Random(88_172_645_463_325_252);
    let table = table();
    let (mut committed, mut next) = (Rows::new(), 0);
    let mut numbers = Numbers::new();
    let mut sessions: Vec<Session> = Vec::new();
    let mut held: Vec<(TableSnapshot, (Rows, Numbers))> = Vec::new();
    let (mut won, mut lost, mut moved) = (0, 0, 0);
    for _ in 0..6000 {
        if sessions.len() < 3 {
            let transaction = Transaction::begin(std::slice::from_ref(&table));
            let (began, rows) = (committed.clone(), committed.clone());
            sessions.push(Session { transaction, began, rows, touched: BTreeSet::new(), saved: Vec::new() });
        }
        let number = random.below(sessions.len() as u64) as usize;
        let session = &mut sessions[number];
        match random.below(16) {
            0..=6 => {
                let mut writer = session.transaction.write(&table);
                session.touched.extend(step(&table, &mut writer, &mut session.rows, &mut next, random));
            }
            7 => {
                session.saved.push((session.rows.clone(), session.touched.clone()));
                session.transaction.savepoint();
            }
            8 if !session.saved.is_empty() => {
                let number = random.below(session.saved.len() as u64) as usize;
                session.transaction.roll_back_to(number + 1);
                session.saved.truncate(number + 1);
                (session.rows, session.touched) = session.saved[number].clone();
            }
            9..=10 => {
                let is_changed = sessions.iter().any(|session| session.transaction.is_changed(&table));
                let done = table.upkeep(Duration::from_secs(60));
                moved += usize::from(is_changed && done.spread > 0);
            }
            11 => {
                let snapshot = session.transaction.snapshot(&table);
                let seen = rows_of(&snapshot);
                assert_eq!(seen.0, session.rows);
                held.push((snapshot, seen));
                if held.len() > 4 {
                    let (snapshot, seen) = held.swap_remove(random.below(held.len() as u64) as usize);
                    assert_eq!(rows_of(&snapshot), seen, "what is held stays");
                }
            }
            12 => {
                let Session { transaction, began, rows, touched, .. } = sessions.swap_remove(number);
                let loses = touched.iter().any(|id| began.get(id) != committed.get(id));
                match transaction.commit(|_| Ok(())) {
                    Ok(()) => {
                        assert!(!loses, "who came second was committed");
                        won += 1;
                        for id in touched {
                            match rows.get(&id) {
                                Some(&value) => committed.insert(id, value),
                                None => committed.remove(&id),
                            };
                        }
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict);
                        assert!(loses, "{error} without a reason");
                        lost += 1;
                    }
                }
            }
            13 => {
                // On the head, at once.
                step(&table, &mut table.write(), &mut committed, &mut next, random);
            }
            14 => {
                // A statement by itself, which may come to nothing.
                let mut alone = Transaction::alone(std::slice::from_ref(&table));
                let mut rows = committed.clone();
                (0..1 + random.below(3)).for_each(|_| {
                    step(&table, &mut alone.write(&table), &mut rows, &mut next, random);
                });
                if random.below(3) > 0 {
                    alone.commit(|_| Ok(())).unwrap();
                    committed = rows;
                }
            }
            _ if random.below(40) == 0 => {
                table.write().clear();
                committed.clear();
            }
            _ => {}
        }
        let (rows, now) = rows_of(&table.snapshot());
        assert_eq!(rows, committed);
        for (id, number) in &now {
            assert!(
                numbers.insert(*id, *number).is_none_or(|before| before == *number),
                "a row keeps its number"
            );
        }
    }
    let given: BTreeSet<u64> = numbers.values().copied().collect();
    assert_eq!(given.len(), numbers.len(), "no number was given twice");
    assert!(won > 100 && lost > 100 && moved > 10, "{won} won, {lost} lost, {moved} moved");
    drop((sessions, held));
    table.sweep();
    assert_eq!((table.retired(), table.bytes()), (0, table.snapshot().bytes()));
}
