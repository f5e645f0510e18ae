//! Faults in the middle of statements that change rows: memory runs out, something panics. The tables are
//! unchanged, and the transaction and the database go on.

use entasis::{Config, Connection, Database, ErrorKind, Rows, Value};
use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::{Chunk, DataType, Field, Result, Schema, Selection, Vector};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ROWS: i128 = 20_000;

fn database() -> Connection {
    let connection = Database::in_memory(Config::new().with_threads(2)).expect("a database").connect();
    for sql in [
        "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, s VARCHAR UNIQUE)",
        "CREATE TABLE u (k BIGINT, v BIGINT)",
        "CREATE TABLE refers (k BIGINT PRIMARY KEY REFERENCES t)",
        "INSERT INTO t SELECT i, i, 's' || i FROM generate_series(1, 20000) g(i)",
        "INSERT INTO u SELECT k, v FROM t",
        "INSERT INTO refers VALUES (1), (2)",
    ] {
        connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    connection
}

fn numbers(rows: &Rows) -> Vec<Value> {
    rows.row_values().next().expect("a row")
}

fn check_unchanged(connection: &Connection, after: &str) {
    let sum = ROWS * (ROWS + 1) / 2;
    for (sql, expected) in [
        ("SELECT count(*), sum(k), sum(v), count(DISTINCT s) FROM t", vec![ROWS, sum, sum, ROWS]),
        ("SELECT count(*), sum(k), sum(v) FROM u", vec![ROWS, sum, sum]),
        ("SELECT k FROM t WHERE s = 's777'", vec![777]),
        ("SELECT count(*) FROM refers", vec![2]),
    ] {
        let found = connection.execute(sql).unwrap_or_else(|error| panic!("{sql} after {after}: {error:?}"));
        let expected: Vec<Value> = expected.into_iter().map(Value::Integer).collect();
        assert_eq!(numbers(&found), expected, "{sql} after {after}");
    }
}

/// Runs statements that must fail, by themselves and in a transaction that goes on.
fn all_fail(connection: &Connection, statements: &[&str], kind: ErrorKind) {
    for sql in statements {
        let error = connection.execute(sql).expect_err(sql);
        assert_eq!(error.kind(), kind, "{sql}: {error:?}");
        check_unchanged(connection, sql);
        connection.execute("BEGIN").expect("a transaction");
        connection.execute("DELETE FROM t WHERE k = 3; DELETE FROM u WHERE k = 3").expect("two rows");
        let error = connection.execute(sql).expect_err(sql);
        assert_eq!(error.kind(), kind, "{sql} in a transaction: {error:?}");
        let left = connection.execute("SELECT count(*) FROM t WHERE k < 5").expect("the transaction goes on");
        assert_eq!(numbers(&left), [Value::Integer(3)], "{sql}");
        connection.execute("ROLLBACK").expect("the transaction ends");
        check_unchanged(connection, sql);
    }
}

#[test]
fn memory_runs_out() {
    let connection = database();
    connection.execute("SET memory_limit = '24MB'").expect("a limit");
    all_fail(
        &connection,
        &[
            "INSERT INTO t SELECT i + 20000, i, 'some longer text ' || i FROM generate_series(1, 2000000) g(i)",
            "INSERT INTO u SELECT i, i * 7919 % 1000003 * (i % 1009) FROM generate_series(1, 8000000) g(i)",
            "UPDATE t SET s = repeat(s, 2000) WHERE k > 0",
            "UPDATE u SET v = v + x.i FROM generate_series(1, 100) x(i), generate_series(1, 100) y(i) WHERE k > y.i",
            "MERGE INTO t USING generate_series(1, 3000000) g(i) ON t.k = g.i WHEN MATCHED THEN UPDATE SET v = 0 \
             WHEN NOT MATCHED THEN INSERT VALUES (g.i, 1, 'another text ' || g.i)",
            "CREATE TABLE w AS SELECT i, 'some text ' || i AS s FROM generate_series(1, 3000000) g(i)",
            "ALTER TABLE u ALTER v TYPE VARCHAR USING repeat('wide ' || v, 500)",
        ],
        ErrorKind::Resource,
    );
    connection.execute("SET memory_limit = '2GB'").expect("a limit");
    connection
        .execute("INSERT INTO t SELECT i + 20000, i, 's' || (i + 20000) FROM generate_series(1, 100000) g(i)")
        .expect("fits");
}

/// A relation of numbers whose scan panics at one of them.
#[derive(Debug)]
struct Trap {
    schema: Schema,
}

struct TrapSource(Arc<AtomicU64>);

impl Relation for Trap {
    fn name(&self) -> &str {
        "trap"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
    fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(TrapSource(Arc::default())))
    }
}

impl Source for TrapSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(TrapSource(self.0.clone())))
    }
}

impl SourceWorker for TrapSource {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(number < 5000, "the trap snaps");
        chunk.reset(1);
        let group = chunk.push_group(Selection::ALL);
        let value = Value::Integer(number as i128 + 1);
        chunk.push_column(Vector::from_values(DataType::Int64.physical(), &[value])?, group);
        Ok(true)
    }
    fn morsel(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_statement_panics() {
    let connection = database();
    connection.register("trap", Arc::new(Trap { schema: vec![Field::new("i", DataType::Int64)] }));
    all_fail(
        &connection,
        &[
            "INSERT INTO t SELECT i + 20000, i, 'new ' || i FROM trap",
            "INSERT INTO u SELECT i, i FROM trap",
            "UPDATE t SET v = -i FROM trap WHERE k = i",
            "UPDATE t SET k = -k FROM trap WHERE k = i",
            "DELETE FROM u USING trap WHERE k = i",
            "MERGE INTO t USING trap ON t.k = trap.i WHEN MATCHED THEN DELETE",
            "CREATE TABLE w AS SELECT i FROM trap",
        ],
        ErrorKind::Internal,
    );
    connection.execute("UPDATE t SET v = v + 1").expect("the table can be changed");
}
