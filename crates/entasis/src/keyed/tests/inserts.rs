//! Inserts of one row or more, with conversions, defaults and identities, by a program and with a plan: the
//! twin of a table has a CHECK that is always true, so that the same text takes the long way there.

use super::{Outcome, Random, assert_indexes, rows, run};
use crate::{Config, Connection, DataType, Database, Value};

const COLUMNS: [&str; 8] = ["n", "p", "d", "f", "s", "i", "m", "b"];

const DECLARED: &str = "n INTEGER, p DECIMAL(10, 2) DEFAULT 1.5, d DATE DEFAULT '2024-02-29',
    f DOUBLE NOT NULL DEFAULT 3, s VARCHAR DEFAULT 'none', i SMALLINT DEFAULT -7, m TIMESTAMP,
    b BOOLEAN DEFAULT true";

/// A value as a program of the host would give it, of nearly any type.
fn value(random: &mut Random) -> (Value, DataType) {
    let number = random.below(40) as i128;
    let text = |text: String| (Value::Text(text.into()), DataType::Varchar);
    match random.below(11) {
        0 => (Value::Null, DataType::Null),
        1 => (Value::Integer(number << random.below(40)), DataType::Int64),
        2 => text(format!("{number}")),
        3 => text(format!("{number}.25")),
        4 => text(format!("2024-03-{:02}", 1 + number % 31)),
        5 => (Value::Float(number as f64 / 4.0), DataType::Float64),
        6 => (Value::Integer(number), DataType::Decimal { precision: 5, scale: 1 }),
        7 => (Value::Integer(number + 19000), DataType::Date),
        8 => (Value::Integer(number * 1_000_000_007), DataType::Timestamp),
        9 => (Value::Boolean(number % 2 == 0), DataType::Boolean),
        _ => (Value::Integer(number), DataType::Int64),
    }
}

/// A constant in the text of a statement.
fn constant(random: &mut Random) -> String {
    let number = random.below(30);
    match random.below(8) {
        0 => "NULL".into(),
        1 => "DEFAULT".into(),
        2 => format!("'{number}'"),
        3 => format!("{number}.75"),
        4 => "'2024-05-06'".into(),
        5 => "false".into(),
        6 => format!("-{number}"),
        _ => number.to_string(),
    }
}

/// Mostly one that the column takes.
fn fitting(random: &mut Random, column: usize) -> (Value, DataType) {
    let number = random.below(60) as i128;
    if random.below(5) == 0 {
        return value(random);
    }
    match column {
        2 => (Value::Text(format!("2024-03-{:02}", 1 + number % 31).into()), DataType::Varchar),
        6 => (Value::Text(format!("2024-03-{:02} 10:00:00", 1 + number % 31).into()), DataType::Varchar),
        7 => (Value::Boolean(number % 2 == 0), DataType::Boolean),
        _ => (Value::Integer(number), DataType::Int64),
    }
}

/// Two connections with a table that has these keys; that of the second one has a CHECK, too.
fn twins(keys: &str) -> [Connection; 2] {
    ["", ", CHECK (1 = 1)"].map(|check| {
        let connection = Database::in_memory(Config::default()).expect("in memory").connect();
        connection.execute(&format!("CREATE TABLE t ({DECLARED}{keys}{check})")).expect("a table");
        connection
    })
}

/// An INSERT of some rows into some columns, and its arguments.
fn insert(random: &mut Random) -> (String, Vec<(Value, DataType)>) {
    let columns: Vec<usize> = (0..COLUMNS.len()).filter(|_| random.below(3) > 0).collect();
    let columns = if columns.is_empty() { vec![0] } else { columns };
    let names: Vec<&str> = columns.iter().map(|&column| COLUMNS[column]).collect();
    let mut values = Vec::new();
    let mut row = || {
        let cells = columns.iter().map(|&column| match random.below(4) {
            0 => constant(random),
            _ => {
                values.push(fitting(random, column));
                "?".to_owned()
            }
        });
        format!("({})", cells.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = (0..1 + names.len() % 3).map(|_| row()).collect();
    let returning = ["", " RETURNING *", " RETURNING i, n"][names.len() % 3];
    (format!("INSERT INTO t ({}) VALUES {}{returning}", names.join(", "), rows.join(", ")), values)
}

#[test]
fn inserts_by_programs_and_plans_agree() {
    let mut added = 0;
    for (seed, key) in ["", ", PRIMARY KEY (n)", ", UNIQUE (n), UNIQUE (s, d)"].iter().enumerate() {
        for index in ["", "CREATE INDEX x ON t (d, p)"] {
            let [keyed, long] = twins(key);
            for connection in [&keyed, &long] {
                connection.execute(index).expect("an index");
            }
            let mut random = Random(4711 + seed as u64);
            for step in 0..400 {
                let open = (step % 40 == 5).then_some("BEGIN").or((step % 40 == 25).then_some("COMMIT"));
                if let Some(sql) = open {
                    for connection in [&keyed, &long] {
                        connection.execute(sql).expect("it begins or ends");
                    }
                }
                let (sql, values) = insert(&mut random);
                let outcome: Result<Outcome, String> = run(&keyed, &sql, &values);
                added += u64::from(outcome.is_ok());
                assert_eq!(outcome, run(&long, &sql, &values), "{key}{index}: {sql} {values:?}");
            }
            let all = "SELECT * FROM t ORDER BY ALL";
            assert_eq!(rows(&keyed, all), rows(&long, all));
            assert_indexes(&keyed);
        }
    }
    assert!(added > 100, "only {added} statements of 2400 added rows");
}

#[test]
fn assignments_by_programs_and_plans_agree() {
    let mut changed = 0;
    for index in ["", "CREATE INDEX x ON t (d, p)"] {
        let [keyed, long] = twins(", PRIMARY KEY (n)");
        for connection in [&keyed, &long] {
            connection.execute(index).expect("an index");
            connection.execute("INSERT INTO t (n) SELECT i FROM range(20) r(i)").expect("some rows");
        }
        let mut random = Random(815);
        for _ in 0..600 {
            let (mut set, mut values) = (Vec::new(), Vec::new());
            for (column, name) in COLUMNS.iter().enumerate().skip(1) {
                if random.below(3) == 0 {
                    values.push(if random.below(2) == 0 {
                        value(&mut random)
                    } else {
                        fitting(&mut random, column)
                    });
                    set.push(format!("{name} = ?"));
                } else if random.below(8) == 0 {
                    let constant = constant(&mut random);
                    // A default needs a plan here.
                    set.extend((constant != "DEFAULT").then(|| format!("{name} = {constant}")));
                }
            }
            let (set, row) = (set.join(", "), random.below(24));
            let sql = match random.below(3) {
                _ if set.is_empty() => continue,
                0 => format!(
                    "INSERT INTO t (n, f) VALUES ({row}, 1) ON CONFLICT (n) DO UPDATE SET {set} RETURNING *"
                ),
                _ => format!("UPDATE t SET {set} WHERE n = {row} RETURNING *"),
            };
            let outcome = run(&keyed, &sql, &values);
            changed += u64::from(outcome.is_ok());
            assert_eq!(outcome, run(&long, &sql, &values), "{index}: {sql} {values:?}");
        }
        let all = "SELECT * FROM t ORDER BY ALL";
        assert_eq!(rows(&keyed, all), rows(&long, all));
        assert_indexes(&keyed);
    }
    assert!(changed > 100, "only {changed} statements of 1200 changed rows");
}

#[test]
fn identities_by_programs_and_plans_agree() {
    let [keyed, long] =
        [(); 2].map(|()| Database::in_memory(Config::default()).expect("in memory").connect());
    for (connection, check) in [(&keyed, ""), (&long, ", CHECK (1 = 1)")] {
        let columns = "i SMALLINT GENERATED BY DEFAULT AS IDENTITY (START WITH 32760), a INTEGER";
        connection.execute(&format!("CREATE TABLE t ({columns}{check})")).expect("a table");
        assert!(connection.execute("SELECT currval('t_i_seq')").is_err(), "none was taken");
    }
    for sql in [
        "INSERT INTO t (a) VALUES (1)",
        "INSERT INTO t (a) VALUES (2), (3) RETURNING *",
        "INSERT INTO t VALUES (DEFAULT, 4), (7, 5), (DEFAULT, 6) RETURNING i",
        "INSERT INTO t (a, i) VALUES (7, 9)",
        "INSERT INTO t (a, i) VALUES (7, NULL)",
    ] {
        assert_eq!(run(&keyed, sql, &[]), run(&long, sql, &[]), "{sql}");
        let last = "SELECT currval('t_i_seq')";
        assert_eq!(rows(&keyed, last), rows(&long, last), "{sql}");
    }
    // The type ends at 127.
    for _ in 0..5 {
        assert_eq!(
            run(&keyed, "INSERT INTO t (a) VALUES (8)", &[]).is_ok(),
            run(&long, "INSERT INTO t (a) VALUES (8)", &[]).is_ok()
        );
    }
    let all = "SELECT * FROM t ORDER BY ALL";
    assert_eq!(rows(&keyed, all), rows(&long, all));
}
