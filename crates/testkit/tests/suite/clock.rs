//! Statements that read the clock, run again and again: they are planned once, and each run has its own time.

use entasis::{Config, Connection, Database, Value};

fn connection() -> Connection {
    Database::in_memory(Config::default()).unwrap().connect()
}

fn rows(connection: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let rows = connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.row_values().collect()
}

/// The only value of a query.
fn integer(connection: &Connection, sql: &str) -> i128 {
    match rows(connection, sql)[0][0] {
        Value::Integer(value) => value,
        ref other => panic!("{other:?}"),
    }
}

/// Waits until the clock has moved on.
fn wait() {
    let before = entasis_functions::clock();
    while entasis_functions::clock() <= before {
        std::thread::yield_now();
    }
}

#[test]
fn each_transaction_has_its_own_time() {
    let connection = connection();
    connection.execute("PREPARE p AS SELECT epoch(now()) * 1000000").unwrap();
    for sql in ["SELECT now()", "SELECT statement_timestamp()", "SELECT localtimestamp"] {
        let mut last = integer(&connection, sql);
        for _ in 0..5 {
            wait();
            let next = integer(&connection, sql);
            assert!(next > last, "{sql}");
            last = next;
        }
    }
    let one = rows(&connection, "EXECUTE p");
    wait();
    assert_ne!(rows(&connection, "EXECUTE p"), one);
}

#[test]
fn all_calls_of_a_transaction_have_one_time() {
    let connection = connection();
    for round in 0..4 {
        connection.execute("BEGIN").unwrap();
        let all = "SELECT now(), current_timestamp, transaction_timestamp(), now() = current_timestamp";
        let first = rows(&connection, all);
        assert_eq!((&first[0][0], &first[0][3]), (&first[0][1], &Value::Boolean(true)), "round {round}");
        let statement = integer(&connection, "SELECT statement_timestamp()");
        wait();
        assert_eq!(rows(&connection, all), first);
        assert!(integer(&connection, "SELECT statement_timestamp()") > statement);
        connection.execute("COMMIT").unwrap();
        wait();
        assert_ne!(rows(&connection, all), first);
    }
}

/// The slow twin is a statement that is bound for its only run.
#[test]
fn a_run_of_a_template_gives_what_a_single_run_gives() {
    let statements = [
        "SELECT now(), localtimestamp, localtime, current_date, today()",
        "SELECT k FROM t WHERE at > now() - INTERVAL '36 hours' ORDER BY k",
        "SELECT k FROM t WHERE at BETWEEN now() - INTERVAL '1 day' AND now() + INTERVAL '1 month' ORDER BY k",
        "SELECT k FROM t WHERE d = current_date OR d = current_date - 3 ORDER BY k",
        "SELECT k FROM t WHERE ts < current_date ORDER BY k",
        "SELECT k FROM t WHERE ts >= localtimestamp - INTERVAL 2 DAY ORDER BY k",
        "SELECT k FROM t WHERE at < current_date ORDER BY k",
        "SELECT k, age(ts), age(now()::TIMESTAMP, ts) FROM t ORDER BY k",
        "SELECT count(*), date_trunc('day', now()) FROM t GROUP BY date_trunc('day', now())",
        "SELECT make_timestamptz(2026, 7, 2, 3, 4, 5.0), now()::VARCHAR, extract(hour FROM now())",
        "SELECT (SELECT max(k) FROM t WHERE d < current_date), CASE WHEN now() > '2020-01-01' THEN 1 END",
    ];
    let connection = connection();
    connection.execute("CREATE TABLE t (k BIGINT, at TIMESTAMPTZ, ts TIMESTAMP, d DATE)").unwrap();
    connection
        .execute(
            "INSERT INTO t SELECT i, now() - INTERVAL 1 HOUR * i, localtimestamp - INTERVAL 1 HOUR * i, \
             current_date - (i // 24) FROM range(-50, 200) r(i)",
        )
        .unwrap();
    for zone in ["UTC", "Asia/Tokyo", "America/New_York", "UTC"] {
        connection.set("timezone", zone).unwrap();
        for sql in statements {
            connection.execute("BEGIN").unwrap();
            let once = rows(&connection, &format!("{sql} -- once in {zone}"));
            for run in 0..4 {
                assert_eq!(rows(&connection, sql), once, "run {run} of {sql} in {zone}");
            }
            connection.execute("COMMIT").unwrap();
        }
    }
}

#[test]
fn the_time_zone_of_the_run_counts() {
    let connection = connection();
    let sql = "SELECT localtimestamp - now()::TIMESTAMP, TIMESTAMPTZ '2026-01-01 00:00:00+00'::VARCHAR, \
               localtimestamp - (now() AT TIME ZONE 'UTC')";
    let mut seen = Vec::new();
    for zone in ["UTC", "Asia/Tokyo", "America/New_York"] {
        connection.set("timezone", zone).unwrap();
        let first = rows(&connection, sql);
        assert_eq!((rows(&connection, sql), rows(&connection, sql)), (first.clone(), first.clone()));
        assert!(!seen.contains(&first), "{zone}");
        seen.push(first);
    }
    connection.set("timezone", "UTC").unwrap();
    assert_eq!(rows(&connection, sql), seen[0]);
}

#[test]
fn changes_write_the_time_of_their_run() {
    let connection = connection();
    connection
        .execute("CREATE TABLE t (k BIGINT, at TIMESTAMPTZ DEFAULT now(), d DATE DEFAULT current_date)")
        .unwrap();
    for k in 0..5 {
        for sql in [
            "INSERT INTO t (k) SELECT count(*) FROM t",
            "INSERT INTO t SELECT count(*), now(), today() FROM t",
        ] {
            connection.execute(sql).unwrap();
            wait();
        }
        connection.execute("UPDATE t SET at = now() WHERE at < now() AND k = 0").unwrap();
        wait();
        assert_eq!(integer(&connection, "SELECT count(DISTINCT at) FROM t"), 2 * (k + 1));
        assert_eq!(rows(&connection, "SELECT k FROM t ORDER BY at DESC LIMIT 1"), [[Value::Integer(0)]]);
    }
}
