//! Lists and ranges of keys by a program and with a plan: `AND TRUE` is enough for the long way.

use super::{Random, run};
use crate::{Config, Connection, DataType, Database, Value};

const TABLES: [&str; 5] = [
    "CREATE TABLE t (k BIGINT PRIMARY KEY, a INTEGER)",
    "CREATE TABLE t (a INTEGER, k INTEGER UNIQUE)",
    "CREATE TABLE t (k VARCHAR PRIMARY KEY, a INTEGER)",
    "CREATE TABLE t (k DECIMAL(30, 2) PRIMARY KEY, a INTEGER)",
    "CREATE TABLE t (k UTINYINT PRIMARY KEY, a INTEGER)",
];

fn key(random: &mut Random, table: &str) -> (Value, DataType) {
    let number = random.below(240) as i128;
    match table {
        _ if random.below(25) == 0 => (Value::Null, DataType::Null),
        text if text.contains("VARCHAR") => (
            Value::Text(format!("{}key {number}", ["", "longer than twelve "][number as usize % 2]).into()),
            DataType::Varchar,
        ),
        decimal if decimal.contains("DECIMAL") => {
            (Value::Integer(number * 50), DataType::Decimal { precision: 30, scale: 2 })
        }
        _ => (Value::Integer(number), DataType::Int64),
    }
}

/// A condition, and its arguments.
fn condition(random: &mut Random, table: &str) -> (String, Vec<(Value, DataType)>) {
    let mut values = |count| (0..count).map(|_| key(random, table)).collect::<Vec<_>>();
    let two = values(2);
    let many = values(5);
    match random.below(8) {
        0 => ("k IN (?, ?, ?, ?, ?)".into(), many),
        1 => ("k = ?".into(), two[..1].to_vec()),
        2 => ("k > ?".into(), two[..1].to_vec()),
        3 => ("? >= k".into(), two[..1].to_vec()),
        4 => ("k BETWEEN ? AND ?".into(), two),
        5 => ("(k >= ? AND k < ?)".into(), two),
        6 => ("k < ? AND ? < k".into(), two),
        _ => ("k <= ?".into(), two[..1].to_vec()),
    }
}

fn compare(connection: &Connection, table: &str, random: &mut Random) {
    let (condition, values) = condition(random, table);
    let order = ["", " ORDER BY k", " ORDER BY K ASC", " ORDER BY k DESC"][random.below(4) as usize];
    // Without an order, a limit may keep any rows.
    let limit = match order {
        "" => "",
        _ => ["", " LIMIT 3", " LIMIT 0", " LIMIT 1", " LIMIT 300"][random.below(5) as usize],
    };
    let columns = ["*", "a", "a, K, a"][random.below(3) as usize];
    let short = format!("SELECT {columns} FROM t WHERE {condition}{order}{limit}");
    let long = format!("SELECT {columns} FROM t WHERE {condition} AND TRUE{order}{limit}");
    let in_order = |sql: &str| {
        let rows = connection.query(sql, &values).expect("it reads");
        rows.row_values().map(|row| format!("{row:?}")).collect::<Vec<_>>()
    };
    if order.is_empty() {
        assert_eq!(
            run(connection, &short, &values),
            run(connection, &long, &values),
            "{table}: {short} {values:?}"
        );
    } else {
        assert_eq!(in_order(&short), in_order(&long), "{table}: {short} {values:?}");
    }
}

#[test]
fn lists_and_ranges_by_programs_and_plans_agree() {
    for (number, table) in TABLES.into_iter().enumerate() {
        let connection = Database::in_memory(Config::default()).expect("in memory").connect();
        connection.execute(table).expect("a table");
        let mut random = Random(99 + number as u64);
        for step in 0..400 {
            // Few rows at first, and then many in no order, of which some are gone again.
            let (key, number) = (key(&mut random, table), random.below(1000));
            let value = (Value::Integer(number.into()), DataType::Int64);
            let _ = connection.query("INSERT INTO t (k, a) VALUES (?, ?)", &[key.clone(), value]);
            if step % 7 == 0 {
                connection.query("DELETE FROM t WHERE k = ?", &[key]).expect("it deletes");
            }
            match step % 100 {
                20 => drop(connection.execute("BEGIN").expect("it begins")),
                40 => drop(connection.execute("ROLLBACK").expect("it ends")),
                60 => drop(connection.execute("BEGIN").expect("it begins")),
                80 => drop(connection.execute("COMMIT").expect("it ends")),
                _ => {}
            }
            compare(&connection, table, &mut random);
            for order in ["ORDER BY k LIMIT 4", "ORDER BY k DESC LIMIT 4"] {
                let short = format!("SELECT k FROM t {order}");
                let long = format!("SELECT k FROM t WHERE TRUE {order}");
                assert_eq!(run(&connection, &short, &[]), run(&connection, &long, &[]), "{table}: {short}");
            }
        }
    }
}
