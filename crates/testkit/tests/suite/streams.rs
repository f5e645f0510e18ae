//! Results that are read while the query runs: rows, order, errors, memory, and what becomes of the
//! connection.

use entasis::{Config, Connection, DataType, Database, ErrorKind, Stream, Value};
use entasis_vector::Chunk;
use entasis_vector::error::sqlstate;

fn connection() -> Connection {
    Database::in_memory(Config::default()).unwrap().connect()
}

fn run(connection: &Connection, statements: &[&str]) {
    for sql in statements {
        connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

fn rows(stream: &mut Stream) -> Vec<Vec<Value>> {
    let schema = stream.schema().clone();
    let mut rows = Vec::new();
    for chunk in stream {
        let chunk = chunk.unwrap();
        assert!(!chunk.is_empty());
        let row = |row| schema.iter().enumerate().map(|(at, field)| chunk.value(row, at, field.ty)).collect();
        rows.extend((0..chunk.len()).map(row));
    }
    rows
}

/// The integers of the first column of a chunk.
fn integers(chunk: &Chunk) -> Vec<i128> {
    let value = |row| match chunk.value(row, 0, DataType::Int64) {
        Value::Integer(value) => value,
        other => panic!("{other:?}"),
    };
    (0..chunk.len()).map(value).collect()
}

const QUERIES: [&str; 14] = [
    "SELECT 1 AS x, 'one' AS y",
    "SELECT * FROM t",
    "SELECT * FROM t WHERE k % 1000 = 7",
    "SELECT * FROM t WHERE false",
    "SELECT text, count(*), sum(k) FROM t GROUP BY text ORDER BY text",
    "SELECT * FROM t ORDER BY k DESC",
    "SELECT * FROM t ORDER BY k LIMIT 10 OFFSET 5",
    "SELECT k FROM t UNION ALL SELECT -k FROM t",
    "SELECT a.k, b.text FROM t a JOIN t b ON a.k = b.k WHERE b.k < 5000 ORDER BY a.k",
    "SELECT k, row_number() OVER (ORDER BY k) FROM t ORDER BY 1",
    "VALUES (1, NULL), (2, 'two')",
    "SELECT [k, k + 1], {'a': text} FROM t ORDER BY k LIMIT 3000",
    "SELECT nextval('s'), 1 FROM range(10)",
    "EXPLAIN SELECT 1",
];

/// The slow twin is the result as a whole.
#[test]
fn a_stream_gives_the_rows_of_the_query_in_the_same_order() {
    for settings in [
        &["SET threads = 1"][..],
        &["SET threads = 4"],
        &["SET threads = 4", "SET result_buffer = '1KB'"],
        &["SET threads = 4", "SET result_buffer = '300KB'", "SET temp_directory = ''"],
    ] {
        let connection = connection();
        run(&connection, settings);
        run(
            &connection,
            &[
                "CREATE SEQUENCE s",
                "CREATE TABLE t (k BIGINT, text VARCHAR, x DOUBLE, d DATE)",
                "INSERT INTO t SELECT i, CASE WHEN i % 5 <> 0 THEN 'text number ' || i % 100 END, i / 8.0, \
                 DATE '2020-01-01' + i FROM range(300000) r(i)",
            ],
        );
        for sql in QUERIES {
            let whole = connection.execute(sql).unwrap();
            run(&connection, &["DROP SEQUENCE s", "CREATE SEQUENCE s"]);
            let mut stream = connection.stream(sql, &[]).unwrap();
            assert_eq!(stream.schema(), whole.schema(), "{sql}");
            let streamed = rows(&mut stream);
            assert!(stream.has_run());
            assert!(streamed == whole.row_values().collect::<Vec<_>>(), "{sql} with {settings:?}");
            assert!(stream.next_chunk().unwrap().is_none());
        }
    }
}

#[test]
fn the_first_rows_arrive_long_before_the_last_and_a_dropped_stream_ends() {
    let connection = connection();
    let sql = "SELECT i FROM range(1000000000000) r(i)";
    for _ in 0..3 {
        let mut stream = connection.stream(sql, &[]).unwrap();
        let mut next = 0;
        for _ in 0..20 {
            for value in integers(&stream.next_chunk().unwrap().unwrap()) {
                assert_eq!(value, next);
                next += 1;
            }
        }
        assert!(!stream.has_run());
        drop(stream);
        run(&connection, &["SELECT 1"]);
    }
}

#[test]
fn many_rows_wait_for_a_slow_reader_in_little_memory() {
    let connection = connection();
    let count: i128 = 50_000_000;
    run(&connection, &["SET memory_limit = '64MB'", "SET result_buffer = '8MB'"]);
    let sql = format!("SELECT i FROM range({count}) r(i)");
    let mut stream = connection.stream(&sql, &[]).unwrap();
    let first = stream.next_chunk().unwrap().unwrap();
    // The next statement waits until the query has run, and not until its rows have been read.
    run(&connection, &["SELECT 1"]);
    assert!(stream.has_run());
    assert!(connection.context().memory.used() < 12 << 20);
    let mut next = 0;
    for chunk in std::iter::once(Ok(first)).chain(stream) {
        for value in integers(&chunk.unwrap()) {
            assert_eq!(value, next);
            next += 1;
        }
    }
    assert_eq!(next, count);
    assert_eq!(connection.context().memory.used(), 0);
    assert_eq!(connection.context().temp.used(), 0);
}

#[test]
fn without_temporary_files_memory_is_the_limit() {
    let connection = connection();
    run(&connection, &["SET memory_limit = '32MB'", "SET temp_directory = ''"]);
    let mut stream = connection.stream("SELECT i FROM range(50000000) r(i)", &[]).unwrap();
    let error = loop {
        match stream.next_chunk() {
            // Nothing is read while it runs.
            Ok(Some(_)) if !stream.has_run() => connection.execute("SELECT 1").map(drop).unwrap(),
            Ok(Some(_)) => {}
            Ok(None) => panic!("all rows fitted"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Resource, "{error}");
}

#[test]
fn an_error_comes_after_the_rows_before_it() {
    for threads in [1, 4] {
        let connection = connection();
        run(&connection, &[&format!("SET threads = {threads}")]);
        let sql = "SELECT i + 0 * (1 / (i - 4000000)) FROM range(8000000) r(i)";
        let mut stream = connection.stream(sql, &[]).unwrap();
        let mut next = 0;
        let error = loop {
            match stream.next_chunk() {
                Ok(Some(chunk)) => {
                    for value in integers(&chunk) {
                        assert_eq!(value, next);
                        next += 1;
                    }
                }
                Ok(None) => panic!("a division by zero is an error"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.sqlstate(), sqlstate::DIVISION_BY_ZERO);
        assert!(next <= 4_000_000);
        // All chunks before the one in which it happened.
        assert!(threads > 1 || next > 4_000_000 - 2048, "{next}");
        assert!(stream.next_chunk().unwrap().is_none());
        run(&connection, &["SELECT 1"]);
    }
}

#[test]
fn errors_of_binding_come_at_once() {
    let connection = connection();
    assert_eq!(connection.stream("SELECT * FROM nowhere", &[]).unwrap_err().sqlstate(), sqlstate::NO_TABLE);
    assert_eq!(connection.stream("SELECT ?", &[]).unwrap_err().sqlstate(), sqlstate::PARAMETERS);
    run(&connection, &["SELECT 1"]);
}

#[test]
fn the_flag_of_the_connection_cancels_its_stream() {
    let connection = connection();
    let mut stream = connection.stream("SELECT i FROM range(1000000000000) r(i)", &[]).unwrap();
    stream.next_chunk().unwrap().unwrap();
    connection.cancel_flag().raise();
    let error = stream.find_map(Result::err).expect("it was cancelled");
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    run(&connection, &["SELECT 1"]);
}

#[test]
fn streams_of_several_connections_are_read_in_turns() {
    let database = Database::in_memory(Config::default()).unwrap();
    let connections = [database.connect(), database.connect()];
    run(&connections[0], &["CREATE TABLE t AS SELECT i FROM range(500000) r(i)"]);
    let mut streams = connections.each_ref().map(|one| one.stream("SELECT i FROM t", &[]).unwrap());
    let mut nexts = [0, 0];
    // Writers beside them change nothing of what they read.
    run(&database.connect(), &["UPDATE t SET i = -1", "DELETE FROM t WHERE i < 0"]);
    while nexts[0] < 500_000 || nexts[1] < 500_000 {
        for (stream, next) in streams.iter_mut().zip(&mut nexts) {
            let Some(chunk) = stream.next_chunk().unwrap() else { continue };
            for value in integers(&chunk) {
                assert_eq!(value, *next);
                *next += 1;
            }
        }
    }
}

#[test]
fn a_stream_within_a_transaction_sees_it_as_it_was() {
    let connection = connection();
    run(
        &connection,
        &["CREATE TABLE t AS SELECT i FROM range(100000) r(i)", "BEGIN", "INSERT INTO t VALUES (-1)"],
    );
    let mut stream = connection
        .stream("SELECT i FROM t WHERE i = ? OR i < 3", &[(Value::Integer(99_999), DataType::Int64)])
        .unwrap();
    run(&connection, &["DELETE FROM t", "INSERT INTO t VALUES (1)"]);
    let mut seen = rows(&mut stream);
    seen.sort_by_key(|row| format!("{row:?}"));
    assert_eq!(seen.len(), 5);
    run(&connection, &["ROLLBACK"]);
    assert_eq!(
        rows(&mut connection.stream("SELECT count(*) FROM t", &[]).unwrap()),
        [[Value::Integer(100_000)]]
    );
}

#[test]
fn changes_run_first_and_their_rows_are_read() {
    let connection = connection();
    run(&connection, &["CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)"]);
    let mut stream =
        connection.stream("INSERT INTO t SELECT i, 0 FROM range(5000) r(i) RETURNING k", &[]).unwrap();
    assert_eq!(stream.changed(), Some(5000));
    assert_eq!(rows(&mut stream).len(), 5000);
    let mut stream = connection.stream("UPDATE t SET v = 1 WHERE k < 10 RETURNING v", &[]).unwrap();
    assert_eq!(rows(&mut stream), vec![vec![Value::Integer(1)]; 10]);
    let mut stream = connection.stream("DELETE FROM t WHERE k = 3", &[]).unwrap();
    assert_eq!((stream.changed(), stream.schema().len()), (Some(1), 0));
    assert!(stream.next_chunk().unwrap().is_none());
    // By key, and several statements.
    let mut stream = connection.stream("SELECT v FROM t WHERE k = 5", &[]).unwrap();
    assert_eq!(rows(&mut stream), [[Value::Integer(1)]]);
    let mut stream = connection.stream("SELECT 1; SELECT 2", &[]).unwrap();
    assert_eq!(rows(&mut stream), [[Value::Integer(2)]]);
}

#[test]
fn a_stream_outlives_its_connection() {
    let connection = connection();
    run(&connection, &["CREATE TABLE t AS SELECT i FROM range(200000) r(i)"]);
    let mut stream = connection.stream("SELECT i FROM t", &[]).unwrap();
    drop(connection);
    assert_eq!(rows(&mut stream).len(), 200_000);
}
