//! Random plans: optimizer and engine, without a front end, compared with the reference.
//!
//! The optimizer may move a filter below or above an expression that fails. So an error on only one side is
//! allowed if the reference, running the optimized plan, agrees with the engine.

use entasis_engine::exec::{
    Collector, FilterKind, JoinSpill, QueryContext, Settings, Spilling, Swapping, TableKind, execute,
};
use entasis_engine::optimizer::optimize;
use entasis_engine::plan::Plan;
use entasis_testkit::compare::{Rows, difference};
use entasis_testkit::plans::plan;
use entasis_testkit::reference;
use entasis_vector::{ErrorKind, Result, Value};
use std::sync::Arc;

fn interpreted(plan: &Plan) -> Option<Result<Rows>> {
    let types = plan.schema().iter().map(|field| field.ty).collect();
    match reference::run(plan) {
        Err(error) if error.kind() == ErrorKind::NotSupported => None,
        result => Some(result.map(|rows| Rows { types, rows })),
    }
}

fn executed(plan: &Plan, settings: &Settings) -> Result<Rows> {
    let context = QueryContext { settings: Arc::new(settings.clone()), ..QueryContext::default() };
    let types: Vec<_> = plan.schema().iter().map(|field| field.ty).collect();
    let collector = Collector::new(&context, types.clone());
    execute(plan, &context, &collector)?;
    let chunks = collector.into_chunks().chunks;
    let row = |chunk: &entasis_vector::Chunk, r| -> Vec<Value> {
        types.iter().enumerate().map(|(c, ty)| chunk.value(r, c, *ty)).collect()
    };
    let rows =
        chunks.iter().flat_map(|chunk| (0..chunk.len()).map(|r| row(chunk, r)).collect::<Vec<_>>()).collect();
    Ok(Rows { types, rows })
}

fn check(seed: u64, settings: &Settings) -> std::result::Result<(), String> {
    let plan = plan(seed);
    let Some(expected) = interpreted(&plan) else { return Ok(()) };
    let optimized =
        optimize(plan.clone(), settings).map_err(|e| format!("seed {seed}: optimizer: {e:?}\n{plan}"))?;
    let Some(expected_of_optimized) = interpreted(&optimized) else { return Ok(()) };
    let said =
        |what: String| Err(format!("seed {seed} ({settings:?}): {what}\n{plan}\noptimized:\n{optimized}"));
    if let (Ok(a), Ok(b)) = (&expected, &expected_of_optimized)
        && let Some(difference) = difference(a, b, false)
    {
        return said(format!("the optimizer changes the result: {difference}"));
    }
    match (&expected_of_optimized, executed(&optimized, settings)) {
        (Ok(expected), Ok(found)) => match difference(expected, &found, false) {
            None => Ok(()),
            Some(difference) => said(difference),
        },
        (Err(_), Err(found)) if found.kind() == ErrorKind::Input => Ok(()),
        (Err(_), Err(found)) => said(format!("{found:?}, expected an input error")),
        // What is not requested need not be computed, so it need not fail.
        (Err(_), Ok(_)) => Ok(()),
        (Ok(_), Err(found)) => said(format!("{found:?}, expected a result")),
    }
}

fn run(settings: Settings, first: u64, count: u64) {
    let (first, count) = match std::env::var("ENTASIS_SEED") {
        Ok(seed) => (seed.parse().expect("ENTASIS_SEED is a number"), 1),
        Err(_) => match std::env::var("ENTASIS_WORKLOADS") {
            Ok(count) => (first, count.parse().expect("ENTASIS_WORKLOADS is a number")),
            Err(_) => (first, count),
        },
    };
    let mut failures = Vec::new();
    for seed in first..first + count {
        let checked = std::panic::catch_unwind(|| check(seed, &settings));
        failures.extend(checked.unwrap_or_else(|_| Err(format!("seed {seed} ({settings:?}): panic"))).err());
    }
    let shown: Vec<String> = failures.iter().take(6).cloned().collect();
    assert!(failures.is_empty(), "{} of {count} plans differ:\n\n{}", failures.len(), shown.join("\n"));
}

#[test]
fn default() {
    run(Settings::default(), 0, 400);
}

#[test]
fn one_thread_and_chunks_of_3() {
    run(Settings { threads: 1, chunk_rows: 3, ..Settings::default() }, 10_000, 400);
}

#[test]
fn two_threads_and_collisions() {
    run(Settings { threads: 2, hash_collisions: true, ..Settings::default() }, 20_000, 400);
}

#[test]
fn concise_array_tables() {
    run(
        Settings { threads: 2, chunk_rows: 3, join_table: TableKind::Cat, ..Settings::default() },
        40_000,
        400,
    );
}

#[test]
fn concise_hash_tables() {
    run(Settings { threads: 2, join_table: TableKind::Cht, ..Settings::default() }, 50_000, 400);
}

#[test]
fn unchained_tables() {
    run(
        Settings { threads: 2, chunk_rows: 3, join_table: TableKind::Unchained, ..Settings::default() },
        60_000,
        400,
    );
}

#[test]
fn filters_by_hash() {
    run(
        Settings { threads: 2, chunk_rows: 3, join_filter: FilterKind::Bloom, ..Settings::default() },
        70_000,
        400,
    );
}

#[test]
fn optimizer_off() {
    run(Settings { threads: 2, chunk_rows: 2, optimize: false, ..Settings::default() }, 30_000, 400);
}

#[test]
fn joins_that_spill() {
    run(Settings { threads: 2, join_spill: JoinSpill::Half, ..Settings::default() }, 60_000, 300);
}

#[test]
fn joins_that_spill_again() {
    run(
        Settings { threads: 2, chunk_rows: 3, join_spill: JoinSpill::Deep, ..Settings::default() },
        70_000,
        300,
    );
}

#[test]
fn sides_that_are_swapped() {
    run(Settings { threads: 2, join_swap: Swapping::Always, ..Settings::default() }, 80_000, 300);
}

#[test]
fn groups_that_spill() {
    run(Settings { threads: 2, aggregate_spill: Spilling::All, ..Settings::default() }, 90_000, 300);
}

#[test]
fn groups_that_spill_again() {
    run(
        Settings { threads: 2, chunk_rows: 3, aggregate_spill: Spilling::Deep, ..Settings::default() },
        100_000,
        300,
    );
}
