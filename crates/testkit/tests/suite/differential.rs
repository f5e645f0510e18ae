//! Random queries: the engine against the reference engine.
//!
//! Every configuration runs workloads of its own. `ENTASIS_SEED=n` runs only the workload of that seed, under
//! every configuration; `ENTASIS_WORKLOADS=n` runs more of them.

use entasis::{Connection, ErrorKind};
use entasis_testkit::compare::{Rows, difference};
use entasis_testkit::configuration::Configuration;
use entasis_testkit::generator::{Dialect, Query, Shape, workload};
use entasis_testkit::reference;

/// Queries per workload.
const QUERIES: usize = 12;

/// The outcome of a query.
enum Outcome {
    Same,
    /// The front end or the reference returns "not supported".
    NotSupported(String),
    Different(String),
}

fn check(connection: &Connection, query: &Query) -> Outcome {
    let plan = match connection.plan(&query.sql) {
        Ok(plan) => plan,
        Err(error) if error.kind() == ErrorKind::NotSupported => {
            return Outcome::NotSupported(error.to_string());
        }
        Err(error) => return Outcome::Different(format!("does not bind: {error}")),
    };
    let types: Vec<_> = plan.schema().iter().map(|field| field.ty).collect();
    let expected = reference::run(&plan);
    let found = connection.execute(&query.sql);
    match (expected, found) {
        (Err(error), _) if error.kind() == ErrorKind::NotSupported => {
            Outcome::NotSupported(error.to_string())
        }
        (_, Err(error)) if error.kind() == ErrorKind::NotSupported => {
            Outcome::NotSupported(error.to_string())
        }
        (Err(expected), Err(found)) if expected.kind() == found.kind() => Outcome::Same,
        (Err(expected), Err(found)) => Outcome::Different(format!("{found:?}, expected {expected:?}")),
        (Err(expected), Ok(found)) => {
            Outcome::Different(format!("{} rows, expected {expected:?}", found.rows()))
        }
        (Ok(expected), Err(found)) => {
            Outcome::Different(format!("{found:?}, expected {} rows", expected.len()))
        }
        (Ok(expected), Ok(found)) => {
            let found_types = found.schema().iter().map(|field| field.ty).collect();
            let found = Rows { types: found_types, rows: found.row_values().collect() };
            let expected = Rows { types, rows: expected };
            match difference(&expected, &found, query.ordered) {
                None => Outcome::Same,
                Some(text) => {
                    Outcome::Different(format!("{}: {text}", suspect(connection, query, &expected)))
                }
            }
        }
    }
}

/// Where to look first: if interpreting the optimized plan already gives another result, the optimizer is
/// wrong.
fn suspect(connection: &Connection, query: &Query, expected: &Rows) -> &'static str {
    let optimized = connection.optimized(&query.sql).and_then(|plan| reference::run(&plan));
    match optimized {
        Ok(rows) => {
            let rows = Rows { types: expected.types.clone(), rows };
            if difference(expected, &rows, query.ordered).is_some() { "optimizer" } else { "execution" }
        }
        Err(_) => "optimizer",
    }
}

fn environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Runs the workloads of `count` seeds from `first` on and fails with all differences.
fn run(configuration: &str, shape: Shape, first: u64, count: u64) {
    let configuration = Configuration::load(configuration);
    let seeds = match environment("ENTASIS_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + environment("ENTASIS_WORKLOADS").unwrap_or(count),
    };
    let (mut failures, mut skipped, mut total) = (Vec::new(), Vec::new(), 0);
    for seed in seeds {
        let workload = workload(seed, shape, Dialect::Own, QUERIES);
        let (_database, connection) = configuration.connect().expect("the settings are valid");
        for statement in &workload.setup {
            if let Err(error) = connection.execute(statement) {
                panic!("seed {seed}: {error:?}\n{statement}");
            }
        }
        for query in &workload.queries {
            total += 1;
            match check(&connection, query) {
                Outcome::Same => {}
                Outcome::NotSupported(what) => skipped.push(what),
                Outcome::Different(difference) => {
                    let settings = configuration.settings.join("; ");
                    let setup: String = match shape {
                        Shape::Small => workload.setup.iter().map(|s| format!("{s};\n")).collect(),
                        Shape::Large => String::new(),
                    };
                    failures.push(format!("seed {seed} ({settings}): {difference}\n{setup}{};\n", query.sql));
                }
            }
        }
    }
    let (count, shown) = (failures.len(), failures.iter().take(8).cloned().collect::<Vec<_>>());
    assert!(failures.is_empty(), "{count} of {total} queries differ:\n\n{}", shown.join("\n"));
    assert!(
        skipped.len() * 10 <= total,
        "{} of {total} queries are not supported: {skipped:#?}",
        skipped.len()
    );
}

macro_rules! configurations {
    ($($name:ident: $first:literal),* $(,)?) => {
        mod small {
            $(#[test] fn $name() { super::run(stringify!($name), super::Shape::Small, $first, 30); })*
        }
        mod large {
            $(#[test] fn $name() { super::run(stringify!($name), super::Shape::Large, $first + 500, 2); })*
        }
    };
}

configurations!(
    default: 0,
    chunks_of_3: 1000,
    hash_collisions: 2000,
    one_thread: 3000,
    optimizer_off: 4000,
    small_and_colliding: 5000,
    two_threads: 6000,
    tuples: 7000,
    join_spill: 8000,
    join_spill_half: 9000,
    aggregate_spill: 10000,
    aggregate_spill_deep: 11000,
    upkeep: 12100,
);
