//! Joins that do not fit into memory, as whole statements: several that share it, one that is cancelled. Each gives the right rows or says that memory is short, and leaves neither memory nor files behind.

use entasis::{Config, Connection, Database, ErrorKind, Value};
use std::sync::atomic::{AtomicUsize, Ordering};

fn database(memory_limit: usize) -> Database {
    Database::in_memory(Config { threads: 2, memory_limit, ..Config::default() }).expect("a database")
}

/// Bytes of memory, and of temporary files.
fn in_use(connection: &Connection) -> (usize, u64) {
    let context = connection.context();
    (context.memory.used(), context.temp.used())
}

/// Two inputs of so many rows with this many keys, and their join. Nothing of it is in a table.
fn join(rows: u64, keys: u64) -> String {
    let input = |factor: u64| {
        format!(
            "(SELECT i * {factor} % {keys} AS k, i AS n, 'a longer text, number ' || i AS s FROM generate_series(1, {rows}) g(i))"
        )
    };
    format!("SELECT count(*), sum(a.n), max(b.s) FROM {} a JOIN {} b ON a.k = b.k", input(7), input(11))
}

#[test]
fn statements_share_little_memory() {
    // As many rows as keys: each has one partner.
    let statements = [join(4001, 4001), join(9001, 9001), join(20_011, 20_011)];
    let expected: Vec<Vec<Value>> = {
        let connection = database(usize::MAX).connect();
        let row = |sql: &String| connection.execute(sql).expect("there is memory").row_values().next().expect("a row");
        statements.iter().map(row).collect()
    };
    assert_eq!(expected[2][..2], [Value::Integer(20_011), Value::Integer(20_011 * 20_012 / 2)]);
    let mut all_answered = Vec::new();
    for memory_limit in [300 << 10, 1 << 20, 3 << 20] {
        let database = database(memory_limit);
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for first in 0..4 {
                let connection = database.connect();
                let (statements, expected, answered) = (&statements, &expected, &answered);
                scope.spawn(move || {
                    for round in 0..6 {
                        let at = (first + round) % statements.len();
                        match connection.execute(&statements[at]) {
                            Ok(rows) => {
                                assert_eq!(rows.row_values().next().as_ref(), Some(&expected[at]));
                                answered.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Resource, "{error:?}"),
                        }
                    }
                });
            }
        });
        assert_eq!(in_use(&database.connect()), (0, 0));
        all_answered.push(answered.into_inner());
    }
    assert!(all_answered[2] >= 12, "{all_answered:?} of 24 statements were answered");
}

#[test]
fn a_cancelled_statement_leaves_nothing_and_the_next_one_runs() {
    let database = database(500 << 10);
    let (connection, other) = (database.connect(), database.connect());
    // Three keys: more than a hundred million pairs.
    let long = join(20_000, 3);
    for _ in 0..3 {
        let (cancel, temp) = (connection.cancel_flag(), connection.context().temp);
        std::thread::scope(|scope| {
            let statement = scope.spawn(|| connection.execute(&long));
            while temp.used() == 0 && !statement.is_finished() {
                std::thread::yield_now();
            }
            cancel.raise();
            let error = statement.join().expect("no panic").expect_err("it was cancelled");
            assert_eq!(error.kind(), ErrorKind::Interrupted, "{error:?}");
        });
        assert_eq!(in_use(&other), (0, 0));
        let rows = connection.execute(&join(4001, 4001)).expect("the next statement runs");
        assert_eq!(rows.row_values().next().expect("a row")[0], Value::Integer(4001));
    }
}
