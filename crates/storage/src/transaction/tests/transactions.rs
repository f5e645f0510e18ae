//! Transactions: several sessions against a list of committed rows, and who wins.

use crate::table::tests::rows::column_chunk;
use crate::tests::random::Random;
use crate::value::Datum;
use crate::{Among, AppendedRows, Layout, Table, TableOptions, TableSnapshot, Transaction};
use entasis_vector::{Chunk, DataType, Error, ErrorKind, Field, Schema, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

fn schema() -> Schema {
    let key = Field { nullable: false, ..Field::new("k", DataType::Int64) };
    vec![key, Field::new("v", DataType::Int64), Field::new("t", DataType::Varchar)]
}

fn table(name: &str) -> Arc<Table> {
    let options = TableOptions {
        unique: true,
        block_slots: 8,
        group_slots: 32,
        partitions: 4,
        ..TableOptions::keyed(vec![0])
    };
    Table::with_options(name, schema(), options)
}

type Rows = BTreeMap<i64, i64>;

fn text(value: i64) -> String {
    format!("the text of value {value}")
}

fn put(transaction: &mut Transaction, table: &Arc<Table>, key: i64, value: i64) {
    let text = text(value);
    let is_kept = value % 2 == 0;
    let value = Datum::Integer(value.into());
    if is_kept
        && let Some(mut kept) = transaction.keep(table)
        && let Some(row) = kept.find(&[Datum::Integer(key.into())])
    {
        return kept.update(row, &[(1, value), (2, Datum::Bytes(text.as_bytes()))]);
    }
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

/// Rows that an appender took.
fn appended(table: &Arc<Table>, rows: &[(i64, i64)]) -> Vec<AppendedRows> {
    let mut appender = table.appender();
    for (morsel, rows) in rows.chunks(7).enumerate() {
        appender.append(&chunk_of(rows), morsel as u64).unwrap();
    }
    vec![appender.finish()]
}

fn chunk_of(rows: &[(i64, i64)]) -> Chunk {
    let row = |&(key, value): &(i64, i64)| {
        vec![Value::Integer(key.into()), Value::Integer(value.into()), Value::Text(text(value).into())]
    };
    column_chunk(&rows.iter().map(row).collect::<Vec<_>>(), &schema(), false)
}

struct Session {
    transaction: Transaction,
    /// What the tables were when it began.
    began: [Rows; 2],
    versions: [u64; 2],
    now: Done,
    saved: Vec<Done>,
}

/// What a session made of its tables.
#[derive(Clone, Default)]
struct Done {
    rows: [Rows; 2],
    touched: [Vec<i64>; 2],
    wrote: [bool; 2],
    cleared: [bool; 2],
}

impl Done {
    /// One random operation, on a transaction and here.
    fn step(
        &mut self,
        transaction: &mut Transaction,
        tables: &[Arc<Table>; 2],
        at: usize,
        step: i64,
        random: &mut Random,
    ) {
        let (table, rows) = (&tables[at], &mut self.rows[at]);
        match random.below(34) {
            0..=15 => {
                let (key, value) = (random.number(200), step);
                put(transaction, table, key, value);
                rows.insert(key, value);
                self.touched[at].push(key);
                self.wrote[at] = true;
            }
            16..=25 => {
                let key = random.number(200);
                remove(transaction, table, key);
                if rows.remove(&key).is_some() {
                    self.touched[at].push(key);
                    self.wrote[at] = true;
                }
            }
            26..=28 => {
                let mut added: Vec<(i64, i64)> =
                    (0..random.below(40)).map(|_| (random.number(200), step)).collect();
                added.sort_unstable();
                added.dedup();
                added.retain(|(key, _)| !rows.contains_key(key));
                let count = transaction.append(table, appended(table, &added)).unwrap();
                assert_eq!(count, added.len() as u64);
                self.wrote[at] |= count > 0;
                self.touched[at].extend(added.iter().map(|row| row.0));
                rows.extend(added);
            }
            29..=32 => {
                // Some rows at once.
                let mut keys: Vec<i64> = (0..random.below(60)).map(|_| random.number(200)).collect();
                keys.sort_unstable();
                keys.dedup();
                keys.retain(|key| rows.contains_key(key));
                let mut writer = transaction.write(table);
                let ids: Vec<_> =
                    keys.iter().map(|&key| writer.find(&[Datum::Integer(key.into())]).unwrap()).collect();
                if random.below(2) == 0 {
                    writer.delete_many(&ids);
                    rows.retain(|key, _| !keys.contains(key));
                } else {
                    let new: Vec<(i64, i64)> = keys.iter().map(|&key| (key, step)).collect();
                    writer.update_chunk(&ids, &[(1, 1), (2, 2)], &chunk_of(&new));
                    rows.extend(new);
                }
                self.wrote[at] |= !keys.is_empty();
                self.touched[at].extend(keys);
            }
            _ => {
                assert_eq!(transaction.clear(table), rows.len() as u64);
                rows.clear();
                (self.wrote[at], self.cleared[at]) = (true, true);
            }
        }
    }

    /// What is committed when this is.
    fn apply(&self, committed: &mut [Rows; 2]) {
        for (at, committed) in committed.iter_mut().enumerate() {
            if self.cleared[at] {
                *committed = self.rows[at].clone();
            }
            for key in &self.touched[at] {
                match self.rows[at].get(key) {
                    Some(&value) => committed.insert(*key, value),
                    None => committed.remove(key),
                };
            }
        }
    }
}

#[test]
fn sessions_see_their_snapshot_and_the_first_committer_wins() {
    let random = &mut Random(88_172_645_463_325_252);
    let tables = [table("a"), table("b")];
    let mut committed: [Rows; 2] = Default::default();
    let mut versions = [0u64; 2];
    let mut sessions: Vec<Session> = Vec::new();
    let (mut won, mut lost) = (0, 0);
    // Results that are still read when their transaction has ended.
    let mut held: Vec<(TableSnapshot, Rows)> = Vec::new();
    for step in 0..20_000 {
        if sessions.len() < 4 {
            let transaction = Transaction::begin(&tables);
            let now = Done { rows: committed.clone(), ..Done::default() };
            sessions.push(Session {
                transaction,
                began: committed.clone(),
                versions,
                now,
                saved: Vec::new(),
            });
        }
        let number = random.below(sessions.len() as u64) as usize;
        let session = &mut sessions[number];
        let at = random.below(2) as usize;
        match random.below(20) {
            0..=12 => session.now.step(&mut session.transaction, &tables, at, step, random),
            13 => {
                let snapshot = session.transaction.snapshot(&tables[at]);
                assert_eq!(rows_in(&snapshot), session.now.rows[at]);
                held.push((snapshot, session.now.rows[at].clone()));
                if held.len() > 5 {
                    let (snapshot, rows) = held.swap_remove(random.below(held.len() as u64) as usize);
                    assert_eq!(rows_in(&snapshot), rows, "a result outlives its transaction");
                }
            }
            14 => {
                session.saved.push(session.now.clone());
                assert_eq!(session.transaction.savepoint(), session.saved.len());
            }
            15 if !session.saved.is_empty() => {
                let number = random.below(session.saved.len() as u64) as usize;
                session.transaction.roll_back_to(number + 1);
                session.saved.truncate(number + 1);
                session.now = session.saved[number].clone();
            }
            16 if !session.saved.is_empty() => {
                let number = random.below(session.saved.len() as u64) as usize;
                session.transaction.release(number + 1);
                session.saved.truncate(number);
            }
            17 if random.below(2) == 0 => drop(sessions.swap_remove(number)),
            17..=18 => {
                let Session { transaction, began, versions: seen, now, .. } = sessions.swap_remove(number);
                let changed = |at: usize| {
                    now.cleared[at] && seen[at] != versions[at]
                        || now.touched[at].iter().any(|k| began[at].get(k) != committed[at].get(k))
                };
                let loses = (0..2).any(changed);
                for (table, wrote) in tables.iter().zip(now.wrote) {
                    assert_eq!(transaction.is_changed(table), wrote);
                }
                match transaction.commit(|_| Ok(())) {
                    Ok(()) => {
                        assert!(!loses, "a transaction that came second was committed");
                        won += 1;
                        now.apply(&mut committed);
                        (0..2).for_each(|at| versions[at] += u64::from(now.wrote[at]));
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
            _ if random.below(2) == 0 => {
                // A statement on its own, of which some part may fail.
                let both = random.below(2) == 0;
                let mut alone = Transaction::alone(if both { &tables } else { &tables[at..=at] });
                let mut now = Done { rows: committed.clone(), ..Done::default() };
                for _ in 0..1 + random.below(12) {
                    let at = if both { random.below(2) as usize } else { at };
                    let before = now.clone();
                    let fails = random.below(4) == 0;
                    let result = alone.atomically(|alone| {
                        now.step(alone, &tables, at, step, random);
                        alone.atomically(|alone| {
                            now.step(alone, &tables, at, step, random);
                            Ok(())
                        })?;
                        if fails { Err(Error::input("undo")) } else { Ok(()) }
                    });
                    if result.is_err() {
                        now = before;
                    }
                    assert_eq!(rows_of(&mut alone, &tables[at]), now.rows[at]);
                }
                if random.below(4) > 0 {
                    alone.commit(|_| Ok(())).unwrap();
                    now.apply(&mut committed);
                    (0..2).for_each(|at| versions[at] += u64::from(now.wrote[at]));
                }
            }
            _ => {
                // A single row.
                let (key, value) = (random.number(200), step);
                let mut writer = tables[at].write();
                if let Some(row) = writer.find(&[Datum::Integer(key.into())]) {
                    let text = text(value);
                    let (value, text) = (Datum::Integer(value.into()), Datum::Bytes(text.as_bytes()));
                    writer.update(row, &[(1, value), (2, text)]);
                    committed[at].insert(key, step);
                    versions[at] += 1;
                }
            }
        }
    }
    assert!(won > 200 && lost > 200, "{won} won, {lost} lost");
    drop((sessions, held));
    for table in &tables {
        table.sweep();
        assert_eq!(table.retired(), 0);
    }
}

#[test]
fn what_is_relied_on_holds_when_it_is_committed() {
    // A child needs a parent with its key. Either is written by several threads, in transactions of both
    // kinds.
    let (parents, children) = (table("parents"), table("children"));
    let has = |transaction: &mut Transaction, table: &Arc<Table>, key: i64| {
        transaction.snapshot(table).find(&[Datum::Integer(key.into())]).is_some()
    };
    let broken = || Err(Error::new(ErrorKind::Constraint, "the other table says no"));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (parents, children, has) = (&parents, &children, &has);
            scope.spawn(move || {
                let random = &mut Random(88_172_645_463_325_252 + thread * 7919);
                for step in 0..1500 {
                    let mut seen = Transaction::begin(&[parents.clone(), children.clone()]);
                    let (parent_rows, child_rows) =
                        (rows_of(&mut seen, parents), rows_of(&mut seen, children));
                    assert!(
                        child_rows.keys().all(|key| parent_rows.contains_key(key)),
                        "a child without a parent"
                    );
                    drop(seen);
                    let key = random.number(6);
                    let adds = random.below(2) == 0;
                    let writes_child = random.below(2) == 0;
                    let (written, other) =
                        if writes_child { (children, parents) } else { (parents, children) };
                    let mut transaction = match random.below(2) {
                        0 => Transaction::alone(std::slice::from_ref(written)),
                        _ => Transaction::begin(&[parents.clone(), children.clone()]),
                    };
                    match adds {
                        true => put(&mut transaction, written, key, step),
                        false => remove(&mut transaction, written, key),
                    }
                    // Adding a child takes a parent; removing a parent takes that there is no child.
                    let judge = move |transaction: &mut Transaction| match (writes_child, adds) {
                        (true, true) if !has(transaction, other, key) => broken(),
                        (false, false) if has(transaction, other, key) => broken(),
                        _ => Ok(()),
                    };
                    transaction.depend_on(other);
                    if judge(&mut transaction).is_err() {
                        continue;
                    }
                    (0..random.below(4)).for_each(|_| std::thread::yield_now());
                    if let Err(error) = transaction.commit(judge) {
                        assert!(
                            matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Constraint),
                            "{error}"
                        );
                    }
                }
            });
        }
    });
}

#[test]
fn what_is_relied_on_is_judged_once_more_if_it_moved() {
    let (parents, children) = (table("parents"), table("children"));
    let both = [parents.clone(), children.clone()];
    for moves in [false, true] {
        let mut transaction = Transaction::begin(&both);
        put(&mut transaction, &children, 1, 1);
        transaction.depend_on(&parents);
        if moves {
            parents.write().insert(&[Datum::Integer(5), Datum::Null, Datum::Null]);
        }
        let mut judged = 0;
        let result = transaction.commit(|transaction| {
            judged += 1;
            assert_eq!(transaction.snapshot(&parents).rows(), 1);
            assert_eq!(transaction.snapshot(&children).rows(), 1);
            Err(Error::new(ErrorKind::Constraint, "no"))
        });
        assert_eq!((result.is_err(), judged), (moves, usize::from(moves)));
        children.write().clear();
    }
}

#[test]
fn a_table_that_is_not_held_is_written_beside_others() {
    let (a, b) = (table("a"), table("b"));
    let mut alone = Transaction::alone(std::slice::from_ref(&a));
    put(&mut alone, &a, 1, 1);
    put(&mut alone, &b, 1, 1);
    let mut other = Transaction::begin(std::slice::from_ref(&b));
    put(&mut other, &b, 1, 2);
    assert_eq!(alone.changed_tables().count(), 2);
    other.commit(|_| Ok(())).unwrap();
    assert_eq!(alone.commit(|_| Ok(())).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((a.rows(), b.rows()), (0, 1));
    // Nobody holds a write lock any more.
    put(&mut Transaction::alone(&[a.clone(), b.clone()]), &a, 1, 1);
    a.write().insert(&[Datum::Integer(1), Datum::Null, Datum::Null]);
}

#[test]
fn a_panic_gives_the_write_locks_back() {
    let table = table("a");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut alone = Transaction::alone(std::slice::from_ref(&table));
        put(&mut alone, &table, 1, 1);
        alone.savepoint();
        put(&mut alone, &table, 2, 1);
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    assert_eq!(table.rows(), 0);
    let mut alone = Transaction::alone(std::slice::from_ref(&table));
    put(&mut alone, &table, 1, 1);
    alone.commit(|_| Ok(())).unwrap();
    assert_eq!(table.rows(), 1);
    table.sweep();
    assert_eq!(table.retired(), 0);
}

/// Does something that panics.
fn panics(work: impl FnOnce()) {
    let work = std::panic::AssertUnwindSafe(|| {
        work();
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(std::panic::catch_unwind(work).is_err());
}

#[test]
fn a_panic_leaves_everything_as_it_was() {
    let table = table("a");
    let rows: Rows = (0..100).map(|key| (key * 2, key)).collect();
    table.commit(appended(&table, &rows.clone().into_iter().collect::<Vec<_>>())).unwrap();
    let before = rows_in(&table.snapshot());
    assert_eq!(before, rows);
    let insert = |writer: &mut crate::TableWriter<'_>, key: i64| {
        let text = text(7);
        writer.insert(&[Datum::Integer(key.into()), Datum::Integer(7), Datum::Bytes(text.as_bytes())]);
    };
    // In the midst of work on the head, and of work on a fork, bulk and single.
    panics(|| {
        let _: Result<(), Error> = table.write().atomically(|writer| {
            (0..50).for_each(|key| insert(writer, key * 2 + 1));
            std::panic::resume_unwind(Box::new("on purpose"))
        });
    });
    assert_eq!(rows_in(&table.snapshot()), before);
    panics(|| {
        let mut alone = Transaction::alone(std::slice::from_ref(&table));
        let all: Vec<crate::RowId> = alone.snapshot(&table).row_ids().collect();
        let mut writer = alone.write(&table);
        writer.delete_many(&all[10..60]);
        (0..50).for_each(|key| insert(&mut writer, key * 2 + 1));
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert_eq!(rows_in(&table.snapshot()), before);
    // A transaction outlives a statement of it that panics.
    let mut transaction = Transaction::begin(std::slice::from_ref(&table));
    put(&mut transaction, &table, 1, 5);
    panics(|| {
        let _: Result<(), Error> = transaction.atomically(|transaction| {
            put(transaction, &table, 3, 5);
            remove(transaction, &table, 0);
            std::panic::resume_unwind(Box::new("on purpose"))
        });
    });
    let mut after = before;
    after.insert(1, 5);
    assert_eq!(rows_of(&mut transaction, &table), after);
    let mut alone = Transaction::alone(std::slice::from_ref(&table));
    put(&mut alone, &table, 7, 9);
    alone.commit(|_| Ok(())).unwrap();
    after.insert(7, 9);
    transaction.commit(|_| Ok(())).unwrap();
    assert_eq!(rows_in(&table.snapshot()), after);
    table.sweep();
    assert_eq!(table.retired(), 0);
}

#[test]
fn upkeep_is_in_conflict_with_nobody() {
    let budget = std::time::Duration::from_secs(60);
    let table = table("a");
    let other = self::table("b");
    let rows: Rows = (0..200).map(|key| (key * 2, key)).collect();
    for table in [&table, &other] {
        table.commit(appended(table, &rows.clone().into_iter().collect::<Vec<_>>())).unwrap();
    }
    let change = |keys: std::ops::Range<i64>| {
        let mut alone = Transaction::alone(std::slice::from_ref(&table));
        keys.for_each(|key| put(&mut alone, &table, key, 0));
        alone.commit(|_| Ok(())).unwrap();
    };
    change(0..60);
    let keep = || {
        let done: Vec<_> = (0..3).map(|_| table.upkeep(budget)).collect();
        assert!(done.iter().any(|done| done.spread > 0), "rows were moved");
        assert!(done.iter().any(|done| done.encoded > 0), "something was done");
    };
    // Replayed, not in conflict: its rows are found wherever they are.
    let mut writing = Transaction::begin(std::slice::from_ref(&table));
    put(&mut writing, &table, 1, 1);
    put(&mut writing, &table, 1001, 1);
    remove(&mut writing, &table, 3);
    keep();
    writing.commit(|_| Ok(())).unwrap();
    let found = rows_in(&table.snapshot());
    assert_eq!((found.get(&1), found.get(&1001), found.get(&3)), (Some(&1), Some(&1), None));
    // What is relied on has not moved.
    change(100..160);
    let mut relying = Transaction::begin(&[table.clone(), other.clone()]);
    relying.depend_on(&table);
    put(&mut relying, &other, 1, 1);
    keep();
    relying.commit(|_| panic!("there is nothing to judge")).unwrap();
    // Nor has a table that it wrote to as well.
    change(400..460);
    let mut relying = Transaction::begin(std::slice::from_ref(&table));
    relying.depend_on(&table);
    put(&mut relying, &table, 1003, 1);
    keep();
    relying.commit(|_| panic!("there is nothing to judge")).unwrap();
    assert_eq!(rows_in(&table.snapshot()).get(&1003), Some(&1));
    // A table may be cleared.
    change(160..220);
    let mut clearing = Transaction::begin(std::slice::from_ref(&table));
    clearing.clear(&table);
    keep();
    clearing.commit(|_| Ok(())).unwrap();
    assert_eq!(table.rows(), 0);
}

#[test]
fn duplicates_are_found_wherever_they_stand() {
    let random = &mut Random(88_172_645_463_325_252);
    let mut found_some = 0;
    for round in 0..300 {
        let key_type = [DataType::Int64, DataType::Varchar][round % 2];
        let schema = vec![Field::new("k", key_type), Field::new("v", DataType::Int64)];
        let layout = [Layout::Equi, Layout::EquiGhost][random.below(2) as usize];
        let options = TableOptions {
            layout,
            block_slots: 8,
            group_slots: 32,
            partitions: 4,
            ..TableOptions::keyed(vec![0])
        };
        let table = Table::with_options("t", schema, options);
        let distinct = [5, 100, 20_000][random.below(3) as usize];
        let mut keys: Vec<Option<i64>> =
            (0..random.below(160)).map(|_| Some(random.number(distinct))).collect();
        (0..random.below(3)).for_each(|_| keys.push(None));
        let mut writer = table.write();
        for key in &keys {
            let text = key.map(|key| format!("a key that is long, {key:06}"));
            let datum = match (key, &text) {
                (Some(_), Some(text)) if key_type == DataType::Varchar => Datum::Bytes(text.as_bytes()),
                (Some(key), _) => Datum::Integer((*key).into()),
                _ => Datum::Null,
            };
            writer.insert(&[datum, Datum::Integer(1)]);
        }
        let mut some: Vec<i64> = keys.iter().flatten().copied().collect();
        some.sort_unstable();
        let expected = some.windows(2).any(|pair| pair[0] == pair[1]);
        let found = writer.first_duplicate(Among::Groups(0..writer.row_groups()));
        assert_eq!(found.is_some(), expected, "{keys:?}");
        if let Some(row) = found {
            let key = writer.datum(row, 0);
            let mut count = 0;
            writer.find_each(&[key], |_| {
                count += 1;
                true
            });
            assert!(count > 1);
            found_some += 1;
        }
        drop(writer);
        let snapshot = table.snapshot();
        assert_eq!((0..snapshot.row_groups().len()).find_map(|group| snapshot.first_duplicate(group)), found);
    }
    assert!((50..250).contains(&found_some));
}

#[test]
fn duplicates_among_appended_rows() {
    let table = table("t");
    let mut alone = Transaction::alone(std::slice::from_ref(&table));
    let rows: Vec<(i64, i64)> = (0..500).map(|key| (key * 2, 0)).collect();
    alone.append(&table, appended(&table, &rows)).unwrap();
    for (keys, is_twice) in [([1, 3, 5], false), ([7, 8, 9], true), ([11, 13, 11], true)] {
        let rows = appended(&table, &keys.map(|key| (key, 1)));
        let mark = alone.savepoint();
        alone.append(&table, rows.clone()).unwrap();
        assert_eq!(alone.write(&table).first_duplicate(Among::Appended(&rows)).is_some(), is_twice);
        alone.roll_back_to(mark);
        assert_eq!(alone.snapshot(&table).rows(), 500);
    }
}

#[test]
fn a_transaction_may_go_from_thread_to_thread() {
    fn is_send<T: Send>() {}
    is_send::<Transaction>();
}

#[test]
fn a_conflict_names_the_table_and_the_key() {
    let table = table("accounts");
    let mut first = Transaction::begin(std::slice::from_ref(&table));
    let mut second = Transaction::begin(std::slice::from_ref(&table));
    put(&mut first, &table, 5, 1);
    put(&mut second, &table, 5, 2);
    first.commit(|_| Ok(())).unwrap();
    let error = second.commit(|_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("table accounts with k = 5"), "{error}");
}

#[test]
fn rows_without_a_key_are_told_by_number_and_values() {
    let table = Table::with_options(
        "log",
        schema(),
        TableOptions {
            layout: Layout::Insertion,
            block_slots: 8,
            group_slots: 32,
            ..TableOptions::default()
        },
    );
    let mut setup = Transaction::begin(&[]);
    (0..20).for_each(|key| {
        setup.write(&table).insert(&[Datum::Integer(key), Datum::Integer(0), Datum::Null]);
    });
    setup.commit(|_| Ok(())).unwrap();
    let change = |transaction: &mut Transaction, slot: u32, value: i128| {
        let row = crate::RowId { group: 0, slot };
        transaction.write(&table).update(row, &[(1, Datum::Integer(value))]);
    };
    let [mut a, mut b, mut c] = [0; 3].map(|_| Transaction::begin(std::slice::from_ref(&table)));
    change(&mut a, 3, 1);
    change(&mut b, 4, 2);
    let rows: Vec<(i64, i64)> = (100..111).map(|key| (key, 0)).collect();
    b.append(&table, appended(&table, &rows)).unwrap();
    let writer = b.write(&table);
    let row = writer.find_slowly(|row, _| writer.datum(row, 0).is_same(Datum::Integer(100))).unwrap();
    drop(writer);
    b.write(&table).update(row, &[(1, Datum::Integer(8))]);
    let added = b.write(&table).insert(&[Datum::Integer(99), Datum::Null, Datum::Null]);
    b.write(&table).update(added, &[(1, Datum::Integer(7))]);
    a.write(&table).insert(&[Datum::Integer(98), Datum::Null, Datum::Null]);
    change(&mut c, 3, 3);
    a.commit(|_| Ok(())).unwrap();
    b.commit(|_| Ok(())).unwrap();
    assert_eq!(c.commit(|_| Ok(())).unwrap_err().kind(), ErrorKind::Conflict);
    let snapshot = table.snapshot();
    snapshot.check();
    let value = |slot| snapshot.datum(crate::RowId { group: 0, slot }, 1);
    assert!(value(3).is_same(Datum::Integer(1)) && value(4).is_same(Datum::Integer(2)));
    assert!(value(20).is_null());
    let writer = table.write();
    let find =
        |key: i128| writer.find_slowly(|row, _| writer.datum(row, 0).is_same(Datum::Integer(key))).unwrap();
    let (changed, last) = (find(100), find(110));
    assert!(
        writer.datum(changed, 1).is_same(Datum::Integer(8))
            && writer.datum(last, 1).is_same(Datum::Integer(0))
    );
    assert_eq!(snapshot.rows(), 33);
}

/// Going back to many savepoints costs as much for each as for few: work is counted.
#[test]
fn a_table_is_saved_once_for_each_savepoint() {
    let saved = |savepoints: i64, is_written_before: bool| {
        let table = table("t");
        let mut own = Transaction::begin(std::slice::from_ref(&table));
        let before = crate::transaction::SAVED.with(std::cell::Cell::get);
        for number in 0..savepoints {
            if is_written_before {
                put(&mut own, &table, number, 1);
            }
            let mark = own.savepoint();
            for key in 0..3 {
                put(&mut own, &table, -1 - key, 2 * key + 1);
                own.roll_back_to(mark);
            }
        }
        let rows = own.snapshot(&table).rows();
        assert_eq!(rows, if is_written_before { savepoints as u64 } else { 0 });
        crate::transaction::SAVED.with(std::cell::Cell::get) - before
    };
    for is_written_before in [false, true] {
        let (few, many) = (saved(50, is_written_before), saved(100, is_written_before));
        assert!(many <= 2 * few, "{few} for 50 savepoints, {many} for 100");
    }
}
