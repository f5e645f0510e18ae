//! Joins and set operations that do not fit into memory, as whole statements: several that share it, one that
//! is cancelled. Each returns the right rows or reports that memory is short, and leaves neither memory nor
//! files behind.

use entasis::{Config, Connection, Database, ErrorKind, Value};
use std::sync::atomic::{AtomicUsize, Ordering};

fn database(memory_limit: usize) -> Database {
    Database::in_memory(Config::new().with_threads(2).with_memory_limit(memory_limit)).expect("a database")
}

/// Bytes in use in memory, and in temporary files.
fn in_use(connection: &Connection) -> (usize, u64) {
    let context = connection.context();
    (context.memory.used(), context.temp.used())
}

/// A join of two inputs with this many rows and keys, none of it from a table.
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
        let row = |sql: &String| {
            connection.execute(sql).expect("there is memory").row_values().next().expect("a row")
        };
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
    let pairs = join(20_000, 3);
    let series = |first: u64| format!("SELECT i FROM generate_series({first}, 200000000) g(i)");
    let difference = format!("SELECT count(*) FROM ({} EXCEPT ALL {}) q", series(1), series(2));
    for long in [&pairs, &difference, &pairs, &difference] {
        let (cancel, temp) = (connection.cancel_flag(), connection.context().temp);
        std::thread::scope(|scope| {
            let statement = scope.spawn(|| connection.execute(long));
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

/// Rows of several types, with NULLs: `copies` of each number from `first` to before `end`.
fn numbered(first: u64, end: u64, copies: u64) -> String {
    let count = end - first;
    format!(
        "SELECT k, CAST(k AS SMALLINT) AS n, CAST(k AS DECIMAL(30, 2)) AS d, CAST(k AS DOUBLE) / 4 AS f,
                CASE WHEN k % 3 > 0 THEN k % 2 = 0 END AS b, CASE WHEN k % 5 > 0 THEN 'a longer text, number ' || k END AS s
         FROM (SELECT i % {count} + {first} AS k FROM generate_series(0, {last}) g(i)) numbers",
        last = count * copies - 1
    )
}

/// How many copies of a row the operation returns if it occurs this often on the left and on the right.
type Copies = fn(u64, u64) -> u64;

#[test]
fn set_operations_larger_than_memory() {
    // Three copies of each number from 0 on at the left, two of each from the middle on at the right.
    let numbers = 20_000;
    let (left, right) = (numbered(0, numbers, 3), numbered(numbers / 2, numbers * 3 / 2, 2));
    let operations: [(&str, Copies); 5] = [
        ("UNION", |left, right| left.max(right).min(1)),
        ("INTERSECT", |left, right| left.min(right).min(1)),
        ("INTERSECT ALL", u64::min),
        ("EXCEPT", |left, right| u64::from(left > 0 && right == 0)),
        ("EXCEPT ALL", u64::saturating_sub),
    ];
    let unlimited = database(usize::MAX).connect();
    let limited = database(2 << 20).connect();
    for (name, copies) in operations {
        let mut expected = [0i128; 4];
        for k in 0..numbers * 3 / 2 {
            let left = if k < numbers { 3 } else { 0 };
            let right = if k >= numbers / 2 { 2 } else { 0 };
            let count = i128::from(copies(left, right));
            let of = |counts: bool| if counts { count } else { 0 };
            let own = [count, count * i128::from(k), of(k % 5 > 0), of(k % 3 > 0)];
            expected.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        let sql = format!("SELECT count(*), sum(k), count(s), count(b) FROM ({left} {name} {right}) q");
        for connection in [&unlimited, &limited] {
            let rows = connection.execute(&sql).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let found = rows.row_values().next().expect("a row");
            assert_eq!(found, expected.map(Value::Integer), "{name}");
        }
        let rows = limited.execute(&format!("EXPLAIN (ANALYZE, VERBOSE) {sql}")).expect("it ran before");
        let profile = rows.row_values().map(|row| format!("{row:?}\n")).collect::<String>();
        assert!(profile.contains("temporary files"), "{name}: {profile}");
        assert_eq!(in_use(&limited), (0, 0), "{name}");
    }
}
