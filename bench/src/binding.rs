//! Measures the front end: small statements and queries of TPC-H, and long statements of two lengths, parsed,
//! bound and optimized, in microseconds.
//!
//! The tables have hardly any rows: the measured times do not depend on them.

use entasis::{Config, Connection, Database, tpch};
use std::error::Error;
use std::time::Instant;

/// Number of measurements of each long statement; the median is reported.
const LONG_ROUNDS: usize = 7;

/// Prints, for each statement whose name has `only` in it, the median microseconds of parsing it, of parsing
/// and binding it, and of everything up to the optimized plan, as a line of JSON.
pub fn run(only: &str, rounds: usize) -> Result<(), Box<dyn Error>> {
    let database = Database::in_memory(Config::new().with_threads(1))?;
    let connection = database.connect();
    tpch::load(&connection, 0.001, &mut |_, _| ())?;
    let statements = [
        ("constant", "SELECT 1"),
        ("point", "SELECT o_totalprice, o_orderdate FROM orders WHERE o_orderkey = 7"),
        ("Q1", tpch_query("q01")),
        ("Q5", tpch_query("q05")),
        ("Q21", tpch_query("q21")),
    ];
    for (name, sql) in statements.into_iter().filter(|(name, _)| name.contains(only)) {
        measure(&connection, name, sql, rounds)?;
    }
    for (name, length, of) in LONG.iter().filter(|(name, ..)| name.contains(only)) {
        for length in [*length, length * 2] {
            measure(&connection, &format!("{name} {length}"), &of(length), LONG_ROUNDS)?;
        }
    }
    Ok(())
}

/// A name, a length, and the text of a statement of a length.
type Long = (&'static str, usize, fn(usize) -> String);

/// Statements of a length: each takes twice the time at twice the length.
const LONG: &[Long] = &[
    ("columns", 2_500, |n| format!("SELECT {} FROM orders", list(n, ", ", |i| format!("o_custkey + {i}")))),
    ("additions", 1_000, |n| format!("SELECT {} FROM orders", list(n, " + ", |_| "o_custkey".to_owned()))),
    ("constants of IN", 15_000, |n| {
        format!("SELECT 1 FROM orders WHERE o_custkey IN ({})", list(n, ", ", |i| (i * 2).to_string()))
    }),
    ("disjuncts", 5_000, |n| {
        format!("SELECT 1 FROM orders WHERE {}", list(n, " OR ", |i| format!("o_custkey % 7 = {i}")))
    }),
    ("inputs of UNION ALL", 5_000, |n| list(n, " UNION ALL ", |i| format!("SELECT {i}"))),
    ("rows of VALUES", 150_000, |n| format!("VALUES {}", list(n, ", ", |i| format!("({i}, 'row {i}')")))),
];

fn list(count: usize, separator: &str, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<String>>().join(separator)
}

fn measure(connection: &Connection, name: &str, sql: &str, rounds: usize) -> entasis::Result<()> {
    let parsed = median(connection, rounds, |connection| connection.split(sql).map(drop))?;
    let bound = median(connection, rounds, |connection| connection.plan(sql).map(drop))?;
    let optimized = median(connection, rounds, |connection| connection.optimized(sql).map(drop))?;
    println!(
        r#"{{"query": "{name}", "parse": {parsed:.1}, "bind": {bound:.1}, "optimize": {optimized:.1}}}"#
    );
    Ok(())
}

/// The text of a query of TPC-H.
fn tpch_query(name: &str) -> &'static str {
    tpch::QUERIES.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map_or("", |(_, sql)| sql)
}

fn median(
    connection: &Connection,
    rounds: usize,
    work: impl Fn(&Connection) -> entasis::Result<()>,
) -> entasis::Result<f64> {
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        work(connection)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[rounds / 2])
}
