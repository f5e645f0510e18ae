//! Measures the front end: five queries of TPC-H, parsed, bound and optimized, in microseconds.
//!
//! The tables have hardly any rows: the measured times do not depend on them.

use entasis::{Config, Connection, Database, tpch};
use std::error::Error;
use std::time::Instant;

/// Number of measurements of each; the median is reported.
const ROUNDS: usize = 301;

/// Prints, for each query, the median microseconds of parsing it, of parsing and binding it, and of
/// everything up to the optimized plan, as a line of JSON.
pub fn run() -> Result<(), Box<dyn Error>> {
    let database = Database::in_memory(Config { threads: 1, ..Config::default() })?;
    let connection = database.connect();
    tpch::load(&connection, 0.001, &mut |_, _| ())?;
    let statements = [
        ("constant", "SELECT 1"),
        ("point", "SELECT o_totalprice, o_orderdate FROM orders WHERE o_orderkey = 7"),
        ("Q1", tpch_query("q01")),
        ("Q5", tpch_query("q05")),
        ("Q21", tpch_query("q21")),
    ];
    for (name, sql) in statements {
        let parsed = median(&connection, |connection| connection.split(sql).map(drop))?;
        let bound = median(&connection, |connection| connection.plan(sql).map(drop))?;
        let optimized = median(&connection, |connection| connection.optimized(sql).map(drop))?;
        println!(
            r#"{{"query": "{name}", "parse": {parsed:.1}, "bind": {bound:.1}, "optimize": {optimized:.1}}}"#
        );
    }
    Ok(())
}

/// The text of a query of TPC-H.
fn tpch_query(name: &str) -> &'static str {
    tpch::QUERIES.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map_or("", |(_, sql)| sql)
}

fn median(
    connection: &Connection,
    work: impl Fn(&Connection) -> entasis::Result<()>,
) -> entasis::Result<f64> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        work(connection)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}
