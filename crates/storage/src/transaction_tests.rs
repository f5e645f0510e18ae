//! Transactions: several sessions against a list of committed rows, and who wins.

use crate::datum::Datum;
use crate::{Layout, Table, TableOptions, TableSnapshot, Transaction};
use entasis_vector::{DataType, ErrorKind, Field, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;

fn schema() -> Schema {
    let key = Field { nullable: false, ..Field::new("k", DataType::Int64) };
    vec![key, Field::new("v", DataType::Int64), Field::new("t", DataType::Varchar)]
}

fn table(name: &str) -> Arc<Table> {
    let options =
        TableOptions { unique: true, block_slots: 8, group_slots: 32, partitions: 4, ..TableOptions::keyed(vec![0]) };
    Table::with_options(name, schema(), options)
}

type Rows = BTreeMap<i64, i64>;

fn text(value: i64) -> String {
    format!("the text of value {value}")
}

fn put(transaction: &mut Transaction, table: &Arc<Table>, key: i64, value: i64) {
    let text = text(value);
    let value = Datum::Integer(value.into());
    let mut writer = transaction.write(table);
    match writer.find(&[Datum::Integer(key.into())]) {
        Some(row) => {
            writer.update(row, &[(1, value), (2, Datum::Bytes(text.as_bytes()))]);
        }
        None => {
            writer.insert(&[Datum::Integer(key.into()), value, Datum::Bytes(text.as_bytes())]);
        }
    }
}

fn remove(transaction: &mut Transaction, table: &Arc<Table>, key: i64) {
    let mut writer = transaction.write(table);
    if let Some(row) = writer.find(&[Datum::Integer(key.into())]) {
        writer.delete(row);
    }
}

fn rows_of(transaction: &mut Transaction, table: &Arc<Table>) -> Rows {
    rows_in(&transaction.snapshot(table))
}

fn rows_in(snapshot: &TableSnapshot) -> Rows {
    snapshot.check();
    let mut rows = Rows::new();
    for (number, group) in snapshot.row_groups().enumerate() {
        group.each_live(0..group.slots(), |slot| {
            let id = crate::RowId { group: number as u32, slot: slot as u32 };
            let integer = |column| match snapshot.datum(id, column) {
                Datum::Integer(v) => v as i64,
                other => panic!("{other:?}"),
            };
            let (key, value) = (integer(0), integer(1));
            assert!(snapshot.datum(id, 2).is_same(Datum::Bytes(text(value).as_bytes())));
            assert!(rows.insert(key, value).is_none(), "a key is there once");
        });
    }
    rows
}

struct Session {
    transaction: Transaction,
    /// What the tables were when it began, and what it made of them.
    began: [Rows; 2],
    now: [Rows; 2],
    touched: [Vec<i64>; 2],
    saved: Option<([Rows; 2], [Vec<i64>; 2])>,
}

#[test]
fn sessions_see_their_snapshot_and_the_first_committer_wins() {
    let mut state = 88_172_645_463_325_252u64;
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound) as i64
    };
    let tables = [table("a"), table("b")];
    let mut committed: [Rows; 2] = Default::default();
    let mut sessions: Vec<Session> = Vec::new();
    let (mut won, mut lost) = (0, 0);
    // Results that are still read when their transaction has ended.
    let mut held: Vec<(TableSnapshot, Rows)> = Vec::new();
    for step in 0..30_000 {
        if sessions.len() < 4 {
            let transaction = Transaction::begin(&tables);
            let (began, now) = (committed.clone(), committed.clone());
            sessions.push(Session { transaction, began, now, touched: Default::default(), saved: None });
        }
        let number = below(sessions.len() as u64) as usize;
        let session = &mut sessions[number];
        let at = below(2) as usize;
        match below(20) {
            0..=8 => {
                let (key, value) = (below(200), step);
                put(&mut session.transaction, &tables[at], key, value);
                session.now[at].insert(key, value);
                session.touched[at].push(key);
            }
            9..=12 => {
                let key = below(200);
                remove(&mut session.transaction, &tables[at], key);
                if session.now[at].remove(&key).is_some() {
                    session.touched[at].push(key);
                }
            }
            13..=14 => {
                let snapshot = session.transaction.snapshot(&tables[at]);
                assert_eq!(rows_in(&snapshot), session.now[at]);
                held.push((snapshot, session.now[at].clone()));
                if held.len() > 5 {
                    let (snapshot, rows) = held.swap_remove(below(held.len() as u64) as usize);
                    assert_eq!(rows_in(&snapshot), rows, "a result outlives its transaction");
                }
            }
            15 => {
                session.transaction.release(1);
                session.transaction.savepoint();
                session.saved = Some((session.now.clone(), session.touched.clone()));
            }
            16 => {
                if let Some((now, touched)) = session.saved.clone() {
                    session.transaction.roll_back_to(1);
                    (session.now, session.touched) = (now, touched);
                }
            }
            17 if below(2) == 0 => drop(sessions.swap_remove(number)),
            17..=18 => {
                let session = sessions.swap_remove(number);
                let changed =
                    |at: usize| session.touched[at].iter().any(|k| session.began[at].get(k) != committed[at].get(k));
                let loses = changed(0) || changed(1);
                match session.transaction.commit() {
                    Ok(()) => {
                        assert!(!loses, "a transaction that came second was committed");
                        won += 1;
                        for (at, committed) in committed.iter_mut().enumerate() {
                            for key in &session.touched[at] {
                                match session.now[at].get(key) {
                                    Some(&value) => committed.insert(*key, value),
                                    None => committed.remove(key),
                                };
                            }
                        }
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict);
                        assert!(loses, "{error} without a reason");
                        lost += 1;
                    }
                }
                let mut fresh = Transaction::begin(&tables);
                for (table, rows) in tables.iter().zip(&committed) {
                    assert_eq!(rows_of(&mut fresh, table), *rows);
                }
            }
            _ => {
                // A single statement of its own.
                let (key, value) = (below(200), step);
                let mut writer = tables[at].write();
                if let Some(row) = writer.find(&[Datum::Integer(key.into())]) {
                    let text = text(value);
                    let (value, text) = (Datum::Integer(value.into()), Datum::Bytes(text.as_bytes()));
                    writer.update(row, &[(1, value), (2, text)]);
                    committed[at].insert(key, step);
                }
            }
        }
    }
    assert!(won > 300 && lost > 300, "{won} won, {lost} lost");
    drop((sessions, held));
    for table in &tables {
        table.sweep();
        assert_eq!(table.retired(), 0);
    }
}

#[test]
fn a_conflict_names_the_table_and_the_key() {
    let table = table("accounts");
    let mut first = Transaction::begin(std::slice::from_ref(&table));
    let mut second = Transaction::begin(std::slice::from_ref(&table));
    put(&mut first, &table, 5, 1);
    put(&mut second, &table, 5, 2);
    first.commit().unwrap();
    let error = second.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("table accounts with k = 5"), "{error}");
}

#[test]
fn rows_without_a_key_are_told_by_place_and_values() {
    let table = Table::with_options(
        "log",
        schema(),
        TableOptions { layout: Layout::Insertion, block_slots: 8, group_slots: 32, ..TableOptions::default() },
    );
    let mut setup = Transaction::begin(&[]);
    (0..20).for_each(|key| {
        setup.write(&table).insert(&[Datum::Integer(key), Datum::Integer(0), Datum::Null]);
    });
    setup.commit().unwrap();
    let change = |transaction: &mut Transaction, slot: u32, value: i128| {
        let row = crate::RowId { group: 0, slot };
        transaction.write(&table).update(row, &[(1, Datum::Integer(value))]);
    };
    let [mut a, mut b, mut c] = [0; 3].map(|_| Transaction::begin(std::slice::from_ref(&table)));
    change(&mut a, 3, 1);
    change(&mut b, 4, 2);
    let added = b.write(&table).insert(&[Datum::Integer(99), Datum::Null, Datum::Null]);
    b.write(&table).update(added, &[(1, Datum::Integer(7))]);
    a.write(&table).insert(&[Datum::Integer(98), Datum::Null, Datum::Null]);
    change(&mut c, 3, 3);
    a.commit().unwrap();
    b.commit().unwrap();
    assert_eq!(c.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let snapshot = table.snapshot();
    snapshot.check();
    let value = |slot| snapshot.datum(crate::RowId { group: 0, slot }, 1);
    assert!(value(3).is_same(Datum::Integer(1)) && value(4).is_same(Datum::Integer(2)));
    assert!(value(20).is_null() && value(21).is_same(Datum::Integer(7)));
    assert_eq!(snapshot.rows(), 22);
}
