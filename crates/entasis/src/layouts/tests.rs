//! Pages, bounds and advice of small tables: what they say, and that a sample is what it would be if its
//! statements had run and been counted.

use crate::{Config, Connection, DataType, Database, Value};

fn connection(statements: &[&str]) -> Connection {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    statements.iter().for_each(|sql| _ = connection.execute(sql).expect(sql));
    connection
}

fn lines(connection: &Connection, sql: &str) -> Vec<String> {
    let rows = connection.execute(sql).expect(sql);
    let text = |row: Vec<Value>| match &row[0] {
        Value::Text(text) => text.to_string(),
        other => panic!("{other:?} is no text"),
    };
    rows.row_values().map(text).collect()
}

/// The line that begins with a name.
fn line(lines: &[String], name: &str) -> String {
    let found = lines.iter().find(|line| line.starts_with(name));
    found
        .unwrap_or_else(|| panic!("no {name} in {lines:#?}"))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

const TABLE: &str = "CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, b VARCHAR)";
const ROWS: &str = "INSERT INTO t SELECT i * 10, i % 100, 'b' || i FROM range(20000) r(i)";

#[test]
fn a_page_says_what_a_sample_asks() {
    let connection = connection(&[TABLE, ROWS]);
    let sample = "SELECT * FROM t WHERE k = 70; SELECT b FROM t WHERE k BETWEEN 100 AND 2000;
        INSERT INTO t VALUES (71, 1, 'new'), (72, 1, 'new'); DELETE FROM t WHERE k = 80;
        UPDATE t SET k = 91 WHERE k = 90; UPDATE t SET b = 'x' WHERE k = 100; SELECT sum(a) FROM t;
        SELECT * FROM t WHERE k = ?; CREATE TABLE u (a INTEGER); SELECT 1; UPDATE t SET k = k + 1 WHERE k = 5;
        INSERT INTO t SELECT k + 1, a, b FROM t; SELECT nothing FROM t";
    let page = lines(&connection, &format!("EXPLAIN LAYOUT t FOR '{}'", sample.replace('\'', "''")));
    assert_eq!(line(&page, "table"), "table t: 20,000 rows");
    assert_eq!(line(&page, "layout "), "layout equi_ghost by (k); chosen by 'auto', by its primary key");
    assert_eq!(line(&page, "workload"), "workload a sample of 13 statements: 7 operations");
    assert!(line(&page, "point query").starts_with("point query 2 210 ns"), "{page:#?}");
    assert!(line(&page, "range").starts_with("range 1 "), "{page:#?}");
    assert!(line(&page, "insert").starts_with("insert 2 364 ns"), "{page:#?}");
    assert!(line(&page, "delete").starts_with("delete 1 168 ns"), "{page:#?}");
    assert!(line(&page, "update of the key").starts_with("update of the key 1 585 ns"), "{page:#?}");
    let all = page.join("\n");
    for why in
        ["it has parameters", "neither a query", "does not name", "new key does not", "there is no column"]
    {
        assert!(all.contains(why), "{why}: {all}");
    }
    assert!(line(&page, "optimizer").contains("no operation pays for their number"), "{all}");
    // Nothing of it was run.
    assert_eq!(
        lines(&connection, "SELECT count(*)::VARCHAR FROM t WHERE k % 10 = 0 AND b <> 'x'"),
        ["20000"]
    );
}

/// The twin of a sample: the same statements, run on a table that counts.
#[test]
fn a_sample_is_what_is_counted_when_it_runs() {
    let counting =
        "CREATE TABLE t (k INTEGER, a INTEGER, b VARCHAR) WITH (layout = 'casper', layout_key = (k))";
    let connection = connection(&[counting, ROWS]);
    let mut sample = String::new();
    for i in 0..6000 {
        let key = i * 7919 % 200_000;
        match i % 3 {
            0 => sample += &format!("SELECT a FROM t WHERE k = {key};\n"),
            1 => sample += &format!("SELECT sum(a) FROM t WHERE k >= {key} AND k < {};\n", key + 30_000),
            _ => sample += &format!("INSERT INTO t VALUES ({}, 1, 'new');\n", key / 2),
        }
    }
    let sampled = profile(&connection, &format!("'t', '{}'", sample.replace('\'', "''")));
    connection.execute(&sample).expect("the sample runs");
    let counted = profile(&connection, "'t'");
    // Partitions are others by now, and one operation in eight is counted: compare the halves of the keys.
    for half in 0..2 {
        let sum = |rows: &[(f64, f64, f64)], of: fn(&(f64, f64, f64)) -> f64| -> f64 {
            rows.iter().filter(|row| (row.0 / 100_000.0) as usize == half).map(of).sum()
        };
        let writes = (sum(&sampled, |row| row.2), sum(&counted, |row| row.2));
        assert!((writes.0 - writes.1).abs() < 100.0 + 0.2 * writes.0, "{half}: {writes:?}");
        assert_eq!(writes.0 > 1000.0, half == 0, "{half}: {writes:?}");
        // Inserts have made more partitions, and a range reads all that it meets: so compare their means.
        let mean = |rows: &[(f64, f64, f64)]| sum(rows, |row| row.1) / sum(rows, |_| 1.0);
        let reads = (mean(&sampled), mean(&counted));
        assert!((reads.0 - reads.1).abs() < 0.35 * reads.0, "{half}: {reads:?}");
    }
}

/// Least key, reads and writes of the partitions that have rows.
fn profile(connection: &Connection, arguments: &str) -> Vec<(f64, f64, f64)> {
    let sql = format!(
        "SELECT first_key::DOUBLE, reads, writes FROM entasis_layout_profile({arguments}) WHERE rows > 0"
    );
    let rows = connection.execute(&sql).expect("a profile");
    let number = |value: &Value| if let Value::Float(number) = value { *number } else { f64::NAN };
    rows.row_values().map(|row| (number(&row[0]), number(&row[1]), number(&row[2]))).collect()
}

#[test]
fn sla_bounds_are_kept_or_said_to_be_impossible() {
    let connection = connection(&[
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, b VARCHAR) \
         WITH (partitions = 8, read_sla = '20us')",
        ROWS,
    ]);
    let page = lines(&connection, "EXPLAIN LAYOUT t");
    assert!(line(&page, "read_sla").starts_with("read_sla 20 us: to be met, "), "{page:#?}");
    let rows =
        connection.execute("ALTER TABLE t SET (read_sla = '220ns', update_sla = '1.5us')").expect("an ALTER");
    assert_eq!(rows.note(), None);
    let page = lines(&connection, "EXPLAIN LAYOUT t");
    assert!(line(&page, "read_sla").starts_with("read_sla 220 ns: to be met, 210 ns"), "{page:#?}");
    assert!(line(&page, "update_sla").starts_with("update_sla 1.5 us: to be met, 364 ns"), "{page:#?}");
    let rows = connection.execute("ALTER TABLE t SET (read_sla = '10ns')").expect("an ALTER");
    assert!(rows.note().is_some_and(|note| note.contains("a point query takes 210 ns in any layout")));
    let page = lines(&connection, "EXPLAIN LAYOUT t");
    assert!(line(&page, "read_sla").contains("no layout takes less than 210 ns"), "{page:#?}");
    connection.execute("ALTER TABLE t SET (read_sla = none, update_sla = none)").expect("an ALTER");
    let page = lines(&connection, "EXPLAIN LAYOUT t");
    assert!(!page.iter().any(|line| line.contains("_sla")), "{page:#?}");
}

/// One operation in sixteen is timed, whoever is faster or slower.
#[test]
fn sla_bounds_are_judged_by_what_was_measured() {
    let connection = connection(&[
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, b VARCHAR) \
         WITH (partitions = 8, read_sla = '1s', update_sla = '1s')",
        ROWS,
    ]);
    let read_rows = || {
        for k in 0..4000 {
            let key = [(Value::Integer(k), DataType::Int32)];
            connection.query("SELECT a FROM t WHERE k = $1", &key).expect("a query");
        }
    };
    read_rows();
    let page = lines(&connection, "EXPLAIN LAYOUT t");
    let (read, update) = (line(&page, "read_sla"), line(&page, "update_sla"));
    assert!(read.starts_with("read_sla 1 s: met, ") && read.contains(" at most, measured "), "{read}");
    assert!(
        update.starts_with("update_sla 1 s: to be met, ") && update.ends_with("not measured yet"),
        "{update}"
    );
    let heading = page.iter().find(|line| line.starts_with("operation")).expect("a table of operations");
    assert!(heading.ends_with("99.9 %"), "{heading}");
    connection.execute("ALTER TABLE t SET (read_sla = '1ns')").expect("an ALTER");
    read_rows();
    let read = line(&lines(&connection, "EXPLAIN LAYOUT t"), "read_sla");
    assert!(read.starts_with("read_sla 1 ns: missed by ") && read.contains("measured"), "{read}");
}

#[test]
fn another_key_is_recommended_where_it_saves() {
    let connection = connection(&[TABLE, ROWS]);
    let reads: String = (0..40).map(|i| format!("SELECT k FROM t WHERE a = {i};")).collect();
    let advised = |sample: &str| {
        let sql = format!(
            "SELECT layout_key FROM entasis_layout_advice('t', '{}') WHERE recommended",
            sample.replace('\'', "''")
        );
        lines(&connection, &sql)
    };
    assert_eq!(advised(&reads), ["(a)"]);
    assert_eq!(advised("SELECT k FROM t WHERE k = 10"), ["(k)"]);
    assert_eq!(advised("SELECT sum(k) FROM t"), ["(k)"]);
    connection.execute("CREATE TABLE log (a INTEGER, b INTEGER)").expect("a table");
    connection.execute("INSERT INTO log SELECT i, i FROM range(5000) r(i)").expect("rows");
    let log = "SELECT layout_key FROM entasis_layout_advice('log', 'INSERT INTO log VALUES (1, 2)') \
               WHERE recommended";
    assert_eq!(lines(&connection, log), ["insertion order"]);
}

#[test]
fn a_sample_within_a_sample_is_refused() {
    let connection = connection(&[TABLE]);
    let inner = "SELECT * FROM entasis_layout_advice(''t'', ''SELECT 1'')";
    let page = lines(&connection, &format!("EXPLAIN LAYOUT t FOR '{inner}'"));
    assert!(page.iter().any(|line| line.contains("skipped: it does not name the table")), "{page:#?}");
    let sql = format!("SELECT * FROM entasis_layout_advice('t', '{inner}')");
    // It is skipped, and the call is answered.
    assert!(connection.execute(&sql).expect("advice").rows() > 0);
}
