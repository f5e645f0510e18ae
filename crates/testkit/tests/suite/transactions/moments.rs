//! One statement sees all of its tables as of one moment, however it names them.
//!
//! A writer gives six tables with one row each the same number, table by table, and then the next number. So
//! at any moment no table has a greater number than one before it.

use super::race::{Worker, race};
use super::sessions::{database, query, run};
use entasis::{Connection, DataType, Database, Value};
use std::sync::atomic::{AtomicU64, Ordering};

const ROUNDS: u64 = 500;
/// All numbers, those of the tables that are written first in front.
const NUMBERS: &str = "(SELECT v FROM t0) a, (SELECT v FROM t1) b, (SELECT v FROM t2) c, (SELECT v FROM t3) d, \
                       (SELECT v FROM t4) e, (SELECT v FROM t5) f";
/// True for numbers that did not all exist at one moment.
const IS_TORN: &str = "a < b OR b < c OR c < d OR d < e OR e < f";

/// Reads all numbers in each round, while the writer runs. `read` returns true if they were not of one
/// moment.
fn check(
    database: &Database,
    rounds: u64,
    read: impl Fn(&Connection, u64) -> entasis::Result<bool> + Send + Sync,
) {
    let updates: Vec<String> = (0..6).map(|table| format!("UPDATE t{table} SET v = ? WHERE k = 1")).collect();
    let torn = AtomicU64::new(0);
    let writer = |connection: &Connection, round: u64| {
        let number = [(Value::Integer(round.into()), DataType::Int64)];
        updates.iter().try_for_each(|sql| connection.query(sql, &number).map(drop))
    };
    let reader = |connection: &Connection, round: u64| {
        torn.fetch_add(read(connection, round)?.into(), Ordering::Relaxed);
        Ok(())
    };
    race(database, rounds, &[Worker::new("reader", reader), Worker::new("writer", writer).in_background()]);
    assert_eq!(torn.into_inner(), 0, "of {rounds} statements saw tables as they were at different moments");
}

fn tables() -> Database {
    let database = database();
    for table in 0..6 {
        let create = format!("CREATE TABLE t{table} (k BIGINT PRIMARY KEY, v BIGINT)");
        run(&database.connect(), &[&create, &format!("INSERT INTO t{table} VALUES (1, 0)")]);
    }
    database
}

/// True if the numbers of a row are ascending somewhere.
fn is_torn(row: &[Value]) -> bool {
    let number = |value: &Value| match value {
        Value::Integer(number) => *number,
        other => panic!("{other:?} is no number"),
    };
    row.windows(2).any(|pair| number(&pair[0]) < number(&pair[1]))
}

/// Runs a query of all numbers, with another text in each round, so that it is bound again.
fn check_query(database: &Database, sql: &str) {
    check(database, ROUNDS, |connection, round| {
        let rows = connection.execute(&format!("{sql} -- {round}"))?;
        let row = rows.row_values().next().expect("a row");
        Ok(is_torn(&row))
    });
}

#[test]
fn subqueries_see_one_moment() {
    check_query(&tables(), &format!("SELECT {NUMBERS}"));
}

#[test]
fn a_join_sees_one_moment() {
    check_query(
        &tables(),
        "SELECT t0.v, t1.v, t2.v, t3.v, t4.v, t5.v FROM t0 JOIN t1 ON t0.k = t1.k JOIN t2 ON t0.k = t2.k \
         JOIN t3 ON t0.k = t3.k JOIN t4 ON t0.k = t4.k JOIN t5 ON t0.k = t5.k",
    );
}

#[test]
fn views_see_one_moment() {
    let database = tables();
    run(
        &database.connect(),
        &[
            "CREATE VIEW early AS SELECT t0.k, t0.v AS a, t1.v AS b, t2.v AS c FROM t0, t1, t2",
            "CREATE VIEW late AS SELECT t3.k, t3.v AS d, t4.v AS e, t5.v AS f FROM t3, t4, t5",
        ],
    );
    check_query(&database, "SELECT a, b, c, d, e, f FROM early JOIN late USING (k)");
}

#[test]
fn common_table_expressions_see_one_moment() {
    check_query(
        &tables(),
        "WITH early AS (SELECT t0.v AS a, t1.v AS b FROM t0, t1), middle AS (SELECT t2.v AS c, t3.v AS d FROM t2, t3), \
         late AS (SELECT t4.v AS e, t5.v AS f FROM t4, t5) SELECT * FROM early, middle, late",
    );
}

#[test]
fn an_insert_of_a_query_sees_one_moment() {
    let database = tables();
    let connection = database.connect();
    run(&connection, &["CREATE TABLE seen (a BIGINT, b BIGINT, c BIGINT, d BIGINT, e BIGINT, f BIGINT)"]);
    check(&database, ROUNDS, |connection, round| {
        connection.execute(&format!("INSERT INTO seen SELECT {NUMBERS} -- {round}"))?;
        Ok(false)
    });
    assert_eq!(query(&connection, "SELECT count(*) FROM seen"), ROUNDS.to_string());
    assert_eq!(query(&connection, &format!("SELECT count(*) FROM seen WHERE {IS_TORN}")), "0");
}

#[test]
fn a_table_made_of_a_query_sees_one_moment() {
    check(&tables(), ROUNDS, |connection, _| {
        connection.execute(&format!("CREATE OR REPLACE TABLE seen AS SELECT {NUMBERS}"))?;
        Ok(query(connection, &format!("SELECT count(*) FROM seen WHERE {IS_TORN}")) != "0")
    });
}

#[test]
fn an_update_from_tables_sees_one_moment() {
    let database = tables();
    run(
        &database.connect(),
        &[
            "CREATE TABLE seen (a BIGINT, b BIGINT, c BIGINT, d BIGINT, e BIGINT, f BIGINT)",
            "INSERT INTO seen VALUES (0, 0, 0, 0, 0, 0)",
        ],
    );
    check(&database, ROUNDS, |connection, round| {
        connection.execute(&format!(
            "UPDATE seen SET a = t0.v, b = t1.v, c = t2.v, d = t3.v, e = t4.v, f = t5.v \
             FROM t0, t1, t2, t3, t4, t5 -- {round}"
        ))?;
        Ok(query(connection, &format!("SELECT count(*) FROM seen WHERE {IS_TORN}")) != "0")
    });
}

#[test]
fn a_remembered_query_sees_one_moment() {
    // Nothing is bound, so there is less time between the first table and the last.
    check(&tables(), 10 * ROUNDS, |connection, round| {
        let parameters = [(Value::Integer(round.into()), DataType::Int64)];
        let rows = connection.query(&format!("SELECT {NUMBERS}, ?"), &parameters)?;
        let row = rows.row_values().next().expect("a row");
        Ok(is_torn(&row[..6]))
    });
}

#[test]
fn arrow_batches_hold_one_moment() {
    let database = tables();
    check(&database, ROUNDS, |connection, round| {
        let rows =
            connection.execute(&format!("SELECT {IS_TORN} AS torn FROM (SELECT {NUMBERS}) -- {round}"))?;
        let batches = rows.record_batches()?;
        let torn = batches[0].column(0);
        Ok(format!("{torn:?}").contains("true"))
    });
}
