//! Several databases: random statements over three of them, whose tables have the same name, compared with a
//! model that knows to which table each name refers and to which database a transaction writes.
//!
//! The model is slow and obvious: a transaction has a copy of all rows, and so has each savepoint.

use entasis::{Argument, Arguments, Config, Connection, DataType, Database, Value};
use entasis_testkit::random::Random;
use std::collections::BTreeMap;

/// The databases; the first is the connection's own.
const DATABASES: [&str; 3] = ["memory", "b", "c"];
/// Keys of rows.
const KEYS: usize = 8;
/// The most savepoints at a time.
const SAVEPOINTS: usize = 3;

/// Rows of the table of each database.
type Rows = [BTreeMap<i64, i64>; 3];

/// The expected state.
#[derive(Default)]
struct Model {
    /// The committed rows.
    committed: Rows,
    /// The database to which unqualified names refer.
    current: usize,
    open: Option<Open>,
}

/// An open transaction.
#[derive(Clone, Default)]
struct Open {
    rows: Rows,
    writes_to: Option<usize>,
    savepoints: Vec<(Rows, Option<usize>)>,
}

impl Model {
    fn rows(&self) -> &Rows {
        self.open.as_ref().map_or(&self.committed, |open| &open.rows)
    }

    /// One of the ways to write the name of a database's table.
    fn name(&self, database: usize, random: &mut Random) -> String {
        let called = DATABASES[database];
        let ways = if database == self.current { 4 } else { 2 };
        match random.below(ways) {
            0 => format!("{called}.t"),
            1 => format!("{called}.main.t"),
            2 => "main.t".to_owned(),
            _ => "t".to_owned(),
        }
    }
}

fn numbers(connection: &Connection, sql: &str) -> Vec<Option<i64>> {
    let rows = connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let number = |value: &Value| match value {
        Value::Integer(number) => i64::try_from(*number).ok(),
        _ => None,
    };
    rows.row_values().map(|row| number(&row[0])).collect()
}

#[test]
fn each_name_leads_to_its_database_and_a_transaction_writes_to_one() {
    for seed in 0..20 {
        run(seed);
    }
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let connection = Database::in_memory(Config::default()).unwrap().connect();
    let mut model = Model::default();
    let mut log: Vec<String> = Vec::new();
    for database in &DATABASES[1..] {
        connection.execute(&format!("ATTACH ':memory:' AS {database}")).unwrap();
    }
    for database in DATABASES {
        connection.execute(&format!("CREATE TABLE {database}.t (k BIGINT PRIMARY KEY, v BIGINT)")).unwrap();
    }
    for _ in 0..150 {
        let sql = step(&connection, &mut model, &mut random, &mut log);
        log.push(sql);
    }
    // All rows, as a new transaction sees them.
    let _ = connection.execute("ROLLBACK");
    for (database, rows) in DATABASES.iter().zip(&model.committed) {
        let sql = format!("SELECT v FROM {database}.main.t ORDER BY k");
        let expected: Vec<Option<i64>> = rows.values().copied().map(Some).collect();
        assert_eq!(numbers(&connection, &sql), expected, "{sql}, seed {seed}\n{}", log.join("\n"));
    }
}

/// Runs a random statement in the database and in the model. Returns its text.
fn step(connection: &Connection, model: &mut Model, random: &mut Random, log: &mut [String]) -> String {
    let database = random.below(3);
    let run = |sql: &str| connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}\n{log:?}"));
    match random.below(12) {
        0 => {
            let sql = format!("USE {}", DATABASES[database]);
            run(&sql);
            model.current = database;
            sql
        }
        1 => match model.open.take() {
            None => {
                run("BEGIN");
                model.open = Some(Open { rows: model.committed.clone(), ..Open::default() });
                "BEGIN".to_owned()
            }
            Some(open) if random.chance(60) => {
                run("COMMIT");
                model.committed = open.rows;
                "COMMIT".to_owned()
            }
            Some(_) => {
                run("ROLLBACK");
                "ROLLBACK".to_owned()
            }
        },
        2 => match &mut model.open {
            Some(open) if open.savepoints.len() < SAVEPOINTS && random.chance(60) => {
                let sql = format!("SAVEPOINT s{}", open.savepoints.len());
                run(&sql);
                open.savepoints.push((open.rows.clone(), open.writes_to));
                sql
            }
            Some(open) if !open.savepoints.is_empty() => {
                let at = random.below(open.savepoints.len());
                let sql = format!("ROLLBACK TO s{at}");
                run(&sql);
                open.savepoints.truncate(at + 1);
                (open.rows, open.writes_to) = open.savepoints[at].clone();
                sql
            }
            _ => String::new(),
        },
        3 | 4 => {
            let (name, key) = (model.name(database, random), random.below(KEYS) as i64);
            let sql = format!("SELECT v FROM {name} WHERE k = {key}");
            let expected: Vec<Option<i64>> =
                model.rows()[database].get(&key).map(|v| Some(*v)).into_iter().collect();
            assert_eq!(numbers(connection, &sql), expected, "{sql}\n{}", log.join("\n"));
            sql
        }
        5 => {
            let other = random.below(3);
            let (name, of) = (model.name(database, random), model.name(other, random));
            let sql = format!("SELECT sum(x.v * y.v) FROM {name} x JOIN {of} y USING (k)");
            let (one, two) = (&model.rows()[database], &model.rows()[other]);
            let products = one.iter().filter_map(|(k, v)| two.get(k).map(|w| v.wrapping_mul(*w)));
            let products: Vec<i64> = products.collect();
            let expected = (!products.is_empty()).then(|| products.iter().sum());
            assert_eq!(numbers(connection, &sql), [expected], "{sql}\n{}", log.join("\n"));
            sql
        }
        _ => change(connection, model, random, database, log),
    }
}

/// Runs a random statement that changes rows of a database, also in the model. Returns its text.
fn change(
    connection: &Connection,
    model: &mut Model,
    random: &mut Random,
    database: usize,
    log: &[String],
) -> String {
    let (name, other) = (model.name(database, random), random.below(3));
    let of = model.name(other, random);
    let (key, value) = (random.below(KEYS) as i64, random.between(-9, 9));
    let before = model.rows()[database].clone();
    let source = model.rows()[other].clone();
    let mut after = before.clone();
    let mut is_taken = false;
    let sql = match random.below(6) {
        0 | 1 => {
            is_taken = after.insert(key, value).is_some();
            format!("INSERT INTO {name} VALUES ({key}, {value})")
        }
        2 => {
            after.entry(key).and_modify(|v| *v = value);
            format!("UPDATE {name} SET v = {value} WHERE k = {key}")
        }
        3 => {
            after.remove(&key);
            format!("DELETE FROM {name} WHERE k = {key}")
        }
        4 => {
            after.values_mut().for_each(|v| *v = (*v + source.len() as i64) % 1000);
            format!("UPDATE {name} SET v = (v + (SELECT count(*) FROM {of})) % 1000")
        }
        _ => {
            is_taken = source.keys().any(|k| before.contains_key(&(k + 1)));
            after.extend(source.iter().map(|(k, v)| (k + 1, *v)));
            format!("INSERT INTO {name} SELECT k + 1, v FROM {of}")
        }
    };
    // Sometimes as a batch, which runs differently.
    let result = match random.chance(20) {
        true => connection.execute_many(&sql, &[Arguments::Values(Vec::new())]).map(Some),
        false => connection.execute(&sql).map(|rows| rows.changed()),
    };
    let context = || format!("{sql}\n{}", log.join("\n"));
    let writes_to = model.open.as_ref().and_then(|open| open.writes_to);
    match result {
        Err(error) if writes_to.is_some_and(|to| to != database) => {
            assert!(
                error.message().contains("this transaction writes to database"),
                "{error}: {}",
                context()
            );
        }
        Err(error) => {
            assert!(is_taken, "{error}: {}", context());
            assert!(error.message().contains("duplicate key"), "{error}: {}", context());
        }
        Ok(changed) => {
            assert!(writes_to.is_none_or(|to| to == database) && !is_taken, "no error: {}", context());
            match &mut model.open {
                None => model.committed[database] = after,
                // The model does not decide whether a change of no rows counts as one.
                Some(_) if writes_to.is_none() && changed == Some(0) => {
                    connection.execute("ROLLBACK").unwrap();
                    model.open = None;
                }
                Some(open) => {
                    open.rows[database] = after;
                    open.writes_to = Some(database);
                }
            }
        }
    }
    sql
}

/// Lists of arguments, prepared statements, and rows in a file of their own.
#[test]
fn other_ways_to_run_statements_know_the_databases() {
    let directory = std::env::temp_dir().join(format!("entasis-attached-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("other.db");
    {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute(&format!("ATTACH '{}' AS b", path.display())).unwrap();
        connection.execute("CREATE TABLE b.t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
        connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
        let int = |value: i128| (Value::Integer(value), DataType::Int64);
        let sets: Vec<Arguments> =
            (0..5).map(|key| Arguments::Values(vec![int(key), int(key * 10)])).collect();
        assert_eq!(connection.execute_many("INSERT INTO b.t VALUES (?, ?)", &sets).unwrap(), 5);
        // All or nothing.
        assert!(connection.execute_many("INSERT INTO b.t VALUES (? + 4, ?)", &sets).is_err());
        connection.execute("PREPARE p AS UPDATE b.t SET v = ? WHERE k = ?").unwrap();
        connection.execute("EXECUTE p(7, 1)").unwrap();
        let list = Arguments::from(vec![Argument::List(vec![int(1), int(2)])]);
        let rows = connection.query_with("SELECT sum(v) FROM b.t WHERE k IN ?", &list).unwrap();
        assert_eq!(rows.row_values().next().unwrap()[0], Value::Integer(27));
        // By key without a plan, in whichever database is current.
        let by_key = "SELECT v FROM t WHERE k = ?";
        let value = |connection: &Connection| {
            let rows = connection.query_at_once(by_key, &[int(2)]).unwrap().expect("it is keyed");
            rows.row_values().next().map(|row| row[0].clone())
        };
        assert_eq!(value(&connection), None);
        connection.execute("USE b").unwrap();
        assert_eq!(value(&connection), Some(Value::Integer(20)));
        assert_eq!(connection.tables(), ["t"]);
        connection.execute("BEGIN").unwrap();
        connection.execute("INSERT INTO t VALUES (100, 0)").unwrap();
        assert_eq!(connection.execute_many("INSERT INTO b.t VALUES (? + 10, ?)", &sets).unwrap(), 5);
        assert!(connection.execute_many("INSERT INTO memory.t VALUES (?, ?)", &sets).is_err());
        connection.execute("COMMIT").unwrap();
        connection.execute("USE memory").unwrap();
        assert_eq!(value(&connection), None);
        assert!(connection.tables().contains(&"t".to_owned()));
    }
    let connection = Database::open(&path, Config::default()).unwrap().connect();
    let counted = numbers(&connection, "SELECT count(*) FROM other.t");
    assert_eq!(counted, [Some(11)]);
    drop(connection);
    std::fs::remove_dir_all(&directory).unwrap();
}
