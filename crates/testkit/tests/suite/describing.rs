//! Statements that are described: the types of parameters in every place, and the columns of the result,
//! compared with what running the statement gives.

use entasis::{Config, Connection, DataType, Database, ErrorKind, Schema, Value};
use entasis_vector::error::sqlstate;

/// Types, and a value of each as it is written.
const TYPES: [(&str, &str); 17] = [
    ("BOOLEAN", "true"),
    ("TINYINT", "3"),
    ("SMALLINT", "300"),
    ("INTEGER", "70000"),
    ("BIGINT", "5000000000"),
    ("UTINYINT", "200"),
    ("UBIGINT", "18446744073709551615"),
    ("DECIMAL(12,2)", "12.34"),
    ("REAL", "1.5"),
    ("DOUBLE", "2.5"),
    ("VARCHAR", "'text'"),
    ("BLOB", "'ab'"),
    ("DATE", "'2026-01-02'"),
    ("TIME", "'01:02:03'"),
    ("TIMESTAMP", "'2026-01-02 03:04:05'"),
    ("TIMESTAMPTZ", "'2026-01-02 03:04:05+00'"),
    ("UUID", "'00000000-0000-0000-0000-000000000001'"),
];

/// Places of a parameter beside the column `a` of the table `t`, which is to give it the column's type.
const PLACES: [&str; 24] = [
    "SELECT a FROM t WHERE a = ?",
    "SELECT a FROM t WHERE ? = a",
    "SELECT a FROM t WHERE a <> ? AND true",
    "SELECT a FROM t WHERE a < ?",
    "SELECT a FROM t WHERE a BETWEEN ? AND a",
    "SELECT a FROM t WHERE a IN (?)",
    "SELECT a FROM t WHERE NOT a IN (a, ?)",
    "SELECT a FROM t WHERE a IS DISTINCT FROM ?",
    "SELECT a FROM t WHERE ? IN (SELECT a FROM t)",
    "SELECT a FROM t WHERE (a, 1) = (?, 1)",
    "SELECT coalesce(a, ?) x FROM t",
    "SELECT CASE WHEN true THEN a ELSE ? END x FROM t",
    "SELECT CASE a WHEN ? THEN 1 END x FROM t",
    "SELECT nullif(a, ?) x FROM t",
    "SELECT greatest(a, ?) x FROM t",
    "SELECT [a, ?] x FROM t",
    "SELECT a FROM t UNION ALL SELECT ?",
    "SELECT t.a FROM t JOIN t u ON u.a = ?",
    "SELECT count(*) FROM t GROUP BY a HAVING a = ?",
    "INSERT INTO t VALUES (?) RETURNING a",
    "INSERT INTO t SELECT ?",
    "UPDATE t SET a = ? RETURNING a, a IS NULL AS b",
    "DELETE FROM t WHERE a = ? RETURNING a",
    "MERGE INTO t USING (SELECT 1 AS k) s ON a = ? WHEN MATCHED THEN DELETE",
];

fn connection() -> Connection {
    Database::in_memory(Config::default()).unwrap().connect()
}

/// The type and value of an expression.
fn value(connection: &Connection, sql: &str) -> (Value, DataType) {
    let rows = connection.execute(&format!("SELECT {sql}")).unwrap();
    (rows.row_values().next().unwrap().remove(0), rows.schema()[0].ty)
}

/// Names and types. Whether a column may be NULL is said of values that are known.
fn columns(schema: &Schema) -> Vec<(String, DataType)> {
    schema.iter().map(|field| (field.name.to_string(), field.ty)).collect()
}

#[test]
fn a_parameter_has_the_type_of_the_column_beside_it_and_the_result_is_that_of_running_it() {
    for (ty, written) in TYPES {
        let connection = connection();
        connection.execute(&format!("CREATE TABLE t (a {ty})")).unwrap();
        connection.execute(&format!("INSERT INTO t VALUES ({written})")).unwrap();
        let value = value(&connection, &format!("CAST({written} AS {ty})"));
        for sql in PLACES {
            let described = connection.describe(sql, &[]).unwrap_or_else(|e| panic!("{ty}, {sql}: {e}"));
            assert_eq!(described.parameters, [value.1], "{ty}, {sql}");
            let rows = connection.query(sql, std::slice::from_ref(&value));
            let rows = rows.unwrap_or_else(|e| panic!("{ty}, {sql}: {e}"));
            assert_eq!(columns(&described.columns), columns(rows.schema()), "{ty}, {sql}");
        }
    }
}

#[test]
fn what_a_place_asks_for() {
    let connection = connection();
    connection.execute("CREATE TABLE t (i INTEGER, b BIGINT, d DATE, s VARCHAR, ts TIMESTAMP)").unwrap();
    connection.execute("CREATE TABLE k (i INTEGER PRIMARY KEY, s VARCHAR DEFAULT 'x')").unwrap();
    let (int, big, double) = (DataType::Int32, DataType::Int64, DataType::Float64);
    let (text, date, bool) = (DataType::Varchar, DataType::Date, DataType::Boolean);
    let cases: Vec<(&str, Vec<DataType>)> = vec![
        ("SELECT ?", vec![text]),
        ("SELECT ? AS x, ? || 'a'", vec![text, text]),
        ("SELECT ?::INTEGER", vec![int]),
        ("SELECT CAST(? AS DATE) + 1", vec![date]),
        ("SELECT TRY_CAST(? AS DATE)", vec![text]),
        ("SELECT i + ?, d - ?, ts + ? FROM t", vec![int, date, DataType::Interval]),
        ("SELECT -?", vec![double]),
        ("SELECT sqrt(?), length(?), abs(?)", vec![double, text, double]),
        ("SELECT * FROM t LIMIT ? OFFSET ?", vec![big, big]),
        ("SELECT * FROM t WHERE ?", vec![bool]),
        ("SELECT * FROM t WHERE i = ? AND d > ? AND s LIKE ?", vec![int, date, text]),
        // One parameter in several places.
        ("SELECT * FROM t WHERE i = $1 OR b = $1", vec![big]),
        ("SELECT * FROM t WHERE d = $1 OR ts = $1", vec![DataType::Timestamp]),
        ("SELECT $1 FROM t WHERE i = $1", vec![int]),
        ("SELECT * FROM t WHERE b = $2 AND i = $1", vec![int, big]),
        ("SELECT * FROM t WHERE d = $day AND s = $name", vec![date, text]),
        // A number that is not used.
        ("SELECT $2::INTEGER", vec![text, int]),
        ("SELECT (SELECT max(b) FROM t WHERE i = ?)", vec![int]),
        ("WITH w AS (SELECT d FROM t WHERE i = ?) SELECT * FROM w WHERE d = ?", vec![int, date]),
        ("VALUES (?, 1), (2, ?)", vec![int, int]),
        ("INSERT INTO t VALUES (?, ?, ?, ?, ?)", vec![int, big, date, text, DataType::Timestamp]),
        ("INSERT INTO t (d, i) VALUES (?, ?), (?, ?)", vec![date, int, date, int]),
        ("INSERT INTO t (i, s) SELECT ?, s FROM t WHERE d = ?", vec![int, date]),
        ("INSERT INTO k (i) VALUES (?) RETURNING *", vec![int]),
        ("INSERT INTO k VALUES (?, ?) ON CONFLICT (i) DO UPDATE SET s = ?", vec![int, text, text]),
        ("INSERT INTO k VALUES (?, ?) ON CONFLICT (i) DO UPDATE SET i = k.i + ?", vec![int, text, int]),
        ("UPDATE t SET i = ?, d = ? WHERE s = ?", vec![int, date, text]),
        ("UPDATE t SET (i, d) = (?, ?)", vec![int, date]),
        (
            "MERGE INTO k USING t ON k.i = t.i WHEN MATCHED AND t.d = ? THEN UPDATE SET i = ? \
             WHEN NOT MATCHED THEN INSERT VALUES (?, ?)",
            vec![date, int, int, text],
        ),
        ("CREATE TABLE made AS SELECT i FROM t WHERE d = ?", vec![date]),
        ("EXPLAIN SELECT i FROM t WHERE d = ?", vec![date]),
        ("SUMMARIZE SELECT i FROM t WHERE d = ?", vec![date]),
        ("COPY (SELECT i FROM t WHERE d = ?) TO 'nowhere.csv'", vec![date]),
    ];
    for (sql, types) in cases {
        let described = connection.describe(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(described.parameters, types, "{sql}");
        let nulls: Vec<(Value, DataType)> = types.iter().map(|ty| (Value::Null, *ty)).collect();
        if sql.starts_with("SELECT") || sql.starts_with("WITH") {
            let rows = connection.query(sql, &nulls).unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(columns(&described.columns), columns(rows.schema()), "{sql}");
        }
    }
    // Nothing has run.
    assert_eq!(connection.tables(), ["k", "t"]);
    assert_eq!(
        value(&connection, "(SELECT count(*) FROM t) + (SELECT count(*) FROM k)").0,
        Value::Integer(0)
    );
    assert!(!std::path::Path::new("nowhere.csv").exists());
}

#[test]
fn hints_come_first() {
    let connection = connection();
    connection.execute("CREATE TABLE t (i INTEGER, d DATE)").unwrap();
    let types = |sql: &str, hints: &[Option<DataType>]| connection.describe(sql, hints).unwrap().parameters;
    let (int, big, text) = (DataType::Int32, DataType::Int64, DataType::Varchar);
    assert_eq!(types("SELECT * FROM t WHERE i = ? AND d = ?", &[Some(big)]), [big, DataType::Date]);
    assert_eq!(types("SELECT * FROM t WHERE i = ? AND d = ?", &[None, Some(text)]), [int, text]);
    let described =
        connection.describe("SELECT ? AS x, i + $1 AS y FROM t".replace('?', "$1").as_str(), &[Some(big)]);
    assert_eq!(columns(&described.unwrap().columns), [("x".to_owned(), big), ("y".to_owned(), big)]);
    let error = connection.describe("SELECT ?", &[None, None]).unwrap_err();
    assert_eq!(error.sqlstate(), sqlstate::PARAMETERS);
}

#[test]
fn errors_say_what_and_where() {
    let connection = connection();
    connection.execute("CREATE TABLE t (i INTEGER, d DATE)").unwrap();
    for (sql, state, position) in [
        ("SELECT * FROM t WHERE i = $1 OR d = $1", sqlstate::AMBIGUOUS_PARAMETER, None),
        ("SELECT nothing FROM t WHERE i = ?", sqlstate::NO_COLUMN, Some((1, 8))),
        ("SELECT * FROM nowhere WHERE i = ?", sqlstate::NO_TABLE, Some((1, 15))),
        ("SELECT ? + ?", sqlstate::NO_FUNCTION, Some((1, 8))),
        ("SELECT * FROM", sqlstate::SYNTAX, None),
    ] {
        let error = connection.describe(sql, &[]).unwrap_err();
        assert_eq!(error.sqlstate(), state, "{sql}: {error}");
        if let Some((line, column)) = position {
            let place = error.position().unwrap_or_else(|| panic!("{sql}: {error}"));
            assert_eq!((place.line, place.column), (line, column), "{sql}: {error}");
        }
    }
    let error = connection.describe("SELECT * FROM range(?)", &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    assert!(connection.describe("SELECT 1; SELECT 2", &[]).is_err());
    assert!(connection.describe("", &[]).is_err());
}

#[test]
fn statements_without_rows_of_a_query_are_described_as_they_run() {
    let connection = connection();
    connection.execute("CREATE TABLE t (i INTEGER PRIMARY KEY)").unwrap();
    connection.execute("PREPARE p AS SELECT i, $1 AS x FROM t WHERE i = $2").unwrap();
    connection.execute("PREPARE q (BIGINT) AS SELECT $1 AS x").unwrap();
    for sql in [
        "SHOW TABLES",
        "SHOW ALL TABLES",
        "SHOW DATABASES",
        "SHOW threads",
        "SHOW ALL",
        "SUMMARIZE t",
        "DESCRIBE t",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN (FORMAT json) SELECT 1",
        "EXPLAIN LAYOUT t",
        "PRAGMA integrity_check",
        "CHECKPOINT",
        "VACUUM",
        "SET threads = 1",
        "RESET threads",
        "BEGIN",
        "SAVEPOINT s",
        "COMMIT",
        "CREATE TABLE u AS SELECT 1 AS x",
        "CREATE VIEW v AS SELECT 1 AS x",
        "EXECUTE p (1, 2)",
        "EXECUTE q ('7')",
        "DEALLOCATE p",
        "PREPARE p AS SELECT 2",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET i = 2",
        "DELETE FROM t RETURNING i",
    ] {
        let described = connection.describe(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let rows = connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(columns(&described.columns), columns(rows.schema()), "{sql}");
    }
    let described = connection.describe("EXECUTE q (?)", &[]).unwrap();
    // EXECUTE converts what it is given.
    assert_eq!(described.parameters, [DataType::Varchar]);
    assert_eq!(columns(&described.columns), [("x".to_owned(), DataType::Int64)]);
}

#[test]
fn a_transaction_sees_its_own_tables_and_goes_on() {
    let connection = connection();
    connection.execute("BEGIN").unwrap();
    connection.execute("CREATE TABLE t (i SMALLINT)").unwrap();
    let described = connection.describe("INSERT INTO t VALUES (?) RETURNING i", &[]).unwrap();
    assert_eq!(described.parameters, [DataType::Int16]);
    assert!(connection.describe("INSERT INTO u VALUES (?)", &[]).is_err());
    assert!(connection.in_transaction());
    connection.execute("ROLLBACK").unwrap();
    assert!(connection.describe("INSERT INTO t VALUES (?)", &[]).is_err());
}
