//! Compares keyed statements with the same statements run with a plan: the same rows, errors and indexes.

mod beside;
mod inserts;
mod paths;
mod several;
mod transactions;

use crate::{Config, Connection, DataType, Database, Value};

/// Numbers that look random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

const TABLES: [&str; 5] = [
    "CREATE TABLE t (k BIGINT PRIMARY KEY, u INTEGER UNIQUE, a VARCHAR NOT NULL, b INTEGER, UNIQUE (a, b))",
    "CREATE TABLE t (k BIGINT, u INTEGER UNIQUE, a VARCHAR NOT NULL, b INTEGER, UNIQUE (a, b))",
    "CREATE TABLE t (k BIGINT, u INTEGER, a VARCHAR NOT NULL, b INTEGER)",
    "CREATE TABLE t (k BIGINT, u INTEGER, a VARCHAR NOT NULL, b INTEGER, PRIMARY KEY (k, a))",
    "CREATE TABLE t (k BIGINT PRIMARY KEY, u TINYINT, a VARCHAR NOT NULL, b INTEGER)",
];

fn value(random: &mut Random, column: usize) -> (Value, DataType) {
    let number = random.below(12) as i128;
    match column {
        _ if random.below(8) == 0 => (Value::Null, DataType::Null),
        2 => (Value::Text(format!("text {}", number % 4).into()), DataType::Varchar),
        _ => (Value::Integer(number), DataType::Int64),
    }
}

/// The number of rows that a statement has changed, the rows that it returns, and the names of their columns.
type Outcome = (Option<u64>, Vec<Vec<Value>>, Vec<String>);

fn run(connection: &Connection, sql: &str, values: &[(Value, DataType)]) -> Result<Outcome, String> {
    let rows = connection.query(sql, values).map_err(|error| error.message().to_owned())?;
    let names = rows.schema().iter().map(|field| field.name.to_string()).collect();
    // In no order: without a key, a statement may find several rows.
    let mut values: Vec<Vec<Value>> = rows.row_values().collect();
    values.sort_by_key(|row| format!("{row:?}"));
    Ok((rows.changed(), values, names))
}

fn rows(connection: &Connection, sql: &str) -> Vec<Vec<String>> {
    let rows = connection.execute(sql).expect("it reads");
    rows.row_values().map(|row| row.iter().map(|value| format!("{value:?}")).collect()).collect()
}

/// Looks up the rows of each index by its columns, and compares them with a scan.
fn assert_indexes(connection: &Connection) {
    assert_eq!(rows(connection, "PRAGMA integrity_check").len(), 1, "nothing but ok");
}

#[test]
fn keyed_statements_do_what_long_ones_do() {
    for (number, table) in TABLES.iter().enumerate() {
        for index in ["", "CREATE INDEX i ON t (b)", "CREATE UNIQUE INDEX i ON t (b, k)"] {
            let databases = [(); 2].map(|()| Database::in_memory(Config::default()).expect("in memory"));
            let [keyed, long] = databases.each_ref().map(Database::connect);
            for connection in [&keyed, &long] {
                connection.execute(table).expect("a table");
                connection.execute(index).expect("an index");
            }
            let mut random = Random(77 + number as u64);
            for step in 0..400 {
                if step % 50 == 10 {
                    for connection in [&keyed, &long] {
                        connection.execute("BEGIN").expect("it begins");
                    }
                }
                let mut of =
                    |columns: &[usize]| columns.iter().map(|&c| value(&mut random, c)).collect::<Vec<_>>();
                let [all, one_u, all_but_key, key] =
                    [&of(&[0, 1, 2, 3])[..], &of(&[1, 0]), &of(&[1, 2, 3, 0]), &of(&[0])];
                let (short, twin, values) = match random.below(12) {
                    6 => (
                        "UPDATE t SET u = u + ?, b = b - 1 WHERE k = ? RETURNING *",
                        "UPDATE t SET u = u + ?, b = b - 1 WHERE k = ? AND TRUE RETURNING *",
                        one_u,
                    ),
                    // Until the sum is out of range.
                    7 => (
                        "UPDATE t SET b = 50 + u, u = u + 40 WHERE k = ?",
                        "UPDATE t SET b = 50 + u, u = u + 40 WHERE k = ? AND TRUE",
                        key,
                    ),
                    8 => (
                        "INSERT INTO t VALUES (?, ?, ?, ?) ON CONFLICT (k) DO UPDATE SET a = excluded.a, b = t.b + 1 RETURNING B, k",
                        "INSERT INTO t SELECT ?, ?, ?, ? WHERE TRUE ON CONFLICT (k) DO UPDATE SET a = excluded.a, b = t.b + 1 RETURNING B, k",
                        all,
                    ),
                    9 => (
                        "INSERT INTO t VALUES (?, ?, ?, ?) ON CONFLICT (k) DO NOTHING RETURNING *",
                        "INSERT INTO t SELECT ?, ?, ?, ? WHERE TRUE ON CONFLICT (k) DO NOTHING RETURNING *",
                        all,
                    ),
                    10 => (
                        "INSERT INTO t VALUES (?, ?, ?, ?) RETURNING a, k",
                        "INSERT INTO t SELECT ?, ?, ?, ? RETURNING a, k",
                        all,
                    ),
                    11 => (
                        "DELETE FROM t WHERE k = ? RETURNING a, a, u",
                        "DELETE FROM t WHERE k = ? AND TRUE RETURNING a, a, u",
                        key,
                    ),
                    0..3 => ("INSERT INTO t VALUES (?, ?, ?, ?)", "INSERT INTO t SELECT ?, ?, ?, ?", all),
                    3 => ("UPDATE t SET u = ? WHERE k = ?", "UPDATE t SET u = ? WHERE k = ? AND TRUE", one_u),
                    4 => (
                        "UPDATE t SET u = ?, a = ?, b = ? WHERE k = ?",
                        "UPDATE t SET u = ?, a = ?, b = ? WHERE k = ? AND TRUE",
                        all_but_key,
                    ),
                    _ => ("DELETE FROM t WHERE k = ?", "DELETE FROM t WHERE k = ? AND TRUE", key),
                };
                let (found, wanted) = (run(&keyed, short, values), run(&long, twin, values));
                assert_eq!(found, wanted, "{table}; {index}: {short} {values:?}");
                if step % 50 == 40 {
                    let end = if step % 100 == 40 { "COMMIT" } else { "ROLLBACK" };
                    for connection in [&keyed, &long] {
                        connection.execute(end).expect("it ends");
                    }
                }
                if step % 20 == 0 {
                    let all = "SELECT * FROM t ORDER BY ALL";
                    assert_eq!(rows(&keyed, all), rows(&long, all));
                }
            }
            assert_indexes(&keyed);
        }
    }
}
