//! Figure 11: the time that the optimizer takes, by rows in blocks of 1024, with one thread and without
//! cutting the table into chunks. The paper reports 10 seconds for 10^9 rows, in chunks, with 64 cores. Then
//! the same for each workload, limit and model at 10^9 rows.

use super::Settings;
use crate::report::{Json, map};
use crate::workloads::Workload;
use entasis_layout::cost::{Access, Engine, Model, Paper, Terms};
use entasis_layout::partitioning::Partitioning;
use entasis_layout::solver::{Limits, Prices, Rewrites, solve};
use std::time::Instant;

/// Blocks of 10^9 rows.
const BLOCKS: usize = 1_000_000;

/// Prints and returns milliseconds for 10^5 to 10^9 rows, and at 10^9 rows for each workload and limit.
///
/// # Panics
/// If the terms of a workload are not finite, which they are.
pub fn solver(settings: &Settings) -> Json {
    let records: Vec<Json> = by_rows(settings).into_iter().chain(by_workload(settings)).collect();
    records.into()
}

fn by_rows(settings: &Settings) -> Vec<Json> {
    println!("{:>12}{:>10}{:>12}{:>12}{:>12}", "rows", "blocks", "partitions", "terms, ms", "solve, ms");
    let records = (5..=9).map(|power| {
        let blocks = 10usize.pow(power).div_ceil(1024);
        let frequency = Workload::HybridPoint.frequency(blocks, settings.operations as f64);
        let (prices, made) = timed(|| {
            let terms = Paper { access: Access::OF_THE_PAPER }.terms(&frequency);
            Prices::of(&terms).expect("terms are finite")
        });
        let (solution, solved) = timed(|| solve(&prices, &Limits::default()).expect("there are no limits"));
        let partitions = solution.partitioning.partitions();
        println!("{:>12}{blocks:>10}{partitions:>12}{made:>12.2}{solved:>12.2}", 10usize.pow(power));
        map([
            ("rows", 10f64.powi(power as i32).into()),
            ("partitions", partitions.into()),
            ("terms_ms", made.into()),
            ("solve_ms", solved.into()),
        ])
    });
    records.collect()
}

fn by_workload(settings: &Settings) -> Vec<Json> {
    println!("\n{BLOCKS} blocks {:>34}{:>12}{:>12}{:>12}", "round, ms", "solve, ms", "partitions", "widest");
    let count = settings.operations as f64;
    let paper = Paper { access: Access::OF_THE_PAPER };
    let free = Limits::default();
    let terms = |workload: Workload| paper.terms(&workload.frequency(BLOCKS, count));
    let mut records: Vec<Json> =
        Workload::ALL.iter().map(|workload| solved(workload.name(), &terms(*workload), &free).1).collect();

    let point = terms(Workload::HybridPoint);
    let narrow = Limits { width: Some(64), ..Limits::default() };
    records.push(solved("partitions of 64 blocks at most", &point, &narrow).1);
    let (best, _) = solved("without limits", &point, &free);
    let half = Limits { partitions: Some(best.partitions().div_ceil(2)), ..Limits::default() };
    records.push(solved("half of the partitions at most", &point, &half).1);
    records.push(rewritten("from partitions of 128 blocks", &point));
    let engine = Engine { byte: 1.0, ..Engine::default() };
    let terms = engine.terms(&Workload::HybridPoint.frequency(BLOCKS, count));
    records.push(solved("by our engine's terms", &terms, &free).1);
    records
}

/// The best partitioning within limits, and the times of rounding the terms and of solving.
fn solved(what: &str, terms: &Terms, limits: &Limits) -> (Partitioning, Json) {
    let (prices, rounding) = timed(|| Prices::of(terms).expect("terms are finite"));
    let (solution, solving) = timed(|| solve(&prices, limits).expect("the limits can be kept"));
    let (partitions, widest) = (solution.partitioning.partitions(), solution.partitioning.widest());
    println!("{what:36} {rounding:12.1}{solving:12.1}{partitions:12}{widest:12}");
    let record = map([
        ("what", what.into()),
        ("round_ms", rounding.into()),
        ("solve_ms", solving.into()),
        ("partitions", partitions.into()),
        ("widest", widest.into()),
    ]);
    (solution.partitioning, record)
}

/// The best partitioning if each partition of 128 blocks that changes is rewritten once.
fn rewritten(what: &str, terms: &Terms) -> Json {
    let prices = Prices::of(terms).expect("terms are finite");
    let present = Partitioning::equal(BLOCKS, 128);
    let costs = vec![(40.0 * 1024.0 * 128.0 / prices.unit()) as i64; present.partitions()];
    let rewrites = Rewrites { present: &present, prices: &costs };
    let (solution, solving) =
        timed(|| rewrites.solve(&prices, &Limits::default()).expect("there are no limits"));
    let partitions = solution.partitioning.partitions();
    println!("{what:36} {:12}{solving:12.1}{partitions:12}", "");
    map([("what", what.into()), ("solve_ms", solving.into()), ("partitions", partitions.into())])
}

/// What `work` returns, and the milliseconds that it took.
fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64() * 1000.0)
}
